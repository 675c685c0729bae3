"""Whatever is sent anywhere, by anybody: others are answered meanwhile.

What is measured is the longest stretch of this process's own time in which the loop that answers everybody got no turn.
Time of the process and not of the clock: a busy machine changes nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from discreet.desk.forms import FORM_BYTES, JSON_BYTES, LOGIN_BYTES

pytestmark = pytest.mark.walk  # a desk under slow senders

CHUNK = 65_536  # as servers hand bodies on
STRETCH = 0.4  # seconds; one page takes some hundredths
TRIES = 3  # what is slow is slow every time; a collection of this process's garbage, or another test's thread, is not
LARGE = 900_000
LISTED = 240_000
DRAFT = b'{"source":"jobs","unit":{"kind":"establishments"},"release":[%b]}'
EDGE = "edge"


def part(value: bytes, head: bytes = b'name="a"') -> bytes:
    return b"--edge\r\ncontent-disposition: form-data; " + head + b"\r\n\r\n" + value + b"\r\n--edge--\r\n"


def hostile() -> Iterator[tuple[str, str, bytes]]:
    """A name, a Content-Type and a body."""
    multipart = f"multipart/form-data; boundary={EDGE}"
    for charset in ("punycode", "idna", "utf-7", "utf-16", "unicode_escape", "utf-8; charset=punycode", '"punycode"'):
        yield f"multipart in {charset}", f"{multipart}; charset={charset}", part(b"a" * 200_000)
        yield f"form in {charset}", f"application/x-www-form-urlencoded; charset={charset}", b"a=" + b"a" * 200_000
        yield f"JSON in {charset}", f"application/json; charset={charset}", b'"' + b"a" * 200_000 + b'"'
    yield "charset first", f"multipart/form-data; charset=punycode; boundary={EDGE}", part(b"a" * 200_000)
    yield "spaced charset", f"{multipart} ;  charset=punycode", part(b"a" * 200_000)
    yield "a head of quotes", multipart, part(b"", b'";"' * (LARGE // 3))
    yield "a name in another charset", multipart, part(b"", b"name*=punycode''" + b"x" * LARGE)
    yield "a type of quotes", 'multipart/form-data; boundary="' + '";"' * 10_000, b""
    yield "a type of spaces", "multipart/form-data;" + " " * 30_000 + "x", b""
    yield "parts without end", multipart, part(b"")[:-4] * (LARGE // 60)
    yield "half edges", multipart, part(b"\r\n--edg" * (LARGE // 7))
    yield "many fields", "application/x-www-form-urlencoded", b"a&" * (LARGE // 2)
    yield "many percents", "application/x-www-form-urlencoded", b"a=" + b"%41" * (LARGE // 3)
    yield "no UTF-8", "application/x-www-form-urlencoded", b"a=%ff&b=\xff"
    yield "brackets", "application/json", b"[" * LARGE
    yield "digits", "application/json", b"9" * LARGE
    yield "a long list", "application/json", b'{"source":"x","unit":{},"release":[{"a":[' + b"0," * 400_000 + b"0]}]}"
    for name, items in (("objects", b"{}"), ("lists of objects", b"[{}]"), ("nothings", b"null")):
        many = items + (b"," + items) * (LISTED // (len(items) + 1))
        yield f"a list of {name}", "application/json", DRAFT % (b'{"where":[' + many + b"]}")
    for name, value in (("faults", b"{}"), ("deep faults", b'{"a":{}}')):
        keys = b",".join(b'"%d":%b' % (i, value) for i in range(LISTED // (len(value) + 9)))
        yield f"an object of {name}", "application/json", DRAFT % (b"{" + keys + b"}")
        yield f"an object of {name} in a release", "application/json", DRAFT % (b'{"where":{' + keys + b"}}")
        yield f"keys with {name}", "application/json", b"{" + keys + b"}"
    yield "any bytes", "application/octet-stream", bytes(range(256)) * 2_000
    yield "no type", "", b"x" * LARGE
    yield "too large", "application/x-www-form-urlencoded", b"x" * (FORM_BYTES + CHUNK)


async def sent(app: Any, path: str, kind: str, body: bytes, cookie: str = "", csrf: str = "") -> tuple[int, float]:
    """The status, and the longest stretch in which nobody else was answered."""
    headers = [(b"host", b"127.0.0.1"), (b"origin", b"http://127.0.0.1"), (b"cookie", cookie.encode())]
    headers += [(b"x-csrf", csrf.encode())] + ([(b"content-type", kind.encode())] if kind else [])
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
    scope |= {"scheme": "http", "server": ("127.0.0.1", 80), "client": ("192.0.2.9", 1), "http_version": "1.1"}
    chunks = [body[i : i + CHUNK] for i in range(0, len(body), CHUNK)] or [b""]
    left, statuses = list(reversed(chunks)), []

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(0)
        if not left:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": left.pop(), "more_body": bool(left)}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    asked = asyncio.create_task(app({**scope, "headers": headers, "root_path": ""}, receive, send))
    longest, last = 0.0, time.process_time()
    while not asked.done():
        await asyncio.sleep(0.002)
        now = time.process_time()
        longest, last = max(longest, now - last), now
    asked.result()
    return statuses[0], longest


@pytest.mark.parametrize(
    "strangers", [("/login", "/nothing"), pytest.param(None, marks=pytest.mark.full_size)], ids=["at two", "everywhere"]
)
def test_nobody_waits_for_what_somebody_sends(client: Any, csrf: Any, routes: Any, strangers: Any) -> None:
    """Of whoever is logged in, everything everywhere; of strangers, whom every address sends to log in, at two."""
    token, cookie = csrf(client), f"discreet-desk={client.cookies['discreet-desk']}"
    paths = sorted({*routes("POST"), "/nothing"})
    assert len(paths) >= 11
    slow, odd = [], []
    for path in paths:
        for name, kind, body in hostile():
            known = strangers is not None and path not in strangers
            for who in ((cookie, token),) if known else (("", ""), (cookie, token)):
                status, stretch = asyncio.run(sent(client.app, path, kind, body, *who))
                for _ in range(TRIES - 1):
                    if stretch > STRETCH:
                        stretch = asyncio.run(sent(client.app, path, kind, body, *who))[1]
                if stretch > STRETCH:
                    slow.append((path, name, bool(who[0]), stretch))
                if status >= 500:
                    odd.append((path, name, bool(who[0]), status))
    assert not slow and not odd


@pytest.mark.parametrize(
    ("path", "kind", "size", "status"),
    [
        ("/login", "multipart/form-data; boundary=edge", 10, 415),
        ("/login", "application/x-www-form-urlencoded; charset=punycode", 10, 415),
        ("/login", "application/x-www-form-urlencoded", LOGIN_BYTES + 1, 413),
        ("/login", "application/x-www-form-urlencoded; charset=UTF-8", 10, 403),
        ("/login", 'application/x-www-form-urlencoded; charset="utf-8"', 10, 403),
        ("/ledger/verify", "multipart/form-data; boundary=edge", 10, 415),
        ("/ledger/verify", "text/plain", 10, 415),
        ("/models", "multipart/form-data; boundary=edge; charset=latin-1", 10, 415),
        ("/models", "application/json", 10, 415),
        ("/api/estimate", "application/x-www-form-urlencoded", 10, 415),
        ("/api/estimate", "application/json; charset=utf-16", 10, 415),
    ],
)
def test_each_address_takes_its_own_bodies(client: Any, path: str, kind: str, size: int, status: int) -> None:
    cookie = f"discreet-desk={client.cookies['discreet-desk']}"
    assert asyncio.run(sent(client.app, path, kind, b"x" * size, cookie))[0] == status


def test_json_is_shorter_than_a_form(client: Any, csrf: Any) -> None:
    token, cookie = csrf(client), f"discreet-desk={client.cookies['discreet-desk']}"
    for size, status in ((JSON_BYTES, 422), (JSON_BYTES + 1, 413)):
        body = b" " * size
        assert asyncio.run(sent(client.app, "/api/estimate", "application/json", body, cookie, token))[0] == status


def test_two_types_are_none(client: Any, csrf: Any) -> None:
    kinds = [("content-type", "application/x-www-form-urlencoded"), ("content-type", "multipart/form-data; boundary=e")]
    kinds += [("origin", "http://127.0.0.1")]

    async def asked() -> int:
        transport = httpx.ASGITransport(client.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", cookies=client.cookies) as both:
            return (await both.post("/ledger/verify", content=b"csrf=x", headers=kinds)).status_code

    assert asyncio.run(asked()) == 415
