"""`bayes_mixed`, the door: a formula, data and a prior in; a posterior out, exact or drawn."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from discreet.models.bayes.blmm.conditional import PosteriorModel
from discreet.models.bayes.blmm.exact import Posterior, find_peak
from discreet.models.bayes.blmm.fit import BayesMixed, Method
from discreet.models.bayes.blmm.gibbs import gibbs
from discreet.models.bayes.blmm.prior import Prior, read_prior
from discreet.models.bayes.blmm.terms import TermsModel, sample
from discreet.models.bayes.blmm.terms_fit import BayesTerms, variance_names
from discreet.models.bayes.blmm.variance_prior import InverseGamma
from discreet.models.linear.fit import MixedFit
from discreet.models.linear.inference import gram_of_fit
from discreet.models.linear.moments import Moments
from discreet.words.arguments import own_words_first
from discreet.words.errors import FitError
from discreet.words.faults import Argument
from discreet.words.progress import Progress, part, silent

DRAWS = 2_000  # kept in each chain when a sampler is asked for without a number


@own_words_first
def bayes_mixed(
    formula: str,
    data: Any,
    *,
    prior: Prior | Mapping[str, Any] = Prior(),  # noqa: B008 - frozen
    method: Method = "exact",
    draws: int | None = None,
    chains: int = 4,
    warmup: int | None = None,
    seed: int | np.random.Generator = 0,
    progress: Progress = silent,
) -> BayesMixed | BayesTerms:
    """Fit a linear mixed model under a proper prior. `mixed(..., prior=...)` is the same.

    Parameters
    ----------
    formula, data : as for `mixed`; random terms have one variance each, as (1 | group) and (x || group).
    prior : a `Prior`, or its numbers by name, such as {"nu": 12, "V": 0.1, "sd": 1}.
    method : "exact" integrates by quadrature, without Monte Carlo error, where the only random term is an intercept;
        other models are sampled. "gibbs" answers from draws.
    draws, chains, warmup, seed : of the Gibbs sampler: draws kept in each chain, and as many before them unless
        `warmup` says otherwise. With "exact", `draws` > 0 adds chains to the exact answers, for joint questions.
    progress : called with what is being done and the share of it that is done.

    Returns
    -------
    The posterior: a `BayesMixed` for one random intercept, else a `BayesTerms`. Chains that have not converged raise a
    `ConvergenceWarning`, which also stays on it as `notes`.

    Examples
    --------
    >>> data = {"y": [1, 2, 4, 3, 5, 7, 2, 4], "x": [0, 1, 2, 0, 1, 2, 0, 1], "g": list("aaabbbcc")}
    >>> fit = bayes_mixed("y ~ x + (1 | g)", data)
    >>> round(fit.coefficient("x").mean, 3)
    1.763
    >>> fit.effect("b").quantile([0.05, 0.95]).round(2).tolist()
    [0.66, 1.97]
    """
    from discreet.models.linear.estimate import mixed
    from discreet.models.linear.fit import MixedWarning

    prior = read_prior(prior)
    check_method(method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixedWarning)  # a prior keeps a singular fit away; dropped columns are noted
        fit = mixed(formula, data, progress=part(progress, 0.0, 0.3))
    sampler = {"draws": draws, "chains": chains, "warmup": warmup, "seed": seed}
    return of_fit(fit, prior=prior, method=method, progress=part(progress, 0.3, 1.0), **sampler)  # type: ignore[arg-type]


def of_fit(
    fit: MixedFit,
    *,
    prior: Prior = Prior(),  # noqa: B008 - frozen
    method: Method = "exact",
    draws: int | None = None,
    chains: int = 4,
    warmup: int | None = None,
    seed: int | np.random.Generator = 0,
    progress: Progress = silent,
) -> BayesMixed | BayesTerms:
    """The posterior of a model that was fitted by REML: its sums are reused."""
    for random in fit.random:
        if len(random.names) > 1:
            raise FitError(
                f"{fit.formula!r} gives {', '.join(random.names)} of {random.group!r} a covariance matrix.",
                "Priors are of single variances, so that effects of one level are independent before data.",
                "Write (x || g) instead of (x | g), or use `mixed` without a prior.",
                about="formula",
            )
    if fit.offset is not None:
        raise FitError(
            f"{fit.formula!r} has an offset, and a prior was asked.",
            "Fits without a prior have offsets.",
            "Subtract it from the response in a column of its own.",
            about="formula",
        )
    prior.refuse_unknown(("Residual", *variance_names(fit)))
    with _within_doubles(prior):
        return _posterior(fit, prior, method, draws, chains, warmup, seed, progress)


@contextmanager
def _within_doubles(prior: Prior) -> Iterator[None]:
    """A prior that is too many orders of magnitude away from the data is refused."""
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            yield
    except (ArithmeticError, np.linalg.LinAlgError):
        raise FitError(
            f"The prior ({prior}) is so many orders of magnitude away from the data that doubles cannot compute with "
            "both.",
            "Scales of a prior are near those of the response and of the columns as given.",
            "Use Prior(V=0.104, nu=12, sd=1), the paper's, with numbers in the units of the data.",
            about="prior",
        ) from None


def _posterior(
    fit: MixedFit,
    prior: Prior,
    method: Method,
    draws: int | None,
    chains: int,
    warmup: int | None,
    seed: int | np.random.Generator,
    progress: Progress,
) -> BayesMixed | BayesTerms:
    restore, offset = fit.origin.restore, fit.origin.offset
    asked = draws if draws is not None else DRAWS if method == "gibbs" else 0
    if not isinstance(fit.statistics, Moments):
        names = variance_names(fit)
        terms = TermsModel.of(gram_of_fit(fit), prior, names, restore=restore, offset=offset)
        sampled = sample(terms, draws=asked or DRAWS, chains=chains, warmup=warmup, rng=seed, progress=progress)
        return BayesTerms(fit, prior, terms, sampled)
    group = fit.random[0].group
    model = PosteriorModel.of(fit.statistics, prior, restore=restore, offset=offset, group=group)
    progress("posterior of the variances", 0.0)
    exact = Posterior.of(model) if method == "exact" else None
    drawn = None
    if asked or method == "gibbs":
        if all(isinstance(law, InverseGamma) for law in model.laws):
            peak = exact or find_peak(model)
            drawn = gibbs(peak, draws=asked, chains=chains, warmup=warmup, rng=seed, progress=progress)
        else:
            terms = TermsModel.of(gram_of_fit(fit), prior, (group,), restore=restore, offset=offset)
            drawn = sample(terms, draws=asked, chains=chains, warmup=warmup, rng=seed, progress=progress)
    return BayesMixed(fit, prior, model, method, drawn, exact)


def check_method(method: str) -> None:
    if method not in ("exact", "gibbs"):
        raise FitError(
            (Argument("method", method), " with a prior: a posterior is computed by 'exact' or by 'gibbs'."),
            remedy="Name one of these, or leave the prior out for REML or ML.",
            about="method",
        )
