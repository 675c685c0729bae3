"""The chart forms: what they draw is what they were given, and nothing more travels with the picture."""

from __future__ import annotations

import re
from datetime import date
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from discreet.pages import charts
from discreet.pages.look import PALETTE
from discreet.pages.svg import data, specification, svg
from discreet.words.errors import DataError
from faults_of import about

ROWS: list[dict[str, Any]] = [
    {"x": np.int64(x), "y": np.float64(x + 1), "low": x + 0.5, "high": x + 2.0, "who": who, "where": where, "secret": 9}
    for where in ("north", "south")
    for who in ("zeta", "alpha")
    for x in range(1, 5)
]
FORMS = {
    "lines": lambda **more: charts.lines(ROWS, "x", "y", "who", low="low", high="high", log_y=True, **more),
    "bars": lambda **more: charts.bars(ROWS, "x", "y", "who", **more),
    "flat bars": lambda **more: charts.bars(ROWS, "x", "y", "who", horizontal=True, **more),
    "histogram": lambda **more: charts.histogram(ROWS, "y", "who", bins=3, **more),
    "ecdf": lambda **more: charts.ecdf(ROWS, "y", "who", log_x=True, **more),
    "heatmap": lambda **more: charts.heatmap(ROWS, "x", "who", "y", **more),
    "intervals": lambda **more: charts.points_with_intervals(ROWS, "y", "x", "low", "high", "who", **more),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("facet", [None, "where"])
def test_every_form_draws(form: str, facet: str | None) -> None:
    chart = FORMS[form](facet=facet)
    picture = ElementTree.fromstring(svg(chart, alt="what it shows", name="it"))
    words = ["".join(text.itertext()) for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert "secret" not in data(chart)[0]
    assert {"zeta", "alpha"} <= set(words)
    assert ({"north", "south"} <= set(words)) is (facet is not None)
    assert words.count("zeta") == 1  # one legend, however many channels


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("facet", [None, "where"])
def test_every_form_is_valid_vega_lite(form: str, facet: str | None) -> None:
    import altair as alt
    import jsonschema

    reference = {} if form == "heatmap" else {"reference": 2.0}
    chart = FORMS[form](facet=facet, **reference)
    alt.Chart.from_dict(chart).to_dict()
    panel = chart.get("spec", chart)
    panel["layer"][-1]["encoding"]["x"]["scael"] = {}
    with pytest.raises(jsonschema.ValidationError):
        alt.Chart.from_dict(chart)


def test_series_keep_the_order_given() -> None:
    picture = svg(charts.lines(ROWS[:8], "x", "y", "who"), alt="a")
    assert picture.index(">zeta<") < picture.index(">alpha<")
    assert {PALETTE[0], PALETTE[1]} <= set(re.findall(r'stroke="(#\w+)"', picture))


def test_histogram_counts_every_value_once() -> None:
    rng = np.random.default_rng(3)
    values = {"a": rng.normal(size=500), "b": rng.normal(2, 1, size=300)}
    rows = [{"v": v, "s": s} for s, part in values.items() for v in part]
    drawn = data(charts.histogram(rows, "v", "s", bins=20))
    for s, part in values.items():
        mine: list[Any] = [row for row in drawn if row["s"] == s]
        assert sum(row["count"] for row in mine) == len(part)
        for row in mine[:-1]:
            assert row["count"] == sum(row["v"] <= v < row["to"] for v in part)
    assert len(drawn) == 40  # bins, not observations


def test_ecdf_is_the_share_at_or_below() -> None:
    values = np.random.default_rng(4).exponential(size=5000)
    drawn: list[Any] = data(charts.ecdf([{"v": v} for v in values], "v"))
    assert len(drawn) <= charts.CURVE_POINTS
    for row in drawn:
        assert row["share at or below"] == pytest.approx(np.mean(values <= row["v"]))
    assert drawn[-1]["share at or below"] == 1


def test_absent_and_infinite_values_leave_gaps() -> None:
    rows: list[dict[str, Any]] = [
        {"x": 1, "y": float("nan")},
        {"x": 2, "y": float("inf")},
        {"x": 3, "y": 1.0},
        {"x": 4},
    ]
    assert [row["y"] for row in data(charts.lines(rows, "x", "y"))] == [None, None, 1.0, None]
    assert svg(charts.lines(rows, "x", "y"), alt="a").startswith("<svg")


def test_dates_and_awkward_field_names() -> None:
    rows = [{"day": date(2020 + i, 1, 1), "L1.error [ratio]": float(i)} for i in range(4)]
    picture = svg(charts.lines(rows, "day", "L1.error [ratio]"), alt="a")
    assert ">2021<" in picture
    assert ">L1.error [ratio]<" in picture
    labels = [float(label) for label in re.findall(r">([\d.]+)</text>", picture) if len(label) <= 3]
    assert max(labels) == 3.0  # the values were found


def test_reference_line_is_drawn_once() -> None:
    picture = svg(charts.lines(ROWS[:8], "x", "y", "who", reference=3.0), alt="a")
    assert picture.count('stroke-dasharray="5,4"') == 1


@pytest.mark.parametrize(
    ("rows", "more", "fact"),
    [
        ([], {}, "no rows"),
        ([{"x": 1}], {}, "'y'"),
        ([{"x": 0, "y": 1}], {"log_x": True}, "'x'"),
        ([{"x": 1, "y": 1, "s": i} for i in range(7)], {"series": "s"}, "7 "),
    ],
)
def test_what_cannot_be_drawn_is_refused(rows: Any, more: dict[str, Any], fact: str) -> None:
    with pytest.raises(DataError, check=about("rows", naming=(fact,))):
        charts.lines(rows, "x", "y", **more)


def test_own_configuration_wins_over_the_theme() -> None:
    import altair as alt

    chart = alt.Chart(alt.InlineData(values=[{"x": 1}])).mark_point().encode(x="x:Q").configure_axis(gridOpacity=0.9)
    config = specification(chart)["config"]
    assert config["axis"]["gridOpacity"] == 0.9
    assert config["axis"]["labelColor"] == "currentColor"
    assert config["view"]["continuousWidth"] == 640


def test_remote_data_are_refused() -> None:
    remote = {"data": {"url": "https://example.invalid/a.csv"}, "mark": "point", "encoding": {}}
    with pytest.raises(ValueError) as refused:
        svg(remote, alt="a")
    assert "not allowed" in str(refused.value)
