"""Privacy losses as exact values: pure epsilon, (epsilon, delta) and zero-concentrated rho.

Amounts are `fractions.Fraction`, so a budget of 1 pays for exactly ten releases of 0.1. Losses add, subtract,
scale and compare; floats appear only where a number is printed. The order is partial: (1, 1e-6) and (2, 0) do
not compare, and neither fits in the other.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import reduce
from typing import TypeAlias

from discreet.words.errors import PrivacyError
from discreet.words.faults import Argument, Spelled

Number: TypeAlias = int | float | str | Decimal | Fraction


LONGEST = 1_000
DIGITS = 40
WRITTEN = re.compile(r"\s*[+-]?[0-9.]+(/[0-9]+|[eE][+-]?[0-9]{1,3})?\s*")
"""Amounts in text, with so few digits in the exponent that making a fraction of them takes no time."""


AS_A_SHARE = Spelled(", '1/3' or Fraction(1, 3)", plan=" or '1/3'", command=" or 1/3", form=" or 1/3")


def exact(value: Number, *, name: str = "value") -> Fraction:
    """The exact amount a person means: 0.1 is one tenth, whether written as text or as a float."""
    try:
        if isinstance(value, bool):
            raise TypeError  # True is an int to Python, and no amount to a person
        if isinstance(value, str) and not (len(value) <= LONGEST and WRITTEN.fullmatch(value)):
            raise ValueError  # Python also reads 1_0, the digits of other scripts, and 1e999999999 for minutes
        if isinstance(value, Decimal) and abs(value.adjusted()) > LONGEST:
            raise ValueError
        amount = Fraction(repr(float(value))) if isinstance(value, float) else Fraction(value)
        float(amount)  # what no double can hold cannot be computed with either
    except (ValueError, TypeError, OverflowError, ZeroDivisionError):
        raise PrivacyError(
            (Argument(name, value), " is not a number."),
            "A loss needs a finite amount.",
            ("Write it as 0.5", AS_A_SHARE, "."),
            about=name,
        ) from None
    return amount


def upward(amount: Fraction) -> float:
    """The least double that is not below `amount`: a scale of noise is never rounded down."""
    nearest = float(amount)
    return nearest if Fraction(nearest) >= amount else math.nextafter(nearest, math.inf)


class Loss(ABC):
    """The most that a release may reveal about one protected unit."""

    @property
    @abstractmethod
    def amounts(self) -> dict[str, Fraction]:
        """The parameters by name, in the order in which they are printed."""

    @abstractmethod
    def __add__(self, other: Loss) -> Loss:
        """The loss of both releases together."""

    @abstractmethod
    def at_distance(self, distance: int) -> Loss:
        """The loss between data sets that are `distance` neighbouring steps apart."""

    def __sub__(self, other: Loss) -> Loss:
        """The remainder of this loss after `other` has been spent."""
        if not other <= self:
            raise PrivacyError(
                f"Cannot take {other} from {self}: the rest would be negative.",
                f"At most {self} can be taken.",
                "Compare with `<=` first.",
                about="loss",
            )
        mine, theirs = _common(self, other)
        return type(mine)(*(a - b for a, b in zip(mine.amounts.values(), theirs.amounts.values(), strict=True)))

    def __mul__(self, times: int) -> Loss:
        if times < 0:
            raise PrivacyError(
                f"A loss cannot be multiplied by {times}.", "The factor counts releases: use 0, 1, 2, ...", about="loss"
            )
        return type(self)(*(amount * times for amount in self.amounts.values()))

    __rmul__ = __mul__

    def __le__(self, other: Loss) -> bool:
        """Whether a budget of `other` covers this loss. A pure budget covers no rho, however small."""
        if isinstance(self, Concentrated) and isinstance(other, Pure):
            return not self
        mine, theirs = _common(self, other)
        return all(a <= b for a, b in zip(mine.amounts.values(), theirs.amounts.values(), strict=True))

    def __lt__(self, other: Loss) -> bool:
        return self <= other and not other <= self

    def __ge__(self, other: Loss) -> bool:
        return other <= self

    def __gt__(self, other: Loss) -> bool:
        return other < self

    def zero(self) -> Loss:
        """Nothing spent, in the same currency."""
        return type(self)(*(Fraction(0) for _ in self.amounts))

    def __bool__(self) -> bool:
        return any(self.amounts.values())

    def __str__(self) -> str:
        return ", ".join(f"{name}={shown(amount)}" for name, amount in self.amounts.items())

    def to_dict(self) -> dict[str, str]:
        """Exact text of every amount: what the ledger stores and hashes."""
        return {name: str(amount) for name, amount in self.amounts.items()}


@dataclass(frozen=True, slots=True, order=False)
class Pure(Loss):
    """epsilon: no event becomes more than e^epsilon times as likely.

    Parameters
    ----------
    epsilon : a number of at least 0, kept exactly; text such as "0.1" or "1/3" is exact too.

    Examples
    --------
    >>> print(Pure("0.1") + Pure("0.2"))
    epsilon=0.3
    """

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", _non_negative(epsilon, "epsilon"))

    @property
    def amounts(self) -> dict[str, Fraction]:
        return {"epsilon": self.epsilon}

    def __add__(self, other: Loss) -> Loss:
        return Pure(self.epsilon + other.epsilon) if isinstance(other, Pure) else other + self

    def at_distance(self, distance: int) -> Loss:
        return Pure(self.epsilon * _steps(distance))


@dataclass(frozen=True, slots=True, order=False)
class Approximate(Loss):
    """(epsilon, delta): as pure, except on events of total probability delta.

    Parameters
    ----------
    epsilon : as for `Pure`.
    delta : the probability of the exceptions, at least 0.

    Examples
    --------
    >>> print(Approximate(1, "0.05") + Pure(1))
    epsilon=2, delta=0.05
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "epsilon", _non_negative(epsilon, "epsilon"))
        object.__setattr__(self, "delta", _non_negative(delta, "delta"))

    @property
    def amounts(self) -> dict[str, Fraction]:
        return {"epsilon": self.epsilon, "delta": self.delta}

    def __add__(self, other: Loss) -> Loss:
        mine, theirs = _common(self, other)
        assert isinstance(mine, Approximate) and isinstance(theirs, Approximate)
        return Approximate(mine.epsilon + theirs.epsilon, mine.delta + theirs.delta)

    def at_distance(self, distance: int) -> Loss:
        """delta grows as delta * (1 + e^eps + ... + e^((d-1) eps)), rounded up; from one on, nothing is promised."""
        steps = _steps(distance)
        beyond = self.delta and self.epsilon * (steps - 1) > LONGEST * 3  # more than any delta makes up for
        return Approximate(self.epsilon * steps, 1 if beyond else min(self.delta * self.growth(steps), Fraction(1)))

    def growth(self, steps: int) -> Fraction:
        """1 + e^eps + ... + e^((steps-1) eps), rounded up."""
        reached, growth = 0, Fraction(0)
        for bit in f"{steps:b}":  # the sum of 2 m terms is that of m, times 1 + e^(m eps)
            growth, reached = growth * (1 + _exp_upper(self.epsilon * reached)), 2 * reached
            if bit == "1":
                growth, reached = 1 + _exp_upper(self.epsilon) * growth, reached + 1
        return growth


