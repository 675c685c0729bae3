"""The exception report: which series to look at next, ranked, with the right and wrong alarms to expect.

Past forecasts, whose outcomes the panel holds, make the ROC curve; costs and prevalence pick the threshold; forecasts
of periods that the panel does not hold yet are ranked and flagged. Only what can happen is ranked and counted: a series
that the gold standard cannot call a large change, which is known at the origin, and one that has ended are set aside
with the reason; past cases of the first kind do not calibrate. The report as a page is the command's business.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Integers, Mask, Vector
from discreet.change import roc, standards
from discreet.change.operating import OperatingPoint, chances, check_prevalence, operating_point, rates_left_out
from discreet.change.panel import Cases, Missing, cases
from discreet.change.roc import Curve, Range
from discreet.change.standards import Direction, Policy, Regression
from discreet.errors import DataError
from discreet.results import Result, tidy_table

RATIOS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
"""Cost ratios that a report shows beside the one asked for."""


@dataclass(frozen=True, slots=True, repr=False)
class ExceptionReport(Result):
    """Series in order of alarm.

    Attributes
    ----------
    method : whose forecasts rank the series; its partial area on the past is `pauc`.
    curve, point : its ROC curve on the past, and the decision rule on it.
    past, past_positives : the cases that calibrate it.
    left_out : false and true positive rates of past cases whose own period had no part in choosing the threshold,
        which is what to expect; the point's own are flattered by the choice. NaN where none can be left out.
    rows : every series that may change in the coming period, most alarming first, with the chance that it is a large
        change and the right and false alarms to expect when stopping there.
    set_aside : the series that are not ranked, and why.
    choices : what other cost ratios would flag.
    """

    method: str
    pauc: float
    curve: Curve
    point: OperatingPoint
    direction: Direction
    past: int
    past_positives: int
    left_out: tuple[float, float]
    rows: list[dict[str, Any]]
    set_aside: list[dict[str, Any]]
    choices: list[dict[str, Any]]

    @property
    def flagged(self) -> list[dict[str, Any]]:
        """The rows of the series that are on the list."""
        return [row for row in self.rows if row["flag"]]

    @property
    def expected_true(self) -> float:
        """Large changes to expect among the flags."""
        return float(sum(row["chance"] for row in self.flagged))

    @property
    def expected_false(self) -> float:
        """False alarms to expect among the flags."""
        return len(self.flagged) - self.expected_true

    def to_arrow(self) -> Any:
        """`rows` as a PyArrow table."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.rows)

    def tidy(self) -> Any:
        """The chance of each ranked series, in the columns of `discreet.results.COLUMNS`."""
        return tidy_table(
            effect="chance of a large change",
            group="series",
            term=[row["t"] for row in self.rows],
            level=[row["series"] for row in self.rows],
            estimate=[row["chance"] for row in self.rows],
            flag=["flagged" if row["flag"] else None for row in self.rows],
        )

    def __repr__(self) -> str:
        return f"<ExceptionReport by {self.method!r}: {len(self.flagged):,} of {len(self.rows):,} series flagged>"

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """The report in a few sentences."""
        point = self.point
        return (
            f"{len(self.flagged)} of {len(self.rows)} series are flagged for a large {self.direction} by "
            f"{self.method}: about {self.expected_true:.1f} right and {self.expected_false:.1f} false alarms to "
            f"expect. On {self.past} past cases with {self.past_positives} large changes the rule finds "
            f"{point.tpr:.0%} of them at {point.fpr:.1%} false positives{self.expected_rates}; a miss counts as "
            f"{point.cost_ratio:g} false alarms.{self._not_ranked()}"
        )

    @property
    def expected_rates(self) -> str:
        """What to expect of the rule on new cases, in words; empty where it cannot be told."""
        fpr, tpr = self.left_out
        return "" if np.isnan(tpr) else f" (on periods that did not choose it, {tpr:.0%} at {fpr:.1%})"

    def _not_ranked(self) -> str:
        counts = Counter(row["why"] for row in self.set_aside)
        jumped, ended = counts.pop(_jump(self.direction), 0), sum(counts.values())
        parts = [f"{jumped} {_jump(self.direction)}"] if jumped else []
        parts += [f"{ended} ended before the panel"] if ended else []
        return f" Not ranked: {'; '.join(parts)}." if parts else ""

    def to_dict(self) -> dict[str, Any]:
        """What goes to JSON."""
        point = self.point
        return {
            "method": self.method,
            "pauc": self.pauc,
            "direction": self.direction,
            "threshold": point.threshold if np.isfinite(point.threshold) else None,
            "fpr": point.fpr,
            "tpr": point.tpr,
            "fpr_left_out": None if np.isnan(self.left_out[0]) else self.left_out[0],
            "tpr_left_out": None if np.isnan(self.left_out[1]) else self.left_out[1],
            "slope": point.slope,
            "prevalence": point.prevalence,
            "cost_ratio": point.cost_ratio,
            "past": self.past,
            "past_positives": self.past_positives,
            "flagged": len(self.flagged),
            "expected_true": self.expected_true,
            "expected_false": self.expected_false,
            "choices": self.choices,
            "rows": self.rows,
            "set_aside": self.set_aside,
        }


