"""Whether a count mechanism keeps its promise, by exact computation over its neighbours.

A count mechanism publishes `centre(count) + scale(largest) * Z`, where `largest` is the largest contribution of
one establishment to the cell and Z follows a public law. Between two neighbouring cells the centre and the scale
move together, so the privacy loss is that of a location-scale pair

    loss(z) = log h(z) - log h((z - u) / w) + d log w,

u the shift and w the ratio of the scales. This module searches the neighbours: one establishment grows beside others of
every size. It finds the supremum of the loss over all outputs, integrates the exact delta if the claim has one, and
does both again for the published integer. A search that finds nothing is no proof: that is `closed_forms`, complete for
noise of ours. Integers are also drawn and compared with the probabilities that are stated. Notation follows
docs/proofs/polynomial.md.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import replace
from functools import lru_cache
from typing import Protocol, cast

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.privacy.closed_forms import complete, ours
from discreet.privacy.drawn import compared
from discreet.privacy.integers import IntegerMechanism, PairMechanism, between, integer_supremum, logarithms
from discreet.privacy.kinds import KindsMechanism, kinds_supremum
from discreet.privacy.loss_verdict import Draws, Evidence, LossVerdict, Witness
from discreet.privacy.losses import Approximate, Loss, half
from discreet.privacy.neighbours import Neighbours, neighbouring_cells
from discreet.privacy.outputs import LineLaw, VerifiableLaw, exact_delta, least_epsilon, padded, supremum
from discreet.privacy.units import Establishments
from discreet.words.arguments import of_kinds
from discreet.words.cases import case_of
from discreet.words.errors import PrivacyError


class CountMechanism(Protocol):
    """What verification needs to know about a mechanism."""

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


@of_kinds
def verify(mechanism: CountMechanism, *, neighbours: Neighbours | None = None) -> LossVerdict:
    """Find the worst loss of `mechanism` over all neighbours.

    Parameters
    ----------
    mechanism, neighbours : from `calibrate`; the pairs of data sets to search, by default all that its unit allows.

    Returns
    -------
    The worst loss and where it occurs, and on what ground: `holds` if the claim is proved for noise of this kind.
    With substitution, twice the loss of one worker more is compared as well.

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
    if neighbours is None and ours(mechanism):
        found = _over_all(cast(Hashable, mechanism))
    else:
        found = _over(mechanism, neighbours or neighbouring_cells(mechanism.unit, step=mechanism.step))
    drawn = compared(mechanism)
    return replace(found, drawn=drawn, evidence=_evidence(mechanism, drawn))


def _evidence(mechanism: CountMechanism, drawn: Draws) -> Evidence:
    if case_of(drawn, {"not compared": True, "as stated": False, "not as stated": False}):
        return "unknown"
    return "proved" if complete(mechanism) else "searched"


@lru_cache(maxsize=256)
def _over_all(known: Hashable) -> LossVerdict:
    """A reviewer of many tables searches once for each mechanism of ours, which is its constants and nothing else."""
    mechanism = cast(CountMechanism, known)
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
        worst_loss = least_epsilon(law, shift=u[top], ratio=w[top], delta=float(loss.delta))
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
        points = (outputs, shifted) if d == 1 else (padded(outputs, d), padded(shifted, d))
        p, q = (mechanism.law.probability(j, s) for j, s in zip(points, scales, strict=True))
        worst = max(worst, float(np.nan_to_num(between(logarithms(p), logarithms(q)), nan=np.inf).max()))
    return worst
