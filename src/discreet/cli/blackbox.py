"""`discreet audit blackbox`: attack a function of yours and bound its epsilon from below."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.words.errors import DataError, PlanError
from discreet.words.progress import progress_bar


def blackbox_command(
    function: Annotated[str, typer.Argument(help="module:function, importable from here.", show_default=False)],
    a: Annotated[str, typer.Option(help="A data set, as JSON or as @file.json.")],
    b: Annotated[str, typer.Option(help="The neighbouring data set, in the same form.")],
    epsilon: Annotated[str | None, typer.Option(help="The epsilon that the function promises.")] = None,
    delta: Annotated[float, typer.Option(help="The delta that it promises.")] = 0.0,
    trials: Annotated[int, typer.Option(help="Runs on each data set.")] = 50_000,
    confidence: Annotated[float, typer.Option(help="Confidence of the bound.")] = 0.99,
    many: Annotated[bool, typer.Option("--many", help="Call function(data, n), which returns n outputs.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Bound the epsilon of any Python function from below, by its outputs on two neighbouring data sets.

    The function takes a data set and returns a number, a list of numbers or a label. Half of its outputs choose an
    event, the other half count it. The exit code is 1 when the bound exceeds the promised epsilon.

    Example: `discreet audit blackbox mymodule:noisy_count --a 10 --b 11 --epsilon 1`
    """
    from discreet.audit.blackbox import blackbox

    mechanism, data_a, data_b = load(function), parse(a, "--a"), parse(b, "--b")
    with progress_bar() as bar:
        task = bar.add_task(f"running {function}", total=1.0)
        verdict = blackbox(
            mechanism,
            data_a,
            data_b,
            claimed=epsilon,
            delta=delta,
            trials=trials,
            confidence=confidence,
            many=many,
            progress=lambda _, share: bar.update(task, completed=share),
        )
    typer.echo(json.dumps({"function": function, **verdict.to_dict()}) if as_json else f"{function}: {verdict}")
    raise typer.Exit(1 if verdict.refuted else 0)


def load(name: str) -> Callable[..., Any]:
    """The function `module:function`, with the working directory on the path."""
    module, _, function = name.partition(":")
    if not module or not function:
        raise PlanError(
            f"{name!r} names no function.",
            "It is written module:function.",
            "Example: mymodule:noisy_count.",
            about="function",
        )
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(import_module(module), function)
    except ModuleNotFoundError as error:
        raise PlanError(
            f"Module {error.name!r} cannot be imported from {Path.cwd()}.",
            "Modules here and installed ones can.",
            "Run the command in the module's directory, or install it.",
            about="function",
        ) from None
    except AttributeError:
        raise PlanError(
            f"Module {module!r} has no {function!r}.", remedy="Name one of its functions.", about="function"
        ) from None
    if not callable(found):
        raise PlanError(
            f"{name!r} is a {type(found).__name__}, not a function.",
            remedy="Name a function of that module.",
            about="function",
        )
    return found  # type: ignore[no-any-return]


def parse(text: str, option: str) -> Any:
    """JSON, or the JSON in the file after an @."""
    try:
        return json.loads(Path(text[1:]).read_text(encoding="utf-8") if text.startswith("@") else text)
    except OSError:
        raise DataError(
            f"{option} {text}: there is no such file.",
            remedy="Write the data as JSON, or @ and a path.",
            about=option.removeprefix("--"),
        ) from None
    except json.JSONDecodeError:
        raise DataError(
            f"{option} is not JSON.",
            "Numbers, lists and objects are.",
            f"Example: {option} '[1, 2, 3]'.",
            about=option.removeprefix("--"),
        ) from None
