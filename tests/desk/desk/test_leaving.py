"""People who leave: their access ends at once, their name stays theirs, and somebody is always left to run the desk."""

from __future__ import annotations

import asyncio
import html
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from discreet.desk import audit_log, planning
from discreet.desk.accounts import (
    Person,
    add_account,
    disable_account,
    is_password,
    open_session,
    people,
    person_of,
    remove_account,
)
from discreet.desk.command import serve
from discreet.desk.desk import Desk
from discreet.desk.drafts import first_draft
from discreet.desk.pages.runs import _tail
from discreet.desk.security import COOKIE
from discreet.desk.store import DeskStore
from discreet.words.errors import DataError
from faults_of import about

STAFF = {"anna": "analyst", "rita": "reviewer", "zoe": "administrator", "yan": "administrator"}


@pytest.fixture
def folder(copied: Any, password: str) -> Path:
    folder: Path = copied("accounts = true\nsecond_person = true")
    store = DeskStore(Desk.open(folder).database)
    for name, role in STAFF.items():
        add_account(store, name, role, password, by="(test)")
    store.close()
    return folder


def test_access_ends_at_once(folder: Path, inside: Any, password: str) -> None:
    zoe = inside(folder, "zoe")
    anna, again, rita = (inside(folder, name, zoe.app) for name in ("anna", "anna", "rita"))
    store = zoe.app.state.here.store
    assert anna.get("/plans").status_code == again.get("/plans").status_code == 200
    assert zoe.post("/people/anna/disable", {}).headers["location"] == "/people"
    assert all(each.get("/plans").headers["location"].startswith("/login") for each in (anna, again))
    assert anna.get("/api/plans").status_code == 401
    assert rita.get("/plans").status_code == 200
    assert not is_password(store, "anna", password)
    late = open_session(store, "anna", action="a log-in whose password was checked before")
    assert person_of(store, late, local=False) is None
    page = html.unescape(zoe.get("/people").text)
    assert "No longer here" in page and "ended by zoe" in page and "Disable anna" not in page
    with store.reading() as connection:
        told = [line for line in audit_log.lines(connection) if line.action == "account disabled"]
        assert [(line.who, line.subject, line.detail) for line in told] == [("zoe", "anna", {"role": "analyst"})]
        assert audit_log.verify(connection) == ""


def test_a_stream_ends_with_its_session(folder: Path, inside: Any) -> None:
    anna = inside(folder, "anna")
    here = anna.app.state.here
    (here.desk.runs / "run-a.jsonl").write_text('{"kind":"step","text":"one"}\n{"kind":"done","text":"two"}\n')

    async def seen() -> list[str]:
        return [text async for text in _tail(here, "run-a", 0, anna.cookies[COOKIE])]

    assert len(asyncio.run(seen())) == 3
    disable_account(here.store, "anna", by="(test)")
    assert asyncio.run(seen()) == []


def test_only_administrators_end_access(folder: Path, inside: Any) -> None:
    zoe = inside(folder, "zoe")
    for name in ("anna", "rita"):
        somebody = inside(folder, name, zoe.app)
        assert somebody.get("/people").status_code == 403
        for word in ("disable", "enable", "remove"):
            assert somebody.post(f"/people/yan/{word}", {}).status_code == 403
        assert 'href="/people"' not in somebody.get("/").text
    assert 'href="/people"' in zoe.get("/").text
    assert zoe.post("/people/yan/disable", {"csrf": "guess"}).status_code == 403
    unknown = zoe.post("/people/nobody/disable", {})
    assert unknown.status_code == 409 and "has no account. There are: anna, rita, yan, zoe" in html.unescape(
        unknown.text
    )
    assert {row.name for row in people(zoe.app.state.here.store)[0]} == set(STAFF)


def test_a_role_is_refused(folder: Path, inside: Any) -> None:
    rita = inside(folder, "rita")
    assert "Changing a plan was asked by rita, whose role is reviewer" in rita.get("/plans/new?source=jobs").text
    assert "whose role is analyst" in inside(folder, "anna", rita.app).get("/log").text


