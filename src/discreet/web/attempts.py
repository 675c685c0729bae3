"""Guesses at passwords: counted before they are checked, few at a time, apart from all else that the desk does.

A guess counts for its name, for its address and for both. A browser in which somebody logged in before carries a mark,
and counts for that person alone: guesses of others, from behind the same proxy or at the same name, keep nobody out
who works here.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from sqlalchemy import select

from discreet.web.accounts import is_password, same
from discreet.web.store import DeskStore, accounts

TRIES, MINUTES = 5, 15  # wrong passwords of one name from one address
FOR_A_NAME, FROM_AN_ADDRESS = 4 * TRIES, 10 * TRIES  # from anywhere; of anybody, who may sit behind one proxy
"""Wrong passwords for one name, or from one address, before it has to wait."""

MOST = 10_000
"""Names and addresses that are remembered beside those under way; then the oldest is forgotten."""

LINE = 16
"""Guesses that wait to be checked; a check takes a tenth of a second and 64 MiB."""


@dataclass
class Attempts:
    """Guesses of the last minutes, by name and by address, the one that guessed last at the end."""

    seen: OrderedDict[str, deque[float]] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, keys: Mapping[str, int]) -> int:
        """Count a guess for `keys`, each with the number of guesses it has; or the seconds until it has one again."""
        now = time.monotonic()
        with self.lock:
            wait = max(self._wait(key, most, now) for key, most in keys.items())
            if wait > 0:
                return int(wait + 0.999)
            self._forget(now)  # before it counts: one that is forgiven then makes nobody be forgotten
            for key in keys:
                self.seen.setdefault(key, deque()).append(now)
                self.seen.move_to_end(key)
            return 0

    def _forget(self, now: float) -> None:
        """What is old, and of the rest the oldest where there are too many."""
        while self.seen:
            tries = next(iter(self.seen.values()))
            if len(self.seen) <= MOST and tries and tries[-1] >= now - 60 * MINUTES:
                return
            self.seen.popitem(last=False)

    def _wait(self, key: str, most: int, now: float) -> float:
        tries = self.seen.get(key, deque())
        while tries and tries[0] < now - 60 * MINUTES:
            tries.popleft()
        return tries[-most] + 60 * MINUTES - now if len(tries) >= most else 0.0

    def forgive(self, keys: Iterable[str]) -> None:
        """Take back one guess: it was right."""
        with self.lock:
            for key in keys:
                if tries := self.seen.get(key):
                    tries.pop()
                if not tries:
                    self.seen.pop(key, None)


@dataclass
class Checks:
    """Passwords are checked by a thread for known browsers and one for all others; lines are short."""

    lanes: tuple[ThreadPoolExecutor, ...] = field(
        default_factory=lambda: tuple(ThreadPoolExecutor(1, thread_name_prefix="password") for _ in range(2))
    )
    waiting: list[int] = field(default_factory=lambda: [0, 0])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def is_full(self, *, known: bool) -> bool:
        """Whether too many wait."""
        with self.lock:
            return self.waiting[known] >= LINE

    def begin(self, store: DeskStore, name: str, password: str, *, known: bool) -> Future[bool]:
        """Whether the password is right, in a while."""
        with self.lock:
            self.waiting[known] += 1
        found = self.lanes[known].submit(is_password, store, name, password)
        found.add_done_callback(lambda _: self._done(known))
        return found

    def _done(self, known: bool) -> None:
        with self.lock:
            self.waiting[known] -= 1

    def close(self) -> None:
        for lane in self.lanes:
            lane.shutdown(wait=False, cancel_futures=True)


def keys_of(name: str, address: str, *, known: bool) -> dict[str, int]:
    """What a guess counts for, and how many guesses each has."""
    if known:
        return {f"known {name}": FOR_A_NAME}
    place = _network(address)
    return {f"{name} from {place}": TRIES, f"name {name}": FOR_A_NAME, f"from {place}": FROM_AN_ADDRESS}


def _network(address: str) -> str:
    """An address, or of IPv6 the network that one household or office has."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address[:45]
    return str(ipaddress.ip_network((found, 64), strict=False)) if found.version == 6 else str(found)


def mark(store: DeskStore, name: str) -> str | None:
    """What a browser carries in which this person has logged in; another password makes another mark."""
    with store.reading() as connection:
        row = connection.execute(select(accounts.c.password).where(accounts.c.name == name)).first()
    return None if row is None else hmac.digest(row.password.encode(), f"known {name}".encode(), hashlib.sha256).hex()


def is_known(store: DeskStore, name: str, carried: str | None) -> bool:
    """Whether the browser carries the person's mark."""
    expected = mark(store, name) if carried else None
    return expected is not None and same(carried or "", expected)
