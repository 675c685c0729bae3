"""The sampler against the exact posterior, its shortcut against the long way, its diagnostics against known laws."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.models.bayes.blmm import ConvergenceWarning, bayes_mixed
from discreet.models.bayes.blmm.diagnostics import effective_size, rhat, standard_error
from discreet.models.bayes.blmm.gibbs import WIDTH, _Products, gibbs
from discreet.words.errors import DataError
from faults_of import about

ERRORS = 4.5  # 7e-6 per comparison


def test_draws_follow_the_exact_posterior(data) -> None:
    chains = gibbs(data.posterior, draws=3_000, chains=4, warmup=500, rng=1)
    assert chains.converged
    assert chains.rhat_max < 1.01
    for drawn, law in ((chains.u, data.posterior.effects), (chains.beta, data.posterior.coefficients())):
        flat = drawn.reshape(-1, drawn.shape[2])
        assert np.abs((flat.mean(axis=0) - law.mean) / standard_error(drawn)).max() < ERRORS
        for level in (0.05, 0.95):
            below = flat <= law.quantile(np.array([level]))[:, 0]
            error = np.sqrt(level * (1 - level) / effective_size(drawn))
            assert np.abs((below.mean(axis=0) - level) / error).max() < ERRORS
    for which in (0, 1):
        curve, drawn = data.posterior.variance(which), chains.variances[:, :, which]
        below = drawn.ravel() <= curve.quantile(np.array([0.9]))
        error = np.sqrt(0.09 / chains.effective["variances"][which])
        assert abs((below.mean() - 0.9) / error) < ERRORS


def test_series_equals_the_sum(data) -> None:
    model = data.posterior.model
    products = _Products.around(model, -1.0)
    inside = np.exp(-1.0 + WIDTH * np.array([-1.0, -0.37, 0.2, 0.99]))
    np.testing.assert_allclose(products(inside), model.cross_products(inside), rtol=1e-11, atol=1e-11)
    outside = np.exp(np.array([-9.0, 4.0]))
    np.testing.assert_allclose(products(outside), model.cross_products(outside))


def test_chains_that_did_not_converge_say_so(data) -> None:
    far = np.array([[-30.0, -30.0], [8.0, 8.0]])
    with pytest.warns(ConvergenceWarning):
        chains = gibbs(data.posterior, draws=4, chains=2, warmup=0, start=far, rng=0)
    assert not chains.converged
    assert "R-hat" in chains.notes[0]
    frame = {"y": data.y, "x": data.x[:, 1], "g": data.group}
    with pytest.warns(ConvergenceWarning):
        fit = bayes_mixed("y ~ x + (1 | g)", frame, draws=20, warmup=0)
    assert fit.notes
    assert fit.notes[0] in str(fit)
    drawn = fit.plot_trace("3").to_dict()["data"]["values"]
    assert [row["draw"] for row in drawn[20:40]] == fit.chains.u[1, :, fit.levels.index("3")].tolist()


@pytest.mark.parametrize("bad", [{"draws": 3}, {"draws": 10, "chains": 0}, {"draws": 10, "warmup": -1}])
def test_impossible_runs_are_refused(data, bad) -> None:
    with pytest.raises(DataError, check=about("draws")):
        gibbs(data.posterior, **bad)


def test_effective_size_of_an_autoregression() -> None:
    """x_t = a x_{t-1} + e: the size is n (1 - a) / (1 + a)."""
    rng, a, n = np.random.default_rng(2), np.array([0.0, 0.5, 0.9]), 20_000
    x = np.empty((2, n, 3))
    x[:, 0] = rng.normal(size=(2, 3)) / np.sqrt(1 - a**2)
    for t in range(1, n):
        x[:, t] = a * x[:, t - 1] + rng.normal(size=(2, 3))
    np.testing.assert_allclose(effective_size(x), 2 * n * (1 - a) / (1 + a), rtol=0.15)
    assert rhat(x).max() < 1.01


def test_rhat_sees_a_shift_and_a_trend() -> None:
    x = np.random.default_rng(0).normal(size=(2, 400, 3))
    x[1, :, 1] += 1  # chains apart
    x[:, :, 2] += np.linspace(0, 3, 400)  # both drift alike: only the split shows it
    found = rhat(x)
    assert found[0] < 1.02
    assert found[1] > 1.08
    assert found[2] > 1.2
    with pytest.raises(DataError, check=about("draws")):
        rhat(x[:, :3])
