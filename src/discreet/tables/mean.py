"""The mean of a magnitude per job: a published sum over a published count. The division costs nothing.

Half of the probability to fail bounds the sum, half the count, so the ends of a mean are the least and the largest
ratio of plausible sums and counts. Nobody is paid less than nothing or more than the declared cap, which is public. So
means and their ends are cut at both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from discreet.arrays import Vector
from discreet.ledger import Entry
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Number, exact
from discreet.privacy.split import divided
from discreet.release.offer import Check, Offer
from discreet.results import Result, both_ends, tidy_table
from discreet.tables.intervals.counts import refuse_level
from discreet.tables.prepared import TableAsk, TablesErrors
from discreet.tables.query import CountQuery
from discreet.tables.release import CountRelease
from discreet.tables.workload import together
from discreet.words.caveats import TWO, at_least

if TYPE_CHECKING:
    import pyarrow as pa

NOTE = "Means and the ends of their intervals are kept between 0 and the declared cap of {}, {:,}."


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MeanRelease(Result):
    """Published means with the sums and counts that they are ratios of.

    Attributes
    ----------
    sums, counts : the published tables; their intervals hold with half of the probability to fail each.
    level : the probability with which an interval of a mean holds the true one.
    """

    sums: CountRelease
    counts: CountRelease
    level: float
    guarantee: Guarantee
    entry: Entry | None = None
    name: str = ""

    @property
    def means(self) -> Vector:
        """Between 0 and the cap; NaN where no job was counted."""
        ratio = _ratio(self.sums.counts.astype(np.float64), self.counts.counts.astype(np.float64))
        return np.clip(ratio, 0.0, self._cap)

    @property
    def ends(self) -> tuple[Vector, Vector]:
        """Intervals of the means; the cap is the upper end where the count may be zero."""
        low = _ratio(self.sums.lower, self.counts.upper)
        with np.errstate(divide="ignore", invalid="ignore"):
            high = np.where(self.counts.lower > 0, self.sums.upper / self.counts.lower, np.inf)
        low, high = np.where(np.isnan(low), 0.0, low), np.where(np.isnan(high), np.inf, high)
        return np.clip(low, 0.0, self._cap), np.clip(high, 0.0, self._cap)

    @property
    def _cap(self) -> float:
        return float(self.sums.parameters["cap"])

    def to_arrow(self) -> pa.Table:
        """One row per mean: the attributes, `mean`, `lower`, `upper`, `sum`, `count`."""
        import pyarrow as pa

        table = self.sums.to_arrow().select([*self.sums.by, "sum"])
        means = self.means.ravel()
        table = table.append_column("mean", pa.array(means, mask=~np.isfinite(means)))
        for name, end in zip(("lower", "upper"), both_ends(*(end.ravel() for end in self.ends)), strict=True):
            table = table.append_column(name, end)
        table = table.append_column("count", pa.array(self.counts.counts.ravel()))
        return table.select([*self.sums.by, "mean", "lower", "upper", "sum", "count"])

    def tidy(self) -> pa.Table:
        """One row per mean, in the columns of `discreet.results.COLUMNS`."""
        table, by = self.to_arrow(), self.sums.by
        values = [map(str, table[name].to_pylist()) for name in by]
        return tidy_table(
            effect="mean",
            group=", ".join(by) or None,
            level=[", ".join(cell) for cell in zip(*values, strict=True)] if values else None,
            estimate=self.means.ravel(),
            lower=self.ends[0].ravel(),
            upper=self.ends[1].ravel(),
        )

    def __repr__(self) -> str:
        cells, d = self.sums.counts.shape
        what = f"{cells:,} x {d} means of {self.sums.magnitude} by {', '.join(self.sums.by) or 'no attribute'}"
        return f"<MeanRelease {what}: {self.guarantee.loss}>"

    def __str__(self) -> str:
        return f"{self!r}\n{at_least(TWO)} {self.guarantee}"

    @property
    def check(self) -> Check[TablesErrors]:
        """What was reported before the sums and counts were paid for."""
        return cast("Check[TablesErrors]", self.sums.check)


@dataclass(frozen=True, slots=True)
class MeanQuery:
    """A sum and a count of the same cells."""

    sums: CountQuery
    counts: CountQuery = field(repr=False)

    def check(
        self, *, epsilon: Number, split: Sequence[Number] | None = None, scale_share: Number = 0
    ) -> Check[TablesErrors]:
        """The price and the expected errors of both tables; reads and spends nothing."""
        return self.offer(epsilon=epsilon, split=split, scale_share=scale_share).check(self.sums.account.remaining)

    def offer(
        self,
        *,
        epsilon: Number,
        split: Sequence[Number] | None = None,
        scale_share: Number = 0,
        level: float = 0.95,
    ) -> Offer[Any, Any, tuple[CountRelease, ...]]:
        """Both tables as one offer; the arguments are those of `release`."""
        refuse_level(level)
        parts = []
        for query, share in zip((self.sums, self.counts), self._shares(epsilon, split), strict=True):
            asked: TableAsk = {"epsilon": share, "scale_share": scale_share}
            parts.append(query.offered(query.prepare(**asked), asked, level=(1 + level) / 2))
        return together(parts, {"kind": "mean", "tables": [dict(part.details) for part in parts]})

    def release(
        self,
        *,
        epsilon: Number,
        split: Sequence[Number] | None = None,
        scale_share: Number = 0,
        name: str | None = None,
        level: float = 0.95,
    ) -> MeanRelease:
        """Publish the sums, the counts and their ratios; `split` divides epsilon between the first two, evenly.

        `scale_share` is the part of each that makes intervals narrow.
        """
        offer = self.offer(epsilon=epsilon, split=split, scale_share=scale_share, level=level)
        released = self.sums.account.release(offer, self.sums.jobs, name=name)
        sums, counts = (table.of(released) for table in released.value)
        promise = sums.guarantee.noted(NOTE.format(self.sums.magnitude, self.sums.step))
        return MeanRelease(sums, counts, level, promise, released.entry, released.name)

    def _shares(self, epsilon: Number, split: Sequence[Number] | None) -> list[Fraction]:
        whole = exact(epsilon, name="epsilon")
        return [whole * share for share in divided(split, 2)]


def _ratio(sums: Vector, counts: Vector) -> Vector:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(counts > 0, sums / counts, np.nan))
