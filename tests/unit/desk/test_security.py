"""What the desk refuses: strangers, other sites, other names, other people's files, wrong passwords, large bodies."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from discreet.desk import audit_log
from discreet.desk.accounts import add_account
from discreet.desk.attempts import TRIES
from discreet.desk.forms import FORM_BYTES
from discreet.desk.security import POLICY
from discreet.words.errors import DataError
from faults_of import about

ORIGIN = "http://127.0.0.1"


def test_nobody_sees_anything_without_a_session(stranger: Any, routes: Any) -> None:
    paths = [*routes("GET"), "/api/openapi.json"]
    assert len(paths) > 20
    for path in paths:
        if path in ("/login", "/enter") or path.startswith("/static"):
            continue
        answer = stranger().get(path)
        if path.startswith("/api"):
            assert answer.status_code == 401, path
        else:
            assert answer.headers["location"].startswith("/login?next="), path


def test_the_link_opens_once(stranger: Any) -> None:
    assert stranger().get("/enter?token=guess").status_code == 403
    first = stranger().get("/enter?token=token-of-the-link")
    assert first.status_code == 303
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Secure" not in cookie
    assert stranger().get("/enter?token=token-of-the-link").status_code == 403


def test_cookies_are_secure_over_https(stranger: Any) -> None:
    answer = stranger(base="https://127.0.0.1").get("/enter?token=token-of-the-link")
    assert "Secure" in answer.headers["set-cookie"]
    assert "strict-transport-security" in answer.headers


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.evil.example:80"])
def test_another_name_is_not_answered(client: Any, host: str) -> None:
    assert client.get("/data", headers={"host": host}).status_code == 421


def test_every_form_needs_its_token(client: Any, routes: Any) -> None:
    paths = [path for path in routes("POST") if path != "/login"]
    assert len(paths) >= 9
    for path in paths:
        body: dict[str, Any] = (
            {"json": {"source": "jobs", "unit": {}, "release": []}} if "/api" in path else {"data": {}}
        )
        for token in ("", "guess"):
            if "data" in body:
                body["data"] = {"csrf": token}
            answer = client.post(path, headers={"x-csrf": token, "origin": ORIGIN}, **body)
            assert answer.status_code == 403 and "not of this session" in answer.text, path


@pytest.mark.parametrize(
    "headers", [{"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}]
)
def test_other_sites_change_nothing(client: Any, csrf: Any, headers: dict[str, str]) -> None:
    token = csrf(client)
    assert client.post("/ledger/verify", data={"csrf": token}, headers=headers).status_code == 403
    assert client.post("/login", data={}, headers=headers).status_code == 403
    assert client.post("/ledger/verify", data={"csrf": token}, headers={"origin": ORIGIN}).status_code == 200


def test_every_answer_is_dressed(client: Any) -> None:
    for path in ("/", "/static/desk.css", "/nothing", "/api/ledger", "/login"):
        headers = client.get(path).headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff" and headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"
    page = client.get("/plans/new?source=jobs").text
    assert not re.search(r"<script(?![^>]*src=)|\son\w+=|\sstyle=|https?://(?!www\.w3\.org)", page)


@pytest.mark.parametrize(
    "path",
    [
        "/plans/..%2f..%2fdesk.toml",
        "/releases/../../desk.db",
        "/releases/%2e%2e/x",
        "/releases/x/y/files/../../../desk.db",
        "/releases/x/y/files/%2fetc%2fpasswd",
        "/papers/..%2f/bundle",
        "/papers/x/../../desk.db",
        "/static/../store.py",
        "/static/%2e%2e/store.py",
        "/runs/..%2fplans/events",
    ],
)
def test_no_path_leads_elsewhere(client: Any, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "SQLite" not in answer.text and "root:" not in answer.text


def test_large_bodies_end(client: Any, csrf: Any) -> None:
    answer = client.post(
        "/ledger/verify", data={"csrf": csrf(client), "more": "x" * FORM_BYTES}, headers={"origin": ORIGIN}
    )
    assert answer.status_code == 413
    assert f"{FORM_BYTES:,}" in answer.text


def test_an_unforeseen_fault_tells_nothing(client: Any, monkeypatch: Any) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("row 7: salary 123456")

    monkeypatch.setattr("discreet.desk.published.book", broken)
    client.raises = False
    answer = client.get("/ledger")
    assert answer.status_code == 500
    assert "123456" not in answer.text and "Traceback" not in answer.text and "fault of its own" in answer.text


def test_passwords(staffed: Any) -> None:
    assert staffed("anna")[1].headers["location"] == "/plans"
    assert staffed("anna", "wrong password")[1].status_code == 401
    assert staffed("nobody")[1].status_code == 401
    for _ in range(TRIES):
        assert staffed("rita", "wrong password")[1].status_code == 401
    refused = staffed("rita")[1]  # the right password, too late
    assert refused.status_code == 429 and int(refused.headers["retry-after"]) > 60
    assert staffed("anna")[1].headers["location"] == "/plans"  # others behind the same address are not shut out


@pytest.mark.parametrize("back", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"])
def test_the_login_leads_nowhere_else(staffed: Any, back: str) -> None:
    assert staffed("anna", back=back)[1].headers["location"] == "/"


@pytest.mark.parametrize(
    ("name", "password", "role", "subject"),
    [
        ("anna", "short", "analyst", "password"),
        ("Anna B", "correct horse battery", "analyst", "name"),
        ("anna", "correct horse battery", "boss", "role"),
    ],
)
def test_bad_accounts_are_refused(app: Any, name: str, password: str, role: str, subject: str) -> None:
    with pytest.raises(DataError, check=about(subject)):
        add_account(app.state.here.store, name, role, password, by="(test)")


def test_sessions_end(staffed: Any, csrf: Any) -> None:
    client, _ = staffed("anna")
    assert client.get("/plans").status_code == 200
    kept = dict(client.cookies)
    client.post("/logout", data={"csrf": csrf(client)})
    client.cookies.update(kept)
    assert client.get("/plans").headers["location"].startswith("/login")


def test_another_password_ends_sessions(staffed: Any) -> None:
    client, _ = staffed("anna")
    add_account(client.app.state.here.store, "anna", "analyst", "another good password", by="(test)")
    assert client.get("/plans").headers["location"].startswith("/login")


def test_the_audit_log_keeps_its_lines(app: Any, client: Any) -> None:
    store = app.state.here.store
    with store.writing() as connection:
        for i in range(5):
            audit_log.record(connection, "anna", "tried", str(i))
    for wrong in ("UPDATE audit SET who = 'ben' WHERE seq = 2", "DELETE FROM audit WHERE seq = 2"):
        with pytest.raises(DBAPIError, match="append-only"), store.writing() as connection:
            connection.execute(text(wrong))
    with store.writing() as connection:
        assert audit_log.verify(connection) == ""
        connection.execute(text("DROP TRIGGER audit_keeps_UPDATE"))
        connection.execute(text("UPDATE audit SET who = 'ben' WHERE seq = 3"))
        assert audit_log.verify(connection).startswith("line 3 ")
    assert "changed from outside" in client.get("/log").text


def test_the_database_is_its_owners_alone(app: Any, client: Any) -> None:
    desk = app.state.here.desk
    folder = desk.folder
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.glob("desk.db*"))
    assert all(path.stat().st_mode & 0o077 == 0 for path in (desk.plans, desk.runs, desk.releases))
    cookie = client.cookies["discreet-desk"]
    assert all(cookie.encode() not in path.read_bytes() for path in folder.glob("desk.db*"))
