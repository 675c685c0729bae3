"""Cases under a gold standard: scores, large changes, what cannot happen and what cannot be judged.

Forecasts that are single numbers become scores in standard deviations (`standards`). Distributions give the chance of a
large change, on the probit scale: between quantiles along normal pieces, beyond them along the last piece; samples give
it by their share.

Single numbers have three scales (Dissertation, section 1.3.1 and appendix A). *changes*: deviations of the series' own
changes, the same for all methods, which one forecast of a series allows. *method*: the same divided by k_j, the spread
of the method's scores over all cases, so that a bold and a timid method can be combined by one threshold. *forecasts*:
mean and deviation of the method's own forecasts for that series at earlier origins.

If rises and falls have limits U and L of their own, they are equally alarming at equal shares of their limits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, assert_never, get_args

import numpy as np

from discreet.arrays import Mask, Matrix, Vector
from discreet.changes import judged, standards
from discreet.changes.cases import Cases
from discreet.changes.judged import Rules
from discreet.changes.panel import told
from discreet.changes.standards import AtOrigin, Cutoff, Direction, Policy, Regression, is_relative, leaves
from discreet.words.cases import case_of
from discreet.words.errors import DataError
from discreet.words.faults import Argument

Scale: TypeAlias = Literal["changes", "method", "forecasts"]

EARLIER = 8
"""Forecasts of a series by a method that its own mean and deviation need."""


@dataclass(frozen=True, slots=True)
class Gold:
    """A gold standard: what counts as a large change (see `standards`); changes are over `lag` periods.

    `scale` says in what forecasts are measured before they are ranked.
    """

    cutoff: Cutoff = 0.95
    direction: Direction = "decline"
    policy: Policy = "relative"
    regression: Regression = "negative"
    lag: int = 1
    scale: Scale = "changes"

    def __post_init__(self) -> None:
        if self.scale not in get_args(Scale):
            raise DataError(
                (Argument("scale", self.scale), " is not known."),
                f"It is one of {', '.join(get_args(Scale))}.",
                "Use 'changes' unless forecasts of many origins are there.",
                about="scale",
            )
        standards.check(self.cutoff, self.direction, self.policy, self.regression, self.lag)


@dataclass(frozen=True, slots=True)
class Scored:
    """Cases that can be judged.

    Attributes
    ----------
    cases, base : the cases that took part, and what was known at their origins.
    scores : of shape (methods, cases); larger is more alarming.
    positive : large changes among them; False where the outcome is not known.
    impossible : cases that the standard cannot call large, which is known at the origin.
    left_out : how many past cases cannot be judged; `unjudged`: coming ones by series, with the reason and whether
        gaps are it.
    rises : forecasts on their scale, larger for a rise; None for distributions, and if they were not requested.
    """

    cases: Cases
    base: AtOrigin
    scores: Matrix
    positive: Mask
    impossible: Mask
    left_out: int
    unjudged: list[tuple[str, str, bool]]
    rises: Matrix | None = None

    @property
    def known(self) -> Mask:
        return np.isfinite(self.cases.actual)

    @property
    def coming(self) -> Mask:
        return self.cases.coming

    def select(self, keep: Mask) -> Scored:
        return replace(
            self,
            cases=self.cases.select(keep),
            base=self.base.select(keep),
            scores=self.scores[:, keep],
            positive=self.positive[keep],
            rises=None if self.rises is None else self.rises[:, keep],
            impossible=self.impossible[keep],
        )


def score(cases: Cases, gold: Gold, *, horizon: int, rules: Rules, sided: bool = False) -> Scored:
    """Judge what can be judged. `sided` keeps `rises`, which are as large as the scores."""
    if gold.lag > 1 and gold.lag < horizon:
        raise DataError(
            (Argument("lag", gold.lag), f" is shorter than the horizon {horizon}, so a change would begin after it."),
            "Changes are over one period, or over the horizon or more.",
            f"Use {horizon} or more.",
            about="lag",
        )
    base = cases.base(lag=gold.lag, horizon=horizon)
    why = judged.reasons(cases.panel.values, base, cases.row, cases.origin, policy=gold.policy, rules=rules)
    lost = ~np.isfinite(base.last) & (why == 0)
    why[lost] = np.where(cases.panel.torn[cases.row[lost]], judged.GAPS, 1)
    if case_of(gold.scale, {"forecasts": True, "changes": False, "method": False}):
        earlier = _earlier(cases, base, gold)
        why[(earlier.count < EARLIER) & (why == 0)] = 5
    fine = why == 0
    known = np.isfinite(cases.actual)
    unjudged = [_unjudged(cases, int(k), int(why[k]), rules) for k in np.flatnonzero(cases.coming & ~fine)]
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
    impossible = jumped & leaves(gold.regression)
    rises = None
    if left.spread is None:
        rises = standards.standardise(base, left.forecasts, policy=gold.policy, direction="increase")
        match gold.scale:
            case "changes":
                pass
            case "method":
                rises = rises / _spread_of_scores(rises)
            case "forecasts":
                rises = earlier.deviations(_measured(left, base, gold), fine)
            case _:
                assert_never(gold.scale)
    return Scored(
        cases=left,
        base=base,
        scores=_scores(left, base, gold, rises),
        positive=standard.positive,
        impossible=impossible,
        left_out=int((known & ~fine).sum()),
        unjudged=unjudged,
        rises=rises if sided else None,
    )


def _unjudged(cases: Cases, k: int, why: int, rules: Rules) -> tuple[str, str, bool]:
    if why != judged.GAPS:
        return str(cases.series[k]), judged.said(why, rules), False
    lacks = cases.panel.lacks(int(cases.row[k]))
    many = lacks["missing"] > rules.missing * lacks["of"]
    rule = f"more than {100 * rules.missing:.0f} %" if many else f"within its last {rules.unbroken}"
    said = f"gaps: it lacks {lacks['missing']} of {lacks['of']} periods, the last in {lacks['last']}: {rule}"
    return str(cases.series[k]), said, True


@dataclass(frozen=True, slots=True)
class Earlier:
    """The forecasts of each method for the series of a case at earlier origins: number, mean and deviation."""

    count: Vector
    mean: Matrix
    spread: Matrix

    def deviations(self, measured: Matrix, keep: Mask) -> Matrix:
        """Forecasts in deviations from these; 0 where a method has always forecast the same."""
        away, spread = measured - self.mean[:, keep], self.spread[:, keep]
        return np.divide(away, spread, out=np.zeros_like(away), where=spread > 0)


def _measured(cases: Cases, base: AtOrigin, gold: Gold) -> Matrix:
    """Forecast changes, or forecast levels under the absolute standard."""
    return cases.forecasts - base.last if is_relative(gold.policy) else cases.forecasts


def _earlier(cases: Cases, base: AtOrigin, gold: Gold) -> Earlier:
    if cases.spread is not None:
        raise DataError(
            (Argument("scale", gold.scale), " is for forecasts that are single numbers."),
            "Quantiles and samples state chances themselves.",
            "Leave it out.",
            about="scale",
        )
    found = np.empty((3, len(cases.methods), len(cases)))
    for k, measured in enumerate(_measured(cases, base, gold)):
        made = np.full(cases.panel.values.shape, np.nan)
        made[cases.row, cases.origin] = measured
        found[:, k] = standards.moments_before(made, cases.row, cases.origin)
    return Earlier(found[0].min(axis=0), found[1], found[2])


def _spread_of_scores(rises: Matrix) -> Matrix:
    """k_j: the spread of a method's scores about the mean of the series; 1 for a method that forecasts no change."""
    spread = np.sqrt((rises * rises).mean(axis=1, keepdims=True))
    return np.where(spread > 0, spread, 1.0)


