"""`method="strict"`: sub-sample and aggregate, proved for the whole release.

The documents' method with its gaps closed. Bounds are public, and the number of blocks is fixed. Each block's whole
vector of estimates is pulled into a ball whose radius is stated, or chosen from noisy counts of blocks by length. A
level that a block does not have contributes its prior mean 0 and is rescaled by the number of blocks that do, which the
design alone decides. One budget pays for all coordinates together. There is no bias correction, which would need the
whole data set. The proof is docs/proofs/mixed-strict.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.models.formula.rows import ModelRows
from discreet.models.linear.private.partition import BlockEstimates, fit_partition
from discreet.models.linear.private.public import PublicDesign
from discreet.models.linear.private.request import ModelRequest, noise_scale
from discreet.models.linear.private.sums import HALF
from discreet.noise.laws import Gaussian, Laplace
from discreet.noise.sampler import add_noise
from discreet.privacy.losses import Concentrated, Loss, Number, Pure, exact, total
from discreet.privacy.split import read_split
from discreet.words.errors import PrivacyError

if TYPE_CHECKING:
    from discreet.noise.source import Source

OWN_STREAM = 7_919_042_611  # nobody's seed: a column that was simulated with it would be the pseudo-response itself
PROOF = "docs/proofs/mixed-strict.md"
SPLIT = {
    "mean": Fraction(2, 100),
    "sizes": Fraction(8, 100),
    "fixed": Fraction(37, 100),
    "groups": Fraction(45, 100),
    "deviations": Fraction(8, 100),
}
SIZED = ("fixed", "groups")
"""Vectors whose typical size may be stated; that of the others is chosen for the share `sizes` of the loss."""

LARGEST = 2.0  # widths per coordinate: the largest radius that is tried, and each next one is half as long
HALVINGS = 13
BEYOND = 0.25  # of the blocks: where so many are longer, radii stop shrinking, and the one before is taken
CLIPPED = 0.05  # of the blocks: where more are longer than the radius, the average is called clipped
NEAR = 0.8  # of the radius: an average this long is called clipped

STEPS = 2**24  # of a radius: block estimates are whole numbers of steps
INSIDE = 1 - 1e-9  # keeps a vector inside its ball whatever rounding does to its norm


@dataclass(frozen=True)
class Presence:
    """Which block has an estimate of what; from the design alone, by fitting blocks to a public pseudo-response.

    Attributes
    ----------
    columns : blocks that have each fixed column (p,); `levels`, per term, blocks that have each level.
    blocks : estimable blocks. `most_levels` : the largest number of levels of a term in one block.
    pseudo : coefficients of the pseudo-response, which is pure noise of variance 1 (blocks, p); 0 where there is none.
    """

    columns: Vector
    levels: tuple[Vector, ...] = field(repr=False)
    blocks: int
    most_levels: tuple[int, ...]
    pseudo: Matrix = field(repr=False)


@dataclass(frozen=True, repr=False)
class Reading:
    """Values before noise: the blocks' estimates and the sum of all responses, in steps; and the public presence."""

    estimates: BlockEstimates
    total: int
    presence: Presence


def presence_of(data: ModelRows, public: PublicDesign, chosen: Integers) -> Presence:
    """`data` may hold anything in place of the response."""
    pseudo = np.random.default_rng([OWN_STREAM, data.count]).normal(size=(data.count, 1))
    found = fit_partition(with_response(data, public, pseudo[:, 0]), public, chosen)
    sizes = [len(public.design.random[i].grouping) for i in public.terms]
    levels = tuple(
        np.bincount(level, minlength=size).astype(np.float64)
        for (_, level, _), size in zip(found.effects, sizes, strict=True)
    )
    most = tuple(int(np.bincount(block, minlength=1).max()) for block, _, _ in found.effects)
    known = np.isfinite(found.beta)
    pseudo = np.where(known, found.beta, 0.0)
    return Presence(known.sum(axis=0).astype(np.float64), levels, int(found.estimable.sum()), most, pseudo)


