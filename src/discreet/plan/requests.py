"""A plan's releases as requests: what the ledger is asked to pay for.

Mechanism, price and promise are fixed here, without confidential data. The `details` of a request hold everything that
decides the published files, so a plan that was changed afterwards asks for something else and is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from discreet.data.jobs import Jobs
from discreet.data.schema import Schema
from discreet.ledger import Entry
from discreet.plan.agency import asked_of, refuse_unwritten
from discreet.plan.blame import blamed
from discreet.plan.file import PlanFile, PlanSource
from discreet.plan.kinds.kind import Given, PlannedRelease
from discreet.plan.kinds.registry import kind_of
from discreet.release.account import Account
from discreet.tables.query import CountQuery
from discreet.words.errors import DataError, DiscreetError
from discreet.words.faults import Fault, Place


def requests(file: PlanFile, *, paid: Mapping[tuple[str, str], Entry]) -> tuple[list[PlannedRelease], list[Fault]]:
    """All valid releases of the plan, and the faults of the others. Reads public files only.

    `paid` are the charges of releases that were paid for already, by data set and name.
    """
    found: list[PlannedRelease] = []
    jobs: dict[str, Jobs] = {}
    wrong = [fault for source in file.sources for fault in _opened(source, jobs)]
    accounts = {source.name: trial(source) for source in file.sources}
    for release in file.plan.release:
        source = file.source(release)
        account = accounts[source.name]
        try:
            kind = kind_of(release)
            if kind.of_jobs and source.name not in jobs:
                continue  # what is wrong with its schema is said once
            before = paid.get((source.dataset, release.name))
            made = kind.request(Given(source, account, jobs.get(source.name), before), release)
            found.append(_dated(made))
        except DiscreetError as error:
            wrong += blamed(source, release, error)
    return found, wrong


def _dated(made: PlannedRelease) -> PlannedRelease:
    """A request with its periods, and with the release that it replaces, if the plan names them."""
    said: dict[str, Any] = made.dates.to_dict() | {"replaces": made.release.replaces}
    if made.compare is not None:
        refuse_unwritten(made.source.output.forms)
        said |= {"compare": asked_of(made.compare)}
    return replace(made, details=made.details | {key: value for key, value in said.items() if value is not None})  # type: ignore[type-var]


def _opened(source: PlanSource, jobs: dict[str, Jobs]) -> Iterator[Fault]:
    """Put the jobs of a source, without its rows, among `jobs` where tables are made of them; else what is wrong."""
    of_jobs = {kind_of(release).of_jobs for release in source.releases}
    if True in of_jobs:
        try:
            schema = source.schema()
        except DataError as error:
            yield from (replace(fault, place=in_schema(source, fault)) for fault in error.faults)
            return
        listed, several = has_public_list(source), source.tables.data.allow_multiple
        jobs[source.name] = without_data(schema, listed=listed, allow_multiple=several)
        yield from _label_faults(source, schema)
    for key in ("public", "numbers"):
        if getattr(source.tables.data, key) and False not in of_jobs:
            yield Fault(source.place("data", key), _NO_DESIGN)


def trial(source: PlanSource) -> Account:
    """The budget of a source in a ledger that is not kept: it is enough for pricing, and nothing is spent."""
    return Account.open(None, dataset="trial", unit=source.unit, budget=source.tables.budget.total())


def in_schema(source: PlanSource, fault: Fault) -> Place:
    """The place in a plan of a fault of its schema."""
    head, _, name = (fault.about or "").partition(".")
    return source.place("hierarchy", name) if head == "hierarchy" and name else source.place("data", "schema")


def size(file: PlanFile) -> tuple[int, int]:
    """The number of tables that a plan asks for, and of their kinds of workers together; nothing is priced."""
    tables = counts = 0
    for source in file.sources:
        account = trial(source)
        asked = [table for release in source.releases for table in kind_of(release).counted(release)]
        tables += len(asked)
        for by, where in asked:
            with suppress(DataError):  # a fault is found again, and said, where the table is priced
                jobs = without_data(source.schema(), listed=False)
                counts += CountQuery.of(jobs, account, by=by, where=where).levels
    return tables, counts


_NO_DESIGN = (
    "it declares columns, and no release is a model or a posterior summary. Tables of counts have their columns in "
    "[data.schema]. Leave it out."
)


def has_public_list(source: PlanSource) -> bool:
    data = source.tables.data
    return data.workplaces is not None or (source.path(data.source) / "workplace.parquet").is_file()


def without_data(schema: Schema, *, listed: bool, allow_multiple: bool | int = False) -> Jobs:
    """Jobs of which nothing is known but their schema: enough to price a query, and nothing to run it on.

    They count as validated, because a plan draws from rows that were all checked, or does not draw.
    """
    nothing: Any = object()
    return Jobs(
        table=nothing,
        schema=schema,
        workplaces=nothing if listed else None,
        allow_multiple=allow_multiple,
        validated=True,
    )


def _label_faults(source: PlanSource, schema: Schema) -> Iterator[Fault]:
    """Labels for nothing, and labels under which readers could not tell two categories apart."""
    known = (*schema.workplace_attributes, *schema.worker_attributes)
    for name, labels in source.tables.data.labels.items():
        place = source.place("data", "labels", name)
        if name not in known:
            yield Fault(place, f"{name!r} is not an attribute. There are: {', '.join(known)}. Label one of these.")
            continue
        domain = [str(value) for value in schema.worker_attributes.get(name, labels)]
        for value in labels:
            if value not in domain:
                yield Fault(
                    (*place, value),
                    f"{value!r} is not in the public domain, which is: {', '.join(domain)}. Label one of these.",
                )
        shown: dict[str, str] = {}
        for value in domain:
            twin = shown.setdefault(labels.get(value, value), value)
            if twin != value:
                yield Fault(
                    (*place, value if value in labels else twin),
                    f"{twin!r} and {value!r} would both be called {labels.get(value, value)!r}. Readers tell "
                    "categories apart by their labels. Choose another label.",
                )
