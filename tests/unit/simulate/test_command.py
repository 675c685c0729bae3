"""`discreet simulate`: files, words, JSON and refusals."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from discreet.cli.simulate import app
from discreet.words.errors import DataError

runner = CliRunner()

ROWS = {
    "lodes": ({"workplace": 1054, "worker": 21_800, "job": 21_800, "jobs": 21_800}, "0.002"),
    "histories": ({"workplace": 320, "job": 38_508}, "0.002"),
    "qwi": ({"qwi": 4857}, "0.002"),
    "crime": ({"crime": 2592}, "0.1"),
    "regression": ({"regression": 200}, "0.002"),
}


@pytest.mark.parametrize("name", ROWS)
def test_writes_what_it_says(tmp_path, name):
    rows, share = ROWS[name]
    run = runner.invoke(app, [name, "--out", str(tmp_path / "out"), "--share", share, "--seed", "9", "--json"])
    assert run.exit_code == 0
    said = json.loads(run.stdout)
    assert said["rows"] == rows
    assert (said["data"], said["seed"]) == (name, 9)
    for table, n in rows.items():
        assert pq.ParquetFile(tmp_path / "out" / f"{table}.parquet").metadata.num_rows == n
    words = runner.invoke(app, [name, "--out", str(tmp_path / "again"), "--share", share, "--seed", "9"])
    assert f"{max(rows.values()):,} rows" in words.stdout
    for table in rows:
        one, two = (pq.read_table(tmp_path / place / f"{table}.parquet") for place in ("out", "again"))
        assert one.equals(two)


@pytest.mark.parametrize("name", ROWS)
def test_help_has_an_example(name):
    assert f"discreet simulate {name}" in runner.invoke(app, [name, "--help"]).stdout


def test_refusals_write_nothing(tmp_path):
    (tmp_path / "mine").write_text("kept")
    for arguments in (["--out", str(tmp_path)], ["--out", str(tmp_path / "new" / "data"), "--share", "0"]):
        run = runner.invoke(app, ["lodes", "--share", "0.002", *arguments])
        assert isinstance(run.exception, DataError)
    for name in ("qwi", "crime", "regression"):
        run = runner.invoke(app, [name, "--out", str(tmp_path / "new" / "data"), "--share", "99"])
        assert isinstance(run.exception, DataError)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
