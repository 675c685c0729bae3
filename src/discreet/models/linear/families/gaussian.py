"""`GAUSSIAN`: numbers with a residual variance, whose models are linear: they are fitted from sums, by REML."""

from __future__ import annotations

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.linear.families.family import PrivateFamily, Response, Spread
from discreet.models.linear.families.links import IDENTITY

INSIDE = 1e-6  # of the range: how near to an end a mean may lie
FULLEST = 0.99  # of the largest variance that a response with that mean within its bounds can have


def _draw_released(
    mean: Vector, size: Vector | None, spread: Spread, rng: np.random.Generator
) -> tuple[Vector, Vector | None]:
    y = within(mean, spread.residual, spread.bounds, rng)
    if size is None:
        return y, None
    count = np.floor(y * size + rng.uniform(size=len(y)))
    return count / size, count


def within(mean: Vector, variance: float, bounds: tuple[float, float], rng: np.random.Generator) -> Vector:
    """Responses with these means and this variance within the bounds, by beta laws.

    Means outside are pulled inside, and a variance that no response with such a mean can have is made smaller.
    """
    low, high = bounds
    share = np.clip((mean - low) / (high - low), INSIDE, 1 - INSIDE)
    spread = np.minimum(variance / (high - low) ** 2, FULLEST * share * (1 - share))
    total = share * (1 - share) / np.maximum(spread, 1e-18) - 1
    drawn: Matrix = rng.beta(share * total, (1 - share) * total)
    return np.asarray(np.clip(low + (high - low) * drawn, low, high))


GAUSSIAN = Response(
    name="gaussian",
    of="numbers",
    link=IDENTITY,
    linear=True,
    private=PrivateFamily(
        drawn="responses have the model's means and residual variance, by beta laws within their bounds; ",
        draw=_draw_released,
        largest=lambda bounds: max(abs(bound) for bound in bounds),
        choice="a number",
    ),
)
