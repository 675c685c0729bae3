"""Random effects that depend on the public sizes of their groups: the bias, and an estimate that allows for it.

Without noise a mixed model gives every group nearly the same weight; noise in the groups' sums moves weight from groups
to rows. If large groups have other effects than small ones, fixed effects are then other numbers than without noise.
The released sums show it: a column that is a function of sizes is constant within groups. It needs no sum of its own,
because its product with the response is a sum of the groups' sums. So the dependence of effects on sizes (a line and a
parabola in log size, the largest groups, size classes) is an unknown with a prior, beside the columns of sizes that the
model has. Its effect is removed from the estimates and added to their variances. That costs nothing.
docs/proofs/mixed-moments.md has the algebra.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.linear.private.estimation import least_seen
from discreet.models.linear.private.noisy import NoisyEstimate, NoisySums, evaluate, of_responses
from discreet.models.linear.private.notes import Flag

LARGEST = (0.05, 0.01)  # shares of groups, the largest, which may have something in common
FREE = 1.0  # deviation of that, and of effects along log size and its square, in deviations of effects: the prior's
USUAL = (0.4, 0.4, 0.5, 0.5)  # the same as they are looked for: a wide prior pulls less to zero, a narrow one sees more
CLASS = 0.25  # the deviation of what groups have in common whose sizes lie between two powers of two
NEGLIGIBLE = 0.02  # of the deviation of effects: shapes that vary less are left out
DETECTED = 2.0  # standard errors: the level is 5 % for each estimate where effects do not go with sizes
HARMLESS = 0.5  # standard errors of a fixed effect that its estimate may be moved by without a flag
FLAT = 1e-3  # the least deviation of a parabola of log sizes that is brought to one: two sizes have none
CONSTANT = 1e-9  # of a column's sum of squares: what varies within groups of a column that is constant in them
QUIET = 1e-9  # noise of sums, in their sampling variances, that stands for none
TOGETHER = 0.25  # correlation of effects with a function of sizes that is looked at before anything is paid
CUTS = 20  # quantiles of sizes between which such a function is constant
UNUSED = 1e10  # noise of a sum that nobody drew, in variances of what it would be


@dataclass(frozen=True, slots=True)
class SizeShift:
    """The part removed from the fixed effects (`moved`), because effects depend on sizes.

    `sign` is what shapes of usual size would have moved them by, and `chance` the covariance that it would have if
    effects did not go with sizes; `unseen`, that of what shapes of usual size leave in the estimates if variances that
    are not told from zero are the least that would be.
    """

    moved: Vector
    sign: Vector
    chance: Matrix
    unseen: Matrix


def allowing_for_sizes(sums: NoisySums, found: NoisyEstimate) -> tuple[NoisyEstimate, SizeShift | None]:
    """The estimate with effects that may go with sizes; no shift where the fixed part knows all about sizes.

    Estimates are then those that the sums without noise would give, at the variances found, and doubt about how effects
    go with sizes is in their variances.
    """
    shapes, usual = _shapes(sums)
    k, p = shapes.shape[1], len(sums.XX)
    if not k:
        return found, None
    at: Any = {"sigma2": found.sigma2, "variances": found.variances}
    seen = evaluate(_with_columns(sums, shapes, found.sigma2), **at)
    slope, S = seen.beta[p:], seen.covariance[p:, p:]
    # What a slope of one does to estimates with this noise, and without any.
    quiet = _quiet(sums, found.sigma2)
    own = (sums.n[:, None] * shapes, sums.Sx.T @ shapes)
    (noisy, noisy_effects), (still, still_effects) = (of_responses(each, *own, **at) for each in (sums, quiet))
    off = noisy - still
    # Where noise hides a variance, the one that predictions suppose may be larger.
    supposed = found.variances if found.believed is None else np.maximum(found.variances, found.believed)
    prior = float(supposed.sum()) * np.eye(k)
    believed = prior @ np.linalg.inv(prior + S)
    doubt = believed @ S
    moved = -off @ believed @ slope
    likely = float(supposed.sum()) * usual
    seeing = off @ likely @ np.linalg.inv(likely + S)
    possible, left = _possible(sums, found, supposed), np.zeros_like(off)
    if (possible > supposed).any():
        without = of_responses(quiet, *own, sigma2=found.sigma2, variances=possible)[0]
        left = noisy - without - off @ believed
    effects, variances = [], []
    parts = (found.effects, found.effect_variances, noisy_effects, still_effects)
    for u, v, with_noise, without in zip(*parts, strict=True):
        away = with_noise - without
        effects.append(u - away @ believed @ slope)
        variances.append(v + np.einsum("gi,gi->g", away @ doubt, away))
    return replace(
        found,
        beta=found.beta + moved,
        covariance=found.covariance + off @ doubt @ off.T,
        effects=tuple(effects),
        effect_variances=tuple(variances),
    ), SizeShift(moved, -seeing @ slope, seeing @ S @ seeing.T, float(possible.sum()) * left @ usual @ left.T)


def left_by_other_shapes(sums: NoisySums, *, sigma2: float, variances: Vector) -> Matrix:
    """What effects that go with sizes in any other way leave in the fixed effects (p, k), from the public design alone.

    Each column is a function of sizes, constant between quantiles of them; effects go with all of them together at a
    correlation of `TOGETHER` if they do at one of length one. So the most that is left of a combination of fixed
    effects is the length of its row.
    """
    n, p = sums.n, len(sums.XX)
    if not len(n) or n.min() == n.max():
        return np.empty((p, 0))
    at: Any = {"sigma2": sigma2, "variances": variances}
    total = float(variances.sum())
    among = np.searchsorted(np.quantile(n, np.arange(1, CUTS) / CUTS), n)
    steps = (among[:, None] == np.unique(among)).astype(np.float64)
    share = steps.mean(axis=0)
    steps = TOGETHER * total**0.5 * (steps / np.sqrt(share) - np.sqrt(share))
    shapes, _ = _shapes(sums)
    every = np.column_stack([steps, shapes])
    quiet = _quiet(sums, sigma2)
    own = (n[:, None] * every, sums.Sx.T @ every)
    off = of_responses(sums, *own, **at)[0] - of_responses(quiet, *own, **at)[0]
    k = steps.shape[1]
    if not shapes.shape[1]:
        return off
    with_shapes = _with_columns(sums, shapes, sigma2)
    seen = (own[0][:, :k], np.vstack([own[1][:, :k], shapes.T @ own[0][:, :k]]))
    slopes = of_responses(with_shapes, *seen, **at)[0][p:]
    S = evaluate(with_shapes, **at).covariance[p:, p:]
    believed = total * np.linalg.inv(total * np.eye(len(S)) + S)
    return np.asarray(off[:, :k] - off[:, k:] @ believed @ slopes)


def moved_by_means(sums: NoisySums, restore: Matrix, errors: Vector, *, sigma2: float, variances: Vector) -> Vector:
    """The most that effects which are a combination of means of columns move each fixed effect by, in its errors.

    Without noise such effects move estimates a little, with noise much: what it adds is told, from the public design.
    Means of columns that are constant in groups are the model's own, and move nothing.
    """
    if not len(sums.n) or not len(variances):
        return np.zeros(len(errors))
    means = sums.Sx / sums.n[:, None]
    squares = np.diag(sums.XX)
    constant = squares - np.einsum("gi,gi->i", means, sums.Sx) <= CONSTANT * squares
    varied = means[:, ~constant] / np.sqrt(squares[~constant] / sums.n.sum())
    known = np.column_stack([np.ones(len(means)), means[:, constant]])
    U, deviations, _ = np.linalg.svd(varied - known @ np.linalg.lstsq(known, varied)[0], full_matrices=False)
    along = float(variances.sum() * len(means)) ** 0.5 * U[:, deviations > FLAT * len(means) ** 0.5]
    at: Any = {"sigma2": sigma2, "variances": variances}
    own = (sums.n[:, None] * along, sums.Sx.T @ along)
    off = of_responses(sums, *own, **at)[0] - of_responses(_quiet(sums, sigma2), *own, **at)[0]
    return np.asarray(np.linalg.norm(restore @ off, axis=1) / errors)


def size_flags(shift: SizeShift | None, found: NoisyEstimate, restore: Matrix, names: Sequence[str]) -> list[Flag]:
    """Flags of fixed effects that a dependence of effects on sizes has moved by more than chance and than is harmless.

    And of those that they may have moved as far where noise hides it. `restore` turns coefficients of centred columns
    into those of the columns as given, which have these `names`.
    """
    if shift is None:
        return []
    moved, sign = restore @ shift.moved, restore @ shift.sign
    error, chance, unseen = (
        np.sqrt(np.diag(restore @ C @ restore.T)) for C in (found.covariance, shift.chance, shift.unseen)
    )
    told = [column for column in ("log_size(", "size_class(") if any(column in name for name in names)]
    remedy = "Add public sizes to the formula: " + {0: "log_size(group)", 1: "size_class(group)"}.get(
        len(told), "a column of classes of your own"
    )
    seen = (np.abs(moved) > HARMLESS * error) & (np.abs(sign) > DETECTED * chance)
    notes = {
        j: f"effects go with the sizes of their groups, and {names[j]} was moved by {moved[j]:.2g} to allow for it, "
        f"with a standard error of {error[j]:.2g}. {remedy}"
        for j in np.flatnonzero(seen).tolist()
    }
    notes |= {
        j: f"noise hides whether effects depend on the sizes of their groups. If they do, {names[j]} may be off by "
        f"{unseen[j]:.2g} beside its standard error of {error[j]:.2g}. Spend more, or use fewer groups"
        for j in np.flatnonzero(~seen & (unseen > HARMLESS * error)).tolist()
    }
    return [Flag("fixed", None, "informative sizes", notes[j], names[j]) for j in sorted(notes)]


def _quiet(sums: NoisySums, sigma2: float) -> NoisySums:
    return replace(sums, ds=QUIET * sigma2, dx=QUIET * sigma2 * np.diag(sums.XX))


def _possible(sums: NoisySums, found: NoisyEstimate, supposed: Vector) -> Vector:
    """Variances of effects; the least that noise would show, and no more than the response's, where it hides one."""
    least = np.minimum(least_seen(sums, sigma2=found.sigma2, variances=found.variances), sums.squares / sums.rows)
    return np.where(found.variances < least, np.maximum(least, supposed), supposed)


