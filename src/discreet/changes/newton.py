"""Newton's method with steps that are halved until the loss falls: the least of a smooth convex loss. Only arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from discreet.arrays import Vector

ITERATIONS = 50


def least(
    b: Vector, loss: Callable[[Vector], float], newton: Callable[[Vector], Vector], *, tolerance: float
) -> Vector:
    """The minimum of `loss`, from `b` on, by the steps of `newton`."""
    value = loss(b)
    for _ in range(ITERATIONS):
        step = newton(b)
        ahead = loss(b + step)
        while ahead > value + tolerance and np.abs(step).max() > tolerance:
            step = step / 2
            ahead = loss(b + step)
        b, value = b + step, ahead
        if np.abs(step).max() < tolerance:
            break
    return b
