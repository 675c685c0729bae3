"""The border: any table comes in, a checked lazy frame goes on, an Arrow table of aggregates comes out.

`as_lazy` opens what the user has, `require` and `tally` check it, `collect` is the one place where a query runs.
Relational steps are written elsewhere, in narwhals, and run unchanged on every engine; which engine that is, the
data's type decides. Files and frames in memory (pandas, Polars, Arrow) are scanned by an embedded DuckDB; DuckDB
relations, Spark frames, Polars lazy frames and narwhals frames stay where they are.
No message from here carries a value of the data: engines quote rows in theirs, so only the harmless ones pass.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import glob
import os
import threading
from collections.abc import Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from discreet import delimited
from discreet.delimited import Reading, quoted
from discreet.errors import DataError, DiscreetError, EngineError
from discreet.faults import Fault

if TYPE_CHECKING:
    import duckdb
    import narwhals.stable.v2 as nw
    import pyarrow as pa

    Frame: TypeAlias = nw.LazyFrame[Any]

Name = TypeVar("Name", bound=Hashable)
Kind: TypeAlias = Literal["label", "integer", "number"]
KINDS: dict[Kind, str] = {
    "label": "text, whole numbers or true/false",
    "integer": "whole numbers",
    "number": "numbers",
}

WRITTEN = {
    True: (
        "As fractions two of them could be one: spreadsheets make 1.2E+17 of long numbers.",
        "Cast it at the source, or format the column as text before it is saved.",
    ),
    False: ("Numbers have a decimal point, and no mark for thousands.", "Cast it at the source, or write it so."),
}
"""How a label is written, and how a number is."""

# DuckDB's other exceptions may quote the value that broke them.
HARMLESS = frozenset(
    {"BinderException", "CatalogException", "ParserException", "OutOfMemoryException", "PermissionException"}
)

# A DuckDB connection runs one query at a time, whatever the number of threads that hold it.
_TURN = threading.RLock()


def as_lazy(
    data: Any,
    *,
    name: str | None = None,
    table: str | None = None,
    connection: duckdb.DuckDBPyConnection | None = None,
    readings: Mapping[str, Reading] | None = None,
) -> Frame:
    """Open `data` as a lazy frame in the engine that its type names; nothing is read but its schema.

    A path is a Parquet file, a directory or a glob of them, a CSV file (also .gz or .zst), or a DuckDB file with its
    table: `jobs.duckdb::jobs`, or `table="jobs"`. `name` is what messages call it (a file is called by its own
    name); `connection` is the DuckDB connection for files and frames in memory (the process has one of its own).
    The rows of a CSV file decide the types of its columns, but for those with a reading.
    """
    import narwhals.stable.v2 as nw

    home, name = connection or _home(), name or called(data)
    if isinstance(data, str | Path):
        frame = nw.from_native(_scan(str(data), name=name, table=table, connection=home, readings=readings))
    elif isinstance(data, nw.DataFrame | nw.LazyFrame):
        frame = data
    else:
        arrow = to_arrow(data, name=name)
        try:
            frame = nw.from_native(data if arrow is None else home.from_arrow(arrow))
        except TypeError:
            raise DataError(
                f"{name} is a {type(data).__name__}, which is not a table. Give a path (Parquet, CSV, DuckDB), a "
                "pandas, Polars or Arrow table, a DuckDB relation, a Spark frame or a mapping of columns."
            ) from None
    lazy: Frame = frame.lazy()
    coded = [column for column, dtype in lazy.collect_schema().items() if dtype in (nw.Categorical, nw.Enum)]
    return lazy.with_columns(nw.col(*coded).cast(nw.String)) if coded else lazy


def called(data: Any) -> str:
    """What messages call data that were given no name."""
    return Path(data).name if isinstance(data, str | Path) else "data"


def to_arrow(data: Any, *, name: str) -> pa.Table | None:
    """The Arrow table of a frame in memory, or None for what is not in memory."""
    import narwhals.stable.v2 as nw
    import pyarrow as pa

    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    if isinstance(data, Mapping):
        try:
            return pa.Table.from_pydict(dict(data))
        except (TypeError, ValueError, OverflowError, NotImplementedError):  # Arrow's message may quote a value
            raise DataError(
                f"{name} is a mapping whose columns are no table. Columns have one length each and hold one type that "
                "a database knows. Convert them, for example to arrays of numbers."
            ) from None
    if nw.dependencies.is_polars_dataframe(data):
        return data.to_arrow()
    if not nw.dependencies.is_pandas_dataframe(data):
        return None
    if not data.columns.is_unique:
        raise DataError(f"{name} has two columns of one name. Rename one of them.")
    return pa.table({str(column): _to_arrow_column(data[column], name=name) for column in data.columns})


def require(frame: Frame, columns: Mapping[str, Kind], *, name: str) -> None:
    """Refuse a frame that lacks one of `columns` or has it in another type; reads the schema only."""
    import narwhals.stable.v2 as nw

    schema = frame.collect_schema()
    if columns and not columns.keys() & schema.keys():
        refuse([_other_columns(columns, list(schema), name=name)])
    faults: list[Fault] = [
        Fault(None, missing(column, schema, name=name)) for column in columns if column not in schema
    ]
    for column in columns.keys() & schema.keys():
        dtype, kind = schema[column], columns[column]
        labelled = dtype in (nw.String, nw.Boolean) or dtype.is_integer()
        if not {"label": labelled, "integer": dtype.is_integer(), "number": dtype.is_numeric()}[kind]:
            asked = f"Column {column!r} of {name} holds {dtype}, where {KINDS[kind]} are needed."
            faults.append(Fault(None, asked, *WRITTEN[kind == "label"]))
    faults.sort(key=lambda fault: fault.said())
    refuse(faults)


def _other_columns(columns: Mapping[str, Kind], present: list[str], *, name: str) -> Fault:
    """A table has nothing that was asked for. Without a header line its names are a row, which must not be shown."""
    asked = f"{name} has none of the columns {', '.join(map(repr, columns))}."
    folded = {"".join(filter(str.isalnum, column.casefold())): column for column in present}
    alike = {column: folded.get("".join(filter(str.isalnum, column.casefold()))) for column in columns}
    if all(alike.values()):
        return Fault(
            None, asked, f"It has {', '.join(repr(found) for found in alike.values())}.",
            "Name the columns in the schema as they are, or rename them.",
        )  # fmt: skip
    if len(present) == 1 and len(columns) > 1:
        return Fault(
            None, f"{name} has one column, and {len(columns)} are asked for.",
            "Fields are told apart by a comma, a semicolon, a tab or a bar, and the first line names the columns.",
            "Write the file with one of these.",
        )  # fmt: skip
    return Fault(
        None, asked, "The first line of a CSV file names the columns; it may be missing, or stand below others.",
        "Make it the first line, or name the columns in the schema as they are.",
    )  # fmt: skip


def missing(column: str, present: Iterable[str], *, name: str) -> str:
    """The words for a column that is not there: those that are, and the near misses."""
    there = list(present)
    folded = {other.casefold(): other for other in there}
    near = [folded[match] for match in difflib.get_close_matches(column.casefold(), folded, n=2)]
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else " Rename a column or name another."
    return f"Column {column!r} is not in {name}; it has: {', '.join(there) or 'no columns'}.{hint}"


def holds(dtype: nw.dtypes.DType, value: object) -> bool:
    """Whether a column of that type can hold `value`: text, a truth or a whole number."""
    import narwhals.stable.v2 as nw

    if isinstance(value, int) and not isinstance(value, bool):
        return dtype.is_integer()
    return dtype == (nw.Boolean if isinstance(value, bool) else nw.String)


def count_if(condition: nw.Expr) -> nw.Expr:
    """The aggregate that counts the rows that meet `condition`; a null does not."""
    import narwhals.stable.v2 as nw

    return condition.cast(nw.Int64).sum()


def tally(frame: Frame, aggregates: Mapping[Name, nw.Expr], *, step: str) -> dict[Name, int]:
    """Whole-number aggregates of a frame by their names, all of them in one pass."""
    columns = [aggregate.alias(f"n{i}") for i, aggregate in enumerate(aggregates.values())]
    with working(step, frame):
        row = collect(frame.select(*columns), step=step).to_pylist()[0] if columns else {}
    return {name: int(row[f"n{i}"] or 0) for i, name in enumerate(aggregates)}


def collect(frame: Frame, *, step: str) -> pa.Table:
    """Run the query and fetch its rows. `step` says what the query means; a failure is named after it."""
    native = frame.to_native()
    with working(step, frame), _TURN:
        if hasattr(native, "to_arrow_table"):  # DuckDB hands over its table as it is
            return native.to_arrow_table()
        return frame.collect("pyarrow").to_native().select(frame.collect_schema().names())


@contextlib.contextmanager
def working(step: str, frame: Frame | None = None) -> Iterator[None]:
    """Turn an engine's failure into an `EngineError` with the step's name and the query of `frame`.

    Its own message may quote data and is dropped. Tables in memory fail while a query is built, others when it runs.
    """
    try:
        yield
    except DiscreetError:
        raise
    except Exception as error:
        kind, condition = type(error).__name__, getattr(error, "getCondition", lambda: None)()
        reason = str(error).splitlines()[0] if kind in HARMLESS else condition
        raise EngineError(
            f"Step {step!r} failed in the engine with {kind}{f' ({reason})' if reason else ''}. More of its message is "
            "withheld, because it can quote data. Check that the files of the query are whole and that all tables are "
            f"in one engine, or run the query there to see more.\n{'' if frame is None else query_of(frame)}"
        ) from None


def query_of(frame: Frame) -> str:
    """The frame's query in its engine's words: SQL, a Spark or a Polars plan; empty for tables in memory."""
    native = frame.to_native()
    if hasattr(native, "sql_query"):
        return str(native.sql_query())
    if hasattr(native, "_jdf"):
        return str(native._jdf.queryExecution().logical())
    return str(native.explain(optimized=False)) if hasattr(native, "explain") else ""


def refuse(faults: Iterable[Fault | str], about: str | None = None) -> None:
    """Raise all `faults` together, if there are any."""
    listed = [fault if isinstance(fault, Fault) else Fault(about, fault) for fault in faults]
    if listed:
        raise DataError(*listed)


def connect(database: str = ":memory:", **settings: str) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection that writes nothing to the standard output, where it would draw its progress."""
    import duckdb

    connection = duckdb.connect(database, config=dict(settings))
    connection.execute("SET enable_progress_bar = false")
    return connection


