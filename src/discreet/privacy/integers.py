"""The worst loss of a mechanism whose noise has probabilities of its own for every size, and is no rounded law."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.privacy.neighbours import Neighbours

CLOSE = 500
"""Outputs up to this far from a count are all examined."""


@runtime_checkable
class IntegerMechanism(Protocol):
    """A mechanism whose noise has probabilities of its own for every size, and is no rounded law."""

    def integer_probability(self, j: Vector, largest: float) -> Vector:
        """P(noise = j) where the largest establishment has so many workers."""


@runtime_checkable
class PairMechanism(Protocol):
    """One whose noise follows the second largest establishment, too: one law for each row of the ratio of both."""

    @property
    def shares(self) -> Sequence[float]:
        """Where rows end."""

    def row(self, largest: Integers, second: Integers) -> Integers:
        """The row of each cell."""

    def integer_probability(self, j: Vector, largest: float, second: float) -> Vector:
        """P(noise = j) where the two largest establishments have so many workers."""


def integer_supremum(mechanism: IntegerMechanism, pairs: Neighbours) -> tuple[float, int, float]:
    """The largest loss between pairs of cells, the pair and the output where it occurs.

    Outputs are every integer near both counts, and a geometric ladder into the tails.
    """
    far = np.unique(np.geomspace(CLOSE + 1, 10**7, 400).astype(np.int64))
    outputs = np.concatenate([-far[::-1], np.arange(-CLOSE, CLOSE + 1), far])
    before, after = _states(mechanism, pairs, pairs.before), _states(mechanism, pairs, pairs.after)
    # Cells of one row have one law, whatever their second largest establishment.
    keys = np.stack([after[0], after[2], pairs.after - pairs.before, before[0], before[2]])
    distinct, first = np.unique(keys, axis=1, return_index=True)
    seconds = np.stack([after[1], before[1]])[:, first]

    def probability(j: Integers, largest: int, second: int) -> Vector:
        k = j.astype(np.float64)
        with np.errstate(divide="ignore"):
            if isinstance(mechanism, PairMechanism):
                return np.asarray(np.log(mechanism.integer_probability(k, largest, second)))
            return np.asarray(np.log(mechanism.integer_probability(k, largest)))

    known: dict[tuple[int, int], Vector] = {}

    def here(x: int, row: int, second: int) -> Vector:
        if (x, row) not in known:
            known[x, row] = probability(outputs, x, second)
        return known[x, row]

    worst, found, output, last = -1.0, 0, 0.0, None
    other = np.empty(0)
    with np.errstate(invalid="ignore"):
        for place, key, (beside, second) in zip(first.tolist(), distinct.T.tolist(), seconds.T.tolist(), strict=True):
            y, _, shift, x, row = key
            if last != key[:3]:  # pairs come in the order of these three
                other, last = probability(outputs - shift, y, beside), key[:3]
            one = here(x, row, second)
            losses = np.where((one > -600) & (other > -600), np.abs(one - other), 0)
            if not losses.max() <= worst:
                worst, found, output = float(losses.max()), place, float(outputs[int(np.argmax(losses))])
    return worst, found, output


def _states(mechanism: IntegerMechanism, pairs: Neighbours, size: Integers) -> Integers:
    """The two largest establishments where one has `size` workers, and the row of the law."""
    both = np.sort(np.stack([size, pairs.other, np.minimum(pairs.rest, pairs.other)]), axis=0)
    largest, second = both[2], both[1]
    row = mechanism.row(largest, second) if isinstance(mechanism, PairMechanism) else np.zeros_like(largest)
    return np.stack([largest, second, row])
