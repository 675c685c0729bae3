"""A zip file from somebody else, unpacked within bounds: number of files, bytes, growth, and the memory of its tables.

What the file declares is checked before anything is written, and what comes out is counted while it is written, so a
header that lies gains nothing. Tables are compressed once more inside: they are first read by a process whose memory
ends where the bounds do. Not here: whether what was unpacked is true (`verification`).
"""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from discreet.plan.findings import RefutedError

FILES = 10_000
"""Files of a bundle; a plan of a hundred tables has some hundreds."""

DIRECTORY = 4 * 2**20
"""Bytes of the list of files at the end of a zip file, which is read at once."""

TEXT = 32 * 2**20
"""Bytes of a file that is read at once: the ledger's lines, a report."""

ROOM, GROWTH = 16 * 2**20, 100
"""Bytes that any bundle may unpack to, and how many more for each of its own. Long labels in every row make 30."""

MEMORY, SWELLING = 2**30, 500
"""Bytes of memory for the tables of any bundle, and how many more for each of its own. The same labels make 120."""

SECONDS = 600
PIECE = 2**20
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""How discreet packs. Of other methods Python unpacks a piece at once, however long it becomes."""

TABLES = (".csv", ".parquet")
UNREADABLE = 3
"""How the process that reads the tables ends where one cannot be read."""

READER = (
    "import sys; from pathlib import Path; from discreet.plan.unpacking import _limit, _try_tables; "
    "_limit(int(sys.argv[1])); _try_tables(sys.argv[2:])"
)


class _Bounded(io.FileIO):
    """A file of which no more is read at once than a list of files may have."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > DIRECTORY:
            raise RefutedError(f"its list of files has {size:,} bytes. At most {DIRECTORY:,} are read")
        return super().read(-1 if size is None else size) or b""


@contextmanager
def opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """The zip file, of which only the list of files was read."""
    with _Bounded(path) as file, zipfile.ZipFile(file) as packed:
        yield packed


def text(packed: zipfile.ZipFile, name: str) -> bytes:
    """One file that is small enough to be read at once."""
    entry = packed.getinfo(name)
    _check_size(entry)
    return b"".join(_pieces(packed, entry))


def unpack(packed: zipfile.ZipFile, folder: Path) -> list[str]:
    """Write every file below `folder`; their names as the zip file lists them."""
    entries = packed.infolist()
    if len(entries) > FILES:
        raise RefutedError(f"it lists {len(entries):,} files. At most {FILES:,} are unpacked")
    allowed = ROOM + GROWTH * _size(packed)
    declared = sum(entry.file_size for entry in entries)
    if declared > allowed:
        raise RefutedError(f"it unpacks to {declared:,} bytes. A bundle of its size has at most {allowed:,}")
    for entry in entries:
        _check_size(entry)
        place = PurePosixPath(entry.filename)
        elsewhere = place.is_absolute() or ".." in place.parts or {"\\", "\0", ":"} & {*entry.filename}
        # a folder that is called as a table would be read as one, with all that is in it
        if entry.is_dir() or elsewhere or any(map(_is_table, place.parts[:-1])):
            raise RefutedError(f"{entry.filename[:80]!r} cannot be the name of a file of a bundle")
    for entry in entries:
        path = folder / entry.filename
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            for piece in _pieces(packed, entry):
                file.write(piece)
    return [entry.filename for entry in entries]


def check_tables(packed: zipfile.ZipFile, folder: Path) -> list[int]:
    """The rows of each table. Refuse what cannot be read, or not in the memory that a bundle of its size needs.

    Nothing is read here: what can be read in part alone could swell when a check reads that part.
    """
    tables = [name for name in packed.namelist() if _is_table(name)]
    allowed = MEMORY + SWELLING * _size(packed)
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
    from discreet.plan.outputs import read_table

    kind, names = path.suffix[1:].lower(), list[str]()
    if kind == "csv":  # as text, because categories that begin like numbers may go on otherwise
        with path.open(encoding="utf-8", newline="") as file:
            names = next(csv.reader(file), [])
    table = read_table(path, kind=kind, attributes=names)
    return max((len(column) for column in table.to_pydict().values()), default=0)


def _is_table(name: str) -> bool:
    """Whether a file of this name can be read as a table; some systems do not tell capital letters apart."""
    return name.lower().endswith(TABLES)


def _check_size(entry: zipfile.ZipInfo) -> None:
    if entry.compress_type not in METHODS:
        raise RefutedError(f"{entry.filename[:80]!r} is compressed in another way than discreet does")
    if not _is_table(entry.filename) and entry.file_size > TEXT:
        raise RefutedError(f"{entry.filename[:80]!r} has {entry.file_size:,} bytes. Such a file has at most {TEXT:,}")


def _pieces(packed: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    """The content, never beyond the size that was declared and checked."""
    with packed.open(entry) as file:
        while piece := file.read(PIECE):
            yield piece


def _size(packed: zipfile.ZipFile) -> int:
    assert packed.fp is not None
    return os.fstat(packed.fp.fileno()).st_size
