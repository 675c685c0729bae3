"""CSV files as people write them: separators, compression, byte marks and types are found out, nothing is guessed.

Nothing is guessed. An unknown encoding or a line that does not fit is refused, with the line's number and a way to
write the file again. A message never holds a value. A file without a header line has its first row in place of names.
"""

from __future__ import annotations

import codecs
import csv
import glob
import io
import itertools
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal, TypeAlias, cast

from discreet.words.errors import DataError

if TYPE_CHECKING:
    import duckdb

Reading: TypeAlias = Literal["number", "response", "outcome", "text", "key"]
"""How a column of a CSV file is read; the file itself has no types.

A number is one, or is missing. A response is the same, and protected: none of its values decides whether it is read.
An outcome is a response that may be true or false, which are 1 and 0. Text is text as written, so that dates and codes
such as 47.10 do not change. A key is text: it is compared and never shown.
"""

NUMBERS = ("number", "response", "outcome")
ENDINGS = ("csv", "tsv", "txt")
COMPRESSED = {"gz": "gzip", "zst": "zstd"}

# Without BOOLEAN, so that labels such as yes and no, or T and F, stay what they are.
TYPES = ["NULL", "BIGINT", "HUGEINT", "DOUBLE", "TIME", "DATE", "TIMESTAMP", "TIMESTAMPTZ", "VARCHAR"]
DAY = "^[0-9]{4}[-/][0-9]+[-/][0-9][0-9T :.]*(Z|[+-][0-9:]+)?$"  # with a time; a zone by its name DuckDB would drop
SEPARATORS = ",;\t|"
SPACES = " \t\u00a0"
AS_UTF8 = "Save it as UTF-8: spreadsheets call it 'CSV UTF-8', and `iconv -f WINDOWS-1252 -t UTF-8` converts a file."

CONTENTS = {
    b"PK\x03\x04": ("a zip file or a workbook of a spreadsheet", "Unpack it, or save the sheet as 'CSV UTF-8'."),
    b"\xd0\xcf\x11\xe0": ("a workbook of a spreadsheet", "Save the sheet as 'CSV UTF-8'."),
    b"PAR1": ("a Parquet file", "Rename it to .parquet."),
    b"\x1f\x8b": ("compressed with gzip", "Rename it to .csv.gz."),
    b"\x28\xb5\x2f\xfd": ("compressed with zstd", "Rename it to .csv.zst."),
}
"""What files that are no text begin with."""


class BadLine(DataError):
    """A line of a CSV file cannot be read. The message gives its number, because nobody could find it otherwise."""

    def __init__(self, line: int, *said: str) -> None:
        super().__init__(*said)
        self.line = line


def quoted(identifier: str) -> str:
    """`identifier` as SQL writes it."""
    return '"' + identifier.replace('"', '""') + '"'


def scan(
    text: str, *, name: str, connection: duckdb.DuckDBPyConnection, readings: Mapping[str, Reading] | None = None
) -> duckdb.DuckDBPyRelation:
    """A DuckDB relation over the CSV file at a path, or the files of a glob; spaces around text are no part of it."""
    import duckdb

    first, *others = paths = _paths(text)
    called = {path: name if not others else Path(path).name for path in paths}
    how = _dialect(first, name=called[first])
    try:
        for path in others:
            _refuse_other(path, first, how, called, connection)
        found = _read(text, how, connection)
    except duckdb.Error:
        for path in paths:
            _refuse_bytes(path, how, name=called[path])
            _refuse_lines(path, how, [], name=called[path])
        raise
    _refuse_lines(first, how, found.columns, name=called[first])
    _refuse_twins(first, how, found.columns, name=called[first], connection=connection)
    return _typed(text, how, found, readings or {}, connection)


def names(text: str) -> list[str]:
    """The names of the columns of a CSV file, or of the first of several, as its head tells."""
    import duckdb

    first = _paths(text)[0]
    try:
        with duckdb.connect() as connection:
            how = _dialect(first, name=Path(first).name)
            return [*_read(first, how, connection, sample_size="20480").columns]
    except (duckdb.Error, OSError):
        raise DataError(
            f"{Path(first).name} cannot be read as CSV.", "Its head names the columns.", "Repair it."
        ) from None


