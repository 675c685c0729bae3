"""Flows: the loss of the one draw, and of the sizes beside it, is what the ledger was charged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.noise.rings import table as ring_table
from discreet.tables.movement import flow_noise

QUARTERS = ("q1", "q2", "q3")
Workforce = dict[int, tuple[int, int, int, int]]  # who stayed, came and left, came, left
PLACES = {1: "a", 2: "a", 3: "b", 4: "c", 5: "d"}
WORKFORCE: Workforce = {1: (500, 100, 250, 150), 2: (3, 0, 1, 2), 3: (2, 1, 0, 1), 4: (40, 10, 20, 30), 5: (1, 0, 0, 0)}
PRESENT = ((True, True), (False, False), (False, True), (True, False))  # before and after, by kind


def histories(workforce: Workforce) -> Any:
    rows: dict[str, list[Any]] = {"workplace": [], "worker": [], "quarter": []}
    worker = 0
    for firm, kinds in workforce.items():
        for n, (before, after) in zip(kinds, PRESENT, strict=True):
            for _ in range(n):
                worker += 1
                for quarter, there in zip(QUARTERS, (before, True, after), strict=True):
                    if there:
                        rows["workplace"].append(firm)
                        rows["worker"].append(worker)
                        rows["quarter"].append(quarter)
    places = {"workplace": list(PLACES), "place": list(PLACES.values())}
    return dc.read_histories(rows, quarters=QUARTERS, workplaces=places, schema=dc.Schema(["place"], {}))


def grown(firm: int, *more: int) -> Workforce:
    return WORKFORCE | {firm: tuple(n + m for n, m in zip(WORKFORCE[firm], more, strict=True))}  # type: ignore[dict-item]


def neighbours() -> Iterator[Workforce]:
    """A tenth more, all of one kind or of two, or one worker: where more came than left, and where fewer did."""
    yield from (grown(1, 100, 0, 0, 0), grown(1, 0, 0, 100, 0), grown(1, 0, 0, 0, 100), grown(1, 0, 100, 0, 0))
    yield from (grown(4, 0, 0, 10, 0), grown(4, 5, 0, 0, 5), grown(3, 0, 0, 1, 0), grown(5, 0, 0, 0, 1))


def norm(z: np.ndarray) -> np.ndarray:
    stayed, passed, came, left, created = z.T
    cube = np.max(np.abs([came + left, came - left, 2 * created - came + left]), axis=0)
    return np.abs(stayed) + np.abs(passed) + cube


def drawn_loss(law: Any, one: tuple[np.ndarray, float], other: tuple[np.ndarray, float]) -> float:
    """Densities along the change and along every axis, in both directions."""
    t = np.concatenate([[0.0], np.geomspace(1e-2, 1e6, 3000)])
    move = other[0] - one[0]
    ways = [way for way in (move, *np.eye(5)) if np.any(way)]
    points = np.concatenate(
        [c + sign * t[:, None] * way for c in (one[0], other[0]) for way in ways for sign in (1, -1)]
    )
    logs = [ring_table(law).log_height(norm(points - c) / s) - 5 * np.log(s) for c, s in (one, other)]
    return float(np.abs(logs[0] - logs[1]).max())


@pytest.fixture(params=[pytest.param(0, marks=pytest.mark.full_size), "1/4"])
def share(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What pays for sizes. Constants and expected errors are computed once, before draws are recorded."""
    noise = flow_noise.FlowNoise.calibrate(unit=dc.Establishments("0.1"), epsilon="1.5" if request.param else 2)
    noise.expected_error(np.ones(1))
    monkeypatch.setattr(flow_noise.FlowNoise, "calibrate", lambda **asked: noise)
    return request.param


def test_the_losses_of_all_draws_add_up_to_the_charge(share: Any, record: Any) -> None:

    def door(workforce: Workforce) -> tuple[Any, Any]:
        session = dc.Session(histories(workforce), unit=dc.Establishments("0.1"), budget=2)
        done = session.flows("q2", "place").release(epsilon=2, scale_share=share)
        ends = [*done.ends.values(), *done.rate_ends.values()]
        return (done.vectors, done.keys.to_pydict(), *(end for pair in ends for end in pair)), done.entry.loss

    told = record(lambda: door(WORKFORCE))
    worst = 0.0
    for other in neighbours():
        again = record(lambda other=other: door(other), given=told)
        assert told.public[1] == again.public[1]
        numbers = zip((told.public[0], *told.public[2:]), (again.public[0], *again.public[2:]), strict=True)
        assert all(np.array_equal(x, y) for x, y in numbers)
        first, second = told.draws[0], again.draws[0]
        total = 0.0
        cells = zip(first.bare.reshape(-1, 5), first.scale, second.bare.reshape(-1, 5), second.scale, strict=True)
        for x, s, y, t in cells:
            x, y = x.astype(float), y.astype(float)
            if not np.array_equal(x, y) or s != t:
                total += drawn_loss(first.law.law, (x, s), (y, t))
        for a, b in zip(told.draws[1:], again.draws[1:], strict=True):
            assert a.law == "log-laplace"
            total += float(np.abs(np.log(a.parameters[0] / b.parameters[0]) / a.parameters[1]).sum())
        worst = max(worst, total)
    assert told.charged == dc.Pure(2) and len(told.draws) == 1 + bool(share)
    assert 0.97 * 2 <= worst <= 2 * (1 + 1e-9)


