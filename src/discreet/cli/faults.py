"""What is wrong with a request, for the machine that asked for JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from discreet.errors import DiscreetError


@contextmanager
def faults_as_json(asked: bool, *, verdict: str | None = None) -> Iterator[None]:
    """Print an error as an object on the standard output too, `verdict` false, and let it go on as any other.

    Each fault has the line of the plan that it is about, or null, and the message that people read.
    """
    try:
        yield
    except (DiscreetError, typer.BadParameter) as error:
        if asked:
            told = [(re.match(r"[^:]+:(\d+): ", line), line) for line in str(error).splitlines()]
            faults = [{"line": int(line[1]), "message": text} for line, text in told if line]
            nothing = {} if verdict is None else {verdict: False}
            typer.echo(json.dumps(nothing | {"faults": faults or [{"line": None, "message": str(error)}]}, indent=2))
        raise