@functools.cache
def _home() -> duckdb.DuckDBPyConnection:
    """The process's own DuckDB, in memory: one, because only relations of one connection can be joined."""
    return connect()


def _to_arrow_column(column: Any, *, name: str) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.Array.from_pandas(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise DataError(
            f"Column {column.name!r} of {name} mixes types that no database column can hold. "
            "Convert it to one type, for example with astype(str)."
        ) from None


def _scan(
    text: str,
    *,
    name: str,
    table: str | None,
    connection: duckdb.DuckDBPyConnection,
    readings: Mapping[str, Reading] | None,
) -> Any:
    """A DuckDB relation over the file or files at a path."""
    import duckdb

    text, _, inner = text.partition("::")
    path, table = Path(text), table or inner or None
    kind = _format(path, name=name)
    _find(path, name=name)
    try:
        if kind == "DuckDB":
            return _attach(path, table, name=name, connection=connection)
        if kind == "CSV":
            return delimited.scan(text, name=name, connection=connection, readings=readings)
        if path.is_dir():
            everything = str(path / "**" / "*.parquet").replace("'", "''")
            # Folders such as state=06 are a column, of text.
            options = "hive_partitioning = true, hive_types_autocast = false"
            return connection.sql(f"SELECT * FROM read_parquet('{everything}', {options})")
        return connection.read_parquet(text)
    except (duckdb.Error, OSError) as error:
        raise DataError(
            f"{name}: {text!r} cannot be read as {kind} ({type(error).__name__}).",
            "It may be damaged, cut off, locked or of another format than its name says.",
            "Write it again from its source, or rename it.",
        ) from None


def is_csv(data: Any) -> bool:
    """Whether data are the path of a CSV file, as its name says."""
    if not isinstance(data, str | Path):
        return False
    *_, inner, ending = ["", *Path(data).name.casefold().split(".")]
    return (inner if ending in delimited.COMPRESSED else ending) in delimited.ENDINGS


def _format(path: Path, *, name: str) -> str:
    if os.path.isdir(path):  # noqa: PTH112 (no error for what cannot be a path)
        return "Parquet"
    if is_csv(path):
        return "CSV"
    ending = path.suffix.removeprefix(".").casefold()
    known = {"parquet": "Parquet", "pq": "Parquet", "duckdb": "DuckDB", "ddb": "DuckDB"}
    if ending in known:
        return known[ending]
    what, remedy = OTHERS.get(ending, ("is not a table that can be opened", "Give one of these, or a frame."))
    raise DataError(
        f"{name} ends in {path.suffix!r}, which {what}.",
        "Tables are .parquet, .csv (.tsv, .txt; also .csv.gz and .csv.zst), .duckdb::table, or a directory of Parquet "
        "files.",
        remedy,
    )


OTHERS = {
    **dict.fromkeys(
        ("xlsx", "xls", "xlsm", "ods"), ("is a workbook of a spreadsheet", "Save the sheet as 'CSV UTF-8'.")
    ),
    **dict.fromkeys(("zip", "7z", "tar", "rar"), ("is an archive", "Unpack it, or compress the file as .csv.gz.")),
}
"""Endings of files that people have their tables in, and the way from there."""


def _find(path: Path, *, name: str) -> None:
    folder, is_folder = path.parent, os.path.isdir(path)  # noqa: PTH112 (no error for what cannot be a path)
    if is_folder:
        found = any(path.rglob("*.parquet"))
    elif set(path.name) & set("*?["):
        found = any(glob.iglob(path.name, root_dir=folder))  # noqa: PTH207 (no error for odd patterns)
    else:
        found = os.path.isfile(path)  # noqa: PTH113
    if found:
        return
    looked = path if is_folder else folder
    there = sorted(os.listdir(looked)) if os.path.isdir(looked) else []  # noqa: PTH112, PTH208
    near = [like for like in difflib.get_close_matches(path.name, there, n=2) if like != path.name]
    where = os.path.abspath(folder)  # noqa: PTH100
    hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else f"It was looked for in {where!r}."
    raise DataError(f"{name}: no {'Parquet file in' if is_folder else 'file'} {str(path)!r}. {hint}")


def _attach(path: Path, table: str | None, *, name: str, connection: duckdb.DuckDBPyConnection) -> Any:
    alias = f"file_{abs(hash(path.resolve())):x}"
    location = str(path).replace("'", "''")
    connection.execute(f"ATTACH IF NOT EXISTS '{location}' AS {alias} (READ_ONLY)")
    listing = "SELECT table_name FROM information_schema.tables WHERE table_catalog = ? ORDER BY 1"
    tables = [row[0] for row in connection.execute(listing, [alias]).fetchall()]
    if table is None or table not in tables:
        asked = f"there is no table {table!r}" if table else "no table was named"
        raise DataError(f"{name}: in {str(path)!r} {asked}; it has: {', '.join(tables)}. Write {path}::TABLE.")
    return connection.table(f"{alias}.{quoted(table)}")
