"""`discreet changes`: which forecasts foresee large changes, and which series to look at next."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from rich.console import Console
from rich.table import Table as Screen

from discreet.cli.progress import progress_bar

if TYPE_CHECKING:
    from discreet.change.compare import Comparison
    from discreet.change.exceptions import ExceptionReport
    from discreet.report.page import Page


class Direction(StrEnum):
    decline = "decline"
    increase = "increase"


class StandardName(StrEnum):
    relative = "relative"
    absolute = "absolute"


class Missing(StrEnum):
    refuse = "refuse"
    drop = "drop"


app = typer.Typer(
    name="changes",
    help="Large changes: compare forecasts by ROC analysis, report exceptions.",
    epilog="Example: `discreet changes report sales.csv forecasts.csv --cost-ratio 10 --out out/exceptions`",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

Panel: TypeAlias = Annotated[str, typer.Argument(help="Table with columns series, t, value (CSV, Parquet, DuckDB).")]
Horizon: TypeAlias = Annotated[int, typer.Option(min=1, help="Periods from the forecast origin to the forecast.")]
Cutoff: TypeAlias = Annotated[float, typer.Option(help="Normal quantile beyond which a change is large.")]
Which: TypeAlias = Annotated[Direction, typer.Option(help="Look for declines or for increases.")]
Gold: TypeAlias = Annotated[StandardName, typer.Option(help="Change from the origin, or level of the series.")]
Limit: TypeAlias = Annotated[float, typer.Option(help="Largest false positive rate that you can live with.")]
Gaps: TypeAlias = Annotated[Missing, typer.Option(help="Cases that some method does not forecast.")]
Out: TypeAlias = Annotated[Path | None, typer.Option(help="Directory for report.html, results.json and tables.")]
COLUMNS = "Which column is what"
Series: TypeAlias = Annotated[
    str, typer.Option(metavar="COLUMN", help="The series, in both tables.", rich_help_panel=COLUMNS)
]
Time: TypeAlias = Annotated[
    str, typer.Option(metavar="COLUMN", help="The period, in both tables.", rich_help_panel=COLUMNS)
]
Value: TypeAlias = Annotated[str, typer.Option(metavar="COLUMN", help="The panel's values.", rich_help_panel=COLUMNS)]
MethodColumn: TypeAlias = Annotated[
    str, typer.Option(metavar="COLUMN", help="Who made a forecast.", rich_help_panel=COLUMNS)
]
Forecast: TypeAlias = Annotated[str, typer.Option(metavar="COLUMN", help="The forecasts.", rich_help_panel=COLUMNS)]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@app.command()
def compare(
    panel: Panel,
    forecasts: Annotated[str, typer.Argument(help="Table with columns series, method, t, forecast.")],
    horizon: Horizon = 1,
    cutoff: Cutoff = 0.95,
    direction: Which = Direction.decline,
    standard: Gold = StandardName.relative,
    fpr: Limit = 0.2,
    resamples: Annotated[int, typer.Option(min=2, help="Bootstrap resamples.")] = 1000,
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
    """
    from discreet.change.compare import compare_large_changes
    from discreet.change.panel import in_our_names
    from discreet.studies.study import Study, check_output

    if out is not None:
        check_output(out.resolve())
    names = {"series": series, "t": time, "value": value, "method": method_column, "forecast": forecast}
    with _working("comparing forecasts"):
        found = compare_large_changes(
            *in_our_names(panel, forecasts, names),
            horizon=horizon,
            cutoff=cutoff,
            direction=direction.value,
            policy=standard.value,
            fpr=(0.0, fpr),
            resamples=resamples,
            seed=seed,
            missing=missing.value,
        )
        if out is not None:
            page = comparison_page(found)
            Study("changes", page.title, found.to_dict(), page).write(out)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False, allow_nan=False))
        return
    typer.echo(found.summary())
    _say_where(out)


