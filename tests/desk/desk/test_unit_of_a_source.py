"""A source whose unit desk.toml fixes: another is refused at every door, and nothing is paid for it."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert

from discreet.desk import planning, runs
from discreet.desk.accounts import Person
from discreet.desk.desk import Desk
from discreet.desk.drafts import first_draft
from discreet.desk.estimates import judge
from discreet.desk.store import DeskStore
from discreet.desk.store import runs as started
from discreet.words.errors import DataError, PrivacyError
from faults_of import about

ME = Person("(me)", "local", "")
OWN = 'unit = { kind = "establishments", alpha = 0.1 }'


def fix(folder: Path) -> Desk:
    settings = folder / "desk.toml"
    settings.write_text(settings.read_text().replace(f"unit_fixed = false\n{OWN}", OWN))
    return Desk.open(folder)


@pytest.mark.parametrize(
    ("unit", "fits"),
    [
        ({"kind": "establishments", "alpha": "1/10"}, True),
        ({"kind": "establishments", "alpha": "0.1", "strength": "strong"}, True),
        ({"kind": "establishments", "alpha": "0.1", "strength": "weak"}, False),
        ({"kind": "establishments", "alpha": "0.2"}, False),
        ({"kind": "workers"}, False),
        ({"kind": "establishment-nodes", "theta": 1000}, False),
    ],
)
def test_another_unit_is_refused_by_the_estimate(copied: Any, unit: dict[str, Any], fits: bool) -> None:
    folder = copied()
    draft = first_draft(desk := Desk.open(folder), desk.sources["jobs"]).model_copy(update={"unit": unit})
    assert judge(desk, draft, "x").can_run  # a unit that is only suggested refuses none
    judged = judge(fix(folder), draft, "x")
    assert judged.can_run == fits
    if not fits:
        (trouble,) = judged.trouble
        assert trouble.field == "unit" and judged.found is not None
        asked, possible, step = trouble.text.split(". ", 2)
        assert unit["kind"] in asked and "fixed in desk.toml: establishments(alpha=1/10,strong)" in asked
        assert possible.startswith("Losses under different units do not add up") and step.startswith("Use that unit")


def test_neither_approved_nor_started_nor_paid(copied: Any) -> None:
    """Also where desk.toml came to fix the unit after the plan was submitted, or after it was approved."""
    folder = copied()
    desk = Desk.open(folder)
    store = DeskStore(desk.database)
    draft = first_draft(desk, desk.sources["jobs"]).model_copy(update={"unit": {"kind": "workers"}})
    names = [planning.save(desk, store, draft.model_copy(update={"title": title}), ME) for title in ("A", "B")]
    for name in names:
        planning.submit(store, name, ME)
    first, second = (planning.get(store, name) for name in names)
    assert first is not None and second is not None
    planning.decide(desk, store, second.name, ME, verdict="approved", seen=second.digest)
    strict = fix(folder)
    with pytest.raises(PrivacyError, check=about("plan")):
        planning.decide(strict, store, first.name, ME, verdict="approved", seen=first.digest)
    with pytest.raises(PrivacyError, check=about("plan")):
        runs.start(strict, store, second.name, ME)
    assert runs.listed(strict, store) == [] and not (folder / "ledger.db").exists()
    with store.writing() as connection:  # a run that was interrupted before
        connection.execute(insert(started).values(name="run-a", plan=second.name, by=ME.name, at=second.at))
    with pytest.raises(PrivacyError, check=about("plan")):
        runs.resume(strict, store, "run-a", ME)
    assert list(desk.runs.iterdir()) == [] and not (folder / "ledger.db").exists()
    planning.decide(strict, store, first.name, ME, verdict="declined", seen=first.digest)  # that is always possible
    settings = folder / "desk.toml"
    settings.write_text(settings.read_text().replace('name = "jobs"', 'name = "others"'))
    with pytest.raises(DataError, check=about("source")):
        runs.start(Desk.open(folder), store, second.name, ME)
    store.close()


def test_the_form_holds_the_fixed_unit_and_review_says_it(copied: Any, inside: Any) -> None:
    folder = copied()
    fix(folder)
    client = inside(folder)
    page = client.get("/plans/new?source=jobs").text
    assert 'name="unit-alpha" value="0.1"' in page and "unit-kind" in page and '<select id="unit-kind"' not in page
    form = {"title": "T", "release-0-name": "r", "release-0-kind": "count", "do": "submit"}
    form |= {"release-0-by": "place", "release-0-epsilon": "1", "formats": "csv", "forms": "basic"}
    refused = client.post("/plans/jobs/new", data={**form, "unit-kind": "workers"}).headers["location"]
    assert refused.endswith("?tried=1")
    assert "whose unit is fixed" in html.unescape(client.get(refused).text)
    own = {"unit-kind": "establishments", "unit-alpha": "0.1", "unit-strength": "strong"}
    sent = client.post("/plans/jobs/new", data={**form, **own}).headers["location"]
    assert sent.startswith("/review/")
    said = html.unescape(client.get(sent).text)
    assert "Unit: establishments(alpha=1/10,strong), which the desk's settings fix for every plan on 'jobs'." in said
    assert "Who is protected, in every plan" in client.get("/data").text
    assert {each["name"]: each["unit_fixed"] for each in client.get("/api/sources").json()} == {
        "jobs": True,
        "flows": False,
    }


def test_review_says_what_a_first_plan_decides(copied: Any, inside: Any) -> None:
    folder = copied()
    client = inside(folder)
    here = client.app.state.here
    draft = first_draft(here.desk, here.desk.sources["jobs"])
    same, other = (
        planning.save(here.desk, here.store, draft.model_copy(update={"unit": unit}), ME)
        for unit in (draft.unit, {"kind": "workers"})
    )
    said = [html.unescape(client.get(f"/review/{name}").text) for name in (same, other)]
    assert all("This plan opens the budget of 'jobs'" in each for each in said)
    assert ["suggest another: establishments(alpha=1/10,strong)" in each for each in said] == [False, True]
