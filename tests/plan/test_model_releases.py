"""What a plan's model release tells its readers, and what it refuses before anything is spent."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import check_plan, read_plan, results
from discreet.plan.run import run
from discreet.review.verdict import verify_bundle
from discreet.words.caveats import ONE_SLOPE
from discreet.words.errors import DiscreetError, PlanError
from faults_of import about

PLAN = """
[data]
source = "small.parquet"
public = ["x", "g", "one"]
[unit]
kind = "rows"
lower = 0
upper = 2
response = "y"
[budget]
epsilon = 1
ledger = "ledger.db"
dataset = "small"
[[release]]
name = "m"
kind = "model"
formula = "FORMULA"
epsilon = 1
[output]
folder = "out"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    x = rng.normal(size=60)
    x[0] = 1e6
    words = {"g": [f"g{i % 6}" for i in range(60)], "one": ["a"] * 60}
    y = np.clip(1 + rng.normal(0, 0.2, 60), 0, 2)
    pq.write_table(pa.table({"x": x, "y": y, **words}), tmp_path / "small.parquet")
    return tmp_path


def test_notes_are_published(folder: Path) -> None:
    (folder / "plan.toml").write_text(PLAN.replace("FORMULA", "y ~ x * g"))
    run(folder / "plan.toml")
    published = json.loads(next((folder / "out").rglob("release.json")).read_text())
    assert "noise drowns" in json.dumps(published["guarantee"]["notes"])


def test_flags_are_published_beside_their_estimates_and_at_the_top_of_the_report(folder: Path) -> None:
    """With so little spent the residual variance is out of bounds, or not found, but for one run in thousands."""
    plan = PLAN.replace("FORMULA", "y ~ 1 + (1 | g)")
    (folder / "plan.toml").write_text(plan.replace("epsilon = 1", "epsilon = 0.0001"))
    run(folder / "plan.toml")
    table = pq.read_table(next((folder / "out").rglob("research.parquet"))).to_pylist()
    words = {row["group"]: row["flag"] for row in table if row["effect"] == "variance"}
    found = words["Residual"].split(", ")
    assert found[0] == "not measured" and found[1] in {"noise", "not found"}  # it includes the effects of g
    top = next((folder / "out").rglob("report.html")).read_text().split("In short")[0]
    assert all(f"variance of Residual: {word}." in top for word in found)


@pytest.mark.parametrize(
    ("formula", "fact"),
    [
        ("nope ~ x", "response = 'nope'"),
        ("y ~ 1 + (1 | one)", "'one'"),
        ("y ~ poly(x, 59)", "poly(x, 59)"),
    ],
)
def test_refused_before_anything_is_spent(folder: Path, formula: str, fact: str) -> None:
    (folder / "plan.toml").write_text(PLAN.replace("FORMULA", formula))
    with pytest.raises(DiscreetError, check=about("formula", naming=(fact,))) as refused:
        run(folder / "plan.toml")
    assert [fault.place for fault in refused.value.faults] == [("release", 0, "formula")]
    assert not (folder / "ledger.db").exists() and not (folder / "out").exists()


