"""Exponents, and the promise about them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))

from bench import __main__ as command
from bench import growth, page
from bench.growth import Curve, exponent, steep


def test_exponent_is_the_slope_of_the_upper_half() -> None:
    sizes = [1e2, 1e3, 1e4, 1e5, 1e6, 1e7]
    assert exponent(sizes, [3 * n**1.07 for n in sizes]) == pytest.approx(1.07)
    start_up = [0.5, 0.5, 0.5, *(1e-6 * n for n in sizes[3:])]
    assert exponent(sizes, start_up) == pytest.approx(1.0)
    assert exponent(sizes[::-1], start_up[::-1]) == pytest.approx(1.0)
    assert exponent([10, 1000], [1.0, 10.0]) == pytest.approx(0.5)


def test_what_grows_too_fast_with_its_rows_is_named() -> None:
    curve = {"job": "fit", "by": "rows", "rows": True, "exponent": 1.11}
    assert steep([curve]) == ["fit grows with its rows to the power 1.11, more than 1.10"]
    assert not steep([{**curve, "exponent": 1.1}, {**curve, "rows": False}])


def test_a_run_that_finds_a_steep_curve_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    curve = Curve("fit", "rows", (1e4, 1e5), (1.0, 20.0), (1.0, 1.0), (1.0, 20.0))
    monkeypatch.setattr(growth.cluster, "engines", lambda jobs: {})
    monkeypatch.setattr(growth, "curves", lambda quick: [curve])
    assert growth.compare(quick=True).failures == ["fit grows with its rows to the power 1.30, more than 1.10"]


def test_a_release_may_grow_as_the_bare_query_does_and_hardly_more() -> None:
    """A hash table outgrows the cache in SQL, too."""
    curve = {"job": "release", "by": "jobs", "rows": True, "exponent": 1.17, "exponent of bare": 1.13}
    assert not steep([curve])
    for other in ({"exponent": 1.19}, {"exponent of bare": 1.11}):
        assert len(steep([curve | other])) == 1
    assert not steep([curve | {"exponent": 1.1, "exponent of bare": 0.9}])
    assert steep([curve | {"exponent": 1.11, "exponent of bare": 0.9}])


def test_nothing_is_recorded_to_grow_too_fast() -> None:
    curves = page.curves_of(command.read(command.RESULTS)["full"])
    assert any(curve["rows"] for curve in curves)
    assert not steep(curves)