@app.command()
def report(
    panel: Panel,
    forecasts: Annotated[
        str | None,
        typer.Argument(help="Table with columns series, method, t, forecast: past periods and the coming one."),
    ] = None,
    method: Annotated[str | None, typer.Option(help="Method that ranks; by default the best on the past.")] = None,
    cost_ratio: Annotated[float, typer.Option(help="False alarms that one missed large change is worth.")] = 10.0,
    prevalence: Annotated[float | None, typer.Option(help="Share of large changes; by default the past's.")] = None,
    horizon: Horizon = 1,
    cutoff: Cutoff = 0.95,
    direction: Which = Direction.decline,
    standard: Gold = StandardName.relative,
    fpr: Limit = 0.2,
    missing: Gaps = Missing.refuse,
    season: Annotated[int, typer.Option(min=1, help="Periods in a season, when forecasts are made here.")] = 12,
    past: Annotated[int, typer.Option(min=1, help="Past periods to forecast, when forecasts are made here.")] = 12,
    series: Series = "series",
    time: Time = "t",
    value: Value = "value",
    method_column: MethodColumn = "method",
    forecast: Forecast = "forecast",
    out: Out = None,
    as_json: Json = False,
) -> None:
    """List the series to look at next, ranked, with the right and false alarms to expect.

    Past forecasts set the threshold, the coming period's are ranked. Without a table of forecasts they are made here
    (extra `forecast`): by `--method`, or by theta.

    Example: `discreet changes report sales.csv forecasts.csv --cost-ratio 10 --out out/exceptions`
    """
    from discreet.change.exceptions import exception_report
    from discreet.change.panel import in_our_names
    from discreet.report.page import Table
    from discreet.studies.study import Study, check_output

    if out is not None:
        check_output(out.resolve())
    with _working("ranking series") as progress:
        names = {"series": series, "t": time, "value": value, "method": method_column, "forecast": forecast}
        rows, made = in_our_names(panel, forecasts, names)
        if forecasts is None:
            from discreet.change.forecasters import forecast_panel

            made = forecast_panel(
                rows,
                methods=(method or "theta",),
                horizon=horizon,
                season=season,
                past=past,
                policy=standard.value,
                progress=progress,
            )
        found = exception_report(
            rows,
            made,
            method=method,
            horizon=horizon,
            cutoff=cutoff,
            direction=direction.value,
            policy=standard.value,
            fpr=(0.0, fpr),
            cost_ratio=cost_ratio,
            prevalence=prevalence,
            missing=missing.value,
        )
        if out is not None:
            every = Table.of(found.rows, "Every series of the coming period.")
            page = exception_page(found)
            Study("exceptions", page.title, found.to_dict(), page, tables={"every-series": every}).write(out)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False, allow_nan=False))
        return
    _show(found)
    _say_where(out)


def comparison_page(found: Comparison) -> Page:
    """A comparison of forecasts for people."""
    from discreet.report.page import Figure, Note, Page, Prose, Table

    shown = found.methods[:5]
    titles = ("method", "PAUC", "low", "high", "McClish", "AUC", "statistic", "p")
    columns = ("method", "pauc", "low", "high", "mcclish", "auc", "statistic")
    listed = [[*(row[name] for name in columns), _p(row["p"])] for row in found.rows()]
    return Page(
        "Which forecasts foresee large changes?",
        [
            Note(
                "result",
                f"{found.best} ranks first with a partial area of {found.replicates.area[0]:.3f}; chance is "
                f"{(found.fpr[1] ** 2 - found.fpr[0] ** 2) / 2:.3f}, perfection {found.fpr[1] - found.fpr[0]:g}.",
            ),
            Prose(
                f"{int(found.positive.sum())} large changes in {len(found.positive)} cases, {found.horizon} ahead, "
                f"beyond the {found.cutoff:g} quantile. PAUC: area under the ROC curve for false positive rates "
                f"{found.fpr[0]:g} to {found.fpr[1]:g}, with 95 % limits; McClish: the same from 0.5 for chance to 1; "
                f"statistic: the lead of {found.best} over the row in standard deviations of resamples; p: how often "
                "equally good methods would differ by as much, the choice of the best included."
            ),
            *([Note("warning", found.warning)] if found.warning else []),
            Table(titles, listed, "Methods by partial area.", "methods"),
            Figure(
                found.plot_roc(shown),
                alt=f"ROC curves of {', '.join(shown)}, best first, with the line of chance.",
                caption="ROC curves of the best methods.",
                name="roc",
            ),
        ],
    )


