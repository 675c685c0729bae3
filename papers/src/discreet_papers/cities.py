"""Crime counts of real cities for the crime study: Pittsburgh's violence, and further ones where their files are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.arrays import Matrix
from discreet.words.errors import DataError

FILE = "pittsburgh_violent_tract_month_1990_2000.csv"
FURTHER = {
    "Pittsburgh, burglary": "pittsburgh_burglary_36areas_144months.csv",
    "Chicago, battery": "chicago_grid_5day_2016_2017.csv",
}
"""Burglaries of 36 patrol areas by month, led by their own past; battery in 165 cells by five days, led by assault,
criminal damage and theft."""

WHERE = (
    "Violent offences by census tract and month come from the City of Pittsburgh. Give `--data` a CSV file with "
    "columns tract, year, month, violent, robbery, aggravated_assault (rows of tracts and months with any), or the "
    f"directory that holds it as {FILE} (or .gz)."
)


@dataclass(frozen=True, slots=True)
class Panel:
    """Counts of shape (months, tracts) and leading indicators of shape (months, tracts, indicators)."""

    y: Matrix
    indicators: Matrix
    names: tuple[str, ...]


def read(data: Path) -> Panel:
    """Violence by tract and month; months and tracts without a row are zeros. Robbery and assault lead."""
    path = _file(data, FILE) if data.is_dir() else data if data.exists() else None
    if path is None:
        raise DataError(f"{str(data)!r} holds no crime counts.", WHERE, about="data")
    needed = ("tract", "year", "month", "violent", "robbery", "aggravated_assault")
    column = _columns(path, needed)
    t = 12 * column["year"] + column["month"]
    counts = _counts(column["tract"], t - t.min(), [column[name] for name in needed[3:]])
    return Panel(counts[0], np.moveaxis(counts[1:], 0, 2), ("robbery", "aggravated assault"))


def further(data: Path) -> dict[str, Panel]:
    """The further cities whose files are beside."""
    folder = data if data.is_dir() else data.parent
    paths = {city: _file(folder, name) for city, name in FURTHER.items()}
    readers = dict(zip(FURTHER, (_burglary, _chicago), strict=True))
    return {city: readers[city](path) for city, path in paths.items() if path is not None}


def _burglary(path: Path) -> Panel:
    from pyarrow import csv

    table = csv.read_csv(path)
    names = [name for name in table.column_names if name.startswith("Area_")]
    y = np.column_stack([table[name].to_numpy() for name in names]).astype(float)
    return Panel(y, y[:, :, None], ("burglary",))


def _chicago(path: Path) -> Panel:
    names = ("assault", "criminal_damage", "theft")
    column = _columns(path, ("area", "period", "battery", *names))
    counts = _counts(
        column["area"], column["period"] - column["period"].min(), [column[n] for n in ("battery", *names)]
    )
    return Panel(counts[0], np.moveaxis(counts[1:], 0, 2), names)


def _file(folder: Path, name: str) -> Path | None:
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.exists()), None)


def _columns(path: Path, needed: tuple[str, ...]) -> dict[str, Any]:
    from pyarrow import csv

    table = csv.read_csv(path)
    absent = [name for name in needed if name not in table.column_names]
    if absent:
        raise DataError(f"{path.name} has no column {', '.join(absent)}.", WHERE, about="data")
    return {name: table[name].to_numpy() for name in needed}


def _counts(place: Any, t: Any, columns: list[Any]) -> Matrix:
    """Counts of shape (columns, periods, places); rows that are absent are zeros."""
    places, where = np.unique(place, return_inverse=True)
    counts = np.zeros((len(columns), t.max() + 1, len(places)))
    for k, column in enumerate(columns):
        np.add.at(counts[k], (t, where), column)
    return counts
