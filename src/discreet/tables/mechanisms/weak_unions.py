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

from discreet.arrays import Integers, Matrix
from discreet.noise.rings import Rings
from discreet.noise.sampler import add
from discreet.noise.source import Source
from discreet.noise.unions import MOST_KINDS, draw_unions
from discreet.tables.mechanisms.weak_joint import WeakJoint


@dataclass(frozen=True, slots=True, kw_only=True)
class WeakUnions(WeakJoint):
    """The rings of `weak-joint` in a norm of all unions. `draw` takes x(A) of every set of kinds, as `Cells.unions`."""

    name: ClassVar[str] = "weak-unions"
    by_unions: ClassVar[bool] = True
    most_cells: ClassVar[int] = MOST_KINDS

    def bounds(self, unions: Integers) -> Matrix:
        """S_A of every set of kinds; column 0, of no kind, is not used."""
        sizes = np.asarray(unions)
        most = int(sizes.max(initial=0))
        if most >= sizes.size:
            return self.scale(sizes.astype(np.float64))
        return np.asarray(self.scale(np.arange(most + 1, dtype=np.float64))[sizes])

    def draw(self, count: Integers, largest: Integers, source: Source) -> Integers:
        noise = draw_unions(cast(Rings, self.law), scale=self.bounds(largest), source=source)
        return add(count, noise.reshape(count.shape))
