"""Sub-sample and aggregate, proved: one row moves one block's vector, by a diameter at most, whatever happens."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.data.frames import open_frame
from discreet.models.formula.formula import read_formula
from discreet.models.formula.rows import ModelRows, read_rows
from discreet.models.linear import private
from discreet.models.linear.private import strict
from discreet.models.linear.private.partition import fit_partition, partition
from discreet.models.linear.private.public import PublicDesign, public_design
from discreet.models.linear.private.sums import HALF
from discreet.privacy.losses import Concentrated, Pure
from discreet.words.errors import PrivacyError
from faults_of import about

Flows = dict[str, np.ndarray]
release_mixed = partial(private.release_mixed, public=["industry", "quarter", "county", "season"])
FORMULA = "rate ~ 0 + industry + quarter + (1 | county)"
STEP = 1 / HALF  # of a response in [0, 2]


class Zero:
    """A source whose noise is always the same: what is left of a release is its confidential statistic."""

    private = False

    def words(self, n: int) -> np.ndarray:
        return np.full(n, 2**63, dtype=np.uint64)


def prepared(data: Flows, blocks: int, **asked: Any) -> tuple[ModelRows, PublicDesign, np.ndarray, strict.BlockNoise]:
    frame = open_frame(data, ordered=True)
    public = public_design(frame, read_formula(FORMULA))
    rows = read_rows(frame, public.design.layout, public.learned)[0]
    chosen = partition(public.rows, blocks, np.random.default_rng(1))
    request = private.release_mixed.ask("rate ~ 1", bounds=(0, 2), seed=1, **asked).request
    presence = strict.presence_of(rows, public, chosen)
    units = strict.column_units(rows, public)
    return rows, public, chosen, strict.mechanism_for(public, request, presence, units, None, None)


def sums(
    rows: ModelRows, public: PublicDesign, chosen: np.ndarray, mechanism: strict.BlockNoise, y: np.ndarray
) -> list[np.ndarray]:
    """The confidential sums over blocks, about a fixed centre."""
    response = strict.dithered(np.rint((y - 1) / STEP), STEP, np.random.default_rng(3))
    found = fit_partition(strict.with_response(rows, public, response), public, chosen)
    drawn = strict.draw(mechanism, found, public, 0, STEP, Zero())
    return [drawn.fixed, *drawn.groups, drawn.deviations]


@settings(max_examples=25, deadline=None)
@given(
    row=st.integers(0, 399), value=st.sampled_from([0.0, 2.0, 1.0, 1e-9]), quiet=st.booleans(), gaussian=st.booleans()
)
def test_one_row_moves_the_sums_by_the_sensitivity_at_most(row: int, value: float, quiet: bool, gaussian: bool) -> None:
    """Also where the row breaks a block whose other responses are all equal, and the block stops being estimable."""
    rng = np.random.default_rng(7)
    data = {
        "rate": np.zeros(400) if quiet else rng.uniform(0, 2, 400),
        "industry": np.array(["a", "b"])[rng.integers(0, 2, 400)],
        "quarter": rng.integers(1, 40, 400),
        "county": rng.integers(0, 12, 400),
    }
    rows, public, chosen, mechanism = prepared(data, 8, **({"rho": 1} if gaussian else {"epsilon": 1}))
    other = data["rate"].copy()
    other[row] = value
    parts = [mechanism.fixed, *mechanism.groups, mechanism.deviations]
    pair = (sums(rows, public, chosen, mechanism, y) for y in (data["rate"], other))
    for part, a, b in zip(parts, *pair, strict=True):
        moved = np.abs(a - b).astype(float)
        size = np.sqrt((moved**2).sum()) if gaussian else moved.sum()
        assert size <= part.sensitivity


@pytest.mark.parametrize("asked", [{"epsilon": "1/3"}, {"epsilon": 1}, {"rho": "0.5"}])
def test_losses_add_up_exactly_and_scales_follow(flows: Flows, asked: dict[str, Any]) -> None:
    mechanism = prepared(flows, 20, **asked)[3]
    whole = Pure(asked["epsilon"]) if "epsilon" in asked else Concentrated(asked["rho"])
    assert mechanism.loss == whole
    for part in (mechanism.fixed, *mechanism.groups, mechanism.deviations):
        amount = float(next(iter(part.loss.amounts.values())))
        spent = part.sensitivity / part.scale if "epsilon" in asked else (part.sensitivity / part.scale) ** 2 / 2
        assert spent == pytest.approx(amount, rel=1e-12) and spent <= amount


@pytest.mark.parametrize("loss", [Pure(1), Concentrated(1)])
def test_vectors_stay_in_their_ball(loss: Pure | Concentrated) -> None:
    rng = np.random.default_rng(2)
    part = strict.BlockPart(loss, 0.5, 2 * strict.STEPS, 1.0)
    block = np.repeat(np.arange(200), 30)
    values = rng.standard_t(2, size=6000) * np.repeat(rng.gamma(0.3, size=200), 30)
    whole = part.whole(block, values, 200).reshape(200, 30).astype(float)
    norm = np.abs(whole).sum(axis=1) if isinstance(loss, Pure) else np.sqrt((whole**2).sum(axis=1))
    assert norm.max() <= strict.STEPS and norm.max() > 0.999 * strict.STEPS
    inside = values.reshape(200, 30)
    free = (np.abs(inside).sum(axis=1) if isinstance(loss, Pure) else np.sqrt((inside**2).sum(axis=1))) < 0.5
    assert free.any() and np.abs(whole[free] * part.step - inside[free]).max() < 1e-7


@pytest.mark.parametrize("loss", [Pure(1), Concentrated(1)])
def test_a_vector_that_was_not_pulled_far_enough_counts_nothing(
    loss: Pure | Concentrated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That integers lie in the ball is checked on them, whatever floating point did to the pull before."""
    part = strict.BlockPart(loss, 0.5, 2 * strict.STEPS, 1.0)
    block, values = np.array([0, 0, 1, 1]), np.array([3.0, -4.0, 0.1, 0.2])
    assert (part.whole(block, values, 2) != 0).all()
    monkeypatch.setattr(strict, "INSIDE", 1 + 1e-6)
    assert (part.whole(block, values, 2) != 0).tolist() == [False, False, True, True]


