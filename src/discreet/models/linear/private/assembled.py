"""A `PrivateFit` from estimates: names, order, flags and notes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.formula.formula import lag_name
from discreet.models.linear.private.notes import Flag, readings
from discreet.models.linear.private.public import PublicDesign
from discreet.models.linear.private.request import Method, ModelRequest
from discreet.models.linear.private.result import PrivateEffects, PrivateFit
from discreet.models.linear.private.slopes import ON_A_LINK, slope_flags
from discreet.privacy.columns import taken
from discreet.privacy.guarantee import Guarantee
from discreet.words.cases import case_of

NO_LAGS = np.empty(0)


def details_of(public: PublicDesign, request: ModelRequest, method: Method, **more: Any) -> dict[str, Any]:
    """The ledger's record of a release: the request, its columns and its noise."""
    return {"formula": public.model.text, "method": method, **taken(request.unit, request.public), **more}


def group_names(public: PublicDesign) -> list[str]:
    """Names of the random terms, the finest first."""
    return [public.design.random[term].term.name for term in public.terms]


def components(public: PublicDesign, variances: Vector) -> dict[str, float]:
    return dict(zip([*group_names(public), "Residual"], variances.tolist(), strict=True))


def private_fit(
    method: Method,
    drawn: Any,
    guarantee: Guarantee,
    public: PublicDesign,
    request: ModelRequest,
    centred: Vector,
    effects: Sequence[Vector],
    variances: Vector,
    covariance: Matrix | None = None,
    errors: Sequence[Vector] | None = None,
    flags: Sequence[Flag] = (),
    notes: Sequence[str] = (),
    lags: Vector = NO_LAGS,
) -> PrivateFit:
    """Estimates of the columns as given, in the formula's order; `effects` and `variances` run from fine to coarse.

    `lags` are coefficients of earlier responses, which come last, in `covariance` too.
    """
    terms: dict[int, PrivateEffects] = {}
    for position, term in enumerate(public.terms):
        random = public.design.random[term]
        terms[term] = PrivateEffects(
            group=random.term.name,
            levels=random.grouping.labels,
            variance=float(variances[position]),
            values=effects[position],
            std_errors=None if errors is None else errors[position],
            term=term,
        )
    found = tuple(terms[i] for i in range(len(terms)))
    return assembled(
        drawn, guarantee, public, request, centred, found, float(variances[-1]), covariance, flags, notes, method, lags
    )


def assembled(
    drawn: Any,
    guarantee: Guarantee,
    public: PublicDesign,
    request: ModelRequest,
    centred: Vector,
    effects: Sequence[PrivateEffects],
    sigma2: float,
    covariance: Matrix | None = None,
    flags: Sequence[Flag] = (),
    notes: Sequence[str] = (),
    method: Method = "moments",
    lags: Vector = NO_LAGS,
) -> PrivateFit:
    """The fit, from effects that have their names already."""
    p = len(centred)
    if request.law.linear and np.isfinite(centred).all():
        notes = [*readings(public, request, centred, None if covariance is None else covariance[:p, :p]), *notes]
    if (
        case_of(method, {"moments": True, "paper": False, "strict": False})
        and covariance is not None
        and np.isfinite(covariance).all()
    ):
        most = sigma2 if request.law.linear else ON_A_LINK
        flags = [*flags, *slope_flags(public, np.sqrt(np.diag(covariance)[:p]), most)]
    return PrivateFit(
        formula=public.model.text,
        method=method,
        names=(*public.names, *(lag_name(public.model.response.column, lag) for lag in request.lags)),
        beta=np.append(public.origin.restore @ centred, lags),
        covariance=covariance,
        random=tuple(effects),
        sigma2=sigma2,
        rows=public.rows,
        guarantee=guarantee,
        notes=tuple(dict.fromkeys([*(flag.note for flag in flags), *notes])),
        flags=tuple(flags),
        released=drawn,
        design=public.design,
        learned=public.learned,
        centred=centred,
        kept=public.kept,
        clip=(float(request.scale.lower), float(request.scale.upper)),
        family=request.family,
        exposure=request.exposure,
    )
