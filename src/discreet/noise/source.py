"""The source of random bits: the operating system, or a seed, which makes the release not private.

`Choice` is the draw that needs bits alone: from a table of whole-number weights, with exactly their probabilities.
Only privacy noise uses these. Simulation and Markov chains take a `numpy.random.Generator` instead.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from typing import TYPE_CHECKING, Protocol

import numpy as np

from discreet.words.errors import PrivacyError
from discreet.words.faults import Argument

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.arrays import Integers

FIRST = 62  # random bits of a choice; more are taken where they meet a threshold


class Source(Protocol):
    """A supply of independent uniform 64-bit words, each handed out once."""

    @property
    def private(self) -> bool:
        """Whether nobody can reproduce the words; a release from any other source is not private."""

    def words(self, n: int) -> NDArray[np.uint64]:
        """The next n words."""


class SystemSource:
    """The operating system's cryptographic generator.

    It keeps no buffer, so no word is used twice, neither across threads nor across a fork.
    """

    private = True

    def words(self, n: int) -> NDArray[np.uint64]:
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)


class SeededSource:
    """Reproducible words for tests and simulation studies. Anyone who knows the seed can subtract the noise."""

    private = False

    def __init__(self, seed: int) -> None:
        if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
            raise PrivacyError(
                (Argument("seed", seed), " is not a whole number of 0 or more."),
                "A seed makes a rehearsal repeatable; a private release has none.",
                ("Use for example ", Argument("seed", 1), "."),
                about="seed",
            )
        self._generator, self._process = np.random.Philox(seed), os.getpid()

    def words(self, n: int) -> NDArray[np.uint64]:
        if self._process != os.getpid():
            raise PrivacyError(
                "A seeded source was used in a copy of the process that made it.",
                "Both would draw the same noise, for two releases.",
                "Make a source with a seed of its own in each process.",
                about="seed",
            )
        return np.asarray(self._generator.random_raw(n), dtype=np.uint64)


class Choice:
    """Columns of a table whose rows add up to 2^bits, drawn in proportion to their weights."""

    def __init__(self, weights: NDArray[np.object_], *, bits: int) -> None:
        self._later = bits - FIRST
        self._total = [np.cumsum(row) for row in weights]
        self._high = np.array([[int(value) >> self._later for value in row] for row in self._total], dtype=np.int64)

    def draw(self, row: Integers, source: Source) -> Integers:
        """One column for each row that is named."""
        if not row.size:
            return row
        bits = (source.words(row.size) >> np.uint64(64 - FIRST)).astype(np.int64)
        if row.min() == row.max():
            return self._inverse(int(row[0]), bits, source)
        found = np.empty(row.size, dtype=np.int64)
        order = np.argsort(row, kind="stable")
        rows, starts = np.unique(row[order], return_index=True)
        for one, places in zip(rows.tolist(), np.split(order, starts[1:]), strict=True):
            found[places] = self._inverse(one, bits[places], source)
        return found

    def _inverse(self, row: int, bits: Integers, source: Source) -> Integers:
        """The first column whose cumulative weight lies above."""
        high = self._high[row]
        found = np.searchsorted(high, bits, side="right")
        unsure = np.flatnonzero((high[found - 1] == bits) & (found > 0))
        for place in unsure:
            number = int(bits[place]) << self._later | self._more(source)
            found[place] = bisect_right(self._total[row], number)
        return found

    def _more(self, source: Source) -> int:
        """The bits that are still missing."""
        words = -(-self._later // 64)
        number = 0
        for word in source.words(words).tolist():
            number = number << 64 | word
        return number >> (64 * words - self._later)
