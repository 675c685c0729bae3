"""A Bayesian fit as a table, as text and as plain values. Formatting lives here and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.models.bayes.blmm.diagnostics import rhat
from discreet.models.bayes.blmm.gibbs import RHAT_LIMIT
from discreet.models.bayes.blmm.marginal import DrawnMarginal, Marginal
from discreet.results import tidy_table
from discreet.words.caveats import A_LINE, ABOVE_ZERO, LEANS, NORMAL, ONE_SLOPE, ONE_VARIANCE, PRIOR

if TYPE_CHECKING:
    from discreet.arrays import Matrix
    from discreet.models.bayes.blmm.fit import BayesMixed
    from discreet.models.bayes.blmm.gibbs import Chains
    from discreet.models.bayes.blmm.prior import Prior

INTERCEPT = "(Intercept)"
ENDS = np.array([0.025, 0.975])
LEVELS = np.array([0.05, 0.5, 0.95])
NUMBERS = ("mean", "sd", "q05", "q50", "q95")
JUDGED = ("rhat", "effective")
SUPPOSED = (
    f"In intervals {NORMAL}: those of variances hold more rarely where tails are heavier, and {ABOVE_ZERO}. Of "
    f"residuals {ONE_VARIANCE}, and between columns and response {A_LINE}, and {ONE_SLOPE} for all groups. "
    f"Intervals of fixed effects hold more often than they say where groups hardly differ: {PRIOR}. Where groups are "
    f"few or small, {LEANS}."
)


def table(model: BayesMixed) -> list[dict[str, Any]]:
    """One dictionary for each fixed effect and each variance."""
    rows = [{"parameter": name, **_numbers(model.coefficient(name))} for name in model.fit.names]
    return rows + [{"parameter": f"var {name}", **_numbers(model.variance(name))} for name in model.variances[::-1]]


def tidy(model: BayesMixed, *, levels: bool) -> Any:
    """One row for each fixed effect and variance, and for each level's effect if asked."""
    group = model.fit.random[0].group
    laws = [*map(model.coefficient, model.fit.names), *map(model.variance, model.variances[::-1])]
    found = [(law.mean, law.sd, *law.quantile(ENDS).tolist(), _judged(law)) for law in laws]
    kinds: list[tuple[str, str | None, str | None, str | None]] = [
        ("fixed", None, name, None) for name in model.fit.names
    ]
    kinds += [("variance", group, INTERCEPT, None), ("variance", "Residual", None, None)]
    if levels:
        kinds += [("random", group, INTERCEPT, level) for level in model.levels]
        found += _effects(model)
    effect, groups, term, level = (list(column) for column in zip(*kinds, strict=True))
    mean, sd, lower, upper, flag = (list(column) for column in zip(*found, strict=True))
    return tidy_table(
        effect=effect,
        group=groups,
        term=term,
        level=level,
        estimate=mean,
        std_error=sd,
        lower=lower,
        upper=upper,
        flag=flag,
    )


def to_dict(model: BayesMixed) -> dict[str, Any]:
    return {
        "formula": model.fit.formula,
        "method": model.method,
        "prior": prior_values(model.prior),
        "rows": model.fit.rows,
        "groups": {model.fit.random[0].group: len(model.levels)},
        "posterior": table(model),
        "rhat_max": model.chains.rhat_max if model.chains else None,
        "effective_min": model.chains.effective_min if model.chains else None,
        "notes": list(model.notes),
    }


def prior_values(prior: Prior) -> dict[str, Any]:
    """A prior as plain values, which read as one again."""
    own = {name: str(law) for name, law in prior.variances.items()}
    return {"V": prior.V, "nu": prior.nu, "sd": prior.sd} | ({"variances": own} if own else {})


def summary(model: BayesMixed) -> str:
    way = "exact posterior" if model.method == "exact" else "posterior by Gibbs sampling"
    head = [convergence(model.chains)] if model.chains else []
    head += [f"Bayesian linear mixed model, {way}: {model.fit.formula}", f"Prior: {model.prior}"]
    head.append(f"{model.fit.rows:,} rows, {len(model.levels):,} levels of {model.fit.random[0].group}")
    rows = table(model)
    columns = [key for key in (*NUMBERS, *JUDGED) if key in rows[0]]
    wide = max(len(str(row["parameter"])) for row in rows) + 2
    body = ["".join([" " * wide, *(f"{key:>12}" for key in columns)])]
    body += [f"{row['parameter']!s:{wide}}" + "".join(f"{row[key]:12.5g}" for key in columns) for row in rows]
    return "\n".join([*head, "", *body, *(f"Note: {note}" for note in model.notes), SUPPOSED])


def convergence(chains: Chains) -> str:
    """Whether chains can be trusted, in a line."""
    count, length = chains.u.shape[:2]
    return (
        f"{'Converged' if chains.converged else 'NOT CONVERGED'}: split R-hat at most {chains.rhat_max:.4f}, "
        f"{chains.effective_min:,.0f} effective draws at least, in {count} chains of {length:,} draws"
    )


def _numbers(law: Marginal) -> dict[str, float]:
    low, middle, high = law.quantile(LEVELS).tolist()
    found = {"mean": law.mean, "sd": law.sd, "q05": low, "q50": middle, "q95": high}
    return found | ({"rhat": law.rhat, "effective": law.effective} if isinstance(law, DrawnMarginal) else {})


def _effects(model: BayesMixed) -> list[tuple[float, float, float, float, str | None]]:
    """Mean, deviation, ends and flag of all levels at once."""
    if model.method == "exact":
        law = model.posterior.effects
        every: Matrix = np.column_stack([law.mean, law.sd, law.quantile(ENDS)])
        return [(*row, None) for row in every.tolist()]
    u = model.chains.u  # type: ignore[union-attr]
    flat = u.reshape(-1, u.shape[2])
    every = np.column_stack([flat.mean(axis=0), flat.std(axis=0, ddof=1), np.quantile(flat, ENDS, axis=0).T])
    return [(*row, _word(r)) for row, r in zip(every.tolist(), rhat(u).tolist(), strict=True)]


def _judged(law: Marginal) -> str | None:
    return _word(law.rhat) if isinstance(law, DrawnMarginal) else None


def _word(rhat: float) -> str | None:
    return "not converged" if rhat > RHAT_LIMIT else None
