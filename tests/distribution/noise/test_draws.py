"""Draws follow their law, and would be found out if the scale, or the core, were 10 % off.

A chi-square test on 2e5 draws with p > 1e-12 for the right law is never wrong by chance in practice; with the scale
10 % off the same test must give p < 1e-12, so it has the power to see what it looks for.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

from discreet.noise.laws import DiscreteLaplace, Gaussian, GeneralisedCauchy, Laplace, Polynomial, RadialPolynomial
from discreet.noise.sampler import draw_integers, draw_log_laplace, draw_on_grid
from discreet.noise.source import SeededSource, SystemSource
from discreet.noise.staircase import Staircase

DRAWS = 200_000
LEVEL = 1e-12
LAWS = [
    Laplace(),
    Gaussian(),
    GeneralisedCauchy(),
    GeneralisedCauchy(1.7),
    Polynomial(11.5),
    Polynomial(1.5),
    Polynomial(21.98, core=0.0992),
    Polynomial(4.0, core=2.0),
    Staircase(3.9047, 0.1, 0.124),
    Staircase(0.4, 0.1, 0.4),
    Staircase(2.0, 1.0, 0.0),
]
RADIAL = [
    RadialPolynomial(5.5, 2),
    RadialPolynomial(30.0, 4),
    RadialPolynomial(21.98, 1, core=0.0992),
    RadialPolynomial(6.0, 2, core=0.5),
    RadialPolynomial(49.97, 8, core=0.4031),
    RadialPolynomial(18.5, 8, core=6.08),
    RadialPolynomial(410.0, 8, core=0.042),
    RadialPolynomial(410.0, 8, core=0.0209),
]


def chi_square(counts, probabilities):
    """The p-value of counts, after merging cells until every expected count is at least 25."""
    expected = np.asarray(probabilities) * np.sum(counts)
    group = np.unique(np.floor((np.cumsum(expected) - expected / 2) / 50), return_inverse=True)[1]
    observed, expected = np.bincount(group, weights=counts), np.bincount(group, weights=expected)
    small = expected < 25
    if expected[small].sum() < 25:
        small[np.argmax(expected)] = True
    observed, expected = (np.append(x[~small], x[small].sum()) for x in (observed, expected))
    return stats.chi2.sf(np.sum((observed - expected) ** 2 / expected), expected.size - 1)


def p_value_of(draws, law, scale):
    """The p-value of integer draws against the law: cell by cell near the centre, by quantiles further out."""
    reach = min(max(math.ceil(8 * scale), 30), 4000)
    if scale > 400:  # then cells are groups of integers between quantiles
        upper = np.unique(np.floor(scale * law.quantile(np.linspace(0, 1, 202)[1:-1])))
        below = np.concatenate([[0], law.cdf((upper + 0.5) / scale), [1]])
        return chi_square(np.bincount(np.searchsorted(upper, draws), minlength=upper.size + 1), np.diff(below))
    j = np.arange(-reach, reach + 1)
    tail = law.survival((reach + 0.5) / scale)
    counts = np.bincount(np.clip(draws, -reach - 1, reach + 1) + reach + 1, minlength=2 * reach + 3)
    return chi_square(counts, np.concatenate([[tail], law.probability(j, scale), [tail]]))


@pytest.mark.parametrize("size", [0.3, 5.7, 1e6])
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_draws_follow_the_law(law, size):
    scale = size / law.quantile(0.75)  # half of the noise is smaller than size
    draws = draw_integers(law, scale=np.full(DRAWS, scale), source=SeededSource(11))
    assert p_value_of(draws, law, scale) > LEVEL
    assert p_value_of(draws, law, 0.9 * scale) < LEVEL
    assert p_value_of(draws, law, 1.1 * scale) < LEVEL


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_draws_from_the_operating_system_follow_the_law(law):
    draws = draw_integers(law, scale=np.full(DRAWS, 20.0), source=SystemSource())
    assert p_value_of(draws, law, 20.0) > LEVEL
    assert p_value_of(draws, law, 22.0) < LEVEL


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_exact_path_alone_follows_the_law(law):
    draws = draw_integers(law, scale=np.full(10_000, 5.7), source=SeededSource(12), exact=True)
    assert p_value_of(draws, law, 5.7) > LEVEL
    assert p_value_of(draws, law, 8.0) < LEVEL


@pytest.mark.parametrize(
    "law", [Laplace(), DiscreteLaplace(), Polynomial(11.5), GeneralisedCauchy(), Gaussian()], ids=str
)
def test_the_last_digits_of_large_draws_are_uniform(law):
    # The density is flat at this scale, so no pattern of the doubles may show: they could not even hold the digits.
    draws = draw_integers(law, scale=np.full(20_000, 2.0**55), source=SeededSource(13))
    assert stats.chisquare(np.bincount(draws % 64, minlength=64)).pvalue > LEVEL
    assert stats.chisquare(np.bincount((draws >> 1) % 64 * 2 % 64, minlength=64)).pvalue < LEVEL


@pytest.mark.parametrize("scale", [0.2, 1.0, 20.0, 400.0])
@pytest.mark.parametrize("exact", [False, True])
def test_the_laplace_law_of_integers(scale, exact):
    """Against SciPy's; a rounded Laplace variable is found out where rounding matters."""
    draws = draw_integers(
        DiscreteLaplace(), scale=np.full(20_000 if exact else DRAWS, scale), source=SeededSource(17), exact=exact
    )
    reach = max(math.ceil(8 * scale), 30)
    counts = np.bincount(np.clip(draws, -reach, reach) + reach, minlength=2 * reach + 1)

    def p_value(cdf):
        return chi_square(counts, np.diff(cdf(np.arange(-reach, reach)), prepend=0, append=1))

    assert p_value(stats.dlaplace(1 / scale).cdf) > LEVEL
    assert p_value(stats.dlaplace(1 / (scale * (1.25 if exact else 1.1))).cdf) < LEVEL
    if scale <= 1:
        assert p_value(lambda j: Laplace().cdf((j + 0.5) / scale)) < LEVEL


