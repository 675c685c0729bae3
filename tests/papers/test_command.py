"""`discreet study`: the list of studies, the command, and a paper's values beside ours."""

from __future__ import annotations

import inspect
import json
import re
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
import typer
from typer.testing import CliRunner

import discreet_papers as studies
from discreet.pages.page import Page
from discreet.pages.study import Study
from discreet.words.errors import DataError, PlanError
from discreet.words.progress import Progress, silent
from discreet_papers.beside import beside
from discreet_papers.command import study as command
from faults_of import about


def outcome(value: float) -> Study:
    return Study("small", "A small study", {"value": value}, Page("A small study", []))


def test_beside_compares_by_label() -> None:
    table = beside({"a": "0.50", "b": 2.0, "only": 1}, {"a": 0.75, "b": 3.0, "new": "-"}, caption="c")
    assert table.columns == ("Quantity", "Paper", "Ours", "Difference")
    assert table.rows == (
        ("a", "0.50", 0.75, 0.25),
        ("b", 2.0, 3.0, 1.0),
        ("only", 1, None, None),
        ("new", None, "-", None),
    )
    ratio = beside({"a": 2, "zero": 0}, {"a": 3, "zero": 1}, caption="c", compare="ratio")
    assert [row[-1] for row in ratio.rows] == [1.5, None]


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A study under its own name, and the arguments it was run with."""
    calls: list[dict[str, Any]] = []

    def run(*, quick: bool = False, data: Path | None = None, seed: int = 0, progress: Progress = silent) -> Study:
        calls.append({"quick": quick, "data": data, "seed": seed})
        progress("half way", 0.5)
        return outcome(float(seed))

    module = ModuleType("small_study")
    module.run = run  # type: ignore[attr-defined]
    module.__spec__ = ModuleSpec("small_study", None)
    monkeypatch.setitem(sys.modules, "small_study", module)
    monkeypatch.setattr(studies, "STUDIES", {"small": "small_study:run", "absent": "no_such_module:run"})
    return calls


def test_only_present_studies_are_listed(registered: list[dict[str, Any]]) -> None:
    assert studies.available() == ["small"]
    assert studies.load("small")(seed=3).results["value"] == 3
    for name in ("absent", "unknown"):
        with pytest.raises(PlanError, check=about("study")):
            studies.load(name)


def test_help_names_every_study() -> None:
    """Before, three were missing."""
    [argument] = get_args(inspect.get_annotations(command, eval_str=True)["name"])[1:]
    assert [*re.findall(r"[a-z0-9]+", argument.help.replace(" or ", ", "))] == [*studies.STUDIES]


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.command()(command)
    return app


def test_command_writes_and_says_where(app: typer.Typer, registered: list[dict[str, Any]], tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["small", "--out", str(tmp_path / "out"), "--quick", "--seed", "7"])
    assert shown.exit_code == 0, shown.output
    assert registered == [{"quick": True, "data": None, "seed": 7}]
    assert str(tmp_path / "out" / "report.html") in shown.stdout.replace("\n", "")
    machine = CliRunner().invoke(app, ["small", "--out", str(tmp_path / "out"), "--json"])
    assert json.loads(machine.stdout) == json.loads((tmp_path / "out/results.json").read_text())


def test_command_refuses_before_it_runs(app: typer.Typer, registered: list[dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    wrong = [["--out", str(tmp_path)], ["--out", str(tmp_path / "out"), "--data", str(tmp_path / "none.csv")]]
    for arguments in wrong:
        failed = CliRunner().invoke(app, ["small", *arguments])
        assert isinstance(failed.exception, DataError)
    assert registered == []
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
