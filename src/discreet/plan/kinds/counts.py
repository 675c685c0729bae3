"""Releases of job counts: their queries, prices and promises, fixed without confidential data, and their files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.data.hierarchy import covers
from discreet.data.jobs import Jobs
from discreet.data.lineage import merged
from discreet.ledger import Dates, Entry
from discreet.pages.page import slug
from discreet.plan import rules
from discreet.plan.agency import PublicTable, refuse_unmatched
from discreet.plan.comparison import compare, foreseen
from discreet.plan.confidential import Confidential
from discreet.plan.file import PlanSource
from discreet.plan.kinds.alarms import (
    SAME,
    AlarmStep,
    EarlierOf,
    early_of,
    no_table,
    refuse_unlike,
    refuse_unwritten,
    refuse_value,
)
from discreet.plan.kinds.kind import Division, Given, PlannedRelease, ReleaseKind
from discreet.plan.kinds.numbers import ANEW, EarlierTable, Numbers, cells_of, compared, numbers_of_earlier
from discreet.plan.kinds.of_jobs import PlannedTables
from discreet.plan.kinds.recomputed import CountsAgain, Recomputed
from discreet.plan.outputs import basic, hash_of, noise, write_parents, write_release
from discreet.plan.readers import cut, drawn_table, ruled, shown_tables
from discreet.plan.shape import AlarmsSection, Count, Counts, Form, Sum, Sums
from discreet.plan.sheets import labels_of, refuse_labels, refuse_long
from discreet.plan.sizes import Expected, PublicSizes, TableCheck
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import total
from discreet.privacy.units import EstablishmentNodes
from discreet.release.account import Account
from discreet.release.offer import Offer
from discreet.report.belief import MOST_TABLES
from discreet.report.release import Results, TableOfCounts
from discreet.tables.attributes import refuse_shrinking
from discreet.tables.cells import Cells
from discreet.tables.consistency import finest_of
from discreet.tables.derived import agreeing, bounds_sums, source_of
from discreet.tables.intervals.widths import told_advice
from discreet.tables.likelihood import beliefs_after
from discreet.tables.mechanisms.defaults import chosen_before
from discreet.tables.prepared import Prepared, TableAsk
from discreet.tables.quality import MEANING
from discreet.tables.query import CountQuery
from discreet.tables.release import CountRelease
from discreet.tables.workload import Workload, agreed, derived, measured_tables, prepared, together
from discreet.words.cases import case_of
from discreet.words.errors import DataError
from discreet.words.later import Later

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT_ROUNDING = 5
ONE_EACH = "The public sizes do not include the largest establishments, so each cell counts as if it were a single one."
COLUMNS = {
    "lower": "lower end of the interval; empty where there is none",
    "upper": "upper end of the interval; empty where there is none",
    "quality": MEANING,
}
EXISTING = {"establishments": "establishments of the workplace cell, which are public: without noise"}
AT_MOST = {"at_most": "most workers of an establishment of the cell by public sizes; intervals hold if it is true"}
LARGEST = {"largest": "size of the cell's largest establishment, with noise of its own; in the research form"}

NO_ENDS = "Sums of drawn tables without intervals, but for sums of one number: by {}."


@dataclass(frozen=True, slots=True)
class PlannedCounts(PlannedTables):
    """One release of counts, ready to be priced, read and drawn.

    Attributes
    ----------
    asked : what is asked of each table.
    """

    source: PlanSource
    release: Count | Counts
    queries: tuple[CountQuery, ...]
    asked: tuple[TableAsk, ...]
    ready: tuple[Prepared, ...]
    guarantee: Guarantee
    details: dict[str, Any]
    derived: tuple[CountQuery, ...] = ()
    measured: tuple[int, ...] = (0,)
    beside: PublicTable | None = None

    @property
    def folders(self) -> tuple[str, ...]:
        """The place of each drawn table in the release's folder."""
        return tuple(self._every_folder[i] for i in self.measured)

    @property
    def derived_folders(self) -> tuple[str, ...]:
        """The place of each table that is a sum of drawn ones."""
        return tuple(folder for i, folder in enumerate(self._every_folder) if i not in self.measured)

    @property
    def _every_folder(self) -> tuple[str, ...]:
        """A single table is at the top, others by number and attributes."""
        tables = enumerate(self.release.every_table, start=1)
        return tuple(f"{i}-{slug(' '.join(by) or 'total')}" for i, by in tables) if self.several else ("",)

    @property
    def several(self) -> bool:
        """Whether it may have several tables."""
        return case_of(self.release.kind, {"count": False, "sum": False, "counts": True, "sums": True})

    @property
    def places(self) -> list[tuple[str, list[str]]]:
        """The place of every table, drawn ones first, with its attributes."""
        asked = [*zip(self.folders, self.queries, strict=True), *zip(self.derived_folders, self.derived, strict=True)]
        return [(folder, list(query.by)) for folder, query in asked]

    @property
    def used(self) -> set[str]:
        """The attributes that its tables rest on."""
        tables = {name for query in (*self.queries, *self.derived) for name in query.by}
        return tables | {*self.release.where}

    @property
    def rounding(self) -> int:
        if self.release.round_to is not None:
            return self.release.round_to
        if self.queries[0].magnitude is not None:
            return 1
        return 1 if self.release.add_up else DEFAULT_ROUNDING

    @property
    def columns(self) -> dict[str, str]:
        """What each column of the published tables is."""
        attributes = {name: "attribute" for _, by in self.places for name in by}
        of = self.queries[0].magnitude
        steps = rules.rounded_to(self.release.round_to)
        jobs = {"count": f"jobs, as published{steps}"} if of is None else {"sum": f"{of}, as published{steps}"}
        beside = EXISTING if self.release.establishments else {}
        told = {"quality": COLUMNS["quality"] + rules.meaning(self.release.suppress)}
        return (
            attributes | jobs | COLUMNS | told | beside | (LARGEST if any(ready.sizes for ready in self.ready) else {})
        )

    @property
    def times(self) -> int:
        return 1

    @property
    def dates(self) -> Dates:
        return Dates(self.source.tables.data.period)

    @property
    def reads_quarters(self) -> bool:
        return False

    @property
    def jobs(self) -> Jobs:
        return self.queries[0].jobs

    def error_beside(self, found: PublicTable) -> tuple[PublicSizes | None, Expected | None]:
        if found.place not in self.folders:
            return None, None
        number = self.folders.index(found.place)
        query, ready = self.queries[number], self.ready[number]
        sizes = PublicSizes.stated(found.table, found.numbers[0], by=query.workplace_by)
        return sizes, None if sizes is None else sizes.expected(query, ready, level=float(self.release.level))

    def expected(self, sizes: PublicSizes | None) -> None:
        return None

    def tables(self, sizes: PublicSizes | None) -> Sequence[TableCheck]:
        """The price and the expected error of each table, computed when somebody looks."""
        return Later(partial(self._tables, sizes))

    def _tables(self, sizes: PublicSizes | None) -> tuple[TableCheck, ...]:
        found, level = [], float(self.release.level)
        for query, ready, part in zip(self.queries, self.ready, self._parts(), strict=True):
            known = sizes is not None and query.magnitude is None
            expected = sizes.expected(query, ready, level=level) if known and sizes is not None else None
            whole = sizes is not None and sizes.is_bound and expected is not None and expected.is_bound
            jobs = None if sizes is None else sizes.jobs(query)
            ahead = None if jobs is None else foreseen(query, ready, jobs)
            beside = [] if ahead is None else [ahead.told]
            errors = part.check().expected
            notes = (*self._notes(query, ready), *([ONE_EACH] if whole else []), *beside, *told_advice(errors.tradeoff))
            table = TableCheck(query.by, part.guarantee.loss, errors, expected, notes)
            if self.release.non_negative and ahead is not None:
                value = "count" if query.magnitude is None else "sum"
                table = replace(table, cautions=rules.cut_at_zero(self.release.name, query.by, value, ahead.below))
            found.append(table)
        if open_ended := self._without_ends():
            told = "; ".join(", ".join(by) or "nothing" for by in open_ended)
            found[0] = replace(found[0], notes=(*found[0].notes, NO_ENDS.format(told)))
        return tuple(found)

    def _without_ends(self) -> list[tuple[str, ...]]:
        """The tables that are sums of drawn ones whose noise does not bound that of a sum."""
        if not self.derived:
            return []
        chains = self.queries[0].jobs.schema.hierarchies
        able = [
            query.by
            for query, ready in zip(self.queries, self.ready, strict=True)
            if query.levels == 1
            and query.bounds_size(ready.mechanism)
            and bounds_sums(ready.mechanism, level=float(self.release.level))
        ]
        return [query.by for query in self.derived if not any(covers(by, query.by, chains) for by in able)]

    def checked(self, data: Confidential) -> Jobs:
        return data.jobs()

    def announce(self, data: Confidential) -> None:
        for query, ready in zip(self.queries, self.ready, strict=True):
            data.expect(query, ready)

    def offer(self, data: Confidential) -> Offer[None, Any, Any]:
        """All tables as one offer about these data, which writes the files of the release."""

        def read(nothing: None) -> tuple[Cells, ...]:
            found = tuple(data.statistics(query, ready) for query, ready in zip(self.queries, self.ready, strict=True))
            refuse_long(self.source, [cells.counts.size for cells in found])
            refuse_labels(self.source, labels_of(found))
            if self.beside is not None:
                kinds = self.queries[0].jobs.schema.worker_attributes
                refuse_unmatched(self.beside, [(cells.keys, cells.lineage) for cells in found], kinds)
            return found

        tables = together(self._parts(), self.details)
        return Offer(tables.guarantee, tables.details, tables.expected, read, tables.draw, self._write)

    def _parts(self) -> list[Offer[Jobs, Cells, CountRelease]]:
        """Each table as an offer."""
        return [
            query.offered(ready, asked, level=float(self.release.level))
            for query, ready, asked in zip(self.queries, self.ready, self.asked, strict=True)
        ]

    def _write(self, tables: Sequence[CountRelease], guarantee: Guarantee, entry: Entry, folder: Path) -> None:
        """Write every file of the release into `folder`."""
        public, _ = PublicSizes.of(self.source)
        tables = [replace(table, guarantee=guarantee) for table in tables]
        if public is not None and self.queries[0].magnitude is None:
            tables = [
                query.bounded(ready, table, public.at_most(table.keys))
                for query, ready, table in zip(self.queries, self.ready, tables, strict=True)
            ]
        bounded = any(table.at_most is not None for table in tables)
        labels = self.source.tables.data.labels
        forms: dict[str, dict[Form, Any]] = {}
        tables = [*tables, *self.sums(tables)]
        for (place, _), table, moved in zip(self.places, tables, self.improved(tables), strict=True):
            drawn = table.to_arrow()
            simple = self.basic(moved, labels, drawn if moved.keys is table.keys else None)
            forms[place] = {"research": drawn, "basic": simple}
        if self.several:
            levels = self.queries[0].jobs.schema.hierarchy
            write_parents(folder, merged(table.lineage for table in tables), levels, self.source.output.formats)
        about = [
            {**table, "noise": noise(ready)} for table, ready in zip(self.details["tables"], self.ready, strict=True)
        ]
        write_release(
            folder,
            forms,
            self.source.output,
            guarantee=guarantee,
            entry=entry,
            parameters={**self.details, "tables": about},
            columns=self.columns | (AT_MOST if bounded else {}),
            beside=self.beside,
        )

    def results(self, folder: Path) -> Results:
        """What the report says, from the published files."""
        found = []
        for number, (query, ready) in enumerate(zip(self.queries, self.ready, strict=True)):
            table = drawn_table(self, folder, number)
            found.append(
                TableOfCounts(
                    table=table,
                    mechanism=f"{ready.mechanism.name} ({ready.mechanism.calibration})",
                    loss=ready.guarantee.loss,
                    expected=query.expected_by_largest(ready),
                    notes=self._notes(query, ready),
                    comparison=compare(table, query, ready, stratum=self.release.stratum),
                    sized=ready.sizes is not None,
                    beliefs=beliefs_after(query, ready) if number < MOST_TABLES and query.magnitude is None else None,
                )
            )
        shown = shown_tables(self, folder)
        return Results(counts=found, shown=shown, ruled=ruled(self, shown), flagged=cut(self, [t.table for t in found]))

    def _notes(self, query: CountQuery, ready: Prepared) -> tuple[str, ...]:
        """Notes that a reader of the expected errors needs."""
        told, unit, pairs = query.expected_by_largest(ready), query.account.unit, ready.mechanism.by_pairs
        alone = "By the largest establishment, errors are of a cell without others: "
        sums = "; ".join(", ".join(other.by) or "nothing" for other in self.derived)
        notes = {
            rules.BY_COUNTS: self.details["add_up"] and ready.sizes is None and query is self.queries[0],
            f"Not drawn, but sums of drawn tables, for nothing: by {sums}.": bool(sums) and query is self.queries[0],
            f"Errors are of counts before they are rounded to multiples of {self.rounding}.": self.rounding > 1
            and "research" not in self.source.output.forms,
            alone + "log-laplace multiplies, so the error grows with the count itself.": case_of(
                told.follows, {"count": True, "largest": False, "left out": False, "nothing": False}
            ),
            "An error marked at most depends on how workers divide into kinds, which is confidential.": told.at_most
            and (query.kinds.some or not pairs),
            "An error marked at most depends on the second largest establishment, which is confidential: it is less "
            "if one dominates.": told.at_most and pairs,
            "If a cell has counts of several kinds of workers, the error is their mean.": query.levels > 1
            and (
                told.at_most
                or case_of(told.follows, {"count": True, "left out": True, "largest": False, "nothing": False})
            ),
        }
        if isinstance(unit, EstablishmentNodes):
            left_out = f"any other one that is left out because it has more than {unit.theta:,} workers adds its jobs"
            notes[f"{alone}{left_out} to the error."] = True
        return tuple(note for note, applies in notes.items() if applies)

    def basic(self, moved: CountRelease, labels: Mapping[str, Mapping[str, str]], cells: Any = None) -> pa.Table:
        """The form for readers: labels, rounded, without what rules leave out; `cells` has its attributes' columns."""
        table = basic(moved.to_arrow(cells=cells), labels, round_to=self.rounding)
        value = "count" if self.queries[0].magnitude is None else "sum"
        return rules.without_suppressed(table, self.release.suppress, {"quality": (value, "lower", "upper")})

    def sums(self, drawn: Sequence[CountRelease]) -> list[CountRelease]:
        """The tables that are sums of those that were drawn."""
        level = float(self.release.level)
        return [derived(query, self.queries, self.ready, drawn, level=level) for query in self.derived]

    def differences(self, folder: Path, earlier: PlannedRelease, before: Path) -> list[str]:
        words = []
        now, then = (each.results(place).counts for each, place in ((self, folder), (earlier, before)))
        for one, other in zip(now, then, strict=False):
            table, old = one.table, other.table
            same = table.keys == old.keys and table.levels == old.levels
            moved = np.abs(table.counts - old.counts) if same else None
            by = ", ".join(table.by) or "nothing"
            words.append(
                f"By {by}: the cells are not the same."
                if moved is None
                else f"By {by}: {int((moved > 0).sum()):,} of {moved.size:,} {table.value}s differ, by "
                f"{moved.mean():.3g} on average and {int(moved.max(initial=0)):,} at most; their sum went from "
                f"{int(old.counts.sum()):,} to {int(table.counts.sum()):,}. {ANEW}"
            )
        return words

    def alarm(self, asked: AlarmsSection, others: Mapping[str, PlannedRelease], earlier: EarlierOf) -> AlarmStep:
        refuse_unwritten(self.source.output.forms)
        name = early_of(asked)
        by = self._compared(asked)
        if asked.folder is not None:
            known = earlier(asked)
            refuse_unlike(known.about, self._told(by), name)
            return AlarmStep(
                asked, by, lambda at: compared(self._of_earlier(known, by), self._numbers(at / asked.late, by)), known
            )
        before = others[name]
        if not isinstance(before, PlannedCounts):
            raise no_table(name, "early")
        refuse_unlike(before._told(before._compared(asked, by)), self._told(by), name)
        return AlarmStep(
            asked, by, lambda at: compared(before._numbers(at / name, by), self._numbers(at / asked.late, by))
        )

    def _compared(self, asked: AlarmsSection, like: Sequence[str] | None = None) -> tuple[str, ...]:
        """The attributes of the table that is compared; of the early one they are `like` those of the late one."""
        refuse_value(asked.value, ("count" if self.queries[0].magnitude is None else "sum",))
        tables = [tuple(by) for _, by in self.places]
        wanted = asked.by if like is None else like
        if wanted is None and len(tables) == 1:
            return tables[0]
        chosen = [by for by in tables if wanted is not None and {*by} == {*wanted}]
        if not chosen:
            listed = "; ".join(", ".join(by) or "nothing" for by in tables)
            raise DataError(
                f"{self.release.name!r} has no table by {', '.join(wanted or ()) or 'nothing that is named'}.",
                f"It has tables by: {listed}.",
                "Name the attributes of one of them." if like is None else "Name a release with this table.",
                about="by" if like is None else "early",
            )
        return chosen[0]

    def _told(self, by: tuple[str, ...]) -> dict[str, Any]:
        """The ledger's facts about a table: whose jobs it counts, and whom it protects."""
        tables, drawn = self.details["tables"], [tuple(query.by) for query in self.queries]
        if by in drawn:
            return dict(tables[drawn.index(by)])
        return {**{key: tables[0].get(key) for key in SAME}, "by": list(by), "levels": None}

    def _numbers(self, folder: Path, by: tuple[str, ...]) -> Numbers:
        """The published numbers of a table; none where a rule of the agency leaves one out."""
        drawn = [drawn_table(self, folder, number) for number in range(len(self.queries))]
        found = next(each for each in (*drawn, *self.sums(drawn)) if each.by == by)
        assert found.ends is not None  # of the research form
        values = found.counts.ravel().astype(np.float64)
        if self.release.suppress is not None:
            names = [tuple(each) for _, each in self.places]
            values[shown_tables(self, folder)[names.index(by)].left_out.ravel()] = np.nan
        return Numbers(cells_of(found.to_arrow(), by), values, found.ends)

    def _of_earlier(self, known: EarlierTable, by: tuple[str, ...]) -> Numbers:
        """The numbers of another plan's table, with the ends that this release's level and query give them."""
        query = self.queries[[tuple(each.by) for each in self.queries].index(by)]
        level = float(self.release.level)
        return numbers_of_earlier(known, self.guarantee.unit, by, level=level, bounds_size=query.bounds_size)

    def described(self, stated: Iterable[str]) -> Mapping[str, str | None]:
        there = {*stated}
        return self.columns | {column: words for column, words in AT_MOST.items() if column in there}

    def recomputed(self, folder: Path) -> Recomputed:
        return CountsAgain(self, folder)

    def improved(self, tables: Sequence[CountRelease]) -> list[CountRelease]:
        """The tables of the basic form: made to agree, drawn towards groups or cut at zero, as the plan says."""
        if self.release.add_up:
            drawn = tables[: len(self.queries)]
            kept, level = self.release.non_negative, float(self.release.level)
            agree = agreed(self.queries, self.ready, drawn, level=level, non_negative=kept)
            finest = next(table for table in agree if all(table.covers(other) for other in agree))
            sums = zip(tables[len(self.queries) :], self.derived, strict=True)
            of = [(table, agree[source_of(query, self.queries, drawn)]) for table, query in sums]
            return [*agree, *(agreeing(table, finest, source) for table, source in of)]
        towards = self.release.shrink
        moved = [table if towards is None else table.shrunk(towards) for table in tables]
        return [table.non_negative() if self.release.non_negative else table for table in moved]


