"""The average information against dense matrices, and searches that begin elsewhere and end in the same minimum."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.mixed.test_sparse import TERMS, assemble

from discreet.models.linear.descent import descend
from discreet.models.linear.few import FewEffects
from discreet.models.linear.information import ManyEffects, average_information, bent
from discreet.models.linear.solution import search, standardised
from discreet.models.linear.sparse import criterion, eliminate, gradient, swept
from discreet.models.linear.start import starts

DIGITS = 1e-8  # of sums of squares of some hundred rows
SAME = 1e-8  # of the criterion, beside which lme4's must not be lower


@pytest.mark.parametrize("reml", [True, False])
@pytest.mark.parametrize("terms", TERMS)
def test_information_is_that_of_dense_matrices(terms: str, reml: bool, panel: dict) -> None:
    gram, y, X, Z = assemble(terms, panel)
    theta = np.random.default_rng(3).uniform(0.1, 0.8, len(gram.start))

    def covariance(theta: np.ndarray) -> np.ndarray:
        parts = zip(Z, gram.ZZ, gram.triangles(theta), strict=True)
        return np.eye(len(y)) + sum(z @ np.kron(np.eye(len(zz)), T @ T.T) @ z.T for z, zz, T in parts)

    inverse = np.linalg.inv(covariance(theta))
    P = inverse - inverse @ X @ np.linalg.solve(X.T @ inverse @ X, X.T @ inverse)
    freedom = len(y) - X.shape[1] if reml else len(y)
    scale, Py = freedom / (y @ P @ y), P @ y
    step = 0.5 * np.eye(len(theta))  # V is quadratic, so differences are its derivative
    moved = np.column_stack([(covariance(theta + d) - covariance(theta - d)) @ Py for d in step])
    along = moved.T @ Py
    wanted = scale * moved.T @ P @ moved - scale**2 / freedom * np.outer(along, along)
    found = average_information(swept(eliminate(gram, theta), reml=reml))
    assert np.allclose(found, wanted, rtol=DIGITS, atol=DIGITS * np.abs(wanted).max())
    assert not np.allclose(found, 1.01 * wanted, rtol=DIGITS, atol=DIGITS * np.abs(wanted).max())


@pytest.mark.parametrize("terms", TERMS)
def test_slopes_with_and_without_curvature_are_the_same(terms: str, panel: dict) -> None:
    gram, *_ = assemble(terms, panel)
    theta = np.random.default_rng(4).uniform(0.1, 0.8, len(gram.start))
    slope, bend = bent(eliminate(gram, theta), reml=True)
    assert np.allclose(slope, gradient(eliminate(gram, theta), reml=True), rtol=1e-12)
    assert np.linalg.eigvalsh(bend).min() > -DIGITS * np.abs(bend).max()


@pytest.mark.parametrize("reml", [True, False])
@pytest.mark.parametrize("terms", TERMS)
def test_plain_matrices_give_the_numbers_of_sparse_ones(terms: str, reml: bool, panel: dict) -> None:
    gram, *_ = assemble(terms, panel)
    theta = np.random.default_rng(5).uniform(0.1, 0.8, len(gram.start))
    plain, sparse = FewEffects(gram, reml), ManyEffects(gram, reml)
    assert plain.value(theta) == pytest.approx(sparse.value(theta), rel=1e-12)
    for mine, other in zip(plain.bent(), sparse.bent(), strict=True):
        assert np.allclose(mine, other, rtol=DIGITS, atol=DIGITS * np.abs(other).max())


def test_a_rejected_point_costs_no_slope() -> None:
    """Rosenbrock's valley: the way down is the same, and slopes are asked only where the value is low enough."""
    sloped, alone = [], []

    def value(x: np.ndarray) -> float:
        alone.append(tuple(x))
        return float((1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2)

    def function(x: np.ndarray) -> tuple[float, np.ndarray]:
        sloped.append(tuple(x))
        inner = x[1] - x[0] ** 2
        rise = np.array([-2 * (1 - x[0]) - 400 * x[0] * inner, 200 * inner])
        return float((1 - x[0]) ** 2 + 100 * inner**2), rise

    start, guess = np.array([-1.2, 1.0]), np.array([2.0, 2.0])
    whole = descend(function, start, curvature=guess)
    every, sloped[:] = list(sloped), []
    found = descend(function, start, curvature=guess, alone=value)
    assert np.array_equal(found[0], whole[0])
    assert np.allclose(found[0], 1.0)
    assert [sloped[0], *alone] == every
    assert len(sloped) < len(alone)


@pytest.mark.parametrize("terms", TERMS)
def test_the_search_ends_where_plain_bfgs_from_ones_ends_or_lower(terms: str, panel: dict) -> None:
    gram, _ = standardised(assemble(terms, panel)[0])

    def sloped(theta: np.ndarray) -> tuple[float, np.ndarray]:
        at = eliminate(gram, theta)
        return criterion(at, reml=True)[0], gradient(at, reml=True)

    theta, _ = search(gram, reml=True)
    _, value = descend(sloped, gram.start, curvature=np.full(len(theta), 10.0))
    assert criterion(eliminate(gram, theta), reml=True)[0] <= value + SAME


def test_effects_in_another_order_are_the_same_model(panel: dict) -> None:
    gram, _ = standardised(assemble("(t | g) + (1 | h)", panel)[0])
    turned = gram.ordered([np.array([1, 0]), np.array([0])])
    values = [criterion(eliminate(each, search(each, reml=True)[0]), reml=True)[0] for each in (gram, turned)]
    assert values[0] == pytest.approx(values[1], abs=SAME)
    assert len(starts(gram)) == 1
