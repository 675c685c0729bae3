"""How much does one row show in a posterior? The empirical epsilon of Abowd, Schneider and Vilhuber (2012, V.B).

The posterior of each random effect is cut into 20 bins of equal probability, and a row is deleted. Epsilon is the
largest |ln(20 p)| over bins, random effects and rows. The paper counts draws and deletes 32 rows. `audit_posterior`
computes bin probabilities without draws and deletes every row. The effect of a row on its own group is exact. Its
effect on all other groups has a proved upper bound, and is exact for the rows examined. `monte_carlo_audit` is the
published method. The figure is empirical: it speaks of these data and these deletions, and promises nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.models.bayes.blmm.deletion import Elsewhere, leave_each_out, leave_out
from discreet.models.bayes.blmm.estimate import of_fit
from discreet.models.bayes.blmm.exact import Posterior
from discreet.models.bayes.blmm.fit import BayesMixed
from discreet.models.bayes.blmm.prior import Prior
from discreet.models.bayes.spending import whole
from discreet.models.linear.influence import influential
from discreet.words.arguments import of_kinds
from discreet.words.cases import case_of
from discreet.words.errors import DataError
from discreet.words.faults import Argument
from discreet.words.progress import Progress, silent

CHUNK = 8_192  # rows deleted together
EXAMINED = 64  # rows whose effect on every group is computed
NOISE, REFINEMENTS = 1e-3, 3  # quadrature error accepted, and how often the rule is refined to reach it
ABOVE = (0.1, 1.0)  # figures that a group's rows are counted by
KIND = "empirical"
WARNING = "An empirical figure for these data and these deletions; not a privacy guarantee."

Deleted: TypeAlias = Literal["all", "influential"] | Sequence[int] | Integers


@dataclass(frozen=True, slots=True)
class RowFinding:
    """One deleted row, examined in every group.

    `own` and `elsewhere` are exact; `bin` (from 0) and `probability` are where its own group's posterior changes most.
    """

    row: int
    group: str
    group_rows: int
    own: float
    elsewhere: float
    bin: int
    probability: float

    @property
    def epsilon(self) -> float:
        return max(self.own, self.elsewhere)

    def to_dict(self) -> dict[str, Any]:
        return {
            "row": self.row,
            "group": self.group,
            "group_rows": self.group_rows,
            "epsilon": self.epsilon,
            "own": self.own,
            "elsewhere": self.elsewhere,
            "bin": self.bin,
            "probability": self.probability,
        }


@dataclass(frozen=True, repr=False)
class PosteriorAudit:
    """Rows deleted in turn.

    Attributes
    ----------
    rows, group : the rows deleted, from 0, and the place in `levels` of each one's group.
    own : the largest `|ln(bins p)|` in each row's own group, exact; shape (rows,).
    elsewhere : an upper bound on the same in all other groups; shape (rows,).
    findings : the rows examined in every group, the worst first.
    noise_floor : the largest change of a log bin probability, or of a finding, on a finer quadrature.
    """

    bins: int
    rows: Integers = field(repr=False)
    group: Integers = field(repr=False)
    levels: tuple[str, ...] = field(repr=False)
    own: Vector = field(repr=False)
    elsewhere: Vector = field(repr=False)
    findings: tuple[RowFinding, ...]
    noise_floor: float
    kind: str = KIND

    def __repr__(self) -> str:
        return f"<PosteriorAudit of {len(self.rows):,} rows: empirical epsilon {self.epsilon:.4g}>"

    @property
    def epsilon(self) -> float:
        """The empirical epsilon: the largest exact figure found."""
        return max(float(self.own.max()), self.findings[0].epsilon)

    @property
    def bound(self) -> float:
        """A bound for every row: the exact figure, or the largest bound of a row that was not examined."""
        rest = ~np.isin(self.rows, [finding.row for finding in self.findings])
        return max(self.epsilon, float(self.elsewhere[rest].max(initial=0.0)))

    @property
    def exact(self) -> bool:
        """Whether no unexamined effect on another group can exceed `epsilon`."""
        return self.bound == self.epsilon

    @property
    def settled(self) -> float:
        """Share of the rows whose own figure is proved to be their largest."""
        return float((self.own >= self.elsewhere).mean())

    def groups(self, count: int = 20) -> list[dict[str, Any]]:
        """The groups whose rows show most in them: the largest figure, its row, and how many rows exceed others."""
        size, worst = np.bincount(self.group, minlength=len(self.levels)), np.zeros(len(self.levels))
        np.maximum.at(worst, self.group, self.own)
        found = []
        for g in np.argsort(-worst, kind="stable")[:count].tolist():
            mine = np.flatnonzero(self.group == g)
            if len(mine):
                row = int(self.rows[mine[self.own[mine].argmax()]])
                above = {f"above_{level:g}": int((self.own[mine] > level).sum()) for level in ABOVE}
                found.append(
                    {"group": self.levels[g], "rows": int(size[g]), "epsilon": float(worst[g]), "row": row} | above
                )
        return found

    def to_dict(self) -> dict[str, Any]:
        """The audit as plain values, ready for JSON."""
        return {
            "kind": self.kind,
            "note": WARNING,
            "epsilon": self.epsilon,
            "exact": self.exact,
            "bound": self.bound,
            "noise_floor": self.noise_floor,
            "rows_audited": len(self.own),
            "rows_settled": self.settled,
            "bins": self.bins,
            "worst": [finding.to_dict() for finding in self.findings[:20]],
            "groups": self.groups(),
        }

    def __str__(self) -> str:
        worst = self.findings[0]
        open_end = "" if self.exact else f", at most {self.bound:.4g},"
        return (
            f"empirical epsilon {self.epsilon:.4g}{open_end} ({len(self.own):,} rows deleted in turn, "
            f"quadrature error {self.noise_floor:.1g})\n"
            f"worst: row {worst.row} of {worst.group}, a group of {worst.group_rows:,} rows\n{WARNING}"
        )


@of_kinds
def audit_posterior(
    model: BayesMixed,
    *,
    rows: Deleted = "all",
    bins: int = 20,
    examined: int = EXAMINED,
    refinements: int = REFINEMENTS,
    progress: Progress = silent,
) -> PosteriorAudit:
    """Delete rows in turn and compare the posteriors of all random effects, without Monte Carlo error.

    Parameters
    ----------
    model : a fit with a prior: `mixed(formula, data, prior=...)`.
    rows : "all", the paper's 32 "influential" ones, or places of rows, from 0.
    bins : of equal probability in each posterior with all rows.
    examined : rows whose effect on every other group is computed and not only bounded.
    refinements : how often the quadrature may be refined until its error is below 0.001.
    progress : called with what is being done and the share of it that is done.

    Returns
    -------
    The largest change of each posterior and the row that causes it.

    Examples
    --------
    >>> from discreet import Prior, mixed
    >>> data = {"y": [1, 2, 4, 3, 5, 7, 2, 4], "x": [0, 1, 2, 0, 1, 2, 0, 1], "g": list("aaabbbcc")}
    >>> audit = audit_posterior(mixed("y ~ x + (1 | g)", data, prior=Prior()))
    >>> audit.findings[0].group, round(audit.epsilon, 2)
    ('a', 1.17)
    """
    refuse_other_fits(model)
    for name, value in (("examined", examined), ("refinements", refinements)):
        if not whole(value, least=0):
            raise DataError(
                f"{name}={value!r:.40} is no number of times.",
                "A whole number from 0 on is.",
                "Leave it out.",
                about=name,
            )
    deleted = _deleted(model, rows)
    edges = benchmark_bins(model.posterior, bins)
    rest = Elsewhere.of(model.posterior, edges)
    count = len(deleted)
    own, elsewhere, groups = np.empty(count), np.empty(count), np.empty(count, dtype=np.int64)
    for start in range(0, count, CHUNK):
        group, x, y = model.design(deleted[start : start + CHUNK])
        found = leave_each_out(rest.posterior, group=group, x=x, y=y, reach=rest.reach)
        here = slice(start, start + len(y))
        groups[here] = group
        own[here] = log_ratio(found.own.bins(edges[group])).max(axis=1)
        change = np.minimum(bins * rest.bound(found), 1.0)
        with np.errstate(divide="ignore"):
            elsewhere[here] = -np.log1p(-change)
        progress("deleting rows", 0.9 * (start + len(y)) / count)
    half = max(examined // 2, 1)
    chosen = dict.fromkeys([*np.argsort(-own)[:half].tolist(), *np.argsort(-elsewhere)[:half].tolist()])
    findings = sorted(examine(model, deleted[list(chosen)].tolist(), edges), key=lambda finding: -finding.epsilon)
    floor = _noise_floor(model, findings[:half], edges)
    if floor > NOISE and refinements:
        finer = replace(model, found=model.posterior.refined())
        again = {"bins": bins, "examined": examined, "refinements": refinements - 1}
        return audit_posterior(finer, rows=deleted, **again, progress=progress)
    progress("deleting rows", 1.0)
    return PosteriorAudit(bins, deleted, groups, model.levels, own, elsewhere, tuple(findings), floor)


def refuse_other_fits(model: object) -> None:
    if not isinstance(model, BayesMixed):
        raise DataError(
            f"A {type(model).__name__} has no posterior to audit.",
            "A fit with a prior and one random intercept has.",
            "Use mixed('y ~ x + (1 | g)', data, prior=Prior()).",
            about="model",
        )


def _deleted(model: BayesMixed, rows: Deleted) -> Integers:
    """Places of the rows to delete."""
    if isinstance(rows, str):
        if rows not in ("all", "influential"):
            raise DataError(
                (Argument("rows", rows), " is unknown."),
                "It is 'all', 'influential' or a list of places from 0.",
                "Use 'all'.",
                about="rows",
            )
        return (
            influential(model.fit).rows
            if case_of(rows, {"influential": True, "all": False})
            else np.arange(model.fit.rows)
        )
    asked = np.asarray(rows)
    fits = asked.ndim == 1 and asked.size > 0 and np.issubdtype(asked.dtype, np.integer)
    if not (fits and asked.min() >= 0 and asked.max() < model.fit.rows):
        raise DataError(
            f"{asked.size} rows were named and not all of them exist.",
            f"Places are whole numbers from 0 to {model.fit.rows - 1:,}.",
            "Use rows='all' for every one.",
            about="rows",
        )
    return np.unique(asked).astype(np.int64)


def benchmark_bins(posterior: Posterior, bins: int) -> Matrix:
    """Edges of bins of equal probability in the posterior of every random effect, (G, bins - 1)."""
    if not whole(bins, least=2):
        raise DataError(
            (Argument("bins", bins), " compares nothing."),
            "A whole number of at least 2 is possible.",
            "Use 20, as the paper does.",
            about="bins",
        )
    return posterior.effects.quantile(np.arange(1, bins) / bins)


def log_ratio(probabilities: Matrix) -> Matrix:
    """|ln(p / (1 / bins))|, infinite where a bin is empty."""
    with np.errstate(divide="ignore"):
        found: Matrix = np.abs(np.log(np.maximum(probabilities, 0.0) * probabilities.shape[-1]))
    return found


def examine(model: BayesMixed, rows: list[int], edges: Matrix) -> list[RowFinding]:
    """Delete some rows in turn and compare every group exactly."""
    group, x, y = model.design(np.array(rows))
    findings = []
    for row, g, design, response in zip(rows, group.tolist(), x, y.tolist(), strict=True):
        probabilities = leave_out(model.posterior, group=g, x=design, y=response).bins(edges)
        ratios = log_ratio(probabilities)
        worst = int(ratios[g].argmax())
        others = float(np.delete(ratios, g, axis=0).max())
        size = int(model.posterior.model.n[g])
        place = (float(ratios[g, worst]), others, worst, float(probabilities[g, worst]))
        findings.append(RowFinding(row, model.levels[g], size, *place))
    return findings


def bins_without(model: BayesMixed, row: int, *, bins: int = 20) -> Vector:
    """Probabilities of the bins of a row's own group without that row; with it they are equal."""
    group, x, y = model.design(_deleted(model, [row]))
    edges = benchmark_bins(model.posterior, bins)
    found: Vector = leave_each_out(model.posterior, group=group, x=x, y=y).own.bins(edges[group])[0]
    return found


