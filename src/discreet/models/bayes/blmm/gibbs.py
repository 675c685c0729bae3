"""Gibbs sampling on sufficient statistics: the cost of an iteration does not depend on the number of rows.

Two blocks: (beta, u) together given the variances, beta first with u integrated out; then the variances given
(beta, u). Drawing beta and u together removes the slow direction of the usual sampler, where an intercept
and the mean of u can only move in turn. All chains advance at once; they start dispersed around the posterior mode.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.bayes.blmm.conditional import PosteriorModel
from discreet.models.bayes.blmm.diagnostics import effective_size, rhat
from discreet.models.bayes.blmm.exact import Peak, Posterior
from discreet.models.bayes.blmm.variance_prior import InverseGamma
from discreet.words.errors import DataError
from discreet.words.progress import Progress, silent

WIDTH, DEGREE = 2.0, 40  # of the interval of log lambda where A is a Chebyshev series; poles at distance pi
TOLD = 50  # draws between two reports of progress
DISPERSION = 4.0  # posterior deviations from the mode at which chains start
RHAT_LIMIT, SIZE_LIMIT = 1.01, 400.0


class ConvergenceWarning(UserWarning):
    """Chains that have not converged or are too short; the text also stays on the result as `notes`."""


@dataclass(frozen=True)
class Chains:
    """Draws: `beta` (chains, draws, p) in the model's coordinates, `u` (chains, draws, G), `variances` (.., .., 2)."""

    beta: Matrix = field(repr=False)
    u: Matrix = field(repr=False)
    variances: Matrix = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return int(self.beta.shape[0] * self.beta.shape[1])

    @cached_property
    def rhat(self) -> dict[str, Vector]:
        return {name: rhat(getattr(self, name)) for name in ("beta", "u", "variances")}

    @cached_property
    def effective(self) -> dict[str, Vector]:
        return {name: effective_size(getattr(self, name)) for name in ("beta", "u", "variances")}

    @property
    def rhat_max(self) -> float:
        return max(float(part.max()) for part in self.rhat.values() if part.size)

    @property
    def effective_min(self) -> float:
        return min(float(part.min()) for part in self.effective.values() if part.size)

    @property
    def converged(self) -> bool:
        return not self.notes


