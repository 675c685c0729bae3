"""Criteria and slopes against dense matrices, for crossed, nested and sloped terms at arbitrary theta."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import block_diag

from discreet.data.frames import open_frame
from discreet.models.formula.design import Design
from discreet.models.formula.formula import read_formula
from discreet.models.formula.rows import plan, read_rows
from discreet.models.linear.cells import cells_of
from discreet.models.linear.gram import gram_of
from discreet.models.linear.matrix import dense as build
from discreet.models.linear.sparse import Gram, criterion, diagonal_inverse, eliminate, gradient

TERMS = [
    "(1 | g)",
    "(t | g)",
    "(t || g)",
    "(1 | g) + (1 | h)",
    "(t | g) + (1 | h)",
    "(1 | g/h)",
    "(0 + industry | h) + (1 | g)",
    "(1 | g/h) + (1 | industry)",
    "(1 | g) + (1 | h) + (1 | industry)",
]


def assemble(terms: str, panel: dict) -> tuple[Gram, np.ndarray, np.ndarray, list[np.ndarray]]:
    """The Gram matrix, and y, X and every Z written out."""
    frame = open_frame(panel, ordered=True)
    layout = plan(frame, read_formula(f"y ~ t + {terms}"))
    rows, learned = read_rows(frame, layout)
    layout = layout.centred(learned.means, learned.distant)
    cells = cells_of(rows, layout, learned.levels)
    design = Design.of(layout, cells.codes, learned.levels)
    Z = []
    for random in design.random:
        inside = build(rows, random.pieces, design.levels)
        member = (random.grouping.codes(rows.codes)[:, None] == np.arange(len(random.grouping))).astype(float)
        Z.append((member[:, :, None] * inside[:, None, :]).reshape(rows.count, -1))
    return gram_of(cells, design), rows.evaluate(layout.response), build(rows, layout.fixed, design.levels), Z


ROUNDS = pytest.mark.parametrize("cost", [-1.0, 1.0], ids=["by rounds", "dense"])


@ROUNDS
@pytest.mark.parametrize("terms", TERMS)
def test_elimination_is_the_dense_algebra(
    terms: str, cost: float, panel: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.models.linear.elimination.ROUND", cost)
    gram, y, X, Z = assemble(terms, panel)
    theta = np.random.default_rng(2).uniform(0.1, 0.8, len(gram.start))
    at = eliminate(gram, theta)
    Lambda = block_diag(*(np.kron(np.eye(len(zz)), T) for zz, T in zip(gram.ZZ, at.triangles, strict=True)))
    spread = np.column_stack(Z) @ Lambda
    Omega = spread.T @ spread + np.eye(spread.shape[1])
    V = np.eye(len(y)) + spread @ spread.T
    joint = np.column_stack([X, y])
    assert at.logdet == pytest.approx(np.linalg.slogdet(V)[1], rel=1e-9)
    np.testing.assert_allclose(at.A, joint.T @ np.linalg.solve(V, joint), rtol=1e-6, atol=1e-8 * gram.joint.max())

    sizes = np.cumsum(gram.sizes)[:-1]
    right = np.random.default_rng(3).normal(size=(len(Omega), 4))
    solved = np.concatenate(at.solve(np.split(right, sizes)))
    np.testing.assert_allclose(solved, np.linalg.solve(Omega, right), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(at.quadratic(np.split(right, sizes)), np.diag(right.T @ np.linalg.solve(Omega, right)))
    blocks = block_diag(*(b for stack in diagonal_inverse(at) for b in stack))
    inverse = np.linalg.inv(Omega)
    np.testing.assert_allclose(blocks[blocks != 0], inverse[blocks != 0], rtol=1e-6, atol=1e-9)

    p, n = X.shape[1], len(y)
    beta = np.linalg.solve(X.T @ np.linalg.solve(V, X), X.T @ np.linalg.solve(V, y))
    rss = (y - X @ beta) @ np.linalg.solve(V, y - X @ beta)
    reml = (n - p) * (1 + np.log(2 * np.pi * rss / (n - p))) + np.linalg.slogdet(V)[1]
    reml += np.linalg.slogdet(X.T @ np.linalg.solve(V, X))[1]
    assert criterion(at, reml=True)[0] == pytest.approx(reml, rel=1e-9)


@ROUNDS
@pytest.mark.parametrize("reml", [True, False])
@pytest.mark.parametrize("terms", TERMS)
def test_slopes_are_differences(
    terms: str, reml: bool, cost: float, panel: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.models.linear.elimination.ROUND", cost)
    gram = assemble(terms, panel)[0]
    theta = np.random.default_rng(4).uniform(0.1, 0.8, len(gram.start))
    theta[0] = 0.0  # a variance of zero is a point like any other
    steps = 1e-5 * np.eye(len(theta))
    ends = [[criterion(eliminate(gram, theta + sign * step), reml=reml)[0] for sign in (1, -1)] for step in steps]
    found = gradient(eliminate(gram, theta), reml=reml)
    np.testing.assert_allclose(found, (np.array(ends) @ [1, -1]) / 2e-5, rtol=1e-6, atol=1e-5)


def test_nested_levels_leave_no_core(panel: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.models.linear.elimination.ROUND", -1.0)
    assert assemble("(1 | g/h)", panel)[0].elimination.core == 0
    assert assemble("(t || g)", panel)[0].elimination.core == 0
