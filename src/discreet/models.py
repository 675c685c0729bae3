"""The door to mixed models: by REML or ML, or with a prior, whose answer is the posterior."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from discreet.errors import FitError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from discreet.bayes.blmm.fit import BayesMixed
    from discreet.bayes.blmm.prior import Prior
    from discreet.lmm.fit import MixedFit


@overload
def mixed(formula: str, data: Any, *, method: Literal["REML", "ML"] | None = None) -> MixedFit: ...
@overload
def mixed(
    formula: str,
    data: Any,
    *,
    method: Literal["exact", "gibbs"] | None = None,
    prior: Prior | Mapping[str, float],
    draws: int | None = None,
    chains: int | None = None,
    warmup: int | None = None,
    seed: int | np.random.Generator | None = None,
) -> BayesMixed: ...
def mixed(
    formula: str,
    data: Any,
    *,
    method: Any = None,
    prior: Any = None,
    draws: int | None = None,
    chains: int | None = None,
    warmup: int | None = None,
    seed: Any = None,
) -> MixedFit | BayesMixed:
    """Fit a linear mixed model in lme4's syntax, such as "y ~ x + (1 | g)".

    Parameters
    ----------
    formula : fixed and random effects, in lme4's syntax.
    data : a pandas, Polars, PyArrow, DuckDB or Spark frame, a mapping of columns, or the path of a CSV or Parquet
        file. Files and lazy frames are read once, by their engine.
    method : "REML" (the default) or "ML"; with a prior "exact" (the default) or "gibbs".
    prior : a `Prior` or its numbers by name; the answer is then the posterior, a `BayesMixed` instead of a `MixedFit`.
    draws, chains, warmup, seed : of the Gibbs sampler, with a prior only; see `discreet.bayes_mixed`.

    Returns
    -------
    A `MixedFit`, or with a prior a `BayesMixed`.

    Examples
    --------
    >>> data = {"y": [1, 2, 4, 3, 5, 7], "x": [0, 1, 2, 0, 1, 2], "g": list("aaabbb")}
    >>> round(mixed("y ~ x + (1 | g)", data).fixed["x"], 6)
    1.75
    """
    given = {"draws": draws, "chains": chains, "warmup": warmup, "seed": seed}
    sampler = {name: value for name, value in given.items() if value is not None}
    if prior is not None:
        from discreet.bayes.blmm.estimate import bayes_mixed

        return bayes_mixed(formula, data, prior=prior, method="exact" if method is None else method, **sampler)
    if sampler or method in ("exact", "gibbs"):
        asked = f"method={method!r}" if method in ("exact", "gibbs") else f"{next(iter(sampler))}=..."
        raise FitError(
            f"{asked} without a prior: there is no posterior.",
            "REML and ML need no prior.",
            "Give prior=Prior(nu=12), or leave it out.",
            about="prior",
        )
    from discreet.lmm.estimate import mixed as by_likelihood

    return by_likelihood(formula, data, method="REML" if method is None else method)
