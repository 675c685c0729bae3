"""The laws against SciPy, quadrature, closed forms and Arb."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from scipy import integrate, stats

from discreet.noise.laws import DiscreteLaplace, Gaussian, GeneralisedCauchy, Laplace, Polynomial, RadialPolynomial
from discreet.words.errors import PrivacyError
from faults_of import about

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
    Polynomial(21.98, core=0.0992),
    Polynomial(3.7, core=2.5),
    Polynomial(1.3, core=0.1),
    Polynomial(200.0, core=0.3),
]
RELATIVE = 1e-11  # masses far in the tail: some hundred roundings, amplified by the exponent


@pytest.mark.parametrize("law", LINE, ids=str)
def test_density_integrates_to_the_cdf(law):
    for a, b in itertools.pairwise([-np.inf, -0.7, 0.0, 0.2, 1.9, np.inf]):
        mass, _ = integrate.quad(lambda z: math.exp(law.log_density(z)), a, b, epsabs=0, epsrel=1e-9, limit=400)
        assert law.cdf(b) - law.cdf(a) == pytest.approx(mass, rel=1e-6, abs=1e-12)


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


@pytest.mark.parametrize("scale", [0.05, 0.5, 1.0, 20.0, 3000.0])
def test_the_laplace_law_of_integers(scale):
    law, reference = DiscreteLaplace(), stats.dlaplace(1 / scale)
    j = np.arange(-200_000, 200_001)
    np.testing.assert_allclose(
        law.probability(j[199_990:200_011], scale), reference.pmf(j[199_990:200_011]), rtol=1e-12
    )
    chance = law.probability(j, scale)
    assert chance.sum() == pytest.approx(1, abs=1e-12)
    assert law.mean(scale) == pytest.approx(np.abs(j) @ chance, rel=1e-10)
    rounded = np.abs(j) @ Laplace().probability(j, scale)
    assert rounded / law.mean(scale) == pytest.approx(math.cosh(0.5 / scale), rel=1e-10)
    for level in (0.5, 0.9, 0.95, 0.999):
        r = law.reach(level, scale)
        assert chance[np.abs(j) <= r].sum() >= level - 1e-12
        assert r == 0 or chance[np.abs(j) < r].sum() < level


def test_the_laplace_law_of_integers_loses_its_epsilon_and_no_more():
    """One step changes every probability by exactly epsilon; a step of a rounded Laplace variable by less at 0."""
    j = np.arange(-60, 61)
    for epsilon in (0.1, 1.0, 4.0):
        exact, rounded = (
            np.abs(np.diff(np.log(law.probability(j, 1 / epsilon)))) for law in (DiscreteLaplace(), Laplace())
        )
        np.testing.assert_allclose(exact, epsilon, rtol=1e-9)
        assert rounded.min() < 0.9 * epsilon and rounded.max() == pytest.approx(epsilon, rel=1e-9)
        assert np.abs(np.diff(np.log(DiscreteLaplace().probability(j, 0.95 / epsilon)))).max() > 1.05 * epsilon


def test_closed_forms():
    assert GeneralisedCauchy().variance == pytest.approx(1, rel=1e-14)
    assert GeneralisedCauchy().mean_abs == pytest.approx(1 / math.sqrt(2), rel=1e-14)
    assert GeneralisedCauchy(2.0).mean_abs == math.inf
    assert GeneralisedCauchy(3.0).variance == math.inf
    assert Polynomial(6.0).mean_abs == pytest.approx(1 / 4, rel=1e-14)
    assert Polynomial(6.0).variance == pytest.approx(2 / 12, rel=1e-14)
    assert RadialPolynomial(12.0, 3).mean_abs == pytest.approx(1 / 8, rel=1e-14)
    for core in [0.0, 3.5]:
        assert (Polynomial(2.0, core).mean_abs, Polynomial(3.0, core).variance) == (math.inf, math.inf)
        assert RadialPolynomial(4.0, 3, core).mean_abs == math.inf
    assert (RadialPolynomial(12.0, 3).dimension, Polynomial(12.0).dimension) == (3, 1)


def arb_integral(k, p, c):
    """The integral of t^k exp(-psi(t)), by the definitions of the incomplete gamma and beta functions."""
    rate, v = p / (1 + c), 1 / (1 + c)
    series = sum(((rate * c) ** i / arb.gamma(arb(i + 1)) for i in range(k + 1)), arb(0))
    inside = arb.gamma(arb(k + 1)) / rate ** (k + 1) * (1 - (-rate * c).exp() * series)
    powers = ((-1) ** i * fmpq(math.comb(k, i)) * v ** (p - k - 1 + i) / (p - k - 1 + i) for i in range(k + 1))
    return inside + (-rate * c).exp() * (1 + c) ** p * sum(powers, arb(0))


@pytest.mark.parametrize(
    ("p", "d", "core"),
    [
        (21.98, 1, 0.0992),
        (49.97, 8, 0.4031),
        (18.5, 8, 6.08),
        (410.0, 8, 0.042),
        (410.0, 8, 0.0175),
        (10.5, 8, 11.0),
        (20.0, 8, 1e40),
        (400.0, 150, 1e6),
        (1e6, 300, 0.01),
        (1e6, 3, 3e-6),
        (1e6, 1, 1e-300),
        (302.5, 300, 0.0),
        (1e6, 3, 0.0),
    ],
)
def test_moments_and_constant_against_arb(p, d, core):
    law = RadialPolynomial(p, d, core)
    with ctx.workprec(9000):
        zeroth, first, second = (arb_integral(d - 1 + k, arb(p), arb(core)) for k in range(3))
        assert law.mean_abs == pytest.approx(float(first / zeroth / d), rel=1e-13)
        assert law.variance == pytest.approx(float(2 * second / zeroth / (d * (d + 1))), rel=1e-13)
        constant = (arb.gamma(arb(d)) / zeroth).log() - d * arb(2).log()
        assert float(law.log_density(np.zeros(d))) == pytest.approx(float(constant), rel=1e-14, abs=1e-14)


def test_the_core_is_a_laplace_law_and_the_tail_a_power():
    law = RadialPolynomial(20.0, 2, core=0.5)
    t = np.array([0.0, 0.1, 0.5, 0.5, 0.7, 40.0])
    density = law.log_density(np.stack([0.3 * t, -0.7 * t], axis=-1))
    np.testing.assert_allclose(density[:3] - density[0], -t[:3] * 20 / 1.5, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(density[3:] - density[2], -20 * np.log((1 + t[3:]) / 1.5), rtol=1e-13, atol=1e-13)
    # Nearly all of the mass inside a core is a Laplace law.
    z = np.linspace(-3, 3, 13)
    wide = Polynomial(1e9, core=1e3)
    np.testing.assert_allclose(wide.cdf(z * (1 + 1e3) / 1e9), Laplace().cdf(z), rtol=1e-12)


@pytest.mark.parametrize(
    ("law", "reference"),
    [
        (Laplace(), stats.laplace()),
        (Gaussian(), stats.norm()),
        (GeneralisedCauchy(2.0), stats.cauchy()),
    ],
    ids=["laplace", "gaussian", "cauchy"],
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
    q = np.array([1e-12, 1e-3, 0.03, 0.06, 0.2, 0.4999, 0.5001, 0.7, 0.999])
    np.testing.assert_allclose(law.cdf(law.quantile(q)), q, rtol=1e-9)
    assert law.quantile(0.5) == 0
    np.testing.assert_array_equal(law.quantile([0, 1]), [-np.inf, np.inf])


def primitive(law, x):
    """An antiderivative of the density on the positive half line, other than the one under test."""
    match law:
        case Laplace():
            return -(-x).exp() / 2
        case Polynomial(p, core):
            p, c = arb(p), arb(core)
            edge, ends = p * c / (1 + c), (x.min(c), x.max(c))
            inside = (1 - (-p * ends[0] / (1 + c)).exp()) * (1 + c) / p
            power = 1 - ((1 + ends[1]) / (1 + c)) ** (1 - p)
            outside = (-edge).exp() * (1 + c) / (p - 1)
            return (inside + outside * power) / ((1 - (-edge).exp()) * (1 + c) / p + outside) / 2
        case Gaussian():
            return (x / arb(2).sqrt()).erf() / 2
        case GeneralisedCauchy(g):
            constant = arb(g) / (2 * arb.pi()) * (arb.pi() / arb(g)).sin()
            return constant * x * (-(x ** arb(g))).hypgeom_2f1(1, 1 / arb(g), 1 + 1 / arb(g))


def arb_mass(law, j, scale):
    """P(round(scale Z) = j) with so many digits that cancellation does not matter."""
    with ctx.workprec(1500):
        ends = [(arb(abs(j)) + arb(half)) / arb(scale) for half in (-0.5, 0.5)]
        low, high = (primitive(law, end if j else end.max(0)) for end in ends)
        mass = (high - low) * (1 if j else 2)
        assert mass.rel_accuracy_bits() > 60 or mass < 1e-300
        return float(mass)


@pytest.mark.parametrize("scale", [0.3, 7.25, 1e6])
@pytest.mark.parametrize("law", LINE, ids=str)
def test_probability_is_relatively_accurate_everywhere(law, scale):
    edge = round(getattr(law, "core", 0) * scale)  # cells on both sides of the core's edge, and across
    js = sorted({0, 1, -2, 5, edge - 1, edge, edge + 1, round(scale), round(3 * scale), round(20 * scale)})
    if isinstance(law, Polynomial | GeneralisedCauchy):
        js += [10**6, 10**12]
    expected = np.array([arb_mass(law, j, scale) for j in js])
    np.testing.assert_allclose(law.probability(js, scale), expected, rtol=RELATIVE, atol=1e-300)


@pytest.mark.parametrize("law", LINE, ids=str)
def test_probabilities_add_up(law):
    j = np.arange(-500, 501)
    assert law.probability(j, 3.1).sum() + 2 * law.survival(500.5 / 3.1) == pytest.approx(1, abs=1e-13)


def arb_tail(law, t, n):
    """exp(-psi) integrated n times from t to infinity: in the core, Taylor's formula from its edge."""
    p, c = arb(law.p), arb(law.core)
    rate = p / (1 + c)

    def outside(x, n):
        return (
            (-rate * c).exp()
            * (1 + c) ** p
            * (1 + x) ** (n - p)
            / math.prod((p - i for i in range(1, n + 1)), start=arb(1))
        )

    if not t < c:
        return outside(t, n)
    jumps = [(outside(c, n - k) - (-rate * c).exp() / rate ** (n - k)) for k in range(n)]
    return (-rate * t).exp() / rate**n + sum(
        (x * (c - t) ** k / math.factorial(k) for k, x in enumerate(jumps)), arb(0)
    )