@dataclass(frozen=True, slots=True, order=False)
class Concentrated(Loss):
    """rho: zero-concentrated differential privacy.

    Parameters
    ----------
    rho : a number of at least 0, kept exactly.

    Examples
    --------
    >>> print(Concentrated("0.5") + Concentrated("0.25"))
    rho=0.75
    """

    rho: Fraction

    def __init__(self, rho: Number) -> None:
        object.__setattr__(self, "rho", _non_negative(rho, "rho"))

    @property
    def amounts(self) -> dict[str, Fraction]:
        return {"rho": self.rho}

    def __add__(self, other: Loss) -> Loss:
        mine, theirs = _common(self, other)
        assert isinstance(mine, Concentrated) and isinstance(theirs, Concentrated)
        return Concentrated(mine.rho + theirs.rho)

    def at_distance(self, distance: int) -> Loss:
        return Concentrated(self.rho * _steps(distance) ** 2)

    def to_approximate(self, delta: Number) -> Approximate:
        """(rho + 2 sqrt(rho ln(1/delta)), delta), rounded up."""
        chance = exact(delta, name="delta")
        if not 0 < chance < 1:
            raise PrivacyError(
                (Argument("delta", delta), " is not between 0 and 1."),
                remedy="Give a small positive failure probability, e.g. 1e-6.",
                about="delta",
            )
        with localcontext(prec=DIGITS, rounding=ROUND_CEILING):
            rho, inverse = _decimal(self.rho), _decimal(1 / chance)
            epsilon = rho + 2 * (rho * inverse.ln().next_plus()).sqrt().next_plus()
        return Approximate(Fraction(epsilon), chance)


