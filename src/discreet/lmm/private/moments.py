"""`method="moments"`: every sum that a mixed model needs is noised once, and the model is solved with the noise in it.

One row's response enters one group's sum, one column of every piece of the fixed part, and the sum of squares; nothing
else of the release depends on it. Each of these parts has an integer sensitivity and a share of the loss, and the
shares add up to the whole loss exactly. Estimates are functions of the noisy sums and cost nothing more.
The proof is docs/proofs/mixed-moments.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.errors import Unidentified
from discreet.formula.design import ONE, Monomial, Piece
from discreet.lmm.private.estimation import estimate
from discreet.lmm.private.informative import Slope, allowing_for_sizes
from discreet.lmm.private.noisy import NoisyEstimate, NoisySums, evaluate
from discreet.lmm.private.public import PublicDesign
from discreet.lmm.private.request import ModelRequest, noise_scale
from discreet.lmm.private.sums import HALF, ResponseSums, Units, summed
from discreet.noise.laws import Gaussian, Laplace
from discreet.noise.sampler import add_noise
from discreet.privacy.losses import Concentrated, Loss, Number, Pure, total
from discreet.privacy.split import read_split

if TYPE_CHECKING:
    from discreet.noise.source import Source

PROOF = "docs/proofs/mixed-moments.md"
TYPICAL = (0.01**2, 0.05**2)  # variances of effects and residuals that the default split expects, in widths squared
SHARES = np.geomspace(0.005, 0.995, 200)  # of fixed and groups together that the default split tries for the fixed part
GROUPS = 1 / 3  # least share of the groups: with less, nothing is learned of their variance
LAGS = 0.5  # least share of a fixed part that has lagged responses
LEAST_SQUARES, MOST_SQUARES = 0.05, 0.25
ENOUGH = 7000.0  # rows times epsilon at which the sum of squares is known to one per cent, in a range of ten deviations
FAILED = "the noisy sums could not be solved: estimates are empty, the sums are in `released`"
PERMILLE = 1000  # default shares are whole thousandths, so that they add up exactly


@dataclass(frozen=True, slots=True)
class MomentPart:
    """Sums that share a noise scale: their share of the loss and what one row can change in them.

    Attributes
    ----------
    piece : the piece of the fixed part they belong to; None for the sums by group.
    inside, among : the piece's kept columns, as positions in the piece and among all kept columns.
    sensitivity, scale : the largest change of all these sums together, and the scale of the noise; in steps.
    unit : what a step is worth in the response's units.
    """

    piece: Piece | None
    inside: Integers
    among: Integers
    loss: Pure | Concentrated
    sensitivity: int
    scale: float
    unit: float

    @property
    def monomial(self) -> Monomial:
        return ONE if self.piece is None else self.piece.monomial

    @property
    def counts_every_row(self) -> bool:
        """Whether its sums add up to that of all rows."""
        return self.piece is not None and self.monomial == ONE and not any(reduced for _, reduced in self.piece.coded)

    @property
    def variance(self) -> float:
        """Of the noise, in the response's units; rounding it to whole steps adds a twelfth of a step."""
        return (law_of(self.loss).variance * self.scale**2 + 1 / 12) * self.unit**2

    def of(self, sums: ResponseSums, public: PublicDesign) -> Integers:
        """The confidential sums."""
        if self.piece is None:
            return summed(sums, public.group(sums.codes), len(public.n), ONE)
        levels = public.design.levels
        at = self.piece.position(sums.codes, levels, sums.count)
        return summed(sums, at, self.piece.width(levels), self.monomial)[self.inside]


@dataclass(frozen=True)
class ExactStatistics:
    """What noise is added to: sums by part, the sum of all responses and that of their squares; in steps.

    Confidential.
    """

    sums: tuple[Integers, ...] = field(repr=False)
    total: int = field(repr=False)
    squares: int = field(repr=False)


@dataclass(frozen=True)
class NoisyStatistics:
    """What a release draws: noisy sums by part, the centre of the sum of squares, that sum and its scale; in steps."""

    sums: tuple[Integers, ...] = field(repr=False)
    centre: int
    squares: int
    squares_scale: float


