"""Trace plots and densities, for the analyst who holds the data: they are not releases."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.arrays import Matrix
from discreet.bayes.blmm.marginal import Marginal

POINTS = 1_000  # per chain; more cannot be seen
CURVE = 201  # points of a density
TAIL = 0.001  # probability left out on either side


def trace_chart(draws: Matrix, name: str) -> Any:
    """Draws (chains, length) of one parameter over iterations, a panel for each chain."""
    import altair as alt

    rows = [
        {"iteration": int(i), "draw": float(chain[i]), "chain": f"chain {c + 1}"}
        for c, chain in enumerate(draws)
        for i in np.unique(np.linspace(0, len(chain) - 1, POINTS).astype(int))
    ]
    line = alt.Chart({"values": rows}).mark_line(strokeWidth=0.6)
    line = line.encode(alt.X("iteration:Q"), alt.Y("draw:Q", title=name).scale(zero=False))
    return line.properties(width=560, height=120).facet(row=alt.Row("chain:N", title=None))


def density_chart(law: Marginal, name: str) -> Any:
    """The density of one parameter between its outermost quantiles."""
    import altair as alt

    low, high = law.quantile([TAIL, 1 - TAIL])
    x = np.linspace(low, high, CURVE)
    rows = [{"value": float(a), "density": float(d)} for a, d in zip(x, law.pdf(x), strict=True)]
    area = alt.Chart({"values": rows}).mark_area(opacity=0.35, line=True)
    return area.encode(alt.X("value:Q", title=name).scale(zero=False), alt.Y("density:Q")).properties(width=560)
