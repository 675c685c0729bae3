"""Cases under a gold standard: scores, large changes, what cannot happen and what cannot be judged.

Forecasts that are single numbers become scores in standard deviations (`standards`). Distributions become the chance
of a large change as they state it, on the probit scale: between quantiles along normal pieces, beyond them along the
last piece; samples by their share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

from discreet.arrays import Mask, Matrix, Vector
from discreet.change import judged, standards
from discreet.change.cases import Cases
from discreet.change.judged import Rules
from discreet.change.panel import told
from discreet.change.standards import AtOrigin, Direction, Policy, Regression
from discreet.errors import DataError
from discreet.faults import Argument


@dataclass(frozen=True, slots=True)
class Gold:
    """A gold standard: what counts as a large change (see `standards`); changes are over `lag` periods."""

    cutoff: float = 0.95
    direction: Direction = "decline"
    policy: Policy = "relative"
    regression: Regression = "negative"
    lag: int = 1


@dataclass(frozen=True, slots=True)
class Scored:
    """Cases that can be judged.

    Attributes
    ----------
    cases, base : those that took part, and what was known at their origins.
    scores : of shape (methods, cases); larger is more alarming.
    positive : large changes among them; False where the outcome is not known.
    impossible : cases that the standard cannot call large, which is known at the origin.
    left_out : how many past cases cannot be judged; `unjudged`: coming ones by series, with the reason.
    """

    cases: Cases
    base: AtOrigin
    scores: Matrix
    positive: Mask
    impossible: Mask
    left_out: int
    unjudged: list[tuple[str, str]]

    @property
    def known(self) -> Mask:
        return np.isfinite(self.cases.actual)

    def select(self, keep: Mask) -> Scored:
        return replace(
            self,
            cases=self.cases.select(keep),
            base=self.base.select(keep),
            scores=self.scores[:, keep],
            positive=self.positive[keep],
            impossible=self.impossible[keep],
        )


def score(cases: Cases, gold: Gold, *, horizon: int, rules: Rules) -> Scored:
    """Judge what can be judged."""
    if gold.lag > 1 and gold.lag < horizon:
        raise DataError(
            (Argument("lag", gold.lag), f" is shorter than the horizon {horizon}, so a change would begin after it."),
            "Changes are over one period, or over the horizon or more.",
            f"Use {horizon} or more.",
            about="lag",
        )
    base = cases.base(lag=gold.lag, horizon=horizon)
    why = judged.reasons(cases.panel.values, base, cases.row, cases.origin, policy=gold.policy, rules=rules)
    why[~np.isfinite(base.last) & (why == 0)] = 1
    fine = why == 0
    known = np.isfinite(cases.actual)
    unjudged = [
        (str(name), judged.said(int(code), rules))
        for name, code in zip(cases.series[~known & ~fine], why[~known & ~fine], strict=True)
    ]
    if not fine.any():
        kinds = zip(*np.unique(why, return_counts=True), strict=True)
        counts = "; ".join(f"{n:,} cases {judged.said(int(code), rules)}" for code, n in kinds)
        raise DataError(
            f"No series can be judged: {told(np.unique(cases.series))}. Of {len(cases):,} cases: {counts}.",
            "A series needs a history that varies.",
            "Check the column of values, or relax the rules.",
            about="panel",
        )
    left, base = cases.select(fine), base.select(fine)
    standard = standards.large_changes(
        base, left.actual, cutoff=gold.cutoff, policy=gold.policy, direction=gold.direction, regression=gold.regression
    )
    jumped = standards.jumped(base, cutoff=gold.cutoff, policy=gold.policy, direction=gold.direction)
    impossible = jumped & (gold.regression != "keep")
    return Scored(
        cases=left,
        base=base,
        scores=_scores(left, base, gold, standard.threshold),
        positive=standard.positive,
        impossible=impossible,
        left_out=int((known & ~fine).sum()),
        unjudged=unjudged,
    )


def _scores(cases: Cases, base: AtOrigin, gold: Gold, threshold: float) -> Matrix:
    if cases.spread is None:
        if gold.direction == "both" and gold.regression != "keep" and gold.policy == "relative":
            sides = [_one_side(cases, base, gold, side) for side in standards.ONE_DIRECTION]
            return np.maximum(*sides)
        return standards.standardise(base, cases.forecasts, policy=gold.policy, direction=gold.direction)
    centre = base.last + base.change_mean if gold.policy == "relative" else base.level_mean
    spread = standards.varying(base, policy=gold.policy)
    stated = [
        stated_chance(each, cases.levels, centre - threshold * spread, centre + threshold * spread, gold.direction)
        for each in cases.spread
    ]
    return np.asarray(ndtri(np.clip(stated, 1e-12, 1 - 1e-12)))


def _one_side(cases: Cases, base: AtOrigin, gold: Gold, side: standards.OneDirection) -> Matrix:
    """Scores in one direction; the least of all where a change that way would be a return."""
    score = standards.standardise(base, cases.forecasts, policy=gold.policy, direction=side)
    returns = standards.jumped(base, cutoff=gold.cutoff, policy=gold.policy, direction=side)
    return np.where(returns, -np.abs(score).max(initial=1.0), score)


def stated_chance(values: Matrix, levels: Vector | None, down: Vector, up: Vector, direction: Direction) -> Vector:
    """The chance of an outcome beyond `down` or `up` that a distribution states, values of shape (levels, cases)."""
    if levels is None:
        below, above = (values <= down).sum(axis=0), (values >= up).sum(axis=0)
        beyond = {"decline": below, "increase": above, "both": below + above}[direction]
        return np.asarray((beyond + 0.5) / (len(values) + 1))
    ordered = np.sort(values, axis=0)
    low, high = (_distribution(ordered, levels, at) for at in (down, up))
    return {"decline": low, "increase": 1 - high, "both": np.minimum(low + 1 - high, 1.0)}[direction]


def _distribution(values: Matrix, levels: Vector, at: Vector) -> Vector:
    """P(Y <= at) of distributions given by quantiles, normal between neighbours."""
    if len(levels) < 2:
        raise DataError(
            "One quantile makes no distribution; give at least two, such as 0.1 and 0.9.", about="forecasts"
        )
    z = ndtri(levels)
    piece = np.clip((values < at).sum(axis=0) - 1, 0, len(levels) - 2)
    rows = np.arange(values.shape[1])
    left, right = values[piece, rows], values[piece + 1, rows]
    width = np.maximum(right - left, 1e-12 * np.maximum(np.abs(left), 1e-300))
    return np.asarray(ndtr(np.clip(z[piece] + (at - left) / width * (z[piece + 1] - z[piece]), -8, 8)))
