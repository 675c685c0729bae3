"""Coverage as proved: exact probabilities of the published integers, and quantiles against Arb."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import acb, arb, ctx
from scipy import stats

from discreet.noise import laws
from discreet.noise.laws import DiscreteLaplace, GeneralisedCauchy, Laplace, Polynomial, RadialPolynomial
from discreet.privacy.units import Establishments
from discreet.tables.calibration import calibrate
from discreet.tables.intervals.counts import intervals
from discreet.tables.intervals.quantiles import line_quantile
from discreet.tables.mechanisms.joint_polynomial import coordinate_quantile, sum_quantile
from discreet.tables.mechanisms.registry import named, private_names
from discreet.tables.mechanisms.smooth import SmoothNoise

LEVELS = (0.5, 0.9, 0.95, 0.999, 1 - 1e-9, 1 - 2.0**-50)


def beyond(law: Laplace | GeneralisedCauchy | Polynomial, q: float) -> arb:
    """P(|Z| > q) in Arb."""
    x = arb(q)
    if isinstance(law, Laplace):
        return (-x).exp()
    if isinstance(law, Polynomial):
        p, c = arb(law.p), arb(law.core)
        rate = p / (1 + c)
        tail = (-rate * c).exp() * (1 + c) / (p - 1)
        whole = (1 - (-rate * c).exp()) / rate + tail
        if q >= law.core:
            return tail * ((1 + x) / (1 + c)) ** (1 - p) / whole
        return (((-rate * x).exp() - (-rate * c).exp()) / rate + tail) / whole
    g = arb(law.g)
    y = 1 / (1 + x**g)
    # The regularised incomplete beta function of (1 - 1/g, 1/g).
    return acb(y).beta_lower(1 - 1 / g, 1 / g, regularized=True).real


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "law", [Laplace(), GeneralisedCauchy(4.0), Polynomial(21.98, 0.2), Polynomial(3.1), Polynomial(1.2, 40.0)]
)
def test_a_quantile_is_never_too_small(law: Laplace | GeneralisedCauchy | Polynomial, level: float) -> None:
    miss = 1 - level
    with ctx.workprec(200):
        missed = beyond(law, line_quantile(law, level))
        assert missed <= arb(miss)
        assert missed > arb(miss) * (1 - 1e-6)


@pytest.mark.parametrize("miss", [0.3, 0.025, 1e-6, 2.0**-51])
@pytest.mark.parametrize(
    "law", [RadialPolynomial(9.0, 2), RadialPolynomial(49.97, 8, 0.4031), RadialPolynomial(9.1, 8, 30.0)]
)
def test_quantiles_of_joint_noise_are_never_too_small(law: RadialPolynomial, miss: float) -> None:
    """Integrals over the radius by Gauss's rule, piece by piece; a hundredth less would miss more often."""
    x, weight = np.polynomial.legendre.leggauss(40)
    q1, q2 = sum_quantile(law, miss), coordinate_quantile(law, miss)
    knots = np.unique(np.concatenate([np.linspace(-25, 60, 400), np.log([q1, q2, 0.99 * q1, 0.99 * q2])]))
    knots = np.unique(np.append(knots, math.log(law.core)) if law.core else knots)
    low, wide = knots[:-1, None], np.diff(knots)[:, None]
    r = np.exp(low + wide * (1 + x) / 2).ravel()
    axis = np.zeros((r.size, law.d))
    axis[:, 0] = r
    mass = np.exp(law.log_density(axis) + law.d * np.log(r) + law.d * math.log(2) - math.lgamma(law.d))
    mass = mass * (wide * weight / 2).ravel()
    assert mass.sum() == pytest.approx(1, abs=1e-9)
    survival = np.array([mass[r > edge].sum() for edge in np.exp(knots[::40])])
    np.testing.assert_allclose(survival, law.radius_survival(np.exp(knots[::40])), rtol=1e-8, atol=1e-14)

    def one(q: float) -> float:
        return float((mass * np.maximum(1 - q / r, 0) ** (law.d - 1)).sum())

    def total(q: float) -> float:
        from scipy.stats import beta, binom

        share = np.minimum(q / r, 1)
        found = np.where(share < 1, 2.0 ** (1 - law.d), 0.0)
        for k in range(1, law.d):
            found += binom.pmf(k, law.d, 0.5) * 2 * beta.sf((1 + share) / 2, k, law.d - k)
        return float((mass * found).sum())

    for function, q in ((one, q2), (total, q1)):
        assert function(q) <= miss * (1 + 1e-9)
        assert function(0.98 * q) > miss


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
@pytest.mark.parametrize(
    ("name", "options"), [("polynomial", {}), ("smooth-gamma", {}), ("smooth-laplace", {"delta": "0.01"})]
)
def test_coverage_of_one_count_is_at_least_the_level(name: str, options: dict[str, str], level: float) -> None:
    """Exact: the probabilities of all published integers whose interval holds the true count, for the largest scale."""
    for substitution in (False, True):
        unit = Establishments("0.2", substitution=substitution)
        mechanism = calibrate(name, unit=unit, epsilon=4, **options)  # type: ignore[call-overload]
        for n in (0, 1, 2, 7, 40, 1000):
            scale = float(mechanism.scale(np.array([float(n)]))[0])
            noise = np.arange(-4000, 4001)
            lower, upper = intervals((n + noise)[:, None], mechanism, level=level, bounded=True)
            held = ((lower <= n) & (n <= upper))[:, 0]
            assert mechanism.law.probability(noise, scale)[held].sum() >= level


