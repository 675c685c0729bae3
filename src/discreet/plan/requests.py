"""A plan's releases of counts as queries: mechanism, price and promise are fixed here, without confidential data.

A request is what the ledger is asked to pay for. Its `details` hold everything that decides the published files, so a
plan that was changed afterwards asks for something else and is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

from discreet.account import Account
from discreet.arrays import Integers
from discreet.errors import DataError, DiscreetError, Infeasible, PrivacyError
from discreet.jobs import Jobs
from discreet.noise.source import Source
from discreet.plan.document import Fault
from discreet.plan.reading import PlanFile
from discreet.plan.shape import Columns, Count, Counts
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import total
from discreet.report.page import slug
from discreet.schema import LODES, Schema
from discreet.tables.cells import Cells
from discreet.tables.consistency import consistent, finest_of
from discreet.tables.query import CountQuery, Prepared
from discreet.tables.release import CountRelease

DEFAULT_ROUNDING = 5


@dataclass(frozen=True, slots=True)
class Request:
    """One release of counts, ready to be priced, read and drawn."""

    release: Count | Counts
    queries: tuple[CountQuery, ...]
    ready: tuple[Prepared, ...]
    guarantee: Guarantee
    details: dict[str, Any]

    @property
    def name(self) -> str:
        return self.release.name

    @property
    def folders(self) -> tuple[str, ...]:
        """Where in the release's folder each table is: a single one at its top, others by number and attributes."""
        if isinstance(self.release, Count):
            return ("",)
        return tuple(f"{i}-{slug(' '.join(by) or 'total')}" for i, by in enumerate(self.release.tables, start=1))

    @property
    def rounding(self) -> int:
        if self.release.round_to is not None:
            return self.release.round_to
        return 1 if isinstance(self.release, Counts) and self.release.add_up else DEFAULT_ROUNDING

    def on(self, jobs: Jobs, account: Account) -> Request:
        """The same request, about these data and paid by this account."""
        return replace(self, queries=tuple(replace(query, jobs=jobs, account=account) for query in self.queries))

    def statistics(self) -> list[Cells]:
        """The confidential aggregates of every table."""
        return [query.statistics(ready) for query, ready in zip(self.queries, self.ready, strict=True)]

    def draw(self, cells: Sequence[Cells], guarantee: Guarantee, source: Source) -> list[CountRelease]:
        """The tables as drawn: from here on nothing confidential is left."""
        level = float(self.release.level)
        return [
            query.wrap(ready, cell, query.draw(ready, cell, source), guarantee, level=level)
            for query, ready, cell in zip(self.queries, self.ready, cells, strict=True)
        ]

    def improved(self, tables: Sequence[CountRelease]) -> list[Integers]:
        """The counts of the basic form: made to agree, drawn towards groups or cut at zero, as the plan says."""
        if isinstance(self.release, Counts) and self.release.add_up:
            return [t.counts for t in consistent(tables, [ready.mechanism for ready in self.ready])]
        towards = self.release.shrink if isinstance(self.release, Count) else None
        moved = [table if towards is None else table.shrunk(towards) for table in tables]
        return [(table.non_negative() if self.release.non_negative else table).counts for table in moved]


def requests(file: PlanFile, account: Account) -> tuple[list[Request], list[Fault]]:
    """All releases of the plan that make sense, and what is wrong with the others. Reads public files only."""
    try:
        schema = schema_of(file)
    except DataError as error:
        return [], [Fault(("data", "schema"), line) for line in str(error).splitlines()]
    jobs = without_data(schema, listed=has_public_list(file))
    found, wrong = [], list(_label_faults(file, schema))
    for i, release in enumerate(file.plan.release):
        try:
            found.append(_request(file, release, jobs, account))
        except DiscreetError as error:
            key = blamed(release, error)
            wrong += [Fault(("release", i, key), line) for line in str(error).splitlines()]
    return found, wrong


def schema_of(file: PlanFile) -> Schema:
    """The schema that the plan holds, names, or finds beside the data. It is public and says nothing about rows."""
    given = file.plan.data.columns
    if isinstance(given, Columns):
        return given.schema_of_jobs()
    if given is not None:
        return _schema_file(file.path(given))
    source = file.path(file.plan.data.source)
    folder = source if source.is_dir() else source.parent
    for name in ("schema.toml", "schema.json"):
        if (folder / name).is_file():
            return _schema_file(folder / name)
    if _made_by_simulate(folder / "about.json"):
        return LODES
    raise DataError(
        f"there is none in the plan and none beside {file.plan.data.source!r}. Which values a worker's attribute can "
        "take is public and must not be learned from the data. Add [data.schema], or schema = 'schema.toml'."
    )


def has_public_list(file: PlanFile) -> bool:
    data = file.plan.data
    return data.workplaces is not None or (file.path(data.source) / "workplace.parquet").is_file()


def without_data(schema: Schema, *, listed: bool) -> Jobs:
    """Jobs of which nothing is known but their schema."""
    import narwhals.stable.v2 as nw
    import pyarrow as pa

    nothing = nw.from_native(pa.schema([(name, pa.string()) for name in schema.keys]).empty_table()).lazy()
    return Jobs(table=nothing, schema=schema, workplaces=nothing if listed else None)


