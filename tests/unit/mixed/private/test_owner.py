"""The owner is told when a column that is declared public holds the response again; a release never is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from discreet.models.linear.private import release_mixed
from discreet.models.linear.private.owner import look

rng = np.random.default_rng(8)
COUNTIES, QUARTERS = 40, 25
Y = np.clip(0.4 + rng.normal(0, 0.1, COUNTIES)[:, None] + rng.normal(0, 0.1, (COUNTIES, QUARTERS + 4)), 0, 2)
PANEL = {
    "y": Y[:, 4:].ravel(),
    "x": rng.normal(size=COUNTIES * QUARTERS),
    "z": rng.normal(size=COUNTIES * QUARTERS),
    "quarter": np.tile(np.arange(QUARTERS), COUNTIES),
    "county": np.repeat([f"c{i}" for i in range(COUNTIES)], QUARTERS),
    "row": np.arange(COUNTIES * QUARTERS),
}
PUBLIC = ["x", "z", "quarter", "county", "row"]


def lag(steps: int) -> np.ndarray:
    return Y[:, 4 - steps : -steps].ravel()


def smoothed() -> np.ndarray:
    """What exponential smoothing makes of the response, county by county."""
    level, found = Y[:, 3].copy(), []
    for period in range(QUARTERS):
        level = 0.3 * Y[:, 4 + period] + 0.7 * level
        found.append(level)
    return np.stack(found, axis=1).ravel()


CLASSES = np.array([f"level {i}" for i in np.digitize(PANEL["y"], np.linspace(0, 2, 2000))])
TELLING = {
    "a copy": (PANEL["y"], "follows 'y' from row to row"),
    "another scale": (7 - 3 * PANEL["y"], "follows"),
    "a curve": (np.log(PANEL["y"] + 0.1), "follows"),
    "a nearly exact copy": (PANEL["y"] + rng.normal(0, 1e-4, len(PANEL["y"])), "follows"),
    "most of a copy": (np.where(np.arange(len(PANEL["y"])) % 30, PANEL["y"], 0.0), "follows"),
    "tenths": (np.floor(40 * PANEL["y"]), "goes almost with"),
    "text around it": (np.array([f"v{value:.6f}" for value in PANEL["y"]]), "follows"),
    "rounded earlier responses": (np.round(lag(1), 2), "computed from"),
    "earlier responses, turned": (1 - 2 * np.round(lag(1), 3), "computed from"),
    "changes": (PANEL["y"] - lag(1), "computed from"),
    "running sums": (np.cumsum(PANEL["y"].reshape(COUNTIES, -1), axis=1).ravel(), "computed from"),
    "moving averages": ((PANEL["y"] + lag(1) + lag(2)) / 3, "computed from"),
    "the mean of a year": ((lag(1) + lag(2) + lag(3) + lag(4)) / 4, "computed from"),
    "ratios to the last": (PANEL["y"] / np.maximum(lag(1), 0.01), "computed from"),
    "growth": (PANEL["y"] / np.maximum(lag(1), 0.01) - 1, "computed from"),
    "smoothed": (smoothed(), "computed from"),
    "days in its order": (np.datetime64("2020-01-01") + np.argsort(np.argsort(PANEL["y"])), "follows"),
    "means of counties": (np.repeat(Y[:, 4:].mean(axis=1), QUARTERS), "means of"),
    "rounded means of counties": (np.repeat(Y[:, 4:].mean(axis=1), QUARTERS).round(4), "means of"),
    "a copy as text": (PANEL["y"].astype(str), "follows"),
    "the last response": (lag(1), "of other rows"),
    "the fourth last response": (lag(4), "of other rows"),
    "rows in another order": (rng.permutation(PANEL["y"]), "of other rows"),
    "a square": ((PANEL["y"] - 0.4) ** 2, "goes with"),
    "a wave": (np.sin(15 * PANEL["y"]), "goes with"),
    "fifths": (np.digitize(PANEL["y"], np.quantile(PANEL["y"], [0.2, 0.4, 0.6, 0.8])).astype(float), "goes with"),
    "fifths as labels": (np.array(list("cabed"))[np.digitize(PANEL["y"], [0.25, 0.35, 0.45, 0.55])], "goes with"),
    "above the median": (PANEL["y"] > np.median(PANEL["y"]), "goes with"),
    "logarithms of the third last": (np.log(lag(3) + 0.01), "computed from"),
    "parts of a county's mean": (PANEL["y"] / np.repeat(Y[:, 4:].mean(axis=1), QUARTERS), "within each value"),
    "times the quarter": (PANEL["y"] * (PANEL["quarter"] + 1), "within each value"),
    "levels that decide": (
        np.array([f"level {i}" for i in np.digitize(PANEL["y"], np.linspace(0, 2, 2000))]),
        "decide",
    ),
}


@pytest.mark.parametrize("case", TELLING)
def test_a_column_that_is_the_response_again_is_told(case: str) -> None:
    column, words = TELLING[case]
    y = np.round(PANEL["y"], 3) if "decide" in words else PANEL["y"]
    found = look(PANEL | {"y": y, "again": column}, response="y", public=[*PUBLIC, "again"], bounds=(0, 2))
    assert len(found) == 1 and words in found[0].words and "'again'" in found[0].words


def test_rounded_lags_in_the_order_of_the_panel_are_told() -> None:
    data = PANEL | {"y": np.round(PANEL["y"], 2), "again": np.round(lag(2), 2)}
    assert "of other rows" in look(data, response="y", public=["again"], bounds=(0, 2))[0].words
    assert look(data, response="y", public=["again"], bounds=(0, 2), lagged=["again"]) == []


def test_columns_that_add_up_to_the_response_are_told() -> None:
    data = PANEL | {"rest": PANEL["y"] - PANEL["x"] + 2 * PANEL["z"]}
    found = look(data, response="y", public=["x", "z", "rest"], bounds=(0, 2))
    assert len(found) == 1 and "x, z, rest" in found[0].words and "add up to 'y'" in found[0].words


def test_columns_whose_ratio_or_product_is_the_response_are_told() -> None:
    jobs = rng.lognormal(5, 1, len(PANEL["y"]))
    for created in (PANEL["y"] * jobs, PANEL["y"] / jobs):
        data = PANEL | {"created": created, "jobs": jobs}
        found = look(data, response="y", public=["x", "created", "jobs", "county"], bounds=(0, 2))
        assert len(found) == 1 and "created, jobs" in found[0].words and "product or ratio" in found[0].words


def test_an_ordinary_design_is_not_accused() -> None:
    constant = np.full(len(PANEL["y"]), 3.0)
    assert look(PANEL | {"one": constant}, response="y", public=[*PUBLIC, "one"], bounds=(0, 2)) == []
    steady = {"trend": 3 + 0.2 * PANEL["quarter"], "size": np.repeat(rng.lognormal(5, 1, COUNTIES).round(), QUARTERS)}
    steady |= {"walk": np.cumsum(rng.normal(size=(COUNTIES, QUARTERS)), axis=1).ravel()}
    steady |= {"day": np.datetime64("2020-01-01") + 91 * PANEL["quarter"]}
    for name, column in steady.items():
        assert look(PANEL | {name: column}, response="y", public=[*PUBLIC, name], bounds=(0, 2)) == [], name
    mostly = np.where(rng.random(len(PANEL["y"])) < 0.9, 0.0, rng.normal(size=len(PANEL["y"])))
    zeros = PANEL | {"y": np.where(PANEL["x"] > -1, 0.0, PANEL["y"]), "mostly": mostly, "other": 2 * PANEL["z"] + 1}
    assert look(zeros, response="y", public=[*PUBLIC[1:], "mostly", "other"], bounds=(0, 2)) == []
    strong = PANEL | {
        "y": PANEL["y"] + 0.3 * (PANEL["x"] > 0),
        "kind": PANEL["x"] > 0,
        "grade": PANEL["y"] + 0.3 * PANEL["z"],
    }
    assert look(strong, response="y", public=["kind", "grade", "county"], bounds=(0, 2)) == []
    binary = PANEL | {"y": (PANEL["y"] > 0.4).astype(float), "group": (PANEL["x"] > 0).astype(float)}
    assert look(binary, response="y", public=["x", "group", "county"], bounds=(0, 1)) == []


def test_responses_that_will_be_moved_are_counted(tmp_path: Path) -> None:
    y = [*map(str, PANEL["y"][:-3]), "7", "", "text"]
    pa.csv.write_csv(pa.table(PANEL | {"y": y}), tmp_path / "panel.csv")
    found = look(tmp_path / "panel.csv", response="y", public=["x"], bounds=(0, 2))
    n = len(y)
    assert [note.rows for note in found] == [(n - 2,), (n - 1, n)]
    assert not any(character.isdigit() for note in found for character in note.words.replace("[0, 2]", ""))
    assert str(found[1]).endswith(f"(2 of {n:,} rows)")


PLAN = """
[data]
source = "panel.parquet"
public = ["county", "again"]
[unit]
kind = "rows"
lower = 0
upper = 2
response = "y"
[budget]
epsilon = 4
ledger = "ledger.db"
dataset = "panel"
[[release]]
name = "m"
kind = "model"
formula = "y ~ again + (1 | county)"
epsilon = 1
[output]
folder = "out"
"""


def test_the_owner_is_told_and_nobody_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same plan, on data with a copy and without: what is released and refused says nothing of the difference.

    Without, the column holds the same values in another order within each county: its design is the same.
    """
    from discreet.cli import main

    def ran(*arguments: str) -> str:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.argv", ["discreet", *arguments])
            with pytest.raises(SystemExit) as end:
                main()
        found = capsys.readouterr()
        return f"{end.value.code} {found.out} {found.err}"

    plan, said = tmp_path / "plan.toml", {}
    plan.write_text(PLAN, encoding="utf-8")
    for kind, again in {"copy": PANEL["y"], "noise": rng.permuted(Y[:, 4:], axis=1).ravel()}.items():
        pa.parquet.write_table(pa.table(PANEL | {"again": again}), tmp_path / "panel.parquet")
        said[kind] = [ran("check", str(plan)), ran("run", str(plan), "--dry-run")]
        owner = ran("check", str(plan), "--owner")
        assert ("follows 'y' from row to row" in owner) == (kind == "copy")
        assert "no part of any release" in " ".join(owner.split())
    assert said["copy"] == said["noise"]
    fit: Callable[..., object] = release_mixed
    fit("y ~ again", PANEL | {"again": PANEL["y"]}, epsilon=1, public=["again"], bounds=(0, 2))
