"""Amounts and shares without trials: gamma and beta against scipy's laws, brute force and bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
import typer
from scipy import integrate, stats
from typer.testing import CliRunner

import discreet as dc
from discreet import lme4
from discreet.cli.fit import fit as command
from discreet.models import linear
from discreet.models.linear.families.registry import family
from discreet.models.linear.laplace import Problem, Term, quadrature
from discreet.models.linear.predictive import quantiles
from discreet.words.errors import DataError, DiscreetError, FitError, Unidentified
from faults_of import about

LAWS = {
    "gamma": lambda eta, own: stats.gamma(np.exp(own), scale=np.exp(eta - own)),
    "beta": lambda eta, own: stats.beta(np.exp(own) / (1 + np.exp(-eta)), np.exp(own) / (1 + np.exp(eta))),
}
FORMULA = "y ~ x + (1 | g)"
names = pytest.mark.parametrize("name", LAWS)


def rows(name: str, *, own: float = 1.3, many: int = 240) -> dict[str, Any]:
    rng = np.random.default_rng(4)
    g, x = np.arange(many) % 12, rng.normal(size=many)
    eta = 0.3 + 0.5 * x + 0.6 * rng.normal(size=12)[g]
    return {"y": family(name).draw(eta, np.array([own]), np.ones(many), rng), "x": x, "g": g, "w": 1.0 + g % 2}


@names
@pytest.mark.parametrize("own", [-2.0, 1.3, 6.0, 8.0, 14.0])
def test_densities_are_those_of_scipy(name: str, own: float) -> None:
    law, eta = family(name), np.linspace(-3, 3, 13)
    scipys = LAWS[name](eta, own)
    for share in (0.01, 0.5, 0.99):
        y = np.clip(scipys.ppf(share), 1e-90, 1 - 1e-15 if name == "beta" else np.inf)
        found, ones = law.law(y, eta, np.array([own])), np.ones(13)
        np.testing.assert_allclose(found.density, scipys.logpdf(y), rtol=1e-9, atol=1e-7)
        np.testing.assert_allclose(law.at_most(y, eta, np.array([own]), ones), scipys.cdf(y), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(law.mean(eta, np.array([own])), scipys.mean(), rtol=1e-9)
    np.testing.assert_allclose(law.variance(eta, np.array([own])), scipys.var(), rtol=1e-9)


@pytest.mark.parametrize("log_shape", [0.5, 6.9, 7.0, 20.0])
def test_gamma_keeps_its_digits_where_amounts_hardly_vary(log_shape: float) -> None:
    """Against balls of 300 bits: products of a large shape with differences that nearly cancel have none left."""
    import flint

    before, flint.ctx.prec = flint.ctx.prec, 300
    try:
        shape, eta = flint.arb(log_shape).exp(), 2.0
        for y in (np.exp(2.0) * (1 + 3 * np.exp(-log_shape / 2)), np.exp(2.0), 7.0):
            found = family("gamma").law(np.array([y]), np.array([eta]), np.array([log_shape]))
            away = flint.arb(y).log() - eta
            density = shape * (away - away.exp()) + shape * shape.log() - shape.lgamma() - flint.arb(y).log()
            by_shape = shape * (away - away.exp() + 1 + shape.log() - shape.digamma())
            rounding = 1e-15 * float(shape) * (abs(float(away)) + 1e-3 * 0)  # of the logarithm of the amount
            assert found.density[0] == pytest.approx(float(density), rel=1e-12, abs=1e-9 + 4 * rounding)
            assert found.own[0][0][0] == pytest.approx(float(by_shape), rel=1e-9, abs=1e-8 + 4 * rounding)
    finally:
        flint.ctx.prec = before


@names
def test_the_likelihood_of_many_points_is_the_integral(name: str) -> None:
    data, own, beta, theta = rows(name, many=48), 1.3, np.array([0.2, 0.4]), 0.7
    X, level = np.column_stack([np.ones(48), data["x"]]), data["g"]
    problem = Problem(data["y"], X, (Term(np.ones((48, 1)), level, 12),), np.zeros(48), family(name), None)
    total = 0.0
    for group in range(12):
        at = level == group

        def density(u: float, at: np.ndarray = at) -> float:
            logs = LAWS[name](X[at] @ beta + theta * u, own).logpdf(data["y"][at])
            return float(np.exp(logs.sum()) * stats.norm.pdf(u))

        total += np.log(integrate.quad(density, -9, 9, epsabs=0, epsrel=1e-10, points=[-2, 0, 2], limit=200)[0])
    assert quadrature(problem, beta, np.array([theta]), np.array([own]), 25) == pytest.approx(-total, rel=1e-8)


@names
@pytest.mark.parametrize(("eta", "error", "own"), [(0.4, 0.3, 1.3), (-2.0, 0.8, 0.5), (2.0, 0.02, 7.0)])
def test_intervals_of_new_responses_are_those_of_their_law(name: str, eta: float, error: float, own: float) -> None:
    """Probabilities at the ends, integrated over the error, are what was asked for."""
    ends = quantiles(family(name), np.array([eta]), np.array([error]), np.array([own]), np.ones(1), 0.9)
    for (end,), wanted in zip(ends, (0.05, 0.95), strict=True):
        mixture = lambda z, end=end: LAWS[name](eta + error * z, own).cdf(end) * stats.norm.pdf(z)  # noqa: E731
        assert integrate.quad(mixture, -9, 9, points=[0], limit=400)[0] == pytest.approx(wanted, abs=1e-6)


@names
def test_draws_have_their_law_and_refits_find_it(name: str) -> None:
    fit = dc.mixed(FORMULA, rows(name), family=name)
    drawn = fit.simulate(300, seed=1, effects="kept")
    own = float(fit.centred[2][0])
    uniform = LAWS[name](fit.link[:, None], own).cdf(drawn).ravel()
    assert stats.kstest(uniform, "uniform").pvalue > 1e-6
    wrong = LAWS[name](fit.link[:, None], own + 0.1).cdf(drawn).ravel()
    assert stats.kstest(wrong, "uniform").pvalue < 1e-6
    spread = fit.simulate(2000, seed=2, effects="kept").var(axis=1) / fit.law.variance(fit.link, fit.centred[2])
    assert np.median(spread) == pytest.approx(1, abs=0.02)
    again = fit.refit(drawn[:, 0])
    assert again.fixed["x"] == pytest.approx(fit.fixed["x"], abs=5 * fit.se["x"])
    assert fit.update(". ~ . - x").family == name
    low, high = fit.intervals()[next(iter(fit.own))]
    assert low < np.exp(own) < high < 1.6 * low
    held = fit.prediction()
    assert 0.94 < ((held.lower[:, None] < drawn) & (drawn < held.upper[:, None])).mean() < 0.97


@pytest.mark.parametrize("unit", [1e-90, 1e-9, 1e9, 1e90])
def test_a_unit_of_amounts_moves_the_constant_alone(unit: float) -> None:
    data = rows("gamma")
    one, other = (dc.mixed(FORMULA, data | {"y": data["y"] * each}, family="gamma") for each in (1.0, unit))
    assert other.fixed["(Intercept)"] - np.log(unit) == pytest.approx(one.fixed["(Intercept)"], abs=1e-5)
    assert other.fixed["x"] == pytest.approx(one.fixed["x"], abs=1e-6)
    assert other.own["shape"] == pytest.approx(one.own["shape"], rel=1e-6)
    assert other.loglik == pytest.approx(one.loglik - len(data["y"]) * np.log(unit), abs=1e-5)


def test_small_amounts_beside_large_ones_keep_their_digits() -> None:
    """Red where responses are centred on the way: what is 1e-17 of the mean was zero, and refused."""
    data = rows("gamma")
    data["y"][3], data["y"][7] = 1e-9, 1e9
    fit = dc.mixed(FORMULA, data, family="gamma")
    np.testing.assert_array_equal(fit.response, data["y"])


def test_shares_and_their_rests_are_one_model() -> None:
    data = rows("beta")
    one, other = (dc.mixed(FORMULA, data | {"y": y}, family="beta") for y in (data["y"], 1 - data["y"]))
    assert other.loglik == pytest.approx(one.loglik, abs=1e-8)
    assert other.fixed == pytest.approx({name: -value for name, value in one.fixed.items()}, abs=1e-6)


@pytest.mark.parametrize("name", ["gamma", "beta"])
@pytest.mark.parametrize("own", [9.0, 14.0])
def test_responses_that_hardly_vary_have_an_interval_that_holds_the_estimate(name: str, own: float) -> None:
    """Red where ends are looked for within 12 logs of zero, as those of a negative binomial's size are."""
    fit = dc.mixed("y ~ x + (1 | g)", rows(name, own=own, many=72), family=name)
    (parameter, value), found = next(iter(fit.own.items())), fit.intervals()
    assert found[parameter][0] < value < found[parameter][1] < 3 * found[parameter][0]
    assert abs(np.log(value) - own) < 1


