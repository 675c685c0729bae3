"""Plans at the desk: forms to TOML and back, exact approval, the second person, roles."""

from __future__ import annotations

import asyncio
import re
import tomllib
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from starlette.datastructures import FormData

from discreet.desk import planning, runs
from discreet.desk.accounts import Person
from discreet.desk.audit_log import lines
from discreet.desk.desk import Desk
from discreet.desk.drafts import Draft, as_toml, first_draft, from_form
from discreet.desk.estimates import JudgedDraft, estimate, judge
from discreet.desk.rendering import ROWS
from discreet.ledger import Ledger, Policy
from discreet.plan.reading import read_plan
from discreet.privacy.losses import Pure
from faults_of import about

ANNA, RITA = Person("anna", "analyst", "a"), Person("rita", "reviewer", "b")
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
keys = st.text("abcdefghij_", min_size=1, max_size=8)
values = st.one_of(words, st.integers(-(10**12), 10**12), st.booleans(), st.lists(words, max_size=3))


@given(
    st.dictionaries(keys, values, max_size=4),
    st.dictionaries(keys, st.dictionaries(words, values, max_size=3), max_size=3),
)
def test_toml_says_what_it_was_given(plain: dict[str, Any], tables: dict[str, Any]) -> None:
    content = {**plain, **{f"t_{key}": value for key, value in tables.items()}}
    assert tomllib.loads(as_toml(content)) == content


def test_a_form_becomes_the_plan_it_says(make: Callable[..., Any]) -> None:
    desk = make()
    form = FormData(
        [
            ("title", 'A "title"'),
            ("unit-kind", "establishments"),
            ("unit-alpha", "1/20"),
            ("unit-strength", "strong"),
            ("unit-theta", "1000"),
            ("release-0-name", "places"),
            ("release-0-kind", "count"),
            ("release-0-by", "place"),
            ("release-0-by", "sex"),
            ("release-0-epsilon", "0.5"),
            ("release-0-tables", "left over from another choice"),
            ("release-1-name", "both"),
            ("release-1-kind", "counts"),
            ("release-1-tables", "place, sector\nplace"),
            ("release-1-add_up", "on"),
            ("release-1-epsilon", "1"),
            ("formats", "csv"),
            ("forms", "basic"),
        ]
    )
    draft = from_form(form, "jobs")
    name = planning.save(desk, store := _store(desk), draft, ANNA)
    plan = read_plan(desk.plan_file(name)).plan
    assert (plan.title, str(plan.only.unit.unit().alpha)) == ('A "title"', "1/20")  # type: ignore[union-attr]
    assert plan.release[0].by == ("place", "sex") and plan.release[1].tables == (("place", "sector"), ("place",))  # type: ignore[union-attr]
    assert plan.release[1].add_up and float(plan.release[0].epsilon) == 0.5  # type: ignore[union-attr]
    assert "epsilon = 0.5\n" in desk.plan_file(name).read_text()
    saved = planning.get(store, name)
    assert saved is not None and saved.draft == draft
    store.close()


def test_paths_come_from_the_desk_alone(make: Callable[..., Any]) -> None:
    desk = make()
    draft = first_draft(desk, desk.sources["jobs"]).model_copy(update={"title": '"\n[data]\nsource = "/etc"'})
    content = tomllib.loads(as_toml(draft.content(desk, "x")))
    assert content["data"]["source"] == "../data" and content["output"]["folder"] == "../releases/x"
    with pytest.raises(ValidationError, match="extra"):
        Draft.model_validate({**draft.model_dump(), "data": {"source": "/etc"}})
    release = {**draft.release[0], "folder": "/etc"}
    assert not judge(desk, draft.model_copy(update={"release": [release]}), "x").can_run


def test_the_error_moves_with_alpha_epsilon_and_workload(make: Callable[..., Any]) -> None:
    """By the polynomial law the noise of a cell is proportional to alpha x its largest establishment."""
    desk = make()

    def mean(**changes: Any) -> float:
        draft = first_draft(desk, desk.sources["jobs"])
        draft.unit["alpha"] = changes.pop("alpha", "0.1")
        asked = {"by": ["place", "sector"], "epsilon": "1", "mechanism": "polynomial"}
        draft.release[0].update({**asked, **changes})
        found = judge(desk, draft, "x").found
        assert found is not None
        expected = found.releases[0].tables[0].expected
        assert expected is not None
        return expected.mean

    assert mean(epsilon="2") < 0.6 * mean()
    assert mean(alpha="0.05") < 0.6 * mean()
    assert mean(by=["place", "sector", "sex"]) > mean()


