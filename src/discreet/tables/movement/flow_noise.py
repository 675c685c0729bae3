"""Noise for all flows of a quarter under one epsilon: rings in the norm of flows. The proof is docs/proofs/flows.md.

The law of the radius is that of `joint-rings` for five counts; only the ball is another one (`noise.flow_body`). Here
are the draw, expected errors of whole numbers, and the ends of intervals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.noise.flow_body import COORDINATES, FLOWS, beyond_share
from discreet.noise.rings import Rings
from discreet.noise.sampler import add, draw_flows
from discreet.noise.source import SeededSource, Source
from discreet.privacy.losses import Loss, Number
from discreet.privacy.units import Establishments
from discreet.tables.calibration import calibrate
from discreet.tables.intervals.counts import BY_COUNTS, refuse_level
from discreet.tables.intervals.quantiles import OUTWARD, not_below_zero, pivot_quantile
from discreet.tables.mechanisms.mechanism import Mechanism
from discreet.tables.sizes import NoisySizes

RADII, SHARES = 2**12, 2**12
QUADRATURE = 1e-6
"""More than the error of a tail that is integrated numerically."""

POINTS, FINE = 2**16, 2.0**24  # coarse enough that doubles decide nearly every draw
_MATRIX = np.array(list(FLOWS.values()), dtype=np.int64).T
_ROUNDED: Mapping[str, float] = {
    **{name: sum(map(abs, parts)) / 2 for name, parts in FLOWS.items()},
    "mean": 1.0,
}
"""How far a flow moves if each of its coordinates is rounded; (2 stayed + came + left) / 2 has two halves more."""


def flows_of(vectors: Integers) -> Integers:
    """The published flows, in the order of `FLOWS`, from the five coordinates."""
    return np.asarray(vectors @ _MATRIX)


@dataclass(frozen=True, slots=True)
class FlowNoise:
    """Rings of five dimensions in the norm of flows.

    Flows of several quarters are added up before noise is added; the scale is then the sum of the quarters' scales.
    """

    rings: Mechanism
    quarters: int = 1

    @classmethod
    def calibrate(cls, *, unit: Establishments, epsilon: Number, quarters: int = 1) -> FlowNoise:
        """The least noise of this kind for the whole vector; raises `Infeasible` with the inequality."""
        return cls(calibrate("joint-rings", unit=unit, epsilon=epsilon, cells=len(COORDINATES)), quarters)

    @property
    def law(self) -> Rings:
        return cast(Rings, self.rings.law)

    @property
    def loss(self) -> Loss:
        return self.rings.loss

    @property
    def factor(self) -> float:
        """The scale of a cell whose establishments grow by one worker at a time."""
        return float(self.rings.scale(np.ones(1))[0])

    def scale(self, largest: Integers | Vector) -> Vector:
        """The scale of every cell, from its largest establishments' workforces: one, or one for each quarter."""
        found = self.rings.scale(np.asarray(largest, dtype=np.float64))
        return found if found.ndim == 1 else np.asarray(found.sum(axis=1))

    def draw(self, vectors: Integers, largest: Integers, source: Source) -> Integers:
        """Published coordinates. `largest` is the workforce of every cell's largest establishment in every quarter."""
        return add(vectors, draw_flows(self.law, scale=self.scale(largest), source=source))

    def expected_error(self, largest: Vector) -> dict[str, Vector]:
        """E|published - true| of every flow, a whole number, by the size of the largest establishment."""
        points = _points(self.law)
        scale = self.quarters * self.rings.scale(np.asarray(largest, dtype=np.float64))
        found = [np.abs(np.rint(points * one) @ _MATRIX).mean(axis=0) for one in scale.tolist()]
        return {name: np.array([errors[i] for errors in found]) for i, name in enumerate(FLOWS)}

    def ends(
        self,
        vectors: Integers,
        *,
        level: float,
        sizes: NoisySizes | None = None,
        largest: Integers | None = None,
    ) -> dict[str, tuple[Vector, Vector]]:
        """The ends of intervals of every flow, and of mean employment, each of probability at least `level`.

        An establishment has at most as many workers as its cell, so the published employment bounds the scale. With
        noisy sizes both bounds are used, as in `tables.intervals.counts`.
        """
        refuse_level(level)
        miss = 1 - level
        counted = miss if sizes is None else BY_COUNTS * miss
        most = self._most_scale(vectors, miss=counted / 2)
        found = {}
        for name, rounded in _ROUNDED.items():
            reach = most * quantile(self.law, name, counted / 2) * OUTWARD
            if sizes is not None and largest is not None:
                within = quantile(self.law, name, counted / 2)
                pivot = pivot_quantile(FlowTail(self.law, name), sizes.exponent, 1 - (miss - counted), within)
                size = float(self.rings.unit.alpha) * (largest.astype(np.float64) + 0.5)
                reach = np.minimum(reach, self.factor * size * pivot * OUTWARD)
            centre = vectors @ _mean_parts() if name == "mean" else vectors @ np.array(FLOWS[name], dtype=np.float64)
            low, high = centre - reach - rounded, centre + reach + rounded
            found[name] = (np.maximum(low, 0.0), np.maximum(high, 0.0)) if name == "mean" else not_below_zero(low, high)
        return found

    def _most_scale(self, vectors: Integers, *, miss: float) -> Vector:
        """A value that the scale of a cell exceeds with probability at most `miss`.

        The workers of the largest establishments of k quarters are at most the employment of all of them. So the sum of
        scales is at most a share of these workers, and k.
        """
        total = (vectors @ np.array(FLOWS["employment"])).astype(np.float64) + _ROUNDED["employment"]
        reach = self.factor * quantile(self.law, "employment", miss)
        share = float(self.rings.unit.alpha / (1 + self.rings.unit.alpha))  # of the scale: `tables.mechanisms.growth`
        if self.quarters > 1:
            workers = total + reach * self.quarters
            workers = workers / (1 - reach * share) if reach * share < 1 else np.full_like(total, np.inf)
            return np.asarray(self.factor * (share * np.maximum(workers, 0.0) + self.quarters) * OUTWARD)
        widest = total / (1 - reach * share) if reach * share < 1 else np.full_like(total, np.inf)
        return self.rings.scale(np.asarray(np.maximum(np.maximum(widest, total + reach), 0.0) * OUTWARD))


