"""`discreet study`: run one document's experiment and write its report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from discreet.words.errors import DataError
from discreet.words.progress import progress_bar


def study(
    name: Annotated[
        str,
        typer.Argument(
            help="lodes, defaults, lmm, limits, kinds, tables, synthetic, coverage, blmm, draw, time, posterior, m3, "
            "crime, pmf or alarms.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option(help="Directory to write; an earlier study there is replaced.")],
    quick: Annotated[bool, typer.Option("--quick", help="A minute's version: smaller data, fewer draws.")] = False,
    data: Annotated[
        Path | None, typer.Option("--data", "--jobs", help="Use this file or directory instead of the study's own.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulation; privacy noise has none.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print results.json instead of a summary.")] = False,
) -> None:
    """Repeat a document's experiment: its numbers beside ours, tables, figures and a report.

    Writes results.json, report.html, figures/ and tables/ into the directory, all or nothing.

    Example: `discreet study lodes --quick --out out/lodes`
    """
    from discreet.pages.study import check_output
    from discreet_papers import load

    run = load(name)
    check_output(out.resolve())
    if data is not None and not data.exists():
        raise DataError(
            f"Data {str(data)!r} do not exist.", remedy="Name a file or a directory, or leave --data out.", about="data"
        )
    with progress_bar() as bar:
        task = bar.add_task(f"study {name}", total=1.0)

        def progress(step: str, share: float) -> None:
            bar.update(task, description=step, completed=share)

        outcome = run(quick=quick, data=data, seed=seed, progress=progress)
        progress("writing the report", 1.0)
        written = outcome.write(out)
    if as_json:
        typer.echo(json.dumps(outcome.to_dict(), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        typer.echo(f"{outcome.title}\nReport: {written / 'report.html'}\nNumbers: {written / 'results.json'}")
    if data is not None:
        typer.echo(
            "A study compares with the truth of the data given: what it wrote is as confidential as they are.", err=True
        )
