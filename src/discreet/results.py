"""The shape of every result: a table, its exports, a file and a page.

`tidy` gives every result the columns of `COLUMNS`, so a private fit joins a plain one on `KEYS`. `to_arrow` is the
table as the result's own field knows it, such as one column for each attribute of a count. The rest follows from these.
"""

from __future__ import annotations

import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from importlib import import_module
from io import BytesIO
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Vector
from discreet.data.columns import column_of
from discreet.words.errors import DataError, MissingExtra
from discreet.words.extras import needs
from discreet.words.faults import Argument

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = {
    "effect": "what is estimated: fixed, variance, random, count, sum, mean, flow, change, probability, quantile, ...",
    "group": "grouping factor of an effect, Residual for the residual variance; attributes of a count",
    "term": "name of the coefficient; of a covariance, both",
    "level": "level of the grouping factor; values of a count's attributes; the question that a posterior answers",
    "estimate": "the estimate; of a posterior, its mean",
    "std_error": "its standard error, noise included; of a posterior, its standard deviation",
    "lower": "lower end of the 95 % interval, or of the level that was asked for",
    "upper": "upper end of the same",
    "flag": "a count's quality, or why the estimate must not be read as it stands",
}
KEYS = ("effect", "group", "term", "level")
NORMAL = 1.959963984540054  # the normal law's quantile at 0.975
SEE_NOTES = "see notes"
ROWS_SHOWN = 10
EXCEL_ROWS = 2**20 - 1  # below the line of names
EXCEL_TEXT = 2**15 - 1  # units of UTF-16 in a cell
EXCEL_HOLDS = f"A cell has room for {EXCEL_TEXT:,} characters, and for no control characters but tabs and new lines."
ESCAPED = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]|_x[0-9A-Fa-f]{4}_")
EXCEL_TIME = datetime(1980, 1, 1, tzinfo=UTC)


class Result(ABC):
    """What every estimate and every release can do."""

    __slots__ = ()

    @abstractmethod
    def tidy(self) -> pa.Table:
        """One row for each estimate, in the columns of `discreet.results.COLUMNS`."""

    def to_arrow(self) -> pa.Table:
        """The result as a PyArrow table."""
        return self.tidy()

    def to_pandas(self) -> Any:
        """The table of `to_arrow` as a pandas frame."""
        _frames("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The table of `to_arrow` as a Polars frame."""
        return _frames("polars").from_arrow(self.to_arrow())

    def save(self, path: str | Path) -> Path:
        """Write the table of `to_arrow` to a file: .csv, .parquet or .xlsx, in small or capital letters.

        The file appears complete or not at all; an earlier one is replaced. Parquet and Excel files also hold what the
        release promises.

        Parameters
        ----------
        path : where to write, and by its ending in which format.

        Returns
        -------
        The path.
        """
        if not isinstance(path, str | PathLike):
            raise DataError(
                (Argument("path", path), " is no path."),
                f"A result is saved as {', '.join(WRITERS)}.",
                "Use for example 'result.csv'.",
                about="path",
            )
        path = Path(path)
        ending = path.suffix.casefold()
        if ending not in WRITERS:
            raise DataError(
                f"A result cannot be saved as {path.name!r}.",
                f"It is saved as {', '.join(WRITERS)}.",
                f"Use for example {path.stem or 'result'}.csv.",
                about="path",
            )
        if not path.parent.is_dir():
            raise DataError(
                f"A result cannot be saved in {str(path.parent)!r}: there is no such folder.",
                "A file is written in a folder that exists.",
                "Make the folder first.",
                about="path",
            )
        beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            WRITERS[ending](self.to_arrow(), beside, _about(self))
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
        return path

    def _repr_html_(self) -> str:
        table = self.to_arrow()
        head = "".join(f"<th>{escape(name)}</th>" for name in table.column_names)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(_shown(value))}</td>" for value in row.values()) + "</tr>"
            for row in table.slice(0, ROWS_SHOWN).to_pylist()
        )
        more = f"<p>The first {ROWS_SHOWN} of {len(table):,} rows.</p>" if len(table) > ROWS_SHOWN else ""
        said = "".join(f"<p>{escape(text)}</p>" for text in _about(self).values())
        return f"{said}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def rows_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows as a PyArrow table."""
    import pyarrow as pa

    return pa.Table.from_pylist([dict(row) for row in rows])


def tidy_table(
    *,
    effect: str | Sequence[str],
    estimate: Any,
    group: str | Sequence[str | None] | None = None,
    term: str | Sequence[str | None] | None = None,
    level: str | Sequence[str | None] | None = None,
    std_error: Any = None,
    lower: Any = None,
    upper: Any = None,
    flag: str | Sequence[str | None] | None = None,
) -> pa.Table:
    """A table of `COLUMNS`. One value stands for all rows; a number that is none or infinite is null."""
    import pyarrow as pa

    size = len(estimate)
    words = {"effect": effect, "group": group, "term": term, "level": level, "flag": flag}
    numbers = {"estimate": estimate, "std_error": std_error, "lower": lower, "upper": upper}
    columns = {name: _words(given, size) for name, given in words.items()}
    columns |= {name: _numbers(given, size) for name, given in numbers.items()}
    if lower is not None and upper is not None:
        columns["lower"], columns["upper"] = both_ends(lower, upper)
    return pa.table({name: columns[name] for name in COLUMNS})