FOUR = ("q1", "q2", "q3", "q4")
STAYED, SECOND, BOTH, LATER, FIRST = "1111", "0010", "0110", "0111", "0100"
Patterns = dict[int, dict[str, int]]  # who had a job in which of the four quarters
STOCK: Patterns = {
    1: {STAYED: 500, FIRST: 500, SECOND: 500},
    2: {STAYED: 3, LATER: 2},
    3: {STAYED: 4},
    4: {STAYED: 40, LATER: 60},
    5: {FIRST: 1, SECOND: 1},
}


def of_patterns(stock: Patterns) -> Any:
    rows: dict[str, list[Any]] = {"workplace": [], "worker": [], "quarter": []}
    worker = 0
    for firm, patterns in stock.items():
        for pattern, n in patterns.items():
            for _ in range(n):
                worker += 1
                for quarter, there in zip(FOUR, pattern, strict=True):
                    if there == "1":
                        rows["workplace"].append(firm)
                        rows["worker"].append(worker)
                        rows["quarter"].append(quarter)
    places = {"workplace": list(PLACES), "place": list(PLACES.values())}
    return dc.read_histories(rows, quarters=FOUR, workplaces=places, schema=dc.Schema(["place"], {}))


def grown_in_both(firm: int, **more: int) -> Patterns:
    own = STOCK[firm]
    return STOCK | {firm: own | {name[1:]: own.get(name[1:], 0) + n for name, n in more.items()}}


@pytest.mark.parametrize("share", [pytest.param(0, marks=pytest.mark.full_size), "1/4"])
def test_two_quarters_together_lose_no_more_than_the_charge(
    share: Any, record: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An establishment grows by a tenth, or one worker, in both quarters at once."""
    epsilon = "1.5" if share else 2
    noise = flow_noise.FlowNoise.calibrate(unit=dc.Establishments("0.1"), epsilon=epsilon, quarters=2)
    noise.expected_error(np.ones(1))
    monkeypatch.setattr(flow_noise.FlowNoise, "calibrate", lambda **asked: noise)

    def door(stock: Patterns) -> tuple[Any, Any]:
        session = dc.Session(of_patterns(stock), unit=dc.Establishments("0.1"), budget=2)
        done = session.flows(["q2", "q3"], "place").release(epsilon=2, scale_share=share)
        return (done.vectors, done.keys.to_pydict()), done.entry.loss

    told = record(lambda: door(STOCK))
    worst = 0.0
    others = (
        grown_in_both(1, _1111=100),
        grown_in_both(1, _0100=100, _0010=100),
        grown_in_both(1, _0110=100),
        grown_in_both(4, _0111=10),
        grown_in_both(3, _1111=1),
        grown_in_both(5, _0100=1, _0010=1),
    )
    for other in others:
        again = record(lambda other=other: door(other), given=told)
        assert told.public[1] == again.public[1] and np.array_equal(told.public[0], again.public[0])
        first, second = told.draws[0], again.draws[0]
        total = 0.0
        cells = zip(first.bare.reshape(-1, 5), first.scale, second.bare.reshape(-1, 5), second.scale, strict=True)
        for x, s, y, t in cells:
            x, y = x.astype(float), y.astype(float)
            if not np.array_equal(x, y) or s != t:
                total += drawn_loss(first.law.law, (x, s), (y, t))
        for a, b in zip(told.draws[1:], again.draws[1:], strict=True):
            total += float(np.abs(np.log(a.parameters[0] / b.parameters[0]) / a.parameters[1]).sum())
        worst = max(worst, total)
    assert told.charged == dc.Pure(2) and len(told.draws) == 1 + bool(share)
    assert 0.97 * 2 <= worst <= 2 * (1 + 1e-9)
