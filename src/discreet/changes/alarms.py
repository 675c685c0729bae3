"""Alarms: which coming cases to look at, learnt from past ones. Only arrays.

Past forecasts give the ROC curve and choose the method. A capacity or costs set the threshold. Past shares of large
changes are the chances (`operating.calibrated`), and past lists tell how many alarms to expect to be right
(`calibration`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.changes import calibration
from discreet.changes.calibration import Periods, RightAlarms
from discreet.changes.operating import (
    OperatingPoint,
    calibrated,
    check_costs,
    check_prevalence,
    operating_point,
    rates_left_out,
)
from discreet.roc import curve as roc
from discreet.roc.curve import Curve, Range
from discreet.words.errors import DataError
from discreet.words.faults import Argument

Pick: TypeAlias = Callable[[bool, int, Integers, int], Integers]
"""The cases to list, given whether cases are past, a method, places of cases of one period and the largest number."""

LONGEST = 100
"""Cases that are picked if alarms must not repeat each other, so that other capacities can be shown too."""

BARELY = 1.5
"""Right alarms on a list, in multiples of what a random list would have, below which scores are barely better."""


@dataclass(frozen=True, slots=True)
class ListLength:
    """The end of a list: after `capacity` series, or where costs and prevalence put it."""

    capacity: int | None = None
    cost_ratio: float = 10.0

    def __post_init__(self) -> None:
        if self.capacity is not None and self.capacity < 1:
            raise DataError(
                (Argument("capacity", self.capacity), " is no number of series to look at."),
                "It is 1 or more.",
                "Give for example 20.",
                about="capacity",
            )
        check_costs(self.cost_ratio)


@dataclass(frozen=True, slots=True)
class PastList:
    """The list of a past period by the same rule: its size, right alarms expected and found."""

    period: int
    flagged: Integers
    expected: float
    variance: float
    right: int


@dataclass(frozen=True, slots=True)
class Alarms:
    """What past cases say about coming ones.

    Attributes
    ----------
    chosen, areas : the method that ranks, and every method's partial area on the past.
    area_limits : between which that of the chosen method lies, periods resampled.
    curve, point : its ROC curve and the decision rule on it.
    left_out : false and true positive rates of that rule in periods that had no part in choosing it.
    order : coming cases, most alarming first; `size` of them are on the list.
    chance, low, high : of each coming case to be a large change, with limits.
    right : right alarms to expect on the list.
    lists : the lists of past periods, `flagged` being places among the past cases.
    spread, learnt : the variance of a period's factor, and the right alarms that taught it.
    prevalence, past_share : the share of large changes to expect, and that of the past.
    """

    chosen: int
    areas: Vector
    area_limits: tuple[float, float]
    curve: Curve
    point: OperatingPoint
    left_out: tuple[float, float]
    order: Integers
    size: int
    chance: Vector
    low: Vector
    high: Vector
    right: RightAlarms
    lists: list[PastList]
    spread: float
    learnt: float
    prevalence: float
    past_share: float

    @property
    def lift(self) -> float:
        """Right alarms on past lists in multiples of what lists drawn at random would have had; NaN without lists."""
        size = sum(len(each.flagged) for each in self.lists)
        return sum(each.right for each in self.lists) / (size * self.past_share) if size else float("nan")

    def expected(self, size: int) -> RightAlarms:
        """Right alarms to expect on a list of another size."""
        return calibration.right_alarms(
            self.chance[self.order[:size]], spread=self.spread, periods=len(self.lists), known=self.learnt
        )


def alarms(
    past: Matrix,
    positive: Mask,
    period: Integers,
    coming: Matrix,
    *,
    line: ListLength = ListLength(),  # noqa: B008 - a frozen value
    fpr: Range = (0.0, 0.2),
    method: int | None = None,
    prevalence: float | None = None,
    weight: tuple[Vector, Vector] | None = None,
    pick: Pick | None = None,
) -> Alarms:
    """Judge coming cases, shape (methods, cases), by past ones, whose outcomes and periods are known.

    `period` numbers past periods from 0 in order of time. With a `weight` for every past and every coming case, cases
    are ranked by chance times weight, on past lists too; with costs, those above the threshold are flagged. With
    `pick`, lists hold the cases that it picks, as many as the capacity allows.
    """
    lo, hi = roc.false_positive_range(fpr)
    areas = roc.partial_auc(positive, past, fpr=(lo, hi))
    chosen = int(np.argmax(areas)) if method is None else method
    score, ahead = past[chosen], coming[chosen]
    past_share = float(positive.mean())
    share = past_share if prevalence is None else prevalence
    check_prevalence(share)
    folds = period if period.max() else np.arange(len(period)) % 5
    chance, left_out, lean = calibrated(ahead, past=score, positive=positive, prevalence=past_share, folds=folds)
    curve = roc.curve(positive, score)
    point = operating_point(curve, prevalence=share, cost_ratio=line.cost_ratio, fpr_limit=hi)
    first = score if weight is None else _first(score, left_out * weight[0], line, point)
    lists = _past_lists(
        score, first, positive, period, left_out, line, point, None if pick is None else partial(pick, True, chosen)
    )
    binned = Periods.of(score, positive, period)
    low, high = binned.chances(ahead, lean=lean)
    if share != past_share:  # past lists are judged by the share of their own time
        chance = calibrated(ahead, past=score, positive=positive, prevalence=share, folds=folds)[0]
        times = share * (1 - past_share) / (past_share * (1 - share))
        low, high = (times * limit / (times * limit + 1 - limit) for limit in (low, high))
    order = np.argsort(-ahead, kind="stable")
    if weight is not None:
        order = order[np.argsort(-_first(ahead, chance * weight[1], line, point)[order], kind="stable")]
    size = _size(ahead, line, point)
    if pick is not None:
        first = pick(False, chosen, np.arange(len(ahead)), max(size, LONGEST))
        order, size = np.concatenate([first, order[~np.isin(order, first)]]), min(size, len(first))
    spread = calibration.spread_of_periods(
        *(np.array([getattr(each, name) for each in lists], float) for name in ("expected", "variance", "right"))
    )
    learnt = float(sum(each.right for each in lists))
    return Alarms(
        chosen=chosen,
        areas=areas,
        area_limits=binned.areas((lo, hi)),
        curve=curve,
        point=point,
        left_out=rates_left_out(score, positive, folds, prevalence=share, cost_ratio=line.cost_ratio, fpr_limit=hi)
        if line.capacity is None
        else (np.nan, np.nan),
        order=order,
        size=size,
        chance=chance,
        low=np.minimum(low, chance),
        high=np.maximum(high, chance),
        right=calibration.right_alarms(chance[order[:size]], spread=spread, periods=len(lists), known=learnt),
        lists=lists,
        spread=spread,
        learnt=learnt,
        prevalence=share,
        past_share=past_share,
    )


def _size(score: Vector, line: ListLength, point: OperatingPoint) -> int:
    if line.capacity is not None:
        return min(line.capacity, len(score))
    return int((score >= point.threshold).sum())


def _first(score: Vector, valued: Vector, line: ListLength, point: OperatingPoint) -> Vector:
    """What orders cases by value; with costs, those that reach the threshold come before all others."""
    if line.capacity is not None:
        return valued
    return np.asarray(np.where(score >= point.threshold, valued, valued - valued.max() - 1))


def _past_lists(
    score: Vector,
    first: Vector,
    positive: Mask,
    period: Integers,
    left_out: Vector,
    line: ListLength,
    point: OperatingPoint,
    pick: Callable[[Integers, int], Integers] | None,
) -> list[PastList]:
    """The list of each past period, in the order of `first`, with chances that were learnt without it."""
    order = np.lexsort((-score, -first, period))
    bounds = np.searchsorted(period[order], np.arange(int(period.max()) + 2))
    found = []
    for k, (start, stop) in enumerate(pairwise(bounds)):
        mine = order[start:stop]
        if not len(mine):
            continue
        size = _size(score[mine], line, point)
        chosen = mine[:size] if pick is None else pick(mine, size)
        chance = left_out[chosen]
        variance = float((chance * (1 - chance)).sum())
        found.append(PastList(k, chosen, float(chance.sum()), variance, int(positive[chosen].sum())))
    return found