def lines(text: str, columns: list[str], *, rows: int) -> list[tuple[str, int]] | None:
    """The file and the line where each row of a scan begins, as an editor counts; None if nobody can know.

    Titles and blank lines are no rows, and a quoted field may go over several lines.
    """
    found: list[tuple[str, int]] = []
    for path in _paths(text):
        how = _dialect(path, name=text)
        marks = [how["delim"].strip("'")] if "delim" in how else list(SEPARATORS)
        try:
            start = next(filter(None, (_header(path, how, mark, columns) for mark in marks)), None)
            if start is None:
                return None
            mark, header = start
            found += [(path, line) for line, cells in _records(path, how, mark) if cells and line > header]
        except (OSError, EOFError, zlib.error, csv.Error):
            return None
    return found if len(found) == rows else None


FIRST_LINES = 100
"""Among these is the line of names."""


def _header(path: str, how: Mapping[str, str], mark: str, columns: list[str]) -> tuple[str, int] | None:
    """The separator and the line of names, if it is the right one."""
    for line, cells in itertools.islice(_records(path, how, mark), FIRST_LINES):
        if _names(cells, columns):
            return mark, line
    return None


def _names(cells: list[str], columns: list[str]) -> bool:
    """Whether the columns were named by this line; DuckDB has names of its own for those without."""
    spaces = SPACES + "\n\r"
    same = (cell.strip(spaces) in ("", found.strip(spaces)) for cell, found in zip(cells, columns, strict=False))
    return len(cells) == len(columns) and all(same)


def _records(path: str, how: Mapping[str, str], mark: str) -> Iterator[tuple[int, list[str]]]:
    """The line where each record begins, and its fields."""
    with _text(path, how) as file:
        rows, begins = csv.reader(file, delimiter=mark), 1
        for cells in rows:
            yield begins, cells
            begins = rows.line_num + 1


def _text(path: str, how: Mapping[str, str]) -> io.TextIOWrapper:
    encoding = {"utf-8": "utf-8-sig"}.get(how.get("encoding", "'utf-8'").strip("'"), "utf-16")
    return io.TextIOWrapper(opened(path), encoding=encoding, errors="replace", newline="")


def _paths(text: str) -> list[str]:
    return sorted(glob.glob(text, recursive=True)) or [text]  # noqa: PTH207 (as DuckDB matches)


def _refuse_other(
    path: str, first: str, how: Mapping[str, str], called: Mapping[str, str], connection: duckdb.DuckDBPyConnection
) -> None:
    """Refuse a file of several that is written otherwise than the first, or has other columns."""
    if _dialect(path, name=called[path]) != how:
        raise DataError(
            f"{called[path]} has another encoding or separator line than {called[first]}.",
            "Files that are read together are written in one way.",
            "Write them again in one way.",
        )
    one, other = (_read(each, how, connection, sample_size="20480").columns for each in (first, path))
    _refuse_lines(path, how, other, name=called[path])
    if set(one) != set(other):
        raise DataError(
            f"{called[path]} has other columns than {called[first]}, or no line of names.",
            "Files that are read together have the same names in their first lines.",
            "Rename the columns, add the line, or read the files apart.",
        )


def _read(
    text: str, how: Mapping[str, str], connection: duckdb.DuckDBPyConnection, **more: str
) -> duckdb.DuckDBPyRelation:
    # The whole file decides a column's type, so that codes with leading zeros stay text.
    # What begins with '#' is a row like any other, and only '"' quotes.
    fixed = {"header": "true", "sample_size": "-1", "comment": "''", "quote": "'\"'", "escape": "'\"'"}
    # DuckDB would guess between other ways, and take 31/01/20 for a day of 2031; times are looked at in `_guessed`.
    fixed["dateformat"] = "'%Y-%m-%d'"
    options = fixed | {"auto_type_candidates": _list(TYPES)} | dict(how) | more
    path = _literal(text)
    return connection.sql(f"SELECT * FROM read_csv({path}, {', '.join(f'{k} = {v}' for k, v in options.items())})")


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _list(items: list[str]) -> str:
    return f"[{', '.join(map(_literal, items))}]"


