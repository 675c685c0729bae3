"""The few chart forms that studies share; each function returns a Vega-Lite specification.

Specifications are written here and not with altair, whose import and validation take longer than most reports. The
tests compare every form with altair's schema, and `altair.Chart.from_dict` reads any of them. Rows are dictionaries,
and only the fields named are kept, because what a chart draws is published with it. Histograms and distribution
functions are computed here, so single observations do not travel with the picture. The look is `svg.THEME`, applied
when a chart is drawn. Series differ in dash or shape as well as in colour.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, TypeAlias

import numpy as np

from discreet.arrays import Vector
from discreet.pages.axis import log_ticks
from discreet.pages.look import CHARACTER, DASHES, LABEL_LIMIT, NARROW, PALETTE, WIDE
from discreet.pages.numbers import finite, is_number
from discreet.words.errors import DataError

Specification: TypeAlias = dict[str, Any]
Rows: TypeAlias = Sequence[Mapping[str, Any]]
Titles: TypeAlias = Mapping[str, str]

CURVE_POINTS = 200  # per series; more cannot be seen
MAX_SERIES = len(DASHES)
WHITE_BELOW = 0.46  # share of the cividis scale where white and black text have the same contrast, 4.6:1
_EMPTY: Titles = {}


def lines(
    rows: Rows,
    x: str,
    y: str,
    series: str | None = None,
    *,
    log_x: bool = False,
    log_y: bool = False,
    facet: str | None = None,
    titles: Titles = _EMPTY,
    points: bool = True,
    low: str | None = None,
    high: str | None = None,
    reference: float | None = None,
    zero: bool = False,
) -> Specification:
    """Curves of `y` over `x`, one per `series`; `low` and `high` name the edges of a band around each."""
    kept = _kept(rows, [x, y, series, facet, low, high])
    across, up = _axis("x", rows, x, titles, log=log_x), _axis("y", rows, y, titles, log=log_y, zero=zero)
    layers = [_layer("line", x=across, y=up, point={"size": 36} if points else False, **_strokes(rows, series, titles))]
    if low and high:
        edge = _axis("y", rows, low, {low: axis_title(y, titles)}, log=log_y, zero=zero)
        band = {"x": across, "y": edge, "y2": _field(high), **_colour(rows, series, titles)}
        layers.insert(0, _layer("area", opacity=1, fillOpacity=0.18, **band))
    return _finished(kept, layers, rows, facet, reference=("y", reference))


def bars(
    rows: Rows,
    x: str,
    y: str,
    series: str | None = None,
    *,
    facet: str | None = None,
    titles: Titles = _EMPTY,
    horizontal: bool = False,
    reference: float | None = None,
) -> Specification:
    """A bar of length `y` for every category `x`, side by side within it for every `series`."""
    kept = _kept(rows, [x, y, series, facet])
    category, length = ("y", "x") if horizontal else ("x", "y")
    channels = {
        category: _axis(category, rows, x, titles, kind="nominal", room=_room(facet)),
        length: _axis(length, rows, y, titles, zero=True),
        **_beside(f"{category}Offset", rows, series),
        **_colour(rows, series, titles),
    }
    groups = len(_order(rows, x)) * (len(_order(rows, series)) if series else 1)
    size = {"height": max(120, 16 * groups)} if horizontal else {}
    return _finished(kept, [_layer("bar", **channels)], rows, facet, reference=(length, reference), **size)


def histogram(
    rows: Rows,
    x: str,
    series: str | None = None,
    *,
    bins: int | Sequence[float] = 30,
    facet: str | None = None,
    titles: Titles = _EMPTY,
    reference: float | None = None,
) -> Specification:
    """Histograms of `x` with bins of equal width, the same for every series and panel; `bins` may be edges."""
    edges = np.histogram_bin_edges(_numbers(rows, x), bins=np.asarray(bins) if np.ndim(bins) else bins)
    counted = []
    for keys, part in _parts(rows, series, facet):
        counts, _ = np.histogram(_numbers(part, x), bins=edges)
        counted += [
            {**keys, x: float(a), "to": float(b), "count": int(n)}
            for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)
        ]
    kept = _kept(counted, [x, "to", "count", series, facet])
    bar = _layer(
        "bar",
        opacity=0.6 if series else 1.0,
        x={**_axis("x", counted, x, titles), "bin": "binned"},
        x2=_field("to"),
        y={**_axis("y", counted, "count", titles, zero=True), "stack": None},
        **_colour(counted, series, titles),
    )
    return _finished(kept, [bar], counted, facet, reference=("x", reference))


def ecdf(
    rows: Rows,
    x: str,
    series: str | None = None,
    *,
    log_x: bool = False,
    facet: str | None = None,
    titles: Titles = _EMPTY,
    reference: float | None = None,
) -> Specification:
    """The share of observations at or below each `x`; long series are thinned to quantiles, exact at the ends."""
    share = "share at or below"
    steps = []
    for keys, part in _parts(rows, series, facet):
        values = np.sort(_numbers(part, x))
        n = len(values)
        ranks = np.unique(np.linspace(0, n - 1, min(n, CURVE_POINTS)).round().astype(int))
        steps += [{**keys, x: float(values[i]), share: float((i + 1) / n)} for i in ranks]
    kept = _kept(steps, [x, share, series, facet])
    line = _layer(
        "line",
        interpolate="step-after",
        x=_axis("x", steps, x, titles, log=log_x),
        y=_axis("y", steps, share, titles, zero=True),
        **_strokes(steps, series, titles),
    )
    return _finished(kept, [line], steps, facet, reference=("x", reference))


def heatmap(
    rows: Rows,
    x: str,
    y: str,
    value: str,
    *,
    facet: str | None = None,
    titles: Titles = _EMPTY,
    labels: str | None = ",.3~r",
) -> Specification:
    """A grid of `value` over the categories `x` and `y`; `labels` is the number format in the cells, or None."""
    kept = _kept(rows, [x, y, value, facet])
    grid = {side: _axis(side, rows, f, titles, kind="nominal", room=_room(facet)) for side, f in (("x", x), ("y", y))}
    low, high = float(min(_numbers(rows, value))), float(max(_numbers(rows, value)))
    number = _field(value, "quantitative")
    fill = {**number, "title": axis_title(value, titles), "scale": {"domain": [low, high]}}
    layers = [_layer("rect", **grid, color=fill)]
    if labels:
        dark = f"datum[{value!r}] < {low + WHITE_BELOW * (high - low)!r}"
        ink = {"condition": {"test": dark, "value": "white"}, "value": "black"}
        layers.append(_layer("text", fontSize=12, **grid, text={**number, "format": labels}, color=ink))
    return _finished(kept, layers, rows, facet, height=max(80, 34 * len(_order(rows, y))))


def points_with_intervals(
    rows: Rows,
    x: str,
    y: str,
    low: str,
    high: str,
    series: str | None = None,
    *,
    log_x: bool = False,
    facet: str | None = None,
    titles: Titles = _EMPTY,
    reference: float | None = None,
) -> Specification:
    """An estimate `x` with its interval from `low` to `high` for every label `y`, one line each."""
    kept = _kept(rows, [y, series, facet, x, low, high])
    shared = {
        "y": _axis("y", rows, y, titles, kind="nominal", room=_room(facet)),
        **(_colour(rows, series, titles) or {"color": {"value": PALETTE[0]}}),
        **_beside("yOffset", rows, series),
    }
    span = _axis("x", rows, low, {low: axis_title(x, titles)}, log=log_x)
    _axis("x", rows, high, titles, log=log_x)  # refuses what a logarithm cannot show
    layers = [
        _layer("rule", strokeWidth=2, x=span, x2=_field(high), **shared),
        _layer("point", opacity=1, x=_axis("x", rows, x, titles, log=log_x), **shared, **_shape(rows, series, titles)),
    ]
    count = len(_order(rows, y)) * (len(_order(rows, series)) if series else 1)
    step = 32 if _folded(_order(rows, y), LABEL_LIMIT) else 22
    return _finished(kept, layers, rows, facet, reference=("x", reference), height=max(80, step * count))


def _kept(rows: Rows, fields: Sequence[str | None]) -> list[dict[str, Any]]:
    """The rows with the fields that are drawn, and no others."""
    wanted = list(dict.fromkeys(field for field in fields if field))
    if not rows:
        raise DataError(
            f"A chart of {', '.join(wanted)} has no rows.",
            remedy="Draw it only where there is something to show.",
            about="rows",
        )
    missing = [field for field in wanted if not any(field in row for row in rows)]
    if missing:
        raise DataError(
            f"A chart asks for {missing[0]!r}, which no row has.",
            f"Rows have: {', '.join(map(str, rows[0]))}.",
            about="rows",
        )
    return [{field: finite(row.get(field)) for field in wanted} for row in rows]


def _layer(mark: str, **properties: Any) -> Specification:
    """A mark with its encoding: properties that are channels, which are dictionaries but for a line's points."""
    channels = {name: value for name, value in properties.items() if isinstance(value, dict) and name != "point"}
    style = {name: value for name, value in properties.items() if name not in channels}
    return {"mark": {"type": mark, **style}, "encoding": channels}


