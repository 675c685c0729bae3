"""`discreet changes between`: the counts of two private releases that changed by more than their noise can explain."""

from __future__ import annotations

import json
import math
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as Screen

SHOWN = 50
"""Rows of a list on the screen."""


def between(
    early: Annotated[
        str, typer.Argument(help="Folder of the earlier release, or its table: attributes, count, lower, upper.")
    ],
    late: Annotated[str, typer.Argument(help="Folder or table of the later release.")],
    by: Annotated[
        str | None, typer.Option(help="Attributes that make a cell, with commas between; a folder has them.")
    ] = None,
    level: Annotated[
        float | None, typer.Option(help="Probability with which intervals hold; files in a release have it.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="With two folders: the largest chance of a false alarm, for example 0.1.")
    ] = None,
    fdr: Annotated[
        float | None,
        typer.Option(help="With two folders: the largest expected share of false alarms among all, instead of a rate."),
    ] = None,
    least: Annotated[float, typer.Option(min=0, help="The least change of a count that is listed.")] = 0.0,
    value: Annotated[
        str, typer.Option(help="The published number: count, sum, or of flows destruction, jdr, ...")
    ] = "count",
    as_json: Annotated[bool, typer.Option("--json", help="Print results as JSON.")] = False,
) -> None:
    """List the counts of two private releases that changed by more than their noise can explain.

    Only published numbers are read, so this costs no privacy. Two folders of releases of counts have narrower ends than
    their tables, because their draws are independent.

    Example: `discreet changes between out/q1/jobs out/q2/jobs --rate 0.1`

    Example: `discreet changes between out/q1/jobs out/q2/jobs --fdr 0.1`

    Example: `discreet changes between q1.csv q2.csv --by place --level 0.95`
    """
    from discreet.utility.between import changes_between

    attributes = None if by is None else [name.strip() for name in by.split(",")]
    found = changes_between(early, late, by=attributes, level=level, rate=rate, fdr=fdr, least=least, value=value)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False, allow_nan=False))
        return
    whole = all(row["before"] == int(row["before"]) for row in found.rows() if math.isfinite(row["before"]))

    def told(number: float) -> str:
        return f"{number:,.0f}" if whole else f"{number:.3f}"

    table = Screen(*found.by, "before", "after", "true change", title=None)
    for row in [row for row in found.rows() if row["alarm"]][:SHOWN]:
        low, high, before, after = (
            "?" if row[end] is None else told(row[end]) for end in ("low", "high", "before", "after")
        )
        table.add_row(*(row[name] for name in found.by), before, after, f"{low} to {high}")
    if found.alarm.any():
        Console().print(table)
    typer.echo(found.summary())
