"""A number without an interval: both ends are empty, in every file, and its flag says so."""

from __future__ import annotations

import csv
import json
import re
import zipfile
from collections.abc import Iterator
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openpyxl import load_workbook

import discreet as dc
from discreet.plan.run import run
from discreet.publication.publish import FORMATS, publish_files
from discreet.publication.site import site
from discreet.results import both_ends
from discreet.review.verdict import verify_bundle
from discreet.tables.quality import NONE

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
[[release]]
name = "bare"
kind = "count"
by = ["place", "sex"]
epsilon = "0.3"
round_to = 5
[output]
folder = "out"
formats = ["csv", "parquet", "xlsx"]
"""

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bare")
    size = np.r_[np.full(1000, 20), np.ones(3, dtype=np.int64)]
    rows = {
        "workplace": np.repeat(np.arange(1003), 2),
        "place": np.repeat(np.where(size == 20, "P", "Q"), 2),
        "sex": np.tile(["f", "m"], 1003),
        "n": np.stack([size // 2, size - size // 2], axis=1).ravel(),
    }
    pq.write_table(pa.table(rows), folder / "jobs.parquet")
    (folder / "plan.toml").write_text(PLAN)
    outcome = run(folder / "plan.toml")
    assert outcome.bundle is not None
    assert not [finding for finding in verify_bundle(outcome.bundle) if finding.wrong]
    return folder / "out"


def read(name: str, content: bytes) -> Rows:
    """The rows of a file by what its name ends in."""
    if name.endswith(".csv"):
        return list(csv.DictReader(StringIO(content.decode("utf-8-sig"))))
    if name.endswith(".parquet"):
        return pq.read_table(pa.BufferReader(content)).to_pylist()
    header, *rows = next(iter(load_workbook(BytesIO(content)))).iter_rows(values_only=True)
    return [dict(zip(header, row, strict=True)) for row in rows]


def without(rows: Rows, lower: str = "lower", upper: str = "upper") -> None:
    assert len(rows) >= 4
    for row in rows:
        assert row[lower] in ("", None) and row[upper] in ("", None), row


def files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.suffix in (".csv", ".parquet", ".xlsx"))


def test_in_what_a_run_writes(out: Path) -> None:
    """Before, the lower end was 0 and the upper one empty."""
    kinds = set()
    for path in files(out / "bare"):
        rows = read(path.name, path.read_bytes())
        if "quality" in rows[0]:
            kinds.add((path.stem, path.suffix))
            without(rows)
            assert {row["quality"] for row in rows} == {NONE}
    assert kinds == {(form, kind) for form in ("basic", "research") for kind in (".csv", ".parquet", ".xlsx")}


def test_in_bundle_and_report(out: Path) -> None:
    bundle = next(path for path in out.rglob("*") if zipfile.is_zipfile(path) and path.suffix != ".xlsx")
    with zipfile.ZipFile(bundle) as opened:
        found = [read(name, opened.read(name)) for name in opened.namelist() if "/research.parquet" in name]
    assert found
    for rows in found:
        without(rows)
    report = (out / "report.html").read_text()
    assert "No intervals" in report and "each with an interval" not in report


def test_in_what_is_published_and_on_a_site(out: Path, tmp_path: Path) -> None:
    done = publish_files(out, tmp_path / "published", formats=list(FORMATS))
    seen = 0
    for path in files(done.folder):
        rows = read(path.name, path.read_bytes())
        if rows and "INT_LOWER" in rows[0]:
            without(rows, "INT_LOWER", "INT_UPPER")
            seen += 1
        elif rows and "quality" in rows[0]:
            without(rows)
            seen += 1
    assert seen >= 4  # CSV, Parquet, Excel, SDMX-CSV; the W3C's metadata describe the CSV file
    made = site(out, tmp_path / "site")
    [script] = made.folder.rglob("*-0.js")
    page = next(path for path in made.folder.glob("*.html") if "lower" in path.read_text())
    names = re.findall(r'"name":\s*"(\w+)"', page.read_text())
    _, columns = json.loads("[" + script.read_text().strip().removeprefix("discreet.rows(").removesuffix(");") + "]")
    for end in ("lower", "upper"):
        assert columns[names.index(end)] == [None] * 4


def test_in_python() -> None:
    size = np.full(400, 20)
    pay = np.random.default_rng(1).uniform(1, 100_000, size.sum())
    where = np.repeat(np.arange(400), size)
    place = np.where(where % 2, "P", "Q")
    jobs = pa.table({"workplace": where, "worker": np.arange(len(where)), "place": place, "pay": pay})
    schema = dc.Schema(workplace_attributes=["place"], magnitudes={"pay": 100_000})
    session = dc.Session(dc.read_jobs(jobs, schema=schema), unit=dc.Establishments("0.1"), budget=100, seed=1)
    for query in (session.count(["place"]), session.mean("pay", ["place"])):
        found = query.release(epsilon="0.6")
        for table in (found.to_arrow(), found.tidy()):
            lower, upper = (np.array(table[end].to_pylist(), dtype=float) for end in ("lower", "upper"))
            assert (np.isnan(lower) == np.isnan(upper)).all()
    low, high = both_ends([0.0, 1.0, -np.inf, np.nan], [np.inf, 2.0, 3.0, np.nan])
    assert low.to_pylist() == [None, 1.0, None, None] and high.to_pylist() == [None, 2.0, None, None]
