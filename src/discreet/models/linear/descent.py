"""Minimising a smooth function of a few variables whose slopes are known: BFGS with a line search that bears rounding.

Second derivatives are a guess at the start, which steps correct, or about known at every point (`information`), where
the last few steps correct them. It ends when rounding hides the decrease that the quadratic model still promises (half
of g'Hg), in any units of the variables. Near there, steps are judged by slopes and not by differences of values (Hager
and Zhang, 2005).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from discreet.arrays import Matrix, Vector

SUFFICIENT, CURVATURE = 1e-4, 0.9  # Wolfe's constants
ROUNDING = 1e-14  # of the value: differences below it say nothing
LONGEST, KNOWN = 3.0, 1.5  # a first step, over the size of the variables: with a guessed and with a known curvature
MEMORY = 2  # steps that correct a curvature known at every point
LEAST = 1e-6  # of the largest curvature: flatter directions are taken to have it
FAR = 1e15  # a value that stands for "not defined here"


def descend(
    function: Callable[[Vector], tuple[float, Vector]],
    start: Vector,
    *,
    curvature: Vector | Callable[[], Matrix],
    promised: float = 1e-11,
    steps: int = 300,
    alone: Callable[[Vector], float] | None = None,
) -> tuple[Vector, float]:
    """The minimum near `start` and its value; `curvature` is a guess of the second derivatives.

    It is of those at `start`, one of each variable, or says those of the point where the function was asked last.
    `alone` is the function without its slope, where that is cheaper: it is asked first.
    """
    x = start
    value, slope = function(x)
    first = _inverse(curvature()) if callable(curvature) else np.diag(1 / curvature)
    inverse, pairs = first, list[tuple[Vector, Vector]]()
    for step in range(steps):
        along = -inverse @ slope
        rate = float(slope @ along)
        if rate >= 0:
            inverse, along, pairs = first, -first @ slope, []
            rate = float(slope @ along)
        if -rate / 2 <= promised + ROUNDING * abs(value):
            break
        longest = float(np.abs(along / np.maximum(1.0, np.abs(x))).max())
        size = min(1.0, (KNOWN if callable(curvature) else LONGEST) / longest)
        found = _line(function, x, value, along, rate, size, alone)
        if found is None:
            if inverse is first:
                break
            inverse, pairs = first, []
            continue
        moved, value, new = found
        s, y = moved - x, new - slope
        x, slope = moved, new
        if callable(curvature):
            inverse = first = _inverse(curvature())
            pairs = [*pairs, (s, y)][-MEMORY:]
            for before in pairs:
                inverse = _updated(inverse, *before)
        else:
            if step == 0 and s @ y > 0:
                inverse = inverse * float(s @ y / (y @ inverse @ y))
            inverse = _updated(inverse, s, y)
    return x, value


def _inverse(curvature: Matrix) -> Matrix:
    from scipy.linalg.lapack import dsyev

    values, vectors, _ = dsyev(curvature, lower=1)
    least = LEAST * float(values[-1]) if values[-1] > 0 else 1.0
    return np.asarray(vectors / np.maximum(values, least) @ vectors.T)


def _line(
    function: Callable[[Vector], tuple[float, Vector]],
    x: Vector,
    value: float,
    along: Vector,
    rate: float,
    size: float,
    alone: Callable[[Vector], float] | None,
) -> tuple[Vector, float, Vector] | None:
    """A point along the way that is low enough and flat enough, with value and slope; None where there is none."""
    low, high = 0.0, np.inf
    noise = ROUNDING * abs(value)
    for _ in range(25):
        moved = x + size * along
        there = alone(moved) if alone else -np.inf
        too_far = there > value + max(SUFFICIENT * size * rate + noise, 10 * noise)
        if not too_far:
            there, slope = function(moved)
            rise = float(slope @ along)
            too_far = there > value + SUFFICIENT * size * rate + noise
            if too_far and there <= value + 10 * noise and abs(rise) <= CURVATURE * abs(rate):
                too_far = False
            if not too_far and rise >= CURVATURE * rate:
                return moved, there, slope
        if too_far:
            high = size
            guess = -rate * size**2 / (2 * (there - value - rate * size)) if there < FAR else 0.0
            size = float(np.clip(guess, low + 0.1 * (high - low), low + 0.5 * (high - low)))
        else:
            low = size
            size = 3 * size if high == np.inf else (low + high) / 2
    return None


def _updated(inverse: Matrix, s: Vector, y: Vector) -> Matrix:
    """The inverse of BFGS after a step `s` that changed the slope by `y`."""
    met = float(s @ y)
    if met <= 1e-14 * float(np.sqrt((s @ s) * (y @ y))):
        return inverse
    pulled = inverse @ y
    # s s' (1 + y'Hy / s'y) / s'y - (Hy s' + s y'H) / s'y, as one product and its transpose
    half = (s * ((1 + float(y @ pulled) / met) / 2) - pulled)[:, None] * (s / met)
    return np.asarray(inverse + half + half.T)
