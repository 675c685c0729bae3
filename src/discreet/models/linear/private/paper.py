"""`method="paper"`: sub-sample and aggregate with bias correction, as the documents publish it.

Abowd, Schneider and Vilhuber (2012, section IV) and Schneider (2014, section 3.4): regress each coefficient's block
estimates on the blocks' variance components, average the estimates of k disjoint blocks, and add Laplace noise of scale
Lambda / (k epsilon) to each. docs/proofs/mixed-paper.md shows what this proves and what it does not.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.models.formula.rows import ModelRows
from discreet.models.linear.estimate import mixed
from discreet.models.linear.fit import MixedFit, MixedWarning
from discreet.models.linear.private.partition import BlockEstimates, fit_partition, partition
from discreet.models.linear.private.public import PublicDesign
from discreet.models.linear.private.request import RATES, ModelRequest
from discreet.noise.laws import Laplace
from discreet.noise.sampler import draw_on_grid
from discreet.privacy.losses import Number, Pure
from discreet.privacy.split import read_split
from discreet.words.errors import FitError, PrivacyError
from discreet.words.progress import Progress, silent

if TYPE_CHECKING:
    from discreet.data.frames import AnyFrame
    from discreet.noise.source import Source

PROOF = "docs/proofs/mixed-paper.md"
SPLIT = {"fixed": Fraction(49, 100), "groups": Fraction(49, 100), "trend": Fraction(2, 100)}
"""Figures 2 and 3.3. The others give fixed and groups 88 and 10, 10 and 88, 97 and 1, 1 and 97 per cent."""

FINE = 2.0**-20  # of a noise scale: the grid on which released numbers lie

NOTES = (
    "As published: epsilon is the loss of one fitted value (Lemma 1), if block estimates stay within assumed ranges, "
    "which nothing enforces. Not proved for the whole vector",
    "Every coordinate has its own noise at this epsilon; a joint release of all of them composes to far more",
    "Levels missing from a block are left out of their average, so a level in k_c of k blocks has sensitivity "
    "range / k_c, not the range / k that the noise assumes",
    "The bias correction uses the estimates of the whole data set without noise",
)


@dataclass(frozen=True, slots=True)
class Ranges:
    """Lambda: the assumed range of industry-like coefficients and effects, of trends, and of standard deviations."""

    effect: float
    trend: float
    deviation: float


def ranges_of(request: ModelRequest, public: PublicDesign) -> Ranges:
    """The documents' ranges for their rates; for other responses the same shares of the width."""
    response, width = public.model.response.column.lower(), float(request.width)
    if response in RATES:
        rate = RATES[response]
        return Ranges(float(rate.effect), float(rate.trend), float(rate.deviation))
    return Ranges(width, width / 200, width / 4)


@dataclass(frozen=True)
class Averages:
    """Averages over blocks: fixed effects of the columns as given, effects per term in its own order, deviations."""

    beta: Vector
    effects: tuple[Vector, ...]
    deviations: Vector


@dataclass(frozen=True, slots=True)
class Scales:
    """Noise scales of each fixed column (p,), of each term's effects, and of standard deviations; public."""

    beta: Vector
    effects: Vector
    deviation: float

    def draw(self, exact: Averages, source: Source) -> Averages:
        values = [exact.beta, *exact.effects, exact.deviations]
        scales = [self.beta, *self.effects, self.deviation]
        scale = np.concatenate([np.broadcast_to(s, len(v)) for v, s in zip(values, scales, strict=True)])
        grid = float(2.0 ** np.floor(np.log2(scale.min() * FINE)))
        noisy = np.rint(np.concatenate(values) / grid) * grid
        noisy += draw_on_grid(Laplace(), scale=scale, grid=grid, source=source)
        first, *middle, last = np.split(noisy, np.cumsum([len(v) for v in values])[:-1])
        return Averages(first, tuple(middle), last)

    def to_dict(self) -> dict[str, Any]:
        return {"fixed": self.beta.tolist(), "groups": self.effects.tolist(), "deviations": self.deviation}


def scales_for(
    public: PublicDesign, request: ModelRequest, ranges: Ranges, blocks: int, split: Mapping[str, Number] | None
) -> Scales:
    """Lambda / (k share epsilon); several random terms divide their share equally."""
    if not isinstance(request.loss, Pure):
        raise PrivacyError(
            "method='paper' adds Laplace noise and has no rho.",
            remedy="Give epsilon, or use another method.",
            about="rho",
        )
    trend = np.concatenate([np.full(len(among), bool(piece.monomial.atoms)) for piece, _, among in public.parts])
    parts = ["fixed", *(["groups"] if public.terms else []), *(["trend"] if trend.any() else [])]
    whole = sum(SPLIT[part] for part in parts)
    shares = read_split(split, {part: SPLIT[part] / whole for part in parts})
    unit = {part: 1 / (blocks * float(request.loss.epsilon * share)) for part, share in shares.items()}
    terms = len(public.terms)
    return Scales(
        beta=np.where(trend, ranges.trend * unit.get("trend", 0.0), ranges.effect * unit["fixed"]),
        effects=np.full(terms, ranges.effect * terms * unit.get("groups", 0.0)),
        deviation=ranges.deviation / (blocks * float(request.loss.epsilon)),
    )


