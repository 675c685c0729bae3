"""How large each cell's largest establishment is, published with noise of its own: what lets intervals be narrow.

x, the largest workforce of a workplace cell, sets the scale of the noise and is confidential. ln(x + m/alpha) of all
workplace cells together moves by at most b = ln(1 + alpha), because an establishment lies in one of them; m is 1, or
more where one worker may move it by b/2 only. So a share of epsilon buys a noisy x of every cell at once, by the law of
log-laplace. Noise |e| of a count is at most factor (alpha x + m) |Z|, and the published size y has
y + m/alpha = (x + m/alpha) e^(l L): |e| <= factor (alpha y + m) |Z| e^(-l L), whose last two factors have a known law
whatever x is (docs/proofs/sizes.md).
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.errors import Infeasible, PrivacyError
from discreet.privacy.losses import Number, Pure, exact, shown
from discreet.privacy.units import Establishments
from discreet.tables.calibration import LEAST_GROWTH, MARGIN, one_worker_floor
from discreet.tables.expected import chance_beyond
from discreet.tables.mechanisms import Baseline, LogLaplace, NoiseLaw, SmoothNoise

PROOF = "docs/proofs/sizes.md"
NOTE = (
    "Of the loss, {} paid for a noisy size of every cell's largest establishment, from which intervals are computed "
    f"({PROOF})"
)
MOST_EXPONENT = 4.0
"""Beyond, a size would be off by a factor of a million as often as one time in forty."""

OUTWARD = 1 + 2.0**-30
"""More than the relative error of doubles in a quantile."""

STEP = 1 / 128
LOWEST, HIGHEST, FAR = -12.0, 25.0, 40.0
"""The grid on which ln(|Z| e^(-l L)) is computed, and how far L is followed."""


def share_of(scale_share: Number, epsilon: Fraction) -> Fraction:
    """The part of epsilon that pays for sizes."""
    share = exact(scale_share, name="scale_share")
    if not 0 <= share < 1:
        raise PrivacyError(
            f"scale_share={shown(share)} is not a share of epsilon. It is from 0 to below 1; the rest pays for the "
            "counts. Use for example scale_share=0.1, or leave it out."
        )
    return share * epsilon


def sizes_for(mechanism: SmoothNoise | LogLaplace | Baseline, epsilon: Fraction) -> LogLaplace:
    """The noisy sizes that go with a mechanism, if its scale is confidential at all."""
    if isinstance(mechanism, SmoothNoise):
        return noisy_sizes(mechanism.unit, epsilon)
    raise PrivacyError(
        f"scale_share with {mechanism.name}: sizes would be paid for and not used, because the scale of its noise is "
        "public or grows with the count. Leave scale_share out, or use the default mechanism."
    )


def noisy_sizes(unit: Establishments, epsilon: Fraction) -> LogLaplace:
    """The mechanism that publishes every workplace cell's largest workforce for `epsilon` in all."""
    if unit.log_growth < LEAST_GROWTH:
        raise Infeasible(
            f"scale_share with alpha={shown(unit.alpha)}: sizes need ln(1 + alpha) of at least {LEAST_GROWTH:.3g}, "
            "because numbers have no more digits. Raise alpha, or leave scale_share out."
        )
    exponent = unit.log_growth / float(epsilon) * (1 + MARGIN)
    if exponent > MOST_EXPONENT:
        raise Infeasible(
            f"scale_share leaves epsilon={shown(epsilon)} for the sizes of the largest establishments, with noise that "
            f"tells nothing. It needs ln(1 + alpha) / {MOST_EXPONENT:g} = {unit.log_growth / MOST_EXPONENT:.3g} or "
            "more. Raise scale_share or epsilon, lower alpha, or leave it out."
        )
    floor = one_worker_floor(unit)
    return LogLaplace(unit, Pure(epsilon), exponent, 1.0, "tight", PROOF, name="noisy-sizes", floor=floor)


def half_width(published: Integers | Vector, mechanism: SmoothNoise, sizes: LogLaplace, *, level: float) -> Vector:
    """How far a count may be from its published one, for cells whose largest establishment was `published` as this.

    A size was rounded by at most 1/2, and so was the count. The floor of the sizes is at least that of the mechanism.
    """
    alpha = float(mechanism.unit.alpha)
    size = alpha * (np.asarray(published, dtype=np.float64) + 0.5) + sizes.floor
    reach = size * pivot_quantile(mechanism.law, sizes.exponent, level)
    return np.asarray(mechanism.factor * reach * OUTWARD + 0.5)


@lru_cache(maxsize=64)
def _tail(law: NoiseLaw) -> tuple[Vector, Vector]:
    """P(|Z| > e^u), of one coordinate of Z, on the grid of u."""
    u = np.arange(LOWEST, HIGHEST, STEP)
    return u, chance_beyond(law, np.exp(u).reshape(-1, 64)).ravel() * OUTWARD


@lru_cache(maxsize=256)
def pivot_quantile(law: NoiseLaw, exponent: float, level: float) -> float:
    """q with P(|Z| e^(-l L) <= q) >= level, Z of the law (one coordinate of it) and L ~ Laplace(1).

    On a grid of ln q with T(u) = P(|Z| > e^u), which falls: over every step of l L the larger end stands for all of it,
    and so does 1 below the grid. What is told is never too small, and at most two steps too large.
    """
    u, tail = _tail(law)
    steps = int(np.ceil(FAR * exponent / STEP))
    edges = np.arange(-steps, steps + 1) * STEP / exponent
    below = np.where(edges < 0, np.exp(-np.abs(edges)) / 2, 1 - np.exp(-np.abs(edges)) / 2)
    mass = np.diff(below)
    padded = np.concatenate([np.ones(steps), tail, np.full(steps, tail[-1])])
    # What lies further out than FAR counts as beyond every q.
    chance = np.correlate(padded, mass, mode="valid")[: u.size] * OUTWARD + np.exp(-FAR)
    enough = np.flatnonzero(chance <= 1 - level)
    return float(np.exp(u[enough[0]])) if enough.size else np.inf
