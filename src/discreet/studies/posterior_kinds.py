"""Posterior summaries on data that the thesis did not try: skewed, heavy-tailed, uneven, curved, and real.

The thesis simulates normal errors around a straight line. Here the same questions are asked where errors or the line
are otherwise. Answers are compared with those of all rows, and intervals with the truth: the coefficients of the best
straight line in the population. A file of prices of diamonds can be the population, from which rows are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from discreet.arrays import Vector
from discreet.bayes.conjugate import GPrior
from discreet.bayes.interval import posterior_interval
from discreet.bayes.partition import partition
from discreet.bayes.probability import posterior_probability
from discreet.bayes.quantile import posterior_quantile
from discreet.errors import DataError

NAMES = ("(Intercept)", "x")
CUTS = (0.5, 2.0)  # posterior deviations above the middle, at which probabilities are asked for
STEEP = np.exp(0.5) / (np.e * (np.e - 1))  # slope of log x on a lognormal x
Kind = tuple[Callable[[np.random.Generator, int], tuple[Vector, Vector]], tuple[float, float]]
Error = Callable[[np.random.Generator, Vector], Vector]


def _line(error: Error, column: Callable[[np.random.Generator, int], Vector] | None = None) -> Kind:
    def draw(rng: np.random.Generator, n: int) -> tuple[Vector, Vector]:
        x = rng.standard_normal(n) if column is None else column(rng, n)
        return x, 1 + 2 * x + error(rng, x)

    return draw, (1.0, 2.0)


def _normal(rng: np.random.Generator, x: Vector) -> Vector:
    return rng.standard_normal(len(x))


def _lognormal(rng: np.random.Generator, x: Vector) -> Vector:
    return np.asarray(rng.lognormal(size=len(x)) - np.exp(0.5))


def _tenth(rng: np.random.Generator, n: int) -> Vector:
    return np.asarray(rng.random(n) < 0.1, dtype=np.float64)


def _square(rng: np.random.Generator, n: int) -> tuple[Vector, Vector]:
    x = rng.exponential(size=n)
    return x, 1 + x**2 + rng.standard_normal(n)


def _slight(rng: np.random.Generator, n: int) -> tuple[Vector, Vector]:
    x = rng.exponential(size=n)
    return x, 1 + x + 0.1 * x**2 + rng.standard_normal(n)


def _log(rng: np.random.Generator, n: int) -> tuple[Vector, Vector]:
    x = rng.lognormal(size=n)
    return x, np.log(x) + 0.3 * rng.standard_normal(n)


KINDS: dict[str, Kind] = {
    "normal errors": _line(_normal),
    "exponential errors": _line(lambda rng, x: rng.exponential(size=len(x)) - 1),
    "lognormal errors": _line(_lognormal),
    "heavy tails (t, 3 degrees)": _line(lambda rng, x: rng.standard_t(3, size=len(x))),
    "unequal variances": _line(lambda rng, x: np.exp(x / 2) * rng.standard_normal(len(x))),
    "a square taken for a line": (_square, (-1.0, 4.0)),
    "a logarithm taken for a line": (_log, (-float(STEEP) * float(np.exp(0.5)), float(STEEP))),
}
FURTHER: dict[str, Kind] = {
    "a slight curve": (_slight, (0.8, 1.4)),
    "far values in x (t, 3 degrees)": _line(_normal, lambda rng, n: rng.standard_t(3, size=n)),
    "a level of a tenth": _line(_normal, _tenth),
    "a level of a tenth, lognormal errors": _line(_lognormal, _tenth),
}


def kinds(
    sets: int,
    rng: np.random.Generator,
    *,
    rows: int,
    epsilons: Sequence[float],
    of: Mapping[str, Kind] | None = None,
    tell: Callable[[float], object] = lambda share: None,
) -> list[dict[str, Any]]:
    """For each kind of data, coefficient and epsilon: how often ends hold what they are for, their bias and width.

    Widths and biases are in posterior deviations. `unnoted` are misses that no note warned of.
    """
    of = KINDS | FURTHER if of is None else of
    found, done = [], 0
    for kind, (draw, truth) in of.items():
        for epsilon in epsilons:
            seen = []
            for _ in range(sets):
                seen.append(_once(*draw(rng, rows), truth, rng, epsilon))
                done += 1
                tell(done / (sets * len(of) * len(epsilons)))
            for k, name in enumerate(NAMES):
                mean = {key: float(np.mean([one[k][key] for one in seen])) for key in seen[0][k]}
                error = float(np.std([one[k]["bias"] for one in seen], ddof=1) / np.sqrt(sets))
                what = {"data": kind, "coefficient": name, "epsilon": float(epsilon)}
                found.append(what | mean | {"bias_error": error})
    return found


def _once(x: Vector, y: Vector, truth: tuple[float, float], rng: np.random.Generator, epsilon: float) -> Any:
    """One data set: `epsilon` for each question about each coefficient."""
    data, both = {"x": x, "y": y}, np.arange(2)
    whole = GPrior().posterior(partition(np.column_stack([np.ones(len(x)), x]), y, 1, rng), both)
    middle, upper = (whole.quantile(np.full(2, q))[0] for q in (0.5, 0.841345))
    deviation = upper - middle
    ask: dict[str, Any] = {"epsilon": 2 * epsilon, "rng": rng}
    interval = posterior_interval("y ~ x", data, NAMES, **ask).value
    quantile = posterior_quantile("y ~ x", data, NAMES, probability=0.5, **ask).value
    chances = [
        posterior_probability("y ~ x", data, NAMES, at=list(middle + cut * deviation), **ask).value for cut in CUTS
    ]
    seen = []
    for k, name in enumerate(NAMES):
        held: dict[str, tuple[Any, bool]] = {
            "interval": (interval, interval.low[k] <= truth[k] <= interval.high[k]),
            "quantile": (quantile, quantile.low[k] <= middle[k] <= quantile.high[k]),
        }
        for cut, chance in zip(CUTS, chances, strict=True):
            right = float(whole.cdf(middle + cut * deviation)[0, k])
            held[f"probability_{cut:g}"] = (chance, chance.low[k] <= right <= chance.high[k])
        row: dict[str, float] = {"all_rows": abs(middle[k] - truth[k]) <= 1.96 * deviation[k]}
        for summary, (answer, hit) in held.items():
            noted = any(f" {name}:" in note or f" {name}." in note or f" {name} " in note for note in answer.notes)
            row |= {summary: hit, f"{summary}_noted": noted, f"{summary}_unnoted": not (hit or noted)}
        row["interval_width"] = (interval.high[k] - interval.low[k]) / 2 / deviation[k]
        row["quantile_width"] = (quantile.high[k] - quantile.low[k]) / 2 / deviation[k]
        row["bias"] = (quantile.quantile[k] - middle[k]) / deviation[k]
        seen.append(row)
    return seen


def diamonds(path: Path) -> dict[str, Kind]:
    """Kinds whose population are the rows of a file of diamonds: 53,940 prices with carat, depth and cut."""
    import narwhals.stable.v2 as nw

    from discreet.frames import open_frame

    columns = ("price", "carat", "depth", "cut")
    frame = open_frame(path if path.is_file() else {"none": [0]})
    if missing := [column for column in columns if column not in frame.collect_schema().names()]:
        raise DataError(
            f"The posterior study was given {path.name}, which lacks {', '.join(missing)}.",
            "It takes a file of diamonds with price, carat, depth and cut, and simulates everything else.",
            "Leave --data out, or give diamonds.csv.gz.",
        )
    table = frame.select(*(nw.col(c) for c in columns)).collect().to_arrow()
    price, carat, depth = (np.asarray(table[c].to_numpy(), dtype=np.float64) for c in columns[:3])
    fair = np.array([cut == "Fair" for cut in table["cut"].to_pylist()], dtype=np.float64)
    pairs = {
        "diamonds: price by carat": (carat, price),
        "diamonds: log price by log carat": (np.log(carat), np.log(price)),
        "diamonds: price by depth": (depth - 60, price),
        "diamonds: price by cut = Fair (3 %)": (fair, price),
    }
    return {name: _population(x, y) for name, (x, y) in pairs.items()}


def _population(x: Vector, y: Vector) -> Kind:
    slope, intercept = np.polyfit(x, y, 1).tolist()

    def draw(rng: np.random.Generator, n: int) -> tuple[Vector, Vector]:
        at = rng.integers(0, len(x), n)
        return x[at], y[at]

    return draw, (intercept, slope)
