"""Input noise infusion: how the agencies protect these tables today. No guarantee; `tables.baseline.attacks` shows why.

Haney et al. (2017, section 5.1): establishment w has one confidential factor f_w, bounded away from 1 and the same in
every table and every year; it multiplies all of the establishment's counts. A cell whose true count lies in
(0, small) is replaced by a random integer from 1 to floor(small); zeros stay zero.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.noise.source import Source
from discreet.tables.baseline.establishments import Histograms
from discreet.words.errors import PrivacyError

if TYPE_CHECKING:
    import pyarrow as pa

KEY_BYTES = 16
"""The shortest key: anyone who guesses the key has every factor."""


@dataclass(frozen=True, slots=True)
class Infusion:
    """The parameters, which an agency keeps to itself.

    Attributes
    ----------
    low, high : |f_w - 1| is uniform on [low, high] and its sign is fair.
    small : the small cell limit S.
    """

    low: float = 0.05
    high: float = 0.15
    small: float = 2.5

    def __post_init__(self) -> None:
        if not (0 < self.low <= self.high < 1 and self.small >= 0):
            raise PrivacyError(
                f"Infusion(low={self.low}, high={self.high}, small={self.small}) is no distortion.",
                "It needs 0 < low <= high < 1 and small >= 0.",
                "Leave them out for 0.05, 0.15 and 2.5.",
                about="low",
            )

    def factor(self, uniform: Vector) -> Vector:
        """f_w as a function of a uniform variable on [0, 1): below a half it shrinks, from there on it swells."""
        sign = np.where(uniform < 0.5, -1.0, 1.0)
        return np.asarray(1 + sign * (self.low + (self.high - self.low) * (2 * uniform % 1)))

    def factors(self, establishment: pa.Array, *, key: bytes) -> Vector:
        """The factor of each establishment: a keyed hash of its identifier, so it needs no table and never changes."""
        if len(key) < KEY_BYTES:
            raise PrivacyError(
                f"The key has {len(key)} bytes.",
                f"Factors can be guessed from a short one; it needs at least {KEY_BYTES}.",
                "Make one with secrets.token_bytes(32) and keep it as the agency's secret.",
                about="key",
            )
        digests = (hmac.digest(key, str(name).encode(), "sha256")[:8] for name in establishment.to_pylist())
        words = np.frombuffer(b"".join(digests), dtype="<u8") >> np.uint64(11)
        return self.factor(words.astype(np.float64) * 2.0**-53)

    def publish(self, histograms: Histograms, factors: Vector, *, source: Source) -> Matrix:
        """The infused table, shape (cells, d): sums of f_w h(w, c), small cells replaced, zeros kept."""
        true = histograms.total(histograms.counts)
        published = np.asarray(histograms.total(factors[:, None] * histograms.counts))
        small = (true > 0) & (true < self.small)
        draws = source.words(int(small.sum())) % np.uint64(self._most_small)
        published[small] = 1.0 + draws
        return published

    def expected_error(self, histograms: Histograms, *, rng: np.random.Generator, trials: int = 20) -> Matrix:
        """E|published - true| of every cell, shape (cells, d).

        Exact for small cells and where one establishment has all of the cell's jobs; elsewhere the mean over `trials`
        independent sets of factors.
        """
        counts, true = histograms.counts, histograms.total(histograms.counts)
        error = np.zeros(true.shape)
        for _ in range(trials):
            excess = self.factor(rng.random(len(counts))) - 1
            error += np.abs(histograms.total(excess[:, None] * counts)) / trials
        alone = histograms.total((counts > 0).astype(np.int64)) == 1
        error[alone] = (self.low + self.high) / 2 * true[alone]
        small = (true > 0) & (true < self.small)
        error[small] = self._small_error(true[small])
        return error

    @property
    def _most_small(self) -> int:
        """The largest integer that replaces a small count."""
        return max(int(self.small), 1)

    def _small_error(self, true: Integers) -> Vector:
        possible = np.arange(1, self._most_small + 1)
        return np.asarray(np.abs(possible[:, None] - true).mean(axis=0))
