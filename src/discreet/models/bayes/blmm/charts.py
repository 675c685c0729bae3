"""Trace plots and densities, for the analyst who holds the data: they are not releases."""

from __future__ import annotations

import numpy as np

from discreet import chart
from discreet.arrays import Matrix
from discreet.chart import Chart
from discreet.models.bayes.blmm.marginal import Marginal

POINTS = 1_000  # per chain; more cannot be seen
WIDTH = 560  # pixels
CURVE = 201  # points of a density
TAIL = 0.001  # probability left out on either side


def trace_chart(draws: Matrix, name: str) -> Chart:
    """Draws (chains, length) of one parameter over iterations, a panel for each chain."""
    rows = [
        {"iteration": int(i), "draw": float(chain[i]), "chain": f"chain {c + 1}"}
        for c, chain in enumerate(draws)
        for i in np.unique(np.linspace(0, len(chain) - 1, POINTS).astype(int))
    ]
    up = chart.number("draw", name, scale={"zero": False})
    line = chart.mark("line", {"x": chart.number("iteration"), "y": up}, strokeWidth=0.6)
    panels = {"row": chart.name("chain", None)}
    return Chart({"data": {"values": rows}, "facet": panels, "spec": {**line, "width": WIDTH, "height": 120}})


def density_chart(law: Marginal, name: str) -> Chart:
    """The density of one parameter between its outermost quantiles."""
    low, high = law.quantile([TAIL, 1 - TAIL])
    x = np.linspace(low, high, CURVE)
    rows = [{"value": float(a), "density": float(d)} for a, d in zip(x, law.pdf(x), strict=True)]
    across = chart.number("value", name, scale={"zero": False})
    area = chart.mark("area", {"x": across, "y": chart.number("density")}, rows, opacity=0.35, line=True)
    return Chart({**area, "width": WIDTH})
