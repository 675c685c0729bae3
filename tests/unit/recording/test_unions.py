"""Workers by three kinds under the weak definition: what the draw loses is what the ledger was charged.

Volumes of the two balls are exact rational numbers: sections of a cut box are polygons, their area is a quadratic
function between corners, and Simpson's rule adds up quadratic functions exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.noise.rings import table as ring_table
from discreet.tables import query

Workforce = dict[int, tuple[int, int, int]]
KINDS = "abc"
SCHEMA = dc.Schema(workplace_attributes=["place"], worker_attributes={"kind": list(KINDS)})
PLACES = {1: "x", 2: "w", 3: "y", 4: "z", 5: "z"}
WORKFORCE: Workforce = {1: (600, 300, 100), 2: (2, 700, 1), 3: (5, 4, 3), 4: (40, 0, 60), 5: (9, 90, 20)}
UNIT = dc.Establishments("1/10", "weak")


def area(a: Fraction, b: Fraction, c: Fraction) -> Fraction:
    """Of {0 <= x <= a, 0 <= y <= b, x + y <= c}."""
    square = [max(c - x, Fraction(0)) ** 2 for x in (Fraction(0), a, b, a + b)]
    return (square[0] - square[1] - square[2] + square[3]) / 2


def body_volume(bounds: Sequence[Fraction], kinds: Sequence[int]) -> Fraction:
    """Of {y >= 0 : y(A) <= S_A for every set A of these kinds}, at most three."""

    def most(*some: int) -> Fraction:
        return bounds[sum(1 << kinds[i] for i in some)]

    if len(kinds) < 3:
        return [lambda: Fraction(1), lambda: most(0), lambda: area(most(0), most(1), most(0, 1))][len(kinds)]()

    def section(z: Fraction) -> tuple[Fraction, Fraction, Fraction]:
        return min(most(0), most(0, 2) - z), min(most(1), most(1, 2) - z), min(most(0, 1), most(0, 1, 2) - z)

    top = most(2)
    corners = [x for x in (most(0, 2) - most(0), most(1, 2) - most(1), most(0, 1, 2) - most(0, 1)) if 0 < x < top]
    total = Fraction(0)
    for low, high in pairwise(sorted({Fraction(0), *corners, top})):
        turns = {low, high}
        for of in (lambda a, b, c: c - a, lambda a, b, c: c - b, lambda a, b, c: c - a - b, lambda a, b, c: c):
            start, end = of(*section(low)), of(*section(high))
            if start * end < 0:
                turns.add(low + (high - low) * start / (start - end))
        for u, v in pairwise(sorted(turns)):
            ends = [area(*section(z)) for z in (u, (u + v) / 2, v)]
            total += (v - u) * (ends[0] + 4 * ends[1] + ends[2]) / 6
    return total


@lru_cache
def log_ball(bounds: tuple[float, ...]) -> float:
    exact = [Fraction(0), *map(Fraction, bounds)]
    parts = []
    for positive in range(8):
        some = [c for c in range(3) if positive >> c & 1]
        others = [c for c in range(3) if not positive >> c & 1]
        parts.append(body_volume(exact, some) * body_volume(exact, others) / math.comb(3, len(some)))
    return math.log(sum(parts))


def radius(z: np.ndarray, bounds: Sequence[float]) -> np.ndarray:
    sets = np.arange(1, 8)[:, None] >> np.arange(3) & 1
    return sum((np.maximum(sign * z, 0) @ sets.T / np.array(bounds)).max(axis=1) for sign in (1, -1))


def cell_loss(law: Any, one: tuple[np.ndarray, tuple], other: tuple[np.ndarray, tuple]) -> float:
    """Densities along the change and along the axes, from both centres, each over its own ball's volume."""
    t = np.concatenate([[0.0], np.geomspace(1e-2, 1e6, 3000)])
    move = other[0] - one[0]
    ways = [way for way in (move, *np.eye(3)) if np.any(way)]
    points = np.concatenate([c + s * t[:, None] * way for c in (one[0], other[0]) for way in ways for s in (1, -1)])
    logs = [
        ring_table(law).log_height(radius(points - centre, bounds)) - log_ball(bounds)
        for centre, bounds in (one, other)
    ]
    return float(np.abs(logs[0] - logs[1]).max())


