"""The moments mechanism from data to noisy statistics, audited as a black box, and its noise against its law."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet.audit.blackbox import blackbox
from discreet.data.frames import open_frame
from discreet.models.formula.formula import read_formula
from discreet.models.linear.private.moments import MomentNoise, mechanism_for
from discreet.models.linear.private.public import PublicDesign, public_design
from discreet.models.linear.private.reach import Reach
from discreet.models.linear.private.release import release_mixed
from discreet.models.linear.private.sums import ResponseSums, Scale, response_sums, units_of
from discreet.noise.source import SeededSource

Design = dict[str, np.ndarray]
SCALE = Scale(Fraction(0), Fraction(2))
DESIGN = {"x": np.array([-3, 1, 2, 3, -1, 2, 0, 1]), "g": np.array(list("aabbccdd"))}
MANY = {"x": np.array([-3, 3, 2, 3, 3, 2, 3, 1]), "g": np.array(list("abbbbbbc"))}
EQUAL = dict.fromkeys(("groups", "fixed", "squares"), "1/3")  # by default so few groups would not be drawn
Y = np.array([0.0, 0.3, 0.2, 0.1, 0.5, 0.4, 0.2, 0.3])
NEIGHBOUR = np.where(np.arange(8) == 0, 2.0, Y)
TRIALS = pytest.mark.parametrize("trials", [1_500, pytest.param(3_000, marks=pytest.mark.full_size)])


def opened(
    y: np.ndarray, epsilon: float, by: str = "", design: Design = DESIGN, formula: str = "y ~ x + (1 | g)"
) -> tuple[MomentNoise, ResponseSums, PublicDesign]:
    frame, model = open_frame({**design, "y": y}, ordered=True), read_formula(formula)
    request = release_mixed.ask("y ~ 1", epsilon=epsilon, bounds=(0, 2), seed=1).request
    public = public_design(frame, model, any_terms=True)
    units = units_of(frame, public)
    reach = Reach.of_groups(frame, public, units, [by], squared=False) if by else None
    return mechanism_for(public, units, request, EQUAL, reach), response_sums(frame, public, units, SCALE), public


def outputs(epsilon: float, source: SeededSource, by: str = "", design: Design = DESIGN, **formula: str):  # type: ignore[no-untyped-def]
    def draw(y: np.ndarray, n: int) -> np.ndarray:
        mechanism, sums, public = opened(y, epsilon, by, design, **formula)
        drawn = [mechanism.draw(mechanism.exact(sums, public), source) for _ in range(n)]
        return np.array([[*np.concatenate(d.sums), d.centre, d.squares] for d in drawn], dtype=float)

    return draw


@TRIALS
def test_black_box_does_not_refute_the_claim_and_has_power(trials: int) -> None:
    source = SeededSource(11)
    verdict = blackbox(outputs(1.0, source), Y, NEIGHBOUR, claimed=1, trials=trials, confidence=0.999999, many=True)
    assert not verdict.refuted, str(verdict)
    cheat = blackbox(outputs(4.0, source), Y, NEIGHBOUR, claimed=1, trials=trials, confidence=0.999, many=True)
    assert cheat.refuted, str(cheat)


@TRIALS
def test_black_box_does_not_refute_groups_of_rows_and_has_power(trials: int) -> None:
    """All six responses of one group change from the lower to the upper end; noise for single rows fails at the same
    epsilon, which is the one that is claimed."""
    source, mine = SeededSource(12), MANY["g"] == "b"
    before, other = np.where(mine, 0.0, Y), np.where(mine, 2.0, Y)
    asked = {"claimed": 1, "trials": trials, "many": True}
    verdict = blackbox(outputs(1.0, source, "g", MANY), before, other, confidence=0.999999, **asked)
    assert not verdict.refuted, str(verdict)
    cheat = blackbox(outputs(1.0, source, "", MANY), before, other, confidence=0.999, **asked)
    assert cheat.refuted, str(cheat)


@pytest.mark.full_size
@pytest.mark.parametrize("formula", ["y ~ x + (1 + x | g)", "y ~ 1 + (1 | g) + (0 + x | h)"])
@pytest.mark.parametrize("by", ["", "g"])
def test_black_box_does_not_refute_slopes_and_crossed_factors(formula: str, by: str) -> None:
    """One row's response, or those of all rows of the largest group, change from one end to the other."""
    design = MANY | {"h": np.array(list("pqpqqpqp"))}
    mine = MANY["g"] == "b" if by else np.arange(8) == 3
    before, other = np.where(mine, 0.0, Y), np.where(mine, 2.0, Y)
    asked = {"claimed": 1, "trials": 3_000, "many": True}
    source = SeededSource(14)
    verdict = blackbox(outputs(1.0, source, by, design, formula=formula), before, other, confidence=0.999999, **asked)
    assert not verdict.refuted, str(verdict)
    cheat = blackbox(outputs(4.0, source, by, design, formula=formula), before, other, confidence=0.999, **asked)
    assert cheat.refuted, str(cheat)


