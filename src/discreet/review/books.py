"""Excel files of a bundle: each is made again from the Parquet file beside it, and compared.

Nothing of an Excel file is interpreted. Its parts are compared as bytes, and reading stops where they differ.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from itertools import zip_longest
from pathlib import Path
from typing import IO, TYPE_CHECKING

from discreet.archive.findings import RefutedError, UncheckedError
from discreet.results import write_excel
from discreet.words.errors import DataError, MissingExtra

if TYPE_CHECKING:
    import pyarrow as pa

PIECE = 2**20
SHEETS = "xl/worksheets/"


def check_book(path: Path, table: pa.Table, about: Mapping[str, str]) -> None:
    """An Excel file has the rows of its table, the sheet about it, and nothing else."""
    again = BytesIO()
    try:
        write_excel(table, again, dict(about))
    except MissingExtra:
        raise UncheckedError("its Excel files: what writes them (the extra `excel`) is not installed here") from None
    except DataError:
        raise RefutedError(f"{path.name} has more rows than an Excel file") from None
    with zipfile.ZipFile(path) as stated, zipfile.ZipFile(again) as made:
        names = stated.namelist()
        if sorted(names) != sorted(made.namelist()):
            raise RefutedError(f"{path.name} has other parts than discreet writes")
        odd = [name for name in names if not _equal(stated, made, name)]
    if any(name.startswith(SHEETS) for name in odd):
        raise RefutedError(f"{path.name} does not hold the rows of the other formats")
    if odd:
        raise UncheckedError(f"{path.name} holds the same rows; another program, or another version, laid it out")


def _equal(stated: zipfile.ZipFile, made: zipfile.ZipFile, name: str) -> bool:
    with stated.open(name) as one, made.open(name) as other:
        return all(a == b for a, b in zip_longest(_pieces(one), _pieces(other)))


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(PIECE):
        yield piece
