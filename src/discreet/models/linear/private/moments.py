"""`method="moments"`: every sum that a mixed model needs is noised once, and the model is solved with the noise in it.

One row's response enters one group's sum, one column of every piece of the fixed part, and the sum of squares; nothing
else of the release depends on it. `reach` has what all rows of a protected group can change. Each of these parts has
integer sensitivities and a share of the loss, and the shares add up to the whole loss exactly. Estimates are functions
of the noisy sums and cost nothing more.
The proof is docs/proofs/mixed-moments.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.models.formula.design import ONE, Monomial, Piece
from discreet.models.linear.private.estimation import estimate
from discreet.models.linear.private.informative import SizeShift, allowing_for_sizes
from discreet.models.linear.private.noisy import NoisyEstimate, NoisySums, evaluate
from discreet.models.linear.private.public import PublicDesign
from discreet.models.linear.private.reach import Reach
from discreet.models.linear.private.request import ModelRequest, noise_scale
from discreet.models.linear.private.shares import (
    MOST_SQUARES,
    TYPICAL,
    SumCosts,
    TermCosts,
    by_roots,
    default_split,
    shares_for,
    terms_split,
)
from discreet.models.linear.private.sums import HALF, ResponseSums, Units, summed
from discreet.models.linear.private.terms import piece_place
from discreet.noise.laws import Gaussian, Laplace
from discreet.noise.sampler import add_noise
from discreet.privacy.losses import Concentrated, Loss, Number, Pure, total
from discreet.privacy.split import read_split
from discreet.words.errors import Unidentified

if TYPE_CHECKING:
    from discreet.noise.source import Source

PROOF = "docs/proofs/mixed-moments.md"
FAILED = "the noisy sums could not be solved: estimates are empty, the sums are in `released`"
FAR = 1e4  # ranges of the response: noise of the mean of a group whose sum was not drawn


@dataclass(frozen=True, slots=True)
class MomentPart:
    """Sums that share a noise scale: their share of the loss and what one row can change in them.

    Attributes
    ----------
    piece : the piece of the fixed part they belong to; None for the sums by group.
    inside, among : the piece's kept columns, as positions in the piece and among all kept columns.
    reach : for each of these sums, the largest change of all of them together by whoever touches it, in ranges of the
        response.
    scale : of the noise of each, in steps.
    unit : what a step is worth in the response's units.
    term : the random term they belong to, by its place, where it is a slope or a crossed factor.
    """

    piece: Piece | None
    inside: Integers
    among: Integers
    loss: Pure | Concentrated
    reach: Vector
    scale: Vector
    unit: float
    term: int | None = None

    @property
    def monomial(self) -> Monomial:
        return ONE if self.piece is None else self.piece.monomial

    @property
    def columns(self) -> int:
        """How many columns of the model it has; none, by custom, for nested groups."""
        return len(self.among if self.term is None else self.reach)

    @property
    def counts_every_row(self) -> bool:
        """Whether its sums, of the fixed part, add up to that of all rows."""
        if self.piece is None or self.term is not None:
            return False
        return self.monomial == ONE and not any(reduced for _, reduced in self.piece.coded)

    @property
    def variance(self) -> Vector:
        """Of the noise of each sum, in the response's units; rounding it to whole steps adds a twelfth of a step."""
        return np.asarray((law_of(self.loss).variance * self.scale**2 + 1 / 12) * self.unit**2)

    def of(self, sums: ResponseSums, public: PublicDesign) -> Integers:
        """The confidential sums."""
        if self.piece is None:
            return summed(sums, public.group(sums.codes), len(public.n), ONE)
        levels = public.design.levels
        if self.term is not None:
            place = piece_place(public.design.random[self.term], self.piece, sums.codes, sums.count)
            return summed(sums, place, len(self.reach), self.monomial)
        at = self.piece.position(sums.codes, levels, sums.count)
        return summed(sums, at, self.piece.width(levels), self.monomial)[self.inside]