def _typed(
    text: str,
    how: Mapping[str, str],
    found: duckdb.DuckDBPyRelation,
    readings: Mapping[str, Reading],
    connection: duckdb.DuckDBPyConnection,
) -> duckdb.DuckDBPyRelation:
    """The columns as they are asked for; a type that the file suggests decides where nothing is."""
    types = dict(zip(found.columns, map(str, found.types), strict=True))
    as_written = [
        column
        for column, reading in readings.items()
        if types.get(column, "VARCHAR") != "VARCHAR"  # whole numbers too: to DuckDB 0x10 is 16, and -0 is 0
        and not (reading == "key" and types[column] == "DOUBLE")  # 1 and 1.0, or 1.2E+17 twice: refused as no key
    ]
    as_written += _guessed(text, how, {c: kind for c, kind in types.items() if c not in as_written}, connection)
    if as_written:
        found = _read(text, how, connection, types=f"{{{', '.join(f'{_literal(c)}: VARCHAR' for c in as_written)}}}")
    sql = {}
    for column, kind in types.items():
        reading, read = readings.get(column), quoted(column)
        bare = f"NULLIF(trim(CAST({read} AS VARCHAR), {_literal(SPACES)}), '')"
        if reading in NUMBERS:
            # DuckDB would do a bare cast while it reads, where one that fails is an error.
            sql[column] = f"TRY_CAST({bare} AS DOUBLE)"
        if reading == "outcome":
            sql[column] = f"CASE lower({bare}) WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 ELSE {sql[column]} END"
        elif reading not in NUMBERS and (kind == "VARCHAR" or column in as_written):
            sql[column] = bare
    if not sql:
        return found
    return found.project(f"* REPLACE ({', '.join(f'{one} AS {quoted(column)}' for column, one in sql.items())})")


def _guessed(
    text: str, how: Mapping[str, str], types: Mapping[str, str], connection: duckdb.DuckDBPyConnection
) -> list[str]:
    """The columns in which a day is not spelled as a year of four digits, a month and a day, so DuckDB guessed."""
    dated = [column for column, kind in types.items() if kind.startswith(("DATE", "TIMESTAMP"))]
    if not dated:
        return []
    spelled = _read(text, how, connection, all_varchar="true")
    each = (f"bool_and(regexp_matches(trim({quoted(c)}), '{DAY}')) IS false" for c in dated)
    return list(itertools.compress(dated, spelled.aggregate(", ".join(each)).fetchall()[0]))


def _dialect(path: str, *, name: str) -> dict[str, str]:
    """The encoding of a file by its first bytes, and the separator that spreadsheets may announce."""
    ending = path.casefold().rpartition(".")[2]
    with open(path, "rb") as raw:  # noqa: PTH123 (an odd path is no error of ours)
        start = raw.read(8)
    for mark, (what, remedy) in CONTENTS.items():
        compressed = COMPRESSED.get(ending, "nothing") in what
        if start.startswith(mark) and not compressed:
            raise DataError(f"{name} is {what} by its content.", "A CSV file is text.", remedy)
        if compressed and not start.startswith(mark):
            raise DataError(
                f"{name} ends in .{ending} and is not {what}.", "It may be whole text, or cut off.",
                "Rename it to .csv, or compress it again.",
            )  # fmt: skip
    if not start:
        raise DataError(f"{name} is empty.", "A CSV file has a line of names and rows.", "Check the export.")
    try:
        with opened(path) as file:
            head = file.read(1 << 16)
    except (OSError, EOFError, zlib.error):
        return {}  # DuckDB finds the same, and says so
    marked = head.startswith(codecs.BOM_UTF16_LE) and not head.startswith(codecs.BOM_UTF32_LE)
    if head.startswith(codecs.BOM_UTF16_BE) or (b"\0" in head and not marked):
        readable = "CSV files are read as UTF-8, or UTF-16 with its mark and its low byte first."
        raise DataError(f"{name} is not UTF-8 text.", readable, AS_UTF8)
    encoding = "utf-16" if marked else "utf-8"
    how = {"encoding": _literal(encoding)}
    announced = re.match(r'\ufeff?"?sep=(.)"?\r?\n', head.decode(encoding, errors="replace"), re.IGNORECASE)
    return how | ({"skip": "1", "delim": _literal(announced[1])} if announced else {})


