"""The expected error of a posterior summary, from public numbers: rows, coefficients, parts, epsilon.

Two things move an answer away from that of all rows at once: the noise, and the parts, whose estimates are less
efficient and scatter. Both are in units of the posterior's standard deviation, which is confidential, or in probability
for an answer near one half, where they move it most. Formulas are for normal errors and a right model; skewness, curves
and far values add a bias that no public number tells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from discreet.arrays import Vector
from discreet.models.bayes.doubts import Doubt, told
from discreet.words.caveats import A_LINE, A_TENTH, APART, NO_FAR, SKEWED

IN_DEVIATIONS, OF_BOUND = "posterior standard deviations", "of the bound that is found"
PROBABILITY = "of probability, for an answer near 1/2"
CAVEAT = (
    f"The model is taken for right: {A_LINE}, and no curve, errors are normal, of one variance, {APART}, and {A_TENTH} "
    f"to carry each coefficient, or more. Where rows of one group are alike, ends for the truth are too narrow "
    f"by far: use a mixed model. Ends hold at least so often, because {SKEWED}, as are unequal ones. They do not "
    f"if a line is fitted to a curve: answers may then be off by many posterior deviations. The look at the model, "
    f"which is part of the price, finds the larger ones. A rarer level, or a column in which few rows lie far out, "
    f"is seen only where columns are public and responses alone are protected. And {NO_FAR}: with one error in 500 at "
    "60 deviations, or one in 2,000 at 200, as wrong units make them, ends held in 0 to 90 % of trials, mostly without "
    "a flag. Cap responses first, by a limit that is public."
)


@dataclass(frozen=True, slots=True)
class AnswerError:
    """The expected error of one answer.

    Attributes
    ----------
    error : expected absolute difference from the answer of all rows at once.
    noise : its part by noise alone; `parts`, by working in parts alone, None where there is no theory.
    at_least : whether the bounds may be found so coarsely that the noise is several times as wide.
    bias : what skewed errors, a rare level or a slight curve may add, which the ends allow for; None where not told.
    flag : why the answer must not be used without care, as far as that is public.
    """

    coefficient: str
    at: float
    error: float
    noise: float
    parts: float | None
    at_least: bool = False
    bias: float | None = None
    flag: str = ""


@dataclass(frozen=True, slots=True)
class SummaryErrors:
    """The expected errors of the answers of a posterior summary; `unit` says in what.

    Read `notes` before anything is paid: they say what makes answers doubtful whatever the rows hold.
    """

    summary: str
    rows: int
    coefficients: int
    partitions: int
    unit: str
    answers: tuple[AnswerError, ...]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<SummaryErrors of {len(self.answers)} answers from {self.partitions:,} parts of {self.rows:,} rows>"

    def __str__(self) -> str:
        lines = [*(f"Before paying: {note}." for note in self.notes), CAVEAT]
        lines.append(f"{self.summary} from {self.partitions:,} parts of {self.rows:,} rows.")
        for each in self.answers:
            parts = "" if each.parts is None else f", parts {each.parts:.3g}"
            lines.append(
                f"Expected error of {each.coefficient} at {each.at:g}: {'at least ' * each.at_least}{each.error:.3g} "
                f"{self.unit} "
                f"(noise {each.noise:.3g}{parts})."
            )
        if biases := [each.bias for each in self.answers if each.bias is not None]:
            lines.append(
                f"Skewed errors, a rare level or a slight curve may move an answer by up to {max(biases):.2g} more, "
                "which its ends allow for."
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        return {
            "summary": self.summary,
            "rows": self.rows,
            "coefficients": self.coefficients,
            "partitions": self.partitions,
            "unit": self.unit,
            "answers": [asdict(each) for each in self.answers],
            "notes": list(self.notes),
        }


def mean_absolute(deviation: float, scale: float) -> float:
    """E |normal + Laplace|, for a normal law of this deviation and a Laplace law of this scale."""
    from scipy.special import erfcx

    normal = deviation * math.sqrt(2 / math.pi)
    return normal + (scale * float(erfcx(deviation / (math.sqrt(2) * scale))) if scale > 0 else 0.0)


def normal_and_laplace(deviation: float, scale: float, *, points: int = 201) -> tuple[Vector, Vector]:
    """Values and weights that stand for a normal and a Laplace number added up."""
    from scipy.special import ndtri

    level = (np.arange(points) + 0.5) / points
    normal = deviation * ndtri(level)
    laplace = scale * np.sign(level - 0.5) * -np.log1p(-np.abs(2 * level - 1))
    return (normal[:, None] + laplace[None, :]).ravel(), np.full(points**2, points**-2.0)


def answers(
    names: Sequence[str],
    at: Sequence[float],
    errors: Sequence[tuple[Any, ...]],
    biases: Sequence[float] | None,
    doubts: Sequence[Sequence[Doubt]],
) -> tuple[AnswerError, ...]:
    """One line for each question: error, noise alone, parts alone, whether the error is the least, and doubts."""
    words = told(doubts)[0]
    return tuple(
        replace(AnswerError(name, value, *error), bias=bias, flag=word)
        for name, value, error, bias, word in zip(
            names, at, errors, [None] * len(names) if biases is None else biases, words, strict=True
        )
    )
