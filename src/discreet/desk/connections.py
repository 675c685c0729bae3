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
    """HTTP/1.1 with a time limit for senders, and a limit of connections for each address.

    At the limit the one that has been kept open longest since its last answer gives way, as browsers expect of them.
    Where all are at work, the new one is refused.
    """

    each: ClassVar[int] = 64
    limits: ClassVar[dict[Any, float]] = {h11.IDLE: HEAD, h11.SEND_BODY: BODY}
    look: ClassVar[float] = LOOK

    _stage: tuple[Any, Any] | None = None
    _since = 0.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        ours = [each for each in self.connections if isinstance(each, Timed) and not each.transport.is_closing()]
        same = [each for each in ours if each._host == self._host]
        kept = [(timer.when(), each) for each in same if (timer := each.timeout_keep_alive_task) is not None]
        if len(same) > self.each and not kept:
            transport.abort()
            return
        if len(same) > self.each:
            min(kept, key=lambda timed: timed[0])[1].timeout_keep_alive_handler()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    @property
    def _host(self) -> str:
        return self.client[0] if self.client else ""

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
