"""Objective perturbation on kinds of data: do its intervals hold, are coefficients biased, and what is said before?

Errors are normal, skewed, heavy-tailed, unequal, mostly zero, or have one in a hundred ten times as far; columns fill
the norm, are narrow, or are a rare level. The truth is the minimum that infinitely many rows would have without
penalty and noise, from a million of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.arrays import Vector
from discreet.models.bayes.curvature import shortened
from discreet.models.bayes.erm import calibrate, minimise, objective_perturbation
from discreet.noise.source import SeededSource

NAMES = ("(Intercept)", "x")
LOWER, UPPER, NORM = -8.0, 8.0, 2.0
ROWS, MANY = 6_000, 1_000_000
DRAWS = 2  # releases of each data set
UNEVEN = "unequal variances"
Draw = Callable[[np.random.Generator, int], Vector]
Error = Callable[[np.random.Generator, Vector], Vector]

ERRORS: dict[str, Error] = {
    "normal errors": lambda rng, x: rng.standard_normal(len(x)),
    "lognormal errors": lambda rng, x: np.asarray(rng.lognormal(size=len(x)) - np.exp(0.5)),
    "heavy tails (t, 3 degrees)": lambda rng, x: rng.standard_t(3, size=len(x)),
    UNEVEN: lambda rng, x: np.asarray(np.exp(x) * rng.standard_normal(len(x))),
    "one in a hundred ten times as far": lambda rng, x: np.asarray(
        rng.standard_normal(len(x)) * np.where(rng.random(len(x)) < 0.01, 10, 1)
    ),
    "mostly one value": lambda rng, x: np.where(rng.random(len(x)) < 0.7, -0.6, rng.normal(1.4, 0.5, len(x))),
}
COLUMNS: dict[str, Draw] = {
    "a narrow column": lambda rng, n: np.clip(0.2 * rng.standard_normal(n), -1, 1),
    "a level of a tenth": lambda rng, n: np.asarray(rng.random(n) < 0.1, dtype=np.float64),
}
KINDS: dict[str, tuple[Draw, Error]] = {
    **{name: (lambda rng, n: rng.uniform(-1, 1, n), error) for name, error in ERRORS.items()},
    **{name: (column, ERRORS["normal errors"]) for name, column in COLUMNS.items()},
    "a curve taken for a line": (
        lambda rng, n: rng.uniform(-1, 1, n),
        lambda rng, x: np.asarray(2 * (x**2 - 1 / 3) + rng.standard_normal(len(x))),
    ),
}


def drawn(kind: str, rng: np.random.Generator, n: int) -> tuple[Vector, Vector]:
    column, error = KINDS[kind]
    x = column(rng, n)
    return x, 1 + 2 * x + error(rng, x)


def truth(kind: str) -> Vector:
    """The minimum of many rows, without noise and nearly without penalty."""
    x, y = drawn(kind, np.random.default_rng(12), MANY)
    X = shortened(np.column_stack([np.ones(MANY), x]), NORM)
    span = {"tau": UPPER - LOWER, "largest": UPPER, "norm": NORM}
    constants = calibrate(MANY, 2, **span, penalty=1e-2, epsilon=Fraction(60))
    return minimise(X, np.clip(y, LOWER, UPPER), np.zeros(2), constants)


def kinds(
    sets: int,
    rng: np.random.Generator,
    *,
    epsilons: Sequence[float],
    of: Sequence[str] = tuple(KINDS),
    tell: Callable[[float], object] = lambda share: None,
) -> list[dict[str, Any]]:
    """For each kind of data, coefficient and epsilon: coverage, bias in standard errors of its mean, and warnings.

    The truth of a million rows has an error too, which is part of that of a bias.
    `none` is the share of releases without an interval, which their flag says; `allowed`, what the penalty takes, which
    `check` tells and intervals allow for.
    """
    found, done = [], 0
    for kind in of:
        true = truth(kind)
        for epsilon in epsilons:
            held, off, none, width, taken, before = [], [], [], [], [], ""
            for _ in range(sets):
                x, y = drawn(kind, rng, ROWS)
                question = objective_perturbation.ask(
                    "y ~ x", bounds=(LOWER, UPPER), norm=NORM, penalty=1, epsilon=str(epsilon)
                )
                offer = question.offer({"x": x, "y": y})
                expected, rows = offer.check().expected, offer.read(None)
                before, gram = expected.flag[0], rows[0].T @ rows[0]
                taken.append(np.abs(np.linalg.solve(gram, expected.penalty * true)))
                for _ in range(DRAWS):
                    one = offer.draw(rows, SeededSource(int(rng.integers(2**31))))
                    low, high = np.array(one.low), np.array(one.high)
                    held.append((low <= true) & (true <= high))
                    none.append(~np.isfinite(low))
                    width.append((high - low) / 2)
                    off.append(np.array(one.value) - true)
                done += 1
                tell(done / (sets * len(of) * len(epsilons)))
            for k, name in enumerate(NAMES):
                share = np.mean(np.array(held)[:, k].reshape(sets, DRAWS), axis=1)
                bias = np.mean(np.array(off)[:, k].reshape(sets, DRAWS), axis=1)
                found.append(
                    {
                        "data": kind,
                        "coefficient": name,
                        "epsilon": float(epsilon),
                        "held": float(share.mean()),
                        "held_error": float(share.std(ddof=1) / np.sqrt(sets)),
                        "none": float(np.mean(np.array(none)[:, k])),
                        "half_width": float(np.median(np.array(width)[:, k])),
                        "times": float(
                            np.median(np.array(width)[:, k]) / np.quantile(np.abs(np.array(off)[:, k]), 0.95)
                        ),
                        "bias": float(bias.mean()),
                        "bias_error": float(bias.std(ddof=1) * np.sqrt(1 / sets + ROWS / MANY)),
                        "allowed": float(np.mean(np.array(taken)[:, k])),
                        "before": before,
                    }
                )
    return found
