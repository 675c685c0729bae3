"""Odd designs of mixed models, drawn from a seed, and what must hold of every fit and of every private release of them.

Designs have rare levels, nested and crossed factors, constant and repeated columns, columns in extreme units, groups
whose size goes with their effect, few groups, weights, odd names and levels, and values that are missing or infinite.
A fit is compared with dense matrices that are made here from the columns; a private release with least squares of the
clipped response, with what `check` said before, and with releases of neighbours.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from worlds import small
from worlds.kinds import KINDS, arrow
from worlds.small import Found, agrees, answer, refused

NAMES = [
    *("x", "z", "w2", "size", "age", "Year", "x1", "x10", "X_", "_y1"),
    *("_k", "_s", "_q", "_x0", "_c0", "n", "k0", "m0", "rows", "value"),
    *(
        "å x",
        "größe",
        "名前",
        "select",
        "group",
        "order",
        "None",
        "True",
        "class",
        "lambda",
        "I",
        "C",
        "log",
        "lag",
        "T",
    ),
    *(
        "a b  c",
        "a|b",
        "a+b",
        "0x",
        "1",
        "x:z",
        "(Intercept)",
        "Residual",
        "index",
        "😀",
        "x'y",
        'x"y',
        "x,y",
        "%s",
        "{0}",
    ),
]
LEVELS: list[Callable[[int], Any]] = [
    lambda i: f"c{i:02d}",
    lambda i: f"L{i}",
    lambda i: i,
    lambda i: i - 3,
    lambda i: 10.5 * i,
    lambda i: ["Zz", "aB", "öé"][i % 3] + str(i),
    lambda i: (
        ["", " ", "NA", "nan", "a:b", "TRUE", "é", "e\u0301", "None", "0", "'", '"', ",", "a\\b", "😀"][i % 15]
        + "x" * (i // 15)
    ),
    lambda i: f"{i:03d}",
    lambda i: str(i + 8),
    lambda i: "long " * 30 + str(i),
]
"""Levels of factors by their number; those of the last few look like numbers."""
LIKE_NUMBERS = (7, 8)


@dataclass(frozen=True)
class Term:
    """A random term: slopes beside an intercept, for the levels of all these columns together.

    `nested` is `a/b` for the columns (a, b); `apart` is `||`.
    """

    group: tuple[str, ...]
    slopes: tuple[str, ...] = ()
    intercept: bool = True
    nested: bool = False
    apart: bool = False

    @property
    def plain(self) -> list[Term]:
        """The same as terms that are neither nested nor apart, in lme4's order."""
        groups = [self.group[: k + 1] for k in reversed(range(len(self.group)))] if self.nested else [self.group]
        effects = [((), True)] * self.intercept + [((slope,), False) for slope in self.slopes]
        return [
            Term(group, slopes, intercept)
            for group in groups
            for slopes, intercept in (effects if self.apart else [(self.slopes, self.intercept)])
        ]

    def __str__(self) -> str:
        inside = [*(["1"] if self.intercept else ["0"]), *map(quoted, self.slopes)]
        joined = ("/" if self.nested else ":").join(map(quoted, self.group))
        return f"({' + '.join(inside)} {'||' if self.apart else '|'} {joined})"


@dataclass(frozen=True)
class World:
    """A table, a model of it, and the keywords of its door."""

    door: str
    columns: Mapping[str, Sequence[Any]]
    response: str
    fixed: tuple[tuple[str, ...], ...]
    random: tuple[Term, ...]
    intercept: bool = True
    asked: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    lags: tuple[int, ...] = ()

    @property
    def formula(self) -> str:
        right = [
            "1" if self.intercept else "0",
            *(":".join(map(quoted, term)) for term in self.fixed),
            *map(str, self.random),
            *(f"lag({quoted(self.response)}, {k})" for k in self.lags),
        ]
        return f"{quoted(self.response)} ~ {' + '.join(right)}"

    @property
    def rows(self) -> int:
        return len(self.columns[self.response])

    @property
    def terms(self) -> list[Term]:
        return [plain for term in self.random for plain in term.plain]

    @property
    def used(self) -> list[str]:
        """The columns that the model needs, the response first."""
        inside = [column for term in self.fixed for column in term]
        inside += [column for term in self.random for column in (*term.slopes, *term.group)]
        asked = [self.asked[key] for key in ("weights", "offset", "exposure", "time") if self.asked.get(key)]
        asked += [*self.asked.get("series", ()), *self.asked.get("protect", ())]
        return list(dict.fromkeys([self.response, *inside, *asked]))

    def with_column(self, name: str, values: Sequence[Any]) -> World:
        return replace(self, columns={**self.columns, name: list(values)})

    def at(self, rows: Sequence[int]) -> World:
        return replace(self, columns={name: [values[i] for i in rows] for name, values in self.columns.items()})


def quoted(name: str) -> str:
    return f"`{name}`" if not name.isidentifier() or not name.isascii() else name


def script(world: World) -> str:
    """A program that repeats what a world shows."""
    return (
        "# from the folder tests, with the package on the path\n"
        "from math import inf, nan\n\n"
        "from worlds.models import Term, World, look\n\n"
        f"# {world.formula!r}\nlook({world!r})\n"
    )


# Drawing


def drawn(seed: int) -> World:
    """The world of a seed."""
    rng = np.random.default_rng([38, seed])
    door = rng.choice(["linear", "counts", "private", "private counts"], p=[0.45, 0.15, 0.3, 0.1])
    made = {"linear": _linear, "counts": _counts, "private": _private, "private counts": _private_counts}[str(door)](
        rng
    )
    return replace(made, door=str(door), seed=seed)


def _one(rng: np.random.Generator, of: Sequence[Any], p: Sequence[float] | None = None) -> Any:
    return of[int(rng.choice(len(of), p=p))]


def _names(rng: np.random.Generator, count: int) -> list[str]:
    """Names of columns: mostly plain, and no two that differ in capitals alone."""
    odd = [str(name) for name in rng.permutation(np.array(NAMES[10:], object))]
    plain = [str(name) for name in rng.permutation(np.array(NAMES[:10], object))]
    share, found = rng.choice([0.0, 0.3, 1.0]), []
    while len(found) < count:
        name = (odd if rng.random() < share else plain or odd).pop()
        if name.casefold() not in {each.casefold() for each in found}:
            found.append(name)
    return found