def _finished(
    kept: list[dict[str, Any]],
    layers: list[Specification],
    rows: Rows,
    facet: str | None,
    *,
    reference: tuple[str, float | None] = ("y", None),
    **size: Any,
) -> Specification:
    """Layers with the reference line under them, in one panel or in one panel per value of `facet`."""
    channel, value = reference
    if value is not None:
        once = {"aggregate": [{"op": "count", "as": "n"}], "groupby": [_escaped(facet)] if facet else []}
        rule = _layer("rule", strokeDash=[5, 4], opacity=0.6, **{channel: {"datum": value}})
        layers = [{"transform": [once], **rule}, *layers]
    width, height = NARROW if facet else WIDE
    panel = {"layer": layers, "width": width, "height": height, **size}
    if not facet:
        return {"data": {"values": kept}, **panel}
    names = _order(rows, facet)
    split = {**_field(facet, "nominal"), "title": None, "sort": names, "header": _folded(names, NARROW[0])}
    return {"data": {"values": kept}, "facet": split, "columns": 2, "spec": panel}


def _folded(names: Sequence[Any], room: float) -> dict[str, Any]:
    """Names too long for `room` in several lines; the typeface of a reader may be wider than the one measured here."""
    most = int(room / CHARACTER)
    lines = {str(name): textwrap.wrap(str(name), most) for name in names if len(str(name)) > most}
    expression = f"{json.dumps(lines)}[datum.value] || datum.value"
    return {"labelExpr": expression, "labelLineHeight": 13} if lines else {}


