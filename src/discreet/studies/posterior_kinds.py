"""Posterior summaries on data that the thesis did not try: skewed, heavy-tailed, uneven and curved.

The thesis simulates normal errors around a straight line. Here the same questions are asked where errors or the line
are otherwise, and answers are compared with those of all rows, and intervals with the truth: the coefficients of the
best straight line in the population.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from discreet.arrays import Vector
from discreet.bayes.conjugate import GPrior
from discreet.bayes.interval import posterior_interval
from discreet.bayes.partition import partition
from discreet.bayes.probability import posterior_probability
from discreet.bayes.quantile import posterior_quantile

NAMES = ("(Intercept)", "x")
STEEP = np.exp(0.5) / (np.e * (np.e - 1))  # slope of log x on a lognormal x
Kind = tuple[Callable[[np.random.Generator, int], tuple[Vector, Vector]], tuple[float, float]]


def _line(error: Callable[[np.random.Generator, Vector], Vector]) -> Kind:
    def draw(rng: np.random.Generator, n: int) -> tuple[Vector, Vector]:
        x = rng.standard_normal(n)
        return x, 1 + 2 * x + error(rng, x)

    return draw, (1.0, 2.0)


def _square(rng: np.random.Generator, n: int) -> tuple[Vector, Vector]:
    x = rng.exponential(size=n)
    return x, 1 + x**2 + rng.standard_normal(n)


def _log(rng: np.random.Generator, n: int) -> tuple[Vector, Vector]:
    x = rng.lognormal(size=n)
    return x, np.log(x) + 0.3 * rng.standard_normal(n)


KINDS: dict[str, Kind] = {
    "normal errors": _line(lambda rng, x: rng.standard_normal(len(x))),
    "exponential errors": _line(lambda rng, x: rng.exponential(size=len(x)) - 1),
    "lognormal errors": _line(lambda rng, x: rng.lognormal(size=len(x)) - np.exp(0.5)),
    "heavy tails (t, 3 degrees)": _line(lambda rng, x: rng.standard_t(3, size=len(x))),
    "unequal variances": _line(lambda rng, x: np.exp(x / 2) * rng.standard_normal(len(x))),
    "a square taken for a line": (_square, (-1.0, 4.0)),
    "a logarithm taken for a line": (_log, (-float(STEEP) * float(np.exp(0.5)), float(STEEP))),
}


def kinds(sets: int, rng: np.random.Generator, *, rows: int, epsilon: float) -> list[dict[str, Any]]:
    """For each kind of data and coefficient: how often ends hold what they are for, and how often a note warns."""
    found = []
    for kind, (draw, truth) in KINDS.items():
        seen = [_once(*draw(rng, rows), truth, rng, epsilon) for _ in range(sets)]
        for k, name in enumerate(NAMES):
            mean = {key: float(np.mean([one[k][key] for one in seen])) for key in seen[0][k]}
            mean["quantile_off"] = float(np.median([one[k]["quantile_off"] for one in seen]))
            found.append({"data": kind, "coefficient": name, "rows": rows, "epsilon": epsilon, **mean})
    return found


def _once(x: Vector, y: Vector, truth: tuple[float, float], rng: np.random.Generator, epsilon: float) -> Any:
    data, both = {"x": x, "y": y}, np.arange(2)
    whole = GPrior().posterior(partition(np.column_stack([np.ones(len(x)), x]), y, 1, rng), both)
    middle, upper = (whole.quantile(np.full(2, q))[0] for q in (0.5, 0.841345))
    deviation = upper - middle
    seen = []
    for k, name in enumerate(NAMES):
        interval = posterior_interval("y ~ x", data, name, epsilon=epsilon, rng=rng).value
        quantile = posterior_quantile("y ~ x", data, name, probability=0.5, epsilon=epsilon, rng=rng).value
        cut = float(middle[k] + 0.5 * deviation[k])
        chance = posterior_probability("y ~ x", data, name, at=cut, epsilon=epsilon, rng=rng).value
        right = float(whole.cdf(np.full(2, cut))[0, k])
        seen.append(
            {
                "interval_holds_truth": interval.low[0] <= truth[k] <= interval.high[0],
                "all_rows_hold_truth": abs(middle[k] - truth[k]) <= 1.96 * deviation[k],
                "warned": bool(interval.notes),
                "half_width": (interval.high[0] - interval.low[0]) / 2 / deviation[k],
                "quantile_holds_all_rows": quantile.low[0] <= middle[k] <= quantile.high[0],
                "quantile_off": (quantile.quantile[0] - middle[k]) / deviation[k],
                "probability_holds_all_rows": chance.low[0] <= right <= chance.high[0],
            }
        )
    return seen
