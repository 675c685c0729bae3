"""Noise for up to eight counts of the same establishments under one epsilon, for the weak definition, by all unions.

Weakly, an establishment gains at most a share alpha of its workers in every *set* of kinds. The norm of `weak-joint`
knows single kinds and all workers; this one knows every set: g(y) = max over sets A of y(A) / S_A. Two kinds of six
workers gain one worker together, not one each, so its ball is smaller and no other promise is made
(docs/proofs/rings.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.noise.rings import Rings
from discreet.noise.sampler import add
from discreet.noise.source import Source
from discreet.noise.unions import MOST_KINDS, draw_unions
from discreet.privacy.guarantee import Basis
from discreet.tables.mechanisms.joint_polynomial import JointPolynomialNoise
from discreet.tables.mechanisms.mechanism import Mechanism
from discreet.tables.mechanisms.weak_joint import WeakJoint


@dataclass(frozen=True, slots=True, kw_only=True)
class WeakUnions(WeakJoint):
    """The rings of `weak-joint` in a norm of all unions. `draw` takes x(A) of every set of kinds, as `Cells.unions`."""

    name: ClassVar[str] = "weak-unions"
    basis: ClassVar[Basis] = "proved"
    by_unions: ClassVar[bool] = True
    most_cells: ClassVar[int] = MOST_KINDS
    plainer: ClassVar[tuple[type[Mechanism], ...]] = (WeakJoint, JointPolynomialNoise)

    def bounds(self, unions: Integers) -> Matrix:
        """S_A of every set of kinds; column 0, of no kind, is not used."""
        place, scale = self.tabled(unions)
        return np.asarray(scale[place])

    def tabled(self, unions: Integers) -> tuple[Integers, Vector]:
        """The place of every set of kinds in a table of S, and the table, which never falls."""
        sizes = np.asarray(unions)
        most = int(sizes.max(initial=0))
        if most < sizes.size:
            return sizes, self.scale(np.arange(most + 1, dtype=np.float64))
        known, place = np.unique(sizes, return_inverse=True)
        return place.reshape(sizes.shape), self.scale(known.astype(np.float64))

    def draw(self, count: Integers, largest: Integers, source: Source) -> Integers:
        place, scale = self.tabled(largest)
        noise = draw_unions(cast(Rings, self.law), sizes=place, scale=scale, source=source)
        return add(count, noise.reshape(count.shape))
