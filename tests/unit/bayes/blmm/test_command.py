"""`discreet audit posterior`."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from discreet.cli.posterior_audit import posterior_command
from discreet.words.errors import PlanError


@pytest.fixture
def command():
    app = typer.Typer()
    app.command()(posterior_command)
    return lambda *arguments: CliRunner().invoke(app, list(arguments))


def test_command(tmp_path, data, command) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"y": data.y, "x": data.x[:, 1], "g": data.group}), path)
    done = command("y ~ x + (1 | g)", str(path), "--json", "--draws", "40")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["kind"] == "empirical"
    assert told["rows_audited"] == 60
    assert told["monte_carlo"]["rows_deleted"] <= 32
    assert told["monte_carlo"]["notes"]  # 80 draws are too few, and that is said
    text = command("y ~ x + (1 | g)", str(path)).stdout
    assert "not a privacy guarantee" in text
    assert f"{told['epsilon']:.4g}" in text
    assert isinstance(command("y ~ x + (1 | g)", str(path), "--nu", "0").exception, PlanError)  # ends with 2
