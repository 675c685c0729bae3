"""The report of the mixed-model study: the documents' statements beside our numbers, all curves on the same axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from discreet.pages import charts
from discreet.pages.page import Block, Figure, Heading, Note, Page, Prose, Table
from discreet_papers import lmm_changes, lmm_improved, lmm_small, lmm_terms
from discreet_papers.beside import beside

TITLE = "Private mixed models of job creation: as published, strictly, and by noisy sums"
CORRELATION = {"correlation": "correlation of y with fitted values", "epsilon": "epsilon"}
FIGURES = {
    "49/49/2": "Figures 2 and 3.3",
    "88/10/2": "Figures 4 and 3.5",
    "10/88/2": "Figures 5 and 3.6",
    "97/1/2": "Figures 6 and 3.7",
    "1/97/2": "Figures 7 and 3.8",
}
FIT = {"LM": "about 0.30", "LMM": "just under 0.35", "LMM + season": "over 0.44", "LMM with lags": "0.4967"}
METHODS = "\n".join(
    (
        "- **paper**: k random blocks, REML in each, bias-corrected averages, Laplace noise on every coordinate. Its "
        "epsilon is claimed for one fitted value at a time, under assumed ranges.",
        "- **strict**: the same idea with public bounds and whole-vector clipping; one epsilon or rho for all, proved.",
        "- **moments**: noise on the sums that the model needs and a likelihood that knows it; one epsilon, proved.",
    )
)

WORDS = {
    "relative_to_mle": "share of the MLE's",
    "rows_per_block": "rows in one",
    "estimable_blocks": "estimable",
    "with_every_industry": "every industry",
    "smaller_model": "smaller model",
    "fixed_effects": "fixed",
    "random_effects": "random",
    "residual_variance": "residual variance",
    "group_variances": "group variances",
    "documents_rows_per_block": "rows in one",
    "ours_rows_per_block": "rows in one of ours",
    "documents": "k*",
    "ours": "k* of ours",
    "most": "N^(2/3) of ours",
    "lag_off": "farthest lag is off by",
}


def page(results: Mapping[str, Any], *, quick: bool) -> Page:
    """All blocks."""
    data, curve = results["data"], results["risk_utility"]
    best = {row["model"]: row["correlation"] for row in results["global"]}
    blocks: list[Block] = [
        _result(curve),
        Note(
            "warning",
            "The flows are simulated and the noise has a seed. A study compares with the truth: it is not a release, "
            "and on confidential data it must not leave the agency.",
        ),
        Prose(
            f"{data['rows']:,} rows of {data['counties']:,} counties; the documents have 2,428,452 rows of 3,111. "
            + ("This is the quick version: with fewer rows every curve is worse than at full size." if quick else "")
        ),
        Prose(METHODS),
        Heading("What private fits keep"),
        *_together(curve, best),
        _headline(curve),
        Heading("Fits of the whole data set"),
        beside(
            FIT,
            best,
            caption="Correlation of the response with fitted values; the documents' numbers belong to the QWI of 2010.",
            quantity="Model",
            source="Documents",
            name="correlations",
        ),
        _table(
            [{**row, "group_variances": _listed(row["group_variances"])} for row in results["global"]],
            "What is estimated (Tables I and 3.2), by REML; variances of groups from the finest term on.",
            "table-1",
        ),
        Heading("How many blocks"),
        _table(
            results["k_star"],
            "k* = N^(3/5) Lambda^(2/5) / epsilon^(2/5) with Lambda = 2, for the documents' rows and for these (Figure "
            "3.1). The text has 22,470 at 0.1, 8,945 at 1 and 4,858 at 4.6; its formula 8941 / epsilon is a misprint.",
            "k-star",
        ),
        *_ranges(results["ranges"]),
        Heading("Risk and utility as published"),
        *_published(curve, best),
        _other_rates(results["published_rates"]),
        Heading("Limits of estimability"),
        *_limits(results["estimable"]),
        Heading("The improved model and its counties"),
        *lmm_improved.blocks(results, _table),
        Heading("Other rates"),
        Prose(
            "Each rate has its own epsilon of 1; AR is clipped at 3, as the documents bound it. SR follows from "
            "JCR - JDR = AR - SR and costs nothing more than the three."
        ),
        _table(
            [
                {k: row[k] for k in ("rate", "method", "epsilon", "correlation", "relative_to_mle")}
                for row in results["rates"]
            ],
            "Correlation of each rate with its private fitted values.",
            "rates",
        ),
        *lmm_changes.blocks(results["changes"]),
        *lmm_terms.blocks(results["terms"], _table),
        *lmm_small.blocks(results["small"], _table),
        Heading("Every point"),
        replace(
            _table(curve, "Risk and utility of every model, method, epsilon and split.", "risk-utility-points"),
            folded=True,
        ),
    ]
    return Page(
        TITLE,
        blocks,
        lead="Abowd, Schneider and Vilhuber (2012); Schneider (2014), chapter 3: sub-sample and aggregate for small "
        "areas.",
    )


def _table(rows: Iterable[Mapping[str, object]], caption: str, name: str) -> Table:
    """A table whose headings are words."""
    return Table.of(({WORDS.get(key, key): value for key, value in row.items()} for row in rows), caption, name)


def _pick(curve: Sequence[Mapping[str, Any]], **wanted: Any) -> list[Mapping[str, Any]]:
    return [row for row in curve if all(row[key] == value for key, value in wanted.items())]


def _result(curve: Sequence[Mapping[str, Any]]) -> Note:
    """The answer in four numbers."""

    def at(model: str, method: str, epsilon: float, split: str) -> Mapping[str, Any]:
        return _pick(curve, model=model, method=method, epsilon=epsilon, split=split)[0]

    one, tenth = (at("LMM", "moments", epsilon, "default") for epsilon in (1.0, 0.1))
    linear, season = at("LM", "moments", 0.1, "default"), at("LMM + season", "moments", 1.0, "default")
    paper, strict = at("LMM", "paper", 1.0, "49/49/2"), at("LMM", "strict", 1.0, "Laplace")
    return Note(
        "result",
        f"At a joint epsilon of 1 noisy sums keep {100 * one['relative_to_mle']:.1f} % of the MLE's correlation; "
        "strict keeps "
        f"{100 * strict['relative_to_mle']:.1f} %, the published method {100 * paper['relative_to_mle']:.1f} % with "
        "an epsilon for one "
        f"fitted value only. At 0.1 noisy sums reach {tenth['correlation']:.3f}, the linear model "
        f"{linear['correlation']:.3f}. County x season is estimable at 1: {season['correlation']:.3f} against "
        f"{one['correlation']:.3f} without seasons; the documents stop at 3.",
    )


def _headline(curve: Sequence[Mapping[str, Any]]) -> Table:
    rows = [
        {
            "model": row["model"],
            "joint epsilon": row["epsilon"],
            "responses": "as they are" if row["split"] == "default" else row["split"],
            "correlation": row["correlation"],
            "relative_to_mle": row["relative_to_mle"],
        }
        for row in _pick(curve, method="moments")
        if row["epsilon"] in (0.1, 1.0)
    ]
    return _table(rows, "Noisy sums: every coefficient and every effect under one epsilon.", "headline")


def _ranges(found: Mapping[str, Mapping[str, float]]) -> list[Block]:
    """Tables II and 3.3."""
    printed = {
        "JCR": ("2.49", "0.003", "2.04", "0.20", "0.19"),
        "AR": ("49.6", "0.15", "374.5", "5.5", "24.1"),
    }
    assumed = {"JCR": ("2", "0.01", "2", "0.5", "0.5"), "AR": ("3", "0.01", "3", "0.75", "0.75")}
    rows = [
        {"rate": rate, "estimate": name, "documents": paper, "ours": found[rate][name], "assumed": bound}
        for rate in found
        for name, paper, bound in zip(found[rate], printed[rate], assumed[rate], strict=True)
    ]
    return [
        Table.of(
            rows,
            "Largest range of an estimate over the blocks at k* for epsilon 1, and the range that the noise assumes "
            "(Tables II and 3.3). The bounds are of standard deviations, where the tables print variances.",
            "table-2",
        ),
        Prose(
            "Ranges above the assumed ones mean that the published noise does not cover what one block can do; ranges "
            "taken from the data are no bounds in any case. strict and moments have public bounds instead."
        ),
    ]


def _published(curve: Sequence[Mapping[str, Any]], best: Mapping[str, float]) -> list[Block]:
    blocks: list[Block] = []
    blocks.append(
        Figure(
            charts.lines(
                _pick(curve, model="LMM", method="paper", split="49/49/2"),
                "epsilon",
                "correlation",
                titles=CORRELATION,
                reference=best["LMM"],
            ),
            alt=f"Correlation of the published method over epsilon; the MLE's is {best['LMM']:.3f}.",
            caption="Mixed model, 49 % of epsilon for beta and 49 % for u (Figures 2 and 3.3). Dashed: MLE.",
            name="figure-2",
        )
    )
    rows = [
        {**row, "panel": f"{FIGURES[str(row['split'])]}: beta/u/trend {row['split']}"}
        for row in _pick(curve, model="LMM", method="paper")
        if row["split"] != "49/49/2"
    ]
    blocks.append(
        Figure(
            charts.lines(rows, "epsilon", "correlation", facet="panel", titles=CORRELATION, reference=best["LMM"]),
            alt="Four panels of the published method's correlation over epsilon, one for each division of the budget.",
            caption="Mixed model, other divisions of the budget. Dashed: MLE.",
            name="figures-4-to-7",
        )
    )
    for model, number, what in (
        ("LM", "3 and 3.4", "Linear model, all of epsilon for beta (Figures 3 and 3.4); note how short the axis is"),
        (
            "LMM + season",
            "3.9 and 3.10",
            "County x season (Figures 3.9 and 3.10), shares of beta, u, interactions, trend",
        ),
    ):
        rows = [{**row, "split": f"{row['split']} %"} for row in _pick(curve, model=model, method="paper")]
        series = "split" if model == "LMM + season" else None
        blocks.append(
            Figure(
                charts.lines(rows, "epsilon", "correlation", series, titles=CORRELATION, reference=best[model]),
                alt=f"{model}: correlation of the published method over epsilon; the MLE has {best[model]:.3f}.",
                caption=f"{what}. Dashed: MLE.",
                name=f"figures-{number.split()[0]}",
            )
        )
    blocks.append(
        Prose(
            "The documents print these curves without numbers. What they say of them holds here. Correlations lie "
            "below the MLE's and fall most where u has 1 % of the budget. They need not be monotone in epsilon: "
            "k* and with it the bias of small blocks changes with epsilon."
        )
    )
    return blocks


def _other_rates(rows: Sequence[Mapping[str, Any]]) -> Figure:
    mle = {str(row["rate"]): row["mle"] for row in rows}
    told = " and ".join(f"{value:.3f} for {rate}" for rate, value in mle.items())
    return Figure(
        charts.lines(rows, "epsilon", "correlation", "rate", titles=CORRELATION),
        alt="Correlation of the published method over epsilon, for job destruction and for accessions.",
        caption=f"The published method for JDR and AR, beta/u/trend 49/49/2; the MLE has {told}.",
        name="published-rates",
    )


def _together(curve: Sequence[Mapping[str, Any]], best: Mapping[str, float]) -> list[Block]:
    chosen = [
        ("paper", "49/49/2", "paper"),
        ("strict", "Laplace", "strict"),
        ("strict", "Gaussian, rho = epsilon^2/2", "strict, zCDP"),
        ("moments", "default", "moments"),
        ("moments", "clipped to [0, 0.5]", "moments, clipped"),
    ]
    rows = [
        {**row, "method": name}
        for method, split, name in chosen
        for row in _pick(curve, model="LMM", method=method, split=split)
    ]
    rows += [{**row, "method": "LM, moments"} for row in _pick(curve, model="LM", method="moments")]
    states = [
        {**row, "method": f"{name}, {'states and counties' if model != 'LMM' else 'counties'}"}
        for model in ("LMM", "LMM with states")
        for method, split, name in [("paper", None, "paper"), chosen[1], chosen[3]]
        for row in _pick(curve, model=model, method=method)
        if row["split"] == (split or {"LMM": "49/49/2"}.get(model, "49/24.5/24.5/2"))
    ]
    seasons = [
        {**row, "method": name}
        for method, split, name in [("paper", "88/5/5/2", "paper"), *chosen[3:]]
        for row in _pick(curve, model="LMM + season", method=method, split=split)
    ]
    seasons += [
        {**row, "method": "moments, with states"}
        for row in _pick(curve, model="LMM + season with states", method="moments", split="default")
    ]
    return [
        Figure(
            charts.lines(
                rows, "epsilon", "correlation", "method", log_x=True, titles=CORRELATION, reference=best["LMM"]
            ),
            alt="Correlation over epsilon of the published method, the strict one and noisy sums; noisy sums lie "
            "highest.",
            caption="Mixed model with county effects, all methods. Dashed: MLE. The published method's epsilon is "
            "claimed for "
            "one fitted value at a time, the others' for the whole release.",
            name="risk-utility",
        ),
        Figure(
            charts.lines(
                states,
                "epsilon",
                "correlation",
                "method",
                log_x=True,
                titles=CORRELATION,
                reference=best["LMM with states"],
            ),
            alt="Correlation over epsilon of all methods with states and counties, beside counties alone.",
            caption="The documents' model has effects of states and of counties; dashed: its MLE. Noisy sums by county "
            "serve both, and blocks are fitted to two nested terms. Three nested terms (states, counties, seasons) are "
            "beyond blocks, so that model has noisy sums only.",
            name="risk-utility-states",
        ),
        Figure(
            charts.lines(
                seasons,
                "epsilon",
                "correlation",
                "method",
                log_x=True,
                titles=CORRELATION,
                reference=best["LMM + season"],
            ),
            alt="Correlation over epsilon with county x season effects; noisy sums reach below epsilon 1, blocks do "
            "not.",
            caption="Mixed model with county and county x season effects. Dashed: MLE.",
            name="risk-utility-seasons",
        ),
    ]


def _limits(found: Mapping[str, Any]) -> list[Block]:
    return [
        Prose(
            "The documents call a model not estimable where a block's moment matrix is singular, and report limits of "
            "epsilon: 0.1 for the linear model, 1 with counties, 3 with county x season. A variance between groups "
            "needs a group with two rows in the block; the shares below reach one at those limits. Noisy sums have no "
            "such limit: what decides is whether the larger model still fits better than the smaller one at the same "
            "epsilon."
        ),
        _table(
            found["blocks"],
            "Blocks at k*: share that can be estimated, share that has every industry.",
            "estimable-blocks",
        ),
        _table(
            [{**row, "better": "yes" if row["better"] else "no"} for row in found["moments"]],
            "Noisy sums: correlation of a model and of the next smaller one at the same joint epsilon.",
            "estimable-moments",
        ),
    ]


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.4g}" for value in values) or "none"
