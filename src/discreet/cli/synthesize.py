"""`discreet synthesize`: synthetic jobs that agree with a release, at no cost in privacy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli.faults import faults_as_json
from discreet.cli.publication import AsJson, LedgerPath, Release


def synthesize(
    release: Release,
    out: Annotated[Path, typer.Option(help="A new file whose name says synthetic and ends in .parquet.")],
    seed: Annotated[int, typer.Option(help="The same release and seed give the same bytes.")] = 0,
    mean: Annotated[float | None, typer.Option(help="Jobs per establishment, where it is not released.")] = None,
    sigma: Annotated[float | None, typer.Option(help="Spread of the logarithm of their sizes.")] = None,
    rows: Annotated[
        Path | None,
        typer.Option(help="Of a released model: rows of its public columns; responses are drawn for them."),
    ] = None,
    replicates: Annotated[int, typer.Option(help="With --rows: responses of each row.")] = 1,
    exposure: Annotated[
        str | None, typer.Option(help="With --rows: the public column that rates are of; adds counts.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="With --rows: which model, where there are several.")] = None,
    ledger: LedgerPath = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Draw synthetic establishments and jobs that agree with everything a release published.

    Only the folder of the release is read, so this costs no privacy, and the file promises what the release promises.
    Every row is marked as synthetic. A file beside it says how well each released table is
    matched, and which parts come from declared shapes and not from the data. Intervals of several tables can
    contradict each other; the file counts the numbers that are missed.

    With --rows it draws responses of a released model instead: rates, and with --exposure counts, for every row.

    Example: `discreet synthesize out --out jobs-synthetic.parquet --seed 1`

    Example: `discreet synthesize out --rows cells.parquet --exposure employment --out jcr-synthetic.parquet`
    """
    if rows is not None:
        if mean is not None or sigma is not None:
            raise typer.BadParameter("--mean and --sigma are of synthetic jobs. Drop them, or drop --rows.")
        with faults_as_json(as_json):
            from discreet.synthetic.responses import write_responses

            asked: Any = {"replicates": replicates, "exposure": exposure, "name": model, "seed": seed}
            count = write_responses(release, rows, out, ledger=ledger, force=force, **asked)
        if as_json:
            typer.echo(json.dumps({"file": str(out), "rows": count, "about": str(out.with_suffix(".json"))}, indent=2))
        else:
            typer.echo(f"{count:,} synthetic responses: {out}\nWhat the file is: {out.with_suffix('.json')}")
        return
    if replicates != 1 or exposure is not None or model is not None:
        raise typer.BadParameter("--replicates, --exposure and --model are of responses. Add --rows.")
    from rich.console import Console
    from rich.table import Table

    from discreet.words.progress import progress_bar

    with faults_as_json(as_json):
        from discreet.synthetic import synthesize as written
        from discreet.synthetic.sizes import SizeShape

        default = SizeShape()
        shape = SizeShape(default.mean if mean is None else mean, default.sigma if sigma is None else sigma)
        with progress_bar() as bar:
            task = bar.add_task("jobs", total=None)
            done = written(
                release,
                out,
                seed=seed,
                sizes=shape,
                ledger=ledger,
                force=force,
                progress=lambda step, share: bar.update(task, description=step, completed=share, total=1.0),
            )
    if as_json:
        told = {"file": str(done.path), "jobs": done.jobs, "establishments": done.establishments, "met": done.met}
        typer.echo(json.dumps(told | {"margins": list(done.margins)}, indent=2))
    else:
        shown = Table("table", "of", "numbers with an interval", "met", "mean distance from the published number")
        for margin in done.margins:
            numbers = (f"{margin[name]:,}" for name in ("sums", "met"))
            shown.add_row(margin["table"], margin["of"], *numbers, f"{margin['mean distance']:,.3g}")
        Console(highlight=False).print(shown)
        typer.echo(f"{done.jobs:,} synthetic jobs at {done.establishments:,} establishments: {done.path}")
        if not done.met:
            missed = sum(margin["sums"] - margin["met"] for margin in done.margins)
            typer.echo(f"{missed:,} released numbers are not met: intervals contradict, or the search ended.")
        typer.echo(f"What the file is: {done.about}")
