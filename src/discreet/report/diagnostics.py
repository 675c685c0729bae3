"""The page of a plain mixed fit: estimates with tests, residuals, quantiles, effects and influential rows.

It shows rows and levels of the data, so it is for the holder of the data; it is not a release.
"""

from __future__ import annotations

import numpy as np

from discreet.lmm.charts import effects_chart, quantiles_chart, residuals_chart
from discreet.lmm.fit import MixedFit
from discreet.lmm.influence import influential
from discreet.report.page import Block, Code, Figure, Heading, Note, Page, Prose, Table

SAMPLE = 2000  # points of a chart
MANY_ROWS = 200_000  # beyond it leverage is left out: it needs a pass of solves over all rows


def fit_page(fit: MixedFit) -> Page:
    """Everything an analyst looks at before believing a fit."""
    tests = [
        {"effect": name, "estimate": t.estimate, "std. error": t.std_error, "df": t.df, "t": t.t, "p": t.p}
        for name, t in fit.tests().items()
    ]
    residual = fit.residuals("pearson")
    far = float(np.mean(np.abs(residual) > 3))
    blocks: list[Block] = [
        Note(
            "limitation", "This page shows rows and levels of the data. It is for those who hold them, and no release."
        ),
        Code(fit.summary()),
        Heading("Tests of fixed effects"),
        Prose("Degrees of freedom are Satterthwaite's, as lmerTest gives them."),
        Table.of(tests, "Fixed effects with tests"),
        Heading("Residuals"),
        Prose(f"{100 * far:.2f} % of Pearson residuals are beyond 3; a normal law has 0.27 %."),
        Figure(
            residuals_chart(fit, SAMPLE),
            "Pearson residuals against fitted values, one point for each row.",
            "Residuals against fitted values",
        ),
        Figure(
            quantiles_chart(fit, SAMPLE),
            "Sorted Pearson residuals against quantiles of the normal law, with the line where both are equal.",
            "Residuals against normal quantiles",
        ),
        Heading("Random effects"),
    ]
    for name in fit.effects:
        alt = f"Predicted effects of the levels of {name}, sorted, with 95 % prediction intervals."
        blocks.append(Figure(effects_chart(fit, name), alt, f"Effects of {name}"))
    blocks.append(Heading("Influential rows"))
    chosen = influential(fit)
    columns = {"residual": residual, "fitted": fit.fitted}
    if fit.rows <= MANY_ROWS:
        columns["leverage"] = fit.leverage()
    rows = [
        {"row": int(row) + 1, "why": why, **{name: float(values[row]) for name, values in columns.items()}}
        for row, why in zip(chosen.rows, chosen.reasons, strict=True)
    ]
    blocks.append(Table.of(rows, "Rows chosen for a closer look, by the rule of Abowd, Schneider and Vilhuber (2012)"))
    return Page(f"Fit of {fit.formula}", blocks, "A linear mixed model and what its residuals say of it.")
