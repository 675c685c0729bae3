"""Gold standards: which cases were large changes.

There are three policies. *Relative* (Gorr and Schneider 2013): the change from the forecast origin, in standard
deviations of the series' own first differences. *Absolute* (Gorr 2009, doi:10.1016/j.ijforecast.2008.11.013): the
level, in standard deviations of the series' own history. *Cross-sectional* (Dissertation, chapter 2): the few largest
values of each month after counts are standardised by a smoothed Poisson mean.

Everything is oriented so that larger is more alarming, for declines as for increases. A forecast is put on the same
scale as the outcome, with the moments of the history and nothing later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias, get_args

import numpy as np

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.words.cases import case_of
from discreet.words.errors import DataError
from discreet.words.faults import Argument

Policy: TypeAlias = Literal["relative", "absolute"]
Direction: TypeAlias = Literal["decline", "increase", "both"]
OneDirection: TypeAlias = Literal["decline", "increase"]
ONE_DIRECTION: tuple[OneDirection, ...] = ("decline", "increase")
Regression: TypeAlias = Literal["negative", "drop", "keep"]
Cutoff: TypeAlias = float | Mapping[OneDirection, float]
"""One normal quantile, or one for declines and one for increases: the paper's L and U (Dissertation, appendix A)."""


def is_relative(policy: Policy) -> bool:
    """Whether changes are measured, and not levels."""
    return case_of(policy, {"relative": True, "absolute": False})


def leaves(regression: Regression) -> bool:
    """Whether a return to the mean is no large change."""
    return case_of(regression, {"negative": True, "drop": True, "keep": False})


SHORTEST = 3
"""The number of values in a history whose first differences have a standard deviation."""

ROUNDING = 1e-12
"""Share of a history's largest value below which its standard deviation is rounding: the history does not vary."""


@dataclass(frozen=True, slots=True)
class AtOrigin:
    """The state of the histories at the forecast origin, one entry per case.

    Attributes
    ----------
    last : the value from which the change is measured, at the origin or a season before the period forecast.
    previous : the change that led to it.
    change_mean, change_sd : moments of the changes, sd with n - 1.
    level_mean, level_sd : moments of the values themselves.
    """

    last: Vector
    previous: Vector
    change_mean: Vector
    change_sd: Vector
    level_mean: Vector
    level_sd: Vector

    def select(self, cases: Mask | Integers) -> AtOrigin:
        return AtOrigin(*(getattr(self, field.name)[cases] for field in fields(self)))


@dataclass(frozen=True, slots=True)
class Standard:
    """A gold standard applied to cases.

    Attributes
    ----------
    positive : the large changes that a forecast should find.
    regression : cases that crossed the threshold only by undoing an opposite jump at the origin.
    kept : cases that take part in the analysis.
    threshold : in standard deviations; that of declines where the two directions have their own.
    """

    positive: Mask
    regression: Mask
    kept: Mask
    threshold: float


def check(cutoff: Cutoff, direction: Direction, policy: Policy, regression: Regression, lag: int) -> None:
    """Refuse what is no gold standard, before anything is computed."""
    for name, given, known in (
        ("direction", direction, get_args(Direction)),
        ("policy", policy, get_args(Policy)),
        ("regression", regression, get_args(Regression)),
    ):
        if given not in known:
            raise DataError(
                (Argument(name, given), " is not known."), f"It is one of {', '.join(known)}.", f"Use {known[0]!r}.",
                about=name,
            )  # fmt: skip
    for side in ONE_DIRECTION:
        limit(cutoff, side)
    if lag < 1:
        raise DataError(f"Changes over {lag} periods make no sense.", remedy="Give a lag of 1 or more.", about="lag")


def baseline(histories: Sequence[Vector], *, lag: int = 1) -> AtOrigin:
    """Moments of each history up to its forecast origin; changes are over `lag` periods (the paper: one)."""
    if lag < 1:
        raise DataError(f"Changes over {lag} periods make no sense.", remedy="Give a lag of 1 or more.", about="lag")
    short = sum(len(history) < lag + SHORTEST - 1 for history in histories)
    if short:
        raise DataError(
            f"{short} of {len(histories)} histories have fewer than {lag + SHORTEST - 1} values before "
            "their forecast origin, too few for a standard deviation of changes.",
            remedy="Drop these series or start later.",
            about="histories",
        )
    width = max((len(history) for history in histories), default=0)
    values = np.full((len(histories), width), np.nan)
    for row, history in zip(values, histories, strict=True):
        row[: len(history)] = history
    ends = np.array([len(history) - 1 for history in histories], np.int64)
    return at_origins(values, np.arange(len(histories)), ends, lag=lag)


