"""Which share of the loss each sum of a model gets, from the public design alone.

The default has the least expected squared error of fitted values if effects have the `TYPICAL` sizes. A wrong guess
costs accuracy, not privacy. docs/proofs/mixed-moments.md has the reasons.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.lmm.private.estimation import SEEN
from discreet.lmm.private.public import PublicDesign
from discreet.lmm.private.request import ModelRequest
from discreet.privacy.losses import Pure

TYPICAL = (0.01**2, 0.05**2)  # variances of effects and residuals that the default split expects, in widths squared
SHARES = np.geomspace(0.005, 0.995, 200)  # of fixed and groups together that the default split tries for the fixed part
GROUPS = 1 / 3  # least share of the groups: with less, nothing is learned of their variance
HOPELESS = 0.1**2  # if not even this variance, in widths squared, is seen with that share, they have no least share
LAGS = 0.5  # least share of a fixed part that has lagged responses
LEAST_SQUARES, MOST_SQUARES = 0.05, 0.25
ENOUGH = 7000.0  # rows times epsilon at which the sum of squares is known to one per cent, in a range of ten deviations
CLEARLY = 0.5  # of the expected error with sums by group: a model without them that errs less than this replaces them
NOTABLY = 0.97  # of the expected error with all sums of slopes and crossed factors: what fewer must fall below
TRIED = 150  # shares of protected groups
PERMILLE = 1000  # default shares are whole thousandths, so that they add up exactly


@dataclass(frozen=True, slots=True)
class SumCosts:
    """The cost of noise in the parts of a model.

    Attributes
    ----------
    costs : squared error of the fitted values, summed over rows, per squared noise scale of each piece, in widths
        squared.
    groups : the reach of each sum by group, in rows; `together`, the most rows that change together.
    """

    costs: Vector
    groups: Vector = field(repr=False)
    together: int = 1

    def squares(self, rows: int, worth: float) -> float:
        """The share of the sum of squares."""
        return min(max(ENOUGH * self.together / (rows * worth), LEAST_SQUARES), MOST_SQUARES)

    def lost(
        self, n: Vector, groups: Vector, fixed: Vector, within: list[Fraction], *, worth: float, pure: bool
    ) -> Vector:
        """Expected squared error of fitted values, by shares of the groups and of the rest; groups may have none.

        Noise in group sums costs an effect's variance at most, because predictions shrink; nothing caps what noise in
        the fixed part costs.
        """
        tau2, sigma2 = TYPICAL
        alike, count = np.unique(np.column_stack([n, self.groups]), axis=0, return_counts=True)
        size, seen = alike[:, :1], groups > 0
        d = noise(np.where(seen, groups, 1.0), worth, pure=pure) * alike[:, 1:] ** 2
        effects = count @ np.where(seen, size * tau2 * d / (size**2 * tau2 + size * sigma2 + d), size * tau2)
        pieces = zip(self.costs, within, strict=True)
        return np.asarray(effects + sum(c * noise(fixed * float(part), worth, pure=pure) for c, part in pieces))


def noise(share: Vector, worth: float, *, pure: bool) -> Vector:
    """Variance of the noise that a share of the loss leaves, in squared ranges of the response."""
    return 2 / (worth * share) ** 2 if pure else 1 / (worth**2 * share)


def worth_of(request: ModelRequest) -> float:
    """epsilon, or that of Gaussian noise with the same scale."""
    spent = request.loss
    return float(spent.epsilon) if isinstance(spent, Pure) else (2 * float(spent.rho)) ** 0.5


def by_roots(costs: Vector, *, pure: bool) -> list[Fraction]:
    """Shares among pieces: errors fall as cost / epsilon^2 or cost / rho, so they follow cube or square roots."""
    weights = costs ** (1 / 3 if pure else 1 / 2)
    return thousandths(weights / weights.sum())


def default_split(
    public: PublicDesign,
    request: ModelRequest,
    costs: Vector,
    within: list[Fraction],
    squares: float | None = None,
    together: int = 1,
) -> dict[str, Fraction]:
    """If single rows are protected, each has the loss over `together`.

    Groups' means of earlier responses follow the groups' effects, so their coefficients must be known from within
    groups: lags get a larger share.
    """
    pure, worth = isinstance(request.loss, Pure), worth_of(request) / together
    parts = SumCosts(costs, np.ones(len(public.n)))
    squares = squares or parts.squares(public.rows, worth)
    if not public.terms:
        return dict(zip(("fixed", "squares"), thousandths(np.array([1 - squares, squares])), strict=True))
    fixed = (1 - squares) * SHARES
    d = noise(np.array(GROUPS), worth, pure=pure) * np.ones(len(public.n))
    if _least_seen(public.n, TYPICAL[1], d, 3.0 if pure else 0.0) < HOPELESS:
        fixed = np.minimum(fixed, 1 - squares - GROUPS)
    fixed = np.maximum(fixed, LAGS if request.lagged else 0.0)
    lost = parts.lost(public.n, 1 - squares - fixed, fixed, within, worth=worth, pure=pure)
    best = float(fixed[int(np.argmin(lost))])
    none = parts.lost(public.n, np.zeros(1), np.array([1 - squares]), within, worth=worth, pure=pure)
    if together == 1 and not (request.lagged or request.lags) and float(none[0]) < CLEARLY * float(lost.min()):
        return _without_groups(squares)
    shares = np.array([1 - squares - best, best, squares])
    return dict(zip(("groups", "fixed", "squares"), thousandths(shares), strict=True))


def terms_split(
    request: ModelRequest,
    costs: Vector,
    within: list[Fraction],
    sizes: list[tuple[Vector, Vector, float]],
    *,
    rows: int,
    together: int,
) -> tuple[dict[str, Fraction], list[Fraction]]:
    """For a model with random slopes or crossed factors: shares of the parts, and those of the random terms' sums.

    `sizes` has, for the sums of each piece of a random term, the sums of squares of their columns, their reach and the
    root mean square of the columns: an effect is supposed to add as much to a row as an intercept's would.
    """
    pure, worth = isinstance(request.loss, Pure), worth_of(request)
    sigma2 = TYPICAL[1]
    squares = SumCosts(costs, np.empty(0), together).squares(rows, worth)
    roots = np.array([float((r[K > 0] ** 2 / K[K > 0]).sum()) for K, r, _ in sizes])
    shares = (1 - squares) * SHARES

    def lost(drawn: Integers, fixed: Vector) -> tuple[Vector, dict[int, Fraction]]:
        """Expected errors if these pieces are drawn, by the share of the fixed part; and shares among them."""
        among = dict(zip(drawn.tolist(), by_roots(roots[drawn], pure=pure), strict=True)) if len(drawn) else {}
        found = np.zeros(len(fixed))
        for cost, part in zip(costs, within, strict=True):
            found += cost * noise(fixed * float(part), worth, pure=pure)
        for i, (K, r, unit) in enumerate(sizes):
            own = TYPICAL[0] / unit**2
            if i in among:
                d = noise((1 - squares - fixed) * float(among[i]), worth, pure=pure)[:, None] * r**2
                found += (K * own * d / (K**2 * own + K * sigma2 + d)).sum(axis=1)
            else:
                found += float(K.sum()) * own
        return found, among

    fixed = shares
    every = np.arange(len(sizes))
    seen = []
    for (K, r, unit), share in zip(sizes, by_roots(roots, pure=pure), strict=True):
        d = noise(np.array(GROUPS * float(share)), worth, pure=pure) * (r / unit) ** 2
        seen.append(_least_seen(K / unit**2, sigma2, d, 3.0 if pure else 0.0) < HOPELESS)
    if any(seen):
        fixed = np.minimum(fixed, 1 - squares - GROUPS)
    fixed = np.maximum(fixed, LAGS if request.lagged else 0.0)
    errors, among = lost(every, fixed)
    least, best = float(errors.min()), float(fixed[int(np.argmin(errors))])
    if together == 1 and not request.lagged:
        limit = NOTABLY * least
        for count in range(len(sizes)):  # the cheapest sums alone, or none
            some = np.sort(np.argsort(roots, kind="stable")[:count])
            tried = shares if count else np.array([1 - squares])
            errors, own = lost(some, tried)
            if float(errors.min()) < limit:
                limit, best, among = float(errors.min()), float(tried[int(np.argmin(errors))]), own
    given = [among.get(i, Fraction(0)) for i in every.tolist()]
    if not any(given):
        return _without_groups(squares), given
    parts = thousandths(np.array([1 - squares - best, best, squares]))
    return dict(zip(("groups", "fixed", "squares"), parts, strict=True)), given


def _without_groups(squares: float) -> dict[str, Fraction]:
    """Nothing for the sums by group."""
    spent = thousandths(np.array([1 - squares, squares]))
    return {"groups": Fraction(0), **dict(zip(("fixed", "squares"), spent, strict=True))}


def shares_for(
    public: PublicDesign, request: ModelRequest, parts: SumCosts, single: Vector
) -> tuple[dict[str, Fraction], list[Fraction]]:
    """If groups of rows are protected: shares of the parts, and within the fixed part.

    Candidates are many shares for the groups, none included, and the choice of the loss over the rows of the largest
    group (`single` has the costs of single rows). The one with the least expected error is taken. Noise is nowhere
    wider than with that loss, so no release is expected to have more error.
    """
    pure, worth = isinstance(request.loss, Pure), worth_of(request)
    within, other = (by_roots(costs, pure=pure) for costs in (parts.costs, single))
    divided = default_split(public, request, single, other, together=parts.together)
    if not public.terms:
        return divided, min((within, other), key=lambda each: _pieces(parts, each, worth, pure=pure))
    left = 1 - divided["squares"]
    most = left - (Fraction(LAGS) if request.lagged else Fraction(1, PERMILLE))
    groups = np.unique(np.append(0.0, np.rint(np.geomspace(1, int(most * PERMILLE), TRIED)))) / PERMILLE
    tried = []
    for among, shares in ((within, groups), (other, np.array([float(divided["groups"])]))):
        lost = parts.lost(public.n, shares, float(left) - shares, among, worth=worth, pure=pure)
        best = int(np.argmin(lost))
        tried.append((float(lost[best]), Fraction(round(float(shares[best]) * PERMILLE), PERMILLE), among))
    _, share, within = min(tried, key=lambda each: each[0])
    return {"groups": share, "fixed": left - share, "squares": divided["squares"]}, within


def _pieces(parts: SumCosts, within: list[Fraction], worth: float, *, pure: bool) -> float:
    none, all_of_it = np.zeros(1), np.ones(1)
    return float(parts.lost(np.empty(0), none, all_of_it, within, worth=worth, pure=pure)[0])


def _least_seen(n: Vector, sigma2: float, d: Vector, kurtosis: float) -> float:
    """The least variance of groups that sums with noise of variance d tell from zero, if it is the only one."""
    return float(SEEN / np.sqrt((n**4 / (2 * (sigma2 * n + d) ** 2 + kurtosis * d**2)).sum()))


def thousandths(shares: Vector) -> list[Fraction]:
    """Shares as whole thousandths, at least one each, that add up to one."""
    whole = np.maximum(np.rint(shares * PERMILLE).astype(int), 1)
    whole[np.argmax(whole)] += PERMILLE - whole.sum()
    return [Fraction(int(part), PERMILLE) for part in whole]
