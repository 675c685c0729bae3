"""Fits beside each other: likelihood-ratio tests of nested models, as R's anova gives them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Vector
from discreet.models.linear.fit import MixedFit, MixedWarning, log_total
from discreet.models.linear.general_fit import GeneralisedFit
from discreet.models.linear.inference import gram_of_fit
from discreet.models.linear.pencil import solve_parts
from discreet.models.linear.solution import solve_gram
from discreet.results import Result, tidy_table
from discreet.words.errors import FitError

LOST = 1e-4  # of the deviance: what the searches of two fits may differ by


@dataclass(frozen=True)
class Ratio:
    """One model in a comparison; the test is against the one before it.

    Attributes
    ----------
    formula, parameters, loglik, aic, bic : of the model, by maximum likelihood.
    chisq, df, p : twice the rise of the log-likelihood, but 0 at least, parameters more, and the p value; None for the
        first. There is no p value where both have as many parameters.
    """

    formula: str
    parameters: int
    loglik: float
    aic: float
    bic: float
    chisq: float | None = None
    df: int | None = None
    p: float | None = None


@dataclass(frozen=True)
class LikelihoodRatios(Result):
    """Models of the same rows, the smallest first.

    Attributes
    ----------
    models : one `Ratio` for each.
    notes : where a model is not within the next larger one, so that the test of the two says nothing.
    """

    models: tuple[Ratio, ...]
    notes: tuple[str, ...] = ()

    def tidy(self) -> Any:
        """The rise of each model's deviance, with its degrees of freedom and p value as level."""
        later = self.models[1:]
        return tidy_table(
            effect=["likelihood ratio"] * len(later),
            group=[None] * len(later),
            term=[each.formula for each in later],
            level=[f"df {each.df}, p {each.p:.6g}" if each.p is not None else f"df {each.df}" for each in later],
            estimate=[each.chisq for each in later],
            std_error=[None] * len(later),
            lower=[None] * len(later),
            upper=[None] * len(later),
            flag=None,
        )

    def __str__(self) -> str:
        lines = [f"{'npar':>5} {'AIC':>12} {'BIC':>12} {'logLik':>12} {'Chisq':>10} {'Df':>3} {'p':>10}  model"]
        for each in self.models:
            p = "" if each.p is None else f"{each.p:.4g}"
            test = "" if each.chisq is None else f"{each.chisq:>10.4f} {each.df:>3} {p:>10}"
            numbers = f"{each.parameters:>5} {each.aic:>12.3f} {each.bic:>12.3f} {each.loglik:>12.4f}"
            lines.append(f"{numbers} {test:>25}  {each.formula}")
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])


def compare(*fits: MixedFit | GeneralisedFit) -> LikelihoodRatios:
    """Test each model against the next smaller one; fits by REML are refitted by maximum likelihood, as in R.

    A test supposes that the smaller model is within the larger one. Where it is not, a `MixedWarning` and the `notes`
    say so.

    Parameters
    ----------
    fits : two or more fits of the same response to the same rows.

    Returns
    -------
    A `LikelihoodRatios`, whose `models` have the numbers of R's `anova(fit1, fit2)`.
    """
    from scipy.stats import chi2

    for fit in fits:
        if not isinstance(fit, MixedFit | GeneralisedFit):
            raise FitError(
                f"A comparison was requested with a {type(fit).__name__}.",
                "It is of fits of `dc.mixed` without a prior.",
                "Give two or more of them.",
                about="fits",
            )
    if len(fits) < 2 or len({_response(fit) for fit in fits}) > 1:
        raise FitError(
            f"A comparison was requested for {len(fits)} fits that are not of the same responses in the same rows."
            if len(fits) > 1
            else f"A comparison was requested for {len(fits)} fits.",
            "It is of two or more fits of one response, of one family, to the same rows, with one number of points.",
            "Fit them to the same data.",
            about="fits",
        )
    found: list[Ratio] = []
    notes: list[str] = []
    before: MixedFit | GeneralisedFit | None = None
    for parameters, loglik, fit in sorted((_likelihood(fit) for fit in fits), key=lambda each: each[:2]):
        aic, bic = 2 * parameters - 2 * loglik, float(np.log(fit.rows)) * parameters - 2 * loglik
        if before is None:
            found.append(Ratio(fit.formula, parameters, loglik, aic, bic))
        else:
            more, rise = parameters - found[-1].parameters, 2 * (loglik - found[-1].loglik)
            notes += _not_within(before, fit, more=more, rise=rise)
            rise = max(rise, 0.0)
            p = float(chi2.sf(rise, more)) if more else None
            found.append(Ratio(fit.formula, parameters, loglik, aic, bic, rise, more, p))
        before = fit
    for note in notes:
        warnings.warn(note, MixedWarning, stacklevel=2)
    return LikelihoodRatios(tuple(found), tuple(notes))


def _not_within(
    smaller: MixedFit | GeneralisedFit, larger: MixedFit | GeneralisedFit, *, more: int, rise: float
) -> list[str]:
    """Why the smaller model is not within the larger one, as far as numbers and names tell."""
    both = f"{smaller.formula!r} and {larger.formula!r}"
    if more == 0:
        return [f"{both} have as many parameters, so neither is tested against the other"]
    if rise < -LOST:
        return [f"{both}: the one with more parameters fits worse, so the smaller is not within it, and p says nothing"]
    effects = [{(term.group, name) for term in fit.random for name in term.names} for fit in (smaller, larger)]
    missing = [name for name in smaller.names if name not in larger.names]
    missing += [f"{name} of {group}" for group, name in sorted(effects[0] - effects[1])]
    if missing:
        return [f"{both}: the larger has no {missing[0]}, and p supposes that the smaller is within it"]
    return []


def _likelihood(fit: MixedFit | GeneralisedFit) -> tuple[int, float, MixedFit | GeneralisedFit]:
    if isinstance(fit, MixedFit) and fit.method == "REML" and fit.residual:
        found, _ = solve_parts(fit.residual.parts, fit.residual.law, reml=False)
        return fit.parameters, -found.criterion / 2, fit
    if isinstance(fit, MixedFit) and fit.method == "REML":
        deviance = solve_gram(gram_of_fit(fit), reml=False).criterion - log_total(fit.weights)
        return fit.parameters, -deviance / 2, fit
    return fit.parameters, fit.loglik, fit


def _response(fit: MixedFit | GeneralisedFit) -> tuple[str, int, str, str, int]:
    """The common features of fits that can be compared, with the response to twelve digits."""
    response, family = fit.design.layout.model.response, fit.family
    if isinstance(fit, GeneralisedFit):
        size = float(fit.response @ fit.response)
    else:
        shift, weights = fit.design.layout.response.shift, None if fit.residual else fit.weights
        if fit.offset is not None:
            return str(response), fit.rows, family, _size_with_offset(fit, weights), 1
        squares = fit.residual.squares if fit.residual else float(fit.statistics.joint[-1, -1])
        size = squares + shift**2 * fit.rows + log_total(weights)
    points = fit.points if isinstance(fit, GeneralisedFit) else 1
    return str(response), fit.rows, family, f"{size:.9e}", points


def _size_with_offset(fit: MixedFit, weights: Vector | None) -> str:
    """The response's size as a fit without the offset would have it: another offset is no other response."""
    y = fit.response
    shift = float(y.mean()) if fit.design.layout.response.shift else 0.0
    squares = float(np.sum((y - shift) ** 2 * (1.0 if weights is None else weights)))
    return f"{squares + shift**2 * fit.rows + log_total(weights):.9e}"
