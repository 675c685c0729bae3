"""Every kind of interval that the product prints, on every kind of data: does it hold, or is it said before paying?

Private tables by every mechanism, alone and added up; private mixed models by every method; posterior summaries;
objective perturbation; chances, rates and areas of large changes; and mixed models without noise. Each part is a study
of its own or a module of kinds; here they become one table with one rule. An interval is short if it holds more rarely
than 93.5 % and two of its standard errors do not explain it; an estimate is off if its mean error is beyond three.
Either is a fault unless it is said: before paying, or by a flag in nine of ten releases.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from discreet.report.page import Heading, Note, Page, Prose, Table
from discreet.studies import chance_kinds, kinds, perturbation_kinds, posterior_kinds, tables
from discreet.studies.study import Progress, Study, silent

TITLE = "Every interval on every kind of data: does it hold, or is it said before paying?"
LEVEL, NEAR, OFF, MOSTLY = 0.95, 0.015, 3.0, 0.9
POSTERIOR_SETS, POSTERIOR_ROWS, POSTERIOR_EPSILONS = 60, 20_000, (0.5, 2.0)
PERTURBED_SETS, PERTURBED_EPSILONS = 200, (0.5, 2.0, 8.0)
PANEL_SETS, AREA_SETS, PLAIN_SETS = 40, 200, 150
A_LINE = "a line is supposed"
RARE = {"diamonds: price by cut = Fair (3 %)": "a tenth of the rows is supposed"}
Row = dict[str, Any]


def row(
    interval: str,
    data: str,
    epsilon: float | None,
    held: float | None,
    error: float,
    *,
    before: str = "",
    told: float = 0.0,
    bias: float | None = None,
) -> Row:
    """One line of the table; `bias` is in standard errors, beyond what was said to be allowed for."""
    silent = not before and told < MOSTLY
    short = held is not None and held < LEVEL - NEAR - 2 * error
    off = bias is not None and abs(bias) > OFF
    return {
        "interval": interval,
        "data": data,
        "epsilon": epsilon,
        "held": held,
        "error": error,
        "bias": bias,
        "before": before,
        "told": told,
        "short": short,
        "off": off,
        "fault": silent and (short or off),
    }


def in_errors(value: float, error: float, trials: int) -> float:
    """A mean over so many trials in its standard errors; what few trials make large by chance counts less."""
    from scipy.special import ndtri, stdtr

    if error <= 0:
        return 0.0
    found = value / error
    return float(np.sign(found) * -ndtri(max(stdtr(trials - 1, -abs(found)), 1e-300)))


def of_tables(*, quick: bool, data: Path | None, seed: int, progress: Progress) -> Iterator[Row]:
    found = tables.run(quick=quick, seed=seed, progress=progress).results
    for each in found["widths"]:
        for how in ("without", "with"):
            said = "no interval" if each[f"held {how}"] is None else ""
            name = f"table, {each['table']}" + (", noisy sizes" if how == "with" else "")
            error = float(np.sqrt(LEVEL * (1 - LEVEL) / each["cells"]))
            yield row(name, each["establishments"], float(each["epsilon"]), each[f"held {how}"], error, before=said)
    for each in found["sums"]:
        error = float(np.sqrt(LEVEL * (1 - LEVEL) / (each["counts"] * found["releases"])))
        bias = in_errors(each["bias"], each["standard error"], found["releases"])
        name = f"tables that add up, {each['tables']}, by {each['by']}"
        yield row(name, each["sizes"], 1.0, each["held after"], error, bias=bias)


def of_models(*, quick: bool, data: Path | None, seed: int, progress: Progress) -> Iterator[Row]:
    for each in kinds.run(quick=quick, seed=seed, progress=progress).results["kinds"]:
        error = float(np.sqrt(LEVEL * (1 - LEVEL) / each["sets"]))
        for name in (*kinds.NAMES, "effects", "variance", "residual"):
            told = each["told"][name if name in each["told"] else "fixed"]
            noted = each["equal variances noted"] if each["data"] == kinds.UNEVEN and name in kinds.NAMES else 0.0
            held, bias = each.get(f"held {name}"), each.get(f"bias {name}")
            before = "blocks are small" if each["method"] != "moments" else ""
            what = f"mixed model, {each['method']}, {name}"
            yield row(
                *(what, each["data"], each["epsilon"], held, error),
                before=before,
                told=max(told, noted),
                bias=bias,
            )


def of_plain_models(*, quick: bool, data: Path | None, seed: int, progress: Progress) -> Iterator[Row]:
    """Mixed models without noise: the intervals of `discreet fit`."""
    from discreet.models import mixed

    sets = 20 if quick else PLAIN_SETS
    for i, kind in enumerate(kinds.KINDS):
        progress(f"models without noise, {kind}", i / len(kinds.KINDS))
        design = kinds.SimulatedDesign.of(np.random.default_rng(seed), kind)
        rng = np.random.default_rng([seed, i])
        fixed = kinds.BETA + design.fitted(kinds._mean(kind, design))
        held, off = [], []
        for _ in range(sets):
            u, e = kinds.KINDS[kind](design, rng)
            y = kinds.BETA[0] + kinds.BETA[1] * design.x + u[design.g] + e
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a variance of 0 where there are no effects
                fit = mixed(kinds.FORMULA, {"y": y, "x": design.x, "g": design.g})
            error = np.array([fit.se[name] for name in kinds.NAMES])
            off.append(np.asarray(fit.beta) - fixed)
            held.append(np.abs(off[-1]) <= 1.959964 * error)
        for k, name in enumerate(kinds.NAMES):
            bias = np.array(off)[:, k]
            yield row(
                *(f"mixed model, no noise, {name}", kind, None, float(np.mean(np.array(held)[:, k]))),
                float(np.sqrt(LEVEL * (1 - LEVEL) / sets)),
                before=SUPPOSED.get(kind, "") if name == "x" or kind == "effects that go with sizes" else "",
                bias=in_errors(float(bias.mean()), float(bias.std(ddof=1) / np.sqrt(sets)), sets),
            )


SUPPOSED = {
    kinds.UNEVEN: "one variance is supposed, as by lme4",
    "a curve taken for a line": A_LINE,
    "effects that go with sizes": "effects are supposed not to go with sizes, as by lme4",
}


def of_posteriors(*, quick: bool, data: Path | None, seed: int, progress: Progress) -> Iterator[Row]:
    sets, of = (8 if quick else POSTERIOR_SETS), posterior_kinds.KINDS | posterior_kinds.FURTHER
    if data is not None:
        of = of | posterior_kinds.diamonds(data)
    found = posterior_kinds.kinds(
        sets,
        np.random.default_rng(seed),
        rows=POSTERIOR_ROWS,
        epsilons=POSTERIOR_EPSILONS[-1:] if quick else POSTERIOR_EPSILONS,
        of=of,
        tell=lambda share: progress("posterior summaries", share),
    )
    for each in found:
        for summary in posterior_kinds.SUMMARIES:
            before = each[f"{summary}_before"] or ("" if each["straight"] else A_LINE) or RARE.get(each["data"], "")
            bias = None
            if f"{summary}_bias" in each:
                beyond = max(abs(each[f"{summary}_bias"]) - each[f"{summary}_allowed"], 0.0)
                bias = in_errors(beyond, each[f"{summary}_bias_error"], sets)
            yield row(
                f"posterior {summary.replace('_', ' at ')}, {each['coefficient']}",
                *(each["data"], each["epsilon"], each[summary], each[f"{summary}_error"]),
                before=before,
                told=each[f"{summary}_noted"],
                bias=bias,
            )


def of_perturbation(*, quick: bool, data: Path | None, seed: int, progress: Progress) -> Iterator[Row]:
    sets = 6 if quick else PERTURBED_SETS
    found = perturbation_kinds.kinds(
        sets,
        np.random.default_rng(seed),
        epsilons=PERTURBED_EPSILONS[1:2] if quick else PERTURBED_EPSILONS,
        tell=lambda share: progress("objective perturbation", share),
    )
    for each in found:
        uneven = "one variance is supposed" if each["data"] == perturbation_kinds.UNEVEN else ""
        yield row(
            f"objective perturbation, {each['coefficient']}",
            *(each["data"], each["epsilon"], each["held"], each["held_error"]),
            before=each["before"] or uneven,
            told=each["none"],
            bias=in_errors(max(abs(each["bias"]) - each["allowed"], 0.0), each["bias_error"], sets),
        )


def of_changes(*, quick: bool, data: Path | None, seed: int, progress: Progress) -> Iterator[Row]:
    rng = np.random.default_rng(seed)
    for i, kind in enumerate(chance_kinds.PANELS):
        progress(f"exception reports, {kind}", i / len(chance_kinds.PANELS) / 2)
        each = chance_kinds.chances(kind, 5 if quick else PANEL_SETS, rng)
        for name, what in CHANCES.items():
            bias = in_errors(each[name], each[f"{name}_error"], each["sets"])
            yield row(what, kind, None, None, 0.0, bias=bias)
    for i, kind in enumerate(chance_kinds.AREAS):
        progress(f"partial areas, {kind}", 0.5 + i / len(chance_kinds.AREAS) / 2)
        for positives in chance_kinds.POSITIVES:
            each = chance_kinds.areas(kind, positives, 30 if quick else AREA_SETS, rng)
            told = float(positives < FEW)
            label = f"{kind}, {positives} large changes"
            bias = in_errors(each["bias"], each["bias_error"], each["sets"])
            yield row("partial area", label, None, each["held"], each["held_error"], told=told, bias=bias)


CHANCES = {
    "flags": "chances of flagged series",
    "ranked": "chances of all series",
    "tpr": "true positive rate of the rule",
    "fpr": "false positive rate of the rule",
}
FEW = 30  # large changes: below, comparisons say that limits are too narrow (`change.compare`)
Part = Callable[..., Iterator[Row]]
PARTS: dict[str, Part] = {
    "tables": of_tables,
    "models": of_models,
    "models without noise": of_plain_models,
    "posterior summaries": of_posteriors,
    "objective perturbation": of_perturbation,
    "large changes": of_changes,
}


def run(*, quick: bool = False, data: Path | None = None, seed: int = 0, progress: Progress = silent) -> Study:
    """All parts; `data` is a file of diamonds, which is then one more population of posterior summaries."""
    found: dict[str, list[Row]] = {}
    for i, (name, part) in enumerate(PARTS.items()):

        def here(step: str, share: float, i: int = i) -> None:
            progress(step, (i + share) / len(PARTS))

        found[name] = list(part(quick=quick, data=data, seed=seed, progress=here))
    return of_parts(found)


def of_parts(found: Mapping[str, Sequence[Row]]) -> Study:
    """The study of what the parts found."""
    rows = [each for part in found.values() for each in part]
    results = {"rows": rows, "short": summary(rows), "faults": [label(each) for each in rows if each["fault"]]}
    return Study(name="coverage", title=TITLE, results=results, page=_page(results))


def label(each: Row) -> str:
    """A fault in words."""
    at = "" if each["epsilon"] is None else f", epsilon {each['epsilon']:g}"
    held = "" if not each["short"] else f" holds {each['held']:.1%} ({each['error']:.1%})"
    off = "" if not each["off"] else f" is off by {each['bias']:.1f} standard errors"
    return f"{each['interval']}, {each['data']}{at}:{held}{' and' if held and off else ''}{off}"


def summary(rows: Sequence[Row]) -> list[Row]:
    """One line for each interval: over how many kinds of data and epsilons, the least coverage, and what was said."""
    found = []
    for name in dict.fromkeys(each["interval"] for each in rows):
        own = [each for each in rows if each["interval"] == name]
        quiet = [each for each in own if not each["before"] and each["told"] < MOSTLY and each["held"] is not None]
        said = [each for each in own if (each["before"] or each["told"] >= MOSTLY) and each["held"] is not None]
        found.append(
            {
                "interval": name,
                "cells": len(own),
                "least where nothing is said": min((each["held"] for each in quiet), default=None),
                "of": len(quiet),
                "least where it is said": min((each["held"] for each in said), default=None),
                "said": len(said),
                "faults": sum(each["fault"] for each in own),
            }
        )
    return found


def _page(results: Mapping[str, Any]) -> Page:
    faults = results["faults"]
    verdict = "\n".join(f"- {line}" for line in faults) or (
        "No interval holds more rarely than 93.5 % and no estimate is off, beyond what so many trials explain, without "
        "being told."
    )
    return Page(
        TITLE,
        [
            Note("result", verdict),
            Note("warning", "The data are simulated and the noise has a seed: a study is not a release."),
            Prose(
                f"{len(results['rows'])} cells: an interval, a kind of data and an epsilon. Coverage of 95 % "
                "intervals; bias in standard errors of its mean, beyond what is said to be allowed for; what is said "
                "before paying, and in how many releases."
            ),
            Heading("Each interval"),
            Table.of(results["short"], "The least coverage over kinds of data and epsilons", "summary"),
            Heading("Every cell"),
            Table.of(
                [{key: each[key] for key in each if key not in ("short", "off", "error")} for each in results["rows"]],
                "Every interval on every kind of data",
                "cells",
            ),
        ],
    )
