"""Guesses at passwords: counted before they are checked, few at a time, apart from all else that the desk does.

A guess counts for its name, for its address and for both. If there are too many addresses, the oldest is dropped. Names
are never dropped: each account has its own count, and all other names share a fixed number of counts. So nobody can
push out the count of a name, and an answer does not show which names have an account. A browser in which somebody
logged in before has a mark and counts for that person alone. So guesses by others, behind the same proxy or at the same
name, do not lock out a person who works here.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from sqlalchemy import select

from discreet.desk.accounts import is_password, same
from discreet.desk.store import DeskStore, accounts

TRIES, MINUTES = 5, 15  # wrong passwords of one name from one address
FOR_A_NAME, FROM_AN_ADDRESS = 4 * TRIES, 10 * TRIES  # from anywhere; of anybody, who may sit behind one proxy
"""Wrong passwords for one name, or from one address, before it has to wait."""

MOST = 10_000
"""Addresses, alone and with a name, that are remembered beside those under way; then the oldest is forgotten."""

BUCKETS = 4_096
"""Counts that names without an account share."""

_SALT = secrets.token_bytes(32)

LINE = 16
"""Guesses that wait to be checked; a check takes a tenth of a second and 64 MiB."""


@dataclass
class Attempts:
    """Guesses of the last minutes: by address, the one that guessed last at the end, and by name."""

    seen: OrderedDict[str, deque[float]] = field(default_factory=OrderedDict)
    lasting: dict[str, deque[float]] = field(default_factory=dict)
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
                self._table(key).setdefault(key, deque()).append(now)
                if key in self.seen:
                    self.seen.move_to_end(key)
            return 0

    def _table(self, key: str) -> dict[str, deque[float]]:
        return self.lasting if key.startswith(LASTING) else self.seen

    def _forget(self, now: float) -> None:
        """Drop old counts, and the oldest of the rest if there are too many."""
        while self.seen:
            tries = next(iter(self.seen.values()))
            if len(self.seen) <= MOST and tries and tries[-1] >= now - 60 * MINUTES:
                return
            self.seen.popitem(last=False)

    def _wait(self, key: str, most: int, now: float) -> float:
        tries = self._table(key).get(key, deque())
        while tries and tries[0] < now - 60 * MINUTES:
            tries.popleft()
        return tries[-most] + 60 * MINUTES - now if len(tries) >= most else 0.0

    def forgive(self, keys: Iterable[str]) -> None:
        """Take back one guess: it was right."""
        with self.lock:
            for key in keys:
                table = self._table(key)
                if tries := table.get(key):
                    tries.pop()
                if not tries:
                    table.pop(key, None)


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


LASTING = ("known ", "account ", "bucket ")
"""Prefixes of keys whose counts others never push out: as many as accounts and buckets."""


def keys_of(name: str, address: str, *, known: bool, exists: bool) -> dict[str, int]:
    """The counts that a guess adds to, and the limit of each."""
    if known:
        return {f"known {name}": FOR_A_NAME}
    place, whose = _network(address), f"account {name}" if exists else f"bucket {_bucket(name)}"
    return {f"at {name} from {place}": TRIES, whose: FOR_A_NAME, f"from {place}": FROM_AN_ADDRESS}


def _bucket(name: str) -> int:
    """The count of a name without an account; nobody outside can know which one it is, so nobody can fill another's."""
    return int.from_bytes(hmac.digest(_SALT, name.encode(), hashlib.sha256)[:8], "big") % BUCKETS


def _network(address: str) -> str:
    """An address, or of IPv6 the network that one household or office has."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address[:45]
    return str(ipaddress.ip_network((found, 64), strict=False)) if found.version == 6 else str(found)


def mark(store: DeskStore, name: str) -> str | None:
    """The mark of a browser in which this person has logged in; another password gives another mark."""
    with store.reading() as connection:
        row = connection.execute(select(accounts.c.password).where(accounts.c.name == name)).first()
    return None if row is None else hmac.digest(row.password.encode(), f"known {name}".encode(), hashlib.sha256).hex()


def is_known(store: DeskStore, name: str, carried: str | None) -> bool:
    """Whether the browser carries the person's mark."""
    expected = mark(store, name) if carried else None
    return expected is not None and same(carried or "", expected)