def own_epsilon(model: BayesMixed, rows: Integers, *, bins: int = 20) -> Vector:
    """The exact figure of some rows in their own groups."""
    edges = benchmark_bins(model.posterior, bins)
    group, x, y = model.design(rows)
    found: Vector = log_ratio(leave_each_out(model.posterior, group=group, x=x, y=y).own.bins(edges[group])).max(axis=1)
    return found


def sensitivity(model: BayesMixed, rows: Integers, nus: tuple[float, ...], *, bins: int = 20) -> list[dict[str, float]]:
    """The largest own figure over some rows as the paper's prior gains degrees of freedom."""
    found = []
    for nu in nus:
        other = of_fit(model.fit, prior=Prior.paper(nu))
        assert isinstance(other, BayesMixed)
        at = own_epsilon(other, rows, bins=bins)
        variances = [other.posterior.variance(which).mean for which in (0, 1)]
        found.append({"nu": nu, "epsilon": float(at.max()), "residual": variances[0], "group": variances[1]})
    return found


def _noise_floor(model: BayesMixed, findings: list[RowFinding], edges: Matrix) -> float:
    """The whole computation again on a finer quadrature: benchmark bins, and the worst rows."""
    finer = model.posterior.refined()
    benchmark = float(log_ratio(finer.effects.bins(edges)).max())
    bins = edges.shape[1] + 1
    group, x, y = model.design(np.array([finding.row for finding in findings]))
    fine_edges = benchmark_bins(finer, bins)
    again = log_ratio(leave_each_out(finer, group=group, x=x, y=y).own.bins(fine_edges[group])).max(axis=1)
    return max(benchmark, float(np.abs(again - [finding.own for finding in findings]).max()))
