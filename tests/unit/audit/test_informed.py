"""Attacks by somebody who knows all but one: against closed forms, and below the bound of the guarantee."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy.stats import norm

import discreet as dc
from discreet.audit import informed
from discreet.audit.attacked import larger
from discreet.audit.identification import attacked_rows
from discreet.models.bayes.erm import calibrate as calibrate_objective
from discreet.privacy.identification import posterior
from discreet.privacy.losses import Concentrated, Pure
from discreet.privacy.units import Establishments
from discreet.release.folder import ReleaseFolder
from discreet.tables.calibration import calibrate
from discreet.tables.movement.flow_noise import FlowNoise

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


def gaussian(rho: float) -> float:
    """How often the likelihood ratio of two normals is right, if they are sqrt(2 rho) deviations apart."""
    return float(norm.cdf(math.sqrt(rho / 2)))


def test_a_posterior_draw_is_told_apart_as_often_as_two_normals_are() -> None:
    found = informed.of_draw(Concentrated(Fraction(1, 2)), seed=7)
    assert near(found, gaussian(0.5))
    assert not near(found, gaussian(0.5 * 1.3**2)), "a law 30 % narrower would show"


def test_the_price_of_a_draw_is_the_distance_of_its_two_laws() -> None:
    """The row that costs most: means of the exact posteriors of both responses, by brute force."""
    n, residual, between, sd = 12, 0.5, 0.2, 1.0
    Z, X = np.kron(np.eye(3), np.ones((4, 1))), np.ones((n, 1))
    W = np.hstack([X, Z])
    precision = W.T @ W / residual + np.diag([1 / sd**2, *[1 / between] * 3])
    moved = np.linalg.solve(precision, W[0] / residual)
    rho = float(moved @ precision @ moved) / 2
    data = {"y": np.linspace(0, 1, n), "g": np.repeat(["a", "b", "c"], 4)}
    drawn = dc.release_draw(
        "y ~ 1 + (1 | g)", data, variances={"Residual": residual, "g": between}, sd=sd,
        bounds=(0, 1), public=["g"], seed=1,
    )  # fmt: skip
    assert isinstance(drawn.guarantee.loss, Concentrated)
    assert rho <= float(drawn.guarantee.loss.rho) < 1.01 * rho
    assert near(informed.of_draw(drawn.guarantee.loss, seed=8), gaussian(rho))


def test_blocks_are_told_apart_as_often_as_their_vectors_move() -> None:
    alone = {"blocks": 40, "mean": {"epsilon": "1"}, "fixed": [], "groups": [], "deviations": []}
    assert near(informed.of_blocks(alone, seed=9), laplace(1.0))
    ball = {"loss": {"rho": "1/10"}, "radius": 2.0, "scale": 9.0, "choice": {"rho": "1/50"}}
    whole = {
        "blocks": 40, "mean": {"rho": "1/100"}, "fixed": [ball], "groups": [ball, ball],
        "deviations": [{"loss": {"rho": "1/20"}, "radius": 1.0, "scale": 3.0}],
    }  # fmt: skip
    rho = 0.01 + 3 * (0.1 + 0.02) + 0.05
    assert near(informed.of_blocks(whole, seed=10), gaussian(rho)), "independent normals add their rho"
    assert not near(informed.of_blocks(whole, seed=10), gaussian(rho - 0.12)), "a part left out would show"


@pytest.mark.parametrize("epsilon", [4, 12])
def test_a_perturbed_objective_is_told_apart_as_often_as_its_noise_moves(epsilon: int) -> None:
    """Where the minimum stays in the middle, the ends of a response move the gradient by a number known beforehand."""
    stated = {"bounds": [-3.0, 5.0], "norm": 2.0, "penalty": 4.0, "error_share": "0"}
    constants = calibrate_objective(201, 1, tau=8, largest=4, norm=2, penalty=4, epsilon=Fraction(epsilon))
    moved = 2 * 8 * 2 * 0.5 / math.sqrt(1.25) / constants.scale
    found = informed.of_objective(stated, Pure(epsilon), seed=11)
    assert near(found, laplace(moved))
    assert not near(found, laplace(moved / 3)), "three times the noise would show"
    assert found[1] / found[0] < posterior(0.5, epsilon)


def test_a_location_of_an_interval_is_attacked_through_one_part() -> None:
    stated = {"summary": "posterior interval", "level": [0.95], "partitions": 200, "unit": 1.0, "calibration": "tight"}
    cases, right = informed.of_quantiles(stated, Pure(6), seed=12)
    assert 0.6 < right / cases < posterior(0.5, 6.0)


def test_models_and_summaries_state_what_their_attacks_need() -> None:
    """What a ledger keeps of each is enough; the attack is below the bound."""
    rng = np.random.default_rng(13)
    g = np.repeat([f"g{i}" for i in range(20)], 60)
    data = {"y": np.clip(0.4 + 0.1 * rng.standard_normal(1200), 0, 1), "x": rng.uniform(-1, 1, 1200), "g": g}
    asked: dict[str, Any] = {
        "interval": dc.posterior_interval.ask("y ~ x", coefficient="x", epsilon=4, partitions=100),
        "objective": dc.objective_perturbation.ask("y ~ x", bounds=(0, 1), norm=2, penalty=1, epsilon=4),
        "strict": dc.release_mixed.ask("y ~ x + (1 | g)", method="strict", bounds=(0, 1), epsilon=4, public=["x", "g"]),
    }
    for name, question in asked.items():
        offer = question.offer(data)
        release = SimpleNamespace(
            name=name, kind="model", loss=offer.guarantee.loss, about={"parameters": {"mechanism": dict(offer.details)}}
        )
        [row] = attacked_rows(cast("ReleaseFolder", release))
        assert 0.5 < row["exact"] / row["cases"] < posterior(0.5, 4.0), name


UNATTACKED = {
    "model": {"summary": None},
    "audited posterior draw": {"method": "audited posterior draw"},
    "paper": {"method": "paper"},
    "posterior probability by fisher": {
        "summary": "posterior probability", "method": "fisher", "at": [0.0], "partitions": 40,
    },
}  # fmt: skip


@pytest.mark.parametrize("what", UNATTACKED)
def test_what_has_no_attack_is_named_and_has_its_bound_alone(what: str) -> None:
    release = SimpleNamespace(
        name="r", kind="model", loss=Pure(1), about={"parameters": {"mechanism": UNATTACKED[what]}}
    )
    found = attacked_rows(cast("ReleaseFolder", release))
    assert isinstance(found, str) and f"no attack on {what} " in found and "Only the bound" in found
