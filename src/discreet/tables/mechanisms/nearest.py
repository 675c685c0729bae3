"""What to ask for instead: the nearest epsilon, alpha and number of kinds that a mechanism can promise.

Each is found from what the mechanism says that it lacks, rounded to four digits towards what is possible, and asked
again: a refusal names nothing that would be refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.privacy.losses import Pure, shown

if TYPE_CHECKING:
    from discreet.tables.mechanisms.mechanism import Mechanism, Request

DIGITS = 4
STEPS, FARTHEST = 40, 100
"""Halvings of a logarithm between what is possible and what is not, and steps of a tenth away from what was asked."""


def remedies(ask: Request, kind: type[Mechanism]) -> str:
    """One sentence: each amount alone that makes the request possible, and a mechanism that already gives it."""
    ways = []
    epsilon = _nearest(ask.whole, lambda x: possible(kind, ask, epsilon=x), up=True)
    if epsilon is not None:
        ways.append(f"raise epsilon to {shown(epsilon)}{'' if ask.whole == ask.loss.amounts['epsilon'] else ' in all'}")
    alpha = ask.unit.alpha
    for verb, up in (("lower", False), ("raise", True)):
        found = _nearest(alpha, lambda x: possible(kind, ask, alpha=x), up=up)
        if found is not None:
            ways.append(f"{verb} alpha to {shown(found)}")
            break
    most = _fewer(ask.kinds, lambda n: possible(kind, ask, kinds=n))
    if most:
        ways.append(f"count {most} kinds of workers" if most > 1 else "count one kind of workers")
    ways += [f"use {each.name}" for each in kind.plainer if possible(each, ask)][:1]
    said = (
        ", ".join(ways[:-1]) + (", or " if len(ways) > 1 else "") + ways[-1]
        if ways
        else "change alpha and epsilon together"
    )
    return f"{said[0].upper()}{said[1:]}."


def possible(
    kind: type[Mechanism],
    ask: Request,
    *,
    epsilon: Fraction | None = None,
    alpha: Fraction | None = None,
    kinds: int | None = None,
) -> bool:
    """Whether a mechanism lacks nothing for the request with another epsilon of the whole table, alpha or kinds."""
    several = ask.kinds if kinds is None else kinds
    whole = ask.whole if epsilon is None else epsilon
    amount = whole * ask.within / (1 if kind.vector else several)
    if kind.needs_delta or amount <= 0:
        return False
    unit = ask.unit if alpha is None else replace(ask.unit, alpha=alpha)
    other = replace(ask, unit=unit, loss=Pure(amount), cells=several if kind.vector else 1)
    return not kind.lacks(replace(other, loss=Pure(amount / kind.room(other))))


def _nearest(asked: Fraction, enough: Callable[[Fraction], bool], *, up: bool) -> Fraction | None:
    """The nearest number on one side that is enough, to a few digits; None if there is none within reach."""
    pace = Fraction(11, 10) if up else Fraction(10, 11)
    lacking = asked
    for _ in range(FARTHEST):
        reached = _rounded(lacking * pace, up=up)
        if enough(reached):
            break
        lacking = reached
    else:
        return None
    for _ in range(STEPS):
        middle = _rounded((lacking + reached) / 2, up=up)
        if middle in (lacking, reached):
            break
        lacking, reached = (lacking, middle) if enough(middle) else (middle, reached)
    return reached


def _rounded(number: Fraction, *, up: bool) -> Fraction:
    context = Context(prec=DIGITS, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    return Fraction(context.divide(Decimal(number.numerator), Decimal(number.denominator)))


def _fewer(asked: int, enough: Callable[[int], bool]) -> int:
    """The most below what was asked for that is enough, or 0."""
    low, high = 0, asked
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low