def loss(*, epsilon: Number | None = None, delta: Number | None = None, rho: Number | None = None) -> Loss:
    """The loss with these parameters: `loss(epsilon=1)`, `loss(epsilon=1, delta="1e-6")`, `loss(rho=0.5)`."""
    if rho is not None and epsilon is None and delta is None:
        return Concentrated(rho)
    if epsilon is not None and rho is None:
        return Approximate(epsilon, delta) if delta is not None and exact(delta, name="delta") else Pure(epsilon)
    raise PrivacyError(
        (
            Argument("epsilon", epsilon),
            ", ",
            Argument("delta", delta),
            ", ",
            Argument("rho", rho),
            " do not name one loss.",
        ),
        remedy="Give epsilon, epsilon with delta, or rho alone.",
        about="epsilon",
    )


def from_dict(amounts: dict[str, str]) -> Loss:
    """The inverse of `Loss.to_dict`."""
    return loss(**amounts) if "delta" not in amounts else Approximate(amounts["epsilon"], amounts["delta"])


def total(losses: Iterable[Loss], *, zero: Loss | None = None) -> Loss:
    """The sum of `losses`; `zero` is the answer when there are none."""
    return reduce(lambda a, b: a + b, losses, zero if zero is not None else Pure(0))


def shown(amount: Fraction) -> str:
    """A short decimal where it is exact, else twelve digits rounded up: a printed loss never flatters."""
    with localcontext() as context:
        context.prec, context.rounding = 12, ROUND_CEILING
        decimal = (Decimal(amount.numerator) / Decimal(amount.denominator)).normalize()
    return f"{decimal:f}" if -7 < decimal.adjusted() < 12 else f"{decimal:e}"


def half(whole: Loss) -> Loss:
    """The loss of one step of which two take `whole`: docs/proofs/composition.md, substitution."""
    if not isinstance(whole, Approximate):
        return type(whole)(*(amount / 2 for amount in whole.amounts.values()))
    one = Approximate(whole.epsilon / 2, 0)
    return Approximate(one.epsilon, whole.delta / one.growth(2))


def odds(epsilon: Fraction) -> str:
    """e^epsilon in three digits, rounded up: a printed bound is a bound."""
    if epsilon > 700:
        return f"e^{shown(epsilon)}"
    with localcontext(prec=3, rounding=ROUND_CEILING):
        return f"{float(+_decimal(_exp_upper(epsilon))):g}"


def _common(a: Loss, b: Loss) -> tuple[Loss, Loss]:
    """Both losses in one currency: pure converts to the other's, (epsilon, delta) and rho do not mix."""
    if type(a) is type(b):
        return a, b
    if isinstance(a, Pure):
        return _convert(a, b), b
    if isinstance(b, Pure):
        return a, _convert(b, a)
    raise PrivacyError(
        f"Cannot combine {a} with {b}.",
        "A budget holds (epsilon, delta) or rho, not both.",
        "Convert the rho with `.to_approximate(delta)`, or keep two ledgers' budgets.",
        about="loss",
    )


def _convert(pure: Pure, like: Loss) -> Loss:
    return Approximate(pure.epsilon, 0) if isinstance(like, Approximate) else Concentrated(pure.epsilon**2 / 2)


def _non_negative(value: Number, name: str) -> Fraction:
    amount = exact(value, name=name)
    if amount < 0:
        raise PrivacyError(
            (Argument(name, value), " is negative."), "A loss is zero or more.", f"Give {name} > 0.", about=name
        )
    return amount


def _steps(distance: int) -> int:
    if distance < 0:
        raise PrivacyError(
            (Argument("distance", distance), " is negative."),
            "Data sets are 0, 1, 2, ... steps apart.",
            "Give such a number.",
            about="distance",
        )
    return distance


def _exp_upper(exponent: Fraction) -> Fraction:
    """A rational number not below e^exponent, and closer than one part in 10^30 for exponents up to 10^6."""
    if not exponent:
        return Fraction(1)
    with localcontext(prec=DIGITS, rounding=ROUND_CEILING):
        return Fraction(_decimal(exponent).exp().next_plus())  # `exp` rounds to nearest, whatever the context says


def _decimal(amount: Fraction) -> Decimal:
    """In the context's digits and direction."""
    return Decimal(amount.numerator) / Decimal(amount.denominator)
