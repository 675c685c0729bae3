"""The door to mixed models: by REML or ML, with a prior, whose answer is the posterior, or of counts and shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from discreet.models.formula.contrasts import Contrasts
from discreet.models.formula.source import Missing
from discreet.models.linear.families import registry
from discreet.words.arguments import of_kinds
from discreet.words.errors import FitError
from discreet.words.progress import Progress, silent, watched

if TYPE_CHECKING:
    import numpy as np

    from discreet.models.bayes.blmm.fit import BayesMixed
    from discreet.models.bayes.blmm.prior import Prior
    from discreet.models.bayes.blmm.terms_fit import BayesTerms
    from discreet.models.linear.fit import MixedFit
    from discreet.models.linear.general_fit import GeneralisedFit


OF_POSTERIOR = ("exact", "gibbs")
"""Methods that need a prior."""


@overload
def mixed(
    formula: str,
    data: Any,
    *,
    method: Literal["REML", "ML"] | None = None,
    missing: Missing = "error",
    weights: str | None = None,
    offset: str | None = None,
    contrasts: Contrasts | None = None,
    residual_by: str | None = None,
    series: str | Sequence[str] | None = None,
    time: str | None = None,
    progress: Progress = silent,
) -> MixedFit: ...
@overload
def mixed(
    formula: str,
    data: Any,
    *,
    method: Literal["exact", "gibbs"] | None = None,
    prior: Prior | Mapping[str, Any],
    draws: int | None = None,
    chains: int | None = None,
    warmup: int | None = None,
    seed: int | np.random.Generator | None = None,
    progress: Progress = silent,
) -> BayesMixed | BayesTerms: ...
@overload
def mixed(
    formula: str,
    data: Any,
    *,
    family: str,
    points: int = 1,
    offset: str | None = None,
    exposure: str | None = None,
    weights: str | None = None,
    missing: Missing = "error",
    contrasts: Contrasts | None = None,
    progress: Progress = silent,
) -> GeneralisedFit: ...
@of_kinds
def mixed(
    formula: str,
    data: Any,
    *,
    method: Literal["REML", "ML", "exact", "gibbs"] | None = None,
    prior: Any = None,
    draws: int | None = None,
    chains: int | None = None,
    warmup: int | None = None,
    seed: Any = None,
    family: str = "gaussian",
    points: int = 1,
    offset: str | None = None,
    exposure: str | None = None,
    weights: str | None = None,
    missing: Missing = "error",
    contrasts: Contrasts | None = None,
    residual_by: str | None = None,
    series: str | Sequence[str] | None = None,
    time: str | None = None,
    progress: Progress = silent,
) -> MixedFit | BayesMixed | BayesTerms | GeneralisedFit:
    """Fit a linear mixed model in lme4's syntax, such as "y ~ x + (1 | g)".

    Parameters
    ----------
    formula : fixed and random effects, in lme4's syntax.
    data : a pandas, Polars, PyArrow, DuckDB or Spark frame, a mapping of columns, or the path of a CSV or Parquet
        file. Files and lazy frames are read once, by their engine.
    method : "REML" (the default) or "ML"; with a prior "exact" (the default) or "gibbs".
    prior : a `Prior` or its numbers by name; the answer is then the posterior: a `BayesMixed` for one random intercept,
        a `BayesTerms` for several variances.
    draws, chains, warmup, seed : settings of the Gibbs sampler, with a prior only; see `discreet.bayes_mixed`.
    family : "gaussian" (the default), or one that is fitted by maximum likelihood: "binomial" of outcomes and shares,
        "poisson" of counts, "gamma" of amounts and others, which `discreet fit --help` lists.
    points : number of points of the adaptive quadrature over one scalar random term; 1 is Laplace's approximation. Only
        for families.
    offset : name of a column that is added to the linear predictor; in a formula: offset(x).
    exposure : name of a column. A count or an amount is proportional to it: its logarithm is added. Only for families
        with a log link.
    missing : rows with missing values are an "error", or they are left out ("drop") and a note says how many.
    weights : name of a column. In the gaussian family these are prior weights: the residual variance of a row is
        divided by its weight. In other families they say how often a row counts; for a share that is its number of
        trials.
    contrasts : how levels of factors are coded: "treatment" (the default), "sum" or "helmert", for all factors of the
        fixed terms or by column ({"sex": "sum"}). In a formula: C(sex, sum).
    residual_by : name of a column; each of its levels has its own residual variance, as with nlme's varIdent.
    series, time : columns that name a series, and the one that counts its periods. Residuals are then autoregressive
        within series, with correlation rho^d at d periods, as with nlme's corAR1.
    progress : called with what is being done and the share of it that is done. Without it, a terminal shows a bar after
        two seconds.

    Returns
    -------
    A `MixedFit`; with a prior a `BayesMixed` or `BayesTerms`, with another family than the gaussian a `GeneralisedFit`.

    Examples
    --------
    >>> data = {"y": [1, 2, 4, 3, 5, 7], "x": [0, 1, 2, 0, 1, 2], "g": list("aaabbb")}
    >>> round(mixed("y ~ x + (1 | g)", data).fixed["x"], 6)
    1.75
    """
    law = registry.named(family)
    beside = {"exposure": exposure, "points": points if points != 1 else None}
    residuals = {"residual_by": residual_by, "series": series, "time": time}
    if (not law.linear or prior is not None) and (told := [k for k, value in residuals.items() if value]):
        raise FitError(
            f"{told[0]} was asked with {'a prior' if prior is not None else f'family={family!r}'}.",
            "Residuals of the gaussian family have laws, without a prior.",
            "Leave it out.",
            about=told[0],
        )
    if not law.linear:
        if method is not None or prior is not None:
            raise FitError(
                f"{'method' if prior is None else 'prior'} was asked with family={family!r}.",
                f"A family of {law.of} is fitted by maximum likelihood, without a prior.",
                "Leave it out.",
                about="method" if prior is None else "prior",
            )
        from discreet.models.linear.generalised import generalised

        columns = {"offset": offset, "exposure": exposure, "weights": weights}
        settings = {"points": points, "missing": missing, "contrasts": contrasts, **columns}
        with watched(progress, "fitting") as telling:
            return generalised(formula, data, family=family, progress=telling, **settings)  # type: ignore[arg-type]
    for name, value in beside.items():
        if value is not None:
            raise FitError(
                f"{name}={value!r} was asked of the gaussian family.",
                "Families that are fitted by their density have it.",
                'Give a family such as "poisson", or leave it out.',
                about=name,
            )
    given = {"draws": draws, "chains": chains, "warmup": warmup, "seed": seed}
    sampler = {name: value for name, value in given.items() if value is not None}
    if prior is not None:
        refused = {"missing": None if missing == "error" else missing, "weights": weights, "contrasts": contrasts}
        refused |= {"offset": offset}
        if given_too := [name for name, value in refused.items() if value is not None]:
            raise FitError(
                f"{given_too[-1]} was asked with a prior.",
                "A fit without a prior has it.",
                "Leave it out.",
                about=given_too[-1],
            )
        from discreet.models.bayes.blmm.estimate import bayes_mixed

        how = cast("Literal['exact', 'gibbs']", "exact" if method is None else method)
        with watched(progress, "fitting") as telling:
            return bayes_mixed(formula, data, prior=prior, method=how, progress=telling, **sampler)
    if sampler or method in OF_POSTERIOR:
        asked = f"{next(iter(sampler))}=..." if sampler else f"method={method!r}"
        raise FitError(
            f"{asked} without a prior: there is no posterior.",
            "REML and ML need no prior.",
            "Give prior=Prior(nu=12), or leave it out.",
            about="prior",
        )
    from discreet.models.linear.estimate import mixed as by_likelihood

    own: dict[str, Any] = {"method": "REML" if method is None else method, "weights": weights, "offset": offset}
    own |= residuals
    with watched(progress, "fitting") as telling:
        return by_likelihood(formula, data, missing=missing, contrasts=contrasts, progress=telling, **own)
