"""A Bayesian fit as a table, as text and as plain values. Formatting lives here and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.bayes.blmm.diagnostics import effective_size, rhat
from discreet.bayes.blmm.marginal import DrawnMarginal, Marginal

if TYPE_CHECKING:
    from discreet.arrays import Matrix
    from discreet.bayes.blmm.fit import BayesMixed

LEVELS = np.array([0.05, 0.5, 0.95])
NUMBERS = ("mean", "sd", "q05", "q50", "q95")
JUDGED = ("rhat", "effective")


def table(model: BayesMixed) -> list[dict[str, Any]]:
    """One dictionary for each fixed effect and each variance."""
    rows = [{"parameter": name, **_numbers(model.coefficient(name))} for name in model.fit.names]
    return rows + [{"parameter": f"var {name}", **_numbers(model.variance(name))} for name in model.variances[::-1]]


def tidy(model: BayesMixed, *, levels: bool) -> Any:
    """One row for each fixed effect and variance, and for each level's effect if asked, in a PyArrow table."""
    import pyarrow as pa

    group = model.fit.random[0].group
    rows: list[dict[str, Any]] = [
        {"effect": "fixed", "group": None, "term": name, **_numbers(model.coefficient(name))}
        for name in model.fit.names
    ]
    rows += [
        {"effect": "random", "group": name, "term": "var", **_numbers(model.variance(name))}
        for name in model.variances[::-1]
    ]
    if levels:
        rows += [
            {"effect": "level", "group": group, "term": level, **numbers}
            for level, numbers in zip(model.levels, _effects(model), strict=True)
        ]
    strings = [(name, pa.string()) for name in ("effect", "group", "term")]
    numbers = [(name, pa.float64()) for name in (*NUMBERS, *JUDGED)]
    return pa.Table.from_pylist(rows, schema=pa.schema(strings + numbers))


def to_dict(model: BayesMixed) -> dict[str, Any]:
    return {
        "formula": model.fit.formula,
        "method": model.method,
        "prior": {"V": model.prior.V, "nu": model.prior.nu, "sd": model.prior.sd},
        "rows": model.fit.rows,
        "groups": {model.fit.random[0].group: len(model.levels)},
        "posterior": table(model),
        "rhat_max": model.chains.rhat_max if model.chains else None,
        "effective_min": model.chains.effective_min if model.chains else None,
        "notes": list(model.notes),
    }


def summary(model: BayesMixed) -> str:
    way = "exact posterior" if model.method == "exact" else "posterior by Gibbs sampling"
    head = [f"Bayesian linear mixed model, {way}: {model.fit.formula}", f"Prior: {model.prior}"]
    head.append(f"{model.fit.rows:,} rows, {len(model.levels):,} levels of {model.fit.random[0].group}")
    if model.chains:
        chains, length = model.chains.u.shape[:2]
        head.append(
            f"{chains} chains of {length:,} draws: split R-hat at most {model.chains.rhat_max:.4f}, "
            f"{model.chains.effective_min:,.0f} effective draws at least"
        )
    rows = table(model)
    columns = [key for key in (*NUMBERS, *JUDGED) if key in rows[0]]
    wide = max(len(str(row["parameter"])) for row in rows) + 2
    body = ["".join([" " * wide, *(f"{key:>12}" for key in columns)])]
    body += [f"{row['parameter']!s:{wide}}" + "".join(f"{row[key]:12.5g}" for key in columns) for row in rows]
    return "\n".join([*head, "", *body, *(f"Note: {note}" for note in model.notes)])


def _numbers(law: Marginal) -> dict[str, float]:
    low, middle, high = law.quantile(LEVELS).tolist()
    found = {"mean": law.mean, "sd": law.sd, "q05": low, "q50": middle, "q95": high}
    return found | ({"rhat": law.rhat, "effective": law.effective} if isinstance(law, DrawnMarginal) else {})


def _effects(model: BayesMixed) -> list[dict[str, float]]:
    """The numbers of all levels at once."""
    if model.method == "exact":
        law = model.posterior.effects
        every: Matrix = np.column_stack([law.mean, law.sd, law.quantile(LEVELS)])
        return [dict(zip(NUMBERS, row, strict=True)) for row in every.tolist()]
    u = model.chains.u  # type: ignore[union-attr]
    flat = u.reshape(-1, u.shape[2])
    every = np.column_stack(
        [flat.mean(axis=0), flat.std(axis=0, ddof=1), np.quantile(flat, LEVELS, axis=0).T, rhat(u), effective_size(u)]
    )
    return [dict(zip((*NUMBERS, *JUDGED), row, strict=True)) for row in every.tolist()]