def at_origins(
    values: Matrix, row: Integers, origin: Integers, *, lag: int = 1, horizon: int | None = None
) -> AtOrigin:
    """The same for cases of a panel: of series `row`, whose history ends in column `origin`.

    Changes are measured from the origin, however far ahead the forecast looks. With a `horizon`, those over a longer
    `lag`, such as a year, are measured from `lag` periods before the period forecast.

    Moments run along the columns (Welford 1962, doi:10.1080/00401706.1962.10490022), so no later value has a part in
    them, not even by rounding. A spread is NaN where the history is too short for one.
    """
    change = np.full_like(values, np.nan)
    change[:, lag:] = values[:, lag:] - values[:, :-lag]
    order = np.argsort(origin, kind="stable")
    bounds = np.searchsorted(origin[order], np.arange(values.shape[1] + 1))
    found = np.empty((7, len(row)))
    level, moved, size = _Moments(len(values)), _Moments(len(values)), np.zeros(len(values))
    for t in range(values.shape[1]):
        level.add(values[:, t])
        moved.add(change[:, t])
        size = np.fmax(size, np.abs(values[:, t]))
        now = order[bounds[t] : bounds[t + 1]]
        if len(now):
            of = row[now]
            moments = moved.mean[of], moved.spread(of), level.mean[of], level.spread(of)
            found[:, now] = values[of, t], change[of, t], *moments, size[of]
    *rest, size = found
    if lag > 1 and horizon is not None:
        start = origin + horizon - lag
        rest[0] = np.where((start >= 0) & (start <= origin), values[row, np.clip(start, 0, None)], np.nan)
    for spread in rest[3::2]:
        spread[spread <= ROUNDING * size] = 0.0
    return AtOrigin(*rest)


def moments_before(values: Matrix, row: Integers, column: Integers) -> tuple[Vector, Vector, Vector]:
    """Number, mean and standard deviation of what stands in `row` before `column`; NaN is no value."""
    order = np.argsort(column, kind="stable")
    bounds = np.searchsorted(column[order], np.arange(values.shape[1] + 1))
    found = np.empty((3, len(row)))
    so_far, size = _Moments(len(values)), np.zeros(len(values))
    for t in range(values.shape[1]):
        now = order[bounds[t] : bounds[t + 1]]
        of = row[now]
        spread = so_far.spread(of)
        found[:, now] = so_far.count[of], so_far.mean[of], np.where(spread > ROUNDING * size[of], spread, 0.0)
        so_far.add(values[:, t])
        size = np.fmax(size, np.abs(values[:, t]))
    return found[0], found[1], found[2]


class _Moments:
    """Mean and standard deviation of each series so far; NaN is no value."""

    def __init__(self, series: int) -> None:
        self.count, self.mean, self.square = np.zeros(series), np.zeros(series), np.zeros(series)

    def add(self, value: Vector) -> None:
        here = np.isfinite(value)
        self.count += here
        away = np.where(here, value - self.mean, 0.0)
        self.mean = self.mean + away / np.maximum(self.count, 1)
        self.square = self.square + away * np.where(here, value - self.mean, 0.0)

    def spread(self, of: Integers) -> Vector:
        free = self.count[of] - 1
        return np.asarray(np.where(free > 0, np.sqrt(self.square[of] / np.maximum(free, 1)), np.nan))


def standardise(
    base: AtOrigin, value: Vector, *, policy: Policy = "relative", direction: Direction = "decline"
) -> Vector:
    """Outcomes or forecasts, of shape (..., cases), as alarm scores in standard deviations."""
    if direction == "both":
        return np.abs(standardise(base, value, policy=policy, direction="increase"))
    signs = {"decline": -1.0, "increase": 1.0}
    if direction not in signs:
        raise DataError(
            f"Direction {direction!r} is not known.",
            "Large changes are 'decline', 'increase' or 'both'.",
            about="direction",
        )
    spread = varying(base, policy=policy)
    centre = base.last + base.change_mean if is_relative(policy) else base.level_mean
    return np.asarray(signs[direction] * (value - centre) / spread)


def varying(base: AtOrigin, *, policy: Policy) -> Vector:
    """The standard deviations that the policy measures in, or a refusal where one is zero."""
    if policy not in ("relative", "absolute"):
        raise DataError(f"Gold standard {policy!r} is not known.", "It is 'relative' or 'absolute'.", about="policy")
    spread = base.change_sd if is_relative(policy) else base.level_sd
    constant = int((~(spread > 0)).sum())
    if constant:
        raise DataError(
            f"{constant} of {len(spread)} histories do not vary, so no change can be measured in their "
            "standard deviations.",
            remedy="Drop those series.",
            about="base",
        )
    return spread


