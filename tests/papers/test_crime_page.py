"""The picture of two tracts is valid Vega-Lite, and is drawn."""

from __future__ import annotations

from xml.etree import ElementTree

import altair

from discreet.pages.svg import svg
from discreet_papers.crime_page import _tracts

TRACTS = [{"month": m, "crimes": m * m, "positive": m > 1, "tract": t} for m in range(3) for t in "ab"]


def test_tracts_are_drawn() -> None:
    chart = _tracts(TRACTS).chart
    altair.Chart.from_dict(chart).to_dict()
    picture = ElementTree.fromstring(svg(chart, alt="what it shows"))
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}path"))) > 1
