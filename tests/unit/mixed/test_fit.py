from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.models.linear import MixedFit, MixedWarning, mixed
from discreet.words.errors import DataError, FitError
from faults_of import about

ONE = "y ~ 0 + industry + t + (1 | g)"
SEVERAL = "y ~ industry + t + (t | g) + (1 | h)"


@pytest.fixture(scope="module")
def fit(panel: dict) -> MixedFit:
    return mixed(ONE, panel)


@pytest.fixture(scope="module")
def several(panel: dict) -> MixedFit:
    return mixed(SEVERAL, panel)


def test_a_fit_is_the_dense_algebra(fit: MixedFit, dense: tuple) -> None:
    y, X, Z = dense
    ratio = fit.variances["g"] / fit.sigma2
    V = np.eye(len(y)) + ratio * Z @ Z.T
    W = np.linalg.inv(V)
    inner = np.linalg.inv(X.T @ W @ X)
    P = W - W @ X @ inner @ X.T @ W
    assert fit.beta == pytest.approx(inner @ X.T @ W @ y, rel=1e-8)
    assert np.diag(fit.covariance) == pytest.approx(np.diag(inner) * fit.sigma2, rel=1e-6)
    np.testing.assert_allclose(fit.random[0].values[:, 0], ratio * Z.T @ P @ y, atol=1e-9)
    np.testing.assert_allclose(fit.residuals(), P @ y, atol=1e-9)
    np.testing.assert_allclose(fit.residuals("marginal"), y - X @ fit.beta, atol=1e-9)
    np.testing.assert_allclose(fit.residuals("pearson"), P @ y / np.sqrt(fit.sigma2), atol=1e-9)
    np.testing.assert_allclose(fit.leverage(), 1 - np.diag(P), atol=1e-10)
    G = fit.variances["g"] * np.eye(Z.shape[1])
    predicted, given_beta = fit.effect_variances[0]
    np.testing.assert_allclose(predicted[:, 0, 0], np.diag(G - G @ Z.T @ P @ Z @ G / fit.sigma2), rtol=1e-7)
    np.testing.assert_allclose(given_beta[:, 0, 0], np.diag(G - G @ Z.T @ W @ Z @ G / fit.sigma2), rtol=1e-7)


def test_prediction_variances_of_several_terms(several: MixedFit, panel: dict) -> None:
    levels = [np.unique(panel[name]) for name in ("g", "h")]
    member, other = ((panel[name][:, None] == level).astype(float) for name, level in zip("gh", levels, strict=True))
    t = panel["t"].astype(float)
    Z = np.column_stack([np.stack([member, member * t[:, None]], axis=2).reshape(len(t), -1), other])
    X = np.column_stack([np.ones(len(t)), *(panel["industry"] == f"i{k}" for k in range(1, 5)), t])
    blocks = [np.kron(np.eye(len(levels[0])), several.random[0].covariance), np.eye(6) * several.variances["h"]]
    G = np.block([[blocks[0], np.zeros((36, 6))], [np.zeros((6, 36)), blocks[1]]])
    V = Z @ G @ Z.T + several.sigma2 * np.eye(len(t))
    W = np.linalg.inv(V)
    P = W - W @ X @ np.linalg.inv(X.T @ W @ X) @ X.T @ W
    whole = G - G @ Z.T @ P @ Z @ G
    np.testing.assert_allclose(several.effect_variances[0][0][2], whole[4:6, 4:6], rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(several.effect_variances[1][0][3], whole[39:40, 39:40], rtol=1e-5)
    np.testing.assert_allclose(several.leverage(), 1 - several.sigma2 * np.diag(P), atol=1e-7)
    effects = G @ Z.T @ P @ panel["y"]
    np.testing.assert_allclose(several.random[0].values.ravel(), effects[:36], atol=1e-7)


@settings(deadline=None, max_examples=15)
@given(st.permutations(range(18)), st.floats(-1e6, 1e6), st.floats(0.001, 1000))
def test_renaming_groups_and_moving_the_response_change_nothing_else(
    panel: dict, order: list[int], shift: float, scale: float
) -> None:
    fit = mixed("y ~ t + (1 | g)", panel)
    moved = panel | {"g": np.array(order)[panel["g"] - 100], "y": scale * panel["y"] + shift}
    other = mixed("y ~ t + (1 | g)", moved)
    assert other.fixed["t"] == pytest.approx(scale * fit.fixed["t"], rel=1e-6)
    assert other.fixed["(Intercept)"] == pytest.approx(scale * fit.fixed["(Intercept)"] + shift, rel=1e-6, abs=1e-6)
    assert other.variances == pytest.approx({k: scale**2 * v for k, v in fit.variances.items()}, rel=1e-5)
    np.testing.assert_allclose(
        other.random[0].values[order], scale * fit.random[0].values, rtol=1e-5, atol=1e-7 * scale
    )


def test_digits_survive_large_constants(panel: dict) -> None:
    """Sums of squares of 1e9 + noise have no digits left for the noise; centring keeps them."""
    far = panel | {"y": panel["y"] + 1e9, "t": panel["t"] + 1e6}
    near, other = mixed("y ~ t + (1 | g)", panel), mixed("y ~ t + (1 | g)", far)
    assert other.dropped == ()
    assert other.fixed["t"] == pytest.approx(near.fixed["t"], rel=1e-6)
    assert other.variances == pytest.approx(near.variances, rel=1e-5)
    assert other.criterion == pytest.approx(near.criterion, rel=1e-8)


def test_a_slope_does_not_care_for_its_unit(panel: dict) -> None:
    near = mixed("y ~ t + (t | g)", panel)
    far = mixed("y ~ t + (t | g)", panel | {"t": panel["t"] * 1e5})
    assert far.criterion - near.criterion == pytest.approx(2 * np.log(1e5), abs=1e-4)  # from log det X'V^-1 X
    assert far.variances["g: t"] * 1e10 == pytest.approx(near.variances["g: t"], rel=1e-3)


def test_moments_and_elimination_agree(panel: dict, fit: MixedFit) -> None:
    from discreet.models.linear.cells import cells_of
    from discreet.models.linear.gram import gram_of
    from discreet.models.linear.solution import solve_gram

    cells = cells_of(fit.data, fit.design.layout, fit.design.levels)
    other = solve_gram(gram_of(cells, fit.design), reml=True)
    assert other.criterion == pytest.approx(fit.solution.criterion, rel=1e-10)
    np.testing.assert_allclose(other.effects[0], fit.solution.effects[0], atol=1e-4)


@pytest.mark.parametrize("formula", [ONE, SEVERAL, "y ~ poly(t, 2) * industry + scale(t) + (1 | g/h)"])
def test_predictions_for_old_rows_are_the_fitted_values(panel: dict, formula: str) -> None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixedWarning)
        fit = mixed(formula, panel)
    some = {name: values[50:90] for name, values in panel.items() if name != "y"}
    np.testing.assert_allclose(fit.predict(some), fit.fitted[50:90], rtol=1e-9)
    np.testing.assert_array_equal(fit.predict(some | {"y": np.full(40, np.nan)}), fit.predict(some))
    np.testing.assert_allclose(fit.predict(some, level="marginal"), fit.predict(level="marginal")[50:90], rtol=1e-9)


