from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import typer
from typer.testing import CliRunner

from discreet.cli.fit import fit
from discreet.errors import DataError, FormulaError
from discreet.mixed import mixed

FORMULA = "y ~ t + (1 | g)"
app = typer.Typer()
app.command()(fit)


@pytest.fixture
def path(panel: dict, tmp_path: Path) -> Path:
    pyarrow.parquet.write_table(pa.table(panel), tmp_path / "panel.parquet")
    return tmp_path / "panel.parquet"


def test_text_and_json(panel: dict, path: Path) -> None:
    expected = mixed(FORMULA, panel, method="ML")
    text = CliRunner().invoke(app, [FORMULA, str(path), "--ml", "--intervals"])
    assert text.exit_code == 0
    assert "maximum likelihood" in text.stdout
    assert "sd_(Intercept)|g" in text.stdout
    done = CliRunner().invoke(app, [FORMULA, str(path), "--ml", "--json"])
    found = json.loads(done.stdout)
    assert found["criterion"] == pytest.approx(expected.criterion)
    assert found["fixed"] == pytest.approx(expected.fixed)


def test_notes_are_in_the_output(panel: dict, tmp_path: Path) -> None:
    noise, group = np.random.default_rng(0).normal(size=400), panel["g"] - 100
    flat = panel | {"y": noise - (np.bincount(group, noise) / np.bincount(group))[group]}
    pyarrow.parquet.write_table(pa.table(flat), tmp_path / "flat.parquet")
    done = CliRunner().invoke(app, [FORMULA, str(tmp_path / "flat.parquet"), "--json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout)["is_singular"]


def test_refusals(path: Path) -> None:
    assert isinstance(CliRunner().invoke(app, ["y ~ t", str(path)]).exception, FormulaError)
    assert isinstance(CliRunner().invoke(app, [FORMULA, "absent.csv"]).exception, DataError)
