"""The border: any table comes in, a checked lazy frame goes on, an Arrow table of aggregates comes out.

`as_lazy` opens what the user has, `require` and `tally` check it, `collect` is the one place where a query runs.
Relational steps are written elsewhere, in narwhals, and run unchanged on every engine; which engine that is, the
data's type decides. Files and frames in memory (pandas, Polars, Arrow) are scanned by an embedded DuckDB; DuckDB
relations, Spark frames, Polars lazy frames and narwhals frames stay where they are.
No message from here carries a value of the data: engines quote rows in theirs, so only the harmless ones pass.
"""

from __future__ import annotations

import contextlib
import csv
import difflib
import functools
import glob
import gzip
import os
import threading
import zlib
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

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

# DuckDB's other exceptions may quote the value that broke them.
HARMLESS = frozenset(
    {"BinderException", "CatalogException", "ParserException", "OutOfMemoryException", "PermissionException"}
)

# Without BOOLEAN, so that labels such as yes and no, or T and F, stay what they are.
CSV_TYPES = ["NULL", "BIGINT", "DOUBLE", "TIME", "DATE", "TIMESTAMP", "TIMESTAMPTZ", "VARCHAR"]

# A DuckDB connection runs one query at a time, whatever the number of threads that hold it.
_TURN = threading.RLock()


def as_lazy(
    data: Any,
    *,
    name: str | None = None,
    table: str | None = None,
    connection: duckdb.DuckDBPyConnection | None = None,
    numbers: Collection[str] = (),
) -> Frame:
    """Open `data` as a lazy frame in the engine that its type names; nothing is read but its schema.

    A path is a Parquet file, a directory or a glob of them, a CSV file (also gzipped), or a DuckDB file with its
    table: `jobs.duckdb::jobs`, or `table="jobs"`. `name` is what messages call it (a file is called by its own
    name); `connection` is the DuckDB connection for files and frames in memory (the process has one of its own).
    The rows of a CSV file decide the types of its columns, but for `numbers`, which are numbers whatever a row holds.
    """
    import narwhals.stable.v2 as nw

    home, name = connection or _home(), name or called(data)
    if isinstance(data, str | Path):
        frame = nw.from_native(_scan(str(data), name=name, table=table, connection=home, numbers=numbers))
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
        # Without a header line the first row stands for the names, and a row must not be shown.
        refuse(
            [
                f"{name} has none of the columns {', '.join(map(repr, columns))}. A CSV file may lack its header line. "
                "Add the line, or name the columns in the schema as they are."
            ]
        )
    faults = [missing(column, schema, name=name) for column in columns if column not in schema]
    for column in columns.keys() & schema.keys():
        dtype, kind = schema[column], columns[column]
        labelled = dtype in (nw.String, nw.Boolean) or dtype.is_integer()
        if not {"label": labelled, "integer": dtype.is_integer(), "number": dtype.is_numeric()}[kind]:
            faults.append(
                f"Column {column!r} of {name} holds {dtype}, where {KINDS[kind]} are needed. Cast it at the source."
            )
    refuse(sorted(faults))


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


def quoted(identifier: str) -> str:
    """`identifier` as SQL writes it."""
    return '"' + identifier.replace('"', '""') + '"'


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
    text: str, *, name: str, table: str | None, connection: duckdb.DuckDBPyConnection, numbers: Collection[str] = ()
) -> Any:
    """A DuckDB relation over the file or files at a path."""
    import duckdb

    text, _, inner = text.partition("::")
    path, table = Path(text), table or inner or None
    kind = _format(path)
    _find(path, name=name)
    try:
        if kind == "DuckDB":
            return _attach(path, table, name=name, connection=connection)
        if kind == "CSV":
            # The whole file decides a column's type, so that codes with leading zeros stay text.
            how: dict[str, Any] = {"header": True, "sample_size": -1, "auto_type_candidates": CSV_TYPES}
            found = connection.read_csv(text, **how)
            _refuse_ragged(text, found.columns, name=name)
            _refuse_renamed(text, found.columns, name=name, connection=connection)
            read = [column for column in found.columns if column in numbers]
            if read:
                # DuckDB would do a bare cast while it reads, where one that fails is an error.
                cast = ", ".join(f"TRY_CAST(trim({quoted(column)}) AS DOUBLE) AS {quoted(column)}" for column in read)
                texts = connection.read_csv(text, **how, dtype=dict.fromkeys(read, "VARCHAR"))
                return texts.project(f"* REPLACE ({cast})")
            return found
        if path.is_dir():
            everything = str(path / "**" / "*.parquet").replace("'", "''")
            # Folders such as state=06 are a column, of text.
            options = "hive_partitioning = true, hive_types_autocast = false"
            return connection.sql(f"SELECT * FROM read_parquet('{everything}', {options})")
        return connection.read_parquet(text)
    except duckdb.Error as error:
        if kind == "CSV":
            _refuse_ragged(text, [], name=name)
        raise DataError(
            f"{name}: {text!r} cannot be read as {kind} ({type(error).__name__}). It may be damaged, cut off, locked "
            "or of another format than its name says. Write it again from its source, or rename it."
        ) from None


