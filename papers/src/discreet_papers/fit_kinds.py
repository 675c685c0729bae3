"""Models without noise, Bayesian ones and private ones with lags, on kinds of data: every interval that they print.

Fixed effects by Wald, Satterthwaite, profile and bootstraps; new responses; variances and fixed effects of a posterior;
counts and shares; lags of a confidential response. The kinds are those of `kinds`, and panels of their own for lags.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.linear.private import release_mixed
from discreet.models.linear.private.slopes import WORD
from discreet.words.cases import case_of
from discreet.words.caveats import (
    A_LINE,
    ABOVE_ZERO,
    AS_CLIPPED,
    LEANS,
    NORMAL,
    ONE_LAG,
    ONE_MEAN,
    ONE_SLOPE,
    ONE_VARIANCE,
    PRIOR,
    stated,
)
from discreet_papers import kinds
from discreet_papers.coverage_rule import Row, binomial_error, in_errors, row, times_of

if TYPE_CHECKING:
    from discreet.models.linear.intervals import Method

SUPPOSED = {
    kinds.UNEVEN: f"{ONE_VARIANCE}, as by lme4",
    kinds.SLOPES: f"{ONE_SLOPE}, as by lme4",
    "a curve taken for a line": A_LINE,
    "effects that go with sizes": "effects are assumed not to go with sizes, as by lme4",
}
OF_ALL = ("effects that go with sizes", kinds.SLOPES)  # kinds that matter for the intercept too
PLAIN = ("wald", "satterthwaite", "residual")
SLOW = ("profile", "parametric")  # in the kinds of HERE alone
HERE = ("normal", "skewed residuals and effects")
REPLICATES = 99
BY_GROUP = "residual"  # valid where variances or slopes differ
PHI, SERIES, PERIODS = 0.5, 100, 30
FAR, OWN, SHIFTED = "heavy tails (t, 3 degrees)", "variances of their own", "a break in the middle"
APART = "coefficients of their own"
SAID = {SHIFTED: ONE_MEAN, "skewed shocks": AS_CLIPPED, FAR: AS_CLIPPED, OWN: ONE_VARIANCE, APART: ONE_LAG}
"""The warnings about lags before they are paid for, where it matters."""

LAGGED = "y ~ kind + lag(y, 1) + (1 | g)"
SHOCKS: dict[str, Callable[[np.random.Generator, int, int], Matrix]] = {
    "normal": lambda rng, n, t: rng.normal(size=(n, t)),
    "skewed shocks": lambda rng, n, t: rng.exponential(size=(n, t)) - 1,
    FAR: lambda rng, n, t: rng.standard_t(3, (n, t)) / np.sqrt(3),
    OWN: lambda rng, n, t: rng.normal(size=(n, t)) * np.exp(rng.normal(0, 0.5, (n, 1)) - 0.25),
    SHIFTED: lambda rng, n, t: rng.normal(size=(n, t)),
    APART: lambda rng, n, t: rng.normal(size=(n, t)),
}
ASKED: dict[str, Any] = {"public": ["kind", "g", "s", "t"], "series": ["s"], "time": "t", "bounds": (0, 2)}
SPREAD = 0.2  # of coefficients of lags, where series have their own
BREAK = 0.5  # by which the mean of every series moves, in deviations of a response


def plain(kind: str, sets: int, seed: int, methods: tuple[str, ...] = PLAIN) -> Iterator[Row]:
    """Fixed effects and new responses of fits without noise."""
    from discreet.models.mixed import mixed

    design = kinds.SimulatedDesign.of(np.random.default_rng(seed), kind)
    rng = np.random.default_rng([seed, 1 + list(kinds.KINDS).index(kind)])
    fixed = kinds.BETA + design.fitted(kinds._mean(kind, design))
    seen: dict[tuple[str, str], list[tuple[bool, float, float]]] = {}
    inside = []
    for number in range(sets):
        u, e = kinds.KINDS[kind](design, rng)
        mean = kinds.BETA[0] + kinds.BETA[1] * design.x + u[design.g]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a variance of 0 where there are no effects
            fit = mixed(kinds.FORMULA, {"y": mean + e, "x": design.x, "g": design.g})
            for method in methods:
                more: dict[str, Any] = {"replicates": REPLICATES, "seed": number} if method in BOOTSTRAPS else {}
                ends = fit.confint(**more, method=cast("Method", method))
                for k, name in enumerate(kinds.NAMES):
                    low, high = ends[name]
                    off_by = fit.fixed[name] - fixed[k]
                    seen.setdefault((method, name), []).append((low <= fixed[k] <= high, (high - low) / 2, off_by))
        if methods == PLAIN:
            found = fit.prediction()
            new = mean + kinds.KINDS[kind](design, rng)[1]
            inside.append(float(np.mean((found.lower <= new) & (new <= found.upper))))
    for (method, name), parts in seen.items():
        held, half, off = (np.array(part, dtype=float) for part in zip(*parts, strict=True))
        said = SUPPOSED.get(kind, "") if name == "x" or kind in OF_ALL else ""
        yield row(
            f"mixed model, no noise, {method}, {name}",
            kind,
            None,
            float(held.mean()),
            binomial_error(sets),
            before="" if method == BY_GROUP and kind in (kinds.UNEVEN, kinds.SLOPES) else said,
            times=times_of(half, off),
            bias=_bias(off),
        )
    if inside:
        before = SUPPOSED.get(kind, "")
        error = float(np.std(inside, ddof=1) / np.sqrt(sets))
        yield row("mixed model, no noise, new responses", kind, None, float(np.mean(inside)), error, before=before)


BOOTSTRAPS = ("parametric", "residual")


def _bias(off: Vector) -> float:
    return in_errors(float(off.mean()), float(off.std(ddof=1) / np.sqrt(len(off))), len(off))


def bayesian(kind: str, sets: int, seed: int) -> Iterator[Row]:
    """95 % intervals of the Bayesian model: fixed effects, both variances, and all effects together."""
    from discreet.models.bayes.blmm.prior import Prior
    from discreet.models.mixed import mixed

    design = kinds.SimulatedDesign.of(np.random.default_rng(seed), kind)
    rng = np.random.default_rng([seed, 1 + list(kinds.KINDS).index(kind)])
    fixed = kinds.BETA + design.fitted(kinds._mean(kind, design))
    residual = kinds._residual(kind, design, fixed)
    truth = {
        "(Intercept)": fixed[0],
        "x": fixed[1],
        "var g": 0.0 if kind == "no effects" else kinds.TAU**2,
        "var Residual": residual,
    }
    seen: dict[str, list[tuple[bool, float, float]]] = {}
    for _ in range(sets):
        u, e = kinds.KINDS[kind](design, rng)
        y = kinds.BETA[0] + kinds.BETA[1] * design.x + u[design.g] + e
        fit = mixed(kinds.FORMULA, {"y": y, "x": design.x, "g": design.g}, prior=Prior())
        marginals = {name: fit.coefficient(name) for name in kinds.NAMES}
        marginals |= {"var g": fit.variance("g"), "var Residual": fit.variance("Residual")}
        for name, marginal in marginals.items():
            low, middle, high = (float(q) for q in np.ravel(marginal.quantile(np.array([0.025, 0.5, 0.975]))))
            seen.setdefault(name, []).append((low <= truth[name] <= high, (high - low) / 2, middle - truth[name]))
    for name, parts in seen.items():
        held, half, off = (np.array(part, dtype=float) for part in zip(*parts, strict=True))
        skewed = NORMAL if name.startswith("var") and kind not in REGULAR else ""
        if name == "var g":
            skewed = {"no effects": ABOVE_ZERO, kinds.FEW_LARGE: LEANS}.get(kind, skewed)
        yield row(
            f"Bayesian mixed model, {name}",
            kind,
            None,
            float(held.mean()),
            binomial_error(sets),
            before=skewed or (SUPPOSED.get(kind, "") if name != "(Intercept)" or kind in OF_ALL else ""),
            times=times_of(half, off),
            bias=None if name.startswith("var") else _bias(off),  # a median of a skewed posterior is not a mean
            at_least=PRIOR if kind == "no effects" and not name.startswith("var") else "",
        )


REGULAR = ("normal", "no effects", *OF_ALL, *kinds.COLUMNS, kinds.FEW_LARGE, kinds.UNEVEN)


def panel(kind: str, rng: np.random.Generator) -> dict[str, Any]:
    """Series in groups of two, with lag PHI; their groups and kinds are public."""
    n, groups = SERIES, SERIES // 2
    u, letter = np.repeat(rng.normal(0, 0.2 * (1 - PHI), groups), 2), np.arange(n) % 2
    sigma = 0.23 * np.sqrt(1 - PHI**2)
    shock = sigma * SHOCKS[kind](rng, n, PERIODS + 40)
    y, phi = np.ones((n, PERIODS + 40)), np.full(n, PHI)
    if kind == APART:
        phi = np.clip(PHI + SPREAD * rng.normal(size=n), 0, 0.95)
    for period in range(1, PERIODS + 40):
        more = BREAK * 0.23 * (1 - PHI) if kind == SHIFTED and period >= 40 + PERIODS // 2 else 0.0
        y[:, period] = (1 - phi) + 0.05 * (letter - 0.5) + u + more + phi * y[:, period - 1] + shock[:, period]
    s, t = np.divmod(np.arange(n * PERIODS), PERIODS)
    return {
        "y": y[s, t + 40],
        "s": np.array([f"s{i:03d}" for i in range(n)])[s],
        "g": np.array([f"g{i:02d}" for i in range(groups)])[s // 2],
        "kind": np.array(["a", "b"])[letter[s]],
        "t": t,
    }


def said_of_lags(kind: str, epsilon: float) -> str:
    """The words of SAID, if the check of such a release states them: at small epsilons some do not matter."""
    word = SAID.get(kind, "")
    check = release_mixed.check(LAGGED, panel(kind, np.random.default_rng(0)), epsilon=epsilon, **ASKED)
    return word if word in stated(check.expected.notes) else ""


def lags(kind: str, epsilon: float, sets: int, seed: int) -> Iterator[Row]:
    """The coefficient of a private lag, and of a public column beside it."""
    rng = np.random.default_rng([seed, 1 + list(SHOCKS).index(kind)])
    truth = {"lag(y, 1)": PHI, "kind[b]": 0.05}
    seen: dict[str, list[tuple[bool, float, float]]] = {name: [] for name in truth}
    told, before = [], said_of_lags(kind, epsilon)
    for number in range(sets):
        fit = release_mixed(LAGGED, panel(kind, rng), epsilon=epsilon, seed=1000 * seed + number, **ASKED)
        told.append(
            any(
                case_of(flag.effect, {"fixed": True, "random": False, "variance": False}) and flag.word != WORD
                for flag in fit.flags
            )
        )
        for at, name in zip((-1, 1), truth, strict=True):
            wrong, reach = float(fit.beta[at]) - truth[name], 1.959964 * float(fit.se[fit.names[at]] or 0.0)
            seen[name].append((abs(wrong) <= reach, reach, wrong))
    for name, parts in seen.items():
        held, half, off = (np.array(part, dtype=float) for part in zip(*parts, strict=True))
        yield row(
            f"private model with a lag, {name}",
            kind,
            epsilon,
            float(held.mean()),
            binomial_error(sets),
            before=before if kind != OWN or name == "lag(y, 1)" else "",
            told=float(np.mean(told)),
            times=times_of(half, off),
            bias=_bias(off),
        )
