"""Where random bits come from: the operating system, or a seed that makes the release not private.

Only privacy noise uses these. Simulation and Markov chains take a `numpy.random.Generator` instead.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Source(Protocol):
    """A supply of independent uniform 64-bit words, each handed out once."""

    @property
    def private(self) -> bool:
        """Whether nobody can reproduce the words; a release whose source is not private is not private."""

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
    """Reproducible words for tests and simulation studies. Whoever knows the seed can subtract the noise."""

    private = False

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Philox(seed)

    def words(self, n: int) -> NDArray[np.uint64]:
        return np.asarray(self._generator.random_raw(n), dtype=np.uint64)
