"""Beyond the documents: private trends of counties, and counties crossed with industries, on the paper's axes.

A county's own trend is a random slope, and effects of industries beside those of counties are crossed. Both are
released by noisy sums under one epsilon; the correlation of rates with private fitted values is compared with that of
the fit of all rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from discreet.arrays import Vector
from discreet.data.frames import open_frame
from discreet.models.formula.rows import ModelRows, read_rows
from discreet.models.linear import MixedWarning, mixed
from discreet.models.linear.matrix import linear, random_part
from discreet.models.linear.origin import basis
from discreet.models.linear.private import PrivateFit, release_mixed
from discreet.pages.page import Block, Heading, Prose, Table
from discreet.utility.model_curves import Trials

MODELS = {
    "trends of counties": "jcr ~ 0 + industry + quarter + (1 + quarter | county)",
    "counties x industries": "jcr ~ quarter + (1 | county) + (1 | industry)",
    "trends, states, industries": "jcr ~ quarter + (1 + quarter | county) + (1 | state) + (1 | industry)",
}


def terms_rows(table: Any, epsilons: Sequence[float], trials: Trials) -> list[dict[str, Any]]:
    """What noisy sums keep of each model, and the result of its fit of all rows."""
    found = []
    for model, formula in MODELS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MixedWarning)  # a correlation of one is as good a fit
            best = mixed(formula, table)
        y = np.asarray(table["jcr"].to_numpy(), dtype=np.float64)
        whole = float(np.corrcoef(best.fitted, y)[0, 1])
        frame, columns = open_frame(table, ordered=True), list(best.design.layout.model.columns[1:])
        rows: ModelRows | None = None
        for epsilon in epsilons:
            offer = release_mixed.ask(formula, epsilon=epsilon, public=columns, seed=trials.seed).offer(table)
            exact, kept = offer.read(None), []
            for _ in range(trials.count):
                fit = offer.draw(exact, trials.source)
                rows = rows or read_rows(frame, fit.design.layout, fit.learned)[0]
                kept.append(float(np.corrcoef(_fitted(fit, rows), y)[0, 1]))
            found.append(
                {
                    "model": model,
                    "epsilon": epsilon,
                    "correlation": float(np.mean(kept)),
                    "all_rows": whole,
                    "relative_to_mle": float(np.mean(kept)) / whole,
                    "trials": trials.count,
                    "guarantee": "proved, joint",
                }
            )
    return found


def _fitted(fit: PrivateFit, rows: ModelRows) -> Vector:
    """Fitted values of rows that were read once."""
    beta = np.zeros(len(fit.design.names))
    beta[fit.kept] = fit.centred
    total = linear(rows, fit.design.layout.fixed, fit.design.levels, beta)
    for place, term in enumerate(fit.design.random):
        own = np.column_stack([effects.values for effects in fit.random if effects.term == place]) @ basis(term).T
        total = total + random_part(rows, term, fit.design.levels, own, new_levels="error")
    return total


def blocks(rows: Sequence[Mapping[str, Any]], table: Callable[..., Table]) -> list[Block]:
    """The section of the report; `table` writes headings in words."""
    return [
        Heading("Trends of counties, and counties crossed with industries"),
        Prose(
            "Beyond the documents: a county's own trend is a random slope, and industries may be random effects beside "
            "counties. Every column inside a bar has one noisy sum for each level, all under one epsilon."
        ),
        table(list(rows), "Noisy sums of models with random slopes and crossed factors.", "terms"),
    ]