def _axis(
    channel: str,
    rows: Rows,
    field: str,
    titles: Titles,
    *,
    kind: str | None = None,
    log: bool = False,
    zero: bool = False,
    room: int = WIDE[0],
) -> Specification:
    values: list[Any] = [row[field] for row in rows if finite(row.get(field)) is not None]
    numeric = bool(values) and all(map(is_number, values))
    kind = kind or ("quantitative" if numeric else "temporal" if _dated(values) else "nominal")
    encoding = {**_field(field, kind), "title": axis_title(field, titles)}
    if kind == "nominal":
        order = _order(rows, field)
        longest = min(max(len(str(v)) for v in order) * CHARACTER, LABEL_LIMIT)
        fits: dict[str, Any] = {"labelAngle": -35 if longest > room / len(order) else 0}
        if channel == "y":
            fits = {"minExtent": longest, **_folded(order, LABEL_LIMIT)}
        title = titles.get(field)  # categories explain themselves unless a title is asked for
        return {**encoding, "sort": order, "title": title, "axis": {"grid": False, **fits}}
    if kind == "temporal":
        years = max(values).year - min(values).year
        yearly = {"axis": {"format": "%Y", "tickCount": "year"}} if years >= 3 else {}
        return {**encoding, "scale": {"type": "utc"}, **yearly}
    if log:
        if min(values) <= 0:
            raise DataError(
                f"A chart asks for a logarithmic axis of {field!r}, whose smallest value is {min(values):.4g}.",
                "Logarithms need positive values: leave those rows out or use a linear axis.",
                about="rows",
            )
        ticks = {"format": ",~g", "values": log_ticks(values), "tickCount": 100}
        return {**encoding, "scale": {"type": "log", "nice": False, "padding": 8}, "axis": ticks}
    if all(float(v).is_integer() and 1800 <= v <= 2100 for v in values):
        encoding["axis"] = {"format": "d"}  # years have no thousands
    return {**encoding, "scale": {"zero": zero}}