def with_response(data: ModelRows, public: PublicDesign, y: Vector) -> ModelRows:
    return ModelRows(data.count, data.codes, {**data.values, public.model.response: y[:, None]})


def dithered(whole: Vector, step: float, rng: np.random.Generator) -> Vector:
    """Responses in whole steps, each moved by less than half a step at random.

    Few blocks' responses then lie in the span of their design, where nothing can be estimated.
    """
    return np.asarray(step * (whole + rng.uniform(-0.5, 0.5, len(whole))))


@dataclass(frozen=True, slots=True)
class BlockPart:
    """One vector that is summed over blocks: its loss, the radius of its ball and the scale of its noise, in steps.

    `choice` pays for choosing the radius; `radius` is then the largest one.
    """

    loss: Pure | Concentrated
    radius: float
    sensitivity: int
    scale: float
    choice: Pure | Concentrated | None = None

    @property
    def step(self) -> float:
        """One step in the response's units."""
        return self.radius / STEPS

    def whole(self, block: Integers, values: Vector, blocks: int) -> Integers:
        """Entries of every block's vector, pulled into the ball together and cut to whole steps.

        What is not a number counts 0. The pull is in floating point; that a block's integers lie in the ball is
        checked on them, without rounding, and a block outside counts 0.
        """
        values = np.where(np.isfinite(values), values, 0.0)
        power = 1 if isinstance(self.loss, Pure) else 2
        with np.errstate(all="ignore"):
            norm = self.lengths(block, values, blocks)
            pull = INSIDE * np.minimum(1.0, self.radius / np.maximum(norm, 1e-300))
            steps = np.trunc(values * pull[block] / self.step)
            inside = np.bincount(block, np.abs(steps) ** power, blocks) <= STEPS**power
        return np.where(inside[block], steps, 0.0).astype(np.int64)

    def lengths(self, block: Integers, values: Vector, blocks: int) -> Vector:
        power = 1 if isinstance(self.loss, Pure) else 2
        return np.asarray(np.bincount(block, np.abs(values) ** power, blocks) ** (1 / power))

    @property
    def tally_scale(self) -> float:
        """Noise of the blocks by size: one block leaves one count and enters another, 2 in L1 and sqrt(2) in L2."""
        assert self.choice is not None
        if isinstance(self.choice, Pure):
            return noise_scale(2, self.choice)
        return noise_scale(1, Concentrated(self.choice.rho / 2))

    def tally(self, block: Integers, values: Vector, blocks: int) -> Integers:
        """Blocks whose vector is longer than the largest radius, than half of it and not longer, down to the rest."""
        with np.errstate(all="ignore"):
            norm = self.lengths(block, np.where(np.isfinite(values), values, 0.0), blocks)
        longer = (norm[:, None] > self.radii).sum(axis=1)
        return np.bincount(HALVINGS + 1 - longer, minlength=HALVINGS + 2)

    @property
    def radii(self) -> Vector:
        return np.asarray(self.radius / 2.0 ** np.arange(HALVINGS + 1), dtype=np.float64)

    def chosen(self, tally: Integers, count: int, blocks: int) -> int:
        """The place of the radius to take: twice the least one that few blocks are longer than, looking from above.

        `count` blocks are in the tally; `blocks` of them can be estimated.
        """
        many = np.cumsum(nearest_counts(tally, count))[:-1] > BEYOND * blocks
        place = int(np.argmax(many)) if many.any() else HALVINGS + 1
        return max(place - 2, 0)


def nearest_counts(tally: Integers, blocks: int) -> Vector:
    """The counts of at least zero that add up to the number of blocks and lie nearest to noisy ones."""
    ordered = np.sort(tally)[::-1].astype(np.float64)
    shift = (blocks - np.cumsum(ordered)) / np.arange(1, len(ordered) + 1)
    kept = int(np.flatnonzero(ordered + shift > 0)[-1])
    return np.asarray(np.maximum(tally + shift[kept], 0.0))