def _p(value: float | None) -> str | None:
    return None if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def exception_page(found: ExceptionReport) -> Page:
    """An exception report for people."""
    from discreet.report.page import Block, Figure, Heading, Note, Page, Prose, Table

    point = found.point
    periods = sorted({row["t"] for row in found.rows})
    columns = ["rank", "series", "last", "forecast", "score"]
    titles = ["rank", "series", "last value", "forecast", "score", "chance", "right so far", "false so far"]
    if len(periods) > 1:
        columns.insert(2, "t")
        titles.insert(2, "period")
    listed = [
        [
            *(row[name] for name in columns),
            f"{row['chance']:.0%}",
            f"{row['true_so_far']:.1f}",
            f"{row['false_so_far']:.1f}",
        ]
        for row in found.flagged
    ]
    flagged = (
        Table(titles, listed, f"{len(listed)} of {len(found.rows)} ranked series, {_span(periods)}.", "flagged")
        if listed
        else Prose("None. No series is worth its false alarms at this cost.")
    )
    apart: list[Block] = []
    if found.set_aside:
        apart = [
            Heading("Series that are not ranked"),
            Prose("They cannot be large changes of the coming period, which is known already, or have no such period."),
            Table.of(found.set_aside, f"{len(found.set_aside)} series, and why.", "not-ranked"),
        ]
    return Page(
        f"Series to look at: large {found.direction}s ahead",
        [
            Note("result", found.summary()),
            Heading("Flagged series"),
            Prose(
                "Most alarming first. Score: the forecast change in standard deviations of the series' own changes. "
                "Chance: how often past cases with such scores were large changes. Right and false so far: what to "
                "expect when stopping at that row."
            ),
            flagged,
            *apart,
            Heading("How the line was drawn"),
            Prose(
                f"A missed large {found.direction} counts as {point.cost_ratio:g} false alarms and "
                f"{point.prevalence:.1%} of cases are large, so the best point of the ROC curve is where its slope "
                f"falls to {point.slope:.2f}: "
                f"{point.tpr:.0%} of large changes found at {point.fpr:.1%} false positives{found.expected_rates}. "
                f"Partial area of {found.method} on {found.past} past cases, those that could be large changes: "
                f"{found.pauc:.4f}."
            ),
            Figure(
                _roc_with_point(found),
                alt=f"ROC curve of {found.method} on past cases above the line of chance; the rule lies at a false "
                f"positive rate of {point.fpr:.3f} and a true positive rate of {point.tpr:.3f}.",
                caption="Past cases: the curve, chance (dashed) and the rule (point).",
                name="roc",
            ),
            Table(
                ("a miss costs", "flagged", "right", "false", "found in the past", "false positives in the past"),
                [
                    [
                        f"{row['cost_ratio']:g} false alarms" if row["cost_ratio"] != 1 else "1 false alarm",
                        row["flagged"],
                        f"{row['expected_true']:.1f}",
                        f"{row['expected_false']:.1f}",
                        f"{row['tpr']:.0%}",
                        f"{row['fpr']:.1%}",
                    ]
                    for row in found.choices
                ],
                "Other costs, other lists: series flagged, and how many of them to expect to be right and false.",
                "choices",
            ),
        ],
    )


def _span(periods: list[str]) -> str:
    return f"period {periods[0]}" if len(periods) == 1 else f"periods {periods[0]} to {periods[-1]}"


def _roc_with_point(found: ExceptionReport) -> Any:
    from discreet.chart import mark, number

    curve, point = found.curve, found.point
    points = [{"fpr": float(x), "tpr": float(y)} for x, y in zip(curve.fpr, curve.tpr, strict=True)]
    chance = [{"fpr": 0.0, "tpr": 0.0}, {"fpr": 1.0, "tpr": 1.0}]
    rule = [{"fpr": point.fpr, "tpr": point.tpr}]
    axes = {"x": number("fpr", "False positive rate"), "y": number("tpr", "True positive rate")}
    layers = [
        mark("line", axes, points),
        mark("line", axes, chance, strokeDash=[4, 4], color="grey"),
        mark("point", axes, rule, filled=True, size=120, color="currentColor"),
    ]
    return {"layer": layers, "width": 420, "height": 300}


def _show(found: ExceptionReport) -> None:
    table = Screen("rank", "series", "period", "last", "forecast", "score", "chance", title=None)
    for row in found.flagged:
        numbers = (f"{row[name]:.4g}" for name in ("last", "forecast", "score"))
        table.add_row(str(row["rank"]), row["series"], row["t"], *numbers, f"{row['chance']:.0%}")
    if found.flagged:
        Console().print(table)
    typer.echo(found.summary())


def _say_where(out: Path | None) -> None:
    if out is not None:
        typer.echo(f"Report: {out / 'report.html'}")


@contextmanager
def _working(what: str) -> Iterator[Callable[[str, float], None]]:
    """A progress bar on stderr, and the function that moves it."""
    with progress_bar() as bar:
        task = bar.add_task(what, total=None)
        yield lambda step, share: bar.update(task, description=step, completed=share, total=1.0)
