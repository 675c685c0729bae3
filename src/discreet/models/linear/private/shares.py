"""Which share of the loss each sum of a model gets, from the public design alone.

The default has the least expected squared error of fitted values if effects have the `TYPICAL` sizes. A wrong guess
costs accuracy, not privacy. docs/proofs/mixed-moments.md has the reasons.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.models.linear.private.estimation import SEEN
from discreet.models.linear.private.public import PublicDesign
from discreet.models.linear.private.request import ModelRequest
from discreet.privacy.losses import Pure

TYPICAL = (0.01**2, 0.05**2)  # variances of effects and residuals that the default split expects, in widths squared
SHARES = np.geomspace(0.005, 0.995, 200)  # of fixed and groups together that the default split tries for the fixed part
GROUPS = 1 / 3  # least share of the groups: with less, nothing is learned of their variance
HOPELESS = 0.1**2  # if not even this variance, in widths squared, is seen with that share, they have no least share
LAGS = 0.5  # least share of a fixed part that has lagged responses
LEAST_SQUARES, MOST_SQUARES = 0.05, 0.25
ENOUGH = 7000.0  # rows times epsilon at which the sum of squares is known to one per cent, in a range of ten deviations
CLEARLY = 0.62  # of the expected error with sums by group: a model without them that errs less than this replaces them
NOTABLY = 0.97  # of the expected error with fewer sums of slopes and crossed factors: what more must fall below
WORTH = 0.02  # least share of sums by group that is drawn: with less they tell nothing
SLOPES = 0.25  # variance of what a slope adds to a row, in that of an intercept
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
        self,
        n: Vector,
        groups: Vector,
        fixed: Vector,
        within: list[Fraction],
        *,
        worth: float,
        pure: bool,
        tau2: float = TYPICAL[0],
    ) -> Vector:
        """Expected squared error of fitted values, by shares of the groups and of the rest; groups may have none.

        Noise in group sums costs an effect's variance at most, because predictions shrink; nothing caps what noise in
        the fixed part costs.
        """
        sigma2 = TYPICAL[1]
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
    parts, worth = SumCosts(costs, np.ones(len(public.n))), worth_of(request) / together
    squares = squares or parts.squares(public.rows, worth)
    if not public.terms:
        return dict(zip(("fixed", "squares"), thousandths(np.array([1 - squares, squares])), strict=True))
    best, gain = weighed(public, request, parts, within, 1 - squares, worth)
    hidden = gain < CLEARLY or 1 - squares - best < WORTH
    if together == 1 and not (request.lagged or request.lags) and hidden:
        return _without_groups(squares)
    shares = np.array([1 - squares - best, best, squares])
    return dict(zip(("groups", "fixed", "squares"), thousandths(shares), strict=True))


def weighed(
    public: PublicDesign, request: ModelRequest, parts: SumCosts, within: list[Fraction], left: float, worth: float
) -> tuple[float, float]:
    """Of the share `left` for both, that of the fixed part beside sums by group; and what these gain.

    The gain is the expected error of a model without them over that of one with them.
    """
    pure, n = isinstance(request.loss, Pure), public.n
    fixed = left * SHARES
    d = noise(np.array(GROUPS), worth, pure=pure) * np.ones(len(n))
    if _least_seen(n, TYPICAL[1], d, 3.0 if pure else 0.0) < HOPELESS:
        fixed = np.minimum(fixed, left - GROUPS)
    fixed = np.maximum(fixed, LAGS if request.lagged else 0.0)
    lost = parts.lost(n, left - fixed, fixed, within, worth=worth, pure=pure)
    none = parts.lost(n, np.zeros(1), np.array([left]), within, worth=worth, pure=pure)
    return float(fixed[int(np.argmin(lost))]), float(none[0]) / float(lost.min())


@dataclass(frozen=True, slots=True)
class TermCosts:
    """The sums of one piece of a random term.

    Attributes
    ----------
    squares, reach : of each sum, the sum of squares of its column and what a row can change.
    unit : root mean square of the columns; `slope`, whether they are more than an intercept's.
    """

    squares: Vector = field(repr=False)
    reach: Vector = field(repr=False)
    unit: float
    slope: bool

    @property
    def supposed(self) -> float:
        """The variance of an effect: a slope adds less to a row than an intercept does."""
        return TYPICAL[0] * (SLOPES if self.slope else 1.0) / self.unit**2

    @property
    def cost(self) -> float:
        there = self.squares > 0
        return float((self.reach[there] ** 2 / self.squares[there]).sum())

    def lost(self, d: Vector) -> Vector:
        """Expected squared error of fitted values, by the variance of the noise of a reach of one."""
        K, own, noisy = self.squares, self.supposed, d[:, None] * self.reach**2
        return np.asarray((K * own * noisy / (K**2 * own + K * TYPICAL[1] + noisy)).sum(axis=1))


def terms_split(
    request: ModelRequest,
    costs: Vector,
    within: list[Fraction],
    terms: list[TermCosts],
    *,
    rows: int,
    together: int,
    all_drawn: bool,
) -> tuple[dict[str, Fraction], list[Fraction]]:
    """For a model with random slopes or crossed factors: shares of the parts, and those of the random terms' sums.

    If `all_drawn`, as with a stated split, no sums are left out.
    """
    pure, worth = isinstance(request.loss, Pure), worth_of(request)
    squares = SumCosts(costs, np.empty(0), together).squares(rows, worth)
    roots = np.array([term.cost for term in terms])
    shares = (1 - squares) * SHARES

    def lost(drawn: Integers, fixed: Vector) -> tuple[Vector, dict[int, Fraction]]:
        """Expected errors if these pieces are drawn, by the share of the fixed part; and shares among them."""
        among = dict(zip(drawn.tolist(), by_roots(roots[drawn], pure=pure), strict=True)) if len(drawn) else {}
        found = np.zeros(len(fixed))
        for cost, part in zip(costs, within, strict=True):
            found += cost * noise(fixed * float(part), worth, pure=pure)
        for i, term in enumerate(terms):
            if i in among:
                found += term.lost(noise((1 - squares - fixed) * float(among[i]), worth, pure=pure))
            else:
                found += float(term.squares.sum()) * term.supposed
        return found, among

    fixed, every = shares, np.arange(len(terms))
    seen = []
    for term, share in zip(terms, by_roots(roots, pure=pure), strict=True):
        d = noise(np.array(GROUPS * float(share)), worth, pure=pure) * (term.reach / term.unit) ** 2
        seen.append(_least_seen(term.squares / term.unit**2, TYPICAL[1], d, 3.0 if pure else 0.0) < HOPELESS)
    if any(seen):
        fixed = np.minimum(fixed, 1 - squares - GROUPS)
    fixed = np.maximum(fixed, LAGS if request.lagged else 0.0)
    errors, among = lost(every, fixed)
    best = float(fixed[int(np.argmin(errors))])
    if together == 1 and not request.lagged and not all_drawn:
        tried = [(np.sort(np.argsort(roots, kind="stable")[:count]), shares) for count in range(1, len(terms))]
        tried = [(every[:0], np.array([1 - squares])), *tried, (every, fixed)]
        limit = np.inf
        for drawn, own in tried:  # none, the cheapest sums, all of them: more where they are expected to gain notably
            errors, shared = lost(drawn, own)
            at = int(np.argmin(errors))
            if float(errors[at]) < limit and (not len(drawn) or 1 - squares - own[at] >= WORTH):
                limit, best, among = NOTABLY * float(errors[at]), float(own[at]), shared
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
