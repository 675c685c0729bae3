"""What to ask for instead: the nearest epsilon, alpha and number of kinds that a mechanism can promise.

Each is found from what the mechanism says that it lacks, rounded to four digits towards what is possible, and asked
again: a refusal names nothing that would be refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.privacy.guarantee import is_tight
from discreet.privacy.losses import Approximate, Loss, Pure, shown
from discreet.words.faults import Key, Phrase

if TYPE_CHECKING:
    from discreet.tables.mechanisms.mechanism import Mechanism, Request
    from discreet.words.faults import Sentence

DIGITS = 4
STEPS, FARTHEST = 40, 100
"""Halvings of a logarithm between what is possible and what is not, and steps away from what was asked."""

PACE = {"epsilon": Fraction(11, 10), "alpha": Fraction(11, 10), "delta": Fraction(10)}
"""How long those steps are."""

MOST_EPSILON = 10**6
LEAST_DELTA = Fraction(1, 10**80)  # times e^-500 it is still a double, so that `verify` can follow
CLOSE = 2.0**-30  # that delta is below 1 by
LEAST_ALPHA = Fraction(1, 10**9)
"""What is calibrated at all; alpha is at most the inverse."""

MOST_NAMED = 1000
"""No alpha above is named: noise for a share of this and a billion workers fits in 64 bits."""


@dataclass(frozen=True, slots=True)
class Other:
    """Another request: a table's epsilon, delta and number of kinds, and alpha."""

    epsilon: Fraction
    delta: Fraction
    alpha: Fraction
    kinds: int


def remedies(ask: Request, kind: type[Mechanism]) -> Sentence:
    """One sentence: each amount alone that makes the request possible, and a mechanism that already gives it."""
    asked = Other(ask.whole, ask.whole_delta(kind), ask.unit.alpha, ask.kinds)
    in_all = "" if asked.epsilon == ask.loss.amounts["epsilon"] else " in all"
    ways: list[tuple[str | Phrase, ...]] = []
    if (epsilon := _near(ask, kind, "epsilon", asked)) is not None:
        ways.append((f"raise epsilon to {shown(epsilon)}{in_all}",))
    if kind.needs_delta and (delta := _near(ask, kind, "delta", asked)) is not None:
        ways.append((f"raise delta to {shown(delta)}{in_all}",))
    for verb, up in (("lower", False), ("raise", True)):
        if (alpha := _near(ask, kind, "alpha", asked, up=up)) is not None:
            ways.append((f"{verb} alpha to {shown(alpha)}",))
            break
    if most := _fewer(ask.kinds, lambda n: possible(kind, ask, replace(asked, kinds=n))):
        ways.append((f"count {most} kinds of workers" if most > 1 else "count one kind of workers",))
    if not is_tight(ask.calibration) and possible(kind, replace(ask, calibration="tight"), asked):
        ways.append(("leave ", Key("calibration"), " out"))
    if is_tight(ask.calibration):
        ways += [(f"use {each.name}",) for each in kind.plainer if possible(each, ask, asked)][:1]
    return _sentence(ways or [(_together(ask, kind, asked, in_all),)])


def _together(ask: Request, kind: type[Mechanism], asked: Other, in_all: str) -> str:
    """Alpha and epsilon that are possible together, for one kind of workers if that is what it takes."""
    for at in (asked, replace(asked, kinds=1)):
        for toward in (-1, 1):
            for step in range(1, FARTHEST + 1):
                alpha = _rounded(at.alpha * PACE["alpha"] ** (toward * step), up=toward > 0)
                new = replace(at, alpha=alpha, epsilon=at.epsilon * PACE["epsilon"] ** step)
                if possible(kind, ask, new):
                    epsilon = _near(ask, kind, "epsilon", replace(at, alpha=alpha)) or new.epsilon
                    both = f"change alpha to {shown(alpha)} and epsilon to {shown(epsilon)}{in_all}"
                    return f"{both} and count one kind of workers" if at.kinds < asked.kinds else both
    delta = " and delta to 1e-6" if kind.needs_delta else ""
    return f"change alpha to 0.1 and epsilon to 8{delta} and count one kind of workers"


def _near(ask: Request, kind: type[Mechanism], name: str, at: Other, *, up: bool = True) -> Fraction | None:
    """The nearest of one amount that makes the rest possible."""

    def enough(amount: Fraction) -> bool:
        new: dict[str, Any] = {name: amount}
        return possible(kind, ask, replace(at, **new))

    return _nearest(getattr(at, name), enough, pace=PACE[name] ** (1 if up else -1))


def _sentence(ways: Sequence[Sequence[str | Phrase]]) -> Sentence:
    parts: list[str | Phrase] = []
    for i, way in enumerate(ways):
        parts += ["" if i == 0 else ", or " if i == len(ways) - 1 else ", ", *way]
    first = str(parts[1])
    return ((first[0].upper() + first[1:]), *parts[2:], ".")


def possible(kind: type[Mechanism], ask: Request, other: Other) -> bool:
    """Whether a mechanism is sure to give the request with other amounts of the whole table."""
    amount = other.epsilon * ask.within / (1 if kind.vector else other.kinds)
    halved = ask.unit.substitution and kind.halves
    if not (0 < amount <= MOST_EPSILON and LEAST_ALPHA <= other.alpha <= MOST_NAMED):
        return False
    if kind.searched is not None and not kind.searched[0] <= amount * (2 if halved else 1) <= kind.searched[1]:
        return False
    if kind.certain_alpha is not None and other.alpha > kind.certain_alpha:
        return False
    loss: Loss = Pure(amount)
    if kind.needs_delta:
        chance = other.delta / other.kinds
        if not LEAST_DELTA <= chance <= 1 - CLOSE:
            return False
        loss = Approximate(amount, chance / (Approximate(amount, 0).growth(2) if halved else 1))
    unit = replace(ask.unit, alpha=other.alpha)
    new = replace(ask, unit=unit, loss=loss, cells=other.kinds if kind.vector else 1)
    less = {**loss.amounts, "epsilon": amount / kind.room(new)}
    return not kind.lacks(replace(new, loss=type(loss)(**less)))


def _nearest(asked: Fraction, enough: Callable[[Fraction], bool], *, pace: Fraction) -> Fraction | None:
    """The nearest number on one side that is enough, to a few digits; None if there is none within reach."""
    lacking, up = asked, pace > 1
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
