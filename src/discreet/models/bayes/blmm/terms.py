"""The posterior of a mixed model with several variances: normal given them, sampled over them with the rest integrated.

Given the variances, fixed and random effects are normal and drawn exactly, from cross-products (`models.linear.sparse`). The log
variances are drawn from their own posterior, with fixed and random effects integrated out, by Metropolis steps:
proposals from a t law at the mode, which are nearly independent of the present state, and a random walk. This is a
Gibbs sampler of two blocks, and the first does not depend on the second. So chains move as fast as those over the few
variances alone, and any proper prior of a variance works.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.bayes.blmm.gibbs import TOLD, Chains, ConvergenceWarning, judged
from discreet.models.bayes.blmm.prior import Prior
from discreet.models.bayes.blmm.variance_prior import VariancePrior
from discreet.models.linear.memory import refuse_draws
from discreet.models.linear.sparse import Eliminated, Gram, after, eliminate
from discreet.words.errors import DataError, FitError
from discreet.words.progress import Progress, silent

DF, WIDER = 5.0, 1.2  # of the t law of proposals, and its scale beside the posterior's
WALKS = 0.3  # share of steps that are a random walk
SPREADS = (3.0, 1.5, 0.75)  # posterior deviations from the mode at which chains start, the first possible
LEAST, MOST = 1e-4, 4.0  # deviations of a log variance that curvature at the mode may suggest
BEYOND, FARTHEST = 45.0, 300.0  # of log variances, from the residual's and from zero: no numbers for doubles


@dataclass(frozen=True)
class Point:
    """Some variances, the log density there, and the law of the fixed effects as triangle and half information."""

    log_variances: Vector
    height: float
    eliminated: Eliminated
    triangle: Matrix
    half: Vector


@dataclass(frozen=True)
class TermsModel:
    """Data and prior, for p fixed columns and one variance in each random term.

    Attributes
    ----------
    gram : cross-products of [Z X y - X b], b the prior mean of the fixed effects in these coordinates.
    precision, centre : prior of the fixed effects: inverse covariance, and b.
    laws : priors of the variances, the residual's first.
    """

    gram: Gram
    precision: Matrix
    centre: Vector
    laws: tuple[VariancePrior, ...]

    @classmethod
    def of(cls, gram: Gram, prior: Prior, names: tuple[str, ...], *, restore: Matrix, offset: Vector) -> TermsModel:
        """`restore` and `offset` as in `models.linear.origin.Origin`; `names` are of the terms' variances."""
        precision = restore.T @ restore / prior.sd**2
        centre = np.linalg.solve(precision, -restore.T @ offset / prior.sd**2) if len(precision) else np.zeros(0)
        turn = np.eye(gram.p + 1)
        turn[:-1, -1] = -centre
        moved = replace(gram, Zxy=tuple(zxy @ turn for zxy in gram.Zxy), joint=turn.T @ gram.joint @ turn)
        laws = tuple(prior.of(name) for name in ("Residual", *names))
        return cls(gram.lend(moved), precision, np.asarray(centre, dtype=np.float64), laws)

    def at(self, log_variances: Vector) -> Point | None:
        """The normal laws given the variances, and the density of these; None where they are none."""
        if np.abs(log_variances - log_variances[0]).max() > BEYOND or np.abs(log_variances).max() > FARTHEST:
            return None
        residual = float(np.exp(log_variances[0]))
        try:
            found = eliminate(self.gram, np.exp((log_variances[1:] - log_variances[0]) / 2))
            triangle = np.asarray(np.linalg.cholesky(found.A[:-1, :-1] / residual + self.precision), dtype=np.float64)
        except np.linalg.LinAlgError:
            return None
        half = np.linalg.solve(triangle, found.A[:-1, -1] / residual)
        total = self.gram.rows * log_variances[0] + found.logdet + found.A[-1, -1] / residual - half @ half
        total += 2 * np.log(np.diagonal(triangle)).sum()
        prior = sum(float(law.log_density(x[None])[0]) for law, x in zip(self.laws, log_variances, strict=True))
        return Point(log_variances, float(-0.5 * total + prior), found, triangle, np.asarray(half, dtype=np.float64))

    def log_density(self, log_variances: Vector) -> float:
        """Of the log variances given the data, up to a constant."""
        found = self.at(log_variances)
        return -np.inf if found is None else found.height

    def draw(self, point: Point, rng: np.random.Generator) -> tuple[Vector, Vector]:
        """Fixed effects and all random effects, given the variances."""
        deviation = float(np.exp(point.log_variances[0] / 2))
        moved = np.linalg.solve(point.triangle.T, point.half + rng.normal(size=len(point.half)))
        spherical = np.concatenate(point.eliminated.solved_fixed) @ np.append(-moved, 1.0)
        spherical = spherical + deviation * point.eliminated.factor.normal(rng)
        terms = zip(self.gram.split(spherical), point.eliminated.triangles, strict=True)
        return self.centre + moved, np.concatenate([after(part[None, :], T.T)[0] for part, T in terms])

    @cached_property
    def peak(self) -> tuple[Vector, Matrix]:
        """The mode of the log variances, and a triangle of a covariance there."""
        from scipy.optimize import minimize

        gram, k = self.gram, len(self.laws)
        start = np.full(k, np.log(max(gram.joint[-1, -1], 1e-300) / gram.rows / k))
        found = minimize(lambda x: -max(self.log_density(x), -1e300), start, method="Nelder-Mead", options=SEARCH)
        mode, step, eye = np.asarray(found.x), 0.05, np.eye(k)
        top = self.log_density(mode)
        if not np.isfinite(top):
            raise FitError(
                "The posterior of the variances has no mode that could be found.",
                "Fixed effects that do not reproduce the response, and a prior of its size, have one.",
                "Rescale the response, or change the prior.",
                about="prior",
            )
        second = np.empty((k, k))
        for i in range(k):
            for j in range(i + 1):
                ends = [self.log_density(mode + step * (a * eye[i] + b * eye[j])) for a in (-1, 1) for b in (-1, 1)]
                second[i, j] = second[j, i] = (ends[0] - ends[1] - ends[2] + ends[3]) / (4 * step**2)
        values, vectors = np.linalg.eigh(-second)
        spread = np.clip(1 / np.sqrt(np.maximum(values, 1e-12)), LEAST, MOST)
        return mode, vectors * spread


