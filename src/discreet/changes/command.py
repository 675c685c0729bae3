"""`discreet changes`: which forecasts foresee large changes, and which series to look at next."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table as Screen

from discreet.changes.panel_options import (
    Cutoffs,
    Direction,
    Filling,
    Forecast,
    Forecasts,
    Gaps,
    Gold,
    Holes,
    Horizon,
    Json,
    Lag,
    Limit,
    MethodColumn,
    Missing,
    Out,
    Panel,
    RankingOptions,
    ResampledName,
    Scale,
    ScaleName,
    Series,
    StandardName,
    Time,
    Until,
    Value,
    Which,
    cutoff_of,
    cutoffs_of,
    ranks,
)
from discreet.words.progress import progress_bar

if TYPE_CHECKING:
    from discreet.changes.exceptions import ExceptionReport


SHOWN = 50
"""Rows of a list on the screen."""

app = typer.Typer(
    name="changes",
    help="Large changes: compare forecasts by ROC analysis, report exceptions.",
    epilog="Example: `discreet changes report sales.csv --capacity 20 --out out/exceptions`",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@app.command()
def compare(
    panel: Panel,
    forecasts: Annotated[str, typer.Argument(help="Table with columns series, method, t, forecast.")],
    horizon: Horizon = 1,
    cutoff: Cutoffs = "0.95",
    direction: Which = Direction.decline,
    sided: Annotated[
        bool, typer.Option("--sided", help="With both directions: an alarm must name the right one.")
    ] = False,
    standard: Gold = StandardName.relative,
    scale: Scale = ScaleName.changes,
    lag: Lag = 1,
    fpr: Limit = 0.2,
    by_value: Annotated[
        bool, typer.Option("--by-value", help="Weight large changes by the size of the series.")
    ] = False,
    gaps: Holes = Filling.skip,
    until: Until = None,
    resample: Annotated[
        ResampledName, typer.Option(help="What stays together in resamples: cases, series or periods.")
    ] = ResampledName.cases,
    block: Annotated[int, typer.Option(min=1, help="Consecutive periods that stay together in resamples.")] = 1,
    resamples: Annotated[int, typer.Option(min=2, help="Bootstrap resamples.")] = 1000,
    randomised: Annotated[
        bool,
        typer.Option(
            "--randomised/--plain", help="With at most six large changes: draw p-values, to keep their level."
        ),
    ] = True,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    missing: Gaps = Missing.refuse,
    series: Series = "series",
    time: Time = "t",
    value: Value = "value",
    method_column: MethodColumn = "method",
    forecast: Forecast = "forecast",
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Rank forecasting methods by how well they foresee large changes, with paired tests against the best.

    Example: `discreet changes compare sales.csv forecasts.csv --cutoff 0.95 --out out/changes`

    Example: `discreet changes compare sales.csv forecasts.csv --cutoff 0.9,0.95,0.99 --resample series`
    """
    from discreet.changes.compare import Comparison, compare_large_changes
    from discreet.changes.cutoffs import ByCutoff, compare_cutoffs
    from discreet.changes.tidy import in_our_names

    _check(out)
    names = {"series": series, "t": time, "value": value, "method": method_column, "forecast": forecast}
    with _working("comparing forecasts"):
        asked: dict[str, Any] = {
            "horizon": horizon,
            "direction": direction.value,
            "policy": standard.value,
            "scale": scale.value,
            "sided": sided,
            "by_value": by_value,
            "fpr": (0.0, fpr),
            "resample": resample.value,
            "block": block,
            "resamples": resamples,
            "randomised": randomised,
            "seed": seed,
            "missing": missing.value,
            "lag": lag,
            "gaps": gaps.value,
            "until": until,
        }
        both, several = in_our_names(panel, forecasts, names), cutoffs_of(cutoff)
        found: Comparison | ByCutoff = (
            compare_cutoffs(*both, cutoffs=several, **asked)
            if several
            else compare_large_changes(*both, cutoff=cutoff_of(cutoff), **asked)
        )
        if out is not None:
            from discreet.changes.page import comparison_page, cutoffs_page
            from discreet.pages.study import Study

            page = cutoffs_page(found) if isinstance(found, ByCutoff) else comparison_page(found)
            Study("changes", page.title, found.to_dict(), page).write(out)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False, allow_nan=False))
        return
    typer.echo(found.summary())
    _say_where(out)


@app.command()
@ranks
def report(
    panel: Panel,
    forecasts: Forecasts = None,
    capacity: Annotated[int | None, typer.Option(min=1, help="How many series you can look at.")] = None,
    cost_ratio: Annotated[float, typer.Option(help="False alarms that one missed large change is worth.")] = 10.0,
    asked: RankingOptions = RankingOptions(),
    out: Out = None,
    as_json: Json = False,
) -> None:
    """List the series to look at next, ranked, with the right and false alarms to expect.

    Forecasts of past periods train the ranking, and those of the coming period are ranked. Without a table of
    forecasts, the built-in methods make them. Series that cannot be judged are listed apart, with the reason.

    Example: `discreet changes report sales.csv --capacity 20 --out out/exceptions`

    Example: `discreet changes report crimes.csv --capacity 20 --hierarchy region,city`

    Example: `discreet changes report sales.csv --capacity 20 --indicators price --known holiday --calendar days.csv`

    Example: `discreet changes report sales.csv forecasts.csv --cost-ratio 10 --series sku --time month --value units`
    """
    _check(out)
    with _working("reading the panel"):
        rows, made = asked.tables(panel, forecasts)
        held = asked.held(rows)
    from discreet.changes.exceptions import exception_report

    with _working("ranking series") as progress:
        found = exception_report(
            held,
            made,
            capacity=capacity,
            cost_ratio=cost_ratio,
            progress=progress,
            **asked.arguments(),
        )
        if out is not None:
            from discreet.changes.page import exception_page
            from discreet.pages.page import Table
            from discreet.pages.study import Study

            every = Table.of(found.rows, "Every series of the coming period.")
            page = exception_page(found)
            Study("exceptions", page.title, found.to_dict(), page, tables={"every-series": every}).write(out)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False, allow_nan=False))
        return
    _show(found)
    _say_where(out)


@app.command()
@ranks
def backtest(
    panel: Panel,
    forecasts: Forecasts = None,
    periods: Annotated[int, typer.Option(min=1, help="How many past lists to make.")] = 24,
    capacity: Annotated[
        int | None,
        typer.Option(min=1, help="How many series you can look at.", show_default="20, unless by costs"),
    ] = None,
    cost_ratio: Annotated[
        float | None, typer.Option(help="For lists by costs: false alarms that one missed large change is worth.")
    ] = None,
    asked: RankingOptions = RankingOptions(),
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Make the lists of past periods as `report` would have made them, and count the right alarms.

    Example: `discreet changes backtest sales.csv --capacity 20 --periods 24`
    """
    _check(out)
    with _working("reading the panel"):
        rows, made = asked.tables(panel, forecasts)
        held = asked.held(rows)
    from discreet.changes.backtest import backtest_changes

    with _working("making past lists") as progress:
        found = backtest_changes(
            held,
            made,
            periods=periods,
            capacity=20 if capacity is None and cost_ratio is None else capacity,
            cost_ratio=10.0 if cost_ratio is None else cost_ratio,
            progress=progress,
            **asked.arguments(),
        )
        if out is not None:
            from discreet.changes.page import backtest_page
            from discreet.pages.study import Study

            page = backtest_page(found)
            Study("backtest", page.title, found.to_dict(), page).write(out)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False, allow_nan=False))
        return
    table = Screen("period", "method", "flagged", "expected", "right", "all large", "naive", "last change", title=None)
    for row in found.rows:
        expected = f"{row['expected']:.1f} ({row['low']} to {row['high']})"
        counts = (str(row[key]) for key in ("right", "large", "naive", "last_change"))
        table.add_row(row["t"], row["method"], str(row["flagged"]), expected, *counts)
    Console().print(table)
    typer.echo(found.summary())
    _say_where(out)


def _show(found: ExceptionReport) -> None:
    from discreet.changes.listed import chance

    table = Screen("rank", "series", "period", "last", "forecast", "score", "chance", title=None)
    for row in found.flagged[:SHOWN]:
        numbers = (f"{row[name]:.4g}" for name in ("last", "forecast", "score"))
        table.add_row(str(row["rank"]), row["series"], row["t"], *numbers, chance(row))
    if found.flagged:
        Console().print(table)
    if len(found.flagged) > SHOWN:
        typer.echo(f"The first {SHOWN} of {len(found.flagged):,}; `--out` writes all.")
    typer.echo(found.summary())


def _check(out: Path | None) -> None:
    """Refuse a directory that cannot be written, before anything is read."""
    if out is not None:
        from discreet.pages.study import check_output

        check_output(out.resolve())


def _say_where(out: Path | None) -> None:
    if out is not None:
        typer.echo(f"Report: {out / 'report.html'}")


@contextmanager
def _working(what: str) -> Iterator[Callable[[str, float], None]]:
    """A progress bar on stderr, and the function that moves it."""
    with progress_bar() as bar:
        task = bar.add_task(what, total=None)
        yield lambda step, share: bar.update(task, description=step, completed=share, total=1.0)
