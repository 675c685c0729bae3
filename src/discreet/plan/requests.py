"""A plan's releases as requests: what the ledger is asked to pay for.

Mechanism, price and promise are fixed here, without confidential data. The `details` of a request hold everything that
decides the published files, so a plan that was changed afterwards asks for something else and is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from discreet.errors import DataError, DiscreetError
from discreet.faults import Fault, Place
from discreet.jobs import Jobs
from discreet.ledger import Entry
from discreet.plan.blame import blamed
from discreet.plan.confidential import Confidential
from discreet.plan.counts import count_request, tables_of
from discreet.plan.reading import PlanFile
from discreet.plan.shape import AnyRelease, Count, Counts, ModelSection, PosteriorSection
from discreet.plan.summaries import summary_request
from discreet.privacy.guarantee import Guarantee
from discreet.release.account import Account
from discreet.release.offer import Offer
from discreet.report.release import Results
from discreet.schema import Schema
from discreet.tables.query import CountQuery


class PlannedRelease(Protocol):
    """One release of a plan, priced without its data, and the way to its offer."""

    @property
    def release(self) -> AnyRelease: ...

    @property
    def guarantee(self) -> Guarantee: ...

    @property
    def details(self) -> dict[str, Any]:
        """Everything that decides the published files, for the ledger."""

    def offer(self, data: Confidential) -> Offer[None, Any, Any]:
        """The release as an offer about these data; only what is public of them is read for it."""

    def results(self, folder: Path) -> Results:
        """What the report says, from the published files."""


def requests(
    file: PlanFile, account: Account, *, paid: Mapping[str, Entry]
) -> tuple[list[PlannedRelease], list[Fault]]:
    """All releases of the plan that make sense, and what is wrong with the others. Reads public files only.

    `paid` are the charges of releases that were paid for already, by name.
    """
    found: list[PlannedRelease] = []
    wrong: list[Fault] = []
    jobs: Jobs | None = None
    if any(isinstance(release, Count | Counts) for release in file.plan.release):
        try:
            schema = file.schema()
        except DataError as error:
            return [], [replace(fault, place=in_schema(fault)) for fault in error.faults]
        jobs = without_data(schema, listed=has_public_list(file), allow_multiple=file.plan.data.allow_multiple)
        wrong += _label_faults(file, schema)
    if file.plan.data.public and not any(
        isinstance(release, ModelSection | PosteriorSection) for release in file.plan.release
    ):
        wrong.append(Fault(("data", "public"), _NO_DESIGN))
    for i, release in enumerate(file.plan.release):
        try:
            if isinstance(release, Count | Counts):
                assert jobs is not None
                found.append(count_request(file, release, jobs, account, paid=paid.get(release.name)))
            else:
                found.append(summary_request(file, release, account))
        except DiscreetError as error:
            wrong += blamed(release, i, error)
    return found, wrong


def in_schema(fault: Fault) -> Place:
    """Where a plan says what a fault of its schema is about."""
    head, _, name = (fault.about or "").partition(".")
    return ("hierarchy", name) if head == "hierarchy" and name else ("data", "schema")


def size(file: PlanFile, account: Account) -> tuple[int, int]:
    """How many tables a plan asks for, and how many kinds of workers they have together; nothing is priced."""
    releases = [release for release in file.plan.release if isinstance(release, Count | Counts)]
    asked = [(by, release.where) for release in releases for by in tables_of(release)]
    kinds = 0
    for by, where in asked:
        with suppress(DataError):  # a fault is found again, and said, where the table is priced
            jobs = without_data(file.schema(), listed=False)
            kinds += CountQuery.of(jobs, account, by=by, where=where).levels
    return len(asked), kinds


_NO_DESIGN = (
    "it declares columns, and no release is a model or a posterior summary. Tables of counts have their columns in "
    "[data.schema]. Leave it out."
)


def has_public_list(file: PlanFile) -> bool:
    data = file.plan.data
    return data.workplaces is not None or (file.path(data.source) / "workplace.parquet").is_file()


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


def _label_faults(file: PlanFile, schema: Schema) -> Iterator[Fault]:
    """Labels for nothing, and labels under which readers could not tell two categories apart."""
    known = (*schema.workplace_attributes, *schema.worker_attributes)
    for name, labels in file.plan.data.labels.items():
        place = ("data", "labels", name)
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
