"""The report of the LODES study: what the paper found, what is found here, and the figures in the paper's numbering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.pages import charts
from discreet.pages.page import Block, Figure, Heading, Note, Page, Prose, Table
from discreet.utility.strata import ALL
from discreet_papers.beside import beside
from discreet_papers.lodes_definitions import definition_blocks
from discreet_papers.lodes_findings import THREE, PaperStatement
from discreet_papers.lodes_grid import ALPHAS, THETA

TITLE = "Employment tables under employer-employee privacy, beside noise infusion"
WORKLOADS = {
    1: "place x sector x ownership, strong definition",
    2: "single cells of place x sector x ownership x sex x education, weak definition",
    3: "place x sector x ownership x sex x education, the whole table for one epsilon",
}
NEW = ("polynomial", "joint-polynomial")
RATIO = {"ratio": "L1 error / infusion's", "epsilon": "epsilon", "alpha": "alpha"}
RHO = {"spearman": "Spearman", "epsilon": "epsilon", "alpha": "alpha"}

SIMULATED = "The jobs are simulated and the noise has a seed. A study compares with the truth: it is not a release."
GIVEN = (
    "The jobs are those that were given; only the section on changes simulates its own. The noise has a seed, and "
    "everything is compared with the truth, counts of single establishments included: **this page is as confidential "
    "as the jobs** and not a release. Do not publish it where they are confidential."
)

METHOD = f"""
Expected L1 errors are the mechanisms' closed forms, before rounding; node truncation's includes the jobs it drops.
Infusion's error is exact where one establishment has all jobs of a cell and for small cells, and the mean over trials
of independent factors elsewhere. Published integers, integers clipped at zero and rank correlations are means over
trials; rankings are compared with one infused table, as an agency publishes one.

