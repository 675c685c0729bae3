"""`progress` has one shape: what is being done, and the share of the whole that is done."""

from __future__ import annotations

import ast
import inspect
import io
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.audit.influential import Influential
from discreet.words import progress as module
from discreet.words.progress import silent, time_left, watched
from source_files import source_files

DOORS = [
    name
    for name in dc.__all__
    if inspect.isfunction(getattr(dc, name)) and "progress" in inspect.signature(getattr(dc, name)).parameters
]


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    for place, path in source_files():
        if "progress" in (text := path.read_text(encoding="utf-8")):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef):
                    yield f"{place}: {node.name}", node


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
    assert len(DOORS) == 11
    assert all(inspect.signature(getattr(dc, name)).parameters["progress"].default is silent for name in DOORS)


def rows() -> dict[str, Any]:
    return {"y": np.random.default_rng(0).normal(size=300), "g": np.array(list("abcdef") * 50)}


def crossed() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    g, h, x = rng.integers(0, 30, 600), rng.integers(0, 20, 600), rng.normal(size=600)
    y = rng.poisson(np.exp(1 + 0.3 * x + 0.4 * rng.normal(size=30)[g] + 0.3 * rng.normal(size=20)[h]))
    return {"y": y, "x": x, "g": g, "h": h, "s": g % 2}


CROSSED = "y ~ x + (1 | g) + (1 | h)"


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
    "mixed": lambda tell: dc.mixed("y ~ x + (1 | g)", crossed(), progress=tell),
    "mixed of several terms": lambda tell: dc.mixed(CROSSED, crossed(), progress=tell),
    "mixed with strata": lambda tell: dc.mixed(CROSSED, crossed(), residual_by="s", progress=tell),
    "mixed of counts": lambda tell: dc.mixed(CROSSED, crossed(), family="poisson", progress=tell),
    "mixed by quadrature": lambda tell: dc.mixed(
        "y ~ x + (1 | g)", crossed(), family="poisson", points=3, progress=tell
    ),
    "mixed with a prior": lambda tell: dc.mixed(CROSSED, crossed(), prior={"sd": 10}, draws=40, progress=tell),
    "mixed with draws": lambda tell: dc.mixed("y ~ 1 + (1 | g)", rows(), prior=dc.Prior(), draws=40, progress=tell),
    "bayes_mixed": lambda tell: dc.bayes_mixed("y ~ 1 + (1 | g)", rows(), progress=tell),
    "intervals": lambda tell: dc.mixed(CROSSED, crossed()).intervals(progress=tell),
    "intervals of counts": lambda tell: dc.mixed("y ~ x + (1 | g)", crossed(), family="poisson").intervals(
        progress=tell
    ),
    **{
        f"confint by {method}": lambda tell, method=method: dc.mixed(CROSSED, crossed()).confint(
            method=method, replicates=20, progress=tell
        )
        for method in ("profile", "parametric")
    },
    **{
        f"confint of counts by {method}": lambda tell, method=method: dc.mixed(
            "y ~ x + (1 | g)", crossed(), family="poisson"
        ).confint(method=method, replicates=20, progress=tell)
        for method in ("profile", "parametric")
    },
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


def test_a_search_tells_its_evaluations_and_ends_at_one() -> None:
    """Red before: nothing was told between the first row and the last evaluation."""
    told: list[tuple[str, float]] = []
    fit = dc.mixed(CROSSED, crossed(), progress=lambda step, share: told.append((step, share)))
    steps = [step for step, _ in told]
    assert steps[0] == "reading rows" and any(step.startswith("order of elimination") for step in steps)
    counted = [int(step.split()[1].rstrip(",")) for step in steps if step.startswith("evaluation")]
    assert counted == sorted(counted) and 2 < counted[-1] <= fit.solution.evaluations + 1
    assert told[-1][1] == 1.0


def test_a_fit_is_the_same_with_and_without_progress() -> None:
    told = dc.mixed(CROSSED, crossed(), progress=lambda step, share: None)
    assert told.criterion == dc.mixed(CROSSED, crossed()).criterion


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("patience", "terminal", "shown"), [(0.0, True, True), (60.0, True, False), (0.0, False, False)]
)
def test_a_bar_appears_late_and_on_a_terminal_only(
    patience: float, terminal: bool, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(module, "PATIENCE", patience)
    with watched(silent, "fitting") as progress:
        assert (progress is silent) is not terminal
        until = time.monotonic() + 10
        while shown and "half" not in stream.getvalue() and time.monotonic() < until:
            progress("half", 0.5)
            time.sleep(0.01)
        progress("half", 0.5)
    assert ("half" in stream.getvalue()) is shown


def test_a_caller_who_listens_has_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", Terminal())
    heard: list[str] = []

    def listen(step: str, share: float) -> None:
        heard.append(step)

    with watched(listen, "fitting") as progress:
        assert progress is listen


def test_a_time_is_no_more_exact_than_a_guess() -> None:
    assert [time_left(seconds) for seconds in (0.2, 90, 150, 7000, 14_500)] == [
        "1 s",
        "90 s",
        "2 min",
        "117 min",
        "4 h",
    ]