def large_changes(
    base: AtOrigin,
    actual: Vector,
    *,
    cutoff: Cutoff = 0.95,
    policy: Policy = "relative",
    direction: Direction = "decline",
    regression: Regression = "negative",
) -> Standard:
    """Mark the outcomes beyond the `cutoff` quantile of a normal law.

    Regression to the mean (relative policy only): if the last change of a case before the origin was as extreme in the
    other direction, the case is no discovery, because any forecast that ignores the outlier finds it. Such cases count
    as negatives (`negative`, which the paper's printed tables agree with), leave the analysis (`drop`, as its text
    says) or remain positives (`keep`).
    """
    if direction == "both":
        one, other = (
            large_changes(base, actual, cutoff=cutoff, policy=policy, direction=each, regression=regression)
            for each in ONE_DIRECTION
        )
        return Standard(
            one.positive | other.positive, one.regression | other.regression, one.kept & other.kept, one.threshold
        )
    threshold = limit(cutoff, direction)
    beyond = standardise(base, actual, policy=policy, direction=direction) >= threshold
    if regression not in ("negative", "drop", "keep"):
        raise DataError(
            f"Regression rule {regression!r} is not known.", "It is 'negative', 'drop' or 'keep'.", about="regression"
        )
    rebound = beyond & jumped(base, cutoff=cutoff, policy=policy, direction=direction)
    return Standard(
        positive=beyond & ~rebound if leaves(regression) else beyond,
        regression=rebound,
        kept=~rebound
        if case_of(regression, {"drop": True, "keep": False, "negative": False})
        else np.ones_like(beyond),
        threshold=threshold,
    )


def jumped(
    base: AtOrigin, *, cutoff: Cutoff = 0.95, policy: Policy = "relative", direction: Direction = "decline"
) -> Mask:
    """Cases whose last change before the origin was as extreme in the other direction (relative policy only).

    Unless the rule is to keep them, they can never be positives, and that is known at the origin.
    """
    if not is_relative(policy) or case_of(
        direction, {"both": True, "decline": False, "increase": False}
    ):  # a series that cannot fall may still rise
        return np.zeros(len(base.last), bool)
    opposite: OneDirection = case_of(direction, {"decline": "increase", "increase": "decline"})
    return standardise(base, base.last + base.previous, policy=policy, direction=opposite) >= limit(cutoff, direction)


def limit(cutoff: Cutoff, direction: Direction) -> float:
    """The threshold in one direction, in standard deviations."""
    if isinstance(cutoff, Mapping):
        if set(cutoff) != set(ONE_DIRECTION):
            raise DataError(
                f"Cutoffs for {', '.join(map(str, cutoff)) or 'no direction'} were given.",
                "Two cutoffs are one for 'decline' and one for 'increase'.",
                "Give both, or one number.",
                about="cutoff",
            )
        cutoff = cutoff[case_of(direction, {"decline": "decline", "increase": "increase"})]
    return normal_cutoff(cutoff)


def spelled_cutoff(cutoff: Cutoff) -> str:
    """A cutoff, or the two of both directions, in words."""
    if isinstance(cutoff, Mapping):
        return ", ".join(f"{each:g} ({side}s)" for side, each in cutoff.items())
    return f"{cutoff:g}"


def normal_cutoff(cutoff: float) -> float:
    """The quantile of a normal law beyond which a change is large, in standard deviations."""
    if not 0.5 < cutoff < 1:
        raise DataError(
            f"Cutoff {cutoff:g} is not a quantile of the upper half.", remedy="Give for example 0.95.", about="cutoff"
        )
    from scipy.special import ndtri

    return float(ndtri(cutoff))


def smoothed_mean(counts: Matrix, *, smoothing: float = 0.05, start: int = 12) -> Matrix:
    """Each series' mean as known before each month, shape (months, series), under exponential smoothing.

    The first `start` months are their own mean. From then on m_t = m_{t-1} + smoothing * (y_{t-1} - m_{t-1}), so the
    row of a month never depends on that month. Means stay above half an event in `start` months: a series without any
    event so far has no scale of its own.
    """
    if not 0 < smoothing < 1:
        raise DataError(
            f"Smoothing constant {smoothing:g} is not between 0 and 1.",
            remedy="Give for example 0.05.",
            about="smoothing",
        )
    if not 1 <= start < len(counts):
        raise DataError(
            f"{start} starting months do not fit into {len(counts)} months.", remedy="Give fewer.", about="start"
        )
    means = np.empty_like(counts, float)
    means[: start + 1] = counts[:start].mean(axis=0)
    for t in range(start + 1, len(counts)):
        means[t] = means[t - 1] + smoothing * (counts[t - 1] - means[t - 1])
    return np.maximum(means, 0.5 / start)


def poisson_standardise(value: Matrix, mean: Matrix) -> Matrix:
    """(y - m) / sqrt(v) with v = m, for counts or forecasts of counts."""
    return np.asarray((value - mean) / np.sqrt(mean))


def top_of_each_month(standardised: Matrix, *, top: int = 5) -> Mask:
    """The `top` largest values of every month; equal values go to the earlier column."""
    months, series = standardised.shape
    if not 0 < top < series:
        raise DataError(
            f"The top {top} of {series} series leave no negatives.", remedy=f"Ask for 1 to {series - 1}.", about="top"
        )
    chosen = np.argsort(-standardised, axis=1, kind="stable")[:, :top]
    positive = np.zeros((months, series), bool)
    np.put_along_axis(positive, chosen, True, axis=1)
    return positive