- Workload 3 spends epsilon on the whole table: mechanisms for single cells get an eighth of it for each of the 8
worker cells of an establishment, the joint polynomial mechanism and edge privacy spend it once.
- Under the strong definition a worker cell must hide a share of the establishment's whole workforce, under the weak
one a share of its workers in that cell. Log-Laplace has no strong version there.
- Smooth Laplace uses delta = 0.05, in the tight calibration for the whole table. In the paper's calibration its noise
does not depend on delta, so its error is shown also where delta = 0.05 does not allow it; `feasible` is then false.
- A relative error is within 10 points of infusion's where it is not more than 10 points larger.
- Node truncation drops establishments of more than {THETA:,} workers.
"""


def page(results: Mapping[str, Any], findings: Sequence[PaperStatement]) -> Page:
    """All blocks, in the order of the paper."""
    data = results["data"]
    blocks: list[Block] = [
        _result(results, findings),
        Note("warning", SIMULATED if data["simulated"] else GIVEN),
        Prose(
            f"{data['jobs']:,} jobs at {data['establishments']:,} establishments, {data['workplace_cells']:,} "
            f"workplace cells, {data['levels']} worker levels, {data['trials']} trials. The paper has 10.9 million "
            "jobs at about 527,000 establishments. Its infusion factors are secret; here they are 5 to 15 % off 1, and "
            "every ratio below is in inverse proportion to that choice."
        ),
        Heading("The five findings"),
        Table(
            ("Finding", "The paper says", "Here", "Agree"),
            [(f"{f.finding}", f.paper, f.ours, f.agrees) for f in findings],
            "Statements of section 10.1 beside our numbers, all in the paper's calibration.",
            "findings",
        ),
        *definition_blocks(),
        Heading("Less noise for the same promise"),
        Prose(
            "The tight calibrations use the least noise that each definition allows. The polynomial mechanisms are not "
            "in the paper: pure epsilon, no delta, strong definition; the joint one pays once for all worker cells. "
            "Errors are given as expected, of the published integers, and with negative integers set to zero."
        ),
        Table.of(
            [_short(row) for row in results["published"] if _headline(row)],
            "L1 error over infusion's at the paper's baseline.",
            "published",
        ),
        Prose(
            "The defaults of the product, as published integers: `two-sizes` for all jobs of a cell, `joint-rings` for "
            "all kinds of workers under one epsilon, `weak-unions` for those under the weak definition, or "
            "`joint-rings` where that errs less."
        ),
        Table.of(
            results["defaults"],
            "L1 error of the defaults over infusion's and over the one before, by place.",
            "defaults",
        ),
        Heading("One establishment's share"),
        *_dominance(results["largest_share"]),
        Heading("Errors against noise infusion"),
    ]
    for workload, number in ((1, 3), (2, 5), (3, 6)):
        blocks += _errors(results["l1_ratio"], workload, number)
    blocks.append(Heading("Rankings"))
    for ranking, number in ((1, 4), (2, 7)):
        blocks += _rankings(results["spearman"], ranking, number)
    blocks += [
        Heading("What noise infusion gives away"),
        Prose(
            "Shape and size: cells with one establishment and all 8 counts above the small cell limit. For size the "
            "attacker knows one count. Re-identification: cells with one establishment and one college graduate, whose "
            "sex is the level published with the largest count; chance is always guessing the commoner sex.\n\n"
            "Targets are the same for every release: establishments alone in their cells, for re-identification those "
            "with one graduate. How many can be tried differs, because shape and size need all published counts above "
            "the small cell limit of 2.5. `share` is of those tried, `of_targets` of all targets."
        ),
        Table.of(
            [
                {
                    k: row[k]
                    for k in (
                        "attack",
                        "release",
                        "targets",
                        "cases",
                        "exact",
                        "share",
                        "of_targets",
                        "error",
                        "chance",
                    )
                }
                for row in _by_attack(results)
            ],
            "Targets, cases tried, cases with the exact truth, and the median of a case's largest error.",
            "attacks",
        ),
        Table.of(
            [{k: row[k] for k in ("attack", "release", "example")} for row in _by_attack(results)],
            "What the attacker says.",
            "examples",
        ),
        Note(
            "limitation",
            "A formal release bounds what can be learnt about one worker by epsilon; it does not make it nothing. A "
            "large epsilon for small establishments leaves a good guess, as the last rows of re-identification show: "
            "changing one worker's sex is two neighbouring steps, so the odds may move by e to the power of 2 epsilon.",
        ),
        Heading("Definitions that do not serve"),
        Table.of(
            _baselines(results["l1_ratio"]),
            "L1 error over infusion's. Edge privacy is accurate because it hides no establishment.",
            "baselines",
        ),
        Heading("Which places changed most?"),
        Prose(
            "Beyond the paper: two releases of the simulated economy, a year apart, each with its own epsilon. How "
            "many of the 5 % of places with the largest true changes are among the 5 % with the largest published "
            "ones? PAUC is the area under the ROC curve of those flags for false positive rates up to 0.2: 0.02 by "
            "chance, 0.2 for the truth; its limits hold 95 % of releases and resampled places. Infusion keeps its "
            "factors over time, which makes its changes accurate and the attacks easy."
        ),
        Table.of(results["changes"], "Largest changes found, means over trials.", "changes"),
        Heading("How it was computed"),
        Prose(METHOD),
    ]
    on = "simulated jobs" if data["simulated"] else "the jobs that were given"
    return Page(TITLE, blocks, lead=f"Haney et al. (2017), section 10, on {on}.")


def _headline(row: Mapping[str, Any]) -> bool:
    """The subject of each workload at alpha 0.1; the other rows are in the results."""
    own = (ALPHAS[2], "strong" if row["workload"] == 1 else "weak")
    return row["mechanism"] == "joint-polynomial" or (row["alpha"], row["strength"]) == own


def _short(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row for people, narrow enough for the page."""
    return {
        "workload": row["workload"],
        "mechanism": _labelled(row)["label"],
        "definition": row["strength"],
        "alpha": row["alpha"],
        "epsilon": row["epsilon"],
        "expected": row["expected"],
        "integers": row["integers"],
        "not negative": row["not_negative"],
        "feasible": row["feasible"],
    }


def _dominance(found: Mapping[str, Any]) -> list[Block]:
    paper = {
        "cells with more than 65 % from one establishment": "at least 50 %",
        "cells below 1,000 jobs": "over 93 %",
        "establishments above 1,000 workers": "740 to 815",
    }
    ours = {
        "cells with more than 65 % from one establishment": f"{100 * found['above_65_percent']:.1f} %",
        "cells below 1,000 jobs": f"{100 * found['cells_below_1000']:.1f} %",
        "establishments above 1,000 workers": found["establishments_above_1000"],
    }
    figure = Figure(
        charts.lines(
            found["cdf"],
            "share",
            "cells",
            points=False,
            titles={"share": "largest establishment's share of the cell", "cells": "share of the cells at or below"},
        ),
        alt=f"Distribution function of the largest establishment's share of a cell; half of the cells lie above "
        f"{found['median']:.2f}.",
        caption="Employment counts from a single establishment (the paper's Figure 2).",
        name="figure-2",
    )
    return [beside(paper, ours, caption="Section 6 of the paper.", name="dominance"), figure]