def _request(file: PlanFile, release: Count | Counts, jobs: Jobs, account: Account) -> Request:
    tables = (release.by,) if isinstance(release, Count) else release.tables
    queries = tuple(CountQuery.of(jobs, account, by=by, where=release.where) for by in tables)
    _check_values(release, jobs.schema)
    if isinstance(release, Counts) and release.add_up:
        finest_of(tables)
        if release.round_to not in (None, 1):
            raise DataError(
                f"round_to = {release.round_to} with add_up: rounded counts do not add up. Leave one of them out."
            )
    if isinstance(release, Count) and release.shrink is not None:
        _check_shrink(release, queries[0])
    if release.stratum is not None and release.stratum not in queries[0].workplace_by:
        raise DataError(
            f"stratum = {release.stratum!r} is not among the workplace attributes of the table, which are: "
            f"{', '.join(queries[0].workplace_by) or 'none'}. Use one of these, or leave it out."
        )
    ready = tuple(
        query.prepare(
            epsilon=release.epsilon * share,
            delta=None if release.delta is None else release.delta * share,
            mechanism=release.mechanism if isinstance(release, Count) else None,
            calibration=release.calibration,
        )
        for query, share in zip(queries, _shares(release), strict=True)
    )
    guarantee = replace(ready[0].guarantee, loss=total([part.guarantee.loss for part in ready]))
    request = Request(release, queries, ready, guarantee, {})
    return replace(request, details=_details(file, request))


def _shares(release: Count | Counts) -> list[Fraction]:
    count = 1 if isinstance(release, Count) else len(release.tables)
    parts = list(release.split) if isinstance(release, Counts) and release.split else [Fraction(1, count)] * count
    if len(parts) != count or sum(parts) != 1:
        raise PrivacyError(
            f"split = {[str(part) for part in parts]} does not divide epsilon among {count} tables. The shares are "
            f"one per table and add up to 1. Use for example {['1/' + str(count)] * count}."
        )
    return parts


def _check_values(release: Count | Counts, schema: Schema) -> None:
    for name, values in release.where.items():
        domain = schema.worker_attributes.get(name)
        unknown = [] if domain is None else [value for value in values if value not in domain]
        if unknown and domain is not None:
            raise DataError(
                f"where.{name} asks for {unknown[0]!r}, which is not in the public domain: "
                f"{', '.join(map(str, domain))}. Use its values."
            )


def _check_shrink(release: Count, query: CountQuery) -> None:
    towards = release.shrink or ()
    unknown = [name for name in towards if name not in query.workplace_by]
    if unknown or not query.worker_by:
        fault = f"{unknown[0]!r} is not a workplace attribute of it" if unknown else "it has no worker attributes"
        raise DataError(
            f"shrink = {list(towards)} is not possible for the table by {', '.join(release.by) or 'nothing'}: {fault}. "
            "Shares of worker kinds are drawn towards those of groups of workplace cells. Change by, or leave it out."
        )


def _label_faults(file: PlanFile, schema: Schema) -> Iterator[Fault]:
    known = (*schema.workplace_attributes, *schema.worker_attributes)
    for name in file.plan.data.labels:
        if name not in known:
            yield Fault(
                ("data", "labels", name),
                f"{name!r} is not an attribute. There are: {', '.join(known)}. Label one of these.",
            )


def blamed(release: Count | Counts, error: DiscreetError) -> str:
    """The key of a release that an error is about."""
    text = str(error)
    for key in ("where", "split", "shrink", "stratum", "round_to"):
        if text.startswith(key):
            return key
    if isinstance(error, DataError):
        return "by" if isinstance(release, Count) else "tables"
    if isinstance(error, Infeasible):
        return "epsilon"
    given = {"mechanism": getattr(release, "mechanism", None), "delta": release.delta}
    return next((key for key, value in given.items() if value is not None), "calibration")


def _details(file: PlanFile, request: Request) -> dict[str, Any]:
    release, output = request.release, file.plan.output
    schema, labels = request.queries[0].jobs.schema, file.plan.data.labels
    tables = []
    for query, ready, folder in zip(request.queries, request.ready, request.folders, strict=True):
        domains = {name: list(query.where.get(name, schema.worker_attributes[name])) for name in query.worker_by}
        used = {name: labels[name] for name in (*query.workplace_by, *query.worker_by) if name in labels}
        tables.append(
            {
                **ready.parameters,
                "folder": folder,
                "domains": domains,
                "labels": sha256(json.dumps(used, sort_keys=True).encode()).hexdigest() if used else None,
                "loss": ready.guarantee.loss.to_dict(),
            }
        )
    return {
        "kind": release.kind,
        "tables": tables,
        "level": str(release.level),
        "non_negative": release.non_negative,
        "round_to": request.rounding,
        "shrink": list(release.shrink) if isinstance(release, Count) and release.shrink is not None else None,
        "add_up": isinstance(release, Counts) and release.add_up,
        "forms": sorted(output.forms),
        "formats": sorted(output.formats),
    }


def _schema_file(path: Path) -> Schema:
    try:
        return Schema.read(path)
    except (TypeError, AttributeError):
        raise DataError(
            f"{path.name!r} does not hold a schema. It has workplace_attributes, a list, and worker_attributes, the "
            "domain of each. Correct it, or write the schema in the plan."
        ) from None


def _made_by_simulate(about: Path) -> bool:
    try:
        content = json.loads(about.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("data") == "lodes"
