"""Curves and bars of a release's report, drawn here: a chart engine takes longer to start than most releases.

Each of them has the same marks as the chart of `charts` with the same name, whose specification it is for whoever reads
its data. The tests compare what both of them draw.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from discreet.pages import charts
from discreet.pages.axis import Axis
from discreet.pages.look import CHARACTER, DASHES, FONT, LABEL_LIMIT, PALETTE, WIDE
from discreet.pages.numbers import finite

SIZE, LINE = 12, 20  # pixels: of letters, and of a line of the legend
BETWEEN = 8  # pixels between an axis and its labels
BAR = 16  # pixels of a bar with the gap around it
FAINT = 'stroke="currentColor" stroke-opacity="0.12"'
FIRM = 'stroke="currentColor" stroke-opacity="0.45"'


@dataclass(frozen=True, slots=True)
class LinePlot:
    """`y` over `x`, a curve for every value of `series`; a dashed line at the height of `reference`."""

    rows: Sequence[Mapping[str, Any]]
    x: str
    y: str
    series: str
    log: bool = False
    points: bool = True
    titles: Mapping[str, str] = field(default_factory=dict)
    reference: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The same as a Vega-Lite specification."""
        return charts.lines(
            self.rows,
            self.x,
            self.y,
            self.series,
            log_x=self.log,
            log_y=self.log,
            titles=self.titles,
            points=self.points,
            reference=self.reference,
        )

    def svg(self, *, alt: str, name: str) -> str:
        width, height = map(float, WIDE)
        more = () if self.reference is None else (self.reference,)
        kept = _finite(self.rows, self.x, self.y)
        across = self._axis([float(row[self.x]) for row in kept], width)
        up = self._axis([float(row[self.y]) for row in kept], height, more)
        shape = _Axes(across, up, charts.axis_title(self.x, self.titles), charts.axis_title(self.y, self.titles))
        marks = [*shape.grid(rows=True), *shape.numbers_below(), *shape.numbers_beside()]
        if self.reference is not None:
            marks.append(_rule(0, height - up.at(self.reference), width, height - up.at(self.reference)))
        curves = _by_series(kept, self.series)
        for rows, colour, dash in zip(curves.values(), PALETTE, DASHES, strict=False):
            places = [(across.at(row[self.x]), height - up.at(row[self.y])) for row in rows]
            path = "L".join(f"{x:.2f},{y:.2f}" for x, y in places)
            stroke = f'stroke="{colour}" stroke-width="2" stroke-dasharray="{" ".join(map(str, dash))}"'
            marks.append(f'<path d="M{path}" fill="none" {stroke}/>')
            if self.points:
                marks += [f'<circle cx="{x:.2f}" cy="{y:.2f}" r="3.4" fill="{colour}"/>' for x, y in places]
        return shape.picture(marks, list(curves), alt=alt, name=name, lines=True)

    def _axis(self, values: Sequence[float], length: float, more: Sequence[float] = ()) -> Axis:
        return Axis.logarithmic(values, length, more) if self.log else Axis.linear([*values, *more], length)


