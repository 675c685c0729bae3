"""The most that noise of this package loses between any two neighbours, by an argument that leaves nothing out.

A search over pairs of neighbours and over outputs may miss what lies between them. Here is for each kind of noise of
ours a computation that does not search. It is complete because what it is about is known: the code that scales and
draws is ours, by the identity of the classes, and nothing that a mechanism says of itself is asked. A class from
outside that only chooses constants draws our noise and is covered; one that changes how it is scaled or drawn is not.

*Neighbours.* With T = max(alpha x, m), m the floor, and factor T the scale, let an establishment of y <= x grow by
v <= max(alpha y, s), s what one worker adds at most. The centre moves by at most max(1, s/m) / factor scales; the scale
by a ratio of 1 to 1 + alpha max(1, s/m), because x' <= x + max(alpha x, s). So every pair lies in one `Region`,
whatever its sizes, and the loss of a law that falls from its centre grows with the shift.

*Outputs.* Each law has a function below, whose text says why its few candidates are all. Letters are those of
docs/proofs: u the shift, w the ratio, F the loss from the narrow law to the wide one and G that backwards.
"""

from __future__ import annotations

import math
import sys
from abc import ABCMeta
from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from discreet.arrays import Vector
from discreet.privacy.kinds import power_of, ring_bound
from discreet.privacy.loss_verdict import TOLERANCE
from discreet.privacy.losses import Approximate, Loss, Pure, half
from discreet.privacy.outputs import exact_delta, supremum
from discreet.privacy.stepped import ROWS, on_axis
from discreet.privacy.units import Establishments

ROUNDED = 1 + 2.0**-50
"""Scales are computed with four roundings at most."""

LOGARITHMS = 2.0**-40
"""Logarithms of densities are right to this: those of neighbouring rings may be equal."""

MECHANISMS = "discreet.tables.mechanisms"
DATACLASS = (
    "__abstractmethods__ __annotate__ __annotate_func__ __annotations__ __annotations_cache__ __dataclass_fields__ "
    "__dataclass_params__ __delattr__ __doc__ __eq__ __firstlineno__ __getstate__ __hash__ __init__ __match_args__ "
    "__module__ __parameters__ __qualname__ __replace__ __repr__ __setattr__ __setstate__ __slots__ "
    "__static_attributes__ _abc_impl"
)
CHOICES = (
    "amounts basis calibrate certain_alpha constants halves lacks laws name needs_delta own_constants plainer "
    "promising proof room scaled searched stated stated_constants vector"
)
ERRORS = (
    "ends expected_error follows half_width integer_error left_out log_likelihood mean_error mean_of most_workers "
    "reach sizes_floor square_bound variance"
)
CONSTANTS = frozenset(f"{DATACLASS} {CHOICES} {ERRORS}".split())
"""What a class from outside may have of its own and still draw our noise: constants, words, errors and intervals."""


NUMBERS = (int, float, bool, np.float64)
"""Of a law's constants: numbers of another class may be others where they are compared and where noise is drawn."""


class Region(NamedTuple):
    """All pairs of neighbours: the centre moves by at most `shift` narrow scales, the scale by 1 to `ratio`."""

    shift: float
    ratio: float


class Most(NamedTuple):
    """The most that is lost at all; and the exact delta at the claimed epsilon, where the claim has one."""

    loss: float
    delta: float = math.inf


def complete(mechanism: Any) -> bool:
    """Whether the claim is proved here: for every pair of neighbours and every output."""
    family = family_of(type(mechanism))
    if family is None or not _plain(mechanism):
        return False
    loss, unit = mechanism.loss, mechanism.unit
    claims: list[tuple[Any, float, bool]] = [(loss, 1, False)]
    if unit.substitution:
        one = half(loss)
        claims.append((one, float(one.growth(2)) if isinstance(one, Approximate) else 1, True))
    for claim, times, one_worker in claims:
        most = FAMILIES[family](mechanism, claim, one_worker)
        if most is None:
            return False
        kept = most.loss <= float(claim.amounts["epsilon"]) * (1 + TOLERANCE)
        if not kept and isinstance(loss, Approximate):
            kept = most.delta * times <= float(loss.delta) * (1 + TOLERANCE)
        if not kept:
            return False
    return True


def family_of(kind: type) -> str | None:
    """The class of ours whose noise objects of this class draw, by the names of `FAMILIES`; None of other noise."""
    found = None
    for each in kind.__mro__:
        if (home := _home(each)) in FAMILIES:
            found = found or home
        elif home not in BASES and not set(vars(each)) <= CONSTANTS:
            return None
    return found if found in OPEN or found == _home(kind) else None


def ours(mechanism: Any) -> bool:
    """Whether it is of a class of this package that is compared by its constants, with a law of ours."""
    return _home(type(mechanism)) in FAMILIES and _plain(mechanism)


def _home(kind: type) -> str | None:
    """Where a class is found in the modules that are loaded; None for one that only says so."""
    module, name = kind.__module__, kind.__qualname__
    return f"{module}.{name}" if getattr(sys.modules.get(module), name, None) is kind else None


