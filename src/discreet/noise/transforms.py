"""Each law as an elementary function of a few uniform variables, written once for every arithmetic.

A transform takes numbers and returns numbers of the same kind: `Balls` on the fast path, Arb balls on the exact one.
Parameters of the law are numbers too, so ``1 - p`` is rounded, and its rounding bounded, like everything else. The
distributions are proved in docs/proofs/sampler.md, section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, sub
from typing import Any, Protocol, Self, TypeVar

from discreet.noise.law import Law
from discreet.noise.laws import DiscreteLaplace, Gaussian, GeneralisedCauchy, Laplace, Polynomial, RadialPolynomial
from discreet.noise.rings import Rings
from discreet.noise.staircase import Staircase
from discreet.words.errors import PrivacyError


class Number(Protocol):
    """The operations of a transform on a number; python-flint's `arb` and our `Balls` have them all."""

    def __add__(self, other: Self | float, /) -> Self: ...
    def __sub__(self, other: Self | float, /) -> Self: ...
    def __rsub__(self, other: float, /) -> Self: ...
    def __neg__(self) -> Self: ...
    def __mul__(self, other: Self | float, /) -> Self: ...
    def __truediv__(self, other: Self | float, /) -> Self: ...
    def __rtruediv__(self, other: float, /) -> Self: ...
    def log(self) -> Self: ...
    def exp(self) -> Self: ...
    def expm1(self) -> Self: ...
    def sqrt(self) -> Self: ...
    def sgn(self) -> Self: ...
    def ceil(self) -> Self: ...
    def cos_pi(self) -> Self: ...
    def min(self, bound: float, /) -> Self: ...
    def max(self, bound: Self | float, /) -> Self: ...


N = TypeVar("N", bound=Number)


@dataclass(frozen=True, slots=True)
class Transform:
    """How a proposal is made from uniforms.

    Attributes
    ----------
    function : takes uniforms, as many independent signs, then parameters; returns the values, and a
        number that is negative when the proposal is accepted, or None when every proposal is.
    words : uniforms used by one proposal.
    outputs : values made by one proposal.
    constants : the last parameters, which are the same for all draws.
    """

    function: Callable[..., tuple[list[Any], Any]]
    words: int = 1
    outputs: int = 1
    constants: tuple[float, ...] = ()

    @classmethod
    def of(cls, law: Law) -> Transform:
        """The transform whose values, rounded, have the law's probabilities."""
        match law:
            case Laplace():
                return cls(_laplace)
            case DiscreteLaplace():
                return cls(_discrete_laplace)
            case Polynomial(p, core):
                return cls(_polynomial, constants=(p, core))
            case RadialPolynomial(p, d, 0):
                return cls(_radial_polynomial, words=2 * d, outputs=d, constants=(p,))
            case RadialPolynomial(p, d, core):
                return cls(_radial_polynomial_with_core, words=d + 2, outputs=d, constants=(p, core))
            case Rings(d):
                return cls(_rings, words=d + 1, outputs=d)
            case Staircase(drop, growth, plateau):
                return cls(_staircase, constants=(drop, growth, plateau))
            case GeneralisedCauchy(g):
                return cls(_generalised_cauchy, words=2, constants=(g,))
            case Gaussian():
                return cls(_gaussian, words=2)
        raise PrivacyError(
            f"There is no sampler for {law!r}.",
            "Noise can follow Laplace, DiscreteLaplace, Polynomial, RadialPolynomial, Rings, Staircase, "
            "GeneralisedCauchy or Gaussian.",
            "Choose one of these laws.",
            about="law",
        )


def _laplace(u: Sequence[N], s: Sequence[N], scale: N) -> tuple[list[N], None]:
    return [-u[0].log() * s[0] * scale], None


def _discrete_laplace(u: Sequence[N], s: Sequence[N], scale: N) -> tuple[list[N], None]:
    """The size is k where a uniform variable on (0, (1 + q) / 2) lies between q^(k+1) and q^k, q = exp(-1 / scale)."""
    v = u[0] * ((-1 / scale).exp() + 1) * 0.5
    return [(-v.log() * scale - 0.5) * s[0]], None


def _polynomial(u: Sequence[N], s: Sequence[N], scale: N, p: N, c: N) -> tuple[list[N], None]:
    """The tail function inverted, through v = u / P(|Z| > c): of its two branches one rests while the other moves."""
    rate = p / (c + 1)
    edge = rate * c
    log_v = u[0].log() + (((-edge).exp() - 1) / p + 1).log() + edge
    inside, outside = log_v.max(0), log_v.min(0)
    inwards = (((p - (-inside).exp()) / (p - 1)).log() + inside) / rate
    return [((outside / (1 - p)).expm1() * (c + 1) - inwards + c) * s[0] * scale], None


def _radial_polynomial(u: Sequence[N], s: Sequence[N], scale: N, p: N) -> tuple[list[N], None]:
    """The direction from the first d exponentials, the radius from the others."""
    d = len(u) // 2
    direction = [-x.log() for x in u[:d]]
    log_radius = reduce(add, [-x.log() / (p - (d - i)) for i, x in enumerate(u[d:])])
    unit = log_radius.expm1() * scale / reduce(add, direction)
    return [x * sign * unit for x, sign in zip(direction, s, strict=False)], None