@dataclass(frozen=True, slots=True)
class BlockNoise:
    """Everything that decides the noise; public."""

    mean: Pure | Concentrated
    fixed: BlockPart
    groups: tuple[BlockPart, ...]
    deviations: BlockPart
    units: Vector
    blocks: int

    @property
    def loss(self) -> Loss:
        parts = [self.fixed, *self.groups, self.deviations]
        choices = [part.choice for part in parts if part.choice is not None]
        return total([self.mean, *(part.loss for part in parts), *choices])

    def to_dict(self) -> dict[str, Any]:
        """What the ledger keeps."""
        parts = {"fixed": [self.fixed], "groups": list(self.groups), "deviations": [self.deviations]}
        return {
            "blocks": self.blocks,
            "mean": self.mean.to_dict(),
            **{
                name: [
                    {"loss": p.loss.to_dict(), "radius": p.radius, "scale": p.scale}
                    | ({"choice": p.choice.to_dict()} if p.choice else {})
                    for p in found
                ]
                for name, found in parts.items()
            },
        }


@dataclass(frozen=True)
class NoisyAverages:
    """The draws of the release: the centre in steps of the response, and noisy sums over blocks in their parts' steps.

    `tallies` are noisy numbers of blocks by size, `radii` the radii chosen from them, of the fixed part and each term.
    """

    centre: int
    fixed: Integers = field(repr=False)
    groups: tuple[Integers, ...] = field(repr=False)
    deviations: Integers
    radii: tuple[float, ...]
    tallies: tuple[Integers | None, ...] = field(repr=False)


def mechanism_for(
    public: PublicDesign,
    request: ModelRequest,
    presence: Presence,
    units: Vector,
    split: Mapping[str, Number] | None,
    sizes: Mapping[str, Number] | None,
) -> BlockNoise:
    """Divide the loss and scale the noise; `units` are the largest sizes of the fixed columns."""
    stated = {name: float(_stated(name, size)) for name, size in (sizes or {}).items()}
    terms = len(public.terms)
    open_ = {"fixed": "fixed" not in stated, "groups": terms > 0 and "groups" not in stated}
    names = [name for name in SPLIT if (name != "groups" or terms) and (name != "sizes" or any(open_.values()))]
    whole = sum(SPLIT[name] for name in names)
    shares = read_split(split, {name: SPLIT[name] / whole for name in names})
    power = 1.0 if isinstance(request.loss, Pure) else 0.5

    def spent(share: Fraction) -> Pure | Concentrated:
        return (
            Pure(request.loss.epsilon * share)
            if isinstance(request.loss, Pure)
            else Concentrated(request.loss.rho * share)
        )

    chosen = open_["fixed"] + terms * open_["groups"]

    def ball(name: str, share: Fraction, count: int) -> BlockPart:
        size = stated.get(name, LARGEST * float(request.width))
        choice = spent(shares["sizes"] / chosen) if open_[name] else None
        loss = spent(share)
        return BlockPart(loss, size * max(count, 1) ** power, 2 * STEPS, noise_scale(2 * STEPS, loss), choice)

    return BlockNoise(
        mean=spent(shares["mean"]),
        fixed=ball("fixed", shares["fixed"], len(public.kept)),
        groups=tuple(ball("groups", shares["groups"] / terms, most) for most in presence.most_levels),
        deviations=_deviations(spent(shares["deviations"]), float(request.width) / 2, terms + 1),
        units=units,
        blocks=presence.blocks,
    )


def _stated(name: str, size: Number) -> Fraction:
    if name in SIZED and exact(size, name=name) > 0:
        return exact(size)
    said = "It may state a positive typical size of 'fixed' coefficients and of 'groups' effects, as the response's is."
    remedy = "Leave it out, and a share of the loss chooses it."
    raise PrivacyError(f"sizes names {name!r} as {size}.", said, remedy, about="sizes")