def test_different_scales_do_not_mix():
    scale = np.tile([0.5, 50.0], DRAWS)
    for law in [Laplace(), GeneralisedCauchy()]:
        draws = draw_integers(law, scale=scale, source=SeededSource(14))
        assert p_value_of(draws[::2], law, 0.5) > LEVEL
        assert p_value_of(draws[1::2], law, 50.0) > LEVEL


def test_grid():
    draws = draw_on_grid(Gaussian(), scale=np.full(DRAWS, 0.7), grid=2.0**-3, source=SeededSource(15))
    assert p_value_of((draws * 8).astype(np.int64), Gaussian(), 5.6) > LEVEL
    assert p_value_of((draws * 8).astype(np.int64), Gaussian(), 5.6 * 1.1) < LEVEL


def test_log_laplace():
    multiplier, exponent, addend = 30.0, 0.4, -10.0
    draws = draw_log_laplace(
        multiplier=np.full(DRAWS, multiplier), exponent=exponent, addend=addend, source=SeededSource(16)
    )
    j = np.arange(-10, 400)

    def p_value(exponent):
        below = stats.laplace.cdf(np.log((j[:-1] + 0.5 - addend) / multiplier) / exponent)
        counts = np.bincount(np.clip(draws, -10, 399) + 10, minlength=j.size)
        return chi_square(counts, np.diff(below, prepend=0, append=1))

    assert p_value(exponent) > LEVEL
    assert p_value(1.1 * exponent) < LEVEL
    assert p_value(0.9 * exponent) < LEVEL


def radius_p_value(draws, law, scale):
    """The p-value of ||draws||_1 / scale against t^(d-1) exp(-psi(t)), integrated numerically."""
    radius = np.abs(draws).sum(axis=1) / scale
    log_t = np.linspace(-12, 12, 100_001)
    density = law.log_density(np.exp(log_t)[:, None] * np.eye(1, law.d)) + law.d * log_t
    mass = integrate.cumulative_trapezoid(np.exp(density - density.max()), log_t, initial=0)
    uniform = np.interp(np.log(radius + 1e-300), log_t, mass / mass[-1])
    return stats.chisquare(np.histogram(uniform, bins=100, range=(0, 1))[0]).pvalue


