"""Releases of flows and of changes: the query, its price and promise, fixed without confidential data, and its files.

The research form has every drawn number with its ends and flag, and the rates that follow. The basic form has labels,
rounded numbers and few digits. A reviewer computes both again from the drawn numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Vector
from discreet.data.histories import Histories, when_is
from discreet.data.jobs import Jobs
from discreet.data.schema import Label
from discreet.ledger import Dates, Entry, Period
from discreet.plan import rules
from discreet.plan.agency import PublicTable, refuse_unmatched
from discreet.plan.confidential import Confidential
from discreet.plan.file import PlanSource
from discreet.plan.kinds.alarms import (
    AlarmStep,
    EarlierOf,
    early_of,
    no_table,
    refuse_unlike,
    refuse_unwritten,
    refuse_value,
)
from discreet.plan.kinds.counts import EXISTING
from discreet.plan.kinds.kind import Given, PlannedRelease, ReleaseKind
from discreet.plan.kinds.numbers import ANEW, Numbers, cells_of, compared, within
from discreet.plan.kinds.of_jobs import PlannedTables
from discreet.plan.kinds.recomputed import FlowsAgain, Recomputed
from discreet.plan.outputs import hash_of, in_words, rounded_outwards, shortened, write_release
from discreet.plan.shape import AlarmsSection, Changes, Flows
from discreet.plan.sheets import refuse_labels, refuse_long
from discreet.plan.sizes import PublicSizes, TableCheck
from discreet.privacy.guarantee import Guarantee
from discreet.release.account import Account
from discreet.release.folder import WHEN
from discreet.release.offer import Offer
from discreet.release.tables import read_table
from discreet.report import flows
from discreet.report import quarterly as changes
from discreet.report.release import Results
from discreet.tables.movement.changes import ChangeQuery
from discreet.tables.movement.flow_release import RATES as RATE_OF
from discreet.tables.movement.flows import FlowQuery, span
from discreet.tables.movement.published import (
    LARGEST,
    MovementErrors,
    MovementRelease,
    PreparedMovement,
    flags,
    offered,
)
from discreet.tables.quality import MEANING, SUPPRESSED
from discreet.tables.query import CountQuery
from discreet.words.cases import case_of
from discreet.words.errors import DataError
from discreet.words.faults import Capital, Key

if TYPE_CHECKING:
    import pyarrow as pa

WORDS = {
    "employment": "jobs of the quarter, as published",
    "beginning": "beginning employment: jobs that existed in the quarter before",
    "end": "end employment: jobs that exist in the quarter after",
    "accessions": "jobs that did not exist in the quarter before",
    "separations": "jobs that do not exist in the quarter after",
    "creation": "jobs created: what establishments that grew have gained",
    "destruction": "jobs destroyed: what establishments that shrank have lost",
    "jcr": "job creation rate: creation over mean employment, (beginning + end) / 2",
    "jdr": "job destruction rate",
    "ar": "accession rate",
    "sr": "separation rate; jcr - jdr = ar - sr, exactly in the research form",
}
OF_CHANGES = {
    "earlier": "jobs of the quarter `from`, as published",
    "later": "jobs of the quarter `to`, as published",
    "change": "later less earlier jobs",
    "rate": "the change over earlier jobs",
}
RATES = {"jcr": 0.0, "jdr": 0.0, "ar": 0.0, "sr": 0.0, "rate": -1.0}
"""Rates with the least that each can be."""
INSIDE = "; in the basic form inside its interval, and one that can be"
LIMITS = {
    "changes": "A change is the difference of the levels beside it, exactly in the research form.",
    "flows": "Flows of a quarter add up as their definitions say, exactly in the research form: beginning + accessions "
    "= end + separations, creation - destruction = end - beginning. A flow may be published below zero where its cell "
    "is small.",
}


@dataclass(frozen=True, slots=True)
class MovementKind:
    """What is different between flows of a quarter and changes between quarters.

    Attributes
    ----------
    words : what each number is.
    also : columns beside the numbers.
    times : the columns that give the time of a row, with their contents.
    page : the report's part.
    """

    words: Mapping[str, str]
    also: Mapping[str, str]
    times: Callable[[Sequence[Label]], dict[str, Sequence[Label]]]
    page: ModuleType
    query: Callable[[Histories, Account, Any], FlowQuery | ChangeQuery]


MOVEMENTS: Mapping[str, MovementKind] = {
    "flows": MovementKind(
        WORDS,
        EXISTING,
        lambda when: {"quarter": [span(when)]},
        flows,
        lambda histories, account, asked: FlowQuery.of(histories, account, quarter=asked.when, by=asked.by),
    ),
    "changes": MovementKind(
        OF_CHANGES,
        {},
        lambda when: {"from": when[:-1], "to": when[1:]},
        changes,
        lambda histories, account, asked: ChangeQuery.of(histories, account, quarters=asked.when, by=asked.by),
    ),
}


@dataclass(frozen=True, slots=True)
class PlannedFlows(PlannedTables):
    """One release of flows or of changes, ready to be priced, read and drawn."""

    source: PlanSource
    release: Flows | Changes
    query: FlowQuery | ChangeQuery
    ready: PreparedMovement[Any]
    guarantee: Guarantee
    details: dict[str, Any]
    beside: PublicTable | None = None

    @property
    def places(self) -> list[tuple[str, list[str]]]:
        """Where the table is, with its attributes."""
        return [("", [*self.query.by, *self._values_of_times])]

    @property
    def movement(self) -> MovementKind:
        """Whether these are flows or changes, and what that decides."""
        return case_of(self.release.kind, MOVEMENTS)

    @property
    def _values_of_times(self) -> dict[str, Sequence[Label]]:
        """The contents of the columns that give the time of a row."""
        return self.movement.times(self.release.when)

    @property
    def times(self) -> int:
        return max(map(len, self._values_of_times.values()))

    @property
    def queries(self) -> tuple[CountQuery, ...]:
        return ()

    @property
    def used(self) -> set[str]:
        """The attributes that the table rests on."""
        return {*self.query.by}

    @property
    def columns(self) -> dict[str, str]:
        """What each column of the published table is."""
        found = dict.fromkeys(self.query.by, "attribute") | {name: WHEN[name] for name in self._values_of_times}
        for name, words in self.movement.words.items():
            words += INSIDE if name in RATES else rules.rounded_to(self.release.round_to)
            found |= {name: words, f"{name}_lower": "lower end of its interval", f"{name}_upper": "upper end"}
            if name not in RATES:
                found[f"{name}_quality"] = MEANING + rules.meaning(self.release.suppress)
        found |= self.movement.also
        sized = {LARGEST: "size of the cell's largest establishment, with noise of its own; in the research form"}
        return found | (sized if self.release.scale_share else {})

    @property
    def dates(self) -> Dates:
        """About the last of its quarters, and it reads rows of several."""
        stated, policy = self.source.tables.data.period, self.source.tables.budget.policy()
        last, reads = when_is(self.release.when[-1]), [when_is(quarter) for quarter in self.query.reads]
        if last is None or None in reads:  # names such as q1 do not tell when they are
            return Dates(stated)
        if stated is not None and Period.of(stated) != last.within(Period.of(stated).step):
            raise DataError(
                f"The data are about {stated}, and release {self.release.name!r} about {last}.",
                "Flows and changes are about the last of their quarters, and count for all that they read.",
                "Leave it out: the quarters say when.",
                about="period",
            )
        about = stated if stated is not None or policy is None else str(last.within(policy.each))
        return Dates() if about is None else Dates(about, tuple(map(str, reads)))

    @property
    def reads_quarters(self) -> bool:
        return True

    @property
    def jobs(self) -> Jobs:
        return self.query.histories.one_quarter

    def error_beside(self, found: PublicTable) -> tuple[None, None]:
        return None, None

    def tables(self, sizes: PublicSizes | None) -> tuple[TableCheck, ...]:
        return ()

    def expected(self, sizes: PublicSizes | None) -> MovementErrors:
        """The expected error of each flow; nothing confidential is read."""
        found = self.ready.expected()
        largest = None if sizes is None else sizes.largest(self.query.by)
        if sizes is None or largest is None:
            return found
        notes = ("Public sizes do not include the largest establishments, so each cell counts as a single one.",)
        on = self.ready.on_sizes(largest)
        return replace(found, on_sizes=on, cells=len(largest), notes=notes if sizes.is_bound else ())

    def checked(self, data: Confidential) -> Histories:
        return data.histories()

    def announce(self, data: Confidential) -> None:
        """Each release reads its own quarters."""

    def offer(self, data: Confidential) -> Offer[None, Any, Any]:
        """The offer about these data, which writes the files of the release."""
        made = offered(self.ready)

        def read(nothing: None) -> Any:
            found = self.ready.read(data.histories())
            refuse_long(self.source, [len(found.keys) * self.times])
            refuse_labels(self.source, [found.keys])
            if self.beside is not None:
                refuse_unmatched(self.beside, [(found.keys, None)], self._values_of_times)
            return found

        return replace(made, details=self.details, read=read, write=self._write)  # type: ignore[return-value, arg-type]

    def _write(self, value: MovementRelease, guarantee: Guarantee, entry: Entry, folder: Path) -> None:
        research = replace(value, guarantee=guarantee).to_arrow()
        table = {**self.details["tables"][0], "noise": self.ready.constants}
        write_release(
            folder,
            {"": {"research": research, "basic": self.basic(research, self.source.tables.data.labels)}},
            self.source.output,
            guarantee=guarantee,
            entry=entry,
            parameters={**self.details, "tables": [table]},
            columns=self.columns,
            beside=self.beside,
        )

    def basic(self, research: pa.Table, labels: Any) -> pa.Table:
        """The form for readers: labels, rounded flows whose ends are rounded outwards, few digits of rates."""
        import pyarrow as pa

        to, codes = self.release.round_to, {name: labels[name] for name in self.query.by if name in labels}
        table = in_words(research, codes)
        counted = [name.removesuffix("_quality") for name in research.column_names if name.endswith("_quality")]
        for name in counted if to > 1 else ():
            table, (near, *ends) = rounded_outwards(table, (name, f"{name}_lower", f"{name}_upper"), to)
            words = pa.array(flags(near, (ends[0], ends[1])).tolist(), pa.string())
            table = table.set_column(table.column_names.index(f"{name}_quality"), f"{name}_quality", words)
        for rate, least in ((name, least) for name, least in RATES.items() if name in table.column_names):
            value, low, high = (np.array(table[f"{rate}{end}"], dtype=np.float64) for end in ("", "_lower", "_upper"))
            inside = np.fmin(np.fmax(np.fmax(value, least), low), high)  # an end that does not exist bounds nothing
            kept = pa.array(np.where(np.isnan(value), np.nan, inside), mask=np.isnan(value))
            table = table.set_column(table.column_names.index(rate), rate, kept)
        over = {"change": "rate"} | {flow: rate for rate, flow in RATE_OF.items()}
        named: dict[str, Sequence[str]] = {
            f"{name}_quality": [
                column
                for each in (name, over.get(name, name))
                for column in (each, f"{each}_lower", f"{each}_upper")
                if column in table.column_names
            ]
            for name in counted
        }
        table = rules.without_suppressed(table, self.release.suppress, named)
        return shortened(table.drop_columns([LARGEST]) if LARGEST in table.column_names else table)

    def published(self, folder: Path, form: str | None = None) -> pa.Table:
        """A published table: the research form, or the basic one where only that was released."""
        forms = [f"{name}.{kind}" for name in ("research", "basic") for kind in ("parquet", "csv")]
        places = [folder / name for name in forms if form is None or name.startswith(form)]
        path = next((place for place in places if place.exists()), places[0])
        return read_table(path, kind=path.suffix[1:], attributes=self.places[0][1])

    def results(self, folder: Path) -> Results:
        """The report's part, from the published files: numbers as readers see them, errors as they were drawn."""
        drawn, forms = self.published(folder), self.source.output.forms
        seen = self.published(folder, "basic") if "basic" in forms else drawn
        about: dict[str, Any] = {"by": self.query.by, "drawn": drawn}
        pages = self.movement.page
        flags = [word for name in seen.column_names if name.endswith("_quality") for word in seen[name].to_pylist()]
        return Results(
            answers=list(pages.shown(seen, self.release.name, expected=self.ready.expected(), **about)),
            short=pages.in_short(seen, self.release.name, **about),
            limits=[LIMITS[self.release.kind]],
            ruled=rules.told(
                self.release.name,
                self.release.suppress,
                gone=(flags.count(SUPPRESSED), len(flags)),
                round_to=self.release.round_to if "basic" in forms else 1,
                research="research" in forms,
            ),
        )

    def differences(self, folder: Path, earlier: PlannedRelease, before: Path) -> list[str]:
        if not isinstance(earlier, PlannedFlows):
            return []
        new, old = self.published(folder), earlier.published(before)
        [(_, by)] = self.places
        if new.column_names != old.column_names or new.select(by) != old.select(by):
            return [f"By {', '.join(by)}: the cells are not the same."]
        told = []
        for column in new.column_names:
            name = column.removesuffix("_quality")
            if name != column:
                moved = np.abs(np.array(new[name], dtype=np.float64) - np.array(old[name], dtype=np.float64))
                told.append(f"{name} {moved.mean():.3g}")
        return [f"By {', '.join(by)}, {len(new):,} rows differ on average by: {', '.join(told)}. {ANEW}"]

    def alarm(self, asked: AlarmsSection, others: Mapping[str, PlannedRelease], earlier: EarlierOf) -> AlarmStep:
        refuse_unwritten(self.source.output.forms)
        return case_of(self.release.kind, {"flows": self._between, "changes": self._own})(asked, others)

    def _own(self, asked: AlarmsSection, others: Mapping[str, PlannedRelease]) -> AlarmStep:
        """Alarms about the changes of one release, whose levels were drawn together."""
        if asked.early is not None or asked.folder is not None:
            raise DataError(
                f"{asked.late!r} is a release of changes, and an early release is named too.",
                "It compares its own quarters, drawn together, which has less error.",
                "Leave it out.",
                about="early" if asked.early is not None else "folder",
            )
        refuse_value(asked.value, ("change",))
        by = tuple(self.places[0][1])
        return AlarmStep(
            asked,
            by,
            lambda at: within(*(self._numbers(at / asked.late, by, name) for name in ("earlier", "later", "change"))),
        )

    def _between(self, asked: AlarmsSection, others: Mapping[str, PlannedRelease]) -> AlarmStep:
        """Alarms between flows of two times."""
        name = early_of(asked)
        by = self._compared(asked)
        if asked.folder is not None:
            raise DataError(
                "An earlier folder is given for flows.",
                "Flows are compared with flows of the same plan, whose histories have all quarters.",
                "Release both in one plan.",
                about="folder",
            )
        before = others[name]
        if not isinstance(before, PlannedFlows):
            raise no_table(name, "early")
        before._compared(asked)
        refuse_unlike(before.details["tables"][0], self.details["tables"][0], name)
        value = asked.value
        return AlarmStep(
            asked,
            by,
            lambda at: compared(before._numbers(at / name, by, value), self._numbers(at / asked.late, by, value)),
        )

    def _compared(self, asked: AlarmsSection) -> tuple[str, ...]:
        """The attributes of the table, which has the number that alarms are asked about."""
        refuse_value(asked.value, [name.removesuffix("_quality") for name in self.columns if name.endswith("_quality")])
        return tuple(self.query.by)

    def _numbers(self, folder: Path, by: tuple[str, ...], value: str) -> Numbers:
        """The published numbers; none where a rule of the agency leaves one out."""
        table = self.published(folder, "research")
        seen = table if self.release.suppress is None else self.published(folder, "basic")
        numbers = [
            np.nan if shown is None else each
            for shown, each in zip(seen[value].to_pylist(), table[value].to_pylist(), strict=True)
        ]

        def ends(level: float) -> tuple[Vector, Vector]:
            asked = {"epsilon": self.release.epsilon, "scale_share": self.release.scale_share}
            again = self.query.prepare(**asked, level=level).again(table)
            return next(each.ends for each in again.statistics() if each.name == value)

        return Numbers(cells_of(table, by), np.array(numbers, dtype=np.float64), ends)

    def described(self, stated: Iterable[str]) -> Mapping[str, str | None]:
        return self.columns

    def recomputed(self, folder: Path) -> Recomputed:
        return FlowsAgain(self, folder)


