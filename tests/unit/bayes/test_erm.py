"""Objective perturbation: the minimiser is right, the density ratio is bounded, the constants are as proved."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize, stats

from discreet.bayes.erm import calibrate, minimise, objective_perturbation, release
from discreet.errors import FitError, PrivacyError
from discreet.noise.source import SeededSource

ONE = Fraction(1)


def problem(n: int = 500, p: int = 3, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, p)) / p
    y = np.clip(X @ np.linspace(-1, 2, p) + 0.2 * rng.normal(size=n), -1, 1)
    return X, y, rng


def test_minimise_is_the_minimum() -> None:
    X, y, rng = problem()
    constants = calibrate(*X.shape, tau=2.0, largest=1.0, norm=1.0, penalty=3.0, epsilon=ONE)
    b = 10 * rng.normal(size=3)

    def objective(f):
        return (4 * (np.sqrt(1 + ((X @ f - y) / 2) ** 2) - 1)).sum() + constants.penalty / 2 * f @ f + b @ f

    theirs = optimize.minimize(objective, np.zeros(3), tol=1e-14)
    np.testing.assert_allclose(minimise(X, y, b, constants), theirs.x, atol=1e-6)


def test_long_rows_are_shortened_and_the_far_ones_pull_with_tau_only() -> None:
    constants = calibrate(2, 1, tau=1.0, largest=1.0, norm=1.0, penalty=3.0, epsilon=Fraction(10))
    short, long = (minimise(np.array([[x], [0.5]]), np.array([1.0, 0.2]), np.zeros(1), constants) for x in (1.0, 50.0))
    np.testing.assert_allclose(short, long, rtol=1e-9)


NEIGHBOURS = {  # the first row and what replaces it: (x1, x2, y)
    "one column for another": ((1, 0, 0.5), (0, 1, 0.5)),
    "a row for nothing": ((1, 0, 0.5), (0, 0, 0)),
    "the other sign": ((0.5, 0.5, 0.5), (-0.5, -0.5, 0.5)),
    "the response": ((0.5, 0.5, 0.5), (0.5, 0.5, -0.5)),
}


@pytest.mark.parametrize("epsilon", ["0.3", "1", "3"])
@pytest.mark.parametrize("penalty", [0.01, 4.0])
def test_the_density_ratio_of_two_coefficients_is_bounded_by_epsilon_and_reaches_its_noise(epsilon, penalty) -> None:
    """The exact density of f: Laplace at b(f) = -(sum psi x + penalty f) times the Jacobian of b."""
    constants = calibrate(401, 2, tau=1.0, largest=0.5, norm=1.0, penalty=penalty, epsilon=Fraction(epsilon))
    axis = np.sinh(np.linspace(-7, 7, 121))
    f = np.stack(np.meshgrid(axis, axis), axis=-1)

    def log_density(row: tuple[float, ...], many: tuple[float, ...]) -> np.ndarray:
        x, y, times = np.array([row, many])[:, :2], np.array([row, many])[:, 2], np.array([1, 400])
        r = f @ x.T - y
        b = -((times * r / np.sqrt(1 + r**2)) @ x + constants.penalty * f)
        hessian = np.einsum("abi,ij,ik->abjk", times * (1 + r**2) ** -1.5, x, x) + constants.penalty * np.eye(2)
        return -np.abs(b).sum(-1) / constants.scale + np.log(np.linalg.det(hessian))

    worst = max(
        np.abs(log_density(a, many) - log_density(b, many)).max()
        for a, b in NEIGHBOURS.values()
        for many in ((-0.5, 0.5, 0.0), (0.0, 0.0, 0.0), (0.3, 0.7, -0.5))
    )
    noise = 2 / constants.scale  # what the noise alone loses between opposite pulls
    assert 0.95 * noise < worst <= 0.98 * float(Fraction(epsilon)) + 1e-9  # 2 % of epsilon pay for finite arithmetic


def test_the_penalty_is_raised_so_that_the_jacobian_takes_half_of_epsilon_at_most() -> None:
    constants = calibrate(100, 2, tau=1.0, largest=0.5, norm=2.0, penalty=1e-6, epsilon=ONE)
    assert math.log1p(4.0 / constants.penalty) == pytest.approx(0.5)
    assert constants.scale == pytest.approx(2 * 1.0 * 2.0 / (1 - 0.5 - 0.02))
    enough = calibrate(100, 2, tau=1.0, largest=0.5, norm=2.0, penalty=50.0, epsilon=ONE)
    assert enough.penalty == 50.0 and enough.scale < constants.scale


def test_smoothing_covers_the_solvers_error_and_is_small_beside_the_noise() -> None:
    X, y, rng = problem(20_000)
    constants = calibrate(*X.shape, tau=2.0, largest=1.0, norm=1.0, penalty=1.0, epsilon=ONE)
    b = constants.scale * rng.laplace(size=3)
    f = minimise(X, y, b, constants)
    # The same fit after a rotation of the rows: everything but rounding is equal.
    order = rng.permutation(len(y))
    moved = np.abs(minimise(X[order], y[order], b, constants) - f).max()
    error = 5.5 * constants.rounding * math.sqrt(3) / constants.penalty
    assert moved < error
    assert 2 * 3 * error / constants.smoothing < 0.02
    assert constants.smoothing < 0.2 * constants.scale / (X**2).sum(0).max()


def test_the_release_scatters_around_the_minimiser_as_its_noise_says() -> None:
    X, y, _ = problem(300, p=1)
    constants = calibrate(*X.shape, tau=2.0, largest=1.0, norm=1.0, penalty=1.0, epsilon=ONE)
    source = SeededSource(3)
    draws = np.array([release(X, y, constants, source=source)[0] for _ in range(1500)])
    r = X[:, 0] * draws[:, None] - y
    back = -((X[:, 0] * r / np.sqrt(1 + (r / 2) ** 2)).sum(1) + constants.penalty * draws)
    assert stats.kstest(back, stats.laplace(scale=constants.scale).cdf).pvalue > 1e-6
    assert stats.kstest(back, stats.laplace(scale=1.5 * constants.scale).cdf).pvalue < 1e-6


def test_many_rows_give_least_squares(line) -> None:
    data = {"x": np.clip(line["x"], -2, 2) / 2, "y": 100 + np.clip(line["y"], -8, 8)}
    released = objective_perturbation("y ~ x", data, lower=90, upper=110, norm=2, penalty=1e-3, epsilon=5)
    ols = np.linalg.lstsq(np.column_stack([np.ones(len(line["x"])), data["x"]]), data["y"])[0]
    np.testing.assert_allclose(released.value.value, ols, atol=0.05)
    assert released.guarantee.basis == "proved" and "(Intercept)" in str(released.value)


def test_bad_input_is_refused(line) -> None:
    ask = {"lower": -1, "upper": 1, "norm": 1, "penalty": 1, "epsilon": 1}
    for wrong in ({"lower": 1}, {"upper": math.inf}):
        with pytest.raises(PrivacyError, match="bounds"):
            objective_perturbation("y ~ x", line, **ask | wrong)
    with pytest.raises(FitError, match="improper prior"):
        objective_perturbation("y ~ x", line, **ask | {"penalty": 0})
    with pytest.raises(FitError, match="norm"):
        objective_perturbation("y ~ x", line, **ask | {"norm": -2})
    with pytest.raises(PrivacyError, match="buys nothing"):
        objective_perturbation("y ~ x", line, **ask | {"epsilon": 0})
