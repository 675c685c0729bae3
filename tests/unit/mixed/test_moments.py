from __future__ import annotations

import numpy as np
import pytest

from discreet.models.linear import Moments, mixed
from faults_of import about

FORMULA = "y ~ 0 + industry + t + (1 | g)"


@pytest.fixture(scope="module")
def moments(panel: dict) -> Moments:
    return mixed(FORMULA, panel).moments


def test_moments_are_the_sums_of_the_design(panel: dict, dense: tuple) -> None:
    y, X, Z = dense
    fit = mixed(FORMULA, panel)
    pieces = fit.design.layout.fixed
    shift = np.repeat([p.monomial.shift for p in pieces], [p.width(fit.design.levels) for p in pieces])
    X, y = X - shift, y - fit.design.layout.response.shift
    m = fit.moments
    assert m.rows == len(y)
    for ours, theirs in [(m.n, Z.sum(0)), (m.Sx, Z.T @ X), (m.Sy, Z.T @ y), (m.XX, X.T @ X), (m.Xy, X.T @ y)]:
        np.testing.assert_allclose(ours, theirs, atol=1e-7)
    assert m.yy == pytest.approx(y @ y)
    residual = np.column_stack([X, y]) - Z @ m.means
    np.testing.assert_allclose(m.within, residual.T @ residual, atol=1e-7)


def test_adding_and_removing_rows_cancel(moments: Moments) -> None:
    rng = np.random.default_rng(0)
    x, y, group = rng.normal(size=(5, 6)), rng.normal(size=5), np.array([0, 3, 3, 17, 3])
    more = moments.add(group=group, x=x, y=y)
    assert more.rows == moments.rows + 5
    assert more.n[3] == moments.n[3] + 3
    back = more.downdate(group=group, x=x, y=y)
    for name in Moments.__slots__:
        np.testing.assert_allclose(getattr(back, name), getattr(moments, name), atol=1e-8)


def test_a_removed_group_weighs_nothing(panel: dict, moments: Moments) -> None:
    """Downdating by all rows of a group gives the fit without them, though the group keeps its place."""
    from discreet.models.linear.matrix import dense as build
    from discreet.models.linear.solution import solve_moments

    fit = mixed(FORMULA, panel)
    gone = panel["g"] == 103
    rows = fit.data.take(np.flatnonzero(gone))
    x = build(rows, fit.design.layout.fixed, fit.design.levels)
    reduced = fit.moments.downdate(group=3, x=x, y=rows.evaluate(fit.design.layout.response))
    assert reduced.n[3] == 0
    alone = mixed(FORMULA, {name: values[~gone] for name, values in panel.items()})
    again = solve_moments(reduced, reml=True)
    assert again.criterion == pytest.approx(alone.criterion, rel=1e-9)
    assert again.sigma2 == pytest.approx(alone.sigma2, rel=1e-7)


def test_only_one_random_intercept_has_moments(panel: dict) -> None:
    from discreet.words.errors import FitError

    with pytest.raises(FitError, check=about("formula")):
        _ = mixed("y ~ t + (1 | g) + (1 | h)", panel).moments
