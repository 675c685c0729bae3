"""`progress` has one shape: what is being done, and the share of the whole that is done."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.audit.influential import Influential
from discreet.progress import silent

SOURCE = Path(dc.__file__).parent
DOORS = [
    name
    for name in dc.__all__
    if inspect.isfunction(getattr(dc, name)) and "progress" in inspect.signature(getattr(dc, name)).parameters
]


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    for path in sorted(SOURCE.rglob("*.py")):
        if "progress" in (text := path.read_text(encoding="utf-8")):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef):
                    yield f"{path.relative_to(SOURCE).as_posix()}: {node.name}", node


def test_every_function_takes_the_same_and_calls_it_with_two() -> None:
    """Before, there were a share alone, two whole numbers, a step with two numbers, and a step alone."""
    taken, wrong = set(), []
    for name, node in functions():
        for argument in (*node.args.args, *node.args.kwonlyargs):
            if argument.arg == "progress":
                taken.add(name)
                kind = None if argument.annotation is None else ast.unparse(argument.annotation)
                wrong += [f"{name}: {kind}"] if kind != "Progress" else []
        for call in ast.walk(node):
            if isinstance(call, ast.Call) and ast.unparse(call.func) in ("progress", "self.progress"):
                wrong += [f"{name}: {ast.unparse(call)}"] if len(call.args) != 2 or call.keywords else []
    assert len(taken) > 40 and not wrong, wrong


def test_nobody_needs_to_listen() -> None:
    assert len(DOORS) == 9
    assert all(inspect.signature(getattr(dc, name)).parameters["progress"].default is silent for name in DOORS)


def rows() -> dict[str, Any]:
    return {"y": np.random.default_rng(0).normal(size=300), "g": np.array(list("abcdef") * 50)}


def posterior() -> Any:
    return dc.mixed("y ~ 1 + (1 | g)", rows(), prior=dc.Prior())


def panel() -> dict[str, Any]:
    return {"series": ["a"] * 24 + ["b"] * 24, "time": [*range(24)] * 2, "value": [float(t % 7) for t in range(48)]}


CALLS = {
    "release_mixed": lambda tell: dc.release_mixed(
        "y ~ 1 + (1 | g)", rows(), epsilon=8, public=["g"], bounds=(-4, 4), method="strict", blocks=10, progress=tell
    ),
    "audit_posterior": lambda tell: dc.audit_posterior(posterior(), rows=[0, 1], progress=tell),
    "monte_carlo_audit": lambda tell: dc.monte_carlo_audit(
        posterior(), rows=Influential(np.array([3]), ("chosen",)), draws=200, progress=tell
    ),
    "blackbox": lambda tell: dc.blackbox(lambda data: data, 0, 1, trials=2000, progress=tell),
    "forecast_panel": lambda tell: dc.forecast_panel(panel(), methods=["naive"], horizon=1, progress=tell),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_what_is_being_done_and_its_share(name: str) -> None:
    told: list[tuple[Any, ...]] = []
    CALLS[name](lambda *given: told.append(given))
    assert told and {tuple(map(type, given)) for given in told} == {(str, float)}
    shares = [share for _, share in told]
    assert shares == sorted(shares) and shares[0] >= 0 and shares[-1] <= 1
