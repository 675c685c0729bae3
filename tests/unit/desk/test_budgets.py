"""A budget is raised at the desk by two people with a reason; the ledger names both, and plans follow it."""

from __future__ import annotations

import html
from typing import Any

import pytest

from discreet.desk import audit_log, budgets, planning
from discreet.desk.accounts import Person, add_account, disable_account
from discreet.desk.drafts import first_draft
from discreet.desk.estimates import judge
from discreet.ledger import Ledger
from discreet.privacy.losses import Approximate, Pure
from discreet.words.errors import DataError
from faults_of import about

ORIGIN = {"origin": "http://127.0.0.1"}
ASKED = {"dataset": "jobs", "epsilon": "6", "reason": "The board decided on 1 March."}


@pytest.fixture
def people(staffed: Any, csrf: Any) -> Any:
    """A desk whose ledger knows the jobs; whoever is named asks, with their own token."""
    clients = {name: staffed(name)[0] for name in ("anna", "rita", "zoe")}
    here = clients["zoe"].app.state.here
    with Ledger.open(here.desk.ledger) as ledger:
        ledger.open_budget(dataset="jobs", unit=here.desk.sources["jobs"].unit.unit(), total=Pure(4))

    def post(name: str, path: str, **data: str) -> Any:
        client = clients[name]
        return client.post(path, data={"csrf": csrf(client), **data}, headers=ORIGIN)

    post.here, post.clients = here, clients  # type: ignore[attr-defined]
    return post


def entries(here: Any) -> list[Any]:
    with Ledger.open(here.desk.ledger, read_only=True) as ledger:
        assert ledger.verify()
        return ledger.entries()


def test_two_people_and_a_reason(people: Any) -> None:
    here = people.here
    assert people("rita", "/budgets", **ASKED).headers["location"] == "/ledger"
    assert len(entries(here)) == 1, "one person alone changed something"
    page = html.unescape(people.clients["zoe"].get("/ledger").text)
    assert "4 to 6" in page and ASKED["reason"] in page and "Confirm" in page
    own = html.unescape(people.clients["rita"].get("/ledger").text)
    assert "A second person confirms" in own and ">Confirm<" not in own
    refused = people("rita", "/budgets/1", verdict="confirmed")
    assert refused.status_code == 409 and "second person" in refused.text and len(entries(here)) == 1
    assert people("zoe", "/budgets/1", verdict="confirmed").status_code == 303
    last = entries(here)[-1]
    assert last.loss == Pure(6)
    assert [last.payload[key] for key in ("by", "confirmed_by", "reason")] == ["rita", "zoe", ASKED["reason"]]
    assert people("zoe", "/budgets/1", verdict="confirmed").status_code == 409, "a second time"
    with here.store.reading() as connection:
        told = [(line.who, line.action) for line in audit_log.lines(connection) if "budget" in line.action]
    assert told == [("zoe", "budget raised"), ("rita", "budget asked for")]


def test_plans_follow_the_ledger_and_an_edit_of_the_settings_does_not_pass(people: Any) -> None:
    here = people.here
    draft = first_draft(here.desk, here.desk.sources["jobs"])
    draft.release[0]["epsilon"] = "5"
    assert not judge(here.desk, draft, "x").can_run
    people("rita", "/budgets", **ASKED)
    people("zoe", "/budgets/1", verdict="confirmed")
    assert judge(here.desk, draft, "x").can_run
    assert "epsilon = 6" in planning.text_of(here.desk, draft, "x")
    settings = here.desk.folder / "desk.toml"
    settings.write_text(settings.read_text().replace("epsilon = 4", "epsilon = 40"))
    edited = type(here.desk).open(here.desk.folder)
    found = judge(edited, draft, "x")
    assert not found.can_run and "epsilon=40" in found.trouble[0].text


def test_who_may(people: Any, staffed: Any) -> None:
    """An analyst neither asks nor confirms, a form of another session does nothing, who left confirms nothing."""
    assert people("anna", "/budgets", **ASKED).status_code == 403
    people("rita", "/budgets", **ASKED)
    assert people("anna", "/budgets/1", verdict="confirmed").status_code == 403
    zoe = people.clients["zoe"]
    assert zoe.post("/budgets/1", data={"csrf": "x", "verdict": "confirmed"}, headers=ORIGIN).status_code == 403
    assert "Ask to raise" not in people.clients["anna"].get("/ledger").text
    disable_account(people.here.store, "rita", by="(test)")
    refused = people("zoe", "/budgets/1", verdict="confirmed")
    assert refused.status_code == 409 and "rita" in refused.text and len(entries(people.here)) == 1
    assert people("zoe", "/budgets/1", verdict="declined").status_code == 303
    assert len(entries(people.here)) == 1


@pytest.mark.parametrize(
    ("change", "about"),
    [
        ({"epsilon": "4"}, "above"),
        ({"epsilon": "3"}, "above"),
        ({"epsilon": "a lot"}, "number"),
        ({"epsilon": "1e999"}, "number"),
        ({"epsilon": "9" * 300}, "number"),
        ({"reason": "  "}, "reason"),
        ({"reason": "x" * 3000}, "reason"),
        ({"dataset": "wages"}, "no budget"),
    ],
)
def test_what_is_refused_keeps_the_form(people: Any, change: dict[str, str], about: str) -> None:
    answer = people("rita", "/budgets", **ASKED | change)
    assert answer.status_code == 409 and about in html.unescape(answer.text)
    sent = ASKED | change
    assert sent["dataset"] == "wages" or f'value="{sent["epsilon"][:40]}' in answer.text
    assert budgets.waiting(people.here.store) == []


def test_one_waits_at_a_time_and_a_desk_of_one_person_cannot(people: Any, client: Any, csrf: Any) -> None:
    people("rita", "/budgets", **ASKED)
    assert people("zoe", "/budgets", **ASKED | {"epsilon": "7"}).status_code == 409
    alone = client.post("/budgets", data={"csrf": csrf(client), **ASKED}, headers=ORIGIN)
    assert alone.status_code == 409 and "accounts = true" in alone.text


def test_a_crash_after_the_ledger_was_written(people: Any) -> None:
    """The request still waits: confirming it again finds the ledger raised and writes no second line."""
    here = people.here
    people("rita", "/budgets", **ASKED)
    with Ledger.open(here.desk.ledger) as ledger:
        ledger.change_budget(dataset="jobs", total=Pure(6), reason="r", by="rita", confirmed_by="zoe")
    before = len(entries(here))
    assert people("zoe", "/budgets/1", verdict="confirmed").status_code == 303
    assert len(entries(here)) == before and budgets.waiting(here.store) == []


def test_delta_stays(make: Any) -> None:
    desk = make("accounts = true")
    from discreet.desk.store import DeskStore

    store = DeskStore(desk.database)
    for name in ("rita", "zoe"):
        add_account(store, name, "administrator", "a few more words", by="(test)")
    with Ledger.open(desk.ledger) as ledger:
        ledger.open_budget(dataset="jobs", unit=desk.sources["jobs"].unit.unit(), total=Approximate(4, "1e-6"))
    rita, zoe = (Person(name, "administrator", "") for name in ("rita", "zoe"))
    budgets.ask(desk, store, rita, dataset="jobs", epsilon="13/3", reason="board")
    with pytest.raises(DataError, check=about("request")):
        budgets.decide(desk, store, rita, 1, verdict="confirmed")
    budgets.decide(desk, store, zoe, 1, verdict="confirmed")
    with Ledger.open(desk.ledger, read_only=True) as ledger:
        assert ledger.budgets()[0].total == Approximate("13/3", "1e-6")
    store.close()