def _shapes(sums: NoisySums) -> tuple[Matrix, Matrix]:
    """Columns (G, k), functions of sizes that the fixed part does not know; each has a slope of prior deviation one.

    Beside them the covariance (k, k) of the slopes of shapes of usual size. Slopes are in deviations of effects. The
    part of a shape that the fixed columns explain moves nothing.
    """
    n = sums.n
    if not len(n) or n.min() == n.max():
        return np.empty((len(n), 0)), np.empty((0, 0))
    line = (np.log(n) - np.log(n).mean()) / np.log(n).std()
    curve = line**2 - 1
    classes = np.unique(np.floor(np.log2(n)), return_inverse=True)[1]
    basis = np.column_stack(
        [
            FREE * line,
            FREE * curve / max(curve.std(), FLAT),
            *(FREE * (n >= np.quantile(n, 1 - share)) for share in LARGEST),
            CLASS * (classes[:, None] == np.arange(classes.max() + 1)),
        ]
    )
    means = sums.Sx / n[:, None]
    squares = np.diag(sums.XX)
    constant = squares - np.einsum("gi,gi->i", means, sums.Sx) <= CONSTANT * squares
    known = np.column_stack([np.ones(len(n)), means[:, constant]])
    known = known / np.maximum(np.linalg.norm(known, axis=0), 1e-300)
    U, deviations, V = np.linalg.svd(basis - known @ np.linalg.lstsq(known, basis)[0], full_matrices=False)
    kept = deviations > NEGLIGIBLE * len(n) ** 0.5
    narrow = np.ones(basis.shape[1])
    narrow[: len(USUAL)] = np.array(USUAL) / FREE
    return (U * deviations)[:, kept], (V[kept] * narrow**2) @ V[kept].T


def _with_columns(sums: NoisySums, shapes: Matrix, sigma2: float) -> NoisySums:
    columns, cross = sums.n[:, None] * shapes, sums.Sx.T @ shapes
    squares = columns.T @ shapes
    unused = UNUSED * (sigma2 * np.diag(squares) + np.reshape(sums.ds * np.ones(len(sums.n)), (1, -1)) @ shapes**2)[0]
    return replace(
        sums,
        Sx=np.column_stack([sums.Sx, columns]),
        XX=np.block([[sums.XX, cross], [cross.T, squares]]),
        Xy=np.append(sums.Xy, shapes.T @ sums.s),
        dx=np.append(sums.dx, unused),
    )
