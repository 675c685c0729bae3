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
