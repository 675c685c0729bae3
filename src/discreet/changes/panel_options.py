"""Options of `discreet changes`: what is large, what can be judged, which column is what."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from discreet.words.errors import DataError


class Direction(StrEnum):
    decline = "decline"
    increase = "increase"
    both = "both"


class StandardName(StrEnum):
    relative = "relative"
    absolute = "absolute"


class Filling(StrEnum):
    skip = "skip"
    zero = "zero"
    carry = "carry"


class Missing(StrEnum):
    refuse = "refuse"
    drop = "drop"


class ScaleName(StrEnum):
    changes = "changes"
    method = "method"
    forecasts = "forecasts"


class ResampledName(StrEnum):
    cases = "cases"
    series = "series"
    period = "period"


Panel: TypeAlias = Annotated[
    str, typer.Argument(help="Table with columns series, t, value, or unique_id, ds, y (CSV, Parquet, DuckDB).")
]
Forecasts: TypeAlias = Annotated[
    str | None,
    typer.Argument(help="Table with columns series, method, t, forecast: past periods and the coming one."),
]
Horizon: TypeAlias = Annotated[int, typer.Option(min=1, help="Periods from the forecast origin to the forecast.")]
Cutoff: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="QUANTILE", help="Normal quantile beyond which a change is large; or decline=0.99,increase=0.95."
    ),
]
Cutoffs: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="QUANTILES",
        help="Normal quantile beyond which a change is large; several with commas; or decline=0.99,increase=0.95.",
    ),
]
Scale: TypeAlias = Annotated[
    ScaleName,
    typer.Option(help="Measure forecasts in changes of the series, over the method's spread, or in its own forecasts."),
]
Which: TypeAlias = Annotated[Direction, typer.Option(help="Look for declines, increases or both.")]
Gold: TypeAlias = Annotated[StandardName, typer.Option(help="Change from the origin, or level of the series.")]
Limit: TypeAlias = Annotated[float, typer.Option(help="Largest false positive rate that you accept.")]
Gaps: TypeAlias = Annotated[Missing, typer.Option(help="Cases that some method does not forecast.")]
Out: TypeAlias = Annotated[Path | None, typer.Option(help="Directory for report.html, results.json and tables.")]
Lag: TypeAlias = Annotated[int, typer.Option(min=1, help="Periods over which changes are measured: 1, or a season.")]
Season: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="Periods in a season; by default that of the calendar, 12 for months.")
]
Methods: TypeAlias = Annotated[
    str | None, typer.Option(help="Methods to try, with commas between, when forecasts are made here.")
]
JUDGED = "What can be judged"
Holes: TypeAlias = Annotated[
    Filling,
    typer.Option(help="A period that a series lacks: pass it over, or fill it.", rich_help_panel=JUDGED),
]
Until: TypeAlias = Annotated[
    str | None, typer.Option(metavar="PERIOD", help="The last period of the panel to read.", rich_help_panel=JUDGED)
]
Shortest: TypeAlias = Annotated[int, typer.Option(min=3, help="Periods that a history needs.", rich_help_panel=JUDGED)]
Zeros: TypeAlias = Annotated[
    float, typer.Option(help="Largest share of zeros in a history; 1 for no limit.", rich_help_panel=JUDGED)
]
COLUMNS = "Which column is what"
Series: TypeAlias = Annotated[
    str, typer.Option(metavar="COLUMN", help="The series, in both tables.", rich_help_panel=COLUMNS)
]
Time: TypeAlias = Annotated[
    str, typer.Option(metavar="COLUMN", help="The period, in both tables.", rich_help_panel=COLUMNS)
]
Value: TypeAlias = Annotated[str, typer.Option(metavar="COLUMN", help="The panel's values.", rich_help_panel=COLUMNS)]
MethodColumn: TypeAlias = Annotated[
    str, typer.Option(metavar="COLUMN", help="The method that made a forecast.", rich_help_panel=COLUMNS)
]
Forecast: TypeAlias = Annotated[str, typer.Option(metavar="COLUMN", help="The forecasts.", rich_help_panel=COLUMNS)]
Levels: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS",
        help="Levels above the series, from the top down, with commas between.",
        rich_help_panel=COLUMNS,
    ),
]
Ranking: TypeAlias = Annotated[
    str | None, typer.Option("--method", help="Method that ranks; by default the best on the past.")
]
Past: TypeAlias = Annotated[int, typer.Option(min=1, help="Past periods to learn from, when forecasts are made here.")]
Prevalence: TypeAlias = Annotated[float | None, typer.Option(help="Share of large changes; by default the past's.")]
ByValue: TypeAlias = Annotated[bool, typer.Option("--by-value", help="Rank by chance times the size of the series.")]
BESIDE = "Columns for models of large changes, beside the series"
Lagged: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS",
        help="Indicators that lead, with commas between: read up to the origin.",
        rich_help_panel=BESIDE,
    ),
]
Ahead: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS",
        help="Columns known ahead, such as holidays and promotions, with commas between.",
        rich_help_panel=BESIDE,
    ),
]
Holidays: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="A table of t and columns known ahead that are the same for all series.",
        rich_help_panel=BESIDE,
    ),
]  # fmt: skip
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def cutoff_of(text: str) -> Any:
    """A cutoff, or the two of declines and increases."""
    if "=" in text:
        parts = [part.partition("=") for part in text.split(",")]
        return {side.strip(): _number(value) for side, _, value in parts}
    return _number(text)


def cutoffs_of(text: str) -> list[float]:
    """Several cutoffs; none if the text is one, or two of different directions."""
    return [_number(part) for part in text.split(",")] if "," in text and "=" not in text else []


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DataError(
            f"Cutoff {text.strip()!r} is no number.",
            "A cutoff is a normal quantile.",
            "Give for example 0.95.",
            about="cutoff",
        ) from None


def _names(text: str | None) -> list[str]:
    return [] if text is None else [name.strip() for name in text.split(",")]


@dataclass(frozen=True)
class RankingOptions:
    """The options that `report` and `backtest` share, in this order."""

    method: Ranking = None
    methods: Methods = None
    past: Past = 24
    prevalence: Prevalence = None
    by_value: ByValue = False
    horizon: Horizon = 1
    cutoff: Cutoff = "0.95"
    direction: Which = Direction.decline
    standard: Gold = StandardName.relative
    scale: Scale = ScaleName.changes
    lag: Lag = 1
    fpr: Limit = 0.2
    missing: Gaps = Missing.refuse
    season: Season = None
    gaps: Holes = Filling.skip
    until: Until = None
    shortest: Shortest = 8
    zeros: Zeros = 0.9
    series: Series = "series"
    time: Time = "t"
    value: Value = "value"
    method_column: MethodColumn = "method"
    forecast: Forecast = "forecast"
    hierarchy: Levels = None
    indicators: Lagged = None
    known: Ahead = None
    calendar: Holidays = None

    def tables(self, panel: str, forecasts: str | None) -> tuple[Any, Any]:
        """Both tables, in our names."""
        from discreet.changes.tidy import in_our_names

        names = {"series": self.series, "t": self.time, "value": self.value}
        return in_our_names(panel, forecasts, names | {"method": self.method_column, "forecast": self.forecast})

    def held(self, rows: Any) -> Any:
        """The panel, read before more is loaded; series that it sets aside are named at once, apart from the result."""
        from discreet.changes.panel import read_panel, told

        found = read_panel(rows, gaps=self.gaps.value, until=self.until)
        reasons: dict[str, list[str]] = {}
        for name, why in found.set_aside:
            reasons.setdefault(why, []).append(name)
        if reasons:
            aside = told([f"{told(names)} {why}" for why, names in reasons.items()])
            typer.echo(f"{len(found.set_aside):,} series are not ranked: {aside}.", err=True)
        return rows if self.hierarchy or self.indicators or self.known else found

    def arguments(self) -> dict[str, Any]:
        """The rest, as the functions of both take it."""
        from discreet.changes.forecasters import QUICK
        from discreet.changes.judged import Rules

        return {
            "method": self.method,
            "past": self.past,
            "prevalence": self.prevalence,
            "by_value": self.by_value,
            "methods": QUICK if self.methods is None else tuple(name.strip() for name in self.methods.split(",")),
            "horizon": self.horizon,
            "cutoff": cutoff_of(self.cutoff),
            "direction": self.direction.value,
            "policy": self.standard.value,
            "scale": self.scale.value,
            "lag": self.lag,
            "fpr": (0.0, self.fpr),
            "missing": self.missing.value,
            "season": self.season,
            "gaps": self.gaps.value,
            "until": self.until,
            "hierarchy": _names(self.hierarchy),
            "indicators": _names(self.indicators),
            "known": _names(self.known),
            "calendar": self.calendar,
            "rules": Rules(shortest=self.shortest, zeros=self.zeros, quiet=12 if self.zeros < 1 else 0),
        }


def ranks(command: Callable[..., None]) -> Callable[..., None]:
    """The command whose parameter `asked` is made of the options of `RankingOptions`."""
    own, shared = (inspect.signature(each, eval_str=True).parameters for each in (command, RankingOptions))
    listed = [each for name, one in own.items() for each in (shared.values() if name == "asked" else [one])]

    @wraps(command)
    def run(**given: Any) -> None:
        asked = RankingOptions(**{name: given.pop(name) for name in shared})
        command(asked=asked, **given)

    run.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in listed}
    del run.__wrapped__
    return run