def _scores(cases: Cases, base: AtOrigin, gold: Gold, rises: Matrix | None) -> Matrix:
    if rises is not None:
        match gold.direction:
            case "increase":
                return rises
            case "decline":
                return -rises
            case "both":
                return np.maximum(*sides(base, gold, rises))
            case _:
                assert_never(gold.direction)
    from scipy.special import ndtri

    assert cases.spread is not None
    centre = base.last + base.change_mean if is_relative(gold.policy) else base.level_mean
    spread = standards.varying(base, policy=gold.policy)
    down, up = (standards.limit(gold.cutoff, side) * spread for side in standards.ONE_DIRECTION)
    stated = [stated_chance(each, cases.levels, centre - down, centre + up, gold.direction) for each in cases.spread]
    return np.asarray(ndtri(np.clip(stated, 1e-12, 1 - 1e-12)))


def sides(base: AtOrigin, gold: Gold, rises: Matrix) -> tuple[Matrix, Matrix]:
    """Scores as a fall and as a rise, in the smaller of the two limits; least where the change would be a return."""
    limits = [standards.limit(gold.cutoff, side) for side in standards.ONE_DIRECTION]
    found = []
    for side, limit, score in zip(standards.ONE_DIRECTION, limits, (-rises, rises), strict=True):
        score = score if limit == min(limits) else score * (min(limits) / limit)
        if leaves(gold.regression) and is_relative(gold.policy):
            returns = standards.jumped(base, cutoff=gold.cutoff, policy=gold.policy, direction=side)
            score = np.where(returns, -np.abs(score).max(initial=1.0), score)
        found.append(score)
    return found[0], found[1]


def on_its_side(found: Scored, gold: Gold) -> Matrix:
    """Scores of large changes on the side on which they happened, of all others on their more alarming side."""
    if found.rises is None:
        raise DataError(
            "A right side was asked for, and these forecasts are distributions.",
            "They state one chance for both directions.",
            "Compare declines and increases apart.",
            about="sided",
        )
    fall, rise = sides(found.base, gold, found.rises)
    fell = found.cases.actual < found.base.last + found.base.change_mean
    if not is_relative(gold.policy):
        fell = found.cases.actual < found.base.level_mean
    return np.where(found.positive, np.where(fell, fall, rise), np.maximum(fall, rise))


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
            "One quantile makes no distribution.", remedy="Give at least two, such as 0.1 and 0.9.", about="forecasts"
        )
    from scipy.special import ndtr, ndtri

    z = ndtri(levels)
    piece = np.clip((values < at).sum(axis=0) - 1, 0, len(levels) - 2)
    rows = np.arange(values.shape[1])
    left, right = values[piece, rows], values[piece + 1, rows]
    width = np.maximum(right - left, 1e-12 * np.maximum(np.abs(left), 1e-300))
    return np.asarray(ndtr(np.clip(z[piece] + (at - left) / width * (z[piece + 1] - z[piece]), -8, 8)))
