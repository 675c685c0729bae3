"""A private look at how far groups differ, which decides whether sums by group are drawn.

Where sums by group gain much if effects are large and cost much if they are small, nothing public tells which it is. A
tenth of the loss measures one number: the length of the vector of group sums beside what fixed columns can explain. One
row changes it as little as it changes one sum, so it is seen where the sums themselves would be noise. The share comes
out of that of the squares, as far as these have one to give, so a model that leaves the sums out has the fixed part of
the linear model. The proof is docs/proofs/mixed-moments.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.models.linear.private.moments import (
    ExactStatistics,
    MomentNoise,
    NoisyStatistics,
    cost_of,
    divided,
    law_of,
    mechanism_for,
    share_of,
)
from discreet.models.linear.private.public import PublicDesign
from discreet.models.linear.private.reach import Reach
from discreet.models.linear.private.request import ModelRequest, noise_scale
from discreet.models.linear.private.shares import (
    CLEARLY,
    LEAST_SQUARES,
    PERMILLE,
    TYPICAL,
    WORTH,
    SumCosts,
    by_roots,
    weighed,
    worth_of,
)
from discreet.models.linear.private.sums import HALF, ResponseSums, Units
from discreet.noise.sampler import add_noise
from discreet.privacy.losses import Concentrated, Loss, Number, Pure, total

if TYPE_CHECKING:
    from discreet.noise.source import Source

SHARE = Fraction(1, 10)  # of the loss, for the look
OPEN = 1.0  # gain of sums by group at typical effects, below which a look decides if groups are many
FEW, MOST = 16, 0.5  # so many over their number a gain must have more, at most: their variance is estimated
DOUBTED = 2  # scales of its noise that a look must see above effects that pay; one where the design expects a gain
LEFT = 0.25  # least share of the squared sizes of groups that fixed columns leave for the look
ROUNDING = Fraction(1, 2**30)  # of the largest length: more than its computation errs by
LARGEST = 2**22  # sums by group times fixed columns, up to which that is so
SPREADS = np.geomspace(1e-4, 0.5, 400)  # deviations of effects, in widths, among which the least that pays is found


@dataclass(frozen=True, slots=True)
class Look:
    """The length of the vector of group sums, beside what fixed columns explain; in steps.

    Attributes
    ----------
    explained : orthonormal columns that span the sums of the fixed columns by group.
    scale : of the noise; `limit` : the noisy length above which sums by group are drawn.
    spread : the deviation of effects from which drawing them pays, in the response's units.
    """

    explained: Matrix = field(repr=False)
    loss: Pure | Concentrated
    scale: float
    limit: float
    spread: float

    def of(self, sums: Integers) -> int:
        """The length before noise; confidential."""
        s = sums.astype(np.float64)
        return math.floor(float(np.linalg.norm(s - self.explained @ (self.explained.T @ s))))


@dataclass(frozen=True, slots=True)
class LookedNoise:
    """A look first, then the noise of one of two models: with sums by group, or without them.

    Both have the same loss, and the same pieces of the fixed part after the sums by group.
    """

    look: Look
    measured: MomentNoise
    unmeasured: MomentNoise

    @property
    def loss(self) -> Loss:
        """That of the look, and of either model."""
        return total([self.look.loss, self.measured.loss])

    def to_dict(self) -> dict[str, Any]:
        """The ledger's record: of the look and the model with sums by group, and of the other model."""
        found = self.measured.to_dict()
        look = {"columns": 0, "loss": self.look.loss.to_dict(), "scale": self.look.scale, "limit": self.look.limit}
        return {"parts": [look, *found["parts"]], "squares": found["squares"], "otherwise": self.unmeasured.to_dict()}

    def exact(self, sums: ResponseSums, public: PublicDesign) -> ExactStatistics:
        """Everything that noise may be added to; confidential."""
        return self.measured.exact(sums, public)

    def draw(self, exact: ExactStatistics, source: Source) -> NoisyStatistics:
        length = np.array([self.look.of(exact.sums[0])])
        scale = np.array([self.look.scale])
        looked = int(add_noise(length, law_of(self.look.loss), scale=scale, source=source)[0])
        if looked > self.look.limit:
            return replace(self.measured.draw(exact, source), looked=looked)
        return replace(self.unmeasured.draw(replace(exact, sums=exact.sums[1:]), source), looked=looked)

    def chosen(self, drawn: NoisyStatistics) -> MomentNoise:
        """The noise that a draw had after its look."""
        assert drawn.looked is not None
        return self.measured if drawn.looked > self.look.limit else self.unmeasured


