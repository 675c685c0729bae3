"""A question about counts: checked without reading confidential data, then released through the account.

A query says which attributes span the cells and which values are kept. `prepare` fixes what can be fixed without data
(mechanism, constants, price); `offer` says how the table is read and drawn, which the account does in that order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.data.hierarchy import covers
from discreet.data.jobs import Jobs
from discreet.data.schema import Label
from discreet.noise.source import Source
from discreet.privacy.guarantee import Calibration, Guarantee
from discreet.privacy.losses import Number, exact
from discreet.privacy.units import (
    BY_ESTABLISHMENTS,
    BY_WORKERS,
    WEAK,
    EstablishmentNodes,
    Establishments,
    Workers,
    is_weak,
)
from discreet.release.account import Account
from discreet.release.offer import Check, Offer
from discreet.tables.amounts import amounts_hidden, of_amounts, refuse_amounts
from discreet.tables.attributes import refuse_existence, spanned, unlisted, values_kept
from discreet.tables.calibration import above_zero, baseline, basis_of, part, refuse_extremes, refuse_overflow
from discreet.tables.expected import ByLargest, Kinds
from discreet.tables.intervals.counts import EndsOfLevel
from discreet.tables.intervals.widths import tradeoff, widths
from discreet.tables.mechanisms.defaults import default_of, paid_before
from discreet.tables.mechanisms.mechanism import Mechanism
from discreet.tables.mechanisms.registry import OF_AMOUNTS, named
from discreet.tables.prepared import Drawn, Prepared, TableAsk, TableErrors, write_counts
from discreet.tables.release import CountRelease
from discreet.tables.sizes import NOTE, share_of, sizes_for
from discreet.words.errors import DataError, PrivacyError
from discreet.words.faults import WHOLE, Capital, Key

if TYPE_CHECKING:
    from discreet.tables.cells import Cells

MOST_COUNTS = 50_000_000
"""Counts of one table that fit in memory with their noise: about 2 GiB."""


@dataclass(frozen=True, slots=True)
class CountQuery:
    """Counts of jobs, or sums of a magnitude, by workplace and worker attributes."""

    jobs: Jobs = field(repr=False)
    account: Account = field(repr=False)
    workplace_by: tuple[str, ...]
    worker_by: tuple[str, ...]
    where: Mapping[str, Any] = field(default_factory=dict)
    magnitude: str | None = None
    establishments: bool = False

    @property
    def attributes(self) -> tuple[str, ...]:
        """All columns that the query names."""
        return (*self.workplace_by, *self.worker_by, *self.where)

    @classmethod
    def of(
        cls,
        jobs: Jobs,
        account: Account,
        *,
        by: str | Sequence[str],
        where: Mapping[str, Label | Sequence[Label]] | None = None,
        magnitude: str | None = None,
        establishments: bool = False,
    ) -> CountQuery:
        """The query for the attributes `by`, keeping the values in `where`; of jobs, or of a `magnitude`.

        With `establishments` their number, which is public, is also published.
        """
        schema = jobs.schema
        names, kept = spanned(schema, by), values_kept(schema, where)
        if magnitude is not None:
            refuse_amounts(schema, magnitude, account.unit)
        if establishments:
            refuse_existence(account.unit, listed=jobs.workplaces is not None)
        return cls(
            jobs=jobs,
            account=account,
            workplace_by=tuple(name for name in names if name in schema.workplace_attributes),
            worker_by=tuple(name for name in names if name in schema.worker_attributes),
            where=kept,
            magnitude=magnitude,
            establishments=establishments,
        )

    @property
    def step(self) -> int:
        """The most that one worker adds: 1 to a count, the cap to a sum."""
        return 1 if self.magnitude is None else int(self.jobs.schema.magnitudes[self.magnitude].cap)

    @property
    def levels(self) -> int:
        """How many counts each workplace cell has: all combinations of the worker attributes."""
        domains = self.jobs.schema.worker_attributes
        return prod(len(self.where.get(name, domains[name])) for name in self.worker_by)

    @property
    def by(self) -> tuple[str, ...]:
        """The attributes that span the table, those of workplaces first."""
        return (*self.workplace_by, *self.worker_by)

    def nests(self, other: CountQuery) -> bool:
        """Whether the other's workplace cells consist of cells of this one, which are smaller."""
        chains = self.jobs.schema.hierarchies
        there = covers(self.workplace_by, other.workplace_by, chains)
        return there and not covers(other.workplace_by, self.workplace_by, chains)

    @property
    def concerns_workers(self) -> bool:
        """Whether the counts are of workers of some kind, not of all workers of an establishment."""
        return bool(self.worker_by) or any(name in self.jobs.schema.worker_attributes for name in self.where)

    def prepare(
        self,
        *,
        epsilon: Number,
        delta: Number | None = None,
        mechanism: str | None = None,
        calibration: Calibration = "tight",
        scale_share: Number = 0,
        name: str | None = None,
    ) -> Prepared:
        """Choose and calibrate the mechanism for the whole table's loss; raises `Infeasible` with the inequality.

        A share `scale_share` of epsilon pays for a noisy size of every cell's largest establishment, which makes
        intervals narrow; the rest pays for the counts. A release of this `name` that was paid for keeps its mechanism.
        """
        unit, d = self.account.unit, self.levels
        if d > MOST_COUNTS:
            words = f"The table has {d:,} counts in every workplace cell; at most {MOST_COUNTS:,} fit in memory."
            raise DataError(words, remedy="Use fewer worker attributes, or several tables.", about="by")
        whole = above_zero(epsilon)
        for_sizes = Fraction(0) if isinstance(scale_share, int) and not scale_share else share_of(scale_share, whole)
        whole -= for_sizes
        refuse_extremes(unit, whole)
        kind = self._kind(mechanism, name, whole, plain=delta is not None or str(calibration) != "tight")
        if isinstance(unit, Establishments):
            shares = 1 if kind.vector else d
            if not kind.strong_by_kind and unit.strength == "strong" and self.concerns_workers:
                raise PrivacyError(
                    (
                        f"{kind.name} on counts of workers of some kind gives the weak definition only, and this ",
                        WHOLE,
                        " promises the strong one.",
                    ),
                    remedy=("Leave ", Key("mechanism"), " out, or use ", WEAK, "."),
                    about="mechanism",
                )
            built = part(
                kind,
                unit=unit,
                epsilon=whole / shares,
                delta=None if delta is None else exact(delta, name="delta") / shares,
                calibration=calibration,
                cells=d if kind.vector else 1,
                within=whole / (whole + for_sizes),
                counts=shares,
            )
            if not kind.hides_establishments:
                raise PrivacyError(
                    (f"{kind.name} does not give employer-employee privacy, which this ", WHOLE, " promises."),
                    remedy=("Leave ", Key("mechanism"), " out, or ", BY_WORKERS, "."),
                    about="mechanism",
                )
        elif isinstance(unit, Workers | EstablishmentNodes):
            kept = [name for name in self.where if name in self.jobs.schema.workplace_attributes]
            if self.jobs.workplaces is None and (self.workplace_by or kept):
                raise unlisted(unit, self.workplace_by, kept)
            shares = 1
            built = baseline(unit, kind, self._default(whole), epsilon=whole, delta=delta, calibration=calibration)
        else:
            raise PrivacyError(
                f"Counts of jobs cannot be released under {unit.key}.",
                "They protect establishments or workers.",
                (Capital(BY_ESTABLISHMENTS), "."),
                about="unit",
            )
        if self.magnitude is not None:
            built = of_amounts(built, self.step, weakly=self.concerns_workers)
        refuse_overflow(built, unit=unit, kinds=d, within=whole / (whole + for_sizes))
        sizes = sizes_for(built, for_sizes) if for_sizes else None
        notes = (*self.jobs.limits(unit), *(() if sizes is None else (NOTE.format(sizes.loss),)))
        loss = built.loss * shares if sizes is None else built.loss * shares + sizes.loss
        guarantee = Guarantee(
            unit, loss, built.calibration, basis_of(built), built.proof, notes, private=self.account.private
        )
        if self.magnitude is not None:
            guarantee = amounts_hidden(guarantee, self.magnitude, self.jobs.schema.magnitudes[self.magnitude])
        told = {} if sizes is None else {"scale_share": str(exact(scale_share, name="scale_share"))}
        return Prepared(built, guarantee, self._parameters(built) | told, sizes)

    def check(
        self,
        *,
        epsilon: Number,
        delta: Number | None = None,
        mechanism: str | None = None,
        calibration: Calibration = "tight",
        scale_share: Number = 0,
        level: float = 0.95,
    ) -> Check[TableErrors]:
        """Cost, feasibility, expected error and width, without reading confidential data or spending anything."""
        asked = TableAsk(
            epsilon=epsilon, delta=delta, mechanism=mechanism, calibration=calibration, scale_share=scale_share
        )
        return self.offer(**asked, level=level).check(self.account.remaining)

    def offer(self, *, level: float = 0.95, **asked: Unpack[TableAsk]) -> Offer[Jobs, Cells, CountRelease]:
        """The table as an offer; the arguments are those of `release`."""
        return self.offered(self.prepare(**asked), asked, level=level)

    def offered(self, ready: Prepared, asked: TableAsk, *, level: float) -> Offer[Jobs, Cells, CountRelease]:
        """The offer of a prepared table, for the request `asked`. Intervals are computed once on zeros."""
        zeros = np.zeros((1, self.levels), dtype=np.int64)
        self.ends(ready, Drawn(zeros, zeros[:, 0] if ready.sizes else None))(level)
        return Offer(
            guarantee=ready.guarantee,
            details=dict(ready.parameters),
            expected=lambda: TableErrors(
                mechanism=f"{ready.mechanism.name} ({ready.mechanism.calibration})",
                cells_per_workplace_cell=self.levels,
                magnitude=self.magnitude,
                error=self.expected_by_largest(ready),
                widths=widths(self, ready, level=level),
                tradeoff=tradeoff(self, asked, level=level),
            ),
            read=lambda jobs: replace(self, jobs=jobs).statistics(ready),
            draw=lambda cells, source: self._wrap(ready, cells, self.drawn(ready, cells, source), level=level),
            write=write_counts,
        )

    def expected_by_largest(self, ready: Prepared) -> ByLargest:
        """Expected absolute error of one count, by the size of the cell's largest establishment."""
        return ByLargest.of(ready.mechanism, self.kinds)

    @property
    def kinds(self) -> Kinds:
        """How the table divides workers, on which its expected error depends."""
        return Kinds(
            self.levels, self.concerns_workers, any(n in self.jobs.schema.worker_attributes for n in self.where)
        )

    def release(
        self,
        *,
        epsilon: Number,
        delta: Number | None = None,
        mechanism: str | None = None,
        calibration: Calibration = "tight",
        scale_share: Number = 0,
        name: str | None = None,
        level: float = 0.95,
    ) -> CountRelease:
        """Publish the table: exact integer noise, intervals of probability `level`, one ledger line.

        `epsilon` and `delta` are the loss of the whole table, of which `scale_share` makes intervals narrow. `name`
        makes the release unique and resumable.
        """
        asked = TableAsk(
            epsilon=epsilon, delta=delta, mechanism=mechanism, calibration=calibration, scale_share=scale_share
        )
        released = self.account.release(self.offer(**asked | {"name": name}, level=level), self.jobs, name=name)
        return released.value.of(released)

    def statistics(self, ready: Prepared, *, second_total: bool = False) -> Cells:
        """The confidential aggregates that the mechanism needs, in one pass of the engine.

        `second_total` is for a table of all workers of the same cells, which then needs no pass of its own. A table
        without a single cell is refused: there would be nothing to pay for.
        """
        from discreet.tables.cells import cell_statistics, refuse_absent

        theta = ready.mechanism.theta
        found = cell_statistics(
            self.jobs,
            workplace_by=self.workplace_by,
            worker_by=self.worker_by,
            where=self.where,
            largest_establishment=theta,
            most_counts=MOST_COUNTS,
            magnitude=self.magnitude,
            unions=ready.mechanism.by_unions,
            second=ready.mechanism.by_pairs,
            second_total=second_total,
        )
        refuse_absent(self.jobs, self.where)
        if not len(found.counts):
            kept = ", ".join(f"{name} in {list(values)}" for name, values in self.where.items()) or "every cell"
            raise DataError(
                f"where keeps {kept}, and no establishment lies there.",
                "Which establishments exist is public, so there is no count to protect.",
                "Keep values that go together.",
                about="where",
            )
        return found

    def drawn(self, ready: Prepared, cells: Cells, source: Source) -> Drawn:
        """All that the charge paid for."""
        counts, sizes = self._draw(ready, cells, source), ready.sizes
        return Drawn(counts, None if sizes is None else sizes.draw(cells.largest_total, cells.largest_total, source))

    def _draw(self, ready: Prepared, cells: Cells, source: Source) -> Integers:
        """Noisy counts, shape (workplace cells, levels)."""
        mechanism = ready.mechanism
        if cells.counts.shape[1] != self.levels:
            raise PrivacyError(
                f"The table has {cells.counts.shape[1]} counts in a workplace cell and {self.levels} were paid for.",
                "Nothing was drawn.",
                "Report this as a fault of discreet.",
                about="by",
            )
        if mechanism.by_unions:
            return mechanism.draw(cells.counts, cast("Integers", cells.unions), source)
        if mechanism.by_kinds:
            return mechanism.draw(cells.counts, np.column_stack([cells.largest, cells.largest_total]), source)
        if mechanism.joint:
            return mechanism.draw(cells.counts, cells.largest_total, source)
        hidden = self._hidden(cells)
        return mechanism.draw(cells.counts, cells.pairs(hidden) if mechanism.by_pairs else hidden, source)

    def _wrap(self, ready: Prepared, cells: Cells, published: Drawn, *, level: float) -> CountRelease:
        """The public table: from here on nothing confidential is left."""
        ends = self.ends(ready, published)
        lower, upper = ends(level)
        return CountRelease(
            keys=cells.keys,
            worker_by=self.worker_by,
            levels=cells.levels,
            counts=published.counts,
            lower=lower,
            upper=upper,
            largest=published.largest,
            at_most=published.at_most,
            level=level,
            guarantee=ready.guarantee,
            parameters=ready.parameters,
            lineage=cells.lineage,
            magnitude=self.magnitude,
            establishments=cells.establishments if self.establishments else None,
            ends=ends,
        )

    def ends(self, ready: Prepared, published: Drawn) -> EndsOfLevel:
        """The ends of intervals of any level; nothing of the data is kept."""
        bounded, (counts, largest, at_most) = self.bounds_size(ready.mechanism), published
        return EndsOfLevel(counts, ready.mechanism, bounded, largest, ready.sizes, at_most)

    def _kind(self, mechanism: str | None, name: str | None, epsilon: Fraction, *, plain: bool) -> type[Mechanism]:
        """The mechanism of this name, or the one that a release called `name` was paid for with, or the best."""
        known = paid_before(self.account, name) if mechanism is None else mechanism
        return self._default(epsilon, plain=plain) if known is None else named(known)

    def _default(self, epsilon: Fraction, *, plain: bool = False) -> type[Mechanism]:
        if self.magnitude is not None:
            return OF_AMOUNTS
        return default_of(self.account.unit, epsilon, cells=self.levels, some=self.concerns_workers, plain=plain)

    def _hidden(self, cells: Cells) -> Integers:
        """The contribution that the definition says must be hidden.

        Strong: an establishment may grow by alpha times its whole workforce, all of it in one cell. Weak: by alpha
        times what it has in the cell.
        """
        unit = self.account.unit
        strong = isinstance(unit, Establishments) and not is_weak(unit.strength)
        if strong and self.concerns_workers:
            return np.broadcast_to(cells.largest_total[:, None], cells.counts.shape)
        return cells.largest

    def bounds_size(self, mechanism: Mechanism) -> bool:
        """Whether the count, or for joint noise the sum over all levels, is at least the size that sets the noise."""
        unit = self.account.unit
        if not self.concerns_workers or (isinstance(unit, Establishments) and is_weak(unit.strength)):
            return True
        filtered = any(name in self.jobs.schema.worker_attributes for name in self.where)
        return mechanism.joint and not filtered

    def bounded(self, ready: Prepared, table: CountRelease, at_most: Vector | None) -> CountRelease:
        """The table with intervals that follow from a public bound of each cell's largest establishment, too."""
        if at_most is None:
            return table
        ends = self.ends(ready, Drawn(table.counts, table.largest, at_most))
        lower, upper = ends(table.level)
        return replace(table, lower=lower, upper=upper, at_most=at_most, ends=ends)

    def counts_everyone(self, mechanism: Mechanism) -> bool:
        """Whether the counts of a workplace cell are of all its workers and so bound its largest establishment."""
        whole = isinstance(self.account.unit, Establishments) and not self.kinds.filtered
        return whole and (mechanism.joint or not self.worker_by)

    def _parameters(self, mechanism: Mechanism) -> dict[str, Any]:
        return {
            "by": [*self.workplace_by, *self.worker_by],
            "where": {name: list(values.declared) for name, values in self.where.items()},
            "mechanism": mechanism.name,
            "calibration": mechanism.calibration,
            "unit": self.account.unit.key,
            "levels": self.levels,
            **({} if self.magnitude is None else {"of": self.magnitude, "cap": self.step}),
            **({"establishments": True} if self.establishments else {}),
        }