@pytest.mark.parametrize("level", [0.5, 0.95, 1 - 1e-9])
def test_the_discrete_reach_is_never_too_small(level: float) -> None:
    law = DiscreteLaplace()
    for scale in (0.01, 0.3, 1.0, 17.0, 1e6):
        r = law.reach(level, scale)
        with ctx.workprec(200):
            q = (-1 / arb(scale)).exp()
            assert 2 * q ** (r + 1) / (1 + q) <= arb(1 - level)
    # Where the exact answer is on the edge, rounding may not take the smaller one.
    for r in range(1, 60):
        miss = 2 * math.exp(-(r + 1) / 3) / (1 + math.exp(-1 / 3))
        with ctx.workprec(200):
            q = (-arb(1) / 3).exp()
            assert 2 * q ** (law.reach(1 - miss, 3.0) + 1) / (1 + q) <= arb(1) - arb(1 - miss)


def test_joint_intervals_hold_a_cell_of_one_establishment() -> None:
    from discreet.noise.source import SeededSource

    mechanism = calibrate("joint-polynomial", unit=Establishments("0.1", substitution=True), epsilon=4, cells=4)
    assert isinstance(mechanism, SmoothNoise)
    truth = np.tile([3, 0, 20, 1], (20_000, 1))
    drawn = mechanism.draw(truth, np.full(20_000, 24), SeededSource(2))
    lower, upper = intervals(drawn, mechanism, level=0.9, bounded=True)
    assert ((lower <= truth) & (truth <= upper)).mean(axis=0).min() > 0.9
    # Half of the probability to fail is left for the sum, which bounds the size; where that is known, the rest is.
    assert (np.abs(drawn - truth) <= mechanism.reach(np.array([24.0]), level=0.9)).mean(axis=0).min() > 0.944


@pytest.mark.parametrize("epsilon", ["1", "4"])
@pytest.mark.parametrize("name", private_names())
def test_noise_of_any_size_leaves_an_interval(name: str, epsilon: str) -> None:
    """Whatever was drawn, far below zero or far above: ends come, in order, and none raises after the charge.

    `joint-rings` had no scale for a table whose published counts add up to less than minus 500.
    """
    kind = named(name)
    unit = Establishments("0.1", "strong" if kind.strong_by_kind else "weak")
    d = 2 if kind.vector else 1
    delta = "0.001" if kind.needs_delta else None
    mechanism = calibrate(kind, unit=unit, epsilon=epsilon, delta=delta, cells=d)
    drawn = np.array([-(2**61), -(10**9), -40_000, -501, -3, 0, 4, 70_000, 10**12, 2**61], dtype=np.int64)
    published = np.repeat(drawn[:, None], d, axis=1)
    for bounded in (True, False):
        lower, upper = intervals(published, mechanism, level=0.95, bounded=bounded)
        assert ((lower <= upper) | np.isnan(lower)).all() and (np.isnan(lower) | (lower >= 0)).all()


def test_radii_of_very_many_kinds_are_numbers() -> None:
    """1,024 kinds: 2 to the power of them, and the weight of what lies beyond the core, are no doubles."""
    law = calibrate("joint-polynomial", unit=Establishments("0.1"), epsilon=110, cells=1024).law
    assert isinstance(law, RadialPolynomial)
    radii = np.linspace(*law.radius_range, 9)
    # Nearly all mass is within the core, where the radius is a gamma variable.
    np.testing.assert_allclose(law.radius_survival(radii), stats.gamma.sf(law._rate * radii, 1024), rtol=1e-9)
    assert 0 < sum_quantile(law, 0.05) < law.radius_range[1]


def test_both_ways_to_what_lies_beyond_the_core_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    law = calibrate("joint-polynomial", unit=Establishments("0.1"), epsilon=20, cells=64).law
    assert isinstance(law, RadialPolynomial)
    radii = law.core * np.array([0.5, 0.9, 1.0, 1.1, 1.3])
    usual = law.radius_survival(radii)
    monkeypatch.setattr(laws, "LARGE", -math.inf)
    np.testing.assert_allclose(law.radius_survival(radii), usual, rtol=1e-9)
