"""Files that somebody sends: kept under names of our own for as long as the work on them lasts."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.datastructures import FormData, UploadFile

from discreet.errors import DataError
from discreet.web.confined import ENDINGS


@contextmanager
def kept(form: FormData, *fields: str) -> Iterator[dict[str, str]]:
    """The files of a form by field; those that were not sent are left out."""
    with tempfile.TemporaryDirectory(prefix="discreet-upload-") as folder:
        found = {}
        for field in fields:
            sent = form.get(field)
            if isinstance(sent, UploadFile) and sent.filename:
                found[field] = str(_copied(sent, Path(folder), field))
        yield found


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
