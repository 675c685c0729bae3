"""Estimates with intervals as a table that is its own chart: a mark on a common scale in each row, noise greyed.

No chart engine and no frame: numbers come in, rows of HTML go out. A reader searches the table where scripts run; all
of it is there where none does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from discreet.pages.numbers import text

WIDTH, HEIGHT = 120, 14  # units of a mark's picture, which fills its cell
MOST = 400
"""Rows of one table in a page; the files have them all."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One estimate: what it is of, its interval where there is one, a flag, and counts of its kinds for a sparkline."""

    label: str
    value: float
    low: float = math.nan
    high: float = math.nan
    flag: str = ""
    faint: bool = False
    kinds: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranked:
    """Marks in order under a caption; `columns` name the label, the value and the flag."""

    columns: tuple[str, str, str]
    marks: Sequence[Mark]
    caption: str
    name: str = ""
    pictured: str = "Chart"
    whole: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "marks", tuple(self.marks)[:MOST])


def rows(ranked: Ranked) -> tuple[str, str]:
    """The head and the body of the table."""
    marks, flagged = ranked.marks, any(mark.flag for mark in ranked.marks)
    low, high = _ends(marks)
    decimals = 0 if ranked.whole else _decimals(marks)
    label, value, flag = map(escape, ranked.columns)
    head = (
        f'<th scope="col">{label}</th><th scope="col" class="number">{value}</th>'
        f'<th scope="col">{escape(ranked.pictured)}</th>' + f'<th scope="col">{flag}</th>' * flagged
    )
    body = []
    for mark in marks:
        start, end = (_shown(each, decimals) for each in (mark.low, mark.high))
        between = f'<span class="ends">{start}\u00a0to\u00a0{end}</span>' if start and end else ""
        picture = _spark(mark.kinds) if mark.kinds else _picture(mark, low, high)
        faint = ' class="faint"' if mark.faint else ""
        body.append(
            f'<tr{faint}><th scope="row">{escape(mark.label)}</th>'
            f'<td class="number"><b>{_shown(mark.value, decimals)}</b>{between}</td><td class="mark">{picture}</td>'
            + f"<td>{escape(mark.flag)}</td>" * flagged
            + "</tr>"
        )
    return head, "\n".join(body)


def _decimals(marks: Sequence[Mark]) -> int:
    """One number of decimals for a table: three digits of the usual interval, or of the usual value."""
    sizes = [abs(mark.high - mark.low) for mark in marks] + [abs(mark.value) for mark in marks]
    known = sorted(size for size in sizes if math.isfinite(size) and size)
    return min(max(2 - math.floor(math.log10(known[len(known) // 2])), 0), 8) if known else 0


def _shown(value: float, decimals: int) -> str:
    if not math.isfinite(value):
        return ""
    return text(float(value), decimals=decimals) if decimals else text(round(value))


def _ends(marks: Sequence[Mark]) -> tuple[float, float]:
    """The scale that all marks share; zero is on it."""
    seen = [end for mark in marks for end in (mark.value, mark.low, mark.high) if math.isfinite(end)]
    low, high = min([0.0, *seen]), max([0.0, *seen])
    return low, high if high > low else low + 1.0


def _picture(mark: Mark, low: float, high: float) -> str:
    """A bar from zero to the value, or a point where values may be below zero; the interval as a line over it."""

    def at(value: float) -> float:
        return round((WIDTH - 4) * (value - low) / (high - low) + 2, 1)

    parts = [f'<path class="axis" d="M{at(0)} 0V{HEIGHT}"/>'] * (low < 0)
    if low < 0 and math.isfinite(mark.value):
        parts.append(f'<path class="point" d="M{at(mark.value)} 7h0"/>')
    elif math.isfinite(mark.value):
        parts.append(f'<rect x="2" y="4" width="{max(round(at(mark.value) - 2, 1), 0.6)}" height="6"/>')
    if math.isfinite(mark.low) and math.isfinite(mark.high):
        parts.append(f'<path class="reach" d="M{at(max(mark.low, low))} 7H{at(mark.high)}"/>')
    return _svg("".join(parts))


def _spark(kinds: Sequence[float]) -> str:
    """A bar for each kind, as high as its share of the largest."""
    most, step = max([1.0, *kinds]), (WIDTH - 4) / len(kinds)
    bars = (
        f'<rect x="{2 + i * step:.1f}" y="{HEIGHT - h:.1f}" width="{max(step - 1, 0.6):.1f}" height="{h:.1f}"/>'
        for i, h in ((i, max(HEIGHT * kind / most, 0.6)) for i, kind in enumerate(kinds))
    )
    return _svg("".join(bars))


def _svg(parts: str) -> str:
    """Hidden from those who cannot see it: the numbers beside it say the same."""
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" aria-hidden="true">{parts}</svg>'
