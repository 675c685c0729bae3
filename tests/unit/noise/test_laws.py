"""The laws against SciPy, quadrature, closed forms and Arb."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from scipy import integrate, stats

from discreet.errors import PrivacyError
from discreet.noise.laws import Gaussian, GeneralisedCauchy, Laplace, Polynomial, RadialPolynomial

LINE = [
    Laplace(),
    Gaussian(),
    GeneralisedCauchy(),
    GeneralisedCauchy(2.5),
    GeneralisedCauchy(1.2),
    GeneralisedCauchy(9.0),
    Polynomial(11.5),
    Polynomial(3.7),
    Polynomial(1.3),
]
RELATIVE = 1e-11  # masses far in the tail: some hundred roundings, amplified by the exponent


@pytest.mark.parametrize("law", LINE, ids=str)
def test_density_integrates_to_the_cdf(law):
    for a, b in [(-np.inf, -0.7), (-0.7, 0.2), (0.2, 1.9), (1.9, np.inf)]:
        mass, _ = integrate.quad(lambda z: math.exp(law.log_density(z)), a, b, epsabs=0, epsrel=1e-9, limit=400)
        assert law.cdf(b) - law.cdf(a) == pytest.approx(mass, rel=1e-6)


@pytest.mark.parametrize("law", LINE, ids=str)
def test_moments_by_quadrature(law):
    for power, stated in [(1, law.mean_abs), (2, law.variance)]:
        if math.isfinite(stated):
            # z = e^t - 1 turns the heavy tail into an exponential one.
            moment, _ = integrate.quad(
                lambda t, k=power: 2 * math.expm1(t) ** k * math.exp(law.log_density(math.expm1(t)) + t),
                0,
                60,
                limit=400,
            )
            assert stated == pytest.approx(moment, rel=1e-6)


def test_closed_forms():
    assert GeneralisedCauchy().variance == pytest.approx(1, rel=1e-14)
    assert GeneralisedCauchy().mean_abs == pytest.approx(1 / math.sqrt(2), rel=1e-14)
    assert GeneralisedCauchy(2.0).mean_abs == math.inf
    assert GeneralisedCauchy(3.0).variance == math.inf
    assert (Polynomial(6.0).mean_abs, Polynomial(6.0).variance) == (1 / 4, 2 / 12)
    assert (Polynomial(2.0).mean_abs, Polynomial(3.0).variance) == (math.inf, math.inf)
    assert RadialPolynomial(12.0, 3).mean_abs == 1 / 8
    assert RadialPolynomial(12.0, 3).dimension == 3


@pytest.mark.parametrize(
    ("law", "reference"),
    [
        (Laplace(), stats.laplace()),
        (Gaussian(), stats.norm()),
        (GeneralisedCauchy(2.0), stats.cauchy()),
    ],
    ids=str,
)
def test_agrees_with_scipy(law, reference):
    z = np.linspace(-8, 8, 41)
    np.testing.assert_allclose(law.log_density(z), reference.logpdf(z), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(law.cdf(z), reference.cdf(z), rtol=1e-12)
    np.testing.assert_allclose(law.survival(z), reference.sf(z), rtol=1e-12)
    q = np.linspace(0.01, 0.99, 33)
    np.testing.assert_allclose(law.quantile(q), reference.ppf(q), rtol=1e-11, atol=1e-12)


def test_polynomial_is_a_signed_lomax_variable():
    z = np.linspace(0, 30, 16)
    np.testing.assert_allclose(2 * Polynomial(4.5).survival(z), stats.lomax(3.5).sf(z), rtol=1e-13)


@pytest.mark.parametrize("law", LINE, ids=str)
def test_quantile_inverts_the_cdf(law):
    q = np.array([1e-12, 1e-3, 0.2, 0.4999, 0.5001, 0.7, 0.999])
    np.testing.assert_allclose(law.cdf(law.quantile(q)), q, rtol=1e-9)
    assert law.quantile(0.5) == 0
    np.testing.assert_array_equal(law.quantile([0, 1]), [-np.inf, np.inf])


def primitive(law, x):
    """An antiderivative of the density on the positive half line, other than the one under test."""
    match law:
        case Laplace():
            return -(-x).exp() / 2
        case Polynomial(p):
            return -((1 + x) ** (1 - arb(p))) / 2
        case Gaussian():
            return (x / arb(2).sqrt()).erf() / 2
        case GeneralisedCauchy(g):
            constant = arb(g) / (2 * arb.pi()) * (arb.pi() / arb(g)).sin()
            return constant * x * (-(x ** arb(g))).hypgeom_2f1(1, 1 / arb(g), 1 + 1 / arb(g))


def arb_mass(law, j, scale):
    """P(round(scale Z) = j) with so many digits that cancellation does not matter."""
    with ctx.workprec(900):
        ends = [(arb(abs(j)) + arb(half)) / arb(scale) for half in (-0.5, 0.5)]
        low, high = (primitive(law, end if j else end.max(0)) for end in ends)
        mass = (high - low) * (1 if j else 2)
        assert mass.rel_accuracy_bits() > 60
        return float(mass)


@pytest.mark.parametrize("scale", [0.3, 7.25, 1e6])
@pytest.mark.parametrize("law", LINE, ids=str)
def test_probability_is_relatively_accurate_everywhere(law, scale):
    js = sorted({0, 1, -2, 5, round(scale), round(3 * scale), round(20 * scale)})
    if isinstance(law, Polynomial | GeneralisedCauchy):
        js += [10**6, 10**12]
    expected = [arb_mass(law, j, scale) for j in js]
    np.testing.assert_allclose(law.probability(js, scale), expected, rtol=RELATIVE)


@pytest.mark.parametrize("law", LINE, ids=str)
def test_probabilities_add_up(law):
    j = np.arange(-500, 501)
    assert law.probability(j, 3.1).sum() + 2 * law.survival(500.5 / 3.1) == pytest.approx(1, abs=1e-13)


def arb_box(law, j, scale):
    """The mass of a cube from its corners: P(all Z_i > z_i) = 2^-d (1 + sum z)^-(p-d) on the positive orthant."""
    with ctx.workprec(600):
        total = arb(0)
        for corner in itertools.product([0, 1], repeat=law.d):
            # A zero coordinate covers [-1/2, 1/2]: twice the half cell, whose lower end is 0.
            ends = [arb(abs(v)) + arb(c) - arb(0.5) if v else arb(c) / 2 for v, c in zip(j, corner, strict=True)]
            tail = (1 + sum(ends, arb(0)) / arb(scale)) ** (arb(law.d) - arb(law.p))
            total += (-1) ** sum(corner) * tail * fmpq(2 ** j.count(0), 2**law.d)
        return float(total)


@pytest.mark.parametrize(("p", "d"), [(2.2, 2), (40.0, 3), (9.5, 4)])
@pytest.mark.parametrize("scale", [0.3, 11.0, 1e5])
def test_radial_probability_against_its_corners(p, d, scale):
    law = RadialPolynomial(p, d)
    rows = [(0,) * d, (1,) * d, tuple(range(d)), (-3, *(7,) * (d - 1)), (0, *(10**4,) * (d - 1))]
    expected = [arb_box(law, row, scale) for row in rows]
    np.testing.assert_allclose(law.probability(rows, scale), expected, rtol=RELATIVE)


def test_radial_law_in_one_dimension_is_the_polynomial_law():
    radial, line, j = RadialPolynomial(5.5, 1), Polynomial(5.5), np.arange(-9, 10)
    np.testing.assert_allclose(radial.probability(j[:, None], 2.5), line.probability(j, 2.5), rtol=1e-12)
    np.testing.assert_allclose(radial.log_density(j[:, None]), line.log_density(j), rtol=1e-13)
    assert radial.marginal == line


def test_radial_density_integrates_to_its_marginal():
    law = RadialPolynomial(6.5, 2)
    for z in [0.0, 0.4, 3.0]:
        mass, _ = integrate.quad(lambda y, x=z: 2 * math.exp(law.log_density([x, y])), 0, np.inf)
        assert math.log(mass) == pytest.approx(float(law.marginal.log_density(z)), rel=1e-8)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Polynomial(1.0),
        lambda: Polynomial(math.nan),
        lambda: GeneralisedCauchy(1.0),
        lambda: RadialPolynomial(3.0, 3),
        lambda: RadialPolynomial(3.0, 0),
        lambda: RadialPolynomial(1e5, 10_001),
        lambda: RadialPolynomial(5.0, 3).log_density([1.0, 2.0]),
        lambda: Laplace().probability(1, 0.0),
        lambda: Laplace().quantile(1.2),
    ],
)
def test_nonsense_is_refused(build):
    with pytest.raises(PrivacyError):
        build()
