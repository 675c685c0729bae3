"""The bounds of the fast path against Arb: every ball must contain what it claims to contain."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb, ctx

from discreet.noise.balls import ELEMENTARY, Balls
from discreet.noise.exact import Uniform

POINTS = 20_000


@pytest.fixture(autouse=True)
def precision():
    with ctx.workprec(200):
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(2718)


def worst(name, x, *, absolute=False):
    """The largest error of NumPy's function, over the computed value or 1."""
    # Short and strided arrays take other code paths in NumPy than long ones.
    y = np.concatenate([getattr(np, name)(x[:-7]), getattr(np, name)(np.repeat(x[-7:], 2)[::2])])
    error = np.array(
        [abs(float(arb(b) - getattr(arb(a), name)())) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    )
    return np.max(error if absolute else error / np.abs(y))


def test_numpy_functions_are_as_accurate_as_assumed(rng):
    small, near_one = 2.0 ** -(64 * rng.random(POINTS)), 1 - 2.0 ** -(1 + 50 * rng.random(POINTS))
    assert worst("log", np.concatenate([rng.random(POINTS), small, near_one])) < ELEMENTARY
    assert worst("exp", np.append(rng.uniform(-700, 700, POINTS), rng.normal(size=POINTS))) < ELEMENTARY
    assert (
        worst("expm1", np.concatenate([rng.uniform(0, 700, POINTS), rng.uniform(-700, 0, POINTS), small])) < ELEMENTARY
    )
    assert worst("expm1", 2.0 ** -rng.uniform(1022, 1060, 1000), absolute=True) < 2.0**-1060
    assert worst("cos", np.pi * rng.random(2 * POINTS), absolute=True) < ELEMENTARY


def random_balls(rng, low, high, *, signed=False):
    """Balls of all sizes and relative radii between 1e-18 and 1, and a true value inside each."""
    n = 3000
    mid = 2.0 ** rng.uniform(low, high, n) * (rng.choice([-1.0, 1.0], n) if signed else 1.0)
    rad = np.abs(mid) * 10.0 ** rng.uniform(-18, 0, n)
    inside = [arb(m) + arb(r) * arb(t) for m, r, t in zip(mid, rad, rng.choice([-1.0, -0.3, 1.0], n), strict=True)]
    return Balls(mid, rad), inside


def missed(balls, truth):
    """How many true values lie outside their balls, and how many balls are useless."""
    rad = np.where(np.isfinite(balls.rad), balls.rad, np.inf)
    outside = sum(
        np.isfinite(r) and not abs(arb(t) - arb(m)) <= arb(r) * (1 + arb(2) ** -40)
        for t, m, r in zip(truth, balls.mid.tolist(), rad.tolist(), strict=True)
    )
    return outside, np.mean(~np.isfinite(rad))


BINARY = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
}
UNARY = {
    "log": (lambda x: x.log(), -60, 60),
    "exp": (lambda x: x.exp(), -30, 8),
    "expm1": (lambda x: x.expm1(), -60, 8),
    "expm1_below": (lambda x: (-x).expm1(), -60, 8),
    "sqrt": (lambda x: x.sqrt(), -60, 60),
    "cos_pi": (lambda x: x.cos_pi(), -60, -1),
    "minimum": (lambda x: x.min(1), -3, 3),
    "maximum": (lambda x: x.max(1), -3, 3),
    "from_one": (lambda x: 1 - x, -3, 3),
    "negative": (lambda x: -x, -3, 3),
}


@pytest.mark.parametrize("name", BINARY)
def test_binary_operations_enclose(name, rng):
    (a, x), (b, y) = random_balls(rng, -60, 60, signed=True), random_balls(rng, -60, 60, signed=True)
    with np.errstate(all="ignore"):
        result = BINARY[name](a, b)
    outside, useless = missed(result, [BINARY[name](s, t) for s, t in zip(x, y, strict=True)])
    assert outside == 0
    assert useless < 0.1
    exact = Balls(b.mid)
    outside, useless = missed(BINARY[name](a, exact), [BINARY[name](s, arb(t)) for s, t in zip(x, b.mid, strict=True)])
    assert (outside, useless) == (0, 0)


@pytest.mark.parametrize("name", UNARY)
def test_unary_operations_enclose(name, rng):
    function, low, high = UNARY[name]
    balls, inside = random_balls(rng, low, high)
    with np.errstate(all="ignore"):
        result = function(balls)
    outside, useless = missed(result, [function(x) for x in inside])
    assert outside == 0
    assert useless < 0.6


def test_radii_are_not_wasteful(rng):
    balls = Balls.uniforms(rng.integers(0, 2**64, 1000, dtype=np.uint64))
    assert np.median((-balls.log()).rad) < 1e-14


def test_uniforms_enclose_every_continuation(rng):
    words = np.concatenate(
        [rng.integers(0, 2**64, 2000, dtype=np.uint64), np.array([0, 1, 2, 3, 2**64 - 1], np.uint64)]
    )
    balls = Balls.uniforms(words)
    for word, mid, rad in zip(words.tolist(), balls.mid.tolist(), balls.rad.tolist(), strict=True):
        uniform = Uniform(word)
        assert arb(mid, rad).contains(uniform.ball())
        before = uniform.ball()
        uniform.extend(2**64 - 1)
        assert before.contains(uniform.ball())


def test_what_cannot_be_decided_is_not():
    with np.errstate(all="ignore"):
        for useless in [
            Balls(np.array([0.2]), np.array([np.nan])),
            Balls(np.array([np.inf])),
            Balls(np.array([2.0**60])) * 1,
        ]:
            assert not useless.nearest()[1].any()
        assert not Balls(np.array([-0.0]), np.array([1e-16])).sqrt().nearest()[1].any()
        assert not Balls(np.array([1e-20]), np.array([1e-20])).log().nearest()[1].any()
    near = Balls(np.array([0.5 - 1e-6, 0.5 - 1e-8, 2.5 + 1e-6]), np.array([1e-7, 1e-7, 1e-7]))
    assert near.nearest()[1].tolist() == [True, False, True]
    assert near.nearest()[0][[0, 2]].tolist() == [0, 3]
    sign = Balls(np.array([1.0, -1.0, 1.0, np.nan]), np.array([0.5, 0.5, 2.0, 0.0])).sgn()
    assert (sign.mid.tolist(), sign.rad.tolist()) == ([1, -1, 0, 0], [0, 0, 1, 1])
