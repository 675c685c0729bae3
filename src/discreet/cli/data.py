"""`discreet data check`: what is wrong with a table, for its owner alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli import columns
from discreet.cli.faults import faults_as_json

if TYPE_CHECKING:
    from discreet.data_check import DataCheck, DataFinding

data = typer.Typer(
    name="data",
    help="Look at a table before any plan exists: for the owner of the data alone.",
    epilog="Example: `discreet data check jobs.csv --faults jobs-faults.csv`",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

OWNER = "For the owner of the data alone, and no part of any release."


@data.callback()
def _group() -> None: ...


@data.command()
def check(
    source: Annotated[
        str, typer.Argument(metavar="DATA", help="CSV, Parquet, DuckDB or SQLite file (jobs.duckdb::table).")
    ],
    faults: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the numbers of the rows there; keep it with the data.")
    ] = None,
    schema: columns.SchemaFile = None,
    establishment: columns.Establishment = None,
    worker: columns.Worker = None,
    size: columns.Size = None,
    workplace_attribute: columns.WorkplaceAttributes = None,
    worker_attribute: columns.WorkerAttributes = None,
    unused: columns.Unused = None,
    workplaces: columns.Workplaces = None,
    workers: columns.Workers = None,
    allow_multiple: columns.AllowMultiple = False,
    most_jobs: columns.MostJobs = None,
    quarters: columns.Quarters = None,
    time: columns.Time = "quarter",
    response: Annotated[str | None, typer.Option(metavar="COLUMN", help="For a model: the protected column.")] = None,
    public: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="For a model: a column that everybody may know.")
    ] = None,
    number: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="For a posterior summary: a protected column of numbers.")
    ] = None,
    bounds: Annotated[
        tuple[str, str] | None, typer.Option(metavar="LOW HIGH", help="For a model: the range of responses.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
) -> None:
    """Find what a release would refuse, and what is odd, before any plan exists.

    It prints the kinds of faults and how many rows have them. --faults writes the numbers of these rows to a file that
    only this user can read. Both are about single rows: they are for the owner of the data, and no part of a release.
    No value is shown. The exit code is 1 when a release would be refused.

    Example: `discreet data check jobs.csv --establishment firm --worker person --workplace-attribute place`
    """
    from discreet.data_check import check_data

    with faults_as_json(as_json):
        found = check_data(
            source,
            schema=columns.given_schema(
                schema,
                establishment=establishment,
                worker=worker,
                size=size,
                workplace_attributes=workplace_attribute,
                worker_attributes=worker_attribute,
                unused=unused,
            ),
            workplaces=workplaces,
            workers=workers,
            allow_multiple=most_jobs or allow_multiple,
            quarters=columns.listed(quarters, source, time),
            time=time,
            response=response,
            public=public or (),
            numbers=number or (),
            bounds=bounds,
        )
        if faults is not None:
            found.write(faults)
    if as_json:
        typer.echo(json.dumps({"refused": found.refused} | found.to_dict(), indent=2))
    else:
        _print(found, faults)
    raise typer.Exit(1 if found.refused else 0)


def _print(found: DataCheck, faults: Path | None) -> None:
    typer.echo(OWNER)
    if found.rows is not None:
        typer.echo(f"{found.name}: {found.rows:,} rows. Columns:")
        width = max(map(len, found.columns), default=0)
        typer.echo("\n".join(f"  {column:{width}}  {kind}" for column, kind in found.columns.items()))
    wrong = [one for one in found.findings if one.refused]
    odd = [one for one in found.findings if not one.refused]
    for head, listed in (("A release would be refused:", wrong), ("Worth a look:", odd)):
        if listed:
            typer.echo("\n".join([head, *map(_told, listed)]))
    if not found.findings:
        typer.echo("Nothing was found that is wrong or odd.")
    if faults is not None:
        typer.echo(f"The rows are in {faults}. It is about single rows: keep it with the data.")
    elif any(one.count for one in found.findings):
        typer.echo("Add --faults FILE for the numbers of the rows.")


def _told(one: DataFinding) -> str:
    rows = "" if one.count is None else f" ({one.count:,} {'row' if one.count == 1 else 'rows'} of {one.table})"
    return f"  {one.said()}{rows}"
