"""Formulas with columns made of columns, splines, dates and dots, against lme4 (`formulas.R` made the numbers)."""

from __future__ import annotations

import datetime
import json
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import pyarrow.csv
import pyarrow.parquet
import pytest

import discreet as dc
from discreet.data.frames import collect, open_frame
from discreet.models.formula.arithmetic import with_columns
from discreet.models.formula.formula import read_formula
from discreet.models.linear import MixedWarning
from discreet.words.errors import DataError, FormulaError
from faults_of import about

HERE = Path(__file__).parent
PUBLISHED = json.loads((HERE / "formulas.json").read_text())


def panel(formula: str) -> Any:
    table = pyarrow.csv.read_csv(HERE / "panel.csv")
    if "." in formula:
        table = table.select(["y", "x", "z", "a", "g"])
    when = [datetime.date(2020, 1, 31) + datetime.timedelta(days=3 * (i + 1)) for i in range(table.num_rows)]
    return table.append_column("when", pyarrow.array(when)) if "." not in formula else table


@pytest.mark.parametrize("theirs", PUBLISHED, ids=lambda each: each["formula"])
def test_fits_are_lme4s(theirs: dict[str, Any]) -> None:
    data = panel(theirs["formula"])
    dotted = re.search(r" \.", theirs["formula"])
    with pytest.warns(MixedWarning) if dotted else nullcontext():  # of the group that a dot leaves out
        fit = dc.mixed(theirs["formula"], data)
    assert fit.criterion == pytest.approx(theirs["criterion"], rel=1e-8)
    for (name, value), mine in zip(theirs["fixef"].items(), fit.names, strict=True):
        either = name.replace("either", "I(!(x <= 2) | z == 0.24)")
        assert mine == either.replace("days", "days(when)").replace("df = ", "df=")
        assert fit.fixed[mine] == pytest.approx(value, rel=1e-4, abs=1e-6)
    np.testing.assert_allclose(fit.predict(data.slice(0, 3)), theirs["new"], rtol=1e-5)


def test_a_lazy_frame_makes_the_same_columns(tmp_path: Path) -> None:
    formula = "y ~ I(x^2) + exp(z/2) + (1 | g)"
    pl.read_csv(HERE / "panel.csv").write_parquet(tmp_path / "panel.parquet")
    lazy, eager = dc.mixed(formula, str(tmp_path / "panel.parquet")), dc.mixed(formula, panel(formula))
    assert lazy.criterion == pytest.approx(eager.criterion, rel=1e-10)


def test_a_comparison_is_a_factor_and_missing_where_a_side_is(tmp_path: Path) -> None:
    """Red before: comparisons were not read. Engines order what is no number in several ways."""
    values = {"x": [1.0, 3.0, None, float("nan"), 2.0], "z": [0.0, 1.0, 1.0, 1.0, 5.0]}
    table = pyarrow.table(values)
    pyarrow.parquet.write_table(table, tmp_path / "few.parquet")
    asked = {
        "I(x > 2)": ["FALSE", "TRUE", None, None, "FALSE"],
        "I(!(x > 2) & z >= 5)": ["FALSE"] * 2 + [None] * 2 + ["TRUE"],
    }
    asked["I((x == 2) + z)"] = [0.0, 1.0, None, None, 6.0]  # type: ignore[list-item]
    made = dict(read_formula(f"y ~ {' + '.join(asked)} + (1 | g)").made)
    for data in (table, pl.DataFrame(values), pl.LazyFrame(values), table.to_pandas(), str(tmp_path / "few.parquet")):
        found = with_columns(open_frame(data) if isinstance(data, str) else nw.from_native(data), made)
        frame = collect(found, step="comparisons") if isinstance(found, nw.LazyFrame) else found.to_arrow()
        for name, wanted in asked.items():
            given = [None if value is None or value != value else value for value in frame[name].to_pylist()]
            assert given == wanted


