"""Each voice names what its reader can set: an option of the command that runs, a label of the form."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import discreet
from discreet.cli.app import Loaded, app, load
from discreet.cli.faults import VOICE, speak
from discreet.desk.estimates import told
from discreet.plan.document import Document
from discreet.words.errors import DiscreetError
from discreet.words.faults import Argument, Fault, Key, With
from discreet.words.voices import COMMAND, FORM, LABELS, Command

SOURCE = Path(discreet.__file__).parent
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


@cache
def parameters() -> list[str]:
    """The parameters that sentences of faults name."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Argument", "Key"):
                first = node.args[0] if node.args else None
                if isinstance(first, ast.Constant):
                    found.add(str(first.value))
    return sorted(found)


def commands() -> Iterator[tuple[str, Any]]:
    for name in Loaded():
        below = getattr(load(name), "commands", None)
        if not below:
            yield name, load(name)
        for word, command in (below or {}).items():
            yield f"{name} {word}", command


def options(command: Any) -> set[str]:
    return {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}


def test_a_command_speaks_of_its_own_options() -> None:
    assert len(parameters()) > 40 and len(list(commands())) > 20
    wrong, said = [], 0
    for name, command in commands():
        speak(command)
        for parameter in parameters():
            for phrase in (Key(parameter), Argument(parameter, (0, 1)), With(Argument(parameter, None))):
                spoken = set(OPTION.findall(phrase.said(VOICE.get())))
                said += len(spoken)
                wrong += [f"{name}: {option}" for option in spoken - options(command)]
    VOICE.set(COMMAND)
    assert said > 100 and not wrong, wrong


def test_options_in_sentences_exist() -> None:
    """Where a sentence writes an option itself, some command has it."""
    every = {option for _, command in commands() for option in options(command)}
    foreign = {"--constraint", "--editable", "--accept-multirun"}  # of pip
    missing = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                texts = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
                used = {option for text in texts if isinstance(text, str) for option in OPTION.findall(text)}
                missing += [f"{path.relative_to(SOURCE)}: {option}" for option in used - every - foreign]
    assert not missing, sorted(set(missing))


def test_what_no_command_takes_is_said_as_plans_or_python_say_it() -> None:
    inside = Command({"--epsilon"}, {"formula": "FORMULA"})
    assert Argument("epsilon", 1).said(inside) == "--epsilon 1"
    assert Argument("stages", (0, 1)).said(inside) == "stages=(0, 1)"
    assert Key("formula").said(inside) == "FORMULA"


@pytest.mark.parametrize("arguments", [["fit", "y ~ x", "no.csv", "--epsilon", "1"], ["check", "no.toml"]])
def test_the_voice_is_the_commands_that_runs(arguments: list[str]) -> None:
    done = CliRunner().invoke(app, arguments)
    assert isinstance(done.exception, DiscreetError | typer.Exit | SystemExit)
    named = load(arguments[0])
    assert VOICE.get().options is None or VOICE.get().options == options(named)
    VOICE.set(COMMAND)


def labels() -> set[str]:
    """The labels and legends of all forms, as their templates write them."""
    text = "".join(path.read_text(encoding="utf-8") for path in (SOURCE / "desk" / "templates").glob("*.html"))
    macros = re.findall(r'(?:field|choice)\([^,]*, "([^"]+)"', text)
    plain = re.findall(r"<(?:label[^>]*|legend)>(?:<input[^>]*?>)? ?([^<{]+)", text)
    ticked = re.findall(r"%}> ([^<{]+)</label>", text)
    return {label.strip() for label in (*macros, *plain, *ticked, *re.findall(r'\("\w+", "([^"]+)", \w+\)', text))}


def test_a_form_is_spoken_of_by_its_labels() -> None:
    assert not set(LABELS.values()) - labels()
    fields = re.findall(r'r ~ "-(\w+)"|"unit-(\w+)"', (SOURCE / "desk/templates/plan.html").read_text(encoding="utf-8"))
    named = {one or other for one, other in fields}
    assert len(named) > 15 and not named - LABELS.keys(), named - LABELS.keys()
    for parameter in parameters():
        said = Argument(parameter, 1).said(FORM)
        assert said == (f"{LABELS[parameter]!r} 1" if parameter in LABELS else f"{parameter} = 1")


def test_the_place_of_a_fault_is_called_as_on_the_form() -> None:
    document = Document(Path("plan.toml"), {"release": [{"name": "jobs", "epsilon": 0}], "unit": {}}, {})
    places = [("release", 0, "epsilon"), ("unit", "alpha"), ("unit",), ("release", 0)]
    found = told(document, [Fault(place, "Wrong.") for place in places])
    assert [each.where for each in found] == ["release 'jobs', Epsilon", "Alpha", "Who is protected", "release 'jobs'"]
    assert {"Epsilon", "Alpha", "Who is protected"} <= labels()
