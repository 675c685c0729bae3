"""What is wrong with a request, for the machine that asked for JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from discreet.errors import DiscreetError
from discreet.faults import COMMAND


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
        {"line": None if fault.at is None else fault.at.line, "about": fault.about, "message": fault.told(COMMAND)}
        for fault in error.faults
    ]
