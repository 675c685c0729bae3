"""The page of a fit: estimates with tests, residuals, effects, and quantiles and influential rows of a linear one.

It shows rows and levels of the data, so it is for the holder of the data; it is not a release.
"""

from __future__ import annotations

import numpy as np

from discreet.models.linear.charts import effects_chart, quantiles_chart, residuals_chart
from discreet.models.linear.fit import MixedFit
from discreet.models.linear.general_fit import GeneralisedFit
from discreet.models.linear.general_residuals import zeros_of
from discreet.models.linear.influence import influential
from discreet.pages.page import Block, Code, Figure, Heading, Note, Page, Prose, Table

SAMPLE = 2000  # points of a chart
MANY_ROWS = 200_000  # beyond it leverage is left out: it needs a pass of solves over all rows
HELD = Note("limitation", "This page shows rows and levels of the data. It is for those who hold them, and no release.")


def fit_page(fit: MixedFit | GeneralisedFit) -> Page:
    """Everything an analyst looks at before believing a fit."""
    return _linear(fit) if isinstance(fit, MixedFit) else _general(fit)


def _general(fit: GeneralisedFit) -> Page:
    """Of other families: their spread beside the family's takes the place of normal quantiles."""
    residual = fit.residuals("pearson")
    spread = float(residual @ residual) / max(fit.rows - len(fit.names), 1)
    zeros = ""
    if fit.law.counts:
        seen, expected = zeros_of(fit)
        zeros = f" {100 * seen:.2f} % of counts are zero; the fit expects {100 * expected:.2f} %."
    blocks: list[Block] = [
        HELD,
        Code(fit.summary()),
        Heading("Tests of fixed effects"),
        Prose("Tests are normal, on the scale of the link."),
        _tests(fit, "z"),
        Heading("Residuals"),
        Prose(
            f"Squares of Pearson residuals are {spread:.3g} for each row beyond the fixed effects. Effects that were "
            f"fitted to the rows pull this below one; far above one, rows vary more than the family.{zeros}"
        ),
        _residuals(fit),
        *_effects(fit),
    ]
    return Page(
        f"Fit of {fit.formula}", blocks, f"A mixed model of family {fit.family} and what its residuals say of it."
    )


def _linear(fit: MixedFit) -> Page:
    residual = fit.residuals("pearson")
    far = float(np.mean(np.abs(residual) > 3))
    blocks: list[Block] = [
        HELD,
        Code(fit.summary()),
        Heading("Tests of fixed effects"),
        Prose(
            "Degrees of freedom are Satterthwaite's, as lmerTest gives them."
            if fit.residual is None
            else f"Tests are normal, because residuals have {fit.residual.law.words}."
        ),
        _tests(fit, "t" if fit.residual is None else "z"),
        Heading("Residuals"),
        Prose(f"{100 * far:.2f} % of Pearson residuals are beyond 3; a normal law has 0.27 %."),
        _residuals(fit),
        Figure(
            quantiles_chart(fit, SAMPLE),
            "Sorted Pearson residuals against quantiles of the normal law, with the line where both are equal.",
            "Residuals against normal quantiles",
        ),
        *_effects(fit),
        Heading("Influential rows"),
    ]
    chosen = influential(fit)
    columns = {"residual": residual, "fitted": fit.fitted}
    if fit.autocorrelation is not None:
        blocks.append(Prose("Leverage is left out: fits of autoregressive residuals have no hat matrix here."))
    elif fit.rows <= MANY_ROWS:
        columns["leverage"] = fit.leverage()
    rows = [
        {"row": int(row) + 1, "why": why, **{name: float(values[row]) for name, values in columns.items()}}
        for row, why in zip(chosen.rows, chosen.reasons, strict=True)
    ]
    blocks.append(Table.of(rows, "Rows chosen for a closer look, by the rule of Abowd, Schneider and Vilhuber (2012)"))
    return Page(f"Fit of {fit.formula}", blocks, "A linear mixed model and what its residuals say of it.")


def _tests(fit: MixedFit | GeneralisedFit, statistic: str) -> Table:
    rows = [
        {"effect": name, "estimate": test.estimate, "std. error": test.std_error}
        | ({"df": test.df} if statistic == "t" else {})
        | {statistic: test.t, "p": test.p}
        for name, test in fit.tests().items()
    ]
    return Table.of(rows, "Fixed effects with tests")


def _residuals(fit: MixedFit | GeneralisedFit) -> Figure:
    return Figure(
        residuals_chart(fit, SAMPLE),
        "Pearson residuals against fitted values, one point for each row.",
        "Residuals against fitted values",
    )


def _effects(fit: MixedFit | GeneralisedFit) -> list[Block]:
    blocks: list[Block] = [Heading("Random effects")]
    for name in fit.effects:
        alt = f"Predicted effects of the levels of {name}, sorted, with 95 % prediction intervals."
        blocks.append(Figure(effects_chart(fit, name), alt, f"Effects of {name}"))
    return blocks
