"""Private binomial and Poisson models: fits without noise, dispersion, coverage, what has no estimate, refusals."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from discreet import mixed
from discreet.cli.app import app
from discreet.models.linear.private import release_mixed
from discreet.models.linear.private.generalised import EMPTY, NOWHERE
from discreet.models.linear.private.owner import look
from discreet.models.linear.private.slopes import WORD
from discreet.words.errors import DiscreetError
from faults_of import about

PUBLIC = ["x", "g", "k", "size"]


def data(rows: int = 6000, groups: int = 30, seed: int = 0, dispersed: bool = False) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    g, x, k = rng.integers(0, groups, rows), rng.uniform(-1, 1, rows), rng.integers(0, 3, rows)
    size = rng.uniform(0.5, 3, rows)
    eta = -0.4 + 0.7 * x + 0.4 * rng.normal(size=groups)[g] + 0.3 * k
    mean = size * np.exp(eta) * (rng.gamma(1, 1, rows) if dispersed else 1)
    return {
        "x": x,
        "g": np.array([f"g{i}" for i in g]),
        "k": np.array([f"k{i}" for i in k]),
        "size": size,
        "yes": (rng.uniform(size=rows) < 1 / (1 + np.exp(-eta))).astype(float),
        "count": rng.poisson(mean).astype(float),
    }


FAMILIES: dict[str, dict[str, Any]] = {
    "yes": {"family": "binomial", "bounds": (0, 1)},
    "count": {"family": "poisson", "bounds": (0, 64), "exposure": "size"},
}


@pytest.mark.parametrize("response", FAMILIES)
def test_without_noise_worth_mention_it_is_the_fit_of_all_rows(response: str) -> None:
    """Laplace's approximation is the reference, so that quasi-likelihood is off by part of a standard error."""
    asked = FAMILIES[response]
    rows = data()
    fit = release_mixed(f"{response} ~ x + k + (1 | g)", rows, epsilon=100_000, public=PUBLIC, seed=1, **asked)
    best = mixed(f"{response} ~ x + k + (1 | g)", rows, family=asked["family"], exposure=asked.get("exposure"))
    assert list(fit.fixed) == list(best.fixed)
    for name, value in best.fixed.items():
        assert abs(fit.fixed[name] - value) < 0.1 * best.se[name]
        assert best.se[name] * 0.98 < (fit.se[name] or 0) < 1.15 * best.se[name]
    assert fit.variances["g"] == pytest.approx(best.variances["g"], rel=0.05)
    assert fit.family == asked["family"] and asked["family"] in fit.summary()


@pytest.mark.parametrize("response", FAMILIES)
def test_without_groups_it_solves_the_likelihood_equations(response: str) -> None:
    """The score at the estimate is zero: sums of fitted values are those of the response."""
    rows, asked = data(), FAMILIES[response]
    fit = release_mixed(f"{response} ~ x + k", rows, epsilon=1e8, public=PUBLIC, seed=1, **asked)
    size = rows["size"] if "exposure" in asked else 1.0
    off = rows[response] - size * fit.fitted(rows)
    for column in (np.ones(6000), rows["x"], rows["k"] == "k1", rows["k"] == "k2"):
        assert abs((off * column).sum()) < 0.5  # responses are rounded to 2^14 steps, columns to 2^16


@pytest.mark.parametrize("unit", [1e-300, 1e-20, 1e7, 1e9, 1e300])
def test_units_of_exposure_move_the_constant_alone(unit: float) -> None:
    """Exposure is public: people or thousands of them are one model, and a large exposure is no far estimate."""
    rows, asked = data(2000), FAMILIES["count"] | {"epsilon": 50, "seed": 4, "public": PUBLIC}
    one = release_mixed("count ~ x + k + (1 | g)", rows, **asked)
    other = release_mixed("count ~ x + k + (1 | g)", rows | {"size": unit * rows["size"]}, **asked)
    assert other.beta[1:] == pytest.approx(one.beta[1:], rel=1e-6)
    assert other.beta[0] == pytest.approx(one.beta[0] - np.log(unit), abs=1e-6)
    assert other.variances == pytest.approx(one.variances, rel=1e-6)
    assert list(other.se.values()) == pytest.approx(list(one.se.values()), rel=1e-6)
    assert not any(flag.word == EMPTY for flag in other.flags)


