"""Workers by three kinds under the weak definition: a plan's default follows every union, and a reviewer can tell."""

from __future__ import annotations

import json
import zipfile
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.archive.packing import as_json, pack
from discreet.plan.run import run
from discreet.review.verdict import verify_bundle

PLAN = """
[data]
source = "jobs.parquet"
[data.schema]
workplace_attributes = ["place"]
worker_attributes = { school = ["none", "some", "much"] }
[unit]
kind = "establishments"
alpha = 0.1
strength = "weak"
[budget]
epsilon = 4
ledger = "ledger.db"
dataset = "jobs"
[[release]]
name = "schools"
kind = "count"
by = ["place", "school"]
epsilon = 4
[output]
folder = "out"
"""


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rng = tmp_path_factory.mktemp("unions"), np.random.default_rng(5)
    workplace = np.repeat(np.arange(12), rng.integers(3, 90, 12))
    jobs = {
        "workplace": workplace,
        "worker": np.arange(len(workplace)),
        "place": [f"P{i % 4}" for i in workplace],
        "school": rng.choice(["none", "some", "much"], len(workplace)),
    }
    pq.write_table(pa.table(jobs), folder / "jobs.parquet")
    (folder / "plan.toml").write_text(PLAN)
    run(folder / "plan.toml")
    return folder / "out" / "bundle.zip"


def test_it_is_the_default_and_the_bundle_holds(bundle: Path, command) -> None:
    about = json.loads((bundle.parent / "schools" / "release.json").read_text())
    assert about["parameters"]["tables"][0]["mechanism"] == "weak-unions"
    assert about["guarantee"]["proof"] == "docs/proofs/rings.md" and about["guarantee"]["basis"] == "proved"
    assert "weak-unions" in (bundle.parent / "report.html").read_text()
    code, out, err = command("verify", bundle)
    assert code == 0 and "weak-unions: worst loss" in out, out + err


@pytest.mark.parametrize(
    ("name", "times"), [("factor", 0.95), ("epsilon", 1.05), ("growth", 0.5)], ids=["scale", "loss", "growth"]
)
def test_forged_constants_are_refuted(bundle: Path, tmp_path: Path, name: str, times: float) -> None:
    with zipfile.ZipFile(bundle) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    about = json.loads(files["schools/release.json"])
    noise = about["parameters"]["tables"][0]["noise"]
    holder = noise if name in noise else noise["parameters"]
    holder[name] *= times
    files["schools/release.json"] = as_json(about)
    listed = json.loads(files["bundle.json"])
    listed["files"] = {name: sha256(content).hexdigest() for name, content in files.items() if name != "bundle.json"}
    files["bundle.json"] = as_json(listed)
    pack(tmp_path / "b.zip", files, files.__getitem__)
    wrong = {finding.subject: finding.words for finding in verify_bundle(tmp_path / "b.zip") if finding.wrong}
    assert "schools: mechanisms" in wrong, wrong
