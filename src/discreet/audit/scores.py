"""Numbers that tell the outputs of two data sets apart, learnt from samples of both.

A score need not be good to be used: a poor one makes the audit weak, never wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from discreet.arrays import Matrix, Vector

Outputs: TypeAlias = Matrix
"""One output in each row."""

BINS = 64  # intervals of equal probability


class Score(Protocol):
    """A number for each output, large or small where the two data sets differ."""

    @property
    def name(self) -> str: ...

    @property
    def labels(self) -> tuple[str, ...]: ...

    def __call__(self, outputs: Outputs) -> Vector: ...


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One number of the output; with `labels`, the place of its kind in that list."""

    index: int
    name: str
    labels: tuple[str, ...] = ()

    def __call__(self, outputs: Outputs) -> Vector:
        return outputs[:, self.index]


@dataclass(frozen=True, slots=True)
class Linear:
    """A learnt weighting of the coordinates' normal scores, which heavy tails cannot spoil."""

    learnt: Matrix
    weights: Vector
    name: str = "a learnt linear score"
    labels: tuple[str, ...] = ()

    @classmethod
    def between(cls, a: Outputs, b: Outputs) -> Linear:
        """Fisher's discriminant of the two samples."""
        learnt = np.sort(np.concatenate([a, b]), axis=0)
        scored_a, scored_b = (_normal_scores(learnt, x) for x in (a, b))
        spread = np.cov(scored_a.T) + np.cov(scored_b.T)
        ridge = 1e-6 * np.trace(spread) / len(spread) + 1e-12
        gap = scored_a.mean(axis=0) - scored_b.mean(axis=0)
        return cls(learnt, np.linalg.solve(spread + ridge * np.eye(len(spread)), gap))

    def __call__(self, outputs: Outputs) -> Vector:
        return np.asarray(_normal_scores(self.learnt, outputs) @ self.weights)


@dataclass(frozen=True, slots=True)
class Additive:
    """The sum of the coordinates' own log likelihood ratios: the best score for independent noise."""

    edges: tuple[Vector, ...]
    ratios: tuple[Vector, ...]
    name: str = "a learnt additive score"
    labels: tuple[str, ...] = ()

    @classmethod
    def between(cls, a: Outputs, b: Outputs) -> Additive:
        edges = tuple(
            np.unique(np.quantile(np.concatenate(pair), np.arange(1, BINS // 2) / (BINS // 2), method="inverted_cdf"))
            for pair in zip(a.T, b.T, strict=True)
        )
        counted = (
            [np.bincount(np.searchsorted(e, x), minlength=len(e) + 1) + 1.0 for e, x in zip(edges, s.T, strict=True)]
            for s in (a, b)
        )
        return cls(edges, tuple(np.log(p / q) for p, q in zip(*counted, strict=True)))

    def __call__(self, outputs: Outputs) -> Vector:
        places = zip(self.edges, self.ratios, outputs.T, strict=True)
        return np.asarray(sum(ratio[np.searchsorted(edge, x)] for edge, ratio, x in places))


@dataclass(frozen=True, slots=True)
class Size:
    """The distance of the output from the middle of all outputs: the sum of the coordinates' distances."""

    middle: Vector
    name: str = "the distance from the middle"
    labels: tuple[str, ...] = ()

    def __call__(self, outputs: Outputs) -> Vector:
        return np.asarray(np.abs(outputs - self.middle).sum(axis=1))


def scores_between(a: Outputs, b: Outputs, kinds: tuple[str, ...] = ()) -> Iterator[Score]:
    """Every score worth trying on two samples of outputs; with `kinds`, the first column is a kind's place."""
    d = a.shape[1]
    first = 1 if kinds else 0
    if kinds:
        yield Coordinate(0, "the kind of output", kinds)
    for index in range(first, d):
        yield Coordinate(index, f"output[{index - first}]" if d - first > 1 else "output")
    if d > 1:
        yield Additive.between(a, b)
        yield Linear.between(a, b)
        yield Size(np.median(np.concatenate([a, b]), axis=0))


def _normal_scores(learnt: Matrix, outputs: Outputs) -> Matrix:
    """Each coordinate's place among the learnt outputs, as a normal quantile; ties get the middle of their places."""
    from scipy.special import ndtri

    columns = []
    for known, values in zip(learnt.T, outputs.T, strict=True):
        rank = (np.searchsorted(known, values, "left") + np.searchsorted(known, values, "right")) / 2
        columns.append(ndtri((rank + 0.5) / (len(known) + 1)))
    return np.stack(columns, axis=1)
