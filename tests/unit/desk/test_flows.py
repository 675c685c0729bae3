"""Flows and changes at the desk: a source that has quarters, its form, its estimate and the plan it becomes."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import FormData

from discreet.desk.desk import Desk
from discreet.desk.drafts import as_toml, first_draft, from_form
from discreet.desk.estimates import judge
from discreet.plan.reading import read_plan

SOURCE = """
title = "Desk"

[[source]]
name = "histories"
path = "data/jobs.parquet"
dataset = "histories"
epsilon = 4
quarters = ["q1", "q2", "q3", "q4"]
schema = { workplace_attributes = ["county"], worker_attributes = {} }
unit = { kind = "establishments", alpha = 0.1 }
"""
FORM = [
    ("title", "T"),
    ("unit-kind", "establishments"),
    ("unit-alpha", "0.1"),
    ("release-0-name", "flows"),
    ("release-0-kind", "flows"),
    ("release-0-quarter", "q2, q3"),
    ("release-0-by", "county"),
    ("release-0-scale_share", "0.1"),
    ("release-0-epsilon", "2"),
    ("release-1-name", "year"),
    ("release-1-kind", "changes"),
    ("release-1-quarters", "q1, q4"),
    ("release-1-by", "county"),
    ("release-1-round_to", "5"),
    ("release-1-epsilon", "1"),
    ("formats", "csv"),
    ("forms", "research"),
]


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Desk]:
    def made(rules: str = "") -> Desk:
        (tmp_path / "desk.toml").write_text(SOURCE)
        return Desk.open(tmp_path)

    return made


@pytest.fixture
def desk(make: Callable[..., Desk]) -> Desk:
    return make()


def test_a_form_becomes_a_plan_that_is_priced(desk: Desk) -> None:
    draft = from_form(FormData(FORM), "histories", desk.schema(desk.sources["histories"]))
    text = as_toml(draft.content(desk, "p"))
    content = tomllib.loads(text)
    assert content["data"]["quarters"] == ["q1", "q2", "q3", "q4"]
    assert content["release"][0]["quarter"] == ["q2", "q3"] and content["release"][1]["round_to"] == 5
    assert read_plan(desk.folder / "p.toml", text.encode()).plan.release[1].quarters == ("q1", "q4")
    judged = judge(desk, draft, "p")
    assert judged.found is not None and str(judged.found.only.cost) == "epsilon=3"
    assert "destruction" in str(judged.found.releases[0].expected)
    assert not judged.trouble  # data that are not here are told when it is run


def test_what_is_wrong_stands_at_its_field(desk: Desk) -> None:
    wrong = [(key, {"release-0-quarter": "q1", "release-1-quarters": "q4, q1"}.get(key, value)) for key, value in FORM]
    judged = judge(desk, from_form(FormData(wrong), "histories", desk.schema(desk.sources["histories"])), "p")
    assert {each.field for each in judged.trouble} == {"release-0-quarter", "release-1-quarters"}


def test_the_form_shows_quarters(desk: Desk, client: Any) -> None:
    page = client.get("/plans/new", params={"source": "histories"}).text
    assert "changes between quarters" in page and "There are: q1, q2, q3, q4." in page
    assert first_draft(desk, desk.sources["histories"]).release[0]["kind"] == "flows"
