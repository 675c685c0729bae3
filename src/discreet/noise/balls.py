"""Vectorised ball arithmetic in doubles: every number is a midpoint and a bound on its distance from the truth.

The counterpart of Arb for arrays: `Balls` has the operations that the transforms of `discreet.noise.transforms` need,
with Arb's names, and says which roundings it is sure of. The bound of every operation is derived, and numbered, in
docs/proofs/sampler.md, section 3. A bound that is infinite or not a number means "undecided", never "decided".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.arrays import Integers, Mask

Real: TypeAlias = "NDArray[np.float64] | np.float64 | float"

ROUNDING = 2.0**-52  # one correctly rounded operation, relative to its result; twice what IEEE 754 promises
ELEMENTARY = 2.0**-49  # log, exp, expm1 and cos of NumPy: 8 units in the last place; tests compare with Arb
SLACK = 1 + 2.0**-28  # radii are computed with roundings too
UNDERFLOW = 2.0**-25  # more than gradual underflow can do to a result
VANISHED = 2.0**-1000  # what an exponential may have been if it was computed as zero


class Balls:
    """Arrays ``mid`` and ``rad`` with |truth - mid| <= rad; a float stands for a constant array."""

    __slots__ = ("mid", "rad")
    __array_ufunc__ = None

    def __init__(self, mid: Real, rad: Real = 0.0) -> None:
        self.mid, self.rad = mid, rad

    @property
    def exact(self) -> bool:
        return isinstance(self.rad, float) and self.rad == 0

    @classmethod
    def uniforms(cls, words: NDArray[np.uint64]) -> Balls:
        """Uniform variables of which the 63 upper bits of each word are the first binary digits."""
        mid = (words >> np.uint64(1)).view(np.int64).astype(np.float64)
        mid += 0.5
        mid *= 2.0**-63
        rad = mid * ROUNDING
        rad += 2.0**-64
        return cls(mid, rad)

    def __add__(self, other: Balls | float) -> Balls:
        other = _lift(other)
        mid = self.mid + other.mid
        rad = np.abs(mid)
        rad *= ROUNDING
        rad += self.rad
        if not other.exact:
            rad += other.rad
        return Balls(mid, rad)

    def __sub__(self, other: Balls | float) -> Balls:
        return self + -_lift(other)

    def __rsub__(self, other: float) -> Balls:
        return _lift(other) + -self

    def __neg__(self) -> Balls:
        return Balls(-self.mid, self.rad)

    def __mul__(self, other: Balls | float) -> Balls:
        other = _lift(other)
        mid = self.mid * other.mid
        rad = np.abs(mid)
        rad *= ROUNDING
        if not self.exact:
            rad += np.abs(other.mid) * self.rad
        if not other.exact:
            rad += (np.abs(self.mid) + self.rad) * other.rad
        return Balls(mid, rad)

    def __truediv__(self, other: Balls | float) -> Balls:
        other = _lift(other)
        mid = self.mid / other.mid
        size = np.abs(mid)
        rad = (self.rad + size * other.rad) / np.maximum(np.abs(other.mid) - 2 * other.rad, 0.0)
        rad += size * ROUNDING
        return Balls(mid, rad)

    def __rtruediv__(self, other: float) -> Balls:
        return _lift(other) / self

    def log(self) -> Balls:
        mid = np.log(self.mid)
        spread = self.rad / np.maximum(self.mid - 2 * self.rad, 0.0)
        return Balls(mid, spread + np.abs(mid) * ELEMENTARY)

    def exp(self) -> Balls:
        mid = np.exp(self.mid)
        return Balls(mid, mid * (_growth(self.rad) + ELEMENTARY) + VANISHED)

    def expm1(self) -> Balls:
        mid = np.expm1(self.mid)
        return Balls(mid, (np.abs(mid) + 1) * (_growth(self.rad) + ELEMENTARY))

    def sqrt(self) -> Balls:
        mid = np.sqrt(self.mid)
        return Balls(mid, self.rad / np.abs(mid) + mid * ROUNDING)

    def cos_pi(self) -> Balls:
        """cos(pi x), for x in [0, 1]."""
        return Balls(np.cos(np.pi * self.mid), 4 * self.rad + 2 * ELEMENTARY)

    def min(self, bound: float) -> Balls:
        return Balls(np.minimum(self.mid, bound), self.rad)

    def max(self, bound: Balls | float) -> Balls:
        other = _lift(bound)
        return Balls(np.maximum(self.mid, other.mid), self.rad if other.exact else np.maximum(self.rad, other.rad))

    def ceil(self) -> Balls:
        """The least integers above, exactly, where they are certain; unknown elsewhere."""
        reach = self.rad * SLACK + UNDERFLOW
        low, high = np.ceil(self.mid - reach), np.ceil(self.mid + reach)
        return Balls(high, np.where(low == high, 0.0, np.inf))

    def nearest(self) -> tuple[Integers, Mask]:
        """The nearest integers, and where they are certain."""
        integers = np.rint(self.mid)
        distance = np.abs(self.mid - integers)
        return integers.astype(np.int64), distance + self.rad * SLACK < 0.5 - UNDERFLOW

    def sgn(self) -> Balls:
        """-1 or 1, exactly, where the sign is certain; a ball around both elsewhere."""
        certain = np.abs(self.mid) > self.rad * SLACK + UNDERFLOW
        return Balls(np.where(certain, np.sign(self.mid), 0.0), np.where(certain, 0.0, 1.0))


def _growth(rad: Real) -> Real:
    """A bound of exp(rad) - 1."""
    return rad / np.maximum(1 - rad, 0.0)


def _lift(x: Balls | float) -> Balls:
    return x if isinstance(x, Balls) else Balls(x)
