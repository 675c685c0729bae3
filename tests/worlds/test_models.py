"""A part of the odd worlds of models; `many` in `models` runs thousands, and every fault it found is kept below."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import discreet as dc
from discreet.models.linear.fit import MixedWarning
from discreet.words.errors import DiscreetError
from faults_of import about
from worlds import small
from worlds.models import World, ask, drawn, fit_of, look, many, script, smaller

PARTS, WORLDS = 4, 15
RATE = 0.6
"""Share of worlds at least that end in numbers: refusals alone would show little."""


@pytest.mark.parametrize("part", range(PARTS))
def test_odd_worlds_of_models(part: int) -> None:
    found = many(10_000 + part * WORLDS, WORLDS)
    assert not found, "\n".join(map(str, found))


@pytest.mark.full_size
def test_many_odd_worlds_of_models() -> None:
    found = many(20_000, 1_000)
    assert not found, "\n".join(map(str, found))


def test_most_worlds_end_in_numbers() -> None:
    worlds = [drawn(seed) for seed in range(60)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixedWarning)
        ended = [not small.refused(ask(each) if "private" in each.door else fit_of(each)) for each in worlds]
    assert np.mean(ended) > RATE
    assert {each.door for each in worlds} == {"linear", "counts", "private", "private counts"}


def test_a_world_is_made_again_by_its_seed_and_by_its_script() -> None:
    world = drawn(4)
    assert repr(world) == repr(drawn(4)) != repr(drawn(5))
    told: dict[str, Any] = {}
    exec(script(world).replace("look(", "made = ("), told)
    assert repr(told["made"]) == repr(world)


def test_a_failing_world_is_made_small() -> None:
    """A look that fails where a column has more than two levels: what is left has three rows."""
    world = next(each for each in map(drawn, range(100)) if each.door == "linear" and each.rows > 60)

    def wrong(each: World) -> None:
        if len({*each.columns[each.response]}) > 2:
            raise small.Broken("more than two values")

    fault = small.fault_of(wrong, world)
    assert fault is not None
    least, _ = small.shrunk(world, fault, wrong, smaller)
    assert least.rows == 3 and not least.fixed and set(least.columns) == {*least.used}


# What the first runs found


def rows(n: int = 40, **more: Any) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    return {"y": np.clip(rng.normal(size=n), -3, 3), "g": np.arange(n) % 5, "z": rng.normal(size=n), **more}


PAID = {"epsilon": 9, "bounds": (-3, 3), "seed": 1}


@pytest.mark.parametrize(
    ("random", "value"), [("(1 + x | g)", 4.0), ("(1 + x | g)", 0.1), ("(0 + x | g)", 0.0), ("(1 + x || g)", 0.0)]
)
@pytest.mark.parametrize("lazy", [False, True])
def test_a_slope_along_a_constant_is_refused(random: str, value: float, lazy: bool) -> None:
    """Red before: estimates that are no numbers, and private releases of such a model were paid."""
    data: Any = pl.DataFrame(rows(x=np.full(40, value), k=np.arange(40) % 3))
    data = data.lazy() if lazy else data
    for door in (
        lambda: dc.mixed(f"y ~ z + {random}", data),
        lambda: dc.mixed(f"k ~ z + {random}", data, family="poisson"),
        lambda: dc.release_mixed.check(f"y ~ z + {random}", data, public=["x", "z", "g"], **PAID),
        lambda: dc.release_mixed(f"y ~ z + {random}", data, public=["x", "z", "g"], **PAID),
    ):
        with pytest.raises(DiscreetError, check=about("formula", naming=("x", "g"))):
            door()


def test_a_slope_along_a_constant_beside_no_intercept_is_one() -> None:
    fit = dc.mixed("y ~ z + (0 + x | g)", rows(x=np.full(40, 4.0), y=np.arange(40) % 5 + np.sin(np.arange(40))))
    plain = dc.mixed("y ~ z + (1 | g)", rows(y=np.arange(40) % 5 + np.sin(np.arange(40))))
    assert 16 * fit.variances["g: x"] == pytest.approx(plain.variances["g"], rel=1e-4)


@pytest.mark.parametrize("column", ["(Intercept)", "kb"])
def test_two_coefficients_of_one_name_are_refused(column: str) -> None:
    """Red before: `fixed` had one of them, and a published table both under one name."""
    data = rows(k=np.where(np.arange(40) % 2, "a", "b"))
    data[column] = data.pop("z")
    formula = f"y ~ k + `{column}` + (1 | g)"
    with pytest.raises(DiscreetError, check=about("formula", naming=(column,))):
        dc.mixed(formula, data)
    with pytest.raises(DiscreetError, check=about("formula", naming=(column,))):
        dc.release_mixed.check(formula, data, public=["k", column, "g"], **PAID)


@pytest.mark.parametrize("method", ["strict", "paper"])
def test_columns_that_blocks_cannot_tell_apart_are_refused_before_they_are_paid(method: Any) -> None:
    """Red before: the check said that it can be run, and reading was refused after."""
    data = rows(x=2 * np.arange(40.0), v=np.arange(40.0))
    asked: dict[str, Any] = {**PAID, "public": ["x", "v", "g"], "method": method, "blocks": 2}
    with pytest.raises(DiscreetError, check=about("formula", naming=("v",))):
        dc.release_mixed.check("y ~ x + v + (1 | g)", data, **asked)


def test_a_constant_column_without_an_intercept_keeps_its_coefficient() -> None:
    """As in R: `lmer(y ~ 0 + x + k + (1 | g))` drops a level of k and not x. Red before: x was dropped."""
    data = rows(x=np.full(40, 3.0), k=np.where(np.arange(40) % 2, "a", "b"))
    with pytest.warns(MixedWarning):
        fit = dc.mixed("y ~ 0 + x + k + (1 | g)", data)
    assert list(fit.fixed) == ["x", "ka"] and fit.dropped == ("kb",)
    with pytest.warns(MixedWarning):
        plain = dc.mixed("y ~ 0 + k + (1 | g)", data)
    assert fit.fixed["x"] * 3 == pytest.approx(plain.fixed["kb"])
    private = dc.release_mixed("y ~ 0 + x + k", data, public=["x", "k"], **{**PAID, "epsilon": 10**6})
    assert private.names == ("x", "ka") and private.fixed["x"] * 3 == pytest.approx(
        data["y"][data["k"] == "b"].mean(), abs=0.01
    )


@pytest.mark.parametrize("name", ["(Intercept)", "a.b", "_k", "_s", "_x0"])
def test_groups_of_any_name_in_files(name: str, tmp_path: Path) -> None:
    """Red before: DuckDB read a group's name as an expression, or as a column of our own query, after it was paid."""
    data = rows()
    data[name] = [f"g{i}" for i in data.pop("g")]
    pl.DataFrame(data).write_parquet(tmp_path / "rows.parquet")
    asked: dict[str, Any] = {**PAID, "public": ["z", name]}
    formula = f"y ~ z + (1 | `{name}`)"
    read, held = (dc.release_mixed(formula, each, **asked) for each in (tmp_path / "rows.parquet", data))
    np.testing.assert_allclose(read.beta, held.beta, rtol=1e-9)


