"""Whether a count mechanism keeps its promise, by exact computation over its neighbours.

A count mechanism publishes `centre(count) + scale(largest) * Z`, where `largest` is the largest contribution of
one establishment to the cell and Z follows a public law. Between two neighbouring cells the centre and the scale
move together, so the privacy loss is that of a location-scale pair

    loss(z) = log h(z) - log h((z - u) / w) + d log w,

u the shift and w the ratio of the scales. This module builds the neighbours: one establishment grows beside others of
every size. It finds the supremum of the loss over all outputs, integrates the exact delta if the claim has one, and
does both again for the published integer. Notation follows docs/proofs/polynomial.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Protocol, cast

import numpy as np

from discreet.arguments import of_kinds
from discreet.arrays import Integers, Vector
from discreet.errors import PrivacyError
from discreet.privacy.integers import IntegerMechanism, PairMechanism, integer_supremum
from discreet.privacy.kinds import KindsMechanism, kinds_supremum
from discreet.privacy.losses import Approximate, Loss, half
from discreet.privacy.maxima import golden, peaks
from discreet.privacy.neighbours import Neighbours, neighbouring_cells
from discreet.privacy.stepped import SteppedLaw, stepped_supremum
from discreet.privacy.units import Establishments

TOLERANCE = 1e-9  # claims are exact, and a supremum found on doubles carries rounding errors of about 1e-13
MOST_EPSILON = 700  # e^epsilon is a double
_FAR = 1e13


class VerifiableLaw(Protocol):
    """A noise law: symmetric and unimodal; with several coordinates, a function of their L1 norm."""

    @property
    def dimension(self) -> int: ...

    def log_density(self, z: Vector) -> Vector: ...

    def probability(self, j: Vector, scale: float) -> Vector: ...


class LineLaw(VerifiableLaw, Protocol):
    """A law of one coordinate, whose distribution function is known."""

    def cdf(self, z: Vector) -> Vector: ...


class CountMechanism(Protocol):
    """What verification needs to know about a mechanism, which is an immutable value."""

    def __hash__(self) -> int: ...

    @property
    def unit(self) -> Establishments: ...

    @property
    def loss(self) -> Loss: ...

    @property
    def law(self) -> VerifiableLaw: ...

    @property
    def step(self) -> int:
        """The most that one worker adds: 1 to a count."""

    @property
    def additive(self) -> bool:
        """Whether the output is the count plus noise; its rounded value then has an integer law."""

    def centre(self, count: Vector) -> Vector: ...

    def scale(self, largest: Vector) -> Vector: ...


@dataclass(frozen=True, slots=True)
class Witness:
    """The neighbours and the output at which the worst loss occurs (`output` may be infinite)."""

    before: int
    after: int
    other: int
    rest: int
    output: float

    def __str__(self) -> str:
        others = f" beside one of {self.other:,}" if self.other else " alone in its cell"
        rest = f" and {self.rest:,} further workers" if self.rest else ""
        return (
            f"an establishment growing from {self.before:,} to {self.after:,}{others}{rest}, output {self.output:.6g}"
        )


@dataclass(frozen=True, slots=True)
class LossVerdict:
    """What verification found.

    Attributes
    ----------
    claimed : the loss that the mechanism promises.
    worst_loss : supremum of the log density ratio; with a delta, the least epsilon that the exact delta allows.
    worst_delta : the largest exact delta at the claimed epsilon; zero for a pure claim.
    worst_rounded_loss : the supremum for the published integer; None where that is not count plus noise.
    witness : where the worst loss, or the worst delta, occurs.
    neighbours : how many neighbouring pairs were examined.
    """

    claimed: Loss
    worst_loss: float
    worst_delta: float
    worst_rounded_loss: float | None
    witness: Witness
    neighbours: int

    @property
    def holds(self) -> bool:
        """Whether the claim survived."""
        epsilon = float(self.claimed.amounts["epsilon"])
        if isinstance(self.claimed, Approximate):
            return self.worst_delta <= float(self.claimed.delta) * (1 + TOLERANCE)
        rounded = self.worst_rounded_loss if self.worst_rounded_loss is not None else 0.0
        return max(self.worst_loss, rounded) <= epsilon * (1 + TOLERANCE)

    def to_dict(self) -> dict[str, object]:
        """The verdict as plain values, ready for JSON."""
        return {
            "claimed": {name: float(amount) for name, amount in self.claimed.amounts.items()},
            "holds": self.holds,
            "worst_loss": self.worst_loss if math.isfinite(self.worst_loss) else None,
            "worst_delta": self.worst_delta,
            "worst_rounded_loss": self.worst_rounded_loss,
            "witness": str(self.witness),
            "neighbours": self.neighbours,
        }


@of_kinds
def verify(mechanism: CountMechanism, *, neighbours: Neighbours | None = None) -> LossVerdict:
    """Find the worst loss of `mechanism` over all neighbours.

    Parameters
    ----------
    mechanism, neighbours : from `calibrate`; the pairs of data sets to search, by default all that its unit allows.

    Returns
    -------
    The worst loss and where it occurs; with substitution, twice the loss of one worker more is compared as well.

    Examples
    --------
    >>> verify(calibrate("log-laplace", unit=Establishments("0.1"), epsilon=2))     # doctest: +SKIP
    """
    if not hasattr(mechanism, "unit"):
        raise PrivacyError(
            f"A {type(mechanism).__name__} was to be verified.",
            "A mechanism has a unit, a law and a loss.",
            "Use `calibrate(...)` or a class of that shape.",
            about="mechanism",
        )
    return _over_all(mechanism) if neighbours is None else _over(mechanism, neighbours)


@lru_cache(maxsize=256)
def _over_all(mechanism: CountMechanism) -> LossVerdict:
    """A reviewer of many tables examines each mechanism once."""
    return _over(mechanism, neighbouring_cells(mechanism.unit, step=mechanism.step))


def _over(mechanism: CountMechanism, pairs: Neighbours) -> LossVerdict:
    found = examine(mechanism, pairs, mechanism.loss)
    if not mechanism.unit.substitution:
        return found
    one = half(mechanism.loss)
    step = examine(mechanism, pairs.of_one_worker(mechanism.step), one)
    growth = float(one.growth(2)) if isinstance(one, Approximate) else 0.0
    worse = 2 * step.worst_loss > found.worst_loss or step.worst_delta * growth > found.worst_delta
    return replace(
        found,
        worst_loss=max(found.worst_loss, 2 * step.worst_loss),
        worst_delta=max(found.worst_delta, step.worst_delta * growth),
        worst_rounded_loss=max(found.worst_rounded_loss, 2 * (step.worst_rounded_loss or 0.0))
        if found.worst_rounded_loss is not None
        else None,
        witness=step.witness if worse else found.witness,
    )


def examine(mechanism: CountMechanism, pairs: Neighbours, loss: Loss) -> LossVerdict:
    """The loss of `mechanism` between `pairs`, against a claim of `loss`."""
    if isinstance(mechanism, IntegerMechanism):
        if isinstance(mechanism, PairMechanism):
            pairs = pairs.of_three(mechanism.shares)
        worst, at, output = integer_supremum(mechanism, pairs)
        return _verdict(loss, worst, 0.0, worst, (pairs, at, output))
    if isinstance(mechanism, KindsMechanism):
        return _kinds_verdict(mechanism, pairs, loss)
    shift, ratio = _moves(mechanism, pairs)
    rows = _dominating(shift, ratio)
    u, w = shift[rows], ratio[rows]
    losses, outputs = supremum(mechanism.law, shift=u, ratio=w)
    worst, worst_loss, worst_delta, rounded = int(np.argmax(losses)), float(losses.max()), 0.0, None
    if isinstance(loss, Approximate):
        law = cast(LineLaw, mechanism.law)
        deltas = exact_delta(law, shift=u, ratio=w, epsilon=float(loss.epsilon))
        worst, worst_delta = int(np.argmax(deltas)), float(deltas.max())
        top = np.argsort(deltas)[-64:]
        worst_loss = _least_epsilon(law, shift=u[top], ratio=w[top], delta=float(loss.delta))
    elif mechanism.additive and math.isfinite(worst_loss):
        rounded = _rounded_supremum(mechanism, pairs, rows[np.argsort(losses)[-16:]])
    return _verdict(loss, worst_loss, worst_delta, rounded, (pairs, int(rows[worst]), float(outputs[worst])))


def _kinds_verdict(mechanism: KindsMechanism, pairs: Neighbours, loss: Loss) -> LossVerdict:
    found = kinds_supremum(mechanism, pairs)
    before, gain, others = (int(np.sum(part)) for part in (found.pair.before, found.pair.gain, found.pair.others))
    return LossVerdict(
        claimed=loss,
        worst_loss=max(found.bound, found.loss),
        worst_delta=0.0,
        worst_rounded_loss=None,
        witness=Witness(before, before + gain, others, 0, found.output),
        neighbours=len(pairs),
    )


def _verdict(
    loss: Loss, worst_loss: float, worst_delta: float, rounded: float | None, where: tuple[Neighbours, int, float]
) -> LossVerdict:
    pairs, at, output = where
    before, after, other, rest = (int(c[at]) for c in (pairs.before, pairs.after, pairs.other, pairs.rest))
    return LossVerdict(
        claimed=loss,
        worst_loss=worst_loss,
        worst_delta=worst_delta,
        worst_rounded_loss=rounded,
        witness=Witness(before, after, other, rest, output),
        neighbours=len(pairs),
    )


def supremum(law: VerifiableLaw, *, shift: Vector, ratio: Vector) -> tuple[Vector, Vector]:
    """The largest |loss| over all outputs for each (shift, ratio), and the output z where it occurs.

    The loss has kinks only at z = 0 and z = shift, is smooth elsewhere, and tends to its limit in the tails. So a grid
    that is dense around both kinks brackets every maximum, and golden section finds it. A law that is constant between
    jumps needs one point between any two of them; a radial one needs the ends of its rings (`stepped`).
    """
    if getattr(law, "stepped", False):
        best, where = stepped_supremum(cast(SteppedLaw, law), shift=shift, ratio=ratio)
    else:
        best, where = _smooth_supremum(law, shift, ratio)
    # Far out only the ratio of the scales matters; leaving the shift out keeps the digits that it would cost.
    tail = np.abs(_loss(law, np.full_like(shift, _FAR), np.zeros_like(shift), ratio))
    where = np.where(tail > best, np.inf, where)
    best = np.maximum(best, tail)
    return np.where(best > _FAR * 1e-9, np.inf, best), where


def _smooth_supremum(law: VerifiableLaw, shift: Vector, ratio: Vector) -> tuple[Vector, Vector]:
    steps = np.concatenate([[0.0], np.geomspace(1e-5, 1e6, 160)])
    best = np.full(len(shift), -np.inf)
    where = np.zeros(len(shift))
    for rows in np.array_split(np.arange(len(shift)), len(shift) * law.dimension // 4000 + 1):
        grid, u, w = _grid(steps, shift[rows], ratio[rows])
        losses = _loss(law, grid, u, w)
        for sign in (1.0, -1.0):
            loss, value = partial(_signed_loss, sign, law, u, w), sign * losses
            top = np.argmax(value, axis=1)
            low = np.take_along_axis(grid, np.maximum(top - 1, 0)[:, None], axis=1)
            high = np.take_along_axis(grid, np.minimum(top + 1, grid.shape[1] - 1)[:, None], axis=1)
            peak, z = golden(loss, low, high)
            start = np.take_along_axis(value, top[:, None], axis=1)
            z = np.where(peak > start, z, np.take_along_axis(grid, top[:, None], axis=1))[:, 0]
            peak = np.maximum(peak, start)[:, 0]
            better = peak > best[rows]
            best[rows] = np.where(better, peak, best[rows])
            where[rows] = np.where(better, z, where[rows])
    jumps = getattr(law, "jumps", np.empty(0))
    if jumps.size:
        peak, z = peaks(partial(_loss, law), jumps, shift=shift, ratio=ratio)
        best, where = np.maximum(best, peak), np.where(peak > best, z, where)
    return best, where


def exact_delta(law: LineLaw, *, shift: Vector, ratio: Vector, epsilon: float) -> Vector:
    """The smallest delta for which (epsilon, delta) holds between each pair, in its worse direction.

    delta = integral of (f - e^eps f')+: the loss crosses epsilon at a few outputs, found by bisection; between
    them the integral is a difference of distribution functions.
    """
    forward = _one_sided_delta(law, shift, ratio, epsilon)
    backward = _one_sided_delta(law, -shift / ratio, 1 / ratio, epsilon)
    return np.maximum(forward, backward)


def _least_epsilon(law: LineLaw, *, shift: Vector, ratio: Vector, delta: float) -> float:
    """The smallest epsilon at which the exact delta of every pair is at most `delta`, from above; or infinity."""
    low, high = 0.0, 1.0
    while exact_delta(law, shift=shift, ratio=ratio, epsilon=high).max() > delta:
        low, high = high, 2 * high
        if high > MOST_EPSILON:
            return math.inf
    for _ in range(30):
        middle = (low + high) / 2
        over = exact_delta(law, shift=shift, ratio=ratio, epsilon=middle).max() > delta
        low, high = (middle, high) if over else (low, middle)
    return high


def _one_sided_delta(law: LineLaw, shift: Vector, ratio: Vector, epsilon: float) -> Vector:
    steps = np.concatenate([[0.0], np.geomspace(1e-4, 1e5, 120), [1e12]])
    grid, u, w = _grid(steps, shift, ratio)
    over = _loss(law, grid, u, w) > epsilon
    row, column = np.nonzero(over[:, :-1] != over[:, 1:])
    low, high, from_over = grid[row, column], grid[row, column + 1], over[row, column]
    for _ in range(80):
        middle = (low + high) / 2
        same = (_loss(law, middle, shift[row], ratio[row]) > epsilon) == from_over
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    left, right = grid[:, :-1].copy(), grid[:, 1:].copy()
    left[row[~from_over], column[~from_over]] = low[~from_over]
    right[row[from_over], column[from_over]] = low[from_over]
    row, column = np.nonzero(over[:, :-1] | over[:, 1:])
    a, b, u, w = left[row, column], right[row, column], shift[row], ratio[row]
    mass = _mass(law, a, b) - math.exp(epsilon) * _mass(law, (a - u) / w, (b - u) / w)
    delta: Vector = np.bincount(row, weights=np.maximum(mass, 0.0), minlength=len(shift)).astype(np.float64)
    return delta


def _grid(steps: Vector, shift: Vector, ratio: Vector) -> tuple[Vector, Vector, Vector]:
    """Outputs dense around both kinks, a row for each pair, with shift and ratio as columns."""
    around = np.concatenate([-steps[::-1], steps[1:]])
    u, w = shift[:, None], ratio[:, None]
    return (
        np.sort(np.concatenate([np.broadcast_to(around, (len(u), len(around))), u + w * around], axis=1), axis=1),
        u,
        w,
    )


def _mass(law: LineLaw, left: Vector, right: Vector) -> Vector:
    """P(left < Z <= right), by symmetry always from the tail side, where differences keep their digits."""
    mirrored = left > 0
    a, b = np.where(mirrored, -right, left), np.where(mirrored, -left, right)
    return law.cdf(b) - law.cdf(a)


def _loss(law: VerifiableLaw, z: Vector, u: Vector, w: Vector) -> Vector:
    loss: Vector = _on_axis(law, z) - _on_axis(law, (z - u) / w) + law.dimension * np.log(w)
    return loss


def _signed_loss(sign: float, law: VerifiableLaw, u: Vector, w: Vector, z: Vector) -> Vector:
    return sign * _loss(law, z, u, w)


def _on_axis(law: VerifiableLaw, z: Vector) -> Vector:
    """The log density at (z, 0, ..., 0): by the triangle inequality the worst output lies on the shift's own axis."""
    return law.log_density(z if law.dimension == 1 else _padded(z, law.dimension))


def _padded(z: Vector, dimension: int) -> Vector:
    vectors = np.zeros((*np.shape(z), dimension))
    vectors[..., 0] = z
    return vectors


def _moves(mechanism: CountMechanism, pairs: Neighbours) -> tuple[Vector, Vector]:
    before, after, other, rest = (
        np.asarray(column, dtype=np.float64) for column in (pairs.before, pairs.after, pairs.other, pairs.rest)
    )
    scale = mechanism.scale(np.maximum(before, other))
    centre = mechanism.centre(before + other + rest)
    shift = (mechanism.centre(after + other + rest) - centre) / scale
    return shift, mechanism.scale(np.maximum(after, other)) / scale


def _dominating(shift: Vector, ratio: Vector) -> Integers:
    """The rows that can be worst: for each ratio of scales, the largest shift.

    The overlap of two symmetric unimodal densities shrinks as their centres part (their level sets are centred
    intervals), so both the loss and delta grow with the shift.
    """
    order = np.lexsort((-np.abs(shift), np.round(ratio, 12)))
    _, first = np.unique(np.round(ratio, 12)[order], return_index=True)
    return order[first].astype(np.int64)


def _rounded_supremum(mechanism: CountMechanism, pairs: Neighbours, rows: Integers) -> float:
    """The worst loss of the published integer, for the pairs in `rows`.

    Outputs are every integer near both counts and a geometric ladder into the tails, where the ratio of probabilities
    tends to that of the densities. With several coordinates they lie along the axis of the shift.
    """
    d = mechanism.law.dimension
    close = 3000 if d == 1 else 60
    far = np.unique(np.geomspace(close + 1, 10**7, 400 // d).astype(np.int64))
    outputs = np.concatenate([-far[::-1], np.arange(-close, close + 1), far]).astype(np.float64)
    worst = 0.0
    for row in rows:
        before, after, other = float(pairs.before[row]), float(pairs.after[row]), float(pairs.other[row])
        scales = mechanism.scale(np.array([max(before, other), max(after, other)]))
        shifted = outputs - (after - before)
        points = (outputs, shifted) if d == 1 else (_padded(outputs, d), _padded(shifted, d))
        p, q = (mechanism.law.probability(j, s) for j, s in zip(points, scales, strict=True))
        seen = (p > 1e-280) & (q > 1e-280)
        worst = max(worst, float(np.abs(np.log(p[seen]) - np.log(q[seen])).max()))
    return worst
