"""The exact posterior against dense linear algebra on a fine grid of variances, which shares no formula with it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from discreet.models.bayes.blmm import Prior, bayes_mixed
from discreet.models.bayes.blmm.mixture import Mixtures
from discreet.words.errors import DataError, FitError
from faults_of import about


@pytest.fixture(scope="module")
def brute(data):
    """Weights, means and deviations of (beta, u) on a grid, from the joint normal law of y, beta and u."""
    prior, n = Prior(), len(data.y)
    A = np.column_stack([data.x, np.eye(8)[data.group]])
    at = np.linspace(-4.2, 1.2, 61)
    logs = np.array([(e, u) for e in np.linspace(-3.2, 0.2, 61) for u in at])
    log_weight, mean, deviation = [], [], []
    for e, u in logs:
        s2, su2 = np.exp([e, u])
        before = np.r_[np.full(2, prior.sd**2), np.full(8, su2)]
        S = A @ (before[:, None] * A.T) + s2 * np.eye(n)
        solved = np.linalg.solve(S, np.column_stack([data.y, A * before]))
        log_weight.append(
            -0.5 * (np.linalg.slogdet(S)[1] + data.y @ solved[:, 0]) - 6 * (e + u) - 6 * prior.V * (1 / s2 + 1 / su2)
        )
        mean.append(before * (A.T @ solved[:, 0]))
        deviation.append(np.sqrt(before - np.einsum("ni,ni->i", A * before, solved[:, 1:])))
    weights = np.exp(np.array(log_weight) - max(log_weight))
    return logs, Mixtures(weights / weights.sum(), np.array(mean), np.array(deviation))


def test_fixed_and_random_effects(data, brute) -> None:
    _, law = brute
    ours = data.posterior
    levels = np.array([0.01, 0.05, 0.5, 0.95, 0.99])
    for part, found in ((slice(0, 2), ours.coefficients()), (slice(2, 10), ours.effects)):
        expected = law.take(part)
        np.testing.assert_allclose(found.mean, expected.mean, atol=1e-6)
        np.testing.assert_allclose(found.sd, expected.sd, rtol=1e-5)
        quantiles = found.quantile(levels)
        np.testing.assert_allclose(expected.cdf(quantiles), np.tile(levels, (len(quantiles), 1)), atol=1e-6)


def test_variances(data, brute) -> None:
    logs, law = brute
    for which in (0, 1):
        values, curve = np.exp(logs[:, which]), data.posterior.variance(which)
        mean = law.weights @ values
        assert curve.mean == pytest.approx(mean, rel=1e-5)
        assert curve.sd == pytest.approx(np.sqrt(law.weights @ (values - mean) ** 2), rel=1e-4)
        middle = curve.quantile(np.array([0.05, 0.5, 0.95]))
        np.testing.assert_allclose(curve.cdf(middle), [0.05, 0.5, 0.95], atol=1e-8)
        step = 1e-4 * middle
        slope = (curve.cdf(middle + step) - curve.cdf(middle - step)) / (2 * step)
        np.testing.assert_allclose(curve.pdf(middle), slope, rtol=5e-3)


@pytest.mark.parametrize("scale", [5.0, *(pytest.param(far, marks=pytest.mark.full_size) for far in (4.0, 5.6, 7.0))])
def test_two_modes(scale) -> None:
    """A prior far from the data leaves two explanations of what lies between groups; none of them may be lost."""
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(20), 10)
    x, e, u = rng.normal(size=200), rng.normal(size=200), rng.normal(size=20)
    y, prior = scale * (0.3 * x + 0.6 * u[group] + e), Prior(sd=10.0)
    X, Z = np.column_stack([np.ones(200), x]), np.eye(20)[group]
    M = np.column_stack([X, y])
    inner, between = M.T @ M, (Z.T @ M)[:, :, None] * (Z.T @ M)[:, None, :]
    at = (np.log(scale**2) + np.linspace(-1.3, 1.3, 90), np.linspace(np.log(0.01), np.log(30 * scale**2), 300))
    s2, t2 = (np.exp(v) for v in np.meshgrid(*at, indexing="ij"))
    A = (inner - (t2 / (s2 + 10 * t2))[..., None, None] * between.sum(axis=0)) / s2[..., None, None]
    S = A[..., :2, :2] + np.eye(2) / prior.sd**2
    fitted = np.einsum("...i,...i", A[..., :2, 2], np.linalg.solve(S, A[..., :2, 2:])[..., 0])
    log = -0.5 * (A[..., 2, 2] - fitted + np.linalg.slogdet(S)[1] + 200 * np.log(s2) + 20 * np.log1p(10 * t2 / s2))
    log -= 6 * np.log(s2 * t2) + 6 * prior.V * (1 / s2 + 1 / t2)
    weight = np.exp(log - log.max())
    fit = bayes_mixed("y ~ x + (1 | g)", {"y": y, "x": x, "g": group}, prior=prior)
    for name, axis in (("Residual", 0), ("g", 1)):
        mass = weight.sum(axis=1 - axis) / weight.sum()
        middle = at[axis] + (at[axis][1] - at[axis][0]) / 2
        found = fit.variance(name)
        assert found.mean == pytest.approx(mass @ np.exp(at[axis]), rel=1e-5)
        levels = np.array([0.01, 0.05, 0.2, 0.5, 0.95])
        np.testing.assert_allclose(
            np.interp(np.log(found.quantile(levels)), middle, np.cumsum(mass)), levels, atol=2e-3
        )
    effect = ((weight * t2 / (s2 + 10 * t2)) / weight.sum())[..., None] * (
        (Z.T @ y)[3] - np.linalg.solve(S, A[..., :2, 2:])[..., 0] @ (Z.T @ X)[3][:, None]
    )
    assert fit.effect("3").mean == pytest.approx(effect.sum(), rel=1e-5)


def test_mixture_of_one_normal() -> None:
    law = Mixtures(np.ones(1), np.array([[1.0, -2.0]]), np.array([[0.5, 3.0]]))
    levels = np.array([1e-6, 0.3, 0.999])
    np.testing.assert_allclose(law.quantile(levels), norm.ppf(levels, [[1.0], [-2.0]], [[0.5], [3.0]]), rtol=1e-6)
    x = np.array([[0.1, 2.0], [0.1, 2.0]])
    np.testing.assert_allclose(law.pdf(x), norm.pdf(x, [[1.0], [-2.0]], [[0.5], [3.0]]))


def test_quantiles_of_components_far_apart() -> None:
    law = Mixtures(np.array([0.5, 0.5]), np.array([[-50.0], [50.0]]), np.array([[1.0], [2.0]]))
    levels = np.array([0.25, 0.4999, 0.5001, 0.75])
    np.testing.assert_allclose(law.cdf(law.quantile(levels))[0], levels, atol=1e-11)


def test_formula_speaks_of_columns_as_given(data) -> None:
    """The fit centres its columns; the prior is on the coefficients of the given ones, far from zero here."""
    frame = {"y": data.y + 3, "x": data.x[:, 1] + 20, "g": data.group}
    fit = bayes_mixed("y ~ x + (1 | g)", frame)
    shifted = data.x + np.array([0, 20])
    from discreet.models.bayes.blmm.conditional import PosteriorModel
    from discreet.models.bayes.blmm.exact import Posterior
    from discreet.models.linear.moments import Moments

    zero = Moments(np.zeros(8), np.zeros((8, 2)), np.zeros(8), np.zeros((2, 2)), np.zeros(2), 0.0)
    direct = Posterior.of(PosteriorModel.of(zero.add(group=data.group, x=shifted, y=data.y + 3), Prior()))
    np.testing.assert_allclose(fit.coefficients.mean, direct.coefficients().mean, rtol=1e-5)
    np.testing.assert_allclose(fit.coefficients.sd, direct.coefficients().sd, rtol=1e-5)
    np.testing.assert_allclose(fit.posterior.effects.mean, direct.effects.mean, atol=1e-5)
    assert "var g" in str(fit)


@pytest.mark.parametrize("bad", [{"nu": 0}, {"nu": -1}, {"V": 0}, {"sd": np.inf}, {"sd": 0}, {"nu": np.nan}])
def test_improper_priors_are_refused(bad) -> None:
    with pytest.raises(FitError, check=about("prior")):
        Prior(**bad)


def test_paper_family() -> None:
    assert Prior.paper(12).sd == pytest.approx(0.9984)
    with pytest.raises(FitError, check=about("prior")):
        Prior.paper(4)


def test_what_cannot_be_asked(data) -> None:
    frame = {"y": data.y, "x": data.x[:, 1], "g": data.group}
    with pytest.raises(FitError, check=about("formula")):
        bayes_mixed("y ~ x + (x | g)", frame)
    fit = bayes_mixed("y ~ x + (1 | g)", frame)
    with pytest.raises(DataError, check=about("name")):
        fit.coefficient("z")
    with pytest.raises(DataError, check=about("name")):
        fit.effect("99")
    with pytest.raises(DataError, check=about("probability")):
        fit.effect("3").quantile(1.0)
    with pytest.raises(FitError, check=about("draws")):
        fit.plot_trace("3")
