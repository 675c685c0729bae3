"""The precision of a prediction: the variance of the fitted value, for old levels and new ones.

The hat matrix, prediction intervals and robust errors all need the same two things of a row: what its random columns
know, and its fixed columns with that swept out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.models.formula.design import Design
from discreet.models.formula.rows import ModelRows
from discreet.models.linear.matrix import dense
from discreet.models.linear.moments import Moments

if TYPE_CHECKING:
    from discreet.models.linear.fit import MixedFit

CHUNK = 512  # rows whose system is solved together
MANY = 32_768  # rows together where there is no system to solve


def parts(fit: MixedFit, rows: ModelRows) -> Iterator[tuple[Integers, Matrix, Matrix, Vector]]:
    """Some rows at a time: which, their X, X with the random columns swept out, and what these know of the row.

    A level that the fit never saw (-1) knows nothing, and its own variance is added.
    """
    design, solution = fit.design, fit.solution
    chunk = MANY if isinstance(fit.statistics, Moments) else CHUNK
    for start in range(0, rows.count, chunk):
        at = np.arange(start, min(start + chunk, rows.count))
        part = rows.take(at)
        X = dense(part, design.layout.fixed, design.levels)[:, fit.kept]
        groups = [random.grouping.codes(part.codes) for random in design.random]
        if isinstance(fit.statistics, Moments):
            ratio, moments, group = float(solution.theta[0]) ** 2, fit.statistics, groups[0]
            seen = group >= 0
            shrink = np.where(seen, ratio / (1 + ratio * moments.n[group]), ratio)
            swept = X - np.where(seen, shrink, 0.0)[:, None] * moments.Sx[group]
            yield at, X, swept, shrink
            continue
        assert solution.eliminated is not None
        p, scaled, new = X.shape[1], [], np.zeros(part.count)
        for random, group, T in zip(design.random, groups, solution.triangles, strict=True):
            columns, unseen = scattered(dense(part, random.pieces, design.levels), group, T, random.effects)
            new += unseen
            scaled.append(columns)
        known = solution.eliminated.quadratic(scaled) + new
        swept = X - sum(z.T @ f[:, :p] for z, f in zip(scaled, solution.eliminated.solved_fixed, strict=True))
        yield at, X, swept, known


def scattered(Z: Matrix, group: Integers, T: Matrix, effects: int) -> tuple[Matrix, Vector]:
    """What rows weigh every spherical effect of a term by, shape (effects, rows), and the variance of new levels."""
    q, seen = len(T), group >= 0
    columns, own = np.zeros((effects, len(group))), T.T @ Z.T
    place = group[seen] * q + np.arange(q)[:, None], np.flatnonzero(seen)
    columns[place] = own[:, seen]
    return columns, np.where(seen, 0.0, (own**2).sum(axis=0))


def random_variances(design: Design, triangles: Sequence[Matrix], rows: ModelRows) -> Vector:
    """The variance of the random part of a row whose levels are drawn anew, in units of the triangles'."""
    terms = zip(design.random, triangles, strict=True)
    squares = [((dense(rows, random.pieces, design.levels) @ T) ** 2).sum(axis=1) for random, T in terms]
    return np.asarray(np.sum(squares, axis=0))


def leverage(fit: MixedFit) -> Vector:
    """Diagonal of the hat matrix I - P that takes y to fitted values with random effects."""
    found = _relative(fit, fit.data)
    return found if fit.weights is None else found * fit.weights


def variances(fit: MixedFit, rows: ModelRows) -> Vector:
    """Variance of the fitted value of each row, random effects included, about its expectation given them."""
    return fit.sigma2 * _relative(fit, rows)


def marginal_variances(fit: MixedFit, rows: ModelRows) -> Vector:
    """Variance of the fixed part of each row."""
    found, covariance = np.empty(rows.count), fit.sigma2 * fit.solution.unscaled
    for at, X, _, _ in parts(fit, rows):
        found[at] = np.einsum("ri,ij,rj->r", X, covariance, X)
    return found


def _relative(fit: MixedFit, rows: ModelRows) -> Vector:
    found = np.empty(rows.count)
    for at, _, swept, known in parts(fit, rows):
        found[at] = known + np.einsum("ri,ij,rj->r", swept, fit.solution.unscaled, swept)
    return found