def arb_box(law, j, scale):
    """The mass of a cube from its corners: differences of the d-fold integral on the positive orthant."""
    with ctx.workprec(1200):
        total = arb(0)
        for corner in itertools.product([0, 1], repeat=law.d):
            # A zero coordinate covers [-1/2, 1/2]: twice the half cell, whose lower end is 0.
            ends = [arb(abs(v)) + arb(c) - arb(0.5) if v else arb(c) / 2 for v, c in zip(j, corner, strict=True)]
            total += (-1) ** sum(corner) * arb_tail(law, sum(ends, arb(0)) / arb(scale), law.d) * 2 ** j.count(0)
        mass = total / arb_tail(law, arb(0), law.d) / 2**law.d
        assert mass.rel_accuracy_bits() > 60 or mass < 1e-300
        return float(mass)


@pytest.mark.parametrize(
    "law",
    [
        RadialPolynomial(2.2, 2),
        RadialPolynomial(40.0, 3),
        RadialPolynomial(9.5, 4),
        RadialPolynomial(21.98, 1, core=0.0992),
        RadialPolynomial(6.0, 2, core=0.5),
        RadialPolynomial(3.1, 3, core=25.0),
        RadialPolynomial(410.0, 3, core=0.042),
        RadialPolynomial(18.5, 8, core=6.08),
    ],
    ids=str,
)
@pytest.mark.parametrize("scale", [0.002, 0.3, 11.0, 1e5])
def test_radial_probability_against_its_corners(law, scale):
    d = law.d
    rows = [(0,) * d, (1,) * d, tuple(range(d)), (-3, *(7,) * (d - 1)), (0, *(10**4,) * (d - 1))]
    expected = np.array([arb_box(law, row, scale) for row in rows])
    np.testing.assert_allclose(law.probability(rows, scale), expected, rtol=RELATIVE, atol=1e-300)