def test_the_exposure_of_counts_is_recorded_as_a_public_column(tmp_path: Any) -> None:
    """Red before: the ledger had the column among the public ones, and nothing said what it is for."""
    asked = {"epsilon": 1, "public": PUBLIC, "ledger": tmp_path / "l.db", "budget": 3, "dataset": "d"}
    fit = release_mixed("count ~ x", data(600), name="rates", **asked, **FAMILIES["count"])
    assert fit.entry is not None
    paid = fit.entry.payload["details"]
    assert paid["exposure"] == "size" and "size" in paid["public"]
    assert fit.exposure == fit.to_dict()["exposure"] == "size" and "per size" in fit.summary()
    plain = release_mixed("count ~ x", data(600), name="counts", **asked, family="poisson", bounds=(0, 64))
    assert plain.entry is not None and not plain.exposure
    assert "exposure" not in {**plain.entry.payload["details"], **plain.to_dict()} and "per " not in plain.summary()


def test_dispersion_of_counts_widens_their_errors() -> None:
    asked = {"epsilon": 50, "public": PUBLIC, "seed": 1, **FAMILIES["count"]}
    plain, wide = (release_mixed("count ~ x", data(dispersed=each), **asked) for each in (False, True))
    assert wide.sigma2 is not None and wide.sigma2 > 1.5
    assert (wide.se["x"] or 0) > 1.2 * (plain.se["x"] or 1)


@pytest.mark.parametrize("response", FAMILIES)
@pytest.mark.parametrize("value", [0.0, 1.0, np.nan, -7.0])
def test_no_response_stops_a_release(response: str, value: float) -> None:
    """All zeros, all ones, nothing at all: a fit, or empty estimates that say so, with the same price."""
    rows = data(600) | {response: np.full(600, value)}
    fit = release_mixed(f"{response} ~ x + (1 | g)", rows, epsilon=1, public=PUBLIC, seed=2, **FAMILIES[response])
    assert np.isfinite(fit.beta).all() or NOWHERE in fit.notes
    assert str(fit.guarantee.loss) == "epsilon=1"


def _true_and_false(tmp_path: Any, gap: bool) -> dict[str, Any]:
    """The outcomes as true and false in every kind of table, with a missing one or without."""
    rows = data(600)
    told = rows["yes"] == 1
    listed: list[Any] = [None if gap and at == 3 else bool(each) for at, each in enumerate(told)]
    table = pa.table(rows | {"yes": pa.array(listed)})
    pq.write_table(table, tmp_path / "d.parquet")
    pacsv.write_csv(table, tmp_path / "d.csv")
    return {
        "list": rows | {"yes": listed},
        "numpy's own": rows | {"yes": [each if each is None else np.bool_(each) for each in listed]},
        "arrow": table,
        "pandas": pd.DataFrame(rows | {"yes": listed}),
        "pandas' own": pd.DataFrame(rows | {"yes": pd.array(listed, dtype="boolean")}),
        "polars": pl.DataFrame(rows | {"yes": listed}),
        "lazy": pl.LazyFrame(rows | {"yes": listed}),
        "DuckDB": duckdb.from_arrow(table),
        "parquet": str(tmp_path / "d.parquet"),
        "csv": str(tmp_path / "d.csv"),
    } | ({} if gap else {"numpy": rows | {"yes": told}})


@pytest.mark.parametrize("gap", [False, True])
def test_true_and_false_are_responses_of_shares(gap: bool, tmp_path: Any) -> None:
    """Red before: refused, but for CSV files, in which every response counted as missing and nothing said so."""
    asked = {"epsilon": 5, "public": PUBLIC, "seed": 1, "family": "binomial"}
    rows = data(600)
    rows["yes"][3] = np.nan if gap else rows["yes"][3]
    expected = release_mixed("yes ~ x + (1 | g)", rows, **asked)
    for kind, table in _true_and_false(tmp_path, gap).items():
        fit = release_mixed("yes ~ x + (1 | g)", table, **asked)
        np.testing.assert_allclose(fit.beta, expected.beta, rtol=1e-9, err_msg=kind)


@pytest.mark.parametrize("entry", [None, np.nan, 0.25, 7, "no", True])
def test_no_entry_among_true_and_false_stops_a_release(entry: Any) -> None:
    """Columns without a type of their own: one row must not decide whether there is a release."""
    rows = data(600)
    told: list[Any] = (rows["yes"] == 1).tolist()
    for table in (rows | {"yes": [entry, *told[1:]]}, pd.DataFrame(rows | {"yes": [entry, *told[1:]]})):
        release_mixed("yes ~ x", table, epsilon=1, public=PUBLIC, seed=1, family="binomial")


