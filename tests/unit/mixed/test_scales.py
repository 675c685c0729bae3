"""Units: estimates do not depend on them, and sizes that doubles cannot square twice are refused in words."""

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.models.linear.fit import MixedWarning
from discreet.words.errors import DataError, DiscreetError, FitError
from faults_of import about

FORMULAS = ("y ~ x + (1 | g)", "y ~ x + (x | g)", "y ~ x + (x | g) + (1 | h)")
SEARCH = 1e-4  # what the last step of a search leaves of a variance; a power of two changes no digit before it


def columns(**factors: float) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    g, h, x = rng.integers(0, 12, 240), rng.integers(0, 8, 240), rng.normal(size=240)
    slopes, groups = 0.7 * rng.normal(size=12), rng.normal(size=12)
    y = 1 + 0.5 * x + groups[g] + slopes[g] * x + 0.5 * rng.normal(size=8)[h] + rng.normal(size=240)
    found: dict[str, Any] = {"y": y, "x": x, "w": np.ones(240), "n": rng.poisson(2, 240), "t": np.arange(240)}
    for name, factor in factors.items():
        found[name] = found[name] * factor
    return found | {"g": [f"g{i}" for i in g], "h": [f"h{i}" for i in h]}


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("power", [-200, -40, 40, 200])
def test_estimates_and_degrees_of_freedom_do_not_depend_on_the_unit(formula: str, power: int) -> None:
    """Degrees of freedom of a response in units of 1e12 were those of another model."""
    plain, unit = dc.mixed(formula, columns()), 2.0**power
    for name, moved in (("y", {"y": unit}), ("x", {"x": unit})):
        fit = dc.mixed(formula, columns(**moved))
        y, x = (unit, 1.0) if name == "y" else (1.0, unit)
        assert fit.fixed["x"] / y * x == pytest.approx(plain.fixed["x"], rel=SEARCH)
        assert fit.sigma2 / y**2 == pytest.approx(plain.sigma2, rel=SEARCH)
        assert fit.random[0].covariance[0, 0] / y**2 == pytest.approx(plain.random[0].covariance[0, 0], rel=SEARCH)
        assert fit.tests()["x"].df == pytest.approx(plain.tests()["x"].df, rel=SEARCH)


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize(
    ("factors", "about"),
    [
        *(({"y": factor}, "formula") for factor in (1e77, 1e160, 1e-80, 1e-140, 1e-300)),
        *(({"x": factor}, "formula") for factor in (1e77, 1e160, 1e-80, 1e-160, 1e-300)),
        *(({"w": factor}, "weights") for factor in (1e160, 1e200, 1e-200)),
        ({"x": 1e-45, "y": 1e45}, "formula"),
    ],
)
def test_sizes_that_doubles_cannot_compute_with_are_refused(
    formula: str, factors: dict[str, float], about: str
) -> None:
    """Before, there were wrong variances, raw overflows, or a column was called a combination of others."""
    doors: list[dict[str, Any]] = [{"weights": "w"}] if "w" in factors else [{}, {"family": "gaussian"}]
    if "w" not in factors and formula == FORMULAS[0]:
        doors += [{"residual_by": "h"}, {"series": "g", "time": "t"}, {"prior": {"V": 0.1, "nu": 12}}]
    for asked in doors:
        with pytest.raises(FitError) as caught:
            dc.mixed(formula, columns(**factors), **asked)
        assert caught.value.about == about
        assert "for a double" in str(caught.value)


@pytest.mark.parametrize("factors", [{"x": 1e-300}, {"x": 1e-160}, {"x": 1e77}, {"y": 1e77}, {"y": 1e-80}])
def test_sizes_are_refused_where_an_engine_has_the_rows(factors: dict[str, float]) -> None:
    data = duckdb.connect().from_arrow(pa.table(columns(**factors)))
    for formula in FORMULAS:
        with pytest.raises(FitError) as caught:
            dc.mixed(formula, data)
        assert caught.value.about == "formula"


