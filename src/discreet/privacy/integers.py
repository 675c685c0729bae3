"""The worst loss of a mechanism whose noise has probabilities of its own for every size, and is no rounded law."""

from __future__ import annotations

from functools import cache, lru_cache
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
    distinct, first = np.unique(np.stack([large, pairs.after - pairs.before, small]), axis=1, return_index=True)
    far = np.unique(np.geomspace(CLOSE + 1, 10**7, 400).astype(np.int64))
    outputs = np.concatenate([-far[::-1], np.arange(-CLOSE, CLOSE + 1), far])

    @cache
    def here(x: int) -> Vector:
        return np.asarray(np.log(mechanism.integer_probability(outputs, x)))

    @lru_cache(maxsize=1)  # pairs come in the order of these two
    def there(y: int, shift: int) -> Vector:
        return np.asarray(np.log(mechanism.integer_probability(outputs - shift, y)))

    worst, found, output = -1.0, 0, 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        for place, (y, shift, x) in zip(first.tolist(), distinct.T.tolist(), strict=True):
            one, other = here(x), there(y, shift)
            losses = np.where((one > -600) & (other > -600), np.abs(one - other), 0)
            if not losses.max() <= worst:
                worst, found, output = float(losses.max()), place, float(outputs[int(np.argmax(losses))])
    return worst, found, output
