"""Factors by rounds against dense algebra, on random graphs; and the search that stands on their slopes."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.arrays import Matrix, Vector
from discreet.models.linear.descent import descend
from discreet.models.linear.elimination import Elimination


def graph(unknowns: int, entries: int) -> tuple[np.ndarray, np.ndarray, Vector, Vector, Matrix]:
    """Places, values and the whole of a random positive definite matrix."""
    rng = np.random.default_rng(unknowns + entries)
    ends = rng.integers(0, unknowns, (2, entries))
    keys = np.unique((ends.max(axis=0) * unknowns + ends.min(axis=0))[ends[0] != ends[1]])
    rows, columns = keys // unknowns, keys % unknowns
    values = rng.normal(size=len(rows))
    whole = np.zeros((unknowns, unknowns))
    whole[rows, columns] = values
    whole += whole.T
    diagonal = np.abs(whole).sum(axis=1) + rng.uniform(0.1, 1, unknowns)
    return rows, columns, values, diagonal, whole + np.diag(diagonal)


@pytest.mark.parametrize("cost", [-1.0, 2e-4, 1.0], ids=["rounds", "as it comes", "dense"])
@pytest.mark.parametrize(("unknowns", "entries"), [(1, 0), (30, 0), (50, 80), (300, 700), (120, 5000), (600, 700)])
def test_a_factor_is_the_dense_one(unknowns: int, entries: int, cost: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.models.linear.elimination.ROUND", cost)
    rows, columns, values, diagonal, whole = graph(unknowns, entries)
    how = Elimination.of(rows, columns, unknowns)
    factor = how.factor(diagonal, values)
    inverse, right = np.linalg.inv(whole), np.random.default_rng(1).normal(size=(unknowns, 3))
    assert factor.logdet == pytest.approx(np.linalg.slogdet(whole)[1], rel=1e-12)
    reduced = factor.reduce(right)
    np.testing.assert_allclose(factor.back(*reduced), inverse @ right, atol=1e-12)
    np.testing.assert_allclose(factor.squares(*reduced), right.T @ inverse @ right, atol=1e-10)
    np.testing.assert_allclose(factor.squared_lengths(*reduced), np.diag(right.T @ inverse @ right), atol=1e-10)
    on_diagonal, elsewhere = factor.inverse()
    np.testing.assert_allclose(on_diagonal, np.diag(inverse), atol=1e-13)
    np.testing.assert_allclose(elsewhere, inverse[rows, columns], atol=1e-13)


def test_a_sparse_graph_leaves_a_small_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.models.linear.elimination.ROUND", -1.0)
    rows, columns, *_ = graph(2000, 2400)
    assert Elimination.of(rows, columns, 2000).core < 300


@pytest.mark.parametrize("cost", [-1.0, 1.0])
def test_a_matrix_that_is_not_positive_definite_is_told(cost: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.models.linear.elimination.ROUND", cost)
    rows, columns, values, diagonal, _ = graph(60, 90)
    with pytest.raises(np.linalg.LinAlgError):
        Elimination.of(rows, columns, 60).factor(diagonal - 5, values)


def rosenbrock(x: Vector) -> tuple[float, Vector]:
    a, b = 1 - x[0], x[1] - x[0] ** 2
    return a**2 + 100 * b**2, np.array([-2 * a - 400 * x[0] * b, 200 * b])


def test_descent_finds_the_minimum_whatever_the_units() -> None:
    for unit in (1.0, 1e4):
        scale = np.array([1.0, unit])

        def scaled(x: Vector, scale: Vector = scale) -> tuple[float, Vector]:
            value, slope = rosenbrock(x / scale)
            return value, slope / scale

        found, value = descend(scaled, np.array([-1.2, 1.0]) * scale, curvature=np.array([100.0, 200 / unit**2]))
        np.testing.assert_allclose(found / scale, 1, atol=1e-4)
        assert value < 1e-10
