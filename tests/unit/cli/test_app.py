"""The command tree: every command explains itself with an example, completion works, errors become exit codes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from discreet import demo
from discreet.cli.app import app, main


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    if hasattr(group, "commands"):
        for name, command in group.commands.items():
            yield from commands(command, (*path, name))
    else:
        yield " ".join(path), group


def groups(group: Any) -> Iterator[Any]:
    yield group
    for command in group.commands.values():
        if hasattr(command, "commands"):
            yield from groups(command)


ALL = dict(commands(typer.main.get_command(app)))
GROUPS = list(groups(typer.main.get_command(app)))


def test_the_tree_has_the_product_in_it() -> None:
    assert {"demo", "check", "run", "verify", "plan schema", "ledger show", "ledger verify"} <= set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_help_has_an_example_that_exists(name: str) -> None:
    command = ALL[name]
    assert command.help
    example = re.search(r"Example: `discreet ([^`]+)`", command.help)
    assert example is not None, f"discreet {name} --help has no example"
    assert example[1].startswith(name)
    known = {option for parameter in command.params for option in parameter.opts}
    asked = set(re.findall(r"(?<= )--[a-z-]+", example[1]))
    assert asked <= known, f"{asked - known} is not an option of discreet {name}"


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_help_of_a_group_has_an_example_of_one_of_its_commands(group: Any) -> None:
    example = re.search(r"Example: `discreet ([^`]+)`", group.epilog or "")
    assert example is not None, f"{group.name} --help has no example"
    name = next(name for name in ALL if example[1].startswith(name))
    assert group.name in ("discreet", name.split()[0])
    assert set(re.findall(r"(?<= )--[a-z-]+", example[1])) <= {o for p in ALL[name].params for o in p.opts}


@pytest.fixture(scope="module")
def after_the_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `make demo` was called, with a smaller economy."""
    folder = tmp_path_factory.mktemp("home")
    demo.run(folder / "out" / "demo", share=0.01)
    return folder


CHEAP = (
    *("check", "run", "verify", "plan schema", "ledger show", "ledger verify", "audit verify"),
    *("simulate lodes", "simulate qwi", "simulate crime", "simulate regression"),
)


@pytest.mark.xdist_group("examples of help")
@pytest.mark.parametrize("name", CHEAP)
def test_the_example_runs_after_the_demo(
    name: str, after_the_demo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = re.search(r"Example: `(discreet [^`]+)`", ALL[name].help)
    assert example is not None
    monkeypatch.chdir(after_the_demo)
    monkeypatch.setattr(sys, "argv", shlex.split(example[1].partition(" > ")[0]))
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code, capsys.readouterr().err
    assert capsys.readouterr().out


@pytest.mark.parametrize("name", ALL)
def test_every_option_is_explained(name: str) -> None:
    for parameter in ALL[name].params:
        assert getattr(parameter, "help", None), f"{parameter.opts} of discreet {name}"


@pytest.mark.parametrize(
    ("words", "complete"),
    [("discreet che", "check"), ("discreet ledger ", "verify"), ("discreet run --dr", "--dry-run")],
)
def test_shell_completion(words: str, complete: str) -> None:
    environment = {
        **os.environ,
        "_DISCREET_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    call = [sys.executable, "-c", "import sys; sys.argv = ['discreet']; from discreet.cli import main; main()"]
    done = subprocess.run(call, capture_output=True, text=True, env=environment, check=False)
    assert complete in done.stdout.split(), done
