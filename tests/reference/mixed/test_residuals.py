"""Residual variances by stratum and autoregressive residuals, against nlme and glmmTMB (`residuals.R` made all)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import discreet as dc
from discreet.models.linear import compare
from discreet.words.errors import DataError, DiscreetError, FitError
from faults_of import about

HERE = Path(__file__).parent
PUBLISHED = json.loads((HERE / "residuals.json").read_text())
DATA = pl.read_csv(HERE / "residuals.csv")
CLOSE = 1e-5
OF_VARIANCES = 2e-5  # nlme ends its search by the change of the likelihood, which is flat there


@pytest.mark.parametrize("theirs", PUBLISHED["fits"], ids=lambda each: f"{each['formula']} {each['asked']}")
def test_fits_are_nlmes(theirs: dict[str, Any]) -> None:
    fit = dc.mixed(theirs["formula"], DATA, method=theirs["method"], **theirs["asked"])
    assert fit.loglik >= theirs["loglik"] - 1e-7
    assert fit.loglik == pytest.approx(theirs["loglik"], abs=1e-5)
    assert list(fit.names) == theirs["names"]
    np.testing.assert_allclose(fit.beta, theirs["fixef"], rtol=CLOSE, atol=CLOSE)
    np.testing.assert_allclose(list(fit.se.values()), theirs["se"], rtol=CLOSE)
    np.testing.assert_allclose(fit.fitted[:3], theirs["fitted"], rtol=CLOSE)
    np.testing.assert_allclose(fit.random[0].values[0], theirs["u"], rtol=10 * CLOSE, atol=CLOSE)
    np.testing.assert_allclose(fit.random[0].covariance, theirs["covariance"], rtol=10 * OF_VARIANCES, atol=CLOSE)
    if theirs["sds"]:
        mine = {name.removeprefix("Residual: "): value**0.5 for name, value in fit.variances.items() if ":" in name}
        assert {name: mine[name] for name in theirs["sds"]} == pytest.approx(theirs["sds"], rel=OF_VARIANCES)
    if theirs["rho"]:
        assert fit.autocorrelation == pytest.approx(theirs["rho"], rel=OF_VARIANCES)
    assert fit.aic == pytest.approx(theirs["aic"], rel=1e-8)


def test_crossed_terms_have_glmmtmbs_numbers() -> None:
    theirs = PUBLISHED["crossed"]
    fit = dc.mixed("y ~ x + (1 | g) + (1 | h)", DATA, method="ML", residual_by="b")
    assert fit.loglik == pytest.approx(theirs["loglik"], abs=1e-6)
    np.testing.assert_allclose(fit.beta, theirs["fixef"], rtol=CLOSE)
    found = list(fit.variances.values())
    np.testing.assert_allclose(found, [*theirs["random"], *theirs["variances"]], rtol=5 * CLOSE)


def test_a_likelihood_ratio_tells_whether_variances_differ() -> None:
    plain, strata = dc.mixed("y ~ x + (1 | g)", DATA), dc.mixed("y ~ x + (1 | g)", DATA, residual_by="b")
    found = compare(plain, strata).models[1]
    assert found.df == 1
    assert found.chisq == pytest.approx(PUBLISHED["ratio"]["chisq"], rel=CLOSE)
    assert found.p == pytest.approx(PUBLISHED["ratio"]["p"], rel=1e-4)


@pytest.mark.filterwarnings("ignore::discreet.models.linear.MixedWarning")
def test_slopes_are_those_of_differences() -> None:
    from discreet.models.linear import sparse
    from discreet.models.linear.pencil import combined

    crossed = "y ~ x + (x | g) + (1 | a)"
    for asked in ({"residual_by": "b"}, {"series": ["g", "a"], "time": "t"}):
        held = dc.mixed(crossed, DATA, **asked).residual
        assert held is not None
        theta, free = np.array([0.6, 0.1, 0.3, 0.4]), held.free + 0.2

        def value(at: Any, held: Any = held) -> float:
            weights = held.law.weights(at[4:])
            found = sparse.eliminate(combined(held.parts, weights.of_parts), at[:4])
            return sparse.criterion(found, reml=True)[0] + weights.logdet

        weights = held.law.weights(free)
        whole = sparse.eliminate(combined(held.parts, weights.of_parts), theta)
        in_theta, in_parts = sparse.slopes(whole, held.parts, reml=True)
        mine = np.append(in_theta, weights.slopes @ in_parts + weights.logdet_slopes)
        at, step = np.append(theta, free), 1e-5
        moved = [(value(at + step * e) - value(at - step * e)) / (2 * step) for e in np.eye(len(at))]
        np.testing.assert_allclose(mine, moved, rtol=1e-5, atol=1e-4)


def test_autoregression_has_the_density_of_its_covariance_matrix() -> None:
    fit = dc.mixed("z2 ~ x + (1 | g) + (1 | a)", DATA, method="ML", series=["g", "a"], time="t")
    names = DATA["g"].to_numpy(), DATA["a"].to_numpy()
    same = [name[:, None] == name for name in names]
    apart = np.abs(DATA["t"].to_numpy()[:, None] - DATA["t"].to_numpy())
    rho = fit.autocorrelation
    assert rho is not None
    V = fit.sigma2 * np.where(same[0] & same[1], rho**apart, 0.0)
    V += sum(fit.variances[name] * alike for name, alike in zip(("g", "a"), same, strict=True))
    left = DATA["z2"].to_numpy() - fit.predict(level="marginal")
    density = -2 * (-0.5 * (np.linalg.slogdet(2 * np.pi * V)[1] + left @ np.linalg.solve(V, left)))
    assert fit.criterion == pytest.approx(density, rel=1e-10)
    drawn = fit.simulate(300, effects="kept", seed=3) - fit.fitted[:, None]
    wanted = fit.sigma2 * np.where(same[0] & same[1], rho**apart, 0.0)
    assert np.abs(np.cov(drawn) - wanted).max() < 6 * fit.sigma2 * np.sqrt(2 / 300)


def test_an_update_keeps_the_law_and_predictions_know_it() -> None:
    fit = dc.mixed("y ~ x + (1 | g)", DATA, residual_by="b")
    assert fit.update(". ~ . + a").parameters == fit.parameters + 2
    one, two = (DATA.head(1).with_columns(b=pl.lit(level)) for level in ("one", "two"))
    wide = [float(np.ptp([p.lower, p.upper])) for p in (fit.prediction(one), fit.prediction(two))]
    assert wide[1] > 1.5 * wide[0]
    assert "autocorrelation" not in fit.to_dict()
    assert "Residual: two" in fit.to_dict()["variances"]
    assert "a variance for each level of b" in fit.summary()
    series = dc.mixed("z2 ~ x + (1 | g)", DATA, series="g", time="t")
    assert series.to_dict()["autocorrelation"] == series.autocorrelation
    assert "one period apart" in series.summary()
    assert np.isinf(series.tests()["x"].df)


LAWS: list[tuple[str, dict[str, Any]]] = [
    ("y ~ x + (1 | g) + (1 | h)", {"residual_by": "b"}),
    ("z2 ~ x + b + (1 | g)", {"series": ["g"], "time": "t"}),
]


def test_profiles_of_strata_are_glmmtmbs() -> None:
    fit = dc.mixed("y ~ x + (1 | g) + (1 | h)", DATA, residual_by="b")
    for name, theirs in PUBLISHED["profile"].items():
        assert fit.confint()[name] == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize(("formula", "asked"), LAWS)
def test_a_profile_ends_where_the_likelihood_has_fallen(formula: str, asked: dict[str, Any]) -> None:
    """With x held at an end, the response less its part is fitted without x: all else is estimated anew."""
    fit = dc.mixed(formula, DATA, method="ML", **asked)
    name = formula.split()[0]
    for end in fit.confint(level=0.9)["x"]:
        held = DATA.with_columns((pl.col(name) - end * pl.col("x")).alias(name))
        without = dc.mixed(formula.replace("x + ", "1 + "), held, method="ML", **asked)
        assert 2 * (fit.loglik - without.loglik) == pytest.approx(2.705543454, abs=1e-6)


@pytest.mark.parametrize("method", ["REML", "ML"])
@pytest.mark.parametrize(("formula", "asked"), LAWS)
def test_refits_are_fits_of_the_other_responses(formula: str, asked: dict[str, Any], method: Any) -> None:
    fit = dc.mixed(formula, DATA, method=method, **asked)
    drawn = fit.simulate(1, seed=3)[:, 0]
    mine = fit.refit(drawn)
    new = DATA.with_columns(pl.Series(formula.split()[0], drawn))
    theirs = dc.mixed(formula, new, method=method, **asked)
    np.testing.assert_allclose(mine.beta, theirs.beta, rtol=1e-8)
    assert mine.loglik == pytest.approx(theirs.loglik, abs=1e-8)
    assert mine.variances == pytest.approx(theirs.variances, rel=1e-6)
    assert mine.autocorrelation == pytest.approx(theirs.autocorrelation, rel=1e-6)
    np.testing.assert_allclose(mine.residual_variances(), theirs.residual_variances(), rtol=1e-6)
    again = mine.refit(fit.response)
    np.testing.assert_allclose(again.beta, fit.beta, rtol=1e-8)


@pytest.mark.parametrize(("replicates", "off"), [(20, 0.7), pytest.param(300, 0.15, marks=pytest.mark.full_size)])
@pytest.mark.parametrize(("formula", "asked"), LAWS)
def test_a_bootstrap_draws_from_the_law_and_fits_it(
    formula: str, asked: dict[str, Any], replicates: int, off: float
) -> None:
    fit = dc.mixed(formula, DATA, **asked)
    drawn, wald = fit.confint(method="parametric", replicates=replicates, seed=1), fit.confint(method="wald")
    for name, (low, high) in drawn.items():
        assert high - low == pytest.approx(wald[name][1] - wald[name][0], rel=off)
        assert low < fit.fixed[name] < high


@pytest.mark.parametrize(
    ("asked", "of"),
    [
        ({"residual_by": "nowhere"}, "residual_by"),
        ({"residual_by": "x"}, "residual_by"),
        ({"residual_by": "b", "weights": "x"}, "residual_by"),
        ({"residual_by": "b", "series": "g", "time": "t"}, "series"),
        ({"residual_by": "b", "family": "poisson"}, "residual_by"),
        ({"series": "g"}, "time"),
        ({"time": "t"}, "series"),
        ({"series": "g", "time": "x"}, "time"),
        ({"series": "h", "time": "t"}, "series"),
        ({"series": ["s", "t"], "time": "t"}, "series"),
        ({"series": "g", "time": "t", "prior": {"nu": 12}}, "series"),
    ],
)
def test_what_is_no_law_is_refused(asked: dict[str, Any], of: str) -> None:
    with pytest.raises(DiscreetError, check=about(of)):
        dc.mixed("y ~ x + (1 | g)", DATA, **asked)


def test_what_knows_one_variance_only_is_refused() -> None:
    fit = dc.mixed("y ~ x + (1 | g)", DATA, residual_by="b")
    for ask in (fit.intervals, lambda: fit.release(epsilon=1)):
        with pytest.raises(FitError, check=about("residual_by")):
            ask()
    series = dc.mixed("z2 ~ x + (1 | g)", DATA, series="g", time="t")
    with pytest.raises(FitError, check=about("series")):
        series.confint(method="residual")
    with pytest.raises(DataError, check=about("data")):
        fit.prediction(DATA.head(2).with_columns(b=pl.lit("three")))
