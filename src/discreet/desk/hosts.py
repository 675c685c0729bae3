"""Names under which a desk is asked for: a Host header read strictly, and compared as names and not as text.

Case, one trailing dot and the spelling of an IPv6 address make no difference (RFC 3986, 3.2.2; RFC 4343; RFC 5952).
Everything else does: whatever is not a host with at most a port is no host.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from discreet.words.errors import PlanError

SHAPE = re.compile(r"(?P<name>\[[0-9a-f:.]{2,45}\]|[a-z0-9_]([a-z0-9._-]{0,251}[a-z0-9_])?\.?)(:(?P<port>[0-9]{0,5}))?")
PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Host:
    """A name and a port; None where the scheme's own is meant."""

    name: str
    port: int | None

    def origin(self, scheme: str) -> tuple[str, str, int | None]:
        """The parts that a browser compares to decide whether two pages are of one site."""
        return scheme, self.name, PORTS.get(scheme) if self.port is None else self.port


def read(text: str) -> Host | None:
    """The host that a header names, or None where it names none."""
    found = SHAPE.fullmatch(text.lower())
    if found is None or ".." in found["name"] or int(found["port"] or 0) > 65535:
        return None
    name = found["name"].removesuffix(".")
    if name.startswith("["):
        try:
            name = f"[{ipaddress.IPv6Address(name[1:-1]).compressed}]"
        except ValueError:
            return None
    return Host(name, int(found["port"]) if found["port"] else None)


def origin_of(text: str) -> tuple[str, str, int | None] | None:
    """The origin that a header names; None for `null` and what is no origin."""
    scheme, separator, rest = text.partition("://")
    host = read(rest) if separator and scheme in PORTS else None
    return None if host is None else host.origin(scheme)


def own_name(text: str) -> str:
    """A name that the desk was started with, as `read` gives it; an IPv6 address may come without its brackets."""
    try:
        name = text if text.isascii() else text.encode("idna").decode()
    except UnicodeError:
        name = ""
    host = read(f"[{name}]" if name.count(":") > 1 and not name.startswith("[") else name)
    if host is None or host.port is not None:
        raise PlanError(
            f"{text[:80]!r} cannot be a name of the desk.",
            "A name is a host alone, without scheme, port or path.",
            "Use for example desk.agency.example, 10.0.0.5 or fd00::5.",
            about="name",
        )
    return host.name
