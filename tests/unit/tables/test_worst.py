"""Worst losses and deltas in closed form, against brute force over ratios and outputs in Arb and on dense grids."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from flint import arb, ctx

from discreet.noise.laws import GeneralisedCauchy
from discreet.privacy.units import Establishments
from discreet.privacy.verify import neighbouring_cells, verify
from discreet.tables.calibration import calibrate
from discreet.tables.mechanisms.smooth_gamma import gamma_loss
from discreet.tables.mechanisms.smooth_laplace import delta_floor, laplace_delta
from discreet.words.errors import Infeasible
from faults_of import about

RNG = np.random.default_rng(5)
CASES = [
    (10.0 ** RNG.uniform(-2.5, 1.2), epsilon := 10.0 ** RNG.uniform(-1.5, 1.4), epsilon * RNG.uniform(0.05, 1.7))
    for _ in range(25)
]
# Where the truth with the smaller scale is the worse one.
CASES += [(0.0011, 0.0032, 0.004), (0.0418, 0.0114, 0.0367), (0.0248, 0.013, 0.0566)]


def integrated(u: float, w: arb, epsilon: float) -> arb:
    """The larger of the two deltas between Laplace(1) at 0 and Laplace(w) at u, piece by piece of their loss.

    The loss is linear between the centres and beyond them, so each piece holds one interval where it exceeds epsilon.
    """
    ends = [arb(-(10**7)), arb(0), arb(u), arb(10**7)]
    worst = arb(0)
    for sign in (1, -1):
        total = arb(0)
        for left, right in pairwise(ends):

            def over(z: arb, sign: int = sign) -> arb:
                return sign * (-abs(z) + abs(z - u) / w + w.log()) - epsilon

            a, b = over(left), over(right)
            if not a > 0 and not b > 0:
                continue
            if not (a > 0 and b > 0):
                cross = left + (right - left) * a / (a - b)
                left, right = (left, cross) if a > 0 else (cross, right)
            middle = (left + right) / 2
            total += sign * (mass(left, right, 0, arb(1), middle)) * (1 if sign > 0 else arb(epsilon).exp())
            total -= sign * (mass(left, right, u, w, middle)) * (arb(epsilon).exp() if sign > 0 else 1)
        worst = worst.max(total)
    return worst


def mass(left: arb, right: arb, centre: float, scale: arb, middle: arb) -> arb:
    """P(left < Z < right) of a Laplace law, on one side of its centre."""
    a, b = -abs(left - centre) / scale, -abs(right - centre) / scale
    return (b.exp() - a.exp()) / 2 if middle < centre else (a.exp() - b.exp()) / 2


@pytest.mark.parametrize(("alpha", "epsilon", "u"), CASES)
def test_the_worst_delta_of_smooth_laplace_is_at_an_end(alpha: float, epsilon: float, u: float) -> None:
    b = math.log1p(alpha)
    with ctx.workprec(600):
        found = [integrated(u, (arb(b) * i / 40).exp(), epsilon) for i in range(41)]
        most = max(float(delta.log()) if delta > 0 else -math.inf for delta in found)
        ends = [float(found[i].log()) if found[i] > 0 else -math.inf for i in (0, 40)]
    assert most == max(ends)
    assert laplace_delta(u, b, epsilon) == pytest.approx(most, abs=1e-9 + 1e-13 * abs(most))


@pytest.mark.parametrize(("alpha", "epsilon", "u"), CASES)
def test_the_worst_loss_of_smooth_gamma_is_at_an_end(alpha: float, epsilon: float, u: float) -> None:
    b, law = math.log1p(alpha), GeneralisedCauchy(4.0)
    top = (1 + alpha) * max(u, 1 / u, 1.0)
    z = np.concatenate([[0.0], np.geomspace(1e-5, 1e5, 20_000)]) * top
    z = np.concatenate([-z[::-1], z])
    losses = []
    for w in np.exp(np.linspace(0, b, 15)):
        loss = law.log_density(z) - law.log_density((z - u) / w) + np.log(w)
        losses.append(np.abs(loss).max())
    assert max(losses) == pytest.approx(max(losses[0], losses[-1]), rel=1e-12)
    found = gamma_loss(u, b)
    assert max(losses) <= found * (1 + 1e-9)
    assert found == pytest.approx(max(losses), rel=1e-5)


def test_the_floor_is_what_a_change_of_scale_takes() -> None:
    for alpha, epsilon in ((0.1, 1.0), (1.0, 0.3), (3.0, 8.31)):
        with ctx.workprec(300):
            alone = float(integrated(1e-60, arb(alpha) + 1, epsilon).log())
        assert delta_floor(alpha, epsilon) == pytest.approx(alone, abs=1e-9)
        assert laplace_delta(1e-12, math.log1p(alpha), epsilon) == pytest.approx(alone, abs=1e-9)


PAPER = [("1", "19.16", "1e-6", 8.64e-6), ("0.5", "22.41", "1e-12", 1.37e-11), ("3", "8.31", "0.05", 0.0628)]


@pytest.mark.parametrize(("alpha", "epsilon", "delta", "reached"), PAPER)
def test_the_papers_constants_are_refused_where_their_delta_is_not_enough(
    alpha: str, epsilon: str, delta: str, reached: float
) -> None:
    unit = Establishments(alpha)
    ask = {"unit": unit, "epsilon": epsilon, "calibration": "paper"}
    with pytest.raises(Infeasible, check=about("epsilon")):
        calibrate("smooth-laplace", delta=delta, **ask)  # type: ignore[call-overload]
    allowed = calibrate("smooth-laplace", delta=reached * 1.01, **ask)  # type: ignore[call-overload]
    verdict = verify(allowed, neighbours=neighbouring_cells(unit, largest=60))
    assert verdict.holds
    assert verdict.worst_delta == pytest.approx(reached, rel=5e-3)


def test_log_laplace_is_refused_where_its_margin_does_not_cover_a_rounded_multiplier() -> None:
    """n + 1/alpha is rounded by 2^-53 of itself, a share 2^-53 / b of epsilon: a margin of 2^-30 needs b > 2^-20."""
    for alpha in ("1e-9", "1e-7", "9e-7"):
        with pytest.raises(Infeasible, check=about("epsilon")):
            calibrate("log-laplace", unit=Establishments(alpha), epsilon=1)
    for alpha in ("1e-6", "1e-5", "0.1"):
        mechanism = calibrate("log-laplace", unit=Establishments(alpha), epsilon=1)
        counts = np.unique(np.geomspace(1, 1e9, 4000).astype(np.int64))
        offset = 1 / float(mechanism.unit.alpha)
        before, after = (mechanism.shrink * (n.astype(np.float64) + offset) for n in (counts, counts + 1))
        with ctx.workprec(200):
            moved = max(float((arb(b) / arb(a)).log()) for a, b in zip(before, after, strict=True))
        assert moved / mechanism.exponent <= 1, alpha