@dataclass(frozen=True, slots=True)
class MomentNoise:
    """Everything that decides the noise; public. The sum of squares comes last: its centre depends on the rest."""

    parts: tuple[MomentPart, ...]
    squares: Pure | Concentrated
    rows: int

    @property
    def loss(self) -> Loss:
        """The losses of all parts together."""
        return total([*(part.loss for part in self.parts), self.squares])

    def to_dict(self) -> dict[str, Any]:
        """What the ledger keeps: the loss of every part and its noise scale, in steps."""
        return {
            "parts": [
                {"columns": len(part.among), "loss": part.loss.to_dict(), "scale": part.scale} for part in self.parts
            ],
            "squares": self.squares.to_dict(),
        }

    def exact(self, sums: ResponseSums, public: PublicDesign) -> ExactStatistics:
        """Everything that noise is added to; confidential."""
        parts = tuple(part.of(sums, public) for part in self.parts)
        return ExactStatistics(parts, int(sums.total(ONE).sum()), sums.squares)

    def draw(self, exact: ExactStatistics, source: Source) -> NoisyStatistics:
        sums = exact.sums
        scales = np.repeat([part.scale for part in self.parts], [len(found) for found in sums])
        ends = np.cumsum([len(found) for found in sums])[:-1]
        noisy = np.split(add_noise(np.concatenate(sums), law_of(self.squares), scale=scales, source=source), ends)
        whole = next(found for part, found in zip(self.parts, noisy, strict=True) if part.counts_every_row)
        centre = int(np.clip(round(int(whole.sum()) / self.rows), -HALF, HALF))
        squares = exact.squares - 2 * centre * exact.total + self.rows * centre**2
        scale = noise_scale((HALF + abs(centre)) ** 2, self.squares)
        drawn = add_noise(np.array([squares]), law_of(self.squares), scale=np.array([scale]), source=source)
        return NoisyStatistics(tuple(noisy), centre, int(drawn[0]), scale)


def mechanism_for(
    public: PublicDesign, units: Units, request: ModelRequest, split: Mapping[str, Number] | None
) -> MomentNoise:
    """Divide the loss and scale the noise, from the design alone."""
    step = request.scale.step
    sensitivities = [2 * HALF * units.most.get(piece.monomial, 1) for piece, _, _ in public.parts]
    costs = np.array([_cost(piece, among, public, units) for piece, _, among in public.parts])
    # Errors fall as cost / epsilon^2 or cost / rho, so shares follow the cube or the square roots of the costs.
    weights = costs ** (1 / 3 if isinstance(request.loss, Pure) else 1 / 2)
    within = thousandths(weights / weights.sum())
    shares = read_split(split, default_split(public, request, costs, within))
    parts = []
    if public.terms:
        spent = share_of(request.loss, shares["groups"])
        parts.append(MomentPart(None, _NONE, _NONE, spent, 2 * HALF, noise_scale(2 * HALF, spent), step))
    for (piece, inside, among), sensitivity, share in zip(public.parts, sensitivities, within, strict=True):
        spent = share_of(request.loss, shares["fixed"] * share)
        unit = step * units.step.get(piece.monomial, 1.0)
        parts.append(MomentPart(piece, inside, among, spent, sensitivity, noise_scale(sensitivity, spent), unit))
    squares = share_of(request.loss, shares["squares"])
    noise_scale((2 * HALF) ** 2, squares)  # the widest that a draw may ask for, refused here if it is too wide
    return MomentNoise(tuple(parts), squares, public.rows)


def refuse_wide(spent: Pure | Concentrated) -> None:
    """Refuse a loss for which the sum of squares would need too wide noise with any design and the default split."""
    noise_scale((2 * HALF) ** 2, share_of(spent, Fraction(MOST_SQUARES)))


_NONE = np.empty(0, dtype=np.int64)


def _cost(piece: Piece, among: Integers, public: PublicDesign, units: Units) -> float:
    """Squared error of the fitted values, summed over rows, per squared noise scale of a piece; in widths squared."""
    largest = units.most.get(piece.monomial, 1) * units.step.get(piece.monomial, 1.0)
    return float((largest**2 / np.diag(public.XX)[among]).sum())


def default_split(
    public: PublicDesign, request: ModelRequest, costs: Vector, within: list[Fraction], squares: float | None = None
) -> dict[str, Fraction]:
    """Shares with the least expected squared error of fitted values, if effects have the `TYPICAL` sizes.

    From the design and the loss alone. Noise in group sums costs an effect's variance at most, because predictions
    shrink; nothing caps what noise in the fixed part costs. Groups' means of earlier responses follow the groups'
    effects, so their coefficients must be known from within groups: lags get a larger share.
    """
    spent = request.loss
    pure = isinstance(spent, Pure)
    worth = float(spent.epsilon) if isinstance(spent, Pure) else (2 * float(spent.rho)) ** 0.5
    squares = squares or min(max(ENOUGH / (public.rows * worth), LEAST_SQUARES), MOST_SQUARES)
    if not public.terms:
        return dict(zip(("fixed", "squares"), thousandths(np.array([1 - squares, squares])), strict=True))

    def noise(share: Vector) -> Vector:
        return 2 / (worth * share) ** 2 if pure else 1 / (worth**2 * share)

    fixed = (1 - squares) * SHARES
    fixed = np.maximum(np.minimum(fixed, 1 - squares - GROUPS), LAGS if request.lagged else 0.0)
    n, (tau2, sigma2) = public.n[:, None], TYPICAL
    d = noise(1 - squares - fixed)
    lost = (n * tau2 * d / (n**2 * tau2 + n * sigma2 + d)).sum(axis=0)
    lost = lost + sum(cost * noise(fixed * float(part)) for cost, part in zip(costs, within, strict=True))
    best = float(fixed[int(np.argmin(lost))])
    shares = np.array([1 - squares - best, best, squares])
    return dict(zip(("groups", "fixed", "squares"), thousandths(shares), strict=True))


