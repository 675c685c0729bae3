"""The worst loss of a mechanism whose noise has probabilities of its own for every size, and is no rounded law."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from discreet.arrays import Vector
from discreet.privacy.neighbours import Neighbours

CLOSE = 500
"""Outputs up to this far from a count are all examined."""


@runtime_checkable
class IntegerMechanism(Protocol):
    """A mechanism whose noise has probabilities of its own for every size, and is no rounded law."""

    def integer_probability(self, j: Vector, largest: float) -> Vector:
        """P(noise = j) where the largest establishment has so many workers."""


def integer_supremum(mechanism: IntegerMechanism, pairs: Neighbours) -> tuple[float, int, float]:
    """The largest loss between pairs of cells, the pair and the output where it occurs.

    Outputs are every integer near both counts, and a geometric ladder into the tails.
    """
    small, large = np.maximum(pairs.before, pairs.other), np.maximum(pairs.after, pairs.other)
    distinct, first = np.unique(np.stack([small, large, pairs.after - pairs.before]), axis=1, return_index=True)
    far = np.unique(np.geomspace(CLOSE + 1, 10**7, 400).astype(np.int64))
    outputs = np.concatenate([-far[::-1], np.arange(-CLOSE, CLOSE + 1), far])
    logs: dict[int, Vector] = {}
    worst, found, output = -1.0, 0, 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        for place, (x, y, shift) in zip(first.tolist(), distinct.T.tolist(), strict=True):
            if x not in logs:
                logs = {y: logs[y]} if y in logs else {}  # sizes come in order
                logs[x] = np.log(mechanism.integer_probability(outputs, x))
            here, there = logs[x], np.log(mechanism.integer_probability(outputs - shift, y))
            losses = np.where((here > -600) & (there > -600), np.abs(here - there), 0)
            if not losses.max() <= worst:
                worst, found, output = float(losses.max()), place, float(outputs[int(np.argmax(losses))])
    return worst, found, output
