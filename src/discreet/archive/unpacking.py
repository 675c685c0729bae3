"""A zip file from somebody else, unpacked within bounds: number of files, bytes and growth.

The declarations of the file are checked before anything is written, and the output is counted while it is written, so a
false header gains nothing. Not here: whether the unpacked files are true (`review`).
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from discreet.archive.findings import RefutedError

FILES = 10_000
"""Files of a bundle; a plan of a hundred tables has some hundreds."""

DIRECTORY = 4 * 2**20
"""Bytes of the list of files at the end of a zip file, which is read at once."""

TEXT = 32 * 2**20
"""Bytes of a file that is read at once: the ledger's lines, a report."""

ROOM, GROWTH = 16 * 2**20, 100
"""Bytes that any bundle may unpack to, and how many more for each of its own. Long labels in every row make 30."""

PIECE = 2**20
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""How discreet packs. With other methods Python unpacks a whole piece at once, however long it is."""

TABLES = (".csv", ".parquet")


class _Bounded(io.FileIO):
    """A file that never reads more at once than a list of files may have."""

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
    allowed = ROOM + GROWTH * packed_size(packed)
    declared = sum(entry.file_size for entry in entries)
    if declared > allowed:
        raise RefutedError(f"it unpacks to {declared:,} bytes. A bundle of its size has at most {allowed:,}")
    for entry in entries:
        _check_size(entry)
        place = PurePosixPath(entry.filename)
        elsewhere = place.is_absolute() or ".." in place.parts or {"\\", "\0", ":"} & {*entry.filename}
        # a folder that is called as a table would be read as one, with all that is in it
        if entry.is_dir() or elsewhere or any(map(is_table, place.parts[:-1])):
            raise RefutedError(f"{entry.filename[:80]!r} cannot be the name of a file of a bundle")
    for entry in entries:
        path = folder / entry.filename
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            for piece in _pieces(packed, entry):
                file.write(piece)
    return [entry.filename for entry in entries]


def is_table(name: str) -> bool:
    """Whether a file of this name can be read as a table; some systems do not distinguish capital letters."""
    return name.lower().endswith(TABLES)


def _check_size(entry: zipfile.ZipInfo) -> None:
    if entry.compress_type not in METHODS:
        raise RefutedError(f"{entry.filename[:80]!r} is compressed in another way than discreet does")
    if not is_table(entry.filename) and not entry.filename.endswith(".xlsx") and entry.file_size > TEXT:
        raise RefutedError(f"{entry.filename[:80]!r} has {entry.file_size:,} bytes. Such a file has at most {TEXT:,}")


def _pieces(packed: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    """The content, never beyond the size that was declared and checked."""
    with packed.open(entry) as file:
        while piece := file.read(PIECE):
            yield piece


def packed_size(packed: zipfile.ZipFile) -> int:
    """Bytes of the zip file itself."""
    assert packed.fp is not None
    return os.fstat(packed.fp.fileno()).st_size
