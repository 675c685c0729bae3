"""The possible error of an answer: noise, and the difference between parts of the rows and all rows at once."""

from __future__ import annotations

import math

from discreet.words.caveats import APART, NO_FAR

BAND = 0.95  # of the ends beside an answer
ALL_ROWS, NOISE_ALONE = "all rows' answer", "noise alone"  # what these ends hold
TRUST = (
    "These ends hold if the model is right, also with skewed, heavy-tailed or unequal errors, unless a note says "
    f"otherwise; {APART}, and {NO_FAR}. Where rows of one group are alike, they hold all rows' answer, not the truth. "
    "With a wrong model (a line fitted to a curve, or skewed errors that grow with a column) answers from parts may be "
    "off by many posterior deviations; a note says so if it is seen."
)


def band(covers: str) -> str:
    return f"{100 * BAND:.0f} % for {covers}"


def covering(half_width: float, scale: float, level: float, off: float = 0.0) -> float:
    """The h with P(|off + normal + Laplace| <= h) = level, for a normal law of this half-width at this level."""
    from scipy.special import log_ndtr, ndtr, ndtri

    if half_width <= 0 and off == 0:
        return -scale * math.log(1 - level)
    half_width = max(half_width, 1e-9 * scale)
    sigma = half_width / float(ndtri((1 + level) / 2))
    r = sigma / scale

    def above(h: float) -> float:
        """P(normal + Laplace > h)."""
        if h < 0:
            return 1 - above(-h)
        z = h / sigma
        left = math.exp(r**2 / 2 - z * r + float(log_ndtr(z - r)))
        right = math.exp(r**2 / 2 + z * r + float(log_ndtr(-z - r)))
        return float(ndtr(-z)) + (left - right) / 2

    low, high = half_width, off + half_width - scale * math.log((1 - level) / 2) * 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle - off) + above(middle + off) > 1 - level else (low, middle)
    return high


def reach_of(deviation: float, scale: float, level: float = BAND, off: float = 0.0) -> float:
    """The reach of a normal deviation, Laplace noise and a bias of at most `off` together."""
    from scipy.special import ndtri

    return covering(deviation * float(ndtri((1 + level) / 2)), scale, level, off)
