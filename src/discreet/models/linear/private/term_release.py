"""A private model with random slopes or crossed factors as an offer: what it reads, draws and is expected to err by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.linear.origin import basis
from discreet.models.linear.private import moments
from discreet.models.linear.private.arrow import TermEstimate, TermSums, evaluate_terms, sources_of_terms
from discreet.models.linear.private.assembled import assembled, details_of
from discreet.models.linear.private.check import (
    GroupError,
    ModelErrors,
    assumed_typical,
    errors_by_size,
    hardly_seen,
    largest_variance,
)
from discreet.models.linear.private.notes import Flag, equal_variances, unmeasured_flags, variance_flags
from discreet.models.linear.private.public import PublicDesign
from discreet.models.linear.private.reach import Reach
from discreet.models.linear.private.request import ModelRequest
from discreet.models.linear.private.result import PrivateEffects, PrivateFit
from discreet.models.linear.private.shares import TYPICAL
from discreet.models.linear.private.slopes import slope_notes
from discreet.models.linear.private.sums import response_sums, units_of
from discreet.models.linear.private.term_estimation import estimate_terms, least_seen_of
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Concentrated, Number, Pure
from discreet.release.offer import Offer
from discreet.words.errors import FitError, Unidentified

if TYPE_CHECKING:
    from discreet.data.frames import AnyFrame

SMALLEST, LARGEST = 1e-8, 1e12  # root mean squares of columns of slopes


def offer_terms(
    frame: AnyFrame, public: PublicDesign, request: ModelRequest, split: Mapping[str, Number] | None
) -> Offer[None, moments.ExactStatistics, PrivateFit]:
    """Noisy sums of every column of every random term, beside those of the fixed part."""
    _refuse_units(public)
    units, by = units_of(frame, public), request.together
    squared = isinstance(request.loss, Concentrated)
    reach = Reach.of_groups(frame, public, units, by, squared=squared) if by else Reach.of_rows(public, units)
    mechanism = moments.mechanism_for(public, units, request, split, reach)
    nothing = term_sums(moments.nothing_drawn(mechanism), mechanism, public, request)
    tau2, sigma2 = (share * float(request.width) ** 2 for share in TYPICAL)
    typical = np.full(len(nothing.coefficients), tau2)
    _refuse_unsolvable(nothing, public, sigma2, typical)
    guarantee = Guarantee(request.unit, mechanism.loss, basis="proved", proof=moments.PROOF, notes=request.notes())

    def solved(drawn: moments.NoisyStatistics) -> PrivateFit:
        solution = solve_terms(drawn, mechanism, public, request)
        return _private_fit(solution, drawn, guarantee, mechanism, public, request)

    return Offer(
        guarantee=guarantee,
        details=details_of(public, request, "moments", **mechanism.to_dict()),
        expected=lambda: _expected(nothing, public, request, sigma2, typical, undrawn(mechanism, public)),
        read=lambda data: mechanism.exact(response_sums(frame, public, units, request.scale), public),
        draw=lambda exact, source: solved(mechanism.draw(exact, source)),
    )


def term_sums(
    noisy: moments.NoisyStatistics, mechanism: moments.MomentNoise, public: PublicDesign, request: ModelRequest
) -> TermSums:
    """The draws of a release, beside the public design, in the response's units from its centre."""
    others, step = public.others, request.scale.step
    assert others is not None
    m, p = len(others.BB), len(public.kept)
    far = (moments.FAR * float(request.width)) ** 2  # what is known of means whose sums were not drawn
    s, ds = np.zeros(others.ZZ.shape[:2]), far * np.maximum(np.einsum("gii->gi", others.ZZ), 1.0) ** 2
    sb, db = np.zeros(m), far * np.maximum(np.diag(others.BB), 1.0) ** 2
    sb[m - p :], db[m - p :] = moments.fixed_sums(noisy, mechanism, public, request)
    starts = {(term, piece): start for term, start, piece in public.random_parts}
    for part, drawn in zip(mechanism.parts, noisy.sums, strict=True):
        if part.term is None or part.piece is None:
            continue
        place, width = others.places[part.term], part.piece.width(public.design.levels)
        own = starts[part.term, part.piece] + np.arange(width)
        sums, spread = (each.reshape(place.levels, width) for each in (part.unit * drawn, part.variance))
        if place.in_blocks:
            s[:, place.start + own], ds[:, place.start + own] = sums, spread
        else:
            at = place.start + np.arange(place.levels)[:, None] * place.width + own
            sb[at], db[at] = sums, spread
    if mechanism.sees_groups:
        s -= noisy.centre * step * (others.ZB[:, :, m - p :] @ public.constant)
        sb[: m - p] -= noisy.centre * step * (others.BB[: m - p, m - p :] @ public.constant)
    for term, (finer, parent) in others.parents.items():
        block, place = others.places[finer], others.places[term]
        adding = np.zeros((place.levels, place.width))
        np.add.at(adding, parent, s[:, block.columns])
        sb[place.columns] = adding.ravel()
    return TermSums(
        ZZ=others.ZZ,
        ZB=others.ZB,
        BB=others.BB,
        drawn=others.drawn,
        s=s,
        ds=ds,
        sb=sb,
        db=db,
        fixed=p,
        places=others.places,
        shapes=tuple(np.eye(place.width) for place in others.places),
        squares=step**2 * noisy.squares,
        squares_noise=step**2 * noisy.squares_scale * moments.law_of(mechanism.squares).variance ** 0.5,
        rows=float(public.rows),
        kurtosis=3.0 if isinstance(request.loss, Pure) else 0.0,
    )


