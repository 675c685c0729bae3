"""The questions of a summary by parts, and what each may spend.

Amounts are exact, and a noise scale computed from one is rounded up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from numbers import Integral
from typing import Any

import numpy as np

from discreet.arrays import Vector
from discreet.privacy.losses import Number, Pure
from discreet.privacy.split import read_split
from discreet.words.errors import PrivacyError
from discreet.words.faults import Argument

PROOF = "docs/proofs/posterior.md"
LEAST, MOST = Fraction(1, 10**7), Fraction(10**8)  # of an epsilon: noise beyond these is not a number, or nothing


def public_note(public: Sequence[str]) -> str:
    """What every summary states about its input: its public columns, and the treatment of odd rows."""
    values = f", and the levels of {', '.join(public)}, which are not protected" if public else ""
    return f"Public: the number of rows{values}. A row with an entry that is no finite number counts as zeros"


def only(values: Sequence[float]) -> float:
    """The one value of a single question."""
    if len(values) != 1:
        raise TypeError(f"{len(values)} answers are not one number. Take one of them by its place.")
    return values[0]


def floats(values: Vector) -> tuple[float, ...]:
    return tuple(map(float, values))


def loss_of(epsilon: Number) -> Pure:
    """The loss asked for; refuses one that buys nothing, or hides nothing."""
    loss = Pure(epsilon)
    if not loss:
        raise PrivacyError(
            (Argument("epsilon", epsilon), " buys nothing."),
            "It must be above 0.",
            ("Use for example ", Argument("epsilon", 1), "."),
            about="epsilon",
        )
    if loss.epsilon > MOST:
        raise PrivacyError(
            f"epsilon is above {float(MOST):g}, which hides nothing.",
            "Useful amounts are below 10.",
            ("Use for example ", Argument("epsilon", 1), "."),
            about="epsilon",
        )
    _refuse_tiny(loss.epsilon)
    return loss


def _refuse_tiny(epsilon: Fraction) -> None:
    if epsilon < LEAST:
        raise PrivacyError(
            f"An epsilon below {float(LEAST):g} for a question buys noise alone.",
            "Each question needs more.",
            "Raise epsilon, or ask fewer questions.",
            about="epsilon",
        )


def questions(coefficient: str | Sequence[str], values: float | Sequence[float]) -> tuple[tuple[str, ...], Vector]:
    """Pairs of a coefficient and a value; one of either goes with each of the other."""
    names = (
        (coefficient,) if isinstance(coefficient, str) or not isinstance(coefficient, Iterable) else tuple(coefficient)
    )
    if not all(isinstance(name, str) for name in names):
        raise PrivacyError(
            (Argument("coefficient", coefficient), " is no name."),
            "A coefficient has the name of its column; several are a list of names.",
            ("Use for example ", Argument("coefficient", "x"), "."),
            about="coefficient",
        )
    try:
        if np.asarray(values).dtype.kind in "bSU":
            raise TypeError
        numbers = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError, OverflowError):
        raise PrivacyError(
            f"{values!r:.40} is no number to ask about.",
            "One number is possible, or a list of them.",
            "Use for example 0.5.",
            about="coefficient",
        ) from None
    count = max(len(names), len(numbers))
    if numbers.ndim > 1 or {len(names), len(numbers)} - {1, count} or not names:
        raise PrivacyError(
            f"{len(names)} coefficients and {numbers.size} values do not pair up.",
            remedy="Give as many values as coefficients, or one of either.",
            about="coefficient",
        )
    if not np.isfinite(numbers).all():
        raise PrivacyError(
            "A value asked about is not a finite number.",
            remedy="Ask about numbers on the coefficient's scale.",
            about="coefficient",
        )
    return names * (count // len(names)), np.broadcast_to(numbers, (count,))


def by_question(names: Sequence[str], asked: Mapping[str, Number] | None, *, epsilon: Fraction) -> list[Fraction]:
    """The amount that each question may spend: equal amounts, or a coefficient's amount divided among its questions."""
    count = Counter(names)
    default = {name: Fraction(times, len(names)) for name, times in count.items()}
    shares = read_split(asked, default)
    found = [shares[name] * epsilon / count[name] for name in names]
    _refuse_tiny(min(found))
    return found


def asked(summary: str, formula: str, names: Sequence[str], partitions: int, **more: Any) -> dict[str, Any]:
    """The public request, as the ledger keeps it."""
    request = {"summary": summary, "formula": formula, "coefficient": list(names), "partitions": partitions}
    return request | {key: list(value) if isinstance(value, tuple) else value for key, value in more.items()}


def whole(value: object, *, least: int) -> bool:
    """Whether `value` is a whole number, Python's or NumPy's, and at least `least`."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least