@dataclass(frozen=True, slots=True)
class BarPlot:
    """A lying bar of length `y` for every category `x`, one below the other for every `series`."""

    rows: Sequence[Mapping[str, Any]]
    x: str
    y: str
    series: str
    reference: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The same as a Vega-Lite specification."""
        return charts.bars(self.rows, self.x, self.y, self.series, horizontal=True, reference=self.reference)

    def svg(self, *, alt: str, name: str) -> str:
        kept = _finite(self.rows, self.y)
        categories = list(dict.fromkeys(str(row[self.x]) for row in kept))
        bars = _by_series(kept, self.series)
        height = float(max(120, BAR * len(categories) * len(bars)))
        band = height / len(categories)
        each = 0.8 * band / len(bars)
        lengths = [float(row[self.y]) for row in kept]
        across = Axis.linear([0.0, *lengths, *([] if self.reference is None else [self.reference])], float(WIDE[0]))
        shape = _Axes(across, height, charts.axis_title(self.y, {}), "", tuple(categories))
        marks = [*shape.grid(rows=False), *shape.numbers_below(), *shape.names_beside(band)]
        for i, (rows, colour) in enumerate(zip(bars.values(), PALETTE, strict=False)):
            for row in rows:
                top = band * (categories.index(str(row[self.x])) + 0.1) + each * i
                size = f'width="{across.at(float(row[self.y])):.2f}" height="{each:.2f}"'
                marks.append(f'<rect x="0" y="{top:.2f}" {size} fill="{colour}"/>')
        if self.reference is not None:
            marks.append(_rule(across.at(self.reference), 0, across.at(self.reference), height))
        return shape.picture(marks, list(bars), alt=alt, name=name, lines=False)


@dataclass(frozen=True, slots=True)
class _Axes:
    """Axes with titles around marks whose pixels begin at the upper left corner within them."""

    across: Axis
    up: Axis | float
    below: str
    beside: str
    names: tuple[str, ...] = ()

    @property
    def height(self) -> float:
        return self.up.length if isinstance(self.up, Axis) else self.up

    @property
    def left(self) -> float:
        words = [label for _, label in self.up.labels()] if isinstance(self.up, Axis) else self.names
        longest = min(max((len(word) for word in words), default=0) * CHARACTER, LABEL_LIMIT)
        return longest + BETWEEN + (SIZE + 14 if self.beside else 0)

    def grid(self, *, rows: bool) -> Iterator[str]:
        """Lines across at the numbers beside, or upwards at the numbers below; and the axis of the others."""
        if rows and isinstance(self.up, Axis):
            for value in self.up.ticks:
                yield _line(0, self.height - self.up.at(value), self.across.length, None, FAINT)
            yield _line(0, self.height, self.across.length, None, FIRM)
        else:
            for value in self.across.ticks:
                yield _line(self.across.at(value), 0, None, self.height, FAINT)
            yield _line(0, 0, None, self.height, FIRM)

    def numbers_below(self) -> Iterator[str]:
        end = -1e9
        for value, label in self.across.labels():
            x, half = self.across.at(value), CHARACTER * len(label) / 2
            yield _line(x, self.height, None, self.height + 5, FIRM)
            if x - half > end:
                yield _word(x, self.height + BETWEEN + SIZE, label, "middle")
                end = x + half + 4
        yield _word(self.across.length / 2, self.height + 2 * BETWEEN + 2 * SIZE + 6, self.below, "middle", weight=500)

    def numbers_beside(self) -> Iterator[str]:
        assert isinstance(self.up, Axis)
        begin = 1e9
        for value, label in self.up.labels():
            y = self.height - self.up.at(value)
            if y + SIZE < begin:
                yield _word(-BETWEEN, y + SIZE / 3, label, "end")
                begin = y
        turned = f'transform="rotate(-90)" x="{-self.height / 2:.2f}" y="{SIZE - self.left:.2f}"'
        yield f'<text {turned} text-anchor="middle" font-weight="500">{escape(self.beside)}</text>'

    def names_beside(self, band: float) -> Iterator[str]:
        for i, name in enumerate(self.names):
            lines = textwrap.wrap(name, int(LABEL_LIMIT / CHARACTER)) or [name]
            first = band * (i + 0.5) + SIZE / 3 - (SIZE + 1) * (len(lines) - 1) / 2
            yield from (_word(-BETWEEN, first + (SIZE + 1) * k, line, "end") for k, line in enumerate(lines))

    def picture(self, marks: Sequence[str], series: Sequence[str], *, alt: str, name: str, lines: bool) -> str:
        legend, above = _legend(series, self.across.length, lines=lines)
        right = 5 + CHARACTER * max(len(label) for _, label in self.across.labels()) / 2
        width, height = self.left + self.across.length + right + 16, above + self.height + 2 * BETWEEN + 2 * SIZE + 30
        size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="{name}-alt"'
            f' font-family="{FONT}" font-size="{SIZE}"><desc id="{name}-alt">{escape(alt)}</desc>'
            f'<g transform="translate({self.left + BETWEEN:.2f},{above + 8:.2f})" fill="currentColor">'
            f'{"".join(marks)}<g transform="translate(0,{-above:.2f})">{"".join(legend)}</g></g></svg>'
        )


def _legend(series: Sequence[str], width: float, *, lines: bool) -> tuple[list[str], float]:
    """A symbol and the name of each series, and the height of all of them."""
    drawn, across, row = [], 0.0, 0
    for word, colour, dash in zip(series, PALETTE, DASHES, strict=False):
        room = 34 + CHARACTER * len(word) + 18
        if across and across + room > width:
            across, row = 0.0, row + 1
        y = LINE * row + LINE / 2
        if lines:
            stroke = f'stroke="{colour}" stroke-width="2" stroke-dasharray="{" ".join(map(str, dash))}"'
            drawn.append(f'<path d="M{across:.2f},{y}h26" fill="none" {stroke}/>')
        else:
            drawn.append(f'<rect x="{across + 12:.2f}" y="{y - 7}" width="14" height="14" fill="{colour}"/>')
        drawn.append(_word(across + 34, y + SIZE / 3, word, "start"))
        across += room
    return drawn, float(LINE * (row + 1) + 8)


def _finite(rows: Sequence[Mapping[str, Any]], *fields: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if all(finite(row.get(field)) is not None for field in fields)]


def _by_series(rows: Sequence[Mapping[str, Any]], series: str) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(str(row[series]), []).append(row)
    return found


def _rule(x: float, y: float, to_x: float, to_y: float) -> str:
    places = f'x1="{x:.2f}" y1="{y:.2f}" x2="{to_x:.2f}" y2="{to_y:.2f}"'
    return f'<line {places} stroke="currentColor" stroke-dasharray="4 4"/>'


def _line(x: float, y: float, to_x: float | None, to_y: float | None, stroke: str) -> str:
    """A line across or upwards."""
    x2, y2 = x if to_x is None else to_x, y if to_y is None else to_y
    return f'<line x1="{x:.2f}" y1="{y:.2f}" x2="{x2:.2f}" y2="{y2:.2f}" {stroke}/>'


def _word(x: float, y: float, word: str, anchor: str, weight: int | None = None) -> str:
    heavy = f' font-weight="{weight}"' if weight else ""
    return f'<text x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}"{heavy}>{escape(word)}</text>'
