"""Evaluations of a criterion, told as they are made: which one it is, how far the search is and how long it may take.

A search ends where the decrease that its slopes promise is lost in rounding. So it is as far as that decrease has
fallen, on the scale of its logarithm. That is a guess: a step may promise more than the one before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from time import monotonic

from discreet.arrays import Matrix, Vector
from discreet.models.linear.descent import FAR, ROUNDING
from discreet.models.linear.reml import RatioProfile, grid_size
from discreet.words.progress import Progress, silent, time_left

Sloped = Callable[[Vector], tuple[float, Vector]]
USUAL = 12  # evaluations of a search over few parameters
SOON = 2.0  # seconds: a shorter time is not told
NEWTON = 6  # steps after the grid, usually


def told(function: Sloped, progress: Progress, *, curvature: Vector, promised: float, each: float = 0.0) -> Sloped:
    """The function, which tells its evaluations; `each` is expected to take so many seconds."""
    if progress is silent:
        return function
    began, count, first, share = monotonic(), 0, 0.0, 0.0
    progress("evaluation 1" + _left(each * USUAL), 0.0)

    def telling(x: Vector) -> tuple[float, Vector]:
        nonlocal count, first, share
        value, slope = function(x)
        count += 1
        if value < FAR:
            left, least = float(slope @ (slope / curvature)) / 2, promised + ROUNDING * abs(value)
            first = max(first, left, 2 * least)
            share = max(share, min(1 - log(max(left, least) / least) / log(first / least), 0.95))
        spent = monotonic() - began
        rest = spent * (1 - share) / share if share > 0.1 else max(USUAL - count, 1) * spent / count
        progress(f"evaluation {count + 1}" + _left(rest), share)
        return value, slope

    return telling


def _left(seconds: float) -> str:
    return f", about {time_left(seconds)} left" if seconds >= SOON else ""


@dataclass
class ToldCurve:
    """A curve of ratios that tells its evaluations: those of the grid, then Newton's."""

    curve: RatioProfile
    progress: Progress
    count: int = 0

    @property
    def rows(self) -> Vector:
        return self.curve.rows

    @property
    def columns(self) -> Vector:
        return self.curve.columns

    @property
    def span(self) -> tuple[float, float]:
        return self.curve.span

    def at(self, ratio: Vector, order: int) -> tuple[list[Matrix], list[Vector]]:
        found = self.curve.at(ratio, order)
        self.count += 1
        self.progress(f"evaluation {self.count}", min(self.count / (grid_size(*self.span) + NEWTON), 1.0))
        return found


def counted(progress: Progress, what: str, total: int) -> Callable[[], None]:
    """A function to call after each of some steps, which are told one by one."""
    done = 0

    def one_more() -> None:
        nonlocal done
        done += 1
        progress(f"{done:,} of {total:,} {what}", min(done / total, 1.0))

    return one_more
