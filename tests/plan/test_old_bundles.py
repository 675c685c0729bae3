"""Bundles that version 0.1.0 wrote still verify, word for word: `bundle-0.1.0-*.zip`, from `discreet run` on toys.

That of codes has whole numbers as codes, and hierarchies declared as `industry`, then `area`.
That of several has workers with two jobs, of whom the guarantee then spoke in other words.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

from discreet.ledger import Entry
from discreet.plan.reading import read_plan
from discreet.plan.requests import requests
from discreet.release.tables import read_table, write_table

BUNDLES = sorted(Path(__file__).parent.glob("bundle-0.1.0-*.zip"))


def test_there_is_one_of_each_kind() -> None:
    assert [path.stem.rpartition("-")[2] for path in BUNDLES] == ["codes", "rows", "several", "tables"]


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.stem)
def test_an_old_bundle_verifies(bundle: Path, command) -> None:
    code, out, err = command("verify", bundle)
    assert code == 0, out + err


CODES = """
[data]
source = "data/jobs.parquet"
workplaces = "data/places.parquet"
[data.schema]
workplace_attributes = ["naics", "county", "state"]
[data.schema.worker_attributes]
sex = {sex}
age = ["young", "old"]
{hierarchies}
[unit]
kind = "establishments"
alpha = 0.1
[budget]
epsilon = 4
ledger = "ledger.db"
dataset = "codes"
[[release]]
name = "levels"
kind = "counts"
tables = [["naics", "county"], ["naics2", "county"], ["zone", "naics"], ["zone"], []]
measure = "finest"
epsilon = 2
[[release]]
name = "kinds"
kind = "count"
by = ["naics2", "zone", "sex"]
where = {{ state = {state}, age = ["young"] }}
epsilon = 2
mechanism = "polynomial"
[output]
folder = "out"
"""
INDUSTRY = '[hierarchy.industry]\nlevels = ["naics", "naics2"]\nprefix = [4, 2]\n'
AREA = '[hierarchy.area]\nlevels = ["county", "zone"]\nlookup = "zones.csv"\n'


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"hierarchies": AREA + INDUSTRY}, True),
        ({"hierarchies": INDUSTRY + AREA.replace("zones.csv", "others.csv")}, False),
        ({"sex": "[2, 1]"}, False),
        ({"state": "[2]"}, False),
    ],
    ids=["as it was", "in another order", "another lookup", "another order of a domain", "another filter"],
)
def test_a_plan_with_numbers_as_codes_goes_on_with_what_it_paid(change: dict, same: bool, tmp_path: Path) -> None:
    """Its lines in the ledger are from before codes were text: it is resumed, and asks for nothing new."""
    told = {"sex": "[1, 2]", "state": "[1, 2]", "hierarchies": INDUSTRY + AREA} | change
    (tmp_path / "plan.toml").write_text(CODES.format(**told))
    made, wrong = requests(read_plan(tmp_path / "plan.toml"), paid={})
    assert not wrong
    with zipfile.ZipFile(BUNDLES[0]) as old:
        lines = [Entry.from_row(row) for row in json.loads(old.read("ledger.json"))["lines"]]
    paid = {str(line.release): line for line in lines if line.kind == "charge"}
    about = {each.release.name: {"loss": each.guarantee.loss, "details": each.details} for each in made}
    assert all(paid[name].pays_for(unit=paid[name].unit, **asked) for name, asked in about.items()) is same


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint32(), pa.bool_()], ids=str)
def test_codes_that_an_old_release_kept_as_numbers_are_text(kind: pa.DataType, tmp_path: Path) -> None:
    """Else they would not join the tables of today, and a reader of both would find no place in common."""
    kept = pa.table({"sex": pa.array([0, 1], pa.int8()).cast(kind), "count": pa.array([5, 9], pa.int64())})
    write_table(kept, tmp_path / "research.parquet")
    table = read_table(tmp_path / "research.parquet", kind="parquet", attributes=["sex"])
    assert table.schema.types == [pa.string(), pa.int64()]
    assert table["sex"].to_pylist() == (["false", "true"] if kind == pa.bool_() else ["0", "1"])


def test_and_one_that_was_changed_does_not(command, tmp_path: Path) -> None:
    """The verdict comes from the content: one byte more in a published table is found."""
    changed = tmp_path / "bundle.zip"
    with zipfile.ZipFile(BUNDLES[0]) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(old.getinfo(name), content + b"\n" if name.endswith("research.csv") else content)
    code, out, err = command("verify", changed)
    assert code != 0, out + err