def test_the_deeper_of_two_valleys_is_found() -> None:
    """An effect that seems to have no variance alone. Red before: 7.365, at zero; `drawn(1039)`: 114.6 for 24.0."""
    data = {"y": [0.489, 2.511, 2.332], "g": list("abb"), "w": [7.91, 2.12, 112.7]}
    fit = dc.mixed("y ~ 1 + (1 | g)", data, method="ML", weights="w")
    assert fit.criterion < 4.8 and fit.variances["g"] > 0.1


def test_a_factor_of_one_level_multiplies_a_far_column() -> None:
    """Red before: a ValueError of NumPy."""
    with pytest.warns(MixedWarning):
        fit = dc.mixed("y ~ z + k + z:k + (1 | g)", rows(k=["a"] * 40, z=1000 + np.sin(np.arange(40))))
    assert list(fit.fixed) == ["(Intercept)", "z"]


def test_standard_errors_of_a_private_model_with_lags_are_numbers() -> None:
    """Noise hides all lags here. Red before: flags compared a shift with the root of a negative variance."""
    world = drawn(81323)
    assert world.lags and small.fault_of(look, world) is None


def test_private_slopes_where_a_group_has_none_along_a_column() -> None:
    """Red before: a division by zero, after it was paid."""
    data = {"y": [1e-4, -2e-4, 3e-4], "x": [0, 1, 0], "g": list("abb")}
    asked: dict[str, Any] = {"bounds": (-1e-3, 1e-3), "rho": "0.07", "public": ["x", "g"], "seed": 50217}
    assert np.isfinite(dc.release_mixed("y ~ 1 + (1 + x || g)", data, **asked).beta).all()