def test_a_comparison_is_a_response_a_slope_and_an_offset() -> None:
    data = pl.read_csv(HERE / "general.csv").with_columns(many=(pl.col("count") > 2).cast(pl.Int64))
    said = data.with_columns(above=pl.when(pl.col("x") > 0).then(pl.lit("yes")).otherwise(pl.lit("no")))
    mine = dc.mixed("I(count > 2) ~ I(x > 0) + (1 | g)", data, family="binomial")
    theirs = dc.mixed("many ~ above + (1 | g)", said, family="binomial")
    np.testing.assert_allclose(mine.beta, theirs.beta, rtol=1e-9)
    mine, theirs = dc.mixed("share ~ (I(x > 0) | g)", data), dc.mixed("share ~ (above | g)", said)
    assert mine.criterion == pytest.approx(theirs.criterion, rel=1e-10)
    new = {"x": [0.5, -0.5], "g": [1, 2]}
    np.testing.assert_allclose(mine.predict(new), theirs.predict(new | {"above": ["yes", "no"]}), rtol=1e-8)
    moved = dc.mixed("count ~ x + offset(x > 0) + (1 | g)", data, family="poisson")
    named = dc.mixed("count ~ x + (1 | g)", data.with_columns(o=(pl.col("x") > 0) * 1.0), family="poisson", offset="o")
    assert moved.criterion == pytest.approx(named.criterion, rel=1e-12)


def test_days_of_a_file_are_days_of_a_frame(tmp_path: Path) -> None:
    """Red before: no date of a file could be made a number, and a raw error said so."""
    formula, eager = "y ~ days(when) + (1 | g)", panel("y")
    expected = dc.mixed(formula, eager)
    pyarrow.csv.write_csv(eager, tmp_path / "panel.csv")
    pyarrow.parquet.write_table(eager, tmp_path / "panel.parquet")
    for file in ("panel.csv", "panel.parquet"):
        assert dc.mixed(formula, str(tmp_path / file)).fixed == pytest.approx(expected.fixed, rel=1e-9)
    odd = np.array(["0001-01-01", "1582-10-15", "1899-12-31", "1900-02-28", "1970-01-01", "2000-02-29", "2400-12-31"])
    at = np.concatenate([odd.astype("M8[ms]"), np.arange("1960-01-01T07:08:09.123", "2110", 10**10, dtype="M8[ms]")])
    table, made = pyarrow.table({"when": at}), {"d": ("call", "days", ("column", "when"))}
    pyarrow.parquet.write_table(table, tmp_path / "days.parquet")
    for data in (table, pl.DataFrame(table), table.to_pandas(), str(tmp_path / "days.parquet")):
        found = with_columns(open_frame(data) if isinstance(data, str) else nw.from_native(data), made)
        days = collect(found, step="days") if isinstance(found, nw.LazyFrame) else found.to_arrow()
        np.testing.assert_allclose(days["d"].to_numpy(), at.astype(np.int64) / 86_400_000, rtol=0, atol=1e-9)


@pytest.mark.parametrize("form", ["%d/%m/%Y", "%d-%b-%y", "%d-%m-%y %H:%M:%S"])
def test_days_of_other_spellings_are_refused_with_the_one_that_is_read(form: str, tmp_path: Path) -> None:
    data = panel("y")
    days = [(datetime.datetime(2020, 1, 31) + datetime.timedelta(days=9 * (i % 9))) for i in range(data.num_rows)]
    spelled = data.drop_columns("when").append_column("when", [[day.strftime(form) for day in days]])
    pyarrow.csv.write_csv(spelled, tmp_path / "panel.csv")
    with pytest.raises(DataError, check=about("formula")):
        dc.mixed("y ~ days(when) + (1 | g)", str(tmp_path / "panel.csv"))
    clock = data.drop_columns("when").append_column("when", [[datetime.time(i % 24) for i in range(data.num_rows)]])
    with pytest.raises(DataError, check=about("formula")):
        dc.mixed("y ~ days(when) + (1 | g)", clock)
    with pytest.warns(MixedWarning, match="dates"):
        dc.mixed("y ~ when + (1 | g)", str(tmp_path / "panel.csv"))


