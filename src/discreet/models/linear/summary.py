"""A fit as a table, as text and as plain values. Formatting lives here and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.results import normal_ends, tidy_table

if TYPE_CHECKING:
    from discreet.arrays import Matrix
    from discreet.models.linear.effects import RandomEffects
    from discreet.models.linear.fit import MixedFit
    from discreet.models.linear.general_fit import GeneralisedFit


def tidy(fit: MixedFit, *, levels: bool) -> Any:
    """One row per fixed effect, variance and covariance, and per level's effect if asked."""
    rows = _fixed_and_variances(fit)
    if fit.residual is None or fit.autocorrelation is not None:
        rows.append(("variance", "Residual", None, None, fit.sigma2, None))
    else:
        own = fit.residual.variances(fit.sigma2)
        rows += [("variance", "Residual", None, name.removeprefix("Residual: "), v, None) for name, v in own.items()]
    if fit.autocorrelation is not None:
        rows.append(("parameter", None, "autocorrelation", None, fit.autocorrelation, None))
    return estimates(rows + (_levels(fit.random, [free for free, _ in fit.effect_variances]) if levels else []))


def tidy_of_general(fit: GeneralisedFit, *, levels: bool) -> Any:
    """The same, with the parameters of the family in the residual variance's place.

    The dispersion of shares and of Poisson counts is one by their law; private fits estimate it.
    """
    own = fit.own or {"dispersion": 1.0}
    rows = _fixed_and_variances(fit) + [("parameter", None, name, None, value, None) for name, value in own.items()]
    return estimates(rows + (_levels(fit.random, fit.effect_variances) if levels else []))


def _fixed_and_variances(fit: MixedFit | GeneralisedFit) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = [
        ("fixed", None, name, None, value, fit.se[name]) for name, value in fit.fixed.items()
    ]
    for term in fit.random:
        rows += [("variance", term.group, name, None, term.covariance[i, i], None) for i, name in enumerate(term.names)]
        rows += [
            ("covariance", term.group, f"{term.names[i]}, {term.names[j]}", None, term.covariance[i, j], None)
            for i, j in combinations(range(len(term.names)), 2)
        ]
    return rows


def _levels(random: Sequence[RandomEffects], variances: Sequence[Matrix]) -> list[tuple[Any, ...]]:
    """The effects of all levels, with the variances of their errors (levels, q, q)."""
    rows: list[tuple[Any, ...]] = []
    for term, variance in zip(random, variances, strict=True):
        for i, name in enumerate(term.names):
            errors = np.sqrt(np.maximum(variance[:, i, i], 0)).tolist()
            found = zip(term.levels, term.values[:, i].tolist(), errors, strict=True)
            rows += [("random", term.group, name, level, value, error) for level, value, error in found]
    return rows


def estimates(rows: Sequence[tuple[Any, ...]], *, flags: Sequence[str | None] | None = None) -> Any:
    """A tidy table of rows (effect, group, term, level, estimate, std_error), with normal intervals."""
    effect, group, term, level, estimate, std_error = (list(column) for column in zip(*rows, strict=True))
    lower, upper = normal_ends(estimate, std_error)
    return tidy_table(
        effect=effect,
        group=group,
        term=term,
        level=level,
        estimate=estimate,
        std_error=std_error,
        lower=lower,
        upper=upper,
        flag=flags,
    )


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
        **({} if fit.autocorrelation is None else {"autocorrelation": fit.autocorrelation}),
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
        table += _spreads(term)
    own = fit.residual.variances(fit.sigma2) if fit.residual else {"Residual": fit.sigma2}
    for name, value in own.items():
        group, _, level = name.partition(": ")
        table.append([group, level, f"{value:.6g}", f"{np.sqrt(value):.5g}", ""])
    lines += _aligned(table, left=2)
    if fit.residual:
        lines.append(f"Residuals have {fit.residual.law.words}")
    if fit.autocorrelation is not None:
        lines.append(f"Correlation of residuals one period apart: {fit.autocorrelation:.5g}")
    groups = ", ".join(f"{name} {len(term.levels):,}" for name, term in fit.effects.items())
    lines += [f"Observations: {fit.rows:,}; groups: {groups}", "", "Fixed effects:"]
    table = [["", "estimate", "std. error", "t value"]]
    for effect, value in fit.fixed.items():
        error = fit.se[effect]
        table.append([effect, f"{value:.6g}", f"{error:.5g}", f"{value / error:.3f}"])
    lines += _aligned(table, left=1)
    return "\n".join([*lines, *(f"Note: {note}" for note in fit.notes)])


def summary_of_general(fit: GeneralisedFit) -> str:
    """Text in the order of lme4's summary of a generalised model."""
    way = "Laplace approximation" if fit.points == 1 else f"adaptive quadrature, {fit.points} points"
    lines = [
        f"Generalised mixed model fit by maximum likelihood ({way})",
        f"Family: {fit.family}",
        f"Formula: {fit.formula}",
        "",
        f"deviance {fit.criterion:.4f}   AIC {fit.aic:.2f}   BIC {fit.bic:.2f}   logLik {fit.loglik:.4f}",
        "",
        "Random effects:",
    ]
    table = [["group", "effect", "variance", "std. dev.", "corr."]]
    for term in fit.random:
        table += _spreads(term)
    lines += _aligned(table, left=2)
    groups = ", ".join(f"{term.group} {len(term.levels):,}" for term in fit.random)
    lines += [f"Observations: {fit.rows:,}; groups: {groups}"]
    lines += [f"{name}: {value:.6g}" for name, value in fit.own.items()]
    lines += ["", "Fixed effects:"]
    table = [["", "estimate", "std. error", "z value"]]
    for effect, value in fit.fixed.items():
        error = fit.se[effect]
        table.append([effect, f"{value:.6g}", f"{error:.5g}", f"{value / error:.3f}" if error else ""])
    lines += _aligned(table, left=1)
    return "\n".join([*lines, *(f"Note: {note}" for note in fit.notes)])


def _spreads(term: RandomEffects) -> list[list[str]]:
    """Lines of one random term: variances, standard deviations and correlations."""
    sd, lines = np.sqrt(np.diag(term.covariance)), []
    for i, effect in enumerate(term.names):
        with np.errstate(invalid="ignore", divide="ignore"):
            corr = " ".join(f"{term.covariance[i, j] / sd[i] / sd[j]:.2f}" for j in range(i))
        lines.append([term.group if i == 0 else "", effect, f"{sd[i] ** 2:.6g}", f"{sd[i]:.5g}", corr])
    return lines


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
