"""Whether a response is missing is protected: no rule for missing values may leave its row out of a release."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc

ROWS, GROUPS = 600, 10
PAID = {"epsilon": 5, "public": ["g", "x"], "bounds": (0, 1), "seed": 1}


def table(missing: np.ndarray | None = None, *, odd: float = np.nan) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    g, x = rng.integers(0, GROUPS, ROWS), rng.normal(size=ROWS)
    y = np.clip(0.5 + 0.1 * rng.normal(size=GROUPS)[g] + 0.05 * x + 0.1 * rng.normal(size=ROWS), 0, 1)
    if missing is not None:
        y[missing] = odd
    return {"y": y, "x": x, "g": np.array([f"c{i}" for i in g])}


def released(data: Any, *, updated: bool = False) -> dc.PrivateFit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = dc.mixed("y ~ x + (1 | g)", data, missing="drop")
        return (fit.update(method="ML") if updated else fit).release(**PAID)


def whole_group() -> np.ndarray:
    return np.flatnonzero(table()["g"] == "c3")


@pytest.mark.parametrize("odd", [np.nan, np.inf])
@pytest.mark.parametrize("updated", [False, True])
@pytest.mark.parametrize("missing", [np.arange(1), np.arange(40), whole_group()], ids=["one", "many", "a group"])
def test_rows_whose_response_is_missing_stay_in_a_release(missing: np.ndarray, updated: bool, odd: float) -> None:
    data = table(missing, odd=odd)
    found = released(data, updated=updated)
    assert found.rows == ROWS
    assert list(found.effects["g"].levels) == sorted(set(data["g"]))
    same = dc.release_mixed("y ~ x + (1 | g)", data, **PAID)
    np.testing.assert_array_equal(found.beta, same.beta)


@pytest.mark.parametrize("odd", [None, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("in_file", [False, True], ids=["frame", "file"])
def test_whatever_is_no_number_counts_as_the_middle(odd: float | None, in_file: bool, tmp_path: Path) -> None:
    missing = np.arange(40)
    y = [odd if row in missing else value for row, value in enumerate(table()["y"].tolist())]
    data: Any = pa.table(table() | {"y": pa.array(y, pa.float64())})
    if in_file:
        pq.write_table(data, tmp_path / "rows.parquet")
        data = tmp_path / "rows.parquet"
    found = dc.release_mixed("y ~ x + (1 | g)", data, **PAID)
    middle = dc.release_mixed("y ~ x + (1 | g)", table(missing, odd=0.5), **PAID)
    np.testing.assert_allclose(found.beta, middle.beta, rtol=1e-9)


def test_rows_whose_public_columns_are_missing_are_left_out_as_asked() -> None:
    data = table(np.arange(5))
    data["x"][10:13] = np.nan
    assert released(data).rows == ROWS - 3


def test_a_fit_is_updated_on_all_rows_by_the_same_rule() -> None:
    data = table()
    data["x"][:7] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = dc.mixed("y ~ x + (1 | g)", data, missing="drop")
        assert fit.rows == ROWS - 7 and fit.update(". ~ . - x").rows == ROWS
