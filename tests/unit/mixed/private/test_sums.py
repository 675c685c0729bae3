"""Integer sums: equal in every engine, exact, and with the sensitivity that the proof states."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.data.frames import open_frame
from discreet.models.formula.formula import read_formula
from discreet.models.linear.private.moments import mechanism_for
from discreet.models.linear.private.public import PublicDesign, public_design
from discreet.models.linear.private.release import release_mixed
from discreet.models.linear.private.sums import HALF, ResponseSums, Scale, Units, response_sums, units_of

SCALE = Scale(Fraction(0), Fraction(2))
FORMULA = "rate ~ 0 + industry + quarter + industry:quarter + (1 | county/season)"


def summed_up(formula: str, data: object) -> tuple[PublicDesign, Units, ResponseSums]:
    frame, model = open_frame(data, ordered=True), read_formula(formula, needs_random=False)
    public = public_design(frame, model)
    units = units_of(frame, public)
    return public, units, response_sums(frame, public, units, SCALE)


def parts_of(formula: str, data: object) -> list[np.ndarray]:
    """Every confidential integer of a release: sums by part, and the sum of squares."""
    public, units, sums = summed_up(formula, data)
    request = release_mixed.ask("rate ~ 1", epsilon=1000, bounds=(0, 2), seed=1).request
    mechanism = mechanism_for(public, units, request, None)
    return [*(part.of(sums, public) for part in mechanism.parts), np.array([sums.squares])]


def test_engine_and_memory_agree(flows: dict[str, np.ndarray], tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(flows), tmp_path / "flows.parquet")
    here, there = parts_of(FORMULA, flows), parts_of(FORMULA, str(tmp_path / "flows.parquet"))
    # The columns are centred at a mean that engines round differently in the last digit: a step may differ.
    for a, b in zip(here, there, strict=True):
        assert np.abs(a - b).max() <= 1e-9 * max(np.abs(a).max(), 1)
    assert np.array_equal(here[0], there[0]) and np.array_equal(here[-1], there[-1])


def test_sums_are_those_of_the_rows(flows: dict[str, np.ndarray]) -> None:
    k = np.rint((flows["rate"] - 1) * HALF)
    groups, industry, quarter, _, squares = parts_of(FORMULA, flows)
    assert industry.tolist() == [int(k[flows["industry"] == name].sum()) for name in ("farms", "mines", "shops")]
    assert groups.sum() == k.sum() and squares[0] == int((k**2).sum())
    x = flows["quarter"] - flows["quarter"].mean()
    m = np.rint(x / (np.abs(x).max() / 2**16))
    assert quarter.tolist() == [int((k * m).sum())]


@settings(max_examples=40, deadline=None)
@given(row=st.integers(0, 59), value=st.floats(-5, 5), extreme=st.booleans())
def test_one_row_moves_each_part_by_its_sensitivity_at_most(row: int, value: float, extreme: bool) -> None:
    rng = np.random.default_rng(3)
    data = {
        "rate": np.where(extreme, 2.0 * (rng.random(60) < 0.5), rng.uniform(0, 2, 60)),
        "industry": np.array(["a", "b"])[rng.integers(0, 2, 60)],
        "quarter": rng.integers(1, 40, 60),
        "county": rng.integers(0, 6, 60),
        "season": rng.integers(0, 2, 60),
    }
    other = {**data, "rate": data["rate"].copy()}
    other["rate"][row] = value if not extreme else 2 - data["rate"][row]
    _, units, _ = summed_up(FORMULA, data)
    most = units.most[next(iter(units.most))]
    limits = [2 * HALF, 2 * HALF, 2 * HALF * most, 2 * HALF * most, HALF**2]
    for a, b, limit in zip(parts_of(FORMULA, data), parts_of(FORMULA, other), limits, strict=True):
        assert np.abs(a - b).sum() <= limit
        if extreme and limit == 2 * HALF:
            assert np.abs(a - b).sum() == limit  # attained, so the noise is not too large either


def test_the_design_pass_never_reads_the_response(flows: dict[str, np.ndarray]) -> None:
    model = read_formula("rate ~ industry + (1 | county)")
    spoiled = {**flows, "rate": np.full(len(flows["rate"]), np.nan)}
    a, b = (public_design(open_frame(data, ordered=True), model) for data in (flows, spoiled))
    assert np.array_equal(a.XX, b.XX) and np.array_equal(a.n, b.n) and a.learned.means == b.learned.means


@pytest.mark.parametrize("rows", [2_428_452, 10**9])
def test_sums_stay_exact_in_doubles(rows: int) -> None:
    """The number of steps of a public column shrinks as rows grow, so that no sum leaves the exact integers."""
    from discreet.models.linear.private.sums import EXACT, FINEST

    most = 2 ** max(1, min(FINEST, EXACT - HALF.bit_length() - rows.bit_length()))
    assert rows * HALF * most < 2**EXACT