@dataclass(frozen=True)
class ExactStatistics:
    """The sums before noise: sums by part, the sum of all responses and that of their squares; in steps.

    Confidential.
    """

    sums: tuple[Integers, ...] = field(repr=False)
    total: int = field(repr=False)
    squares: int = field(repr=False)


@dataclass(frozen=True)
class NoisyStatistics:
    """The draws of a release: noisy sums by part, the centre of the squares, their sum and its scale; in steps.

    `looked` is what a look at the groups found first (`look`), where there was one.
    """

    sums: tuple[Integers, ...] = field(repr=False)
    centre: int
    squares: int
    squares_scale: float
    looked: int | None = None


@dataclass(frozen=True, slots=True)
class MomentNoise:
    """Everything that decides the noise; public. The sum of squares comes last: its centre depends on the rest.

    `together` is the most rows that change together.
    """

    parts: tuple[MomentPart, ...]
    squares: Pure | Concentrated
    rows: int
    together: int

    @property
    def sees_groups(self) -> bool:
        """Whether sums by group are drawn: if they would be noise, the default split spends nothing on them."""
        return any(part.piece is None or part.term is not None for part in self.parts)

    @property
    def loss(self) -> Loss:
        """The losses of all parts together."""
        return total([*(part.loss for part in self.parts), self.squares])

    def to_dict(self) -> dict[str, Any]:
        """The ledger's record: the loss of every part and its widest noise scale, in steps."""
        return {
            "parts": [
                {"columns": part.columns, "loss": part.loss.to_dict(), "scale": float(part.scale.max())}
                for part in self.parts
            ],
            "squares": self.squares.to_dict(),
        }

    def chosen(self, drawn: NoisyStatistics) -> MomentNoise:
        """The noise that a draw had: this."""
        return self

    def exact(self, sums: ResponseSums, public: PublicDesign) -> ExactStatistics:
        """Everything that noise is added to; confidential."""
        parts = tuple(part.of(sums, public) for part in self.parts)
        return ExactStatistics(parts, int(sums.total(ONE).sum()), sums.squares)

    def draw(self, exact: ExactStatistics, source: Source) -> NoisyStatistics:
        sums = exact.sums
        scales = np.concatenate([part.scale for part in self.parts])
        ends = np.cumsum([len(found) for found in sums])[:-1]
        noisy = np.split(add_noise(np.concatenate(sums), law_of(self.squares), scale=scales, source=source), ends)
        whole = next(found for part, found in zip(self.parts, noisy, strict=True) if part.counts_every_row)
        centre = int(np.clip(round(int(whole.sum()) / self.rows), -HALF, HALF))
        squares = exact.squares - 2 * centre * exact.total + self.rows * centre**2
        scale = noise_scale(self.together * (HALF + abs(centre)) ** 2, self.squares)
        drawn = add_noise(np.array([squares]), law_of(self.squares), scale=np.array([scale]), source=source)
        return NoisyStatistics(tuple(noisy), centre, int(drawn[0]), scale)


def mechanism_for(
    public: PublicDesign,
    units: Units,
    request: ModelRequest,
    split: Mapping[str, Number] | None,
    reach: Reach | None = None,
) -> MomentNoise:
    """Divide the loss and scale the noise, from the design alone; without a `reach` single rows are protected."""
    reach = reach or Reach.of_rows(public, units)
    pure, parts_of = isinstance(request.loss, Pure), zip(public.parts, reach.pieces, strict=True)
    costs = np.array([cost_of(piece, among, at, public, units) for (piece, _, among), at in parts_of])
    among_terms: list[Fraction] = []
    if public.others:
        within = by_roots(costs, pure=pure)
        terms = [
            _term_costs(public, units, part, at) for part, at in zip(public.random_parts, reach.terms, strict=True)
        ]
        default, among_terms = terms_split(
            request, costs, within, terms, rows=public.rows, together=reach.rows, all_drawn=split is not None
        )
    elif reach.rows > 1:
        alone = zip(public.parts, Reach.of_rows(public, units).pieces, strict=True)
        single = np.array([cost_of(piece, among, at, public, units) for (piece, _, among), at in alone])
        default, within = shares_for(public, request, SumCosts(costs, reach.groups, reach.rows), single)
    else:
        within = by_roots(costs, pure=pure)
        default = default_split(public, request, costs, within)
    return divided(public, units, request, reach, read_split(split, default), within, among_terms)