def test_estimates_at_once_do_not_disturb_each_other(make: Callable[..., Any]) -> None:
    """Of one person as many as may wait, and some of another; what a process computes is what this one does."""
    desk = make()
    drafts = {number: first_draft(desk, desk.sources["jobs"], number) for number in range(24)}

    async def at_once() -> list[JudgedDraft]:
        asked = [estimate(desk, drafts[i], f"plan-{i}", by="anna" if i % 3 else "ben") for i in drafts]
        return await asyncio.gather(*asked)

    found = asyncio.run(at_once())
    assert [each.trouble for each in found] == [()] * 24
    assert [each.to_dict() for each in found] == [judge(desk, drafts[i], f"plan-{i}").to_dict() for i in drafts]


def test_faults_name_their_fields(make: Callable[..., Any]) -> None:
    desk = make()
    draft = first_draft(desk, desk.sources["jobs"])
    draft.release[0].update({"epsilon": "9", "by": ["nonsense"]})
    assert {fault.field for fault in judge(desk, draft, "x").trouble} >= {"release-0-by"}
    draft.release[0].update({"epsilon": "9", "by": ["place"]})
    assert {fault.field for fault in judge(desk, draft, "x").trouble} == {"release-0-epsilon"}
    draft.release[0]["epsilon"] = "a lot"
    assert {fault.field for fault in judge(desk, draft, "x").trouble} == {"release-0-epsilon"}
    twice = draft.model_copy(update={"release": [{**draft.release[0], "epsilon": "1"}] * 2})
    assert {fault.field for fault in judge(desk, twice, "x").trouble} == {"release-1-name"}


def test_a_form_starts_with_nothing_ticked(client: Any) -> None:
    page = client.get("/plans/new?source=jobs").text
    assert 'name="release-0-by" value="place"' in page
    assert not re.findall(r'name="release-0-by"[^>]*checked', page)


def test_the_same_table_twice_is_warned_about(tmp_path: Any, with_data: Any) -> None:
    """In the plan and in what is paid, in whatever order its attributes are; another filter makes another table."""
    desk = with_data(tmp_path)
    draft = first_draft(desk, desk.sources["jobs"])

    def warned(*releases: dict[str, Any]) -> list[tuple[str, str]]:
        count = {"kind": "count", "mechanism": "polynomial"}
        named = [
            {"name": f"r{i}", "epsilon": "0.5", **({} if "kind" in each else count), **each}
            for i, each in enumerate(releases)
        ]
        found = judge(desk, draft.model_copy(update={"release": named}), "x")
        assert found.can_run, found.trouble
        assert found.to_dict()["warnings"] == [
            {"where": each.where, "message": each.text, "field": each.field, "about": each.about}
            for each in found.warnings
        ]
        return [(each.field, each.text) for each in found.warnings]

    assert warned({"by": ["place"]}, {"by": ["sector"]}, {"by": []}) == []
    ((field, text),) = warned({"by": ["place", "sector"]}, {"by": ["sector", "place"]})
    assert field == "release-1-by" and "'r0' of this plan" in text and "paid a second time" in text
    assert warned({"by": ["place"]}, {"by": ["place"], "where": {"sex": ["male"]}}) == []
    ((field, _),) = warned({"by": ["place"]}, {"kind": "counts", "tables": [["sector"], ["place"]]})
    assert field == "release-1-tables"
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        unit = desk.sources["jobs"].unit.unit()
        ledger.open_budget(dataset="jobs", unit=unit, total=Pure(4))
        details = {"kind": "count", "tables": [{"by": ["sector"], "where": {}}]}
        ledger.charge(dataset="jobs", unit=unit, release="before", loss=Pure(1), details=details)
    ((field, text),) = warned({"by": ["sector"]})
    assert field == "release-0-by" and "'before', which is paid" in text


BY_HAND = {"source", "replaces", "suppress", "compare", "non_negative", "calibration", "partitions"}
"""What the page of the desk leaves to plans that are written by hand."""


