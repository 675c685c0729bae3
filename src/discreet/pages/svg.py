"""A Vega-Lite specification or an altair chart as an SVG picture, drawn on this machine without a network.

The theme is applied here, in one place, so every chart of a report looks the same whoever made it. Text and axes
take the colour of the page around them; series colours have a contrast of at least 3:1 on white and on near-black.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from html import escape
from typing import Any, Protocol, runtime_checkable

from discreet.pages import numbers
from discreet.pages.look import FONT, LABEL_LIMIT, PALETTE
from discreet.pages.numbers import finite
from discreet.words.extras import needs

GROUND = '<rect width="100%" height="100%" fill="white"/>'
LOCALE = {"decimal": ".", "thousands": numbers.GROUP, "grouping": [3], "currency": ["", ""], "minus": numbers.MINUS}
_INK = "currentColor"
_TEXT = {"labelColor": _INK, "titleColor": _INK, "labelFontSize": 12, "titleFontSize": 12.5}

THEME: dict[str, Any] = {
    "background": None,
    "font": FONT,
    "padding": 8,
    "view": {"stroke": None, "continuousWidth": 640, "continuousHeight": 320},
    "axis": {
        **_TEXT,
        "titleFontWeight": 500,
        "titlePadding": 10,
        "domainColor": _INK,
        "domainOpacity": 0.45,
        "tickColor": _INK,
        "tickOpacity": 0.45,
        "gridColor": _INK,
        "gridOpacity": 0.12,
        "labelLimit": LABEL_LIMIT,
    },
    "axisX": {"grid": False},
    "axisQuantitative": {"tickCount": 6, "labelFlush": False},
    "header": {**_TEXT, "labelFontWeight": 600, "titleFontWeight": 500},
    "legend": {
        **_TEXT,
        "orient": "top",
        "columns": 4,
        "columnPadding": 24,
        "titleFontWeight": 500,
        "symbolStrokeWidth": 2,
        "symbolSize": 90,
        "labelLimit": LABEL_LIMIT,
    },
    "facet": {"spacing": 36},
    "title": {"color": _INK, "subtitleColor": _INK, "anchor": "start", "fontSize": 14, "fontWeight": 600},
    "mark": {"color": PALETTE[0]},
    "line": {"strokeWidth": 2},
    "point": {"size": 55, "filled": True},
    "rule": {"color": _INK},
    "text": {"color": _INK},
    "range": {"category": list(PALETTE), "heatmap": {"scheme": "cividis"}, "ramp": {"scheme": "cividis"}},
}


@runtime_checkable
class Picture(Protocol):
    """A picture that is drawn without a chart engine; `to_dict` has its data."""

    def to_dict(self) -> dict[str, Any]: ...

    def svg(self, *, alt: str, name: str) -> str: ...


def specification(chart: Any) -> dict[str, Any]:
    """The Vega-Lite specification of a chart with our theme under whatever the chart sets itself."""
    plain: dict[str, Any] = finite(chart if isinstance(chart, dict) else chart.to_dict())
    own = dict(plain.get("config", {}))
    if own.get("view") == {"continuousWidth": 300, "continuousHeight": 300}:  # altair's default, not a choice
        del own["view"]
    return {**plain, "config": _under(THEME, own)}


def svg(chart: Any, *, alt: str, name: str = "figure", standalone: bool = False) -> str:
    """Draw `chart`; `alt` is the text for a reader who cannot see the chart; `name` keeps ids distinct within a page.

    A standalone picture has a white ground, because a file does not know the page it will be shown on.
    """
    if isinstance(chart, Picture):
        picture = chart.svg(alt=alt, name=name)
        return picture.replace("</desc>", f"</desc>{GROUND}", 1) if standalone else picture
    picture = _drawn(json.dumps(specification(chart), sort_keys=True, allow_nan=False))
    # The picture has one description; its parts would only be noise to a screen reader.
    picture = re.sub(r"<\w[^<>]*>", lambda tag: re.sub(r' (role|aria-\w+)="[^"]*"', "", tag[0]), picture)
    picture = re.sub(r'(<\w+ [^<>]*?\bid=")', rf"\1{name}-", picture)
    picture = re.sub(r'(="url\(|href=")#', rf"\1#{name}-", picture)
    opening = re.match(r"<svg[^>]*>", picture)
    if opening is None:
        raise RuntimeError(f"The chart {name!r} was drawn, but not as SVG. Report this with its specification.")
    size = " ".join(re.findall(r'(?:width|height|viewBox)="[^"]*"', opening[0]))
    ground = GROUND if standalone else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" {size} role="img"'
        f' aria-labelledby="{name}-alt"><desc id="{name}-alt">{escape(alt)}</desc>{ground}'
        f"{picture[opening.end() :]}"
    )


def data(chart: Any) -> list[Mapping[str, object]]:
    """The rows that a chart draws, in the order of its layers."""
    return [row for rows in _values(specification(chart)) for row in rows]


def _values(part: object) -> Iterator[list[Mapping[str, object]]]:
    if isinstance(part, Mapping):
        for key, value in part.items():
            if key == "values" and isinstance(value, list) and value and isinstance(value[0], Mapping):
                yield value
            elif key == "datasets" and isinstance(value, Mapping):
                yield from value.values()
            else:
                yield from _values(value)
    elif isinstance(part, list):
        for value in part:
            yield from _values(value)


@lru_cache(maxsize=64)
def _drawn(specification: str) -> str:
    with needs("charts", "Drawing a chart"):
        import vl_convert
    return str(vl_convert.vegalite_to_svg(specification, allowed_base_urls=[], format_locale=LOCALE))


def _under(theme: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(theme)
    for key, value in own.items():
        under = theme.get(key)
        both = isinstance(under, Mapping) and isinstance(value, Mapping)
        merged[key] = _under(under, value) if both else value  # type: ignore[arg-type]
    return merged
