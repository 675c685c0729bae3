"""Noise of rings for all d counts of the same establishments, under one epsilon: docs/proofs/rings.md.

The law is a function of the L1 radius, as that of `joint-polynomial`, and falls as steeply as the strong definition
allows at every radius. It is close to the least noise of any such law. Its scale follows whole workers (`tables.mechanisms.growth`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self

from discreet.arrays import Vector
from discreet.noise.law import Rounded
from discreet.noise.rings import MOST_COORDINATES, Rings, tables, typical_radius
from discreet.privacy.guarantee import Basis
from discreet.tables.mechanisms.growth import paced
from discreet.tables.mechanisms.joint_polynomial import JointPolynomialNoise
from discreet.tables.mechanisms.mechanism import LEAST_GROWTH, MARGIN, Mechanism, Request

MOST_SOLVED = 24.0
"""Beyond this epsilon noise is almost surely zero in small cells, and is left as it is."""

FARTHEST = 250.0
"""Up to such a radius the body of the law is cut into rings."""

RINGS, MOST_STEPS, COARSE_STEPS = 4000, 128, 16
SHAPES = tuple((plateau / 8, rise) for plateau in range(8) for rise in (0.0, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class JointRings(JointPolynomialNoise):
    """Rings around the counts whose volume and radius change together.

    Attributes
    ----------
    coupled : whether a change of scale moves the volume of the unit ball and every radius by the same ratio.
    most_cells : counts that it covers at most.
    """

    name: ClassVar[str] = "joint-rings"
    amounts: ClassVar[bool] = False
    proof: ClassVar[str] = "docs/proofs/rings.md"
    basis: ClassVar[Basis] = "proved"
    halves: ClassVar[bool] = True
    laws: ClassVar[tuple[type[Rounded], ...]] = (Rings,)
    coupled: ClassVar[bool] = True
    most_cells: ClassVar[int] = MOST_COORDINATES
    plainer: ClassVar[tuple[type[Mechanism], ...]] = (JointPolynomialNoise,)

    @classmethod
    def lacks(cls, ask: Request) -> str:
        if ask.b < LEAST_GROWTH:
            return f"ln(1 + alpha) of at least {LEAST_GROWTH:.3g}"
        if ask.cells > cls.most_cells:
            return f"at most {cls.most_cells} counts"
        needed, (budget, growth) = cls.needed(ask.cells), cls._asked(ask)
        if ask.epsilon * (1 - MARGIN) <= needed * math.log1p(growth):
            return f"epsilon > {f'{needed} ' if needed > 1 else ''}ln(1 + alpha) = {needed * ask.b:.4g}"
        if needed * math.log1p(growth) >= MOST_SOLVED:
            return f"{needed} ln(1 + alpha) < {MOST_SOLVED:g}, the largest epsilon that it is solved for"
        if typical_radius(ask.cells, budget, growth, cls.coupled) > FARTHEST:
            return f"epsilon >= {_spared(cls.coupled, ask.cells, ask.b):.4g}: below, its table would be too long"
        return ""

    @classmethod
    def room(cls, ask: Request) -> Fraction:
        return Fraction(1)

    @classmethod
    def _asked(cls, ask: Request) -> tuple[float, float]:
        """The loss that it is solved for, and by how much a scale may grow."""
        # Scales are rounded: their ratio may be a little more than 1 + alpha, and the shift a little more than 1.
        growth = (1 + float(ask.unit.alpha)) * (1 + MARGIN) - 1
        return min(ask.epsilon * (1 - MARGIN), MOST_SOLVED), growth

    @classmethod
    def calibrate(cls, ask: Request) -> Self:
        ask.only_tight(cls)
        if lacking := cls.lacks(ask):
            raise ask.refuse(cls, lacking)
        law = shaped(ask.cells, *cls._asked(ask), cls.coupled)
        return cls(unit=ask.unit, loss=ask.loss, calibration="tight", law=law, factor=1 + MARGIN)

    @classmethod
    def needed(cls, cells: int) -> int:
        """How many times ln(1 + alpha) epsilon must exceed for noise of finite mean."""
        return cells

    @property
    def share(self) -> float:
        return float(self.unit.alpha / (1 + self.unit.alpha))

    def scale(self, largest: Vector) -> Vector:
        return self.factor * paced(self.unit.alpha, largest)


def _spared(coupled: bool, d: int, b: float) -> float:
    """The epsilon from which on a table is short enough."""
    return d / FARTHEST + (0.0 if coupled else d * b)


@lru_cache(maxsize=64)
def shaped(d: int, epsilon: float, growth: float, coupled: bool) -> Rings:
    """The law of rings of the least mean radius, among some shapes of its first unit."""

    def law(steps: int, shape: tuple[float, float]) -> Rings:
        return Rings(d, epsilon, growth, coupled, steps, *shape)

    body = 4 * typical_radius(d, epsilon, growth, coupled) + 4
    steps = 2 ** max(2, min(int(math.log2(MOST_STEPS)), int(math.log2(RINGS / body))))
    coarse = min(steps, COARSE_STEPS)
    radii = [found.moment(1) for found in tables([law(coarse, shape) for shape in SHAPES])]
    return law(steps, SHAPES[radii.index(min(radii))])
