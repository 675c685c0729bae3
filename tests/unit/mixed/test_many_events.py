"""Counts and shares with so many events that groups are known: estimates are those of a model of the groups' own.

There the effect of each group is seen to five digits, so intercept and variances must be the ones that a linear model
of these has. Before, searches stopped short of them: an intercept was off by 0.23 with a standard error of 0.2.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit

import discreet as dc
from discreet.arrays import Integers, Vector

NEAR = 1e-3  # of what groups leave uncertain: with a million events a group is known to a thousandth


def counted(y: Integers, x: Vector, slope: float, groups: Integers) -> Vector:
    """The intercept of each group at a known slope: closed form."""
    return np.log(np.bincount(groups, y) / np.bincount(groups, np.exp(slope * x)))


@pytest.mark.parametrize("events", [1e4, 1e6, 1e8])
def test_counts(events: float) -> None:
    rng = np.random.default_rng(5)
    g, x = np.repeat(np.arange(20), 10), rng.normal(size=200)
    y = rng.poisson(events * np.exp(0.3 + 0.5 * x + 0.7 * rng.normal(size=20)[g]))
    fit = dc.mixed("y ~ x + (1 | g)", {"y": y, "x": x, "g": g.astype(str)}, family="poisson")
    own = counted(y, x, fit.fixed["x"], g)
    assert fit.fixed["(Intercept)"] == pytest.approx(own.mean(), abs=NEAR)
    assert fit.variances["g"] == pytest.approx(own.var(), rel=NEAR)


def test_nested_counts() -> None:
    rng = np.random.default_rng(8)
    s, c, x = np.repeat(np.arange(10), 100), np.repeat(np.arange(100), 10), rng.normal(size=1000)
    y = rng.poisson(3e5 * np.exp(0.4 * x + 0.4 * rng.normal(size=10)[s] + 0.5 * rng.normal(size=100)[c]))
    data = {"y": y, "x": x, "s": s.astype(str), "c": c.astype(str)}
    fit = dc.mixed("y ~ x + (1 | s / c)", data, family="poisson")
    own = {"own": counted(y, x, fit.fixed["x"], c), "s": np.repeat(np.arange(10), 10).astype(str)}
    plain = dc.mixed("own ~ 1 + (1 | s)", own, method="ML")
    assert fit.fixed["(Intercept)"] == pytest.approx(plain.fixed["(Intercept)"], abs=NEAR)
    assert fit.variances["s"] == pytest.approx(plain.variances["s"], rel=NEAR)
    assert fit.variances["c:s"] == pytest.approx(plain.sigma2, rel=NEAR)


def test_shares() -> None:
    rng = np.random.default_rng(7)
    g, x = np.repeat(np.arange(50), 40), rng.normal(size=2000)
    k = rng.binomial(10_000, expit(0.5 * x + 0.7 * rng.normal(size=50)[g]))
    data = {"share": k / 10_000, "x": x, "g": g.astype(str), "n": np.full(2000, 10_000)}
    fit = dc.mixed("share ~ x + (1 | g)", data, family="binomial", weights="n")
    slope = fit.fixed["x"]
    own = np.array(
        [brentq(lambda a, at=g == i: (expit(a + slope * x[at]) - k[at] / 1e4).sum(), -9, 9) for i in range(50)]
    )
    assert fit.fixed["(Intercept)"] == pytest.approx(own.mean(), abs=NEAR)
    assert fit.variances["g"] == pytest.approx(own.var(), rel=NEAR)
