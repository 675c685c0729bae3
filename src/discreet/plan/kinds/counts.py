"""Releases of job counts: their queries, prices and promises, fixed without confidential data, and their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data.hierarchy import covers
from discreet.data.jobs import Jobs
from discreet.data.lineage import merged
from discreet.ledger import Entry
from discreet.pages.page import slug
from discreet.plan import rules
from discreet.plan.agency import PublicTable, refuse_unmatched
from discreet.plan.comparison import compare, foreseen
from discreet.plan.confidential import Confidential
from discreet.plan.file import PlanSource
from discreet.plan.outputs import basic, hash_of, noise, write_parents, write_release
from discreet.plan.readers import cut, drawn_table, ruled, shown_tables
from discreet.plan.shape import Count, Counts, Form, Sum, Sums
from discreet.plan.sheets import labels_of, refuse_labels, refuse_long
from discreet.plan.sizes import PublicSizes, TableCheck
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import total
from discreet.privacy.split import divided
from discreet.privacy.units import EstablishmentNodes
from discreet.release.account import Account
from discreet.release.offer import Offer
from discreet.report.belief import MOST_TABLES
from discreet.report.release import Results, TableOfCounts
from discreet.tables.attributes import refuse_shrinking
from discreet.tables.cells import Cells
from discreet.tables.consistency import finest_of
from discreet.tables.derived import agreeing, bounds_sums, source_of
from discreet.tables.intervals.widths import told_advice, tradeoff, widths
from discreet.tables.likelihood import beliefs_after
from discreet.tables.mechanisms.defaults import chosen_before
from discreet.tables.prepared import Prepared, TableAsk
from discreet.tables.quality import MEANING
from discreet.tables.query import CountQuery
from discreet.tables.release import CountRelease
from discreet.tables.workload import agreed, derived, measured_tables, prepared, together
from discreet.words.cases import case_of
from discreet.words.errors import DataError

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
class CountRequest:
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
        if isinstance(self.release, Count):
            return ("",)
        return tuple(f"{i}-{slug(' '.join(by) or 'total')}" for i, by in enumerate(self.release.tables, start=1))

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
        return 1 if isinstance(self.release, Counts) and self.release.add_up else DEFAULT_ROUNDING

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

    def check(self, sizes: PublicSizes | None) -> tuple[TableCheck, ...]:
        """The price and the expected error of each table."""
        found, level = [], float(self.release.level)
        for query, ready, asked in zip(self.queries, self.ready, self.asked, strict=True):
            known = sizes is not None and query.magnitude is None
            expected = sizes.expected(query, ready, level=level) if known and sizes is not None else None
            whole = sizes is not None and sizes.is_bound and expected is not None and expected.is_bound
            jobs = None if sizes is None else sizes.jobs(query)
            ahead = None if jobs is None else foreseen(query, ready, jobs)
            beside = [] if ahead is None else [ahead.told]
            trades = tradeoff(query, asked, level=level)
            table = TableCheck(
                by=(*query.workplace_by, *query.worker_by),
                mechanism=f"{ready.mechanism.name} ({ready.mechanism.calibration})",
                levels=query.levels,
                magnitude=query.magnitude,
                loss=ready.guarantee.loss,
                by_largest=query.expected_by_largest(ready),
                widths=widths(query, ready, level=level),
                tradeoff=trades,
                expected=expected,
                notes=(*self._notes(query, ready), *([ONE_EACH] if whole else []), *beside, *told_advice(trades)),
            )
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
        for (place, _), table, moved in zip(self.places, tables, self._improved(tables), strict=True):
            drawn = table.to_arrow()
            simple = self.basic(moved, labels, drawn if moved.keys is table.keys else None)
            forms[place] = {"research": drawn, "basic": simple}
        if isinstance(self.release, Counts):
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

    def _improved(self, tables: Sequence[CountRelease]) -> list[CountRelease]:
        """The tables of the basic form: made to agree, drawn towards groups or cut at zero, as the plan says."""
        if isinstance(self.release, Counts) and self.release.add_up:
            drawn = tables[: len(self.queries)]
            kept, level = self.release.non_negative, float(self.release.level)
            agree = agreed(self.queries, self.ready, drawn, level=level, non_negative=kept)
            finest = next(table for table in agree if all(table.covers(other) for other in agree))
            sums = zip(tables[len(self.queries) :], self.derived, strict=True)
            of = [(table, agree[source_of(query, self.queries, drawn)]) for table, query in sums]
            return [*agree, *(agreeing(table, finest, source) for table, source in of)]
        towards = self.release.shrink if isinstance(self.release, Count) else None
        moved = [table if towards is None else table.shrunk(towards) for table in tables]
        return [table.non_negative() if self.release.non_negative else table for table in moved]


def tables_of(release: Count | Counts) -> tuple[tuple[str, ...], ...]:
    """The attributes of each table of a release."""
    return (release.by,) if isinstance(release, Count) else release.tables


def queries_of(release: Count | Counts, jobs: Jobs, account: Account) -> list[CountQuery]:
    """The query of each table, drawn or not."""
    about: dict[str, Any] = {"where": release.where, "establishments": release.establishments}
    of = release.of if isinstance(release, Sum | Sums) else None
    return [CountQuery.of(jobs, account, by=by, magnitude=of, **about) for by in tables_of(release)]


def count_request(
    source: PlanSource, release: Count | Counts, jobs: Jobs, account: Account, *, paid: Entry | None = None
) -> CountRequest:
    """The request for a release of a plan, or an error that says what is wrong with it.

    A release that was `paid` for keeps the mechanism that was chosen then.
    """
    rules.refuse_alone(release.suppress, source.output.forms)
    every = queries_of(release, jobs, account)
    chains, measure = jobs.schema.hierarchies, release.measure if isinstance(release, Counts) else None
    measured = measured_tables([query.by for query in every], measure, chains)
    queries = tuple(every[i] for i in measured)
    if isinstance(release, Counts) and release.add_up:
        finest_of([query.by for query in queries], chains)
        if release.round_to not in (None, 1):
            raise DataError(
                f"round_to = {release.round_to} with add_up: rounded counts do not add up.",
                remedy="Leave one of them out.",
                about="round_to",
            )
    if isinstance(release, Count) and release.shrink is not None:
        refuse_shrinking(release.shrink, workplace_by=queries[0].workplace_by, worker_by=queries[0].worker_by)
    if release.stratum is not None and release.stratum not in queries[0].workplace_by:
        raise DataError(
            f"stratum = {release.stratum!r} is not among the workplace attributes of the table, which are: "
            f"{', '.join(queries[0].workplace_by) or 'none'}.",
            remedy="Use one of these, or leave it out.",
            about="stratum",
        )
    shares, before = _shares(release, len(queries)), _before(paid, len(queries))
    asked = tuple(_asked(release, share, chosen) for share, chosen in zip(shares, before, strict=True))
    ready = prepared(queries, asked)
    guarantee = replace(ready[0].guarantee, loss=total([part.guarantee.loss for part in ready]))
    others = tuple(query for i, query in enumerate(every) if i not in measured)
    request = CountRequest(source, release, queries, asked, ready, guarantee, {}, others, tuple(measured))
    request._parts()  # what would fail after the noise fails here
    return replace(request, details=_details(request))


def _before(paid: Entry | None, tables: int) -> list[str | None]:
    """The mechanism that was chosen for each table when it was paid for."""
    details = None if paid is None else paid.payload.get("details")
    known = details.get("tables") if isinstance(details, dict) else None
    if not isinstance(known, list) or len(known) != tables:
        return [None] * tables
    return [chosen_before(table) for table in known]


def _asked(release: Count | Counts, share: Fraction, before: str | None) -> TableAsk:
    """The request for a table that has this share of the release's loss."""
    return {
        "epsilon": release.epsilon * share,
        "delta": None if release.delta is None else release.delta * share,
        "mechanism": (release.mechanism if isinstance(release, Count) else None) or before,
        "calibration": release.calibration,
        "scale_share": release.scale_share,
    }


def _shares(release: Count | Counts, tables: int) -> list[Fraction]:
    return divided(release.split if isinstance(release, Counts) else None, tables)


def _details(request: CountRequest) -> dict[str, Any]:
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
        "shrink": list(release.shrink) if isinstance(release, Count) and release.shrink is not None else None,
        "add_up": isinstance(release, Counts) and release.add_up,
        **({} if release.suppress is None else {"suppress": release.suppress.model_dump(mode="json")}),
        "forms": sorted(output.forms),
        "formats": sorted(output.formats),
        "schema": schema.digest(name for query in request.queries for name in query.attributes),
        **({} if data.allow_multiple is False else {"allow_multiple": data.allow_multiple}),
        **({} if request.guarantee.basis == "proved" else {"basis": request.guarantee.basis}),
    }
