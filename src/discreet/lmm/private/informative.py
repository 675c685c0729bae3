"""Random effects that go with the public sizes of their groups: what that moves, and an estimate that allows for it.

Without noise a mixed model lets every group count nearly the same; noise in the groups' sums moves weight from groups
to rows. If large groups have other effects than small ones, fixed effects are then other numbers than without noise.
The released sums tell: a column log(size), constant within groups, needs no sum of its own, because its product with
the response is a sum of the groups' sums. So the slope of effects on log(size) is one more unknown with a prior, and
what it moves is taken out of the estimates and added to their variances. That costs nothing.
docs/proofs/mixed-moments.md has the algebra.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.lmm.private.noisy import NoisyEstimate, NoisySums, evaluate
from discreet.lmm.private.notes import Flag

CORRELATION = 0.4  # of effects and log sizes: the standard deviation of its prior
DETECTED = 2.0  # standard errors of the slope: the level is 5 % where effects do not go with sizes
HARMLESS = 0.5  # standard errors of a fixed effect that its estimate may be moved by without a flag
KNOWN = 1e-6  # of log size's sum of squares: what the fixed part leaves of it when it knows the sizes
QUIET = 1e-9  # noise of sums, in their sampling variances, that stands for none
UNUSED = 1e10  # noise of a sum that nobody drew, in variances of what it would be


@dataclass(frozen=True, slots=True)
class Slope:
    """Of effects on log sizes: its estimate and standard error; what was taken out of the fixed effects, in `moved`."""

    value: float
    error: float
    moved: Vector

    @property
    def detected(self) -> bool:
        return abs(self.value) > DETECTED * self.error


def allowing_for_sizes(sums: NoisySums, found: NoisyEstimate) -> tuple[NoisyEstimate, Slope | None]:
    """The estimate with a slope of effects on log sizes beside the rest; no slope where the fixed part knows sizes.

    Estimates are then those that the sums without noise would give, at the variances found, and doubt about the slope
    is in their variances.
    """
    if _sizes_known(sums):
        return found, None
    log = np.log(sums.n) - np.log(sums.n).mean()

    def at(sums: NoisySums) -> NoisyEstimate:
        return evaluate(sums, sigma2=found.sigma2, variances=found.variances)

    p = len(sums.XX)
    seen = at(_with_column(sums, log, found.sigma2))
    slope, variance = float(seen.beta[p]), float(seen.covariance[p, p])
    # What a slope of one does to estimates with this noise, and without any.
    noisy, quiet = at(_of(log, sums)), at(_of(log, _without_noise(sums, found.sigma2)))
    off = noisy.beta - quiet.beta
    supposed = found.variances if found.believed is None else found.believed
    prior = CORRELATION**2 * float(supposed.sum()) / float(np.var(np.log(sums.n)))
    believed = prior / (prior + variance)
    moved = -believed * slope * off
    off_effects = [a - b for a, b in zip(noisy.effects, quiet.effects, strict=True)]
    return replace(
        found,
        beta=found.beta + moved,
        covariance=found.covariance + believed * variance * np.outer(off, off),
        effects=tuple(u - believed * slope * o for u, o in zip(found.effects, off_effects, strict=True)),
        effect_variances=tuple(
            v + believed * variance * o**2 for v, o in zip(found.effect_variances, off_effects, strict=True)
        ),
    ), Slope(slope, variance**0.5, moved)


def size_flags(slope: Slope | None, found: NoisyEstimate, restore: Matrix, names: Sequence[str]) -> list[Flag]:
    """Flags of the fixed effects that a dependence on sizes, which was detected, has moved by more than is harmless.

    `restore` turns coefficients of centred columns into those of the columns as given, which have these `names`.
    """
    if slope is None or not slope.detected:
        return []
    moved, error = restore @ slope.moved, np.sqrt(np.diag(restore @ found.covariance @ restore.T))
    return [
        Flag(
            "fixed",
            None,
            "informative sizes",
            f"effects go with log size of their groups ({slope.value:.3g} +- {slope.error:.2g} a unit), and "
            f"{names[j]} was moved by {moved[j]:.2g} to allow for it, with a standard error of {error[j]:.2g}. Add the "
            "public size to the formula: log_size(group)",
            names[j],
        )
        for j in np.flatnonzero(np.abs(moved) > HARMLESS * error).tolist()
    ]


def _sizes_known(sums: NoisySums) -> bool:
    """Whether the fixed part explains nearly all of log(size), or there are no groups."""
    if not len(sums.n):
        return True
    root, log = np.sqrt(sums.n), np.log(sums.n)
    means = sums.Sx / sums.n[:, None]
    unit = np.maximum(np.sqrt(np.sum((means * root[:, None]) ** 2, axis=0)), 1e-300)
    explained = np.linalg.lstsq(means * root[:, None] / unit, root * log, rcond=None)[0] / unit
    return bool(sums.n @ (log - means @ explained) ** 2 <= KNOWN * (sums.n @ log**2))


def _of(response: Vector, sums: NoisySums) -> NoisySums:
    """The same design with a response that is constant within groups."""
    return replace(sums, s=sums.n * response, Xy=sums.Sx.T @ response)


def _without_noise(sums: NoisySums, sigma2: float) -> NoisySums:
    return replace(sums, ds=QUIET * sigma2, dx=QUIET * sigma2 * np.diag(sums.XX))


def _with_column(sums: NoisySums, size: Vector, sigma2: float) -> NoisySums:
    column, cross = sums.n * size, sums.Sx.T @ size
    XX = np.block([[sums.XX, cross[:, None]], [cross[None, :], np.array([[column @ size]])]])
    unused = UNUSED * (sigma2 * (column @ size) + float(np.sum(sums.ds * size**2)))
    return replace(
        sums,
        Sx=np.column_stack([sums.Sx, column]),
        XX=XX,
        Xy=np.append(sums.Xy, size @ sums.s),
        dx=np.append(sums.dx, unused),
    )