def _plain(mechanism: Any) -> bool:
    """Whether constants are numbers, and the unit, the loss and the law are ours and nothing beside them."""
    if type(type(mechanism)) is not ABCMeta or hasattr(mechanism, "__dict__") or mechanism.theta is not None:
        return False
    numbers = [getattr(mechanism, name, 1.0) for name in ("factor", "floor", "exponent", "shrink")]
    return (
        type(mechanism.unit) is Establishments
        and type(mechanism.loss) in (Pure, Approximate)
        and type(mechanism.step) is int
        and mechanism.step >= 1
        and all(type(number) in (int, float) and 0 < number < math.inf for number in numbers)
        and all(type(number) is Fraction for number in (mechanism.unit.alpha, *mechanism.loss.amounts.values()))
        and _home(type(mechanism.law)) in LAWS
        and all(type(getattr(mechanism.law, each.name)) in NUMBERS for each in fields(mechanism.law))
    )


def _in_proportion(mechanism: Any, *, one_worker: bool) -> Region:
    """The region of noise in proportion to max(alpha x, floor)."""
    alpha, worker = float(mechanism.unit.alpha), mechanism.step / mechanism.floor
    grown = worker if one_worker else max(1.0, worker)
    return Region(grown / mechanism.factor * ROUNDED, (1 + alpha * grown) * ROUNDED)


def _smooth(mechanism: Any, claim: Loss, one_worker: bool) -> Most | None:
    region = _in_proportion(mechanism, one_worker=one_worker)
    law: Any = mechanism.law
    bound = LAWS.get(str(_home(type(law))))
    return None if bound is None else bound(law, region, claim)


def polynomial(law: Any, region: Region, claim: Loss) -> Most:
    """psi' = min(lambda, p / (1 + t)) falls and t psi'(t) rises, so F and G are quasi-convex in w: its ends are enough.

    At w = 1 both are at most psi(u), because psi is concave. F at w > 1 falls in r beyond where (r + u)/w > r, and is
    at most d ln w elsewhere. G at w > 1 has a derivative that changes sign only where one of the two radii passes the
    core, where both slopes are equal, or not at all; far out it is (p - d) ln w. docs/proofs/polynomial.md.
    """
    p, core, d, (u, w) = float(law.p), float(law.core), int(law.dimension), region

    def psi(t: float) -> float:
        return float(p * min(t, core) / (1 + core) + p * math.log1p(max(t - core, 0.0) / (1 + core)))

    turns = [0.0, (core - u) / w, (w * (1 + core) - 1 - u) / w, core]
    backward = [psi(w * r + u) - psi(r) - d * math.log(w) for r in turns if r >= 0]
    return Most(max(psi(u), d * math.log(w) + psi(u / w), (p - d) * math.log(w), *backward))


def fourth_power(law: Any, region: Region, claim: Loss) -> Most | None:
    """Only for the density 1 / (1 + z^4), whose loss has one stationary output in each direction at each end of w.

    So a grid brackets it and golden section finds it; docs/proofs/smooth-gamma.md proves both.
    """
    if law.g != 4:
        return None
    return Most(float(supremum(law, shift=np.full(2, region.shift), ratio=np.array([1.0, region.ratio]))[0].max()))


def exponential(law: Any, region: Region, claim: Loss) -> Most:
    """The loss is linear but for kinks at 0 and u: it passes epsilon at most three times, between points of the grid.

    delta grows with the shift, and in w it is largest at an end: docs/proofs/smooth-laplace.md.
    """
    pure = region.shift if region.ratio == 1 else math.inf
    if not isinstance(claim, Approximate):
        return Most(pure)
    ends = {"shift": np.full(2, region.shift), "ratio": np.array([1.0, region.ratio])}
    return Most(pure, float(exact_delta(law, **ends, epsilon=float(claim.epsilon)).max()))


def staircase(law: Any, region: Region, claim: Loss) -> Most | None:
    """A radius dilated by at most 1 + growth and moved by at most 1 passes one edge: docs/proofs/staircase.md."""
    one_edge = region.shift <= 1 and region.ratio <= 1 + law.growth
    return Most(law.drop + math.log(region.ratio)) if one_edge else None


def _rings(mechanism: Any, claim: Loss, one_worker: bool) -> Most | None:
    """The scale of `mechanisms.growth` is at least every gain that ends at x, and grows by at most 1 + alpha with one.

    So a radius moves by at most 1/factor of the *wider* scale: (1) of docs/proofs/rings.md.
    """
    law: Any = mechanism.law
    region = Region(ROUNDED / mechanism.factor, (1 + float(mechanism.unit.alpha)) * ROUNDED)
    heights = on_axis(law, (np.append(0.0, law.jumps[:-1]) + law.jumps) / 2)
    if mechanism.step != 1 or mechanism.floor != 1 or not (np.diff(heights) <= LOGARITHMS).all():
        return None
    return Most(2 * LOGARITHMS + (coupled(law, region, heights) if law.coupled else ring_bound(law, *region)))


