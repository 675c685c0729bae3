"""A table of `ladder` made better by a linear programme: no size errs more than before, and most err less.

The search of `tables.optimal.ladder` is quick and leaves something: at alpha 0.1 and epsilon 1 a fifth at 22 workers. Unknowns
are the probabilities inside the window over those before; the outer law, every row's mass and every mean stay as they
are. Nothing here is believed: what is found is checked like any other table (docs/proofs/ladder.md).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from discreet.arrays import Integers, Matrix, Vector
from discreet.tables.mechanisms.ladder import LadderNoise
from discreet.tables.optimal.ladder import SLACK, growth, moves

KEPT = 0.85
"""The share of the search's own slack that the programme keeps; the table before keeps a little more than this."""

SECONDS = 600.0


class Programme(NamedTuple):
    """Rows of `within` times the unknowns are at most 0, and the unknowns are between two bounds."""

    within: sparse.csr_matrix
    lower: Vector
    upper: Vector


def polished(mechanism: LadderNoise) -> Matrix | None:
    """Levels as `ladder.anchor` has them, or None if the programme finds nothing."""
    window = mechanism.window
    pad, rows = growth(window.sizes - 1, window.alpha), window.sizes - 1
    before = np.exp(-window._logs(mechanism, pad))
    k = np.arange(before.shape[1]) - before.shape[1] // 2
    free = np.zeros(before.shape, dtype=np.bool_)
    free[:rows, 2 * pad : len(k) - 2 * pad] = window.share > 0
    held = programme(mechanism, before, free)
    row, column = np.nonzero(free)
    mass, mean, error = (
        sparse.csr_matrix((before[free] * each[column], (row, np.arange(len(row)))), shape=(rows, len(row)))
        for each in (np.ones(len(k)), k, np.abs(k))
    )
    whole = before[:rows] @ np.abs(k)
    fixed = sparse.vstack([mass, mean]).tocsr()
    one = np.ones(len(row))
    # Sizes count by how common they are, about one over the size.
    found = linprog(
        (1 / (whole * np.arange(1, rows + 1))) @ error,
        A_ub=sparse.vstack([held.within, error]).tocsr(),
        b_ub=np.concatenate([np.zeros(held.within.shape[0]), error @ one]),
        A_eq=fixed,
        b_eq=fixed @ one,
        bounds=np.stack([np.minimum(held.lower, 1), np.maximum(held.upper, 1)], axis=1),
        method="highs-ipm",
        options={"time_limit": SECONDS},
    )
    if found.status != 0:
        return None
    share = np.zeros(before.shape)
    share[free] = before[free] * found.x
    share = share[:rows, 2 * pad : len(k) - 2 * pad]
    share /= share.sum(axis=1, keepdims=True)
    return np.asarray(np.where(window.share > 0, -np.log(np.where(share > 0, share, 1)), 0))


def programme(mechanism: LadderNoise, before: Matrix, free: np.ndarray) -> Programme:
    """Every move that begins in the table, both ways: p <= e^epsilon p', or a bound where one of them is fixed."""
    window, (rows, columns) = mechanism.window, before.shape
    most = math.exp(window.epsilon * (1 - SLACK * KEPT))
    place = np.full(before.shape, -1)
    place[free] = np.arange(free.sum())
    lower, upper = np.zeros(free.sum()), np.full(free.sum(), np.inf)
    here: list[Integers] = []
    there: list[Integers] = []
    root: list[Vector] = []
    for move in moves(window.alpha, window.sizes):
        x = np.arange(move.least, min(window.sizes, rows - move.rise + 1))[:, None] - 1
        column = np.arange(move.shift, columns)[None, :]
        ends = (x, column), (x + move.rise, column - move.shift)
        for one, other in (ends, ends[::-1]):
            i, j, limit = place[one], place[other], most * before[other] / before[one]
            both, first, second = (i >= 0) & (j >= 0), (i >= 0) & (j < 0), (i < 0) & (j >= 0)
            here, there, root = [*here, i[both]], [*there, j[both]], [*root, np.sqrt(limit[both])]
            np.minimum.at(upper, i[first], limit[first])
            np.maximum.at(lower, j[second], 1 / limit[second])
    i, j, scaled = np.concatenate(here), np.concatenate(there), np.concatenate(root)
    each = np.arange(len(i))
    within = sparse.csr_matrix(
        (np.concatenate([1 / scaled, -scaled]), (np.concatenate([each, each]), np.concatenate([i, j]))),
        shape=(len(i), len(lower)),
    )
    return Programme(within, lower, upper)
