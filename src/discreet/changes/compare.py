"""Which forecasts foresee large changes? One call from tidy frames to a tested ranking.

The steps are elsewhere: `panel` aligns the frames, `standards` marks the large changes and puts forecasts on their
scale, `bootstrap` measures, `exchange` tests, `combine` adds rules of rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from discreet import chart
from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.changes import exchange, scored, standards
from discreet.changes.cases import Cases, Missing, cases
from discreet.changes.combine import Rule
from discreet.changes.judged import Rules
from discreet.changes.kendall import Kendall, kendall
from discreet.changes.panel import Gaps, told
from discreet.changes.scored import Gold, Scale, score
from discreet.changes.standards import Cutoff, Direction, Policy, Regression, Standard
from discreet.chart import Chart
from discreet.results import Result, rows_table, tidy_table
from discreet.roc import curve as roc
from discreet.roc.bootstrap import Replicates, replicate
from discreet.roc.curve import Curve, Range
from discreet.words.arguments import of_kinds
from discreet.words.cases import case_of
from discreet.words.errors import DataError
from discreet.words.faults import Argument

FEW = 30
"""Positives below which limits of partial areas are flagged."""

FEW_CLUSTERS = 15
"""Clusters with positives below which they are."""

Resampled: TypeAlias = Literal["cases", "series", "period"]


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
    left_out : how many cases could not be judged, since their history does not vary, is too short or has many gaps.
    set_aside : the series of another frequency, with an infinite value or with rows after the others' end.
    value : what the cases are worth, if positives are weighted by it.
    resample, clusters : what was resampled as a whole, and how many of these have positives.
    sided : whether an alarm must name the right direction.
    plain : p-values without drawing, where those in `p` are randomised because large changes are scarce.
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
    cutoff: Cutoff
    silent: int = 0
    left_out: int = 0
    set_aside: tuple[str, ...] = ()
    value: Vector | None = None
    resample: Resampled = "cases"
    clusters: int = 0
    sided: bool = False
    plain: Vector | None = None

    @property
    def drawn(self) -> bool:
        """Whether p-values are randomised."""
        return self.plain is not None

    @property
    def undrawn(self) -> Vector:
        """p-values without drawing: a verdict must not be a lottery."""
        return self.p if self.plain is None else self.plain

    @property
    def best(self) -> str:
        """The name of the method with the largest partial area."""
        return self.methods[0]

    @property
    def warning(self) -> str:
        """What few large changes mean for the figures; empty if there are enough."""
        found = int(self.positive.sum())
        whose = case_of(self.resample, {"cases": None, "series": "series", "period": "periods"})
        if whose is not None and self.clusters < FEW_CLUSTERS:
            return (
                f"Only {self.clusters} {whose} have large changes. Limits and p-values are rough below {FEW_CLUSTERS}. "
                "Add series or periods, or lower the cutoff."
            )
        if found >= FEW:
            return ""
        return (
            f"Only {found} large change{'s' if found != 1 else ''} took part. Limits are too narrow below {FEW}, and "
            f"equal methods look different; p-values stay valid{self._least}. Add series or periods, or lower the "
            "cutoff."
        )

    @property
    def note(self) -> str:
        """How this comparison differs from the paper's; empty if it does not."""
        parts = []
        if self.value is not None:
            parts.append("Large changes count by the size of their series.")
        if self.sided:
            parts.append("An alarm is right only if it names the direction; drawing lots has half of the usual area.")
        if self.drawn:
            parts.append(
                "Large changes are few: p-values were drawn among equal leads, so that they keep their level, and "
                "another seed gives others. Beside them are those without drawing, which are seldom small or never."
            )
        one = case_of(self.resample, {"cases": None, "series": "a series", "period": "a period"})
        if one is not None:
            parts.append(f"Limits and p-values treat {one} as one ({self.clusters} have large changes).")
        return " ".join(parts)

    @property
    def _least(self) -> str:
        least = exchange.least(len(self.methods), int(self.positive.sum()))
        return f", and none can be far below {least:.2g}" if least > 0.01 and not self.drawn else ""

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
                "p_plain": float(self.undrawn[i]) if i else None,
            }
            for i, name in enumerate(self.methods)
        ]

    def to_arrow(self) -> Any:
        """`rows` as a PyArrow table."""
        return rows_table(self.rows())

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
            have = f"Methods are: {', '.join(self.methods)}."
            raise DataError(f"Method {method!r} was not compared.", have, "Name one of them.", about="method")
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
            f"{positives} large change{'s' if positives != 1 else ''} in {len(self.positive)} cases at cutoff "
            f"{standards.spelled_cutoff(self.cutoff)}, horizon {self.horizon} ({undone} only undo an opposite jump).",
            f"Partial area for false positive rates {lo:g} to {hi:g}; p: could equal methods differ by as much?",
        ]
        lines += [note for note in (self.note, self.warning) if note]
        if self.silent:
            lines.append(f"{self.silent} series of the panel have no forecast and took no part.")
        if self.left_out:
            lines.append(
                f"{self.left_out} cases could not be judged: their history does not vary, is too short or has gaps "
                "that are many or recent."
            )
        if self.set_aside:
            lines.append(
                f"{len(self.set_aside)} series have another frequency, an infinite value or rows after the others' "
                f"end: {told(self.set_aside)}."
            )
        width = max(len(name) for name in self.methods)
        for row in self.rows():
            p = "best" if row["p"] is None else f"{row['p']:.3f}"
            p += f" ({row['p_plain']:.3f} without drawing)" if self.drawn and row["p"] is not None else ""
            lines.append(f"{row['method']:<{width}}  {row['pauc']:.4f} [{row['low']:.4f}, {row['high']:.4f}]  {p}")
        if self.concordance:
            lines.append(f"Kendall tau with complexity {self.concordance.tau:.3f}, p = {self.concordance.p:.3f}.")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """What goes to JSON."""
        tau = self.concordance
        return {
            "horizon": self.horizon,
            "cutoff": dict(self.cutoff) if isinstance(self.cutoff, Mapping) else self.cutoff,
            "fpr": list(self.fpr),
            "cases": len(self.positive),
            "positives": int(self.positive.sum()),
            "regression": int(self.standard.regression.sum()),
            "series_without_forecast": self.silent,
            "cases_left_out": self.left_out,
            "set_aside": list(self.set_aside),
            "warning": self.warning or None,
            "note": self.note or None,
            "methods": self.rows(),
            "kendall": None if tau is None else {"tau": tau.tau, "p": tau.p, "n": tau.n},
        }


