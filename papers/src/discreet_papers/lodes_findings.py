"""The five findings of section 10.1: each statement of the paper beside the numbers that decide it here.

Statements are shortened. If a finding says "close to 1" or "nearly the same", the limits below decide. All numbers are
in the paper's calibration, because the paper is what is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from discreet.utility.strata import ALL, NAMES

CLOSE = 0.95
"""A rank correlation that is called close to 1."""

SAME = 1.25
"""An L1 ratio that is called nearly the same."""

LOG, GAMMA, LAPLACE = THREE = ("log-laplace", "smooth-gamma", "smooth-laplace")
WITHIN = {LOG: 0.65, GAMMA: 0.29, LAPLACE: 0.75}
"""Finding 1: the share of counts within 10 points of the current system's relative error."""


@dataclass(frozen=True, slots=True)
class PaperStatement:
    """A statement of the paper, our numbers for it, and whether they agree."""

    finding: int
    paper: str
    ours: str
    agrees: bool


def findings(results: Mapping[str, Any]) -> list[PaperStatement]:
    """All statements, in the paper's order."""
    numbers = _Numbers(results)
    return [*_one(numbers), *_two(numbers), *_three(numbers), *_four(numbers), *_five(numbers)]


class _Numbers:
    """Results by what they are about; NaN if there is none, so that no comparison is true."""

    def __init__(self, results: Mapping[str, Any]) -> None:
        def table(rows: Iterable[Mapping[str, Any]], key: Sequence[str], value: str) -> dict[tuple[Any, ...], float]:
            return {
                tuple(row[name] for name in key): row[value]
                for row in rows
                if row["calibration"] == "paper"
                and row["strength"] == ("strong" if row["workload"] == 1 else "weak")
                and row[value] is not None
            }

        point = ["workload", "mechanism", "alpha", "epsilon"]
        self._ratio = table(results["l1_ratio"], [*point, "stratum"], "ratio")
        self._rho = table(results["spearman"], [*point, "stratum"], "spearman")
        self._within = table(results["within_10_points"], point, "share")
        self.alphas = sorted({key[2] for key in self._ratio})
        self.epsilons = sorted({key[3] for key in self._ratio})

    def ratio(self, workload: int, name: str, alpha: float, epsilon: float, stratum: str = ALL) -> float:
        return self._ratio.get((workload, name, alpha, epsilon, stratum), float("nan"))

    def rho(self, ranking: int, name: str, epsilon: float, stratum: str = ALL) -> float:
        """At alpha 0.1. Ranking 1 is of workload 1, Ranking 2 of workload 2."""
        return self._rho.get((ranking, name, 0.1, epsilon, stratum), float("nan"))

    def within(self, name: str) -> float:
        return self._within.get((1, name, 0.1, 2.0), float("nan"))


def _said(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in values.items() if value == value) or "none is feasible"


def _known(values: Mapping[str, float]) -> list[float]:
    """The feasible values, without NaN; a single NaN if there are none, so that no comparison is true."""
    return [value for value in values.values() if value == value] or [float("nan")]


def _one(of: _Numbers) -> Iterator[PaperStatement]:
    ratio = {name: of.ratio(1, name, 0.1, 2.0) for name in THREE}
    for name in (LOG, GAMMA):
        yield PaperStatement(
            1,
            f"Establishment attributes only, alpha 0.1, epsilon 2: {name} is within a factor of 3 of the error of the "
            "current system.",
            _said({"ratio": ratio[name]}),
            ratio[name] <= 3,
        )
    yield PaperStatement(
        1, f"{LAPLACE} does better than the current system.", _said({"ratio": ratio[LAPLACE]}), ratio[LAPLACE] < 1
    )
    rho = {f"{LAPLACE} at {e:g}": of.rho(1, LAPLACE, e) for e in of.epsilons if e >= 2}
    rho |= {f"{name} at 4": of.rho(1, name, 4.0) for name in (LOG, GAMMA)}
    yield PaperStatement(
        1,
        f"Ranking 1: {LAPLACE} is close to 1 for epsilon of at least 2, the others for 4.",
        _said(rho),
        min(_known(rho)) >= CLOSE,
    )
    large = {f"{LAPLACE} at {e:g}": of.rho(1, LAPLACE, e, NAMES[3]) for e in of.epsilons}
    large |= {f"{LOG} at {e:g}": of.rho(1, LOG, e, NAMES[3]) for e in of.epsilons if e >= 1}
    yield PaperStatement(
        1,
        f"Ranking 1 in large places: {LAPLACE} is close to 1 for all epsilon, {LOG} for epsilon of at least 1.",
        _said(large),
        min(_known(large)) >= CLOSE,
    )
    for name, share in WITHIN.items():
        ours = of.within(name)
        yield PaperStatement(
            1,
            f"The relative error of {name} is within 10 points of the current system's for {100 * share:.0f} % of "
            "the counts.",
            f"{100 * ours:.0f} %",
            abs(ours - share) <= 0.1,
        )