def divided(
    public: PublicDesign,
    units: Units,
    request: ModelRequest,
    reach: Reach,
    shares: Mapping[str, Fraction],
    within: Sequence[Fraction],
    among_terms: Sequence[Fraction] = (),
) -> MomentNoise:
    """The noise of these shares of the loss: of the parts, and within the fixed part and the random terms."""
    step, parts = request.scale.step, []
    for (term, _, piece), at, share in zip(public.random_parts, reach.terms, among_terms, strict=True):
        if shares.get("groups") and share:
            spent = share_of(request.loss, shares["groups"] * share)
            unit = step * units.step.get(piece.monomial, 1.0)
            parts.append(MomentPart(piece, _NONE, _NONE, spent, at, _scales(at, spent), unit, term))
    if shares.get("groups") and public.terms:
        spent = share_of(request.loss, shares["groups"])
        parts.append(MomentPart(None, _NONE, _NONE, spent, reach.groups, _scales(reach.groups, spent), step))
    for (piece, inside, among), at, share in zip(public.parts, reach.pieces, within, strict=True):
        spent = share_of(request.loss, shares["fixed"] * share)
        unit = step * units.step.get(piece.monomial, 1.0)
        parts.append(MomentPart(piece, inside, among, spent, at, _scales(at, spent), unit))
    squares = share_of(request.loss, shares["squares"])
    widest = reach.rows * (2 * HALF) ** 2
    noise_scale(widest, squares)  # that a draw may ask for, refused here if it is too wide
    return MomentNoise(tuple(parts), squares, public.rows, reach.rows)


def _term_costs(public: PublicDesign, units: Units, part: tuple[int, int, Piece], reach: Vector) -> TermCosts:
    """Of the sums of one piece of a random term, in the columns' units."""
    term, start, piece = part
    assert public.others is not None
    own = slice(start, start + piece.width(public.design.levels))
    unit = float(np.sqrt((public.others.places[term].unit[own] ** 2).sum()))
    squares = public.others.sizes(term)[:, own].ravel()
    return TermCosts(squares, reach * units.step.get(piece.monomial, 1.0), unit, piece.monomial != ONE)


def _scales(reach: Vector, spent: Pure | Concentrated) -> Vector:
    sizes, among = np.unique(reach, return_inverse=True)
    return np.array([noise_scale(2 * HALF * Fraction(size), spent) for size in sizes.tolist()])[among]


def refuse_wide(spent: Pure | Concentrated) -> None:
    """Refuse a loss for which the sum of squares would need too wide noise with any design and the default split."""
    noise_scale((2 * HALF) ** 2, share_of(spent, Fraction(MOST_SQUARES)))


_NONE = np.empty(0, dtype=np.int64)


def cost_of(piece: Piece, among: Integers, reach: Vector, public: PublicDesign, units: Units) -> float:
    """Squared error of the fitted values, summed over rows, per squared noise scale of a piece; in widths squared."""
    largest = reach * units.step.get(piece.monomial, 1.0)
    return float((largest**2 / np.diag(public.XX)[among]).sum())


def share_of(spent: Pure | Concentrated, share: Fraction) -> Pure | Concentrated:
    return Pure(spent.epsilon * share) if isinstance(spent, Pure) else Concentrated(spent.rho * share)


