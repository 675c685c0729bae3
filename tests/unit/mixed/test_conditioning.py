"""Fits do not depend on where a column's zero is, nor on how close two columns or how far apart two variances are."""

from __future__ import annotations

import datetime
import pickle
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.models.linear import MixedFit, MixedWarning, mixed
from discreet.models.linear.private import release_mixed
from discreet.words.errors import DataError, FitError, UnknownName
from faults_of import about

FAR = [-1e6, 1e8]  # in standard deviations
FORMULAS = [
    "y ~ x + (x | g)",
    "y ~ x * z + (1 | g)",
    "y ~ x * z * k + (1 | g)",
    "y ~ 0 + k + k:x + (1 | g)",
    "y ~ k * x + z + (h + x | g)",
    "y ~ 0 + x + k:h + (x * z | g)",
]
"""Models that span the same space wherever the zeros of x and z are."""


@pytest.fixture(scope="module")
def data() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    n = 600
    g, h, k, x, z = rng.integers(0, 30, n), rng.integers(0, 3, n), rng.integers(0, 3, n), *rng.normal(size=(2, n))
    slopes = rng.normal(0, 0.5, 30)
    y = 1 + 2 * x + z - 0.5 * x * z + 0.3 * k + rng.normal(size=30)[g] + slopes[g] * x + rng.normal(size=n)
    names = {"g": np.array([f"g{i}" for i in g]), "h": np.array(list("uvw"))[h], "k": np.array(list("pqr"))[k]}
    return {"y": y, "x": x, "z": z, **names}


def fitted(formula: str, data: object) -> MixedFit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixedWarning)
        return mixed(formula, data)


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_shifted_column_changes_nothing_but_its_origin(formula: str, data: dict, tmp_path: Path) -> None:
    near = fitted(formula, data)
    for far in FAR:
        moved = data | {"x": data["x"] + far, "z": data["z"] - far}
        pq.write_table(pa.table(moved), tmp_path / "moved.parquet")
        for source in (moved, tmp_path / "moved.parquet") if far == FAR[0] else (moved,):
            fit = fitted(formula, source)
            assert fit.names == near.names
            # Adding 1e8 to a column takes half its digits; the criterion is n times as sensitive.
            assert fit.criterion == pytest.approx(near.criterion, abs=1e-5 if abs(far) > 1e6 else 1e-7)
            np.testing.assert_allclose(fit.fitted, near.fitted, atol=1e-4 if abs(far) > 1e6 else 1e-5)
            highest = max((name for name in near.names if "x" in name), key=len)
            assert fit.fixed[highest] == pytest.approx(near.fixed[highest], rel=1e-5)
            assert fit.se[highest] == pytest.approx(near.se[highest], rel=1e-5)


def test_coefficients_and_effects_are_of_the_columns_as_given(data: dict) -> None:
    far = 1000.0
    near, fit = (fitted("y ~ x * z + (x | g)", data | {"x": data["x"] + shift}) for shift in (0.0, far))
    assert fit.fixed["z"] == pytest.approx(near.fixed["z"] - far * near.fixed["x:z"], rel=1e-6)
    before, after = near.effects["g"], fit.effects["g"]
    np.testing.assert_allclose(after.values[:, 1], before.values[:, 1], atol=1e-5)
    np.testing.assert_allclose(after.values[:, 0], before.values[:, 0] - far * before.values[:, 1], atol=1e-2)
    back = np.array([[1, -far], [0, 1]])
    np.testing.assert_allclose(after.covariance, back @ before.covariance @ back.T, rtol=1e-4)
    for (free, known), (free0, known0) in zip(fit.effect_variances, near.effect_variances, strict=True):
        np.testing.assert_allclose(free, back @ free0 @ back.T, rtol=1e-3)
        np.testing.assert_allclose(known, back @ known0 @ back.T, rtol=1e-3)


@pytest.mark.full_size
def test_intervals_of_deviations_do_not_depend_on_the_origin(data: dict) -> None:
    near, moved = (fitted("y ~ x * z + (x | g)", data | {"x": data["x"] + shift}) for shift in (0, 3))
    assert moved.intervals()["sd_x|g"] == pytest.approx(near.intervals()["sd_x|g"], rel=1e-3)


@pytest.mark.parametrize("apart", [1e-3, 1e-5, 1e-6])
def test_nearly_equal_columns_are_told_apart_as_in_r(apart: float, data: dict, tmp_path: Path) -> None:
    noise = np.random.default_rng(3).normal(size=len(data["x"]))
    twins = data | {"w": 5 + data["x"] + apart * noise, "v": data["x"] - data["z"] + apart * noise**3}
    exact = fitted("y ~ x + z + w + v + (1 | g)", data | {"w": noise, "v": noise**3})
    pq.write_table(pa.table(twins), tmp_path / "twins.parquet")
    for source in (twins, tmp_path / "twins.parquet"):
        fit = fitted("y ~ x + z + w + v + (1 | g)", source)
        assert fit.dropped == ()
        assert fit.criterion - exact.criterion == pytest.approx(4 * np.log(apart), abs=1e-3)
        assert fit.fixed["w"] * apart == pytest.approx(exact.fixed["w"], rel=1e-3)
        np.testing.assert_allclose(fit.fitted, exact.fitted, atol=1e-4)


