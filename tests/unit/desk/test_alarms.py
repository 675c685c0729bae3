"""Alarms at the desk: from the form to a plan, its files and its reviewer; no form names a folder."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from starlette.datastructures import FormData

from discreet.desk.desk import Desk
from discreet.desk.drafts import Draft, as_toml, from_form
from discreet.desk.estimates import judge
from discreet.plan.run import run
from discreet.review.verdict import verify_bundle
from discreet.words.errors import DataError
from faults_of import about

SETTINGS = """
[[source]]
name = "jobs"
path = "data/jobs.parquet"
dataset = "jobs"
epsilon = 20
unit = { kind = "establishments", alpha = 0.1 }
schema = { workplace_attributes = ["place"], worker_attributes = {} }
"""


def form_of(start: str, **alarms: str) -> list[tuple[str, str]]:
    return [
        *(("title", "Twice"), ("unit-kind", "establishments"), ("unit-alpha", "0.1")),
        *(
            (f"release-{i}-{key}", value)
            for i, release in enumerate((f"{start}-a", f"{start}-b"))
            for key, value in {"name": release, "kind": "count", "by": "place", "mechanism": "polynomial"}.items()
        ),
        *((f"release-{i}-epsilon", "4") for i in range(2)),
        *((f"alarms-0-{key}", value) for key, value in alarms.items()),
        *(("formats", "csv"), ("forms", "research")),
    ]


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Desk]:
    rng = np.random.default_rng(2)
    place = rng.choice(["east", "west"], 60)
    where = np.repeat(np.arange(60), 5)
    table = {"workplace": where, "worker": np.arange(300), "place": place[where]}
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table(table), tmp_path / "data" / "jobs.parquet")
    (tmp_path / "desk.toml").write_text(SETTINGS)
    return lambda rules="": Desk.open(tmp_path)


@pytest.fixture
def desk(make: Callable[..., Desk]) -> Desk:
    return make()


def draft_of(desk: Desk, form: list[tuple[str, str]]) -> Draft:
    return from_form(FormData(form), "jobs", desk.schema(desk.sources["jobs"]))


ASKED = {"name": "moved", "late": "one-b", "early": "one-a", "value": "count", "rate": "0.2", "direction": "either"}


def test_a_form_becomes_alarms_that_a_reviewer_computes_anew(desk: Desk) -> None:
    draft = draft_of(desk, form_of("one", **ASKED))
    found = judge(desk, draft, "one")
    assert not found.trouble and found.found is not None and str(found.found.only.cost) == "epsilon=8"
    desk.plan_file("one").write_text(as_toml(draft.content(desk, "one")))
    done = run(desk.plan_file("one"))
    print(sorted(p.relative_to(desk.releases).as_posix() for p in desk.releases.rglob("*")))
    assert (desk.releases / "one" / "alarms-moved.csv").exists()
    assert not [each for each in verify_bundle(done.bundle) if each.wrong]

    later = draft_of(desk, form_of("two", **{**ASKED, "late": "two-b", "folder": "one"}))
    assert later.content(desk, "two")["alarms"][0]["folder"] == "../releases/one"
    assert not judge(desk, later, "two").trouble


@pytest.mark.parametrize("folder", ["../../etc", "/etc", "nothing", "one/../one", "."])
def test_no_form_names_a_folder(desk: Desk, folder: str) -> None:
    draft = draft_of(desk, form_of("two", **{**ASKED, "folder": folder}))
    with pytest.raises(DataError, check=about("alarms.0.folder")):
        draft.content(desk, "two")
    assert [each.field for each in judge(desk, draft, "two").trouble] == ["alarms-0-folder"]


def test_a_form_asks_for_a_share_of_false_alarms(desk: Desk) -> None:
    draft = draft_of(desk, form_of("one", **{**ASKED, "rate": "", "fdr": "0.1"}))
    assert draft.alarms[0]["fdr"] == "0.1" and "rate" not in draft.alarms[0]
    assert not judge(desk, draft, "one").trouble
    [told] = judge(desk, draft_of(desk, form_of("one", **{**ASKED, "fdr": "0.1"})), "one").trouble
    assert told.field == "alarms-0-fdr"


@pytest.mark.parametrize(("key", "value"), [("late", "none"), ("rate", "2"), ("value", "sum"), ("early", "one-c")])
def test_what_is_wrong_stands_at_its_field(desk: Desk, key: str, value: str) -> None:
    told = judge(desk, draft_of(desk, form_of("one", **{**ASKED, key: value})), "one").trouble
    assert f"alarms-0-{key}" in [each.field for each in told]


def test_alarms_are_added_and_removed_by_buttons(client: Any, csrf: Any) -> None:
    page = client.get("/plans/new", params={"source": "jobs"}).text
    assert "Add alarms" in page and "alarms-0-name" not in page
    sent = dict(form_of("one")) | {"csrf": csrf(client)}
    page = client.post("/plans/jobs/new", data={**sent, "do": "add-alarms"}).text
    assert re.search(r'name="alarms-0-early" value="one-a"', page)
    assert re.search(r'value="one-b" selected', page)
    page = client.post("/plans/jobs/new", data={**sent, "alarms-0-name": "x", "do": "remove-alarms-0"}).text
    assert "alarms-0-name" not in page
