"""Connections that send nothing, or a little at a time: each has its time for a head and a body, and is then closed.

Without it a stranger could hold all connections of the desk for any length of time.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD, BODY = 20.0, 300.0
"""Seconds in which a request's head, and then its body, have to arrive."""

LOOK = 5.0
"""Seconds between two looks at a connection."""


class Timed(H11Protocol):
    """HTTP/1.1 with a time limit for senders, and a limit of connections for each address."""

    each: ClassVar[int] = 64
    limits: ClassVar[dict[Any, float]] = {h11.IDLE: HEAD, h11.SEND_BODY: BODY}
    look: ClassVar[float] = LOOK

    _stage: tuple[Any, Any] | None = None
    _since = 0.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        host = self.client[0] if self.client else ""
        same = sum(bool(each.client) and each.client[0] == host for each in self.connections)  # type: ignore[union-attr, index]
        if same > self.each:
            transport.abort()
            return
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _watch(self) -> None:
        now, stage = self.loop.time(), (self.conn.their_state, self.cycle)
        if stage != self._stage:
            self._stage, self._since = stage, now
        if now - self._since >= self.limits.get(stage[0], float("inf")):
            self.transport.abort()
            return
        self._timer = self.loop.call_later(self.look, self._watch)


class FromProxies(Timed):
    """The same where all connections are a few proxies'."""

    each = 10_000
