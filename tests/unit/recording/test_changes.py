"""Changes: the loss of the one draw, and of the sizes beside it, is what the ledger was charged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.noise.rings import table as ring_table
from discreet.tables.movement import changes

QUARTERS = ("q1", "q2", "q3")
PLACES = {1: "a", 2: "a", 3: "b", 4: "c"}
STOCK = {1: (1000, 800, 900), 2: (600, 900, 20), 3: (4, 0, 9), 4: (100, 120, 80)}
Stock = dict[int, tuple[int, ...]]


def histories(stock: Stock) -> Any:
    rows: dict[str, list[Any]] = {"workplace": [], "worker": [], "quarter": []}
    worker = 0
    for firm, sizes in stock.items():
        for quarter, n in zip(QUARTERS, sizes, strict=True):
            rows["workplace"] += [firm] * n
            rows["worker"] += range(worker, worker + n)
            rows["quarter"] += [quarter] * n
        worker += max(sizes)
    places = {"workplace": list(PLACES), "place": list(PLACES.values())}
    return dc.read_histories(rows, quarters=QUARTERS, workplaces=places, schema=dc.Schema(["place"], {}))


def grown(firm: int, *more: int) -> Stock:
    return STOCK | {firm: tuple(n + m for n, m in zip(STOCK[firm], more, strict=True))}


NEIGHBOURS = (
    grown(1, 100, 80, 90),
    grown(1, 100, 0, 0),
    grown(1, 100, 80, 0),
    grown(2, 60, 90, 2),
    grown(3, 1, 1, 1),
    grown(3, 0, 1, 0),
    grown(4, 10, 12, 8),
)


def norm(z: np.ndarray, own: np.ndarray) -> np.ndarray:
    scaled = z / own
    return np.maximum(scaled, 0).max(axis=-1) + np.maximum(-scaled, 0).max(axis=-1)


def drawn_loss(law: Any, one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]) -> float:
    """Densities along the change and along every axis, in both directions."""
    t = np.concatenate([[0.0], np.geomspace(1e-2, 1e6, 3000)])
    ways = [way for way in (other[0] - one[0], *np.eye(3)) if np.any(way)]
    points = np.concatenate(
        [c + sign * t[:, None] * way for c in (one[0], other[0]) for way in ways for sign in (1, -1)]
    )
    logs = [ring_table(law).log_height(norm(points - c, s)) - np.log(s).sum() for c, s in (one, other)]
    return float(np.abs(logs[0] - logs[1]).max())


@pytest.fixture(params=[pytest.param(0, marks=pytest.mark.full_size), "1/4"])
def share(request: pytest.FixtureRequest) -> Any:
    """What pays for sizes. Points for expected errors are drawn once, before draws are recorded."""
    epsilon = "1.5" if request.param else 2
    noise = dc.calibrate("weak-joint", unit=dc.Establishments("0.1"), epsilon=epsilon, cells=3)
    changes.expected_errors(noise, np.ones(1))
    return request.param


def test_the_losses_of_all_draws_add_up_to_the_charge(share: Any, record: Any) -> None:
    def door(stock: Stock) -> tuple[Any, Any]:
        session = dc.Session(histories(stock), unit=dc.Establishments("0.1"), budget=2)
        done = session.changes(QUARTERS, "place").release(epsilon=2, scale_share=share)
        return (done.levels, done.keys.to_pydict(), *done.level_ends, *done.change_ends), done.entry.loss

    told = record(lambda: door(STOCK))
    worst = 0.0
    for other in NEIGHBOURS:
        again = record(lambda other=other: door(other), given=told)
        assert told.public[1] == again.public[1]
        numbers = zip((told.public[0], *told.public[2:]), (again.public[0], *again.public[2:]), strict=True)
        assert all(np.array_equal(x, y) for x, y in numbers)
        total, first, second = 0.0, told.draws[0], again.draws[0]
        scales = [np.column_stack(draw.parameters[1:]) for draw in (first, second)]
        for i, (x, y) in enumerate(zip(first.bare.reshape(-1, 3), second.bare.reshape(-1, 3), strict=True)):
            one, two = (x.astype(float), scales[0][i]), (y.astype(float), scales[1][i])
            if not all(np.array_equal(a, b) for a, b in zip(one, two, strict=True)):
                total += drawn_loss(first.law.law, one, two)
        for a, b in zip(told.draws[1:], again.draws[1:], strict=True):
            assert a.law == "log-laplace"
            total += float(np.abs(np.log(a.parameters[0] / b.parameters[0]) / a.parameters[1]).sum())
        worst = max(worst, total)
    assert told.charged == dc.Pure(2) and len(told.draws) == 1 + bool(share)
    assert 0.95 * 2 <= worst <= 2 * (1 + 1e-9)