def test_every_field_of_a_release_is_in_its_form(client: Any) -> None:
    """What a plan may ask for is asked for by a field: counts, models and answers are all written with forms."""
    from discreet.plan.shape import KINDS

    for source, kinds in (("jobs", ("count", "counts")), ("flows", ("model", "posterior"))):
        page = client.get(f"/plans/new?source={source}").text
        for kind in kinds:
            asked = {*KINDS[kind].model_fields} - BY_HAND
            assert {key for key in asked if f'name="release-0-{key}"' not in page} == set(), kind


def test_groups_of_rows_are_protected_by_the_form(make: Callable[..., Any], client: Any) -> None:
    """The unit of the form is the plan's; its price and its refusals name the field."""
    page = client.get("/plans/new?source=flows").text
    assert 'name="unit-by"' in page and 'value="groups"' in page
    desk = make()
    asked = [
        ("unit-kind", "groups"),
        ("unit-lower", "0"),
        ("unit-upper", "2"),
        ("unit-response", "y"),
        ("release-0-name", "m"),
        ("release-0-kind", "model"),
        ("release-0-formula", "y ~ x"),
        ("release-0-epsilon", "1"),
        ("formats", "parquet"),
        ("forms", "research"),
    ]
    draft = from_form(FormData([*asked, ("unit-by", "g")]), "flows")
    assert draft.unit == {"kind": "groups", "by": ["g"], "lower": "0", "upper": "2", "response": ["y"]}
    judged = judge(desk, draft, "m")
    assert judged.can_run and judged.found is not None, judged.trouble
    assert judged.found.file.plan.only.unit.unit().key == "groups(g;0,2,y)"
    wrong = judge(desk, from_form(FormData([*asked, ("unit-by", "y")]), "flows"), "m").trouble[0]
    assert (wrong.field, wrong.where) == ("unit-by", "Rows protected together by")


def test_only_what_was_read_is_approved(make: Callable[..., Any]) -> None:
    desk = make("accounts = true\nsecond_person = true")
    store = _store(desk)
    draft = first_draft(desk, desk.sources["jobs"])
    name = planning.save(desk, store, draft, ANNA)
    planning.submit(store, name, ANNA)
    seen = planning.get(store, name)
    assert seen is not None
    with pytest.raises(ValueError, check=about("plan")):
        planning.decide(desk, store, name, ANNA, verdict="approved", seen=seen.digest)
    draft.release[0]["epsilon"] = "2"
    planning.save(desk, store, draft, ANNA, name=name)
    with pytest.raises(ValueError, check=about("plan")):
        planning.decide(desk, store, name, RITA, verdict="approved", seen=seen.digest)
    now = planning.get(store, name)
    assert now is not None and now.state == "draft"
    planning.submit(store, name, ANNA)
    planning.decide(desk, store, name, RITA, verdict="approved", seen=now.digest)
    draft.release[0]["epsilon"] = "3"
    planning.save(desk, store, draft, ANNA, name=name)
    changed = planning.get(store, name)
    assert changed is not None and changed.state == "draft"
    store.close()


def test_whoever_wrote_at_a_plan_is_no_second_person(make: Callable[..., Any]) -> None:
    """Also not when somebody else changed it last."""
    desk = make("accounts = true\nsecond_person = true")
    store = _store(desk)
    zoe = Person("zoe", "administrator", "c")
    name = planning.save(desk, store, first_draft(desk, desk.sources["jobs"]), zoe)
    draft = first_draft(desk, desk.sources["jobs"]).model_copy(update={"title": "mine now"})
    planning.save(desk, store, draft, ANNA, name=name)
    planning.submit(store, name, ANNA)
    plan = planning.get(store, name)
    assert plan is not None and plan.author == "anna"
    for writer in (zoe, ANNA):
        with pytest.raises(ValueError, check=about("plan")):
            planning.decide(desk, store, name, writer, verdict="approved", seen=plan.digest)
    planning.decide(desk, store, name, RITA, verdict="approved", seen=plan.digest)
    with pytest.raises(ValueError, check=about("plan")):
        planning.decide(desk, store, name, RITA, verdict="declined", seen=plan.digest)
    store.close()


