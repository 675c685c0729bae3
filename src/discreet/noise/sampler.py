"""Noise with exactly the law's probabilities, on integers or on a grid.

Every draw is the nearest integer to a real number that depends on uniform variables of infinitely many random bits.
Chunks of draws are computed in doubles with proven error bounds. If the bound of a draw reaches a half-integer, Arb
decides it, from the same bits and as many more as needed. The proof is docs/proofs/sampler.md. Results beyond 2^62 in
size are cut there, which is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet.noise import exact as arb
from discreet.noise.balls import Balls
from discreet.noise.law import Law
from discreet.noise.laws import DiscreteLaplace, RadialPolynomial
from discreet.noise.rings import Rings, table
from discreet.noise.steps import Steps
from discreet.noise.transforms import LOG_LAPLACE, Transform, flow_rings, in_rings, in_step, within_box, within_sum
from discreet.words.errors import PrivacyError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from discreet.arrays import Integers, Mask, Vector
    from discreet.noise.source import Source

MOST = arb.SATURATION // 2
CHUNK = 8192  # draws whose temporaries stay in a processor's second-level cache
WORDS = 2**18  # at most this many random words at a time, whatever the dimension
FLOWS = Transform(flow_rings, words=9, outputs=5)


def draw_integers(law: Law, *, scale: ArrayLike, source: Source, exact: bool = False) -> Integers:
    """Draw round(scale * Z), one for each scale; several dimensions of Z are a last axis of the result.

    The doubles in `scale` are taken as exact; 0 is no noise, and not possible for `DiscreteLaplace`. `exact` decides
    every draw in Arb: the same integers, slowly.
    """
    scale = _check("scale", scale, minimum=_LEAST if isinstance(law, DiscreteLaplace) else 0)
    if isinstance(law, Steps):
        return _draw_steps(law, scale.ravel(), source=source, exact=exact).reshape(scale.shape)
    radii = ring_radii(law, scale.size, source) if isinstance(law, Rings) else []
    draws = _draw(Transform.of(law), [scale.ravel(), *radii], source=source, exact=exact)
    several = isinstance(law, RadialPolynomial) or draws.shape[1] > 1
    return draws.reshape((*scale.shape, draws.shape[1]) if several else scale.shape)


def draw_within(law: Rings, *, scale: ArrayLike, total: ArrayLike, source: Source, exact: bool = False) -> Integers:
    """Draw vectors of the law of rings in the norm g(z+) + g(z-), g(y) = max(max y_c / scale_c, sum y_c / total).

    One row of `scale` is one vector. Directions come from the smaller of two balls that hold the norm's own.
    """
    own = _check("scale", scale, minimum=_LEAST)
    whole, d = _check("total", total, minimum=_LEAST), own.shape[1]
    box = math.log(d + 1) + np.log(own).sum(axis=1)
    boxed = box < d * np.log(2 * whole) - math.lgamma(d + 1)
    radii = ring_radii(law, len(own), source)
    draws = np.empty(own.shape, dtype=np.int64)
    for rows, kind in ((boxed, within_box(d)), (~boxed, within_sum(d))):
        parameters = [*own[rows].T, whole[rows], *(x[rows] for x in radii)]
        draws[rows] = _draw(kind, parameters, source=source, exact=exact)
    return draws


def draw_flows(law: Rings, *, scale: ArrayLike, source: Source, exact: bool = False) -> Integers:
    """Draw vectors of the law of rings in the norm of `noise.flow_body`, one for each scale."""
    scale = _check("scale", scale, minimum=_LEAST)
    return _draw(FLOWS, [scale, *ring_radii(law, scale.size, source)], source=source, exact=exact)


def ring_radii(law: Rings, n: int, source: Source) -> list[Vector]:
    """Of n draws the ring each lies in: its edges, d and 1; beyond the last edge T, 0, 1, an exponent and T."""
    found = table(law)
    ring = found.draw(n, source)
    far = ring == len(found.edges) - 1
    low, high = found.edges[np.where(far, 0, ring)], found.edges[np.where(far, 0, ring + 1)]
    power, times = np.where(far, law.d - found.power, float(law.d)), np.where(far, found.edges[-1], 1.0)
    return [low, np.where(far, 1.0, high), power, times]


def _draw_steps(law: Steps, scale: Vector, *, source: Source, exact: bool) -> Integers:
    """A step, or the rings of a side, by whole-number weights; then a place inside."""
    reach, rings, width = law.reach, law.rings, scale * law.width
    step = law.choice.draw(np.zeros(scale.size, dtype=np.int64), source) - 1 - reach
    draws = np.empty(scale.size, dtype=np.int64)
    far = (step < -reach) | (step >= reach)
    draws[~far] = _draw(
        Transform(in_step), [width[~far], step[~far].astype(np.float64)], source=source, exact=exact
    ).ravel()
    draws[far] = _draw(
        Transform(in_rings, constants=(rings.drop, rings.growth, rings.plateau)),
        [scale[far], np.sign(step[far] + 0.5), width[far] * reach],
        source=source,
        exact=exact,
    ).ravel()
    return draws


def add_noise(exact: Integers, law: Law, *, scale: ArrayLike, source: Source) -> Integers:
    """Integers of at most `MOST` plus noise, cut at `MOST`."""
    return add(exact, draw_integers(law, scale=scale, source=source))


def add(exact: Integers, noise: Integers) -> Integers:
    """Integers of at most `MOST` plus noise that was drawn here, cut at `MOST`.

    The sampler cuts noise at twice that, where every such sum lies beyond `MOST`. The output is a function of the sum
    with uncut noise, so a cut never shows an exact number.
    """
    return np.asarray(np.clip(exact + noise, -MOST, MOST))


def draw_on_grid(
    law: Law, *, scale: ArrayLike, grid: float, source: Source, exact: bool = False
) -> NDArray[np.float64]:
    """Draw scale * Z rounded to the nearest multiple of `grid`, a power of two."""
    if not (grid > 0 and math.isfinite(grid) and math.frexp(grid)[0] == 0.5):
        raise PrivacyError(
            f"The grid {grid} is not a power of two, so its multiples are not exact numbers.",
            "Grids such as 2**-10 are.",
            "Use the next smaller power of two.",
            about="grid",
        )
    scale = _check("scale", scale, minimum=0)
    with np.errstate(over="ignore"):
        steps = scale / grid
    if not np.array_equal(steps * grid, scale):
        raise PrivacyError(
            f"The grid {grid} is too far from the scale: their ratio is not a number of double precision.",
            "The ratio must lie between 1e-300 and 1e300.",
            "Choose a grid closer to the scale.",
            about="grid",
        )
    return np.asarray(draw_integers(law, scale=steps, source=source, exact=exact) * grid)


def draw_log_laplace(
    *, multiplier: ArrayLike, exponent: ArrayLike, addend: ArrayLike, source: Source, exact: bool = False
) -> Integers:
    """Draw round(multiplier * exp(exponent * L) + addend), with L of the Laplace law; all three taken as exact."""
    parameters = np.broadcast_arrays(
        _check("multiplier", multiplier), _check("exponent", exponent, minimum=0), _check("addend", addend)
    )
    draws = _draw(LOG_LAPLACE, [x.ravel() for x in parameters], source=source, exact=exact)
    return draws.reshape(parameters[0].shape)


def _draw(transform: Transform, parameters: Sequence[Vector], *, source: Source, exact: bool) -> Integers:
    draws = np.empty((parameters[0].size, transform.outputs), dtype=np.int64)
    size = max(1, min(CHUNK, WORDS // transform.words))
    start, rejected = 0, np.empty(0, dtype=np.int64)
    while rejected.size or start < len(draws):
        stop = min(start + size - rejected.size, len(draws))
        batch, start = np.concatenate([rejected, np.arange(start, stop)]), stop
        local = [x[batch] for x in parameters]
        integers, accepted = decide(transform, local, source=source, exact=exact)
        draws[batch] = integers.T  # what was rejected is drawn again and overwritten
        rejected = batch[~accepted]
    return draws


def decide(transform: Transform, parameters: Sequence[Vector], *, source: Source, exact: bool) -> tuple[Integers, Mask]:
    """One proposal for each draw: its integers, one column a draw, and whether it is accepted."""
    many = parameters[0].size
    words = source.words(transform.words * many).reshape(transform.words, many)
    integers, decided, accepted = _propose(transform, words, parameters)
    return settle(
        transform,
        words,
        lambda i: [float(x[i]) for x in parameters],
        (integers, decided & (not exact), accepted),
        source=source,
    )


def settle(
    transform: Transform,
    words: NDArray[np.uint64],
    parameters: Callable[[int], list[float]],
    found: tuple[Integers, Mask, Mask],
    *,
    source: Source,
) -> tuple[Integers, Mask]:
    """Integers and whether they are accepted: as found where that is certain, elsewhere by Arb."""
    integers, decided, accepted = found
    for i in np.flatnonzero(~decided).tolist():
        answer = arb.propose(
            transform, words=words[:, i].tolist(), parameters=parameters(i) + list(transform.constants), source=source
        )
        accepted[i] = answer is not None
        if answer is not None:
            integers[:, i] = answer
    return integers, accepted


def _propose(
    transform: Transform, words: NDArray[np.uint64], parameters: Sequence[Vector]
) -> tuple[Integers, Mask, Mask]:
    """Integers, where they and their acceptance are certain, and where they are accepted."""
    with np.errstate(all="ignore"):
        values, test = transform.function(
            [Balls.uniforms(w) for w in words],
            [Balls(1.0 - 2.0 * (w & np.uint64(1)).view(np.int64)) for w in words],
            *[Balls(x) for x in parameters],
            *[Balls(x) for x in transform.constants],
        )
        nearest = [value.nearest() for value in values]
        decided = np.logical_and.reduce([certain for _, certain in nearest])
        integers = np.stack([j for j, _ in nearest])
        if test is None:
            return integers, decided, np.ones(decided.shape, dtype=np.bool_)
        verdict = test.sgn().mid
        return integers, (verdict > 0) | (decided & (verdict < 0)), verdict < 0


_LEAST = 5e-324  # the smallest double above 0
_AT_LEAST = {0: " of at least 0", _LEAST: " above 0"}


def check_scale(values: ArrayLike) -> Vector:
    """Scales that are finite and above 0, or an error."""
    return _check("scale", values, minimum=_LEAST)


def _check(name: str, values: ArrayLike, minimum: float = -math.inf) -> Vector:
    values = np.asarray(values, dtype=np.float64)
    if not np.all(np.isfinite(values) & (values >= minimum)):
        raise PrivacyError(
            f"A {name} of the noise is not a number{_AT_LEAST.get(minimum, '')}.",
            "Each must be finite.",
            f"Check the formula that made the {name}.",
            about=name,
        )
    return values
