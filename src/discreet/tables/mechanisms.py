"""How a count becomes a published count: every mechanism of the Tables paper, the tighter ones and the baselines.

A mechanism knows its law and its scale, draws exact integer noise, and says what one cell costs. How its constants
are chosen is in `calibration`; that they keep their word is checked by `privacy.verify`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.noise.laws import DiscreteLaplace, GeneralisedCauchy, Laplace, Polynomial, RadialPolynomial
from discreet.noise.sampler import add_noise, draw_log_laplace
from discreet.noise.source import Source
from discreet.privacy.guarantee import Basis, Calibration
from discreet.privacy.losses import Loss
from discreet.privacy.units import EstablishmentNodes, Establishments, Workers

NoiseLaw: TypeAlias = Laplace | GeneralisedCauchy | Polynomial | RadialPolynomial


class Mechanism(Protocol):
    """What a release needs to know of its mechanism."""

    @property
    def name(self) -> str: ...

    @property
    def loss(self) -> Loss:
        """The loss of one cell, or of the whole vector of a joint mechanism."""

    @property
    def calibration(self) -> Calibration: ...

    @property
    def basis(self) -> Basis: ...

    @property
    def proof(self) -> str: ...

    def cost(self, cells: int) -> Loss:
        """The loss of `cells` counts of the same establishments."""

    def expected_error(self, count: Vector, largest: Vector) -> Vector:
        """E|published - count| before rounding to whole numbers; of those it is `expected.integer_error`."""

    def draw(self, count: Integers, largest: Integers, source: Source) -> Integers:
        """Published counts. `largest` is the contribution that the definition says must be hidden."""


@dataclass(frozen=True, slots=True)
class SmoothNoise:
    """count + factor * max(alpha * largest, floor) * Z: noise in proportion to the smooth sensitivity.

    `floor` is the step of one worker, or more where that is to take half of the loss only.
    """

    name: str
    unit: Establishments
    loss: Loss
    law: NoiseLaw
    factor: float
    calibration: Calibration
    proof: str
    basis: Basis = "proved"
    floor: float = 1.0

    @property
    def additive(self) -> bool:
        return True

    @property
    def joint(self) -> bool:
        """Whether one draw covers all cells of the same establishments."""
        return self.law.dimension > 1

    def cost(self, cells: int) -> Loss:
        return self.loss if self.joint else self.loss * cells

    def centre(self, count: Vector) -> Vector:
        return count

    def scale(self, largest: Vector) -> Vector:
        return self.factor * np.maximum(float(self.unit.alpha) * largest, self.floor)

    def expected_error(self, count: Vector, largest: Vector) -> Vector:
        return self.scale(largest) * self.law.mean_abs

    def draw(self, count: Integers, largest: Integers, source: Source) -> Integers:
        return add_noise(count, self.law, scale=self.scale(largest.astype(np.float64)), source=source)

    def scaled(self, share: float) -> SmoothNoise:
        """The same mechanism with `share` of its noise: for verification, never for a release."""
        return replace(self, factor=self.factor * share)


@dataclass(frozen=True, slots=True)
class LogLaplace:
    """(count + offset) e^(exponent L) - offset, L ~ Laplace(1); `shrink` takes the bias off where it is finite.

    The offset is floor/alpha, with a `floor` as that of `SmoothNoise`.
    """

    unit: Establishments
    loss: Loss
    exponent: float
    shrink: float
    calibration: Calibration
    proof: str
    basis: Basis = "proved"
    name: str = "log-laplace"
    floor: float = 1.0

    @property
    def offset(self) -> float:
        return self.floor / float(self.unit.alpha)

    @property
    def law(self) -> Laplace:
        return Laplace()

    @property
    def additive(self) -> bool:
        return False

    def cost(self, cells: int) -> Loss:
        return self.loss * cells

    def centre(self, count: Vector) -> Vector:
        return np.log(count + self.offset)

    def scale(self, largest: Vector) -> Vector:
        return np.full_like(np.asarray(largest, dtype=np.float64), self.exponent)

    def expected_error(self, count: Vector, largest: Vector) -> Vector:
        over, under, _ = self.beyond(count, count)
        return over + under

    def beyond(self, count: Vector, x: Vector) -> tuple[Vector, Vector, Vector]:
        """E(X - x)+, E(x - X)+ and P(X > x) of the number X that is rounded and published for a `count`.

        X + offset = m e^(l L), m the median. The side of the median on which x lies has a closed form, the other one
        follows from E X = m / (1 - l^2) - offset.
        """
        ell, offset = self.exponent, self.offset
        median = self.shrink * (count + offset)
        size = np.maximum(x + offset, 0.0)
        with np.errstate(divide="ignore"):
            distance = np.log(size / median) / ell
        far = np.exp(-np.abs(distance)) / 2
        above = distance > 0
        share = far * size * ell / np.where(above, 1 - ell, 1 + ell)
        gain = median / (1 - ell**2) - offset - x
        return np.where(above, share, share + gain), np.where(above, share - gain, share), np.where(above, far, 1 - far)

    def draw(self, count: Integers, largest: Integers, source: Source) -> Integers:
        return draw_log_laplace(
            multiplier=self.shrink * (count.astype(np.float64) + self.offset),
            exponent=self.exponent,
            addend=-self.offset,
            source=source,
        )

    def scaled(self, share: float) -> LogLaplace:
        """The same mechanism with `share` of its noise: for verification, never for a release."""
        return replace(self, exponent=self.exponent * share)


@dataclass(frozen=True, slots=True)
class Baseline:
    """Laplace noise that does not hide an establishment: kept to show what goes wrong.

    "edge-laplace" adds Laplace(1/eps) and protects single jobs; "node-truncation" drops establishments above theta
    and adds Laplace(theta/eps); "down-sensitivity" scales by the largest establishment itself, which no definition
    covers because the scale is a function of the data. The tight noise is that of integers, the paper's is rounded.
    """

    name: str
    unit: Workers | EstablishmentNodes | Establishments
    loss: Loss
    law: Laplace | DiscreteLaplace
    width: float
    basis: Basis
    calibration: Calibration
    proof: str = "docs/proofs/baselines.md"

    @property
    def additive(self) -> bool:
        return True

    @property
    def theta(self) -> int | None:
        """Establishments above this size are dropped before counting."""
        return self.unit.theta if isinstance(self.unit, EstablishmentNodes) else None

    def cost(self, cells: int) -> Loss:
        """One job, or one establishment, moves all counts together by the sensitivity: one epsilon for all of them."""
        return self.loss

    def centre(self, count: Vector) -> Vector:
        return count

    def scale(self, largest: Vector) -> Vector:
        sensitivity = np.maximum(largest, 1.0) if self.name == "down-sensitivity" else np.ones_like(largest)
        return self.width * sensitivity

    def expected_error(self, count: Vector, largest: Vector) -> Vector:
        scale = self.scale(largest)
        return self.law.mean(scale) if isinstance(self.law, DiscreteLaplace) else scale

    def draw(self, count: Integers, largest: Integers, source: Source) -> Integers:
        return add_noise(count, self.law, scale=self.scale(largest.astype(np.float64)), source=source)
