"""An axis: where a number stands, and which numbers are written beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from discreet.pages import numbers

TICKS = 6  # about
SMALLEST, LARGEST = 1e-6, 1e12  # which are written in full
LOG_PADDING = 8.0  # pixels at both ends
ROUND = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Axis:
    """From `low` to `high` over `length` pixels; the ends of a logarithmic one are left empty."""

    low: float
    high: float
    length: float
    ticks: tuple[float, ...]
    log: bool = False

    @classmethod
    def linear(cls, values: Sequence[float], length: float) -> Axis:
        """Its ends are round numbers."""
        low, high = min(values), max(values)
        if high - low <= 1e-12 * max(abs(low), abs(high)):
            half = abs(high) / 2 or 1.0
            low, high = low - half, high + half
        power = 10.0 ** math.floor(math.log10((high - low) / TICKS))
        step = next(each for each in ROUND if each * power * (TICKS + 0.5) >= high - low) * power
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        ticks = tuple(round(step * i, decimals) + 0.0 for i in range(first, last + 1))
        return cls(ticks[0], ticks[-1], length, ticks)

    @classmethod
    def logarithmic(cls, values: Sequence[float], length: float, more: Sequence[float] = ()) -> Axis:
        """Its ends are the smallest and the largest number; `more` numbers have room on it and no ticks."""
        low, high = min([*values, *more]), max([*values, *more])
        if low == high:
            low, high = low / 2, high * 2
        return cls(low, high, length, tuple(each for each in log_ticks(values) if low <= each <= high), log=True)

    def at(self, value: float) -> float:
        """Pixels from the axis' beginning."""
        if not self.log:
            return self.length * (value - self.low) / (self.high - self.low)
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return LOG_PADDING + (self.length - 2 * LOG_PADDING) * share

    def labels(self) -> list[tuple[float, str]]:
        """Ticks with their words."""
        return [(each, _label(each)) for each in self.ticks]


def _label(value: float) -> str:
    """Round numbers in full; of very small and very large ones the power of ten."""
    if value == 0 or not SMALLEST <= abs(value) < LARGEST:
        return numbers.text(value)
    plain = f"{value:,.10f}".rstrip("0").rstrip(".")
    return plain.replace("-", numbers.MINUS)


def log_ticks(values: Sequence[float]) -> list[float]:
    """The values themselves if few, and round or close, else 1, 2, 5 times powers of ten, else the powers only."""
    distinct = sorted({float(value) for value in values})
    round_ = all(value == float(f"{value:.3g}") for value in distinct)
    if len(distinct) <= 8 and (round_ or distinct[-1] < 10 * distinct[0]):
        return distinct
    low, high = math.floor(math.log10(distinct[0])), math.log10(distinct[-1])
    steps = (1, 2, 5) if high - math.log10(distinct[0]) <= 3 else (1,)
    return [step * 10.0**power for power in range(low, math.floor(high) + 2) for step in steps if power < high + 1]