def exception_report(
    panel: Any,
    forecasts: Any,
    *,
    method: str | None = None,
    horizon: int = 1,
    cutoff: float = 0.95,
    direction: Direction = "decline",
    policy: Policy = "relative",
    regression: Regression = "negative",
    fpr: Range = (0.0, 0.2),
    cost_ratio: float = 10.0,
    prevalence: float | None = None,
    missing: Missing = "refuse",
) -> ExceptionReport:
    """Rank the coming period's series by alarm and flag those worth a look.

    Parameters
    ----------
    panel : frame of `series`, `t`, `value`.
    forecasts : frame of `series`, `method`, `t`, `forecast`, of past periods and of the coming one.
    method : whose forecasts rank; by default the one with the largest partial area on the past.
    horizon : how many periods ahead the forecasts look.
    cutoff, direction, policy, regression : the gold standard, see `standards.large_changes`. Series that cannot be
        large changes under `regression` are neither ranked nor used to calibrate.
    fpr : range of false positive rates; the threshold stays within its upper end.
    cost_ratio : how many false alarms a missed large change costs.
    prevalence : the share of large changes to expect; by default that of the past.
    missing : what to do with a case that a method does not forecast: "refuse" or "drop".

    Returns
    -------
    The series in order of alarm, with the right and false alarms to expect.

    Examples
    --------
    >>> print(exception_report("panel.csv", "forecasts.csv").summary())             # doctest: +SKIP
    """
    aligned = cases(panel, forecasts, horizon=horizon, missing=missing)
    known = np.isfinite(aligned.actual)
    _check(known)
    base = standards.baseline(aligned.histories)
    scores = standards.standardise(base, aligned.forecasts, policy=policy, direction=direction)
    standard = standards.large_changes(
        base, aligned.actual, cutoff=cutoff, policy=policy, direction=direction, regression=regression
    )
    jumped = standards.jumped(base, cutoff=cutoff, policy=policy, direction=direction)
    past, ahead = (mask & (~jumped | (regression == "keep")) for mask in (known, ~known))
    truth = standard.positive[past]
    areas = roc.partial_auc(truth, scores[:, past], fpr=fpr)
    chosen = _chosen(aligned.methods, areas, method)
    score, share = scores[chosen], float(truth.mean()) if prevalence is None else prevalence
    curve = roc.curve(truth, score[past])
    check_prevalence(share)
    folds, limit = _folds(aligned.t[past]), roc.false_positive_range(fpr)[1]
    likely = chances(score[ahead], past=score[past], positive=truth, prevalence=share, folds=folds)

    def rule(ratio: float) -> OperatingPoint:
        return operating_point(curve, prevalence=share, cost_ratio=ratio, fpr_limit=limit)

    point = rule(cost_ratio)
    return ExceptionReport(
        method=aligned.methods[chosen],
        pauc=float(areas[chosen]),
        curve=curve,
        point=point,
        direction=direction,
        past=len(truth),
        past_positives=int(truth.sum()),
        left_out=rates_left_out(score[past], truth, folds, prevalence=share, cost_ratio=cost_ratio, fpr_limit=limit),
        rows=_rows(aligned.select(ahead), score[ahead], aligned.forecasts[chosen, ahead], likely, point),
        set_aside=_set_aside(aligned, aligned.select(~known & ~ahead), direction),
        choices=[_choice(rule(ratio), score[ahead], likely) for ratio in sorted({*RATIOS, cost_ratio})],
    )


def _folds(t: np.ndarray) -> Integers:
    """The past periods, or five parts of a single one."""
    periods, fold = np.unique(t, return_inverse=True)
    return fold if len(periods) > 1 else np.arange(len(t)) % 5


def _set_aside(every: Cases, jumped: Cases, direction: Direction) -> list[dict[str, Any]]:
    """The series that cannot be large changes in the coming period, and the reason."""
    rows = [
        {"series": str(name), "t": str(t), "last": float(history[-1]), "why": _jump(direction)}
        for name, t, history in zip(jumped.series, jumped.t, jumped.histories, strict=True)
    ]
    return rows + [
        {"series": name, "t": None, "last": None, "why": f"ended at {last}, before the panel"}
        for name, last in every.ended
    ]


def _jump(direction: Direction) -> str:
    up, down = ("rise", "fall") if direction == "decline" else ("fall", "rise")
    return f"had a large {up} at the origin, and a {down} from there counts as a return"


def _check(known: Mask) -> None:
    if known.all():
        raise DataError(
            "Every forecast is for a period that the panel holds; add forecasts of the coming period.",
            about="forecasts",
        )
    if not known.any():
        raise DataError(
            "No forecast is for a period that the panel holds, so no threshold can be set; add forecasts of past "
            "periods, made at their time (`forecast_panel` makes them).",
            about="forecasts",
        )


def _chosen(methods: tuple[str, ...], areas: Vector, method: str | None) -> int:
    if method is None:
        return int(np.argmax(areas))
    if method not in methods:
        raise DataError(f"Method {method!r} has no forecasts; methods are: {', '.join(methods)}.", about="method")
    return methods.index(method)


def _rows(
    coming: Cases, score: Vector, forecast: Vector, likely: Vector, point: OperatingPoint
) -> list[dict[str, Any]]:
    """The coming cases, most alarming first, with what stopping at each of them would bring."""
    order = np.argsort(-score, kind="stable")
    right = np.cumsum(likely[order])
    return [
        {
            "rank": rank,
            "series": str(coming.series[i]),
            "t": str(coming.t[i]),
            "last": float(coming.histories[i][-1]),
            "forecast": float(forecast[i]),
            "score": float(score[i]),
            "chance": float(likely[i]),
            "flag": bool(score[i] >= point.threshold),
            "true_so_far": float(right[rank - 1]),
            "false_so_far": float(rank - right[rank - 1]),
        }
        for rank, i in enumerate(order, start=1)
    ]


def _choice(point: OperatingPoint, score: Vector, likely: Vector) -> dict[str, Any]:
    flagged = score >= point.threshold
    right = float(likely[flagged].sum())
    return {
        "cost_ratio": point.cost_ratio,
        "flagged": int(flagged.sum()),
        "expected_true": right,
        "expected_false": int(flagged.sum()) - right,
        "tpr": point.tpr,
        "fpr": point.fpr,
    }