def thousandths(shares: Vector) -> list[Fraction]:
    """Shares as whole thousandths, at least one each, that add up to one."""
    whole = np.maximum(np.rint(shares * PERMILLE).astype(int), 1)
    whole[np.argmax(whole)] += PERMILLE - whole.sum()
    return [Fraction(int(part), PERMILLE) for part in whole]


def share_of(spent: Pure | Concentrated, share: Fraction) -> Pure | Concentrated:
    return Pure(spent.epsilon * share) if isinstance(spent, Pure) else Concentrated(spent.rho * share)


def law_of(spent: Pure | Concentrated) -> Laplace | Gaussian:
    return Laplace() if isinstance(spent, Pure) else Gaussian()


def sums_of_nothing(mechanism: MomentNoise, public: PublicDesign, request: ModelRequest) -> NoisySums:
    """What a release will draw, with zeros for the response: design and noise, which are public."""
    zeros = tuple(
        np.zeros(len(public.n if part.piece is None else part.among), dtype=np.int64) for part in mechanism.parts
    )
    empty = NoisyStatistics(zeros, 0, 0, noise_scale(HALF**2, mechanism.squares))
    return noisy_sums(empty, mechanism, public, request)


def refuse_unsolvable(nothing: NoisySums, public: PublicDesign, request: ModelRequest) -> None:
    """Solve once with sums of zero and `TYPICAL` variances: what fails then would fail after it was paid for."""
    tau2, sigma2 = (share * float(request.width) ** 2 for share in TYPICAL)
    try:
        evaluate(nothing, sigma2=sigma2, variances=np.full(len(public.terms), tau2), robust=False)
    except np.linalg.LinAlgError:
        raise Unidentified(
            f"The {len(public.kept)} fixed columns of {public.model.text!r} cannot be told apart under this noise. "
            "Columns must differ by more than noise and rounding hide, and one far value in a numeric column makes its "
            "noise wide. Drop columns or interactions, or cap the column's far values. Nothing was spent.",
            about="formula",
        ) from None


@dataclass(frozen=True, slots=True)
class SolvedMoments:
    """The model that noisy sums support.

    Attributes
    ----------
    origin : from where the estimate measures the response; `sums`, what it was made from, measured from there.
    slope : of effects on the sizes of their groups; None where the fixed part knows the sizes.
    failure : what went wrong: estimates are then empty.
    """

    estimate: NoisyEstimate
    sums: NoisySums = field(repr=False)
    origin: float
    slope: Slope | None
    failure: str = ""


def solve(noisy: NoisyStatistics, mechanism: MomentNoise, public: PublicDesign, request: ModelRequest) -> SolvedMoments:
    """The sums are paid for, so a failure leaves estimates empty and is told, and the sums can be solved again."""
    sums = noisy_sums(noisy, mechanism, public, request)
    origin = request.scale.middle + noisy.centre * request.scale.step
    try:
        found, slope = allowing_for_sizes(sums, estimate(sums, largest=float(request.width) / 2))
        if np.isfinite(found.beta).all():
            return SolvedMoments(found, sums, origin, slope)
    except (np.linalg.LinAlgError, ArithmeticError, ValueError):
        pass
    return SolvedMoments(no_estimate(public), sums, origin, None, FAILED)


def no_estimate(public: PublicDesign) -> NoisyEstimate:
    """Empty in every number."""
    p, counts = len(public.kept), [len(level) for level in public.levels]
    none = tuple(np.full(count, np.nan) for count in counts)
    nothing = np.full((p, p), np.nan)
    return NoisyEstimate(np.nan, np.full(len(counts), np.nan), np.nan, np.empty(0), nothing[0], nothing, none, none)


def noisy_sums(
    noisy: NoisyStatistics, mechanism: MomentNoise, public: PublicDesign, request: ModelRequest
) -> NoisySums:
    """What a release drew, beside the public design, in the response's units from its centre."""
    step, p = request.scale.step, len(public.kept)
    s, ds, Xy, dx = np.empty(0), 0.0, np.empty(p), np.empty(p)
    for part, sums in zip(mechanism.parts, noisy.sums, strict=True):
        if part.piece is None:
            s, ds = step * (sums - noisy.centre * public.n), part.variance
        else:
            Xy[part.among] = part.unit * sums - noisy.centre * step * public.ones[part.among]
            dx[part.among] = part.variance
    return NoisySums(
        n=public.n,
        Sx=public.Sx,
        XX=public.XX,
        levels=public.levels,
        s=s,
        Xy=Xy,
        ds=ds,
        dx=dx,
        squares=step**2 * noisy.squares,
        squares_noise=step**2 * noisy.squares_scale * law_of(mechanism.squares).variance ** 0.5,
        rows=float(public.rows),
        kurtosis=3.0 if isinstance(request.loss, Pure) else 0.0,
    )
