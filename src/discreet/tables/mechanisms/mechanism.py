"""A count mechanism: everything that a release, a check, a report and a reviewer need from it.

A mechanism knows its constants and its law. Its file also holds how they are calibrated, its expected errors, its
intervals, and the proof's name; nothing outside asks of which kind it is. This module contains no mechanism.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.noise.source import Source
from discreet.privacy.guarantee import Basis, Calibration
from discreet.privacy.losses import Approximate, Loss, shown
from discreet.privacy.units import Establishments
from discreet.tables.mechanisms.nearest import remedies
from discreet.words.cases import case_of
from discreet.words.errors import Infeasible, PrivacyError
from discreet.words.faults import Key

if TYPE_CHECKING:
    from discreet.tables.expected import Kinds
    from discreet.tables.sizes import NoisySizes

Follows: TypeAlias = Literal["largest", "count", "left out", "nothing"]

# Scales are doubles: the product factor * max(alpha * largest, 1) is off by a few parts in 2^53. A relative margin
# of 2^-30 in the constants covers that (docs/proofs/polynomial.md) and costs one part in 10^9 of accuracy.
MARGIN = 2.0**-30
LEAST_GROWTH = MARGIN * 2**10  # ln(1 + alpha) of log-laplace noise: below, rounding loses more than the margin


@dataclass(frozen=True, slots=True)
class Request:
    """The request for one cell, in floats: the arithmetic of calibration.

    Attributes
    ----------
    cells : how many counts of the same establishments one draw covers.
    theta : the largest establishment that is kept, where large ones are dropped.
    within : the share of the epsilon that was asked for which pays for counts: the rest pays for sizes, or is the other
        half of a substitution.
    counts : how many counts of the same establishments are paid for one by one.
    """

    unit: Establishments
    loss: Loss
    calibration: Calibration
    cells: int
    theta: int
    within: Fraction = Fraction(1)
    counts: int = 1

    @property
    def kinds(self) -> int:
        """Counts of the same establishments, whether one draw covers them or not."""
        return self.cells * self.counts

    @property
    def whole(self) -> Fraction:
        """The epsilon of the whole table."""
        return self.loss.amounts["epsilon"] * self.counts / self.within

    def whole_delta(self, kind: type[Mechanism]) -> Fraction:
        """The delta of the whole table, of which one step of a substitution has a part."""
        steps = Approximate(self.loss.amounts["epsilon"], 0).growth(2) if self.unit.substitution and kind.halves else 1
        return self.loss.amounts.get("delta", Fraction(0)) * self.counts * steps

    @property
    def epsilon(self) -> float:
        return float(self.loss.amounts["epsilon"])

    @property
    def delta(self) -> float:
        return float(self.loss.amounts.get("delta", 0))

    @property
    def b(self) -> float:
        return self.unit.log_growth

    def only_tight(self, kind: type[Mechanism]) -> None:
        """Refuse the paper's calibration of a mechanism that the paper does not have."""
        if self.calibration == "paper":
            raise PrivacyError(
                f"{kind.name} is not in the Tables paper.",
                "It has the tight calibration only.",
                ("Leave ", Key("calibration"), " out."),
                about="calibration",
            )

    def refuse(self, kind: type[Mechanism], inequality: str, remedy: str | None = None) -> Infeasible:
        """The refusal; without a remedy of its own it names the nearest requests for which `lacks` is empty."""
        asked = f"alpha={shown(self.unit.alpha)}, {self.loss}" + (f", {self.cells} cells" if self.cells > 1 else "")
        if self.unit.substitution and kind.halves:
            asked += " for one of the two steps of a substitution"
        return Infeasible(
            f"{kind.name} ({self.calibration}) cannot give {asked}: it needs {inequality}.",
            remedy=remedies(self, kind) if remedy is None else remedy,
            about="epsilon",
        )