@pytest.mark.parametrize("unit", [1e-300, 1e-170, 1e160, 1e300])
@pytest.mark.parametrize("made", ["scale(x)", "poly(x, 2)", "poly(x, 5)", "ns(x, df=3)"])
def test_functions_of_a_column_that_doubles_cannot_square_say_on_which_side_it_is(made: str, unit: float) -> None:
    """Red before: tiny ones were "too large", or constant in a file, and large ones dropped as if they said nothing."""
    data = pa.table(columns(x=unit))
    said = about("formula", naming=("too little", "smaller") if unit < 1 else ("too much", "larger"))
    for table in (data, duckdb.from_arrow(data)):
        for more in ({}, {"family": "poisson"}):
            with pytest.raises(DataError, check=said):
                dc.mixed(f"n ~ {made} + (1 | g)", table, **more)


@pytest.mark.parametrize(
    ("made", "power"), [("scale(x)", 149), ("poly(x, 2)", 74), ("poly(x, 5)", 29), ("ns(x, df=3)", 149)]
)
def test_functions_within_reach_do_not_depend_on_the_unit(made: str, power: int) -> None:
    plain = dc.mixed(f"y ~ {made} + (1 | g)", columns())
    for unit in (10.0**-power, 10.0**power):
        assert dc.mixed(f"y ~ {made} + (1 | g)", columns(x=unit)).beta == pytest.approx(plain.beta, rel=SEARCH)


def test_a_column_of_zeros_is_still_dropped() -> None:
    with pytest.warns(MixedWarning, match="dropped: x"):
        assert dc.mixed("y ~ x + (1 | g)", columns(x=0.0)).dropped == ("x",)


@pytest.mark.parametrize(
    ("factors", "about"), [({"w": 1e100}, "weights"), ({"w": 1e-30}, "weights"), ({"x": 1e-300}, "formula")]
)
@pytest.mark.parametrize("family", ["poisson", "negative-binomial"])
def test_counts_whose_weights_or_columns_are_beyond_doubles_are_refused(
    family: str, factors: dict[str, float], about: str
) -> None:
    """Weights of 1e100 gave back the variances that the search starts from."""
    with pytest.raises(DiscreetError) as caught:
        dc.mixed("n ~ x + (1 | g)", columns(**factors), family=family, weights="w")
    assert caught.value.about == about


NEAR = 0.05  # of a standard error: what doubles leave of a top so steep; ten times the limit of either law misses it


def _effects_without_doubt(data: dict[str, Any]) -> tuple[float, float]:
    """Weights so large that every group's effect is known: their mean and variance, in closed form given the slope."""
    g, x, y = np.unique(data["g"], return_inverse=True)[1], data["x"], data["n"]
    events, slope = np.bincount(g, y), 0.0
    for _ in range(50):
        one, two, three = (np.bincount(g, np.exp(slope * x) * x**power) for power in (0, 1, 2))
        slope += (y @ x - events @ (two / one)) / (events @ (three / one - (two / one) ** 2))
    effects = np.log(events / np.bincount(g, np.exp(slope * x)))
    return float(effects.mean()), float(effects.var())


@pytest.mark.parametrize("weight", [1e5, 1e6, 1e8])
def test_heavy_counts_have_effects_that_are_known(weight: float) -> None:
    """Red before above 1e5, the limit of every family but the binomial."""
    data = columns(w=weight)
    data["n"] = np.random.default_rng(5).poisson(np.exp(0.5 + 0.3 * data["x"] + 0.4 * np.sin(range(240))))
    mean, variance = _effects_without_doubt(data)
    fit: Any = dc.mixed("n ~ x + (1 | g)", data, family="poisson", weights="w")
    assert abs(fit.beta[0] - mean) < NEAR * (variance / 12) ** 0.5
    assert abs(fit.variances["g"] - variance) < NEAR * variance * (2 / 12) ** 0.5


