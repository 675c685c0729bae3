"""Seeded draws that the data sets share.

Every generator is keyed by the seed and a path of integers. So a block of rows has the same values in any order of
drawing and in any year.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Integers, Vector
from discreet.words.errors import DataError
from discreet.words.faults import Argument

SMALLEST, LARGEST = 0.001, 10.0


def generator(seed: int, *path: int) -> np.random.Generator:
    """The generator of one part of a data set."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=path))


def midpoints(rng: np.random.Generator, n: int) -> Vector:
    """The n midpoints of (0, 1) cut into equal parts, in random order.

    Pushed through a quantile function they give a sample whose margins hardly vary between seeds: a heavy tail
    then has the same number of large values at every seed.
    """
    return (rng.permutation(n) + 0.5) / n


def midpoints_within(rng: np.random.Generator, group: Integers) -> Vector:
    """Midpoints as above in each group; groups are codes from 0."""
    count = np.bincount(group)
    order = np.lexsort((rng.random(len(group)), group))
    rank = np.empty(len(group))
    rank[order] = np.arange(len(group)) - (np.cumsum(count) - count)[group[order]]
    return (rank + 0.5) / count[group]


def to_integers(values: Vector, rng: np.random.Generator) -> Integers:
    """Round so that the total is kept, each value within one of its own (systematic rounding).

    `values` must add up to an integer; the running total is cut at a random offset.
    """
    total = round(float(values.sum()))
    steps = np.floor(np.cumsum(values) + rng.random()).astype(np.int64)
    steps[-1] = total
    return np.diff(np.minimum(steps, total), prepend=0)


def hashed(key: np.uint64, counter: NDArray[np.uint64]) -> Vector:
    """Uniform draws addressed by counter: SplitMix64 (Steele, Lea and Flood 2014, doi:10.1145/2660193.2660195).

    The draw of a counter does not depend on its neighbours, so a worker keeps their attributes between years.
    """
    z = key + counter * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53


def keys(seed: int, n: int, *path: int) -> NDArray[np.uint64]:
    """Keys for `hashed`."""
    return np.random.SeedSequence(seed, spawn_key=path).generate_state(n, np.uint64).astype(np.uint64)


def scaled(count: int, share: float, *, least: int = 1) -> int:
    """`count` at a share of full size."""
    return max(least, round(count * share))


def check(seed: int, share: float) -> None:
    """Refuse a seed or a share that cannot be drawn."""
    if seed < 0:
        raise DataError(
            (Argument("seed", seed), " cannot seed a generator."),
            "Seeds are 0 or more.",
            "Use for example 1.",
            about="seed",
        )
    if not SMALLEST <= share <= LARGEST:
        raise DataError(
            (
                Argument("share", share),
                f" is outside {SMALLEST} to {LARGEST}, the sizes that keep the data's shape.",
            ),
            "1 is the papers' size.",
            "Use 0.01 to try things out.",
            about="share",
        )