def flow_request(given: Given, release: Flows | Changes) -> PlannedFlows:
    """The request for a release of a plan, or an error that says what is wrong with it."""
    source = given.source
    histories = histories_of(source, given.declared)
    rules.refuse_alone(release.suppress, source.output.forms)
    query = case_of(release.kind, MOVEMENTS).query(histories, given.account, release)
    ready: PreparedMovement[Any] = query.prepare(
        epsilon=release.epsilon, scale_share=release.scale_share, level=float(release.level)
    )
    data, output, labels = source.tables.data, source.output, source.tables.data.labels
    table = {
        **ready.details,
        "mechanism": ready.mechanism,
        "calibration": "tight",
        "levels": ready.dimension,
        "folder": "",
        "domains": {},
        "labels": hash_of(labels, query.by),
        "loss": ready.guarantee.loss.to_dict(),
    }
    details = {
        "kind": release.kind,
        "quarter": list(release.when),
        "tables": [table],
        "level": str(release.level),
        "round_to": release.round_to,
        **({} if release.suppress is None else {"suppress": release.suppress.model_dump(mode="json")}),
        "forms": sorted(output.forms),
        "formats": sorted(output.formats),
        "schema": histories.schema.digest(query.by),
        "quarters": list(data.quarters),
        "time": data.time,
        **({} if data.allow_multiple is False else {"allow_multiple": data.allow_multiple}),
    }
    return PlannedFlows(source, release, query, ready, ready.guarantee, details)


def histories_of(source: PlanSource, jobs: Jobs) -> Histories:
    """The source's job histories, of which nothing is known but what the plan declares."""
    data = source.tables.data
    if not data.quarters:
        raise DataError(
            "The plan lists no quarters.",
            "Flows compare quarters, which are public and are never learned from the rows.",
            (Capital(Key("quarters")), " of [data] lists all of them in their order: ['2024Q1', '2024Q2', '2024Q3']."),
            about="quarters",
        )
    if data.workers is not None:
        raise DataError(
            "The plan names a list of workers beside quarters.",
            "Attributes of workers are columns of job histories.",
            "Leave it out.",
            about="workers",
        )
    return Histories.declared(jobs, quarters=data.quarters, time=data.time, allow_multiple=data.allow_multiple)


FLOWS = ReleaseKind(flow_request, of_jobs=True, subject="by", steering=("epsilon",), parameters={})
CHANGES = replace(FLOWS, parameters={"quarter": "quarters"})
