"""Mixtures of nearby normals by a series, against Arb and against the sum over their normals."""

from __future__ import annotations

from math import factorial, sqrt

import numpy as np
import pytest
from flint import arb

from discreet.models.bayes.blmm.mixture import Mixtures
from discreet.models.bayes.blmm.series import CLOSE, CRAMER, ORDERS, Nearby

ROUNDING = 16 * 2.0**-52  # twelve weights that add to 1 only nearly, and SciPy's normal distribution function
EDGES = np.linspace(-2.5, 2.5, 19)


def mixtures(spread: float, *, laws: int = 40, normals: int = 12, seed: int = 0) -> Mixtures:
    """Normals whose means and log deviations lie about `spread` deviations apart."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(normals), size=laws).T
    means = 3 + 2 * spread * rng.normal(size=(normals, laws))
    return Mixtures(weights, means, 2 * np.exp(spread * rng.normal(size=(normals, laws))))


def points(law: Mixtures) -> np.ndarray:
    return law.mean[:, None] + law.sd[:, None] * EDGES


def truth(law: Mixtures, at: int, x: float) -> float:
    total = arb(0)
    for weight, mean, deviation in zip(law.weights[:, at], law.means[:, at], law.deviations[:, at], strict=True):
        z = (arb(float(mean)) - arb(x)) / arb(float(deviation))
        total += arb(float(weight)) * (z / arb(2).sqrt()).erfc() / 2
    return float(total)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("spread", [1e-4, 3e-3, 0.02, 0.1])
def test_the_series_errs_less_than_its_bound(spread: float, order: int) -> None:
    law = mixtures(spread)
    x = points(law)
    nearby = Nearby(law.weights, law.means, law.deviations, x)
    found = nearby.cdf(np.arange(6), order)
    apart = np.abs(nearby.a) + np.abs(nearby.b) * np.abs(nearby.z).max(axis=1)
    bound = CRAMER * sqrt(factorial(order)) / factorial(order + 1) * (law.weights * apart ** (order + 1)).sum(axis=0)
    exact = np.array([[truth(law, at, float(value)) for value in x[at]] for at in range(6)])
    assert (np.abs(found - exact) <= bound[:6, None] + ROUNDING).all()
    assert (nearby.orders()[bound <= CLOSE] > 0).all()


def test_orders_rise_with_the_distance_of_the_normals() -> None:
    chosen = []
    for spread in (1e-4, 0.01, 1.0):
        law = mixtures(spread)
        chosen.append(np.unique(Nearby(law.weights, law.means, law.deviations, points(law)).orders()).tolist())
    assert chosen == [[ORDERS[0]], [ORDERS[1]], [0]]


@pytest.mark.parametrize("spread", [0.0, 1e-3, 0.01, 0.02, 0.5])
@pytest.mark.parametrize("shared", [False, True])
def test_bins_are_those_of_the_sum_over_all_normals(spread: float, shared: bool) -> None:
    law = mixtures(spread, laws=500)
    if shared:
        law = Mixtures(law.weights[:, 0], law.means, law.deviations)
    x = points(law)
    x[7] += 5 * law.sd[7]  # a rare bin
    direct = np.diff(law.cdf(x), axis=1, prepend=0.0, append=1.0)
    assert np.abs(np.log(law.bins(x) / direct)).max() < 1e-10


def test_one_normal_in_the_middle_would_not_do() -> None:
    law = mixtures(0.01, laws=500)
    x = points(law)
    middle = Mixtures(np.ones(1), law.mean[None], (law.weights * law.deviations).sum(axis=0)[None])
    assert np.abs(np.log(middle.bins(x) / law.bins(x))).max() > 1e-5


def test_quantiles_settle_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    law, calls = mixtures(0.05, laws=2000), []
    whole = Mixtures.cdf
    monkeypatch.setattr(Mixtures, "cdf", lambda self, x: calls.append(1) or whole(self, x))
    levels = np.arange(1, 20) / 20
    assert np.abs(whole(law, law.quantile(levels)) - levels).max() < 1e-12
    assert len(calls) <= 8
