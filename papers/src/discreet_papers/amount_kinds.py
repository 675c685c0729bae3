"""Sums, means, flows, rates, sums of a finest table and changes between releases, on kinds of establishments.

The cells are those of `tables`, with pay that is skewed, mostly zero, or at its cap for one worker. Every number comes
through the door that everybody uses; the noise has a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.arrays import Integers, Mask, Vector
from discreet.data.histories import read_histories
from discreet.data.jobs import Jobs, read_jobs
from discreet.data.schema import Schema
from discreet.noise.flow_body import FLOWS
from discreet.noise.source import SeededSource
from discreet.session import Session
from discreet.tables.derived import sums_of
from discreet.tables.mean import MeanRelease
from discreet.tables.movement.flow_noise import flows_of
from discreet.tables.movement.flow_release import rates_of
from discreet.utility.between import changes_between
from discreet.words.caveats import CHEBYSHEV, CONFIDENTIAL, TWO
from discreet_papers.coverage_rule import LEVEL, Row, binomial_error, in_errors, row, times_of
from discreet_papers.tables import KINDS, QUICK_SHAPE, UNIT, world

CAP = 250_000
EPSILONS = ("1", "4")
NO_SHARE, SHARE = "0", "3/20"  # of epsilon for noisy sizes
PAY: dict[str, Callable[[np.random.Generator, int], Vector]] = {
    "pay is log-normal": lambda rng, n: np.exp(rng.normal(np.log(45_000), 0.6, n)).clip(0, CAP),
    "pay is mostly zero": lambda rng, n: np.where(rng.random(n) < 0.7, 0.0, rng.uniform(2_000, 90_000, n)),
    "pay is at its cap": lambda rng, n: np.full(n, float(CAP)),
}


def paid(kind: str, pay: str) -> Jobs:
    """One workplace cell, one row for each establishment."""
    size, rng = np.array(KINDS[kind]), np.random.default_rng(4)
    amount = (size * PAY[pay](rng, size.size)).astype(np.int64)
    rows = {"workplace": np.arange(size.size), "cell": np.zeros(size.size, dtype=np.int64), "n": size, "pay": amount}
    return read_jobs(rows, schema=Schema(["cell"], {}, size="n", magnitudes={"pay": CAP}))


def _many(query: Any, ready: Any, cells: int) -> Any:
    """The cell's statistics, many times."""
    return query.statistics(ready).take(np.zeros(cells, dtype=np.int64))


def _judged(
    name: str, kind: str, epsilon: str, truth: Vector, value: Vector | Integers, low: Vector, high: Vector, **said: Any
) -> Row:
    held: Mask = (low <= truth) & (truth <= high)
    half, off = (high - low) / 2, value - truth
    seen = np.isfinite(value)
    error = off[seen].std(ddof=1) / np.sqrt(seen.sum()) if seen.sum() > 2 else 0.0
    ends = bool(np.isfinite(high).mean() > 1 - LEVEL)
    said = said if ends else {**said, "before": "no interval"}
    return row(
        name,
        kind,
        float(Fraction(epsilon)),
        float(held.mean()) if ends else None,
        binomial_error(held.size),
        times=times_of(half, off) if seen.all() else None,
        bias=in_errors(float(off[seen].mean()), float(error), int(seen.sum())) if said.pop("unbiased", True) else None,
        **said,
    )


def sums_and_means(cells: int, seed: int) -> Iterator[Row]:
    """Sums of pay, and means of a sum over a count."""
    for kind in KINDS:
        for pay in PAY if kind == "300, log-normal" else list(PAY)[:1]:
            session = Session(paid(kind, pay), unit=UNIT, budget=10**6)
            label = kind if pay == "pay is log-normal" else f"{kind}, {pay}"
            for epsilon in EPSILONS:
                yield from _sum(session, label, epsilon, cells, seed)
                yield from _mean(session, label, epsilon, cells, seed)


def _sum(session: Session, kind: str, epsilon: str, cells: int, seed: int) -> Iterator[Row]:
    query = session.sum("pay", "cell")
    for share in (NO_SHARE, SHARE):
        ready = query.prepare(epsilon=epsilon, scale_share=share)
        many = _many(query, ready, cells)
        table = query._wrap(ready, many, query.drawn(ready, many, SeededSource(seed + 5)), level=LEVEL)
        values = [part.ravel().astype(float) for part in (many.counts, table.counts, table.lower, table.upper)]
        name = "sum of pay" + ("" if share == NO_SHARE else ", noisy sizes")
        yield _judged(name, kind, epsilon, *values, at_least=CONFIDENTIAL)


def _mean(session: Session, kind: str, epsilon: str, cells: int, seed: int) -> Iterator[Row]:
    asked = session.mean("pay", "cell")
    tables, truths = [], []
    for i, query in enumerate((asked.sums, asked.counts)):
        ready = query.prepare(epsilon=Fraction(epsilon) / 2)
        many = _many(query, ready, cells)
        drawn = query.drawn(ready, many, SeededSource(seed + 6 + i))
        tables.append(query._wrap(ready, many, drawn, level=(1 + LEVEL) / 2))
        truths.append(many.counts[:, 0].astype(float))
    mean = MeanRelease(tables[0], tables[1], LEVEL, tables[0].guarantee)
    if not truths[1].all():
        return  # nobody has no mean
    low, high = (end.ravel() for end in mean.ends)
    truth = truths[0] / truths[1]
    yield _judged("mean pay", kind, epsilon, truth, mean.means.ravel(), low, high, at_least=TWO, unbiased=False)


