"""Charts of a fit, for the analyst who holds the data: they show levels and rows, so they are not releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet import chart
from discreet.chart import Chart
from discreet.words.errors import DataError
from discreet.words.faults import Argument

if TYPE_CHECKING:
    from discreet.models.linear.fit import MixedFit
    from discreet.models.linear.general_fit import GeneralisedFit

NORMAL_95 = 1.959963984540054


def effects_chart(fit: MixedFit | GeneralisedFit, group: str | None) -> Chart:
    """EBLUPs of every level with 95 % prediction intervals, smallest first; one panel per effect of the term."""
    terms = fit.effects
    name = group or next(iter(terms))
    if name not in terms:
        raise DataError(
            (Argument("group", name), " is not a grouping factor of this fit."),
            f"It has {', '.join(terms)}.",
            about="group",
        )
    at = list(terms).index(name)
    known = fit.effect_variances[at]
    term, variance = fit.random[at], known[0] if isinstance(known, tuple) else known
    values = []
    for column, effect in enumerate(term.names):
        half = NORMAL_95 * np.sqrt(variance[:, column, column])
        for rank, level in enumerate(np.argsort(term.values[:, column], kind="stable").tolist()):
            value = float(term.values[level, column])
            ends = {"low": value - float(half[level]), "high": value + float(half[level])}
            values.append({"effect": effect, "rank": rank, "level": term.levels[level], "value": value, **ends})
    across = chart.number("rank", f"{name}, sorted")
    interval = {"y": chart.number("low", "predicted effect"), "y2": {"field": "high"}}
    told = [chart.name("level"), *map(chart.number, ("value", "low", "high"))]
    layers = [
        chart.mark("rule", {"x": across, **interval}, opacity=0.35),
        chart.mark("circle", {"x": across, "y": chart.number("value"), "tooltip": told}, size=12),
    ]
    return Chart(
        {
            "title": f"Effects of {name}",
            "data": {"values": values},
            "facet": chart.name("effect"),
            "columns": 2,
            "spec": {"layer": layers},
            "resolve": {"scale": {"y": "independent"}},
        }
    )


def residuals_chart(fit: MixedFit | GeneralisedFit, sample: int) -> Chart:
    """Pearson residuals against fitted values; beyond `sample` rows, evenly spaced ones."""
    fitted, residual = fit.fitted, fit.residuals("pearson")
    at = np.linspace(0, len(fitted) - 1, min(sample, len(fitted))).astype(np.int64)
    values = [{"fitted": float(f), "residual": float(r)} for f, r in zip(fitted[at], residual[at], strict=True)]
    axes = {"x": chart.number("fitted", "fitted value"), "y": chart.number("residual", "Pearson residual")}
    points = chart.mark("circle", axes, values, size=14, opacity=0.5)
    zero = chart.mark("rule", {"y": chart.number("residual")}, [{"residual": 0}], strokeDash=[4, 4])
    return Chart({"title": fit.formula, "layer": [points, zero]})


def quantiles_chart(fit: MixedFit, sample: int) -> Chart:
    """Pearson residuals against normal quantiles; beyond `sample` rows, evenly spaced ranks."""
    from scipy.stats import norm

    residual = np.sort(fit.residuals("pearson"))
    at = np.unique(np.linspace(0, len(residual) - 1, min(sample, len(residual))).astype(np.int64))
    expected = norm.ppf((at + 0.5) / len(residual))
    values = [{"expected": float(e), "residual": float(r)} for e, r in zip(expected, residual[at], strict=True)]
    axes = {"x": chart.number("expected", "normal quantile"), "y": chart.number("residual", "Pearson residual")}
    ends = [{"expected": float(e), "residual": float(e)} for e in (expected[0], expected[-1])]
    line = chart.mark("line", axes, ends, strokeDash=[4, 4])
    return Chart({"title": fit.formula, "layer": [chart.mark("circle", axes, values, size=14, opacity=0.5), line]})