@dataclass(frozen=True)
class Whole:
    """Estimates of the whole data set: fixed effects as given, effects and variances from the finest term on."""

    beta: Vector
    effects: tuple[Vector, ...]
    variances: Vector


def averages(
    rows: ModelRows,
    public: PublicDesign,
    whole: Whole,
    blocks: int,
    rng: np.random.Generator,
    *,
    progress: Progress = silent,
) -> Averages:
    """Fit every block, correct and average; confidential."""
    found = fit_partition(rows, public, partition(public.rows, blocks, rng), progress=progress)
    return corrected(replace(found, beta=public.origin.beta(found.beta)), whole)


def whole_estimates(frame: AnyFrame, rows: ModelRows, public: PublicDesign) -> Whole:
    """REML on all rows; least squares without random effects, or where no REML exists: no response stops a release."""
    fit: MixedFit | None = None
    if public.terms:
        with warnings.catch_warnings(), suppress(FitError):
            warnings.simplefilter("ignore", MixedWarning)
            fit = mixed(public.model.text, frame)
    if fit is not None:
        variances = [float(fit.random[i].covariance[0, 0]) for i in public.terms]
        effects = tuple(fit.random[i].values[:, 0] for i in public.terms)
        return Whole(fit.beta, effects, np.array([*variances, fit.sigma2]))
    y = rows.values[public.model.response][:, 0]
    Xy = cross_products(rows, public, y)
    centred = np.asarray(np.linalg.solve(public.XX, Xy), dtype=np.float64)
    sigma2 = max(float(y @ y - Xy @ centred), 0.0) / (public.rows - len(centred))
    none = tuple(np.zeros(len(public.design.random[i].grouping)) for i in public.terms)
    return Whole(public.origin.restore @ centred, none, np.array([*(0.0 for _ in none), sigma2]))


def cross_products(rows: ModelRows, public: PublicDesign, y: Vector) -> Vector:
    """X'y of the kept columns; confidential."""
    found = np.empty(len(public.kept))
    for piece, inside, among in public.parts:
        at = piece.position(rows.codes, public.design.levels, rows.count)
        weight = y * rows.evaluate(piece.monomial) if piece.monomial.atoms else y
        found[among] = np.bincount(at[at >= 0], weight[at >= 0], piece.width(public.design.levels))[inside]
    return found


def corrected(blocks: BlockEstimates, whole: Whole) -> Averages:
    """Averages of bias-corrected block estimates, centred at the estimates of the whole data set.

    A coefficient or a level that no block has is 0, as are its sums.
    """
    fitted = blocks.estimable
    bias = np.where(fitted[:, None], blocks.variances - whole.variances, 0.0)
    block, column = np.nonzero(np.isfinite(blocks.beta) & fitted[:, None])
    effects = [(b[known], level[known], u[known]) for b, level, u in blocks.effects for known in [fitted[b]]]
    variances = blocks.variances[fitted].sum(axis=0) / max(int(fitted.sum()), 1)
    return Averages(
        beta=_average(block, column, blocks.beta[block, column], bias, whole.beta),
        effects=tuple(_average(*entries, bias, u) for entries, u in zip(effects, whole.effects, strict=True)),
        deviations=np.sqrt(variances),
    )


def _average(block: Integers, item: Integers, value: Vector, bias: Matrix, whole: Vector) -> Vector:
    """Per item, the mean of value - bias gamma over the blocks that have it.

    gamma is the regression of the item's centred block estimates on the centred variances, without intercept.
    """
    B, size = bias[block], len(whole)
    terms = B.shape[1]
    gram, right = np.empty((size, terms, terms)), np.empty((size, terms))
    for i in range(terms):
        right[:, i] = np.bincount(item, B[:, i] * (value - whole[item]), size)
        for j in range(terms):
            gram[:, i, j] = np.bincount(item, B[:, i] * B[:, j], size)
    gamma = (np.linalg.pinv(gram, rcond=1e-10, hermitian=True) @ right[..., None])[..., 0]
    left = value - np.einsum("ki,ki->k", B, gamma[item])
    return np.asarray(np.bincount(item, left, size) / np.maximum(np.bincount(item, minlength=size), 1))