def queries_of(release: Count | Counts, jobs: Jobs, account: Account) -> list[CountQuery]:
    """The query of each table, drawn or not."""
    about: dict[str, Any] = {"where": release.where, "establishments": release.establishments}
    of = release.of if isinstance(release, Sum | Sums) else None
    return [CountQuery.of(jobs, account, by=by, magnitude=of, **about) for by in release.every_table]


def count_request(given: Given, release: Count | Counts) -> PlannedCounts:
    """The request for a release of a plan, or an error that says what is wrong with it.

    A release that was paid for keeps the mechanism that was chosen then.
    """
    source, jobs = given.source, given.declared
    refuse_quarters(source)
    rules.refuse_alone(release.suppress, source.output.forms)
    every, chains = queries_of(release, jobs, given.account), jobs.schema.hierarchies
    measured = measured_tables([query.by for query in every], release.measure, chains)
    queries = tuple(every[i] for i in measured)
    if release.add_up:
        finest_of([query.by for query in queries], chains)
        if release.round_to not in (None, 1):
            raise DataError(
                f"round_to = {release.round_to} with add_up: rounded counts do not add up.",
                remedy="Leave one of them out.",
                about="round_to",
            )
    if release.shrink is not None:
        refuse_shrinking(release.shrink, workplace_by=queries[0].workplace_by, worker_by=queries[0].worker_by)
    if release.stratum is not None and release.stratum not in queries[0].workplace_by:
        raise DataError(
            f"stratum = {release.stratum!r} is not among the workplace attributes of the table, which are: "
            f"{', '.join(queries[0].workplace_by) or 'none'}.",
            remedy="Use one of these, or leave it out.",
            about="stratum",
        )
    shares = Workload(tuple(every), tuple(measured)).asked(
        release.epsilon,
        release.split,
        release.delta,
        calibration=release.calibration,
        scale_share=release.scale_share,
    )
    before = _before(given.paid, len(queries))
    asked = tuple(_steered(part, release.mechanism or each) for part, each in zip(shares, before, strict=True))
    ready = prepared(queries, asked)
    guarantee = replace(ready[0].guarantee, loss=total([part.guarantee.loss for part in ready]))
    others = tuple(query for i, query in enumerate(every) if i not in measured)
    request = PlannedCounts(source, release, queries, asked, ready, guarantee, {}, others, tuple(measured))
    request._parts()  # what would fail after the noise fails here
    return replace(request, details=_details(request))


