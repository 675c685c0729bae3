"""Tables of noise whose check is the proof: every weight damaged by just more than is allowed is refused.

What is allowed follows here from the definition of neighbours, by other means than the check's. And a law that keeps
its loss has to keep its mean: totals, tables that add up and intervals rest on it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.noise import least, rows, steps
from discreet.noise.kept import BITS, rounded, sealed
from discreet.noise.least import StepCells
from discreet.privacy.units import Establishments
from discreet.tables.calibration import calibrate
from discreet.tables.mechanisms import ladder
from discreet.tables.optimal.ladder import Window, growth
from discreet.words.errors import PrivacyError
from faults_of import about

JUST = 1e-6
"""So much more, or less, than what is allowed, in logarithms."""

SHARE, SIZES, REACH, EPSILON = Fraction(2, 5), 12, 9, 1.1


class Geometric:
    """An outer law of one width."""

    def probability(self, k: Any, largest: Any) -> Any:
        found = math.tanh(0.1) * np.exp(-0.2 * np.abs(np.asarray(k, dtype=np.float64)))
        return np.broadcast_to(found, (len(largest), found.size)).copy()


def neighbours(largest: int) -> Iterator[tuple[int, int]]:
    """What the largest establishment becomes, and by how much the count grows, whichever establishment it is."""
    for size in range(largest + 1):
        for gain in range(1, growth(size, SHARE) + 1):
            yield max(largest, size + gain, 1), gain


def window() -> Window:
    """A law that keeps what is promised with some room, here more and there less."""
    uneven = np.random.default_rng(2).uniform(0.9, 1.1, (SIZES - 1, 2 * REACH + 1))
    inside = Geometric().probability(np.arange(-REACH, REACH + 1), range(1, SIZES)) * uneven
    return Window(SHARE, EPSILON, rounded(inside / inside.sum(axis=1, keepdims=True)))


def test_every_weight_of_a_window_damaged_by_just_more_than_allowed_is_refused() -> None:
    whole, outer = window(), Geometric()
    beyond = -np.log(outer.probability(np.arange(-60, 61), [1])[0])
    left = float(outer.probability(np.arange(-REACH, REACH + 1), [1]).sum())

    def level(x: int, k: int) -> float:
        if x < SIZES and abs(k) <= REACH:
            return -math.log(left * float(whole.weights[x - 1, k + REACH] / 2**BITS))
        return float(beyond[k + 60])

    room = {(x, k): [math.inf, math.inf] for x in range(1, SIZES) for k in range(-REACH, REACH + 1)}
    for x in range(1, SIZES):
        for after, gain in neighbours(x):
            for k in range(-REACH - 12, REACH + 13):
                here, there = (x, k), (after, k - gain)
                rise = level(x, k) - level(after, k - gain)
                for place, sign in ((here, rise), (there, -rise)):
                    if place in room:
                        room[place] = [min(room[place][0], EPSILON - sign), min(room[place][1], EPSILON + sign)]
    assert whole.worst(outer).loss < EPSILON and len(room) == 209
    for (x, k), (up, down) in room.items():
        for allowed, direction in ((up, -1), (down, 1)):  # a level rises where its weight falls
            for change, refused in ((allowed + JUST, True), (allowed - JUST, False)):
                weights = whole.weights.copy()
                weights[x - 1, k + REACH] = int(weights[x - 1, k + REACH] * math.exp(direction * change))
                found = Window(SHARE, EPSILON, weights).worst(outer)
                assert (found.loss > EPSILON) is refused, (x, k, direction)


def small() -> tuple[StepCells, float, np.ndarray]:
    """A law of steps on few cells; laws that are solved for leave some inequalities no room at all."""
    cells, epsilon = StepCells(0.4, 1 / 1.4, 2, 8), 1.6
    inner = np.exp(-0.3 * epsilon * np.abs(np.arange(-8, 8) + 0.5) / 2)
    ring = least.rings(cells, epsilon).mass * inner[0] * math.exp(-0.3) / cells.width
    shares = np.concatenate([[ring], inner, [ring]])
    return cells, epsilon, rounded((shares / shares.sum())[None, :])


def test_every_weight_of_steps_damaged_by_just_more_than_allowed_is_refused() -> None:
    """z = w z' + u, w from 1 to 1 + growth on a fine grid, u from (w - 1)/growth to shift w."""
    cells, epsilon, weights = small()
    start, end = cells.edges[:-1], cells.edges[1:]
    mass = np.diff(cells.edges)
    mass[[0, -1]] = least.rings(cells, epsilon).mass
    level = np.log(mass) - np.log(weights[0].astype(np.float64))
    up = down = np.full(len(level), np.inf)
    for w in np.linspace(1, 1 + cells.growth, 4001):
        low, high = w * start + (w - 1) / cells.growth, w * (end + cells.shift)
        met = (low[None, :] <= end[:, None] + 1e-10) & (high[None, :] >= start[:, None] - 1e-10)  # edges may touch
        rise = level[:, None] - level[None, :]
        first = np.where(met, epsilon + math.log(w) - rise, np.inf)  # F(z) <= F(z') + epsilon + ln w
        second = np.where(met, epsilon - math.log(w) + rise, np.inf)
        # A cell's own level cancels where z and z' are both in it.
        np.fill_diagonal(first, np.inf), np.fill_diagonal(second, np.inf)
        up = np.minimum(up, np.minimum(first.min(axis=1), second.min(axis=0)))
        down = np.minimum(down, np.minimum(first.min(axis=0), second.min(axis=1)))
    assert least.excess(cells, weights, epsilon) < 0 and np.isfinite(up).all() and np.isfinite(down).all()
    for cell in range(len(level)):
        for allowed, direction in ((up[cell], -1), (down[cell], 1)):
            for change, refused in ((allowed + 1e-3, True), (allowed - 1e-3, False)):
                damaged = weights.copy()
                damaged[0, cell] = int(damaged[0, cell] * math.exp(direction * change))
                assert (least.excess(cells, damaged, epsilon) > 0) is refused, (cell, direction)


