"""Two columns around a line: errors that are normal, skewed, heavy-tailed or uneven, and curves taken for lines."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Draw = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]
Error = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def _line(error: Error) -> Draw:
    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        x = rng.standard_normal(n)
        return x, 1 + 2 * x + error(rng, x)

    return draw


def lognormal(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    return rng.lognormal(size=len(x)) - np.exp(0.5)


def _square(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    x = rng.exponential(size=n)
    return x, 1 + x**2 + rng.standard_normal(n)


def _log(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    x = rng.lognormal(size=n)
    return x, np.log(x) + 0.3 * rng.standard_normal(n)


LINES: dict[str, Draw] = {
    "normal errors": _line(lambda rng, x: rng.standard_normal(len(x))),
    "exponential errors": _line(lambda rng, x: rng.exponential(size=len(x)) - 1),
    "lognormal errors": _line(lognormal),
    "heavy tails (t, 3 degrees)": _line(lambda rng, x: rng.standard_t(3, size=len(x))),
    "unequal variances": _line(lambda rng, x: np.exp(x / 2) * rng.standard_normal(len(x))),
    "a square taken for a line": _square,
    "a logarithm taken for a line": _log,
}
"""Lines are 1 + 2 x."""
