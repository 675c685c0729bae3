"""A study is one directory: all of it or none."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from discreet.pages import charts
from discreet.pages.page import Figure, Heading, Page, Prose, Table
from discreet.pages.study import Study
from discreet.words.errors import DataError
from faults_of import about

ROWS = [{"x": x, "y": float(x * x)} for x in range(5)]


def outcome(value: float = 1.0) -> Study:
    page = Page(
        "A small study",
        [
            Heading("Result"),
            Prose("Text."),
            Table(["Quantity", "Ours"], [["AUC", 0.7142]], "Beside the paper", "beside"),
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