def _labels(rng: np.random.Generator, codes: np.ndarray, *, words: bool = False) -> list[Any]:
    """Levels for codes; where words are asked for, they are no numbers."""
    while True:
        kind = int(rng.integers(len(LEVELS)))
        label = LEVELS[kind]
        if not words or (isinstance(label(1), str) and kind not in LIKE_NUMBERS):
            break
    order = rng.permutation(int(codes.max()) + 1)
    return [label(int(order[code])) for code in codes]


def _sizes(rng: np.random.Generator, rows: int, groups: int) -> np.ndarray:
    """The group of each row: even, uneven, mostly alone, or one that has nearly all."""
    kind = rng.integers(5)
    if kind == 0:
        found = np.arange(rows) % groups
    elif kind in (1, 2):
        found = rng.choice(groups, rows, p=rng.dirichlet(np.full(groups, 0.7 if kind == 1 else 3.0)))
    elif kind == 3:
        found = np.minimum(np.arange(rows) // 2, groups - 1)
    else:
        found = np.where(np.arange(rows) < groups - 1, np.arange(rows) + 1, 0)
    return np.unique(rng.permutation(found), return_inverse=True)[1]


def _number(rng: np.random.Generator, rows: int) -> np.ndarray:
    kind = rng.integers(12)
    x = rng.normal(size=rows)
    if kind == 0:
        return x * 10.0 ** rng.integers(-9, 10)
    if kind == 1:
        return 10.0 ** rng.integers(2, 6) + x
    if kind == 2:
        return rng.integers(-3, 4, rows).astype(float)
    if kind == 3:
        return (rng.random(rows) < 0.5).astype(float)
    if kind == 4:
        return np.full(rows, float(rng.integers(0, 5)))
    if kind == 5:
        return (np.arange(rows) == rng.integers(rows)).astype(float)
    if kind == 6:
        return rng.standard_t(1.5, rows)
    if kind == 7:
        return np.arange(rows) % 80 + 22.0
    if kind == 8:
        return np.where(x == 0, 0.0, x) * np.where(rng.random(rows) < 0.3, -0.0, 1.0)
    return x


@dataclass
class _Table:
    """A table in the making: columns by role."""

    rng: np.random.Generator
    columns: dict[str, list[Any]]
    numbers: list[str]
    factors: list[str]
    groups: list[str]
    nested: bool
    mean: np.ndarray
    response: str
    spare: list[str]


def _table(rng: np.random.Generator, rows: int, *, groups: int | None = None) -> _Table:
    names = _names(rng, 10)
    response, first, second, k1, k2, *xs = names
    spare = [xs.pop(), xs.pop()]
    columns: dict[str, list[Any]] = {}
    many = groups or int(_one(rng, [2, 3, 5, 8, max(rows // 3, 2)]))
    g = _sizes(rng, rows, many)
    nested = bool(rng.random() < 0.5)
    h = _sizes(rng, rows, int(rng.integers(2, 5)))
    columns[first], columns[second] = _labels(rng, g), _labels(rng, h)
    mean = rng.normal(0, _one(rng, [0.0, 0.5, 3.0]), g.max() + 1)[g] + rng.normal(0, 0.5, h.max() + 1)[h]
    if rng.random() < 0.3:  # sizes that tell of effects
        mean = mean + np.bincount(g)[g] / 10.0
    for name in (k1, k2):
        if rng.random() < 0.6:
            k = _sizes(rng, rows, int(rng.integers(1 if rng.random() < 0.1 else 2, 5)))
            if rng.random() < 0.15:
                columns[name] = [bool(v) for v in k % 2]
            else:
                columns[name] = _labels(rng, k, words=True)
            mean = mean + 0.3 * k
    factors = [name for name in (k1, k2) if name in columns]
    numbers = xs[: int(rng.integers(0, 4))]
    for at, name in enumerate(numbers):
        x = _number(rng, rows)
        if at and rng.random() < 0.15:  # a column that says nothing new
            x = 2.0 * np.array(columns[numbers[0]]) - 1.0
        spread = float(np.std(x))
        mean = mean + (0.5 * (x - x.mean()) / spread if spread > 1e-12 * (1 + abs(x.mean())) else 0.0)
        columns[name] = x.tolist() if rng.random() < 0.7 or not (x == np.round(x)).all() else [int(v) for v in x]
    return _Table(rng, columns, numbers, factors, [first, second], nested, mean, response, spare)


def _fixed(table: _Table) -> tuple[tuple[str, ...], ...]:
    rng, main = table.rng, [*table.numbers, *table.factors]
    order = [main[int(i)] for i in rng.permutation(len(main))]
    terms = [(name,) for name in order]
    if len(order) > 1 and rng.random() < 0.25:
        terms.append((order[0], order[1]))
    return tuple(terms)


def _random(table: _Table, *, slopes: bool = True, crossed: bool = True) -> tuple[Term, ...]:
    rng, (g, h) = table.rng, table.groups
    slope = tuple(table.numbers[:1])
    kinds = [Term((g,))]
    if crossed:
        kinds += [Term((g, h))]
    found: list[tuple[Term, ...]] = [(kinds[0],), (kinds[0],), (Term((g, h), nested=True),), (kinds[-1],)]
    if crossed:
        found += [(Term((g,)), Term((h,))), (Term((g,)), Term((h,)))]
    if slopes and slope:
        found += [(Term((g,), slope),), (Term((g,), slope, apart=True),), (Term((g,), slope, intercept=False),)]
        found += [(Term((g,), slope), Term((h,)))]
    return tuple(_one(rng, found))


def _linear(rng: np.random.Generator) -> World:
    rows = int(rng.integers(12, 90))
    table = _table(rng, rows)
    unit = _one(rng, [1.0, 1.0, 1.0, 1e-6, 1e6, 1e12])
    y = (table.mean + rng.normal(0, _one(rng, [1.0, 1.0, 0.05]), rows) + _one(rng, [0.0, 0.0, 100.0, 1e5])) * unit
    columns = {**table.columns, table.response: y.tolist()}
    asked: dict[str, Any] = {"method": _one(rng, ["REML", "ML"])}
    weights, offset = table.spare
    if rng.random() < 0.25:
        heavy = _one(
            rng, [rng.uniform(0.1, 10, rows), 10.0 ** rng.uniform(-3, 3, rows), rng.integers(1, 9, rows) * 1.0]
        )
        columns[weights], asked["weights"] = heavy.tolist(), weights
    if rng.random() < 0.1:
        columns[offset], asked["offset"] = (unit * rng.normal(size=rows)).tolist(), offset
    world = World("linear", columns, table.response, _fixed(table), _random(table), bool(rng.random() < 0.85), asked)
    if rng.random() < 0.15:
        asked["missing"] = _one(rng, ["drop", "error"])
        for name in world.used:
            if isinstance(columns[name][0], float) and rng.random() < 0.5:
                columns[name][int(rng.integers(rows))] = _one(rng, [math.nan, None, math.inf, -math.inf])
        if complete(world).rows == rows:
            columns[table.response][0] = None
    return world


def _counts(rng: np.random.Generator) -> World:
    rows = int(rng.integers(15, 80))
    table = _table(rng, rows)
    family = _one(rng, ["poisson", "poisson", "binomial", "binomial", "negative-binomial"])
    link = np.clip(table.mean - table.mean.mean(), -2.5, 2.5)
    columns, asked = dict(table.columns), {"family": family}
    weights, beside = table.spare
    if family == "binomial":
        share = 1 / (1 + np.exp(-link))
        if rng.random() < 0.4:
            trials = rng.integers(1, 12, rows)
            columns[weights], asked["weights"] = trials.astype(float).tolist(), weights
            columns[table.response] = (rng.binomial(trials, share) / trials).tolist()
        else:
            drawn_ = rng.random(rows) < share
            columns[table.response] = [bool(v) for v in drawn_] if rng.random() < 0.3 else drawn_.astype(float).tolist()
    else:
        size = np.ones(rows)
        if rng.random() < 0.3:
            size = 10.0 ** rng.uniform(0, 2, rows)
            columns[beside], asked["exposure"] = size.tolist(), beside
        elif rng.random() < 0.2:
            columns[beside], asked["offset"] = rng.normal(0, 0.3, rows).tolist(), beside
        columns[table.response] = [int(v) for v in rng.poisson(np.exp(link) * size)]
    random = _random(table, crossed=bool(rng.random() < 0.3))
    return World("counts", columns, table.response, _fixed(table), random, bool(rng.random() < 0.9), asked)


def _bounded(rng: np.random.Generator, mean: np.ndarray) -> tuple[list[Any], tuple[float, float]]:
    """Responses between bounds, some beyond, a few missing or infinite."""
    lower, upper = _one(rng, [(0.0, 1.0), (-3.0, 3.0), (0.0, 1e6), (-1e-3, 1e-3), (1e5, 1e5 + 1)])
    width = upper - lower
    unit = (mean - mean.min()) / max(float(np.ptp(mean)), 1e-9)
    y: list[Any] = (lower + width * (0.1 + 0.7 * unit + rng.normal(0, 0.1, len(mean)))).tolist()
    if rng.random() < 0.5:
        for odd in (None, math.nan, math.inf, -math.inf, 1e308, -1e308, -0.0, lower, upper):
            if rng.random() < 0.3:
                y[int(rng.integers(len(y)))] = odd
    return y, (lower, upper)


def _private(rng: np.random.Generator) -> World:
    rows = int(rng.integers(30, 200))
    table = _table(rng, rows, groups=int(rng.integers(2, 9)))
    y, bounds = _bounded(rng, table.mean)
    columns = {**table.columns, table.response: y}
    method = _one(rng, ["moments", "moments", "moments", "strict", "paper"])
    asked: dict[str, Any] = {"method": method, "bounds": bounds}
    asked |= (
        {"rho": _one(rng, ["0.5", "0.07"])}
        if rng.random() < 0.2 and method == "moments"
        else {"epsilon": _one(rng, ["1", "0.37", "8", "1000", "0.01"])}
    )
    if rng.random() < 0.2:
        lower, upper = bounds
        asked["clip"] = (lower + (upper - lower) / 4, upper - (upper - lower) / 8)
    if method != "moments":
        asked["blocks"] = int(_one(rng, [2, 3, 5]))
    simple = method != "moments"
    random = () if rng.random() < 0.4 else _random(table, slopes=not simple, crossed=not simple)
    lags: tuple[int, ...] = ()
    if method == "moments" and rng.random() < 0.15:
        asked["protect"] = [table.groups[0]]
    elif method == "moments" and rng.random() < 0.15:
        lags, group = _one(rng, [(1,), (1, 2), (3,)]), columns[table.groups[0]]
        columns[table.spare[0]] = [group[:at].count(each) + (at > rows // 2) for at, each in enumerate(group)]
        asked |= {"series": [table.groups[0]], "time": table.spare[0]}
        random = _one(rng, [(), (Term((table.groups[0],)),)])
    world = World("private", columns, table.response, _fixed(table), random, bool(rng.random() < 0.9), asked, 0, lags)
    numbers = [name for name in world.used[1:] if isinstance(columns[name][0], float)]
    if numbers and rng.random() < 0.15:
        columns[_one(rng, numbers)][int(rng.integers(rows))] = _one(rng, [None, math.nan, math.inf, -math.inf])
    return world


def _private_counts(rng: np.random.Generator) -> World:
    rows = int(rng.integers(30, 150))
    table = _table(rng, rows, groups=int(rng.integers(2, 7)))
    link = np.clip(table.mean - table.mean.mean(), -2, 2)
    columns, asked = dict(table.columns), {"epsilon": _one(rng, ["1", "8", "0.37", "1000"])}
    asked["family"] = _one(rng, ["binomial", "poisson"])
    if asked["family"] == "binomial":
        y: list[Any] = (rng.random(rows) < 1 / (1 + np.exp(-link))).tolist()
        y = y if rng.random() < 0.4 else [float(v) for v in y]
        asked["bounds"] = (0, 1)
    else:
        size = np.ones(rows)
        if rng.random() < 0.4:
            size = rng.integers(1, 50, rows) * 1.0
            columns[table.spare[0]], asked["exposure"] = size.tolist(), table.spare[0]
        y = [float(v) for v in rng.poisson(np.exp(link) * size)]
        asked["bounds"] = (0, 20)
    if rng.random() < 0.3:
        y[int(rng.integers(rows))] = None
    columns[table.response] = y
    random = () if rng.random() < 0.4 else _random(table, slopes=False, crossed=False)
    return World("private counts", columns, table.response, _fixed(table), random, bool(rng.random() < 0.9), asked)


def smaller(world: World) -> Iterator[World]:
    """Every way to a smaller world."""
    for i in range(len(world.fixed)):
        yield replace(world, fixed=(*world.fixed[:i], *world.fixed[i + 1 :]))
    if len(world.random) > 1 or "private" in world.door:
        for i in range(len(world.random)):
            yield replace(world, random=(*world.random[:i], *world.random[i + 1 :]))
    for i, term in enumerate(world.random):
        if term.slopes or term.nested or term.apart or len(term.group) > 1:
            yield replace(world, random=(*world.random[:i], Term(term.group[:1]), *world.random[i + 1 :]))
    for key in world.asked:
        if key not in ("bounds", "epsilon", "rho", "family", "series", "time"):
            yield replace(world, asked={k: v for k, v in world.asked.items() if k != key})
    if not world.intercept:
        yield replace(world, intercept=True)
    if world.lags:
        asked = {k: v for k, v in world.asked.items() if k not in ("series", "time")}
        yield replace(world, lags=(), asked=asked)
    if unused := [name for name in world.columns if name not in world.used]:
        yield replace(world, columns={k: v for k, v in world.columns.items() if k not in unused})
    for rows in small.fewer(world.rows):
        yield world.at(rows)


# Dense matrices, from the columns alone


@dataclass(frozen=True)
class Dense:
    """A linear mixed model as matrices: y, X by name, the columns and groups of each random term, weights."""

    y: np.ndarray
    names: list[str]
    X: np.ndarray
    terms: list[tuple[np.ndarray, np.ndarray]]
    weights: np.ndarray
    doubtful: bool

    @property
    def zs(self) -> list[np.ndarray]:
        return [
            np.concatenate(
                [(code[:, None] == np.arange(code.max() + 1)) * column[:, None] for column in columns.T], axis=1
            )
            for columns, code in self.terms
        ]

    def covariance(self, Gs: Sequence[np.ndarray], sigma2: float) -> np.ndarray:
        V = np.diag(sigma2 / self.weights)
        for (columns, code), G in zip(self.terms, Gs, strict=True):
            V += (columns @ G @ columns.T) * (code[:, None] == code)
        return V

    def at(self, Gs: Sequence[np.ndarray], sigma2: float, *, reml: bool) -> Solved:
        n, p = self.X.shape
        L = np.linalg.cholesky(self.covariance(Gs, sigma2))
        scale = np.linalg.norm(self.X, axis=0)
        Q, R = np.linalg.qr(np.linalg.solve(L, self.X / scale))
        white = np.linalg.solve(L, self.y)
        beta = np.linalg.solve(R, Q.T @ white)
        left = white - Q @ (Q.T @ white)
        inverse = np.linalg.inv(R) / scale[:, None]
        criterion = 2 * np.log(np.diag(L)).sum() + left @ left + (n - p if reml else n) * math.log(2 * math.pi)
        if reml:
            criterion += 2 * np.log(np.abs(np.diag(R))).sum() + 2 * np.log(scale).sum()
        residual = self.y - (self.X / scale) @ beta
        weighed = np.linalg.solve(L.T, left)
        effects = [
            np.stack([np.bincount(code, column * weighed, code.max() + 1) for column in columns.T], axis=1) @ G.T
            for (columns, code), G in zip(self.terms, Gs, strict=True)
        ]
        fitted = (self.X / scale) @ beta
        for (columns, code), u in zip(self.terms, effects, strict=True):
            fitted = fitted + (columns * u[code]).sum(axis=1)
        return Solved(beta / scale, np.sqrt((inverse**2).sum(axis=1)), float(criterion), effects, fitted, residual)

    def least(self, *, reml: bool, thoroughly: bool) -> float:
        """The smallest criterion on a coarse grid, or that a plain search finds from its best point."""
        from scipy.optimize import minimize

        shapes = [columns.shape[1] for columns, _ in self.terms]
        units = [np.sqrt((columns**2).mean(axis=0)) for columns, _ in self.terms]
        n, p = self.X.shape
        free = n - p if reml else n
        Q = np.linalg.qr(self.X / np.linalg.norm(self.X, axis=0))[0]
        scale = np.linalg.norm(self.y - Q @ (Q.T @ self.y)) / math.sqrt(free)
        if not scale > 0:
            return -math.inf
        logs = np.linalg.slogdet(
            (self.X / np.linalg.norm(self.X, axis=0)).T @ (self.X / np.linalg.norm(self.X, axis=0))
        )[1]
        logs += 2 * np.log(np.linalg.norm(self.X, axis=0)).sum()
        y = self.y / scale

        def value(theta: np.ndarray) -> float:
            Gs, at = [], 0
            for q, unit in zip(shapes, units, strict=True):
                T = np.zeros((q, q))
                T[np.tril_indices(q)] = theta[at : at + q * (q + 1) // 2]
                at += q * (q + 1) // 2
                T /= unit[:, None]
                Gs.append(T @ T.T)
            L = np.linalg.cholesky(self.covariance(Gs, 1.0))
            half, white = np.linalg.solve(L, Q), np.linalg.solve(L, y)
            F, R = np.linalg.qr(half)
            left = white - F @ (F.T @ white)
            found = free * (math.log(2 * math.pi * left @ left / free) + 1) + 2 * np.log(np.diag(L)).sum()
            return float(found + (2 * np.log(np.abs(np.diag(R))).sum() if reml else 0.0))

        size = sum(q * (q + 1) // 2 for q in shapes)
        identity = [np.eye(q)[np.tril_indices(q)] for q in shapes]
        tried = [
            np.concatenate(each) for each in product(*([t * one for t in (0.0, 0.3, 1.0, 3.0)] for one in identity))
        ]
        best, start = min(((value(theta), at) for at, theta in enumerate(tried)))
        if thoroughly:
            options = {"maxfev": 100 * size, "initial_simplex": _simplex(tried[start])}
            best = min(best, float(minimize(value, tried[start], method="Nelder-Mead", options=options).fun))
        return best + 2 * free * math.log(scale) + (logs if reml else 0.0)


def _simplex(start: np.ndarray) -> np.ndarray:
    return np.vstack([start, start + 0.3 * np.eye(len(start))])


@dataclass(frozen=True)
class Solved:
    beta: np.ndarray
    se: np.ndarray
    criterion: float
    effects: list[np.ndarray]
    fitted: np.ndarray
    residual: np.ndarray


def level_order(values: Sequence[Any]) -> list[Any]:
    """Levels in their order: numbers by size, words by code point, whatever comes first in the table."""
    return sorted(set(values))


def label(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def columns_of(world: World) -> tuple[list[str], list[np.ndarray]]:
    """The columns of the fixed part with R's names, as R codes them."""
    whole = not world.intercept  # the first factor then has a column for every level
    coded: dict[str, list[tuple[str, np.ndarray]]] = {}
    names: list[str] = ["(Intercept)"] if world.intercept else []
    columns = [np.ones(world.rows)] if world.intercept else []
    for term in sorted(world.fixed, key=len):
        if len(term) == 1:
            (name,) = term
            values = world.columns[name]
            if isinstance(values[0], str | bool):
                levels = level_order(values)
                every = [(name + label(level), np.array([v == level for v in values], float)) for level in levels]
                coded[name], own = every[1:], every if whole else every[1:]
                whole = False
            else:
                own = coded[name] = [(name, np.array(values, float))]
        else:
            own = [(f"{one}:{other}", a * b) for other, b in coded[term[1]] for one, a in coded[term[0]]]
        names += [name for name, _ in own]
        columns += [column for _, column in own]
    return names, columns


def independent(names: list[str], columns: list[np.ndarray]) -> tuple[list[int], bool]:
    """The columns that are no combinations of earlier ones, and whether that is a matter of digits."""
    kept: list[int] = []
    basis = np.zeros((len(columns[0]) if columns else 0, 0))
    doubtful = False
    for at, column in enumerate(columns):
        size = np.linalg.norm(column)
        left = column - basis @ (basis.T @ column)
        left = left - basis @ (basis.T @ left)
        share = np.linalg.norm(left) / size if size else 0.0
        doubtful |= bool(1e-12 < share < 3e-6)
        if share > 1e-7:
            kept.append(at)
            basis = np.column_stack([basis, left / np.linalg.norm(left)])
    return kept, doubtful


def dense(world: World) -> tuple[Dense, list[str]]:
    """The matrices of a complete world, and the names of the columns that it cannot have."""
    names, columns = columns_of(world)
    kept, doubtful = independent(names, columns)
    y = np.array(world.columns[world.response], float)
    if world.asked.get("offset"):
        y = y - np.array(world.columns[world.asked["offset"]], float)
    weights = world.asked.get("weights")
    terms = []
    for term in world.terms:
        slopes = [np.array(world.columns[slope], float) for slope in term.slopes]
        code = codes_of(world, term.group)[0]
        terms.append((np.column_stack([*[np.ones(world.rows)] * term.intercept, *slopes]), code))
    X = np.column_stack([columns[i] for i in kept]) if kept else np.zeros((world.rows, 0))
    made = Dense(
        y,
        [names[i] for i in kept],
        X,
        terms,
        np.array(world.columns[weights], float) if weights else np.ones(world.rows),
        doubtful,
    )
    return made, [name for at, name in enumerate(names) if at not in kept]


def codes_of(world: World, group: Sequence[str]) -> tuple[np.ndarray, list[tuple[Any, ...]]]:
    """Which of the groups each row is in, and the levels of these columns in each group."""
    keys = list(zip(*(world.columns[name] for name in group), strict=True))
    levels = sorted(set(keys))
    place = {key: at for at, key in enumerate(levels)}
    return np.array([place[key] for key in keys]), levels


# Looking


def look(world: World) -> list[float]:
    """Break if a promise is broken; else what can be judged over many worlds: noise in its own deviations."""
    _unknown(world)
    return {"linear": _look_linear, "counts": _look_counts, "private": _look_private, "private counts": _look_private}[
        world.door
    ](world)


def _unknown(world: World) -> None:
    """A word that decides and that nobody knows is refused, and never taken for another."""
    keys = ("family", "method", "missing") if world.door in ("linear", "counts") else ("family", "method")
    key = keys[world.seed % len(keys)]
    for word in ("gausian", "", "Moments"):
        other = replace(world, asked={**world.asked, key: word})
        given = ask(other) if "private" in world.door else fit_of(other)
        agrees(refused(given), f"an unknown {key} was taken for another", word, given)


def complete(world: World) -> World:
    """The rows that a fit may use."""

    def known(value: Any) -> bool:
        return value is not None and not (isinstance(value, float) and not math.isfinite(value))

    return world.at([i for i in range(world.rows) if all(known(world.columns[name][i]) for name in world.used)])


def fit_of(world: World, data: Any = None) -> Any:
    return answer(lambda: dc.mixed(world.formula, arrow(world.columns) if data is None else data, **world.asked))


def close(one: Any, other: Any, *, by: Any, kind: str) -> None:
    one, other = np.asarray(one, float), np.asarray(other, float)
    agrees(one.shape == other.shape, kind, one, other)
    agrees((np.abs(one - other) <= by).all(), kind, one, other, by)


def _look_linear(world: World) -> list[float]:
    fit = fit_of(world)
    whole = complete(world)
    if whole.rows < world.rows:
        if world.asked.get("missing") != "drop":
            agrees(refused(fit), "rows with missing values were fitted")
            return []
        clean = replace(whole, asked={**world.asked, "missing": "error"})
        _same_fit(fit, fit_of(clean), "dropped rows and rows that never were")
        world = clean
    if refused(fit) or fit.solution.is_exact:
        agrees(refused(fit) or fit.notes, "a fit without a residual, and it is not said", fit)
        return []
    matrices, dropped = dense(world)
    reml = world.asked.get("method", "REML") == "REML"
    Gs = [term.covariance for term in fit.random]
    if not matrices.doubtful:
        agrees(list(fit.names) == matrices.names, "names of coefficients", fit.names, matrices.names)
        agrees(list(fit.dropped) == dropped, "dropped columns", fit.dropped, dropped)
        plain, doubt = matrices.at(Gs, fit.sigma2, reml=reml), fit.solution.doubt
        se = np.array([*fit.se.values()])
        close(fit.beta, plain.beta, by=1e-4 * plain.se, kind="coefficients")
        close(se, plain.se, by=1e-4 * plain.se, kind="standard errors")
        close(fit.criterion, plain.criterion, by=1e-6 * abs(plain.criterion) + 1e-4 + doubt, kind="criterion")
        sd = math.sqrt(fit.sigma2)
        close(
            fit.fitted,
            plain.fitted + (0 if not world.asked.get("offset") else np.array(world.columns[world.asked["offset"]])),
            by=1e-3 * sd + 1e-8 * np.abs(matrices.y).max(),
            kind="fitted values",
        )
        least = matrices.least(reml=reml, thoroughly=world.seed % 4 == 0)
        agrees(fit.criterion <= least + 1e-3 + doubt, "a better fit is near", f"{fit.criterion} and {least}")
        for term, found, theirs in zip(world.terms, fit.random, plain.effects, strict=True):
            levels = codes_of(world, term.group)[1]
            agrees(len(found.levels) == len(levels), "levels of a group", found.levels, levels)
            if len(term.group) == 1:
                agrees(
                    list(found.levels) == [label(k[0]) for k in levels],
                    "levels of a group",
                    found.levels,
                    levels,
                )
                close(found.values, theirs, by=1e-3 * np.sqrt(np.diag(found.covariance)) + 1e-9 * sd, kind="effects")
    _intervals(world, fit)
    _metamorphic(world, fit)
    return []


def _intervals(world: World, fit: Any) -> None:
    """Finite and around the estimate."""
    for name, test in fit.tests().items():
        agrees(math.isfinite(test.lower) and math.isfinite(test.upper), "an interval that is not finite", (name, test))
        agrees(test.lower <= test.estimate <= test.upper, "an interval without its estimate", (name, test))
        agrees(0 <= test.p <= 1 and test.df > 0, "a test that is none", (name, test))
    if world.seed % 16 == 0:
        for found in (answer(fit.confint), answer(fit.intervals)):
            if not refused(found):
                for name, (lower, upper) in found.items():
                    agrees(lower <= upper, "a profile that is not finite", (name, lower, upper))


def _same_fit(one: Any, other: Any, kind: str, *, rename: Callable[[str], str] | None = None) -> None:
    """Two fits are the same but for rounding, and for as many digits as a fit says that it has lost."""
    agrees(refused(one) == refused(other), kind, one, other)
    if refused(one):
        agrees(one.kind == other.kind, kind, one, other)
        return
    names = [rename(name) for name in one.names] if rename else list(one.names)
    agrees(names == list(other.names), kind, names, other.names)
    doubt = 5 * max(one.solution.doubt, other.solution.doubt)
    close(one.criterion, other.criterion, by=1e-6 * abs(one.criterion) + 1e-3 + doubt, kind=kind)
    alike = np.allclose([*one.variances.values()], [*other.variances.values()], rtol=1e-3)
    if doubt < 1e-3 and alike:  # else many variances are as likely
        close(one.beta, other.beta, by=0.02 * np.array([*one.se.values()]), kind=kind)


def _renamed(world: World) -> tuple[World, Callable[[str], str]]:
    """Every word among the columns with a letter before it, which leaves their order as it is."""
    words = [name for name in world.used[1:] if isinstance(world.columns[name][0], str)]
    for name in words:
        world = world.with_column(name, ["k" + value if value is not None else None for value in world.columns[name]])
    names = dict(zip(*(columns_of(each)[0] for each in (_bare(world, words), world)), strict=True))
    return world, lambda name: names.get(name, name)  # lags have none


def _bare(world: World, words: Sequence[str]) -> World:
    for name in words:
        world = world.with_column(name, [value[1:] for value in world.columns[name]])
    return world


def shuffled(world: World) -> World:
    return world.at(np.random.default_rng(world.seed).permutation(world.rows).tolist())


def of_kind(world: World, kind: str, path: Path) -> Any:
    return KINDS[kind]({name: world.columns[name] for name in world.columns}, path)


def kind_of(world: World) -> str:
    """A kind of frame that holds this table: no CSV file has true and false, words like numbers or empty ones."""
    for kind in np.random.default_rng([1, world.seed]).permutation(list(KINDS)):
        if kind != "csv" or survives_csv(world):
            return str(kind)
    raise AssertionError


def survives_csv(world: World) -> bool:
    def plain(value: Any) -> bool:
        if not isinstance(value, str):
            return not isinstance(value, bool)
        bare = value.strip()
        return (
            bare == value
            and bool(bare)
            and any(c.isalpha() for c in bare)
            and bare.lower() not in ("na", "nan", "none", "true", "false", "null")
            and not set(bare) & set("\",'\\")
        )

    return all(plain(value) for values in world.columns.values() for value in values) and not any(
        set(name) & set("\",'") for name in world.columns
    )


def _metamorphic(world: World, fit: Any) -> None:
    """The same numbers for shuffled rows, renamed levels, other units and another kind of frame."""
    _same_fit(fit, fit_of(shuffled(world)), "shuffled rows")
    other, rename = _renamed(world)
    _same_fit(fit, fit_of(other), "renamed levels", rename=rename)
    with tempfile.TemporaryDirectory() as path:
        kind = kind_of(world)
        _same_fit(fit, fit_of(world, of_kind(world, kind, Path(path))), f"read from {kind}")
    scaled = world
    for name in (world.response, world.asked.get("offset")):
        if name:
            scaled = scaled.with_column(name, [value * 1024.0 for value in scaled.columns[name]])
    other = fit_of(scaled)
    if refused(other) or fit.solution.doubt > 1e-4:
        return
    alike = np.allclose(2.0**20 * np.array([*fit.variances.values()]), [*other.variances.values()], rtol=1e-3)
    free = world.rows - (len(fit.names) if world.asked.get("method", "REML") == "REML" else 0)
    close(
        fit.criterion + 2 * free * math.log(1024),
        other.criterion,
        by=1e-6 * abs(fit.criterion) + 1e-3,
        kind="response in another unit",
    )
    if alike:
        close(1024 * fit.beta, other.beta, by=20.48 * np.array([*fit.se.values()]), kind="response in another unit")


# Counts and shares


@dataclass(frozen=True)
class Laplace:
    """-2 log-likelihood of counts or shares by Laplace's approximation, with dense matrices."""

    family: str
    y: np.ndarray
    X: np.ndarray
    Z: list[np.ndarray]
    moved: np.ndarray
    weights: np.ndarray

    def log_density(self, eta: np.ndarray) -> float:
        from scipy.special import gammaln

        y, w = self.y, self.weights
        if self.family == "poisson":
            each = y * eta - np.exp(eta) - gammaln(y + 1)
        else:
            chosen = gammaln(w + 1) - gammaln(w * y + 1) - gammaln(w * (1 - y) + 1)
            return float((w * (y * eta - np.logaddexp(0, eta)) + chosen).sum())
        return float((w * each).sum())

    def slopes(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean = np.exp(eta) if self.family == "poisson" else 1 / (1 + np.exp(-eta))
        bend = mean if self.family == "poisson" else mean * (1 - mean)
        return self.weights * (self.y - mean), self.weights * bend

    def at(self, beta: np.ndarray, roots: Sequence[np.ndarray]) -> float:
        """The criterion with effects Z_t (I x root_t) v, v standard normal."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._at(beta, roots)

    def _at(self, beta: np.ndarray, roots: Sequence[np.ndarray]) -> float:
        ZL = np.concatenate(
            [Z @ np.kron(root, np.eye(Z.shape[1] // len(root))) for Z, root in zip(self.Z, roots, strict=True)], axis=1
        )
        fixed, v = self.X @ beta + self.moved, np.zeros(ZL.shape[1])
        value = self.log_density(fixed)
        for _ in range(200):
            slope, bend = self.slopes(fixed + ZL @ v)
            H = ZL.T @ (bend[:, None] * ZL) + np.eye(len(v))
            step = np.linalg.solve(H, ZL.T @ slope - v)
            size = 1.0
            while (
                new := self.log_density(fixed + ZL @ (v + size * step))
                - 0.5 * float((v + size * step) @ (v + size * step))
            ) < value - 1e-9 and size > 1e-6:
                size /= 2
            v, value = v + size * step, new
            if np.abs(size * step).max() < 1e-9:
                break
        _, bend = self.slopes(fixed + ZL @ v)
        return -2 * value + float(np.linalg.slogdet(ZL.T @ (bend[:, None] * ZL) + np.eye(len(v)))[1])


def _look_counts(world: World) -> list[float]:
    fit = fit_of(world)
    if refused(fit):
        return []
    matrices, dropped = dense(replace(world, asked={k: v for k, v in world.asked.items() if k == "weights"}))
    agrees(np.isfinite(fit.criterion) and np.isfinite(fit.beta).all(), "a fit without numbers", fit)
    if not matrices.doubtful:
        agrees(list(fit.names) == matrices.names, "names of coefficients", fit.names, matrices.names)
        agrees(list(fit.dropped) == dropped, "dropped columns", fit.dropped, dropped)
    said = bool(fit.notes)
    for name, error in fit.se.items():
        agrees(math.isfinite(error) or said, "a standard error that is not finite and not said", (name, error))
    if world.asked["family"] in ("poisson", "binomial") and not matrices.doubtful:
        _near_the_top(world, fit, matrices)
    _same_counts(fit, fit_of(shuffled(world)), "shuffled rows")
    other, rename = _renamed(world)
    _same_counts(fit, fit_of(other), "renamed levels", rename=rename)
    with tempfile.TemporaryDirectory() as path:
        kind = kind_of(world)
        _same_counts(fit, fit_of(world, of_kind(world, kind, Path(path))), f"read from {kind}")
    return []


def _near_the_top(world: World, fit: Any, matrices: Dense) -> None:
    """The criterion is the one of dense matrices, and no step of a tenth of a standard error lowers it."""
    moved = np.zeros(world.rows)
    if world.asked.get("exposure"):
        moved = np.log(np.array(world.columns[world.asked["exposure"]], float))
    if world.asked.get("offset"):
        moved = np.array(world.columns[world.asked["offset"]], float)
    plain = Laplace(world.asked["family"], matrices.y, matrices.X, matrices.zs, moved, matrices.weights)
    values, vectors = zip(*(np.linalg.eigh(term.covariance) for term in fit.random), strict=True)
    roots = [vector * np.sqrt(np.maximum(value, 0)) for value, vector in zip(values, vectors, strict=True)]
    eta = np.abs(fit.link).max()
    if eta > 25:  # estimates that run away: shares of 0 or 1 that a column tells apart
        return
    own = plain.at(fit.beta, roots)
    close(fit.criterion, own, by=1e-3 + 1e-6 * abs(own), kind="criterion of Laplace")
    if np.isfinite(fit.covariance).all():
        values, vectors = np.linalg.eigh(fit.covariance)
        for step in (vectors * np.sqrt(np.maximum(values, 0.0))).T / 10:
            for sign in (-1, 1):
                agrees(not plain.at(fit.beta + sign * step, roots) < own - 1e-3, "a better fit is near", (sign, step))
    for at in range(len(roots)):
        for times in (0.9, 1.1):
            tried = [root * (times if i == at else 1.0) for i, root in enumerate(roots)]
            agrees(plain.at(fit.beta, tried) > own - 1e-3, "a better fit is near", (fit.random[at].group, times))


def _same_counts(one: Any, other: Any, kind: str, *, rename: Callable[[str], str] | None = None) -> None:
    agrees(refused(one) == refused(other), kind, one, other)
    if refused(one):
        agrees(one.kind == other.kind, kind, one, other)
        return
    names = [rename(name) for name in one.names] if rename else list(one.names)
    agrees(names == list(other.names), kind, names, other.names)
    close(one.criterion, other.criterion, by=1e-2, kind=kind)


# Private releases


def ask(world: World, data: Any = None, **more: Any) -> Any:
    public = [name for name in world.used if name != world.response]
    asked = {"public": public, "seed": world.seed, **world.asked, **more}
    return answer(lambda: dc.release_mixed(world.formula, arrow(world.columns) if data is None else data, **asked))


def check(world: World) -> Any:
    public = [name for name in world.used if name != world.response]
    return answer(lambda: dc.release_mixed.check(world.formula, arrow(world.columns), public=public, **world.asked))


ODD = (None, math.nan, math.inf, -math.inf, 1e308, -1e308, -0.0, 1e-320)


def _look_private(world: World) -> list[float]:
    before, found = check(world), ask(world)
    agrees(refused(before) == refused(found), "check and release differ", before, found)
    known = replace(world, response=world.used[1]) if len(world.used) > 1 else None  # public columns alone
    if known is not None and complete(known).rows < world.rows:
        agrees(refused(found), "a public column that lacks values was released", found)
    _neighbours(world, found)
    if world.seed % 5 == 0:
        _paid(world, before)
    if refused(found):
        agrees(before == found, "check and release refuse in other words", before, found)
        return []
    return [*_promised(world, before, found), *_metamorphic_private(world, found)]


def _public(found: Any) -> Any:
    """All that a release shows whatever the responses are: not its numbers, and notes on them."""
    if refused(found):
        return found
    tidy = found.tidy(levels=True)
    known = {name: tidy[name].to_pylist() for name in ("effect", "group", "term", "level")}
    return known, found.rows, found.names, str(found.guarantee), str(found.check), found.clip


def _neighbours(world: World, found: Any) -> None:
    """Whatever one response holds, or none: the same words, the same public facts, and the numbers that are stated."""
    rng = np.random.default_rng([2, world.seed])
    row, boolean = (
        int(rng.integers(world.rows)),
        isinstance(next((v for v in world.columns[world.response] if v is not None), 0.0), bool),
    )
    shown = _public(found)

    def replaced(value: Any) -> World:
        return world.with_column(
            world.response, [value if i == row else v for i, v in enumerate(world.columns[world.response])]
        )

    for odd in (True, False, None) if boolean else [ODD[i] for i in rng.permutation(len(ODD))[:3]]:
        given = ask(replaced(odd))
        agrees(
            _public(given) == shown,
            "one response changes what is public",
            odd,
            _public(given),
            shown,
        )
    if refused(found) or boolean:
        return
    lower, upper = world.asked["bounds"]
    middle = sum(world.asked.get("clip", (lower, upper))) / 2
    for one, other in (
        (None, math.nan),
        (math.inf, math.nan),
        (-math.inf, None),
        (1e308, upper),
        (-1e308, lower),
        (None, middle),
    ):
        given, meant = ask(replaced(one)), ask(replaced(other))
        agrees(not refused(given) and not refused(meant), "an odd response is refused", given, meant)
        agrees(
            np.array_equal(given.beta, meant.beta, equal_nan=True),
            "an odd response counts as another than is said",
            one,
            other,
            given.beta,
            meant.beta,
        )


def _paid(world: World, before: Any) -> None:
    """What is refused is refused before it is paid; what is paid is the price that was told."""
    with tempfile.TemporaryDirectory() as path:
        ledger = Path(path) / "ledger.db"
        key = "rho" if "rho" in world.asked else "epsilon"
        budget = dc.Concentrated("2000") if key == "rho" else dc.Pure("2000")
        given = ask(world, seed=None, ledger=str(ledger), budget=budget, dataset="world", name="one")
        agrees(refused(given) == refused(before), "check and a paid release differ", before, given)
        spent = (
            [entry for entry in dc.Ledger.open(ledger).entries() if entry.kind == "charge"] if ledger.exists() else []
        )
        agrees(len(spent) == (not refused(given)), "what was paid", given, spent)


def _promised(world: World, before: Any, found: Any) -> list[float]:
    """What was told before is what came, and estimates are off by the noise that was told."""
    expected = before.expected
    agrees(expected.names == found.names, "names in check and release", expected.names, found.names)
    agrees(expected.rows == found.rows, "rows", expected.rows, found.rows)
    agrees(found.rows == world.rows or world.lags, "rows", found.rows)  # rows without their lags only serve as lags
    agrees(str(before.guarantee.loss) == str(found.guarantee.loss), "the price", found.guarantee)
    agrees(
        all(math.isfinite(v) and v > 0 for v in (*expected.error, *expected.noise)),
        "an expected error that is none",
        expected.error,
        expected.noise,
    )
    for row in found.tidy(levels=True).to_pylist():
        if row["estimate"] is None:
            agrees(row["flag"] and world.door == "private counts", "an estimate that is missing and not said", row)
            agrees(row["std_error"] is row["lower"] is row["upper"] is None, "an interval around nothing", row)
            continue
        agrees(math.isfinite(row["estimate"]), "an estimate that is not finite", row)
        agrees(
            all(row[key] is None or math.isfinite(row[key]) for key in ("std_error", "lower", "upper")),
            "an interval that is not finite",
            row,
        )
        if row["lower"] is not None:
            agrees(row["lower"] <= row["estimate"] <= row["upper"], "an interval without its estimate", row)
    return _noise(world, before, found)


def clipped(world: World) -> np.ndarray:
    """The response as it counts: missing and infinite in the middle, all else within the bounds, then the clip."""
    lower, upper = (float(end) for end in world.asked.get("bounds", (0, 1)))
    y = [math.nan if v is None else float(v) for v in world.columns[world.response]]
    low, high = world.asked.get("clip", (lower, upper))
    return np.array([(low + high) / 2 if not math.isfinite(v) else min(max(v, low), high) for v in y])


FAR = 60.0
"""Deviations of noise beyond which no draw of a Laplace law lies, but for one in e^80."""


def _noise(world: World, before: Any, found: Any) -> list[float]:
    """A linear model is least squares of the clipped response plus noise of the deviation that was told."""
    if world.door != "private" or world.asked["method"] != "moments" or world.random or world.lags:
        return []
    matrices, _ = dense(world.with_column(world.response, clipped(world).tolist()))
    if matrices.doubtful or list(found.names) != matrices.names:
        agrees(matrices.doubtful, "names of coefficients", found.names, matrices.names)
        return []
    scale = np.linalg.norm(matrices.X, axis=0)
    plain = np.linalg.lstsq(matrices.X / scale, matrices.y, rcond=None)[0] / scale
    off = (found.beta - plain) / np.array(before.expected.noise)
    agrees(
        (np.abs(off) < FAR).all(),
        "further off than noise can be",
        found.fixed,
        plain,
        before.expected.noise,
    )
    return off.tolist()


def _metamorphic_private(world: World, found: Any) -> list[float]:
    """With one seed: the same numbers for shuffled rows, renamed levels, another unit, another frame."""

    def same(given: Any, kind: str, *, unit: float = 1.0, names: Callable[[str], str] = lambda name: name) -> None:
        agrees(not refused(given), kind, given)
        agrees([names(name) for name in found.names] == list(given.names), kind, found.names, given.names)
        error = np.array(found.check.expected.error) if found.covariance is None else np.array([*found.se.values()])
        if np.isnan(found.beta).all() and np.isnan(given.beta).all():
            return
        units = np.where(np.arange(len(error)) < len(error) - len(world.lags), unit, 1.0)  # lags have none
        of_error, of_value = (0.05, 1e-5) if world.asked.get("method") == "paper" else (1e-3, 1e-9)
        close(units * found.beta, given.beta, by=units * of_error * error + of_value * np.abs(given.beta), kind=kind)

    with tempfile.TemporaryDirectory() as path:
        kind = kind_of(world)
        same(ask(world, of_kind(world, kind, Path(path))), f"read from {kind}")
    other, names = _renamed(world)
    same(ask(other), "renamed levels", names=names)
    if world.asked.get("method") == "moments":
        same(ask(shuffled(world)), "shuffled rows")
    if world.door == "private":
        ends = {key: tuple(1024 * end for end in world.asked[key]) for key in ("bounds", "clip") if key in world.asked}
        y = [None if v is None else v * 1024 if abs(v) < 1e300 else v for v in world.columns[world.response]]
        scaled = replace(world.with_column(world.response, y), asked={**world.asked, **ends})
        same(ask(scaled), "response in another unit", unit=1024.0)
    return []


NOISE = (0.7, 1.4)
"""Root mean square of estimates' noise over what was told, within which it lies if `check` told the truth."""
ENOUGH = 200


def many(seed: int, count: int, *, shrinking: bool = True) -> list[Found[World]]:
    """The faults of so many worlds from a seed on; wrong noise shows in all of them together."""
    off: list[float] = []
    found = small.many(drawn, lambda world: off.extend(look(world)), smaller, script, seed, count, shrinking=shrinking)
    size = float(np.sqrt(np.mean(np.square(off)))) if len(off) >= ENOUGH else 1.0
    if not NOISE[0] < size < NOISE[1]:
        fault = small.Fault("noise is another than check told", f"{size:.2f} times in {len(off)} estimates")
        found.append(Found(seed, fault, drawn(seed), f"many({seed}, {count})"))
    return found
