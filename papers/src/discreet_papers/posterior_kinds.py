"""Posterior summaries on data that the thesis did not try: skewed, heavy-tailed, uneven, curved, and real.

The thesis simulates normal errors around a straight line. Here the same questions are asked where errors or the line
are otherwise. Answers are compared with those of all rows, and intervals with the truth: the coefficients of the best
straight line in the population. A file of prices of diamonds can be the population, from which rows are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from discreet.arrays import Vector
from discreet.models.bayes.conjugate import GPrior
from discreet.models.bayes.interval import posterior_interval
from discreet.models.bayes.partition import partition
from discreet.models.bayes.probability import posterior_probability
from discreet.models.bayes.quantile import posterior_quantile
from discreet.noise.source import SeededSource
from discreet.privacy.losses import Pure
from discreet.privacy.units import Rows
from discreet.release.account import Account
from discreet.release.question import Question
from discreet.words.errors import DataError

NAMES = ("(Intercept)", "x")
CUTS = (0.5, 2.0)  # posterior deviations above the middle, at which probabilities are asked for
SUMMARIES = ("interval", "quantile", *(f"probability_{cut:g}" for cut in CUTS))
LEVEL, NEAR, OFF = 0.95, 0.015, 3.0  # coverage within so much of the level, a bias within so many standard errors
DRAWS = 4  # of each summary of a data set
STEEP = np.exp(0.5) / (np.e * (np.e - 1))  # slope of log x on a lognormal x
Draw = Callable[[np.random.Generator, int], tuple[Vector, Vector]]
Error = Callable[[np.random.Generator, Vector], Vector]


class Kind(NamedTuple):
    """A kind of data: how it is drawn, and the best line in its population.

    `straight` if a line describes it, as summaries suppose; `public` if x is a public column, and responses alone are
    protected.
    """

    draw: Draw
    truth: tuple[float, float]
    straight: bool = True
    public: bool = False


def _line(
    error: Error, column: Callable[[np.random.Generator, int], Vector] | None = None, *, public: bool = False
) -> Kind:
    def draw(rng: np.random.Generator, n: int) -> tuple[Vector, Vector]:
        x = rng.standard_normal(n) if column is None else column(rng, n)
        return x, 1 + 2 * x + error(rng, x)

    return Kind(draw, (1.0, 2.0), public=public)


def _normal(rng: np.random.Generator, x: Vector) -> Vector:
    return rng.standard_normal(len(x))


def _lognormal(rng: np.random.Generator, x: Vector) -> Vector:
    return np.asarray(rng.lognormal(size=len(x)) - np.exp(0.5))


def _level(share: float) -> Callable[[np.random.Generator, int], Vector]:
    return lambda rng, n: np.asarray(rng.random(n) < share, dtype=np.float64)


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
    "a square taken for a line": Kind(_square, (-1.0, 4.0), straight=False),
    "a logarithm taken for a line": Kind(_log, (-float(STEEP) * float(np.exp(0.5)), float(STEEP)), straight=False),
}
FURTHER: dict[str, Kind] = {
    "a slight curve": Kind(_slight, (0.8, 1.4), straight=False),
    "far values in x (t, 3 degrees)": _line(_normal, lambda rng, n: rng.standard_t(3, size=n)),
    "a skewed x (lognormal)": _line(_normal, lambda rng, n: rng.lognormal(size=n)),
    "a level of a tenth": _line(_normal, _level(0.1)),
    "a level of a tenth, lognormal errors": _line(_lognormal, _level(0.1)),
    "a public level of a tenth, lognormal errors": _line(_lognormal, _level(0.1), public=True),
    "a public level of a fiftieth, lognormal errors": _line(_lognormal, _level(0.02), public=True),
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
    """For each kind of data, coefficient and epsilon: how often ends cover their target, their bias and width.

    Widths and biases are in posterior deviations. `before` are the warnings about an answer before it is paid for,
    `noted` how often there is a warning, `unnoted` misses without one.
    """
    of = KINDS | FURTHER if of is None else of
    found, done = [], 0
    for name, kind in of.items():
        for epsilon in epsilons:
            seen = []
            for _ in range(sets):
                seen.append(_once(kind, rows, rng, epsilon))
                done += 1
                tell(done / (sets * len(of) * len(epsilons)))
            for k, coefficient in enumerate(NAMES):
                what = {"data": name, "coefficient": coefficient, "epsilon": float(epsilon), "straight": kind.straight}
                found.append(what | _row([one[k] for one in seen]))
    return found


def _row(seen: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means over data sets with the standard errors of coverage and bias; words stay as they are."""
    row: dict[str, Any] = {}
    for key, first in seen[0].items():
        values = [one[key] for one in seen]
        middle = np.median if key.endswith("width") else np.mean  # one release in thousands is wild
        row[key] = first if isinstance(first, str) else float(middle(values))
        if key in SUMMARIES or key.endswith("bias"):
            row[f"{key}_error"] = float(np.std(values, ddof=1) / np.sqrt(len(values)))
        if key.endswith("_off"):  # the largest error of four draws is exceeded by one draw in twenty in a fifth of sets
            name = key.removesuffix("_off")
            row[f"{name}_times"] = row[f"{name}_width"] / float(np.quantile(values, LEVEL**DRAWS))
    return row