def test_unseen_levels_are_refused_or_zero(panel: dict, fit: MixedFit) -> None:
    new = {"t": [30, 40], "industry": ["i0", "i1"], "g": [100, 424_242]}
    with pytest.raises(DataError, check=about("data")) as caught:
        fit.predict(new)
    assert "424" not in str(caught.value)
    zero = fit.predict(new, new_levels="zero")
    assert zero[1] == pytest.approx(fit.fixed["industryi1"] + 40 * fit.fixed["t"])
    assert zero[0] == pytest.approx(
        fit.fixed["industryi0"] + 30 * fit.fixed["t"] + fit.effects["g"]["100"]["(Intercept)"]
    )
    assert fit.predict(new, level="marginal")[1] == pytest.approx(zero[1])
    with pytest.raises(DataError, check=about("data")):
        fit.predict(new | {"industry": ["i0", "i9"]})
    with pytest.raises(DataError, check=about("data")):
        fit.predict({"industry": ["i0"], "g": [100]})
    with pytest.raises(DataError, check=about("formula")):
        fit.predict(new | {"t": ["30", "40"]})


def test_misspelt_options_are_refused(fit: MixedFit) -> None:
    with pytest.raises(DataError, check=about("level")):
        fit.predict(level="random")  # type: ignore[arg-type]
    with pytest.raises(DataError, check=about("new_levels")):
        fit.predict(new_levels="zer")  # type: ignore[arg-type]
    with pytest.raises(DataError, check=about("kind")):
        fit.residuals("perason")  # type: ignore[arg-type]


def test_unseen_combinations_of_seen_levels(panel: dict) -> None:
    kept = ~((panel["g"] == 105) & (panel["h"] == "a"))
    fit = mixed("y ~ t + (1 | g:h)", {name: values[kept] for name, values in panel.items()})
    new = {"t": [30.0, 30.0], "g": [105, 105], "h": ["a", "b"]}
    with pytest.raises(DataError, check=about("data")):
        fit.predict(new)
    marginal = fit.predict(new, level="marginal")
    assert fit.predict(new, new_levels="zero")[0] == marginal[0]
    assert fit.predict(new, new_levels="zero")[1] != marginal[1]


def test_singular_and_deficient_fits_say_so(panel: dict) -> None:
    noise, group = np.random.default_rng(0).normal(size=400), panel["g"] - 100
    means = np.bincount(group, noise) / np.bincount(group)
    flat = panel | {"y": noise - means[group], "t2": panel["t"] * 2 + 1}
    with pytest.warns(MixedWarning, match="boundary"):
        fit = mixed("y ~ t + (1 | g)", flat)
    assert fit.is_singular
    assert fit.variances["g"] == 0
    assert not fit.random[0].values.any()
    with pytest.warns(MixedWarning, match="1 column dropped: t2"):
        fit = mixed("y ~ t + t2 + (1 | g)", panel | {"t2": flat["t2"]})
    assert fit.dropped == ("t2",)
    assert fit.criterion == pytest.approx(mixed("y ~ t + (1 | g)", panel).criterion)
    assert "dropped: t2" in fit.summary()


