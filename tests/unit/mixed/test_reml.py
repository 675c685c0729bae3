"""The one-dimensional criterion against the normal density written out with dense matrices."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.models.linear import Moments
from discreet.models.linear.reml import GroupCurve, _slopes, best_ratio, estimable, independent, profile


def moments_of(y: np.ndarray, X: np.ndarray, Z: np.ndarray) -> Moments:
    return Moments(Z.sum(0), Z.T @ X, Z.T @ y, X.T @ X, X.T @ y, float(y @ y))


def by_hand(
    y: np.ndarray, X: np.ndarray, Z: np.ndarray, ratio: float, *, reml: bool
) -> tuple[float, np.ndarray, float]:
    """-2 log (restricted) likelihood at the best beta and sigma for this ratio."""
    n, p = X.shape
    V = np.eye(n) + ratio * Z @ Z.T
    inverse = np.linalg.inv(V)
    beta = np.linalg.solve(X.T @ inverse @ X, X.T @ inverse @ y)
    left = y - X @ beta
    freedom = n - p if reml else n
    sigma2 = left @ inverse @ left / freedom
    value = freedom * np.log(2 * np.pi * sigma2) + np.linalg.slogdet(V)[1] + freedom
    return value + (np.linalg.slogdet(X.T @ inverse @ X)[1] if reml else 0.0), beta, sigma2


@pytest.mark.parametrize("reml", [True, False])
@pytest.mark.parametrize("ratio", [0.0, 1e-3, 0.3, 7.0, 1e5])
def test_profile_is_the_density(dense: tuple, ratio: float, reml: bool) -> None:
    curve = GroupCurve.of(moments_of(*dense))
    ours = profile(curve, np.array([ratio]), reml=reml)
    value, beta, sigma2 = by_hand(*dense, ratio, reml=reml)
    assert ours.criterion[0] == pytest.approx(value, rel=1e-9)
    assert ours.beta[0] == pytest.approx(beta, rel=1e-6)
    assert ours.sigma2[0] == pytest.approx(sigma2, rel=1e-6)


@pytest.mark.parametrize("reml", [True, False])
@pytest.mark.parametrize("ratio", [0.02, 0.5, 20.0])
def test_slopes_are_derivatives(dense: tuple, ratio: float, reml: bool) -> None:
    y, X, Z = dense
    curve = GroupCurve.of(moments_of(y - y.mean(), X - X.mean(0) * [0, 0, 0, 0, 0, 1], Z))
    step = 1e-4 * ratio
    around = [float(profile(curve, np.array([ratio + k * step]), reml=reml).criterion[0]) for k in (-1, 0, 1)]
    first, second = _slopes(curve, np.array([ratio]), reml=reml)
    assert first[0] == pytest.approx((around[2] - around[0]) / (2 * step), rel=1e-4, abs=1e-4)
    assert second[0] == pytest.approx((around[2] - 2 * around[1] + around[0]) / step**2, rel=2e-2)


@pytest.mark.parametrize("reml", [True, False])
def test_many_ratios_and_parts_of_the_groups_are_the_density_too(
    dense: tuple, reml: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.models.linear.reml.GROUPS", 3)
    ratios, moments = np.array([0.0, 1e-3, 0.3, 7.0, 1e5]), moments_of(*dense)
    assert len(moments.n) > 3
    found = profile(GroupCurve.of(moments), ratios, reml=reml).criterion
    assert found == pytest.approx([by_hand(*dense, ratio, reml=reml)[0] for ratio in ratios], rel=1e-9)


@pytest.mark.parametrize("reml", [True, False])
def test_no_ratio_is_better(dense: tuple, reml: bool) -> None:
    curve = GroupCurve.of(moments_of(*dense))
    best = best_ratio(curve, reml=reml)
    least = profile(curve, best, reml=reml).criterion[0]
    for ratio in [0.0, *np.geomspace(1e-8, 1e6, 200)]:
        assert least <= profile(curve, np.array([ratio]), reml=reml).criterion[0] + 1e-9
    assert best_ratio(curve, reml=reml, start=np.array([1e-3])) == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("seed", [263, 485])
def test_a_narrow_valley_beyond_a_rising_start_is_found(seed: int) -> None:
    """Nearly one row per group: the criterion rises from zero and falls again, 0.05 deeper, within a factor of ten."""
    rng = np.random.default_rng(seed)
    g = rng.integers(0, 600, 60)
    X = np.column_stack([np.ones(60), rng.normal(size=(60, 6))])
    curve = GroupCurve.of(moments_of(rng.standard_t(3, 60), X, (g[:, None] == np.unique(g)).astype(float)))
    least = profile(curve, best_ratio(curve, reml=True), reml=True).criterion[0]
    assert _slopes(curve, np.zeros(1), reml=True)[0] > 0
    for ratio in [0.0, *np.geomspace(1e-4, 1e3, 200)]:
        assert least <= profile(curve, np.array([ratio]), reml=True).criterion[0] + 1e-9


def test_no_variance_between_groups_is_exactly_zero(dense: tuple) -> None:
    _, X, Z = dense
    rng = np.random.default_rng(3)
    noise = rng.normal(size=len(X))
    balanced = noise - Z @ np.linalg.lstsq(Z, noise, rcond=None)[0]  # every group mean is zero
    assert best_ratio(GroupCurve.of(moments_of(balanced, X[:, 5:], Z)), reml=True)[0] == 0.0


def test_huge_variance_between_groups_is_found() -> None:
    rng = np.random.default_rng(4)
    Z = np.kron(np.eye(8), np.ones((5, 1)))
    y = Z @ rng.normal(0, 1e4, 8) + rng.normal(size=40)
    ones = np.ones((40, 1))
    found = best_ratio(GroupCurve.of(moments_of(y, ones, Z)), reml=True)[0]
    means = y.reshape(8, 5).mean(1)
    within = ((y - Z @ means) ** 2).sum() / 32
    assert found * within == pytest.approx(means.var(ddof=1) - within / 5, rel=1e-6)  # balanced: a closed form


def test_independent_keeps_the_first_of_equals() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(50, 5))
    X[:, 2] = X[:, 0] - 3 * X[:, 1]
    X[:, 4] = 0
    assert independent(X.T @ X).tolist() == [0, 1, 3]


def test_estimable_sees_absence_and_dependence() -> None:
    rng = np.random.default_rng(6)
    X = np.stack([rng.normal(size=(30, 3)) for _ in range(3)])
    X[1, :, 2] = 0
    X[2, :, 2] = X[2, :, 0] + X[2, :, 1]
    present, solvable = estimable(X.transpose(0, 2, 1) @ X, floor=np.zeros(3))
    assert present.tolist() == [[True] * 3, [True, True, False], [True] * 3]
    assert solvable.tolist() == [True, True, False]