def complete(lower: Any, upper: Any) -> tuple[Vector, Vector]:
    """The ends of intervals, both NaN where one is missing: in files an interval has two ends or none."""
    low, high = (np.asarray(values, dtype=float) for values in (lower, upper))
    missing = ~(np.isfinite(low) & np.isfinite(high))
    return np.where(missing, np.nan, low), np.where(missing, np.nan, high)


def both_ends(lower: Any, upper: Any) -> tuple[pa.Array, pa.Array]:
    """The ends of intervals as columns, both null where one is missing."""
    low, high = (column_of(end, missing=np.isnan(end)) for end in complete(lower, upper))
    return low, high


def normal_ends(estimate: Any, std_error: Any) -> tuple[Vector, Vector]:
    """The ends of 95 % intervals of normal estimates; NaN where there is no standard error."""
    middle, error = (np.asarray(values, dtype=float) for values in (estimate, std_error))
    return middle - NORMAL * error, middle + NORMAL * error


def _words(given: str | Sequence[str | None] | None, size: int) -> pa.Array:
    import pyarrow as pa

    values = [given] * size if given is None or isinstance(given, str) else list(given)
    return pa.array(values, pa.string())


def _numbers(given: Any, size: int) -> pa.Array:
    import pyarrow as pa

    values = np.full(size, np.nan) if given is None else np.asarray(given, dtype=float)
    return pa.array(values, pa.float64(), mask=~np.isfinite(values))


def _about(result: Result) -> dict[str, str]:
    """Notes that a reader of the table needs."""
    found = {"result": repr(result)}
    promise = getattr(result, "guarantee", None)
    if promise is not None and str(promise) not in found["result"]:
        found["guarantee"] = str(promise)
    notes = getattr(result, "notes", ())
    return found | {f"note {i}": note for i, note in enumerate(notes, start=1)}


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _write_csv(table: pa.Table, path: Path, about: dict[str, str]) -> None:
    import pyarrow.csv

    pyarrow.csv.write_csv(table, path)


def _write_parquet(table: pa.Table, path: Path, about: dict[str, str]) -> None:
    import pyarrow.parquet

    told = {f"discreet {name}": text for name, text in about.items()}
    pyarrow.parquet.write_table(table.replace_schema_metadata(told), path, compression="zstd")


def write_excel(table: pa.Table, path: Path | BytesIO, about: dict[str, str]) -> None:
    """Words stay words: none becomes a formula or a link."""
    with needs("excel", "Saving a result as an Excel file"):
        import xlsxwriter
        from xlsxwriter.exceptions import FileCreateError

    if len(table) > EXCEL_ROWS:
        raise DataError(
            f"A table of {len(table):,} rows does not fit in an Excel file.",
            f"A sheet has room for {EXCEL_ROWS:,}.",
            "Save it as .csv or .parquet.",
            about="path",
        )
    beside = path.parent if isinstance(path, Path) else None  # what is full is then the disk of the file itself
    with TemporaryDirectory(dir=beside, prefix=".", ignore_cleanup_errors=True) as scratch:
        options = {"constant_memory": True, "tmpdir": scratch, "use_zip64": True}
        try:
            with xlsxwriter.Workbook(path, options) as book:
                _fill(book, table, about)
        except FileCreateError as error:
            raise error.args[0] from None


def changed_in_excel(table: pa.Table) -> str | None:
    """The first column with a text that readers of an Excel file would get otherwise, or not at all."""
    import pyarrow.types as kinds

    name: str
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type.value_type if kinds.is_dictionary(column.type) else column.type
        texts = column.unique().to_pylist() if kinds.is_string(kind) or kinds.is_large_string(kind) else []
        if any(not _fits(text) for text in [name, *texts] if text is not None):
            return name
    return None


def _fits(text: str) -> bool:
    return not ESCAPED.search(text) and len(text.encode("utf-16-le")) <= 2 * EXCEL_TEXT


def _save_excel(table: pa.Table, path: Path, about: dict[str, str]) -> None:
    column = changed_in_excel(table)
    if column is not None:
        raise DataError(
            f"A text of column {column!r} does not fit in an Excel file.",
            EXCEL_HOLDS,
            "Save it as .csv or .parquet.",
            about="path",
        )
    write_excel(table, path, about)


def _fill(book: Any, table: pa.Table, about: dict[str, str]) -> None:
    book.set_properties({"created": EXCEL_TIME})  # the same table, the same bytes
    sheet = book.add_worksheet("result")
    for column, name in enumerate(table.column_names):
        sheet.write_string(0, column, name)
    for row, values in enumerate(_rows(table), start=1):
        for column, value in enumerate(values):
            if isinstance(value, bool):
                sheet.write_boolean(row, column, value)
            elif isinstance(value, int | float) and np.isfinite(value):
                sheet.write_number(row, column, value)
            elif value is not None:
                sheet.write_string(row, column, str(value))
    sheet = book.add_worksheet("about")
    for row, (name, text) in enumerate(about.items()):
        sheet.write_string(row, 0, name)
        sheet.write_string(row, 1, text)


def _rows(table: pa.Table) -> Any:
    for batch in table.to_batches(max_chunksize=10_000):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


WRITERS = {".csv": _write_csv, ".parquet": _write_parquet, ".xlsx": _save_excel}


def _frames(library: str) -> Any:
    try:
        return import_module(library)
    except ImportError:
        raise MissingExtra(
            f"A frame of {library} was asked for, and {library} is not installed.",
            "`to_arrow` and `save` do not need it.",
            f"Install it with: pip install {library}",
        ) from None
