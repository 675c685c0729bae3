"""The tables of a bundle are read first by a process whose memory ends where the bounds do.

Tables are compressed once more inside the zip file, so a small file can hold a table that no machine can.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

from discreet.archive.findings import RefutedError
from discreet.archive.unpacking import is_table, packed_size
from discreet.release.files import read_table

MEMORY, SWELLING = 2**30, 500
"""Bytes of memory for the tables of any bundle, and how many more for each of its own. The same labels make 120."""

SECONDS = 600
UNREADABLE = 3
"""The exit of the process that reads the tables, if one cannot be read."""

READER = (
    "import sys; from pathlib import Path; from discreet.review.tables import _limit, _try_tables; "
    "_limit(int(sys.argv[1])); _try_tables(sys.argv[2:])"
)


def check_tables(packed: zipfile.ZipFile, folder: Path) -> list[int]:
    """The rows of each table. Refuse what cannot be read, or not in the memory that a bundle of its size needs.

    Nothing is read in this process: a file that can be read in part could still grow when a check reads that part.
    """
    tables = [name for name in packed.namelist() if is_table(name)]
    allowed = MEMORY + SWELLING * packed_size(packed)
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1"}
    rows: list[int] = []
    for start in range(0, len(tables), 500):
        paths = [str(folder / name) for name in tables[start : start + 500]]
        command = [sys.executable, "-c", READER, str(allowed), *paths]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise RefutedError(f"its tables are not read within {SECONDS} seconds") from None
        rows += map(int, done.stdout.split())
        if done.returncode == UNREADABLE:
            raise RefutedError(f"{tables[len(rows)][:80]!r} cannot be read as a table")
        if done.returncode:
            raise RefutedError(f"its tables take more memory than {allowed:,} bytes, as no bundle of its size does")
    return rows


def _limit(memory: int) -> None:
    """End this process where it takes more; systems that are not POSIX have no such limit."""
    try:
        import resource
    except ImportError:
        return
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    memory = memory if most == resource.RLIM_INFINITY else min(memory, most)
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _try_tables(paths: Sequence[str]) -> None:
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
