"""The published method: its bias correction against loops, its noise, and what it admits."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from discreet.data.frames import open_frame
from discreet.models.formula.formula import read_formula
from discreet.models.linear import private
from discreet.models.linear.private import paper
from discreet.models.linear.private.partition import BlockEstimates
from discreet.models.linear.private.public import public_design
from discreet.models.linear.private.request import RATES
from discreet.noise.source import SeededSource
from discreet.privacy.losses import Pure
from discreet.words.errors import PrivacyError
from faults_of import about

Flows = dict[str, np.ndarray]
release_mixed = partial(private.release_mixed, public=["industry", "quarter", "county"])
FORMULA = "jcr ~ 0 + industry + quarter + (1 | county)"


def scales(flows: Flows, formula: str, epsilon: float, blocks: int, split: Any) -> paper.Scales:
    data = {**flows, "jcr": flows["rate"]}
    public = public_design(open_frame(data, ordered=True), read_formula(formula, needs_random=False))
    request = private.release_mixed.ask("jcr ~ 1", epsilon=epsilon, seed=1).request
    return paper.scales_for(public, request, paper.ranges_of(request, public), blocks, split)


def test_bias_correction_is_algorithm_1() -> None:
    """Regress centred estimates on centred variances without intercept, subtract the fit, average what is there."""
    rng = np.random.default_rng(3)
    k, p, levels = 60, 4, 9
    beta = rng.normal(size=(k, p))
    beta[rng.random((k, p)) < 0.1] = np.nan
    variances = rng.gamma(2, size=(k, 2))
    present = rng.random((k, levels)) < 0.3
    present[:, 8] = False
    block, level = np.nonzero(present)
    effect = rng.normal(size=len(block))
    whole_beta, whole_effects, whole_variances = rng.normal(size=p), rng.normal(size=levels), np.array([1.5, 2.5])
    blocks = BlockEstimates(beta, variances, ((block, level, effect),), np.ones(k, dtype=bool))
    found = paper.corrected(blocks, paper.Whole(whole_beta, (whole_effects,), whole_variances))
    S = variances - whole_variances
    for j in range(p):
        have = np.isfinite(beta[:, j])
        gamma = np.linalg.lstsq(S[have], beta[have, j] - whole_beta[j], rcond=None)[0]
        assert found.beta[j] == pytest.approx((beta[have, j] - S[have] @ gamma).mean())
    for g in range(levels - 1):
        have = block[level == g]
        gamma = np.linalg.lstsq(S[have], effect[level == g] - whole_effects[g], rcond=None)[0]
        assert found.effects[0][g] == pytest.approx((effect[level == g] - S[have] @ gamma).mean())
    assert found.effects[0][8] == 0
    assert found.deviations == pytest.approx(np.sqrt(variances.mean(axis=0)))


@pytest.mark.parametrize("fixed", ["0.49", "0.88", "0.10", "0.97", "0.01"])
def test_scales_follow_every_allocation_of_the_figures(flows: Flows, fixed: str) -> None:
    """Lambda / (k share epsilon); the text's "approximately 0.0002" at epsilon 1 is Lambda / k."""
    groups = f"{0.98 - float(fixed):.2f}"
    found = scales(flows, FORMULA, 1, 8945, {"fixed": fixed, "groups": groups, "trend": "0.02"})
    assert found.beta[:3] == pytest.approx(2 / (8945 * float(fixed)))
    assert found.beta[3] == pytest.approx(0.01 / (8945 * 0.02))
    assert found.effects[0] == pytest.approx(2 / (8945 * float(groups)))
    assert found.deviation == pytest.approx(0.5 / 8945)
    assert round(2 / 8945, 4) == 0.0002


def test_interactions_divide_their_share_and_the_linear_model_has_all(flows: Flows) -> None:
    formula = "jcr ~ 0 + industry + quarter + (1 | county/season)"
    found = scales(flows, formula, 3, 5764, {"fixed": "0.88", "groups": "0.10", "trend": "0.02"})
    assert found.effects == pytest.approx(2 / (5764 * 3 * 0.05))
    linear = scales(flows, "jcr ~ 0 + industry", 1, 8945, None)
    assert linear.beta == pytest.approx(2 / 8945) and len(linear.effects) == 0


def test_ranges_are_those_of_the_tables() -> None:
    assert [float(x) for x in (RATES["jcr"].effect, RATES["jcr"].trend, RATES["jcr"].deviation)] == [2, 0.01, 0.5]
    assert [float(x) for x in (RATES["ar"].effect, RATES["ar"].trend, RATES["ar"].deviation)] == [3, 0.01, 0.75]


def test_noise_has_its_scale() -> None:
    exact = paper.Averages(np.zeros(2000), (np.zeros(2000),), np.zeros(2000))
    noise = paper.Scales(np.full(2000, 1e-3), np.array([2e-2]), 0.3).draw(exact, SeededSource(1))
    for drawn, scale in ((noise.beta, 1e-3), (noise.effects[0], 2e-2), (noise.deviations, 0.3)):
        assert np.abs(drawn).mean() == pytest.approx(scale, rel=0.15)


def test_a_release_says_what_it_does_not_prove(flows: Flows) -> None:
    data = {**flows, "jcr": flows["rate"]}
    fit = release_mixed(FORMULA, data, epsilon=2, method="paper", blocks=30, seed=1)
    assert fit.guarantee.basis == "as published" and fit.guarantee.calibration == "paper"
    assert "would have been NOT PROVED FOR THE WHOLE RELEASE" in str(fit.guarantee)
    assert str(replace(fit.guarantee, private=True)).startswith("NOT PROVED FOR THE WHOLE RELEASE: only claimed")
    assert fit.guarantee.loss == Pure(2)
    assert "Not proved for the whole vector" in str(fit)
    assert fit.covariance is None and set(fit.se.values()) == {None}
    near = release_mixed(FORMULA, data, epsilon=10**6, method="paper", blocks=30, seed=1)
    assert near.fixed["industryshops"] - near.fixed["industryfarms"] == pytest.approx(0.4, abs=0.05)
    values = near.fitted(data)
    assert np.corrcoef(values, data["jcr"])[0, 1] > 0.6
    linear = release_mixed("jcr ~ 0 + industry", data, epsilon=10**6, method="paper", blocks=30, seed=1)
    assert linear.fixed["industryfarms"] == pytest.approx(data["jcr"][data["industry"] == "farms"].mean(), abs=0.01)


def test_bounds_hold_here_too(flows: Flows) -> None:
    wild = {**flows, "jcr": flows["rate"] * 2}
    capped = {**flows, "jcr": np.minimum(flows["rate"] * 2, 2)}
    a, b = (release_mixed(FORMULA, data, epsilon=1, method="paper", blocks=30, seed=1) for data in (wild, capped))
    assert a.beta == pytest.approx(b.beta, abs=1e-9)
    with pytest.raises(PrivacyError, check=about("rho")):
        release_mixed(FORMULA, capped, rho=1, method="paper", blocks=30, seed=1)
