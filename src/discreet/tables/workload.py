"""Several tables in one release: one ledger line, an explicit split, and totals that add up.

The tables overlap in establishments, so their losses add (docs/proofs/composition.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.data.hierarchy import Hierarchy, covers
from discreet.data.jobs import Jobs
from discreet.noise.source import Source
from discreet.privacy.guarantee import Calibration
from discreet.privacy.losses import Number, exact, shown, total
from discreet.privacy.split import divided
from discreet.release.offer import Check, Offer
from discreet.tables.consistency import CLOSE, consistent, finest_of
from discreet.tables.derived import agreeing, source_of, sums_of
from discreet.tables.intervals.nested import narrowed
from discreet.tables.prepared import Drawn, Prepared, TableAsk, TableErrors, TablesErrors, write_counts
from discreet.tables.query import CountQuery
from discreet.tables.release import CountRelease
from discreet.tables.releases import CountReleases
from discreet.words.errors import DataError, Infeasible, PrivacyError
from discreet.words.faults import Argument, Phrase, Sentence

if TYPE_CHECKING:
    from discreet.tables.budget.division import BudgetAdvice, Measure
    from discreet.tables.cells import Cells


def agreed(
    queries: Sequence[CountQuery],
    ready: Sequence[Prepared],
    tables: Sequence[CountRelease],
    *,
    level: float,
    non_negative: bool = True,
) -> tuple[CountRelease, ...]:
    """Tables made to agree, with intervals that follow from all of them."""
    ends = narrowed(queries, ready, tables, level=level)
    sizes = [
        table.largest if part.sizes is not None and part.sizes.exponent <= CLOSE else None
        for part, table in zip(ready, tables, strict=True)
    ]
    return consistent(tables, [part.mechanism for part in ready], ends, sizes, non_negative=non_negative)


def completed(
    queries: Sequence[CountQuery],
    measured: Sequence[int],
    ready: Sequence[Prepared],
    drawn: Sequence[CountRelease],
    *,
    level: float,
    add_up: bool,
    non_negative: bool = True,
) -> tuple[CountRelease, ...]:
    """All tables that were asked for: those that were drawn, made to agree if `add_up`, and sums of them."""
    asked = [queries[i] for i in measured]
    tables = agreed(asked, ready, drawn, level=level, non_negative=non_negative) if add_up else tuple(drawn)
    found = dict(zip(measured, tables, strict=True))
    finest = finest_of([query.by for query in asked], asked[0].jobs.schema.hierarchies) if add_up else 0
    for i, query in enumerate(queries):
        if i not in found:
            table = derived(query, asked, ready, drawn, level=level)
            of = tables[source_of(query, asked, drawn)]
            found[i] = agreeing(table, tables[finest], of) if add_up else table
    return tuple(found[i] for i in range(len(queries)))


def derived(
    query: CountQuery,
    asked: Sequence[CountQuery],
    ready: Sequence[Prepared],
    drawn: Sequence[CountRelease],
    *,
    level: float,
) -> CountRelease:
    """A table that was not drawn: sums of the drawn one with the fewest counts of which it is a sum."""
    of = source_of(query, asked, drawn)
    bounded = asked[of].bounds_size(ready[of].mechanism)
    fine = drawn[of]
    fine = replace(fine, ends=asked[of].ends(ready[of], Drawn(fine.counts, fine.largest, fine.at_most)))
    return sums_of(fine, query, ready[of].mechanism, bounded=bounded, level=level)


def measured_tables(tables: Sequence[Sequence[str]], measure: object, hierarchies: Sequence[Hierarchy]) -> list[int]:
    """The numbers of the tables that are drawn; the others must be sums of them."""
    if measure is None:
        return list(range(len(tables)))
    if measure == "finest":
        return [finest_of(tables, hierarchies)]
    if isinstance(measure, str) or not isinstance(measure, Sequence):
        raise DataError(
            (Argument("measure", measure), " names no tables."),
            "It is 'finest', or lists some of the tables.",
            ("Use ", Argument("measure", "finest"), ", or leave it out to draw all."),
            about="measure",
        )
    asked = [frozenset((by,) if isinstance(by, str) else by) for by in measure]
    sets = [frozenset(by) for by in tables]
    unknown = next((by for by in asked if by not in sets), None)
    if unknown is not None or not asked:
        raise DataError(
            f"measure names the table by {', '.join(sorted(unknown or ())) or 'no attribute'}, which is not requested.",
            "It lists some of the tables.",
            "Add that table, or leave it out of measure.",
            about="measure",
        )
    chosen = [i for i, by in enumerate(sets) if by in asked]
    for by in tables:
        if not any(covers(tables[i], by, hierarchies) for i in chosen):
            raise DataError(
                f"The table by {', '.join(by)} is not drawn and is not a sum of a drawn table.",
                "A table follows from one that has its attributes, or levels below them in a declared hierarchy.",
                "Add it to measure, or declare the hierarchy.",
                about="measure",
            )
    return chosen


def prepared(queries: Sequence[CountQuery], asked: Sequence[TableAsk]) -> tuple[Prepared, ...]:
    """Each table with its share of the loss. If a share is too small, fewer tables may be enough."""
    try:
        return tuple(query.prepare(**part) for query, part in zip(queries, asked, strict=True))
    except Infeasible as error:
        if len(queries) > 1:
            whole = sum((exact(part["epsilon"], name="epsilon") for part in asked), Fraction(0))
            fewer = (
                f" This is a table's share of epsilon={shown(whole)}: give it a larger share in split, or draw fewer "
                f"of the {len(queries)} tables and add the others up: ",
                Argument("measure", "finest"),
                ", or those of greatest use.",
            )
            error.faults = tuple(replace(fault, remedy=(*_parts(fault.remedy), *fewer)) for fault in error.faults)
        raise


def _parts(sentence: Sentence) -> tuple[str | Phrase, ...]:
    return sentence if isinstance(sentence, tuple) else (sentence,)


def together(
    parts: Sequence[Offer[Jobs, Cells, CountRelease]], details: Mapping[str, Any]
) -> Offer[Jobs, tuple[Cells, ...], tuple[CountRelease, ...]]:
    """Tables of the same jobs as one offer, whose loss is the sum of theirs."""
    guarantee = replace(parts[0].guarantee, loss=total([part.guarantee.loss for part in parts]))

    def draw(readings: tuple[Cells, ...], source: Source) -> tuple[CountRelease, ...]:
        drawn = (part.draw(cells, source) for part, cells in zip(parts, readings, strict=True))
        return tuple(replace(table, guarantee=guarantee) for table in drawn)

    return Offer(
        guarantee=guarantee,
        details=details,
        expected=lambda: TablesErrors(tuple(part.check().expected for part in parts)),
        read=lambda jobs: tuple(part.read(jobs) for part in parts),
        draw=draw,
        write=write_counts,
    )


@dataclass(frozen=True, slots=True, repr=False)
class Workload:
    """Tables that are released together."""

    queries: tuple[CountQuery, ...]
    measured: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.measured:
            object.__setattr__(self, "measured", tuple(range(len(self.queries))))
        if not self.queries:
            raise PrivacyError(
                "A workload without tables was asked for.",
                "It has at least one.",
                "Name the attributes of each.",
                about="tables",
            )

    def __repr__(self) -> str:
        tables = "; ".join(", ".join(query.by) or "no attribute" for query in self.queries)
        return f"<Workload of {len(self.queries)} tables: {tables}>"

    def check(
        self,
        *,
        epsilon: Number,
        split: Sequence[Number] | None = None,
        delta: Number | None = None,
        calibration: Calibration = "tight",
        scale_share: Number = 0,
    ) -> tuple[Check[TableErrors], ...]:
        """The price and the expected error of each drawn table; reads and spends nothing."""
        return tuple(
            query.check(epsilon=share, delta=chance, calibration=calibration, scale_share=scale_share)
            for query, share, chance in self._shares(epsilon, split, delta)
        )

    def release(
        self,
        *,
        epsilon: Number,
        split: Sequence[Number] | None = None,
        delta: Number | None = None,
        calibration: Calibration = "tight",
        scale_share: Number = 0,
        name: str | None = None,
        level: float = 0.95,
        add_up: bool = False,
        non_negative: bool = True,
    ) -> CountReleases:
        """Publish all tables under one loss: a tuple of them, which has a promise, a table and files of its own.

        `split` gives each drawn table its share of `epsilon` (and `delta`), equal shares otherwise; `scale_share` is
        the part of each that makes intervals narrow. `add_up` makes all tables agree: weighted least squares, then
        non-negative integers; one table must have all attributes, or levels below them in a declared hierarchy. Without
        `non_negative` integers may be below zero, and totals near zero have no bias either.
        """
        offer = self.offer(
            epsilon=epsilon,
            split=split,
            delta=delta,
            calibration=calibration,
            scale_share=scale_share,
            level=level,
            add_up=add_up,
            non_negative=non_negative,
        )
        released = self.queries[0].account.release(offer, self.queries[0].jobs, name=name)
        return CountReleases(table.of(released) for table in released.value)

    def offer(
        self,
        *,
        epsilon: Number,
        split: Sequence[Number] | None = None,
        delta: Number | None = None,
        calibration: Calibration = "tight",
        scale_share: Number = 0,
        level: float = 0.95,
        add_up: bool = False,
        non_negative: bool = True,
    ) -> Offer[Jobs, tuple[Cells, ...], tuple[CountRelease, ...]]:
        """All tables as one offer; the arguments are those of `release`."""
        drawn = self._drawn
        says = {"add_up": "whether tables are made to agree", "non_negative": "whether they then stay above zero"}
        for name, value in {"add_up": add_up, "non_negative": non_negative}.items():
            if not isinstance(value, bool):
                raise DataError(
                    (Argument(name, value), " is neither true nor false."),
                    f"It says {says[name]}.",
                    ("Use ", Argument(name, True), "."),
                    about=name,
                )
        if add_up:
            finest_of([query.by for query in drawn], drawn[0].jobs.schema.hierarchies)
        asked = self.asked(epsilon, split, delta, calibration=calibration, scale_share=scale_share)
        ready = prepared(drawn, asked)
        parts = [
            query.offered(known, part, level=level) for query, known, part in zip(drawn, ready, asked, strict=True)
        ]
        details: dict[str, Any] = {
            "tables": [dict(part.details) for part in parts],
            "epsilons": [str(part.guarantee.loss) for part in parts],
        }
        others = [list(query.by) for i, query in enumerate(self.queries) if i not in self.measured]
        offer = together(parts, details | ({"derived": others} if others else {}))
        if not others and not add_up:
            return offer
        return offer.then(
            lambda tables: completed(
                self.queries, self.measured, ready, tables, level=level, add_up=add_up, non_negative=non_negative
            )
        )

    def advise(
        self,
        *,
        epsilon: Number,
        sizes: object = None,
        typical: Sequence[tuple[int, float, float]] | None = None,
        error: Measure = "absolute",
        add_up: bool = False,
        delta: Number | None = None,
        calibration: Calibration = "tight",
        scale_share: Number = 0,
    ) -> BudgetAdvice:
        """The split of epsilon with the least total error, and which tables to draw; reads and spends nothing.

        `sizes` is a public table (a file or a frame) with workplace attributes, `jobs` and, where known, `largest`: the
        workers of each cell's largest establishment. Without one, `typical` declares (cells, jobs of a cell, workers of
        its largest establishment) for each table. `error` is of all counts together, in jobs or relative to each.
        """
        from discreet.tables.budget.advice import advice_for

        asked = {"delta": delta, "calibration": calibration, "scale_share": scale_share}
        return advice_for(
            self.queries, epsilon=epsilon, sizes=sizes, typical=typical, measure=error, add_up=add_up, asked=asked
        )

    def asked(
        self,
        epsilon: Number,
        split: Sequence[Number] | None,
        delta: Number | None,
        *,
        calibration: Calibration,
        scale_share: Number,
    ) -> list[TableAsk]:
        """What is asked of each drawn table, with its share of the loss."""
        return [
            {"epsilon": share, "delta": chance, "calibration": calibration, "scale_share": scale_share}
            for _, share, chance in self._shares(epsilon, split, delta)
        ]

    @property
    def _drawn(self) -> tuple[CountQuery, ...]:
        return tuple(self.queries[i] for i in self.measured)

    def _shares(
        self, epsilon: Number, split: Sequence[Number] | None, delta: Number | None
    ) -> list[tuple[CountQuery, Fraction, Fraction | None]]:
        parts = divided(split, len(self.measured))
        whole = exact(epsilon, name="epsilon")
        chance = None if delta is None else exact(delta, name="delta")
        return [
            (query, whole * part, None if chance is None else chance * part)
            for query, part in zip(self._drawn, parts, strict=True)
        ]
