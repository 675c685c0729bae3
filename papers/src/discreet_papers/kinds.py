"""Private models on kinds of data that no document tried: do intervals hold, are estimates off, and is it said?

One public design of unequal groups. Responses are normal, skewed, heavy-tailed, curved, of unequal variances, with
effects that depend on sizes, or without effects. Columns are skewed or a rare level, or there are few large groups.
Every release comes through the door that everybody uses. The truth of a fixed effect is what the fit of infinitely many
responses of this design would find without noise. The study knows the truth and its noise has a seed: it is a
simulation, never a release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.models.linear.private import PrivateFit, release_mixed
from discreet.models.linear.private.slopes import WORD
from discreet.pages.page import Heading, Note, Page, Prose, Table
from discreet.pages.study import Study
from discreet.words.cases import case_of
from discreet.words.caveats import FEW_SHAPES, NOT_MEASURED, NOT_SEEN, ONE_SLOPE, ONE_VARIANCE, stated
from discreet.words.errors import DataError
from discreet.words.progress import Progress, silent

Telling = tuple[str, str | None, str]

FORMULA, BOUNDS = "y ~ x + (1 | g)", (-7, 9)
ROWS, GROUPS = 6_000, 150  # of the design
UNEQUAL, VERY_UNEQUAL = 0.7, 1.6  # deviations of log sizes
TAU, SIGMA, TOGETHER = 0.5, 1.0, 0.25  # deviations of effects and residuals; correlation of effects and log sizes
APART = 0.5  # deviation of slopes, where they differ: as large as their mean
BETA = np.array([1.0, 0.5])
NAMES = ("(Intercept)", "x")
LEVEL, NEAR, OFF = 0.95, 0.015, 3.0  # coverage within so much of the level, a bias within so many standard errors
MOSTLY = 0.9  # of the releases: a fault that so many of them tell of is told
SETS, QUICK = 150, 24
TRUTHS = 200  # draws from which the residual variance of pulled responses is known to a part in a thousand
EPSILONS: dict[str, tuple[float, ...]] = {"moments": (0.5, 2.0, 8.0), "strict": (2.0, 8.0), "paper": (2.0,)}
UNSEEN = ("hardly seen", "not found", NOT_MEASURED)
HIDDEN: list[Telling] = [("variance", "g", word) for word in UNSEEN]
TELLING: dict[str, list[Telling]] = {
    "effects": HIDDEN,
    "variance": [*HIDDEN, ("variance", "g", "small blocks")],
    "residual": [("variance", "Residual", word) for word in (*UNSEEN, "small blocks")],
    "fixed": [*HIDDEN, *(("fixed", None, word) for word in ("informative sizes", "clipped", "small blocks"))],
}
"""The flags that tell of a fault of each estimate: what they are on, and their word."""

UNEVEN, FEW_LARGE, SLOPES = "unequal variances", "few large groups, many small", "slopes that differ by group"
OF_SLOPES = {"x": [*TELLING["fixed"], ("fixed", None, WORD)]}
"""The flags that tell of a slope where slopes differ: elsewhere `one slope` is a condition that holds."""

COLUMNS: dict[str, Callable[[Vector], Vector]] = {
    "a skewed column (lognormal)": lambda z: (np.exp(z / 2) - np.exp(1 / 8)) / 0.604,
    "a rare level (a fiftieth)": lambda z: np.asarray(z > 2.054, dtype=np.float64),
}
"""Columns that are not normal, made from normal numbers."""

Draw = Callable[["SimulatedDesign", np.random.Generator], tuple[Vector, Vector]]


@dataclass(frozen=True)
class SimulatedDesign:
    """The public part of the simulated data, and the response without noise that its columns give."""

    n: Integers
    g: Integers
    x: Vector

    @classmethod
    def of(cls, rng: np.random.Generator, kind: str = "normal") -> SimulatedDesign:
        size = np.exp((VERY_UNEQUAL if kind == FEW_LARGE else UNEQUAL) * rng.normal(size=GROUPS))
        n = np.maximum(2, np.round(size / size.sum() * ROWS)).astype(np.int64)
        x = COLUMNS.get(kind, np.asarray)(rng.normal(size=int(n.sum())))
        return cls(n, np.repeat(np.arange(GROUPS), n), x)

    @property
    def log(self) -> Vector:
        """Log sizes with mean 0 and deviation 1."""
        log = np.log(self.n)
        return np.asarray((log - log.mean()) / log.std())

    def fitted(self, y: Vector, variance: float = TAU**2) -> Vector:
        """Generalised least squares at the true variances."""
        X = np.column_stack([np.ones(len(self.x)), self.x])
        means = np.stack([np.bincount(self.g, column) / self.n for column in X.T], axis=1)
        mean, w = np.bincount(self.g, y) / self.n, self.n / (SIGMA**2 + variance * self.n)
        within = (X.T @ X - means.T @ (self.n[:, None] * means)) / SIGMA**2
        right = (X.T @ y - means.T @ (self.n * mean)) / SIGMA**2 + means.T @ (w * mean)
        return np.asarray(np.linalg.solve(within + means.T @ (w[:, None] * means), right))


def _effects(design: SimulatedDesign, rng: np.random.Generator) -> Vector:
    return np.asarray(rng.normal(0, TAU, GROUPS))


def _curve(design: SimulatedDesign) -> Vector:
    return np.asarray(0.6 * (design.x**2 - 1) / np.sqrt(2))


def _errors(draw: Callable[[np.random.Generator, int], Vector]) -> Draw:
    return lambda design, rng: (_effects(design, rng), SIGMA * draw(rng, len(design.x)))


def _both(draw: Callable[[np.random.Generator, int], Vector]) -> Draw:
    return lambda design, rng: (TAU * draw(rng, GROUPS), SIGMA * draw(rng, len(design.x)))


def _uneven(design: SimulatedDesign, rng: np.random.Generator) -> tuple[Vector, Vector]:
    return _effects(design, rng), rng.normal(size=len(design.x)) * np.exp(design.x / 2 - 0.25)


def _sized(design: SimulatedDesign, rng: np.random.Generator) -> tuple[Vector, Vector]:
    own = np.sqrt(1 - TOGETHER**2) * rng.normal(size=GROUPS)
    return TAU * (TOGETHER * design.log + own), rng.normal(0, SIGMA, len(design.x))


def _curved(design: SimulatedDesign, rng: np.random.Generator) -> tuple[Vector, Vector]:
    return _effects(design, rng), 0.8 * rng.normal(size=len(design.x)) + _curve(design)


def _sloped(design: SimulatedDesign, rng: np.random.Generator) -> tuple[Vector, Vector]:
    return _effects(design, rng), rng.normal(0, APART, GROUPS)[design.g] * design.x + rng.normal(size=len(design.x))


KINDS: dict[str, Draw] = {
    "normal": _errors(lambda rng, n: rng.normal(size=n)),
    "skewed residuals": _errors(lambda rng, n: rng.exponential(size=n) - 1),
    "skewed residuals and effects": _both(lambda rng, n: rng.exponential(size=n) - 1),
    "heavy tails (t, 5 degrees)": _both(lambda rng, n: rng.standard_t(5, size=n) * np.sqrt(3 / 5)),
    "a curve taken for a line": _curved,
    UNEVEN: _uneven,
    "effects that go with sizes": _sized,
    "no effects": lambda design, rng: (np.zeros(GROUPS), rng.normal(0, SIGMA, len(design.x))),
    "heavy tails (t, 3 degrees)": _both(lambda rng, n: rng.standard_t(3, size=n) / np.sqrt(3)),
    **{kind: _errors(lambda rng, n: rng.normal(size=n)) for kind in (*COLUMNS, FEW_LARGE)},
    SLOPES: _sloped,
}


def run(*, quick: bool = False, data: Path | None = None, seed: int = 0, progress: Progress = silent) -> Study:
    """Release many data sets of each kind by each method; `quick` releases fewer, at one epsilon."""
    if data is not None:
        raise DataError(
            "The study of kinds was given data, but it needs to know the truth and simulates them.",
            remedy="Leave --data out.",
            about="data",
        )
    sets = QUICK if quick else SETS
    rows = []
    asked = [
        (kind, method, epsilon)
        for kind in KINDS
        for method, epsilons in EPSILONS.items()
        for epsilon in (epsilons[-1:] if quick else epsilons)
    ]
    for i, (kind, method, epsilon) in enumerate(asked):
        progress(f"{kind}, {method}, epsilon {epsilon:g}", i / len(asked))
        of_blocks = max(sets // 3, 8)
        times = case_of(method, {"moments": sets, "paper": of_blocks, "strict": of_blocks})
        rows.append(measured(kind, method, epsilon, times, seed))
    results = {"sets": sets, "rows": ROWS, "groups": GROUPS, "kinds": rows}
    return Study(name="kinds", title=TITLE, results=results, page=_page(results))


def measured(kind: str, method: Any, epsilon: float, sets: int, seed: int) -> dict[str, Any]:
    """Coverage and bias of one kind of data by one method, and how often a release tells of what is wrong."""
    design = SimulatedDesign.of(np.random.default_rng(seed), kind)
    rng = np.random.default_rng([seed, 1 + list(KINDS).index(kind)])  # [0, 0] would be the design's own numbers
    fixed = BETA + design.fitted(_mean(kind, design))
    columns = {"x": design.x, "g": design.g}
    residual = _residual(kind, design, fixed)
    seen, telling = [], TELLING | (OF_SLOPES if kind == SLOPES else {})
    for number in range(sets):
        u, e = KINDS[kind](design, rng)
        without = BETA[0] + BETA[1] * design.x + e
        y = without + u[design.g]
        fit = release_mixed(
            FORMULA,
            {"y": y, **columns},
            epsilon=epsilon,
            public=["x", "g"],
            bounds=BOUNDS,
            method=method,
            seed=1000 * seed + number,
        )
        true = {"variance": _drawn(design, y, without), "residual": residual}
        seen.append(_one(fit, fixed, u - (fixed[0] - BETA[0]), true, telling))
    told = {name: float(np.mean([one["told"][name] for one in seen])) for name in telling}
    row: dict[str, Any] = {"data": kind, "method": method, "epsilon": epsilon, "sets": sets}
    for name in (*NAMES, "effects"):
        held = [one["held"][name] for one in seen]
        row[f"held {name}"] = None if None in held else float(np.mean(held))
        half = [one["half"].get(name) for one in seen]
        if name in NAMES and None not in half:
            wrong = [abs(one["off"][name]) for one in seen]
            row[f"times {name}"] = float(np.mean(half) / np.quantile(wrong, LEVEL))
    if row["held effects"] is not None:
        row["error effects"] = float(np.std([one["held"]["effects"] for one in seen], ddof=1) / np.sqrt(sets))
    for name in (*NAMES, "variance", "residual"):
        off = np.array([one["off"][name] for one in seen])
        row[f"bias {name}"] = float(off.mean() / max(off.std() / np.sqrt(sets), 1e-300))
    row["told"] = told
    row["equal variances noted"] = float(np.mean([one["noted"] for one in seen]))
    row["faults"] = list(_faults(row))
    return row


def said_before(kind: str, method: Any, epsilon: float, seed: int, name: str = "") -> str:
    """What `check` says against an estimate by noisy sums before anything is paid, if it is so in these data."""
    design = SimulatedDesign.of(np.random.default_rng(seed), kind)
    asked: Any = {"epsilon": epsilon, "public": ["x", "g"], "bounds": BOUNDS, "method": method}
    check = release_mixed.check(FORMULA, {"y": np.zeros(len(design.x)), "x": design.x, "g": design.g}, **asked)
    variance = 0.0 if kind == "no effects" else TAU**2
    hidden = any(variance < least for least in check.expected.least)
    words = {ONE_SLOPE: kind == SLOPES and name == "x", NOT_MEASURED: True, NOT_SEEN: hidden}
    words |= {FEW_SHAPES: kind == "effects that go with sizes"}
    return next((word for word, so in words.items() if so and word in stated(check.expected.notes)), "")


def _mean(kind: str, design: SimulatedDesign) -> Vector:
    """The deviation of the response's mean from the line."""
    if kind == "a curve taken for a line":
        return _curve(design)
    return TAU * TOGETHER * design.log[design.g] if kind == "effects that go with sizes" else np.zeros(len(design.x))


