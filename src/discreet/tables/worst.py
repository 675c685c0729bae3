"""The neighbours and outputs at which the mechanisms of the Tables paper lose most, in closed form.

Noise is factor * S * Z with S = max(alpha x, 1): between neighbours the centre moves by at most u = 1 / factor, in
units of the smaller scale, and the scale by a ratio w of 1 to 1 + alpha. For both laws the worst ratio is one of the
two ends; docs/proofs/smooth-gamma.md and docs/proofs/smooth-laplace.md prove it, and `privacy.verify` looks for worse
pairs without using it.
"""

from __future__ import annotations

import math
from collections.abc import Callable


def gamma_loss(shift: float, log_ratio: float) -> float:
    """The worst loss of noise with density proportional to 1 / (1 + z^4), over all outputs and ratios.

    Either direction has one stationary output for each ratio: a crossing of a falling function.
    """
    u, worst = shift, 0.0
    for log_w in (0.0, log_ratio):
        w = math.exp(log_w)

        def outward(r: float, log_w: float = log_w) -> float:
            return 3 * math.log1p(u / r) + math.log1p(-min(u * r**3, 1 - 2.0**-53)) - 4 * log_w

        def inward(r: float, w: float = w) -> float:
            return w / r**3 - (r * w + u) ** -3 - u

        top = u ** (-1 / 3)
        r = _crossing(outward, min(top / 2, u / (2 * w ** (4 / 3))), top)
        worst = max(worst, _rise(r, (r + u) / w) + log_w)
        r = _crossing(inward, (w / (u + u**-3)) ** (1 / 3), (w / u) ** (1 / 3))
        worst = max(worst, _rise(r, r * w + u) - log_w)
    return worst


def laplace_delta(shift: float, log_ratio: float, epsilon: float) -> float:
    """The logarithm of the worst delta at `epsilon` of Laplace noise, over all ratios."""
    u, b, alpha = shift, log_ratio, math.expm1(log_ratio)
    w = 1 + alpha
    level = -math.expm1(-max(u - epsilon, 0.0) / 2)
    drawn = u + w * (b - epsilon)
    if b - epsilon > u:
        centre = w - math.exp(epsilon) + alpha * (math.expm1(-drawn / alpha) + math.expm1((2 * u - drawn) / alpha)) / 2
    else:
        centre = alpha * _bend(max(drawn, 0.0) / alpha) - (w + 1) * _bend(max(drawn, 0.0) / (w + 1))
        centre /= 2
    if u <= epsilon + b:
        tails = delta_floor(alpha, epsilon) + _log_cosh(u / alpha)
    else:
        q = (u - epsilon - b) / (w + 1)
        far = math.exp(-(epsilon + b + u) / alpha)
        tails = math.log(-math.expm1(-q) + alpha / w * (math.exp(-q) + far) / 2)
    return max(tails, _log(level), _log(centre))


def delta_floor(alpha: float, epsilon: float) -> float:
    """The logarithm of the delta that a change of scale by 1 + alpha alone takes: no Laplace noise goes below."""
    return math.log(alpha / (1 + alpha)) - (epsilon + math.log1p(alpha)) / alpha


def least(excess: Callable[[float], float], low: float, high: float) -> float:
    """The smallest number in [low, high] from which on `excess`, which falls, is not above zero: from above, to 1e-10.

    `high` is enough by proof and is not examined, 0 < low. Regula falsi that halves the value at an end which stays
    (Illinois); every third step takes the geometric mean, so that fewer than 200 steps reach any end. SciPy's root
    finders would do; their module takes longer to load than a release takes to draw.
    """
    if low >= high:
        return high
    before, beyond = excess(low), min(excess(high), 0.0)
    if before <= 0:
        return low
    moved = step = 0
    while high > low * (1 + 1e-10):
        step += 1
        x = low + (high - low) * (before / (before - beyond)) if step % 3 else math.sqrt(low) * math.sqrt(high)
        # A root next to one end must not keep the other away.
        x = min(max(x, low * (1 + 4e-11)), high / (1 + 4e-11))
        found = excess(x)
        if found > 0:
            low, before, beyond = x, found, beyond / (2 if moved > 0 else 1)
        else:
            high, beyond, before = x, found, before / (2 if moved < 0 else 1)
        moved = 1 if found > 0 else -1
    return high


def _crossing(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function passes zero, by bisection of the logarithm: the loss is flat there."""
    low, high = math.log(low), math.log(high)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(math.exp(middle)) > 0 else (low, middle)
    return math.exp((low + high) / 2)


def _rise(r: float, further: float) -> float:
    """ln((1 + further^4) / (1 + r^4))."""
    if further > 1e60:
        return 4 * math.log(further) - math.log1p(r**4)
    return math.log1p((further - r) * (further + r) * (further**2 + r**2) / (1 + r**4))


def _bend(x: float) -> float:
    """x + e^-x - 1, with its digits for small x too."""
    if x > 0.1:
        return x + math.expm1(-x)
    return x**2 / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5 * (1 - x / 6 * (1 - x / 7 * (1 - x / 8))))))


def _log_cosh(x: float) -> float:
    return x - math.log(2) + math.log1p(math.exp(-2 * x))


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf
