"""`discreet simulate`: data of the papers' shape and size, to Parquet, in a stream."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from discreet.words.progress import Progress, progress_bar

app = typer.Typer(
    name="simulate",
    help="Write realistic data to Parquet, reproducibly: nothing confidential is needed to try discreet.",
    epilog="Example: `discreet simulate lodes --out jobs --share 0.01`",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

Out: TypeAlias = Annotated[
    Path, typer.Option(help="Directory for the Parquet files: new, empty, or with these very data.")
]
Seed: TypeAlias = Annotated[int, typer.Option(help="The same seed gives the same values.")]
Share: TypeAlias = Annotated[float, typer.Option(help="Size relative to the papers', 0.001 to 10.")]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")]


@app.command()
def lodes(
    out: Out,
    seed: Seed = 0,
    share: Share = 1.0,
    year: Annotated[int, typer.Option(help="Years after the first: same establishments, new sizes.")] = 0,
    as_json: Json = False,
) -> None:
    """Workplaces, workers and jobs: 527,000 establishments and 10.9 million jobs at full size.

    Example: `discreet simulate lodes --out jobs --share 0.01`
    """
    from discreet.simulate import lodes

    _run(out, as_json, lambda progress: lodes.write(out, seed=seed, share=share, year=year, progress=progress))


@app.command()
def histories(out: Out, seed: Seed = 0, share: Share = 1.0, as_json: Json = False) -> None:
    """Jobs of eight quarters: 160,000 establishments in 200 counties and 20 million rows at full size.

    Example: `discreet simulate histories --out histories --share 0.01`
    """
    from discreet.simulate import histories

    _run(out, as_json, lambda progress: histories.write(out, seed=seed, share=share, progress=progress))


@app.command()
def national(out: Out, seed: Seed = 0, share: Share = 1.0, as_json: Json = False) -> None:
    """Establishments with industry, county, ownership, jobs and payroll: 3 million with 43 million jobs at full size.

    Example: `discreet simulate national --out nation --share 0.01`
    """
    from discreet.simulate import national

    _run(out, as_json, lambda progress: national.write(out, seed=seed, share=share, progress=progress))


@app.command()
def qwi(out: Out, seed: Seed = 0, share: Share = 1.0, as_json: Json = False) -> None:
    """Employment flows by county, industry and quarter: 2,428,452 rows at full size.

    Example: `discreet simulate qwi --out flows --share 0.1`
    """
    from discreet.simulate import qwi

    _run(out, as_json, lambda progress: qwi.write(out, seed=seed, share=share, progress=progress))


@app.command()
def crime(out: Out, seed: Seed = 0, share: Share = 1.0, as_json: Json = False) -> None:
    """Monthly crime counts with leading indicators: 175 tracts, 144 months.

    Example: `discreet simulate crime --out crime --seed 7`
    """
    from discreet.simulate import crime

    _run(out, as_json, lambda progress: crime.write(out, seed=seed, share=share, progress=progress))


@app.command()
def regression(
    out: Out,
    seed: Seed = 0,
    share: Share = 1.0,
    error_variance: Annotated[float, typer.Option(help="1 or 100 in the thesis.")] = 1.0,
    as_json: Json = False,
) -> None:
    """The line y = 1 + 2 x + error: 100,000 rows.

    Example: `discreet simulate regression --out line --error-variance 100`
    """
    from discreet.simulate import regression

    _run(
        out,
        as_json,
        lambda progress: regression.write(
            out, seed=seed, share=share, error_variance=error_variance, progress=progress
        ),
    )


def _run(out: Path, as_json: bool, write: Callable[[Progress], dict[str, Any]]) -> None:
    with progress_bar() as bar:
        task = bar.add_task("rows", total=None)
        done = write(lambda step, share: bar.update(task, description=step, completed=share, total=1.0))
    if as_json:
        typer.echo(json.dumps({**done, "out": str(out)}))
    else:
        for name, rows in done["rows"].items():
            typer.echo(f"{out / f'{name}.parquet'}: {rows:,} rows")
