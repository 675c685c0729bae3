"""Warnings about an answer, and which of them are known before anything is paid.

A part's estimate of a coefficient is a sum of errors over the rows that carry it: those of a level, or those far out in
a column. With few such rows, skewed errors stay skewed, and bounds cut one tail. The number of these rows is public if
a unit protects responses alone and every column is declared. Elsewhere it is supposed, and said so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet.arrays import Integers, Vector

if TYPE_CHECKING:
    from discreet.models.bayes.regression import KnownDesign

SUPPOSED = 10.0  # rows for each that carries a coefficient, where columns are not public: a level of a tenth of them
LEAST_CARRIED = 10  # rows of a part that carry a coefficient, and rows for each of its p + 1 numbers
LEAST_PRESENT = 4  # rows of a part that carry any other coefficient: a part without a level says nothing at all


class Doubt(NamedTuple):
    """Why an answer must not be used without care: a word for tables, and the sentence behind it."""

    word: str
    note: str


@dataclass(frozen=True, slots=True)
class Carried:
    """The number of rows that carry each coefficient in question.

    Attributes
    ----------
    one_in : rows for each that carries the coefficient: 10 for a level of a tenth, 3 for a column with normal values.
    rarest : the same of the coefficient of the model that the fewest rows carry, asked about or not.
    public : whether this follows from public columns; otherwise it is supposed.
    """

    one_in: Vector
    rarest: float
    public: bool

    @classmethod
    def supposed(cls, questions: int) -> Carried:
        return cls(np.full(questions, SUPPOSED), SUPPOSED, public=False)

    @classmethod
    def of(cls, design: KnownDesign, columns: Integers) -> Carried:
        """From a public design: n times the sum of w^4 over weights w of the responses; their squares sum to 1."""
        X = design.X
        rows = float(len(X))
        with np.errstate(all="ignore"):
            R = np.linalg.qr(X, mode="r")
            rank = np.abs(np.diag(R)) > rows * np.finfo(float).eps * np.abs(R).max()
            if not rank.all():
                return cls(np.full(len(columns), rows), rows, public=True)
            inverse = np.linalg.inv(R)
            weight = X @ (inverse @ inverse.T)
            weight /= np.sqrt((weight**2).sum(axis=0))
            every = np.clip(rows * (weight**4).sum(axis=0), 1.0, rows)
            return cls(every[columns], float(every.max()), public=True)

    def most_parts(self, rows: int, coefficients: int) -> float:
        """The largest number of parts with enough rows for every coefficient; no limit if that is assumed."""
        return float((rows / self._needed(coefficients)).min()) if self.public else np.inf

    def small_parts(self, names: Sequence[str], *, rows: int, parts: int, coefficients: int) -> list[list[Doubt]]:
        """The warnings about each answer before it is paid for."""
        few = rows / parts < self._needed(coefficients)
        here = np.where(rows / parts < LEAST_PRESENT * self.rarest, self.rarest, self.one_in)
        found = []
        for name, one_in, small in zip(names, here.tolist(), few.tolist(), strict=True):
            if self.public:
                note = (
                    f"{name} is not to be trusted: {rows / parts / one_in:.1f} of the {rows // parts:,} rows of a part "
                    f"carry it, or a coefficient beside it. It needs {LEAST_CARRIED} of "
                    f"{LEAST_CARRIED * (coefficients + 1)}, those beside it {LEAST_PRESENT}. {REMEDY}"
                )
            else:
                note = (
                    f"not to be trusted unless errors are near symmetric, or at least {LEAST_CARRIED * parts:,} rows "
                    "carry the coefficient (those of a level; a third of all in a column of normal values) and errors "
                    f"are not very skewed: parts have {rows // parts:,} rows, and "
                    f"{LEAST_CARRIED * max(coefficients + 1, int(SUPPOSED))} would be enough. {REMEDY}"
                )
            found.append([Doubt("small parts", note)] * small)
        return found

    def _needed(self, coefficients: int) -> Vector:
        """Rows of a part, for each coefficient that is asked about."""
        enough = LEAST_CARRIED * np.maximum(self.one_in, coefficients + 1)
        return np.asarray(np.maximum(enough, LEAST_PRESENT * self.rarest))


REMEDY = (
    "Ends for 95 % held in 60 to 90 % of trials where errors were very skewed and a level was rare. Use more rows, a "
    "larger epsilon, fewer `partitions` or no rare levels"
)


def rarely(one_in: float) -> float:
    """The skewness of a part's estimate, relative to a coefficient carried by a tenth of the rows.

    1 if more rows carry it.
    """
    return max(1.0, math.sqrt(one_in / SUPPOSED))


def told(doubts: Sequence[Sequence[Doubt]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words against each answer, and the sentences they stand for, each once."""
    words = tuple(", ".join(dict.fromkeys(doubt.word for doubt in each)) for each in doubts)
    return words, tuple(dict.fromkeys(doubt.note for doubt in chain.from_iterable(doubts)))


def before_answers(notes: Sequence[str], answers: Sequence[str], after: str) -> str:
    """Notes first: they have to be read before the answers."""
    return "\n".join([*(f"Note: {note}" for note in notes), *answers, after])
