"""Posteriors against brute-force integration, closed forms and repeated data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from discreet.models.bayes.conjugate import Conjugate, GPrior, Parts, SemiConjugate
from discreet.words.errors import FitError
from faults_of import about

RNG = np.random.default_rng(3)
X = np.column_stack([np.ones(14), RNG.normal(size=14)])
Y = 0.5 + 1.5 * X[:, 1] + 0.7 * RNG.normal(size=14)
COLUMNS = np.array([0, 1, 1])


def whole(X: np.ndarray, y: np.ndarray) -> Parts:
    return Parts.of(np.column_stack([X, y])[None], np.array([len(y)]))


def brute_force(log_prior, power: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Marginal distribution of the slope on a grid, by summing the joint posterior over three dimensions."""
    intercept, slope = np.linspace(-1.5, 2.5, 81), np.linspace(-0.5, 3.5, 321)
    x = np.linspace(-4, 3, 71)  # log sigma^2
    a, b, s = np.meshgrid(intercept, slope, x, indexing="ij")
    rss = sum((y - a - b * row[1]) ** 2 for row, y in zip(X, Y, strict=True))
    log = -power * (len(Y) * s + rss * np.exp(-s)) / 2 + log_prior(a, b, s) + s
    weight = np.exp(log - log.max()).sum(axis=(0, 2))
    return slope, weight / weight.sum()


def inverse_gamma(s: np.ndarray, nu: float, variance: float) -> np.ndarray:
    return stats.invgamma.logpdf(np.exp(s), nu / 2, scale=nu * variance / 2)


def cdf_on_grid(grid: np.ndarray, weight: np.ndarray, b: float) -> float:
    # Points carry the mass of their cell: interpolate the distribution at the cells' edges.
    edges = np.append(grid - (grid[1] - grid[0]) / 2, grid[-1] + (grid[1] - grid[0]) / 2)
    return float(np.interp(b, edges, np.append(0, np.cumsum(weight))))


@pytest.mark.parametrize("power", [1.0, 3.0])
def test_conjugate_is_the_integral_of_prior_times_likelihood(power: float) -> None:
    prior = Conjugate(mean=0.3, covariance=2.0, nu=3.0, variance=0.8)

    def log_prior(a, b, s):
        return inverse_gamma(s, 3.0, 0.8) - s - ((a - 0.3) ** 2 + (b - 0.3) ** 2) * np.exp(-s) / 4

    grid, weight = brute_force(log_prior, power)
    posterior = prior.posterior(whole(X, Y), np.array([1]), power=power)
    for b in (1.0, 1.4, 1.7, 2.2):
        assert posterior.cdf(np.array([b]))[0, 0] == pytest.approx(cdf_on_grid(grid, weight, b), abs=3e-4)


@pytest.mark.parametrize("power", [1.0, 3.0])
def test_semi_conjugate_is_the_integral_of_prior_times_likelihood(power: float) -> None:
    prior = SemiConjugate(mean=0.3, covariance=0.4, nu=3.0, variance=0.8)

    def log_prior(a, b, s):
        return inverse_gamma(s, 3.0, 0.8) - ((a - 0.3) ** 2 + (b - 0.3) ** 2) / 0.8

    grid, weight = brute_force(log_prior, power)
    posterior = prior.posterior(whole(X, Y), np.array([1]), power=power)
    for b in (1.0, 1.4, 1.7, 2.2):
        assert posterior.cdf(np.array([b]))[0, 0] == pytest.approx(cdf_on_grid(grid, weight, b), abs=3e-4)


def test_g_prior_is_zellners_closed_form() -> None:
    g, nu, variance = 20.0, 2.0, 0.5
    ols = np.linalg.solve(X.T @ X, X.T @ Y)
    squares = nu * variance + Y @ Y - g / (g + 1) * Y @ X @ ols
    scale = np.sqrt(squares / (nu + len(Y)) * g / (g + 1) * np.linalg.inv(X.T @ X)[1, 1])
    law = stats.t(nu + len(Y), loc=g / (g + 1) * ols[1], scale=scale)
    posterior = GPrior(g, nu, variance).posterior(whole(X, Y), np.array([1]))
    assert posterior.cdf(np.array([1.2]))[0, 0] == pytest.approx(law.cdf(1.2), rel=1e-12)
    assert posterior.quantile(np.array([0.9]))[0, 0] == pytest.approx(law.ppf(0.9), rel=1e-12)