def test_roles(staffed: Any, csrf: Any) -> None:
    """Each role does its own work and is refused the others'."""
    anna, rita = staffed("anna")[0], staffed("rita")[0]
    form = {"unit-kind": "establishments", "unit-alpha": "0.1", "release-0-name": "jobs", "release-0-kind": "count"}
    form |= {
        "release-0-by": "place",
        "release-0-epsilon": "1",
        "formats": "csv",
        "forms": "basic",
        "title": "T",
        "do": "submit",
    }
    assert rita.post("/plans/jobs/new", data={**form, "csrf": csrf(rita)}).status_code == 403
    made = anna.post("/plans/jobs/new", data={**form, "csrf": csrf(anna)})
    place = made.headers["location"]
    assert place.startswith("/review/t-")
    seen = rita.get(place).text.split('name="digest" value="')[1].split('"')[0]
    verdict = {"verdict": "approved", "digest": seen}
    assert anna.post(place, data={**verdict, "csrf": csrf(anna)}).status_code == 403
    assert rita.post(place, data={**verdict, "csrf": csrf(rita)}).status_code == 303
    name = place.rsplit("/", 1)[1]
    assert rita.post("/runs", data={"plan": name, "csrf": csrf(rita)}).status_code == 403
    assert anna.get("/log").status_code == 403 and rita.get("/log").status_code == 200
    with anna.app.state.here.store.reading() as connection:
        tried = [(line.who, line.subject) for line in lines(connection) if line.action == "refused"]
    assert tried == [("anna", "/log"), ("rita", "/runs"), ("anna", place), ("rita", "/plans/jobs/new")]


def test_an_unapproved_plan_is_not_run(client: Any, csrf: Any) -> None:
    desk, store = client.app.state.here.desk, client.app.state.here.store
    name = planning.save(desk, store, first_draft(desk, desk.sources["jobs"]), ANNA)
    answer = client.post("/runs", data={"plan": name, "csrf": csrf(client)})
    assert answer.status_code == 409 and "not approved as it is now" in answer.text
    assert list(desk.runs.glob("*")) == []


def _store(desk: Any) -> Any:
    from discreet.desk.store import DeskStore

    return DeskStore(desk.database)


def test_lists_are_read_page_by_page(client: Any) -> None:
    """A desk in use has hundreds of plans: a page shows the latest, and the way to the rest."""
    desk, store = client.app.state.here.desk, client.app.state.here.store
    names = [planning.save(desk, store, first_draft(desk, desk.sources["jobs"], i), ANNA) for i in range(ROWS + 3)]
    pages = [client.get(f"/plans?first={first}").text for first in (0, ROWS, 10 * ROWS)]
    shown = [{name for name in names if f"/plans/{name}" in page} for page in pages]
    assert [len(found) for found in shown] == [ROWS, 3, 0] and shown[0] | shown[1] == {*names}
    assert f"?first={ROWS}" in pages[0] and "?first=0" in pages[1] and "no earlier plans" in pages[2]
    assert planning.titles(store) == {name: name for name in names}


def test_a_list_reads_no_run_that_ended_twice(make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make().runs
    path = folder / "run-a.jsonl"
    path.write_text('{"kind": "done", "text": "all"}\n')
    opened, looked = [], runs.events
    monkeypatch.setattr(runs, "events", lambda *given: opened.append(given) or looked(*given))
    assert [runs.state_of(folder, "run-a") for _ in range(5)] == ["done"] * 5
    assert len(opened) == 1
    with path.open("a") as file:  # resumed: what was read before no longer counts
        file.write('{"kind": "started", "text": "again"}\n')
    assert runs.state_of(folder, "run-a") == "interrupted"


def test_plans_of_a_series_say_what_each_quarter_may_cost(make: Callable[..., Any]) -> None:
    """As desk.toml says it, and once the ledger has the budget as that says it."""
    desk = make()
    settings = desk.folder / "desk.toml"
    series = 'period = "2026Q1"\nper_quarter = 1\nsizes = "sizes.csv"'
    settings.write_text(settings.read_text().replace('sizes = "sizes.csv"', series))
    desk = Desk.open(desk.folder)

    def stated() -> Any:
        text = planning.text_of(desk, first_draft(desk, desk.sources["jobs"]), "p")
        return read_plan(desk.folder / "plans" / "p.toml", text.encode()).plan.only

    assert stated().data.period == "2026-Q1" and stated().budget.policy() == Policy("quarter", Fraction(1))
    unit = desk.sources["jobs"].unit.unit()
    with Ledger.open(desk.ledger) as ledger:
        ledger.open_budget(dataset="jobs", unit=unit, total=Pure(4), policy=Policy("quarter", Fraction(1)))
        ledger.change_budget(dataset="jobs", policy=Policy("quarter", Fraction(1, 2)), reason="less", by="anna")
    assert stated().budget.policy() == Policy("quarter", Fraction(1, 2))
