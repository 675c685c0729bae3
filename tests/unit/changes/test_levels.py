"""Sums of series by level, and lists on which no alarm repeats another."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from discreet.changes.backtest import backtest_changes
from discreet.changes.exceptions import exception_report
from discreet.changes.levels import branches
from discreet.changes.panel import read_panel
from discreet.words.errors import DataError
from faults_of import about

MONTHS = 60


def crimes(seed=0, regions=3, cities=3, tracts=6):
    """Tracts in cities in regions; the last region has one city of one tract."""
    rng = np.random.default_rng(seed)
    rows = []
    for r in range(regions):
        for c in range(cities):
            for k in range(tracts):
                values = rng.normal(100, 8, MONTHS)
                rows += [(f"t{r}{c}{k}", t, v, f"R{r}", f"C{c}") for t, v in enumerate(values)]
    rows += [("lonely", t, v, "R9", "C9") for t, v in enumerate(rng.normal(50, 4, MONTHS))]
    return pd.DataFrame(rows, columns=["series", "t", "value", "region", "city"])


def test_sums_by_hand():
    data = crimes()
    tree = branches(data, read_panel(data), ["region", "city"])
    names = tree.panel.names.tolist()
    assert len(names) == 55 + 3 + 9 and names == sorted(names) and "R9" not in names
    for name, mine in (("R1", data.region == "R1"), ("R2 / C0", (data.region == "R2") & (data.city == "C0"))):
        expected = data[mine].groupby("t").value.sum().to_numpy()
        np.testing.assert_allclose(tree.panel.values[names.index(name)], expected)
    assert tree.level_of(names.index("R1")) == "region" and tree.level_of(names.index("R1 / C2")) == "city"
    assert tree.level_of(names.index("lonely")) == "series"
    assert tree.within(names.index("R2 / C0")).sum() == 6 and tree.within(names.index("lonely")).sum() == 1
    ones = tree.sums(np.ones(55))
    assert ones[names.index("R0")] == 18 and ones[names.index("t000")] == 1


def test_levels_from_the_bottom_up_are_refused():
    """Before, they were taken in silence, and each city's sum was ranked twice."""
    data = crimes()
    data["city"] = data.region + data.city
    with pytest.raises(DataError, check=about("hierarchy", naming=("city", "region"))):
        exception_report(data, hierarchy=["city", "region"], capacity=5)
    assert len(branches(data, read_panel(data), ["region", "city"]).panel) == 55 + 3 + 9
    data["country"], data["same"] = "X", data.city
    assert branches(data, read_panel(data), ["country", "region", "city", "same"]).levels[0] == "country"


def test_what_is_no_hierarchy():
    data = crimes()
    torn = data.copy()
    torn.loc[torn.index[5], "region"] = "R2"
    for table, levels, what in ((torn, ["region"], ("hierarchy",)), (data, ["region", "region"], ("hierarchy",)),
                                (data, ["county"], ("panel",))):  # fmt: skip
        with pytest.raises(DataError, check=about(*what)):
            exception_report(table, hierarchy=levels, capacity=5)
    with pytest.raises(DataError, check=about("capacity")):
        exception_report(data, hierarchy=["region"])
    with pytest.raises(DataError, check=about("by_value")):
        exception_report(data, hierarchy=["region"], capacity=5, by_value=True)
    data.loc[data.series == "t000", "series"] = "R1"
    with pytest.raises(DataError, check=about("hierarchy", naming=("R1",))):
        exception_report(data, hierarchy=["region"], capacity=5)


def with_forecasts(data, falls):
    """Forecasts of every node: near the truth in the past, and of the coming month no change but that of `falls`."""
    tree = branches(data, read_panel(data), ["region", "city"])
    rng = np.random.default_rng(1)
    names, y = tree.panel.names, tree.panel.values
    fall = np.zeros(len(tree.leaves))
    for name, amount in falls.items():
        inside = tree.within(names.tolist().index(name))
        fall[inside] += amount / inside.sum()
    ahead = y[:, -1] + np.diff(y, axis=1).mean(axis=1) - tree.sums(fall)
    spread = np.diff(y, axis=1).std(axis=1, ddof=1)
    past = [(n, t, y[i, t] + rng.normal(0, spread[i])) for i, n in enumerate(names) for t in range(30, MONTHS)]
    coming = [(n, MONTHS, ahead[i]) for i, n in enumerate(names)]
    return pd.DataFrame(past + coming, columns=["series", "t", "forecast"]).assign(method="m")


def report(falls, capacity=3):
    data = crimes()
    made = with_forecasts(data, falls)
    return exception_report(data, made, hierarchy=["region", "city"], capacity=capacity, cutoff=0.9, regression="keep")


