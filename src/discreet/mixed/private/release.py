"""`release_mixed`, the door to private mixed models: from a formula and confidential data to a public fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.mixed.formula import Model, read_formula
from discreet.mixed.private import moments
from discreet.mixed.private.noisy import Estimate
from discreet.mixed.private.public import PublicDesign, public_design
from discreet.mixed.private.request import Interval, Method, Request, read_request
from discreet.mixed.private.result import PrivateEffects, PrivateFit
from discreet.mixed.private.sums import refuse_unusable, response_sums, units_of
from discreet.mixed.rows import open_frame
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Number

if TYPE_CHECKING:
    from discreet.account import Account
    from discreet.mixed.rows import Frame


def release_mixed(
    formula: str,
    data: Any,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    method: Method = "moments",
    bounds: Interval | None = None,
    clip: bool | Interval = False,
    split: Mapping[str, Number] | None = None,
    lagged: Sequence[str] = (),
    account: Account | None = None,
    name: str | None = None,
    seed: int | None = None,
) -> PrivateFit:
    """Release a linear model with nested random intercepts, or with none, under differential privacy.

    One row's response is protected; the design and the number of rows are public.

    Parameters
    ----------
    formula, data : as for `mixed`; a formula without a random term is a linear model.
    epsilon, rho : the whole loss: Laplace noise for epsilon, Gaussian for rho.
    method : "moments" (noisy sums, proved jointly), "strict" (sub-sample and aggregate, proved jointly) or "paper"
        (sub-sample and aggregate as published).
    bounds : where responses lie, known without the data. An account has them; the documents' rates have defaults.
    clip : True to pull responses into the bounds, or a tighter interval to pull them into; otherwise responses outside
        the bounds are refused.
    split : shares of the loss by part, adding up to one.
    lagged : fixed columns that hold earlier responses, declared to be public already.
    account : whose budget pays; without one the release has a ledger of its own.
    name : the release's name in the ledger; a name is drawn once.
    seed : makes the noise reproducible and the release not private.

    >>> data = {"y": [0.1, 0.4, 0.3, 0.9, 0.8, 0.7] * 50, "g": list("aaabbb") * 50}
    >>> fit = release_mixed("y ~ 1 + (1 | g)", data, epsilon=10, bounds=(0, 1), seed=1)
    >>> fit.guarantee.loss
    Pure(epsilon=Fraction(10, 1))
    >>> fit.effects["g"]["a"] < fit.effects["g"]["b"]
    True
    """
    if method not in ("moments", "paper", "strict"):
        raise ValueError(f"method={method!r} is not known; use 'moments', 'strict' or 'paper'.")
    model = read_formula(formula, needs_random=False)
    request = read_request(
        model.response.column,
        model.columns[1:],
        epsilon=epsilon,
        rho=rho,
        bounds=bounds,
        clip=clip,
        lagged=lagged,
        account=account,
        name=name,
        seed=seed,
    )
    frame = open_frame(data)
    return _by_moments(frame, model, request, split)


def _by_moments(frame: Frame, model: Model, request: Request, split: Mapping[str, Number] | None) -> PrivateFit:
    public = public_design(frame, model)
    units = units_of(frame, public)
    mechanism = moments.mechanism_for(public, units, request, split)
    confined = (request.scale.lower, request.scale.upper)
    refuse_unusable(frame, model.response.column, bounds=confined, clip=request.clip)
    sums = response_sums(frame, public, units, request.scale)
    guarantee = Guarantee(
        unit=request.unit, loss=mechanism.loss, basis="proved", proof=moments.PROOF, notes=request.notes()
    )
    released = request.opened().release(
        request.name,
        guarantee=guarantee,
        draw=lambda source: mechanism.draw(sums, public, source),
        details={"formula": model.text, "method": "moments", **mechanism.to_dict()},
    )
    found, origin = moments.solve(released.value, mechanism, public, request)
    return PrivateFit(
        method="moments",
        released=released.value,
        guarantee=released.guarantee,
        entry=released.entry,
        name=released.name,
        **_estimates(found, public, origin),
    )


def _estimates(found: Estimate, public: PublicDesign, origin: float) -> dict[str, Any]:
    """The part of a `PrivateFit` that describes the model, in the formula's order and in the columns as given."""
    centred = found.beta + origin * public.constant
    restore = public.origin.restore
    terms: dict[int, PrivateEffects] = {}
    for position, term in enumerate(public.terms):
        random = public.design.random[term]
        terms[term] = PrivateEffects(
            group=random.term.name,
            levels=random.grouping.labels,
            variance=float(found.variances[position]),
            values=public.in_own_order(position, found.effects[position]),
            std_errors=np.sqrt(public.in_own_order(position, found.effect_variances[position])),
        )
    return {
        "formula": public.model.text,
        "names": public.names,
        "beta": restore @ centred,
        "covariance": restore @ found.covariance @ restore.T,
        "random": tuple(terms[i] for i in range(len(terms))),
        "sigma2": found.sigma2,
        "rows": public.rows,
        "notes": _notes(found, public),
        "design": public.design,
        "learned": public.learned,
        "centred": centred,
        "kept": public.kept,
    }


def _notes(found: Estimate, public: PublicDesign) -> tuple[str, ...]:
    notes = []
    if public.dropped:
        notes.append(f"fixed columns are combinations of others and were dropped: {', '.join(public.dropped)}")
    for position, term in enumerate(public.terms):
        if found.variances[position] == 0:
            name = public.design.random[term].term.name
            notes.append(f"the noisy sums show no variance of {name}, so its effects are zero")
    return tuple(notes)
