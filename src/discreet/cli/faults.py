"""The faults of a request, for a machine that asked for JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import typer

from discreet.words.errors import DiscreetError
from discreet.words.voices import COMMAND, PLAN, PYTHON, Command

VOICE: ContextVar[Command] = ContextVar("VOICE", default=COMMAND)
"""The voice of the command that runs: it uses the command's own options."""


def speak(command: Any) -> None:
    """Name things as the command does; keys of its plan as plans do; everything else as Python does."""
    taken = {parameter.name: parameter for parameter in command.params}
    VOICE.set(
        Command(
            {option for each in taken.values() for option in (*each.opts, *each.secondary_opts)},
            {name: each.metavar or name.upper() for name, each in taken.items() if each.param_type_name == "argument"},
            PLAN if "plan" in taken else PYTHON,
        )
    )


@contextmanager
def faults_as_json(asked: bool, *, verdict: str | None = None) -> Iterator[None]:
    """Print an error as an object on the standard output too, `verdict` false, and let it go on as any other.

    Each fault has what it is about and the line of the plan, or null, and the message that people read.
    """
    try:
        yield
    except (DiscreetError, typer.BadParameter) as error:
        if asked:
            nothing = {} if verdict is None else {verdict: False}
            typer.echo(json.dumps(nothing | {"faults": _listed(error)}, indent=2))
        raise


def _listed(error: DiscreetError | typer.BadParameter) -> list[dict[str, Any]]:
    if not isinstance(error, DiscreetError):
        return [{"line": None, "about": None, "message": str(error)}]
    return [
        {"line": None if fault.at is None else fault.at.line, "about": fault.about, "message": fault.told(VOICE.get())}
        for fault in error.faults
    ]