@dataclass(frozen=True)
class SolvedTerms:
    """The model that noisy sums support; `failure` says what went wrong, and there is no estimate then."""

    estimate: TermEstimate | None
    sums: TermSums = field(repr=False)
    origin: float
    failure: str = ""


def solve_terms(
    noisy: moments.NoisyStatistics, mechanism: moments.MomentNoise, public: PublicDesign, request: ModelRequest
) -> SolvedTerms:
    """The sums are paid for, so a failure leaves estimates empty and is reported, and the sums can be solved again."""
    sums = term_sums(noisy, mechanism, public, request)
    origin = request.scale.middle + noisy.centre * request.scale.step
    try:
        found, sums = estimate_terms(sums, largest=float(request.width) / 2)
        if np.isfinite(found.beta).all():
            return SolvedTerms(found, sums, origin)
    except (np.linalg.LinAlgError, ArithmeticError, ValueError):
        pass
    return SolvedTerms(None, sums, origin, moments.FAILED)


def component_names(public: PublicDesign) -> list[str]:
    """The names of the random coefficients in `PrivateFit`, term after term."""
    return [
        random.term.name if random.names == ("(Intercept)",) else f"{random.term.name}: {name}"
        for random in public.design.random
        for name in random.names
    ]


def _private_fit(
    solution: SolvedTerms,
    drawn: moments.NoisyStatistics,
    guarantee: Guarantee,
    mechanism: moments.MomentNoise,
    public: PublicDesign,
    request: ModelRequest,
) -> PrivateFit:
    found, restore, p = solution.estimate, public.origin.restore, len(public.kept)
    names = component_names(public)
    units = dict(zip(names, mean_squares(solution.sums).tolist(), strict=True))
    flags: list[Flag] = []
    if found is None:
        random = tuple(
            PrivateEffects.of(each, np.full((len(each.names),) * 2, np.nan), np.full(len(each.grouping), np.nan), i)
            for i, each in enumerate(public.design.random)
        )
        empty = tuple(effects for term in random for effects in term)
        nothing = np.full((p, p), np.nan)
        return assembled(
            drawn, guarantee, public, request, nothing[0], empty, np.nan, nothing, flags, [solution.failure]
        )
    covariances, unmeasured = solution.sums.factors(found.variances), undrawn(mechanism, public)
    effects: list[PrivateEffects] = []
    at = 0
    for i, (design, L, own) in enumerate(zip(public.design.random, covariances, found.covariances, strict=True)):
        q = len(design.names)
        values = np.column_stack(found.effects[at : at + q])
        spread = _with_doubt(own, np.column_stack(found.effect_variances[at : at + q]))
        values = values * [name not in unmeasured for name in names[at : at + q]]
        back = np.linalg.inv(basis(design))
        effects += PrivateEffects.of(design, back @ L @ L.T @ back.T, values @ back.T, i, back @ spread @ back.T)
        at += q
    covariance = restore @ found.covariance @ restore.T
    supposed: Any = {"sigma2": found.sigma2, "variances": found.variances}
    sources = sources_of_terms(solution.sums, **supposed)
    shares = np.diag(restore @ sources.residuals @ restore.T) / np.diag(covariance)
    variances = dict(zip(names, found.variances.tolist(), strict=True))
    if not mechanism.sees_groups:
        flags += unmeasured_flags(names) + variance_flags(request, {"Residual": found.sigma2})
    else:
        least = dict(zip(names, least_seen_of(solution.sums, **supposed).tolist(), strict=True))
        flags += unmeasured_flags(unmeasured)
        kept = {name: value for name, value in variances.items() if name not in unmeasured}
        least = {name: value for name, value in least.items() if name in kept}
        flags += variance_flags(request, kept | {"Residual": found.sigma2}, least, units)
    centred = found.beta + solution.origin * public.constant
    notes = [*equal_variances(public.names, shares), SIZES]
    return assembled(drawn, guarantee, public, request, centred, effects, found.sigma2, covariance, flags, notes)


def undrawn(mechanism: moments.MomentNoise, public: PublicDesign) -> list[str]:
    """Components whose sums the default split spends nothing on, because noise would hide them."""
    there = {(part.term, part.piece) for part in mechanism.parts}
    found, names = [], iter(component_names(public))
    parents = public.others.parents if public.others else {}
    for i, random in enumerate(public.design.random):
        source = parents[i][0] if i in parents else i  # whose sums add up to its own
        for piece in random.pieces:
            for _ in range(piece.width(public.design.levels)):
                found += [name for name in [next(names)] if (source, piece) not in there]
    return found