@pytest.mark.parametrize("prior", [Conjugate(covariance=3.0), SemiConjugate(covariance=3.0)])
def test_a_likelihood_to_a_power_is_data_seen_that_often(prior) -> None:
    often = prior.posterior(whole(np.tile(X, (4, 1)), np.tile(Y, 4)), COLUMNS)
    power = prior.posterior(whole(X, Y), COLUMNS, power=4.0)
    b, q = np.array([0.2, 1.3, 1.8]), np.array([0.1, 0.5, 0.975])
    np.testing.assert_allclose(power.cdf(b), often.cdf(b), rtol=1e-9)
    np.testing.assert_allclose(power.quantile(q), often.quantile(q), rtol=1e-9)


@pytest.mark.parametrize("prior", [GPrior(), Conjugate(), SemiConjugate()])
def test_quantiles_invert_probabilities(prior) -> None:
    posterior = prior.posterior(whole(X, Y), COLUMNS, power=2.0)
    q = np.array([0.025, 0.3, 0.975])
    np.testing.assert_allclose(posterior.cdf(posterior.quantile(q)[0])[0], q, rtol=1e-9)


def test_parts_are_answered_separately_and_padding_adds_nothing() -> None:
    rows = np.column_stack([X, Y])
    blocks = np.zeros((2, 9, 3))
    blocks[0, :5], blocks[1] = rows[:5], rows[5:]
    together = GPrior(g=50.0).posterior(Parts.of(blocks, np.array([5, 9])), COLUMNS, share=0.5)
    for j, part in enumerate((slice(0, 5), slice(5, None))):
        alone = GPrior(g=50.0).posterior(whole(X[part], Y[part]), COLUMNS)
        np.testing.assert_allclose(
            together.quantile(np.full(3, 0.3))[j], alone.quantile(np.full(3, 0.3))[0], rtol=1e-10
        )


def test_the_prior_counts_once_in_all_parts_together() -> None:
    """Mean of the parts' locations, weighted by their precision, is the whole's, with share = 1/M and no other."""
    prior = Conjugate(mean=5.0, covariance=0.05)
    rows = np.column_stack([np.ones(14), Y])  # one coefficient: the mean
    parts = Parts.of(rows.reshape(2, 7, 2), np.array([7, 7]))
    one = whole(rows[:, :1], Y)
    full = prior.posterior(one, np.array([0])).location[0, 0]
    assert prior.posterior(parts, np.array([0]), share=0.5).location.mean() == pytest.approx(full)
    assert prior.posterior(parts, np.array([0])).location.mean() != pytest.approx(full, rel=0.01)


@pytest.mark.parametrize("prior", [GPrior(), Conjugate(), SemiConjugate()])
@pytest.mark.parametrize("bad", ["rank", "overflow"])
def test_a_part_that_cannot_be_used_says_nothing_and_raises_nothing(prior, bad: str) -> None:
    blocks = np.stack([np.column_stack([X, Y])] * 2)
    if bad == "rank":
        blocks[0, :, 1] = 1.0
    else:
        blocks[0, 3, 2] = 1e200
    posterior = prior.posterior(Parts.of(blocks, np.array([14, 14])), COLUMNS, power=2.0)
    good = prior.posterior(Parts.of(blocks[[1, 1]], np.array([14, 14])), COLUMNS, power=2.0)
    p, q = posterior.cdf(np.ones(3)), posterior.quantile(np.full(3, 0.5))
    assert np.isfinite(p).all() and np.isfinite(q).all()
    np.testing.assert_allclose(p[1], good.cdf(np.ones(3))[1], rtol=1e-12)


@pytest.mark.parametrize("prior", [GPrior, Conjugate, SemiConjugate])
@pytest.mark.parametrize("nu", [0.0, -1.0, np.inf, np.nan])
def test_zero_degrees_of_freedom_are_improper(prior, nu: float) -> None:
    with pytest.raises(FitError, check=about("prior")):
        prior(nu=nu)


@pytest.mark.parametrize("covariance", [np.inf, 0.0, -1.0, np.zeros((2, 2)), np.array([[1.0, 2.0], [2.0, 1.0]])])
@pytest.mark.parametrize("prior", [Conjugate, SemiConjugate])
def test_an_improper_covariance_is_refused(prior, covariance) -> None:
    with pytest.raises(FitError, check=about("prior")):
        prior(covariance=covariance).posterior(whole(X, Y), COLUMNS)


def test_a_flat_g_prior_and_wrong_shapes_are_refused() -> None:
    with pytest.raises(FitError, check=about("prior")):
        GPrior(g=np.inf)
    with pytest.raises(FitError, check=about("prior")):
        Conjugate(mean=np.zeros(3)).posterior(whole(X, Y), COLUMNS)