def law_of(spent: Pure | Concentrated) -> Laplace | Gaussian:
    return Laplace() if isinstance(spent, Pure) else Gaussian()


def sums_of_nothing(mechanism: MomentNoise, public: PublicDesign, request: ModelRequest) -> NoisySums:
    """The later draws of a release, with zeros for the response: design and noise, which are public."""
    return noisy_sums(nothing_drawn(mechanism), mechanism, public, request)


def nothing_drawn(mechanism: MomentNoise) -> NoisyStatistics:
    """A draw of zeros."""
    zeros = tuple(np.zeros(len(part.reach), dtype=np.int64) for part in mechanism.parts)
    return NoisyStatistics(zeros, 0, 0, noise_scale(mechanism.together * HALF**2, mechanism.squares))


def refuse_unsolvable(nothing: NoisySums, public: PublicDesign, request: ModelRequest) -> None:
    """Solve once with sums of zero and `TYPICAL` variances: what fails then would fail after it was paid for."""
    tau2, sigma2 = (share * float(request.width) ** 2 for share in TYPICAL)
    try:
        evaluate(nothing, sigma2=sigma2, variances=np.full(len(public.terms), tau2), robust=False)
    except np.linalg.LinAlgError:
        raise Unidentified(
            f"The {len(public.kept)} fixed columns of {public.model.text!r} cannot be separated under this noise.",
            "Columns must differ by more than noise and rounding hide, and one far value in a numeric "
            "column makes its noise wide. Drop columns or interactions, or cap the column's far values.",
            "Nothing was spent.",
            about="formula",
        ) from None


@dataclass(frozen=True, slots=True)
class SolvedMoments:
    """The model that noisy sums support.

    Attributes
    ----------
    origin : from where the estimate measures the response; `sums`, what it was made from, measured from there.
    shift : what effects that go with sizes of their groups moved; None if the fixed part explains all about sizes.
    failure : what went wrong: estimates are then empty.
    """

    estimate: NoisyEstimate
    sums: NoisySums = field(repr=False)
    origin: float
    shift: SizeShift | None
    failure: str = ""


def solve(noisy: NoisyStatistics, mechanism: MomentNoise, public: PublicDesign, request: ModelRequest) -> SolvedMoments:
    """The sums are paid for, so a failure leaves estimates empty and is reported, and the sums can be solved again."""
    sums = noisy_sums(noisy, mechanism, public, request)
    origin = request.scale.middle + noisy.centre * request.scale.step
    try:
        found, shift = allowing_for_sizes(sums, estimate(sums, largest=float(request.width) / 2))
        if np.isfinite(found.beta).all():
            if not mechanism.sees_groups:
                found = replace(found, effects=tuple(np.zeros_like(u) for u in found.effects))
            return SolvedMoments(found, sums, origin, shift)
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
    """The draws of a release, beside the public design, in the response's units from its centre."""
    step = request.scale.step
    Xy, dx = fixed_sums(noisy, mechanism, public, request)
    s, ds = np.zeros(len(public.n)), (FAR * float(request.width) * public.n) ** 2  # what is known of sums not drawn
    for part, sums in zip(mechanism.parts, noisy.sums, strict=True):
        if part.piece is None:
            s, ds = step * (sums - noisy.centre * public.n), part.variance
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


def fixed_sums(
    noisy: NoisyStatistics, mechanism: MomentNoise, public: PublicDesign, request: ModelRequest
) -> tuple[Vector, Vector]:
    """Noisy sums of the fixed columns, and the variances of their noise."""
    Xy, dx = np.empty(len(public.kept)), np.empty(len(public.kept))
    for part, sums in zip(mechanism.parts, noisy.sums, strict=True):
        if part.piece is not None and part.term is None:
            origin = noisy.centre * request.scale.step * public.ones[part.among]
            Xy[part.among], dx[part.among] = part.unit * sums - origin, part.variance
    return Xy, dx
