"""Files that somebody sends: kept under names of our own for as long as the work on them lasts.

A folder is locked while its desk is at work on it, so that a desk knows which folders one that was killed left behind.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from starlette.datastructures import FormData, UploadFile

from discreet.errors import DataError
from discreet.ledger.lock import alone
from discreet.web.sandbox import ENDINGS

PREFIX = "discreet-upload-"
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
    ending = Path(sent.filename or "").suffix.lower()
    if ending not in ENDINGS:
        raise DataError(
            f"A file of type {ending[:10] or 'unknown'!r} was sent. The desk reads CSV and Parquet. Send one of these."
        )
    path = folder / f"{field}{ending}"
    with path.open("wb") as file:
        shutil.copyfileobj(sent.file, file)
    return path
