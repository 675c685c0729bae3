"""Estimates from noisy sums: variances by restricted likelihood, the residual's by a noisy sum of squares.

Only arrays here. The model at given variances is in `noisy`; the algebra is in docs/proofs/mixed-moments.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.linear.private.arrow import TermSums
from discreet.models.linear.private.noisy import NoisyEstimate, NoisySums, evaluate, forms, visibility

Estimate = TypeVar("Estimate", bound=NoisyEstimate)

ROUNDS = 60  # of the alternation between the variances and sigma2, which contracts quickly
TOLERANCE = 1e-7  # relative change of sigma2 where it ends
STOP = {"ftol": 1e-13, "gtol": 1e-3}  # the criterion bends by about one per group: deviations are then good to 1e-5
FLAT = 1e-6  # of the criterion: a variance that gains less than this is zero
SMALLEST = 1e-6  # standard deviations are searched from this share of the largest possible one
STARTS = (0.003, 0.03, 0.3)  # shares of the largest possible standard deviation where the search may start
KNOWN = 10.0  # rise of the criterion ten per cent off, above which a standard deviation is known to three per cent
UNLIKELY = 15.0  # rise of the criterion above which a standard deviation is ruled out
POINTS = 15  # of the quadrature between
NODES = np.polynomial.legendre.leggauss(POINTS)
USUAL = 0.2  # of a response's deviation: what effects of groups vary by where the sums do not tell
TAILS = 4.0  # degrees of freedom of that belief, a half-t: sums that tell otherwise are believed
ROUNDING = 1e-6  # of the largest deviation: one as close to it is the largest, in whatever unit
SEEN = 4.0  # standard errors of a variance of zero: one below is not told from zero, and others are found too large


def estimate(sums: NoisySums, *, largest: float) -> NoisyEstimate:
    """Alternate the two until they agree; then let the uncertainty of the variances into the predictions.

    `largest` is a public bound on every standard deviation: half the width of the response's range. The response's own,
    as far as the noisy squares show it, is another.
    """
    best = at_best_variances(sums, largest=largest)
    if not len(best.variances):
        return best

    def at(variances: Vector) -> NoisyEstimate:
        return evaluate(sums, sigma2=best.sigma2, variances=variances)

    believed = credibility(sums, best.sigma2, float(best.variances.sum()))
    return averaged(best, at, lambda term: hidden_share(sums, best, term), believed, bounded(sums, largest))


def at_best_variances(sums: NoisySums, *, largest: float) -> NoisyEstimate:
    """The model at the variances that the sums support best, as if there were no doubt about them."""
    floor = (SMALLEST * largest) ** 2
    largest = bounded(sums, largest)
    sigma2 = max(sums.squares / sums.rows, floor)
    deviations = best_deviations(sums, sigma2, largest, None)
    for _ in range(ROUNDS):
        before = sigma2
        sigma2 = max(_residual_variance(sums, evaluate(sums, sigma2=sigma2, variances=deviations**2)), floor)
        if abs(sigma2 - before) <= TOLERANCE * before:
            break
        deviations = best_deviations(sums, sigma2, largest, deviations)
    best = evaluate(sums, sigma2=sigma2, variances=deviations**2)
    for term in range(len(deviations)):
        # On the log scale the search cannot reach zero, and stops where it is flat.
        without = evaluate(sums, sigma2=sigma2, variances=_with(best.variances, term, 0.0))
        best = without if without.criterion <= best.criterion + FLAT else best
    return best


def bounded(sums: NoisySums | TermSums, largest: float) -> float:
    """The largest standard deviation that the noisy squares allow."""
    whole = max(sums.squares, 0.0) + 2 * sums.squares_noise
    return float(min(largest, max((whole / sums.rows) ** 0.5, SMALLEST * largest)))


def best_deviations(sums: NoisySums, sigma2: float, largest: float, start: Vector | None) -> Vector:
    """Standard deviations of the random terms that minimise the criterion at this sigma2; searched on a log scale."""
    from scipy.optimize import minimize

    terms = len(sums.levels)
    if not terms:
        return np.empty(0)

    def value(logs: Vector) -> tuple[float, Vector]:
        at = evaluate(sums, sigma2=sigma2, variances=np.exp(2 * logs))
        return at.criterion, 2 * at.slopes * at.variances

    bounds = [(np.log(SMALLEST * largest), np.log(largest))] * terms
    if start is None:
        tried = [np.full(terms, np.log(share * largest)) for share in STARTS]
        first = min(tried, key=lambda logs: value(logs)[0])
    else:
        first = np.log(np.maximum(start, 10 * SMALLEST * largest))
    found = minimize(value, first, jac=True, method="L-BFGS-B", bounds=bounds, options=STOP)
    return np.exp(np.asarray(found.x, dtype=np.float64))


def _residual_variance(sums: NoisySums, at: NoisyEstimate) -> float:
    """sigma2 such that the residual sum of squares has its expectation.

    A share of each group's squared residual sum is taken out first; it is larger if less of the sum is noise. With no
    noise this is the within-group estimator, with nothing but noise the total one. Any share is unbiased.
    """
    n, beta, covariance, total = sums.n, at.beta, at.covariance, float(at.variances.sum())
    squares = sums.squares - 2 * beta @ sums.Xy + beta @ sums.XX @ beta + np.sum(covariance * sums.XX)
    share = (1 - sums.ds / (at.sigma2 * n + total * n**2 + sums.ds)) ** 2
    between = (sums.s - sums.Sx @ beta) ** 2 + forms(sums.Sx, covariance) - total * n**2 - sums.ds
    # E between = sigma2 n, so sigma2 appears on both sides and is solved for.
    left = sums.rows - share.sum()
    return float((squares - sums.rows * total - (share * between / n).sum()) / left) if left > 0 else 0.0


def averaged(
    best: Estimate,
    at: Callable[[Vector], NoisyEstimate],
    hidden: Callable[[int], float],
    believed: float,
    largest: float,
) -> Estimate:
    """The estimate averaged over each variance in turn where there is doubt about it.

    `at` is the model at other variances, `hidden` the share of what sums tell of a variance that noise hides, and
    `believed` how much of the criterion's curvature is to be believed.

    Predictions at the best variance alone are overconfident where few groups or much noise leave it open, and empty
    where it is zero. What estimates vary by is added to their variances. Under a flat prior of the variance, intervals
    of the effects hold in repeated samples (Morris and Tang 2011, Statistical Science 26). Fixed effects do not shrink,
    and that prior makes their intervals too wide; with a flat prior of the deviation they hold.

    A flat prior would let noise that hides the variance into the predictions, which are then worse than none. As far as
    noise hides it these are averaged under a prior of `USUAL` size, and their variances are about them under the flat
    one.
    """
    beta, covariance = best.beta, best.covariance
    supposed = best.variances.copy()
    usual = USUAL * float(np.sqrt(best.sigma2 + best.variances.sum()))
    effects, variances = list(best.effects), list(best.effect_variances)
    for term in range(len(best.variances)):
        found, even = _around(best, at, believed, term, largest)
        centre = _mean(even, [a.beta for a in found])
        moved = [a.covariance + np.outer(a.beta - centre, a.beta - centre) for a in found]
        beta, covariance = beta + centre - best.beta, covariance + _mean(even, moved) - best.covariance
        weight = cautious = even
        if len(found) > 1:
            deviation = np.sqrt([a.variances[term] for a in found])
            weight = _shares(even * deviation)
            doubt = hidden(term)
            far = np.log1p((deviation / usual) ** 2 / TAILS)
            logs = (1 - doubt) * np.log(deviation) - doubt * (TAILS + 1) / 2 * far
            cautious = _shares(even * np.exp(logs - logs.max()))
            supposed[term] = cautious @ deviation**2
        for i, (u, v) in enumerate(zip(best.effects, best.effect_variances, strict=True)):
            middle = _mean(cautious, [a.effects[i] for a in found])
            effects[i] = effects[i] + middle - u
            spread = _mean(weight, [a.effect_variances[i] + (a.effects[i] - middle) ** 2 for a in found])
            variances[i] = variances[i] + spread - v
    positive = tuple(np.maximum(v, 0.0) for v in variances)
    return replace(
        best, beta=beta, covariance=covariance, effects=tuple(effects), effect_variances=positive, believed=supposed
    )


def _around(
    best: NoisyEstimate, model: Callable[[Vector], NoisyEstimate], believed: float, term: int, largest: float
) -> tuple[list[NoisyEstimate], Vector]:
    """The model at standard deviations of one term that the noisy sums do not rule out; weights of a flat prior."""

    def at(deviation: float) -> NoisyEstimate:
        return model(_with(best.variances, term, deviation**2))

    def rise(deviation: float) -> float:
        return believed * (at(deviation).criterion - best.criterion)

    centre = float(np.sqrt(best.variances[term]))
    if centre and min(rise(centre * 1.1), rise(centre / 1.1)) > KNOWN:
        return [best], np.ones(1)
    low = high = max(centre, min(STARTS) * largest)
    while high < (1 - ROUNDING) * largest and rise(high) < UNLIKELY:
        high *= 1.4
    while low > 1e-3 * high and rise(low) < UNLIKELY:
        low /= 1.4
    low = 0.0 if low <= 1e-3 * high else low
    nodes, weight = NODES
    deviations = low + (high - low) * (1 + nodes) / 2
    found = [at(deviation) for deviation in deviations.tolist()]
    weight = weight * np.exp(-believed * np.array([a.criterion - best.criterion for a in found]) / 2)
    return found, _shares(weight)


def hidden_share(sums: NoisySums, best: NoisyEstimate, term: int) -> float:
    """The share of what the sums would tell of a term's variance that noise hides."""
    told, whole = (
        visibility(at, sigma2=best.sigma2 + best.variances[term], variances=_with(best.variances, term, 0.0))[term]
        for at in (sums, replace(sums, ds=np.zeros(len(sums.n))))
    )
    return float(1 - (told @ told) / (whole @ whole))


