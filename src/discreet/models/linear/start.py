"""Where the search over theta begins: every effect alone, as if the others were part of the residual.

Only arrays enter and only arrays leave. One effect alone is a curve in the ratio of its variance to the rest, which a
few steps of Newton's method follow. Shares of the variance that are found alone add up to too much where terms see the
same differences; a finer grouping gives up what the coarser one around it explains.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Vector
from discreet.models.linear.sparse import Gram, by_columns

STEPS, CLOSE, LONGEST = 8, 0.05, 2.5  # of Newton's method, all of the logarithm of a ratio
SMALLEST, LARGEST = -9.0, 12.0
RESIDUAL = 0.1  # of the variance: what the residual is left with at least
GIVEN_UP = 0.15  # of its share, what a finer grouping keeps at least
LITTLE = 0.02  # theta of an effect that seems to have no variance; zero is a saddle


def starts(gram: Gram) -> list[Vector]:
    """Thetas to choose from by the criterion: more than one where two effects of the same levels compete, or where an
    effect seems to have no variance, so that the search would begin in the valley at zero."""
    p = gram.p
    contrast = np.append(-np.linalg.solve(gram.joint[:p, :p], gram.joint[:p, p]), 1.0)
    rss = float(contrast @ gram.joint @ contrast)
    if not rss > 0:
        return [gram.start]
    shares = []
    for zz, zxy in zip(gram.ZZ, gram.Zxy, strict=True):
        squares, sums = np.einsum("gii->ig", zz), (zxy @ contrast).reshape(zz.shape[:2]).T
        shares.append(np.array([_share(n, s**2, rss, gram.rows) for n, s in zip(squares, sums, strict=True)]))
    rivals = []
    for (i, j), met in gram.crossed.items():
        left, right = len(gram.ZZ[i]), len(gram.ZZ[j])
        if left != right and len(met.left) == max(left, right):
            fine, coarse = (i, j) if left > right else (j, i)
            shares[fine][0] = max(shares[fine][0] - shares[coarse][0], GIVEN_UP * shares[fine][0])
        elif left == right == len(met.left) and len(shares[i]) == len(shares[j]) == 1:
            rivals += [{i: 1.0, j: LITTLE}, {i: LITTLE, j: 1.0}, {i: 0.5, j: 0.5}]
    found = [_theta([share * part.get(i, 1.0) for i, share in enumerate(shares)]) for part in rivals or [{}]]
    unseen = (found[0][gram.start > 0] <= LITTLE).any()  # alone: beside the others it may have much
    return [*found, gram.start] if unseen else found


def _share(squares: Vector, sums: Vector, rss: float, rows: float) -> float:
    """The share of the variance that is one effect's, from the squares of its column and its squared sums by level."""
    log, low, high = 0.0, SMALLEST, LARGEST
    for _ in range(STEPS):
        ratio = float(np.exp(log))
        v = 1 / (1 + ratio * squares)
        nv, sv = squares * v, sums * v
        left, first, second = rss - ratio * float(sv.sum()), -float(sv @ v), 2 * float((sv * v) @ nv)
        if not left > 0:
            break
        slope = ratio * (float(nv.sum()) + rows * first / left)
        bend = ratio**2 * (rows * (second / left - (first / left) ** 2) - float(nv @ nv)) + slope
        low, high = (low, log) if slope > 0 else (log, high)
        to = log - slope / bend if bend > 0 else low
        to = float(np.clip(to if low < to < high else (low + high) / 2, log - LONGEST, log + LONGEST))
        close, log = abs(to - log) < CLOSE, to
        if close:
            break
    return float(1 / (1 + np.exp(-log)))


def _theta(shares: list[Vector]) -> Vector:
    left = max(1 - sum(float(share.sum()) for share in shares), RESIDUAL)
    roots = [np.maximum(np.sqrt(share / left), LITTLE) for share in shares]
    return np.concatenate([np.diag(root)[by_columns(len(root))] for root in roots])
