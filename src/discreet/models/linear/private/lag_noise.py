"""Noise for a model with lags of its response: every sum of `lag_sums` is noised once, under one loss.

One response enters one class of rows in the groups and in each piece of the fixed part, or the places of a column that
changes within its series; and at most two pairs of each distance. Nothing else of the release depends on it. Each part
has a share of the loss, and the shares add up to the whole exactly. The proof is docs/proofs/mixed-lags.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers, Matrix
from discreet.models.formula.design import Piece
from discreet.models.formula.rows import ModelRows
from discreet.models.linear.private.lag_estimation import LagSums
from discreet.models.linear.private.lag_sums import PairClasses, RowClasses, gram, pair_classes, place_sizes, place_sums
from discreet.models.linear.private.moments import law_of, share_of
from discreet.models.linear.private.panel import SeriesPanel
from discreet.models.linear.private.public import PublicDesign
from discreet.models.linear.private.request import ModelRequest, noise_scale
from discreet.models.linear.private.shares import by_roots, default_split, thousandths
from discreet.models.linear.private.sums import HALF, Units, whole_column
from discreet.noise.sampler import add_noise
from discreet.privacy.losses import Concentrated, Loss, Number, Pure, total
from discreet.privacy.split import read_split
from discreet.words.errors import FitError

if TYPE_CHECKING:
    from discreet.noise.source import Source

PROOF = "docs/proofs/mixed-lags.md"
PRODUCTS = 0.4  # share of squares and products of responses: coefficients of lags are known by them


@dataclass(frozen=True, slots=True)
class LagPart:
    """Sums that share a noise scale, for all places of the response.

    Attributes
    ----------
    piece : the piece of the fixed part; None for the groups. `among` : its columns among all kept ones.
    classes : disjoint classes of rows; None where there is a sum for each place.
    at, x : the column that each used row touches, -1 for none, and the whole number it has there.
    sensitivity, scale, unit : the largest change of all sums together, the scale of the noise, both in steps, and the
        value of a step.
    """

    piece: Piece | None
    among: Integers
    classes: RowClasses | None
    at: Integers = field(repr=False)
    x: Integers = field(repr=False)
    width: int
    places: int
    loss: Pure | Concentrated
    sensitivity: Fraction | int
    scale: float
    unit: float

    @property
    def variance(self) -> float:
        """Of the noise of one sum, in the response's units; rounding it to whole steps adds a twelfth of a step."""
        return (law_of(self.loss).variance * self.scale**2 + 1 / 12) * self.unit**2

    @property
    def size(self) -> int:
        """How many sums there are."""
        return self.width * self.places if self.classes is None else len(self.classes.column)

    def of(self, panel: SeriesPanel, k: Integers) -> Integers:
        """The confidential sums."""
        return place_sums(panel, k, self.at, self.x, self.width) if self.classes is None else self.classes.sums(k)

    def by_place(self, sums: Integers) -> Matrix:
        """Sums of each place and column, (places, width), in steps."""
        if self.classes is None:
            return np.asarray(sums.reshape(-1, self.width), dtype=np.float64)
        return self.classes.by_place(sums, self.width)

    def shared(self) -> Matrix:
        """How much noise two places share in each column, in variances of one draw, (places, places, width)."""
        if self.classes is not None:
            return self.classes.shared(self.width)
        return np.asarray(np.eye(self.places)[:, :, None] * np.ones(self.width))


@dataclass(frozen=True, slots=True)
class Products:
    """Products of responses of one distance: their classes, and their share of the loss."""

    classes: PairClasses
    loss: Pure | Concentrated

    def scale(self, centre: int) -> float:
        return noise_scale(self.classes.sensitivity(HALF, centre), self.loss)


@dataclass(frozen=True)
class ExactLags:
    """The sums before noise, in steps: sums by part; by distance, products by class, and of both rows of each pair.

    Confidential.
    """

    sums: tuple[Integers, ...] = field(repr=False)
    products: tuple[Integers, ...] = field(repr=False)
    pairs: tuple[Integers, ...] = field(repr=False)