@pytest.mark.parametrize("law", RADIAL, ids=str)
def test_radius_and_directions_of_the_radial_law(law):
    draws = draw_integers(law, scale=np.full(DRAWS, 1e9), source=SeededSource(17))
    assert radius_p_value(draws, law, 1e9) > LEVEL
    assert radius_p_value(draws, law, 1.1e9) < LEVEL
    assert radius_p_value(draws, law, 0.9e9) < LEVEL
    # Given the radius, a coordinate's share of it has the distribution function 1 - (1-w)^(d-1).
    share = np.abs(draws) / np.abs(draws).sum(axis=1, keepdims=True)
    for w in share.T if law.d > 1 else []:
        assert stats.chisquare(np.histogram((1 - w) ** (law.d - 1), bins=50, range=(0, 1))[0]).pvalue > LEVEL
        assert stats.chisquare(np.histogram((1 - w) ** law.d, bins=50, range=(0, 1))[0]).pvalue < LEVEL
    orthant = (draws > 0) @ (1 << np.arange(law.d))
    assert stats.chisquare(np.bincount(orthant, minlength=2**law.d)).pvalue > LEVEL


@pytest.mark.parametrize("law", [law for law in RADIAL if law.core > 0.3], ids=str)
def test_a_core_ten_percent_off_is_found_out(law):
    draws = draw_integers(law, scale=np.full(4 * DRAWS, 1e9), source=SeededSource(20))
    assert radius_p_value(draws, law, 1e9) > LEVEL
    for share in [0.9, 1.1]:
        assert radius_p_value(draws, replace(law, core=share * law.core), 1e9) < LEVEL


@pytest.mark.parametrize("law", [law for law in RADIAL if not law.core], ids=str)
def test_coordinates_of_the_radial_law_without_a_core_are_polynomial(law):
    draws = draw_integers(law, scale=np.full(DRAWS, 1e9), source=SeededSource(21))
    for i in range(law.d):
        assert p_value_of(draws[:, i], Polynomial(law.p - law.d + 1), 1e9) > LEVEL
        assert p_value_of(draws[:, i], Polynomial(law.p - law.d + 1), 1.1e9) < LEVEL


@pytest.mark.parametrize("law", [law for law in RADIAL if law.p > law.d + 8], ids=str)
def test_moments_of_draws(law):
    draws = draw_integers(law, scale=np.full(DRAWS, 1e9), source=SeededSource(22))[:, 0] / 1e9
    for power, stated in [(1, law.mean_abs), (2, law.variance)]:
        values = np.abs(draws) ** power
        error = values.std() / math.sqrt(DRAWS)
        assert abs(values.mean() - stated) < 7 * error
        assert abs(values.mean() - 1.1 * stated) > 7 * error


def test_magnitudes_of_the_radial_law_are_correlated_as_they_should_be():
    law = RadialPolynomial(24.0, 3)
    draws = np.abs(draw_integers(law, scale=np.full(DRAWS, 1e9), source=SeededSource(18))) / 1e9
    a = law.p - law.d
    covariance = 1 / ((a - 1) * (a - 2)) - 1 / (a - 1) ** 2
    product = (draws[:, 0] - law.mean_abs) * (draws[:, 1] - law.mean_abs)
    error = product.std() / math.sqrt(DRAWS)
    assert abs(product.mean() - covariance) < 7 * error
    assert covariance > 7 * error


@pytest.mark.parametrize(
    ("law", "scale"), [(RadialPolynomial(4.5, 2), 2.3), (RadialPolynomial(4.5, 2, core=0.6), 2.3)], ids=str
)
def test_joint_cells_of_the_radial_law(law, scale):
    reach = 6
    draws = draw_integers(law, scale=np.full(DRAWS, scale), source=SeededSource(19))
    side = np.arange(-reach, reach + 1)
    inside = (np.abs(draws) <= reach).all(axis=1)
    counts = np.bincount((draws[inside] + reach) @ [side.size, 1], minlength=side.size**2)
    cells = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)

    def p_value(probability):
        return chi_square(np.append(counts, DRAWS - counts.sum()), np.append(probability, 1 - probability.sum()))

    assert p_value(law.probability(cells, scale)) > LEVEL
    assert p_value(law.probability(cells, 1.1 * scale)) < LEVEL
    square = law.probability(cells, scale).reshape(side.size, side.size)
    product = square.sum(axis=0)[:, None] * square.sum(axis=0) / square.sum()
    assert p_value(product.ravel()) < LEVEL  # coordinates are not independent