class CellSizes(NamedTuple):
    """Sizes of cells, for their expected errors.

    Attributes
    ----------
    jobs, largest : the jobs of each cell and the workers of its largest establishment.
    known : whether `largest` is exact and not itself a bound.
    parts : the jobs that truncation drops, and where that number is exact, if more is known than sizes.
    """

    jobs: Vector
    largest: Vector
    known: bool = True
    parts: tuple[Vector, Mask] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism(ABC):
    """How a count is published, with constants for one promise.

    Attributes
    ----------
    unit : the neighbours between which its loss is examined.
    loss : the loss of one cell, or of the whole vector where one draw covers it.
    law : the law of the noise, one of `noise.laws`.
    theta : establishments above this size are dropped before counting.
    step : the most that one worker adds: 1 to a count, the cap to a sum of amounts.
    name, proof, basis : its name, the file that proves its promise, and whether that is proved. No class inherits a
        basis: each says its own, and one from outside needs more to say "proved" (`registry.register`).
    hides_establishments : a baseline does not.
    by_kinds : `draw` takes the largest establishment's workers of every kind and, last, of all.
    by_pairs : `draw` takes the two largest establishments' workers on a last axis.
    by_unions : `draw` takes the largest establishment's workers in every set of kinds, as `Cells.unions`.
    vector : its loss covers as many counts of the same establishments as are asked for.
    needs_delta : it promises (epsilon, delta).
    strong_by_kind : counts of workers of some kind keep the strong definition, too.
    searched : the least and the most epsilon for which its constants can be searched.
    certain_alpha : above it, some requests that lack nothing are refused all the same, and refusals name none.
    halves : a substitution is two steps of half the loss; others calibrate for it themselves.
    sized : its scale is confidential and depends on the largest establishment, so noisy sizes narrow its intervals.
    stated_constants : its public constants, beside the law.
    amounts : its proof holds for amounts, which are no whole numbers of workers.
    plainer : mechanisms that may give what it cannot, the best first.
    """

    unit: Establishments
    loss: Loss
    calibration: Calibration
    law: Any
    theta: int | None = None
    step: int = 1

    name: ClassVar[str]
    proof: ClassVar[str]
    basis: ClassVar[Basis] = "as published"
    hides_establishments: ClassVar[bool] = True
    by_kinds: ClassVar[bool] = False
    by_pairs: ClassVar[bool] = False
    by_unions: ClassVar[bool] = False
    vector: ClassVar[bool] = False
    needs_delta: ClassVar[bool] = False
    strong_by_kind: ClassVar[bool] = True
    searched: ClassVar[tuple[float, float] | None] = None
    certain_alpha: ClassVar[Fraction | None] = None
    halves: ClassVar[bool] = True
    sized: ClassVar[bool] = False
    amounts: ClassVar[bool] = False
    plainer: ClassVar[tuple[type[Mechanism], ...]] = ()
    stated_constants: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls) -> None:
        # A class with slots is made twice, so that super() without arguments would ask the first.
        super(Mechanism, cls).__init_subclass__()
        if "basis" not in vars(cls):
            cls.basis = "as published"

    @classmethod
    @abstractmethod
    def calibrate(cls, ask: Request) -> Self:
        """The constants for the request; raises `Infeasible` with the inequality that says why there are none."""

    @classmethod
    def lacks(cls, ask: Request) -> str:
        """The inequality that the request does not keep, or nothing; cheap, because refusals search with it."""
        return ""

    @classmethod
    def room(cls, ask: Request) -> Fraction:
        """By which factor epsilon should exceed what `lacks` asks for, where noise has no measure at the limit."""
        return Fraction(101, 100)

    @classmethod
    @abstractmethod
    def stated(cls, noise: Mapping[str, Any], *, unit: Establishments, loss: Loss, calibration: Calibration) -> Self:
        """The mechanism with the constants that a bundle states."""

    def constants(self) -> dict[str, Any]:
        """The public constants: what has to be known to compute with its noise."""
        return {"law": type(self.law).__name__, "parameters": asdict(self.law)} | self.own_constants()

    def own_constants(self) -> dict[str, Any]:
        """Those beside the law."""
        own = {name: getattr(self, name) for name in self.stated_constants}
        return own if self.step == 1 else own | {"step": self.step}

    @property
    def additive(self) -> bool:
        """Whether the output is the count plus noise; its rounded value then has an integer law."""
        return True

    @property
    def joint(self) -> bool:
        """Whether one draw covers all cells of the same establishments."""
        return False

    @property
    def follows(self) -> Follows:
        """What the expected error depends on: see `expected.ByLargest`."""
        return "largest"

    @property
    def sizes_floor(self) -> float:
        """The least floor of noisy sizes that its intervals rest on."""
        return 0.0

    @property
    def square_bound(self) -> tuple[float, float] | None:
        """(a, c): noise of a count has mean zero and a mean square of at most (a x)^2 + c^2, x the largest size."""
        return None

    @property
    def fixed(self) -> bool:
        """Whether the scale of its noise is the same for all cells."""
        return case_of(self.follows, {"left out": True, "nothing": True, "count": False, "largest": False})

    def centre(self, count: Vector) -> Vector:
        """What the noise is added to, for verification."""
        return count

    @abstractmethod
    def scale(self, largest: Vector) -> Vector:
        """The scale of the noise where the largest establishment has so many workers."""

    @abstractmethod
    def draw(self, count: Integers, largest: Integers, source: Source) -> Integers:
        """Published counts. `largest` is the contribution that the definition says must be hidden."""

    def log_likelihood(self, published: Integers, count: Integers, largest: Vector) -> Matrix:
        """The log likelihood of each row of published counts for each row of true ones, with its largest establishment.

        Up to a constant of the published row.
        """
        scale = self.scale(largest)
        if self.joint:
            away = (published[:, None, :] - count) / scale[:, None]
            return np.asarray(self.law.log_density(away) - published.shape[1] * np.log(scale))
        found = np.log(self.law.probability(published[:, :, None] - count.T, scale))
        return np.asarray(found.reshape(*published.shape, len(scale)).sum(axis=1))

    @abstractmethod
    def expected_error(self, count: Vector, largest: Vector) -> Vector:
        """E|published - count| before rounding to whole numbers."""

    @abstractmethod
    def integer_error(self, count: Vector, largest: Vector) -> Vector:
        """E|published - count|, of whole numbers."""

    def mean_error(
        self,
        kinds: Kinds,
        *,
        jobs: Vector,
        largest: Vector,
        known: bool = True,
        parts: tuple[Vector, Mask] | None = None,
    ) -> tuple[Vector, Mask]:
        """The mean expected error of the counts of cells of these sizes, and where it is only an upper bound."""
        return self.mean_of(kinds, CellSizes(jobs, largest, known, parts))

    @abstractmethod
    def mean_of(self, kinds: Kinds, cells: CellSizes) -> tuple[Vector, Mask]:
        """`mean_error` of these cells."""

    def left_out(self, jobs: Vector, largest: Vector) -> tuple[Vector, Mask] | None:
        """Jobs of a cell that are not counted: at most how many, and where it is exactly so many; None without such."""
        return None

    @abstractmethod
    def ends(self, counts: Vector, *, level: float, bounded: bool) -> tuple[Vector, Vector]:
        """The ends of intervals that follow from published counts alone; see `intervals.intervals`."""

    def half_width(
        self, published: Integers | Vector, sizes: NoisySizes, *, level: float, beside: float | None = None
    ) -> Vector:
        """The possible distance of a count from its published value, by the `published` largest establishment.

        But for a probability of 1 - level; with `beside`, only where the noise is inside the ends of that level, too.
        """
        raise PrivacyError(
            f"{self.name} has no interval from noisy sizes.",
            "Those that are `sized` have one.",
            "Leave scale_share out.",
            about="scale_share",
        )

    def most_workers(self, counts: Vector, *, miss: float) -> Vector:
        """A value that a cell's largest establishment exceeds with probability at most `miss`.

        `counts` are of all workers.
        """
        return np.asarray(self.ends(counts, level=1 - miss, bounded=True)[1].max(axis=1))

    def reach(self, most: Vector, *, level: float) -> Vector:
        """The possible distance of a count from its published value if no establishment exceeds `most` workers."""
        return np.full(np.shape(most), np.inf)

    @abstractmethod
    def scaled(self, share: float) -> Self:
        """The same mechanism with `share` of its noise: for verification, never for a release."""

    def of_amounts(self, cap: int) -> Self:
        """The same noise for sums of which one worker adds at most `cap`, where `amounts` says that it is proved."""
        raise PrivacyError(
            f"{self.name} is for counts: its proof needs whole workers.",
            "Sums have polynomial, joint-polynomial and staircase.",
            ("Leave ", Key("mechanism"), " out."),
            about="mechanism",
        )

    def promising(self, loss: Loss) -> Self:
        """The same constants with another promise."""
        return replace(self, loss=loss)


def one_worker_floor(unit: Establishments) -> float:
    """m = 1 + e^(b/2): noise in proportion to max(alpha x, m) or alpha x + m feels one worker as half a step."""
    return 1 + math.exp(unit.log_growth / 2) if unit.substitution else 1.0
