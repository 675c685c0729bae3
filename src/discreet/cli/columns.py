"""Options that say which column of a table of jobs is what: the same for every command that reads one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from discreet.data.schema import Label, Schema

PANEL = "Which column is what"

SchemaFile: TypeAlias = Annotated[
    Path | None, typer.Option("--schema", help="TOML or JSON file with all of it.", rich_help_panel=PANEL)
]
Establishment: TypeAlias = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Identifies the establishment.", rich_help_panel=PANEL)
]
Worker: TypeAlias = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Identifies the worker.", rich_help_panel=PANEL)
]
Size: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="A row's number of jobs, in tables already counted.", rich_help_panel=PANEL),
]
WorkplaceAttributes: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--workplace-attribute",
        metavar="COLUMN",
        help="An establishment has one public value of it; once for each.",
        rich_help_panel=PANEL,
    ),
]
WorkerAttributes: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--worker-attribute",
        metavar="COLUMN=A,B",
        help="Describes a worker, with the public list of its values; once for each.",
        rich_help_panel=PANEL,
    ),
]
Workplaces: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="DATA", help="A table apart: the public list of establishments.", rich_help_panel=PANEL),
]
Workers: TypeAlias = Annotated[
    str | None, typer.Option(metavar="DATA", help="A table apart: the workers' attributes.", rich_help_panel=PANEL)
]
Unused: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="A column that no statistic reads; '*' for all others.", rich_help_panel=PANEL),
]
AllowMultiple: TypeAlias = Annotated[
    bool,
    typer.Option("--allow-multiple", help="A worker may have jobs at several establishments.", rich_help_panel=PANEL),
]
MostJobs: TypeAlias = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="A worker has jobs at N establishments at most.", rich_help_panel=PANEL),
]


Quarters: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="A,B,...", help="For job histories: all quarters in their order.", rich_help_panel=PANEL),
]
Time: TypeAlias = Annotated[
    str, typer.Option(metavar="COLUMN", help="For job histories: the column of quarters.", rich_help_panel=PANEL)
]


def listed(quarters: str | None, source: str, time: str) -> list[Label] | None:
    """The quarters of an option, as numbers where the type of their column is one."""
    from discreet.data.frames import open_frame
    from discreet.data.scans import is_csv

    if quarters is None:
        return None
    named = [quarter.strip() for quarter in quarters.split(",")]
    if is_csv(source) or not all(map(str.isdecimal, named)):
        return [*named]
    kind = open_frame(source).collect_schema().get(time)
    return [int(each) for each in named] if kind is not None and kind.is_integer() else [*named]


def given_schema(
    file: Path | None,
    *,
    establishment: str | None,
    worker: str | None,
    size: str | None,
    workplace_attributes: list[str] | None,
    worker_attributes: list[str] | None,
    unused: list[str] | None = None,
) -> Schema | None:
    """The schema of a file or of the options; None where neither says anything."""
    roles = {"establishment": establishment, "worker": worker, "size": size}
    named: dict[str, Any] = {role: column for role, column in roles.items() if column is not None}
    attributes = workplace_attributes or worker_attributes or unused
    if file is not None:
        if named or attributes:
            raise typer.BadParameter("--schema says what each column is. Leave the other options out, or the file.")
        return Schema.read(file)
    if not (named or attributes):
        return None
    domains = dict(map(_domain, worker_attributes or []))
    return Schema(workplace_attributes or [], domains, unused=unused or (), **named)


def _domain(text: str) -> tuple[str, list[str]]:
    column, found, values = text.partition("=")
    if not found or not column.strip() or not all(value.strip() for value in values.split(",")):
        raise typer.BadParameter(
            f"--worker-attribute {text!r} lists no values. The values of a worker's attribute are public. They are "
            f"never looked up in the data. Write sex=female,male."
        )
    return column.strip(), [value.strip() for value in values.split(",")]