def test_noise_has_the_scale_that_the_loss_asks_for() -> None:
    """Kolmogorov-Smirnov against Laplace; a scale 30 % off must be rejected by the same test."""
    from scipy.stats import expon, kstest

    mechanism, sums, public = opened(Y, 1.0)
    source = SeededSource(5)
    drawn = [mechanism.draw(mechanism.exact(sums, public), source) for _ in range(1_000)]
    k = np.rint((Y - 1) * 2**13)
    noise = [(d.squares - ((k - d.centre) ** 2).sum()) / d.squares_scale for d in drawn]
    for i, part in enumerate(mechanism.parts):
        noise += ((np.stack([d.sums[i] for d in drawn]) - part.of(sums, public)) / part.scale).ravel().tolist()
    size = np.abs(noise)
    assert kstest(size, expon.cdf).pvalue > 1e-6
    assert kstest(1.3 * size, expon.cdf).pvalue < 1e-20 and kstest(0.7 * size, expon.cdf).pvalue < 1e-20
    assert abs(np.mean(np.sign(noise))) < 5 / len(noise) ** 0.5


def test_the_verifier_finds_the_whole_epsilon_and_no_more() -> None:
    """The supremum of the loss of each part, by the harness that verifies count mechanisms, adds up to epsilon."""
    from discreet.models.linear.private.request import noise_scale
    from discreet.models.linear.private.sums import HALF
    from discreet.noise.laws import Laplace
    from discreet.privacy.verify import supremum

    mechanism = opened(Y, 1.0)[0]
    shifts = [(2 * HALF * part.reach / part.scale)[0] for part in mechanism.parts]
    for centre in (-HALF, -5, 0, HALF):  # whatever centre the first parts lead to
        largest = (HALF + abs(centre)) ** 2
        every = np.array([*shifts, largest / noise_scale(largest, mechanism.squares)])
        losses, _ = supremum(Laplace(), shift=every, ratio=np.ones(len(every)))
        assert losses.sum() == pytest.approx(1.0, abs=1e-9)
        # A tenth too little noise in any one part, and the sum would be seen to exceed what is claimed.
        for part in range(len(every)):
            less = np.where(np.arange(len(every)) == part, every / 0.9, every)
            assert supremum(Laplace(), shift=less, ratio=np.ones(len(every)))[0].sum() > 1 + 1e-4


@pytest.mark.parametrize("part", [0, 1, 2])
def test_the_loss_between_neighbours_is_at_most_the_parts(part: int) -> None:
    """The exact log ratio of the rounded laws at the true shift, over all outputs near the statistics."""
    from discreet.models.linear.private.sums import HALF
    from discreet.noise.laws import Laplace

    mechanism, sums, public = opened(Y, 1.0)
    other = opened(NEIGHBOUR, 1.0)[1]
    found = mechanism.parts[part]
    a, b = found.of(sums, public), found.of(other, public)
    moved = np.flatnonzero(a != b)
    assert len(moved) == 1 and abs(a - b).max() == 2 * HALF * found.reach[moved[0]]
    scale = found.scale[moved[0]]
    at = np.unique(np.rint(np.linspace(-3, 4, 400) * scale)).astype(np.int64)
    loss = np.log(Laplace().probability(at, scale)) - np.log(Laplace().probability(at - abs(a - b).max(), scale))
    limit = float(found.loss.amounts["epsilon"])
    assert np.abs(loss).max() <= limit * (1 + 1e-9)
    assert np.abs(loss).max() >= limit * (1 - 1e-6)
