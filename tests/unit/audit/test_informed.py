"""Attacks by somebody who knows all but one: against closed forms, and below the bound of the guarantee."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from scipy.stats import norm

from discreet.audit import informed
from discreet.audit.attacked import larger
from discreet.audit.identification import attacked_rows
from discreet.privacy.identification import posterior
from discreet.privacy.losses import Pure
from discreet.privacy.units import Establishments
from discreet.release.folder import ReleaseFolder
from discreet.tables.calibration import calibrate
from discreet.tables.flow_noise import FlowNoise

CHANCES = 5.0
"""Standard deviations that a share of right guesses may be off: one false alarm in two million."""


def near(found: tuple[int, int], share: float) -> bool:
    cases, right = found
    return abs(right / cases - share) < CHANCES * math.sqrt(share * (1 - share) / cases)


def laplace(epsilon: float) -> float:
    """How often the likelihood ratio of one Laplace sum is right, if the sum moves by epsilon scales."""
    return 1 - math.exp(-epsilon / 2) / 2


def part(loss: dict[str, str], scale: float) -> dict[str, object]:
    return {"columns": 1, "loss": loss, "scale": scale}


def test_a_sum_is_told_apart_as_often_as_its_law_says() -> None:
    for epsilon in ("1/2", "2"):
        found = informed.of_sums({"parts": [part({"epsilon": epsilon}, 5000.0)]}, seed=1)
        assert found is not None and near(found, laplace(float(Fraction(epsilon))))
        assert not near(found, laplace(1.3 * float(Fraction(epsilon)))), "noise 30 % narrower would show"
    found = informed.of_sums({"parts": [part({"rho": "1/2"}, 5000.0)]}, seed=2)
    assert found is not None and near(found, float(norm.cdf(0.5)))
    assert not near(found, float(norm.cdf(0.65)))


def test_several_sums_tell_more_than_one_and_less_than_the_bound() -> None:
    both = informed.of_sums({"parts": [part({"epsilon": "1"}, 900.0), part({"epsilon": "1"}, 70.0)]}, seed=3)
    assert both is not None
    cases, right = both
    assert laplace(1.0) + 0.02 < right / cases < posterior(0.5, 2.0)
    assert informed.of_sums({"method": "strict"}, seed=1) is None


def test_posterior_summaries_are_attacked_through_one_part() -> None:
    stated = {"method": "normality", "at": [0.0], "partitions": 40}
    found = informed.of_probabilities(stated, Pure(2), seed=4)
    assert found is not None and near(found, laplace(2.0))
    assert not near(found, 0.5)
    assert informed.of_probabilities(stated | {"method": "fisher"}, Pure(2), seed=4) is None
    quantile = {"centre": "private", "calibration": "tight", "unit": 1.0, "probability": [0.5], "partitions": 200}
    cases, right = informed.of_quantiles(quantile, Pure(4), seed=5)
    assert 0.6 < right / cases < posterior(0.5, 4.0)


@pytest.mark.parametrize("kind", ["flows", "changes"])
def test_flows_hide_a_tenth_of_an_establishment_and_their_absence_would_show(kind: str) -> None:
    unit, rng = Establishments("0.1"), np.random.default_rng(6)
    if kind == "flows":
        draw = informed.flows(FlowNoise.calibrate(unit=unit, epsilon=2).rings, 1, rng)
    else:
        draw = informed.changes(calibrate("weak-joint", unit=unit, epsilon=2, cells=3), 3, rng)
    amounts = np.array([20, 200, 5000] * 300)
    [bare, ours] = larger({"bare": lambda sums, largest, trial: sums, "ours": draw}, amounts, share=0.1, trials=2)
    assert bare["exact"] == bare["cases"]
    cases, right = int(ours["cases"]), int(ours["exact"])
    assert 0.5 + 0.05 < right / cases < posterior(0.5, 2.0)


UNATTACKED = {
    "posterior interval": {"summary": "posterior interval", "partitions": 40},
    "objective perturbation": {"summary": "objective perturbation"},
    "posterior draw": {"method": "posterior draw"},
    "strict": {"method": "strict"},
    "posterior probability by fisher": {
        "summary": "posterior probability", "method": "fisher", "at": [0.0], "partitions": 40,
    },
}  # fmt: skip


@pytest.mark.parametrize("what", UNATTACKED)
def test_what_has_no_attack_is_named_and_has_its_bound_alone(what: str) -> None:
    release = SimpleNamespace(
        name="r", kind="posterior", loss=Pure(1), about={"parameters": {"mechanism": UNATTACKED[what]}}
    )
    found = attacked_rows(cast("ReleaseFolder", release))
    assert isinstance(found, str) and f"no attack on {what} " in found and "Only the bound" in found
