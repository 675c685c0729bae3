"""Which forecasts foresee large changes? One call from tidy frames to a tested ranking.

The steps are elsewhere: `panel` aligns the frames, `standards` marks the large changes and puts forecasts on their
scale, `bootstrap` measures, `exchange` tests, `combine` adds rules of rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import chart
from discreet.arrays import Mask, Matrix, Vector
from discreet.change import exchange, roc, standards
from discreet.change.bootstrap import Replicates, replicate
from discreet.change.cases import Missing, cases
from discreet.change.combine import Rule
from discreet.change.judged import Rules
from discreet.change.kendall import Kendall, kendall
from discreet.change.panel import Gaps, told
from discreet.change.roc import Curve, Range
from discreet.change.scored import Gold, score
from discreet.change.standards import Direction, Policy, Regression, Standard
from discreet.chart import Chart
from discreet.errors import DataError
from discreet.results import Result, tidy_table

FEW = 30
"""Positives below which limits of partial areas are flagged."""


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Result):
    """Methods ranked by their partial area, tested against the best of them.

    Attributes
    ----------
    methods : names, best first; `scores` and `replicates` are in the same order.
    positive, scores : the cases that took part, shapes (cases,) and (methods, cases); larger is more alarming.
    standard : the gold standard on all cases.
    replicates : partial areas on the data and on common resamples.
    p : could equally good methods differ as the best and this one do? The choice of the best is accounted for.
    concordance : Kendall's tau of the partial areas with the complexity ranks, if these were given.
    silent : how many of the panel's series nobody forecasts.
    left_out : how many cases could not be judged, since their history does not vary or is too short.
    set_aside : the series with gaps or of another frequency.
    """

    methods: tuple[str, ...]
    positive: Mask
    scores: Matrix
    standard: Standard
    replicates: Replicates
    p: Vector
    concordance: Kendall | None
    fpr: Range
    horizon: int
    cutoff: float
    silent: int = 0
    left_out: int = 0
    set_aside: tuple[str, ...] = ()

    @property
    def best(self) -> str:
        """The name of the method with the largest partial area."""
        return self.methods[0]

    @property
    def warning(self) -> str:
        """What few large changes mean for the figures; empty if there are enough."""
        found = int(self.positive.sum())
        if found >= FEW:
            return ""
        return (
            f"Only {found} large change{'s' if found != 1 else ''} took part. Limits are too narrow below {FEW}, and "
            f"equal methods look different; p-values stay valid{self._least}. Add series or periods, or lower the "
            "cutoff."
        )

    @property
    def _least(self) -> str:
        least = exchange.least(len(self.methods), int(self.positive.sum()))
        return f", and none can be far below {least:.2g}" if least > 0.01 else ""

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per method: areas, interval, the best's lead in standard deviations and its p-value."""
        area, (low, high) = self.replicates.area, self.replicates.interval().T
        standardised = roc.rescale(area, *self.fpr, "mcclish")
        auc = roc.auc(self.positive, self.scores)
        leads = [None] + [self.replicates.test(0, i)[0] for i in range(1, len(self.methods))]
        return [
            {
                "method": name,
                "pauc": float(area[i]),
                "low": float(low[i]),
                "high": float(high[i]),
                "mcclish": float(standardised[i]),
                "auc": float(auc[i]),
                "statistic": leads[i],
                "p": float(self.p[i]) if i else None,
            }
            for i, name in enumerate(self.methods)
        ]

    def to_arrow(self) -> Any:
        """`rows` as a PyArrow table."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.rows())

    def tidy(self) -> Any:
        """The partial area of each method, in the columns of `discreet.results.COLUMNS`."""
        rows = self.rows()
        return tidy_table(
            effect="partial area",
            group="method",
            level=self.methods,
            estimate=[row["pauc"] for row in rows],
            std_error=self.replicates.draws.std(axis=1, ddof=1),
            lower=[row["low"] for row in rows],
            upper=[row["high"] for row in rows],
            flag="few large changes" if self.warning else None,
        )

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.methods)} methods on {len(self.positive):,} cases, best {self.best!r}>"

    def __str__(self) -> str:
        return self.summary()

    def curve(self, method: str) -> Curve:
        """The ROC curve of a method."""
        if method not in self.methods:
            raise DataError(
                f"Method {method!r} was not compared; methods are: {', '.join(self.methods)}.", about="method"
            )
        return roc.curve(self.positive, self.scores[self.methods.index(method)])

    def plot_roc(self, methods: Sequence[str] | None = None) -> Chart:
        """ROC curves over the range of false positive rates, with the line of chance; six methods at most."""
        chosen = list(methods or self.methods[:5])
        lo, hi = self.fpr
        points: list[dict[str, Any]] = []
        for name in chosen:
            c = self.curve(name)
            inside = (c.fpr > lo) & (c.fpr < hi)
            x = np.concatenate([[lo], c.fpr[inside], [hi]])
            y = np.concatenate([c.at([lo]), c.tpr[inside], c.at([hi])])
            points += [
                {"method": name, "fpr": float(a), "tpr": float(b), "order": k}
                for k, (a, b) in enumerate(zip(x, y, strict=True))
            ]
        points += [{"method": "chance", "fpr": end, "tpr": end, "order": k} for k, end in enumerate((lo, hi))]
        domain = [*chosen, "chance"]
        told = chart.name("method", None, scale={"domain": domain})
        channels = {
            "x": chart.number("fpr", "False positive rate", scale={"domain": [lo, hi]}),
            "y": chart.number("tpr", "True positive rate"),
            "color": told,
            "strokeDash": told,
            "order": chart.number("order"),
        }
        return Chart({**chart.mark("line", channels, points), "width": 520, "height": 380})

    def summary(self) -> str:
        """The ranking as text."""
        lo, hi = self.fpr
        positives, undone = int(self.positive.sum()), int(self.standard.regression.sum())
        lines = [
            f"{positives} large changes in {len(self.positive)} cases at cutoff {self.cutoff:g}, "
            f"horizon {self.horizon} ({undone} cases only undo an opposite jump).",
            f"Partial area for false positive rates {lo:g} to {hi:g}; p: could equal methods differ by as much?",
        ]
        if self.warning:
            lines.append(self.warning)
        if self.silent:
            lines.append(f"{self.silent} series of the panel have no forecast and took no part.")
        if self.left_out:
            lines.append(f"{self.left_out} cases could not be judged: their history does not vary or is too short.")
        if self.set_aside:
            lines.append(f"{len(self.set_aside)} series have gaps or another frequency: {told(self.set_aside)}.")
        width = max(len(name) for name in self.methods)
        for row in self.rows():
            p = "best" if row["p"] is None else f"{row['p']:.3f}"
            lines.append(f"{row['method']:<{width}}  {row['pauc']:.4f} [{row['low']:.4f}, {row['high']:.4f}]  {p}")
        if self.concordance:
            lines.append(f"Kendall tau with complexity {self.concordance.tau:.3f}, p = {self.concordance.p:.3f}.")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """What goes to JSON."""
        tau = self.concordance
        return {
            "horizon": self.horizon,
            "cutoff": self.cutoff,
            "fpr": list(self.fpr),
            "cases": len(self.positive),
            "positives": int(self.positive.sum()),
            "regression": int(self.standard.regression.sum()),
            "series_without_forecast": self.silent,
            "cases_left_out": self.left_out,
            "set_aside": list(self.set_aside),
            "warning": self.warning or None,
            "methods": self.rows(),
            "kendall": None if tau is None else {"tau": tau.tau, "p": tau.p, "n": tau.n},
        }


def compare_large_changes(
    panel: Any,
    forecasts: Any,
    *,
    horizon: int = 1,
    cutoff: float = 0.95,
    direction: Direction = "decline",
    policy: Policy = "relative",
    regression: Regression = "negative",
    fpr: Range = (0.0, 0.2),
    combine: Mapping[str, Rule] | None = None,
    complexity: Mapping[str, float] | None = None,
    resamples: int = 1000,
    seed: int = 0,
    missing: Missing = "refuse",
    lag: int = 1,
    gaps: Gaps = "skip",
    until: Any = None,
) -> Comparison:
    """Rank forecasting methods by how well they foresee large changes.

    Parameters
    ----------
    panel : frame of `series`, `t`, `value`.
    forecasts : frame of `series`, `method`, `t`, `forecast` (and `horizon`, if it holds several).
    horizon : how many periods ahead the forecasts look.
    cutoff, direction, policy, regression : the gold standard, see `standards.large_changes`.
    fpr : range of false positive rates that the planner can live with.
    combine : further methods by name, each a rule over given ones.
    complexity : a rank per method; those without one stay out of Kendall's tau, and so do combinations.
    resamples, seed : how many resamples make the intervals and p-values, and what they are drawn from.
    missing : what to do with a case that a method does not forecast: "refuse" or "drop".
    lag : over how many periods changes are measured: 1, or a season, such as 12.
    gaps : what a period means that a series lacks: "skip" sets the series aside, "zero", or "carry" the value before.
    until : the last period of the panel to read.

    Returns
    -------
    The methods, best first. Cases whose outcome is not in the panel yet, and those whose history does not vary or is
    too short, are left out.

    Examples
    --------
    >>> compare_large_changes("panel.csv", "forecasts.csv").best                    # doctest: +SKIP
    """
    aligned = cases(panel, forecasts, horizon=horizon, missing=missing, gaps=gaps, until=until)
    aligned = aligned.select(np.isfinite(aligned.actual))
    if not len(aligned):
        raise DataError(
            "No forecast is for a period that the panel holds, so none can be judged; add the outcomes.",
            about="forecasts",
        )
    found = score(aligned, Gold(cutoff, direction, policy, regression, lag), horizon=horizon, rules=Rules())
    standard = standards.large_changes(
        found.base, found.cases.actual, cutoff=cutoff, policy=policy, direction=direction, regression=regression
    )
    by_name = dict(zip(aligned.methods, found.scores, strict=True))
    rules = {name: rule.score(by_name) for name, rule in (combine or {}).items()}
    taken = sorted(set(rules) & set(by_name))
    if taken:
        raise DataError(f"Combination {taken[0]!r} has the name of a method; choose another.", about="combinations")
    scores = np.stack([*by_name.values(), *rules.values()])[:, standard.kept]
    positive = standard.positive[standard.kept]
    result = replicate(positive, scores, fpr=fpr, resamples=resamples, rng=seed)
    p = exchange.leads(positive, scores, fpr=fpr, exchanges=resamples, rng=seed)
    names = [*by_name, *rules]
    order = np.argsort(-result.area, kind="stable")
    ranked = [name for name in by_name if name in (complexity or {})]
    return Comparison(
        methods=tuple(names[i] for i in order),
        positive=positive,
        scores=scores[order],
        standard=standard,
        replicates=Replicates(area=result.area[order], draws=result.draws[order]),
        p=p[order],
        concordance=kendall([result.area[names.index(name)] for name in ranked], [complexity[name] for name in ranked])
        if complexity
        else None,
        fpr=roc.false_positive_range(fpr),
        horizon=horizon,
        cutoff=cutoff,
        silent=aligned.silent,
        left_out=found.left_out,
        set_aside=tuple(name for name, _ in aligned.panel.set_aside),
    )
