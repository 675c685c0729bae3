"""Missing values of plain fits: how CSV files mark them, what is left out, and what a refusal and a note say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import typer
from typer.testing import CliRunner

import discreet as dc
from discreet.cli.fit import fit
from discreet.models.linear import MixedWarning
from discreet.words.errors import DataError
from faults_of import about

FORMULA = "y ~ x + (1 | g)"
app = typer.Typer()
app.command()(fit)


@pytest.fixture
def rows() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    g = np.arange(90) % 9
    return pl.DataFrame({"y": g + rng.normal(size=90), "x": rng.normal(size=90), "g": [f"g{i}" for i in g]})


def marked(rows: pl.DataFrame, path: Path, **marks: str) -> str:
    """A CSV file of the rows with a mark in the last row of a column."""
    last = pl.int_range(pl.len()) == len(rows) - 1
    given = [
        pl.when(last).then(pl.lit(mark)).otherwise(pl.col(c).cast(pl.String)).alias(c) for c, mark in marks.items()
    ]
    rows.with_columns(given).write_csv(path)
    return str(path)


@pytest.mark.parametrize("column", ["y", "x"])
@pytest.mark.parametrize("mark", ["NA", " NA ", ""])
def test_na_in_a_column_of_numbers_is_missing(rows: pl.DataFrame, tmp_path: Path, column: str, mark: str) -> None:
    """Red before: the column was text, and its values would have been levels."""
    path = marked(rows, tmp_path / "rows.csv", **{column: mark})
    with pytest.raises(DataError, check=about("data", naming=(column, 'missing="drop"'))):
        dc.mixed(FORMULA, path)
    with pytest.warns(MixedWarning):
        found = dc.mixed(FORMULA, path, missing="drop")
    assert found.criterion == pytest.approx(dc.mixed(FORMULA, rows[:-1]).criterion, rel=1e-9)


def test_na_among_words_is_a_word(rows: pl.DataFrame, tmp_path: Path) -> None:
    path = marked(rows, tmp_path / "rows.csv", g="NA")
    assert "NA" in dc.mixed(FORMULA, path).random[0].levels


def test_na_is_missing_in_weights_and_made_columns_and_under_a_dot(rows: pl.DataFrame, tmp_path: Path) -> None:
    path = marked(rows.with_columns(w=pl.lit(2.0)), tmp_path / "rows.csv", w="NA", x="NA")
    for formula in ("y ~ I(x^2) + (1 | g)", "y ~ . + (1 | g)"):
        with pytest.warns(MixedWarning):
            found = dc.mixed(formula, path, weights="w", missing="drop")
        assert found.rows == len(rows) - 1


def test_other_marks_are_refused_with_the_one_that_is_read(rows: pl.DataFrame, tmp_path: Path) -> None:
    for mark in ("n/a", "secret"):
        with pytest.raises(DataError, check=about("formula", naming=("'y'", "NA"))) as refused:
            dc.mixed(FORMULA, marked(rows, tmp_path / "rows.csv", y=mark), missing="drop")
        assert "secret" not in str(refused.value)


def test_infinite_values_are_left_out_by_that_name(rows: pl.DataFrame) -> None:
    infinite = rows.with_columns(y=pl.when(pl.int_range(pl.len()) == 0).then(float("inf")).otherwise(pl.col("y")))
    with pytest.warns(MixedWarning):
        found = dc.mixed(FORMULA, infinite, missing="drop")
    assert any("1 of 90" in note and "infinite" in note for note in found.notes)


def said(*argv: str, capsys: Any, monkeypatch: Any) -> str:
    from discreet.cli.app import main

    monkeypatch.setattr("sys.argv", ["discreet", "fit", *argv])
    with pytest.raises(SystemExit):
        main()
    return str(capsys.readouterr().err)


def test_the_command_has_the_rule_too(rows: pl.DataFrame, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    path = marked(rows, tmp_path / "rows.csv", y="NA")
    done = CliRunner().invoke(app, [FORMULA, path, "--missing", "drop"])
    assert done.exit_code == 0 and "left out" in done.stdout
    assert isinstance(CliRunner().invoke(app, [FORMULA, path]).exception, DataError)
    words = said(FORMULA, path, capsys=capsys, monkeypatch=monkeypatch)
    assert "--missing drop" in words and "dropna" not in words
    for wrong in (["--epsilon", "1"], ["--prior", "sd=10"], ["--draw", "Residual=1, sd=1"]):
        assert CliRunner().invoke(app, [FORMULA, path, "--missing", "drop", *wrong]).exit_code == 2
    assert CliRunner().invoke(app, [FORMULA, path, "--missing", "guess"]).exit_code == 2


def test_the_command_has_points_of_the_quadrature(rows: pl.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    data = rows.with_columns(n=pl.Series(np.random.default_rng(4).poisson(2 + np.arange(90) % 9)))
    data.write_csv(path)
    asked = ["n ~ x + (1 | g)", str(path), "--family", "poisson", "--json"]
    one, nine = (CliRunner().invoke(app, [*asked, *more]).stdout for more in ([], ["--points", "9"]))
    expected = dc.mixed("n ~ x + (1 | g)", data, family="poisson", points=9)
    assert f"{expected.criterion:.8f}"[:10] in nine and one != nine
    for wrong in ([], ["--epsilon", "1", "--family", "poisson"]):
        assert CliRunner().invoke(app, [FORMULA, str(path), "--points", "9", *wrong]).exit_code == 2
