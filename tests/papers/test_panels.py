"""Past lists on further real panels, which had no part in choosing defaults: calibration, and the naive ranking.

The panels of the shared folder: crimes by tract and month, by cell and five days and by area and month, and the monthly
micro series of M3, lined up by their ends. `pytest -m full_size -s` prints the table of the docs.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from discreet.changes.backtest import backtest_changes
from discreet.changes.forecasters import QUICK
from discreet_papers import cities

DATA = Path(__file__).parents[3] / "shared" / "data"
pytestmark = [
    pytest.mark.full_size,
    pytest.mark.skipif(not DATA.exists(), reason="the panels are not beside the repository"),
]
WITHOUT = tuple(name for name in QUICK if name != "ses_pauc")


def of_city(city: cities.Panel) -> pa.Table:
    months, series = city.y.shape
    columns = {name: city.indicators[:, :, k].T.ravel() for k, name in enumerate(city.names)}
    names = np.repeat([f"a{i:03d}" for i in range(series)], months)
    return pa.table({"series": names, "t": np.tile(np.arange(months), series), "value": city.y.T.ravel(), **columns})


def other_crimes(name: str, city: cities.Panel) -> dict[str, pa.Table]:
    """The crimes that lead another one, as panels of their own; burglary is led by its own past."""
    return {
        f"{name.partition(',')[0]}, {crime}": of_city(
            cities.Panel(city.indicators[:, :, k], city.indicators[:, :, :0], ())
        )
        for k, crime in enumerate(city.names)
        if crime != "burglary"
    }


def of_m3() -> pa.Table:
    table = pyarrow.csv.read_csv(DATA / "m3" / "m3_monthly_micro_series.csv.gz").to_pandas()
    table = table.sort_values(["series", "t"])
    last = table.groupby("series")["t"].transform("max")
    return pa.table({"series": table["series"], "t": table["t"] - last + 200, "value": table["value"].astype(float)})


def test_lists_on_panels_that_chose_nothing():
    places = {"Pittsburgh, violence": cities.read(DATA / "crime"), **cities.further(DATA / "crime")}
    panels = {
        name: (of_city(panel), panel.names, 20 if panel.y.shape[1] > 100 else 5) for name, panel in places.items()
    }
    panels["m3"] = (of_m3(), (), 20)
    for name, city in places.items():
        panels |= {crime: (table, (), 20) for crime, table in other_crimes(name, city).items()}
    assert len(panels) == 9
    right, behind = {"default": 0, "without ses_pauc": 0}, 0
    for name, (table, indicators, capacity) in panels.items():
        season = 1 if "Chicago" in name else 12
        for direction in ("decline", "increase"):
            about = {"capacity": capacity, "direction": direction, "season": season}
            found = backtest_changes(table, **about)
            other = backtest_changes(table, methods=WITHOUT, **about)
            driven = backtest_changes(table, indicators=indicators, **about) if len(indicators) else None
            both = [sum(row["right"] for row in each.rows) for each in (found, other)]
            right = {"default": right["default"] + both[0], "without ses_pauc": right["without ses_pauc"] + both[1]}
            behind += both[0] < both[1]
            told = "-" if driven is None else f"{100 * driven.precision():.1f} %"
            shares = (found.precision(), other.precision(), found.precision("naive"), found.precision("by_lot"))
            ours, plain, naive, lot = (f"{100 * share:.1f} %" for share in shares)
            print(
                f"\n{name} {direction}: within {100 * found.within:.0f} %, precision {ours}, without ses_pauc {plain}, "
                f"indicators {told}, naive {naive}, by lot {lot}",
                end="",
            )
            assert len(found.rows) == 24 and found.within >= 0.8
            assert found.precision() > found.precision("by_lot")
            assert ("NAIVE" in found.summary()) == (found.precision() <= found.precision("naive"))
    print("\n", right, "behind in", behind, "of", 2 * len(panels))
    assert right["default"] >= right["without ses_pauc"] and behind < len(panels)
