"""Log-Laplace noise, which multiplies: (count + offset) e^(exponent L) - offset, L ~ Laplace(1).

The proof is docs/proofs/log-laplace.md. For counts of workers of some kind it keeps only the weak definition.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.noise.law import TERMS
from discreet.noise.laws import Laplace
from discreet.noise.sampler import draw_log_laplace
from discreet.noise.source import Source
from discreet.privacy.guarantee import Basis, Calibration, is_tight
from discreet.privacy.losses import Loss
from discreet.privacy.units import Establishments
from discreet.tables.intervals.quantiles import OUTWARD, not_below_zero
from discreet.tables.mechanisms.mechanism import LEAST_GROWTH, MARGIN, CellSizes, Follows, Mechanism, Request

if TYPE_CHECKING:
    from discreet.tables.expected import Kinds

SAME = 0.99
"""Errors whose least value is at least this share of their largest are reported as known, not as bounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLaplace(Mechanism):
    """A count that is multiplied; `shrink` takes the bias off where it is finite.

    The offset is floor/alpha, with a `floor` as that of `SmoothNoise`.
    """

    law: Laplace = field(default_factory=Laplace)
    exponent: float
    shrink: float
    floor: float = 1.0

    name: ClassVar[str] = "log-laplace"
    proof: ClassVar[str] = "docs/proofs/log-laplace.md"
    basis: ClassVar[Basis] = "proved"
    strong_by_kind: ClassVar[bool] = False
    stated_constants: ClassVar[tuple[str, ...]] = ("exponent", "shrink")

    @classmethod
    def lacks(cls, ask: Request) -> str:
        if is_tight(ask.calibration) and ask.b < LEAST_GROWTH:
            return f"ln(1 + alpha) of at least {LEAST_GROWTH:.3g}"
        if cls._exponent(ask) >= 1:
            factor, word = (1, "ln(1 + alpha)") if is_tight(ask.calibration) else (2, "2 ln(1 + alpha)")
            return f"epsilon > {word} = {factor * ask.b:.4g} for its error to be finite"
        return ""

    @classmethod
    def _exponent(cls, ask: Request) -> float:
        return ask.b / ask.epsilon * (1 + MARGIN if is_tight(ask.calibration) else 2)

    @classmethod
    def calibrate(cls, ask: Request) -> Self:
        if lacking := cls.lacks(ask):
            raise ask.refuse(cls, lacking)
        exponent = cls._exponent(ask)
        shrink = 1 - exponent**2 if is_tight(ask.calibration) else 1.0
        return cls(unit=ask.unit, loss=ask.loss, calibration=ask.calibration, exponent=exponent, shrink=shrink)

    @classmethod
    def stated(cls, noise: Mapping[str, Any], *, unit: Establishments, loss: Loss, calibration: Calibration) -> Self:
        own = {name: noise[name] for name in cls.stated_constants} | {"step": noise.get("step", 1)}
        return cls(unit=unit, loss=loss, calibration=calibration, **own)

    @property
    def offset(self) -> float:
        return self.floor / float(self.unit.alpha)

    @property
    def additive(self) -> bool:
        return False

    @property
    def follows(self) -> Follows:
        return "count"

    def centre(self, count: Vector) -> Vector:
        return np.log(count + self.offset)

    def scale(self, largest: Vector) -> Vector:
        return np.full_like(np.asarray(largest, dtype=np.float64), self.exponent)

    def median(self, count: Vector) -> tuple[Vector, float]:
        """The number that is multiplied, and what is added afterwards."""
        return self.shrink * (count + self.offset), -self.offset

    def draw(self, count: Integers, largest: Integers, source: Source) -> Integers:
        multiplier, addend = self.median(count.astype(np.float64))
        return draw_log_laplace(multiplier=multiplier, exponent=self.exponent, addend=addend, source=source)

    def exceeds(self, count: Vector, x: Vector) -> Vector:
        """P(X > x) of the number X that is rounded and published for a `count`."""
        multiplier, addend = self.median(count)
        with np.errstate(divide="ignore"):
            distance = np.log(np.maximum(x - addend, 0.0) / multiplier) / self.exponent
        far = np.exp(-np.abs(distance)) / 2
        return np.asarray(np.where(distance > 0, far, 1 - far))

    def log_likelihood(self, published: Integers, count: Integers, largest: Vector) -> Matrix:
        out = self.centre(np.maximum(published, np.ceil(-self.offset) + 1.0)) - math.log(self.shrink)
        away = (out[:, None, :] - self.centre(np.asarray(count))) / self.exponent
        return np.asarray(self.law.log_density(away).sum(axis=2))

    def expected_error(self, count: Vector, largest: Vector) -> Vector:
        over, under, _ = self.beyond(count, count)
        return over + under

    def beyond(self, count: Vector, x: Vector) -> tuple[Vector, Vector, Vector]:
        """E(X - x)+, E(x - X)+ and P(X > x) of the number X that is rounded and published for a `count`.

        X + offset = m e^(l L), m the median. The side of the median on which x lies has a closed form, the other one
        follows from E X = m / (1 - l^2) - offset.
        """
        ell, (median, addend) = self.exponent, self.median(count)
        size, chance = np.maximum(x - addend, 0.0), self.exceeds(count, x)
        above, far = size > median, np.minimum(chance, 1 - chance)
        share = far * size * ell / np.where(above, 1 - ell, 1 + ell)
        gain = median / (1 - ell**2) + addend - x
        return np.where(above, share, share + gain), np.where(above, share - gain, share), chance

    def integer_error(self, count: Vector, largest: Vector) -> Vector:
        """The same sum as `Rounded.mean`, on either side of the count n."""
        n, steps = np.asarray(count, dtype=np.float64)[..., None], np.arange(TERMS + 1) + 0.5
        above = self.beyond(n, n + steps)[2]
        below = 1 - self.beyond(n, n - steps)[2]
        rest = self.beyond(n, n + TERMS)[0] + self.beyond(n, n - TERMS)[1]
        chance = above + below
        return np.asarray(chance[..., :-1].sum(axis=-1) + rest[..., 0] + (chance[..., -1] - chance[..., -2]) / 24)

    def mean_of(self, kinds: Kinds, cells: CellSizes) -> tuple[Vector, Mask]:
        """The most that the mean error of a cell's counts can be, and where some division into kinds has less.

        Before rounding the error is linear in the count, so the mean is that of an even division. Rounding takes most
        away where counts are small.
        """
        jobs, levels = cells.jobs, kinds.levels
        whole, even = self.integer_error(jobs, jobs), self.integer_error(jobs / levels, jobs)
        one_kind = (whole + (levels - 1) * self.integer_error(np.zeros(1), np.zeros(1))) / levels
        before = self.expected_error(jobs / levels, jobs)
        most = np.minimum(whole, np.maximum(before, np.maximum(even, one_kind)))
        return most, ~(even >= SAME * most) | kinds.filtered

    def ends(self, counts: Vector, *, level: float, bounded: bool) -> tuple[Vector, Vector]:
        offset = self.offset
        spread = math.exp(self.exponent * -math.log(1 - level) * OUTWARD) * OUTWARD
        low = (counts - 0.5 + offset) / self.shrink / spread - offset
        high = (counts + 0.5 + offset) / self.shrink * spread - offset
        return not_below_zero(low, high, beside=offset)

    def scaled(self, share: float) -> Self:
        return replace(self, exponent=self.exponent * share)