@dataclass(frozen=True)
class NoisyLags:
    """The draws of a release: noisy sums by part; the products' centre, these by distance, and scales; in steps."""

    sums: tuple[Integers, ...] = field(repr=False)
    centre: int
    products: tuple[Integers, ...] = field(repr=False)
    scales: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class LagNoise:
    """Everything that decides the noise; public. Products come last: their centre depends on the rest."""

    panel: SeriesPanel
    parts: tuple[LagPart, ...]
    products: tuple[Products, ...]

    @property
    def loss(self) -> Loss:
        """The losses of all parts together."""
        return total([*(part.loss for part in self.parts), *(product.loss for product in self.products)])

    def to_dict(self) -> dict[str, Any]:
        """The ledger's record: the lags, the loss of every part and its noise scale, in steps."""
        return {
            "lags": list(self.panel.shifts[1:]),
            "parts": [{"columns": part.width, "loss": part.loss.to_dict(), "scale": part.scale} for part in self.parts],
            "products": [{"distance": p.classes.distance, "loss": p.loss.to_dict()} for p in self.products],
        }

    def exact(self, k: Integers) -> ExactLags:
        """Everything that noise is added to, from the whole numbers of all responses; confidential."""
        classes = [p.classes for p in self.products]
        return ExactLags(
            tuple(part.of(self.panel, k) for part in self.parts),
            tuple(c.sums(k, 0) for c in classes),
            tuple(c.totals(k) for c in classes),
        )

    def draw(self, exact: ExactLags, source: Source) -> NoisyLags:
        law = law_of(self.products[0].loss)
        sums = _noised(exact.sums, [part.scale for part in self.parts], law, source)
        every = next(i for i, part in enumerate(self.parts) if part.piece is not None and part.piece.adds_up_to_one)
        mean = self.parts[every].by_place(sums[every])[0].sum() / len(self.panel.used)
        centre = int(np.clip(np.rint(mean), -HALF, HALF))
        scales = tuple(p.scale(centre) for p in self.products)
        about = [
            raw - centre * both + centre**2 * p.classes.counts
            for p, raw, both in zip(self.products, exact.products, exact.pairs, strict=True)
        ]
        return NoisyLags(sums, centre, _noised(about, scales, law, source), scales)


def lag_sums_of(noisy: NoisyLags, mechanism: LagNoise, public: PublicDesign, request: ModelRequest) -> LagSums:
    """The draws of a release, beside the public design, in the response's units from its centre."""
    step, p, places = request.scale.step, len(public.kept), len(mechanism.panel.shifts)
    s, shared_s, ds = np.empty((places, 0)), np.empty((places, places, 0)), 0.0
    Xy, dx, shared_x = np.empty((places, p)), np.empty(p), np.empty((places, places, p))
    for part, sums in zip(mechanism.parts, noisy.sums, strict=True):
        if part.piece is None:
            s = step * (part.by_place(sums) - noisy.centre * public.n)
            shared_s, ds = part.shared(), part.variance
        else:
            Xy[:, part.among] = part.unit * part.by_place(sums) - noisy.centre * step * public.ones[part.among]
            shared_x[:, :, part.among], dx[part.among] = part.shared(), part.variance
    classes = [product.classes for product in mechanism.products]
    drawn = [
        np.full(len(c.places), (law_of(product.loss).variance * scale**2 + 1 / 12) * step**4)
        for c, product, scale in zip(classes, mechanism.products, noisy.scales, strict=True)
    ]
    return LagSums(
        n=public.n,
        Sx=public.Sx,
        XX=public.XX,
        levels=public.levels,
        s=s,
        Xy=Xy,
        gram=step**2 * gram(classes, noisy.products),
        ds=ds,
        dx=dx,
        shared_s=shared_s,
        shared_x=shared_x,
        products=np.concatenate(drawn),
        pairs=np.concatenate([c.places for c in classes]).astype(np.float64),
        rows=float(public.rows),
        kurtosis=3.0 if isinstance(request.loss, Pure) else 0.0,
    )


def _noised(exact: Any, scales: Any, law: Any, source: Source) -> tuple[Integers, ...]:
    """Every vector with noise of its scale, in one draw."""
    sizes = [len(found) for found in exact]
    noisy = add_noise(np.concatenate(exact), law, scale=np.repeat(scales, sizes), source=source)
    return tuple(np.split(noisy, np.cumsum(sizes)[:-1]))