def opened(path: str) -> IO[bytes]:
    """The bytes of a file, without its compression."""
    import pyarrow as pa

    ending = path.casefold().rpartition(".")[2]
    return cast("IO[bytes]", pa.input_stream(path, compression=COMPRESSED.get(ending)))


def _refuse_bytes(path: str, how: Mapping[str, str], *, name: str) -> None:
    """Refuse a file that is not text in its encoding, by the line where that shows."""
    decoder = codecs.getincrementaldecoder(how.get("encoding", "'utf-8'").strip("'"))()
    lines = 1
    with opened(path) as file:
        while block := file.read(1 << 20):
            try:
                text = decoder.decode(block)
                pair = max(text, default="") > "\uffff" and next(i for i, c in enumerate(text) if c > "\uffff")
                if pair is not False and "utf-16" in how.get("encoding", ""):
                    line = lines + text.count("\n", 0, pair)
                    raise BadLine(
                        line,
                        f"{name}: line {line} has a character that UTF-16 writes as two, such as a picture.",
                        "It is read from UTF-8 alone.",
                        AS_UTF8.replace("WINDOWS-1252", "UTF-16"),
                    )
                lines += text.count("\n")
            except UnicodeDecodeError as error:
                line = lines + error.object[: error.start].count(b"\n")
                raise BadLine(
                    line,
                    f"{name}: line {line} is not UTF-8 text.",
                    "CSV files are read as UTF-8, or UTF-16 with its mark, because another encoding would be a guess.",
                    AS_UTF8,
                ) from None


def _refuse_lines(path: str, how: Mapping[str, str], columns: list[str], *, name: str) -> None:
    """Refuse a file whose header line is not what DuckDB found, if a line or its ending is to blame.

    DuckDB then takes another line for the header, or the whole line for one column, and says nothing. Lines are told by
    number, never by content.
    """
    skipped = int(how.get("skip", "0"))
    try:
        with _text(path, how) as file:
            first = next(itertools.islice(file, skipped, None), "")
        mark = how["delim"].strip("'") if "delim" in how else max(SEPARATORS, key=re.sub('"[^"]*"', "", first).count)
        records = itertools.dropwhile(lambda record: record[0] <= skipped, _records(path, how, mark))
        _, header = next(records, (0, []))
        if _names(header, columns):
            return
        odd = next(((line, len(cells)) for line, cells in records if len(cells) not in (0, len(header))), None)
        with _text(path, how) as file:
            endings = {line[len(line.rstrip("\r\n")) :] for line in file} if odd is None else set()
    except (OSError, EOFError, zlib.error, csv.Error):
        return
    if odd is not None and mark in first:
        number, cells = odd
        fields = f"{cells} {'field' if cells == 1 else 'fields'}"
        raise BadLine(
            number,
            f"{name}: line {number} has {fields}, and the first line, which names the columns, has {len(header)}.",
            "All lines have as many.",
            f"Correct the line, put fields that hold {mark!r} in quotes, or drop a title above the names.",
        )
    if {"\n", "\r\n"} <= endings:
        raise DataError(
            f"{name}: some lines end as on Windows (CR LF) and others do not (LF).",
            "A CSV file has one kind of line end.",
            "Write it again with one.",
        )


def _refuse_twins(
    text: str, how: Mapping[str, str], columns: list[str], *, name: str, connection: duckdb.DuckDBPyConnection
) -> None:
    """Refuse a header line with one name twice, in any case: DuckDB calls the second x_1 and says nothing."""
    known = {column.casefold() for column in columns}
    if not any(
        base in known for base, mark, number in (c.casefold().rpartition("_") for c in columns) if number.isdigit()
    ):
        return
    lines = _read(text, how, connection, header="false", all_varchar="true").limit(1).fetchall()
    header = [str(cell).strip().casefold() for line in lines for cell in line if cell is not None]
    if len(set(header)) < len(header):
        raise DataError(
            f"{name} has two columns of one name in its header line, or no header line.",
            "Column names differ in more than upper and lower case.",
            "Rename one of them, or add the line.",
        )