def test_a_model_with_more_estimates_than_a_sheet_has_rows_costs_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Levels of public columns are counted before the charge, exactly: one row more would fit."""
    from discreet.plan import sheets

    plan = folder / "plan.toml"
    text = PLAN.replace("FORMULA", "y ~ x + (1 | g)").replace("[output]", '[output]\nformats = ["parquet", "xlsx"]')
    plan.write_text(text)
    estimates = 2 + 6 + 2
    monkeypatch.setattr(sheets, "EXCEL_ROWS", estimates - 1)
    monkeypatch.setattr(results, "EXCEL_ROWS", estimates - 1)
    for dry in (True, False):
        with pytest.raises(PlanError) as refusal:
            run(plan, dry_run=dry)
        assert "[output], formats" in str(refusal.value)
    assert not (folder / "ledger.db").exists()
    monkeypatch.setattr(sheets, "EXCEL_ROWS", estimates)
    monkeypatch.setattr(results, "EXCEL_ROWS", estimates)
    run(plan)
    assert pq.read_table(next((folder / "out").rglob("research.parquet"))).num_rows == estimates


GROUPS = PLAN.replace('kind = "rows"', 'kind = "groups"\nby = ["g"]')


def test_a_plan_protects_groups_of_rows(folder: Path) -> None:
    """The unit, its noise and its words are those of the function; the reviewer recomputes the price."""
    (folder / "plan.toml").write_text(GROUPS.replace("FORMULA", "y ~ 1 + (1 | g)"))
    (checked,) = check_plan(read_plan(folder / "plan.toml")).releases
    assert "not measured" in str(checked.expected)
    run(folder / "plan.toml")
    told = json.loads(next((folder / "out").rglob("release.json")).read_text())["guarantee"]
    assert told["unit"] == "groups(g;0,2,y)" and "all rows with one g" in told["sentence"]
    assert "not measured" in next((folder / "out").rglob("report.html")).read_text()
    assert not [each for each in verify_bundle(folder / "out" / "bundle.zip") if each.wrong]
    scales = []
    for text, out in ((PLAN, "rows"), (GROUPS, "groups")):
        changed = text.replace("FORMULA", "y ~ 1").replace("ledger.db", f"{out}.db").replace('"out"', f'"{out}"')
        (folder / "plan.toml").write_text(changed)
        run(folder / "plan.toml")
        noise = json.loads(next((folder / out).rglob("release.json")).read_text())["parameters"]["mechanism"]
        scales.append(noise["parts"][0]["scale"])
    assert scales[1] == pytest.approx(10 * scales[0])  # ten rows have each g


def test_groups_that_are_not_public_and_summaries_of_groups_are_refused(folder: Path) -> None:
    plan = folder / "plan.toml"
    plan.write_text(GROUPS.replace("FORMULA", "y ~ x").replace('"g", "one"', '"one"'))
    with pytest.raises(PlanError, check=about("public")):
        run(plan)
    summary = 'kind = "posterior"\nsummary = "probability"\ncoefficient = ["x"]\nat = [0]'
    plan.write_text(GROUPS.replace("FORMULA", "y ~ x").replace('kind = "model"', summary))
    with pytest.raises(PlanError, check=about("kind")):
        run(plan)
    plan.write_text(GROUPS.replace("FORMULA", "y ~ x").replace('by = ["g"]', 'by = ["y"]'))
    with pytest.raises(PlanError, check=about("by")):
        run(plan)
    assert not (folder / "out").exists()


def test_a_plan_releases_counts_with_their_exposure(folder: Path) -> None:
    rng = np.random.default_rng(4)
    size = rng.choice([1.0, 4.0], 60)
    held = pq.read_table(folder / "small.parquet").set_column(1, "y", pa.array(rng.poisson(size / 4).astype(float)))
    pq.write_table(held.append_column("size", pa.array(size)), folder / "small.parquet")
    text = PLAN.replace("FORMULA", "y ~ g").replace("upper = 2", "upper = 6")
    text = text.replace("epsilon = 1\n[output]", "epsilon = 1\nfamily = 'poisson'\nexposure = 'size'\n[output]")
    (folder / "plan.toml").write_text(text)
    with pytest.raises(PlanError, check=about("public")):
        run(folder / "plan.toml")
    assert not (folder / "ledger.db").exists()
    (folder / "plan.toml").write_text(text.replace('"one"]', '"one", "size"]'))
    run(folder / "plan.toml")
    assert not [each for each in verify_bundle(folder / "out" / "bundle.zip") if each.wrong]
    table = pq.read_table(next((folder / "out").rglob("research.parquet"))).to_pylist()
    assert [row["term"] for row in table if row["effect"] == "parameter"] == ["dispersion"]
    told = json.loads(next((folder / "out").rglob("release.json")).read_text())
    assert (told["parameters"]["family"], told["parameters"]["exposure"]) == ("poisson", "size")


def test_a_plan_releases_slopes_and_crossed_factors(folder: Path) -> None:
    """From the price to the reviewer, with so little noise that the slopes are those of the rows."""
    rng, n = np.random.default_rng(5), 600
    x, g, h = rng.uniform(-1, 1, n), rng.integers(0, 6, n), rng.integers(0, 5, n)
    slope = np.array([-0.4, -0.2, -0.1, 0.1, 0.2, 0.4])
    y = 1 + slope[g] * x + 0.2 * (h - 2) / 2 + rng.normal(0, 0.05, n)
    words = {"g": [f"g{i}" for i in g], "one": [f"h{i}" for i in h]}
    pq.write_table(pa.table({"x": x, "y": y, **words}), folder / "small.parquet")
    text = PLAN.replace("FORMULA", "y ~ x + (x | g) + (1 | one)").replace("epsilon = 1", "epsilon = 500")
    (folder / "plan.toml").write_text(text)
    (checked,) = check_plan(read_plan(folder / "plan.toml")).releases
    assert "effect of a one" in str(checked.expected) and not (folder / "ledger.db").exists()
    run(folder / "plan.toml")
    assert not [each for each in verify_bundle(folder / "out" / "bundle.zip") if each.wrong]
    table = pq.read_table(next((folder / "out").rglob("research.parquet"))).to_pylist()
    found = {row["term"]: row["estimate"] for row in table if row["group"] == "g: x"}
    mean = next(row["estimate"] for row in table if row["effect"] == "fixed" and row["term"] == "x")
    assert [mean + found[f"g{i}"] for i in range(6)] == pytest.approx(slope, abs=0.1)


def test_columns_beside_the_formula_are_in_the_bundle(folder: Path) -> None:
    """Series and time of a lag, and groups that are protected: without them a reviewer would refute a true bundle."""
    held = pq.read_table(folder / "small.parquet")
    held = held.append_column("t", pa.array([i // 6 for i in range(60)]))
    pq.write_table(held, folder / "small.parquet")
    lags = PLAN.replace("FORMULA", "y ~ lag(y, 1)").replace('"one"]', '"one", "t"]')
    lags = lags.replace("epsilon = 1\n[output]", "epsilon = 1\nseries = ['g']\ntime = 't'\n[output]")
    lags = lags.replace("epsilon = 1", "epsilon = 100000")
    for text, named in ((lags, ["g", "t"]), (GROUPS.replace("FORMULA", "y ~ x"), ["g", "x"])):
        (folder / "plan.toml").write_text(text.replace("ledger.db", f"{named[1]}.db").replace('"out"', f'"{named[1]}"'))
        done = run(folder / "plan.toml")
        with zipfile.ZipFile(done.bundle) as packed:
            asked = json.loads(packed.read("request.json"))
        assert asked["public_columns"] == named
        assert not [each for each in verify_bundle(done.bundle) if each.wrong]


def test_one_slope_for_all_groups_is_told_before_it_is_paid_for_and_beside_it_afterwards(folder: Path) -> None:
    rng, g = np.random.default_rng(5), np.arange(3000) % 60
    x = rng.normal(size=3000)
    y = np.clip(1 + (0.1 + rng.normal(0, 0.1, 60)[g]) * x + rng.normal(0, 0.1, 3000), 0, 2)
    rows = {"x": x, "y": y, "g": [f"g{i:02d}" for i in g], "one": ["a"] * 3000}
    pq.write_table(pa.table(rows), folder / "small.parquet")
    (folder / "plan.toml").write_text(PLAN.replace("FORMULA", "y ~ x + (1 | g)").replace("epsilon = 1", "epsilon = 9"))
    assert ONE_SLOPE in json.dumps(check_plan(read_plan(folder / "plan.toml")).to_dict())
    run(folder / "plan.toml")
    table = pq.read_table(next((folder / "out").rglob("research.parquet"))).to_pylist()
    assert {row["term"]: row["flag"] for row in table if row["effect"] == "fixed"}["x"] == "one slope"
    top = next((folder / "out").rglob("report.html")).read_text().split("In short")[0]
    assert "fixed effects x: one slope." in top
    assert ONE_SLOPE in json.dumps(json.loads(next((folder / "out").rglob("release.json")).read_text())["guarantee"])