def test_an_administrator_is_left(folder: Path) -> None:
    """Whoever of two ends the other first; also by a change of role, and when both press at once."""
    store = DeskStore(Desk.open(folder).database)

    def ended(name: str) -> bool:
        try:
            disable_account(store, name, by="(test)")
        except DataError as error:
            assert "only administrator" in str(error)
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(ended, ["zoe", "yan"]))
    assert sorted(outcomes) == [False, True]
    left = ["zoe", "yan"][outcomes.index(False)]
    with pytest.raises(DataError, check=about("role")):
        add_account(store, left, "analyst", "a few more words", by="(test)")
    add_account(store, left, "administrator", "a few more words", by="(test)")  # another password is no harm
    add_account(store, "xara", "administrator", "a few more words", by="(test)")
    assert ended(left)
    store.close()


def test_a_name_is_not_given_again(folder: Path, password: str) -> None:
    """A new person under the name of whoever wrote or approved a plan would pass for them, in either direction."""
    desk = Desk.open(folder)
    store = DeskStore(desk.database)
    name = planning.save(desk, store, first_draft(desk, desk.sources["jobs"]), Person("yan", "administrator", ""))
    planning.submit(store, name, Person("yan", "administrator", ""))
    disable_account(store, "yan", by="zoe")
    for role in ("reviewer", "administrator"):
        with pytest.raises(DataError, check=about("name")):
            add_account(store, "yan", role, password, by="zoe")
    assert not is_password(store, "yan", password)
    plan = planning.get(store, name)
    assert plan is not None and plan.author == "yan" and planning.writers(store, name) == {"yan"}
    with pytest.raises(DataError, check=about("name")):
        disable_account(store, "yan", by="zoe")
    store.close()


def test_the_same_person_comes_back_or_is_gone_for_good(folder: Path, inside: Any, password: str) -> None:
    """With the old password and role alone: no administrator can set one and pass for a second person."""
    zoe = inside(folder, "zoe")
    anna, store = inside(folder, "anna", zoe.app), zoe.app.state.here.store
    zoe.post("/people/anna/disable", {})
    late = open_session(store, "anna", action="a log-in whose password was checked before")
    assert "Enable anna again" in zoe.get("/people").text
    assert zoe.post("/people/anna/enable", {"password": "chosen by zoe", "role": "reviewer"}).status_code == 303
    assert anna.get("/plans").headers["location"].startswith("/login"), "an old session came back"
    assert person_of(store, late, local=False) is None, "a session from in between came back"
    assert is_password(store, "anna", password) and not is_password(store, "anna", "chosen by zoe")
    assert {row.name: row.role for row in people(store)[0]} == STAFF
    again = inside(folder, "anna", zoe.app)
    assert zoe.post("/people/anna/remove", {}).status_code == 303
    assert again.get("/plans").headers["location"].startswith("/login")
    assert again.get("/api/plans").status_code == 401
    for word in ("enable", "disable"):
        assert zoe.post(f"/people/anna/{word}", {}).status_code == 409
    assert "removed; ended by zoe" in html.unescape(zoe.get("/people").text)
    zoe.post("/people/rita/disable", {})
    zoe.post("/people/rita/remove", {})
    assert zoe.post("/people/rita/enable", {}).status_code == 409
    with store.reading() as connection:
        told = [(line.action, line.subject) for line in audit_log.lines(connection) if line.action[:7] == "account"]
        assert told[:5] == [
            ("account removed", "rita"),
            ("account disabled", "rita"),
            ("account removed", "anna"),
            ("account enabled", "anna"),
            ("account disabled", "anna"),
        ]
    with pytest.raises(DataError, check=about("role")):
        for name in ("yan", "zoe"):
            remove_account(store, name, by="(test)")


def test_from_the_command_line(folder: Path, capsys: Any, password: str) -> None:
    serve(folder, disable_account="anna")
    assert "anna has no access" in capsys.readouterr().out
    store = DeskStore(Desk.open(folder).database)
    assert not is_password(store, "anna", password)
    serve(folder, enable_account="anna")
    assert is_password(store, "anna", password) and "anna has access" in capsys.readouterr().out
    serve(folder, remove_account="anna")
    assert not is_password(store, "anna", password) and "not given again" in capsys.readouterr().out
    store.close()