def noise_for(
    public: PublicDesign,
    units: Units,
    request: ModelRequest,
    split: Mapping[str, Number] | None,
    reach: Reach | None = None,
) -> MomentNoise | LookedNoise:
    """The noise of a model by sums, from the design alone: with a look where that leaves open what to draw."""
    reach = reach or Reach.of_rows(public, units)
    if split is None and public.terms and reach.rows == 1 and not (request.lagged or request.lags):
        found = _looked(public, units, request, reach)
        if found is not None:
            return found
    return mechanism_for(public, units, request, split, reach)


def possible(noise: MomentNoise | LookedNoise) -> tuple[MomentNoise, ...]:
    """What may be drawn, the most sums first."""
    return (noise,) if isinstance(noise, MomentNoise) else (noise.measured, noise.unmeasured)


def spread_of(noise: MomentNoise | LookedNoise) -> float | None:
    """The deviation of effects from which a look lets sums by group be drawn; None without a look."""
    return None if isinstance(noise, MomentNoise) else noise.look.spread


def _looked(public: PublicDesign, units: Units, request: ModelRequest, reach: Reach) -> LookedNoise | None:
    """None where the public design decides, or where fixed columns leave nothing to look at."""
    pure, worth = isinstance(request.loss, Pure), worth_of(request)
    pieces = zip(public.parts, reach.pieces, strict=True)
    costs = np.array([cost_of(piece, among, at, public, units) for (piece, _, among), at in pieces])
    within, parts = by_roots(costs, pure=pure), SumCosts(costs, reach.groups)
    squares = parts.squares(public.rows, worth)
    fixed, gain = weighed(public, request, parts, within, 1 - squares, worth)
    if not CLEARLY <= gain < _open(public.n) or 1 - squares - fixed < WORTH or public.Sx.size > LARGEST:
        return None
    explained = _span(public.Sx)
    n, free = public.n, 1 - (explained**2).sum(axis=1)
    if free @ n**2 < LEFT * (n @ n):
        return None
    squares = max(squares - float(SHARE), squares / 2, LEAST_SQUARES)
    left = 1 - float(SHARE) - squares
    fixed, _ = weighed(public, request, parts, within, left, worth)
    drawn, whole = _shares(left - fixed, fixed, squares), _shares(0, left, squares)
    spread = _least_that_pays(parts, n, drawn, whole, within, worth=worth, pure=pure)
    loss = share_of(request.loss, SHARE)
    scale = noise_scale(_sensitivity(n), loss)
    seen = math.sqrt(spread**2 * (free @ n**2) + TYPICAL[1] * (free @ n)) * 2 * HALF
    limit = seen + (1 if gain >= OPEN else DOUBTED) * scale
    look = Look(explained, loss, scale, limit, spread * float(request.width))
    measured, unmeasured = (divided(public, units, request, reach, each, within) for each in (drawn, whole))
    return LookedNoise(look, measured, unmeasured)


def _open(n: Vector) -> float:
    """The gain below which a look decides: expected gains know the variance of effects, estimates do not."""
    return OPEN + min(FEW / len(n), MOST)


def _sensitivity(n: Vector) -> int:
    """What one row can change: one sum by twice the half range, and what rounding adds to two lengths."""
    longest = HALF * (math.isqrt(int(n @ n)) + 1)
    return 2 * HALF + 2 * math.ceil(longest * ROUNDING)


def _span(Sx: Matrix) -> Matrix:
    """Orthonormal columns that span those of Sx."""
    left, size, _ = np.linalg.svd(Sx, full_matrices=False)
    return np.asarray(left[:, size > 1e-9 * size.max(initial=0.0)])


def _shares(groups: float, fixed: float, squares: float) -> dict[str, Fraction]:
    """As whole thousandths, which add up to all but the look's share; groups may have none."""
    names = ("groups", "fixed", "squares") if groups else ("fixed", "squares")
    parts = [Fraction(round(part * PERMILLE), PERMILLE) for part in (groups, fixed, squares)[-len(names) :]]
    parts[-2] += 1 - SHARE - sum(parts)
    return dict(zip(names, parts, strict=True))


def _least_that_pays(
    parts: SumCosts,
    n: Vector,
    drawn: Mapping[str, Fraction],
    whole: Mapping[str, Fraction],
    within: list[Fraction],
    *,
    worth: float,
    pure: bool,
) -> float:
    """The least deviation of effects, in widths, from which sums by group make fitted values err less."""
    with_them, without = (
        (np.array([float(shares.get("groups", 0))]), np.array([float(shares["fixed"])])) for shares in (drawn, whole)
    )
    for spread in SPREADS.tolist():
        errors = [
            float(parts.lost(n, *shares, within, worth=worth, pure=pure, tau2=spread**2)[0])
            for shares in (with_them, without)
        ]
        if errors[0] < errors[1]:
            break
    return float(spread)