def test_tables_and_text(fit: MixedFit, several: MixedFit) -> None:
    table = several.tidy()
    assert table["effect"].to_pylist().count("fixed") == len(several.fixed)
    assert table["estimate"].to_pylist() == [*several.fixed.values(), *several.variances.values()]
    assert table["std_error"].to_pylist()[: len(several.fixed)] == list(several.se.values())
    kinds = ["variance", "variance", "covariance", "variance", "variance"]
    assert table["effect"].to_pylist()[len(several.fixed) :] == kinds
    assert len(several.tidy(levels=True)) == len(several.to_arrow()) == len(table) + 2 * 18 + 6
    assert list(several.variances) == ["g: (Intercept)", "g: t", "g: (Intercept), t", "h", "Residual"]
    text = several.summary()
    assert str(several) == text
    for word in ("REML", "Residual", "industryi1", "groups: g 18, h 6", f"{several.criterion:.4f}"):
        assert word in text
    plain = json.loads(json.dumps(fit.to_dict()))
    assert plain["fixed"] == fit.fixed
    assert plain["groups"] == {"g": 18}
    assert fit.parameters == 8
    assert fit.aic == pytest.approx(fit.criterion + 16)
    assert mixed("y ~ t + (t || g)", _sloped()).effects.keys() == {"g", "g.1"}


def _sloped() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(8)
    g, t = np.repeat(np.arange(10), 12), np.tile(np.linspace(-1, 1, 12), 10)
    return {"g": g, "t": t, "y": rng.normal(0, 2, 10)[g] + rng.normal(0, 2, 10)[g] * t + rng.normal(size=120)}


def test_charts(several: MixedFit) -> None:
    spec = several.plot_effects("g").to_dict()
    assert "level" in json.dumps(spec["data"]["values"])
    assert several.plot_residuals(sample=50).to_dict()
    with pytest.raises(DataError, check=about("group", naming=("g, h",))):
        several.plot_effects("nobody")


def test_the_door_stays_a_function_whatever_is_imported(panel: dict, fit: MixedFit) -> None:
    import discreet.models.linear

    again = discreet.mixed(ONE, panel)
    assert again.criterion == fit.criterion
    assert repr(again) == "<MixedFit 'y ~ 0 + industry + t + (1 | g)', REML, 400 rows>"
    assert "<td>industryi1</td>" in again._repr_html_()


def test_bad_options_are_refused(panel: dict, fit: MixedFit) -> None:
    with pytest.raises(DataError, check=about("method")):
        mixed(ONE, panel, method="reml")  # type: ignore[arg-type]
    with pytest.raises(DataError, check=about("level")):
        fit.intervals(level=95)


def test_a_factor_with_one_level_is_told(panel: dict) -> None:
    with pytest.warns(MixedWarning, match="factor one has one level"):
        fit = mixed("y ~ one + t + (1 | g)", panel | {"one": ["a"] * len(panel["y"])})
    assert "factor one has one level" in fit.summary()


def test_a_factor_larger_than_the_memory_is_refused_before_it_is_tried(
    panel: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.models.linear.memory.lacking", lambda _: 1e4)
    monkeypatch.setattr("discreet.models.linear.estimate.refuse_matrices", lambda *_: None)
    monkeypatch.setattr("discreet.models.linear.sparse.eliminate", lambda *_: pytest.fail("it was tried"))
    with pytest.raises(FitError, check=about("formula")):
        mixed(SEVERAL, panel)


@pytest.mark.parametrize("formula", ["y ~ f + (1 | g)", "y ~ 1 + (f | b)"])
@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_more_columns_than_memory_are_refused_before_they_are_made(
    formula: str, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Levels as fixed effects or slopes. Red before: a bare MemoryError, of 17 to 59 GiB with 40,000 levels."""
    rng = np.random.default_rng(1)
    n = 900
    data = {"y": rng.poisson(2, n), "g": rng.integers(0, 90, n), "b": np.arange(n) % 2, "f": np.arange(n) % 300}
    data["f"] = np.array([f"f{level}" for level in data["f"]])
    monkeypatch.setattr("discreet.models.formula.memory.free_memory", lambda: 1e6)
    monkeypatch.setattr("discreet.models.formula.memory.SMALL", 0.0)
    for maker in ("estimate._statistics", "generalised._problem"):
        monkeypatch.setattr(f"discreet.models.linear.{maker}", lambda *_, **__: pytest.fail("it was tried"))
    with pytest.raises(FitError, check=about("formula")):
        dc.mixed(formula, data, family=family)  # type: ignore[call-overload]
