"""The tables of a bundle are read first by a process whose memory ends where the bounds do.

Tables are compressed once more inside the zip file, so a small file can hold a table that no machine can.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from discreet.archive.findings import RefutedError
from discreet.archive.unpacking import is_table, packed_size
from discreet.release.trial import READER, UNREADABLE

MEMORY, SWELLING = 2**30, 500
"""Bytes of memory for the tables of any bundle, and how many more for each of its own. The same labels make 120."""

SECONDS = 600


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
