"""Bayesian linear mixed models: exact posteriors of one random intercept, samplers of it and of several terms.

prior        proper priors, and the paper's scaling of them
variance_prior  proper priors of one variance: inverse gamma, half-t, penalised complexity
conditional  everything given the two variances: a normal law, from moments alone
mixture      finite mixtures of normals: density, distribution, quantiles
series       the same distribution where the normals lie close together
lattice      all modes of the two variances, a box around them, sums in it
exact        the posterior by quadrature over the two variances
deletion     the same posterior without one row, for many rows at once
marginal     the posterior of one number: density, distribution, quantiles
gibbs        draws whose cost does not depend on the number of rows
terms        models of several variances: normal given them, and sampled over them with the rest integrated
terms_fit    `BayesTerms`, their result
predictive   draws of responses from a posterior, and its draws for arviz
diagnostics  split R-hat and effective sample size
fit          `BayesMixed`, the result; summary and charts show it
estimate     `bayes_mixed`, the door, also reached by `mixed(..., prior=...)`

Names load on first use.

charts   trace plots and densities, for the analyst who holds the data: they are not releases
summary  A Bayesian fit as a table, as text and as plain values. Formatting lives here and nowhere else
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.models.bayes.blmm.estimate import bayes_mixed
    from discreet.models.bayes.blmm.exact import Posterior
    from discreet.models.bayes.blmm.fit import BayesMixed
    from discreet.models.bayes.blmm.gibbs import Chains, ConvergenceWarning
    from discreet.models.bayes.blmm.prior import Prior
    from discreet.models.bayes.blmm.terms_fit import BayesTerms
    from discreet.models.bayes.blmm.variance_prior import PC, HalfT, InverseGamma

_HOME = {
    "BayesMixed": "fit",
    "bayes_mixed": "estimate",
    "Posterior": "exact",
    "Chains": "gibbs",
    "ConvergenceWarning": "gibbs",
    "Prior": "prior",
    "BayesTerms": "terms_fit",
    "HalfT": "variance_prior",
    "InverseGamma": "variance_prior",
    "PC": "variance_prior",
}
__all__ = [
    "PC",
    "BayesMixed",
    "BayesTerms",
    "Chains",
    "ConvergenceWarning",
    "HalfT",
    "InverseGamma",
    "Posterior",
    "Prior",
    "bayes_mixed",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"discreet.models.bayes.blmm.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