def _drawn(design: SimulatedDesign, y: Vector, without: Vector) -> float:
    """The mean square of the effects that were drawn, as responses in the bounds have them.

    The variance of their law is no yardstick: that of heavy tails is hardly ever met by 150 groups.
    """
    pulled = np.bincount(design.g, np.clip(y, *BOUNDS) - np.clip(without, *BOUNDS)) / design.n
    return float(np.mean(pulled**2))


def _residual(kind: str, design: SimulatedDesign, fixed: Vector) -> float:
    """The variance about line and effects of responses that are pulled into the bounds; from many draws."""
    rng, found = np.random.default_rng(0), []
    for _ in range(TRUTHS):
        u, e = KINDS[kind](design, rng)
        y = np.clip(BETA[0] + BETA[1] * design.x + u[design.g] + e, *BOUNDS)
        shift = fixed[0] - BETA[0] if kind == "effects that go with sizes" else 0.0
        found.append(np.mean((y - fixed[0] + shift - fixed[1] * design.x - u[design.g]) ** 2))
    return float(np.mean(found))


def _one(
    fit: PrivateFit, fixed: Vector, u: Vector, true: dict[str, float], telling: dict[str, list[Telling]]
) -> dict[str, Any]:
    z, se = 1.959964, fit.se
    held: dict[str, Any] = {}
    half = {name: None if se[name] is None else z * float(se[name] or 0.0) for name in NAMES}
    for j, name in enumerate(NAMES):
        error = se[name]
        held[name] = None if error is None else bool(abs(fit.beta[j] - fixed[j]) <= z * error)
    effects = fit.random[0]
    errors = effects.std_errors
    held["effects"] = None if errors is None else float(np.mean(np.abs(effects.values - u) <= z * errors))
    off = {name: float(fit.beta[j] - fixed[j]) for j, name in enumerate(NAMES)}
    off["variance"] = float(effects.variance or 0.0) - true["variance"]
    off["residual"] = float(fit.sigma2 or 0.0) - true["residual"]
    found = {(flag.effect, flag.group, flag.word) for flag in fit.flags}
    told = {name: not found.isdisjoint(flags) for name, flags in telling.items()}
    return {
        "held": held,
        "half": half,
        "off": off,
        "told": told,
        "noted": ONE_VARIANCE in stated(fit.notes),
    }