def _two(of: _Numbers) -> Iterator[PaperStatement]:
    log, laplace = of.ratio(2, LOG, 0.1, 2.0), of.ratio(2, LAPLACE, 0.1, 2.0)
    yield PaperStatement(
        2,
        f"Single queries with worker attributes, weak definition, alpha 0.1, epsilon 2: {LOG} is within a factor of 3.",
        _said({"ratio": log}),
        log <= 3,
    )
    yield PaperStatement(2, f"{LAPLACE} has nearly the same error.", _said({"ratio": laplace}), laplace <= SAME)
    four = {f"alpha {a:g}:": of.ratio(2, LAPLACE, a, 4.0) for a in of.alphas}
    yield PaperStatement(
        2,
        f"At epsilon 4 {LAPLACE} outperforms the current system for all alpha.",
        _said(four),
        max(_known(four)) < 1,
    )
    rho = {name: of.rho(2, name, 4.0) for name in THREE}
    yield PaperStatement(
        2,
        f"Ranking 2: only {LAPLACE} approaches 1, at epsilon 4.",
        _said(rho),
        rho[LAPLACE] >= CLOSE > max(rho[LOG], rho[GAMMA]),
    )
    large = {f"{n} at {e:g}": of.rho(2, n, e, NAMES[3]) for n in (LOG, LAPLACE) for e in of.epsilons}
    yield PaperStatement(
        2,
        f"Ranking 2 in large places: {LOG} and {LAPLACE} perform well for all epsilon.",
        _said(large),
        min(_known(large)) >= CLOSE,
    )


def _three(of: _Numbers) -> Iterator[PaperStatement]:
    log = {f"alpha {a:g}:": of.ratio(3, LOG, a, 4.0) for a in of.alphas if a <= 0.05}
    yield PaperStatement(
        3,
        f"Marginals with worker attributes, epsilon 4: {LOG} is within a factor of 10 for alpha of at most 0.05.",
        _said(log),
        max(_known(log)) <= 10,
    )
    laplace = {f"alpha {a:g}:": of.ratio(3, LAPLACE, a, 4.0) for a in of.alphas}
    yield PaperStatement(
        3, f"{LAPLACE} is within a factor of 10 for all alpha.", _said(laplace), max(_known(laplace)) <= 10
    )
    least = of.ratio(3, LAPLACE, 0.01, 4.0)
    yield PaperStatement(3, f"{LAPLACE} is within a factor of 3 at alpha 0.01.", _said({"ratio": least}), least <= 3)


def _four(of: _Numbers) -> Iterator[PaperStatement]:
    for name in THREE:
        steps = {s: of.ratio(1, name, 0.1, 2.0, s) for s in NAMES}
        yield PaperStatement(
            4,
            f"The error of {name} falls against the current system's as places grow.",
            _said(steps),
            all(later < earlier for earlier, later in pairwise(steps.values())),
        )
    for name in THREE:
        steps = {s: of.rho(1, name, 2.0, s) for s in NAMES}
        gains = [later - earlier for earlier, later in pairwise(steps.values())]
        yield PaperStatement(
            4,
            f"Ranking 1 by {name} improves as places grow, most from the smallest places to the next.",
            _said(steps),
            min(gains) > 0 and gains[0] == max(gains),
        )


def _five(of: _Numbers) -> Iterator[PaperStatement]:
    points = [[of.ratio(w, name, a, e) for name in THREE] for w in (1, 2, 3) for a in of.alphas for e in of.epsilons]
    points = [point for point in points if all(value == value for value in point)]
    best = sum(laplace < min(log, gamma) for log, gamma, laplace in points)
    log_first = sum(log < gamma for log, gamma, _ in points)
    yield PaperStatement(
        5,
        f"{LAPLACE} performs best of the three in all experiments.",
        f"least error at {best} of the {len(points)} points where all three are feasible",
        best == len(points) > 0,
    )
    yield PaperStatement(
        5,
        f"{LOG} and {GAMMA} perform similarly, and which is better is not consistent.",
        f"{LOG} has less error at {log_first} of {len(points)} points",
        0 < log_first < len(points),
    )