def flows(cells: int, seed: int) -> Iterator[Row]:
    """Flows and rates of cells whose establishments grow, shrink and turn over."""
    schema, quarters = Schema(["cell"], {}), ["q1", "q2", "q3"]
    one = {"worker": [1, 1, 1], "workplace": [1, 1, 1], "quarter": quarters, "cell": ["0"] * 3}
    histories = read_histories(one, quarters=quarters, schema=schema)
    query = Session(histories, unit=UNIT, budget=10**6).flows("q2", "cell")
    for kind, sizes in KINDS.items():
        vector, largest = flow_vector(np.array(sizes))
        truth = dict(zip(FLOWS, flows_of(vector[None]).T.astype(float), strict=True))
        rates = {name: value for name, value in rates_of(truth).items() if np.isfinite(value).all()}
        for epsilon in EPSILONS:
            for share in (NO_SHARE, SHARE):
                offer = query.offer(epsilon=epsilon, scale_share=share)
                reading = replace(offer.read(histories), vectors=np.repeat(vector[None], cells, axis=0))
                reading = replace(reading, largest=np.full((cells, 1), largest), keys=reading.keys.take([0] * cells))
                found = offer.draw(reading, SeededSource(seed + 8))
                more = "" if share == NO_SHARE else ", noisy sizes"
                for name, values in found.flows.items():
                    ends = found.ends[name]
                    yield _judged(
                        f"flow: {name}{more}", kind, epsilon, truth[name], values, *ends, at_least=CONFIDENTIAL
                    )
                for name, true in rates.items():
                    ends, what = found.rate_ends[name], f"rate: {name}{more}"
                    yield _judged(what, kind, epsilon, true, found.rates[name], *ends, at_least=TWO, unbiased=False)


def flow_vector(sizes: Integers) -> tuple[Integers, int]:
    """Jobs that stayed, passed, came, left, and jobs created, of establishments of these sizes; the largest one."""
    rng = np.random.default_rng(9)
    kinds = np.array([rng.multinomial(n, [0.75, 0.05, 0.1, 0.1]) for n in sizes])
    created = np.maximum(kinds[:, 2] - kinds[:, 3], 0).sum()
    return np.append(kinds.sum(axis=0), created), int(sizes.max())


def finest(releases: int, seed: int) -> Iterator[Row]:
    """Coarse tables that are sums of one drawn table."""
    for kind in ("log-normal", "giants", "mostly nobody"):
        session = Session(world(kind, QUICK_SHAPE), unit=UNIT, budget=10**6)
        query, source = session.count(list("abc")), SeededSource(seed + 9)
        ready = query.prepare(epsilon=1)
        cells = query.statistics(ready)
        seen: dict[str, list[Any]] = {}
        for _ in range(releases):
            fine = query._wrap(ready, cells, query.drawn(ready, cells, source), level=LEVEL)
            exact = replace(fine, counts=cells.counts)
            for by in ("ab", "a", ""):
                asked = session.count(list(by))
                table, true = (sums_of(of, asked, ready.mechanism, bounded=True, level=LEVEL) for of in (fine, exact))
                seen.setdefault(by or "total", []).append(
                    [part[:, 0] for part in (true.counts, table.counts, table.lower, table.upper)]
                )
        for by, parts in seen.items():
            values = np.concatenate(parts, axis=1).astype(float)
            yield _judged(f"sums of the finest table, by {by}", kind, "1", *values, at_least=CHEBYSHEV)


def between(releases: int, seed: int) -> Iterator[Row]:
    """Changes of two private releases: a tenth of the cells grows by half."""
    for kind in ("log-normal", "giants", "mostly nobody"):
        jobs = world(kind, QUICK_SHAPE)
        query = Session(jobs, unit=UNIT, budget=10**6).count(list("abc"))
        for epsilon in EPSILONS:
            ready, source = query.prepare(epsilon=epsilon), SeededSource(seed + 10)
            early = query.statistics(ready)
            grown = np.arange(len(early.counts)) % 10 == 0
            late = replace(early, counts=np.where(grown[:, None], early.counts * 3 // 2, early.counts))
            change = (late.counts - early.counts)[:, 0].astype(float)
            keys = list(zip(*(map(str, early.keys[name].to_pylist()) for name in "abc"), strict=True))
            true = dict(zip(keys, change, strict=True))
            seen = []
            for _ in range(releases):
                pair = [
                    query._wrap(ready, cells, query.drawn(ready, cells, source), level=LEVEL) for cells in (early, late)
                ]
                found = changes_between(*pair)
                truth = np.array([true[cell] for cell in found.cells])
                seen.append([truth, found.after - found.before, found.low, found.high])
            values = np.concatenate(seen, axis=1)
            what = "change between two releases, for 90 %"
            yield _judged(what, kind, epsilon, *values, at_least=TWO, level=1 - found.rate)
