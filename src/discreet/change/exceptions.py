"""The exception report: which series to look at next, ranked, with the right and wrong alarms to expect.

Past forecasts, whose outcomes the panel holds, make the ROC curve; costs and prevalence pick the threshold; forecasts
of periods that the panel does not hold yet are ranked and flagged. The report as a page is the command's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Mask, Matrix, Vector
from discreet.change import roc, standards
from discreet.change.operating import OperatingPoint, operating_point, precision
from discreet.change.panel import Cases, Missing, cases
from discreet.change.roc import Range
from discreet.change.standards import Direction, Policy, Regression
from discreet.errors import DataError


@dataclass(frozen=True, slots=True)
class ExceptionReport:
    """Series in order of alarm.

    Attributes
    ----------
    method : whose forecasts rank the series; its partial area on the past is `pauc`.
    point : the decision rule.
    past, past_positives : the cases that calibrate it.
    rows : every series of the coming period, most alarming first.
    expected_true, expected_false : large changes and false alarms to expect among the flags.
    """

    method: str
    pauc: float
    point: OperatingPoint
    direction: Direction
    past: int
    past_positives: int
    rows: list[dict[str, Any]]
    expected_true: float
    expected_false: float

    @property
    def flagged(self) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["flag"]]

    def tidy(self) -> Any:
        """`rows` as a pyarrow table."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.rows)

    def summary(self) -> str:
        point = self.point
        return (
            f"{len(self.flagged)} of {len(self.rows)} series are flagged for a large {self.direction} by "
            f"{self.method}: about {self.expected_true:.1f} right and {self.expected_false:.1f} false alarms to "
            f"expect. On {self.past} past cases with {self.past_positives} large changes the rule finds "
            f"{point.tpr:.0%} of them at {point.fpr:.1%} false positives; a miss counts as {point.cost_ratio:g} "
            "false alarms."
        )

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
            "slope": point.slope,
            "prevalence": point.prevalence,
            "cost_ratio": point.cost_ratio,
            "past": self.past,
            "past_positives": self.past_positives,
            "flagged": len(self.flagged),
            "expected_true": self.expected_true,
            "expected_false": self.expected_false,
            "rows": self.rows,
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

    `method` is by default the one with the largest partial area on the past; `prevalence` the share of large changes
    in the past. The threshold stays within the upper end of `fpr`.
    """
    aligned = cases(panel, forecasts, horizon=horizon, missing=missing)
    known = np.isfinite(aligned.actual)
    _check(known)
    scores, positive = _judged(aligned, known, cutoff, policy, direction, regression)
    kept = known.copy()
    kept[known] = positive.kept
    truth = positive.positive[positive.kept]
    areas = roc.partial_auc(truth, scores[:, kept], fpr=fpr)
    chosen = _chosen(aligned.methods, areas, method)
    score, share = scores[chosen], float(truth.mean()) if prevalence is None else prevalence
    past = score[kept]
    point = operating_point(
        roc.curve(truth, past), prevalence=share, cost_ratio=cost_ratio, fpr_limit=roc.false_positive_range(fpr)[1]
    )
    rows = _rows(aligned, ~known, score, aligned.forecasts[chosen], past, truth, point)
    flags = sum(row["flag"] for row in rows)
    right = flags * point.precision if flags else 0.0
    return ExceptionReport(
        method=aligned.methods[chosen],
        pauc=float(areas[chosen]),
        point=point,
        direction=direction,
        past=len(truth),
        past_positives=int(truth.sum()),
        rows=rows,
        expected_true=right,
        expected_false=flags - right,
    )


def _check(known: Mask) -> None:
    if known.all():
        raise DataError("Every forecast is for a period that the panel holds; add forecasts of the coming period.")
    if not known.any():
        raise DataError(
            "No forecast is for a period that the panel holds, so no threshold can be set; add forecasts of past "
            "periods, made at their time (`forecast_panel` makes them)."
        )


def _judged(
    aligned: Cases, known: Mask, cutoff: float, policy: Policy, direction: Direction, regression: Regression
) -> tuple[Matrix, standards.Standard]:
    base = standards.baseline(aligned.histories)
    scores = standards.standardise(base, aligned.forecasts, policy=policy, direction=direction)
    standard = standards.large_changes(
        base.select(known),
        aligned.actual[known],
        cutoff=cutoff,
        policy=policy,
        direction=direction,
        regression=regression,
    )
    return scores, standard


def _chosen(methods: tuple[str, ...], areas: Vector, method: str | None) -> int:
    if method is None:
        return int(np.argmax(areas))
    if method not in methods:
        raise DataError(f"Method {method!r} has no forecasts; methods are: {', '.join(methods)}.")
    return methods.index(method)


def _rows(
    aligned: Cases, ahead: Mask, score: Vector, forecast: Vector, past: Vector, truth: Mask, point: OperatingPoint
) -> list[dict[str, Any]]:
    """The coming cases, most alarming first, with what stopping at each of them would bring."""
    rows = []
    right = 0.0
    order = np.flatnonzero(ahead)
    for rank, i in enumerate(order[np.argsort(-score[order], kind="stable")], start=1):
        tpr, fpr = (float((past[kind] >= score[i]).mean()) for kind in (truth, ~truth))
        share = precision(tpr, fpr, point.prevalence)
        right = max(right, rank * share) if np.isfinite(share) else float(rank)
        rows.append(
            {
                "rank": rank,
                "series": str(aligned.series[i]),
                "t": str(aligned.t[i]),
                "last": float(aligned.histories[i][-1]),
                "forecast": float(forecast[i]),
                "score": float(score[i]),
                "flag": bool(score[i] >= point.threshold),
                "true_so_far": right,
                "false_so_far": rank - right,
            }
        )
    return rows