def _radial_polynomial_with_core(u: Sequence[N], s: Sequence[N], scale: N, p: N, c: N) -> tuple[list[N], N]:
    """Rejection from a Laplace law cut at the core's edge or from a power law beyond it, as v = u / P(beyond) says."""
    d = len(u) - 2
    direction = [-x.log() for x in u[:d]]
    total = reduce(add, direction)
    rate, slope = p / (c + 1), ((p - d) * c - (d - 1)) / c
    edge = rate * c
    log_odds = reduce(sub, [(edge / i).log() for i in range(1, d)], edge) + (slope / p).log()
    log_v = u[d].log() + ((-log_odds).exp() + 1).log() + log_odds
    tail = (1 - log_v.sgn()) * 0.5
    x = -log_v * tail / slope
    excess = (total - edge) * (1 - tail)
    lack = (x / c - (1 - (-x).expm1() / c).log()) * (d - 1)
    unit = (x.expm1() * (c + 1) + excess / rate + c) * scale / total
    return [y * sign * unit for y, sign in zip(direction, s, strict=False)], lack + excess + u[d + 1].log() * tail


def _rings(u: Sequence[N], s: Sequence[N], scale: N, low: N, high: N, power: N, times: N) -> tuple[list[N], None]:
    """The direction from d exponentials, the radius from one uniform variable and the ring that was drawn before."""
    d = len(u) - 1
    direction = [-x.log() for x in u[:d]]
    unit = ring_radius(u[d], d, low, high, power, times) * scale / reduce(add, direction)
    return [x * sign * unit for x, sign in zip(direction, s, strict=False)], None


def ring_radius(u: N, d: int, low: N, high: N, power: N, times: N) -> N:
    """Uniform by volume between two edges (power d, times 1); beyond the last one, T u^(1/power) with 0, 1 and T."""
    inner, outer = _power(low, d), _power(high, d)
    return (((outer - inner) * u + inner).log() / power).exp() * times