def test_residuals_are_over_the_spread_of_the_law() -> None:
    for name in LAWS:
        fit = dc.mixed(FORMULA, rows(name), family=name)
        spread = LAWS[name](fit.link, float(fit.centred[2][0])).std()
        np.testing.assert_allclose(fit.residuals("pearson"), (fit.response - fit.fitted) / spread, rtol=1e-8)
        np.testing.assert_allclose(fit.residuals(), fit.response - fit.fitted)
    with pytest.raises(FitError, check=about("kind")):
        fit.residuals("deviance")


def changed(name: str, value: float, at: tuple[int, ...] = (16, 40)) -> dict[str, Any]:
    data = rows(name)
    data["y"][list(at)] = value
    return data


@pytest.mark.parametrize(
    ("name", "value"),
    [("gamma", 0.0), ("gamma", -1.0), ("gamma", 1e200), ("gamma", 1e-200), ("beta", 0.0), ("beta", 1.0), ("beta", 1.2)],
)
def test_impossible_responses_are_refused_with_their_rows(name: str, value: float) -> None:
    with pytest.raises(DataError, check=about("formula", naming=("2 of 240 rows", "row 17"))):
        dc.mixed(FORMULA, changed(name, value), family=name)
    fit = dc.mixed(FORMULA, rows(name), family=name)
    with pytest.raises(DataError, check=about("formula", naming=("row 17",))):
        fit.refit(changed(name, value)["y"])