def _errors(rows: Sequence[Mapping[str, Any]], workload: int, number: int) -> list[Block]:
    own = [
        _labelled(r) for r in rows if r["workload"] == workload and r["ratio"] is not None and r["alpha"] is not None
    ]
    strength = "strong" if workload == 1 else "weak"
    own = [r for r in own if r["strength"] == strength or r["mechanism"] == "joint-polynomial"]
    overall = [{**r, "alpha": f"alpha {r['alpha']:g}"} for r in own if r["stratum"] == ALL]
    return [
        Heading(f"Workload {workload}", 3),
        Prose(f"{WORKLOADS[workload].capitalize()}."),
        Figure(
            charts.lines(
                overall, "epsilon", "ratio", "alpha", facet="label", log_x=True, log_y=True, titles=RATIO, reference=1.0
            ),
            alt=f"L1 error over infusion's by epsilon, one panel per mechanism, one line per alpha; {_best(overall)}",
            caption=f"Workload {workload}: L1 error over infusion's, all places (the paper's Figure {number}).",
            name=f"figure-{number}",
        ),
        Figure(
            charts.lines(
                _shown(own),
                "epsilon",
                "ratio",
                "label",
                facet="stratum",
                log_x=True,
                log_y=True,
                titles=RATIO,
                reference=1.0,
            ),
            alt="L1 error over infusion's by epsilon at alpha 0.1, a panel per size of place, a line per mechanism.",
            caption=f"Workload {workload}: by population, alpha 0.1, published and ours (the paper's Figure {number}).",
            name=f"figure-{number}-strata",
        ),
    ]


def _rankings(rows: Sequence[Mapping[str, Any]], ranking: int, number: int) -> list[Block]:
    own = [_labelled(r) for r in rows if r["ranking"] == ranking and r["spearman"] is not None]
    overall = [{**r, "alpha": f"alpha {r['alpha']:g}"} for r in own if r["stratum"] == ALL]
    what = "all jobs" if ranking == 1 else "jobs of women with a college degree, weak definition"
    return [
        Heading(f"Ranking {ranking}", 3),
        Prose(f"Cells of place x sector x ownership by {what}."),
        Figure(
            charts.lines(overall, "epsilon", "spearman", "alpha", facet="label", log_x=True, titles=RHO),
            alt="Spearman correlation with the infused ranking by epsilon, a panel per mechanism, a line per alpha.",
            caption=f"Ranking {ranking}, all places (the paper's Figure {number}).",
            name=f"figure-{number}",
        ),
        Figure(
            charts.lines(_shown(own), "epsilon", "spearman", "label", facet="stratum", log_x=True, titles=RHO),
            alt="Spearman correlation by epsilon at alpha 0.1, one panel per size of place, one line per mechanism.",
            caption=f"Ranking {ranking}: by population, alpha 0.1, published and ours (the paper's Figure {number}).",
            name=f"figure-{number}-strata",
        ),
    ]


def _labelled(row: Mapping[str, Any]) -> dict[str, Any]:
    name = row["mechanism"]
    return {**row, "label": name if name in NEW else f"{name} ({row['calibration']})"}


def _shown(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The paper's three mechanisms as published and ours, at alpha 0.1: as many lines as a reader can distinguish."""
    return [
        {**row, "label": name}
        for name in (*THREE, *NEW)
        for row in rows
        if row["mechanism"] == name and row["alpha"] == ALPHAS[2] and (row["calibration"] == "paper" or name in NEW)
    ]


def _best(rows: Sequence[Mapping[str, Any]]) -> str:
    least = min(rows, key=lambda row: float(row["ratio"]))
    return f"the least is {least['ratio']:.2g}, by {least['label']}."


def _result(results: Mapping[str, Any], findings: Sequence[PaperStatement]) -> Note:
    """What the page shows, first."""
    agree = sum(bool(finding.agrees) for finding in findings)
    told = [f"{agree} of {len(findings)} statements of the paper agree with our numbers."]
    infused = [row for row in results["attacks"] if row["release"] == "infusion" and row["cases"]]
    if infused:
        told.append(
            f"Noise infusion gives the attacker the exact truth in {sum(row['exact'] for row in infused):,} of "
            f"{sum(row['cases'] for row in infused):,} attacks that can be tried."
        )
    return Note("result", " ".join(told))


def _by_attack(results: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return sorted(results["attacks"], key=lambda row: ("shape", "size", "re-identification").index(row["attack"]))


def _baselines(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    own = [row for row in rows if row["alpha"] is None and row["stratum"] == ALL]
    names = dict.fromkeys(row["mechanism"] for row in own)
    points = dict.fromkeys((row["workload"], row["epsilon"]) for row in own)
    table = {(row["workload"], row["epsilon"], row["mechanism"]): row["ratio"] for row in own}
    return [{"workload": w, "epsilon": e, **{name: table[w, e, name] for name in names}} for w, e in points]