def _faults(row: dict[str, Any]) -> Iterator[str]:
    """Intervals that hold too rarely or too often, and biased estimates, unless most releases warn of it.

    Coverage has an error of its own, and is called wrong where two of its deviations do not explain it.
    """
    doubt = 2 * np.sqrt(LEVEL * (1 - LEVEL) / row["sets"])
    for name in (*NAMES, "effects"):
        held, told = row[f"held {name}"], row["told"].get(name, row["told"]["fixed"])
        noted = row["equal variances noted"] if row["data"] == UNEVEN and name in NAMES else 0.0
        own = doubt if name in NAMES else 0.0
        if held is not None and abs(held - LEVEL) > NEAR + own and max(told, noted) < MOSTLY:
            yield f"{name} held in {100 * held:.1f} %"
    for name in (*NAMES, "variance", "residual"):
        told = row["told"].get(name, row["told"]["fixed"])
        if abs(row[f"bias {name}"]) > OFF and told < MOSTLY:
            yield f"{name} off by {row[f'bias {name}']:.1f} standard errors"


TITLE = "Private models on kinds of data: do intervals hold, and is it said where they do not?"


def _page(results: dict[str, Any]) -> Page:
    rows: Sequence[dict[str, Any]] = results["kinds"]
    faults = [
        f"{row['data']}, {row['method']}, epsilon {row['epsilon']:g}: {'; '.join(row['faults'])}"
        for row in rows
        if row["faults"]
    ]
    verdict = "\n".join(f"- {line}" for line in faults) or "Nothing is wrong without being reported."
    return Page(
        TITLE,
        [
            Note("result", verdict),
            Note("warning", "The data are simulated and the noise has a seed: a study is not a release."),
            Prose(
                f"{results['rows']:,} rows in {results['groups']} groups of unequal size, {results['sets']} data sets "
                "of each kind by noisy sums, a third as many by blocks. An interval should hold the truth in 95 % of "
                "them, and an estimate be off by less than three standard errors of its mean, or a flag should say so."
            ),
            Heading("Coverage of 95 % intervals"),
            Table.of(
                [
                    {
                        "data": row["data"],
                        "method": row["method"],
                        "epsilon": row["epsilon"],
                        "intercept": row["held (Intercept)"],
                        "slope": row["held x"],
                        "effects": row["held effects"],
                        "effects told": row["told"]["effects"],
                        "sizes told": row["told"]["fixed"],
                        "unequal variances noted": row["equal variances noted"],
                    }
                    for row in rows
                ],
                "Shares of data sets. Told: with a flag that says what is wrong.",
                "coverage",
            ),
            Heading("Bias"),
            Table.of(
                [
                    {
                        "data": row["data"],
                        "method": row["method"],
                        "epsilon": row["epsilon"],
                        **{name: row[f"bias {name}"] for name in (*NAMES, "variance", "residual")},
                        "variance told": row["told"]["variance"],
                        "residual told": row["told"]["residual"],
                    }
                    for row in rows
                ],
                "Mean error over data sets, in standard errors of that mean.",
                "bias",
            ),
        ],
    )
