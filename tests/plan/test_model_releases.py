"""What a plan's model release tells its readers, and what it refuses before anything is spent."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import check_plan, read_plan, results
from discreet.errors import DiscreetError, PlanError
from discreet.plan.run import run
from discreet.review.verdict import verify_bundle
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
    assert words["Residual"] in {"noise", "not found"}
    top = next((folder / "out").rglob("report.html")).read_text().split("In short")[0]
    assert f"variance of Residual: {words['Residual']}." in top


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
    text = PLAN.replace("FORMULA", "y ~ g").replace(
        "epsilon = 1\n[output]", "epsilon = 1\nfamily = 'poisson'\n[output]"
    )
    (folder / "plan.toml").write_text(text)
    run(folder / "plan.toml")
    assert not [each for each in verify_bundle(folder / "out" / "bundle.zip") if each.wrong]
    table = pq.read_table(next((folder / "out").rglob("research.parquet"))).to_pylist()
    assert [row["term"] for row in table if row["effect"] == "parameter"] == ["dispersion"]
    told = json.loads(next((folder / "out").rglob("release.json")).read_text())
    assert told["parameters"]["family"] == "poisson"
    (folder / "plan.toml").write_text(text.replace("family = 'poisson'", "exposure = 'x'"))
    with pytest.raises(PlanError, check=about("exposure")):
        run(folder / "plan.toml")
