"""A desk behind a proxy that speaks TLS: only the proxy gets answers, and its statements about clients are trusted.

`X-Forwarded-For` is read from its end: the last address that is no proxy of ours is the client, and whatever the client
itself wrote before it counts for nothing. `Host` comes as the browser sent it; `X-Forwarded-Host` is not read.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from discreet.words.errors import PlanError

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
LOOPBACK = ("127.0.0.0/8", "::1/128")


@dataclass(frozen=True, slots=True)
class BehindTLS:
    """The outermost middleware of such a desk."""

    app: ASGIApp
    proxies: Sequence[Network]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        peer = (scope.get("client") or ("", 0))[0]
        if not self._is_proxy(peer):
            text = "This address is not one of the desk's proxies. The desk answers to these alone. Ask the proxy.\n"
            await PlainTextResponse(text, 403)(scope, receive, send)
            return
        if [each.strip().lower() for each in _given(scope, b"x-forwarded-proto")] != ["https"]:
            text = (
                "The proxy did not say that this request came over TLS. The desk takes no other. Ask with https, or "
                "have the proxy send X-Forwarded-Proto.\n"
            )
            await PlainTextResponse(text, 403)(scope, receive, send)
            return
        await self.app({**scope, "scheme": "https", "client": (self._client(scope, peer), 0)}, receive, send)

    def _client(self, scope: Scope, peer: str) -> str:
        chain = [each.strip() for line in _given(scope, b"x-forwarded-for") for each in line.split(",")]
        for each in reversed(chain):
            if _address(each) is None:
                return peer
            if not self._is_proxy(each):
                return str(_address(each))
        return peer

    def _is_proxy(self, text: str) -> bool:
        address = _address(text)
        return address is not None and any(address in network for network in self.proxies)


def _given(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An address; IPv4 within IPv6 is IPv4."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def networks(addresses: Iterable[str]) -> tuple[Network, ...]:
    """The addresses of proxies as `discreet serve` is given them."""
    found = []
    for text in addresses:
        try:
            found.append(ipaddress.ip_network(text))
        except ValueError:
            raise PlanError(
                f"{text[:60]!r} cannot be a proxy.",
                "A proxy is an address, or a network of them.",
                "Use for example 10.0.0.7 or 10.0.0.0/28.",
                about="proxy",
            ) from None
        if found[-1].prefixlen == 0:
            raise PlanError(
                f"{text[:60]!r} was given as the proxies, which is everybody.",
                "The desk must know the proxy that it trusts about its clients.",
                "Name the proxies' own addresses.",
                about="proxy",
            )
    return tuple(found)