@pytest.mark.parametrize("entry", [2**63, -(2**70), 10**400, None, "no"])
@pytest.mark.parametrize("others", [1, "yes"])
@pytest.mark.parametrize("more", [{"family": "binomial"}, {"family": "poisson"}, {}])
def test_no_entry_without_a_type_stops_a_release(others: Any, entry: Any, more: dict[str, Any]) -> None:
    """Red before: whole numbers beyond 64 bits of pandas, and columns of words, which a number among them let pass."""
    rows = data(600)
    bounds = {} if "family" in more and more["family"] == "binomial" else {"bounds": (0, 1)}
    listed = [entry, *[others] * 599]
    for table in (rows | {"yes": listed}, pd.DataFrame(rows | {"yes": pd.Series(listed, dtype=object)})):
        release_mixed("yes ~ x", table, epsilon=1, public=PUBLIC, seed=1, **bounds, **more)


@pytest.mark.parametrize("kind", ["list", "csv", "DuckDB", "pandas"])
def test_the_owner_is_not_told_that_outcomes_are_no_numbers(kind: str, tmp_path: Any) -> None:
    """Red before: true and false in a file, or in a list, were taken for words."""
    table = _true_and_false(tmp_path, gap=False)[kind]
    asked: Any = {"response": "yes", "public": PUBLIC, "bounds": (0, 1)}
    assert not [note for note in look(table, **asked, outcomes=True) if "no numbers" in str(note)]
    words = data(600) | {"yes": ["perhaps"] * 600}
    assert [note for note in look(words, **asked, outcomes=True) if "no numbers" in str(note)]


@pytest.mark.parametrize("more", [{}, {"family": "poisson"}])
def test_true_and_false_are_no_amounts_and_no_counts(more: dict[str, Any]) -> None:
    for outcome in (True, False):
        rows = data(600) | {"yes": np.full(600, outcome)}
        with pytest.raises(DiscreetError, check=about("formula")):
            release_mixed("yes ~ x", rows, epsilon=1, public=PUBLIC, bounds=(0, 1), **more)


def test_a_column_that_separates_has_no_estimate_or_a_wide_one() -> None:
    rows = data(2000)
    rows["yes"] = (rows["x"] > 0).astype(float)
    fit = release_mixed("yes ~ x", rows, epsilon=1e6, public=PUBLIC, seed=2, **FAMILIES["yes"])
    assert NOWHERE in fit.notes or abs(fit.fixed["x"]) > 8


@pytest.mark.parametrize(("epsilon", "most", "seed"), [(1, 20, 8), (2, 64, 8), (2, 64, 23)])
def test_steps_that_go_to_and_fro_end(epsilon: float, most: int, seed: int) -> None:
    """Before, they went past the solution by as much as they were off: these had no estimate, at little noise."""
    asked = {"epsilon": epsilon, "public": PUBLIC, "seed": seed, **FAMILIES["count"], "bounds": (0, most)}
    fit = release_mixed("count ~ x + k + (1 | g)", data(8000, 40, seed), **asked)
    assert {flag.word for flag in fit.flags} == {WORD} and fit.fixed["x"] == pytest.approx(
        0.7, abs=4 * (fit.se["x"] or 0)
    )


def test_what_has_no_estimate_says_so_first() -> None:
    rows = data(60, 3)
    asked = {"epsilon": 0.05, "public": PUBLIC, "seed": 3, **FAMILIES["count"]}
    fit = release_mixed("count ~ x + k + (1 | g)", rows, **asked)
    before = release_mixed.check("count ~ x + k + (1 | g)", rows, **asked | {"seed": None}).expected
    assert {flag.note for flag in fit.flags} == {NOWHERE}
    assert {row["flag"] for row in fit.tidy().to_pylist() if row["estimate"] is None} == {EMPTY}
    assert fit.summary().index(NOWHERE) < fit.summary().index("(Intercept)")
    assert any("no finite estimate" in note for note in before.notes)


@pytest.mark.full_size
@pytest.mark.parametrize("response", FAMILIES)
def test_intervals_hold(response: str) -> None:
    """Of 150 data sets; what has no estimate counts as a miss too."""
    held, empty = [], 0
    for seed in range(150):
        asked = {"epsilon": 1, "public": PUBLIC, "seed": seed, **FAMILIES[response]}
        fit = release_mixed(f"{response} ~ x + k + (1 | g)", data(8000, 40, seed), **asked)
        empty += NOWHERE in fit.notes
        for name, true in (("x", 0.7), ("kk1", 0.3), ("kk2", 0.6)):
            held.append(abs(fit.fixed[name] - true) < 1.96 * (fit.se[name] or 0))
    given = np.mean(held) * 150 / (150 - empty)
    print(f"{response}: {100 * np.mean(held):.1f} % of {len(held)}, {100 * given:.1f} % of estimates, {empty} without")
    assert 0.935 < np.mean(held) < 0.985 and empty <= 1


