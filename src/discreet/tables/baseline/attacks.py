"""What a published table reveals: the three attacks of Haney et al. (2017, section 5.2), and the p % rule, as code.

An attacker has the published counts, the public list of establishments, and where stated one fact from elsewhere. He
returns claims; whether they are true is found by `score`, which only someone with the confidential table can call.
This module does not know how the table was protected, so the same attacks run on noise infusion and on a formal
release. Published tables have one row per workplace cell and one column per level of the workers' attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Integers, Mask, Matrix

SMALL = 2.5
"""The small cell limit that everybody knows: what is published below it says nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Claims:
    """What the attacker believes.

    Attributes
    ----------
    attack : its name.
    cell : the workplace cells attacked, shape (cases,).
    values : shares, counts or an indicator of the level claimed, shape (cases, levels).
    learnt : one of the claims in words, without saying whom it is about.
    """

    attack: str
    cell: Integers
    values: Matrix
    learnt: str


@dataclass(frozen=True, slots=True)
class AttackResult:
    """How an attack went.

    Attributes
    ----------
    cases : how often it could be tried.
    exact : how often everything claimed was exactly true.
    error : the largest error of a case, median over the cases.
    example : one of the claims in words, and whether it is true.
    """

    attack: str
    cases: int
    exact: int
    error: float
    example: str

    @property
    def share(self) -> float:
        """The share of the cases in which the attacker has the exact truth."""
        return self.exact / self.cases if self.cases else float("nan")


def shape(published: Matrix, *, establishments: Integers, small: float = SMALL) -> Claims:
    """The shares of the levels in a workforce, from cells with one establishment and all counts above the limit."""
    cell = np.flatnonzero((establishments == 1) & (published > small).all(axis=1))
    shares = published[cell] / published[cell].sum(axis=1, keepdims=True)
    told = _listed(100 * shares, ".1f", " %") if cell.size else ""
    learnt = f"An establishment's workforce is divided {told} among the levels." if cell.size else ""
    return Claims("shape", cell, shares, learnt)


def size(
    published: Matrix, *, establishments: Integers, level: Integers, count: Integers, small: float = SMALL
) -> Claims:
    """All counts of an establishment, by an attacker who knows the true `count` of one `level` in each cell."""
    cell = shape(published, establishments=establishments, small=small).cell
    cell = cell[count[cell] > 0]
    known = count[cell]
    factor = published[cell, level[cell]] / known
    counts = np.rint(published[cell] / factor[:, None])
    learnt = ""
    if cell.size:
        learnt = (
            f"Knowing that {known[0]} of its workers are of one kind, an establishment is found to have "
            f"{counts[0].sum():.0f}: {_listed(counts, '.0f')}."
        )
    return Claims("size", cell, counts, learnt)


def reidentification(
    published: Matrix, *, establishments: Integers, only: Mask, names: Sequence[str] | None = None
) -> Claims:
    """The other attributes of a worker who is known to be the `only` one in the cell with an attribute.

    `published` has the columns of the levels with that attribute, called `names`; where zeros are kept, one of them
    is positive.
    """
    cell = np.flatnonzero((establishments == 1) & only)
    level = published[cell].argmax(axis=1)
    values = np.eye(published.shape[1])[level]
    kinds = names or [f"of kind {i + 1} of {published.shape[1]}" for i in range(published.shape[1])]
    learnt = f"The only worker with the attribute is {kinds[level[0]]}." if cell.size else ""
    return Claims("re-identification", cell, values, learnt)


@dataclass(frozen=True, slots=True)
class PercentTest:
    """How well somebody can distinguish an establishment's amount from one that is larger by a share.

    Attributes
    ----------
    cases : establishments, each tried several times.
    power : how often the larger amount was taken for the larger one.
    false_alarms : how often the smaller one was.
    """

    cases: int
    power: float
    false_alarms: float


def p_percent(
    draw: Callable[[Integers, Integers, int], Integers],
    *,
    sums: Integers,
    largest: Integers,
    share: float,
    trials: int = 1,
) -> PercentTest:
    """The agencies' p % rule as a test: is the largest amount of a cell what it is, or larger by `share`?

    The attacker knows every other amount of the cell, takes them off the published sum and decides by what is left.
    `draw` is given sums, largest amounts and the number of the trial.
    """
    grown = np.floor(largest * share).astype(np.int64)
    middle = largest + grown / 2
    found = []
    for more in (grown, np.zeros_like(grown)):
        left = (draw(sums + more, largest + more, trial) - (sums - largest) for trial in range(trials))
        found.append(float(np.mean([(amount > middle).mean() for amount in left])))
    return PercentTest(len(sums) * trials, *found)


def score(claims: Claims, truth: Matrix | Integers) -> AttackResult:
    """Compare claims with the confidential truth of all cells, in the units of the claims."""
    error = np.abs(claims.values - truth[claims.cell]).max(axis=1)
    exact = error < 1e-9
    verdict = "" if not exact.size else " This is exactly true." if exact[0] else " This is wrong."
    return AttackResult(
        attack=claims.attack,
        cases=len(exact),
        exact=int(exact.sum()),
        error=float(np.median(error)) if exact.size else float("nan"),
        example=claims.learnt + verdict,
    )


def _listed(values: Matrix, form: str, after: str = "") -> str:
    return ", ".join(format(value, form) + after for value in values[0])
