"""Linear mixed models by REML: one pass over the data, then work on sums.

`mixed` fits a model; `MixedFit` is the answer; `Moments` is what the fit is computed from; `fit_blocks` fits thousands
of disjoint random blocks at once; `influential`, `leave_groups_out` and `leave_rows_out` study what single rows and
groups change; `private` releases models. Names load on first use.
The formulas themselves are in `discreet.models.formula`.

blocks     thousands of small mixed models at once: k random disjoint blocks of the rows, each fitted on its own
bootstrap  simulated responses, refits to other responses, and bootstrap intervals of fixed effects
cells      one pass over the data: sums of products of the numeric columns within every combination of levels
charts     charts of a fit, for the analyst who holds the data: they show levels and rows, so they are not releases
descent    minimising a smooth function of a few variables whose slopes are known
effects    random effects of a term, by the name of their group and level; a wrong name is an error that names others
elimination sparse Cholesky factors of matrices with one pattern and many values, by rounds of independent unknowns
estimate   `mixed`, the door to linear mixed models: read the formula, pass over the data once, minimise, wrap
evaluations evaluations of a criterion, told as they are made
families   families of responses: laws with derivatives, links, checks, draws; one file each
few        the criterion of few random effects, with slopes and curvature, by plain matrices
fit        `MixedFit`, what a fitted mixed model knows. Numbers come from `solution`; text and charts live elsewhere
general_bootstrap simulated counts and shares, refits to other responses, the parametric bootstrap
general_fit `GeneralisedFit`, what a fitted mixed model of counts or shares knows
general_inference tests and contrasts of counts and shares, intervals of fixed effects and of variances
general_precision how precisely effects and linear predictors of counts and shares are known
general_prediction predictions of counts and shares with standard errors and intervals
general_residuals residuals of counts and shares: of the response, over their spread, by the deviance
generalised the door to mixed models of counts and shares: read the formula and the rows, check, maximise, wrap
gram       from cells to the cross-products a model needs
inference  tests of fixed effects: Satterthwaite's degrees of freedom, contrasts, profiles of coefficients
influence  which rows carry weight: the paper's choice of 32 influential rows
information slopes of the profiled criterion, and about its second derivatives: the average information
intervals  intervals of fixed effects and of predictions: the doors to `inference`, `bootstrap` and `prediction`
laplace    likelihoods of generalised mixed models: Laplace's approximation with its gradient, and adaptive quadrature
likelihood the best parameters of a generalised mixed model
likelihood_fit what every fit by maximum likelihood has: effects by name, criteria, simulated responses, its data
matrix     the design at given rows: as a dense chunk, or times coefficients without being built
memory     factors and draws that would not fit into the free memory: refused before they are tried
moments    sufficient statistics of a mixed model with one random intercept
offsets    offsets of linear models: columns that are added to the linear predictor as they are
origin     from the columns a fit is computed with back to the columns of the formula
pencil     a Gram matrix that is a weighted sum of others, and the fit over theta and what the weights depend on
prediction how well a row is predicted: the variance of its fitted value, old levels and new ones; leverage
predictive the law of a new count or share whose linear predictor is known up to an error
profile    profile-likelihood intervals of standard deviations, correlations and the residual, as lme4's confint gives
ratios     fits beside each other: likelihood-ratio tests of nested models
refits     exact refits without a row or a group, thousands at a time
reml       profiled REML and ML criteria of a model with one random intercept, for one data set or thousands at once
residuals  laws of residuals beyond one variance: a variance for each stratum, or autoregression within series
scales     sizes of responses, columns and weights that doubles cannot compute with: refused before a fit
solution   A fitted model as arrays: minimise the criterion, then solve for everything else at the minimum
sparse     profiled criteria for any random terms: several factors, nested or crossed, with slopes; their gradients
start      where the search over theta begins: every effect alone
summary    A fit as a table, as text and as plain values. Formatting lives here and nowhere else
tops       the modes of effects where zeros may be extra: the highest top of each group
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.models.linear.blocks import Blocks, fit_blocks
    from discreet.models.linear.estimate import mixed
    from discreet.models.linear.fit import MixedFit, MixedWarning
    from discreet.models.linear.influence import influential
    from discreet.models.linear.moments import Moments
    from discreet.models.linear.ratios import compare
    from discreet.models.linear.refits import Refits, leave_groups_out, leave_rows_out

_HOME = {
    "Blocks": "blocks",
    "compare": "ratios",
    "fit_blocks": "blocks",
    "influential": "influence",
    "Refits": "refits",
    "leave_groups_out": "refits",
    "leave_rows_out": "refits",
    "MixedFit": "fit",
    "MixedWarning": "fit",
    "mixed": "estimate",
    "Moments": "moments",
}
__all__ = [
    "Blocks",
    "MixedFit",
    "MixedWarning",
    "Moments",
    "Refits",
    "compare",
    "fit_blocks",
    "influential",
    "leave_groups_out",
    "leave_rows_out",
    "mixed",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"discreet.models.linear.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
