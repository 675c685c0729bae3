"""What a rule leaves out: numbers below its bound, however far below; only changes count by their size."""

from __future__ import annotations

import pyarrow as pa
import pytest

from discreet.plan import rules
from discreet.plan.shape import Suppress


@pytest.mark.parametrize(
    ("name", "kept"), [("creation", [None, None, None, 20, 31]), ("change", [-25, None, None, 20, 31])]
)
def test_a_number_that_noise_took_far_below_zero_is_below_the_bound(name: str, kept: list[int | None]) -> None:
    table = pa.table({name: [-25, -3, 19, 20, 31], f"{name}_quality": ["good"] * 5})
    found = rules.without_suppressed(table, Suppress.model_validate({"below": 20}), {f"{name}_quality": [name]})
    assert found[name].to_pylist() == kept
    gone = [rules.SUPPRESSED if value is None else "good" for value in kept]
    assert found[f"{name}_quality"].to_pylist() == gone
