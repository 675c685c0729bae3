"""Names, order and levels of coefficients as R has them: `colnames(model.matrix(formula, data))`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import discreet as dc


@pytest.fixture
def data() -> dict[str, Any]:
    rng = np.random.default_rng(7)
    g = np.arange(120) % 8
    columns = {name: rng.normal(size=120) for name in ("x", "z")} | {"k": rng.normal(size=120) > 0}
    return columns | {"g": g, "y": g + 5 * columns["k"] + rng.normal(size=120)}


@pytest.mark.parametrize(
    ("right", "names"),
    [
        ("k", ["(Intercept)", "kTRUE"]),
        ("0 + k:z", ["kFALSE:z", "kTRUE:z"]),
        (
            "poly(x, 2):poly(z, 2)",
            ["(Intercept)", *(f"poly(x, 2){i}:poly(z, 2){j}" for j in (1, 2) for i in (1, 2))],
        ),
        ("k:poly(x, 2)", ["(Intercept)", *(f"k{k}:poly(x, 2){i}" for i in (1, 2) for k in ("FALSE", "TRUE"))]),
    ],
)
def test_coefficients_have_rs_names_in_rs_order(data: dict[str, Any], right: str, names: list[str]) -> None:
    """Red before: `kTrue`, and the second polynomial varied first."""
    assert list(dc.mixed(f"y ~ {right} + (1 | g)", data).fixed) == names


def test_true_is_a_level_of_every_frame(data: dict[str, Any], tmp_path: Path) -> None:
    pl.DataFrame(data).write_parquet(tmp_path / "rows.parquet")
    expected = dc.mixed("y ~ k + (1 | g)", data)
    for frame in (pa.table(data), pl.DataFrame(data).to_pandas(), str(tmp_path / "rows.parquet")):
        assert dc.mixed("y ~ k + (1 | g)", frame).fixed == pytest.approx(expected.fixed, rel=1e-8)
    new = expected.predict({"k": [True, False], "g": [1, 1]})
    assert new[0] - new[1] == pytest.approx(expected.fixed["kTRUE"])
    grouped = dc.mixed("y ~ x + (1 | k) + (1 | g)", data)
    assert tuple(grouped.effects["k"].levels) == ("FALSE", "TRUE")


@pytest.mark.parametrize("kind", ["arrow", "pandas", "parquet"])
def test_zero_has_no_sign_among_levels(data: dict[str, Any], kind: str, tmp_path: Path) -> None:
    """Red before: 0.0 and -0.0 were two levels of one name."""
    signed = data | {"g": np.where((data["g"] == 0) & data["k"], -0.0, data["g"])}
    pl.DataFrame(signed).write_parquet(tmp_path / "rows.parquet")
    frame = {"arrow": signed, "pandas": pl.DataFrame(signed).to_pandas(), "parquet": str(tmp_path / "rows.parquet")}
    fit = dc.mixed("y ~ x + (1 | g)", frame[kind])
    assert fit.random[0].levels == tuple("01234567")
    assert fit.criterion == pytest.approx(dc.mixed("y ~ x + (1 | g)", data).criterion, rel=1e-9)