def coupled(law: Any, region: Region, heights: Vector) -> float:
    """The volume and every radius change by the same w: F takes r to r/w + u, G takes r to w (r + u).

    psi is constant on rings, so of the points of a ring the outermost matters, which is not in it. Of all w that reach
    a further ring, F is largest at the largest and G at the smallest; those are where an edge is met, and the ends.
    Beyond the last edge psi is a logarithm: both are quasi-convex in w there, and fall in r.
    """
    d, (u, w), edges, power = int(law.dimension), region, law.jumps, power_of(law)
    last = float(edges[-1])
    worst = max(power * math.log1p(u / last), d * math.log(w) + max(0.0, power * math.log(1 / w + u / last)))
    worst = max(worst, (power - d) * math.log(w) + power * math.log1p(u / last))
    for rows in np.array_split(np.arange(len(edges)), len(edges) // ROWS + 1):
        end, own = edges[rows, None], heights[rows, None]
        for reached, volume in (
            (end / w + u, math.log(w)),
            (end + u, 0.0),
            (w * (end + u), -math.log(w)),
        ):
            worst = max(worst, float((own - _just_within(law, heights, reached) + d * volume).max()))
        further = np.append(heights[1:], heights[-1])[None, :]  # of the ring that begins at each edge
        with np.errstate(divide="ignore", invalid="ignore"):
            out, back = end / (edges[None, :] - u), edges[None, :] / (end + u)
            forth = np.where((out >= 1) & (out <= w), own - further + d * np.log(out), -np.inf)
            home = np.where((back >= 1) & (back <= w), own - further - d * np.log(back), -np.inf)
        worst = max(worst, float(forth.max()), float(home.max()))
    return worst


def _just_within(law: Any, heights: Vector, radius: Vector) -> Vector:
    ring = np.searchsorted(law.jumps, radius, side="left")
    found = heights[np.minimum(ring, len(heights) - 1)]
    beyond = ring == len(heights)
    found[beyond] = on_axis(law, radius[beyond])
    return np.asarray(found)


def _of_tables(mechanism: Any, claim: Loss, one_worker: bool) -> Most | None:
    """Every inequality of the outer law, of the table and of the rows is computed when they are read.

    They are those of docs/proofs/ladder.md and two-sizes.md for constants that follow from alpha and epsilon; others
    have no such table. A step of one worker may cost all of epsilon, so an exchange of two is not covered.
    """
    made = type(mechanism)._with(mechanism.unit, mechanism.loss, mechanism.epsilon)
    if one_worker or mechanism != made or mechanism.step != 1:
        return None
    mechanism.found()
    return Most(float(mechanism.epsilon))


def _multiplied(mechanism: Any, claim: Loss, one_worker: bool) -> Most | None:
    """A Laplace variable of one scale around ln(n + offset) or ln max(x, offset).

    Either moves by at most ln(1 + alpha max(1, s/m)):
    docs/proofs/log-laplace.md and sizes.md; what is published is a function of it.
    """
    if LAWS.get(str(_home(type(mechanism.law)))) is not exponential:
        return None
    worker = mechanism.step / mechanism.floor
    grown = worker if one_worker else max(1.0, worker)
    return Most(math.log1p(float(mechanism.unit.alpha) * grown) / mechanism.exponent * ROUNDED)


FAMILIES: dict[str, Callable[[Any, Loss, bool], Most | None]] = {
    f"{MECHANISMS}.smooth.SmoothNoise": _smooth,
    f"{MECHANISMS}.polynomial.PolynomialNoise": _smooth,
    f"{MECHANISMS}.joint_polynomial.JointPolynomialNoise": _smooth,
    f"{MECHANISMS}.smooth_gamma.SmoothGamma": _smooth,
    f"{MECHANISMS}.smooth_laplace.SmoothLaplace": _smooth,
    f"{MECHANISMS}.staircase.StaircaseNoise": _smooth,
    f"{MECHANISMS}.joint_rings.JointRings": _rings,
    f"{MECHANISMS}.weak_joint.WeakJoint": _rings,
    f"{MECHANISMS}.weak_unions.WeakUnions": _rings,
    f"{MECHANISMS}.ladder.LadderNoise": _of_tables,
    f"{MECHANISMS}.two_sizes.TwoSizesNoise": _of_tables,
    f"{MECHANISMS}.log_laplace.LogLaplace": _multiplied,
    "discreet.tables.sizes.NoisySizes": _multiplied,
}
OPEN = frozenset(home for home, bound in FAMILIES.items() if bound is _smooth)
"""Of these a class from outside may choose constants."""

BASES = frozenset({f"{MECHANISMS}.mechanism.Mechanism", "abc.ABC", "builtins.object"})

LAWS: dict[str, Callable[[Any, Region, Loss], Most | None] | None] = {
    "discreet.noise.laws.Polynomial": polynomial,
    "discreet.noise.laws.RadialPolynomial": polynomial,
    "discreet.noise.laws.GeneralisedCauchy": fourth_power,
    "discreet.noise.laws.Laplace": exponential,
    "discreet.noise.staircase.Staircase": staircase,
    "discreet.noise.rings.Rings": None,
    "discreet.noise.steps.Steps": None,
}
"""Laws of ours; those without a function of their own are covered with the scale of their mechanisms."""
