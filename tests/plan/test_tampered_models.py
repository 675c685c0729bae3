"""Bundles of models whose parts were changed: hashes and seals agree, so only the losses can tell.

One has lags, whose products are parts. One has a look, after which either of two models may have been drawn.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.plan.run import run
from discreet.review import verdict as review
from forging import resealed, said, unpacked, verdict

PLAN = """
[data]
source = "series.parquet"
public = ["g", "t"]
[unit]
kind = "rows"
lower = 0
upper = 2
response = "y"
[budget]
epsilon = 100000
ledger = "ledger.db"
dataset = "series"
[[release]]
name = "m"
kind = "model"
formula = "y ~ lag(y, 1) + lag(y, 2)"
series = ["g"]
time = "t"
epsilon = 100000
[output]
folder = "out"
"""


LOOK = PLAN.replace("y ~ lag(y, 1) + lag(y, 2)", "y ~ 1 + (1 | g)").replace('series = ["g"]\ntime = "t"\n', "")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _run(tmp_path_factory.mktemp("lags"), PLAN)


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _run(tmp_path_factory.mktemp("look"), LOOK.replace("100000", "10"))


def _run(folder: Path, plan: str) -> Path:
    y = np.clip(1 + np.random.default_rng(3).normal(0, 0.2, 60), 0, 2)
    rows = {"y": y, "g": [f"g{i % 6}" for i in range(60)], "t": [i // 6 for i in range(60)]}
    pq.write_table(pa.table(rows), folder / "series.parquet")
    (folder / "plan.toml").write_text(plan)
    run(folder / "plan.toml")
    return folder / "out" / "bundle.zip"


@pytest.fixture(autouse=True)
def tables_of_a_sane_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that tries the tables first takes half a second for each bundle; `test_unpacking` tests it."""
    monkeypatch.setattr(review, "check_tables", lambda packed, folder: [10**6] * 9)


def _doubled(mechanism: dict[str, Any]) -> None:
    loss = mechanism["products"][0]["loss"]
    loss["epsilon"] = str(2 * Fraction(loss["epsilon"]))


FORGERIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "a product that costs twice as much": _doubled,
    "a product left out": lambda mechanism: mechanism["products"].pop(),
    "no products": lambda mechanism: mechanism.pop("products"),
    "a product added": lambda mechanism: mechanism["products"].append(mechanism["products"][0]),
}


def test_an_honest_bundle_is_not_refuted(bundle: Path, tmp_path: Path) -> None:
    files = unpacked(bundle)
    assert len(json.loads(files["m/release.json"])["parameters"]["mechanism"]["products"]) == 3
    assert not [each for each in verdict(tmp_path / "b.zip", files).values() if each.wrong]


@pytest.mark.parametrize("name", FORGERIES)
def test_changed_products_are_refuted(bundle: Path, tmp_path: Path, name: str) -> None:
    files = unpacked(bundle)
    said("m/release.json", lambda about: FORGERIES[name](about["parameters"]["mechanism"]))(files)
    resealed(files)
    wrong = [each for each in verdict(tmp_path / "b.zip", files).values() if each.wrong]
    assert any(each.subject.startswith("m: mechanisms") for each in wrong), [str(each) for each in wrong]


OTHERWISE: dict[str, Callable[[dict[str, Any]], object]] = {
    "the look left out": lambda mechanism: mechanism["parts"].pop(0),
    "a part of the other model left out": lambda mechanism: mechanism["otherwise"]["parts"].pop(),
    "a part of the other model twice": lambda mechanism: mechanism["otherwise"]["parts"].extend(
        mechanism["otherwise"]["parts"]
    ),
}


def test_an_honest_look_is_not_refuted(looked: Path, tmp_path: Path) -> None:
    assert not [each for each in verdict(tmp_path / "b.zip", unpacked(looked)).values() if each.wrong]


@pytest.mark.parametrize("name", OTHERWISE)
def test_a_changed_look_is_refuted(looked: Path, tmp_path: Path, name: str) -> None:
    """Both ways that a look may go must cost what was claimed."""
    files = unpacked(looked)
    said("m/release.json", lambda about: OTHERWISE[name](about["parameters"]["mechanism"]))(files)
    resealed(files)
    wrong = [each for each in verdict(tmp_path / "b.zip", files).values() if each.wrong]
    assert any(each.subject.startswith("m: mechanisms") for each in wrong), [str(each) for each in wrong]