@pytest.mark.parametrize("j", [(0, 0), (1, -2), (0, 4), (3, 1)])
def test_radial_probability_by_cubature(j):
    law, scale = RadialPolynomial(12.0, 2, core=0.9), 4.0
    ends = [np.array([v - 0.5, v + 0.5]) / scale for v in j]
    mass, _ = integrate.dblquad(lambda y, x: math.exp(law.log_density([x, y])), *ends[0], *ends[1], epsabs=1e-10)
    assert float(law.probability(j, scale)) == pytest.approx(mass, rel=1e-6)


def test_radial_probabilities_add_up_in_three_dimensions():
    law, side = RadialPolynomial(60.0, 3, core=0.2), np.arange(-14, 15)
    cube = np.stack(np.meshgrid(side, side, side), axis=-1)
    # Beyond the cube: at most the mass of t > 14.5 / 10, which is below 1e-10.
    assert law.probability(cube, 10.0).sum() == pytest.approx(1, abs=1e-9)


def test_radial_probability_takes_a_scale_for_each_vector():
    law, rows, scales = RadialPolynomial(9.0, 2, core=1.0), [(0, 3), (1, 1), (0, 0)], np.array([[0.5], [70.0]])
    together = law.probability(rows, scales)
    assert together.shape == (2, 3)
    for (i, k), value in np.ndenumerate(together):
        assert value == pytest.approx(float(law.probability(rows[k], scales[i, 0])), rel=1e-12)
    assert law.probability(np.empty((0, 2)), 1.0).shape == (0,)