SEARCH = {"xatol": 1e-4, "fatol": 1e-7, "maxiter": 2000, "maxfev": 2000}


def sample(
    model: TermsModel,
    *,
    draws: int,
    chains: int = 4,
    warmup: int | None = None,
    rng: np.random.Generator | int = 0,
    progress: Progress = silent,
) -> Chains:
    """`draws` kept draws per chain after `warmup` (as many, by default), whose covariance replaces the mode's."""
    warmup = draws if warmup is None else warmup
    if draws < 4 or chains < 1 or warmup < 0:
        raise DataError(
            f"{chains} chains of {draws} draws after {warmup} cannot be sampled.",
            "At least one chain, 4 draws and no negative warm-up are possible.",
            "Use draws=1000.",
            about="draws",
        )
    refuse_draws(model.gram.p + model.gram.effects, draws, chains)
    progress("peak of the posterior", 0.0)
    rng, (mode, scale) = np.random.default_rng(rng), model.peak
    p, effects, k = model.gram.p, model.gram.effects, len(model.laws)
    beta, u, variances = np.empty((chains, draws, p)), np.empty((chains, draws, effects)), np.empty((chains, draws, k))
    total = chains * (warmup + draws)
    for chain in range(chains):
        step = _Step(model, mode, scale, rng)
        seen = np.empty((warmup, k))
        for i in range(warmup):
            seen[i] = step.move()
            if i % TOLD == 0:
                progress(f"chain {chain + 1} of {chains}", (chain * (warmup + draws) + i) / total)
            if i + 1 in (warmup // 3, 2 * warmup // 3) and i > 20 * k:
                step.learn(seen[i // 2 : i + 1])
        for i in range(draws):
            variances[chain, i] = np.exp(step.move())
            beta[chain, i], u[chain, i] = model.draw(step.at, rng)
            if i % TOLD == 0:
                progress(f"chain {chain + 1} of {chains}", (chain * (warmup + draws) + warmup + i) / total)
    found = Chains(beta, u, variances)
    notes = judged(found, other="")
    for note in notes:
        warnings.warn(note, ConvergenceWarning, stacklevel=3)
    return replace(found, notes=notes)


class _Step:
    """One chain of the log variances."""

    def __init__(self, model: TermsModel, mode: Vector, scale: Matrix, rng: np.random.Generator) -> None:
        self.model, self.mode, self.scale, self.rng = model, mode, scale, rng
        starts = [mode + spread * scale @ rng.normal(size=len(mode)) for spread in SPREADS]
        found = [point for start in (*starts, mode) if (point := model.at(start)) is not None]
        self.at = found[0]  # apart, but where there is a density

    def learn(self, seen: Matrix) -> None:
        """Proposals from what the chain has seen so far; only before draws are kept."""
        values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(seen.T)))
        self.mode, self.scale = seen.mean(axis=0), vectors * np.clip(np.sqrt(np.maximum(values, 0)), LEAST, 2 * MOST)

    def move(self) -> Vector:
        rng, k, here = self.rng, len(self.mode), self.at.log_variances
        if rng.random() < WALKS:
            there, extra = here + 2.4 / np.sqrt(k) * self.scale @ rng.normal(size=k), 0.0
        else:
            there = self.mode + WIDER * self.scale @ rng.normal(size=k) * np.sqrt(DF / rng.chisquare(DF))
            extra = self._log_proposal(here) - self._log_proposal(there)
        point = self.model.at(there)
        if point is not None and np.log(rng.random()) < point.height - self.at.height + extra:
            self.at = point
        return self.at.log_variances

    def _log_proposal(self, x: Vector) -> float:
        z = np.linalg.solve(self.scale, x - self.mode) / WIDER
        return float(-(DF + len(x)) / 2 * np.log1p(z @ z / DF))
