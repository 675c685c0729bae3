"""Charts of a fit, for the analyst who holds the data: they show levels and rows, so they are not releases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from discreet.lmm.fit import MixedFit

NORMAL_95 = 1.959963984540054


def effects_chart(fit: MixedFit, group: str | None) -> Any:
    """EBLUPs of every level with 95 % prediction intervals, smallest first; one panel per effect of the term."""
    import altair as alt

    terms = fit.effects
    name = group or next(iter(terms))
    if name not in terms:
        raise ValueError(f"group={name!r} is not a grouping factor of this fit; it has {', '.join(terms)}.")
    at = list(terms).index(name)
    term, (variance, _) = fit.random[at], fit.effect_variances[at]
    values = []
    for column, effect in enumerate(term.names):
        half = NORMAL_95 * np.sqrt(variance[:, column, column])
        for rank, level in enumerate(np.argsort(term.values[:, column], kind="stable").tolist()):
            value = float(term.values[level, column])
            ends = {"low": value - float(half[level]), "high": value + float(half[level])}
            values.append({"effect": effect, "rank": rank, "level": term.levels[level], "value": value, **ends})
    base = alt.Chart(alt.InlineData(values=values)).encode(x=alt.X("rank:Q", title=f"{name}, sorted"))
    rule = base.mark_rule(opacity=0.35).encode(y=alt.Y("low:Q", title="predicted effect"), y2="high:Q")
    point = base.mark_circle(size=12).encode(y="value:Q", tooltip=["level:N", "value:Q", "low:Q", "high:Q"])
    return (
        (rule + point)
        .facet("effect:N", columns=2)
        .properties(title=f"Effects of {name}")
        .resolve_scale(y="independent")
    )


def residuals_chart(fit: MixedFit, sample: int) -> Any:
    """Pearson residuals against fitted values; beyond `sample` rows, evenly spaced ones."""
    import altair as alt

    fitted, residual = fit.fitted, fit.residuals("pearson")
    at = np.linspace(0, len(fitted) - 1, min(sample, len(fitted))).astype(np.int64)
    values = [{"fitted": float(f), "residual": float(r)} for f, r in zip(fitted[at], residual[at], strict=True)]
    points = (
        alt.Chart(alt.InlineData(values=values))
        .mark_circle(size=14, opacity=0.5)
        .encode(x=alt.X("fitted:Q", title="fitted value"), y=alt.Y("residual:Q", title="Pearson residual"))
    )
    zero = alt.Chart(alt.InlineData(values=[{"residual": 0}])).mark_rule(strokeDash=[4, 4]).encode(y="residual:Q")
    return (points + zero).properties(title=fit.formula)
