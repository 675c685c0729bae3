"""Odd names go whole through a plan, to the reviewer and the site: columns, levels, lookups, codes and labels."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from discreet.plan.run import run
from discreet.publication.publish import publish_files
from discreet.publication.site import site
from discreet.review.verdict import verify_bundle

ROLES = ("establishment", "worker", "place", "fine", "level", "region", "chain", "pay", "sex", "code", "label")
ODD = ["a b", 'a"b', "a'b", "naïve-北京", "select", "a/b", "a;b--", "{x}", "{{7*7}}", "<b>x</b>", "-1", "a,b", "rowid"]
ODD += ["=1+1", "@SUM(A1)", "%s", "CON", "a\\b", "C:", "$HOME", "e\u0301", "é" * 50, "ﬁ", "İ", "history", "quarter"]
ODD += ["from", "level", "1-a", "[x]", "a]b", "#", "a::b", "🐘", "x" * 100]


def written(folder: Path, **names: str) -> Path:
    own = {role: names.get(role, role) for role in ROLES}
    n = 60
    rows = {
        own["establishment"]: [f"e{i % 8}" for i in range(n)],
        own["worker"]: list(range(n)),
        own["place"]: [own["code"] if i % 2 else "p1" for i in range(n)],
        own["fine"]: [f"{i % 4}0x" for i in range(n)],
        own["sex"]: ["FM"[i % 2] for i in range(n)],
        own["pay"]: list(range(n)),
        "not.used": list(range(n)),
    }
    pq.write_table(pa.table(rows), folder / "jobs.parquet")
    regions = pa.table({own["place"]: [own["code"], "p1"], own["region"]: ["r1", "r1"]})
    pyarrow.csv.write_csv(regions, folder / "regions.csv")
    t = {role: json.dumps(name, ensure_ascii=False) for role, name in own.items()}
    (folder / "plan.toml").write_text(
        f"""
[data]
source = "jobs.parquet"
labels = {{ {t["place"]} = {{ p1 = {t["label"]} }} }}
[data.schema]
establishment = {t["establishment"]}
worker = {t["worker"]}
workplace_attributes = [{t["place"]}, {t["fine"]}]
worker_attributes = {{ {t["sex"]} = ["F", "M"] }}
unused = ["not.used"]
magnitudes = {{ {t["pay"]} = {{ cap = 100 }} }}
[hierarchy.{t["chain"]}]
levels = [{t["fine"]}, {t["level"]}]
prefix = [3, 1]
[hierarchy.geography]
levels = [{t["place"]}, {t["region"]}]
lookup = "regions.csv"
[unit]
kind = "establishments"
alpha = 0.1
[budget]
epsilon = 8
ledger = "ledger.db"
dataset = "jobs"
[[release]]
name = "pay"
kind = "sums"
of = {t["pay"]}
tables = [[{t["fine"]}, {t["place"]}], [{t["level"]}, {t["region"]}]]
measure = "finest"
epsilon = 4
[[release]]
name = "jobs"
kind = "count"
by = [{t["place"]}, {t["sex"]}]
where = {{ {t["place"]} = [{t["code"]}] }}
mechanism = "joint-polynomial"
epsilon = 4
[output]
folder = "out"
formats = ["csv", "parquet"]
"""
    )
    return folder / "plan.toml"


@pytest.mark.parametrize("start", [0, *(pytest.param(i, marks=pytest.mark.full_size) for i in range(3, len(ODD), 3))])
def test_every_role_takes_every_name(start: int, tmp_path: Path) -> None:
    """Names take turns: those of a start stand in eleven roles at once."""
    own = {role: ODD[(start + i) % len(ODD)] for i, role in enumerate(ROLES)}
    done = run(written(tmp_path, **own))
    assert not [finding for finding in verify_bundle(done.bundle) if finding.wrong]
    table = pq.read_table(tmp_path / "out" / "jobs" / "research.parquet")
    assert table.column_names[:2] == [own["place"], own["sex"]] and {*table[0].to_pylist()} == {own["code"]}
    publish_files(tmp_path / "out", tmp_path / "files", formats=["csv", "csvw", "sdmx"])
    site(tmp_path / "out", tmp_path / "site", formats=["csv"])
    assert {path.name for path in tmp_path.iterdir()} == {
        *("jobs.parquet", "regions.csv", "plan.toml", "ledger.db", "out", "files", "site")
    }
