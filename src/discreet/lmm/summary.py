"""A fit as a table, as text and as plain values. Formatting lives here and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from discreet.lmm.fit import MixedFit


def tidy(fit: MixedFit) -> Any:
    """One row per fixed effect and per variance component, in a PyArrow table."""
    import pyarrow as pa

    se = fit.se
    rows: list[dict[str, Any]] = [
        {"effect": "fixed", "group": None, "term": name, "estimate": value, "std_error": se[name]}
        for name, value in fit.fixed.items()
    ]
    for term in fit.random:
        q = len(term.names)
        pairs = [(i, i) for i in range(q)] + [(i, j) for i in range(q) for j in range(i + 1, q)]
        for i, j in pairs:
            name = f"var {term.names[i]}" if i == j else f"cov {term.names[i]}, {term.names[j]}"
            rows.append({"effect": "random", "group": term.group, "term": name, "estimate": term.covariance[i, j]})
    rows.append({"effect": "random", "group": "Residual", "term": "var", "estimate": fit.sigma2})
    for row in rows:
        row["statistic"] = row["estimate"] / row["std_error"] if row.get("std_error") else None
        row.setdefault("std_error", None)
    strings = [(name, pa.string()) for name in ("effect", "group", "term")]
    numbers = [(name, pa.float64()) for name in ("estimate", "std_error", "statistic")]
    return pa.Table.from_pylist(rows, schema=pa.schema(strings + numbers))


def to_dict(fit: MixedFit) -> dict[str, Any]:
    return {
        "formula": fit.formula,
        "method": fit.method,
        "rows": fit.rows,
        "criterion": fit.criterion,
        "loglik": fit.loglik,
        "aic": fit.aic,
        "bic": fit.bic,
        "fixed": fit.fixed,
        "se": fit.se,
        "variances": fit.variances,
        "groups": {name: len(term.levels) for name, term in fit.effects.items()},
        "dropped": list(fit.dropped),
        "is_singular": fit.is_singular,
        "notes": list(fit.notes),
    }


def summary(fit: MixedFit) -> str:
    """Text in the order of lme4's summary."""
    way = "REML" if fit.method == "REML" else "maximum likelihood"
    name = "REML criterion" if fit.method == "REML" else "deviance"
    lines = [
        f"Linear mixed model fit by {way}",
        f"Formula: {fit.formula}",
        "",
        f"{name} {fit.criterion:.4f}   AIC {fit.aic:.2f}   BIC {fit.bic:.2f}   logLik {fit.loglik:.4f}",
        "",
        "Random effects:",
    ]
    table = [["group", "effect", "variance", "std. dev.", "corr."]]
    for term in fit.random:
        sd = np.sqrt(np.diag(term.covariance))
        for i, effect in enumerate(term.names):
            with np.errstate(invalid="ignore", divide="ignore"):
                corr = " ".join(f"{term.covariance[i, j] / sd[i] / sd[j]:.2f}" for j in range(i))
            table.append([term.group if i == 0 else "", effect, f"{sd[i] ** 2:.6g}", f"{sd[i]:.5g}", corr])
    table.append(["Residual", "", f"{fit.sigma2:.6g}", f"{np.sqrt(fit.sigma2):.5g}", ""])
    lines += _aligned(table, left=2)
    groups = ", ".join(f"{name} {len(term.levels):,}" for name, term in fit.effects.items())
    lines += [f"Observations: {fit.rows:,}; groups: {groups}", "", "Fixed effects:"]
    table = [["", "estimate", "std. error", "t value"]]
    for effect, value in fit.fixed.items():
        error = fit.se[effect]
        table.append([effect, f"{value:.6g}", f"{error:.5g}", f"{value / error:.3f}"])
    lines += _aligned(table, left=1)
    return "\n".join([*lines, *(f"Note: {note}" for note in fit.notes)])


def _aligned(table: list[list[str]], *, left: int) -> list[str]:
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    return [
        " "
        + "  ".join(
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
