"""A model with lags of its own response as an offer: what it reads, draws and is expected to err by.

Public columns are read first, on a frame whose response is zero in every row. The response is read once, with `series`
and `time` beside it, and every row put in its place by these.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.formula.formula import Formula, lag_name
from discreet.models.formula.rows import values_of, with_sizes
from discreet.models.linear.fit import MixedWarning
from discreet.models.linear.private import moments
from discreet.models.linear.private.assembled import components, details_of, group_names, private_fit
from discreet.models.linear.private.check import Bound, ModelErrors, moments_errors_of
from discreet.models.linear.private.expected import expected_errors
from discreet.models.linear.private.informative import SizeShift, allowing_for_sizes, size_flags
from discreet.models.linear.private.lag_estimation import LagEstimate, LagSums, estimate_lags, expected_lag_errors
from discreet.models.linear.private.lag_noise import PROOF, ExactLags, LagNoise, NoisyLags, lag_mechanism, lag_sums_of
from discreet.models.linear.private.notes import UNSTEADY, equal_variances, lag_flags, variance_flags
from discreet.models.linear.private.panel import SeriesRows, in_time, panel_of
from discreet.models.linear.private.public import PublicDesign, hidden, public_design
from discreet.models.linear.private.request import ModelRequest
from discreet.models.linear.private.result import PrivateFit
from discreet.models.linear.private.shares import TYPICAL
from discreet.models.linear.private.slopes import lag_slopes
from discreet.models.linear.private.sums import HALF, confined_response, units_of
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Number
from discreet.release.offer import Offer
from discreet.words.errors import DataError

if TYPE_CHECKING:
    from discreet.data.frames import AnyFrame

UNKNOWN = 1.0  # expected standard error of a lag's coefficient from which nothing is learned of it


@dataclass(frozen=True, slots=True)
class PreparedLags:
    """What is known about a release before a response is read: the design, the noise, and the place of every row."""

    frame: AnyFrame = field(repr=False)
    rows: SeriesRows = field(repr=False)
    public: PublicDesign
    mechanism: LagNoise

    @classmethod
    def of(
        cls, frame: AnyFrame, model: Formula, request: ModelRequest, split: Mapping[str, Number] | None
    ) -> PreparedLags:
        """Read the public columns; `model` is the formula without its lags."""
        response = model.response.column
        shown = hidden(frame, model) if response in frame.collect_schema() else frame
        rows = in_time(shown, [response, *request.public], series=request.series, time=request.time)
        panel = panel_of(rows, request.lags)
        used, model = with_sizes(rows.frame[panel.used], model)
        public = public_design(used, model)
        assert public.in_memory is not None
        mechanism = lag_mechanism(panel, public.in_memory, public, units_of(used, public), request, split)
        return cls(confined_response(frame, response, request.scale), rows, public, mechanism)

    def read(self, request: ModelRequest) -> ExactLags:
        """Everything that noise is added to, from one reading of the response; confidential."""
        response = self.public.model.response.column
        again = in_time(self.frame, [response], series=request.series, time=request.time)
        if not (np.array_equal(again.series, self.rows.series) and np.array_equal(again.period, self.rows.period)):
            raise DataError(
                "The rows have changed since they were first read.",
                "A release is planned on the series and periods that it reads.",
                "Ask again.",
                about="data",
            )
        y = np.asarray(values_of(again.frame[response].to_arrow()), dtype=np.float64)
        return self.mechanism.exact(np.asarray(request.scale.whole(y), dtype=np.int64))


def offer_lags(
    frame: AnyFrame, model: Formula, request: ModelRequest, split: Mapping[str, Number] | None
) -> Offer[None, ExactLags, PrivateFit]:
    """`model` is the formula without its lags, which are in the request."""
    response = model.response.column
    prepared = PreparedLags.of(frame, model, request, split)
    public, mechanism = prepared.public, prepared.mechanism
    nothing = sums_of_nothing(mechanism, public, request)
    moments.refuse_unsolvable(nothing.at(np.zeros(len(request.lags))), public, request)
    _warn_of_noise(nothing, request, response)
    guarantee = Guarantee(request.unit, mechanism.loss, basis="proved", proof=PROOF, notes=request.notes())
    names = lag_names(public, request)

    def solved(drawn: NoisyLags) -> PrivateFit:
        origin = request.scale.middle + drawn.centre * request.scale.step
        found, shift, failure = solve(drawn, mechanism, public, request)
        at, restore = found.at, public.origin.restore
        flags, notes = [], [failure]
        variances = np.append(at.variances, at.sigma2)
        if not failure:
            told = expected_errors(found.sums, restore, sigma2=at.sigma2, variances=at.variances)
            least = dict(zip(group_names(public), told.least.tolist(), strict=True))
            unknown = [name for name, v in zip(least, at.variances.tolist(), strict=True) if v < least[name]]
            moved = found.pull * sum(least[name] for name in unknown)
            flags = lag_flags(names, found.seen, unknown, moved)
            flags += size_flags(shift, at, restore, public.names)
            flags += variance_flags(request, components(public, variances), least)
            spread = np.sqrt(np.diag(found.covariance))[len(public.kept) :]
            flags += lag_slopes(names, found.phi, spread, len(np.unique(prepared.rows.series)))
            notes = [*equal_variances(public.names, told.residuals), *equal_variances(names, found.sampled), UNSTEADY]
        return private_fit(
            "moments",
            drawn,
            guarantee,
            public,
            request,
            at.beta + origin * (1 - found.phi.sum()) * public.constant,
            [public.in_own_order(i, u) for i, u in enumerate(at.effects)],
            variances,
            as_given(found.covariance, public, origin),
            [np.sqrt(public.in_own_order(i, v)) for i, v in enumerate(at.effect_variances)],
            flags,
            notes,
            found.phi,
        )

    more = {"series": list(request.series), "time": request.time, **mechanism.to_dict()}
    return Offer(
        guarantee=guarantee,
        details=details_of(public, request, "moments", **more),
        expected=lambda: lag_errors(nothing, public, request),
        read=lambda nothing: prepared.read(request),
        draw=lambda exact, source: solved(mechanism.draw(exact, source)),
    )


def solve(
    noisy: NoisyLags, mechanism: LagNoise, public: PublicDesign, request: ModelRequest
) -> tuple[LagEstimate, SizeShift | None, str]:
    """The sums are paid for, so a failure leaves estimates empty and is reported, and the sums can be solved again."""
    sums = lag_sums_of(noisy, mechanism, public, request)
    p, lags = len(public.kept), len(request.lags)
    try:
        found = estimate_lags(sums, largest=float(request.width) / 2)
        at, shift = allowing_for_sizes(found.sums, found.at)
        whole = found.covariance.copy()
        whole[:p, :p] += at.covariance - found.at.covariance
        if np.isfinite(whole).all() and np.isfinite(at.beta).all():
            return replace(found, at=at, covariance=whole), shift, ""
    except (np.linalg.LinAlgError, ArithmeticError, ValueError):
        pass
    drawn, none = sums.at(np.zeros(lags)), np.full((p + lags, p + lags), np.nan)
    empty = moments.no_estimate(public)
    return LagEstimate(empty, drawn, none[0, p:], none, 0.0, 0.0, np.zeros(lags)), None, moments.FAILED


def as_given(covariance: Matrix, public: PublicDesign, origin: float) -> Matrix:
    """Of fixed effects of the columns as given, and lags: lags move what an origin of the response adds to them."""
    p, restore = len(public.kept), public.origin.restore
    change = np.eye(len(covariance))
    change[:p, :p] = restore
    change[:p, p:] = -origin * (restore @ public.constant)[:, None]
    return np.asarray(change @ covariance @ change.T)


def sums_of_nothing(mechanism: LagNoise, public: PublicDesign, request: ModelRequest) -> LagSums:
    """The later draws of a release, with zeros for the response and the widest noise of products; public."""
    parts = [np.zeros(part.size, dtype=np.int64) for part in mechanism.parts]
    products = [np.zeros(len(product.classes.places), dtype=np.int64) for product in mechanism.products]
    scales = tuple(product.scale(HALF) for product in mechanism.products)
    return lag_sums_of(NoisyLags(tuple(parts), 0, tuple(products), scales), mechanism, public, request)


def lag_names(public: PublicDesign, request: ModelRequest) -> list[str]:
    return [lag_name(public.model.response.column, lag) for lag in request.lags]


def lag_errors(nothing: LagSums, public: PublicDesign, request: ModelRequest) -> ModelErrors:
    """Expected standard errors: of the model with its lags known, which are the least, and of the lags, the most.

    What a lag's error moves the rest by depends on the responses: a constant by their mean.
    """
    known = moments_errors_of(nothing.at(np.zeros(len(request.lags))), public, request)
    error, noise = _expected(nothing, request)
    names = lag_names(public, request)
    least: Bound = "at least"
    most: Bound = "at most"
    return replace(
        known,
        names=(*known.names, *names),
        notes=(*known.notes, *equal_variances(names, 1 - (noise / error) ** 2), UNSTEADY),
        error=(*known.error, *error.tolist()),
        noise=(*known.noise, *noise.tolist()),
        bound=(least,) * len(known.names) + (most,) * len(names),
        groups=tuple(replace(each, bound=least) for each in known.groups),
        assumed=f"{known.assumed} For lags it is the widest there can be, and they are assumed to vary as residuals "
        "do, beside what the rest of the model explains. Errors of the rest are those at known lags. A lag's error "
        "moves it too, by an amount that no public number tells: for a mean response of m, the intercept by m times as "
        "much.",
    )


def _expected(nothing: LagSums, request: ModelRequest) -> tuple[Vector, Vector]:
    tau2, sigma2 = (share * float(request.width) ** 2 for share in TYPICAL)
    return expected_lag_errors(nothing, sigma2=sigma2, variances=np.full(len(nothing.levels), tau2))


def _warn_of_noise(nothing: LagSums, request: ModelRequest, response: str) -> None:
    """Before anything is paid: lags of which noise will leave nothing."""
    error, _ = _expected(nothing, request)
    if error.max() > UNKNOWN:
        worst = request.lags[int(error.argmax())]
        deviation = TYPICAL[1] ** 0.5 * float(request.width)
        warnings.warn(
            f"{lag_name(response, worst)} cannot be estimated: if responses vary by {deviation:.3g} (a twentieth of "
            f"the range) beside what the rest explains, its standard error will be {error.max():.2g}, and coefficients "
            "lie between -1 and 1. Spend more, give a tighter clip, or leave lags out",
            MixedWarning,
            stacklevel=5,
        )
