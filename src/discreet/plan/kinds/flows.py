"""Releases of flows and of changes: the query, its price and promise, fixed without confidential data, and its files.

The research form has every drawn number with its ends and flag, and the rates that follow. The basic form has labels,
rounded numbers and few digits. A reviewer computes both again from the drawn numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.data.histories import Histories
from discreet.data.jobs import Jobs
from discreet.data.schema import Label
from discreet.ledger import Entry
from discreet.plan import rules
from discreet.plan.agency import PublicTable, refuse_unmatched
from discreet.plan.confidential import Confidential
from discreet.plan.file import PlanSource
from discreet.plan.kinds.counts import EXISTING
from discreet.plan.kinds.summaries import shortened
from discreet.plan.outputs import hash_of, labelled, rounded, write_release
from discreet.plan.shape import Changes, Flows
from discreet.plan.sheets import refuse_labels, refuse_long
from discreet.plan.sizes import PublicSizes
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
class FlowRequest:
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
        return [("", [*self.query.by, *self._times])]

    @property
    def _times(self) -> dict[str, str]:
        """The columns that say when a row is of."""
        if isinstance(self.release, Changes):
            return {name: WHEN[name] for name in ("from", "to")}
        return {"quarter": WHEN["quarter"]}

    @property
    def _values_of_times(self) -> dict[str, Sequence[Label]]:
        """The contents of the columns that give the time of a row."""
        when = self.release.when
        if isinstance(self.release, Changes):
            return {"from": when[:-1], "to": when[1:]}
        return {"quarter": [span(when)]}

    @property
    def used(self) -> set[str]:
        """The attributes that the table rests on."""
        return {*self.query.by}

    @property
    def columns(self) -> dict[str, str]:
        """What each column of the published table is."""
        found = dict.fromkeys(self.query.by, "attribute") | self._times
        for name, words in (OF_CHANGES if isinstance(self.release, Changes) else WORDS).items():
            words += INSIDE if name in RATES else rules.rounded_to(self.release.round_to)
            found |= {name: words, f"{name}_lower": "lower end of its interval", f"{name}_upper": "upper end"}
            if name not in RATES:
                found[f"{name}_quality"] = MEANING + rules.meaning(self.release.suppress)
        if not isinstance(self.release, Changes):
            found |= EXISTING
        sized = {LARGEST: "size of the cell's largest establishment, with noise of its own; in the research form"}
        return found | (sized if self.release.scale_share else {})

    def expected(self, sizes: PublicSizes | None) -> MovementErrors:
        """The expected error of each flow; nothing confidential is read."""
        found = self.ready.expected()
        largest = None if sizes is None else sizes.largest(self.query.by)
        if sizes is None or largest is None:
            return found
        notes = ("Public sizes do not include the largest establishments, so each cell counts as a single one.",)
        on = self.ready.on_sizes(largest)
        return replace(found, on_sizes=on, cells=len(largest), notes=notes if sizes.is_bound else ())

    def offer(self, data: Confidential) -> Offer[None, Any, Any]:
        """The offer about these data, which writes the files of the release."""
        made = offered(self.ready)

        def read(nothing: None) -> Any:
            found = self.ready.read(data.histories())
            each = len(self.release.quarters) - 1 if isinstance(self.release, Changes) else 1
            refuse_long(self.source, [len(found.keys) * each])
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

        table, to = research, self.release.round_to
        for name in self.query.by:
            if name in labels:
                at = table.column_names.index(name)
                table = table.set_column(at, name, labelled(table[name], labels[name]))
        counted = [name.removesuffix("_quality") for name in research.column_names if name.endswith("_quality")]
        for name in counted if to > 1 else ():
            values, low, high = (
                np.array(research[column], dtype=np.float64) for column in (name, f"{name}_lower", f"{name}_upper")
            )
            near = rounded(values, to)
            ends = np.floor(low / to) * to, np.ceil(high / to) * to
            for column, numbers in zip((name, f"{name}_lower", f"{name}_upper"), (near, *ends), strict=True):
                fits = np.isfinite(numbers) & (np.abs(numbers) < 2.0**63)
                whole = pa.array(np.where(fits, numbers, 0).astype(np.int64), mask=~fits)
                table = table.set_column(table.column_names.index(column), column, whole)
            words = pa.array(flags(near, ends).tolist(), pa.string())
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
        pages = changes if isinstance(self.release, Changes) else flows
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


def flow_request(source: PlanSource, release: Flows | Changes, histories: Histories, account: Account) -> FlowRequest:
    """The request for a release of a plan, or an error that says what is wrong with it."""
    rules.refuse_alone(release.suppress, source.output.forms)
    query: FlowQuery | ChangeQuery
    if isinstance(release, Changes):
        query = ChangeQuery.of(histories, account, quarters=release.when, by=release.by)
    else:
        query = FlowQuery.of(histories, account, quarter=release.when, by=release.by)
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
    return FlowRequest(source, release, query, ready, ready.guarantee, details)


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
