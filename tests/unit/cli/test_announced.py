"""Commands of other distributions: listed without being loaded, loaded when called, and none ends the others."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from discreet.cli import announced
from discreet.cli.app import COMMANDS, app, load
from discreet.words import extras
from discreet.words.errors import MissingExtra
from faults_of import about

WELL = '''
"""A module that would be seen if it were loaded."""
import typer

def weigh(grams: int) -> None:
    """Weigh what was
    published.

    Example: `discreet weigh 3`
    """
    typer.echo(f"{grams} g")

group = typer.Typer(name="scales", help="All scales.")

@group.command()
def show() -> None:
    """One."""

@group.command()
def hide() -> None:
    """Other."""

bare = weigh
'''


def announce(folder: Path, distribution: str, **commands: str) -> None:
    about_it = folder / f"{distribution}-1.dist-info"
    about_it.mkdir()
    (about_it / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1\n")
    lines = [f"{name} = {place}" for name, place in commands.items()]
    (about_it / "entry_points.txt").write_text("\n".join([f"[{announced.GROUP}]", *lines, ""]))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose distributions are installed as long as the test runs."""
    monkeypatch.syspath_prepend(tmp_path)
    before = {*sys.modules}
    announced.announced.cache_clear()
    load.cache_clear()
    yield tmp_path
    announced.announced.cache_clear()
    load.cache_clear()
    for name in {*sys.modules} - before:
        if name.partition(".")[0] in ("scales", "failing"):
            del sys.modules[name]


@pytest.fixture
def scales(place: Path) -> Path:
    (place / "scales").mkdir()
    (place / "scales" / "__init__.py").write_text("")
    (place / "scales" / "well.py").write_text(WELL)
    announce(
        place,
        "scales",
        **{"weigh": "scales.well:weigh", "scales": "scales.well:group", "bare": "scales.well:bare"},
        check="scales.well:weigh",
    )
    return place


def call(*words: str) -> Result:
    return CliRunner().invoke(app, [*words], env={"COLUMNS": "300", "TERMINAL_WIDTH": "300"})


def listed() -> dict[str, str]:
    """What the list of all commands says about each."""
    lines = re.findall(r"^│ (\S+) +(.*?) +│$", call("--help").output, re.MULTILINE)
    return {name: words for name, words in lines if not name.startswith("-")}


def test_a_command_is_listed_with_its_own_words_and_not_loaded(scales: Path) -> None:
    words = listed()
    assert words["weigh"] == "Weigh what was published." and words["scales"] == "All scales."
    assert words["bare"] == "A command of scales."
    assert not {name for name in sys.modules if name.startswith("scales")}


def test_a_command_is_loaded_when_it_is_called(scales: Path) -> None:
    assert call("weigh", "3").output == "3 g\n"
    assert "show" in call("scales", "--help").output
    assert "scales.well" in sys.modules


def test_no_name_of_ours_is_taken(scales: Path) -> None:
    assert listed()["check"] == COMMANDS["check"][1]
    assert load("check").help.startswith("Price a plan")
    assert not {name for name in sys.modules if name.startswith("scales")}


@pytest.mark.parametrize(
    ("text", "is_listed_as_broken"),
    [
        ("import a_module_that_is_not_there\n\ndef sink(): 'Sink.'\n", False),
        ("raise RuntimeError\n\ndef sink(): 'Sink.'\n", False),
        ("def other(): 'Other.'\n", False),
        ("def sink(:\n", True),
        (None, True),
    ],
    ids=["needs what is absent", "raises", "has another function", "is no Python", "has no file"],
)
def test_a_broken_command_says_so_and_the_others_work(place: Path, text: str | None, is_listed_as_broken: bool) -> None:
    if text is not None:
        (place / "failing.py").write_text(text)
    announce(place, "failing", sink="failing:sink")
    words = listed()
    assert words.keys() >= COMMANDS.keys()
    assert words["sink"].startswith("Broken: ") is is_listed_as_broken
    assert ("uninstall failing" in words["sink"]) is is_listed_as_broken
    failed = call("sink").exception
    assert isinstance(failed, MissingExtra) and failed.about == "command"
    [fault] = failed.faults
    assert fault.possible and "uninstall failing" in str(failed)
    assert call("demo", "--help").exit_code == 0


def test_a_shell_completes_the_others(place: Path) -> None:
    announce(place, "failing", sink="failing:sink")
    asked = {"_DISCREET_COMPLETE": "complete_bash", "COMP_WORDS": "discreet si", "COMP_CWORD": "1"}
    code = "import sys; sys.argv = ['discreet']; from discreet.cli import main; main()"
    environment = {**os.environ, **asked, "PYTHONPATH": str(place)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert {"simulate", "site"} <= {*done.stdout.split()} and not done.stderr, done


def test_two_of_a_name_are_told_apart_by_nobody(scales: Path) -> None:
    announce(scales, "other-scales", weigh="elsewhere:weigh")
    assert listed()["weigh"].startswith("Broken: ")
    failed = call("weigh", "3").exception
    assert isinstance(failed, MissingExtra) and {"other-scales", "scales"} <= {*re.findall(r"[\w-]+", str(failed))}
    assert call("scales", "--help").exit_code == 0


@pytest.mark.parametrize("checkout", [True, False])
def test_study_without_the_papers_says_what_it_is_and_how_to_get_it(
    place: Path, checkout: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: ())
    root = extras.checkout()
    monkeypatch.setattr(extras, "checkout", lambda: root if checkout else None)
    assert "study" not in listed()
    for words in (["study"], ["study", "lodes", "--quick", "--out", "out"], ["study", "--help"]):
        with pytest.raises(MissingExtra, check=about("command")) as caught:
            app(words, standalone_mode=False)
        [fault] = caught.value.faults
        assert fault.possible and fault.remedy
    command = re.findall(r"`([^`]+)`", str(caught.value))[-1]
    if checkout:
        assert Path(shlex.split(command)[-1]).resolve() == root / "papers"
        assert (root / "papers" / "pyproject.toml").is_file()
    else:
        assert command == "pip install ./papers"
    assert announced.GROUP == "discreet.commands", "the group's name is promised to other packages"
