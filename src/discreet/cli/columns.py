"""Options that say which column of a table of jobs is what: the same for every command that reads one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from discreet.schema import Schema

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
    Path | None, typer.Option(help="A separate file: the public list of establishments.", rich_help_panel=PANEL)
]
Workers: TypeAlias = Annotated[
    Path | None, typer.Option(help="A separate file: the workers' attributes.", rich_help_panel=PANEL)
]
AllowMultiple: TypeAlias = Annotated[
    bool,
    typer.Option("--allow-multiple", help="A worker may have jobs at several establishments.", rich_help_panel=PANEL),
]
MostJobs: TypeAlias = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="A worker has jobs at N establishments at most.", rich_help_panel=PANEL),
]


def given_schema(
    file: Path | None,
    *,
    establishment: str | None,
    worker: str | None,
    size: str | None,
    workplace_attributes: list[str] | None,
    worker_attributes: list[str] | None,
) -> Schema | None:
    """The schema of a file or of the options; None where neither says anything."""
    roles = {"establishment": establishment, "worker": worker, "size": size}
    named: dict[str, Any] = {role: column for role, column in roles.items() if column is not None}
    attributes = workplace_attributes or worker_attributes
    if file is not None:
        if named or attributes:
            raise typer.BadParameter("--schema says what each column is. Leave the other options out, or the file.")
        return Schema.read(file)
    if not (named or attributes):
        return None
    return Schema(workplace_attributes or [], dict(map(_domain, worker_attributes or [])), **named)


def _domain(text: str) -> tuple[str, list[str]]:
    column, found, values = text.partition("=")
    if not found or not column.strip() or not all(value.strip() for value in values.split(",")):
        raise typer.BadParameter(
            f"--worker-attribute {text!r} lists no values. The values of a worker's attribute are public. They are "
            f"never looked up in the data. Write sex=female,male."
        )
    return column.strip(), [value.strip() for value in values.split(",")]