def test_equal_columns_are_dropped_as_in_r(data: dict) -> None:
    same = data | {"w": 3 * data["x"] + 1, "v": data["x"] + data["z"], "u": data["x"] * (1 + 1e-9 * data["z"])}
    fit = fitted("y ~ x + z + w + v + u + (1 | g)", same)
    assert fit.dropped == ("w", "v", "u")
    assert fit.criterion == pytest.approx(fitted("y ~ x + z + (1 | g)", data).criterion, abs=1e-8)


@pytest.mark.parametrize(("first", "second"), [(1e5, 1.0), (1e5, 1e-5), (1e5, 1e5), (1e-5, 1.0), (1e3, 1e-2)])
def test_the_optimum_is_found_whatever_the_ratio_of_variances(first: float, second: float) -> None:
    rng = np.random.default_rng(1)
    g, h = rng.integers(0, 25, 500), rng.integers(0, 15, 500)
    y = first * rng.normal(size=25)[g] + second * rng.normal(size=15)[h] + rng.normal(size=500)
    data = {"y": y, "g": [f"g{i}" for i in g], "h": [f"h{i}" for i in h]}
    fit = fitted("y ~ 1 + (1 | g) + (1 | h)", data)
    standard = fit.solution.eliminated
    assert standard is not None
    from discreet.models.linear import sparse

    theta = np.array([T[0, 0] for T in standard.triangles])
    around = np.exp(np.random.default_rng(0).uniform(-0.5, 0.5, (60, 2))) * np.maximum(theta, 1e-3)
    values = [sparse.criterion(sparse.eliminate(standard.gram, at), reml=True)[0] for at in around]
    assert fit.solution.criterion <= min(values) + 0.05
    assert any("digits" in note for note in fit.notes) == (first == 1e5)


def test_a_fit_can_be_stored(data: dict, tmp_path: Path) -> None:
    pq.write_table(pa.table(data), tmp_path / "data.parquet")
    for source in (data, tmp_path / "data.parquet"):
        for formula in ("y ~ x * k + (1 | g)", "y ~ x + (x | g) + (1 | h)"):
            fit = fitted(formula, source)
            again = pickle.loads(pickle.dumps(fit))
            assert again.to_dict() == fit.to_dict()
            np.testing.assert_array_equal(again.predict(data), fit.predict(data))
            with pytest.raises(FitError, check=about("data")):
                again.release(epsilon=1)


def test_an_unknown_level_and_a_date_are_told(data: dict) -> None:
    fit = fitted("y ~ x + (1 | g)", data)
    with pytest.raises(KeyError, check=about("level")) as refused:
        fit.effects["g"]["g99"]
    assert isinstance(refused.value, UnknownName)
    private = fit.release(epsilon=5, public=["x", "g"], bounds=(-50, 50), seed=1)
    with pytest.raises(UnknownName, check=about("level")):
        private.effects["g"]["g99"]
    assert private.effects["g"]["g1"] == private.effects["g"].values[private.effects["g"].levels.index("g1")]
    for effects in (fit.effects, private.effects):
        with pytest.raises(UnknownName, check=about("group")):
            effects["zz"]
        assert effects.get("zz") is None and "zz" not in effects and list(effects) == ["g"]
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(int(i)) for i in range(len(data["y"]))]
    with pytest.raises(DataError, check=about("formula")):
        mixed("y ~ day + (1 | g)", data | {"day": days})
    months = [day.replace(day=1) for day in days]
    text = data | {"day": [f"{day}" for day in months]}
    with pytest.warns(MixedWarning, match="levels of day are dates"):
        told = mixed("y ~ day + (1 | g)", text)
    assert any("levels of day are dates" in note for note in told.notes)
    private = release_mixed("y ~ day + (1 | g)", text, epsilon=50, public=["day", "g"], bounds=(-50, 50), seed=1)
    assert any("levels of day are dates" in note for note in private.notes)
    assert not fitted("y ~ C(day) + (1 | g)", text).notes
    assert len(fitted("y ~ C(day) + (1 | g)", data | {"day": months}).names) == len(set(months))
    assert fitted("y ~ x + (1 | day)", data | {"day": months}).effects["day"].levels[0] == "2024-01-01"


def test_columns_that_are_surely_apart_are_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Red before: a least-squares problem for every column of a spline, 42 of 79 seconds with 900 of them."""
    rng = np.random.default_rng(2)
    x, g = rng.random(3_000), rng.integers(0, 30, 3_000)
    monkeypatch.setattr("numpy.linalg.lstsq", lambda *_, **__: pytest.fail("a column was looked at"))
    fit = mixed("y ~ bs(x, 40) + (1 | g)", {"y": x + rng.normal(size=30)[g] + rng.normal(size=3_000), "x": x, "g": g})
    assert len(fit.beta) == 41
