"""`release_mixed`, the door to private mixed models: from a formula and confidential data to a public fit."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Vector
from discreet.errors import FormulaError, PrivacyError
from discreet.faults import Argument
from discreet.formula.formula import Formula, lag_name, read_formula, without_lags
from discreet.formula.rows import read_rows, with_sizes
from discreet.frames import open_frame
from discreet.lmm.fit import MixedWarning
from discreet.lmm.private import moments, paper, strict
from discreet.lmm.private.assembled import components, details_of, group_names, private_fit
from discreet.lmm.private.check import ModelErrors, moments_errors, noise_errors, widest_noise
from discreet.lmm.private.expected import expected_errors
from discreet.lmm.private.informative import size_flags
from discreet.lmm.private.lag_release import offer_lags
from discreet.lmm.private.notes import (
    Flag,
    block_flags,
    clipping_flags,
    equal_variances,
    unmeasured_flags,
    variance_flags,
)
from discreet.lmm.private.partition import Blocks, Report, count_blocks, fit_partition, partition, same_rows
from discreet.lmm.private.public import PublicDesign, hidden, public_design
from discreet.lmm.private.reach import Reach
from discreet.lmm.private.request import Interval, Method, ModelRequest, read_request
from discreet.lmm.private.result import PrivateFit
from discreet.lmm.private.shares import TYPICAL
from discreet.lmm.private.sums import confined, response_sums, units_of
from discreet.privacy.columns import taken
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Concentrated, Loss, Number, Pure
from discreet.release.budget_line import BudgetLine
from discreet.release.offer import Offer

if TYPE_CHECKING:
    from discreet.frames import AnyFrame
    from discreet.noise.source import Source
    from discreet.release.account import Account


def release_mixed(
    formula: str,
    data: Any,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    public: Sequence[str] = (),
    method: Method = "moments",
    bounds: Interval | None = None,
    clip: Interval | None = None,
    protect: Sequence[str] = (),
    split: Mapping[str, Number] | None = None,
    lagged: Sequence[str] = (),
    series: Sequence[str] = (),
    time: str | None = None,
    blocks: Blocks = "optimal",
    sizes: Mapping[str, Number] | None = None,
    account: Account | None = None,
    ledger: str | Path | None = None,
    budget: Number | Loss | None = None,
    dataset: str | None = None,
    name: str | None = None,
    seed: int | None = None,
    progress: Report | None = None,
) -> PrivateFit:
    """Release a linear model with nested random intercepts, or with none, under differential privacy.

    One row's response is protected and cannot stop the release; `public` columns and the number of rows are known.

    Parameters
    ----------
    formula, data : as for `mixed`; a formula without a random term is a linear model.
    epsilon, rho : the whole loss: Laplace noise for epsilon, Gaussian for rho.
    public : the columns that everybody may know. Every column of the formula but the response must be one of them.
    method : "moments" (noisy sums, proved jointly), "strict" (sub-sample and aggregate, proved jointly,
        standard errors of fixed effects only) or "paper" (sub-sample and aggregate as published).
    bounds : where responses lie, known without the data. An account has them; the documents' rates have defaults.
        A response outside counts as the nearer end, one that is missing or not finite as the middle.
    clip : a range inside the bounds to pull responses into: less noise, and estimates of the clipped response.
    split : shares of the loss by part, adding up to one.
    protect : public columns that name who is protected: all rows with the same values change together, those of one
        establishment or county. Left out, single rows are protected. "moments" only.
    lagged : public columns that hold earlier responses, which were published already.
    series, time : for terms such as lag(y, 1), the response of one period earlier, which is protected like every
        other: the columns that name a series, and the one that counts its periods. Both are public. Rows without
        all their lags only serve as lags. "moments" only.
    blocks : for "paper" and "strict", the number of blocks: "optimal" for k*, "most" for N^(2/3), or a number.
    sizes : for "strict", typical sizes of `fixed` coefficients and `groups` effects, which decide what is clipped; a
        share of the loss chooses those that are left out.
    account : whose budget pays.
    ledger, budget, dataset : instead of an account, the ledger that pays, the total that opens the budget of `dataset`
        in it (a number is in epsilon or rho, as the loss is; leave it out once it is open), and that name (a file has
        its own). With neither account nor ledger the release is counted nowhere but in its own guarantee.
    name : the release's name in the ledger; a name is drawn once.
    seed : makes the noise reproducible and the release not private.
    progress : called with the number of blocks fitted and of all blocks.

    Returns
    -------
    The estimates, with their guarantee.

    Examples
    --------
    >>> data = {"y": [0.1, 0.4, 0.3, 0.9, 0.8, 0.7] * 50, "g": list("aaabbb") * 50}
    >>> fit = release_mixed("y ~ 1 + (1 | g)", data, epsilon=10, public=["g"], bounds=(0, 1), seed=1)
    >>> fit.guarantee.loss
    Pure(epsilon=Fraction(10, 1))
    >>> fit.effects["g"]["a"] < fit.effects["g"]["b"]
    True
    """
    asked = _asked(
        formula,
        epsilon=epsilon,
        rho=rho,
        public=public,
        method=method,
        bounds=bounds,
        clip=clip,
        protect=protect,
        lagged=lagged,
        series=series,
        time=time,
        account=account,
        name=name,
        seed=seed,
        book=BudgetLine.of(ledger, dataset, budget),
    )
    offer = _offered(asked, data, method, split=split, blocks=blocks, sizes=sizes, progress=progress)
    released = asked[1].opened().release(offer, None, name=asked[1].name)
    paid = {key: getattr(released, key) for key in ("guarantee", "entry", "name", "check")}
    return replace(released.value, **paid)


def offer_mixed(
    formula: str,
    data: Any,
    *,
    method: Method = "moments",
    account: Account | None = None,
    split: Mapping[str, Number] | None = None,
    blocks: Blocks = "optimal",
    sizes: Mapping[str, Number] | None = None,
    progress: Report | None = None,
    **asked: Any,
) -> Offer[None, Any, PrivateFit]:
    """The model as an offer, made from the public columns of `data`; the arguments are those of `release_mixed`.

    >>> data = {"y": [0.1, 0.4, 0.3, 0.9, 0.8, 0.7] * 50, "g": list("aaabbb") * 50}
    >>> offer = offer_mixed("y ~ 1 + (1 | g)", data, epsilon=10, public=["g"], bounds=(0, 1))
    >>> offer.check().expected.names
    ('(Intercept)',)
    """
    request = _asked(formula, method=method, account=account, **asked)
    return _offered(request, data, method, split=split, blocks=blocks, sizes=sizes, progress=progress)


def _asked(formula: str, *, method: Method, account: Account | None, **rest: Any) -> tuple[Formula, ModelRequest]:
    """What was asked for, found possible without data and beside what the account released before."""
    if method not in ("moments", "paper", "strict"):
        raise PrivacyError(
            (Argument("method", method), " is not known."), remedy="Use 'moments', 'strict' or 'paper'.", about="method"
        )
    model, lags = without_lags(read_formula(formula, needs_random=False))
    if lags and method != "moments":
        raise FormulaError(
            f"{lag_name(model.response.column, lags[0])} was asked of method={method!r}.",
            "Lags are inside the guarantee of noisy sums: a block of rows does not hold what is earlier.",
            "Leave method out, or make a column of published responses and name it under lagged.",
            about="formula",
        )
    request = read_request(model.response.column, model.columns[1:], account=account, lags=lags, **rest)
    if request.together and method != "moments":
        raise PrivacyError(
            (Argument("method", method), f" was asked for with {request.unit.key}."),
            "Blocks of rows protect single rows; noisy sums protect groups of rows too.",
            "Leave method out.",
            about="method",
        )
    if account is not None:
        account.compare(taken(request.unit, request.public))
    return model, request


def _offered(
    asked: tuple[Formula, ModelRequest],
    data: Any,
    method: Method,
    *,
    split: Mapping[str, Number] | None,
    blocks: Blocks,
    sizes: Mapping[str, Number] | None,
    progress: Report | None,
) -> Offer[None, Any, PrivateFit]:
    model, request = asked
    frame = open_frame(data, readings=dict.fromkeys([model.response.column], "number"), ordered=True)
    if request.lags:
        return offer_lags(frame, model, request, split)
    frame, model = with_sizes(frame, model)
    known = public_design(frame, model)
    frame = confined(frame, known, request.scale)
    if method == "moments":
        return _by_moments(frame, known, request, split)
    if method == "strict":
        return _by_strict(frame, known, request, split, blocks, sizes, progress)
    return _by_paper(frame, known, request, split, blocks, progress)


def _by_moments(
    frame: AnyFrame, public: PublicDesign, request: ModelRequest, split: Mapping[str, Number] | None
) -> Offer[None, moments.ExactStatistics, PrivateFit]:
    units, by = units_of(frame, public), request.together
    squared = isinstance(request.loss, Concentrated)
    reach = Reach.of_groups(frame, public, units, by, squared=squared) if by else Reach.of_rows(public, units)
    mechanism = moments.mechanism_for(public, units, request, split, reach)
    moments.refuse_unsolvable(moments.sums_of_nothing(mechanism, public, request), public, request)
    guarantee = Guarantee(request.unit, mechanism.loss, proof=moments.PROOF, notes=request.notes())

    def solved(drawn: moments.NoisyStatistics) -> PrivateFit:
        solution = moments.solve(drawn, mechanism, public, request)
        found, unsolved = solution.estimate, solution.failure
        restore = public.origin.restore
        covariance = restore @ found.covariance @ restore.T
        centred = found.beta + solution.origin * public.constant
        effects = [public.in_own_order(i, u) for i, u in enumerate(found.effects)]
        errors = [np.sqrt(public.in_own_order(i, v)) for i, v in enumerate(found.effect_variances)]
        variances = np.append(found.variances, found.sigma2)
        flags, notes = [], [unsolved]
        if not unsolved:
            known = expected_errors(solution.sums, restore, sigma2=found.sigma2, variances=found.variances)
            groups = group_names(public)
            least = dict(zip(groups, known.least.tolist(), strict=True))
            flags = size_flags(solution.slope, found, restore, public.names)
            if public.terms and not mechanism.sees_groups:
                flags += unmeasured_flags(groups) + variance_flags(request, {"Residual": found.sigma2})
            else:
                flags += variance_flags(request, components(public, variances), least)
            notes = equal_variances(public.names, known.residuals)
        estimates = (centred, effects, variances, covariance, errors, flags, notes)
        return private_fit("moments", drawn, guarantee, public, request, *estimates)

    return Offer(
        guarantee=guarantee,
        details=details_of(public, request, "moments", **mechanism.to_dict()),
        expected=lambda: moments_errors(mechanism, public, request),
        read=lambda nothing: mechanism.exact(response_sums(frame, public, units, request.scale), public),
        draw=lambda exact, source: solved(mechanism.draw(exact, source)),
    )


def _by_strict(
    frame: AnyFrame,
    public: PublicDesign,
    request: ModelRequest,
    split: Mapping[str, Number] | None,
    blocks: Blocks,
    sizes: Mapping[str, Number] | None,
    progress: Report | None,
) -> Offer[None, strict.Reading, PrivateFit]:
    count = count_blocks(blocks, public.rows, spread=float(request.width), epsilon=_worth(request.loss))
    known, _ = read_rows(hidden(frame, public.model), public.design.layout, public.learned)
    rng = np.random.default_rng(request.seed)
    chosen = partition(public.rows, count, rng)
    presence = strict.presence_of(known, public, chosen)
    mechanism = strict.mechanism_for(public, request, presence, strict.column_units(known, public), split, sizes)
    _warn_of_clipping(mechanism, presence, request)
    step = request.scale.step
    guarantee = Guarantee(request.unit, mechanism.loss, proof=strict.PROOF, notes=request.notes())

    def read(nothing: None) -> strict.Reading:
        rows, _ = read_rows(frame, public.design.layout, public.learned)
        k = request.scale.whole(rows.values[public.model.response][:, 0])
        response = strict.dithered(k, step, rng)
        estimates = fit_partition(strict.with_response(rows, public, response), public, chosen, progress=progress)
        # An engine may give the rows in another order, so that the blocks hold other rows.
        there = presence if same_rows(rows, known, public) else strict.presence_of(rows, public, chosen)
        return strict.Reading(estimates, int(k.sum()), there)

    def draw(reading: strict.Reading, source: Source) -> PrivateFit:
        drawn = strict.draw(mechanism, reading.estimates, public, reading.total, step, source)
        origin = request.scale.middle + drawn.centre * step
        centred, effects, variances = strict.averages(drawn, mechanism, reading.presence, public, origin)
        restore = public.origin.restore
        spread = strict.covariance(drawn, mechanism, reading.presence, public, variances)
        flags = clipping_flags(group_names(public), strict.clipped(drawn, mechanism))
        flags += _flags_of_blocks(public, request, chosen.shape[1], variances)
        estimates = (centred, effects, variances, restore @ spread @ restore.T)
        return private_fit("strict", drawn, guarantee, public, request, *estimates, flags=flags)

    def expected() -> ModelErrors:
        noise, effects = widest_noise(mechanism, presence)
        fixed = np.sqrt(public.origin.restore**2 @ noise**2)
        assumed = "At most, by noise alone, which is mostly far less: data choose its length. Blocks scatter on top."
        return noise_errors("strict", public, fixed, effects, assumed, rows=chosen.shape[1])

    return Offer(
        guarantee=guarantee,
        details=details_of(public, request, "strict", **mechanism.to_dict()),
        expected=expected,
        read=read,
        draw=draw,
    )


def _warn_of_clipping(mechanism: strict.BlockNoise, presence: strict.Presence, request: ModelRequest) -> None:
    """Before anything is paid: a stated size that residuals alone will exceed."""
    deviation = TYPICAL[1] ** 0.5 * float(request.width)
    share = strict.expected_clipping(mechanism, presence, deviation)
    if share > strict.CLIPPED:
        warnings.warn(
            f"sizes state less for 'fixed' than blocks will find: if residuals have a deviation of {deviation:.3g} (a "
            f"twentieth of the range), {share:.0%} of the blocks will be pulled towards zero through them alone. State "
            "a larger size, or leave it out",
            MixedWarning,
            stacklevel=5,
        )


def _by_paper(
    frame: AnyFrame,
    public: PublicDesign,
    request: ModelRequest,
    split: Mapping[str, Number] | None,
    blocks: Blocks,
    progress: Report | None,
) -> Offer[None, paper.Averages, PrivateFit]:
    ranges = paper.ranges_of(request, public)
    count = count_blocks(blocks, public.rows, spread=ranges.effect, epsilon=_worth(request.loss))
    scales = paper.scales_for(public, request, ranges, count, split)
    guarantee = Guarantee(
        request.unit,
        request.loss,
        calibration="paper",
        basis="as published",
        proof=paper.PROOF,
        notes=(*request.notes(), *paper.NOTES),
    )

    def read(nothing: None) -> paper.Averages:
        rows, _ = read_rows(frame, public.design.layout, public.learned)
        whole = paper.whole_estimates(frame, rows, public)
        return paper.averages(rows, public, whole, count, np.random.default_rng(request.seed), progress=progress)

    def draw(exact: paper.Averages, source: Source) -> PrivateFit:
        found = scales.draw(exact, source)
        centred = np.asarray(np.linalg.solve(public.origin.restore, found.beta), dtype=np.float64)
        variances = np.maximum(found.deviations, 0.0) ** 2
        flags = _flags_of_blocks(public, request, public.rows // count, variances)
        estimates = (centred, found.effects, variances)
        return private_fit("paper", found, guarantee, public, request, *estimates, flags=flags)

    def expected() -> ModelErrors:
        sizes = [len(public.design.random[term].grouping) for term in public.terms]
        effects = [np.full(size, 2**0.5 * scale) for size, scale in zip(sizes, scales.effects, strict=True)]
        assumed = f"By noise alone, which is exact. The estimates of {count} blocks scatter on top."
        return noise_errors("paper", public, 2**0.5 * scales.beta, effects, assumed, rows=public.rows // count)

    return Offer(
        guarantee=guarantee,
        details=details_of(public, request, "paper", blocks=count, **scales.to_dict()),
        expected=expected,
        read=read,
        draw=draw,
    )


def _flags_of_blocks(public: PublicDesign, request: ModelRequest, rows: int, variances: Vector) -> list[Flag]:
    return [*block_flags(group_names(public), rows), *variance_flags(request, components(public, variances))]


def _worth(spent: Pure | Concentrated) -> float:
    """epsilon, or that of Gaussian noise as wide as Laplace's."""
    return float(spent.epsilon) if isinstance(spent, Pure) else (2 * float(spent.rho)) ** 0.5
