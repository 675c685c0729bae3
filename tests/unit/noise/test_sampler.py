"""The sampler's two paths give the same integers, and bits decide what doubles cannot."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb, ctx

from discreet.noise import balls, exact, sampler
from discreet.noise.law import Law
from discreet.noise.laws import DiscreteLaplace, Gaussian, GeneralisedCauchy, Laplace, Polynomial, RadialPolynomial
from discreet.noise.sampler import draw_integers, draw_log_laplace, draw_on_grid
from discreet.noise.source import SeededSource, SystemSource
from discreet.noise.staircase import Staircase
from discreet.words.errors import PrivacyError
from faults_of import about

LAWS = [
    Laplace(),
    DiscreteLaplace(),
    Polynomial(11.5),
    Polynomial(1.1),
    Polynomial(21.98, core=0.0992),
    Polynomial(1e6, core=0.01),
    RadialPolynomial(12.3, 1),
    RadialPolynomial(4.2, 3),
    RadialPolynomial(21.98, 1, core=0.0992),
    RadialPolynomial(49.97, 8, core=0.4031),
    RadialPolynomial(18.5, 8, core=6.08),
    RadialPolynomial(410.0, 8, core=0.042),
    RadialPolynomial(5.0, 3, core=1.5),
    Staircase(3.9047, 0.1, 0.124),
    Staircase(0.4, 0.1, 0.4),
    Staircase(2.0, 1.0, 0.0),
    GeneralisedCauchy(),
    GeneralisedCauchy(1.7),
    Gaussian(),
]


class Script:
    """A source that hands out the words it was given and then fails."""

    private = False

    def __init__(self, *words):
        self.left = list(words)

    def words(self, n):
        taken, self.left = self.left[:n], self.left[n:]
        assert len(taken) == n
        return np.array(taken, dtype=np.uint64)


@pytest.fixture
def resolved(monkeypatch):
    """How many draws went to Arb."""
    calls = []
    propose = exact.propose

    def counting(*args, **kwargs):
        calls.append(args)
        return propose(*args, **kwargs)

    monkeypatch.setattr(exact, "propose", counting)
    return calls


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_both_paths_give_the_same_integers(law, resolved):
    # Scales from "almost always zero" to "doubles can decide only some".
    scale = np.tile([0.3, 4.7, 1e3, 1e6, 3e12, 1e15], 3000 // (law.dimension + 1))
    fast = draw_integers(law, scale=scale, source=SeededSource(5))
    assert 0 < len(resolved) < 0.6 * scale.size
    slow = draw_integers(law, scale=scale, source=SeededSource(5), exact=True)
    assert len(resolved) > scale.size
    np.testing.assert_array_equal(fast, slow)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_without_error_bounds_the_paths_would_differ(law, monkeypatch):
    scale = np.full(4000 // (law.dimension + 1), 1e16)
    right = draw_integers(law, scale=scale, source=SeededSource(8), exact=True)
    monkeypatch.setattr(balls, "SLACK", 0.0)
    monkeypatch.setattr(balls, "UNDERFLOW", 0.0)
    assert np.any(draw_integers(law, scale=scale, source=SeededSource(8)) != right)


def test_both_paths_give_the_same_log_laplace(resolved):
    multiplier = np.tile([0.1, 12.0, 1234.5, 1e7, 1e13, -20.0], 1500)
    options = {"multiplier": multiplier, "exponent": 0.7, "addend": -10.0}
    fast = draw_log_laplace(**options, source=SeededSource(6))
    assert 0 < len(resolved) < 0.3 * multiplier.size
    np.testing.assert_array_equal(fast, draw_log_laplace(**options, source=SeededSource(6), exact=True))


def test_ordinary_scales_hardly_ever_need_arb(resolved):
    draw_integers(Laplace(), scale=np.full(100_000, 50.0), source=SeededSource(7))
    assert len(resolved) <= 2


def boundary(scale, j, count):
    """The first bits of the uniform at which scale * -log(u) is exactly j + 1/2: 63 bits, then words of 64."""
    with ctx.workprec(400):
        u = (-(arb(j) + arb(0.5)) / arb(scale)).exp()
        bits = int((u * arb(2) ** (63 + 64 * count)).floor().unique_fmpz())
    tail = [bits >> 64 * i & (2**64 - 1) for i in reversed(range(count))]
    return bits >> 64 * count, tail


@pytest.mark.parametrize("negative", [0, 1])
def test_extra_bits_decide_at_a_boundary(negative, resolved):
    first, (second, third) = boundary(77.3, 10, 2)
    word, sign = first << 1 | negative, 1 - 2 * negative

    def draw(*more):
        source = Script(word, *more)
        draws = draw_integers(Laplace(), scale=[77.3], source=source)
        assert not source.left
        return draws.tolist()

    assert draw(second - 1) == [sign * 11]
    assert draw(second + 1) == [sign * 10]
    assert draw(second, third - 1) == [sign * 11]
    assert draw(second, third + 1) == [sign * 10]
    assert len(resolved) == 4


def test_words_next_to_a_boundary_need_no_more_bits(resolved):
    first, _ = boundary(77.3, 10, 1)
    assert draw_integers(Laplace(), scale=[77.3], source=Script((first - 1) << 1)) == 11
    assert draw_integers(Laplace(), scale=[77.3], source=Script((first + 1) << 1)) == 10
    assert len(resolved) == 2


def test_acceptance_is_decided_by_bits_too(resolved):
    # The median proposal has z^4 = q; the second uniform sits at 1 / (1 + q).
    with ctx.workprec(400):
        z = (4 - arb(2)) / 3
        edge = 1 / (1 + z**4)
        bits = int((edge * arb(2) ** 127).floor().unique_fmpz())
    half, first, second = 2**63, bits >> 64, bits & (2**64 - 1)
    accept = draw_integers(GeneralisedCauchy(), scale=[3.0], source=Script(half, first << 1, 0, second - 2**40))
    assert accept == 2
    # Rejected: the next proposal, near u = 1 with a small second uniform, is accepted and rounds to 0.
    again = Script(half, first << 1, 0, second + 2**40, 2**64 - 2**50, 2)
    assert draw_integers(GeneralisedCauchy(), scale=[3.0], source=again) == 0
    assert not again.left
    assert len(resolved) == 2


def digits(x, count):
    """The first 63 binary digits of an Arb number in (0, 1), then words of 64."""
    bits = int((x * arb(2) ** (63 + 64 * count)).floor().unique_fmpz())
    return bits >> 64 * count, *(bits >> 64 * i & (2**64 - 1) for i in reversed(range(count)))


# In one dimension: u picks its magnitude E = -ln u, the next word core or tail, the last one accepts.
CORE = RadialPolynomial(21.98, 1, core=0.0992)
HALF, NEARLY_ONE = 2**63, 2**64 - 2**57


def test_core_or_tail_is_decided_by_bits(resolved):
    with ctx.workprec(400):
        edge = arb(CORE.p) * arb(CORE.core) / (1 + arb(CORE.core))
        tail_share = 1 / (1 + edge.exp() * (arb(CORE.p) - 1) / arb(CORE.p))
        first, second = digits(tail_share, 1)

    def draw(step):
        source = Script(NEARLY_ONE, first << 1, HALF, HALF, second + step, HALF)
        drawn = draw_integers(CORE, scale=[1e4], source=source)
        assert not source.left
        return drawn.tolist()

    # Next to the border the tail begins at the core's edge; in the core, E is 1/128.
    assert draw(-(2**40)) == [[992]]
    assert draw(2**40) == [[4]]
    assert len(resolved) == 2


def test_the_edge_of_the_core_is_decided_by_bits(resolved):
    with ctx.workprec(400):
        first, second = digits((-arb(CORE.p) * arb(CORE.core) / (1 + arb(CORE.core))).exp(), 1)
    inside = Script(first << 1, NEARLY_ONE, HALF, second + 2**40, HALF, HALF)
    assert draw_integers(CORE, scale=[1e4], source=inside).tolist() == [[992]]
    # Just beyond, the proposal is rejected; the next one is well inside.
    beyond = Script(first << 1, NEARLY_ONE, HALF, second - 2**40, HALF, HALF, NEARLY_ONE, NEARLY_ONE, HALF)
    assert draw_integers(CORE, scale=[1e4], source=beyond).tolist() == [[4]]
    assert not inside.left
    assert not beyond.left
    assert len(resolved) == 2


def test_acceptance_in_the_tail_is_decided_by_bits(resolved):
    law = RadialPolynomial(20.0, 2, core=0.2)
    with ctx.workprec(400):
        p, c = arb(law.p), arb(law.core)
        edge, slope = p * c / (1 + c), p - 2 - 1 / c
        tail_share = 1 / (1 + edge.exp() / edge * slope / p)
        third = digits(tail_share / 2, 0)[0] << 1
        x = -(((arb(third) + 1) / arb(2) ** 64 / tail_share).log()) / slope
        # The last word's uniform is (target / envelope) at x, from the densities of ln(1+t) themselves.
        target = (((1 + c) * x.exp() - 1) / c) * (-(p - 1) * x).exp()
        first, second = digits(target / (-slope * x).exp(), 1)
    words = [HALF, HALF, third, first << 1, 0, 0, HALF]
    accepted = Script(*words, second - 2**40)
    assert draw_integers(law, scale=[1e3], source=accepted).tolist() == [
        [round(500 * float((1 + c) * x.exp() - 1))] * 2
    ]
    rejected = Script(*words, second + 2**40, NEARLY_ONE, NEARLY_ONE, NEARLY_ONE, HALF)
    assert np.abs(draw_integers(law, scale=[1e3], source=rejected)).max() < 100
    assert not accepted.left
    assert not rejected.left
    assert len(resolved) == 2


@pytest.mark.parametrize("law", [Polynomial(1.01), Polynomial(1.01, 3.0), Laplace(), GeneralisedCauchy(1.2)], ids=str)
def test_huge_values_saturate(law):
    # The smallest uniforms there are, with both signs; accepted by a small second uniform where one is used.
    for word, sign in [(2, 1), (3, -1)]:
        assert draw_integers(law, scale=[1e300], source=Script(*[word] * 8)) == sign * 2**62


def test_values_beyond_double_precision_are_exact():
    word = 2**63 + 2**13 + 5 & ~1
    with ctx.workprec(300):
        value = -((arb(word + 1) / arb(2) ** 64).log()) * arb(3e18)
        expected = int((value + 0.5).floor().unique_fmpz())
    drawn = int(draw_integers(Laplace(), scale=[3e18], source=Script(word, 2**63))[0])
    assert abs(drawn - expected) <= 1
    assert drawn > 2**53
    assert drawn != int(float(drawn))


def test_a_uniform_that_starts_with_63_zeros_is_not_zero():
    drawn = draw_integers(Laplace(), scale=[1.0], source=Script(0, 2**63))
    assert drawn == 44  # -log(2^-64) = 44.36


@pytest.mark.parametrize("law", [law for law in LAWS if law != DiscreteLaplace()], ids=str)
def test_scale_zero_is_no_noise(law):
    assert not draw_integers(law, scale=np.zeros(50), source=SystemSource()).any()


def test_shapes():
    source = SeededSource(1)
    assert draw_integers(Laplace(), scale=2.0, source=source).shape == ()
    assert draw_integers(Laplace(), scale=np.ones((2, 3)), source=source).shape == (2, 3)
    assert draw_integers(Gaussian(), scale=[], source=source).shape == (0,)
    assert draw_integers(RadialPolynomial(9.0, 4), scale=np.ones((2, 3)), source=source).shape == (2, 3, 4)
    assert draw_integers(RadialPolynomial(9.0, 1), scale=np.ones(5), source=source).shape == (5, 1)
    assert draw_integers(RadialPolynomial(900.0, 200, core=1.0), scale=np.ones(50), source=source).shape == (50, 200)
    assert draw_integers(RadialPolynomial(900.0, 200), scale=np.ones(5000), source=source).shape == (5000, 200)
    assert draw_log_laplace(multiplier=[[1], [2]], exponent=0.1, addend=[0, 1, 2], source=source).shape == (2, 3)
    assert draw_integers(Laplace(), scale=[1, 2], source=source).dtype == np.int64


def test_chunks_do_not_show(monkeypatch):
    scale = np.linspace(0, 50, 1000)
    whole = draw_integers(Laplace(), scale=scale, source=SeededSource(3))
    monkeypatch.setattr(sampler, "CHUNK", 17)
    np.testing.assert_array_equal(whole, draw_integers(Laplace(), scale=scale, source=SeededSource(3)))


def test_an_exponential_too_small_for_a_double_is_not_taken_for_zero(resolved):
    multiplier, exponent = 1.7e308, 18.0
    with ctx.workprec(200):
        u = (-arb(709) / arb(exponent)).exp()
        digits = int((u * arb(2) ** 63).floor().unique_fmpz())
        expected = round(float(u ** arb(exponent) * arb(multiplier)))
    source = Script(digits << 1 | 1, *[2**63] * 9)
    assert draw_log_laplace(multiplier=[multiplier], exponent=exponent, addend=0.0, source=source) == expected == 2
    assert len(resolved) == 1


def test_log_laplace_without_noise_is_rounding():
    drawn = draw_log_laplace(multiplier=[3.2, 7.0, 1e200], exponent=0.0, addend=[0.1, -0.8, 0], source=SystemSource())
    assert drawn.tolist() == [3, 6, 2**62]


@pytest.mark.parametrize("grid", [2.0**-10, 1.0, 8.0])
def test_grid_is_the_integers_rescaled(grid):
    scale = np.full(100, 5.3)
    drawn = draw_on_grid(Laplace(), scale=scale, grid=grid, source=SeededSource(4))
    np.testing.assert_array_equal(drawn / grid, draw_integers(Laplace(), scale=scale / grid, source=SeededSource(4)))
    np.testing.assert_array_equal(drawn % grid, 0)


@pytest.mark.parametrize("scale", [-1.0, np.nan, np.inf, [1.0, -1e-300]])
def test_impossible_scales_are_refused(scale):
    with pytest.raises(PrivacyError, check=about("scale")):
        draw_integers(Laplace(), scale=scale, source=Script())
    with pytest.raises(PrivacyError, check=about("scale")):
        draw_integers(DiscreteLaplace(), scale=0.0, source=Script())


def test_integers_change_where_a_power_of_q_does(resolved):
    """Of (1 + q) / 2 the share between q^(k+1) and q^k gives k: the words on either side of q^3 give 3 and 2."""
    scale = 1.7
    with ctx.workprec(300):
        q = (-1 / arb(scale)).exp()
        first = int((2 * q**3 / (1 + q) * arb(2) ** 63).floor().unique_fmpz())
    for digits, size in ((first - 2, 3), (first + 2, 2)):
        for sign in (0, 1):
            source = Script(digits << 1 | sign, *[2**63] * 3)
            assert draw_integers(DiscreteLaplace(), scale=[scale], source=source) == (-size if sign else size)
    assert len(resolved) == 4
    largest = Script((2**63 - 1) << 1)
    assert draw_integers(DiscreteLaplace(), scale=[scale], source=largest) == 0


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e-9, 1e-3])
def test_noise_that_is_hardly_ever_there(scale):
    assert not draw_integers(DiscreteLaplace(), scale=np.full(20, scale), source=SeededSource(8)).any()


def test_other_impossible_requests_are_refused():
    for options in [{"exponent": -1.0}, {"multiplier": np.nan}, {"addend": np.inf}]:
        with pytest.raises(PrivacyError, check=about(*options)):
            draw_log_laplace(**{"multiplier": 1.0, "exponent": 1.0, "addend": 0.0, **options}, source=Script())
    for grid in [0.1, 0.0, -1.0, np.nan, np.inf]:
        with pytest.raises(PrivacyError, check=about("grid")):
            draw_on_grid(Laplace(), scale=1.0, grid=grid, source=Script())
    with pytest.raises(PrivacyError, check=about("grid")):
        draw_on_grid(Laplace(), scale=1e300, grid=2.0**-1000, source=Script())

    class Unknown(Law):
        mean_abs = variance = 1.0
        log_density = probability = None

    with pytest.raises(PrivacyError, check=about("law")):
        draw_integers(Unknown(), scale=1.0, source=Script())
