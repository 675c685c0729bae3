"""Connections of slow senders are closed, by a server as `discreet serve` starts it; whoever works is not."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, ClassVar

import h11
import pytest
import uvicorn

from discreet.desk.connections import Timed

SLOW = {
    "nothing": b"",
    "half a head": b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n",
    "half a body": b"POST / HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 9\r\n\r\nab",
    "half a second head": b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\nGET / HT",
}


class Quick(Timed):
    """The same limits in less time."""

    look = 0.05
    limits: ClassVar[dict[Any, float]] = {h11.IDLE: 0.3, h11.SEND_BODY: 0.3}


class Few(Timed):
    """The same with fewer connections."""

    each = 3


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Reads the body, and takes longer to answer than anybody may take to send."""
    while (await receive()).get("more_body"):
        pass
    await asyncio.sleep(1 if scope["path"] == "/long" else 0)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


def served(work: Any, http: type[Timed] = Quick) -> Any:
    async def both() -> Any:
        config = uvicorn.Config(app, http=http, port=0, lifespan="off", log_level="critical", timeout_keep_alive=60)
        server, listening = uvicorn.Server(config), config.bind_socket()
        serving = asyncio.create_task(server.serve([listening]))
        while not server.started:
            await asyncio.sleep(0.01)
        try:
            return await work(*listening.getsockname()[:2])
        finally:
            server.should_exit = True
            await serving

    return asyncio.run(both())


@pytest.mark.parametrize("sent", SLOW.values(), ids=SLOW)
def test_slow_senders_are_ended(sent: bytes) -> None:
    async def asked(host: str, port: int) -> None:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(sent)
        with suppress(ConnectionResetError):
            await asyncio.wait_for(reader.read(), 20)
        writer.close()

    served(asked)


def test_who_waits_for_an_answer_is_not_ended() -> None:
    async def asked(host: str, port: int) -> bytes:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"GET /long HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
        found = await asyncio.wait_for(reader.read(), 20)
        writer.close()
        return found

    assert served(asked).endswith(b"ok")


def test_an_address_has_so_many_connections() -> None:
    async def asked(host: str, port: int) -> int:
        held = [await asyncio.open_connection(host, port) for _ in range(Few.each)]
        reader, writer = await asyncio.open_connection(host, port)
        with pytest.raises(ConnectionResetError):
            writer.write(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
            if await asyncio.wait_for(reader.read(), 20) == b"":
                raise ConnectionResetError
        for _, each in [*held, (reader, writer)]:
            each.close()
        return len(held)

    assert served(asked, Few) == 3


ASKED = b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


async def _answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(ASKED)
    await reader.readuntil(b"\r\n\r\n")
    return await reader.readexactly(2)


def test_a_connection_that_is_kept_for_later_gives_way() -> None:
    """Of an office behind one address, nobody is refused because others' browsers keep theirs open."""

    async def asked(host: str, port: int) -> list[bytes]:
        held = [await asyncio.open_connection(host, port) for _ in range(Few.each)]
        for each in held:
            await _answered(*each)
        newer = [await asyncio.open_connection(host, port) for _ in range(2)]
        found = [await asyncio.wait_for(_answered(*each), 20) for each in newer]
        found += [await asyncio.wait_for(held[number][0].read(), 20) for number in (0, 1)]  # ended, the oldest first
        found.append(await asyncio.wait_for(_answered(*held[2]), 20))
        for _, writer in [*held, *newer]:
            writer.close()
        return found

    assert served(asked, Few) == [b"ok", b"ok", b"", b"", b"ok"]


def test_who_waits_for_an_answer_does_not_give_way() -> None:
    async def asked(host: str, port: int) -> list[bytes]:
        held = [await asyncio.open_connection(host, port) for _ in range(Few.each)]
        for _, writer in held:
            writer.write(b"GET /long HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
        await asyncio.sleep(0.2)
        reader, writer = await asyncio.open_connection(host, port)
        with suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(), 20) == b""
        found = [await asyncio.wait_for(each.read(), 20) for each, _ in held]
        for _, each in [*held, (reader, writer)]:
            each.close()
        return [answer[-2:] for answer in found]

    assert served(asked, Few) == [b"ok"] * 3