def _refuse_ragged(text: str, columns: list[str], *, name: str) -> None:
    """Refuse a CSV file whose header line is not what DuckDB found, if a line or its ending is to blame.

    DuckDB then takes another line for the header, or the whole line for one column, and says nothing. Lines are told by
    number, never by content.
    """
    path = min(glob.iglob(text), default=text)  # noqa: PTH207 (as DuckDB matches)
    opened = gzip.open if path.casefold().endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as file:
            first = file.readline()
            mark = max(",;\t|", key=first.count)
            file.seek(0)
            lines = csv.reader(file, delimiter=mark)
            header = [cell.strip() for cell in next(lines, [])]
            named = zip(header, columns, strict=False)
            if len(columns) == len(header) and all(cell in ("", found) for cell, found in named):
                return
            odd = next(((lines.line_num, len(cells)) for cells in lines if len(cells) not in (0, len(header))), None)
            file.seek(0)
            endings = {line[len(line.rstrip("\r\n")) :] for line in file} if odd is None else set()
    except (OSError, EOFError, zlib.error, csv.Error):
        return
    if odd is not None and mark in first:
        number, cells = odd
        raise DataError(
            f"{name}: line {number} has {cells} {'field' if cells == 1 else 'fields'}, and the first line, which names "
            f"the columns, has {len(header)}. All lines have as many. Correct the line, or put fields that hold "
            f"{mark!r} in quotes."
        )
    if {"\n", "\r\n"} <= endings:
        raise DataError(
            f"{name}: some lines end as on Windows (CR LF) and others do not (LF). A CSV file has one kind of line "
            "end. Write it again with one."
        )


def _refuse_renamed(text: str, columns: list[str], *, name: str, connection: duckdb.DuckDBPyConnection) -> None:
    """Refuse a header line with one name twice, in any case: DuckDB calls the second x_1 and says nothing."""
    known = {column.casefold() for column in columns}
    if not any(
        base in known for base, mark, number in (c.casefold().rpartition("_") for c in columns) if number.isdigit()
    ):
        return
    lines = connection.read_csv(text, header=False, all_varchar=True).limit(1).fetchall()
    header = [str(cell).strip().casefold() for line in lines for cell in line if cell is not None]
    if len(set(header)) < len(header):
        raise DataError(
            f"{name} has two columns of one name in its header line, or no header line. Names tell columns apart, "
            "whatever their case. Rename one of them, or add the line."
        )


def _format(path: Path) -> str:
    ending = "".join(path.suffixes).casefold().removesuffix(".gz").rpartition(".")[2]
    known = {"csv": "CSV", "tsv": "CSV", "parquet": "Parquet", "pq": "Parquet", "duckdb": "DuckDB", "ddb": "DuckDB"}
    if os.path.isdir(path):  # noqa: PTH112 (no error for what cannot be a path)
        return "Parquet"
    if ending in known:
        return known[ending]
    raise DataError(
        f"{str(path)!r} ends in {path.suffix!r}, which is not a table that can be opened. "
        "Give .parquet, .csv, .csv.gz or .duckdb::table, a directory of Parquet files, or a frame."
    )


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
