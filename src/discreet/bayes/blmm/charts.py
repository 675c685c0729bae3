"""Trace plots."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.arrays import Matrix

POINTS = 1_000  # per chain; more cannot be seen


def trace_chart(draws: Matrix, name: str) -> Any:
    """Draws (chains, length) of one parameter over iterations, a panel for each chain."""
    import altair as alt

    rows = [
        {"iteration": int(i), "draw": float(chain[i]), "chain": f"chain {c + 1}"}
        for c, chain in enumerate(draws)
        for i in np.unique(np.linspace(0, len(chain) - 1, POINTS).astype(int))
    ]
    line = alt.Chart({"values": rows}).mark_line(strokeWidth=0.6)
    line = line.encode(alt.X("iteration:Q"), alt.Y("draw:Q", title=f"random effect of {name}").scale(zero=False))
    return line.properties(width=560, height=120).facet(row=alt.Row("chain:N", title=None))