@names
def test_other_bad_responses_are_refused(name: str) -> None:
    data = rows(name)
    for value in (np.nan, np.inf):
        with pytest.raises(DataError):
            dc.mixed(FORMULA, changed(name, value), family=name)
    with pytest.warns(linear.MixedWarning):
        dropped = dc.mixed(FORMULA, changed(name, np.nan), family=name, missing="drop")
    assert dropped.rows == 238
    with pytest.raises(DataError):
        dc.mixed(FORMULA, data | {"y": data["y"] > 0.5}, family=name)
    with pytest.raises(Unidentified, check=about("formula")):
        dc.mixed(FORMULA, data | {"y": np.full(240, 0.5)}, family=name)
    exact = family(name).link.mean(0.1 + 0.3 * data["x"])
    with pytest.raises(Unidentified, check=about("formula")):
        dc.mixed(FORMULA, data | {"y": exact}, family=name)


@names
def test_what_has_no_answer_is_refused_by_name(name: str) -> None:
    weighted = dc.mixed(FORMULA, rows(name), family=name, weights="w")
    data, private = rows(name), {"gamma": "'gaussian'", "beta": "'binomial'"}[name]
    for of, ask in (
        ("weights", weighted.simulate),
        ("weights", weighted.prediction),
        ("method", lambda: weighted.confint(method="residual")),
        ("release", weighted.release),
        ("weights", lambda: dc.mixed(FORMULA, data | {"w": data["w"] * 1e6}, family=name, weights="w")),
        ("method", lambda: dc.mixed(FORMULA, data, family=name, method="REML")),
    ):
        with pytest.raises(DiscreetError, check=about(of)):
            ask()
    with pytest.raises(DiscreetError, check=about("family", naming=(private,))):
        dc.release_mixed("y ~ x", data, epsilon=1, public=["x"], bounds=(0, 1), family=name)


def test_exposures_are_of_amounts_and_not_of_shares() -> None:
    data, e = rows("gamma"), np.random.default_rng(1).uniform(0.5, 3, 240)
    plain = dc.mixed(FORMULA, data, family="gamma")
    exposed = dc.mixed(FORMULA, data | {"y": data["y"] * e, "e": e}, family="gamma", exposure="e")
    assert exposed.fixed == pytest.approx(plain.fixed, abs=1e-6)
    with pytest.raises(FitError, check=about("exposure")):
        dc.mixed(FORMULA, rows("beta") | {"e": e}, family="beta", exposure="e")


@names
def test_names_of_r_tables_comparisons_command_and_report(name: str, tmp_path: Path) -> None:
    data = rows(name)
    fit, smaller = dc.mixed(FORMULA, data, family=name), dc.mixed("y ~ 1 + (1 | g)", data, family=name)
    (own, value), path, page = next(iter(fit.own.items())), tmp_path / "d.csv", tmp_path / "fit.html"
    assert linear.compare(smaller, fit).models[1].p < 1e-6
    told = {row["term"]: row["estimate"] for row in fit.tidy().to_pylist() if row["effect"] == "parameter"}
    assert told == {own: value} and own in fit.summary() and fit.to_dict()["own"] == {own: value}
    assert lme4.sigma(fit) == pytest.approx(value if name == "beta" else value**-0.5)
    wald = lme4.confint(fit, method="Wald")["x"]
    assert lme4.confint(fit)["x"] == pytest.approx(wald, abs=0.05 * fit.se["x"] * 4)
    pyarrow.csv.write_csv(pa.table(data), path)
    app = typer.Typer()
    app.command()(command)
    asked = [FORMULA, str(path), "--family", name]
    done = CliRunner().invoke(app, [*asked, "--json", "--intervals", "--report", str(page)])
    found = json.loads(done.stdout)
    assert found["family"] == name and found["intervals"][own][0] < value < found["intervals"][own][1]
    assert "of counts are zero" not in page.read_text(encoding="utf-8")
    assert name in " ".join(CliRunner().invoke(app, ["--help"]).output.split())