def test_check_tells_the_errors_at_the_mean_it_supposes() -> None:
    rng = np.random.default_rng(3)
    rows = {"x": rng.uniform(-1, 1, 4000), "yes": (rng.uniform(size=4000) < 0.5).astype(float)}
    check = release_mixed.check("yes ~ x", rows, epsilon=1, public=["x"], family="binomial").expected
    fit = release_mixed("yes ~ x", rows, epsilon=1, public=["x"], family="binomial", seed=1)
    assert list(check.error) == pytest.approx([fit.se["(Intercept)"], fit.se["x"]], rel=0.03)
    assert "link" in str(check)


@pytest.mark.parametrize(
    ("change", "subject"),
    [
        ({"family": "weibull"}, "family"),
        ({"family": "negative-binomial"}, "family"),
        ({"method": "strict"}, "family"),
        ({"lagged": ["x"]}, "family"),
        ({"bounds": (0, 2)}, "bounds"),
        ({"bounds": (-1, 1)}, "bounds"),
        ({"exposure": "size"}, "exposure"),
        ({"family": "poisson", "bounds": (-1, 5)}, "bounds"),
        ({"family": "poisson", "bounds": None}, "bounds"),
        ({"family": "poisson", "exposure": "nothing"}, "public"),
        ({"family": "poisson", "exposure": "flat"}, "exposure"),
        ({"formula": "yes ~ x + (1 + x | g)"}, "formula"),
        ({"formula": "yes ~ x + (1 | g) + (1 | k)"}, "formula"),
    ],
)
def test_bad_requests_are_refused_whatever_the_response_is(change: dict[str, Any], subject: str) -> None:
    asked: dict[str, Any] = {"formula": "yes ~ x + (1 | g)", "family": "binomial", "epsilon": 1}
    asked |= {"bounds": (0, 1), **change}
    for response in (0.0, np.nan):
        rows = data(300) | {"yes": np.full(300, response), "flat": np.zeros(300)}
        with pytest.raises(DiscreetError, check=about(subject)):
            release_mixed(data=rows, public=[*PUBLIC, "flat"], **asked)


@pytest.mark.parametrize("family", ["negative-binomial", "zero-inflated-poisson", "zero-inflated-negative-binomial"])
def test_what_is_only_fitted_names_what_is_released(family: str) -> None:
    """Red before, when it said to use one of the three."""
    with pytest.raises(DiscreetError, check=about("family", naming=("'poisson'",))):
        release_mixed("count ~ x", data(60), epsilon=1, public=PUBLIC, bounds=(0, 20), family=family)


def test_a_release_is_not_of_a_fit_of_counts() -> None:
    """Red before: Python's own error, that there is no such attribute."""
    with pytest.raises(DiscreetError, check=about("release", naming=("release_mixed",))):
        mixed("count ~ x + (1 | g)", data(600), family="poisson").release(epsilon=1)


def test_numbers_of_trials_are_refused_with_what_to_do() -> None:
    """Red before: "function 'cbind' is not allowed", and a list of functions."""
    refused = about("formula", naming=("weights", "exposure"))
    with pytest.raises(DiscreetError, check=refused):
        mixed("cbind(yes, no) ~ x + (1 | g)", data(60), family="binomial")
    with pytest.raises(DiscreetError, check=refused):
        release_mixed("cbind(yes, no) ~ x", data(60), family="binomial", epsilon=1, public=PUBLIC)


@pytest.mark.parametrize("name", ["weights", "trials", "offset", "epsilonn"])
def test_arguments_that_no_release_takes_are_refused_by_name(name: str) -> None:
    """Red before: Python's own TypeError."""
    asked: dict[str, Any] = {"family": "binomial", "epsilon": 1, "public": PUBLIC, name: "x"}
    for ask in (release_mixed, release_mixed.check):
        with pytest.raises(DiscreetError, check=about(name, naming=("exposure", "epsilon"))):
            ask("count ~ x", data(60), **asked)


def test_the_command_releases_families(tmp_path: Any) -> None:
    pq.write_table(pa.table(data(800)), tmp_path / "d.parquet")
    asked = [
        "fit",
        "yes ~ x + (1 | g)",
        str(tmp_path / "d.parquet"),
        "--epsilon",
        "2",
        "--public",
        "x",
        "--public",
        "g",
    ]
    done = CliRunner().invoke(app, [*asked, "--family", "binomial"])
    assert done.exit_code == 0 and "family binomial" in done.stdout
    counts = [each.replace("yes", "count") for each in asked]
    more = ["--family", "poisson", "--bounds", "0", "40", "--exposure", "size", "--public", "size", "--check"]
    assert CliRunner().invoke(app, [*counts, *more]).exit_code == 0
