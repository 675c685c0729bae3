"""The study frame: one directory, all of it or none; the registry; the command."""

from __future__ import annotations

import csv
import inspect
import json
import re
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, get_args
from xml.etree import ElementTree

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from discreet import studies
from discreet.cli.study import study as command
from discreet.pages import charts
from discreet.pages.page import Figure, Heading, Page, Prose, Table
from discreet.studies.study import Progress, Study, beside, silent
from discreet.words.errors import DataError, PlanError
from faults_of import about

ROWS = [{"x": x, "y": float(x * x)} for x in range(5)]


def outcome(value: float = 1.0) -> Study:
    page = Page(
        "A small study",
        [
            Heading("Result"),
            Prose("Text."),
            beside({"AUC": "0.71", "n": 3003}, {"AUC": 0.7142, "n": 3003}, caption="Beside the paper", name="beside"),
            Figure(charts.lines(ROWS, "x", "y"), "A parabola.", "Squares"),
        ],
    )
    results = {"value": np.float64(value), "nothing": np.nan, "all": np.arange(3)}
    return Study("small", "A small study", results, page, tables={"long one": Table(["a"], [[1 / 3], [None]], "Long")})


def test_write_puts_down_every_file(tmp_path: Path) -> None:
    out = outcome().write(tmp_path / "deep" / "out")
    files = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    assert files == [
        "figures/squares.csv",
        "figures/squares.svg",
        "report.html",
        "results.json",
        "tables/beside.csv",
        "tables/long-one.csv",
    ]
    written = json.loads((out / "results.json").read_text())
    assert written["study"] == "small"
    assert {"value": 1.0, "nothing": None, "all": [0, 1, 2]}.items() <= written.items()
    assert list(csv.reader((out / "tables/long-one.csv").open())) == [["a"], [repr(1 / 3)], [""]]
    assert list(csv.reader((out / "figures/squares.csv").open()))[-1] == ["4", "16.0"]
    picture = ElementTree.parse(out / "figures/squares.svg").getroot()
    assert picture.findtext("{http://www.w3.org/2000/svg}desc") == "A parabola."
    assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_an_earlier_study_is_replaced(tmp_path: Path) -> None:
    outcome(1.0).write(tmp_path / "out")
    outcome(2.0).write(tmp_path / "out")
    assert json.loads((tmp_path / "out/results.json").read_text())["value"] == 2.0
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("foreign", ["notes.txt", "tables/mine.xlsx", "figures/sub/a.svg"])
def test_a_directory_with_other_files_is_refused(tmp_path: Path, foreign: str) -> None:
    out = outcome().write(tmp_path / "out")
    (out / foreign).parent.mkdir(parents=True, exist_ok=True)
    (out / foreign).write_text("mine")
    with pytest.raises(DataError, check=about("out")):
        outcome(2.0).write(out)
    assert (out / foreign).read_text() == "mine"
    assert json.loads((out / "results.json").read_text())["value"] == 1.0


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(DataError, check=about("out")):
        outcome().write(tmp_path / "out")


def test_a_failure_leaves_the_earlier_study(tmp_path: Path) -> None:
    out = outcome(1.0).write(tmp_path / "out")
    broken = Study("small", "Broken", {"value": object()}, Page("Broken", []))
    with pytest.raises(TypeError):
        broken.write(out)
    assert json.loads((out / "results.json").read_text())["value"] == 1.0
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


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
