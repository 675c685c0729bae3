"""The command tree: every command explains itself with an example, completion works, errors become exit codes."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import discreet
from discreet.cli.announced import announced, described
from discreet.cli.app import COMMANDS, Loaded, app, main
from discreet.cli.demo import program
from discreet.demo import DemoResult
from discreet.words import extras


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


def test_the_list_says_of_each_command_what_it_says_itself() -> None:
    tree = typer.main.get_command(app)
    words = {name: said for name, (_, said) in COMMANDS.items()} | {name: described(name) for name in announced()}
    assert len(words) > len(COMMANDS)
    for name, said in words.items():
        assert said == inspect.cleandoc(tree.commands[name].help).partition("\n\n")[0].replace("\n", " "), name


def test_help_and_version_load_no_command() -> None:
    """What makes them quick, whatever the machine: neither a command's file nor NumPy is read."""
    code = """
import contextlib, io, sys
from discreet.cli import main
for asked in ("--help", "--version"):
    sys.argv = ["discreet", asked]
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
        main()
    print(said.getvalue())
parts = ["cli", "cli.announced", "cli.app", "cli.faults", "words"]
parts += [f"words.{name}" for name in ("errors", "extras", "faults", "voices")]
known = {"discreet", *(f"discreet.{name}" for name in parts)}
print(sorted(name for name in sys.modules if name.startswith("discreet") and name not in known))
print([name for name in ("numpy", "pydantic", "sqlalchemy", "asyncio") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *help_text, version, _, commands, heavy = done.stdout.splitlines()
    assert all(name in "\n".join(help_text) for name in Loaded())
    assert version == f"discreet {discreet.__version__}"
    assert (commands, heavy) == ("[]", "[]")


@pytest.fixture(scope="module")
def after_the_demo(demonstrated: DemoResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `make demo` was called, with a smaller economy."""
    folder = tmp_path_factory.mktemp("home")
    shutil.copytree(demonstrated.folder, folder / "out" / "demo")
    return folder


@pytest.mark.full_size  # .ci/newcomer does the same on a clean checkout
def test_what_the_demo_prints_works_as_printed(tmp_path: Path) -> None:
    call = [sys.executable, "-m", "discreet", "demo", "--out", "out/demo", "--share", "0.01"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    steps = re.findall(r"^  (\S.*?)(?:   .*)?$", done.stdout, re.MULTILINE)
    assert [step.split(" ", 1)[1].split()[0] for step in steps] == ["ledger", "verify", "check", "serve"]
    for step in steps:
        serves = " serve " in step
        call = ["bash", "-c", f"exec {step} --no-browser --port 0" if serves else step]
        with subprocess.Popen(call, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as run:
            assert run.stdout is not None and run.stdout.readline(), step
            if serves:
                run.terminate()
            else:
                run.communicate(timeout=300)
                assert not run.returncode, step


@pytest.mark.parametrize(
    ("on_path", "installed", "expected"),
    [(True, True, "discreet"), (False, True, "bin/discreet"), (False, False, "PYTHON -m discreet")],
)
def test_the_program_is_called_as_the_readers_shell_finds_it(
    on_path: bool, installed: bool, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    if installed:
        (tmp_path / "bin" / "discreet").touch(mode=0o755)
    other = tmp_path / "other"
    other.mkdir()
    (other / "discreet").touch(mode=0o755)  # of another environment
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path / "bin"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}" if on_path else str(other))
    assert program() == expected.replace("PYTHON", extras.python())


CHEAP = (
    *("run", "verify", "plan schema", "ledger show", "ledger verify", "audit verify"),
    *("simulate lodes", "simulate qwi", "simulate crime", "simulate regression"),
)


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
