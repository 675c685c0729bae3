"""Guesses at passwords: none passes the limit, none keeps out who works here, none fills memory or the log."""

from __future__ import annotations

import asyncio
import threading
import time
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any

import httpx
import pytest
from argon2 import Type

from discreet.desk import accounts, attempts, audit_log
from discreet.desk.attempts import FOR_A_NAME, FROM_AN_ADDRESS, LINE, MOST, TRIES, Attempts

ORIGIN = "http://127.0.0.1"
WRONG = "a wrong password"


@pytest.fixture
def app(staffed: Any) -> Any:
    return staffed("zoe")[0].app


def guessed(app: Any, guesses: list[tuple[str, str]], address: str = "192.0.2.1") -> list[int]:
    """The statuses of log-ins that are sent all at once."""

    async def sent() -> list[int]:
        transport = httpx.ASGITransport(app, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as client:
            asked = (client.post("/login", data={"name": n, "password": p}) for n, p in guesses)
            return [answer.status_code for answer in await asyncio.gather(*asked)]

    return asyncio.run(sent())


@pytest.fixture
def quick(monkeypatch: Any) -> None:
    """Passwords that are checked in no time: what is counted is the same."""
    monkeypatch.setattr(attempts, "is_password", lambda store, name, password: password == "right")


def test_guesses_at_once_do_not_pass_the_limit(app: Any, monkeypatch: Any) -> None:
    checked = []
    monkeypatch.setattr(attempts, "is_password", lambda *_: checked.append(1) or False)
    found = guessed(app, [("rita", WRONG)] * 64)
    assert len(checked) == found.count(401) == TRIES and found.count(429) == 64 - TRIES


def test_one_name_from_many_addresses(app: Any, quick: None) -> None:
    found = [guessed(app, [("rita", WRONG)], f"198.51.100.{i}")[0] for i in range(FOR_A_NAME + 5)]
    assert found == [401] * FOR_A_NAME + [429] * 5


def test_one_network_of_ipv6_is_one_address(app: Any, quick: None) -> None:
    found = [guessed(app, [("rita", WRONG)], f"2001:db8::{i:x}")[0] for i in range(TRIES + 1)]
    assert found == [401] * TRIES + [429]


def test_right_passwords_do_not_count(app: Any, quick: None) -> None:
    assert {guessed(app, [("rita", "right")])[0] for _ in range(FROM_AN_ADDRESS + 1)} == {303}


def test_who_worked_here_before_is_not_kept_out(staffed: Any, quick: None) -> None:
    """Guesses from the same address, as behind one proxy, and at the same name."""
    client, _ = staffed("anna", "right")
    guesses = [(f"nobody{i}", WRONG) for i in range(FROM_AN_ADDRESS + LINE)]
    for i in range(0, len(guesses), LINE):
        guessed(client.app, guesses[i : i + LINE], "127.0.0.1")
    for i in range(FOR_A_NAME):
        guessed(client.app, [("anna", WRONG)], f"198.51.100.{i}")
    assert staffed("anna", "right")[1].status_code == 429  # another browser has to wait
    again = {"name": "anna", "password": "right"}
    assert client.post("/login", data=again).status_code == 303
    for _ in range(FOR_A_NAME):
        assert client.post("/login", data=again | {"password": WRONG}).status_code == 401
    assert client.post("/login", data=again).status_code == 429  # a known browser guesses no more than others


def test_a_mark_is_of_one_person_and_one_password(app: Any) -> None:
    store = app.state.here.store
    mark = attempts.mark(store, "anna")
    assert attempts.is_known(store, "anna", mark) and not attempts.is_known(store, "rita", mark)
    assert not attempts.is_known(store, "nobody", mark) and not attempts.is_known(store, "anna", "")
    accounts.add_account(store, "anna", "analyst", "another good password", by="(test)")
    assert not attempts.is_known(store, "anna", mark)


def test_names_are_cut_and_the_oldest_is_forgotten(app: Any, quick: None) -> None:
    for name in ("x" * 4_000, "\u00e9" * 400, "a b", "Rita"):
        guessed(app, [(name, WRONG)])
    held = app.state.here.attempts
    counted = {key for key, guesses in (held.seen | held.lasting).items() if guesses}
    assert max(map(len, counted)) < 100 and len(counted) == 3  # all the same: a name that nobody can have

    some = Attempts()
    for i in range(MOST + 10):
        assert some.begin({f"name {i}": TRIES}) == 0
    assert len(some.seen) == MOST + 1 and "name 0" not in some.seen and "name 10" in some.seen
    for _ in range(TRIES - 1):
        some.begin({f"name {MOST}": TRIES})
    assert some.begin({f"name {MOST}": TRIES}) > 0


@pytest.mark.parametrize("name", ["rita", "nobody"])
def test_no_number_of_addresses_makes_the_desk_forget_guesses_at_a_name(app: Any, quick: None, name: str) -> None:
    """Whether somebody has the name or not, so that an answer does not tell which; and what is kept is bounded."""
    assert [guessed(app, [(name, WRONG)], f"198.51.100.{i}")[0] for i in range(FOR_A_NAME)] == [401] * FOR_A_NAME
    some = app.state.here.attempts
    for i in range(MOST):
        others = attempts.keys_of(f"n{i}", f"10.{i // 65536}.{i // 256 % 256}.{i % 256}", known=False, exists=False)
        some.begin(others | dict.fromkeys(others, 10**9))
    assert not any(name in key for key in some.seen), "the attack is too small to be one"
    assert guessed(app, [(name, WRONG)], "203.0.113.1") == [429]
    assert len(some.seen) <= MOST + 2 and len(some.lasting) <= attempts.BUCKETS + 1


@pytest.mark.parametrize("line", [LINE, 0])
def test_what_does_not_count_takes_no_room(app: Any, quick: None, monkeypatch: Any, line: int) -> None:
    """Right passwords, and guesses that find the line full: nobody's count is forgotten for them."""
    monkeypatch.setattr(attempts, "MOST", 2)
    for _ in range(TRIES):
        guessed(app, [("rita", WRONG)])
    monkeypatch.setattr(attempts, "LINE", line)
    seen = app.state.here.attempts.seen
    before = {key: len(guesses) for key, guesses in seen.items()}
    assert len(before) == 2
    for i in range(3):
        guessed(app, [("anna" if line else f"n{i}", "right")], f"198.51.100.{i}")
    assert {key: len(guesses) for key, guesses in seen.items()} == before
    monkeypatch.setattr(attempts, "LINE", LINE)
    assert guessed(app, [("rita", WRONG)]) == [429]


def test_what_is_old_takes_no_room(monkeypatch: Any) -> None:
    some = Attempts()
    assert some.begin({"a": TRIES, "b": TRIES}) == 0
    some.forgive(["b"])
    assert list(some.seen) == ["a"]
    at = time.monotonic() + 60 * attempts.MINUTES + 1
    monkeypatch.setattr("discreet.desk.attempts.time.monotonic", lambda: at)
    assert some.begin({"c": TRIES}) == 0 and list(some.seen) == ["c"]


def test_who_is_in_does_not_wait_for_log_ins(staffed: Any, monkeypatch: Any) -> None:
    """More log-ins than the desk has threads, none of which ends."""
    client, _ = staffed("anna")
    stop, begun = threading.Event(), threading.Event()

    def endless(*_: Any) -> bool:
        begun.set()
        return stop.wait(60)

    monkeypatch.setattr(attempts, "is_password", endless)

    async def both() -> tuple[list[int], int]:
        transport = httpx.ASGITransport(client.app)
        async with httpx.AsyncClient(transport=transport, base_url=ORIGIN, cookies=client.cookies) as known:

            async def guess(i: int) -> int:
                there = httpx.ASGITransport(client.app, client=(f"198.51.100.{i}", 1))
                async with httpx.AsyncClient(transport=there, base_url=ORIGIN) as stranger:
                    return (await stranger.post("/login", data={"name": f"n{i}", "password": "x"})).status_code

            guesses = [asyncio.create_task(guess(i)) for i in range(120)]
            while not begun.is_set():
                await asyncio.sleep(0.01)
            page = await asyncio.wait_for(known.get("/plans"), 50)
            stop.set()
            return await asyncio.gather(*guesses), page.status_code

    statuses, page = asyncio.run(both())
    assert page == 200
    assert statuses.count(429) >= 120 - 2 * LINE  # the line is short


def test_strangers_cannot_fill_the_log(staffed: Any, quick: None, monkeypatch: Any) -> None:
    """Every open address, by every kind of refusal."""
    outside = staffed("zoe", "right")[0]
    outside.cookies = httpx.Cookies()
    app, store = outside.app, outside.app.state.here.store

    def length() -> int:
        with store.reading() as connection:
            return audit_log.lines(connection)[0].seq

    before = length()
    for i in range(4):
        guessed(app, [(f"n{i}{j}", WRONG) for j in range(LINE)], f"198.51.100.{i}")
        guessed(app, [("rita", WRONG)] * 20)
        for _ in range(10):
            outside.get("/enter?token=x")
            outside.get("/plans")
            outside.post("/plans/x/y", data={}, headers={"origin": "http://evil.example"})
    assert length() - before == audit_log.AN_HOUR
    with store.reading() as connection:
        assert audit_log.lines(connection, last=1)[0].detail["further"]
    at = time.monotonic() + audit_log.HOUR
    monkeypatch.setattr("discreet.desk.audit_log.time.monotonic", lambda: at)
    outside.get("/enter?token=x")
    with store.reading() as connection:
        assert audit_log.lines(connection, last=1)[0].detail["untold before"] > 50
        assert audit_log.verify(connection) == ""


def test_who_is_in_cannot_fill_the_log(staffed: Any, csrf: Any, monkeypatch: Any) -> None:
    """Refusals at addresses of one's choice, and the same file again and again; the first of each stays."""
    anna = staffed("anna")[0]
    here, token = anna.app.state.here, csrf(anna)

    def told() -> list[audit_log.Line]:
        with here.store.reading() as connection:
            return [line for line in audit_log.lines(connection) if line.who == "anna" and line.action != "logged in"]

    for i in range(audit_log.AN_HOUR + 10):
        assert anna.get("/log").status_code == 403
        assert anna.post(f"/review/p{i}", data={"csrf": token}).status_code == 403
    assert len(told()) == audit_log.AN_HOUR and told()[0].detail["further"]
    for _ in range(audit_log.AN_HOUR + 5):
        here.repeats.record(here.store, "anna", "downloaded", "p/a.csv", of="p/a.csv")
    here.repeats.record(here.store, "anna", "downloaded", "p/b.csv", of="p/b.csv")
    here.repeats.record(here.store, "rita", "refused", "/log")
    assert len(told()) == 2 * audit_log.AN_HOUR + 1 and told()[0].subject == "p/b.csv"
    at = time.monotonic() + audit_log.HOUR
    monkeypatch.setattr("discreet.desk.audit_log.time.monotonic", lambda: at)
    anna.get("/log")
    assert told()[0].detail["untold before"] == 2 * (audit_log.AN_HOUR + 10) - audit_log.AN_HOUR


def test_every_line_that_reading_leaves_is_folded() -> None:
    """What people can do without end, in the pages and at the door, goes through the count."""
    folder = Path(audit_log.__file__).parent
    texts = {path.name: path.read_text() for path in (*folder.glob("pages/*.py"), folder / "app.py")}
    assert [name for name, text in texts.items() if "import record" in text or "audit_log.record(" in text] == []


def test_a_password_takes_time_and_memory_to_guess() -> None:
    """RFC 9106 for little memory: argon2id, 64 MiB, three passes. Other tests hash with less."""
    spec = find_spec("discreet.desk.accounts")
    assert spec is not None and spec.loader is not None
    fresh = module_from_spec(spec)
    spec.loader.exec_module(fresh)
    hasher = fresh._hasher
    assert hasher.type is Type.ID and hasher.memory_cost >= 64 * 1024 and hasher.time_cost >= 3
    assert hasher.hash("correct horse battery").startswith("$argon2id$")


@pytest.mark.parametrize("first", ["zoe", "nobody"])
def test_no_name_takes_longer_than_another(first: str, app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What unknown names are compared with is made at the first log-in, whoever comes; then all take one comparison."""
    done: list[str] = []
    own = accounts._hasher

    class Counted:
        def hash(self, password: str) -> str:
            done.append("hash")
            return own.hash(password)

        def verify(self, hashed: str, password: str) -> bool:
            done.append("verify")
            return own.verify(hashed, password)

    monkeypatch.setattr(accounts, "_hasher", Counted())
    store = app.state.here.store
    for name in (first, "zoe", "nobody"):
        assert not accounts.is_password(store, name, WRONG)
    assert done == ["hash", "verify", "verify", "verify"]
