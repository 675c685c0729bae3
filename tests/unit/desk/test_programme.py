"""A statistical programme at the desk: levels, sums, rules, revisions and the agency's table, from form to reviewer."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from starlette.datastructures import FormData

from discreet.desk.desk import Desk
from discreet.desk.drafts import Draft, as_toml, from_form, read
from discreet.desk.estimates import JudgedDraft, judge
from discreet.plan.run import run
from discreet.review.verdict import verify_bundle
from discreet.words.errors import DataError
from faults_of import about

SETTINGS = """
[[source]]
name = "firms"
path = "data/firms.parquet"
dataset = "firms"
epsilon = 9
period = "2026-Q1"
per_quarter = 8
unit = { kind = "establishments", alpha = 0.1 }

[source.schema]
workplace_attributes = ["naics", "county"]
worker_attributes = {}
size = "n"
magnitudes = { pay = { cap = 50 } }

[source.hierarchy.industry]
levels = ["naics", "sector"]
prefix = [4, 2]

[source.hierarchy.place]
levels = ["county", "region"]
lookup = "data/regions.csv"

[source.agency.qcew]
file = "data/qcew.csv"
title = "QCEW"
columns = { sum = "wages" }
factors = [0.05, 0.15]
"""
FORM = [
    *(("title", "Pay"), ("unit-kind", "establishments"), ("unit-alpha", "0.1")),
    *(("release-0-name", "pay"), ("release-0-kind", "sums"), ("release-0-of", "pay"), ("release-0-epsilon", "4")),
    *(("release-0-tables", "naics, county\nsector, region\nregion"), ("release-0-measure", "finest")),
    *(
        ("release-0-suppress-below", "4000"),
        ("release-0-suppress-quality", "mostly noise"),
        ("release-0-round_to", "10"),
    ),
    *(("release-0-compare", "qcew"), ("release-0-establishments", "on")),
    *(("release-1-name", "pay-again"), ("release-1-kind", "sums"), ("release-1-of", "pay"), ("release-1-epsilon", "4")),
    *(("release-1-tables", "naics, county\nregion"), ("release-1-measure", "finest"), ("release-1-replaces", "pay")),
    *(("formats", "csv"), ("formats", "parquet"), ("forms", "basic"), ("forms", "research")),
]


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Desk]:
    rng = np.random.default_rng(5)
    rows = {
        "workplace": np.arange(90),
        "naics": rng.choice(["1111", "1121", "2361"], 90),
        "county": rng.choice(["01001", "01003", "02001"], 90),
        "n": rng.integers(1, 40, 90),
    }
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table(rows | {"pay": rows["n"] * 20}), tmp_path / "data" / "firms.parquet")
    (tmp_path / "data" / "regions.csv").write_text("county,region\n01001,north\n01003,north\n02001,south\n")
    (tmp_path / "data" / "qcew.csv").write_text("sector,region,wages\n11,north,9000\n11,south,5000\n23,north,\n")
    (tmp_path / "desk.toml").write_text(SETTINGS)
    return lambda rules="": Desk.open(tmp_path)


@pytest.fixture
def desk(make: Callable[..., Desk]) -> Desk:
    return make()


def draft_of(desk: Desk, form: list[tuple[str, str]]) -> Draft:
    return from_form(FormData(form), "firms", desk.schema(desk.sources["firms"]))


def judged(desk: Desk, changes: dict[str, str]) -> JudgedDraft:
    return judge(desk, draft_of(desk, [(key, changes.get(key, value)) for key, value in FORM]), "p")


def test_a_form_becomes_a_programme_that_is_run_and_verified(desk: Desk, client: Any) -> None:
    draft = draft_of(desk, FORM)
    found = judge(desk, draft, "p")
    assert not found.trouble and found.found is not None and str(found.found.only.cost) == "epsilon=8"
    beside = found.found.releases[0].agency
    assert beside is not None and (beside.cells, beside.suppressed, beside.off) == (3, 1, pytest.approx(0.1))
    text = as_toml(draft.content(desk, "p"))
    asked = tomllib.loads(text)
    assert asked["release"][0]["suppress"] == {"below": 4000, "quality": ["mostly noise"]}
    assert asked["release"][0]["compare"]["file"] == "../data/qcew.csv"
    assert asked["hierarchy"]["place"]["lookup"] == "../data/regions.csv"
    desk.plan_file("p").write_text(text)
    done = run(desk.plan_file("p"))
    basic = pq.read_table(desk.releases / "p" / "pay" / "2-sector-region" / "basic.parquet").to_pandas()
    assert basic["establishments"].sum() == 90
    shown = basic.loc[basic["quality"] != "suppressed", "sum"]
    assert (shown >= 4000).all() and (shown % 10 == 0).all()
    report = done.report.read_text()
    assert "pay beside QCEW" in report and "replaces &#x27;pay&#x27;" in report and "2026-Q1" in report
    assert not [one for one in verify_bundle(done.bundle) if one.wrong]
    pages = [client.get("/releases/p/pay", params={"table": number}) for number in range(4)]
    assert [page.status_code for page in pages] == [200] * 4
    gone = (
        pq.read_table(desk.releases / "p" / "pay" / "1-naics-county" / "basic.parquet")["quality"].to_pandas()
    ) == "suppressed"
    assert gone.any() and pages[0].text.count(">suppressed<") >= gone.sum()
    assert "north" in pages[1].text and "numbers below 4,000 or of quality" in pages[0].text


def test_what_is_wrong_stands_at_its_field(desk: Desk) -> None:
    for field, value in {
        "release-0-suppress-below": "few",
        "release-0-compare": "qwi",
        "release-1-replaces": "nothing",
        "release-0-of": "wages",
    }.items():
        place = "-".join(field.split("-")[:3])
        assert place in [each.field for each in judged(desk, {field: value}).trouble], field
    over = judged(desk, {"release-0-epsilon": "5"})
    assert over.trouble and not (desk.folder / "ledger.db").exists(), "a quarter has 8"


def test_no_draft_names_a_file(desk: Desk) -> None:
    sent = draft_of(desk, FORM).model_dump()
    sent["release"][0]["compare"] = {"file": "/etc/passwd"}
    draft = read(Draft.model_construct(**sent).model_dump_json(warnings=False).encode())
    assert isinstance(draft, Draft)
    with pytest.raises(DataError, check=about("release.0.compare")):
        draft.content(desk, "p")
    assert [each.field for each in judge(desk, draft, "p").trouble] == ["release-0-compare"]


def test_the_form_offers_sums_rules_revisions_and_the_agency(client: Any) -> None:
    page = client.get("/plans/new", params={"source": "firms"}).text
    for words in ("several tables of sums", ">pay<", "Leave out numbers below", "Revision of", ">qcew<", "region"):
        assert words in page, words