def _deviations(loss: Pure | Concentrated, largest: float, count: int) -> BlockPart:
    """Standard deviations lie in [0, largest] by the response's range, so their box has half a ball's diameter."""
    sensitivity = STEPS * count if isinstance(loss, Pure) else STEPS * int(np.ceil(count**0.5))
    return BlockPart(loss, largest, sensitivity, noise_scale(sensitivity, loss))


def draw(
    mechanism: BlockNoise, blocks: BlockEstimates, public: PublicDesign, whole: int, step: float, source: Source
) -> NoisyAverages:
    """Noise on the total, which gives the centre; then on the sums over blocks of estimates about it.

    `whole` is the sum of all responses in steps of size `step` from the middle of their range.
    """
    law = Laplace() if isinstance(mechanism.mean, Pure) else Gaussian()

    def noisy(exact_sums: Integers, scale: float) -> Integers:
        return add_noise(exact_sums, law, scale=np.full(len(exact_sums), scale), source=source)

    answer = noisy(np.array([whole]), noise_scale(2 * HALF, mechanism.mean))[0]
    centre = int(np.clip(round(int(answer) / public.rows), -HALF, HALF))
    count, p = blocks.beta.shape
    with np.errstate(all="ignore"):
        values = (blocks.beta - centre * step * public.constant) * mechanism.units
    vectors = [(np.repeat(np.arange(count), p), np.tile(np.arange(p), count), values.ravel(), p)]
    for (block, level, effect), term in zip(blocks.effects, public.terms, strict=True):
        vectors.append((block, level, effect, len(public.design.random[term].grouping)))
    sums, radii, tallies = [], [], []
    for part, (block, at, found, size) in zip((mechanism.fixed, *mechanism.groups), vectors, strict=True):
        tally = None
        if part.choice is not None:
            tally = noisy(part.tally(block, found, count), part.tally_scale)
            part = replace(part, radius=float(part.radii[part.chosen(tally, count, mechanism.blocks)]))
        sums.append(noisy(_sum(at, part.whole(block, found, count), size), part.scale))
        radii.append(part.radius)
        tallies.append(tally)
    part = mechanism.deviations
    deviations = noisy(whole_deviations(blocks.variances, part).sum(axis=0), part.scale)
    return NoisyAverages(centre, sums[0], tuple(sums[1:]), deviations, tuple(radii), tuple(tallies))


def whole_deviations(variances: Matrix, part: BlockPart) -> Integers:
    """Standard deviations of every block in whole steps from 0 to STEPS; what is not a positive number counts 0."""
    usable = np.where(np.isfinite(variances) & (variances > 0), variances, 0.0)
    return np.asarray(np.minimum(np.trunc(np.sqrt(usable) / part.step), STEPS), dtype=np.int64)


def _sum(at: Integers, values: Integers, size: int) -> Integers:
    found = np.zeros(size, dtype=np.int64)
    np.add.at(found, at, values)
    return found


def averages(
    noisy: NoisyAverages, mechanism: BlockNoise, presence: Presence, public: PublicDesign, origin: float
) -> tuple[Vector, tuple[Vector, ...], Vector]:
    """Coefficients of the centred columns, effects per term and variances (terms, then residual)."""
    steps = [radius / STEPS for radius in noisy.radii]
    fixed = steps[0] * noisy.fixed / np.maximum(presence.columns, 1) / mechanism.units
    groups = []
    for part, step, found, count in zip(mechanism.groups, steps[1:], noisy.groups, presence.levels, strict=True):
        unit = step / np.maximum(count, 1)
        law = Laplace.variance if isinstance(part.loss, Pure) else Gaussian.variance
        groups.append(_shrunk(unit * found, (unit * part.scale) ** 2 * law))
    deviations = mechanism.deviations.step * noisy.deviations / max(presence.blocks, 1)
    return fixed + origin * public.constant, tuple(groups), np.maximum(deviations, 0.0) ** 2