@pytest.mark.parametrize("core", [0.0, 0.3])
def test_radial_law_in_one_dimension_is_the_polynomial_law(core):
    radial, line, j = RadialPolynomial(5.5, 1, core), Polynomial(5.5, core), np.arange(-9, 10)
    np.testing.assert_allclose(radial.probability(j[:, None], 2.5), line.probability(j, 2.5), rtol=1e-12)
    np.testing.assert_allclose(radial.log_density(j[:, None]), line.log_density(j), rtol=1e-13)
    assert (radial.mean_abs, radial.variance) == (line.mean_abs, line.variance)


def test_radial_density_integrates_to_that_of_a_coordinate():
    law, coordinate = RadialPolynomial(6.5, 2), Polynomial(5.5)
    for z in [0.0, 0.4, 3.0]:
        mass, _ = integrate.quad(lambda y, x=z: 2 * math.exp(law.log_density([x, y])), 0, np.inf)
        assert math.log(mass) == pytest.approx(float(coordinate.log_density(z)), rel=1e-8)


@pytest.mark.parametrize(
    ("p", "d", "core"), [(410.0, 8, 7 / 402 * 0.999), (9.0, 2, 1 / 7), (10.0, 3, -1.0), (10.0, 1, math.inf)]
)
def test_a_core_too_small_for_the_sampler_is_refused(p, d, core):
    with pytest.raises(PrivacyError, check=about("law")):
        RadialPolynomial(p, d, core)


def test_the_smallest_core_is_decided_without_rounding():
    # (d-1)/(p-d) = 1/2 is a double, and its neighbours lie on either side.
    assert RadialPolynomial(4.0, 2, np.nextafter(0.5, 1)).core > 0.5
    with pytest.raises(PrivacyError, check=about("law")):
        RadialPolynomial(4.0, 2, 0.5)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Polynomial(1.0),
        lambda: Polynomial(math.nan),
        lambda: Polynomial(5.0, -0.1),
        lambda: Polynomial(5.0, math.nan),
        lambda: GeneralisedCauchy(1.0),
        lambda: RadialPolynomial(3.0, 3),
        lambda: RadialPolynomial(3.0, 0),
        lambda: RadialPolynomial(1e5, 10_001),
        lambda: RadialPolynomial(5.0, 3).log_density([1.0, 2.0]),
        lambda: Laplace().probability(1, 0.0),
        lambda: DiscreteLaplace().probability(1, 0.0),
        lambda: Laplace().quantile(1.2),
    ],
)
def test_nonsense_is_refused(build):
    with pytest.raises(PrivacyError):
        build()