def test_a_tract_speaks_for_its_city_and_region():
    found = report({"t000": 90.0})
    assert [row["series"] for row in found.flagged] == ["t000"]  # nothing else is alarming
    repeated = {row["series"]: row["repeats"] for row in found.rows if row["repeats"]}
    by_name = {row["series"]: row for row in found.rows}
    assert by_name["R0 / C0"]["score"] > 1 and by_name["R0"]["level"] == "region"
    assert all(name == "t000" for name in repeated.values())


def test_a_region_speaks_for_its_tracts():
    found = report({"R1": 18 * 9.0})
    assert found.flagged[0]["series"] == "R1"
    assert not {row["series"] for row in found.flagged[1:]} & {"R1 / C0", "R1 / C1", "R1 / C2"}
    assert all(not row["series"].startswith("t1") for row in found.flagged)


def test_a_city_beside_a_tract_is_listed_for_what_is_left():
    """A tract falls by itself, and so do the others of its city: both are said, and the region is not."""
    found = report({"t000": 90.0, "R0 / C0": 6 * 30.0}, capacity=4)
    assert [row["series"] for row in found.flagged] == ["t000", "R0 / C0"]
    assert {row["series"]: row["repeats"] for row in found.repeated}["R0"] == "R0 / C0"
    assert "only repeat one on the list" in found.summary()
    less = report({"t000": 90.0, "R0 / C0": 6 * 20.0}, capacity=2)  # less than half of the city's is left
    assert less.flagged[0]["series"] == "t000" and "R0 / C0" not in {row["series"] for row in less.flagged}


def test_what_is_left_by_the_book():
    """After a city, its region keeps its change without the city's, and a tract what is not its share of it."""
    data = crimes()
    tree = branches(data, read_panel(data), ["region", "city"])
    falls = {"R0 / C0": 300.0, "t010": 60.0}
    found = report(falls, capacity=5)
    assert [row["series"] for row in found.flagged] == ["R0 / C0", "t010"]
    spread = np.diff(tree.panel.values, axis=1).std(axis=1, ddof=1)
    names = tree.panel.names.tolist()
    scores = {row["series"]: row["score"] for row in found.rows}
    assert scores["R0"] == pytest.approx(360 / spread[names.index("R0")])  # though nothing of it is left
    assert scores["t000"] == pytest.approx(50 / spread[names.index("t000")])


def returning(rises, falls):
    """The report where `rises` came in the last month, and the forecasts are that `falls` follow."""
    data = crimes()
    tree = branches(data, read_panel(data), ["region", "city"])
    last = data.t == MONTHS - 1
    calm = data.groupby("series").value.transform(lambda own: own.iloc[:-1].mean())
    data.loc[last, "value"] = calm[last]  # nothing else happened in the last month
    data.loc[data.t == MONTHS - 2, "value"] = calm[data.t == MONTHS - 2]
    for name, amount in rises.items():
        inside = tree.panel.names[tree.leaves[tree.within(tree.panel.names.tolist().index(name))]]
        data.loc[last & data.series.isin(inside), "value"] += amount / len(inside)
    asked = {"hierarchy": ["region", "city"], "capacity": 10, "cutoff": 0.95}
    return exception_report(data, with_forecasts(data, falls), **asked)


def test_a_region_that_returns_speaks_for_its_tracts():
    """Its rise was large and that of no tract was: the fall after it is one event, and no discovery."""
    found = returning({"R1": 18 * 9.0}, {"R1": 18 * 9.0})
    assert {row["series"] for row in found.set_aside if row["kind"] == "return"} >= {"R1", "R1 / C0"}
    assert not [row["series"] for row in found.flagged if row["series"].startswith(("t1", "R1"))]
    repeated = {row["series"]: row["repeats"] for row in found.repeated}
    assert repeated["t100"] == "R1 / C0" and repeated["R1 / C1"] == "R1"
    assert len([name for name in repeated if name.startswith("t1")]) == 9  # the others are not among the first ten


def test_a_tract_that_returns_speaks_for_its_city():
    found = returning({"t100": 60.0}, {"t100": 60.0})
    assert "t100" in {row["series"] for row in found.set_aside if row["kind"] == "return"}
    assert not [row["series"] for row in found.flagged if "1" in row["series"][:2]]


def test_a_fall_of_its_own_within_a_region_that_returns_is_listed():
    found = returning({"R1": 18 * 9.0}, {"R1": 18 * 9.0, "t110": 40.0, "t000": 30.0})
    assert {row["series"] for row in found.flagged} == {"t110", "t000"}
    lone = returning({"t100": 60.0}, {"t100": 60.0, "t101": 30.0})  # what the tract explains is not its neighbour's
    assert [row["series"] for row in lone.flagged] == ["t101"]


def test_backtests_have_levels():
    data = crimes()
    found = backtest_changes(data, hierarchy=["region", "city"], capacity=5, periods=4, methods=("ses",), cutoff=0.9)
    assert len(found.rows) == 4 and all(row["flagged"] <= 5 for row in found.rows)