def refuse_quarters(source: PlanSource) -> None:
    """Counts are of jobs of one time."""
    if source.tables.data.quarters:
        raise DataError(
            "The data are job histories of several quarters, and a count is of one time.",
            "Flows and changes are released from histories.",
            "Leave it out, or count the jobs of one quarter from a source of its own.",
            about="quarters",
        )


def _before(paid: Entry | None, tables: int) -> list[str | None]:
    """The mechanism that was chosen for each table when it was paid for."""
    details = None if paid is None else paid.payload.get("details")
    known = details.get("tables") if isinstance(details, dict) else None
    if not isinstance(known, list) or len(known) != tables:
        return [None] * tables
    return [chosen_before(table) for table in known]


def _steered(asked: TableAsk, mechanism: str | None) -> TableAsk:
    return {**asked, "mechanism": mechanism}


def _details(request: PlannedCounts) -> dict[str, Any]:
    release, output, data = request.release, request.source.output, request.source.tables.data
    schema, labels = request.queries[0].jobs.schema, data.labels
    tables = []
    for query, ready, folder in zip(request.queries, request.ready, request.folders, strict=True):
        domains = {name: list(schema.domain(name).among(query.where.get(name)).declared) for name in query.worker_by}
        tables.append(
            {
                **ready.parameters,
                "folder": folder,
                "domains": domains,
                "labels": hash_of(labels, query.by),
                "loss": ready.guarantee.loss.to_dict(),
            }
        )
    sums = [
        {"by": list(query.by), "folder": folder, "labels": hash_of(labels, query.by)}
        for query, folder in zip(request.derived, request.derived_folders, strict=True)
    ]
    return {
        "kind": release.kind,
        "tables": tables,
        **({"derived": sums} if sums else {}),
        "level": str(release.level),
        "non_negative": release.non_negative,
        "round_to": request.rounding,
        "shrink": list(release.shrink) if release.shrink is not None else None,
        "add_up": release.add_up,
        **({} if release.suppress is None else {"suppress": release.suppress.model_dump(mode="json")}),
        "forms": sorted(output.forms),
        "formats": sorted(output.formats),
        "schema": schema.digest(name for query in request.queries for name in query.attributes),
        **({} if data.allow_multiple is False else {"allow_multiple": data.allow_multiple}),
        **({} if request.guarantee.basis == "proved" else {"basis": request.guarantee.basis}),
    }


def _counted(release: Count | Counts) -> list[tuple[tuple[str, ...], Mapping[str, Any]]]:
    return [(by, release.where) for by in release.every_table]


def _division(release: Counts) -> Division:
    return Division(
        partial(queries_of, release),
        release.epsilon,
        release.delta,
        release.calibration,
        release.scale_share,
        release.add_up,
    )


COUNT = ReleaseKind(
    count_request,
    of_jobs=True,
    subject="by",
    steering=("mechanism", "delta", "calibration"),
    parameters={"towards": "shrink"},
    counted=_counted,
    reported=("stratum",),
)
COUNTS = replace(COUNT, subject="tables", division=_division)
