"""Tables of whole numbers that are computed once and kept for the next process; they hold no data.

They lie below `$XDG_CACHE_HOME/discreet`, or `~/.cache/discreet`. A file begins with a hash of its name and of all that
follows, so that any other byte is refused. Whoever can write there can write a hash too; so every reader also checks
what it reads: a kept file is no proof.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from discreet.words.errors import PrivacyError

if TYPE_CHECKING:
    from numpy.typing import NDArray

BITS = 126
"""The weights of a row add up to 2^126: a draw compares 62 random bits, and 64 more where those decide nothing."""

FORMAT = 2  # of files: those of other formats are not looked for


_most_seconds: ContextVar[float] = ContextVar("_most_seconds", default=float("inf"))


def kept(
    kind: str,
    key: object,
    solve: Callable[[], NDArray[np.object_]],
    check: Callable[[NDArray[np.object_]], None],
    *,
    seconds: float,
) -> NDArray[np.object_]:
    """The rows of a table, from the file that keeps it or solved and written there; checked in either case.

    `seconds` is about what solving takes, known before it begins.
    """
    name = sha256(repr((FORMAT, kind, key)).encode()).hexdigest()[:32]
    folder = _folder()
    path = None if folder is None else folder / f"{kind.split(',')[0]}-{name}.json"
    rows = None if path is None else _read(path)
    read = rows is not None
    if rows is None:
        if seconds > _most_seconds.get():
            raise LongTable(seconds)
        rows = solve()
    _refuse_no_law(rows, name)
    check(rows)
    if path is not None and not read:
        _write(path, rows)
    return rows


def _folder() -> Path | None:
    """Where tables are kept; None for a user without a home."""
    named = os.environ.get("XDG_CACHE_HOME")
    try:
        return Path(named or Path.home() / ".cache") / "discreet"
    except RuntimeError:
        return None


class Unsolved(Exception):
    """No table was found; a mechanism says what is possible instead."""


class LongTable(Exception):
    """A table is not kept, and to solve it takes longer than was allowed; `seconds` is how long."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"about {seconds:,.0f} seconds")
        self.seconds = seconds


@contextlib.contextmanager
def solving_at_most(seconds: float) -> Iterator[None]:
    """Solve no table that takes longer: for work that somebody else asks for."""
    before = _most_seconds.set(seconds)
    try:
        yield
    finally:
        _most_seconds.reset(before)


def damaged(what: str) -> PrivacyError:
    """A kept table that is not what was written."""
    return PrivacyError(
        f"A kept table of noise is damaged: {what}.",
        "It is computed once and kept.",
        "Delete the folder `discreet` of your cache, and it is computed again.",
        about="mechanism",
    )


def rounded(shares: NDArray[np.float64]) -> NDArray[np.object_]:
    """Integers in these proportions that add up to 2^126 in each row; what rounding leaves goes to the largest."""
    weights = np.array([[int(np.ldexp(share, BITS)) for share in row] for row in shares.tolist()], dtype=object)
    for row, share in zip(weights, shares, strict=True):
        row[int(np.argmax(share))] += 2**BITS - sum(row)
    return weights


def _refuse_no_law(rows: NDArray[np.object_], name: str) -> None:
    if any(sum(row) != 2**BITS or min(row) < 0 for row in rows.tolist()):
        raise damaged(f"the rows of {name} are no probabilities")


def _read(path: Path) -> NDArray[np.object_] | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    _, _, table = content.partition(b"\n")
    if content != sealed(path.name, table):
        raise damaged(f"{path.name} is not as it was written")
    try:
        rows = np.array(
            [[int(weight, 16) for weight in row] for row in json.loads(table.decode("ascii"))], dtype=object
        )
        if rows.ndim != 2:
            raise ValueError
    except (ValueError, TypeError, RecursionError):
        raise damaged(f"{path.name} is no table of whole numbers") from None
    return rows


def _write(path: Path, rows: NDArray[np.object_]) -> None:
    """Keep a table for the next process; where that cannot be, it is solved again."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{os.getpid()}")
        table = json.dumps([[f"{weight:x}" for weight in row] for row in rows])
        partial.write_bytes(sealed(path.name, table.encode("ascii")))
        partial.replace(path)


def sealed(name: str, table: bytes) -> bytes:
    """The content of the file of this name: a hash, and the table."""
    return sha256(name.encode() + b"\n" + table).hexdigest().encode() + b"\n" + table
