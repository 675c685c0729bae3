"""Files that somebody sends: kept under names of our own for as long as the work on them lasts.

A folder is locked while its desk works on it, so a desk can find the folders that a killed one left.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from starlette.datastructures import FormData, UploadFile

from discreet.desk.sandbox import ENDINGS
from discreet.ledger.lock import alone
from discreet.words.errors import DataError

PREFIX = "discreet-upload-"
PACKED = {".gz": "gzip", ".zst": "zstd", ".zip": "zip"}
ACCEPT = ".csv,.gz,.zst,.zip,.parquet"
"""What a browser offers to send."""

EXPANDED, PIECE = 400_000_000, 1 << 20
"""The largest size of an unpacked file, and the bytes that are unpacked at once."""

STARTING = 2
"""Seconds in which a folder that is not locked yet is left alone."""


@contextmanager
def kept(form: FormData, *fields: str) -> Iterator[dict[str, str]]:
    """The files of a form by field; those that were not sent are left out."""
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder, alone(Path(folder)):
        found = {}
        for field in fields:
            sent = form.get(field)
            if isinstance(sent, UploadFile) and sent.filename:
                found[field] = str(_copied(sent, Path(folder), field))
        yield found


def tidy() -> None:
    """Remove the folders of desks of this user that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                about = os.fstat(handle)
                if about.st_uid != os.getuid() or time.time() - about.st_mtime < STARTING:
                    continue
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)


def _copied(sent: UploadFile, folder: Path, field: str) -> Path:
    """The file under a name of our own; a compressed table is unpacked here, up to a limit."""
    endings = [ending.lower() for ending in Path(sent.filename or "").suffixes[-2:]]
    packing = endings.pop() if endings and endings[-1] in PACKED else ""
    ending = endings[-1] if endings else ".csv" if packing == ".zip" else ""
    if ending not in (ENDINGS if not packing else (".csv",)):
        told = f"{ending}{packing}"[:20] or "unknown"
        raise DataError(
            f"A file of type {told!r} was sent.",
            "The desk reads CSV, also as .csv.gz, .csv.zst or .zip, and Parquet.",
            "Send one of these.",
            about="file",
        )
    path = folder / f"{field}{ending}"
    try:
        with path.open("wb") as file, _unpacked(sent.file, packing) as content:
            _copy(content, file, EXPANDED if packing else None)
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
        if not packing:
            raise
        raise DataError(
            f"The {packing} file cannot be unpacked: it is damaged, locked by a password or of another kind.",
            "Pack one CSV file again, or send it as it is.",
            about="file",
        ) from error
    return path


@contextmanager
def _unpacked(file: IO[bytes], packing: str) -> Iterator[IO[bytes]]:
    if packing == ".zip":
        with zipfile.ZipFile(file) as archive:
            names = [each for each in archive.namelist() if each.lower().endswith(".csv") and "__MACOSX" not in each]
            if len(names) != 1:
                raise DataError(
                    f"The zip file holds {len(names)} CSV files.",
                    "It may hold one.",
                    "Pack the one that is meant.",
                    about="file",
                )
            with archive.open(names[0]) as member:
                yield member
    elif packing:
        import pyarrow as pa

        with pa.CompressedInputStream(pa.PythonFile(file, mode="r"), PACKED[packing]) as stream:
            yield stream
    else:
        yield file


def _copy(source: IO[bytes], target: IO[bytes], most: int | None) -> None:
    taken = 0
    while chunk := source.read(PIECE):
        taken += len(chunk)
        if most is not None and taken > most:
            raise DataError(
                f"The file unpacks to more than {most // 10**6} megabytes.",
                "The desk takes no more.",
                "Send less data.",
                about="file",
            )
        target.write(chunk)