def _power(x: N, d: int) -> N:
    if d == 1:
        return x
    half = _power(x, d // 2)
    return half * half * x if d % 2 else half * half


def flow_rings(u: Sequence[N], s: Sequence[N], *parameters: N) -> tuple[list[N], None]:
    """stayed, passed, came, left and created on the sphere of `noise.flow_body`, the radius as for rings.

    Five exponentials divide the radius, the last three of them together; three uniforms are a point of the cube.
    """
    scale, *ring = parameters
    sizes = [-x.log() for x in u[:5]]
    unit = ring_radius(u[8], 5, *ring) * scale / reduce(add, sizes)
    side = reduce(add, sizes[2:]) * unit / _largest(u[5:8]) * 0.5
    both, net, reallocated = (x * sign * side for x, sign in zip(u[5:8], s[5:8], strict=True))
    return [sizes[0] * s[0] * unit, sizes[1] * s[1] * unit, both + net, both - net, net + reallocated], None


def within_box(d: int) -> Transform:
    """A direction of the hull of a box and its negative, cut by the bound on the sum: see `_cut`.

    Of d + 1 uniform variables, (u_c - u_0) / (their range) is uniform on that hull's surface, in units of the box: the
    hull is the shadow of a cube of d + 1 dimensions, and a point of it has as long a fibre as it is far from the edge.
    """

    def function(u: Sequence[N], s: Sequence[N], *parameters: N) -> tuple[list[N], N]:
        spread = _largest(u[: d + 1]) + _largest([-x for x in u[: d + 1]])
        return _cut([(x - u[0]) / spread for x in u[1 : d + 1]], u[d + 1 :], d, *parameters)

    return Transform(function, words=d + 3, outputs=d)


def within_sum(d: int) -> Transform:
    """The same direction from one of the L1 ball."""

    def function(u: Sequence[N], s: Sequence[N], *parameters: N) -> tuple[list[N], N]:
        sizes = [-x.log() for x in u[:d]]
        unit = parameters[d] / reduce(add, sizes)
        points = [x * sign * unit / own for x, sign, own in zip(sizes, s, parameters, strict=False)]
        return _cut(points, u[d:], d, *parameters)

    return Transform(function, words=d + 2, outputs=d)


def _cut(y: Sequence[N], u: Sequence[N], d: int, *parameters: N) -> tuple[list[N], N]:
    """A direction y (in units of the first d parameters) of a ball that holds the cut one, kept as often as it is long.

    The cut ball's norm of z is g(z+) + g(z-), g(y) the larger of max y_c / s_c and sum y_c / S, S the next parameter;
    the rest says the radius.
    """
    own, whole = parameters[:d], parameters[d]
    norm = reduce(add, [_gauge([x.max(0) for x in part], own, whole) for part in (y, [-x for x in y])])
    unit = ring_radius(u[1], d, *parameters[d + 1 :]) / norm
    return [x * scale * unit for x, scale in zip(y, own, strict=True)], u[0].log() + norm.log() * d


def within_unions(d: int) -> Transform:
    """A point and a share t, kept if all sums are within their bounds: t of them above 0, 1 - t of them below.

    Parameters are, of every kind, whether it is positive if it belongs to the simplex, whether it does, and its side;
    then the ring, and the bounds of all sets. Exponentials are a point of a simplex together with t. Every other kind
    is uniform between -(1 - t) and t of its side.
    """

    def function(u: Sequence[N], s: Sequence[N], *parameters: N) -> tuple[list[N], N]:
        positive, shared, side = parameters[:d], parameters[d : 2 * d], parameters[2 * d : 3 * d]
        sizes = [-x.log() for x in u[: d + 2]]
        above, below = sizes[d], sizes[d + 1]
        parts: list[N] = []
        for up, together, own in zip(positive, shared, sizes, strict=False):
            parts.append(own * together)
            first = parts[-1] * up
            above, below = above + first, below + (parts[-1] - first)
        total = above + below
        rise, fall = above / total, below / total
        z = []
        for c, (up, together) in enumerate(zip(positive, shared, strict=True)):
            y = parts[c] * (up * 2 - 1) / total + (u[c] - fall) * (1 - together)
            z.append(y * side[c])
        highest, lowest = _reach([x.max(0) / rise - (-x).max(0) / fall for x in z], parameters[3 * d + 4 :])
        unit = ring_radius(u[d + 2], d, *parameters[3 * d : 3 * d + 4]) / (highest * rise + lowest * fall)
        return [x * unit for x in z], highest.max(lowest) - 1

    return Transform(function, words=d + 3, outputs=d)


def _reach(z: Sequence[N], bounds: Sequence[N]) -> tuple[N, N]:
    """The largest z(A) / S_A and -z(A) / S_A over all sets A and 0."""
    sums: list[N] = []
    for x in z:
        sums += [x, *(some + x for some in sums)]
    shares = [some / bound for some, bound in zip(sums, bounds, strict=True)]
    return _largest(shares).max(0), _largest([-x for x in shares]).max(0)


def _gauge(y: Sequence[N], own: Sequence[N], whole: N) -> N:
    total = reduce(add, [x * scale for x, scale in zip(y, own, strict=True)])
    return _largest([*y, total / whole])


def _largest(x: Sequence[N]) -> N:
    return reduce(lambda a, b: a.max(b), x)


def _staircase(u: Sequence[N], s: Sequence[N], scale: N, drop: N, growth: N, plateau: N) -> tuple[list[N], None]:
    """The tail function inverted: u says which ring, and how far from its edge."""
    log_w = (growth + 1).log()
    log_ratio = log_w - drop
    rings = (plateau * growth + 1) * (-drop).exp() / (1 - log_ratio.exp())
    mass = plateau + rings
    beyond = rings / mass
    j = ((u[0].log() - beyond.log()) / log_ratio).ceil().max(0)
    inwards = (u[0] - (j * log_ratio).exp() * beyond) * mass * (j * drop).exp()
    edge = (plateau * growth + 1) * (j * log_w).expm1() / growth + plateau
    return [(edge - inwards) * s[0] * scale], None


def in_step(u: Sequence[N], s: Sequence[N], width: N, step: N) -> tuple[list[N], None]:
    """Uniform on the step of this number."""
    return [(u[0] + step) * width], None


def in_rings(
    u: Sequence[N], s: Sequence[N], scale: N, side: N, first: N, drop: N, growth: N, last: N
) -> tuple[list[N], None]:
    """Beyond `last`, which is scaled to `first`: u says which ring, and how far from its edge, as for a staircase."""
    log_w = (growth + 1).log()
    log_ratio = log_w - drop
    j = (u[0].log() / log_ratio).ceil().max(1)
    ring = last * growth + 1
    inwards = (u[0] - (j * log_ratio).exp()) * ring * ((j - 1) * drop).exp() / (1 - log_ratio.exp())
    return [((ring * (j * log_w).expm1() / growth - inwards) * scale + first) * side], None


def _generalised_cauchy(u: Sequence[N], s: Sequence[N], scale: N, g: N) -> tuple[list[N], N]:
    """Rejection from the density proportional to min(1, |z|^-g), whose tail function is inverted."""
    v = u[0] * g
    log_tail = v.min(1).log() / (1 - g)
    centre = (g - v.max(1)) / (g - 1)
    q = ((centre.log() - log_tail) * g).exp()
    return [(log_tail.expm1() + centre) * s[0] * scale], u[1] * (q + 1) - 1


def _gaussian(u: Sequence[N], s: Sequence[N], scale: N) -> tuple[list[N], None]:
    """Box and Muller's, one of the pair."""
    return [(u[0].log() * -2).sqrt() * (u[1] * 0.5).cos_pi() * s[0] * scale], None


def _log_laplace(u: Sequence[N], s: Sequence[N], multiplier: N, exponent: N, addend: N) -> tuple[list[N], None]:
    return [(-u[0].log() * s[0] * exponent).exp() * multiplier + addend], None


LOG_LAPLACE = Transform(_log_laplace)
