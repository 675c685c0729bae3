"""The worst loss of a mechanism whose noise has probabilities of its own for every size, and is no rounded law."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.privacy.neighbours import Neighbours, distinct_columns

CLOSE = 500
"""Outputs up to this far from a count are all examined."""

SPAN = 256
"""Growths up to this many workers shift what is known already."""

KEPT, TOGETHER = 512, 32
"""Laws that are kept, and long shifts that are computed at a time."""

LEAST, NONE = -600.0, -660.0
"""Smaller logarithms of probabilities count as the first, and zero as the second: no loss is overstated.

An output that one cell cannot give is found, and where both probabilities are that small there is no loss. Zero may
be one that was too small on the way, which happens below e^-700.
"""

_TAIL = np.unique(np.geomspace(CLOSE + 1, 10**7, 400).astype(np.int64))
HALF, FAR = _TAIL.size, np.concatenate([-_TAIL[::-1], _TAIL])
OUTPUTS = np.concatenate([FAR[:HALF], np.arange(-CLOSE, CLOSE + 1), FAR[HALF:]])
WIDER = np.concatenate([FAR[:HALF], np.arange(-CLOSE - SPAN, CLOSE + 1), FAR[HALF:]])


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
    before, after = _states(mechanism, pairs, pairs.before), _states(mechanism, pairs, pairs.after)
    # Cells of one row have one law, whatever their second largest establishment.
    keys = np.stack([after[0], after[2], pairs.after - pairs.before, before[0], before[2]])
    distinct, first = distinct_columns(keys)
    seconds = np.stack([after[1], before[1]])[:, first]
    both = isinstance(mechanism, PairMechanism)
    known: dict[tuple[int, int], _Seen] = {}

    def seen(x: int, row: int, second: int) -> _Seen:
        if (x, row) not in known:
            if len(known) == KEPT:
                known.pop(next(iter(known)))  # of smaller sizes, which come first
            known[x, row] = _Seen(mechanism, (x, second) if both else (x,))
        return known[x, row]

    worst, found, output = 0.0, 0, 0.0
    new = (distinct[:3, 1:] != distinct[:3, :-1]).any(axis=0)
    which = np.concatenate([[0], np.cumsum(new)])  # shifts of all laws, one after another
    starts = 1 + np.flatnonzero((distinct[:2, 1:] != distinct[:2, :-1]).any(axis=0))
    for start, stop in itertools.pairwise([0, *starts.tolist(), len(first)]):
        y, row = distinct[:2, start].tolist()
        some = which[start:stop] - which[start]
        shifts = distinct[2, start:stop][np.searchsorted(some, np.arange(some[-1] + 1))]
        others = seen(y, row, int(seconds[0, start])).shifted(shifts)
        earlier = zip(*distinct[3:, start:stop].tolist(), seconds[1, start:stop].tolist(), strict=True)
        losses = between(np.stack([seen(*state).outputs for state in earlier]), others[some])
        at, place = divmod(int(np.argmax(losses)), OUTPUTS.size)
        if not losses[at, place] <= worst:  # what is no number is found first
            worst = float(np.nan_to_num(losses[at, place], nan=np.inf))
            found, output = int(first[start + at]), float(OUTPUTS[place])
    return worst, found, output


def logarithms(probability: Vector) -> Vector:
    """Logarithms of probabilities, `NONE` for zero; no number where there is no probability."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(probability == 0, NONE, np.maximum(np.log(probability), LEAST)))


def between(one: Matrix, other: Matrix) -> Matrix:
    """The losses between such logarithms; those that are no number stay so."""
    return np.asarray(np.where(np.maximum(one, other) <= LEAST, 0.0, np.abs(one - other)))


class _Seen:
    """Logarithms of the probabilities of one law, each computed once."""

    def __init__(self, mechanism: IntegerMechanism, sizes: tuple[int, ...]) -> None:
        self.probability = partial(_probability, mechanism, sizes)
        wide = self.log(WIDER)
        self.near = wide[HALF:-HALF]
        self.outputs = np.concatenate([wide[:HALF], self.near[SPAN:], wide[-HALF:]])

    def log(self, j: Integers) -> Vector:
        """ln P(noise = j), or no number where that is no probability."""
        return logarithms(self.probability(j.ravel().astype(np.float64))).reshape(j.shape)

    def shifted(self, shifts: Integers) -> Matrix:
        """The same of `OUTPUTS` less each shift, in order: integers near the count are among those that are known."""
        if shifts[-1] > SPAN:
            return np.concatenate([self.log(OUTPUTS - some[:, None]) for some in _few(shifts)])
        far = self.log(FAR - shifts[:, None])
        near = self.near[SPAN - shifts[:, None] + np.arange(2 * CLOSE + 1)]
        return np.concatenate([far[:, :HALF], near, far[:, HALF:]], axis=1)


def _few(shifts: Integers) -> list[Integers]:
    return np.array_split(shifts, len(shifts) // TOGETHER + 1)


def _probability(mechanism: IntegerMechanism, sizes: tuple[int, ...], k: Vector) -> Vector:
    return mechanism.integer_probability(k, *sizes)


def _states(mechanism: IntegerMechanism, pairs: Neighbours, size: Integers) -> Integers:
    """The two largest establishments where one has `size` workers, and the row of the law."""
    both = np.sort(np.stack([size, pairs.other, np.minimum(pairs.rest, pairs.other)]), axis=0)
    largest, second = both[2], both[1]
    row = mechanism.row(largest, second) if isinstance(mechanism, PairMechanism) else np.zeros_like(largest)
    return np.stack([largest, second, row])
