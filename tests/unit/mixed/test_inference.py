"""Bootstraps, predictions, simulated responses and refits, against closed forms and against the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.models.linear import MixedFit, MixedWarning, compare
from discreet.models.linear.bootstrap import among, with_response
from discreet.models.linear.inference import gram_of_fit
from discreet.models.linear.intervals import percentiles
from discreet.words.errors import DataError, FitError, FormulaError, Unidentified
from faults_of import about

FORMULA = "y ~ x + (x | g) + (1 | h)"


def rows(seed: int = 3, *, wild: bool = False, groups: int = 40, each: int = 12) -> dict[str, Any]:
    """Rows of a known model; `wild` ones have residuals whose scale differs by group and by x."""
    rng = np.random.default_rng(seed)
    g = np.repeat(np.arange(groups), each)
    x = rng.normal(size=len(g)) + 0.5 * rng.normal(size=groups)[g]
    scale = np.exp(0.8 * rng.normal(size=groups))[g] * (0.3 + np.abs(x)) if wild else 1.0
    h = rng.integers(0, 6, len(g))
    slope = 0.5 if wild else 0.5 + 0.6 * rng.normal(size=groups)[g]
    y = 1 + slope * x + 0.9 * rng.normal(size=groups)[g] + scale * rng.normal(size=len(g))
    return {"y": y + (0 if wild else rng.normal(size=6)[h]), "x": x, "g": g, "h": h}


@pytest.fixture(scope="module")
def fit() -> MixedFit:
    return dc.mixed(FORMULA, rows(groups=15))


def test_a_refit_is_the_fit_of_the_new_response(fit: MixedFit) -> None:
    y = fit.simulate(seed=2)[:, 0]
    fresh, again = dc.mixed(FORMULA, rows(groups=15) | {"y": y}), fit.refit(y)
    assert again.criterion == pytest.approx(fresh.criterion, rel=1e-9)
    np.testing.assert_allclose(again.beta, fresh.beta, rtol=1e-4)
    np.testing.assert_allclose(again.response, y)
    np.testing.assert_allclose(again.fitted, fresh.fitted, atol=1e-3)
    one = dc.mixed("y ~ x + (1 | g)", rows(groups=15))
    assert one.refit(y).criterion == pytest.approx(
        dc.mixed("y ~ x + (1 | g)", rows(groups=15) | {"y": y}).criterion, rel=1e-9
    )


def test_sums_of_the_same_response_are_the_same(fit: MixedFit) -> None:
    found, known = with_response(fit, fit.response)[0], gram_of_fit(fit)
    np.testing.assert_allclose(found.joint, known.joint, rtol=1e-9, atol=1e-9)
    for mine, theirs in zip(found.Zxy, known.Zxy, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)


def test_simulated_responses_have_the_models_moments() -> None:
    fit = dc.mixed("y ~ x + (1 | g)", rows(groups=15))
    drawn = fit.simulate(4000, seed=1)
    spread = fit.variances["g"] + fit.sigma2
    assert np.abs(drawn.mean(axis=1) - fit.predict(level="marginal")).max() < 6 * np.sqrt(spread / 4000)
    assert drawn.var(axis=1).mean() == pytest.approx(spread, rel=0.02)
    kept = fit.simulate(4000, seed=1, effects="kept")
    assert kept.var(axis=1).mean() == pytest.approx(fit.sigma2, rel=0.02)


def test_errors_of_predictions_are_the_dense_algebra() -> None:
    data = rows(groups=15)
    fit = dc.mixed("y ~ x + (x | g)", data)
    X = np.column_stack([np.ones(len(data["x"])), data["x"]])
    Z = (np.eye(15)[data["g"]][:, :, None] * X[:, None, :]).reshape(len(X), -1)
    G = np.kron(np.eye(15), fit.random[0].covariance)
    left = np.concatenate([X, Z], axis=1)
    system = left.T @ left / fit.sigma2
    system[2:, 2:] += np.linalg.inv(G)
    C = np.linalg.inv(system)
    found = fit.prediction(kind="confidence")
    np.testing.assert_allclose(found.std_error**2, np.einsum("ri,ij,rj->r", left, C, left), rtol=1e-5)
    np.testing.assert_allclose(found.value, fit.fitted)
    new = fit.prediction({"x": [0.4], "g": [99]})
    x = np.array([1, 0.4])
    expected = x @ (C[:2, :2] + fit.random[0].covariance) @ x
    assert new.std_error[0] ** 2 == pytest.approx(expected, rel=1e-5)
    assert (new.upper - new.value)[0] == pytest.approx(1.959964 * np.sqrt(expected + fit.sigma2), rel=1e-5)


def test_the_parametric_bootstrap_is_near_the_wald_interval() -> None:
    fit = dc.mixed("y ~ x + (1 | g)", rows())
    wald, drawn = fit.confint(method="wald"), fit.confint(method="parametric", replicates=300, seed=4)
    for name, (low, high) in wald.items():
        assert drawn[name] == pytest.approx((low, high), abs=0.25 * (high - low))
    assert fit.confint(method="parametric", replicates=20, seed=4) == fit.confint(
        method="parametric", replicates=20, seed=4
    )


@pytest.mark.full_size
@pytest.mark.filterwarnings("ignore::discreet.models.linear.MixedWarning")
def test_the_residual_bootstrap_covers_where_variances_differ() -> None:
    """Within two points of 95 % under heteroskedastic errors; the Wald interval of the same fits does not cover."""
    inside = {"residual": 0, "wald": 0}
    runs = 2000
    for seed in range(runs):
        fit = dc.mixed("y ~ x + (1 | g)", rows(seed, wild=True))
        for method in inside:
            low, high = fit.confint(method=method, replicates=399, seed=seed)["x"]
            inside[method] += low < 0.5 < high
    assert abs(inside["residual"] / runs - 0.95) < 0.02
    assert inside["wald"] / runs < 0.9


def uneven(kind: str, seed: int) -> dict[str, Any]:
    """Errors with heavy tails whose spread follows x and differs by group; in some kinds more is against the model."""
    rng = np.random.default_rng([77, seed])
    G = 15 if kind == "few groups" else 40
    sizes = np.full(G, 8)
    if kind == "sizes by Pareto":
        sizes = np.clip(3 * (rng.pareto(1.2, G) + 1), 2, 80).astype(int)
    g = np.repeat(np.arange(G), sizes)
    x, k = rng.normal(size=len(g)) + 0.5 * rng.normal(size=G)[g], rng.integers(0, 2, G)[g]
    slope = 0.5 + (0.4 * rng.normal(size=G)[g] if kind == "slopes differ" else 0.0)
    spread = np.exp(0.5 * x + 0.4 * rng.normal(size=G)[g])
    effect = 0.7 * rng.normal(size=G)[g] * (1 + k)
    return {
        "y": 1 + slope * x + 0.3 * k + effect + spread * rng.standard_t(5, len(g)) * np.sqrt(0.6),
        "x": x,
        "k": k,
        "g": g,
    }


@pytest.mark.full_size
@pytest.mark.filterwarnings("ignore::discreet.models.linear.MixedWarning")
@pytest.mark.parametrize("kind", ["many groups", "few groups", "sizes by Pareto", "slopes differ"])
def test_the_residual_bootstrap_covers_on_other_designs(kind: str) -> None:
    """Intercept, a column within groups and one of groups: two points from 95 % and two standard errors at most."""
    runs, truth, inside = 1000, np.array([1.0, 0.5, 0.3]), {"residual": np.zeros(3), "wald": np.zeros(3)}
    for seed in range(runs):
        fit = dc.mixed("y ~ x + k + (1 | g)", uneven(kind, seed))
        for method, counted in inside.items():
            ends = np.array(list(fit.confint(method=method, replicates=399, seed=seed).values()))  # type: ignore[arg-type]
            counted += (ends[:, 0] < truth) & (truth < ends[:, 1])
    assert (np.abs(inside["residual"] / runs - 0.95) < 0.02 + 2 * np.sqrt(0.95 * 0.05 / runs)).all(), inside["residual"]
    assert inside["wald"][1] / runs < 0.9


def test_update_writes_the_formula_that_r_would(fit: MixedFit) -> None:
    data = rows(groups=15)
    found = fit.update(". ~ . - 1", data)
    assert found.formula == f"{FORMULA} - 1" and found.names == ("x",)
    assert fit.update(method="ML", data=data).method == "ML"
    with pytest.raises(FormulaError, check=about("formula")):
        fit.update("x + z")


def test_bad_questions_are_refused(fit: MixedFit) -> None:
    for kind, of, ask in (
        (FitError, "contrast", lambda: fit.contrast({"nothing": 1})),
        (FitError, "level", lambda: fit.confint(level=2)),
        (FitError, "replicates", lambda: fit.confint(method="parametric", replicates=3)),
        (FitError, "group", lambda: fit.confint(method="wald", group="g")),
        (FitError, "group", lambda: fit.confint(method="residual", group="nowhere")),
        (DataError, "y", lambda: fit.refit(np.zeros(3))),
        (DataError, "coverage", lambda: fit.prediction(coverage=0)),
        (FitError, "fits", lambda: compare(fit)),
        (FitError, "fits", lambda: compare(fit, dc.mixed("x ~ 1 + (1 | g)", rows(groups=15)))),
    ):
        with pytest.raises(kind, check=about(of)):
            ask()
    few = dc.mixed("y ~ x + (1 | g)", rows(groups=4))
    with pytest.raises(Unidentified, check=about("group")):
        few.confint(method="residual")


def test_a_response_that_columns_explain_exactly_has_no_profile() -> None:
    data = rows(groups=15)
    exact = data | {"y": 1.5 * data["x"] + data["g"]}
    with pytest.warns(MixedWarning):
        fit = dc.mixed("y ~ x + (1 | g)", exact)
    with pytest.raises(FitError, check=about("method")):
        fit.confint(method="profile")


@pytest.mark.parametrize("replicates", [39, 99, 999])
def test_the_ends_of_draws_hold_one_more_draw_as_often_as_they_say(replicates: int) -> None:
    """A new draw has any rank among the others alike: R's type 6, as of boot.ci. NumPy's own rule held 93.1 % of 99."""
    [(low, high)] = percentiles(np.arange(1.0, replicates + 1)[:, None], 0.95)
    assert (high - low) / (replicates + 1) == pytest.approx(0.95, abs=1e-12)
    assert among(np.arange(1.0, replicates + 1), 0.95) == pytest.approx(0.95 * (replicates + 1))
    assert low == pytest.approx(0.025 * (replicates + 1)) and high == pytest.approx(0.975 * (replicates + 1))


def test_a_comparison_of_models_that_are_not_nested_says_so() -> None:
    """Red before: a negative chi-squared, p = 1 and no word; R has 0 for it."""
    data = rows()
    data["z"] = np.random.default_rng(1).normal(size=len(data["y"]))
    far = dc.mixed("y ~ z + I(z^2) + (1 | h)", data)
    near = dc.mixed("y ~ x + (1 | g)", data)
    with pytest.warns(MixedWarning):
        found = compare(near, far)
    assert found.models[1].chisq == 0
    assert found.models[1].p == 1
    assert len(found.notes) == 1
    assert found.notes[0] in str(found)
    with pytest.warns(MixedWarning):
        same = compare(near, dc.mixed("y ~ z + (1 | g)", data))
    assert same.models[1].df == 0
    assert same.models[1].p is None
    assert same.tidy().num_rows == 1
    with pytest.warns(MixedWarning):
        assert compare(dc.mixed("y ~ z + (1 | g)", data), dc.mixed("y ~ x + (x | g)", data)).notes
    assert not compare(near, dc.mixed("y ~ x + z + (x | g)", data)).notes


@pytest.mark.parametrize("weights", [{"x": 0}, {"x": float("nan")}, {"x": float("inf")}])
def test_a_contrast_of_nothing_is_refused(fit: MixedFit, weights: dict[str, float]) -> None:
    """Red before: NaN."""
    with pytest.raises(FitError, check=about("contrast")):
        fit.contrast(weights)


def test_satterthwaites_intervals_are_not_of_several_variances() -> None:
    """Red before: Wald's, without a word."""
    data = rows(groups=15)
    strata = dc.mixed("y ~ x + (1 | g)", data, residual_by="h")
    with pytest.raises(FitError, check=about("residual_by")):
        strata.confint(method="satterthwaite")
    assert strata.tests()["x"].df == np.inf


def test_a_release_says_that_it_has_treatment_contrasts() -> None:
    """Red before: no word."""
    data = rows(groups=15) | {"k": np.array(["a", "b", "c"])[np.arange(180) % 3]}
    asked: dict[str, Any] = {"epsilon": 5.0, "public": ["k", "g"], "bounds": (-5, 5)}
    with pytest.warns(MixedWarning):
        released = dc.mixed("y ~ k + (1 | g)", data, contrasts="sum").release(**asked)
    assert any("treatment contrasts" in note for note in released.notes)
    plain = dc.mixed("y ~ k + (1 | g)", data).release(**asked)
    assert plain.names == released.names
    assert not any("treatment contrasts" in note for note in plain.notes)
