"""Simulated responses, refits, bootstraps and predictions of counts and shares, against laws, fits and the truth."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import integrate, stats

import discreet as dc
from discreet.models.linear import MixedWarning, compare
from discreet.models.linear.families.registry import family, fitted
from discreet.models.linear.general_fit import GeneralisedFit
from discreet.models.linear.predictive import quantiles
from discreet.words.errors import DataError, FitError
from faults_of import about

FORMULA = "y ~ x + (x | g) + (1 | h)"
OWN = {"negative-binomial": [0.4], "zero-inflated-poisson": [-0.8], "zero-inflated-negative-binomial": [0.4, -0.8]}


def rows(seed: int = 3, *, groups: int = 15, each: int = 12) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    g, h = np.repeat(np.arange(groups), each), rng.integers(0, 6, groups * each)
    x, e = rng.normal(size=len(g)), rng.uniform(0.5, 3, len(g))
    link = 0.5 + (0.5 + 0.3 * rng.normal(size=groups)[g]) * x + 0.6 * rng.normal(size=groups)[g]
    trials = rng.integers(1, 9, len(g))
    share = rng.binomial(trials, 1 / (1 + np.exp(-link))) / trials
    return {"y": rng.poisson(e * np.exp(link)), "x": x, "g": g, "h": h, "e": e, "share": share, "trials": trials}


@pytest.fixture(scope="module")
def fit() -> GeneralisedFit:
    return dc.mixed("y ~ x + (x | g)", rows(), family="poisson", exposure="e")


def test_a_refit_is_the_fit_of_the_new_response(fit: GeneralisedFit) -> None:
    y = fit.simulate(seed=2)[:, 0]
    fresh, again = dc.mixed(fit.formula, rows() | {"y": y}, family="poisson", exposure="e"), fit.refit(y)
    assert again.criterion == pytest.approx(fresh.criterion, rel=1e-10)
    np.testing.assert_allclose(again.beta, fresh.beta, rtol=1e-7)
    np.testing.assert_allclose(again.response, y)
    np.testing.assert_allclose(again.prediction().std_error, fresh.prediction().std_error, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::discreet.models.linear.MixedWarning")
def test_a_refit_says_itself_whether_it_is_singular(fit: GeneralisedFit) -> None:
    alike = fit.refit(np.tile([0.0, 1.0, 2.0], fit.rows // 3))
    assert alike.is_singular and len(alike.notes) == len(fit.notes) + 1 and not fit.is_singular
    assert alike.refit(fit.response).notes == fit.notes


def test_simulated_counts_have_the_models_moments(fit: GeneralisedFit) -> None:
    """Given the effects; and over them, where the mean of counts is exp of the link and half its variance."""
    draws = 4000
    kept = fit.simulate(draws, seed=1, effects="kept")
    assert np.abs((kept.mean(axis=1) - fit.fitted) / np.sqrt(fit.fitted / draws)).max() < 6
    new, data = fit.simulate(draws, seed=1), rows()
    Z = np.column_stack([np.ones(fit.rows), data["x"]])
    variance = np.einsum("ri,ij,rj->r", Z, fit.random[0].covariance, Z)
    mean = np.exp(fit.marginal + variance / 2)
    spread = mean + mean**2 * np.expm1(variance)
    off = (new.mean(axis=1) - mean) / np.sqrt(spread / draws)
    assert np.abs(off).max() < 8 and abs(off.mean()) < 1  # counts of one level move together
    np.testing.assert_array_equal(fit.simulate(2, seed=5), fit.simulate(2, seed=5))


@pytest.mark.parametrize("name", ["binomial", "negative-binomial", "zero-inflated-poisson"])
def test_other_families_draw_their_own_law(name: str) -> None:
    data, asked = rows(), {"family": name} | ({"weights": "trials"} if name == "binomial" else {})
    if name.startswith("zero"):
        data["y"] = np.where(np.random.default_rng(1).random(len(data["x"])) < 0.3, 0, data["y"])
    fit = dc.mixed(f"{'share' if name == 'binomial' else 'y'} ~ x + (1 | g)", data, **asked)
    drawn, mean = fit.simulate(4000, seed=1, effects="kept"), fit.fitted
    if name == "binomial":
        variance = mean * (1 - mean) / data["trials"]
    elif name == "negative-binomial":
        variance = mean + mean**2 / fit.own["size"]
    else:
        zeros = fit.own["extra zeros"]
        variance = mean * (1 + zeros / (1 - zeros) * mean)
    assert np.abs((drawn.mean(axis=1) - mean) / np.sqrt(variance / 4000)).max() < 6
    assert np.median(drawn.var(axis=1) / variance) == pytest.approx(1, abs=0.01)


def test_updates_keep_family_and_columns(fit: GeneralisedFit) -> None:
    without = fit.update(". ~ . - x")
    fresh = dc.mixed(without.formula, rows(), family="poisson", exposure="e")
    assert without.formula == "y ~ x + (x | g) - x" and without.criterion == fresh.criterion
    wide = fit.update("y ~ x + (1 | g)", family="negative-binomial")
    assert wide.family == "negative-binomial" and "size" in wide.own
    stored = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(stored.prediction().std_error, fit.prediction().std_error)
    with pytest.raises(FitError, check=about("data")):
        stored.update(". ~ . - x")
    assert fit.effects["g"]["3"] == dict(zip(("(Intercept)", "x"), fit.random[0].values[3], strict=True))


def test_the_parametric_bootstrap_is_near_the_wald_interval() -> None:
    fit = dc.mixed("y ~ x + (1 | g)", rows(), family="poisson", exposure="e")
    wald, drawn = fit.confint(method="wald"), fit.confint(method="parametric", replicates=120, seed=4)
    for name, (low, high) in wald.items():
        assert drawn[name] == pytest.approx((low, high), abs=0.3 * (high - low))
    few = {"method": "parametric", "replicates": 20, "seed": 4}
    assert fit.confint(**few) == fit.confint(**few)


def coverage(runs: int, replicates: int) -> tuple[np.ndarray, np.ndarray]:
    """How often intervals of intercept and slope hold the truth, and how often 0.6 times as wide ones do."""
    inside, narrow = np.zeros(2), np.zeros(2)
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        g, x = np.repeat(np.arange(30), 5), rng.normal(size=150)
        y = rng.poisson(np.exp(0.3 + 0.5 * x + 0.5 * rng.normal(size=30)[g]))
        fit = dc.mixed("y ~ x + (1 | g)", {"y": y, "x": x, "g": g}, family="poisson")
        ends = np.array(list(fit.confint(method="parametric", replicates=replicates, seed=seed).values()))
        off, half = np.abs(ends.mean(axis=1) - [0.3, 0.5]), np.ptp(ends, axis=1) / 2
        inside, narrow = inside + (off < half), narrow + (off < 0.6 * half)
    return inside / runs, narrow / runs


@pytest.mark.full_size
@pytest.mark.filterwarnings("ignore::discreet.models.linear.MixedWarning")
def test_the_parametric_bootstrap_covers() -> None:
    """Within three standard errors of 95 %, two points each; narrower intervals do not."""
    inside, narrow = coverage(120, 79)
    assert (np.abs(inside - 0.95) < 0.06).all()
    assert (narrow < 0.85).all()


@pytest.mark.parametrize("name", [name for name in fitted() if family(name).counts or family(name).trials])
@pytest.mark.parametrize(("eta", "error"), [(0.4, 0.3), (-3.0, 1.2), (9.0, 0.05)])
def test_intervals_of_new_responses_are_those_of_their_law(name: str, eta: float, error: float) -> None:
    """The ends are the first whole numbers whose probabilities, integrated over the error, suffice."""
    own, trials = np.array(OWN.get(name, [])), 7

    def below(k: float) -> float:
        if k < 0:
            return 0.0
        zeros = 1 / (1 + np.exp(-own[-1])) if name.startswith("zero") else 0.0

        def given(z: float) -> float:
            link = eta + error * z
            if name == "binomial":
                return stats.binom.cdf(k, trials, 1 / (1 + np.exp(-link)))
            if "negative" in name:
                size = np.exp(own[0])
                return stats.nbinom.cdf(k, size, size / (size + np.exp(link)))
            return stats.poisson.cdf(k, np.exp(link))

        whole = integrate.quad(lambda z: given(z) * stats.norm.pdf(z), -9, 9, limit=400, points=[0], epsabs=1e-10)[0]
        return zeros + (1 - zeros) * whole

    ends = quantiles(family(name), np.array([eta]), np.array([error]), own, np.array([float(trials)]), 0.9)
    for end, wanted in zip(ends, (0.05, 0.95), strict=True):
        k = np.rint(end[0] * (trials if name == "binomial" else 1))
        assert below(k) >= wanted - 1e-6 and below(k - 1) < wanted + 1e-6


def test_intervals_of_new_responses_hold() -> None:
    """Counts drawn with the fitted effects, and with new ones for the fixed part alone."""
    fit = dc.mixed("y ~ x + (1 | g)", rows(groups=40), family="poisson", exposure="e")
    for effects, level in (("kept", "conditional"), ("new", "marginal")):
        drawn, told = fit.simulate(300, seed=1, effects=effects).T, fit.prediction(level=level)
        held = ((told.lower <= drawn) & (drawn <= told.upper)).mean()
        assert 0.94 < held < 0.99
    means = fit.prediction(kind="confidence")
    assert (means.lower < fit.fitted).all() and (fit.fitted < means.upper).all()
    link = fit.prediction(kind="confidence", scale="link")
    np.testing.assert_allclose(np.exp(link.upper), means.upper)
    np.testing.assert_allclose(link.upper - link.value, 1.959963985 * link.std_error)


def test_true_and_false_are_outcomes() -> None:
    data = rows()
    told = dc.mixed("b ~ x + (1 | g)", data | {"b": (data["y"] > 1) * 1}, family="binomial")
    for table in (data | {"b": data["y"] > 1}, pa.table(data | {"b": data["y"] > 1})):
        fit = dc.mixed("b ~ x + (1 | g)", table, family="binomial")
        assert fit.criterion == told.criterion and fit.update("b ~ 1 + (1 | g)").names == ("(Intercept)",)
    with pytest.raises(DataError, check=about("formula")):
        dc.mixed("b ~ x + (1 | g)", data | {"b": data["y"] > 1}, family="poisson")


def test_bad_questions_are_refused(fit: GeneralisedFit) -> None:
    counted = dc.mixed("y ~ x + (1 | g)", rows(), family="poisson", weights="trials")
    with pytest.warns(MixedWarning):
        halves = dc.mixed(
            "share ~ x + (1 | g)", rows() | {"trials": rows()["trials"] / 2}, family="binomial", weights="trials"
        )
    for kind, of, ask in (
        (DataError, "count", lambda: fit.simulate(0)),
        (DataError, "effects", lambda: fit.simulate(effects="old")),
        (DataError, "y", lambda: fit.refit(np.zeros(3))),
        (DataError, "formula", lambda: fit.refit(np.full(fit.rows, 0.5))),
        (DataError, "formula", lambda: fit.refit(np.full(fit.rows, -1.0))),
        (FitError, "replicates", lambda: fit.confint(method="parametric", replicates=3)),
        (DataError, "method", lambda: fit.confint(method="residual")),
        (FitError, "level", lambda: fit.confint(level=2)),
        (DataError, "coverage", lambda: fit.prediction(coverage=0)),
        (DataError, "kind", lambda: fit.prediction(scale="link")),
        (DataError, "scale", lambda: fit.prediction(scale="log")),
        (FitError, "weights", counted.simulate),
        (FitError, "weights", halves.prediction),
        (DataError, "trials", lambda: dc.mixed("y ~ x + (1 | g)", rows(), trials="trials")),
    ):
        with pytest.raises(kind, check=about(of)):
            ask()


def test_intervals_of_variances_end_where_the_likelihood_has_fallen() -> None:
    """With the standard deviation at an end, the rest fitted by a search of its own lacks half the quantile.

    Red before: fits of counts had no `intervals`.
    """
    from scipy.optimize import minimize

    from discreet.models.linear.laplace import laplace

    data = rows(groups=12, each=8)
    fit = dc.mixed("y ~ x + (1 | g) + (0 + x | g)", data, family="negative-binomial", exposure="e")
    found = fit.intervals(level=0.9)
    assert list(found) == ["sd_(Intercept)|g", "sd_x|g", "size"]
    problem = fit.fitted_rows.problem(fit.response, fit.law)
    for end in found["sd_x|g"]:
        if end > 0:
            start = np.concatenate([fit.centred[0][fit.fitted_rows.kept], fit.theta[:1], fit.centred[2]])
            least = minimize(
                lambda v, end=end: laplace(problem, v[:2], np.array([v[2], end]), v[3:])[0],
                start,
                method="Nelder-Mead",
                options={"xatol": 1e-7, "fatol": 1e-9, "maxiter": 4000},
            ).fun
            assert 2 * least - fit.criterion == pytest.approx(2.705543454, abs=1e-4)
    assert found["size"][0] < fit.own["size"] < found["size"][1]
    with pytest.raises(FitError, check=about("formula")):
        dc.mixed("y ~ x + (x | g)", data, family="poisson", exposure="e").intervals()
    with pytest.raises(FitError, check=about("level")):
        fit.intervals(level=95)


@pytest.mark.filterwarnings("ignore::discreet.models.linear.MixedWarning")
def test_a_variance_of_zero_has_an_interval_from_zero() -> None:
    rng = np.random.default_rng(1)
    data = {"y": rng.poisson(3.0, 90), "g": np.arange(90) % 9}
    low, high = dc.mixed("y ~ 1 + (1 | g)", data, family="poisson").intervals()["sd_(Intercept)|g"]
    assert low == 0 and 0.05 < high < 0.6


def test_residuals_have_the_spread_that_their_law_says(fit: GeneralisedFit) -> None:
    """Red before: fits of counts had no residuals. The roots of the deviance add up to it."""
    poisson = fit.residuals("pearson")
    np.testing.assert_allclose(poisson, (fit.response - fit.fitted) / np.sqrt(fit.fitted))
    assert np.sum(fit.residuals("deviance") ** 2) == pytest.approx(
        2
        * np.sum(
            stats.poisson.logpmf(fit.response, np.maximum(fit.response, 1e-300))
            - stats.poisson.logpmf(fit.response, fit.fitted)
        )
    )
    drawn = fit.simulate(3000, seed=1, effects="kept")
    assert np.mean((drawn - fit.fitted[:, None]) ** 2 / fit.fitted[:, None]) == pytest.approx(1, abs=0.02)
    wide = dc.mixed("y ~ x + (1 | g)", rows(), family="zero-inflated-poisson")
    with pytest.raises(FitError, check=about("kind")):
        wide.residuals("deviance")
    with pytest.raises(DataError, check=about("kind")):
        wide.residuals("marginal")  # type: ignore[arg-type]
    assert np.isfinite(wide.residuals("pearson")).all()


def test_questions_that_fits_of_counts_cannot_answer_are_refused_by_name(fit: GeneralisedFit) -> None:
    """Red before: `residual` was "not known", and words in a refit, a comparison or an update ended in raw errors."""
    linear = dc.mixed("y ~ x + (1 | g)", rows())
    quadrature = dc.mixed("y ~ x + (1 | g)", rows(), family="poisson", points=5)
    plain = dc.mixed("y ~ x + (1 | g)", rows(), family="poisson")
    for kind, of, ask in (
        (DataError, "method", lambda: fit.confint(method="residual")),
        (DataError, "y", lambda: fit.refit(["a"] * fit.rows)),
        (DataError, "y", lambda: linear.refit(["a"] * linear.rows)),
        (DataError, "family", lambda: linear.update(family="poisson")),
        (FitError, "fits", lambda: compare(linear, "linear")),
        (FitError, "fits", lambda: compare(plain, quadrature)),
    ):
        with pytest.raises(kind, check=about(of)):
            ask()


@pytest.mark.filterwarnings("ignore::discreet.models.linear.MixedWarning")
def test_rows_without_weights_or_offset_are_dropped_where_that_is_declared() -> None:
    """Red before: only columns of the formula counted as missing."""
    data = rows()
    holes = data | {name: np.where(np.arange(len(data["x"])) < 5, np.nan, data[name]) for name in ("e", "trials")}
    rest = {name: values[5:] for name, values in data.items()}
    for formula, asked in (
        ("y ~ x + (1 | g)", {"family": "poisson", "exposure": "e"}),
        ("y ~ x + (1 | g)", {"family": "poisson", "offset": "e"}),
        ("share ~ x + (1 | g)", {"family": "binomial", "weights": "trials"}),
        ("y ~ x + (1 | g)", {"weights": "e"}),
    ):
        with pytest.raises(DataError):
            dc.mixed(formula, holes, **asked)
        found = dc.mixed(formula, holes, missing="drop", **asked)
        assert found.criterion == pytest.approx(dc.mixed(formula, rest, **asked).criterion, rel=1e-10)


def test_a_prediction_without_effects_needs_no_groups(fit: GeneralisedFit) -> None:
    """As lme4's with `re.form = NA`. Red before: the column of groups was asked for."""
    linear, new = dc.mixed("y ~ x + (x | g)", rows()), {"x": [0.3, -1.0]}
    for each in (fit, linear):
        whole = each.predict(new | {"g": [1, 2]}, level="marginal")
        np.testing.assert_array_equal(each.predict(new, level="marginal"), whole)
        with pytest.raises(DataError, check=about("data")):
            each.predict(new)