def credibility(sums: NoisySums, sigma2: float, total: float) -> float:
    """How much of the criterion's curvature is trusted: squares of Laplace noise vary more than those of a normal law.

    A group's squared sum has variance 2 V^2 + kurtosis d^2 instead of 2 V^2; this is the ratio of the informations.
    """
    V = sigma2 * sums.n + total * sums.n**2 + sums.ds
    claimed = 2 * sums.n**4 / V**2
    return float(claimed.sum() / (claimed + sums.kurtosis * sums.n**4 * sums.ds**2 / V**4).sum())


def least_seen(sums: NoisySums, *, sigma2: float, variances: Vector) -> Vector:
    """The least distinguishable variance of each term, from the design, the noise and the other variances.

    A squared sum with variance V has information n^4 / (2 V^2) about the variance of its effect.
    """
    found = []
    for term, variance in enumerate(variances.tolist()):
        others = _with(variances, term, 0.0)
        seen = visibility(sums, sigma2=sigma2 + variance, variances=others)[term]
        believed = credibility(sums, sigma2 + variance, float(others.sum()))
        found.append(SEEN * (2 / (believed * float(seen @ seen))) ** 0.5)
    return np.array(found)


def _with(values: Vector, place: int, value: float) -> Vector:
    changed = values.copy()
    changed[place] = value
    return changed


def _shares(weight: Vector) -> Vector:
    return np.asarray(weight / weight.sum())


def _mean(weight: Vector, values: Sequence[Matrix]) -> Matrix:
    return np.asarray(np.tensordot(weight, np.stack(values), axes=1))
