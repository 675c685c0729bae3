"""`discreet plan new`: a first plan for one's own table, from what its owner declares."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli import columns

MODEL = "For a model"
ROLES = "e establishment, w worker, p public of the establishment, a attribute of a worker, n number of jobs"


def new(
    source: Annotated[
        str, typer.Argument(metavar="DATA", help="CSV, Parquet, DuckDB or SQLite file (jobs.duckdb::table).")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the plan goes; nothing is replaced.")] = Path(
        "plan.toml"
    ),
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
    response: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The protected column.", rich_help_panel=MODEL)
    ] = None,
    public: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column that everybody may know; once for each.", rich_help_panel=MODEL),
    ] = None,
    bounds: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="LOW HIGH", help="The range of responses, known without the data.", rich_help_panel=MODEL),
    ] = None,
    formula: Annotated[str, typer.Option(help="In lme4's syntax.", rich_help_panel=MODEL)] = "",
    alpha: Annotated[str, typer.Option(help="The share by which a workforce may grow without being noticed.")] = "0.1",
    epsilon: Annotated[str, typer.Option(help="The most that all releases together may cost.")] = "4",
    period: Annotated[str, typer.Option(help="The period of the data, in a series: 2026, 2026-Q1 or 2026-01.")] = "",
    per_period: Annotated[
        str, typer.Option(metavar="AMOUNT", help="The most that releases about one such period may cost together.")
    ] = "",
    ledger: Annotated[str, typer.Option(help="Ledger that pays: a file or a PostgreSQL address.")] = "ledger.db",
    dataset: Annotated[str, typer.Option(help="The data's name in the ledger; that of the file unless given.")] = "",
) -> None:
    """Write a commented plan for your own table: which column is what, whom to protect, what it may cost.

    You declare what is public, by the options or, without them, in answer to questions. The plan contains the names of
    declared columns, their types, and the values of columns that were declared public. No other value is written. The
    possible values of a worker's attribute are never taken from the data.

    Example: `discreet plan new jobs.csv --establishment firm --worker person --workplace-attribute place`
    """
    from discreet.plan.starter import Wish, write_plan

    types = _types(source)
    declared = columns.given_schema(
        schema,
        establishment=establishment,
        worker=worker,
        size=size,
        workplace_attributes=workplace_attribute,
        worker_attributes=worker_attribute,
        unused=unused,
    )
    bound = most_jobs or allow_multiple
    if response is not None and declared is not None:
        raise typer.BadParameter("--response is for a model, and the columns are those of jobs. Ask for one of them.")
    if response is None and declared is None:
        declared, bound = _asked(source, types)
    if response is not None and bounds is None:
        raise typer.BadParameter("The range of responses is known without the data. Add --bounds LOW HIGH.")
    wish: dict[str, Any] = {"bounds": bounds} if bounds else {}
    _known(source, types, declared, [*([response] if response else []), *(public or [])])
    written = write_plan(
        out,
        Wish(
            source=source,
            schema=declared,
            workplaces=workplaces,
            workers=workers,
            allow_multiple=bound,
            quarters=columns.listed(quarters, source, time),
            time=time,
            alpha=alpha,
            response=response or "",
            public=public or (),
            formula=formula,
            epsilon=epsilon,
            period=period,
            per_period=per_period,
            ledger=ledger,
            dataset=dataset,
            types=types,
            **wish,
        ),
    )
    typer.echo(
        f"{written} holds names of columns and what is public; read it, and change what you like.\n"
        f"Next: discreet check {shlex.quote(str(written))}\n"
        f"For the owner of the data: discreet check {shlex.quote(str(written))} --owner"
    )


def join(
    plans: Annotated[list[Path], typer.Argument(metavar="PLAN...", help="Plans of one source each, in one folder.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the joined plan goes; nothing is replaced.")],
) -> None:
    """Join plans of one source each to one plan of several sources, with one check, run, report and bundle.

    Each source is called after its data set. Comments stay, and no request changes: what was paid for is found again.

    Example: `discreet plan join jobs.toml panel.toml --out programme.toml`
    """
    from discreet.plan.joined import join_plans

    written = join_plans(plans, out)
    typer.echo(f"{written} has all of them.\nNext: discreet check {shlex.quote(str(written))}")


def declare(
    path: Annotated[Path, typer.Argument(metavar="PLAN", help="A plan.toml; it is changed.")],
    public: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Of rows: a column that everybody may know.")
    ] = None,
    number: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Of rows: a protected column of numbers.")
    ] = None,
    unused: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Of jobs: a column that no statistic reads; '*' for all others."),
    ] = None,
    source: Annotated[str | None, typer.Option(metavar="NAME", help="The source, where the plan has several.")] = None,
) -> None:
    """Declare what columns of a plan's data are, in the plan. No request changes: what was paid for is found again.

    Example: `discreet plan declare plan.toml --unused remarks`
    """
    from discreet.plan.declared import declare as declared

    roles = {"public": public or (), "numbers": number or (), "unused": unused or ()}
    lines = declared(path, roles, source=source)
    typer.echo("\n".join([f"{path} has:" if lines else f"{path} needs no more.", *(f"  {line}" for line in lines)]))


def _types(source: str) -> dict[str, str]:
    from discreet.data.frames import open_frame
    from discreet.data_check import plain_type

    return {column: plain_type(dtype) for column, dtype in open_frame(source).collect_schema().items()}


def _known(source: str, types: dict[str, str], declared: Any, others: list[str]) -> None:
    """Refuse columns that are not there; those of lists apart are not looked for."""
    from discreet.data.frames import called, missing, refuse

    keys = [] if declared is None else declared.keys
    name, asked = called(source), (*keys, *others)
    refuse((missing(column, types, name=name, asked=asked) for column in asked if column not in types), about="source")


def _asked(source: str, types: dict[str, str]) -> tuple[Any, bool | int]:
    """The schema from answers."""
    from discreet.data.schema import REST, Schema

    typer.echo(
        f"{Path(source).name} has {len(types)} columns. What is each? {ROLES}; empty: it is not used, and no period."
    )
    roles: dict[str, list[str]] = {letter: [] for letter in "ewpan"}
    unused = False
    domains: dict[str, list[str]] = {}
    for column, kind in types.items():
        answer = ""
        while (answer := typer.prompt(f"{column} ({kind})", default="", show_default=False).strip()[:1]) not in roles:
            if not answer:
                unused = True
                break
            typer.echo(f"Answer one of: {ROLES}; or nothing.")
        if answer:
            roles[answer].append(column)
        if answer == "a":
            listed = typer.prompt(f"  What can {column} be? All of it, with commas; it is not looked up in the data")
            domains[column] = [value.strip() for value in listed.split(",")]
    if len(roles["e"]) != 1 or len(roles["w"]) + len(roles["n"]) != 1:
        raise typer.BadParameter(
            "A table of jobs has one column of establishments, and one of workers or of numbers of jobs. Answer again."
        )
    if roles["p"] and not typer.confirm(
        f"Everybody may know of every establishment: {', '.join(roles['p'])}. Is it so?"
    ):
        raise typer.BadParameter(
            "Only what is public can be a workplace attribute. Leave the others out, or ask first."
        )
    size = roles["n"][0] if roles["n"] else None
    rest = [REST] if unused else []
    known = Schema(roles["p"], domains, roles["e"][0], roles["w"][0] if roles["w"] else None, size, unused=rest)
    if size is not None:
        return known, False
    several = typer.prompt("How many establishments can a worker have jobs at? 0: no bound", 1, type=int)
    if several < 0:
        raise typer.BadParameter(f"{several} is no number of establishments. Answer 1 or more, or 0 for no bound.")
    return known, several if several > 1 else several == 0
