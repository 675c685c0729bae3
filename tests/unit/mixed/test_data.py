"""Any frame gives the same fit; faulty data end with a clear error and never show a value."""

from __future__ import annotations

from collections.abc import Callable
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

from discreet.errors import DataError, FitError
from discreet.mixed import MixedFit, mixed

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


@pytest.mark.spark
@pytest.mark.full_size  # a JVM starts
def test_spark_gives_the_same_fit(panel: dict, expected: MixedFit, tmp_path: Path) -> None:
    from discreet import engines
    from discreet.errors import MissingExtra

    try:
        engine = engines.open("spark")
    except MissingExtra as error:
        pytest.skip(str(error))
    with engine:
        fit = mixed(FORMULA, engine.read(written(pa.table(panel), tmp_path, "parquet")))
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
    with pytest.raises(DataError, match=f"Column '{column}' has missing or infinite values"):
        mixed("y ~ t + industry + (1 | g)", duckdb.connect().from_arrow(table) if lazy else table)


@pytest.mark.parametrize("lazy", [False, True])
def test_log_needs_positive_values(panel: dict, lazy: bool) -> None:
    table = spoiled(panel, "t", -77_123)
    with pytest.raises(DataError, match=r"log\(t\) needs positive values") as caught:
        mixed("y ~ log(t) + (1 | g)", duckdb.connect().from_arrow(table) if lazy else table)
    assert "77" not in str(caught.value)


@pytest.mark.parametrize(
    ("formula", "reason"),
    [
        ("y ~ naics + (1 | g)", "Column 'naics' is not in the data; it has: y, t, industry, g, h"),
        ("industry ~ t + (1 | g)", "industry needs a numeric column"),
        ("y ~ log(industry) + (1 | g)", "needs a numeric column"),
    ],
)
def test_columns_must_exist_and_fit(panel: dict, formula: str, reason: str) -> None:
    with pytest.raises(DataError, match=None) as caught:
        mixed(formula, panel)
    assert reason in str(caught.value)


def test_things_that_are_no_data(panel: dict, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a frame"):
        mixed("y ~ t + (1 | g)", 7)
    with pytest.raises(DataError, match="no file"):
        mixed("y ~ t + (1 | g)", tmp_path / "absent.parquet")
    with pytest.raises(DataError, match="no rows"):
        mixed("y ~ t + (1 | g)", pa.table(panel).slice(0, 0))
    with pytest.raises(DataError, match="no rows"):
        mixed("y ~ t + (1 | g)", duckdb.connect().from_arrow(pa.table(panel).slice(0, 0)))


@pytest.mark.parametrize(
    ("change", "formula", "reason"),
    [
        ({"g": np.zeros(400)}, "y ~ t + (1 | g)", "'g' has one level"),
        ({"g": np.arange(400)}, "y ~ t + (1 | g)", "400 effects but there are only 400 rows"),
        ({"g": np.arange(400) // 2}, "y ~ t + (t | g)", "400 effects but there are only 400 rows"),
        ({"k": np.arange(400)}, "y ~ C(k) + (1 | g)", "400 fixed effects but only 400 rows"),
        ({"y": np.full(400, 3.5)}, "y ~ t + (1 | g)", "response is constant"),
        ({"y": np.arange(400.0), "t": np.arange(400.0)}, "y ~ t + (1 | g)", "exactly"),
        ({"y": np.arange(400.0), "t": np.arange(400.0)}, "y ~ t + (1 | g) + (1 | h)", "exactly"),
    ],
)
def test_models_that_cannot_be_estimated(panel: dict, change: dict, formula: str, reason: str) -> None:
    with pytest.raises(FitError, match=None) as caught:
        mixed(formula, panel | change)
    assert reason in str(caught.value)