@pytest.mark.filterwarnings("ignore:no extra zeros")
@pytest.mark.parametrize(("family", "weight"), [("poisson", 1e8), ("zero-inflated-poisson", 1e5)])
def test_heavy_counts_of_which_a_group_has_none_give_no_warnings_of_numpy(family: str, weight: float) -> None:
    """Red before: over a hundred of overflows, at steps that are then halved. That group says nothing of the slope."""
    rng = np.random.default_rng(7)
    g, x = np.repeat(np.arange(20), 10), rng.normal(size=200)
    n = rng.poisson(np.exp(-0.2 + 0.4 * x + 0.7 * rng.normal(size=20)[g]))
    n[g == 3] = 0
    data = {"n": n, "x": x, "g": g.astype(str), "w": np.full(200, weight)}
    fit = dc.mixed("n ~ x + (1 | g)", data, family=family, weights="w")
    others = dc.mixed("n ~ x + (1 | g)", {c: v[g != 3] for c, v in data.items()}, family=family, weights="w")
    assert abs(fit.beta[1] - others.beta[1]) < NEAR * others.se["x"]


@pytest.mark.parametrize(
    ("family", "most"),
    [
        ("poisson", 1e8),
        ("zero-inflated-poisson", 1e5),
        ("negative-binomial", 1e4),
        ("zero-inflated-negative-binomial", 1e4),
    ],
)
def test_heavier_weights_are_refused(family: str, most: float) -> None:
    """Red before: with weights of 1e5 an intercept of the negative binomial was off by 0.42 standard errors."""
    with pytest.raises(FitError, check=about("weights", naming=(f"{most:.0e}",))):
        dc.mixed("n ~ x + (1 | g)", columns(w=1.01 * most), family=family, weights="w")


def test_weights_that_make_too_many_events_are_refused() -> None:
    """With counts of 1,000 and weights of 1e8 a variance was off by more than its standard error."""
    data = columns(w=1e8)
    with pytest.raises(FitError, check=about("weights", naming=("1e+11",))):
        dc.mixed("n ~ x + (1 | g)", data | {"n": 1000 + data["n"]}, family="poisson", weights="w")


@pytest.mark.parametrize("seed", range(3))
def test_weights_of_dispersed_counts_within_the_limit_move_nothing(seed: int) -> None:
    """From weights of a thousand on groups' effects are known, so ten times as many change no estimate."""
    rng = np.random.default_rng(seed)
    g, x = rng.integers(0, 30, 900), rng.normal(size=900)
    mean = np.exp(0.5 + 0.3 * x + 0.5 * rng.normal(size=30)[g]) * rng.gamma(2, 0.5, 900)
    data = {"n": rng.poisson(mean), "x": x, "g": g.astype(str), "k": np.full(900, 1e3), "w": np.full(900, 1e4)}
    less, more = (dc.mixed("n ~ x + (1 | g)", data, family="negative-binomial", weights=w) for w in ("k", "w"))
    assert abs(more.beta[0] - less.beta[0]) < NEAR * less.se["(Intercept)"]


@pytest.mark.parametrize("seed", range(3))
def test_heavy_shares_with_a_group_of_ones_have_the_effects_that_weights_make(seed: int) -> None:
    """Its effect grows by the logarithm of the weights, others are known. Red before: an intercept of 7.8 (0.0)."""
    rng = np.random.default_rng(seed)
    g, x, effects = np.arange(400) % 20, rng.normal(size=400), 1.5 * rng.normal(size=20)
    effects[3] = 40
    y = (rng.random(400) < 1 / (1 + np.exp(-(0.5 + x + effects[g])))).astype(int)
    sides = sum((-1) ** int(1 - y[g == k][0]) for k in range(20) if len(set(y[g == k])) == 1)
    data = {"y": y, "x": x, "g": g.astype(str), "k": np.full(400, 1e6), "w": np.full(400, 1e8)}
    less, more = (dc.mixed("y ~ x + (1 | g)", data, family="binomial", weights=w) for w in ("k", "w"))
    assert more.beta[0] - less.beta[0] == pytest.approx(sides * np.log(100) / 20, abs=0.1)
    assert more.beta[1] == pytest.approx(less.beta[1], abs=1e-4)
    assert not more.notes


def test_weights_too_light_are_to_be_multiplied() -> None:
    with pytest.raises(FitError, check=about("weights", naming=("Multiply",))):
        dc.mixed("n ~ x + (1 | g)", columns(w=1e-5), family="poisson", weights="w")


def test_a_refit_refuses_responses_beyond_doubles() -> None:
    data = columns()
    fit = dc.mixed("y ~ x + (1 | g)", data)
    with pytest.raises(FitError):
        fit.refit(data["y"] * 1e100)