def test_a_fit_without_a_residual_says_so() -> None:
    """Groups and columns explain all rows. Red before: a residual variance of 1e-10 of the effects', and no word."""
    data = {"y": [1.6, 3.7, -1.2, 1.1], "g": list("abca"), "x": [-0.27, 0.26, -0.78, -1.62], "k": list("qqqp")}
    with pytest.warns(MixedWarning):
        fit = dc.mixed("y ~ k + x + (1 | g)", data, method="ML")
    assert fit.solution.is_exact and len(fit.notes) == 1


def test_counts_are_fitted_without_fixed_columns() -> None:
    """Red before: a ValueError. The log-likelihood is glmer's."""
    with pytest.warns(MixedWarning):
        fit = dc.mixed("k ~ 0 + (1 | g)", rows(k=np.arange(40) % 3), family="poisson")
    assert fit.names == () and fit.loglik == pytest.approx(-49.01091, abs=1e-5)


def test_a_far_response_without_an_intercept_says_what_rounding_does() -> None:
    """Red before: a criterion that was off by 0.15, and no word."""
    with pytest.warns(MixedWarning):
        fit = dc.mixed("y ~ 0 + x + (1 | g)", rows(x=np.full(40, 3.0), y=1e6 + np.sin(np.arange(40))))
    assert fit.solution.doubt > 0.1 and any("digits" in note for note in fit.notes)


@pytest.mark.parametrize("kind", ["parquet", "csv", "lazy"])
def test_a_column_that_is_zero_in_a_level_has_no_coefficient_there(kind: str, tmp_path: Path) -> None:
    """Sums about a mean leave rounding. Red before: from files, coefficients of -36 and criteria 80 to 130 too low."""
    data = rows(47, k=[f"c{i % 4}" for i in range(47)], r=[float(i == 3) for i in range(47)])
    frame = pl.DataFrame(data)
    frame.write_parquet(tmp_path / "rows.parquet")
    frame.write_csv(tmp_path / "rows.csv")
    read: Any = frame.lazy() if kind == "lazy" else tmp_path / f"rows.{kind}"
    with pytest.warns(MixedWarning):
        found, held = (dc.mixed("y ~ k + r + k:r + (1 | g)", each) for each in (read, data))
    assert found.names == held.names and found.dropped == held.dropped == ("kc1:r", "kc2:r", "kc3:r")
    assert found.criterion == pytest.approx(held.criterion, rel=1e-9)
    asked: dict[str, Any] = {**PAID, "public": ["k", "r", "g"]}
    one, other = (dc.release_mixed("y ~ k + r + k:r + (1 | g)", each, **asked) for each in (read, data))
    assert one.names == other.names == held.names
    np.testing.assert_allclose(one.beta, other.beta, rtol=1e-9)
