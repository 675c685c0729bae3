"""ROC curves of forecasts: areas, partial areas, their variance and a smooth curve for display.

Only arrays enter and only arrays leave. `positive` says which of n cases were large changes; `scores` has shape
(n,) or (methods, n), larger meaning more alarming, and every function runs over all methods at once. Tied scores
move together: they make one sloping segment of the curve. Resampling is in `bootstrap`, gold standards in
`standards`.

Defined values: constant scores give the chance line; areas over the false positive range [a, b] lie in [0, b - a].
Undefined ones are refused: no positives, no negatives, scores that are not finite, a range that runs backwards.

DeLong, DeLong and Clarke-Pearson (1988) for the variance, McClish (1989) for the standardised partial area,
Gorr and Schneider (2013, doi:10.1016/j.ijforecast.2012.10.007) for the use on forecasts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Mask, Matrix, Vector
from discreet.words.errors import DataError

Scale: TypeAlias = Literal["raw", "mcclish"]
Alternative: TypeAlias = Literal["greater", "less", "two-sided"]
Range: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Curve:
    """An empirical ROC curve, from (0, 0) to (1, 1).

    Attributes
    ----------
    fpr, tpr : false and true positive rates, one point per distinct score and the origin.
    threshold : flag everything that scores at least this; infinite at the origin.
    """

    fpr: Vector
    tpr: Vector
    threshold: Vector

    def at(self, fpr: ArrayLike) -> Vector:
        """The highest true positive rate that the false positive rates allow."""
        return np.asarray(np.interp(np.asarray(fpr, float), self.fpr, self.tpr))


@dataclass(frozen=True, slots=True)
class DeLong:
    """Areas under correlated curves and their covariance, shape (methods,) and (methods, methods)."""

    auc: Vector
    covariance: Matrix

    def test(self, first: int, second: int, *, alternative: Alternative = "two-sided") -> tuple[float, float]:
        """z statistic and p-value of auc[first] against auc[second]."""
        v = self.covariance
        spread = np.sqrt(v[first, first] + v[second, second] - 2 * v[first, second])
        return z_test(float(self.auc[first] - self.auc[second]), float(spread), alternative=alternative)


def curve(positive: ArrayLike, score: ArrayLike) -> Curve:
    """The ROC curve of one method, ties merged."""
    g, x = checked(positive, score)
    order, ends = descending(x[0])
    hits = np.cumsum(g[order])[ends]
    alarms = ends + 1 - hits
    return Curve(
        fpr=np.append(0.0, alarms / alarms[-1]),
        tpr=np.append(0.0, hits / hits[-1]),
        threshold=np.append(np.inf, x[0][order][ends]),
    )


def auc(positive: ArrayLike, scores: ArrayLike) -> Vector:
    """The area under the curve: the chance that a positive outscores a negative, ties counting half."""
    g, x = checked(positive, scores)
    n, m = g.sum(), (~g).sum()
    area = (midranks(x)[:, g].sum(axis=1) - n * (n + 1) / 2) / (n * m)
    return _shaped(area, scores)


def partial_auc(
    positive: ArrayLike,
    scores: ArrayLike,
    *,
    fpr: Range = (0.0, 0.2),
    scale: Scale = "raw",
    value: ArrayLike | None = None,
) -> Vector:
    """The area under the curve between two false positive rates, by the trapezoid, end points interpolated.

    `raw` is the area itself (the paper's PAUC; chance is (b² - a²) / 2); `mcclish` puts chance at 0.5 and a
    perfect forecast at 1. With a `value` for every case the true positive rate is the share of the positives' value
    that is found. A false alarm costs one look, whatever the value of the series.
    """
    g, x = checked(positive, scores)
    lo, hi = false_positive_range(fpr)
    return _shaped(rescale(partial_area(g, x, lo, hi, worth(g, value)), lo, hi, scale), scores)


def partial_area(g: Mask, x: Matrix, lo: float, hi: float, value: Vector | None = None) -> Vector:
    """`partial_auc` without its checks."""
    if value is None:
        return np.array([partial_area_of(row[g], row[~g], lo, hi) for row in x])
    return np.array([np.average(contributions(row[g], row[~g], lo, hi), weights=value[g]) for row in x])


def worth(g: Mask, value: ArrayLike | None) -> Vector | None:
    """The values of cases, or why they cannot weight positives."""
    if value is None:
        return None
    found = np.asarray(value, float)
    if found.shape != g.shape or not (np.isfinite(found) & (found >= 0)).all() or not found[g].sum() > 0:
        raise DataError(
            f"Values of shape {found.shape} do not weight {len(g)} cases.",
            "Values are finite, not negative, one for each case, and above 0 for some large change.",
            "Leave them out, or correct them.",
            about="value",
        )
    return found


def partial_area_of(positives: Vector, negatives: Vector, lo: float, hi: float) -> float:
    """The partial area from the scores of positives and negatives, for optimisers that call it thousands of times."""
    return float(contributions(np.sort(positives), negatives, lo, hi).mean())  # neighbours are then found in cache


def contributions(positives: Vector, negatives: Vector, lo: float, hi: float) -> Vector:
    """The contribution of each positive to the partial area, which is the mean of these.

    A positive raises the curve at the share of negatives above it, spread evenly over those it ties with; from
    there to the end of the range the rise stays. So it adds the mean of (hi - u)+ - (lo - u)+ for u uniform
    between the share strictly above and the share not below.
    """
    ordered = np.sort(negatives)
    above = 1 - np.searchsorted(ordered, positives, side="right") / len(ordered)
    beside = 1 - np.searchsorted(ordered, positives, side="left") / len(ordered)
    return added(above, beside, lo, hi)


def added(above: Vector, beside: Vector, lo: float, hi: float) -> Vector:
    """The contributions of positives to the area, from the shares of negatives strictly above and not below them."""
    total = np.maximum(hi - above, 0) - np.maximum(lo - above, 0)
    tied = beside > above
    if tied.any():
        u, v = above[tied], beside[tied]
        upper, lower = (np.maximum(end - u, 0) ** 2 - np.maximum(end - v, 0) ** 2 for end in (hi, lo))
        total[tied] = (upper - lower) / (2 * (v - u))
    return np.asarray(total)


def area(fpr: Matrix, tpr: Matrix, lo: float, hi: float) -> Vector:
    """Integrate piecewise linear curves, one per row, over [lo, hi]."""
    width = np.diff(fpr, axis=1)
    ends = np.clip(fpr, lo, hi)
    inside = np.diff(ends, axis=1)
    middle = (ends[:, 1:] + ends[:, :-1]) / 2 - fpr[:, :-1]
    np.divide(middle, width, out=middle, where=width > 0)
    return np.asarray((inside * (tpr[:, :-1] + np.diff(tpr, axis=1) * middle)).sum(axis=1))


def rescale(raw: Vector, lo: float, hi: float, scale: Scale) -> Vector:
    """Leave raw areas alone, or standardise them between chance and perfection."""
    match scale:
        case "raw":
            return raw
        case "mcclish":
            chance = (hi**2 - lo**2) / 2
            return np.asarray((1 + (raw - chance) / (hi - lo - chance)) / 2)
        case _:
            raise DataError(f"Scale {scale!r} is not known.", "Areas come as 'raw' or 'mcclish'.", about="scale")


def midranks(x: Matrix) -> Matrix:
    """Ranks within each row, from one; equal numbers share the mean of theirs."""
    found = np.empty(x.shape)
    for row, ranks in zip(x, found, strict=True):
        _, place, count = np.unique(row, return_inverse=True, return_counts=True)
        ranks[:] = (np.cumsum(count) - (count - 1) / 2)[place]
    return found


def delong(positive: ArrayLike, scores: ArrayLike) -> DeLong:
    """Areas under correlated curves with DeLong's covariance, from midranks."""
    g, x = checked(positive, scores)
    n, m = int(g.sum()), int((~g).sum())
    if min(n, m) < 2:
        raise DataError(
            f"DeLong's variance needs two positives and two negatives, and there are {n} and {m}.",
            remedy="Use a less extreme cutoff, or the area without its variance.",
            about="cutoff",
        )
    ranks = midranks(x)
    above = (ranks[:, g] - midranks(x[:, g])) / m  # share of negatives below each positive
    below = 1 - (ranks[:, ~g] - midranks(x[:, ~g])) / n  # share of positives above each negative
    covariance = np.cov(above).reshape(len(x), -1) / n + np.cov(below).reshape(len(x), -1) / m
    return DeLong(auc=above.mean(axis=1), covariance=covariance)


def binormal(empirical: Curve, *, points: int = 201, fpr: Range = (0.0, 1.0)) -> Curve:
    """A smooth curve for display: the specificity's probit is linear in the sensitivity's.

    The line is fitted by least squares to the points of the empirical curve, as `pROC::smooth` does. Areas and
    tests never use it.
    """
    from scipy.special import ndtr, ndtri

    lo, hi = false_positive_range(fpr)
    inner = (empirical.fpr > 0) & (empirical.fpr < 1) & (empirical.tpr > 0) & (empirical.tpr < 1)
    specificity, sensitivity = ndtri(1 - empirical.fpr[inner]), ndtri(empirical.tpr[inner])
    if np.ptp(sensitivity) == 0 if inner.any() else True:
        raise DataError(
            f"A smooth curve needs two points inside the square and this one has {int(inner.sum())}.",
            remedy="Draw the empirical curve.",
            about="cutoff",
        )
    slope, intercept = np.polyfit(sensitivity, specificity, 1)
    x = np.linspace(lo, hi, points)
    with np.errstate(invalid="ignore"):
        y = np.clip(ndtr((ndtri(1 - x) - intercept) / slope), 0, 1)
    return Curve(fpr=x, tpr=y, threshold=np.full(points, np.nan))


def z_test(difference: float, spread: float, *, alternative: Alternative) -> tuple[float, float]:
    """z and p of a difference with a known standard deviation; equal curves give z = 0."""
    from scipy.special import ndtr

    z = difference / spread if spread > 0 else float(np.sign(difference)) * np.inf if difference else 0.0
    tails = {"greater": ndtr(-z), "less": ndtr(z), "two-sided": 2 * ndtr(-abs(z))}
    if alternative not in tails:
        raise DataError(
            f"Alternative {alternative!r} is not known.", f"It is one of {', '.join(tails)}.", about="alternative"
        )
    return z, float(tails[alternative])


def descending(score: Vector) -> tuple[np.ndarray, np.ndarray]:
    """The order from the most alarming case down, and the last position of each group of ties."""
    order = np.argsort(-score, kind="stable")
    ranked = score[order]
    return order, np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), len(score) - 1)


