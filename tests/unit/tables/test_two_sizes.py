"""What noise of two sizes could err: its programme beside brute force over establishments, and beside known limits."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest

from discreet.arrays import Vector
from discreet.tables.optimal.limits import floor, in_proportion, one_count
from discreet.tables.optimal.two_sizes import RatioRows, Ratios, TwoSizes, on_integers, two_sizes

ALPHA, EPSILON = 0.1, 2.0
ROWS = RatioRows(ALPHA, EPSILON, 4)


@pytest.fixture(scope="module")
def law() -> TwoSizes:
    return two_sizes(ROWS)


def worst_loss(law: TwoSizes, *, share: float = 1.0, seed: int = 0) -> float:
    """The largest loss over establishments that grow, at outputs on either side of every edge of both laws."""
    rng = np.random.default_rng(seed)
    inner = law.rows.edges[1:-1]
    points = np.concatenate([inner - 1e-7, inner + 1e-7, np.linspace(-4, 4, 40) * inner[-1]])
    worst = 0.0
    for _ in range(600):
        x = 1e5
        second = x * rng.choice([1.0, rng.uniform(0.85, 1), rng.uniform(0, 1), law.rows.ratios[rng.integers(1, 5)]])
        third = second * rng.choice([1.0, rng.uniform(0.8, 1), 0.1])
        sizes = np.array([x, second, third])
        grown, who = sizes.copy(), rng.integers(3)
        grown[who] *= 1 + ALPHA * rng.choice([1.0, rng.uniform(0.9, 1), rng.uniform(0, 1)])
        shift, noise = grown.sum() - sizes.sum(), []
        for state in (sizes, grown):
            top = np.sort(state)[::-1]
            noise.append((law.rows.row(top[:1], top[1:2])[0], share * ALPHA * top[0]))
        (i, s), (j, after) = noise
        outputs = np.concatenate([points * s, points * after + shift])
        one = law.log_density(i, outputs / s) - np.log(s)
        other = law.log_density(j, (outputs - shift) / after) - np.log(after)
        worst = max(worst, float(np.abs(one - other).max()))
    return worst


def test_no_growth_of_any_establishment_is_told_by_more_than_epsilon(law: TwoSizes) -> None:
    assert 0.99 * EPSILON < worst_loss(law) < EPSILON * (1 + 1e-4)


def test_a_twentieth_less_noise_is_refuted(law: TwoSizes) -> None:
    assert worst_loss(law, share=0.95) > 1.02 * EPSILON


@pytest.mark.parametrize("left_out", [0, 1, 2])
def test_a_law_that_forgets_a_kind_of_move_is_refuted(left_out: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = RatioRows.moves

    def fewer(self: RatioRows, i: int, j: int) -> Iterator[Ratios]:
        if i == j == 0:
            kinds = list(whole(self, i, j))
            return iter(kinds[:left_out] + kinds[left_out + 1 :])
        kind = 0 if j > i else 1
        return islice(whole(self, i, j), 1, None) if kind == left_out else whole(self, i, j)

    monkeypatch.setattr(RatioRows, "moves", fewer)
    assert worst_loss(two_sizes(ROWS)) > 1.02 * EPSILON


def test_every_row_is_a_probability_with_mean_zero(law: TwoSizes) -> None:
    z = np.linspace(-60, 60, 400_001)
    for i, error in enumerate(law.errors):
        density: Vector = np.exp(law.log_density(i, z))
        step = z[1] - z[0]
        assert density.sum() * step == pytest.approx(1, abs=1e-3)
        assert (density * z).sum() * step == pytest.approx(0, abs=2e-3)
        assert (density * np.abs(z)).sum() * step == pytest.approx(error, rel=5e-3)


def test_a_dominated_cell_errs_less_than_noise_of_one_size_can() -> None:
    # A lone establishment is a programme in ln x alone: 0.406 at epsilon 2 on fine cells.
    found = two_sizes(RatioRows(ALPHA, EPSILON, 8)).errors
    one = in_proportion(ALPHA, EPSILON, parts=8, unbiased=True)
    assert one < found[0] < 1.1 * one
    assert (np.diff(found) < 1e-3).all()
    assert 0.406 < found[-1] < 0.415 < one


def test_on_integers_a_second_size_takes_off_nothing_below_two_workers_of_growth() -> None:
    tenth, most, reach = Fraction(1, 10), 22, 6
    both = on_integers(tenth, EPSILON, most=most, reach=reach)
    one = one_count(tenth, EPSILON, most=most, reach=reach, unbiased=True)
    for x in (1, 5, 10, 15):
        assert both[x - 1, : x + 1] == pytest.approx(one[x - 1], rel=1e-3)
    # Noise of one size is noise of two that leaves the second out, so that together the sizes err no more.
    low = np.array([floor(x, tenth, EPSILON) for x in range(1, most + 1)])[:, None]
    alike = np.where(np.isnan(both), np.nan, one[:, None])
    assert np.nansum(both / low) < 0.999 * np.nansum(alike / low)
    assert np.isnan(both[4, 6])