@of_kinds
def compare_large_changes(
    panel: Any,
    forecasts: Any,
    *,
    horizon: int = 1,
    cutoff: Cutoff = 0.95,
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
    scale: Scale = "changes",
    sided: bool = False,
    by_value: bool = False,
    resample: Resampled = "cases",
    block: int = 1,
    randomised: bool = True,
) -> Comparison:
    """Rank forecasting methods by how well they foresee large changes.

    Parameters
    ----------
    panel : frame of `series`, `t`, `value`.
    forecasts : frame of `series`, `method`, `t`, `forecast` (and `horizon`, if it holds several).
    horizon : how many periods ahead the forecasts look.
    cutoff, direction, policy, regression : the gold standard, see `standards.large_changes`. With direction "both" each
        direction may have its own cutoff, such as {"decline": 0.99, "increase": 0.95}.
    fpr : range of false positive rates that the planner can live with.
    combine : further methods by name, each a rule over given ones.
    complexity : a rank per method; those without one stay out of Kendall's tau, and so do combinations.
    resamples, seed : the number of resamples for intervals and p-values, and the seed of their draws.
    missing : what to do with a case that a method does not forecast: "refuse" or "drop".
    lag : over how many periods changes are measured: 1, or a season, such as 12.
    gaps : what a period means that a series lacks: "skip" passes it over, "zero", or "carry" the value before.
    until : the last period of the panel to read.
    scale : what forecasts are measured in: "changes" of the series (the paper), the same over the spread of the
        "method", or the method's own "forecasts" of the series at earlier origins (section 1.3.1).
    sided : with direction "both", whether an alarm must name the direction to be right.
    by_value : weight large changes by the size of the series, its mean up to the origin.
    resample, block : what is resampled and exchanged as a whole: "cases", all cases of a "series", or of a "period";
        with a block, that many consecutive periods.
    randomised : with at most six large changes, draw p-values at random among equal leads. Those of equally good
        methods are then below a level as often as the level says, and not less often or never; p-values without drawing
        stand beside them.

    Returns
    -------
    The methods, best first. Cases whose outcome is not in the panel yet, and those whose history does not vary or is
    too short, are left out.

    Examples
    --------
    >>> compare_large_changes("panel.csv", "forecasts.csv").best                    # doctest: +SKIP
    """
    _check_ways(direction, sided=sided, resample=resample, block=block)
    aligned = (
        forecasts
        if isinstance(forecasts, Cases)
        else cases(panel, forecasts, horizon=horizon, missing=missing, gaps=gaps, until=until)
    )
    aligned = aligned.select(np.isfinite(aligned.actual))
    if not len(aligned):
        none = "No forecast is for a period that the panel holds, so none can be judged."
        raise DataError(none, remedy="Add the outcomes.", about="forecasts")
    gold = Gold(cutoff, direction, policy, regression, lag, scale)
    found = score(aligned, gold, horizon=horizon, rules=Rules(), sided=sided)
    standard = standards.large_changes(
        found.base, found.cases.actual, cutoff=cutoff, policy=policy, direction=direction, regression=regression
    )
    by_name = dict(zip(aligned.methods, scored.on_its_side(found, gold) if sided else found.scores, strict=True))
    rules = {name: rule.score(by_name) for name, rule in (combine or {}).items()}
    taken = sorted(set(rules) & set(by_name))
    if taken:
        twice = f"Combination {taken[0]!r} has the name of a method."
        raise DataError(twice, remedy="Choose another.", about="combinations")
    kept = standard.kept
    scores, positive = np.stack([*by_name.values(), *rules.values()])[:, kept], standard.positive[kept]
    value = np.abs(found.base.level_mean[kept]) if by_value else None
    cluster = _clusters(found.cases, kept, resample)
    result = replicate(
        positive, scores, fpr=fpr, resamples=resamples, rng=seed, value=value, cluster=cluster, block=block
    )
    exchanged = cluster if cluster is None else cluster // block
    about: dict[str, Any] = {"fpr": fpr, "exchanges": resamples, "rng": seed, "value": value, "cluster": exchanged}
    plain = exchange.leads(positive, scores, **about)
    drawn = randomised and exchange.is_scarce(positive, exchanged)
    p = exchange.leads(positive, scores, **about, randomised=True) if drawn else plain
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
        value=value,
        resample=resample,
        clusters=0 if exchanged is None else len(np.unique(exchanged[positive])),
        sided=sided,
        plain=plain[order] if drawn else None,
    )


def _check_ways(direction: Direction, *, sided: bool, resample: Resampled, block: int) -> None:
    if sided and direction != "both":
        raise DataError(
            (Argument("sided", sided), f" was asked for with direction {direction!r}."),
            "A side is right or wrong only where changes both ways count.",
            "Use direction 'both', or leave it out.",
            about="sided",
        )
    if resample not in get_args(Resampled):
        raise DataError(
            (Argument("resample", resample), " is not known."),
            f"It is one of {', '.join(get_args(Resampled))}.",
            "Use 'series' where each series has several cases.",
            about="resample",
        )
    if block < 1 or (block > 1 and resample != "period"):
        raise DataError(
            (Argument("block", block), f" does not go with resampling by {resample}."),
            "A block is a number of consecutive periods.",
            "Use resample='period' and for example a block of 3.",
            about="block",
        )


def _clusters(made: Cases, kept: Mask, resample: Resampled) -> Integers | None:
    """A number from 0 for every case: its series, or its place in time."""
    whose = case_of(resample, {"cases": None, "series": made.row, "period": made.origin})
    if whose is None:
        return None
    return np.asarray(np.unique(whose[kept], return_inverse=True)[1])
