"""Published tables on kinds of data: do intervals hold, how wide are they, and what does adding up change?

Cells of one establishment, of many equal ones, of few large among many small, of a giant, of skewed sizes, of nobody;
tables of all workers, by kind, and of one kind; tables that nest and tables that cross. Every table comes through the
door that everybody uses. The study knows the truth and its noise has a seed: it is a simulation, never a release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.data.jobs import Jobs, read_jobs
from discreet.data.schema import Schema
from discreet.noise.source import SeededSource
from discreet.pages.page import Heading, Note, Page, Prose, Table
from discreet.pages.study import Study
from discreet.privacy.units import Establishments
from discreet.session import Session
from discreet.tables.calibration import calibrate
from discreet.tables.intervals.widths import MOST_TIMES
from discreet.tables.workload import agreed
from discreet.words.errors import DataError
from discreet.words.progress import Progress, silent

TITLE = "Published tables on kinds of data: do intervals hold, how wide are they, and what does adding up change?"
UNIT = Establishments("0.1")
LEVEL, SURE = 0.95, 3.0  # a coverage may be short of the level by so many of its standard errors
CELLS, RELEASES = 4_000, 40
QUICK_CELLS, QUICK_RELEASES = 600, 6
SKEWED = np.exp(np.random.default_rng(3).normal(1.5, 1.3, 300)).astype(int).tolist()
KINDS: dict[str, list[int]] = {
    "one of 300": [300],
    "1,000 of 20": [20] * 1000,
    "3 of 400, 500 of 2": [400] * 3 + [2] * 500,
    "one of 20,000, 200 of 3": [20_000] + [3] * 200,
    "300, log-normal": SKEWED,
    "12 of 1": [1] * 12,
    "nobody": [0, 0, 0],
}
MANY = ("1,000 of 20", "3 of 400, 500 of 2", "300, log-normal")
WOMEN_WEAK, WEAK = "women, weak definition", Establishments("0.1", "weak")
TABLES: dict[str, dict[str, Any]] = {
    "all workers": {"by": "cell"},
    "by sex": {"by": ["cell", "sex"]},
    "women": {"by": "cell", "where": {"sex": ["f"]}},
    WOMEN_WEAK: {"by": "cell", "where": {"sex": ["f"]}},
}
LAWS: dict[str, tuple[str, str]] = {
    "all workers, polynomial": ("all workers", "polynomial"),
    "all workers, staircase": ("all workers", "staircase"),
    "by sex, joint-polynomial": ("by sex", "joint-polynomial"),
    "by sex, weak-joint": ("by sex", "weak-joint"),
}
"""Tables by a mechanism that is not the default, which is asked for by name."""

EPSILONS = {"1": "3/20", "2": "1/10", "4": "1/10"}
"""With the share for sizes that `check` calls enough."""

MORE = {WOMEN_WEAK: {"1": "1/5"}}
"""Some tables need more: with 3/20 half-widths of 300 log-normal establishments are 8.4 times the point."""

SETS = {"nested": ("abc", "ab", "a", ""), "crossed": ("abc", "ab", "bc"), "margins": ("abc", "a", "b")}
WORLDS = ("log-normal", "all 20", "giants", "giants of one place", "mostly nobody")
SHAPE = (20, 20, 20)
QUICK_SHAPE = (5, 6, 10)


def run(*, quick: bool = False, data: Path | None = None, seed: int = 0, progress: Progress = silent) -> Study:
    """Release many cells of each kind, and tables that add up; `quick` releases fewer and smaller ones."""
    if data is not None:
        raise DataError(
            "The study of tables was given data, but it needs to know the truth and simulates them.",
            remedy="Leave --data out.",
            about="data",
        )
    cells, releases, shape = (QUICK_CELLS, QUICK_RELEASES, QUICK_SHAPE) if quick else (CELLS, RELEASES, SHAPE)
    widths = []
    for i, kind in enumerate(KINDS):
        progress(f"intervals, {kind}", i / len(KINDS) / 2)
        widths += [
            width(kind, table, epsilon, share, cells=cells, seed=seed)
            for table in (*TABLES, *LAWS)
            for epsilon, share in (EPSILONS | MORE.get(table, {})).items()
        ]
    limits = [limit(epsilon, share) for epsilon in ("1", "2") for share in ("1/20", "1/10", "3/20", "1/5")]
    sums = []
    for i, world in enumerate(WORLDS):
        for name, tables in SETS.items():
            progress(f"adding up, {world}, {name}", 0.5 + i / len(WORLDS) / 2)
            sums += added_up(world, name, tables, shape=shape, releases=releases, seed=seed)
    results = {"cells": cells, "releases": releases, "shape": shape, "widths": widths, "limits": limits, "sums": sums}
    return Study(name="tables", title=TITLE, results=results, page=_page(results))


def cell(sizes: Sequence[int]) -> Jobs:
    """One workplace cell of establishments of these sizes, a third of each workforce women."""
    size = np.array(sizes)
    rows = {
        "workplace": np.repeat(np.arange(size.size), 2),
        "cell": np.zeros(2 * size.size, dtype=np.int64),
        "sex": np.tile(["f", "m"], size.size),
        "n": np.stack([size // 3, size - size // 3], axis=1).ravel(),
    }
    return read_jobs(rows, schema=Schema(["cell"], {"sex": ["f", "m"]}, size="n"))


def width(kind: str, table: str, epsilon: str, share: str, *, cells: int, seed: int = 0) -> dict[str, Any]:
    """Coverage and half-widths of many cells of one kind, with and without a share of epsilon for sizes."""
    plain, law = LAWS.get(table, (table, None))
    women = table == WOMEN_WEAK
    weak = women or law == "weak-joint"
    query = Session(cell(KINDS[kind]), unit=WEAK if weak else UNIT, budget=100).count(**TABLES[plain])
    whole = query.prepare(epsilon=epsilon, mechanism=law)
    largest = np.array([float(max(KINDS[kind]) // 3 if women else max(KINDS[kind]))])  # workers who are counted, or all
    row: dict[str, Any] = {"establishments": kind, "table": table, "epsilon": epsilon, "share": share, "cells": cells}
    row["point"] = _point(whole.mechanism, largest)
    for name, ready in (("without", whole), ("with", query.prepare(epsilon=epsilon, mechanism=law, scale_share=share))):
        found = query.statistics(ready)
        many = found.take(np.zeros(cells, dtype=np.int64))
        drawn = query.drawn(ready, many, SeededSource(seed + 5))
        released = query._wrap(ready, many, drawn, level=LEVEL)
        half = (released.upper - released.lower) / 2
        held = ((released.lower <= many.counts) & (many.counts <= released.upper)).mean(axis=0).min()
        ends = bool(np.isfinite(half).all())
        row |= {f"mean {name}": float(half.mean()) if ends else None, f"held {name}": float(held) if ends else None}
    row["median with"] = float(np.median(half))
    row["times error"] = float(half.std() / np.sqrt(half.size) / max(row["point"], 1.0))
    row["times"] = row["mean with"] / max(row["point"], 1.0)  # errors are whole numbers
    return row


def _point(mechanism: Any, largest: Vector) -> float:
    """The value that the error of one count exceeds with a probability of 1 - LEVEL, before rounding."""
    miss = 1 - LEVEL
    if not mechanism.joint:
        return float((mechanism.reach(largest, level=LEVEL) - 0.5)[0])
    # One coordinate of joint noise: `reach` spends half of the probability on it.
    return float((mechanism.reach(largest, level=1 - 2 * miss) - 0.5)[0])


def limit(epsilon: str, share: str, *, steps: int = 24, stride: int = 3) -> dict[str, Any]:
    """The least mean half-width that any use of the share allows in a cell of many establishments: a linear programme.

    Sizes x have `steps` strides of (1 + alpha)^stride, and the law of the published width W is on a grid. Neighbouring
    laws are within e^(stride epsilon_s). At every x the noise is within W with probability LEVEL. The mean of W at the
    smallest x is minimised.
    """
    from fractions import Fraction

    from scipy import sparse
    from scipy.optimize import linprog

    paid = Fraction(epsilon) * Fraction(share)
    law = calibrate("polynomial", unit=UNIT, epsilon=Fraction(epsilon) - paid).law
    point = float(calibrate("polynomial", unit=UNIT, epsilon=epsilon).law.quantile((1 + LEVEL) / 2))
    size = np.exp(UNIT.log_growth * stride * np.arange(steps + 1))
    grid = np.arange(-8, steps + 6)
    wide = np.exp(UNIT.log_growth * stride * grid)  # in units of the point at the smallest size
    states, widths = size.size, grid.size
    bound = np.exp(float(paid) * stride)
    one, eye = sparse.eye(widths), sparse.eye(states, format="csr")
    step = sparse.vstack([eye[:-1] - bound * eye[1:], eye[1:] - bound * eye[:-1]])
    missed = sparse.block_diag([2 * law.survival(point * wide / s)[None, :] for s in size])
    found = linprog(
        np.r_[wide, np.zeros((states - 1) * widths)],
        A_ub=sparse.vstack([sparse.kron(step, one), missed], format="csr"),
        b_ub=np.r_[np.zeros(2 * (states - 1) * widths), np.full(states, 1 - LEVEL)],
        A_eq=sparse.kron(sparse.eye(states), np.ones((1, widths)), format="csr"),
        b_eq=np.ones(states),
        method="highs",
    )
    return {"epsilon": epsilon, "share": share, "least": float(found.fun)}


def world(kind: str, shape: tuple[int, int, int]) -> Jobs:
    """Establishments of one kind in cells by a, b and c."""
    rng = np.random.default_rng(1)
    n = int(np.prod(shape))
    many = {"log-normal": 1 + rng.geometric(0.2, n), "all 20": np.full(n, 50), "mostly nobody": np.full(n, 2)}
    place = np.repeat(np.arange(n), many.get(kind, np.full(n, 5)))
    k, (a, b, c) = np.arange(place.size), (index.ravel() for index in np.indices(shape))
    small = rng.integers(1, 6, k.size)
    sizes: dict[str, Integers] = {
        "log-normal": np.exp(rng.normal(1.5, 1.4, k.size)).astype(np.int64),
        "all 20": np.full(k.size, 20),
        "giants": np.where(k % 1001, small, 20_000),
        "giants of one place": np.where((k % 5 == 0) & (a[place] == 0) & (c[place] % 7 == 0), 20_000, small),
        "mostly nobody": (rng.random(k.size) < 0.2) * rng.integers(1, 4, k.size),
    }
    rows = {"workplace": k, "a": a[place], "b": b[place], "c": c[place], "n": sizes[kind]}
    return read_jobs(rows, schema=Schema(["a", "b", "c"], {}, size="n"))


def added_up(
    kind: str, name: str, tables: Sequence[str], *, shape: tuple[int, int, int], releases: int, seed: int = 0
) -> list[dict[str, Any]]:
    """For every table, errors, half-widths and coverage before and after adding up, and the bias of the total."""
    session = Session(world(kind, shape), unit=UNIT, budget=1000)
    queries = [session.count(list(by)) for by in tables]
    ready = [query.prepare(epsilon=1) for query in queries]
    cells = [query.statistics(part) for query, part in zip(queries, ready, strict=True)]
    source, off = SeededSource(seed + 12), []
    seen: dict[tuple[int, str], list[Vector]] = {}
    for _ in range(releases):
        raw = [
            query._wrap(part, found, query.drawn(part, found, source), level=LEVEL)
            for query, part, found in zip(queries, ready, cells, strict=True)
        ]
        after = agreed(queries, ready, raw, level=LEVEL)
        off.append(int(after[0].counts.sum() - cells[0].counts.sum()))
        for i, truth in enumerate(found.counts for found in cells):
            for when, table in (("before", raw[i]), ("after", after[i])):
                error, half = table.counts - truth, (table.upper - table.lower) / 2
                held = (table.lower <= truth) & (truth <= table.upper)
                numbers = np.array([np.abs(error).mean(), (error**2).mean(), half.mean(), held.mean()])
                seen.setdefault((i, when), []).append(numbers)
    total = np.array(off, dtype=np.float64)
    bias = {"bias": float(total.mean()), "standard error": float(total.std(ddof=1) / np.sqrt(releases))}
    rows = []
    for i, by in enumerate(tables):
        row: dict[str, Any] = {"sizes": kind, "tables": name, "by": by or "total", "counts": int(cells[i].counts.size)}
        for when in ("before", "after"):
            mean = np.mean(seen[i, when], axis=0)
            row |= {f"error {when}": mean[0], f"root mean square {when}": np.sqrt(mean[1])}
            row |= {f"half-width {when}": mean[2], f"held {when}": mean[3]}
        rows.append(row | bias)
    return rows


def faults(results: Mapping[str, Any]) -> list[str]:
    """Deviations from the target: coverage short of the level, widths above 8 times, totals with bias.

    A mean of half-widths has an error of its own, which the long tail of noisy sizes makes large.
    """
    said = []
    for row in results["widths"]:
        short = LEVEL - SURE * np.sqrt(LEVEL * (1 - LEVEL) / row["cells"])
        label = f"{row['establishments']}, {row['table']}, epsilon {row['epsilon']}"
        said += [
            f"{label}: holds {100 * row[key]:.1f} %" for key in ("held with", "held without") if (row[key] or 1) < short
        ]
        if row["establishments"] in MANY and row["times"] - SURE * row["times error"] > MOST_TIMES:
            said.append(f"{label}: {row['times']:.1f} times")
    for row in results["sums"]:
        short = LEVEL - SURE * np.sqrt(LEVEL * (1 - LEVEL) / (row["counts"] * results["releases"]))
        label = f"{row['sizes']}, {row['tables']}, by {row['by']}"
        if row["held after"] < short:
            said.append(f"{label}: holds {100 * (row['held after']):.1f} %")
        if abs(row["bias"]) > SURE * row["standard error"]:
            said.append(f"{label}: total off by {row['bias']:.0f}")
    return said


def _page(results: dict[str, Any]) -> Page:
    said = faults(results)
    verdict = "\n".join(f"- {line}" for line in said) or (
        "Every interval holds at least as often as it says; in cells of many establishments half-widths are at most 8 "
        "times the 95 % point of the error on average; no total is off."
    )
    return Page(
        TITLE,
        [
            Note("result", verdict),
            Note("warning", "The data are simulated and the noise has a seed: a study is not a release."),
            Prose(
                f"alpha is 0.1. {results['cells']:,} cells of each kind, and {results['releases']} releases of tables "
                f"of {int(np.prod(results['shape'])):,} cells at epsilon 1 each."
            ),
            Heading("Intervals"),
            Table.of(
                [
                    {
                        "establishments of the cell": row["establishments"],
                        "table": row["table"],
                        "epsilon": row["epsilon"],
                        "share for sizes": row["share"],
                        "95 % point of the error": row["point"],
                        "half-width without": row["mean without"],
                        "holds": row["held without"],
                        "with, mean": row["mean with"],
                        "median": row["median with"],
                        "over the point": row["times"],
                        "holds with": row["held with"],
                    }
                    for row in results["widths"]
                ],
                "Half-widths of 95 % intervals, and how often they hold",
                "widths",
            ),
            Heading("What a share can do at all"),
            Table.of(
                [
                    {"epsilon": row["epsilon"], "share for sizes": row["share"], "least mean half-width": row["least"]}
                    for row in results["limits"]
                ],
                "The least mean half-width over the 95 % point of the error that any use of the share allows",
                "limits",
            ),
            Heading("Tables that add up"),
            Table.of(results["sums"], "Each table before and after, epsilon 1 each", "sums"),
        ],
    )