def _room(facet: str | None) -> int:
    return NARROW[0] if facet else WIDE[0]


def _beside(channel: str, rows: Rows, series: str | None) -> Specification:
    return {channel: {**_field(series, "nominal"), "sort": _order(rows, series)}} if series else {}


def _colour(rows: Rows, series: str | None, titles: Titles) -> Specification:
    return {"color": _series(rows, series, titles)} if series else {}


def _strokes(rows: Rows, series: str | None, titles: Titles) -> Specification:
    """Colour and dash together, with a stretch of the line as the legend's symbol."""
    if not series:
        return {}
    legend = {"symbolType": "stroke", "symbolSize": 700, "symbolFillColor": "transparent"}
    dashes = {"domain": _order(rows, series), "range": [list(dash) for dash in DASHES]}
    both = {**_series(rows, series, titles), "legend": legend}
    return {"color": both, "strokeDash": {**both, "scale": dashes}}


def _shape(rows: Rows, series: str | None, titles: Titles) -> Specification:
    return {"shape": _series(rows, series, titles)} if series else {}


def _series(rows: Rows, series: str, titles: Titles) -> Specification:
    order = _order(rows, series)
    if len(order) > MAX_SERIES:
        raise DataError(
            f"A chart has {len(order)} series of {series!r}; a reader can distinguish {MAX_SERIES}.",
            remedy="Leave some out, or show them in panels with `facet`.",
            about="rows",
        )
    title = titles.get(series)  # a legend explains itself unless a title is asked for
    # A domain and not `sort`: Vega-Lite merges the legends of colour and dash only without a sort.
    return {**_field(series, "nominal"), "title": title, "scale": {"domain": order}}


def _field(name: str, kind: str | None = None) -> Specification:
    return {"field": _escaped(name)} if kind is None else {"field": _escaped(name), "type": kind}


def _parts(rows: Rows, *fields: str | None) -> list[tuple[dict[str, Any], Rows]]:
    """Rows by the values of `fields`, in order of first appearance."""
    parts: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    named = [field for field in fields if field]
    for row in rows:
        parts.setdefault(tuple(row[field] for field in named), []).append(row)
    return [(dict(zip(named, key, strict=True)), part) for key, part in parts.items()]


def _numbers(rows: Rows, field: str) -> Vector:
    return np.array([row[field] for row in rows if finite(row.get(field)) is not None], dtype=np.float64)


def _order(rows: Rows, field: str) -> list[Any]:
    return list(dict.fromkeys(finite(row[field]) for row in rows if row.get(field) is not None))


def _dated(values: Sequence[object]) -> bool:
    return bool(values) and all(isinstance(value, date) for value in values)


def axis_title(field: str, titles: Titles) -> str:
    return titles.get(field, field.replace("_", " "))


def _escaped(field: str) -> str:
    """Vega reads dots and brackets as paths into an object."""
    return field.replace("\\", "\\\\").replace(".", "\\.").replace("[", "\\[").replace("]", "\\]")
