"""The command tree and the one place where errors become words and exit codes.

A command's file is loaded when it is called, so the list of all commands is quick. The list's words about each are
written here; the tests compare them with the command's own help. `announced` has the commands of others.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from copy import copy
from functools import cache
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from discreet import __version__
from discreet.cli.announced import announced, described, loaded
from discreet.cli.faults import VOICE, speak
from discreet.words import extras
from discreet.words.errors import DataError, DiscreetError, FormulaError, MissingExtra, PlanError, PrivacyError

USAGE, FAILURE, INTERRUPTED = 2, 1, 130

COMMANDS = {
    "demo": (
        "demo:demo",
        "Simulate jobs, carry out a plan, verify it, and attack the release and noise infusion; in under a minute.",
    ),
    "check": (
        "plan:check",
        "Price a plan: cost of every release, what the ledger has left, expected errors, feasibility.",
    ),
    "run": ("plan:run", "Carry a plan out: check, pay, draw, publish, report."),
    "verify": (
        "plan:verify",
        "Check a reviewer's bundle: files, ledger lines, request, guarantees, mechanisms, tables, report.",
    ),
    "publish": (
        "publication:publish",
        "Write a release as CSV, Parquet, Excel, CSVW or SDMX, with code lists, quality flags and guarantee.",
    ),
    "site": (
        "publication:site",
        "Write a web site of a release: searchable tables, downloads, method, guarantee, risks.",
    ),
    "synthesize": (
        "synthesize:synthesize",
        "Draw synthetic establishments and jobs that agree with everything a release published.",
    ),
    "fit": (
        "fit:fit",
        "Fit a linear mixed model by REML, with lme4's syntax and lme4's numbers; "
        "with --epsilon, release it privately.",
    ),
    "data": ("data:data", "Look at a table before any plan exists: for the owner of the data alone."),
    "plan": ("plan:plan", "Write, join and describe plans."),
    "simulate": (
        "simulate:app",
        "Write realistic data to Parquet, reproducibly: nothing confidential is needed to try discreet.",
    ),
    "audit": ("audit:audit", "Check privacy claims: verification of mechanisms, black-box lower bounds."),
    "ledger": (
        "ledger:ledger",
        "A ledger of privacy losses: show what was spent and what remains, check the chain, change a budget.",
    ),
}
"""The module of a command, and the first line of its help."""
BELOW = {"changes": {"between": "between:between"}}
"""What the core adds to the command of a wing."""
PAPERS = "study"
"""The command that a project outside of this package adds."""


class Loaded(Mapping[str, Any]):
    """The commands by name, ours first."""

    def __getitem__(self, name: str) -> Any:
        return load(name)

    def __iter__(self) -> Iterator[str]:
        return iter({**COMMANDS, **announced()})

    def __len__(self) -> int:
        return len({**COMMANDS, **announced()})


@cache
def load(name: str) -> Any:
    """The command, imported when it is first asked for."""
    found = _ours(COMMANDS[name][0]) if name in COMMANDS else _others(name)
    for below, place in BELOW.get(name, {}).items():
        found.command(below)(_ours(place))
    if isinstance(found, typer.Typer):
        command: Any = typer.main.get_group(found)
    else:
        alone = typer.Typer(add_completion=False, rich_markup_mode="markdown")
        alone.command(name)(found)
        command = typer.main.get_command(alone)
    command.name = name
    return command


def _ours(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(import_module(f"discreet.cli.{module}"), attribute)


def _others(name: str) -> Any:
    if name == PAPERS and name not in announced():
        raise MissingExtra(
            f"`discreet {PAPERS}` is not part of this installation.",
            "It repeats the experiments of the five documents, and is the project `papers` in discreet's repository.",
            f"Install it with `{extras.papers()}`."
            if extras.checkout()
            else f"Get that repository and, in its folder, call `{extras.papers()}`.",
            about="command",
        )
    return loaded(name)


class Tree(TyperGroup):
    """All commands. Their list is printed without loading them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "commands": Loaded()})

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        below = getattr(command, "commands", {})
        if command is not None:
            speak(below.get(next((word for word in rest if word in below), ""), command))
        return name, command, rest

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        try:
            return super().get_command(ctx, cmd_name)
        except MissingExtra:
            if not ctx.resilient_parsing:
                raise
            return TyperCommand(cmd_name, hidden=True)  # a shell completes the names of the others

    def invoke(self, ctx: Any) -> Any:
        """Carry the command out; one that is interrupted ends with what it says was spent."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            from discreet.data.failures import interrupted

            if not interrupted(error):  # of a database, which has an exception of its own for Ctrl-C
                raise
            _interrupted(error)
        except KeyboardInterrupt as error:
            _interrupted(error)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        listed = copy(self)
        words = {name: said for name, (_, said) in COMMANDS.items()}
        words |= {name: described(name) for name in announced() if name not in COMMANDS}
        listed.commands = {name: TyperCommand(name, help=said) for name, said in words.items()}
        super(Tree, listed).format_help(ctx, formatter)


app = typer.Typer(
    name="discreet",
    cls=Tree,
    help="Publish statistics from confidential data: privacy proved, cost in accuracy shown first.",
    epilog="Example: `discreet demo --out out/demo` shows the whole way in under a minute.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"discreet {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None: ...


def main() -> None:
    """Run the command line. Wrong requests end with 2, failures with 1, and no traceback hides the reason."""
    try:
        app()
    except (DataError, FormulaError, PlanError, PrivacyError, MissingExtra) as error:
        _fail(error, USAGE)
    except DiscreetError as error:
        _fail(error, FAILURE)


def _interrupted(error: BaseException) -> NoReturn:
    _say("\n".join(["interrupted.", *getattr(error, "__notes__", ())]))
    raise typer.Exit(INTERRUPTED)


def _fail(error: DiscreetError, code: int) -> None:
    if os.environ.get("DISCREET_TRACEBACK"):
        raise error
    _say(error.said(VOICE.get()))
    sys.exit(code)


def _say(text: str) -> None:
    from rich.console import Console

    Console(stderr=True, highlight=False, markup=False, soft_wrap=True).print(f"discreet: {text}")