def test_every_weight_of_rows_damaged_by_just_more_than_allowed_is_refused() -> None:
    """By each row's own list of what a move joins, which another test compares with points of cells."""
    law = calibrate("two-sizes", unit=Establishments("0.3"), epsilon=8).rows[0]
    weights = np.concatenate([each.weights for each in law.all_rows])
    level = rows.levels(law, weights)
    up, down = (np.full(level.shape, np.inf) for _ in range(2))
    for i, j, met in rows.moves(law):
        rise = level[i, met.here] - level[j, met.there]
        first, second = law.epsilon + np.log(met.least) - rise, law.epsilon - np.log(met.most) + rise
        apart = (met.here != met.there) | (i != j)
        for side, at, room in ((up, (i, met.here), first), (down, (j, met.there), first), (down, (i, met.here), second),
                               (up, (j, met.there), second)):  # fmt: skip
            np.minimum.at(side[at[0]], at[1][apart], room[apart])
    rng, places = np.random.default_rng(3), np.argwhere(np.minimum(up, down)[1:] < 30) + np.array([1, 0])
    for row, cell in rng.permutation(places)[:25].tolist():
        for allowed, direction in ((up[row, cell], -1), (down[row, cell], 1)):
            damaged = weights.copy()
            damaged[row, cell] = max(int(damaged[row, cell] * math.exp(direction * (allowed + JUST))), 1)
            assert rows.excess(law, damaged) > 0, (row, cell, direction)


def kept_ladder() -> Any:
    ladder._window.cache_clear()
    return calibrate("ladder", unit=Establishments("0.1"), epsilon=4).window


def kept_steps() -> Any:
    for cache in (steps._weights, steps._choice, steps._sides, steps._line, steps._outer, steps._excess_at_edges):
        cache.cache_clear()
    return calibrate("ladder", unit=Establishments("0.1"), epsilon=4).law.weights


def kept_rows() -> Any:
    rows._rows.cache_clear()
    return calibrate("two-sizes", unit=Establishments("0.1"), epsilon=4).rows[1].weights


TABLES: dict[str, Callable[[], Any]] = {"ladder": kept_ladder, "steps": kept_steps, "rows": kept_rows}


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    yield tmp_path / "discreet"
    for forget in TABLES.values():
        with pytest.MonkeyPatch.context() as own:
            own.delenv("XDG_CACHE_HOME", raising=False)
            forget()


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_whose_noise_has_a_mean_is_refused(kind: str, fresh: Path) -> None:
    """A weight a little up, another down: the loss is kept, the rows are probabilities, the seal is right."""
    TABLES[kind]()
    (path,) = fresh.glob(f"{kind}-*")
    whole = path.read_bytes()
    table = [[int(weight, 16) for weight in row] for row in json.loads(whole.partition(b"\n")[2])]
    row = table[len(table) // 2]
    middle = len(row) // 2
    moved, refused = row[middle + 1] // (10**6 if kind == "rows" else 1000), []
    for near, far in ((middle + 1, middle - 2), (middle - 3, middle + 4), (middle + 6, middle - 5)):
        changed = [list(each) for each in table]
        changed[len(table) // 2][near] += moved
        changed[len(table) // 2][far] -= moved
        text = json.dumps([[f"{weight:x}" for weight in each] for each in changed]).encode("ascii")
        path.write_bytes(sealed(path.name, text))
        with pytest.raises(PrivacyError, check=about("mechanism")) as found:
            TABLES[kind]()
        refused.append("mean" in str(found.value))
    path.write_bytes(whole)
    TABLES[kind]()
    assert any(refused), "the mean decides, where the loss would not"


@pytest.mark.parametrize(("alpha", "epsilon"), [("0.1", "0.36"), ("0.1", "0.4"), ("0.2", "0.71"), ("0.1", "0.45")])
def test_no_table_that_was_solved_here_is_called_damaged(alpha: str, epsilon: str, fresh: Path) -> None:
    """Where epsilon is least, rows of two sizes are moved to their mean often enough."""
    for _ in ("solved", "read"):
        rows._rows.cache_clear()
        assert calibrate("two-sizes", unit=Establishments(alpha), epsilon=epsilon).rows[1].weights.shape[0] == 1
    assert any(fresh.glob("rows-*"))


@pytest.mark.parametrize("side", [1, -1])
def test_a_mean_is_of_whole_numbers_and_the_rings_too(side: int) -> None:
    """Against the first moment in fractions, from the law's own edges; a shift of the rings alone is a mean."""
    cells, epsilon, weights = small()
    leaned = weights.copy()
    leaned[0, 0] -= side * (moved := int(leaned[0, 0] // 10**6))
    leaned[0, -1] += side * moved
    tail = least.rings(cells, epsilon)
    place = [(a + b) / 2 for a, b in zip(cells.edges[:-1], cells.edges[1:], strict=True)]
    place[0], place[-1] = -tail.mean / tail.mass, tail.mean / tail.mass
    for law in (weights, leaned):
        mean = sum(int(w) * Fraction(float(z)) for w, z in zip(law[0], place, strict=True)) / 2**BITS
        size = sum(int(w) * Fraction(abs(float(z))) for w, z in zip(law[0], place, strict=True)) / 2**BITS
        assert float(least.bias(cells, law, epsilon)) == pytest.approx(float(abs(mean) / size), rel=1e-6, abs=1e-15)
    assert least.bias(cells, weights, epsilon) < least.UNBIASED < least.bias(cells, leaned, epsilon)
