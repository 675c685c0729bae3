"""One way to read a published CSV file: the layout says what each column is, the header says which are there."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from discreet.words.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

Type: TypeAlias = Literal["text", "whole", "real"]


@dataclass(frozen=True, slots=True)
class FileLayout:
    """What a published file looks like.

    Attributes
    ----------
    name : what messages call it.
    required : columns without which it is another file.
    type_of : the type of a column by its name; codes are text.
    home : where its publisher describes it.
    """

    name: str
    required: tuple[str, ...]
    type_of: Callable[[str], Type]
    home: str


def read_csv(path: str | Path, layout: FileLayout) -> pa.Table:
    """The file as a table, gzipped or not. An empty field and NA are nulls, in text too."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    header = _header(Path(path), layout)
    absent = [name for name in layout.required if name not in header]
    if absent:
        there = ", ".join(name for name in header[:9] if name.isprintable()) or "nothing that can be read"
        raise DataError(
            f"{str(path)!r} is not a {layout.name} file: its first line lacks {', '.join(absent)} and "
            f"starts with {there}.",
            f"The layout is described at {layout.home}.",
            "Give a file of this layout.",
            about="path",
        )
    types = {"text": pa.string(), "whole": pa.int64(), "real": pa.float64()}
    options = arrow_csv.ConvertOptions(
        column_types={name: types[layout.type_of(name)] for name in header},
        null_values=["", " ", "NA"],
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
    )
    try:
        return arrow_csv.read_csv(path, convert_options=options)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(
            f"{str(path)!r} starts like a {layout.name} file but cannot be read to its end: {error}.",
            "It may be cut off or damaged.",
            f"Fetch it again from its publisher ({layout.home}).",
            about="path",
        ) from None


def _header(path: Path, layout: FileLayout) -> list[str]:
    import pyarrow as pa

    try:
        with pa.input_stream(path) as stream:
            start = stream.read(1 << 16)
    except OSError as error:
        raise DataError(
            f"{str(path)!r} cannot be read as a {layout.name} file: {error}.",
            "A file that can be opened is a CSV file, gzipped if its name ends in .gz.",
            "Check the path and the rights to it.",
            about="path",
        ) from None
    line = start.decode("utf-8-sig", errors="replace").partition("\n")[0].strip("\r")
    try:
        return next(csv.reader([line]), [])
    except csv.Error:  # no line of a table, as in a file of another program
        return []
