"""The empirical epsilon as published: Gibbs draws counted in bins, a few influential rows deleted, a replicate beside.

Abowd, Schneider and Vilhuber (2012, V.B): 10,000 draws cut each u_c into 20 bins of 500. A sampler without row i is run
anew, and its draws are counted in those bins. Epsilon is the largest |ln(count / 500)|. A replicate with all rows shows
what chance alone gives, the noise floor. Without Monte Carlo error: `audit.posterior`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.audit.posterior import KIND, WARNING, log_ratio, refuse_other_fits
from discreet.models.bayes.blmm.conditional import PosteriorModel
from discreet.models.bayes.blmm.fit import BayesMixed
from discreet.models.bayes.blmm.gibbs import Chains, gibbs
from discreet.models.bayes.spending import whole
from discreet.models.linear.influence import Influential, influential
from discreet.words.arguments import of_kinds
from discreet.words.errors import DataError
from discreet.words.progress import Progress, silent


@dataclass(frozen=True, repr=False)
class MonteCarloAudit:
    """Counts of draws in the benchmark's bins.

    Attributes
    ----------
    rows, reasons : the rows deleted, and which rule chose each.
    epsilons : the largest `|ln(count / expected)|` of each deleted row; infinite where a bin stayed empty.
    replicate, worst : counts (G, bins) of the second benchmark chain and of the worst deletion.
    extremes : smallest and largest count without each row, (rows, 2).
    benchmark : the two chains with all rows.
    """

    draws: int
    rows: Integers
    reasons: tuple[str, ...]
    epsilons: Vector
    extremes: Integers
    replicate: Integers = field(repr=False)
    worst: Integers = field(repr=False)
    benchmark: Chains = field(repr=False)
    kind: str = KIND

    def __repr__(self) -> str:
        return f"<MonteCarloAudit of {len(self.rows):,} rows, {self.draws:,} draws: epsilon {self.epsilons.max():.4g}>"

    @property
    def epsilon(self) -> float:
        """The largest empirical epsilon of the deleted rows."""
        return float(self.epsilons.max())

    @property
    def worst_row(self) -> int:
        """The row that has it."""
        return int(self.rows[self.epsilons.argmax()])

    @property
    def noise_floor(self) -> float:
        """The figure of a replicate with all rows: no figure below it means anything."""
        return float(log_ratio(self.replicate / self.draws).max())

    def __str__(self) -> str:
        told = (
            f"empirical epsilon {self.epsilon:.4g} by {self.draws:,} draws ({len(self.rows):,} rows deleted in turn), "
            f"of which chance alone gives {self.noise_floor:.4g}\nworst: row {self.worst_row}, counts from "
            f"{int(self.extremes[:, 0].min()):,} to {int(self.extremes[:, 1].max()):,} where "
            f"{self.draws / self.worst.shape[1]:,.0f} are expected"
        )
        return "\n".join([told, *(f"Note: {note}" for note in self.benchmark.notes), WARNING])

    def to_dict(self) -> dict[str, Any]:
        """The audit as plain values, ready for JSON."""
        return {
            "kind": self.kind,
            "note": WARNING,
            "epsilon": self.epsilon,
            "noise_floor": self.noise_floor,
            "draws": self.draws,
            "rows_deleted": len(self.rows),
            "worst_row": self.worst_row,
            "smallest_count": int(self.extremes[:, 0].min()),
            "largest_count": int(self.extremes[:, 1].max()),
            "notes": list(self.benchmark.notes),
        }


@of_kinds
def monte_carlo_audit(
    model: BayesMixed,
    *,
    rows: Influential | None = None,
    draws: int = 10_000,
    warmup: int | None = None,
    bins: int = 20,
    seed: int = 0,
    progress: Progress = silent,
) -> MonteCarloAudit:
    """Delete rows in turn and compare sampled posteriors: the published method.

    Parameters
    ----------
    model : a fit with a prior: `mixed(formula, data, prior=...)`.
    rows : the rows to delete; by default the paper's 32 influential ones.
    draws, warmup : draws kept in each chain, and those before them, by default as many.
    bins : of equal probability in each posterior with all rows.
    seed : of the chains.
    progress : called with what is being done and the share of it that is done.

    Returns
    -------
    The largest change that the draws show, Monte Carlo error included.

    Examples
    --------
    >>> audit = monte_carlo_audit(fit, draws=1_000)                                 # doctest: +SKIP
    """
    refuse_other_fits(model)
    if not (whole(bins, least=2) and whole(draws, least=int(bins))):
        raise DataError(
            f"{draws} draws in {bins} bins cannot be compared.",
            "At least 2 bins and a draw for each are possible.",
            "Use the paper's 10,000 draws in 20 bins.",
            about="bins",
        )
    rng = np.random.default_rng(seed)
    chosen = influential(model.fit) if rows is None else rows
    steps = len(chosen.rows) + 2
    benchmark = gibbs(model.posterior, draws=draws, chains=2, warmup=warmup, rng=rng)
    progress("sampling without rows", 2 / steps)
    edges = draw_bins(benchmark.u[0], bins)
    replicate = counts(benchmark.u[1], edges)
    group, x, y = model.design(chosen.rows)
    epsilons, extremes, worst = [], [], replicate
    for i, g in enumerate(group.tolist()):
        left = model.fit.moments.downdate(group=g, x=x[i : i + 1], y=y[i : i + 1])
        origin = model.fit.origin
        deleted = PosteriorModel.of(left, model.prior, restore=origin.restore, offset=origin.offset)
        sampled = gibbs(model.posterior, model=deleted, draws=draws, chains=1, warmup=warmup, rng=rng, judge=False)
        found = counts(sampled.u[0], edges)
        epsilons.append(float(log_ratio(found / draws).max()))
        extremes.append((int(found.min()), int(found.max())))
        if epsilons[-1] == max(epsilons):
            worst = found
        progress("sampling without rows", (i + 3) / steps)
    return MonteCarloAudit(
        draws, chosen.rows, chosen.reasons, np.array(epsilons), np.array(extremes), replicate, worst, benchmark
    )


def draw_bins(draws: Matrix, bins: int, *, block: int = 256) -> Matrix:
    """Edges that cut the draws (T, G) of each random effect into bins of equal count, (G, bins - 1)."""
    levels = np.arange(1, bins) / bins
    parts = [np.quantile(draws[:, g : g + block], levels, axis=0).T for g in range(0, draws.shape[1], block)]
    return np.concatenate(parts)


def counts(draws: Matrix, edges: Matrix) -> Integers:
    """Draws (T, G) in each bin of each random effect, (G, bins)."""
    below = np.stack([(draws <= edge).sum(axis=0) for edge in edges.T], axis=1)
    return np.diff(below, axis=1, prepend=0, append=len(draws)).astype(np.int64)