def gibbs(
    posterior: Posterior | Peak,
    *,
    draws: int,
    chains: int = 4,
    warmup: int | None = None,
    rng: np.random.Generator | int = 0,
    start: Matrix | None = None,
    model: PosteriorModel | None = None,
    judge: bool = True,
    progress: Progress = silent,
) -> Chains:
    """Sample `draws` kept draws per chain after `warmup` (as many, by default); `start` (chains, 2) are log variances.

    `model` is sampled instead of the posterior's own: other data near those that the posterior was computed from.
    A chain that did not converge is said in a `ConvergenceWarning` and on the result; `judge=False` leaves it out.
    """
    warmup = draws if warmup is None else warmup
    if draws < 4 or chains < 1 or warmup < 0:
        raise DataError(
            f"{chains} chains of {draws} draws after {warmup} cannot be sampled.",
            "At least one chain, 4 draws and no negative warm-up are possible.",
            "Use draws=1000.",
            about="draws",
        )
    rng = np.random.default_rng(rng)
    model = posterior.model if model is None else model
    laws = model.laws
    assert all(isinstance(law, InverseGamma) for law in laws), "conjugate laws only; `terms` samples others"
    if start is None:
        start = posterior.mode + DISPERSION * rng.standard_normal((chains, 2)) @ posterior.scale.T
    products = _Products.around(model, float(posterior.mode[1] - posterior.mode[0]))
    sizes, at = np.unique(model.n, return_inverse=True)
    x, y, n = model.means[:, :-1].T.copy(), model.means[:, -1], model.n
    G, p, within = model.groups, len(x), model.within
    beta, u = np.empty((chains, draws, p)), np.empty((chains, draws, G))
    variances = np.empty((chains, draws, 2))
    residual, group = np.exp(start.T)
    total = warmup + draws
    of_residual, of_group = laws
    chi = rng.chisquare([of_residual.freedom + model.rows, of_group.freedom + G], (total, chains, 2))
    d = np.full((chains, p + 1), -1.0)
    for i in range(total):
        if i % TOLD == 0:
            progress(f"draw {i:,} of {total:,}", i / total)
        A = products(group / residual)
        information = A[:, :-1, -1] / residual[:, None] + model.information
        triangle = np.linalg.cholesky(A[:, :-1, :-1] / residual[:, None, None] + model.precision)
        root = np.linalg.inv(triangle)
        z = np.matmul(root, information[:, :, None]) + rng.standard_normal((chains, p, 1))
        d[:, :p] = np.matmul(root.transpose(0, 2, 1), z)[:, :, 0]
        spread = 1 / (1 / group[:, None] + sizes / residual[:, None])  # var(u | beta, variances) by group size
        gap = y - d[:, :p] @ x
        effect = rng.standard_normal((chains, G))
        effect *= np.sqrt(spread)[:, at]
        effect += (spread * sizes / residual[:, None])[:, at] * gap
        gap -= effect
        error = np.einsum("ci,ij,cj->c", d, within, d) + np.einsum("cg,cg,g->c", gap, gap, n)
        residual = (of_residual.squares + error) / chi[i, :, 0]
        group = (of_group.squares + np.einsum("cg,cg->c", effect, effect)) / chi[i, :, 1]
        if i >= warmup:
            j = i - warmup
            beta[:, j], u[:, j] = d[:, :p], effect
            variances[:, j, 0], variances[:, j, 1] = residual, group
    found = Chains(beta, u, variances)
    if not judge:
        return found
    notes = judged(found)
    for note in notes:
        warnings.warn(note, ConvergenceWarning, stacklevel=2)
    return Chains(beta, u, variances, notes)


def judged(chains: Chains, *, other: str = ", or use the exact posterior") -> tuple[str, ...]:
    """What is wrong with chains, if anything."""
    notes = []
    if chains.rhat_max > RHAT_LIMIT:
        notes.append(
            f"Chains have not converged: split R-hat reaches {chains.rhat_max:.3f}, {RHAT_LIMIT} is accepted. "
            f"Raise `warmup` and `draws`{other}."
        )
    if chains.effective_min < SIZE_LIMIT:
        notes.append(
            f"The chains hold as little as {chains.effective_min:.0f} independent draws of a parameter; tail quantiles "
            f"need {SIZE_LIMIT:.0f}. Raise `draws`{other}."
        )
    return tuple(notes)


@dataclass(frozen=True)
class _Products:
    """A(lambda), by a Chebyshev series in log lambda where it holds to rounding, by the sum over groups elsewhere."""

    model: PosteriorModel
    centre: float
    coefficients: Matrix

    @classmethod
    def around(cls, model: PosteriorModel, centre: float) -> _Products:
        nodes = np.polynomial.chebyshev.chebpts1(DEGREE + 1)
        values = model.cross_products(np.exp(centre + WIDTH * nodes)).reshape(DEGREE + 1, -1)
        basis = np.polynomial.chebyshev.chebvander(nodes, DEGREE)
        norms = np.full(DEGREE + 1, 2.0 / (DEGREE + 1))
        norms[0] /= 2
        return cls(model, centre, norms[:, None] * (basis.T @ values))

    def __call__(self, ratio: Vector) -> Matrix:
        place = (np.log(ratio) - self.centre) / WIDTH
        if np.abs(place).max() > 1:
            return self.model.cross_products(ratio)
        basis = np.cos(np.arange(DEGREE + 1) * np.arccos(place)[:, None])
        return (basis @ self.coefficients).reshape(len(ratio), *self.model.within.shape)
