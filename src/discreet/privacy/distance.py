"""The number of neighbouring steps between two workforces of one establishment: d(D, D') of equations 8 and 13.

A workforce is a tuple with the number of workers of every kind. A release of loss eps moves the odds of two data sets
by at most e^(eps d), d their distance (`Loss.at_distance` has the delta too). And no bound is better: publishing one
event with probability c e^(-eps d(D, D0)), c small, keeps the definition and attains it. So the distance is the most
that a definition lets anybody learn.

Growth from a larger workforce never takes more steps. So a shortest way first grows to all workers of both data sets
and then shrinks: a step down followed by a step up can be taken in the other order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from math import prod
from typing import assert_never

from discreet.privacy.units import EstablishmentNodes, Establishments, Workers, is_weak
from discreet.words.errors import PrivacyError
from discreet.words.faults import Argument

MOST_STATES = 1_000
"""Workforces between two, that are looked through where several kinds grow at once under the weak definition."""

Workforce = Sequence[int]


def distance(
    unit: Establishments | Workers | EstablishmentNodes, before: int | Workforce, after: int | Workforce
) -> Fraction:
    """The neighbouring steps between two workforces of one establishment, all else equal.

    Examples
    --------
    >>> print(distance(Establishments(0.1), 100, 121))
    2
    >>> print(distance(Workers(), (60, 40), (50, 50)))
    20
    """
    one, other = _workforce(before, "before"), _workforce(after, "after")
    if len(one) != len(other):
        raise PrivacyError(
            f"Workforces of {len(one)} and {len(other)} kinds were compared.",
            "Both have a number of every kind.",
            "Write 0 for a kind that is absent.",
            about="after",
        )
    match unit:
        case Workers():
            return Fraction(sum(abs(a - b) for a, b in zip(one, other, strict=True)))
        case EstablishmentNodes():
            return Fraction(0 if one == other else sum(sum(force) <= unit.theta for force in (one, other)))
        case Establishments():
            both = tuple(max(pair) for pair in zip(one, other, strict=True))
            return _growth(unit, one, both) + _growth(unit, other, both)
        case _:
            assert_never(unit)


def size_steps(unit: Establishments, smaller: int, larger: int) -> Fraction:
    """The steps in which a whole workforce grows from one size to a larger one."""
    return sum(1 for _ in rungs(unit, smaller, larger)) * rung(unit)


def rung(unit: Establishments) -> Fraction:
    """The steps from one of the `rungs` to the next: one worker more is half a step where workers are exchanged."""
    return Fraction(1, 2 if unit.substitution else 1)


def rungs(unit: Establishments, size: int, end: int) -> Iterator[int]:
    """The sizes that are reached, one rung after another, at best: from a size until `end`, up or down.

    Where a worker is half a step, the best size after so many halves is one worker beyond that before the last half, or
    a neighbour of that before the last two.
    """
    up = size < end
    best, neighbour, worker = (max, unit.largest_neighbour, 1) if up else (min, unit.smallest_neighbour, -1)
    before = None
    while size < end if up else size > end:
        if not unit.substitution:
            size = neighbour(size)
        else:
            one = size + worker
            before, size = size, one if before is None else best(one, neighbour(before))
        yield size


def _growth(unit: Establishments, small: tuple[int, ...], large: tuple[int, ...]) -> Fraction:
    """The steps in which every kind grows to its larger number."""
    if not is_weak(unit.strength):
        return size_steps(unit, sum(small), sum(large))
    growing = [i for i, (a, b) in enumerate(zip(small, large, strict=True)) if a < b]
    if len(growing) < 2:
        return sum((size_steps(unit, small[i], large[i]) for i in growing), Fraction(0))
    return _weak_growth(unit, tuple(small[i] for i in growing), tuple(large[i] for i in growing))


def _weak_growth(unit: Establishments, small: tuple[int, ...], large: tuple[int, ...]) -> Fraction:
    """Several kinds grow at once, each union of kinds within its own bound: a search through all workforces between.

    A union with a kind that does not grow allows no less than one without it.
    """
    if prod(b - a + 1 for a, b in zip(small, large, strict=True)) > MOST_STATES:
        raise PrivacyError(
            f"{len(small)} kinds grow at once, through more than {MOST_STATES:,} workforces.",
            "The weak distance is searched for among these.",
            "Ask for smaller workforces, or for one kind at a time.",
            about="after",
        )
    most = [unit.largest_neighbour(size) for size in range(sum(large) + 1)]
    price = {small: Fraction(0)}
    for state in sorted(product(*(range(a, b + 1) for a, b in zip(small, large, strict=True))), key=sum):
        if state not in price:
            continue
        for more in _weak_steps(most, state, large):
            cost = Fraction(1, 2) if unit.substitution and sum(more) == sum(state) + 1 else Fraction(1)
            price[more] = min(price.get(more, price[state] + cost), price[state] + cost)
    return price[large]


def _weak_steps(most: list[int], state: tuple[int, ...], large: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The larger workforces that are weak neighbours, up to `large`; `most` is what each size may grow to."""
    unions = list(product((0, 1), repeat=len(state)))
    rooms = [most[_within(union, state)] for union in unions]
    tops = [min(most[a], b) for a, b in zip(state, large, strict=True)]
    for more in product(*(range(a, top + 1) for a, top in zip(state, tops, strict=True))):
        if more != state and all(_within(union, more) <= room for union, room in zip(unions, rooms, strict=True)):
            yield more


def _within(union: tuple[int, ...], force: tuple[int, ...]) -> int:
    return sum(chosen * size for chosen, size in zip(union, force, strict=True))


def _workforce(size: int | Workforce, name: str) -> tuple[int, ...]:
    force = (size,) if isinstance(size, int) else tuple(size)
    if not force or any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in force):
        raise PrivacyError(
            (Argument(name, size), " is no workforce."),
            "It is a whole number of workers from 0 on, or one for every kind.",
            ("Use for example ", Argument(name, (60, 40)), "."),
            about=name,
        )
    return force
