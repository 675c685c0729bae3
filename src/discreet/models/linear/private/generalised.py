"""Private models with a link, such as binomial and Poisson, from the noisy sums that `moments` draws.

With the canonical link the likelihood depends on the response only through its sums by fixed column and by group,
because all columns are public. So noisy sums are noisy sufficient statistics, with the proof of `moments`. Estimates
solve t = A'mu(theta) by steps that are each a linear problem with noise in it: A'W A takes the place of A'A, and t -
A'mu + A'W eta that of t (penalised quasi-likelihood, Breslow and Clayton 1993). The algebra is in
docs/proofs/mixed-moments.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Vector
from discreet.models.formula.rows import ModelRows, number_column, read_rows
from discreet.models.linear.cells import CellSums
from discreet.models.linear.families.family import PrivateFamily
from discreet.models.linear.families.links import Link
from discreet.models.linear.families.registry import known as families
from discreet.models.linear.families.registry import released
from discreet.models.linear.gram import grouped_products, products
from discreet.models.linear.matrix import linear
from discreet.models.linear.private import moments
from discreet.models.linear.private.assembled import assembled, details_of, group_names
from discreet.models.linear.private.check import ModelErrors, errors_by_size
from discreet.models.linear.private.estimation import averaged, best_deviations, credibility, hidden_share, least_seen
from discreet.models.linear.private.noisy import NoisyEstimate, NoisySums, evaluate, sources
from discreet.models.linear.private.notes import Flag, hidden_variances, not_measured, unmeasured_flags
from discreet.models.linear.private.paper import cross_products
from discreet.models.linear.private.public import INTERCEPT, PublicDesign, hidden
from discreet.models.linear.private.reach import Reach
from discreet.models.linear.private.request import ModelRequest
from discreet.models.linear.private.result import PrivateEffects, PrivateFit
from discreet.models.linear.private.slopes import ON_A_LINK, slope_notes
from discreet.models.linear.private.sums import response_sums, units_of
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Concentrated, Number
from discreet.release.offer import Offer
from discreet.words.errors import FitError, PrivacyError
from discreet.words.faults import Argument

if TYPE_CHECKING:
    from discreet.data.frames import AnyFrame

ROUNDS = 100
WHOLE = 10  # rounds of whole steps; then of halves
LARGEST = 3.0  # standard deviation of effects on the scale of the link
FARTHEST = 15.0  # linear predictors, less offsets, beyond which there is no estimate: for the mean exposure
LONGEST = 2.0  # change of a linear predictor in one step
CLOSE = 1e-7  # change of linear predictors where steps end
TYPICAL = 0.1  # standard deviation of effects, on the scale of the link, that expected errors suppose
LEAST = 1e-3  # how near to the ends of its range the mean may lie where steps begin
NOWHERE = (
    "no finite estimate fits the noisy sums: noise, or responses that a column separates. Estimates are empty, the "
    "sums are in `released`. Spend more, or use fewer columns"
)
EMPTY = "no estimate"
SURE = 0.4  # noise of a coefficient, on the scale of the link, from which on releases begin to have no estimate
QUASI = (
    "variances of effects are by penalised quasi-likelihood, which finds them too small where groups have few rows or "
    "events. And noise moves slopes towards what is between groups: where effects go with means of columns in their "
    "groups, add such means as public columns of their own"
)


@dataclass(frozen=True)
class PublicRows:
    """The public rows, or cells of rows that are alike, with how often each counts and its offset.

    Offsets are logarithms of shares of the mean exposure, whose own is `centre`: units of exposure, which are public,
    move the constant and nothing else.
    """

    rows: ModelRows = field(repr=False)
    weight: Vector = field(repr=False)
    offset: Vector = field(repr=False)
    group: Any = field(repr=False)
    centre: float = 0.0

    @classmethod
    def of(cls, frame: AnyFrame, public: PublicDesign, exposure: str) -> PublicRows:
        numeric = any(piece.monomial.atoms for piece in public.design.layout.fixed)
        if numeric or exposure:
            rows, _ = read_rows(hidden(frame, public.model), public.design.layout, public.learned)
            weight = np.ones(rows.count)
            size = number_column(frame, exposure, "exposure", rows.count, positive=True) if exposure else weight
            offset = np.log(size)
            centre = float(np.logaddexp.reduce(offset)) - np.log(rows.count) if exposure else 0.0
        else:
            rows = ModelRows(public.cells.count, public.cells.codes, {})
            one = INTERCEPT[0].monomial
            weight = public.cells.total(one, one)
            offset, centre = np.zeros(rows.count), 0.0
        return cls(rows, weight, offset - centre, public.group(rows.codes) if public.terms else None, float(centre))


@dataclass(frozen=True)
class _Point:
    """The model at a linear predictor: means and weights of rows, and their sums."""

    eta: Vector
    mean: Vector
    curve: Vector


def _at(link: Link, eta: Vector, offset: Vector) -> _Point:
    return _Point(eta, link.mean(eta + offset), link.slope(eta + offset))


@dataclass(frozen=True)
class SolvedFamily:
    """The model that noisy sums support at its last step; None where there is no estimate."""

    estimate: NoisyEstimate | None
    sums: NoisySums
    dispersion: float


def solve_family(
    link: Link,
    dispersed: bool,
    sums: NoisySums,
    origin: float,
    public: PublicDesign,
    known: PublicRows,
    *,
    drawn: bool = True,
) -> SolvedFamily:
    """Steps to the fixed point: each a linear problem whose noise is that of the sums."""
    tx, tz = sums.Xy + origin * public.ones, sums.s + origin * public.n * drawn
    squares = sums.squares + 2 * origin * float(tx @ public.constant) - origin**2 * public.rows
    exposure = float(known.weight @ np.exp(known.offset))
    start = link.of(np.clip(tx @ public.constant / exposure, LEAST, link.range[1] - LEAST))
    eta, variances, dispersion = np.full(known.rows.count, start), np.full(len(sums.levels), 0.01), 1.0
    step, found = sums, None
    for turn in range(ROUNDS):
        at = _at(link, eta, known.offset)
        if dispersed:
            excess = squares - float(known.weight @ at.mean**2)
            dispersion = max(1.0, excess / float(known.weight @ at.mean))
        step = _step(at, sums, tx, tz, public, known)
        logs = best_deviations(step, dispersion, LARGEST, np.sqrt(variances) if found else None) if drawn else None
        variances = np.zeros(len(sums.levels)) if logs is None else logs**2
        found = evaluate(step, sigma2=dispersion, variances=variances)
        moved = _predictor(found, public, known) - eta
        length = 1.0 if turn < WHOLE else 0.5  # whole steps may go past the solution by as much as they were off
        eta = eta + moved * min(length, LONGEST / max(float(np.abs(moved).max()), 1e-300))
        if not np.isfinite(eta).all() or np.abs(eta).max() > FARTHEST:
            return SolvedFamily(None, step, dispersion)
        if np.abs(moved).max() < CLOSE:
            break
    if found is None or np.abs(moved).max() > 1e-3:
        return SolvedFamily(None, step, dispersion)
    return SolvedFamily(found, step, dispersion)


def _predictor(found: NoisyEstimate, public: PublicDesign, known: PublicRows) -> Vector:
    beta = np.zeros(len(public.design.names))
    beta[public.kept] = found.beta
    eta = linear(known.rows, public.design.layout.fixed, public.design.levels, beta)
    for level, u in zip(public.levels, found.effects, strict=True):
        eta = eta + u[level.index][known.group]
    return eta


def _step(at: _Point, sums: NoisySums, tx: Vector, tz: Vector, public: PublicDesign, known: PublicRows) -> NoisySums:
    """The linear problem at a point: weighted cross-products, and sums of working responses."""
    weights = known.weight * at.curve
    cells, fixed = CellSums.weighted(known.rows, weights), public.design.layout.fixed
    levels, kept = public.design.levels, public.kept
    XX = products(cells, fixed, fixed, levels)[np.ix_(kept, kept)]
    rest = known.weight * (at.curve * at.eta - at.mean)
    Xy = tx + cross_products(known.rows, public, rest)
    n, Sx, s = sums.n, sums.Sx, sums.s
    if public.terms:
        found = grouped_products(cells, known.group, len(n), INTERCEPT, (*INTERCEPT, *fixed), levels)[:, 0]
        n, Sx = found[:, 0], found[:, 1:][:, kept]
        s = tz + np.bincount(known.group, rest, len(n))
    return replace(sums, n=n, Sx=Sx, XX=XX, s=s, Xy=Xy)


def offer_family(
    frame: AnyFrame, public: PublicDesign, request: ModelRequest, split: Mapping[str, Number] | None
) -> Offer[None, moments.ExactStatistics, PrivateFit]:
    """A binomial or Poisson model as an offer: the sums of `moments`, solved otherwise."""
    private = private_family(request.family)
    known = PublicRows.of(frame, public, request.exposure)
    units, by = units_of(frame, public), request.together
    squared = isinstance(request.loss, Concentrated)
    reach = Reach.of_groups(frame, public, units, by, squared=squared) if by else Reach.of_rows(public, units)
    mechanism = moments.mechanism_for(public, units, request, split or _shares(private, public), reach)
    nothing = moments.sums_of_nothing(mechanism, public, request)
    expected = _expected_sums(nothing, public, request, known)
    _refuse_unsolvable(expected, public)
    guarantee = Guarantee(request.unit, mechanism.loss, basis="proved", proof=moments.PROOF, notes=request.notes())
    exposed = {"exposure": request.exposure} if request.exposure else {}

    def solved(drawn: moments.NoisyStatistics) -> PrivateFit:
        sums = moments.noisy_sums(drawn, mechanism, public, request)
        origin = request.scale.middle + drawn.centre * request.scale.step
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                solution = solve_family(
                    request.law.link, private.dispersed, sums, origin, public, known, drawn=mechanism.sees_groups
                )
        except (np.linalg.LinAlgError, ArithmeticError, ValueError):
            solution = SolvedFamily(None, sums, 1.0)
        return _private_fit(solution, drawn, guarantee, mechanism, public, request, known.centre)

    return Offer(
        guarantee=guarantee,
        details=details_of(public, request, "moments", family=request.family, **exposed, **mechanism.to_dict()),
        expected=lambda: _expected(expected, public, request, measured=mechanism.sees_groups),
        read=lambda data: mechanism.exact(response_sums(frame, public, units, request.scale), public),
        draw=lambda exact, source: solved(mechanism.draw(exact, source)),
    )


def _shares(private: PrivateFamily, public: PublicDesign) -> dict[str, Fraction]:
    """Halves for the fixed part and the groups; counts need their squares for the dispersion, 0 and 1 do not."""
    squares = private.squares
    if not public.terms:
        return {"fixed": 1 - squares, "squares": squares}
    return {"groups": (1 - squares) / 2, "fixed": (1 - squares) / 2, "squares": squares}


def _private_fit(
    solution: SolvedFamily,
    drawn: moments.NoisyStatistics,
    guarantee: Guarantee,
    mechanism: moments.MomentNoise,
    public: PublicDesign,
    request: ModelRequest,
    centre: float,
) -> PrivateFit:
    found, sums, names, restore = solution.estimate, solution.sums, group_names(public), public.origin.restore
    flags: list[Flag] = []
    notes = [QUASI] if names and mechanism.sees_groups else []
    if found is None:
        found, notes = moments.no_estimate(public), []
        flags = [Flag("fixed", None, EMPTY, NOWHERE)]
        flags += [Flag(effect, name, EMPTY, NOWHERE) for name in names for effect in ("random", "variance")]
    elif names and mechanism.sees_groups:
        found = _with_doubt(sums, found)
        least = least_seen(sums, sigma2=found.sigma2, variances=found.variances)
        flags = hidden_variances(names, found.variances, least)
    elif names:
        flags = unmeasured_flags(names, residual=None)
    effects: dict[int, PrivateEffects] = {}
    for position, term in enumerate(public.terms):
        random = public.design.random[term]
        effects[term] = PrivateEffects(
            random.term.name,
            random.grouping.labels,
            float(found.variances[position]),
            public.in_own_order(position, found.effects[position]) * mechanism.sees_groups,
            np.sqrt(public.in_own_order(position, found.effect_variances[position])),
            term=term,
        )
    covariance = restore @ found.covariance @ restore.T
    placed = [effects[i] for i in range(len(effects))]
    centred = found.beta - centre * public.constant  # a rate of one unit of exposure, not of the mean exposure
    told = (drawn, guarantee, public, request, centred, placed, solution.dispersion, covariance, flags, notes)
    return assembled(*told)


def _with_doubt(sums: NoisySums, best: NoisyEstimate) -> NoisyEstimate:
    """Doubt about the variances of effects, as in a linear model."""

    def at(variances: Vector) -> NoisyEstimate:
        return evaluate(sums, sigma2=best.sigma2, variances=variances)

    believed = credibility(sums, best.sigma2, float(best.variances.sum()))
    return averaged(best, at, lambda term: hidden_share(sums, best, term), believed, LARGEST)


def _usual_mean(request: ModelRequest) -> float:
    return float(request.scale.lower) + private_family(request.family).usual * float(request.width)


def _expected_sums(nothing: NoisySums, public: PublicDesign, request: ModelRequest, known: PublicRows) -> NoisySums:
    """The linear problem at a usual mean: what is known of errors before anything is paid."""
    link, exposure = request.law.link, float(known.weight @ np.exp(known.offset))
    eta = link.of(np.full(known.rows.count, _usual_mean(request) * known.weight.sum() / exposure))
    point = _at(link, eta, known.offset)
    return _step(point, nothing, 0 * nothing.Xy, 0 * nothing.s, public, known)


def _expected(step: NoisySums, public: PublicDesign, request: ModelRequest, *, measured: bool) -> ModelErrors:
    names, restore = group_names(public), public.origin.restore
    variances = np.full(len(names), TYPICAL**2)
    found = evaluate(step, sigma2=1.0, variances=variances)
    parts = sources(step, sigma2=1.0, variances=variances)
    error, noise = (np.sqrt(np.diag(restore @ C @ restore.T)) for C in (found.covariance, parts.noise))
    hidden_ones = [not_measured(name) for name in names] if not measured else [QUASI] * bool(names)
    mean, dispersed = _usual_mean(request), private_family(request.family).dispersed
    if dispersed:
        least = mean * max(noise.tolist()) / SURE  # noise counts for less where there are more events
        hidden_ones.append(
            f"if the mean response is below {least:.2g}, some releases have no finite estimate, and an empty "
            "table. Narrow the bounds, spend more, or use fewer columns"
        )
    groups = [
        each
        for name in names[:1]
        for each in errors_by_size(name, np.rint(public.n), np.sqrt(found.effect_variances[0]))
    ]
    return ModelErrors(
        method="moments",
        rows=public.rows,
        names=public.names,
        error=tuple(error.tolist()),
        noise=tuple(noise.tolist()),
        groups=tuple(groups),
        assumed=(
            f"On the scale of the link, if the mean response is {mean:.3g} and effects of groups have a standard "
            f"deviation of {TYPICAL:g}. Responses vary as their family says"
            f"{', or more where they are dispersed' if dispersed else ''}."
        ),
        notes=(*hidden_ones, *slope_notes(public, error, ON_A_LINK)),
        beside=sum(len(public.design.random[term].grouping) + 1 for term in public.terms) + 1,
    )


def _refuse_unsolvable(step: NoisySums, public: PublicDesign) -> None:
    try:
        evaluate(step, sigma2=1.0, variances=np.full(len(public.terms), TYPICAL**2), robust=False)
    except np.linalg.LinAlgError:
        raise FitError(
            f"The {len(public.kept)} fixed columns of {public.model.text!r} cannot be separated under this noise.",
            "Columns must differ by more than noise and rounding hide.",
            "Drop columns or interactions, or cap a column's far values. Nothing was spent.",
            about="formula",
        ) from None


def private_family(name: str) -> PrivateFamily:
    """How the family of this name is released; refuses those that are not."""
    found = families().get(name)
    if found is None or found.private is None:
        raise PrivacyError(
            (Argument("family", name), " is not released privately."),
            f"Private models are {', '.join(released())}.",
            "Use one of these." if found is None else found.instead,
            about="family",
        )
    return found.private


def refuse_family(request: ModelRequest, method: str, exposure: str | None) -> None:
    """Refuse what families cannot be asked for, before any data are read."""
    private, law = private_family(request.family), request.law
    family, (low, high), ends = request.family, (request.scale.lower, request.scale.upper), law.link.range
    if exposure is not None and not law.link.rates:
        raise PrivacyError(
            (Argument("exposure", exposure), f" was given with family {family!r}."),
            "Counts are of an exposure.",
            ("Give ", Argument("family", "poisson"), ", or leave it out."),
            about="exposure",
        )
    if law.linear:
        return
    if method != "moments" or request.lags or request.lagged:
        raise PrivacyError(
            f"Family {family!r} was asked with {'lags' if method == 'moments' else f'method {method!r}'}.",
            "Shares and counts are released by noisy sums, without lags.",
            "Leave it out.",
            about="family",
        )
    if low < ends[0] or high > ends[1]:
        raise PrivacyError(
            f"Family {family!r} was asked with responses in [{float(low):g}, {float(high):g}].",
            "Shares lie in [0, 1], and counts are not negative.",
            ("Give ", Argument("bounds", private.example), "."),
            about="bounds",
        )


def refuse_terms(public: PublicDesign, request: ModelRequest) -> None:
    """Families have nested random intercepts."""
    if public.others is not None:
        raise FitError(
            f"{public.model.text!r} has random slopes or crossed factors, with family {request.family!r}.",
            "Private models of shares and counts have random intercepts, nested if there are several.",
            "Drop the slope, or a term.",
            about="formula",
        )