SIZES = (
    "with random slopes or crossed factors estimates do not allow for effects that go with the sizes of their groups: "
    "add log_size(group) where they may. Nor for effects that go with means of columns in their groups, towards which "
    "noise moves slopes: add such means as public columns of their own where they may"
)


def _with_doubt(own: Matrix, variances: Matrix) -> Matrix:
    """Covariances of errors at the best variances, with the variances that doubt about these adds up to."""
    best = np.einsum("gii->gi", own)
    ratio = np.sqrt(np.where(best > 0, variances / np.where(best > 0, best, 1.0), 1.0))
    spread = own * ratio[:, :, None] * ratio[:, None, :]
    at = np.arange(own.shape[1])
    spread[:, at, at] = variances
    return np.asarray(spread)


def _refuse_units(public: PublicDesign) -> None:
    """Columns of slopes so small or so large that their variances, and those of intercepts, share no digits."""
    assert public.others is not None
    for i, random in enumerate(public.design.random):
        squares = public.others.sizes(i).sum(axis=0) / public.rows
        for name, size in zip(random.names, np.sqrt(squares).tolist(), strict=True):
            if size and not SMALLEST <= size <= LARGEST:  # a column of zeros has no slopes, in any unit
                raise FitError(
                    f"The random slopes of {name!r} in {random.term} are of a column whose root mean square is "
                    f"{size:.2g}.",
                    f"Private slopes are of columns between {SMALLEST:g} and {LARGEST:g}: beyond, doubles do not hold "
                    "their variances beside those of intercepts.",
                    "Give the column in another unit, near 1. Nothing was spent.",
                    about="formula",
                )


def _refuse_unsolvable(nothing: TermSums, public: PublicDesign, sigma2: float, variances: Vector) -> None:
    """Solve once with sums of zero: what fails then would fail after it was paid for."""
    try:
        solvable = bool((np.diag(evaluate_terms(nothing, sigma2=sigma2, variances=variances).covariance) > 0).all())
    except np.linalg.LinAlgError:
        solvable = False
    if not solvable:
        raise Unidentified(
            f"The {len(public.kept)} fixed columns of {public.model.text!r} cannot be separated under this noise.",
            "Columns must differ by more than noise and rounding hide.",
            "Drop columns or interactions, or cap a column's far values. Nothing was spent.",
            about="formula",
        )


def _expected(
    nothing: TermSums,
    public: PublicDesign,
    request: ModelRequest,
    sigma2: float,
    variances: Vector,
    unmeasured: Sequence[str],
) -> ModelErrors:
    """Expected standard errors at the assumed variances."""
    restore, names = public.origin.restore, component_names(public)
    found = evaluate_terms(nothing, sigma2=sigma2, variances=variances)
    sources = sources_of_terms(nothing, sigma2=sigma2, variances=variances)
    squares, noise, residuals = (
        np.diag(restore @ each @ restore.T) for each in (found.covariance, sources.noise, sources.residuals)
    )
    least = least_seen_of(nothing, sigma2=sigma2, variances=variances) / mean_squares(nothing)
    there = [i for i, name in enumerate(names) if name not in unmeasured]
    groups: list[GroupError] = []
    for name, (term, column), spread in zip(names, nothing.coefficients, found.effect_variances, strict=True):
        size = _rows_of(nothing, term)
        groups += errors_by_size(name, size, np.sqrt(spread)) if column == 0 and name not in unmeasured else []
    return ModelErrors(
        method="moments",
        rows=public.rows,
        names=public.names,
        error=tuple(np.sqrt(squares).tolist()),
        noise=tuple(np.sqrt(noise).tolist()),
        groups=tuple(groups),
        assumed=assumed_typical(request),
        notes=(
            *hardly_seen(unmeasured, np.zeros(len(unmeasured)), measured=False),
            *hardly_seen([names[i] for i in there], least[there], measured=True),
            *equal_variances(public.names, residuals / squares),
            *slope_notes(public, np.sqrt(squares), largest_variance(request)),
            SIZES,
        ),
        beside=sum(len(random.grouping) * len(random.names) for random in public.design.random) + len(names) + 1,
    )


def _rows_of(sums: TermSums, term: int) -> Vector:
    """Sums of squares of a term's first column by level, in its own mean square: rows, of an intercept."""
    place = sums.places[term]
    border = np.diag(sums.BB)[place.columns][:: place.width]
    square = sums.ZZ[:, place.start, place.start] if place.in_blocks else border
    return np.asarray(np.rint(square / place.unit[0] ** 2))


def mean_squares(sums: TermSums) -> Vector:
    """For the columns behind the random coefficients: the contribution to a row of an effect of variance one."""
    return np.concatenate([place.unit**2 for place in sums.places])
