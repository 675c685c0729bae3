"""Tables that somebody else made are read once by a process whose memory ends where a bound does; it loads no more."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from pathlib import Path

from discreet.release.tables import read_table

UNREADABLE = 3
"""The exit of the process, if a table cannot be read."""

READER = """
import sys
from discreet.release.trial import limit, try_tables
limit(int(sys.argv[1]))
try_tables(sys.argv[2:])
"""


def limit(memory: int) -> None:
    """End this process where it takes more; systems that are not POSIX have no such limit."""
    try:
        import resource
    except ImportError:
        return
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    memory = memory if most == resource.RLIM_INFINITY else min(memory, most)
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def try_tables(paths: Sequence[str]) -> None:
    """Read every table as the checks do, whole and into Python's own values; keep none and print their rows."""
    for path in paths:
        try:
            rows = _rows(Path(path))
        except MemoryError:
            sys.exit(1)
        except Exception:
            sys.exit(UNREADABLE)
        print(rows, flush=True)


def _rows(path: Path) -> int:
    """The rows that a table has, whatever it declares."""
    kind, names = path.suffix[1:].lower(), list[str]()
    if kind == "csv":  # as text, because categories that begin like numbers may go on otherwise
        with path.open(encoding="utf-8", newline="") as file:
            names = next(csv.reader(file), [])
    table = read_table(path, kind=kind, attributes=names)
    return max((len(column) for column in table.to_pydict().values()), default=0)
