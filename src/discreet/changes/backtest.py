"""A backtest: the lists that a report would have made in past periods, beside what happened then.

Each list is the one of a report on the panel up to its origin (`lists`): the method is chosen and chances are learnt on
as many periods before it as the report takes. It is compared with lists of the same size: at random, by the naive
forecast and by the last change, which a planner without forecasts looks at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Vector
from discreet.changes import judged
from discreet.changes.alarms import BARELY, ListLength
from discreet.changes.calibration import LEVEL
from discreet.changes.cases import Missing
from discreet.changes.forecasters import QUICK
from discreet.changes.judged import Rules
from discreet.changes.lists import ListRule, Lists, MadeList
from discreet.changes.panel import Gaps, spelled
from discreet.changes.scored import Gold, Scale, Scored
from discreet.changes.standards import Cutoff, Direction, Policy, Regression
from discreet.results import Result, rows_table, tidy_table
from discreet.roc.curve import Range, false_positive_range
from discreet.words.arguments import of_kinds
from discreet.words.errors import DataError
from discreet.words.progress import Progress, silent

LEAST = 6
"""The fewest periods to learn from."""


@dataclass(frozen=True, slots=True, repr=False)
class Backtest(Result):
    """Past lists and what happened.

    Attributes
    ----------
    rows : one for each period: the number flagged, by which method, the right alarms expected with limits, those found,
        all large changes, and the right alarms of the same number of series by other rankings; how many periods it
        was learnt from, its series, and how many of these have no outcome, which counts as no right alarm.
    direction, capacity : what the lists were made for.
    """

    rows: list[dict[str, Any]]
    direction: Direction
    capacity: int | None

    @property
    def within(self) -> float:
        """The share of periods whose right alarms lie within their limits."""
        return float(np.mean([row["low"] <= row["right"] <= row["high"] for row in self.rows]))

    def precision(self, ranking: str = "right") -> float:
        """The share of alarms that were right: of our lists, or of "naive", "last_change" or "by_lot"."""
        if ranking not in ("right", "naive", "last_change", "by_lot"):
            raise DataError(
                f"Ranking {ranking!r} was not tried.",
                "It is 'right', 'naive', 'last_change' or 'by_lot'.",
                about="ranking",
            )
        return float(sum(row[ranking] for row in self.rows) / max(sum(row["flagged"] for row in self.rows), 1))

    def to_arrow(self) -> Any:
        """`rows` as a PyArrow table."""
        return rows_table(self.rows)

    def tidy(self) -> Any:
        """Right alarms by period, expected with limits; the flag tells where they were outside."""
        return tidy_table(
            effect="right alarms expected",
            group="period",
            level=[row["t"] for row in self.rows],
            estimate=[row["expected"] for row in self.rows],
            lower=[row["low"] for row in self.rows],
            upper=[row["high"] for row in self.rows],
            flag=[None if row["low"] <= row["right"] <= row["high"] else "outside" for row in self.rows],
        )

    def __repr__(self) -> str:
        return f"<Backtest of {len(self.rows)} periods, {100 * self.precision():.0f} % of alarms right>"

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """What the lists would have been worth."""
        ours, naive, last, lot = (self.precision(each) for each in ("right", "naive", "last_change", "by_lot"))
        expected = sum(row["expected"] for row in self.rows)
        found = sum(row["right"] for row in self.rows)
        loud = "BARELY BETTER THAN CHANCE. " if ours < BARELY * lot else ""
        loud += "NO BETTER THAN THE NAIVE RANKING. " if ours <= naive else ""
        return (
            f"{loud}{len(self.rows)} periods, {self.rows[0]['t']} to {self.rows[-1]['t']}: {found} of "
            f"{sum(row['flagged'] for row in self.rows)} alarms were right ({100 * ours:.1f} %), {expected:.1f} were "
            "expected. "
            f"Lists of the same size by the naive forecast: {100 * naive:.1f} %, by the last change: "
            f"{100 * last:.1f} %, at random: "
            f"{100 * lot:.1f} %. Right alarms lay within their {100 * LEVEL:.0f} % limits in {100 * self.within:.0f} "
            "% of periods."
            f"{self._unknown}"
        )

    @property
    def _unknown(self) -> str:
        gone = sum(row["unknown"] for row in self.rows)
        alarms = "alarm was of a series" if gone == 1 else "alarms were of series"
        return f" {gone} {alarms} without an outcome, ended or with a gap there, and count as false." if gone else ""

    def to_dict(self) -> dict[str, Any]:
        """What goes to JSON."""
        rankings = ("right", "naive", "last_change", "by_lot")
        return {
            "direction": self.direction,
            "capacity": self.capacity,
            "periods": len(self.rows),
            "within_limits": self.within,
            "precision": {name: self.precision(name) for name in rankings},
            "rows": self.rows,
        }


@of_kinds
def backtest_changes(
    panel: Any,
    forecasts: Any = None,
    *,
    periods: int = 24,
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
    capacity: int | None = 20,
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
) -> Backtest:
    """Make the lists of past periods as a report would have made them, and count the right alarms.

    Parameters
    ----------
    panel, forecasts : as for `exception_report`; forecasts of past periods are enough.
    periods : how many past lists to make.
    capacity : the length of the lists; None for lists by costs.
    method, methods, season, past : whose forecasts rank, how forecasts are made here, and how many periods each list is
        learnt from, as for `exception_report`; a list that would have fewer than 6 of them is not made.
    horizon, fpr, cost_ratio, prevalence, by_value, missing : as for `exception_report`.
    cutoff, direction, policy, regression, lag, scale : the gold standard, as for `exception_report`.
    indicators, known, calendar : as for `exception_report`.
    gaps, until, rules, columns, hierarchy : how the panel is read and what can be judged, as for `exception_report`.
    progress : called with what is being done and the share of it that is done.

    Returns
    -------
    The lists, beside what happened.

    Examples
    --------
    >>> print(backtest_changes("panel.csv", capacity=20).summary())                 # doctest: +SKIP
    """
    if periods < 1:
        raise DataError(f"{periods} periods are not a backtest.", remedy="Ask for 1 or more.", about="periods")
    gold = Gold(cutoff, direction, policy, regression, lag, scale)
    rule = ListRule(ListLength(capacity, cost_ratio), false_positive_range(fpr), method, prevalence, by_value, past)
    lists = Lists.of(
        panel,
        forecasts,
        gold,
        rule,
        lists=periods,
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
    origins = lists.origins
    rows, learnable = [], 0
    for k, origin in enumerate(origins[-periods:]):
        progress(f"list {k + 1} of {min(periods, len(origins))}", k / periods)
        parts = lists.parts(int(origin))
        if len(np.unique(parts[0].cases.origin)) < min(LEAST, past):
            continue
        learnable += 1
        if parts[0].positive.any() and not parts[0].positive.all():
            rows.append(_row(lists.at(int(origin), parts), direction))
    if not learnable:
        raise DataError(
            f"Forecasts of {len(origins)} past periods leave none to test after {LEAST} to learn from.",
            "Each list is learnt from earlier ones.",
            "Give a longer panel, or forecasts of more past periods.",
            about="periods",
        )
    if not rows:
        raise DataError(
            "No past period has a large change before it to learn from.",
            remedy="Lower the cutoff or give more series.",
            about="cutoff",
        )
    return Backtest(rows, direction, capacity)


def _row(made: MadeList, direction: Direction) -> dict[str, Any]:
    now, found = made.rank, made.found
    flagged = found.order[: found.size]
    turned = {"decline": np.negative, "increase": np.positive, "both": np.abs}[direction]
    naive, last = (turned(each / now.base.change_sd) for each in (-now.base.change_mean, now.base.previous))
    return {
        "t": spelled(now.cases.t[0]),
        "method": now.cases.methods[found.chosen],
        "flagged": found.size,
        "expected": found.right.expected,
        "low": found.right.low,
        "high": found.right.high,
        "right": int(now.positive[flagged].sum()),
        "large": int(now.positive.sum()),
        "naive": _hits(now, naive, found.size),
        "last_change": _hits(now, last, found.size),
        "by_lot": float(found.size * now.positive.mean()),
        "learnt": int(made.period.max()) + 1,
        "unknown": int((~now.known[flagged]).sum()),
        "series": now.cases.series[flagged].astype(str).tolist(),
    }


def _hits(now: Scored, score: Vector, size: int) -> int:
    return int(now.positive[np.argsort(-score, kind="stable")[:size]].sum())
