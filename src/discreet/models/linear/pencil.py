"""A Gram matrix that is a weighted sum of others, and the fit over theta and what the weights depend on, together.

Residuals whose covariance has few parameters weigh the rows so (`residuals`). Only arrays enter and only arrays leave.
The criterion's slope in a weight is that of log det Omega and of [X y]' V^-1 [X y], because the residuals' precision is
linear in the weights. With R = [X y] - Z b^, the latter is R' D R for the part's own matrix D.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.linear import sparse
from discreet.models.linear.descent import FAR, descend
from discreet.models.linear.evaluations import told
from discreet.models.linear.memory import refuse_memory
from discreet.models.linear.solution import (
    ORDER,
    PROMISED,
    Solution,
    exact_fit_refused,
    in_units,
    search,
    solution_at,
    standardised,
)
from discreet.models.linear.sparse import Coupling, Gram
from discreet.words.progress import Progress, part, silent

ROUNDS, GAIN = 4, 1e-9  # searches over theta alone at most; a gain of the criterion that asks for another
FARTHEST = 30.0  # a free parameter beyond it is a weight that no double keeps


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of the parts at some value of the free parameters.

    Attributes
    ----------
    of_parts, slopes : shapes (parts,) and (free, parts).
    logdet, logdet_slopes : log determinant of the residuals' covariance over sigma2, and its slopes (free,).
    """

    of_parts: Vector
    slopes: Matrix
    logdet: float
    logdet_slopes: Vector


class Weighing(Protocol):
    """How weights depend on free parameters."""

    @property
    def start(self) -> Vector: ...

    @property
    def curvature(self) -> Vector: ...

    def weights(self, free: Vector) -> Weights: ...


def combined(parts: Sequence[Gram], weights: Vector) -> Gram:
    """The weighted sum of Gram matrices of one pattern."""
    first = parts[0]

    def total(matrices: Sequence[Matrix]) -> Matrix:
        return np.asarray(sum(weight * matrix for weight, matrix in zip(weights.tolist(), matrices, strict=True)))

    terms = range(len(first.ZZ))
    found = Gram(
        tuple(total([part.ZZ[i] for part in parts]) for i in terms),
        {
            pair: replace(met, blocks=total([part.crossed[pair].blocks for part in parts]))
            for pair, met in first.crossed.items()
        },
        tuple(total([part.Zxy[i] for part in parts]) for i in terms),
        total([part.joint for part in parts]),
        first.rows,
    )
    return first.lend(found)


def aligned(part: Gram, whole: Gram) -> Gram:
    """A part with the pattern of the whole: pairs of levels that do not meet in it have blocks of zeros."""
    crossed = {}
    for pair, met in whole.crossed.items():
        own, width = part.crossed[pair], int(max(met.right.max(initial=0), 1)) + 1
        blocks = np.zeros((len(met.left), *own.blocks.shape[1:]))
        blocks[np.searchsorted(met.left * width + met.right, own.left * width + own.right)] = own.blocks
        crossed[pair] = Coupling(met.left, met.right, blocks)
    return whole.lend(Gram(part.ZZ, crossed, part.Zxy, part.joint, whole.rows))


def solve_parts(
    parts: Sequence[Gram], law: Weighing, *, reml: bool, start: Vector | None = None, progress: Progress = silent
) -> tuple[Solution, Vector]:
    """The solution at the best theta and free parameters, and these; its criterion has the residuals' log det.

    The search of the free parameters begins at `start`, by default the law's own.
    """
    free = law.start if start is None else start
    _, scales = standardised(combined(parts, law.weights(free).of_parts))
    own = [in_units(part, scales) for part in parts]
    own = [own[0], *(own[0].lend(part) for part in own[1:])]
    progress(ORDER, 0.0)
    refuse_memory(own[0])
    count = 0

    def at(free: Vector) -> Gram:
        return combined(own, law.weights(free).of_parts)

    def sloped(together: Vector) -> tuple[float, Vector]:
        nonlocal count
        count += 1
        theta, free = together[:size], together[size:]
        if np.abs(free).max(initial=0.0) > FARTHEST:
            return FAR, np.zeros(len(together))
        weights = law.weights(free)
        try:
            found = sparse.eliminate(combined(own, weights.of_parts), theta)
            value = sparse.criterion(found, reml=reml)[0] + weights.logdet
            in_theta, in_parts = sparse.slopes(found, own, reml=reml)
        except np.linalg.LinAlgError:
            return FAR, np.zeros(len(together))
        return value, np.append(in_theta, weights.slopes @ in_parts + weights.logdet_slopes)

    with exact_fit_refused():
        theta, _ = search(at(free), reml=reml, progress=part(progress, 0.05, 0.3))
        size, best = len(theta), np.inf
        sizes = [np.full(q * (q + 1) // 2, 2.0 * levels) for levels, q, _ in map(np.shape, own[0].ZZ)]
        curvature = np.concatenate([*sizes, law.curvature])
        each = 0.0 if progress is silent else own[0].elimination.seconds
        watched = told(sloped, part(progress, 0.3, 0.95), curvature=curvature, promised=PROMISED, each=each)
        for _ in range(ROUNDS):
            together, value = descend(watched, np.append(theta, free), curvature=curvature, promised=PROMISED)
            theta, free = together[:size], together[size:]
            again, _ = search(at(free), reml=reml)
            other = sparse.criterion(sparse.eliminate(at(free), again), reml=reml)[0] + law.weights(free).logdet
            if other <= value + GAIN:
                theta = again
            if min(value, other) > best - GAIN or other > value - GAIN:
                break
            best = other
        found = solution_at(at(free), scales, theta, reml=reml, evaluations=count)
    return replace(found, criterion=float(found.criterion + law.weights(free).logdet)), free