def test_squares_that_vanish_do_not_leave_a_vector_outside_its_ball() -> None:
    part = strict.BlockPart(Concentrated(1), 1e-180, 2 * strict.STEPS, 1.0)
    whole = part.whole(np.zeros(3, dtype=np.int64), np.full(3, 1e-175), 1)
    assert (whole.astype(float) ** 2).sum() <= strict.STEPS**2


def test_presence_does_not_depend_on_the_response(flows: Flows) -> None:
    rows, public, chosen, _ = prepared(flows, 60, epsilon=1)
    a = strict.presence_of(rows, public, chosen)
    b = strict.presence_of(strict.with_response(rows, public, np.full(3000, np.nan)), public, chosen)
    assert np.array_equal(a.columns, b.columns) and np.array_equal(a.levels[0], b.levels[0])
    county = np.searchsorted(public.learned.levels["county"], flows["county"])
    expected = np.bincount(np.concatenate([np.unique(county[at]) for at in chosen]), minlength=40)
    assert a.levels[0].tolist() == expected.tolist()


def test_a_free_release_is_the_average_of_the_blocks(flows: Flows) -> None:
    fit = release_mixed(
        FORMULA,
        flows,
        epsilon=10**7,
        method="strict",
        bounds=(0, 2),
        blocks=20,
        sizes={"fixed": 2, "groups": 1},
        seed=1,
    )
    frame = open_frame(flows, ordered=True)
    public = public_design(frame, read_formula(FORMULA))
    rows = read_rows(frame, public.design.layout, public.learned)[0]
    found = fit_partition(rows, public, partition(3000, 20, np.random.default_rng(1)))
    assert fit.beta == pytest.approx(public.origin.beta(np.nanmean(found.beta, axis=0)), abs=1e-3)
    _, level, effect = found.effects[0]
    mean = np.bincount(level, effect, 40) / np.bincount(level, minlength=40)
    assert fit.effects["county"].values == pytest.approx(mean, abs=1e-3)
    assert np.sqrt(fit.sigma2) == pytest.approx(np.sqrt(found.variances[:, 1]).mean(), abs=1e-3)


def test_a_release_is_proved_and_hides_nothing_it_does(flows: Flows) -> None:
    fit = release_mixed(FORMULA, flows, rho="0.5", method="strict", bounds=(0, 2), blocks=20, seed=1)
    assert fit.guarantee.basis == "proved" and fit.guarantee.proof == "docs/proofs/mixed-strict.md"
    assert fit.guarantee.loss == Concentrated("0.5")
    asked = {"method": "strict", "bounds": (0, 2), "blocks": 50, "sizes": {"fixed": 0.3}, "seed": 1}
    linear = release_mixed("rate ~ industry", flows, epsilon=20, **asked)
    assert linear.random == () and linear.fixed["industryshops"] == pytest.approx(0.4, abs=0.1)


def test_sizes_are_checked(flows: Flows) -> None:
    for sizes in ({"fixed": 0}, {"slopes": 1}):
        with pytest.raises(PrivacyError, check=about("sizes")):
            release_mixed(FORMULA, flows, epsilon=1, method="strict", bounds=(0, 2), blocks=20, sizes=sizes, seed=1)