def rows_of(draw: Any) -> list[tuple[np.ndarray, tuple[float, ...]]]:
    bounds = np.stack(draw.parameters, axis=1)
    return [
        (x.astype(float), tuple(b)) for x, b in zip(draw.bare.reshape(len(bounds), 3), bounds.tolist(), strict=True)
    ]


@lru_cache
def jobs(sizes: tuple[tuple[int, int, int], ...]) -> dc.Jobs:
    rows = [(firm, kind) for firm, own in zip(PLACES, sizes, strict=True) for kind, n in zip(KINDS, own, strict=True) for _ in range(n)]  # fmt: skip  # noqa: E501
    firms, kinds = zip(*rows, strict=True)
    return dc.read_jobs(
        {"workplace": list(firms), "worker": list(range(len(rows))), "kind": list(kinds)},
        workplaces={"workplace": list(PLACES), "place": list(PLACES.values())},
        schema=SCHEMA,
    )


def neighbours() -> Iterator[Workforce]:
    """A tenth of every kind more; of one kind; one worker more; one worker fewer."""
    for firm, gain in [(1, (60, 30, 10)), (1, (60, 0, 0)), (2, (0, 70, 0)), (3, (0, 0, 1)), (4, (4, 0, 6)), (5, (0, -1, 0))]:  # fmt: skip  # noqa: E501
        yield WORKFORCE | {firm: tuple(x + y for x, y in zip(WORKFORCE[firm], gain, strict=True))}  # type: ignore[dict-item]


def test_the_draw_loses_what_was_charged(record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "part", lru_cache(query.part))

    def release(workforce: Workforce) -> tuple[Any, Any]:
        done = (
            dc.Session(jobs(tuple(workforce.values())), unit=UNIT, budget=2).count(["place", "kind"]).release(epsilon=2)
        )
        assert done.parameters["mechanism"] == "weak-unions"
        return (done.counts, done.lower, done.upper), done.entry.loss

    told = record(lambda: release(WORKFORCE))
    assert told.charged == dc.Pure(2) and len(told.draws) == 1
    worst = []
    for other in neighbours():
        again = record(lambda other=other: release(other), given=told)
        assert all(np.array_equal(x, y, equal_nan=True) for x, y in zip(told.public, again.public, strict=True))
        pairs = zip(rows_of(told.draws[0]), rows_of(again.draws[0]), strict=True)
        law = told.draws[0].law.law
        worst.append(sum(cell_loss(law, a, b) for a, b in pairs if not (np.array_equal(a[0], b[0]) and a[1] == b[1])))
    assert 0.97 * 2 <= max(worst) <= 2 * (1 + 1e-9), worst


def test_the_exact_volume_is_that_of_simple_bodies() -> None:
    one, two = Fraction(1), Fraction(2)
    simplex = [Fraction(0), *[one] * 7]
    box = [Fraction(0), one, one, two, one, two, two, Fraction(3)]
    assert body_volume(simplex, [0, 1, 2]) == Fraction(1, 6) and body_volume(box, [0, 1, 2]) == 1
    half = [*box[:7], Fraction(3, 2)]
    assert body_volume(half, [0, 1, 2]) == Fraction(1, 2)
    pairs = [Fraction(0), one, one, one, one, one, one, Fraction(3)]  # y_a + y_b <= 1 for all pairs
    assert body_volume(pairs, [0, 1, 2]) == Fraction(1, 4)
    assert log_ball((1.0,) * 7) == pytest.approx(math.log(8 / 6))
