"""The least constant that is enough, from above."""

from __future__ import annotations

import math
from collections.abc import Callable


def least(excess: Callable[[float], float], low: float, high: float) -> float:
    """The smallest number in [low, high] from which on `excess`, which falls, is not above zero: from above, to 1e-10.

    `high` is enough by proof and is not examined, 0 < low. Regula falsi that halves the value at an end which stays
    (Illinois). Every third step takes the geometric mean, so fewer than 200 steps reach any end. SciPy's root finders
    would do; their module takes longer to load than a release takes to draw.
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
