"""Any frame gives the same fit; faulty data end with a clear error and never show a value."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import discreet as dc
from discreet.models.linear import MixedFit, mixed
from discreet.words.errors import DataError, FitError, FormulaError
from faults_of import about

FORMULA = "y ~ industry + log(t) + scale(t) + (1 | g)"


def written(table: pa.Table, folder: Path, kind: str) -> Path:
    path = folder / f"panel.{kind}"
    (pyarrow.parquet.write_table if kind == "parquet" else pyarrow.csv.write_csv)(table, path)
    return path


FRAMES: dict[str, Callable[[pa.Table, Path], Any]] = {
    "arrow": lambda table, _: table,
    "arrow dictionary": lambda table, _: table.set_column(2, "industry", table["industry"].dictionary_encode()),
    "pandas": lambda table, _: table.to_pandas(),
    "pandas categories": lambda table, _: table.to_pandas().astype({"industry": "category", "g": "category"}),
    "polars": lambda table, _: pl.from_arrow(table),
    "polars lazy": lambda table, _: pl.from_arrow(table).lazy(),
    "polars categories": lambda table, _: pl.from_arrow(table).with_columns(pl.col("industry").cast(pl.Categorical)),
    "duckdb": lambda table, _: duckdb.connect().from_arrow(table),
    "parquet": lambda table, folder: written(table, folder, "parquet"),
    "csv": lambda table, folder: str(written(table, folder, "csv")),
}


@pytest.fixture(scope="module")
def expected(panel: dict) -> MixedFit:
    return mixed(FORMULA, panel)


@pytest.mark.parametrize("kind", FRAMES)
def test_every_frame_gives_the_same_fit(kind: str, panel: dict, expected: MixedFit, tmp_path: Path) -> None:
    fit = mixed(FORMULA, FRAMES[kind](pa.table(panel), tmp_path))
    assert fit.criterion == pytest.approx(expected.criterion, rel=1e-10)
    assert fit.fixed == pytest.approx(expected.fixed, rel=1e-8)
    assert fit.variances == pytest.approx(expected.variances, rel=1e-7)
    assert fit.random[0].levels == expected.random[0].levels
    np.testing.assert_allclose(fit.fitted, expected.fitted, rtol=1e-9)


PLAIN = "y ~ industry * t + (t | g)"  # no function learns from a column, so there is one pass


@pytest.mark.parametrize("kind", ["polars lazy", "duckdb", "parquet", "csv"])
def test_one_pass_gives_the_same_fit(kind: str, panel: dict, tmp_path: Path) -> None:
    memory, engine = mixed(PLAIN, panel), mixed(PLAIN, FRAMES[kind](pa.table(panel), tmp_path))
    assert engine.criterion == pytest.approx(memory.criterion, rel=1e-9)
    assert engine.fixed == pytest.approx(memory.fixed, rel=1e-4)


@pytest.mark.spark
@pytest.mark.full_size  # a JVM starts
def test_spark_gives_the_same_fit(panel: dict, expected: MixedFit, tmp_path: Path) -> None:
    from discreet.data import engines
    from discreet.words.errors import MissingExtra

    try:
        engine = engines.open("spark")
    except MissingExtra as error:
        pytest.skip(str(error))
    with engine:
        data = engine.read(written(pa.table(panel), tmp_path, "parquet"))
        fit = mixed(FORMULA, data)
        once = mixed("y ~ industry + t + (1 | g)", data)
    assert once.criterion == pytest.approx(mixed("y ~ industry + t + (1 | g)", panel).criterion, rel=1e-10)
    assert fit.criterion == pytest.approx(expected.criterion, rel=1e-10)
    assert fit.fixed == pytest.approx(expected.fixed, rel=1e-8)


def test_a_spline_from_a_file_equals_one_from_memory(panel: dict, tmp_path: Path) -> None:
    formula = "y ~ bs(t, df=4) + poly(t, 2):industry + (1 | g)"
    with pytest.warns(UserWarning, match="rank deficient"):
        memory = mixed(formula, panel)
    with pytest.warns(UserWarning, match="rank deficient"):
        file = mixed(formula, written(pa.table(panel), tmp_path, "parquet"))
    assert file.criterion == pytest.approx(memory.criterion, rel=1e-10)


def test_levels_keep_the_order_their_type_gives(panel: dict) -> None:
    order = ["i3", "i0", "i4", "i1", "i2"]
    frame = pd.DataFrame(panel).assign(industry=lambda d: pd.Categorical(d["industry"], categories=[*order, "unused"]))
    assert list(mixed("y ~ industry + (1 | g)", frame).fixed) == ["(Intercept)", *(f"industry{k}" for k in order[1:])]
    enum = pl.DataFrame(panel).with_columns(pl.col("industry").cast(pl.Enum(order)))
    assert mixed("y ~ industry + (1 | g)", enum).names[1] == "industryi0"


def test_numbers_become_categories_with_c(panel: dict) -> None:
    coded = panel | {"k": np.char.strip(panel["industry"], "i").astype(int)}
    as_number, as_category = mixed("y ~ k + (1 | g)", coded), mixed("y ~ C(k) + (1 | g)", coded)
    assert len(as_number.names) == 2
    assert as_category.names == ("(Intercept)", "C(k)1", "C(k)2", "C(k)3", "C(k)4")
    assert as_category.criterion == pytest.approx(mixed("y ~ industry + (1 | g)", panel).criterion)


def spoiled(panel: dict, column: str, value: object) -> pa.Table:
    values = [*panel[column].tolist()[:-1], value]
    return pa.table(panel | {column: pa.array(values)})


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    ("column", "value"),
    [("y", None), ("y", float("nan")), ("y", float("inf")), ("t", None), ("industry", None), ("g", None)],
)
def test_missing_values_are_named_by_column(panel: dict, column: str, value: object, lazy: bool) -> None:
    table = spoiled(panel, column, value)
    with pytest.raises(DataError, check=about("data")):
        mixed("y ~ t + industry + (1 | g)", duckdb.connect().from_arrow(table) if lazy else table)


@pytest.mark.parametrize("lazy", [False, True])
def test_log_needs_positive_values(panel: dict, lazy: bool) -> None:
    table = spoiled(panel, "t", -77_123)
    with pytest.raises(DataError, check=about("formula")) as caught:
        mixed("y ~ log(t) + (1 | g)", duckdb.connect().from_arrow(table) if lazy else table)
    assert "77" not in str(caught.value)


@pytest.mark.parametrize(
    ("formula", "reason"),
    [
        ("y ~ naics + (1 | g)", "Column 'naics' is not in the data. It has: y, t, industry, g, h"),
        ("industry ~ t + (1 | g)", "industry needs a numeric column"),
        ("y ~ log(industry) + (1 | g)", "needs a numeric column"),
        ("truth ~ t + (1 | g)", "truth needs a numeric column"),
    ],
)
def test_columns_must_exist_and_fit(panel: dict, formula: str, reason: str) -> None:
    with pytest.raises(DataError) as caught:
        mixed(formula, panel | ({"truth": panel["t"] > 50} if "truth" in formula else {}))
    assert reason in str(caught.value)


def test_things_that_are_no_data(panel: dict, tmp_path: Path) -> None:
    for thing in (7, None, [1, 2], {"y": 1, "t": 2, "g": 3}, {"y": [1, 2], "t": [1], "g": [1]}, {"y": [1j]}):
        with pytest.raises(DataError) as refused:
            mixed("y ~ t + (1 | g)", thing)
        assert refused.value.about == "data"
    with pytest.raises(DataError, check=about("data")):
        mixed("y ~ t + (1 | g)", tmp_path / "absent.parquet")
    with pytest.raises(DataError, check=about("data")):
        mixed("y ~ t + (1 | g)", pa.table(panel).slice(0, 0))
    with pytest.raises(DataError, check=about("data")):
        mixed("y ~ t + (1 | g)", duckdb.connect().from_arrow(pa.table(panel).slice(0, 0)))
    with pytest.raises(FormulaError, check=about("formula")):
        mixed(None, panel)  # type: ignore[arg-type]


@pytest.mark.parametrize("frame", [pa.table, pd.DataFrame], ids=["arrow", "pandas"])
def test_two_columns_of_one_name_are_refused(panel: dict, frame: Callable[[dict], Any]) -> None:
    table = frame(panel)
    double = table.append_column("t", table["t"]) if isinstance(table, pa.Table) else pd.concat([table, table], axis=1)
    with pytest.raises(DataError) as refused:
        mixed("y ~ t + (1 | g)", double)
    assert refused.value.about == "data"


def test_labels_in_a_csv_stay_labels(panel: dict, tmp_path: Path) -> None:
    """A database would read yes and no, or T and F, as truths and name the coefficient after them."""
    answers = panel | {"paid": np.where(panel["t"] > 60, "yes", "no"), "sex": np.where(panel["t"] % 2 == 0, "F", "T")}
    file = mixed("y ~ paid + sex + (1 | g)", written(pa.table(answers), tmp_path, "csv"))
    assert file.names == ("(Intercept)", "paidyes", "sexT")
    assert file.fixed == pytest.approx(mixed("y ~ paid + sex + (1 | g)", answers).fixed)


@pytest.mark.parametrize("lazy", [False, True])
def test_levels_are_values_and_never_missing(panel: dict, lazy: bool) -> None:
    def opened(columns: dict) -> Any:
        return duckdb.connect().from_arrow(pa.table(columns)) if lazy else columns

    with pytest.raises(DataError, check=about("data")):
        mixed("y ~ t + (1 | g)", opened(panel | {"g": np.where(panel["t"] == 50, np.nan, panel["g"])}))
    with pytest.raises(DataError, check=about("formula")):
        mixed("y ~ t + (1 | g)", opened(panel | {"g": [[1]] * 400}))


def test_a_pass_about_a_bad_guess_is_repeated(panel: dict) -> None:
    """The first rows say 0 and the others lie at a million: sums about the first rows' mean would keep few digits."""
    far = np.where(np.arange(400) < 2, 0.0, 1e9 + panel["t"])
    columns = {name: np.concatenate([np.full(1500, value[0]), value]) for name, value in panel.items()}
    columns["x"] = np.concatenate([np.linspace(0, 1, 1500), far])
    columns["y"] = columns["y"] + np.random.default_rng(3).normal(size=1900)
    memory = mixed("y ~ x + (1 | g)", columns)
    engine = mixed("y ~ x + (1 | g)", duckdb.connect().from_arrow(pa.table(columns)))
    assert engine.criterion == pytest.approx(memory.criterion, rel=1e-10)
    assert engine.fixed == pytest.approx(memory.fixed, rel=1e-7)
    constant = columns | {"x": 1e9 + np.arange(1900) % 7}
    memory = mixed("y ~ x + (x | g)", constant)
    engine = mixed("y ~ x + (x | g)", duckdb.connect().from_arrow(pa.table(constant)))
    assert engine.criterion == pytest.approx(memory.criterion, rel=1e-6)


