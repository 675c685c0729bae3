"""Integer noise for one count of a workplace cell that follows its two largest establishments.

Small cells have the table of `ladder`, and cells whose two largest establishments are of about one size its outer law.
If one establishment dominates, the count falls mostly because that one shrinks, and then the scale falls with it. So
noise has less error there, by the rows of `noise.rows`. Every cell has one establishment more, of the size at which the
table ends, which does not exist: so rows begin where the table is left behind. The noise of every size has the mean
zero. The second size is confidential as the first is: intervals hold whatever it is. The proof is
docs/proofs/two-sizes.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np

from discreet.arrays import Integers, Mask, Vector
from discreet.noise.rows import RowSteps, Widest
from discreet.noise.sampler import add, draw_integers
from discreet.noise.source import Source
from discreet.noise.steps import Steps
from discreet.privacy.guarantee import Basis
from discreet.tables.mechanisms.ladder import LadderNoise
from discreet.tables.mechanisms.mechanism import MARGIN, CellSizes
from discreet.words.errors import PrivacyError

if TYPE_CHECKING:
    from discreet.tables.expected import Kinds


def tip(alpha: float) -> float:
    """The distance in units of the scale from a cell's count to its count without the largest establishment."""
    return 1 / ((1 + MARGIN) * alpha)


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSizesNoise(LadderNoise):
    """The table and the outer law of `ladder`, and rows where one establishment dominates.

    Methods that take the largest establishment's size take one axis more, whose last place is the second largest one's.
    Errors are also told of the largest alone: then they are those of the worst second one.
    """

    name: ClassVar[str] = "two-sizes"
    proof: ClassVar[str] = "docs/proofs/two-sizes.md"
    basis: ClassVar[Basis] = "proved"
    by_pairs: ClassVar[bool] = True

    @property
    def rows(self) -> tuple[RowSteps, ...]:
        """The laws of all rows, that of `ladder` first: solved for once, and checked whenever they are read."""
        return _rows(cast(Steps, self.law), float(self.unit.alpha))

    @property
    def shares(self) -> tuple[float, ...]:
        """The ratios of the two sizes at which rows end."""
        return tuple(self.rows[0].ends[1:-1].tolist())

    @property
    def tail(self) -> Widest:
        return Widest(self.rows)

    @property
    def variance(self) -> float:
        return max(law.variance for law in self.rows)

    def found(self) -> None:
        # A class with slots is made twice, so that super() without arguments would ask the first.
        super(TwoSizesNoise, self).found()
        self.rows[-1].weights  # noqa: B018

    def row(self, largest: Vector | Integers, second: Vector | Integers) -> Integers:
        """The row of each cell: the first below the end of the table."""
        beside = np.maximum(np.asarray(second, dtype=np.float64), self.tabled)
        return np.asarray(np.where(np.asarray(largest) < self.tabled, 0, self.rows[0].place(largest, beside)))

    def integer_probability(self, j: Vector, largest: float, second: float = 0.0) -> Vector:
        """P(noise = j) as it is drawn; of an establishment that is alone where no second one is given."""
        return self.chances(np.asarray(j)[..., None], np.array([largest]), np.array([second]))[..., 0]

    def chances(self, j: Vector | Integers, largest: Vector, second: Vector | None = None) -> Vector:
        row = self.row(largest, np.zeros(len(largest)) if second is None else second)
        found, scale = np.empty(np.shape(j)), self.scale(np.floor(largest))
        for number in np.unique(row).tolist():
            here = row == number
            if number:
                found[..., here] = self.rows[number].probability(j[..., here], scale[here])
            else:
                found[..., here] = super(TwoSizesNoise, self).chances(j[..., here], largest[here])
        return found

    def noise(self, largest: Integers, source: Source) -> Integers:
        """Noise of each cell's row; what falls inside the window is drawn again from the table."""
        x, row = largest[..., 0], self.row(largest[..., 0], largest[..., 1])
        noise, scale = np.empty(x.shape, dtype=np.int64), self.scale(x.astype(np.float64))
        for number, law in enumerate(self.rows):
            here = row == number
            noise[here] = draw_integers(law, scale=scale[here], source=source)
        return self.within(noise, x, source)

    def draw(self, count: Integers, largest: Integers, source: Source) -> Integers:
        if largest.shape != (*count.shape, 2):
            raise PrivacyError(
                "two-sizes was given the largest establishment alone.",
                "Its noise follows the second largest one, too.",
                "Report this as a fault of discreet.",
                about="mechanism",
            )
        return add(count, self.noise(largest, source))

    def integer_error(self, count: Vector, largest: Vector) -> Vector:
        """Of both sizes, or of the largest alone with the worst second one."""
        if np.ndim(largest) > np.ndim(count):
            return self._error(largest[..., 0], self.row(largest[..., 0], largest[..., 1]), or_beyond=False)
        return self._error(largest, np.zeros(np.shape(largest), dtype=np.int64), or_beyond=True)

    def mean_of(self, kinds: Kinds, cells: CellSizes) -> tuple[Vector, Mask]:
        """The second largest has no more workers than the cell has beside the largest; a bound if more are left.

        For kinds of workers only the largest establishment is known.
        """
        error, bound = super(TwoSizesNoise, self).mean_of(kinds, cells)
        jobs, largest = cells.jobs, cells.largest
        far = np.asarray(largest) >= self.tabled
        if kinds.some or not cells.known:
            return error, bound | far
        row = self.row(largest, np.minimum(largest, np.maximum(jobs - largest, 0.0)))
        return self._error(largest, row, or_beyond=True), bound | (row < self.row(largest, np.zeros_like(largest)))

    def _error(self, largest: Vector, row: Integers, *, or_beyond: bool) -> Vector:
        """E|noise| of a row; or of it and those beyond, where the second one is smaller, whichever is larger."""
        x, far = np.asarray(largest, dtype=np.float64), np.asarray(largest) >= self.tabled
        ladder = super(TwoSizesNoise, self).integer_error(x, x)
        found = np.where(far & (row > 0), 0.0, ladder)
        for number, law in enumerate(self.rows[1:], start=1):
            here = far & ((row <= number) if or_beyond else (row == number))
            scale, back = np.unique(self.scale(x[here]), return_inverse=True)
            found[here] = np.maximum(found[here], law.mean(scale)[back])
        return found


@lru_cache(maxsize=32)
def _rows(law: Steps, alpha: float) -> tuple[RowSteps, ...]:
    return RowSteps(law.growth, law.shift, law.epsilon, tip(alpha)).all_rows
