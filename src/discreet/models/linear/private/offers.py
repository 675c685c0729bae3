"""A private model that was asked for, as an offer: by noisy sums, or by blocks of the rows in two ways."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Vector
from discreet.data.frames import open_frame
from discreet.models.formula.formula import Formula
from discreet.models.formula.rows import read_rows, with_outcomes, with_sizes
from discreet.models.linear.fit import MixedWarning
from discreet.models.linear.private import moments, paper, strict
from discreet.models.linear.private.assembled import components, details_of, group_names, private_fit
from discreet.models.linear.private.check import ModelErrors, moments_errors, noise_errors, widest_noise
from discreet.models.linear.private.expected import expected_errors
from discreet.models.linear.private.generalised import offer_family, refuse_terms
from discreet.models.linear.private.informative import moved_by_means, size_flags
from discreet.models.linear.private.lag_release import offer_lags
from discreet.models.linear.private.look import noise_for, possible, spread_of
from discreet.models.linear.private.notes import (
    Flag,
    block_flags,
    clipping_flags,
    equal_variances,
    means_of_columns,
    unmeasured_flags,
    variance_flags,
)
from discreet.models.linear.private.partition import (
    Blocks,
    count_blocks,
    fit_partition,
    partition,
    refuse_dropped,
    same_rows,
)
from discreet.models.linear.private.public import PublicDesign, hidden, public_design
from discreet.models.linear.private.reach import Reach
from discreet.models.linear.private.request import RATES, Method, ModelRequest
from discreet.models.linear.private.result import PrivateFit
from discreet.models.linear.private.shares import TYPICAL
from discreet.models.linear.private.sums import confined, response_sums, units_of
from discreet.models.linear.private.term_release import offer_terms
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Concentrated, Number, Pure
from discreet.release.offer import Offer
from discreet.release.payer import Payer
from discreet.release.question import Question
from discreet.words.cases import case_of
from discreet.words.progress import Progress

if TYPE_CHECKING:
    from discreet.data.frames import AnyFrame
    from discreet.noise.source import Source


@dataclass(frozen=True, slots=True)
class ModelQuestion(Question[PrivateFit]):
    """A private model that was asked for and found possible without data.

    Attributes
    ----------
    model : the formula, without the lags that `request` has.
    split : shares of the loss by part.
    blocks, sizes, progress : of the methods that divide the rows into blocks.
    """

    model: Formula
    request: ModelRequest
    method: Method
    payer: Payer
    split: Mapping[str, Number] | None
    blocks: Blocks
    sizes: Mapping[str, Number] | None
    progress: Progress

    def __repr__(self) -> str:
        return f"<ModelQuestion {self.model.text!r} by {self.method}: {self.request.loss}>"

    @property
    def response(self) -> str:
        return self.model.response.column

    def offer(self, data: Any) -> Offer[None, Any, PrivateFit]:
        """The model as an offer, made from the public columns of `data`."""
        request, model = self.request, self.model
        outcomes = request.law.outcomes
        frame = open_frame(data, readings={self.response: "outcome" if outcomes else "response"}, ordered=True)
        if request.lags:
            return offer_lags(frame, model, request, self.split)
        frame, model = with_sizes(frame, model)
        known = public_design(
            frame, model, any_terms=case_of(self.method, {"moments": True, "paper": False, "strict": False})
        )
        frame = with_outcomes(frame, self.response) if outcomes else frame
        frame = confined(frame, known, request.scale)
        if not request.law.linear:
            refuse_terms(known, request)
            return offer_family(frame, known, request, self.split)
        if known.others:
            return offer_terms(frame, known, request, self.split)
        if case_of(self.method, {"moments": True, "paper": False, "strict": False}):
            return _by_moments(frame, known, request, self.split)
        refuse_dropped(known)
        if case_of(self.method, {"strict": True, "moments": False, "paper": False}):
            return _by_strict(frame, known, self)
        return _by_paper(frame, known, self)

    def release(self, data: Any) -> PrivateFit:
        """Pay and draw."""
        released = self.paid(data)
        paid = {key: getattr(released, key) for key in ("guarantee", "entry", "name", "check")}
        fit: PrivateFit = replace(released.value, **paid)
        return fit


def _by_moments(
    frame: AnyFrame, public: PublicDesign, request: ModelRequest, split: Mapping[str, Number] | None
) -> Offer[None, moments.ExactStatistics, PrivateFit]:
    units, by = units_of(frame, public), request.together
    squared = isinstance(request.loss, Concentrated)
    reach = Reach.of_groups(frame, public, units, by, squared=squared) if by else Reach.of_rows(public, units)
    mechanism = noise_for(public, units, request, split, reach)
    for each in possible(mechanism):
        moments.refuse_unsolvable(moments.sums_of_nothing(each, public, request), public, request)
    guarantee = Guarantee(request.unit, mechanism.loss, basis="proved", proof=moments.PROOF, notes=request.notes())

    def solved(drawn: moments.NoisyStatistics) -> PrivateFit:
        noise = mechanism.chosen(drawn)
        solution = moments.solve(drawn, noise, public, request)
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
            flags = size_flags(solution.shift, found, restore, public.names)
            if public.terms and not noise.sees_groups:
                flags += unmeasured_flags(groups, spread=spread_of(mechanism))
                flags += variance_flags(request, {"Residual": found.sigma2})
            else:
                flags += variance_flags(request, components(public, variances), least)
            supposed = np.maximum(found.variances, 0 if noise.sees_groups else TYPICAL[0] * float(request.width) ** 2)
            at: Any = {"sigma2": found.sigma2, "variances": supposed}
            moved = moved_by_means(solution.sums, restore, known.fixed, **at)
            notes = [*equal_variances(public.names, known.residuals), *means_of_columns(public.names, moved)]
        estimates = (centred, effects, variances, covariance, errors, flags, notes)
        return private_fit("moments", drawn, guarantee, public, request, *estimates)

    return Offer(
        guarantee=guarantee,
        details=details_of(public, request, "moments", **mechanism.to_dict()),
        expected=lambda: moments_errors(possible(mechanism)[0], public, request, spread_of(mechanism)),
        read=lambda nothing: mechanism.exact(response_sums(frame, public, units, request.scale), public),
        draw=lambda exact, source: solved(mechanism.draw(exact, source)),
    )


def _by_strict(frame: AnyFrame, public: PublicDesign, asked: ModelQuestion) -> Offer[None, strict.Reading, PrivateFit]:
    request, progress = asked.request, asked.progress
    count = count_blocks(asked.blocks, public.rows, spread=2, epsilon=_worth(request.loss))
    known, _ = read_rows(hidden(frame, public.model), public.design.layout, public.learned)
    rng = np.random.default_rng(request.seed)
    chosen = partition(public.rows, count, rng)
    presence = strict.presence_of(known, public, chosen)
    mechanism = strict.mechanism_for(
        public, request, presence, strict.column_units(known, public), asked.split, asked.sizes
    )
    _warn_of_clipping(mechanism, presence, request)
    step = request.scale.step
    guarantee = Guarantee(request.unit, mechanism.loss, basis="proved", proof=strict.PROOF, notes=request.notes())

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
            f"twentieth of the range), {100 * share:.0f} % of the blocks will be pulled towards zero through them "
            "alone. State "
            "a larger size, or leave it out",
            MixedWarning,
            stacklevel=7,
        )


def _by_paper(frame: AnyFrame, public: PublicDesign, asked: ModelQuestion) -> Offer[None, paper.Averages, PrivateFit]:
    request, progress = asked.request, asked.progress
    ranges = paper.ranges_of(request, public)
    spread = ranges.effect if public.model.response.column.lower() in RATES else 2
    count = count_blocks(asked.blocks, public.rows, spread=spread, epsilon=_worth(request.loss))
    scales = paper.scales_for(public, request, ranges, count, asked.split)
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