def lag_mechanism(
    panel: SeriesPanel,
    rows: ModelRows,
    public: PublicDesign,
    units: Units,
    request: ModelRequest,
    split: Mapping[str, Number] | None,
) -> LagNoise:
    """Divide the loss and scale the noise, from the design alone. `rows` are the public columns of the used rows."""
    pure, step, places = isinstance(request.loss, Pure), request.scale.step, len(panel.shifts)
    found = [_piece(panel, rows, public, units, *each) for each in public.parts]
    costs = np.array([_cost(sizes, unit, among, public) for _, among, _, _, _, sizes, unit in found])
    within = by_roots(costs, pure=pure)
    shares = read_split(split, default_split(public, request, costs, within, squares=PRODUCTS))
    parts = []
    if public.terms:
        at = public.group(rows.codes)
        whole = _group_classes(panel, public, at)
        spent = share_of(request.loss, shares["groups"])
        ones, none = np.ones(len(at), dtype=np.int64), np.empty(0, dtype=np.int64)
        scale = noise_scale(2 * HALF, spent)
        parts.append(LagPart(None, none, whole, at, ones, len(public.n), places, spent, 2 * HALF, scale, step))
    for (piece, among, classes, at, x, sizes, unit), share in zip(found, within, strict=True):
        spent = share_of(request.loss, shares["fixed"] * share)
        moved = 2 * HALF * (sizes[0] if pure else _root(sizes[1]))
        scale = noise_scale(moved, spent)
        parts.append(LagPart(piece, among, classes, at, x, len(among), places, spent, moved, scale, step * unit))
    pairs = pair_classes(panel)
    weight = np.array([float(p.sensitivity(HALF, HALF)) for p in pairs]) ** (2 / 3 if pure else 1)
    each = [shares["squares"] * part for part in thousandths(weight / weight.sum())]
    products = tuple(Products(p, share_of(request.loss, part)) for p, part in zip(pairs, each, strict=True))
    for product in products:
        product.scale(HALF)  # the widest that a draw may ask for, refused here if it is too wide
    return LagNoise(panel, tuple(parts), products)


def _piece(
    panel: SeriesPanel,
    rows: ModelRows,
    public: PublicDesign,
    units: Units,
    piece: Piece,
    inside: Integers,
    among: Integers,
) -> tuple[Piece, Integers, RowClasses | None, Integers, Integers, tuple[int, int], float]:
    """A piece of the fixed part on the used rows, and the most that one step of a response changes in its sums."""
    levels = public.design.levels
    place = np.full(piece.width(levels) + 1, -1)
    place[inside] = np.arange(len(inside))
    at = place[piece.position(rows.codes, levels, rows.count)]
    if piece.monomial.atoms:
        x = whole_column(rows.evaluate(piece.monomial), units, piece.monomial).astype(np.int64)
        return piece, among, None, at, x, place_sizes(panel, at, x), units.step[piece.monomial]
    x, classes = np.ones(rows.count, dtype=np.int64), RowClasses.of(panel, at)
    sizes = place_sizes(panel, at, x) if classes is None else (1, 1)
    return piece, among, classes, at, x, sizes, 1.0


def _group_classes(panel: SeriesPanel, public: PublicDesign, at: Integers) -> RowClasses:
    classes = RowClasses.of(panel, at)
    if classes is None:
        name = public.design.random[public.terms[0]].term.name
        raise FitError(
            f"Rows of one series lie in several groups of {name}.",
            "Sums with lags are made of whole series: a random term groups series, such as (1 | county).",
            "Drop the term, or use its columns in the fixed part.",
            about="formula",
        )
    return classes


def _cost(sizes: tuple[int, int], unit: float, among: Integers, public: PublicDesign) -> float:
    """As `moments`: squared error of fitted values per squared noise scale; the noise of one place."""
    return float(((sizes[0] * unit) ** 2 / np.diag(public.XX)[among]).sum())


def _root(square: int) -> Fraction:
    """A square root, rounded up at the twentieth binary place."""
    return Fraction(math.isqrt((square << 40) - 1) + 1 if square else 0, 1 << 20)