def test_natural_splines_go_on_as_lines() -> None:
    data = panel("y")
    fit = dc.mixed("y ~ ns(x, df=3) + (1 | g)", data)
    high = float(np.max(data["x"].to_numpy()))
    ends = fit.predict({"x": [high + 1, high + 2, high + 3], "g": ["g01"] * 3}, level="marginal")
    assert ends[1] - ends[0] == pytest.approx(ends[2] - ends[1], rel=1e-8)


def test_missing_values_are_dropped_where_that_is_declared() -> None:
    data = pl.read_csv(HERE / "panel.csv")
    holes = data.with_columns(x=pl.when(pl.int_range(pl.len()) < 7).then(None).otherwise(pl.col("x")))
    with pytest.raises(DataError, check=about("data")):
        dc.mixed("y ~ x + (1 | g)", holes)
    with pytest.warns(MixedWarning):
        fit = dc.mixed("y ~ x + (1 | g)", holes, missing="drop")
    assert fit.criterion == pytest.approx(dc.mixed("y ~ x + (1 | g)", data[7:]).criterion, rel=1e-12)
    assert any("7 of" in note for note in fit.notes)
    with pytest.raises(DataError, check=about("missing")):
        dc.mixed("y ~ x + (1 | g)", data, missing="guess")


def test_an_offset_moves_the_linear_predictor() -> None:
    data = pl.read_csv(HERE / "general.csv")
    written = dc.mixed("count ~ x + offset(log(e)) + (1 | g)", data, family="poisson")
    named = dc.mixed("count ~ x + (1 | g)", data, family="poisson", exposure="e")
    assert written.criterion == pytest.approx(named.criterion, rel=1e-10)
    linear = dc.mixed("count ~ x + offset(e) + (1 | g)", data)
    moved = dc.mixed("left ~ x + (1 | g)", data.with_columns(left=pl.col("count") - pl.col("e")))
    assert linear.criterion == pytest.approx(moved.criterion, rel=1e-8)
    with pytest.raises(FormulaError, check=about("formula")):  # a release that left it out would be of another model
        dc.release_mixed("x ~ offset(e) + (1 | g)", data, epsilon=1, public=["e", "g"], bounds=(-4, 4))


@pytest.mark.parametrize(
    "text",
    [
        "y ~ I(x; z) + (1 | g)",
        "y ~ I(system(x)) + (1 | g)",
        "y ~ I() + (1 | g)",
        "y ~ I(x",
        "y ~ I(x & z) + (1 | g)",
        "y ~ I(x > 0 && z > 0) + (1 | g)",
        "y ~ I(0 < x < 2) + (1 | g)",
        "y ~ I(!x) + (1 | g)",
        "y ~ I(x = 2) + (1 | g)",
        "y ~ I(a == 'low') + (1 | g)",
        "y ~ x > 2 + (1 | g)",
        *(f"y ~ I({sign * 2000}x{'> 1' * (sign == '!')}) + (1 | g)" for sign in ("-", "!", "x^", "x+")),
    ],
    ids=lambda text: text[:30],
)
def test_only_arithmetic_is_read(text: str) -> None:
    with pytest.raises(FormulaError, check=about("formula")):
        read_formula(text)


def test_a_made_column_needs_numbers_and_is_not_made_for_releases() -> None:
    data = pl.read_csv(HERE / "panel.csv")
    for formula in ("y ~ I(a^2) + (1 | g)", "y ~ days(x) + (1 | g)", "y ~ sqrt(nowhere) + (1 | g)"):
        with pytest.raises(DataError, check=about("formula")):
            dc.mixed(formula, data)
    for public in (["x", "g"], ["x", "g", "I(x^2)"]):
        with pytest.raises(FormulaError, check=about("formula")):
            dc.release_mixed("y ~ I(x^2) + (1 | g)", data, epsilon=1, public=public, bounds=(0, 30))