@pytest.mark.parametrize(
    ("change", "formula", "reason"),
    [
        ({"g": np.zeros(400)}, "y ~ t + (1 | g)", "'g' has one level"),
        ({"g": np.arange(400)}, "y ~ t + (1 | g)", "400 effects but there are only 400 rows"),
        ({"g": np.arange(400) // 2}, "y ~ t + (t | g)", "400 effects but there are only 400 rows"),
        ({"k": np.arange(400)}, "y ~ C(k) + (1 | g)", "400 fixed effects but only 400 rows"),
        ({"y": np.full(400, 3.5)}, "y ~ t + (1 | g)", "response is constant"),
        ({"y": 1e200 * np.arange(400.0)}, "y ~ t + (1 | g)", "too large for a double"),
        ({"y": 1e-200 * np.arange(400.0)}, "y ~ t + (1 | g)", "too small for a double"),
        ({"y": np.arange(400.0), "t": np.arange(400.0)}, "y ~ t + (1 | g)", "exactly"),
        ({"y": np.arange(400.0), "t": np.arange(400.0)}, "y ~ t + (1 | g) + (1 | h)", "exactly"),
    ],
)
def test_models_that_cannot_be_estimated(panel: dict, change: dict, formula: str, reason: str) -> None:
    with pytest.raises(FitError) as caught:
        mixed(formula, panel | change)
    assert reason in str(caught.value)


def numbers_as_objects() -> dict[str, Any]:
    """The same numbers as pandas has them of a database or of lists: decimals, doubles, whole ones with a gap."""
    x = np.random.default_rng(3).normal(size=120).round(2)
    return {"decimals": [Decimal(str(value)) for value in x], "doubles": [float(value) for value in x], "x": x}


@pytest.mark.parametrize("kind", ["decimals", "doubles"])
def test_numbers_that_pandas_keeps_as_objects_are_numbers(kind: str) -> None:
    """Before, each value was a level: hundreds of coefficients without a word, and the values of a measured column."""
    columns, rng = numbers_as_objects(), np.random.default_rng(4)
    data = pd.DataFrame({"y": rng.normal(size=120) + columns["x"] + np.arange(120) % 6, "g": np.arange(120) % 6})
    data["x"] = pd.Series(columns[kind], dtype=object)
    typed = data.assign(x=columns["x"])
    assert dc.mixed("y ~ x + (1 | g)", data).beta == pytest.approx(dc.mixed("y ~ x + (1 | g)", typed).beta)
    asked: dict[str, Any] = {"epsilon": 9, "bounds": (-5, 5), "public": ["x", "g"], "seed": 1}
    drawn = [dc.release_mixed("y ~ x", rows, **asked).beta for rows in (data, typed)]
    assert drawn[0] == pytest.approx(drawn[1])
    with pytest.raises(FormulaError):
        dc.release_mixed("y ~ C(x)", data, **asked)


@pytest.mark.parametrize(
    "values",
    [
        [date(2024, 1, 1) + timedelta(days=i % 9) for i in range(120)],
        [time(i % 24, 30) for i in range(120)],
        list(pd.period_range("2020-01", periods=120, freq="M")),
        [1, "a", 2.5, None] * 30,
        [1 + 2j] * 120,
    ],
    ids=["dates", "times", "periods", "mixed", "complex"],
)
def test_objects_that_are_no_numbers_and_no_text_are_refused(values: list[Any]) -> None:
    """Before, dates and times were levels, and periods ended in an error of Arrow's."""
    rng = np.random.default_rng(4)
    data = pd.DataFrame({"y": rng.normal(size=120) + np.arange(120) % 6, "g": np.arange(120) % 6})
    data["x"] = pd.Series(values)
    data["object"] = pd.Series(values, dtype=object)
    for column in ("x", "object"):
        with pytest.raises(DataError, check=about("formula")):
            dc.mixed(f"y ~ {column} + (1 | g)", data)
        with pytest.raises(DataError, check=about("formula")):
            dc.release_mixed(f"y ~ {column}", data, epsilon=9, bounds=(-5, 5), public=[column], seed=1)
    dc.mixed("y ~ 1 + (1 | g)", data)  # what no formula names may be anything
