"""The basic form: what does not fit in a whole number is absent, never another number."""

from __future__ import annotations

import pyarrow as pa

from discreet.plan.outputs import basic


def test_ends_that_are_no_whole_numbers_are_absent() -> None:
    """Conversions of such numbers warn, and warnings are errors here."""
    ends = pa.array([1e30, None, float("inf"), float("nan"), 2.0**63, 12.0])
    research = pa.table({"count": pa.array([10] * 6), "lower": pa.array([0.0] * 6), "upper": ends})
    found = basic(research, {}, round_to=5)
    assert found["upper"].to_pylist() == [None, None, None, None, None, 15]
    assert found["count"].to_pylist() == [10] * 6


def test_a_flag_is_of_the_rounded_numbers_beside_it() -> None:
    """By hand: 12 in [11, 13] is off by 8 %, 10 in [10, 15] by half; a zero that may be 10 says nothing."""
    research = pa.table(
        {"count": [12, 2, 0], "lower": [11.0, 1.0, 0.0], "upper": [13.0, 6.0, 0.0], "quality": ["good", "poor", "good"]}
    )
    found = basic(research, {}, round_to=5)
    assert found.to_pylist() == [
        {"count": 10, "lower": 10, "upper": 15, "quality": "poor"},
        {"count": 0, "lower": 0, "upper": 10, "quality": "mostly noise"},
        {"count": 0, "lower": 0, "upper": 0, "quality": "good"},
    ]
    assert basic(research, {}, round_to=1)["quality"].to_pylist() == ["good", "mostly noise", "good"]