def unsaid(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Ends that hold too rarely and biased answers without a warning before anything is paid.

    A line is assumed, and the text says so; curves are therefore not among them. Coverage and bias have errors of their
    own, of which two, or three, may explain them. A bias up to what ends allow for is said too.
    """
    said = []
    for row in (row for row in rows if row["straight"]):
        label = f"{row['data']}, {row['coefficient']}, epsilon {row['epsilon']:g}"
        silent = [summary for summary in SUMMARIES if not row[f"{summary}_before"]]
        short = [each for each in silent if row[each] < LEVEL - NEAR - 2 * row[f"{each}_error"]]
        said += [f"{label}: {each.replace('_', ' ')} holds in {100 * row[each]:.1f} %" for each in short]
        for each in (each for each in silent if f"{each}_bias" in row):
            bias, allowed = row[f"{each}_bias"], row[f"{each}_allowed"]
            if abs(bias) > allowed + OFF * row[f"{each}_bias_error"]:
                said.append(f"{label}: {each} off by {bias:.2f} posterior deviations")
    return said


def _once(kind: Kind, rows: int, rng: np.random.Generator, epsilon: float) -> list[dict[str, Any]]:
    """One data set: `epsilon` for each question about each coefficient."""
    x, y = kind.draw(rng, rows)
    data, both = {"x": x, "y": y}, np.arange(2)
    whole = GPrior().posterior(partition(np.column_stack([np.ones(len(x)), x]), y, 1, rng), both)
    middle, upper = (whole.quantile(np.full(2, q))[0] for q in (0.5, 0.841345))
    deviation = upper - middle
    ask: dict[str, Any] = {"epsilon": 2 * epsilon, "public": ["x"] if kind.public else []}
    ask["account"] = _responses_alone() if kind.public else None
    asked: dict[str, Question[Any]] = {
        "interval": posterior_interval.ask("y ~ x", NAMES, **ask),
        "quantile": posterior_quantile.ask("y ~ x", NAMES, probability=0.5, **ask),
    }
    right = {"interval": np.array(kind.truth), "quantile": middle}
    for cut, summary in zip(CUTS, SUMMARIES[2:], strict=True):
        asked[summary] = posterior_probability.ask("y ~ x", NAMES, at=list(middle + cut * deviation), **ask)
        right[summary] = whole.cdf(middle + cut * deviation)[0]
    own = np.abs(middle - np.array(kind.truth)) <= 1.96 * deviation
    seen: list[dict[str, Any]] = [{"all_rows": bool(held)} for held in own]
    for summary, question in asked.items():
        offer = question.offer(data)
        before, reading = offer.check().expected.answers, offer.read(None)
        drawn = [offer.draw(reading, SeededSource(int(rng.integers(2**31)))) for _ in range(DRAWS)]
        for k, row in enumerate(seen):
            low, high = (np.array([getattr(one, end)[k] for one in drawn]) for end in ("low", "high"))
            held = (low <= right[summary][k]) & (right[summary][k] <= high)
            noted = np.array([bool(one.flag[k]) for one in drawn])
            row |= {summary: float(held.mean()), f"{summary}_noted": float(noted.mean())}
            row |= {f"{summary}_before": before[k].flag, f"{summary}_unnoted": float((~held & ~noted).mean())}
            located = {"interval": "location", "quantile": "quantile"}.get(summary)
            if located is not None:
                answer = np.array([getattr(one, located)[k] for one in drawn])
                row[f"{summary}_width"] = float(np.median((high - low) / 2) / deviation[k])
                row[f"{summary}_bias"] = float((answer - middle[k]).mean() / deviation[k])
                row[f"{summary}_off"] = float(np.abs(answer - right[summary][k]).max() / deviation[k])
                row[f"{summary}_allowed"] = float(before[k].bias)
    return seen


def _responses_alone() -> Account:
    """An account under which columns are public, and each row's response is protected."""
    return Account.open(None, dataset="simulated", unit=Rows(-1000, 1000, "y"), budget=Pure(10**9))


def diamonds(path: Path) -> dict[str, Kind]:
    """Kinds whose population are the rows of a file of diamonds: 53,940 prices with carat, depth and cut."""
    import narwhals.stable.v2 as nw

    from discreet.data.frames import open_frame

    columns = ("price", "carat", "depth", "cut")
    frame = open_frame(path if path.is_file() else {"none": [0]})
    if missing := [column for column in columns if column not in frame.collect_schema().names()]:
        raise DataError(
            f"The posterior study was given {path.name}, which lacks {', '.join(missing)}.",
            "It takes a file of diamonds with price, carat, depth and cut, and simulates everything else.",
            "Leave --data out, or give diamonds.csv.gz.",
            about="data",
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
    found = {name: _population(x, y)._replace(straight="by carat" not in name) for name, (x, y) in pairs.items()}
    return found | {"diamonds: price by public cut": found["diamonds: price by cut = Fair (3 %)"]._replace(public=True)}


def _population(x: Vector, y: Vector) -> Kind:
    slope, intercept = np.polyfit(x, y, 1).tolist()

    def draw(rng: np.random.Generator, n: int) -> tuple[Vector, Vector]:
        at = rng.integers(0, len(x), n)
        return x[at], y[at]

    return Kind(draw, (intercept, slope))
