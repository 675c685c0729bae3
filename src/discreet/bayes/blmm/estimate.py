"""`bayes_mixed`, the door: a formula, data and a prior in; a posterior out, exact or drawn."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet.bayes.blmm.conditional import PosteriorModel
from discreet.bayes.blmm.exact import Posterior, find_peak
from discreet.bayes.blmm.fit import BayesMixed, Method
from discreet.bayes.blmm.gibbs import gibbs
from discreet.bayes.blmm.prior import Prior, read_prior
from discreet.errors import FitError
from discreet.faults import Argument
from discreet.lmm.fit import MixedFit
from discreet.lmm.moments import Moments

DRAWS = 2_000  # kept in each chain when a sampler is asked for without a number


def bayes_mixed(
    formula: str,
    data: Any,
    *,
    prior: Prior | Mapping[str, float] = Prior(),  # noqa: B008 - frozen
    method: Method = "exact",
    draws: int | None = None,
    chains: int = 4,
    warmup: int | None = None,
    seed: int | np.random.Generator = 0,
) -> BayesMixed:
    """Fit a linear mixed model with one random intercept under a conjugate prior. `mixed(..., prior=...)` is the same.

    Parameters
    ----------
    formula, data : as for `mixed`; the formula has one random term, (1 | group).
    prior : a `Prior`, or its numbers by name, such as {"nu": 12, "V": 0.1, "sd": 1}.
    method : "exact" integrates by quadrature, without Monte Carlo error; "gibbs" answers from draws.
    draws, chains, warmup, seed : of the Gibbs sampler: draws kept in each chain, and as many before them unless
        `warmup` says otherwise. With "exact", `draws` > 0 adds chains beside the exact answers, for joint questions.

    Returns
    -------
    The posterior. Chains that have not converged raise a `ConvergenceWarning`, which also stays on it as `notes`.

    Examples
    --------
    >>> data = {"y": [1, 2, 4, 3, 5, 7, 2, 4], "x": [0, 1, 2, 0, 1, 2, 0, 1], "g": list("aaabbbcc")}
    >>> fit = bayes_mixed("y ~ x + (1 | g)", data)
    >>> round(fit.coefficient("x").mean, 3)
    1.763
    >>> fit.effect("b").quantile([0.05, 0.95]).round(2).tolist()
    [0.66, 1.97]
    """
    from discreet.lmm.estimate import mixed
    from discreet.lmm.fit import MixedWarning

    prior = read_prior(prior)
    check_method(method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixedWarning)  # a prior keeps a singular fit away; dropped columns are noted
        fit = mixed(formula, data)
    return of_fit(fit, prior=prior, method=method, draws=draws, chains=chains, warmup=warmup, seed=seed)


def of_fit(
    fit: MixedFit,
    *,
    prior: Prior = Prior(),  # noqa: B008 - frozen
    method: Method = "exact",
    draws: int | None = None,
    chains: int = 4,
    warmup: int | None = None,
    seed: int | np.random.Generator = 0,
) -> BayesMixed:
    """The posterior of a model that was fitted by REML: its sums are reused."""
    if not isinstance(fit.statistics, Moments):
        raise FitError(
            f"{fit.formula!r} has more than a random intercept. A posterior needs one grouping factor and no slopes, "
            "as in 'y ~ x + (1 | g)'. Reduce the random part, or use `mixed` without a prior.",
            about="formula",
        )
    model = PosteriorModel.of(fit.statistics, prior, restore=fit.origin.restore, offset=fit.origin.offset)
    exact = Posterior.of(model) if method == "exact" else None
    asked = draws if draws is not None else DRAWS if method == "gibbs" else 0
    sampled = None
    if asked or method == "gibbs":
        sampled = gibbs(exact or find_peak(model), draws=asked, chains=chains, warmup=warmup, rng=seed)
    return BayesMixed(fit, prior, model, method, sampled, exact)


def check_method(method: str) -> None:
    if method not in ("exact", "gibbs"):
        raise FitError(
            (Argument("method", method), " with a prior: a posterior is computed by 'exact' or by 'gibbs'."),
            remedy="Name one of these, or leave the prior out for REML or ML.",
            about="method",
        )
