"""The criterion of few random effects, with slopes and curvature, by plain matrices.

Only arrays enter and only arrays leave. The numbers are those of `sparse` and `information`, in the same notation. For
some dozens of effects the time goes into starting operations, not into arithmetic, so here are as few as possible: Z'Z
and Lambda are whole matrices, and every level's block is taken out of them by one index.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.models.linear.information import information_of, moved, with_rising
from discreet.models.linear.sparse import Gram, criterion_of, lower

MOST = 100  # effects: of more, sparse matrices are quicker


@dataclass
class FewEffects:
    """The criterion as a surface over theta; it keeps what it found at the last point."""

    gram: Gram
    reml: bool
    theta: Vector | None = None
    _T: list[Matrix] = field(default_factory=list)
    _found: dict[str, Matrix] = field(default_factory=dict)

    @cached_property
    def _blocks(self) -> tuple[Integers, Integers, Integers]:
        """Rows and columns of all blocks of Lambda, and the place of each entry among those of all T."""
        rows, columns, which, start = [], [], [], 0
        for bound, zz in zip(self.gram.bounds, self.gram.ZZ, strict=True):
            levels, q, _ = zz.shape
            first = bound + q * np.arange(levels)[:, None, None]
            every = np.arange(q)
            rows.append(np.broadcast_to(first + every[:, None], zz.shape).ravel())
            columns.append(np.broadcast_to(first + every, zz.shape).ravel())
            which.append(np.tile(start + np.arange(q * q), levels))
            start += q * q
        return np.concatenate(rows), np.concatenate(columns), np.concatenate(which)

    @cached_property
    def _under(self) -> Mask:
        return np.tri(self.gram.effects, dtype=bool)

    @cached_property
    def _plain(self) -> bool:
        """Whether every level has one effect, so that Lambda is a diagonal."""
        return all(zz.shape[1] == 1 for zz in self.gram.ZZ)

    def value(self, theta: Vector) -> float:
        """The criterion; `LinAlgError` where it has no value."""
        from scipy.linalg.lapack import dpotrf, dtrtrs

        gram, m = self.gram, self.gram.effects
        rows, columns, which = self._blocks
        self.theta, self._T = theta, gram.triangles(theta)
        if self._plain:
            scales = theta[which]
            ZZL = gram.whole * scales
            Omega, right = scales[:, None] * ZZL, scales[:, None] * gram.stacked
        else:
            Lambda = np.zeros((m, m))
            Lambda[rows, columns] = np.concatenate([T.ravel() for T in self._T])[which]
            ZZL = gram.whole @ Lambda
            Omega, right = Lambda.T @ ZZL, Lambda.T @ gram.stacked
            self._found["Lambda"] = Lambda
        Omega.ravel()[:: m + 1] += 1.0
        factor, failed = dpotrf(Omega.T, lower=1, overwrite_a=1, clean=0)
        if failed:
            raise np.linalg.LinAlgError("a pivot is not positive")
        reduced = dtrtrs(factor, right, lower=1)[0]
        A = gram.joint - reduced.T @ reduced
        logdet = 2 * float(np.log(factor.diagonal()).sum())
        self._found |= {"ZZL": ZZL, "factor": factor, "reduced": reduced, "A": A}
        return criterion_of(A, logdet, gram.rows, reml=self.reml)[0]

    def bent(self) -> tuple[Vector, Matrix]:
        """Slopes at the last point, and about the second derivatives; the point must be asked again afterwards."""
        from scipy.linalg.lapack import dpotri, dtrtrs

        gram, p, found = self.gram, self.gram.p, self._found
        A, factor, (rows, columns, which) = found["A"], found["factor"], self._blocks
        assert self.theta is not None
        freedom = gram.rows - p if self.reml else gram.rows
        unscaled = np.asarray(np.linalg.inv(A[:p, :p]), dtype=np.float64)
        contrast = np.append(unscaled @ A[:p, p], -1.0)
        left = float(contrast @ A @ contrast)
        if not left > 0:
            raise np.linalg.LinAlgError("an exact fit")
        scale = freedom / left
        weight = scale * contrast[:, None] * contrast
        if self.reml:
            weight[:p, :p] += unscaled
        Y = dtrtrs(factor, found["reduced"], lower=1, trans=1)[0]
        H = gram.stacked - found["ZZL"] @ Y
        C = moved(gram, self._T, H @ contrast, Y @ contrast)
        ZZC = gram.whole @ C
        scaled = self.theta[which][:, None] * ZZC if self._plain else found["Lambda"].T @ ZZC
        swept = dtrtrs(factor, scaled, lower=1)[0]
        squares = C.T @ ZZC - swept.T @ swept
        information = information_of(squares, C, H, contrast, unscaled, scale, freedom)
        half = dpotri(factor, lower=1, overwrite_c=1)[0]
        inverse = np.where(self._under, half, half.T)
        turned = Y @ weight
        if self._plain:
            each = np.einsum("ij,ij->i", found["ZZL"], inverse) - np.einsum("ij,ij->i", H, turned)
        else:
            each = np.einsum("ij,ij->i", found["ZZL"][rows], inverse[columns])
            each -= np.einsum("ij,ij->i", H[rows], turned[columns])
        flat, slopes, start = np.asarray(2 * np.bincount(which, each), dtype=np.float64), list[Matrix](), 0
        for T in self._T:
            slopes.append(flat[start : start + T.size].reshape(T.shape))
            start += T.size
        self.theta = None
        return lower(slopes), with_rising(information, slopes, self._T)
