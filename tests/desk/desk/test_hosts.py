"""Names under which the desk answers: one name in all its spellings, and no other."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from discreet.desk.app import create
from discreet.desk.command import serve as command
from discreet.desk.desk import Desk
from discreet.desk.hosts import origin_of, own_name, read
from discreet.words.errors import PlanError
from faults_of import about


@pytest.mark.parametrize(
    ("text", "name", "port"),
    [
        ("127.0.0.1", "127.0.0.1", None),
        ("127.0.0.1:8765", "127.0.0.1", 8765),
        ("localhost:", "localhost", None),
        ("LocalHost:80", "localhost", 80),
        ("localhost.", "localhost", None),
        ("Desk.Agency.Example.:8765", "desk.agency.example", 8765),
        ("[::1]", "[::1]", None),
        ("[::1]:8765", "[::1]", 8765),
        ("[0:0:0:0:0:0:0:1]:8765", "[::1]", 8765),
        ("[FD00::00A5]", "[fd00::a5]", None),
    ],
)
def test_one_name_in_all_its_spellings(text: str, name: str, port: int | None) -> None:
    found = read(text)
    assert found is not None and (found.name, found.port) == (name, port)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            ":8765",
            ".",
            "localhost..",
            "a..b",
            "-a",
            "::1",
            "::1:8765",
            "[::1",
            "::1]",
            "[::1]8765",
            "[]",
            "[:::1]",
        ),
        *("[::1%25eth0]", "[127.0.0.1]", "127.0.0.1:80:90", "127.0.0.1:x", "127.0.0.1:99999", "127.0.0.1:-1"),
        *("user@localhost", "localhost/", "localhost#", "localhost?", " localhost", "localhost\t", "localhost,evil"),
        *("http://localhost", "l\u00f6calhost", "localhost\n", "127.0.0.1:\u0661", "a" * 300),
    ],
)
def test_what_is_no_host(text: str) -> None:
    assert read(text) is None


def asked(app: Any, *hosts: str, method: str = "GET", **headers: str) -> int:
    """The status of an answer to exactly these Host headers."""

    async def sent() -> int:
        found: list[int] = []
        scope = {"type": "http", "method": method, "path": "/login", "raw_path": b"/login", "query_string": b""}
        scope |= {"scheme": "http", "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1), "http_version": "1.1"}
        given = [(b"host", host.encode("latin-1")) for host in hosts]
        given += [(key.encode(), value.encode()) for key, value in headers.items()]

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                found.append(message["status"])

        await app({**scope, "headers": given, "root_path": ""}, receive, send)
        return found[0]

    return asyncio.run(sent())


@pytest.fixture
def app(copied: Any) -> Any:
    app = create(Desk.open(copied()), entrance="x", hosts=["127.0.0.1", "localhost", "::1", "Desk.Example."])
    yield app
    app.state.here.store.close()


def test_the_desk_answers_its_names_alone(app: Any) -> None:
    for host in ("127.0.0.1:1", "LOCALHOST", "localhost.:8765", "[::1]", "[::1]:8765", "[0::1]:1", "desk.example:443"):
        assert asked(app, host) == 200, host
    for host in ("evil.example", "::1", "localhost.evil.example", "desk.example.evil", "127.0.0.1:x", "[::2]:8765"):
        assert asked(app, host) == 421, host
    assert asked(app) == 421
    assert asked(app, "localhost", "evil.example") == asked(app, "evil.example", "localhost") == 421


def test_an_origin_is_compared_as_browsers_do() -> None:
    same = [("[::1]:8765", "http://[::1]:8765"), ("localhost.:8765", "http://localhost.:8765")]
    same += [("127.0.0.1:80", "http://127.0.0.1"), ("LOCALHOST:8765", "http://localhost:8765")]
    for host, origin in same:
        found = read(host)
        assert found is not None and origin_of(origin) == found.origin("http"), host
    other = ["http://127.0.0.1:8766", "https://127.0.0.1:8765", "null", "http://evil.example", "127.0.0.1:8765"]
    ours = read("127.0.0.1:8765")
    assert ours is not None
    assert all(origin_of(origin) != ours.origin("http") for origin in other)


def test_forms_from_elsewhere_are_refused(copied: Any, password: str) -> None:
    from discreet.desk.accounts import add_account

    app = create(Desk.open(copied("accounts = true")), hosts=["::1"])
    add_account(app.state.here.store, "anna", "analyst", password, by="(test)")
    assert asked(app, "[::1]:8765", method="POST", origin="http://[::1]:8765") == 401  # let through: no password
    assert asked(app, "[::1]:8765", method="POST", origin="http://[0:0::1]:8765") == 401
    for origin in ("http://[::1]:8766", "http://[::2]:8765", "null", "http://evil.example"):
        assert asked(app, "[::1]:8765", method="POST", origin=origin) == 403, origin
    app.state.here.store.close()


@pytest.mark.parametrize(
    "name", ["", "http://desk.example", "desk.example:8765", "desk.example/x", "a b", "[::1]:80", "\u00fc..a"]
)
def test_odd_names_are_refused_at_the_start(copied: Any, name: str) -> None:
    with pytest.raises(PlanError, check=about("name")):
        command(copied(), name=[name], browser=False)


@pytest.mark.parametrize(
    ("text", "name"),
    [("fd00::5", "[fd00::5]"), ("[FD00::5]", "[fd00::5]"), ("b\u00fcro.example", "xn--bro-hoa.example"), ("A.", "a")],
)
def test_names_are_what_browsers_send(text: str, name: str) -> None:
    assert own_name(text) == name


def test_a_desk_on_the_other_loopback(copied: Any, serve: Any) -> None:
    """`--host ::1` prints a link that works."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    folder: Path = copied()
    served = serve(folder, host="::1")
    assert served.link.startswith(f"http://[::1]:{served.port}/enter?token=")
    answer = httpx.get(served.link, trust_env=False)
    assert answer.status_code == 303 and answer.headers["location"] == "/"