def checked(positive: ArrayLike, scores: ArrayLike) -> tuple[Mask, Matrix]:
    """The outcome as a mask and the scores as (methods, n), or the reason why there is no curve."""
    raw, x = np.asarray(positive), np.atleast_2d(np.asarray(scores, float))
    if raw.ndim != 1 or x.ndim != 2 or x.shape[1] != len(raw):
        raise DataError(
            f"Outcomes of shape {raw.shape} do not match scores of shape {np.shape(scores)}.",
            remedy="Give n outcomes, and scores of shape (n,) or (methods, n).",
            about="positive",
        )
    if raw.dtype != bool and not np.isin(raw, (0, 1)).all():
        raise DataError(
            "Outcomes hold something other than 0 and 1.", remedy="Give a mask of the large changes.", about="positive"
        )
    g = raw.astype(bool)
    if len(g) < 2:
        raise DataError(
            f"A ROC curve needs at least two series and there is {len(g)}.",
            remedy="Add series or months.",
            about="positive",
        )
    if not np.isfinite(x).all():
        raise DataError(
            f"{int((~np.isfinite(x)).sum())} of {x.size} scores are missing or infinite, and ranks need numbers.",
            remedy="Drop those series from every method, or forecast them.",
            about="scores",
        )
    if g.all() or not g.any():
        raise DataError(
            f"{int(g.sum())} of {len(g)} cases are positives, and a ROC curve needs both kinds.",
            remedy="Move the cutoff of the gold standard.",
            about="positive",
        )
    return g, x


def false_positive_range(fpr: Range) -> Range:
    """The range as two floats with 0 <= lo < hi <= 1, or a refusal."""
    lo, hi = (float(end) for end in fpr)
    if not 0 <= lo < hi <= 1:
        raise DataError(
            f"False positive range ({lo:g}, {hi:g}) is not inside [0, 1] from low to high.",
            remedy="Give for example (0, 0.2).",
            about="fpr",
        )
    return lo, hi


def _shaped(values: Vector, scores: ArrayLike) -> Vector:
    return values if np.ndim(scores) == 2 else values[0]
