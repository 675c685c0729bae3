"""The list of a period: which past it is learnt from, and what it ranks. Reports and backtests make theirs here.

A list is made at an origin. It learns from the cases whose outcomes were known there: with forecasts that are made
here, those of the last `past` periods; with given forecasts, all of them. It ranks the cases of that origin. So the
list of a past period is the one of a report on the panel up to that period.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Integers
from discreet.changes.alarms import Alarms, ListLength, alarms
from discreet.changes.cases import Cases, Missing, cases
from discreet.changes.forecasters import forecast_cases
from discreet.changes.indicators import NAMES, Beside
from discreet.changes.judged import Rules
from discreet.changes.levels import Branches, Unrepeated, branching
from discreet.changes.operating import check_prevalence
from discreet.changes.panel import Gaps, read_panel
from discreet.changes.scored import Gold, Scored, score
from discreet.roc import curve as roc
from discreet.roc.curve import Range
from discreet.words.errors import DataError
from discreet.words.progress import Progress


@dataclass(frozen=True, slots=True)
class ListRule:
    """How a list is made.

    Attributes
    ----------
    line : where it ends.
    fpr : range of false positive rates on which methods are chosen.
    method : whose forecasts rank; None for the best on the past.
    prevalence : the share of large changes to expect; None for that of the past.
    by_value : whether large series come first.
    past : periods to learn from, if forecasts are made here.
    """

    line: ListLength
    fpr: Range = (0.0, 0.2)
    method: str | None = None
    prevalence: float | None = None
    by_value: bool = False
    past: int = 24

    def __post_init__(self) -> None:
        if self.prevalence is not None:
            check_prevalence(self.prevalence)


@dataclass(frozen=True, slots=True)
class MadeList:
    """A list: the cases it was learnt from with their periods from 0, those it ranks, and what was found."""

    teach: Scored
    period: Integers
    rank: Scored
    found: Alarms
    pick: Unrepeated | None


@dataclass(frozen=True, slots=True)
class Lists:
    """Cases of all periods, ready for lists at any origin; `given` says whether forecasts were given."""

    made: Cases
    scored: Scored
    gold: Gold
    rule: ListRule
    horizon: int
    given: bool
    tree: Branches | None

    @classmethod
    def of(
        cls,
        panel: Any,
        forecasts: Any,
        gold: Gold,
        rule: ListRule,
        *,
        lists: int,
        methods: Sequence[str],
        horizon: int,
        missing: Missing,
        season: int | None,
        gaps: Gaps,
        until: Any,
        rules: Rules,
        columns: Mapping[str, str] | None,
        hierarchy: Sequence[str],
        indicators: Sequence[str],
        known: Sequence[str],
        calendar: Any,
        progress: Progress,
    ) -> Lists:
        """Cases for the lists of the last `lists` past periods and of the coming one."""
        roc.false_positive_range(rule.fpr)
        held = read_panel(panel, gaps=gaps, until=until, names=columns)
        about: dict[str, Any] = {"horizon": horizon, "gaps": gaps, "coming": not lists}
        beside = Beside.of(panel, held, columns, indicators, known, calendar, **about)
        if hierarchy and rule.by_value:
            raise DataError(
                "Levels and a ranking by value were asked for.",
                "Sums are larger than their parts, and would come first.",
                "Leave one out.",
                about="by_value",
            )
        tree = branching(panel, held, hierarchy, columns, rule.line) if hierarchy else None
        held = held if tree is None else tree.panel
        beside = beside if beside is None or tree is None else beside.at_levels(tree)
        learn = rule.past if beside is None else 2 * rule.past  # models of indicators learn before they are compared
        made = (
            forecast_cases(
                held,
                methods=methods if rule.method is None or rule.method in NAMES else (rule.method,),
                horizon=horizon,
                season=season,
                past=learn + (lists + horizon - 1 if lists else 0),
                progress=progress,
            )
            if forecasts is None
            else cases(held, forecasts, horizon=horizon, missing=missing)
        )
        if beside is not None:
            window = rule.past if forecasts is None else None
            made = beside.modelled(made, gold, season=season, rules=rules, window=window)
        progress("ranking series", 1.0)
        scored = score(made, gold, horizon=horizon, rules=rules)
        return cls(made, scored, gold, rule, horizon, forecasts is not None, tree)

    @property
    def origins(self) -> Integers:
        """The origins of past periods, in order."""
        return np.unique(self.scored.cases.origin[self.scored.known & ~self.scored.impossible])

    def parts(self, origin: int) -> tuple[Scored, Scored]:
        """The cases that the list of an origin learns from, and those that it ranks."""
        at = self.scored.cases.origin
        learnt = self.scored.known & (at <= origin - self.horizon)
        if not self.given:
            learnt &= at > origin - self.horizon - self.rule.past
        return tuple(self.scored.select(mask & ~self.scored.impossible) for mask in (learnt, at == origin))  # type: ignore[return-value]

    def at(self, origin: int, parts: tuple[Scored, Scored] | None = None) -> MadeList:
        """The list of an origin."""
        teach, rank = self.parts(origin) if parts is None else parts
        period = np.unique(teach.cases.origin, return_inverse=True)[1]
        pick = None if self.tree is None else Unrepeated(self.tree, self.gold, teach, rank, self.scored)
        rule = self.rule
        found = alarms(
            teach.scores,
            teach.positive,
            period,
            rank.scores,
            line=rule.line,
            fpr=rule.fpr,
            method=_place(self.made.methods, rule.method),
            prevalence=rule.prevalence,
            weight=(np.abs(teach.base.level_mean), np.abs(rank.base.level_mean)) if rule.by_value else None,
            pick=pick,
        )
        return MadeList(teach, period, rank, found, pick)


def _place(methods: tuple[str, ...], method: str | None) -> int | None:
    if method is not None and method not in methods:
        raise DataError(f"Method {method!r} has no forecasts.", f"Methods are: {', '.join(methods)}.", about="method")
    return None if method is None else methods.index(method)
