"""Whether random effects go with the public sizes of their groups, which moves fixed effects under noise.

Without noise a mixed model lets every group count nearly the same; noise in the groups' sums moves weight from groups
to rows. If large groups have other effects than small ones, the intercept is then another number than without noise.
The released sums tell: a column log(size), constant within groups, needs no sum of its own, because its product with
the response is a sum of the groups' sums. So its coefficient is estimated from what is released, and costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.lmm.private.noisy import Estimate, NoisySums, evaluate
from discreet.lmm.private.notes import Flag

DETECTED = 2.0  # standard errors of the coefficient of log size
HARMLESS = 1.0  # standard errors of a fixed effect that it may move by, at the end of what is possible
KNOWN = 1e-6  # of log size's sum of squares: what the fixed part leaves of it when it knows the sizes
EQUAL = 10.0  # variance of effects, in residual variances, at which every group counts nearly the same
UNUSED = 1e10  # noise of a sum that nobody drew, in variances of what it would be


def size_flags(sums: NoisySums, found: Estimate, restore: Matrix, names: Sequence[str]) -> list[Flag]:
    """Flags of the fixed effects that a dependence on sizes moves, or may move, by more than is harmless.

    `restore` turns coefficients of centred columns into those of the columns as given, which have these `names`.
    """
    size = _left_of_log_size(sums)
    if size is None:
        return []
    p = len(sums.XX)
    at = evaluate(_with_column(sums, size, found.sigma2), sigma2=found.sigma2, variances=found.variances)
    slope, error = float(at.beta[p]), float(np.sqrt(at.covariance[p, p]))
    moved = np.abs(restore @ (_under_noise(sums, size, found) - _of_equal_groups(sums, size)))
    limit = HARMLESS * np.sqrt(np.diag(restore @ found.covariance @ restore.T))
    most = (abs(slope) + DETECTED * error) * moved
    flags = []
    for j in np.flatnonzero(most > limit).tolist():
        if abs(slope) > DETECTED * error:
            word = "informative sizes"
            told = f"effects go with log size of their groups ({slope:.3g} +- {error:.2g} a unit)"
        else:
            word = "sizes not ruled out"
            told = f"whether effects go with log size of their groups is not known ({slope:.3g} +- {error:.2g} a unit)"
        note = (
            f"{told}, so {names[j]} may be off by up to {most[j]:.2g}, which its standard error of "
            f"{limit[j] / HARMLESS:.2g} does not contain. Add the public size to the formula: log_size(group)"
        )
        flags.append(Flag("fixed", None, word, note, names[j]))
    return flags


def _left_of_log_size(sums: NoisySums) -> Vector | None:
    """log(size) of every group less what the fixed part explains of it; None if that is nearly all."""
    if not len(sums.n):
        return None
    root, log = np.sqrt(sums.n), np.log(sums.n)
    means = sums.Sx / sums.n[:, None]
    unit = np.maximum(np.sqrt(np.sum((means * root[:, None]) ** 2, axis=0)), 1e-300)
    explained = np.linalg.lstsq(means * root[:, None] / unit, root * log, rcond=None)[0] / unit
    left = log - means @ explained
    return left if sums.n @ left**2 > KNOWN * (sums.n @ log**2) else None


def _with_column(sums: NoisySums, size: Vector, sigma2: float) -> NoisySums:
    column, cross = sums.n * size, sums.Sx.T @ size
    XX = np.block([[sums.XX, cross[:, None]], [cross[None, :], np.array([[column @ size]])]])
    unused = UNUSED * (sigma2 * (column @ size) + sums.ds * (size @ size))
    return replace(
        sums,
        Sx=np.column_stack([sums.Sx, column]),
        XX=XX,
        Xy=np.append(sums.Xy, size @ sums.s),
        dx=np.append(sums.dx, unused),
    )


def _under_noise(sums: NoisySums, size: Vector, found: Estimate) -> Vector:
    """The coefficients that a response equal to `size` gets with the weights of the release."""
    ideal = replace(sums, s=sums.n * size, Xy=sums.Sx.T @ size)
    return evaluate(ideal, sigma2=found.sigma2, variances=found.variances).beta


def _of_equal_groups(sums: NoisySums, size: Vector) -> Vector:
    """The same where every group counts nearly the same."""
    means, weight = sums.Sx / sums.n[:, None], sums.n / (1 + EQUAL * sums.n)
    A = sums.XX - means.T @ sums.Sx + means.T @ (weight[:, None] * means)
    return np.asarray(np.linalg.lstsq(A, means.T @ (weight * size), rcond=None)[0])
