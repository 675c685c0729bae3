"""Every kind of interval that the product prints, on every kind of data: does it hold, or is it said before paying?

Private tables by every mechanism, alone, added up and as sums; sums of pay, means, flows and rates; changes between
releases; private mixed models by every method, with lags; posterior summaries; objective perturbation; chances, rates,
areas and numbers of right alarms of large changes; mixed models without noise, Bayesian ones among them. Each part is a
list of tasks, which run side by side; `coverage_rule` judges. A task whose first trials leave open whether a cell is a
fault is done again with four times as many, other trials, and these alone count.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from discreet.models.linear.private.notes import SMALL_BLOCKS
from discreet.pages.study import Study
from discreet.words.cases import case_of
from discreet.words.caveats import (
    A_LINE,
    A_TENTH,
    CONFIDENTIAL,
    DOUBT,
    NOT_MEASURED,
    NOT_SEEN,
    ONE_VARIANCE,
    SKEWED,
    WHOLE,
)
from discreet.words.progress import Progress, silent
from discreet_papers import amount_kinds, chance_kinds, fit_kinds, kinds, perturbation_kinds, posterior_kinds, tables
from discreet_papers.coverage_page import page_of
from discreet_papers.coverage_rule import LEVEL, Row, binomial_error, doubtful, in_errors, label, row, summary

TITLE = "Every interval on every kind of data: does it hold, or is it said before paying?"
POSTERIOR_ROWS, POSTERIOR_EPSILONS, PERTURBED_EPSILONS = 20_000, (0.5, 2.0), (0.5, 2.0, 8.0)
LAG_EPSILONS = (5.0, 20.0)
FIRST = {
    "moments": 100,
    "strict": 40,
    "paper": 24,
    "lags": 60,
    "plain": 100,
    "slow": 40,
    "bayesian": 60,
    "posterior": 25,
    "perturbation": 60,
    "panels": 30,
    "areas": 120,
}
"""Trials of a cell before anything is looked at; `MORE` times as many decide where they leave a doubt."""

QUICK = 6  # times fewer
MORE = 4
RARE = {"diamonds: price by cut = Fair (3 %)": A_TENTH}
FEW = 30  # large changes: below, comparisons say that limits are too narrow (`changes.compare`)


@dataclass(frozen=True)
class Task:
    """Trials of one kind of data: `run(sets, seed)` makes the rows. Without `sets` they are judged at once."""

    part: str
    what: str
    run: Callable[[int, int], Iterable[Row]]
    sets: int | None = None

    def rows(self, seed: int) -> list[Row]:
        """The rows of first trials or, where these leave a doubt, of more and other ones."""
        found = list(self.run(self.sets or 0, seed))
        if self.sets is None or not any(doubtful(each) for each in found):
            return found
        return list(self.run(MORE * self.sets, seed + 1))


def of_tables(quick: bool, sets: int, seed: int) -> Iterator[Row]:
    found = tables.run(quick=quick, seed=seed).results
    for each in found["widths"]:
        for how in ("without", "with"):
            said = "no interval" if each[f"held {how}"] is None else ""
            name = f"table, {each['table']}" + (", noisy sizes" if how == "with" else "")
            times = None if each[f"mean {how}"] is None else each[f"mean {how}"] / max(each["point"], 1.0)
            yield row(
                *(name, each["establishments"], float(each["epsilon"]), each[f"held {how}"]),
                binomial_error(each["cells"]),
                before=said,
                times=times,
                at_least=CONFIDENTIAL,
            )
    for each in found["sums"]:
        bias = in_errors(each["bias"], each["standard error"], found["releases"])
        name = f"tables that add up, {each['tables']}, by {each['by']}"
        error = binomial_error(each["counts"] * found["releases"])
        yield row(name, each["sizes"], 1.0, each["held after"], error, bias=bias, at_least=CONFIDENTIAL)


def of_models(kind: str, method: str, epsilon: float, sets: int, seed: int) -> Iterator[Row]:
    each = kinds.measured(kind, method, epsilon, sets, seed)
    moments = case_of(method, {"moments": True, "paper": False, "strict": False})
    for name in (*kinds.NAMES, "effects", "variance", "residual"):
        before = kinds.said_before(kind, method, epsilon, seed, name) if moments else SMALL_BLOCKS
        told = each["told"][name if name in each["told"] else "fixed"]
        noted = each["equal variances noted"] if kind == kinds.UNEVEN and name in kinds.NAMES else 0.0
        yield row(
            *(f"mixed model, {method}, {name}", kind, epsilon, each.get(f"held {name}")),
            each.get(f"error {name}", binomial_error(sets)),
            before="" if before in (NOT_MEASURED, NOT_SEEN) and name == "x" else before,
            told=max(told, noted),
            times=each.get(f"times {name}"),
            bias=each.get(f"bias {name}"),
            at_least=DOUBT if moments else "",
        )


def of_posteriors(kind: str, epsilon: float, data: Path | None, sets: int, seed: int) -> Iterator[Row]:
    of = posterior_kinds.KINDS | posterior_kinds.FURTHER | (posterior_kinds.diamonds(data) if data else {})
    rng = np.random.default_rng([seed, 1 + list(of).index(kind)])
    found = posterior_kinds.kinds(sets, rng, rows=POSTERIOR_ROWS, epsilons=[epsilon], of={kind: of[kind]})
    for each in found:
        for summary_of in posterior_kinds.SUMMARIES:
            before = each[f"{summary_of}_before"] or ("" if each["straight"] else A_LINE) or RARE.get(kind, "")
            bias = None
            if f"{summary_of}_bias" in each:
                beyond = max(abs(each[f"{summary_of}_bias"]) - each[f"{summary_of}_allowed"], 0.0)
                bias = in_errors(beyond, each[f"{summary_of}_bias_error"], sets)
            yield row(
                f"posterior {summary_of.replace('_', ' at ')}, {each['coefficient']}",
                *(kind, epsilon, each[summary_of], each[f"{summary_of}_error"]),
                before=before,
                told=each[f"{summary_of}_noted"],
                times=each.get(f"{summary_of}_times"),
                bias=bias,
                at_least=SKEWED,
            )


def of_perturbation(kind: str, epsilon: float, sets: int, seed: int) -> Iterator[Row]:
    rng = np.random.default_rng([seed, 1 + list(perturbation_kinds.KINDS).index(kind)])
    for each in perturbation_kinds.kinds(sets, rng, epsilons=[epsilon], of=[kind]):
        uneven = ONE_VARIANCE if kind == perturbation_kinds.UNEVEN else ""
        yield row(
            f"objective perturbation, {each['coefficient']}",
            *(kind, epsilon, each["held"], each["held_error"]),
            before=each["before"] or uneven,
            told=each["none"],
            times=each["times"],
            bias=in_errors(max(abs(each["bias"]) - each["allowed"], 0.0), each["bias_error"], sets),
            at_least=DOUBT,
        )


def of_panels(kind: str, sets: int, seed: int) -> Iterator[Row]:
    each = chance_kinds.chances(kind, sets, np.random.default_rng([seed, 1 + list(chance_kinds.PANELS).index(kind)]))
    for name, what in CHANCES.items():
        yield row(what, kind, None, None, 0.0, bias=in_errors(each[name], each[f"{name}_error"], each["sets"]))
    level = chance_kinds.RIGHT
    yield row(
        *("number of right alarms, for 90 %", kind, None, each["within"], binomial_error(sets, level)),
        level=level,
        at_least=WHOLE,
    )


def of_areas(kind: str, positives: int, sets: int, seed: int) -> Iterator[Row]:
    each = chance_kinds.areas(kind, positives, sets, np.random.default_rng([seed, 1 + positives]))
    bias = in_errors(each["bias"], each["bias_error"], each["sets"])
    data = f"{kind}, {positives} large changes"
    yield row(
        *("partial area", data, None, each["held"], each["held_error"]),
        told=float(positives < FEW),
        times=each["times"],
        bias=bias,
    )


CHANCES = {
    "flags": "chances of flagged series",
    "ranked": "chances of all series",
    "tpr": "true positive rate of the rule",
    "fpr": "false positive rate of the rule",
}


def _once(run: Callable[[int, int], Iterable[Row]], trials: int, sets: int, seed: int) -> Iterable[Row]:
    return run(trials, seed)


def tasks(*, quick: bool, data: Path | None) -> list[Task]:
    """Everything that is tried, the longest tasks first."""
    first = {name: max(sets // QUICK, 4) if quick else sets for name, sets in FIRST.items()}
    cells, releases = (300, 4) if quick else (4_000, 25)
    found = [Task("tables", "counts", partial(of_tables, quick))]
    for name, run, trials in (
        ("sums and means", amount_kinds.sums_and_means, cells),
        ("flows", amount_kinds.flows, cells // 2),
        ("sums of a finest table", amount_kinds.finest, releases),
        ("changes between releases", amount_kinds.between, releases),
    ):
        found.append(Task("sums, means and flows", name, partial(_once, run, trials)))
    every = [*posterior_kinds.KINDS, *posterior_kinds.FURTHER, *(posterior_kinds.diamonds(data) if data else ())]
    for kind in every:
        for epsilon in POSTERIOR_EPSILONS[-1:] if quick else POSTERIOR_EPSILONS:
            run_of = partial(of_posteriors, kind, epsilon, data)
            found.append(Task("posterior summaries", kind, run_of, first["posterior"]))
    for kind in kinds.KINDS:
        for method, epsilons in kinds.EPSILONS.items():
            for epsilon in epsilons[-1:] if quick else epsilons:
                found += [Task("models", kind, partial(of_models, kind, method, epsilon), first[method])]
        found.append(Task("models without noise", kind, partial(fit_kinds.plain, kind), first["plain"]))
        found.append(Task("Bayesian models", kind, partial(fit_kinds.bayesian, kind), first["bayesian"]))
    for kind in fit_kinds.HERE[:1] if quick else fit_kinds.HERE:
        slow = partial(fit_kinds.plain, kind, methods=fit_kinds.SLOW)
        found.append(Task("models without noise", f"{kind}, profile and bootstrap", slow, first["slow"]))
    for kind in fit_kinds.SHOCKS:
        for epsilon in LAG_EPSILONS[-1:] if quick else LAG_EPSILONS:
            found += [Task("models with lags", kind, partial(fit_kinds.lags, kind, epsilon), first["lags"])]
    for kind in perturbation_kinds.KINDS:
        for epsilon in PERTURBED_EPSILONS[1:2] if quick else PERTURBED_EPSILONS:
            run_of = partial(of_perturbation, kind, epsilon)
            found.append(Task("objective perturbation", kind, run_of, first["perturbation"]))
    for kind in chance_kinds.PANELS:
        found += [Task("large changes", kind, partial(of_panels, kind), first["panels"])]
    for kind in chance_kinds.AREAS:
        for positives in chance_kinds.POSITIVES:
            found += [Task("large changes", kind, partial(of_areas, kind, positives), first["areas"])]
    return found


def run(*, quick: bool = False, data: Path | None = None, seed: int = 0, progress: Progress = silent) -> Study:
    """All parts; `data` is a file of diamonds, which is then one more population of posterior summaries."""
    asked = tasks(quick=quick, data=data)
    found: dict[str, list[Row]] = {}
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        waiting = [pool.submit(_rows, task, seed) for task in asked]
        for i, (task, done) in enumerate(zip(asked, waiting, strict=True)):
            progress(f"{task.part}, {task.what}", i / len(asked))
            found.setdefault(task.part, []).extend(done.result())
    return of_parts(found)


def _rows(task: Task, seed: int) -> list[Row]:
    return task.rows(seed)


def of_parts(found: Mapping[str, Sequence[Row]]) -> Study:
    """The study of what the parts found."""
    rows = [{"part": part, **each} for part, parts in found.items() for each in parts]
    results: dict[str, Any] = {
        "rows": rows,
        "short": summary(rows),
        "faults": [label(each) for each in rows if each["fault"]],
        "cells": len(rows),
        "level": LEVEL,
    }
    return Study(name="coverage", title=TITLE, results=results, page=page_of(TITLE, results))
