"""Bayesian linear mixed models with one random intercept: exact posteriors, and a Gibbs sampler to check them.

prior        proper conjugate priors, and the paper's scaling of them
conditional  everything given the two variances: a normal law, from moments alone
mixture      finite mixtures of normals: density, distribution, quantiles
series       the same distribution where the normals lie close together
lattice      all modes of the two variances, a box around them, sums in it
exact        the posterior by quadrature over the two variances
deletion     the same posterior without one row, for many rows at once
marginal     the posterior of one number: density, distribution, quantiles
gibbs        draws whose cost does not depend on the number of rows
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
    from discreet.bayes.blmm.estimate import bayes_mixed
    from discreet.bayes.blmm.exact import Posterior
    from discreet.bayes.blmm.fit import BayesMixed
    from discreet.bayes.blmm.gibbs import Chains, ConvergenceWarning
    from discreet.bayes.blmm.prior import Prior

_HOME = {
    "BayesMixed": "fit",
    "bayes_mixed": "estimate",
    "Posterior": "exact",
    "Chains": "gibbs",
    "ConvergenceWarning": "gibbs",
    "Prior": "prior",
}
__all__ = ["BayesMixed", "Chains", "ConvergenceWarning", "Posterior", "Prior", "bayes_mixed"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"discreet.bayes.blmm.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
