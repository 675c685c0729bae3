"""Plans that buy narrow intervals: told before paying, published in one spelling, verified afterwards."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.archive.findings import RefutedError
from discreet.plan.check import check
from discreet.plan.reading import read_plan
from discreet.plan.run import run
from discreet.privacy.units import Establishments
from discreet.review.constants import stated
from discreet.review.verdict import verify_bundle
from discreet.words.errors import DiscreetError
from faults_of import about

PLAN = """
[data]
source = "jobs.parquet"
[data.schema]
workplace_attributes = ["place"]
worker_attributes = { sex = ["f", "m"] }
size = "n"
[unit]
kind = "establishments"
alpha = 0.1
[budget]
epsilon = 3
ledger = "ledger.db"
dataset = "jobs"
[public]
sizes = "sizes.csv"
[[release]]
name = "narrow"
kind = "count"
by = ["place", "sex"]
epsilon = 2
scale_share = 0.1
[[release]]
name = "wide"
kind = "count"
by = ["place", "sex"]
epsilon = "0.3"
[output]
folder = "out"
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """A place with a thousand establishments of 20, and one with three of one worker."""
    size = np.r_[np.full(1000, 20), np.ones(3, dtype=np.int64)]
    rows = {
        "workplace": np.repeat(np.arange(1003), 2),
        "place": np.repeat(np.where(size == 20, "P", "Q"), 2),
        "sex": np.tile(["f", "m"], 1003),
        "n": np.stack([size // 2, size - size // 2], axis=1).ravel(),
    }
    pq.write_table(pa.table(rows), tmp_path / "jobs.parquet")
    (tmp_path / "sizes.csv").write_text("place,jobs,largest\nP,20000,20\nQ,3,1\n")
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path / "plan.toml"


def test_widths_are_told_and_kept(plan: Path) -> None:
    found = check(read_plan(plan))
    narrow, wide = (known.to_dict()["tables"][0] for known in found.releases)
    assert narrow["half_width_by_largest_establishment"][10]["among_many"] < 20
    assert wide["half_width_by_largest_establishment"][10]["among_many"] is None
    assert [row["share"] for row in narrow["scale_share"]] == ["0", "1/20", "1/10", "3/20", "1/5"]
    assert any("scale_share = 1/10 or more" in note for note in narrow["notes"])
    small, large = narrow["expected_error"]["by_cell_size"]
    assert (small["mostly_noise"], large["mostly_noise"]) == (2, 0)
    assert sum(row["mostly_noise"] for row in wide["expected_error"]["by_cell_size"]) == 4

    outcome = run(plan)
    out = plan.parent / "out"
    for form in ("basic", "research"):
        for name, ends in (("narrow", True), ("wide", False)):
            table = pq.read_table(out / name / f"{form}.parquet")
            with (out / name / f"{form}.csv").open() as file:
                text = list(csv.DictReader(file))
            assert [row["upper"] != "" for row in text] == [value is not None for value in table["upper"].to_pylist()]
            assert all((row["upper"] != "") is ends for row in text)
            assert [row["quality"] for row in text] == table["quality"].to_pylist()
            assert ("largest" in table.column_names) is (ends and form == "research")
            assert all(row["quality"] == "no interval" for row in text) is not ends
    report = (out / "report.html").read_text()
    assert "4 of them with an interval" in report and "each with an interval" not in report
    assert outcome.bundle is not None
    findings = verify_bundle(outcome.bundle)
    assert not [finding for finding in findings if finding.wrong]
    assert any("noisy-sizes: worst loss" in finding.words for finding in findings)
    written = json.loads((out / "narrow" / "release.json").read_text())
    assert written["columns"]["quality"].startswith("how far the interval reaches")
    assert written["guarantee"]["loss"] == {"epsilon": "2"}


def test_sizes_where_an_exchange_is_inside_one_epsilon(plan: Path) -> None:
    text = PLAN.replace("alpha = 0.1", "alpha = 0.1\nsubstitution = true")
    plan.write_text(text[: text.rindex("[[release]]")] + text[text.index("[output]") :])
    outcome = run(plan)
    written = json.loads((plan.parent / "out" / "narrow" / "release.json").read_text())
    (table,) = written["parameters"]["tables"]
    assert table["noise"]["sizes"]["floor"] == table["noise"]["floor"] == pytest.approx(1 + 1.1**0.5)
    assert outcome.bundle is not None
    findings = verify_bundle(outcome.bundle)
    assert not [finding for finding in findings if finding.wrong]
    assert any("noisy-sizes: worst loss 0.2 of epsilon=0.2" in finding.words for finding in findings)
    forged = table | {"noise": table["noise"] | {"sizes": table["noise"]["sizes"] | {"floor": 1.0}}}
    with pytest.raises(RefutedError, match="have the floor"):
        list(stated(forged, Establishments("0.1", substitution=True)))


def test_public_bounds_narrow_intervals_for_nothing(plan: Path) -> None:
    """A published size class says that no establishment of P has more than 49 workers; of Q nothing is known."""
    text = PLAN.replace("scale_share = 0.1", "").replace('epsilon = "0.3"', "epsilon = 1\nscale_share = 0.2")
    (plan.parent / "plan.toml").write_text(text)
    (plan.parent / "sizes.csv").write_text("place,jobs,largest,at_most\nP,20000,20,49\n")
    told = check(read_plan(plan)).releases[0].to_dict()["tables"][0]["expected_error"]["by_cell_size"]
    assert told[-1]["half_width"] < 20
    outcome = run(plan)
    for name in ("narrow", "wide"):
        table = pq.read_table(plan.parent / "out" / name / "research.parquet").to_pydict()
        half = (np.array(table["upper"][:2]) - np.array(table["lower"][:2])) / 2
        assert (half <= 60).all() and table["at_most"] == [49, 49, None, None]
        assert np.all(np.abs(np.array(table["count"][:2]) - 10_000) <= 200)
        assert "at_most" not in pq.read_table(plan.parent / "out" / name / "basic.parquet").column_names
    written = json.loads((plan.parent / "out" / "narrow" / "release.json").read_text())
    assert "hold if it is true" in written["columns"]["at_most"]
    assert outcome.bundle is not None
    findings = verify_bundle(outcome.bundle)
    assert not [finding for finding in findings if finding.wrong]
    assert sum("computed again from the counts" in finding.words for finding in findings) == 2
    (plan.parent / "sizes.csv").write_text("place,jobs,largest,at_most\nP,20000,20,19\n")
    with pytest.raises(DiscreetError, check=about("sizes")):
        run(plan)


def test_a_share_cannot_be_changed_afterwards(plan: Path) -> None:
    run(plan)
    plan.write_text(PLAN.replace("scale_share = 0.1", "scale_share = 0.2"))
    with pytest.raises(DiscreetError, check=about("release.0.scale_share")):
        run(plan)
    plan.write_text(PLAN.replace("scale_share = 0.1", "scale_share = 1.5"))
    with pytest.raises(DiscreetError, check=about("scale_share")):
        run(plan)
