"""The operating point: where on a ROC curve to stop, given what mistakes cost.

Let q be the prevalence of large changes and r the cost of a missed one in false alarms. Expected utility is
proportional to TPR - s FPR with s = ((1 - q) / q) / r. The best point is where a line of slope s touches the curve from
above (Metz 1978, doi:10.1016/S0001-2998(78)80014-2), which is always a vertex.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.arrays import Integers, Mask, Vector
from discreet.roc import curve as roc
from discreet.roc.curve import Curve
from discreet.words.errors import DataError
from discreet.words.faults import Argument


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """A decision rule: flag what scores at least `threshold`.

    Attributes
    ----------
    fpr, tpr : its rates on the cases that made the curve.
    slope : of the line of equal utility.
    prevalence, cost_ratio : what determined it.
    """

    threshold: float
    fpr: float
    tpr: float
    slope: float
    prevalence: float
    cost_ratio: float

    @property
    def precision(self) -> float:
        """The share of flags that are large changes; NaN when nothing is flagged."""
        hits, alarms = self.prevalence * self.tpr, (1 - self.prevalence) * self.fpr
        return hits / (hits + alarms) if hits + alarms > 0 else float("nan")


def operating_point(
    curve: Curve, *, prevalence: float, cost_ratio: float = 10.0, fpr_limit: float = 1.0
) -> OperatingPoint:
    """The rule of largest expected utility among those with at most `fpr_limit` false alarms.

    `cost_ratio` is the harm of missing a large change over that of a false alarm; Pittsburgh's police put it at 10
    for serious violent crime. Nothing is flagged if no rule is worth its alarms.
    """
    check_prevalence(prevalence)
    check_costs(cost_ratio)
    if not 0 <= fpr_limit <= 1:
        raise DataError(
            f"False positive limit {fpr_limit:g} is outside [0, 1].", remedy="Give for example 0.2.", about="fpr_limit"
        )
    slope = (1 - prevalence) / prevalence / cost_ratio
    utility = np.where(curve.fpr <= fpr_limit, curve.tpr - slope * curve.fpr, -np.inf)
    best = int(np.argmax(utility))
    return OperatingPoint(
        threshold=float(curve.threshold[best]),
        fpr=float(curve.fpr[best]),
        tpr=float(curve.tpr[best]),
        slope=slope,
        prevalence=prevalence,
        cost_ratio=cost_ratio,
    )


def rates_left_out(
    past: Vector, positive: Mask, folds: Integers, *, prevalence: float, cost_ratio: float, fpr_limit: float = 1.0
) -> tuple[float, float]:
    """False and true positive rates of past cases whose own fold had no part in choosing the threshold.

    The rates of an operating point are of the cases that chose it, so they are too good: by 2 to 17 points of true
    positives with 20 to 150 large changes (`discreet study coverage`). NaN where a fold cannot be left out.
    """
    flagged = np.zeros(len(past), dtype=bool)
    for fold in np.unique(folds):
        out = folds == fold
        if positive[~out].all() or not positive[~out].any():
            return float("nan"), float("nan")
        curve = roc.curve(positive[~out], past[~out])
        point = operating_point(curve, prevalence=prevalence, cost_ratio=cost_ratio, fpr_limit=fpr_limit)
        flagged[out] = past[out] >= point.threshold
    return float(flagged[~positive].mean()), float(flagged[positive].mean())


def check_costs(cost_ratio: float) -> None:
    """Refuse what is no number of false alarms."""
    if not cost_ratio > 0 or not np.isfinite(cost_ratio):
        raise DataError(
            (Argument("cost_ratio", cost_ratio), " is no number of false alarms that a miss is worth."),
            "It is above 0.",
            "Give for example 10.",
            about="cost_ratio",
        )


def check_prevalence(prevalence: float) -> None:
    """Refuse what is not a share of large changes."""
    if not 0 < prevalence < 1:
        raise DataError(
            f"Prevalence {prevalence:g} is not between 0 and 1.",
            remedy="Give the share of large changes.",
            about="prevalence",
        )


def chances(score: Vector, *, past: Vector, positive: Mask, prevalence: float, folds: Integers | None = None) -> Vector:
    """The chance that a case with this score is a large change, never falling with the score; see `calibrated`."""
    return calibrated(score, past=past, positive=positive, prevalence=prevalence, folds=folds)[0]


def calibrated(
    score: Vector, *, past: Vector, positive: Mask, prevalence: float, folds: Integers | None = None
) -> tuple[Vector, Vector, float]:
    """Chances of a large change, from past cases with such scores.

    Past shares are pooled until they rise with the score, which gives the upper hull of the ROC curve. One case of
    average chance is added at each end, so that a score beyond all others is not a certainty. A hull is too steep if
    scores have little information. So with `folds`, usually the past periods, chances are shrunk towards the
    prevalence; cases whose own fold was left out decide how far.

    Returns
    -------
    The chances, those of past cases learnt without their own fold, and the share of the way from the prevalence to the
    pooled chances that is left.
    """
    pooled = _pooled(past, positive, prevalence, score)
    if folds is None:
        return pooled, _pooled(past, positive, prevalence, past), 1.0
    left_out = np.empty(len(past))
    for fold in np.unique(folds):
        out = folds == fold
        if positive[~out].all() or not positive[~out].any():
            return pooled, _pooled(past, positive, prevalence, past), 1.0
        left_out[out] = _pooled(past[~out], positive[~out], prevalence, past[out]) - prevalence
    weight = _weights(positive, prevalence)
    lean = (weight * left_out**2).sum()
    slope = (weight * left_out * (positive - prevalence)).sum() / lean if lean > 0 else 0.0
    slope = float(np.clip(slope, 0, 1))
    return np.asarray(prevalence + slope * (pooled - prevalence)), prevalence + slope * left_out, slope


def _weights(positive: Mask, prevalence: float) -> Vector:
    """The weight of each case, if a share `prevalence` of cases is positive."""
    return np.asarray(np.where(positive, prevalence / positive.mean(), (1 - prevalence) / (1 - positive.mean())))


def _pooled(past: Vector, positive: Mask, prevalence: float, score: Vector) -> Vector:
    from scipy.optimize import isotonic_regression

    weight = _weights(positive, prevalence)
    known, place = np.unique(past, return_inverse=True)
    cases = np.bincount(place, weights=weight)
    share = np.bincount(place, weights=weight * positive) / cases
    pooled = isotonic_regression(
        np.concatenate([[prevalence], share, [prevalence]]), weights=np.concatenate([[1.0], cases, [1.0]])
    ).x
    return np.asarray(pooled[np.searchsorted(known, score, side="right")])