def covariance(
    noisy: NoisyAverages, mechanism: BlockNoise, presence: Presence, public: PublicDesign, variances: Vector
) -> Matrix:
    """Of the averaged coefficients of centred columns: from what was released and the design.

    Noise is known. Residuals act as in the blocks of the pseudo-response, effects as in least squares of all rows.
    Released deviations are too small for the one and too large for the other. So residuals count with the whole
    variance, and each with the part that noise may hide.
    """
    law = Laplace.variance if isinstance(mechanism.mean, Pure) else Gaussian.variance
    counts, part = np.maximum(presence.columns, 1), mechanism.deviations
    unit = noisy.radii[0] / STEPS / counts / mechanism.units
    hidden = law * (part.step * part.scale / max(presence.blocks, 1)) ** 2
    variances = variances + hidden
    limit = noisy.radii[0] / mechanism.units
    spread = np.clip(presence.pseudo * variances.sum() ** 0.5, -limit, limit) / counts
    found = np.diag(law * (unit * mechanism.fixed.scale) ** 2) + spread.T @ spread
    inverse = np.linalg.inv(public.XX)
    for level, variance in zip(public.levels, variances[:-1], strict=True):
        sums = level.sum(public.Sx) @ inverse
        found += variance * sums.T @ sums
    return np.asarray(found)


def expected_clipping(mechanism: BlockNoise, presence: Presence, deviation: float) -> float:
    """The share of blocks whose fixed effects will be longer than a stated radius through residuals alone; public."""
    part = mechanism.fixed
    if part.choice is not None or not len(presence.pseudo):
        return 0.0
    values = deviation * presence.pseudo * mechanism.units
    count, p = values.shape
    return float((part.lengths(np.repeat(np.arange(count), p), values.ravel(), count) > part.radius).mean())


def clipped(noisy: NoisyAverages, mechanism: BlockNoise) -> tuple[bool, ...]:
    """Whether the fixed part's average, and each term's, lies on its radius; from released and public numbers alone.

    An average has the length of the radius only if nearly every block's vector has it, and all point one way. If a
    radius was chosen, the noisy number of blocks beyond it shows more.
    """
    found = []
    parts, sums = (mechanism.fixed, *mechanism.groups), (noisy.fixed, *noisy.groups)
    for part, total_, radius, tally in zip(parts, sums, noisy.radii, noisy.tallies, strict=True):
        pure, size = isinstance(part.loss, Pure), len(total_)
        noise = part.scale * (size if pure else size**0.5)
        length = float(np.linalg.norm(total_.astype(np.float64), 1 if pure else 2))
        limit = float(mechanism.blocks * STEPS)
        near = noise < (1 - NEAR) * limit and length >= NEAR * limit
        if tally is not None:
            law = Laplace.variance if pure else Gaussian.variance
            place = int(np.flatnonzero(part.radii == radius)[0])
            beyond = int(tally[: place + 1].sum()) - 2 * part.tally_scale * (law * (place + 1)) ** 0.5
            near = near or beyond > CLIPPED * mechanism.blocks
        found.append(near)
    return tuple(found)


def _shrunk(effects: Vector, noise: Vector) -> Vector:
    """Effects pulled towards zero by the share of their variance that is noise, which is known."""
    weight = 1 / noise**2
    signal = max(float(weight @ (effects**2 - noise) / weight.sum()), 0.0)
    return np.asarray(effects * signal / (signal + noise))


def column_units(data: ModelRows, public: PublicDesign) -> Vector:
    """The largest size of each fixed column: coefficients times this are in the response's units."""
    found = np.ones(len(public.kept))
    for piece, _, among in public.parts:
        if piece.monomial.atoms:
            found[among] = max(float(np.abs(data.evaluate(piece.monomial)).max()), 1e-300)
    return found
