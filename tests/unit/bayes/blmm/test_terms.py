"""Several random terms and priors of single variances, against brute force over the variances with dense matrices."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import typer
from scipy import stats
from typer.testing import CliRunner

import discreet as dc
from discreet.cli.fit import fit as fit_command
from discreet.models.bayes.blmm import PC, ConvergenceWarning, HalfT, InverseGamma
from discreet.models.bayes.blmm.prior import prior_of_text
from discreet.words.errors import DiscreetError, FitError
from faults_of import about

SD = 3.0
pytestmark = pytest.mark.filterwarnings("ignore::discreet.models.bayes.blmm.ConvergenceWarning")
ERRORS = 4.5  # Monte Carlo standard errors


def small(seed: int = 3) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    g, h, x = np.repeat(np.arange(8), 4), np.tile(np.arange(4), 8), rng.normal(size=32)
    y = 1 + 0.5 * x + 0.8 * rng.normal(size=8)[g] + 0.6 * rng.normal(size=4)[h] + 0.7 * rng.normal(size=32)
    return {"y": y, "x": x, "g": np.array(list("abcdefgh"))[g], "h": np.array(list("klmn"))[h]}


def brute(data: dict[str, Any], groups: list[Any], laws: list[Any], points: int) -> tuple[Any, Any, Any]:
    """Means of variances, means and deviations of coefficients: all combinations of log variances, V inverted."""
    y, X = data["y"], np.column_stack([np.ones(len(data["y"])), data["x"]])
    shared = [np.equal.outer(names, names).astype(float) for names in groups]
    axes = [np.linspace(-2.5, 1.5, points), *(np.linspace(-13.0, 6.0, 2 * points) for _ in groups)]
    logs = np.array(list(product(*axes)))
    heights, means, seconds = [], [], []
    for part in np.array_split(logs, 1 + len(logs) // 2000):
        V = np.exp(part[:, 0])[:, None, None] * np.eye(len(y))
        V = V + sum(np.exp(part[:, 1 + k])[:, None, None] * each for k, each in enumerate(shared))
        inverse = np.linalg.inv(V)
        P = X.T @ inverse @ X + np.eye(2) / SD**2
        b = np.linalg.solve(P, (X.T @ inverse @ y)[:, :, None])[:, :, 0]
        fitted = np.einsum("ki,kij,kj->k", b, P, b)
        value = -0.5 * (np.linalg.slogdet(V)[1] + (inverse @ y) @ y - fitted + np.linalg.slogdet(P)[1])
        heights.append(value + sum(law(part[:, k]) for k, law in enumerate(laws)))
        means.append(b)
        seconds.append(np.linalg.inv(P) + np.einsum("ki,kj->kij", b, b))
    height = np.concatenate(heights)
    w = np.exp(height - height.max())
    w /= w.sum()
    mean = w @ np.concatenate(means)
    spread = np.sqrt(np.diag(np.einsum("k,kij->ij", w, np.concatenate(seconds)) - np.outer(mean, mean)))
    return w @ np.exp(logs), mean, spread


def log_half_t(df: float, scale: float) -> Any:
    return lambda v: stats.t.logpdf(np.exp(v / 2) / scale, df) + v / 2


def log_exponential(upper: float, alpha: float) -> Any:
    return lambda v: stats.expon.logpdf(np.exp(v / 2), scale=-upper / np.log(alpha)) + v / 2


def log_inverse_gamma(shape: float, scale: float) -> Any:
    return lambda v: stats.invgamma.logpdf(np.exp(v), shape, scale=scale) + v


def test_densities_of_log_variances_are_scipys() -> None:
    at = np.linspace(-5, 4, 7)
    pairs = [(HalfT(3, 0.7), log_half_t(3, 0.7)), (PC(1.2, 0.05), log_exponential(1.2, 0.05))]
    for law, theirs in [*pairs, (InverseGamma(2, 0.5), log_inverse_gamma(2, 0.5))]:
        gap = law.log_density(at) - np.array([theirs(v) for v in at])
        np.testing.assert_allclose(gap, gap[0], atol=1e-10)
    chance = stats.expon.sf(1.2, scale=1 / PC(1.2, 0.05).rate)
    assert chance == pytest.approx(0.05)


def test_two_crossed_terms_are_those_of_brute_force() -> None:
    data = small()
    priors = {"g": "half-t(3, 1)", "h": "pc(1.5, 0.05)", "Residual": "inverse-gamma(2, 1)"}
    fit = dc.mixed("y ~ x + (1 | g) + (1 | h)", data, prior={"sd": SD, "variances": priors}, draws=900, seed=5)
    laws = [log_inverse_gamma(2, 1), log_half_t(3, 1), log_exponential(1.5, 0.05)]
    variances, mean, spread = brute(data, [data["g"], data["h"]], laws, 12)
    for name, expected in zip(fit.variances, variances, strict=True):
        law = fit.variance(name)
        assert abs(law.mean - expected) < ERRORS * law.sd / np.sqrt(law.effective) + 0.01 * expected
        assert abs(1.3 * expected - law.mean) > ERRORS * law.sd / np.sqrt(law.effective)  # it would notice
    for name, expected, sd in zip(fit.fit.names, mean, spread, strict=True):
        law = fit.coefficient(name)
        assert abs(law.mean - expected) < ERRORS * law.sd / np.sqrt(law.effective) + 0.01 * sd
        assert law.sd == pytest.approx(sd, rel=0.1)
    assert fit.chains.converged


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("half-t(3, 1)", log_half_t(3, 1)),
        pytest.param("half-cauchy(0.5)", log_half_t(1, 0.5), marks=pytest.mark.full_size),
        pytest.param("pc(1, 0.05)", log_exponential(1, 0.05), marks=pytest.mark.full_size),
    ],
)
def test_two_variances_are_exact_under_any_prior(text: str, law: Any) -> None:
    data = small()
    prior = dc.Prior(sd=SD, variances={"g": text, "Residual": InverseGamma(2, 1)})
    fit = dc.mixed("y ~ x + (1 | g)", data, prior=prior)
    variances, mean, spread = brute(data, [data["g"]], [log_inverse_gamma(2, 1), law], 45)
    assert [fit.variance(name).mean for name in fit.variances] == pytest.approx(variances.tolist(), rel=2e-3)
    for name, expected, sd in zip(fit.fit.names, mean, spread, strict=True):
        assert fit.coefficient(name).mean == pytest.approx(expected, abs=1e-3 * sd)
        assert fit.coefficient(name).sd == pytest.approx(sd, rel=2e-3)


def test_slopes_have_variances_of_their_own_and_draws_those_of_the_exact_posterior() -> None:
    data = small()
    fit = dc.mixed(
        "y ~ x + (x || g)", data, prior={"sd": SD, "variances": {"g: x": "half-t(3, 0.5)"}}, draws=300, seed=1
    )
    assert fit.variances == ("Residual", "g", "g: x")
    assert fit.effect("c", "g: x").sd > 0
    exact = dc.mixed("y ~ x + (1 | g)", data, prior={"sd": SD, "variances": {"g": "half-t(3, 1)"}}, draws=350, seed=2)
    for drawn, law in (
        (exact.chains.variances[:, :, 1], exact.variance("g")),
        (exact.chains.u[:, :, 2], exact.effect("c")),
    ):
        error = law.sd / np.sqrt(_effective(drawn))
        assert abs(drawn.mean() - law.mean) < ERRORS * error
        assert abs(drawn.mean() - law.mean - 0.3 * law.sd) > ERRORS * error  # it would notice


def _effective(drawn: np.ndarray) -> float:
    """How many independent draws chains are worth, by their correlation one step apart."""
    away = drawn - drawn.mean()
    near = max(0.0, float((away[:, 1:] * away[:, :-1]).mean() / away.var()))
    return drawn.size * (1 - near) / (1 + near)


def test_predictive_draws_have_the_spread_of_rows_and_of_new_levels() -> None:
    data = small()
    fit = dc.mixed("y ~ x + (1 | g) + (1 | h)", data, prior={"sd": SD}, draws=150, seed=5)
    drawn = fit.predictive(draws=600)
    assert drawn.shape == (600, 32) and fit.predictive().shape == (600, 32)  # as many as there are
    assert np.abs(drawn.mean(axis=0) - data["y"]).mean() < 1.0
    inside = (data["y"] > np.quantile(drawn, 0.05, axis=0)) & (data["y"] < np.quantile(drawn, 0.95, axis=0))
    assert inside.mean() > 0.8
    old = {"x": [0.0], "g": ["a"], "h": ["k"]}
    new = fit.predictive(old | {"g": ["new"]}, draws=600)
    known = fit.predictive(old, draws=600)
    chains = fit.chains
    base, own = chains.beta[:, :, 0], chains.beta[:, :, 0] + chains.u[:, :, 0]
    expected = chains.variances[:, :, 1].mean() + base.var() - own.var()
    error = np.sqrt(sum(((y - y.mean()) ** 2).var() / 600 for y in (new, known)))
    assert abs(new.var() - known.var() - expected) < ERRORS * error
    assert abs(known.var() - new.var() - expected) > ERRORS * error  # a level that is not new would be noticed
    with pytest.raises(DiscreetError, check=about("draws")):
        fit.predictive(draws=10**6)


@pytest.mark.full_size  # importing arviz takes seconds
def test_arviz_gets_chains_coordinates_and_its_own_r_hat() -> None:
    arviz = pytest.importorskip("arviz")
    fit = dc.mixed("y ~ x + (1 | g) + (1 | h)", small(), prior={"sd": SD}, draws=200, seed=5, warmup=400)
    given = fit.to_arviz(predictive=50)
    assert isinstance(given, arviz.InferenceData)
    assert given.posterior["effects of h"].shape == (4, 200, 4)
    assert given.posterior_predictive["response"].shape == (1, 50, 32)
    np.testing.assert_allclose(given.posterior["fixed"].sel(coefficient="x"), fit.draws("x"))
    theirs = arviz.rhat(given.posterior, method="split")["variance"].sel(component="Residual")
    assert fit.variance("Residual").rhat == pytest.approx(float(theirs), rel=1e-6)
    one = dc.mixed("y ~ x + (1 | g)", small(), prior={"sd": SD}, draws=100)
    assert one.to_arviz().posterior["effects of g"].shape == (4, 100, 8)


def test_chains_that_did_not_converge_say_so_first() -> None:
    with pytest.warns(ConvergenceWarning):
        fit = dc.mixed("y ~ x + (1 | g) + (1 | h)", small(), prior={"sd": SD}, draws=8, warmup=0, seed=1)
    assert fit.summary().startswith("NOT CONVERGED")
    assert not fit.to_dict()["converged"]


@pytest.mark.parametrize(
    "variances",
    [
        {"g": "half-t(3, 0)"}, {"g": "half-t(3, inf)"}, {"g": "inverse-gamma(0, 1)"}, {"g": "inverse-gamma(1, 0)"},
        {"g": "pc(1, 1)"}, {"g": "pc(0)"}, {"g": "flat"}, {"g": "half-t(x)"}, {"nowhere": "pc(1)"}, {"g": 3}, ["g"],
    ],
)  # fmt: skip
def test_improper_and_unknown_priors_are_refused(variances: Any) -> None:
    with pytest.raises(FitError, check=about("prior")):
        dc.mixed("y ~ x + (1 | g)", small(), prior={"variances": variances})


def test_correlated_effects_are_refused() -> None:
    with pytest.raises(FitError, check=about("formula")):
        dc.mixed("y ~ x + (x | g)", small(), prior={"sd": 1})


def test_a_prior_at_the_command_line(tmp_path: Path) -> None:
    path, app = tmp_path / "small.parquet", typer.Typer()
    app.command()(fit_command)
    pyarrow.parquet.write_table(pa.table(small()), path)
    prior = "sd=3; g=half-t(3, 1), Residual=inverse-gamma(2, 1)"
    assert str(prior_of_text(prior)).startswith("variance g ~ half-t(3, 1), variance Residual ~ inverse-gamma(2, 1)")
    done = CliRunner().invoke(app, ["y ~ x + (1 | g)", str(path), "--prior", prior, "--json"])
    assert json.loads(done.stdout)["prior"]["variances"] == {"g": "half-t(3, 1)", "Residual": "inverse-gamma(2, 1)"}
    wrong = CliRunner().invoke(app, ["y ~ x + (1 | g)", str(path), "--prior", "sd=wide"])
    assert isinstance(wrong.exception, FitError)
    assert CliRunner().invoke(app, ["y ~ x + (1 | g)", str(path), "--prior", "sd=1", "--ml"]).exit_code == 2
