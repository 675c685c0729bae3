"""Do the published standard errors hold the noise? Coverage of nominal 95 % and 90 % intervals in simulation."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.models.linear.private import release_mixed
from discreet.models.linear.private.estimation import estimate
from discreet.models.linear.private.noisy import Level, NoisySums

POINTS = 0.02  # coverage within two points of nominal
BETA = np.array([0.3, -0.2, 0.1, 0.2])
Z = {0.95: 1.959964, 0.90: 1.644854}


def simulate(
    *, rows: int, groups: int, width: float, tau: float, epsilon: float, repeats: int
) -> dict[str, np.ndarray]:
    """Standardised errors of beta and of predicted effects, with Laplace noise split 70/15/15, and naive ones."""
    rng = np.random.default_rng(8)
    g = np.sort(rng.choice(groups, rows, p=rng.dirichlet(np.full(groups, 3.0))))
    g[:groups] = np.arange(groups)
    g.sort()
    kind, x = rng.integers(0, 3, rows), rng.normal(size=rows)
    X = np.column_stack([*(kind == k for k in range(3)), x]).astype(float)
    b, bx = width / (0.7 * epsilon), np.array([1, 1, 1, np.abs(x).max()]) * width / (0.075 * epsilon)
    bq = (width / 2 + 0.5) ** 2 / (0.15 * epsilon)
    found: dict[str, list[np.ndarray]] = {"beta": [], "effects": [], "naive": [], "off": []}
    for _ in range(repeats):
        u = rng.normal(0, tau, groups)
        y = X @ BETA + u[g] + rng.normal(size=rows)
        sums = NoisySums(
            n=np.bincount(g).astype(float),
            Sx=np.stack([np.bincount(g, column) for column in X.T], axis=1),
            XX=X.T @ X,
            levels=(Level.of(np.arange(groups)),),
            s=np.bincount(g, y) + rng.laplace(0, b, groups),
            Xy=X.T @ y + rng.laplace(size=4) * bx,
            ds=2 * b**2,
            dx=2 * bx**2,
            squares=float(y @ y) + rng.laplace(0, bq),
            squares_noise=2**0.5 * bq,
            rows=float(rows),
            kurtosis=3.0,
        )
        at = estimate(sums, largest=width / 2)
        found["beta"].append((at.beta - BETA) / np.sqrt(np.diag(at.covariance)))
        found["effects"].append((at.effects[0] - u) / np.sqrt(at.effect_variances[0]))
        found["off"].append((at.effects[0] - u) / tau)
        without = np.sqrt(at.sigma2 / np.diag(sums.XX) + at.variances[0] / groups)
        found["naive"].append((at.beta - BETA) / without)
    return {name: np.array(values) for name, values in found.items()}


def covered(errors: np.ndarray, level: float) -> float:
    return float((np.abs(errors) < Z[level]).mean())


@pytest.mark.parametrize("epsilon", [1.0, pytest.param(3.0, marks=pytest.mark.full_size)])
def test_intervals_cover(epsilon: float) -> None:
    found = simulate(rows=2400, groups=60, width=8, tau=0.5, epsilon=epsilon, repeats=250)
    assert abs(covered(found["beta"], 0.95) - 0.95) < POINTS
    assert abs(covered(found["effects"], 0.95) - 0.95) < POINTS
    if epsilon == 1.0:  # standard errors without the noise would cover far too little
        assert covered(found["naive"], 0.95) < 0.85


@pytest.mark.parametrize("epsilon", [0.02, 0.1])
def test_where_noise_hides_the_effects_predictions_are_no_worse_than_none(epsilon: float) -> None:
    """Predicting 0 for every group errs by tau; noise that looks like effects erred by up to twice as much."""
    found = simulate(rows=6000, groups=150, width=8, tau=0.2, epsilon=epsilon, repeats=60)
    assert np.mean(found["off"] ** 2) < 1.1
    assert covered(found["effects"], 0.95) > 0.93
    assert covered(found["beta"], 0.95) > 0.91  # of 240; the next test has more


@pytest.mark.full_size
def test_fixed_effects_cover_where_noise_hides_the_effects() -> None:
    found = simulate(rows=6000, groups=150, width=8, tau=0.2, epsilon=0.02, repeats=600)
    assert abs(covered(found["beta"], 0.95) - 0.95) < POINTS


@pytest.mark.full_size
@pytest.mark.parametrize(("epsilon", "tau"), [(0.3, 0.5), (1.0, 0.2), (1.0, 0.5), (4.0, 0.3)])
def test_intervals_cover_with_many_repeats(epsilon: float, tau: float) -> None:
    found = simulate(rows=6000, groups=150, width=8, tau=tau, epsilon=epsilon, repeats=1200)
    for level in Z:
        assert abs(covered(found["beta"], level) - level) < POINTS
        # Where the variance of the groups is barely visible under the noise, intervals may cover too much.
        assert -POINTS < covered(found["effects"], level) - level < (POINTS if epsilon * tau > 0.2 else 0.04)


@pytest.mark.full_size
@pytest.mark.parametrize("epsilon", [1, 4])
def test_releases_cover_end_to_end(epsilon: int) -> None:
    """The same through the sampler, the default split and rounding to integers.

    At 1 a look leaves the sums by county out of two releases in three. Those allow for any variance of effects, and
    cover too much: their standard errors are half as large again as the errors are.
    """
    rng = np.random.default_rng(9)
    county, industry = rng.integers(0, 80, 4000), rng.integers(0, 3, 4000)
    errors, drawn = [], []
    for seed in range(600):
        u = rng.normal(0, 0.1, 80)
        y = 1 + 0.1 * industry + u[county] + rng.normal(0, 0.2, 4000)
        data = {"y": y, "i": industry.astype(str), "c": county}
        fit = release_mixed("y ~ 0 + i + (1 | c)", data, epsilon=epsilon, public=["i", "c"], bounds=(0, 2), seed=seed)
        errors.append([(fit.fixed[f"i{k}"] - 1 - 0.1 * k) / fit.se[f"i{k}"] for k in range(3)])
        drawn.append(not any(flag.word == "not measured" for flag in fit.flags))
    assert all(drawn) == (epsilon == 4)
    assert abs(covered(np.array(errors)[drawn], 0.95) - 0.95) < POINTS
    assert covered(np.array(errors), 0.95) > 0.95 - POINTS
