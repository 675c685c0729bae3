"""Curves and bars that are drawn without a chart engine stand where the engine draws them."""

from __future__ import annotations

import re
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from discreet.pages.axis import Axis
from discreet.pages.charts import MAX_SERIES
from discreet.pages.look import CHARACTER, PALETTE, WIDE
from discreet.pages.plot import BarPlot, LinePlot
from discreet.pages.svg import data, svg

SVG = "{http://www.w3.org/2000/svg}"


def rows_of(kind: str) -> list[dict[str, object]]:
    rng = np.random.default_rng(len(kind))
    names = {"hostile": ['<script>&"', "b"], "six": [f"table number {i}" for i in range(MAX_SERIES)]}.get(kind, ["a"])
    many = {"one": 1, "six": 9}.get(kind, 4)
    scale = {"small": 1e-8, "large": 1e11}.get(kind, 1.0)
    values = lambda: np.sort(scale * rng.lognormal(1, 2, many)) if kind != "level" else np.full(many, 3.0)  # noqa: E731
    return [
        {"size": float(x), "ratio": float(y), "table": name, "group": f"group {i}"}
        for name in names
        for i, (x, y) in enumerate(zip(values(), values(), strict=True))
    ]


KINDS = ("one", "few", "six", "hostile", "small", "large", "level")


def moved(path: str) -> np.ndarray:
    return np.array([[float(v) for v in pair.split(",")] for pair in re.split("[MLZ]", path) if pair])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reference", [None, 1.0])
def test_curves_stand_where_the_engine_draws_them(kind: str, reference: float | None) -> None:
    chart = LinePlot(rows_of(kind), "size", "ratio", "table", log=True, points=False, reference=reference)
    ours = ElementTree.fromstring(svg(chart, alt="it", name="a"))
    theirs = ElementTree.fromstring(svg(chart.to_dict(), alt="it", name="b"))
    drawn = [each.attrib for each in ours.iter(f"{SVG}path") if "h26" not in each.attrib["d"]]
    engine = [e.attrib for e in theirs.iter(f"{SVG}path") if e.attrib.get("stroke") in PALETTE and "L" in e.attrib["d"]]
    if kind not in ("one", "level"):  # a point is no line, and for one value both choose an axis of their own
        longest = sorted(engine, key=lambda each: each["d"].count("L"))  # the others are the legend's
        curves = {each["stroke"]: moved(each["d"]) for each in longest}
        for each in drawn:
            assert moved(each["d"]) == pytest.approx(curves[each["stroke"]], abs=0.02)
    assert len(drawn) == len({row["table"] for row in chart.rows})
    for path in drawn:
        assert np.all(moved(path["d"]) >= -0.01) and np.all(moved(path["d"]) <= np.array(WIDE) + 0.01)


@pytest.mark.parametrize("kind", KINDS)
def test_bars_are_as_long_as_their_numbers(kind: str) -> None:
    chart = BarPlot(rows_of(kind), "group", "ratio", "table", reference=1.0)
    picture = ElementTree.fromstring(svg(chart, alt="it", name="a"))
    bars = [each.attrib for each in picture.iter(f"{SVG}rect") if each.attrib["x"] == "0"]
    assert len(bars) == len(chart.rows)
    lengths, tops = ([float(each[side]) for each in bars] for side in ("width", "y"))
    numbers = [row["ratio"] for row in chart.rows]
    whole = max(lengths) / max(numbers)
    assert lengths == pytest.approx([whole * number for number in numbers], abs=0.01)
    assert len(set(tops)) == len(tops) and max(lengths) <= WIDE[0] + 0.01
    heights = [float(each["height"]) for each in bars]
    assert all(b - a >= heights[0] - 0.02 for a, b in zip(sorted(tops), sorted(tops)[1:], strict=False))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", [LinePlot, BarPlot])
def test_every_series_and_number_is_named_within_the_picture(kind: str, form: type) -> None:
    fields = ("size" if form is LinePlot else "group", "ratio", "table")
    chart = form(rows_of(kind), *fields)
    picture = ElementTree.fromstring(svg(chart, alt="what it <shows>", name="it", standalone=True))
    assert picture.findtext(f"{SVG}desc") == "what it <shows>"
    assert next(picture.iter(f"{SVG}rect")).attrib["fill"] == "white"
    words = [each.text for each in picture.iter(f"{SVG}text")]
    assert {row["table"] for row in chart.rows} <= set(words)
    assert "ratio" in words and sum(bool(re.match("[0-9]", word or "")) for word in words) >= 2
    assert [dict(row) for row in data(chart)] == [{name: row[name] for name in fields} for row in chart.rows]
    width = float(picture.attrib["width"])
    inside = re.search(r"translate\(([0-9.]+),", ElementTree.tostring(picture).decode())
    assert inside is not None
    for each in picture.iter(f"{SVG}text"):
        if each.get("text-anchor") == "end":
            assert float(inside[1]) + float(each.attrib["x"]) - CHARACTER * len(each.text or "") >= -0.5
        elif "transform" not in each.attrib and each.get("text-anchor") == "start":
            assert float(inside[1]) + float(each.attrib["x"]) < width


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0, 1.75], [0, 0.5, 1, 1.5, 2]),
        ([-3, 33], [-10, 0, 10, 20, 30, 40]),
        ([0.012, 0.034], [0.01, 0.015, 0.02, 0.025, 0.03, 0.035]),
        ([5, 5], [2, 3, 4, 5, 6, 7, 8]),
        ([0, 0], [-1, -0.5, 0, 0.5, 1]),
        ([1e9, 1e9 + 1], None),
    ],
)
def test_linear_axes_have_round_ends_around_all_values(values: list[float], ticks: list[float] | None) -> None:
    axis = Axis.linear(values, 640)
    assert ticks is None or list(axis.ticks) == pytest.approx(ticks)
    assert axis.low <= min(values) and axis.high >= max(values) and 3 <= len(axis.ticks) <= 9
    assert len({label for _, label in axis.labels()}) == len(axis.ticks)


def test_values_that_are_no_numbers_are_left_out() -> None:
    rows = [{"x": 1.0, "y": v, "s": "a"} for v in (1.0, float("nan"), None, 2.0, float("inf"))]
    picture = svg(LinePlot(rows, "x", "y", "s"), alt="it", name="a")
    assert "nan" not in picture and "inf" not in picture and picture.count("<circle") == 2


COUNTS = """
import sys
import discreet.pages.plot
from discreet.pages.svg import svg
rows = [{"x": 1.0 + i, "y": 2.0 + i, "s": "a"} for i in range(5)]
svg(discreet.pages.plot.LinePlot(rows, "x", "y", "s", log=True), alt="it", name="a")
svg(discreet.pages.plot.BarPlot(rows, "x", "y", "s"), alt="it", name="b")
assert "vl_convert" not in sys.modules and "altair" not in sys.modules
"""


def test_no_engine_is_started() -> None:
    subprocess.run([sys.executable, "-c", COUNTS], check=True)
