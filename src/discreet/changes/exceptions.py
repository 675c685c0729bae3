"""The exception report: which series to look at next, ranked, with the right and wrong alarms to expect.

Past forecasts, whose outcomes the panel holds, teach (`alarms`); forecasts of the coming period are ranked and flagged,
as many as a capacity or costs allow. Only possible changes are ranked and counted. A series is set aside with the
reason if the gold standard cannot call it a large change, which is known at the origin, if it has ended, or if it
cannot be judged. Past cases of these kinds are not learned from. The report as a page is in `changes.page`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.changes import judged, listed
from discreet.changes.alarms import BARELY, ListLength
from discreet.changes.calibration import LEVEL
from discreet.changes.cases import Missing
from discreet.changes.forecasters import QUICK
from discreet.changes.judged import Rules
from discreet.changes.lists import ListRule, Lists
from discreet.changes.operating import OperatingPoint
from discreet.changes.panel import Gaps, named, told
from discreet.changes.scored import Gold, Scale, Scored
from discreet.changes.standards import Cutoff, Direction, Policy, Regression
from discreet.results import Result, rows_table, tidy_table
from discreet.roc import curve as roc
from discreet.roc.curve import Curve, Range
from discreet.words.arguments import of_kinds
from discreet.words.caveats import WHOLE
from discreet.words.errors import DataError
from discreet.words.faults import Spelled
from discreet.words.progress import Progress, silent


@dataclass(frozen=True, slots=True, repr=False)
class ExceptionReport(Result):
    """Series in order of alarm.

    Attributes
    ----------
    method : whose forecasts rank the series; its partial area on the past is `pauc`, within `pauc_limits`.
    curve, point : its ROC curve on the past, and the decision rule on it.
    capacity : how many series can be looked at, if that sets the threshold; None if costs do.
    past, past_positives, past_periods : the cases that calibrate it.
    left_out : false and true positive rates of past cases whose own period had no part in choosing the threshold: these
        rates are to be expected. The point's own rates are too good because of the choice. NaN where none can be left
        out.
    rows : every series that may change in the coming period, most alarming first, with the chance that it is a large
        change, its limits, and the right and false alarms to expect when stopping there.
    details : of each series on the list: its recent values, the reason, its rank a period before, its alarms so far.
    right : limits of the number of right alarms on the list, in 9 of 10 periods.
    history : the lists that the same rule would have made in past periods.
    lift : right alarms on past lists in multiples of what lists drawn at random would have had.
    set_aside : the series that are not ranked, and why.
    gaps : the ranked series that lack periods, which, and what was done.
    choices : what other costs or capacities would flag.
    """

    method: str
    pauc: float
    pauc_limits: tuple[float, float]
    curve: Curve
    point: OperatingPoint
    direction: Direction
    capacity: int | None
    past: int
    past_positives: int
    past_periods: int
    left_out: tuple[float, float]
    rows: list[dict[str, Any]]
    details: list[dict[str, Any]]
    right: tuple[int, int]
    history: list[dict[str, Any]]
    lift: float
    fpr: Range
    set_aside: list[dict[str, Any]]
    gaps: list[dict[str, Any]]
    choices: list[dict[str, Any]]

    @property
    def flagged(self) -> list[dict[str, Any]]:
        """The rows of the series that are on the list."""
        return [row for row in self.rows if row["flag"]]

    @property
    def expected_true(self) -> float:
        """Large changes to expect among the flags."""
        return float(sum(row["chance"] for row in self.flagged))

    @property
    def expected_false(self) -> float:
        """False alarms to expect among the flags."""
        return len(self.flagged) - self.expected_true

    @property
    def warning(self) -> str:
        """A warning if the scores have little or no information; empty otherwise."""
        chance = (self.fpr[1] ** 2 - self.fpr[0] ** 2) / 2
        if self.pauc_limits[0] <= chance:
            return (
                f"NO BETTER THAN CHANCE. The partial area of {self.method} on the past is {self.pauc:.4f}, between "
                f"{self.pauc_limits[0]:.4f} and {self.pauc_limits[1]:.4f}, and drawing lots has {chance:.4f}. The "
                "order of the list means nothing. Use other forecasts, a lower cutoff or more history."
            )
        if np.isfinite(self.lift) and self.lift < BARELY:
            return (
                f"BARELY BETTER THAN CHANCE. Past lists had {self.lift:.1f} times as many right alarms as lists by "
                "lot. Most of the list will be false alarms."
            )
        return ""

    def to_arrow(self) -> Any:
        """`rows` as a PyArrow table."""
        return rows_table(self.rows)

    def tidy(self) -> Any:
        """The chance of each ranked series, in the columns of `discreet.results.COLUMNS`."""
        return tidy_table(
            effect="chance of a large change",
            group="series",
            term=[row["t"] for row in self.rows],
            level=[row["series"] for row in self.rows],
            estimate=[row["chance"] for row in self.rows],
            lower=[row["low"] for row in self.rows],
            upper=[row["high"] for row in self.rows],
            flag=["flagged" if row["flag"] else None for row in self.rows],
        )

    def __repr__(self) -> str:
        return f"<ExceptionReport by {self.method!r}: {len(self.flagged):,} of {len(self.rows):,} series flagged>"

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from discreet.changes.notebook import listing

        return listing(self)

    def summary(self) -> str:
        """The report in a few sentences."""
        point, warning = self.point, self.warning
        what = "change" if self.direction == "both" else self.direction
        drawn = (
            f"the {self.capacity} that you can look at"
            if self.capacity is not None
            else f"a miss counts as {point.cost_ratio:g} false alarms"
        )
        return (
            f"{warning + ' ' if warning else ''}{len(self.flagged)} of {len(self.rows)} series are flagged for a large "
            f"{what} by {self.method} ({drawn}): about {self.expected_true:.1f} right alarms, {self.right[0]} to "
            f"{self.right[1]} in {100 * LEVEL:.0f} % of periods or more ({WHOLE}), and {self.expected_false:.1f} "
            "false ones to "
            "expect. On "
            f"{self.past} past cases of {self.past_periods} periods with {self.past_positives} large changes"
            f"{self._rule()}.{self._repeated()}{self._not_ranked()}"
        )

    @property
    def expected_rates(self) -> str:
        """The expected performance of the rule on new cases, in words; empty if it cannot be estimated."""
        fpr, tpr = self.left_out
        return "" if np.isnan(tpr) else f" (on periods that did not choose it, {100 * tpr:.0f} % at {100 * fpr:.1f} %)"

    def _rule(self) -> str:
        if self.capacity is None:
            return (
                f" the rule finds {100 * self.point.tpr:.0f} % of them at {100 * self.point.fpr:.1f} % false positives"
                f"{self.expected_rates}"
            )
        if not np.isfinite(self.lift):
            return " there was no list"
        return f" such lists had {self.lift:.1f} times as many right alarms as lists drawn at random"

    @property
    def repeated(self) -> list[dict[str, Any]]:
        """The rows of a plain list that only repeat a row of this one, or a return; a hierarchy has such rows."""
        return [row for row in self.rows if row.get("repeats")]

    def _repeated(self) -> str:
        return f" {len(self.repeated)} more only repeat one on the list or a return." if self.repeated else ""

    def _not_ranked(self) -> str:
        counts = Counter(row["kind"] for row in self.set_aside)
        parts = [f"{count} {KINDS[kind]}" for kind, count in sorted(counts.items())]
        gaps = f" {len(self.gaps)} series with gaps are ranked without the missing periods." if self.gaps else ""
        return gaps + (f" Not ranked: {'; '.join(parts)}." if parts else "")

    def to_dict(self) -> dict[str, Any]:
        """What goes to JSON."""
        point = self.point
        return {
            "method": self.method,
            "pauc": self.pauc,
            "pauc_limits": list(self.pauc_limits),
            "direction": self.direction,
            "capacity": self.capacity,
            "threshold": point.threshold if np.isfinite(point.threshold) else None,
            "fpr": point.fpr,
            "tpr": point.tpr,
            "fpr_left_out": None if np.isnan(self.left_out[0]) else self.left_out[0],
            "tpr_left_out": None if np.isnan(self.left_out[1]) else self.left_out[1],
            "slope": point.slope,
            "prevalence": point.prevalence,
            "cost_ratio": point.cost_ratio,
            "past": self.past,
            "past_positives": self.past_positives,
            "past_periods": self.past_periods,
            "flagged": len(self.flagged),
            "expected_true": self.expected_true,
            "expected_false": self.expected_false,
            "right_limits": list(self.right),
            "lift": self.lift if np.isfinite(self.lift) else None,
            "warning": self.warning or None,
            "choices": self.choices,
            "history": self.history,
            "details": self.details,
            "rows": self.rows,
            "set_aside": self.set_aside,
            "gaps": self.gaps,
        }


UNRANKED = Spelled(
    "Check the values, relax the rules, or say what gaps mean (`gaps`).",
    command="Check the values, relax --shortest or --zeros, or say what gaps mean with --gaps.",
    form="Check the values, or say what a period means that a series lacks.",
)

KINDS = {
    "ended": "ended before the panel",
    "apart": "of another frequency, with an infinite value or with rows after the others' end",
    "gaps": "with gaps that are many or recent",
    "return": "had a large change the other way at the origin, and a return counts as no discovery",
    "unforecast": "without a forecast",
    "unjudged": "cannot be judged: too short, constant, discontinued or intermittent",
}


@of_kinds
def exception_report(
    panel: Any,
    forecasts: Any = None,
    *,
    method: str | None = None,
    methods: Sequence[str] = QUICK,
    horizon: int = 1,
    cutoff: Cutoff = 0.95,
    direction: Direction = "decline",
    policy: Policy = "relative",
    regression: Regression = "negative",
    lag: int = 1,
    scale: Scale = "changes",
    fpr: Range = (0.0, 0.2),
    capacity: int | None = None,
    cost_ratio: float = 10.0,
    prevalence: float | None = None,
    by_value: bool = False,
    missing: Missing = "refuse",
    season: int | None = None,
    past: int = 24,
    gaps: Gaps = "skip",
    until: Any = None,
    rules: Rules = judged.USUAL,
    columns: Mapping[str, str] | None = None,
    hierarchy: Sequence[str] = (),
    indicators: Sequence[str] = (),
    known: Sequence[str] = (),
    calendar: Any = None,
    progress: Progress = silent,
) -> ExceptionReport:
    """Rank the coming period's series by alarm and flag those worth a look.

    Parameters
    ----------
    panel : frame of `series`, `t`, `value`, under these or other usual names (`unique_id`, `ds`, `y`).
    forecasts : frame of `series`, `method`, `t`, `forecast`, of past periods and of the coming one; or one column per
        method. With a column `quantile` or `sample`, distributions. Made here by `methods` if left out.
    method : whose forecasts rank; by default the one with the largest partial area on the past.
    methods, season, past : if forecasts are made here: the methods, the number of periods in a season (by default that
        of the calendar), and the number of past periods that are forecast to learn from.
    horizon : how many periods ahead the forecasts look.
    cutoff, direction, policy, regression : the gold standard, see `standards.large_changes`; direction "both" looks for
        declines and increases at once, with a cutoff for each if it is a mapping. Series that cannot be large changes
        under `regression` are neither ranked nor used to calibrate.
    lag : over how many periods changes are measured: 1, or a season, such as 12.
    scale : what forecasts are measured in, as for `compare_large_changes`.
    fpr : range of false positive rates; a threshold by costs stays within its upper end.
    capacity : how many series can be looked at; if it is given, that many are flagged, whatever the costs.
    cost_ratio : how many false alarms a missed large change costs.
    prevalence : the share of large changes to expect; by default that of the past.
    by_value : rank by chance times the size of the series (its mean), so large ones come first.
    missing : what to do with a case that a method does not forecast: "refuse" or "drop".
    gaps : what a period means that a series lacks: "skip" passes it over, "zero", or "carry" the value before.
    until : the last period of the panel to read.
    rules : which histories are too short, too quiet, too intermittent or too full of gaps to be judged.
    columns : what our columns are called in the panel, such as {"value": "sales"}.
    hierarchy : columns of the panel from the top down, such as ["region", "city"]. Sums of series are ranked with the
        series, and the list has no alarm that only repeats another (see `levels`); it needs a capacity.
    indicators, known, calendar : columns that models of large changes read beside the series (see `indicators`). They
        are read up to the origin; or ahead, such as holidays and promotions, from rows of the coming period without a
        value or from a calendar of `t` and such columns. A sum has the means of its series' columns. The past decides
        whether these models rank.
    progress : called with what is being done and the share of it that is done.

    Returns
    -------
    The series in order of alarm, with the right and false alarms to expect.

    Examples
    --------
    >>> print(exception_report("panel.csv", capacity=20).summary())                 # doctest: +SKIP
    """
    gold = Gold(cutoff, direction, policy, regression, lag, scale)
    rule = ListRule(ListLength(capacity, cost_ratio), roc.false_positive_range(fpr), method, prevalence, by_value, past)
    lists = Lists.of(
        panel,
        forecasts,
        gold,
        rule,
        lists=0,
        methods=methods,
        horizon=horizon,
        missing=missing,
        season=season,
        gaps=gaps,
        until=until,
        rules=rules,
        columns=columns,
        hierarchy=hierarchy,
        indicators=indicators,
        known=known,
        calendar=calendar,
        progress=progress,
    )
    scored = lists.scored
    aside = listed.set_aside(lists.made, scored, direction)
    parts = lists.parts(len(lists.made.panel.periods) - 1)
    _check(*parts, aside)
    made = lists.at(len(lists.made.panel.periods) - 1, parts)
    teach, rank, found, period = made.teach, made.rank, made.found, made.period
    rows = listed.rows(rank, found)
    if made.pick is not None and capacity is not None:
        made.pick.repeats(rows, capacity)
    return ExceptionReport(
        method=lists.made.methods[found.chosen],
        pauc=float(found.areas[found.chosen]),
        pauc_limits=found.area_limits,
        curve=found.curve,
        point=found.point,
        direction=direction,
        capacity=capacity,
        past=len(teach.positive),
        past_positives=int(teach.positive.sum()),
        past_periods=int(period.max()) + 1,
        left_out=found.left_out,
        rows=rows,
        details=listed.details(teach, rank, found, period),
        right=(found.right.low, found.right.high),
        history=listed.history(teach, found, period),
        lift=found.lift,
        fpr=rule.fpr,
        set_aside=aside,
        gaps=listed.gaps(rank),
        choices=listed.choices(rank.scores[found.chosen], found, rule.line, rule.fpr[1]),
    )


def _check(teach: Scored, rank: Scored, aside: list[dict[str, Any]]) -> None:
    if not len(rank.cases):
        aside = [row for row in aside if row["kind"] != "unforecast"]
        names = told(named(range(len(aside)), lambda k: f"{aside[k]['series']} ({aside[k]['why']})"))
        raise DataError(
            f"No series of the coming period can be ranked{f': {names}' if aside else ''}.",
            "A series is ranked if it has a forecast and its history lets a change be measured.",
            (UNRANKED if aside else "Add forecasts of the coming period.",),
            about="panel" if aside else "forecasts",
        )
    if not len(teach.cases):
        raise DataError(
            "No forecast is for a period that the panel holds, so no threshold can be set.",
            remedy="Add forecasts of past periods, made at their time (`forecast_panel` makes them), or give a "
            "longer history.",
            about="forecasts",
        )