def _mean_parts() -> Vector:
    """(beginning + end) / 2 as a sum of coordinates."""
    return np.asarray((np.array(FLOWS["beginning"]) + np.array(FLOWS["end"])) / 2)


@dataclass(frozen=True, slots=True)
class FlowTail:
    """The law of one flow's noise, in units of the scale."""

    law: Rings
    flow: str

    def beyond(self, x: Vector) -> Vector:
        """P(|Z| > x), never too small: of a cell of radii and of shares the larger end counts."""
        radius, chance, last = _radii(self.law)
        tail = _tail(self.flow)
        flat = np.asarray(x, dtype=np.float64).ravel()
        found = np.empty(flat.size)
        for start in range(0, flat.size, 256):
            share = flat[start : start + 256, None] / radius
            found[start : start + 256] = tail[np.minimum(share * SHARES, SHARES).astype(np.int64)] @ chance
        return np.minimum(found + last, 1.0).reshape(np.shape(x))


@lru_cache(maxsize=256)
def quantile(law: Rings, flow: str, miss: float) -> float:
    """q with P(|flow| > q) <= miss, in units of the scale; infinite where none is found."""
    tail, low, high = FlowTail(law, flow), 0.0, 1.0
    while tail.beyond(np.array([high]))[0] > miss:
        low, high = high, 2 * high
        if high > law.radius_range[1]:
            return np.inf
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if tail.beyond(np.array([middle]))[0] > miss else (low, middle)
    return high


@lru_cache(maxsize=16)
def _radii(law: Rings) -> tuple[Vector, Vector, float]:
    """Upper ends of cells of the logarithm of the radius, their probabilities, and the probability beyond the last."""
    near, far = np.log(law.radius_range).tolist()
    edges = np.exp(np.linspace(near, far, RADII + 1))
    survival = law.radius_survival(edges)
    chance = -np.diff(survival)
    chance[0] += 1 - survival[0]
    return edges[1:], np.asarray(chance), float(survival[-1])


@lru_cache(maxsize=32)
def _tail(flow: str) -> Vector:
    """P(|flow| > share) at the lower end of every cell of shares; 0 from 1 on."""
    shares = np.arange(SHARES) / SHARES
    return np.append(np.minimum(beyond_share(flow, shares) + QUADRATURE, 1.0), 0.0)


@lru_cache(maxsize=16)
def _points(law: Rings) -> Matrix:
    """Points of the law, always the same: they stand for it in means, and are never added to anything."""
    return np.asarray(draw_flows(law, scale=np.full(POINTS, FINE), source=SeededSource(0)) / FINE)
