"""The border: any table comes in, a checked lazy frame goes on, an Arrow table of aggregates comes out.

`open_frame` opens what the user has, `require` and `tally` check it, `collect` is the one place where a query runs.
Relational steps are written elsewhere, in narwhals, and run unchanged on every engine; which engine that is, the
data's type decides. Files and frames in memory (pandas, Polars, Arrow) are scanned by an embedded DuckDB; DuckDB
relations, Spark frames, Polars lazy frames and narwhals frames stay where they are.
No message from here carries a value of the data: engines quote rows in theirs, so only the harmless ones pass.
"""

from __future__ import annotations

import atexit
import contextlib
import difflib
import functools
import gc
import threading
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast, overload

from discreet.data.databases import Address, SomeColumns, copied, is_address
from discreet.data.delimited import NUMBERS, Reading, quoted
from discreet.data.failures import failure
from discreet.data.one_at_a_time import in_turn
from discreet.data.scans import scan
from discreet.data.untyped import as_numbers, typed
from discreet.words.errors import DataError, DiscreetError, concerning
from discreet.words.faults import Fault

if TYPE_CHECKING:
    import duckdb
    import narwhals.stable.v2 as nw
    import pyarrow as pa

    Frame: TypeAlias = nw.LazyFrame[Any]
    AnyFrame: TypeAlias = nw.DataFrame[Any] | nw.LazyFrame[Any]

Name = TypeVar("Name", bound=Hashable)
Kind: TypeAlias = Literal["label", "integer", "number"]
KINDS: dict[Kind, str] = {
    "label": "text, whole numbers or true/false",
    "integer": "whole numbers",
    "number": "numbers",
}

WRITTEN = {
    True: (
        "As fractions, two of them could become equal: spreadsheets turn long numbers into 1.2E+17.",
        "Cast it at the source, or format the column as text before it is saved.",
    ),
    False: ("Numbers have a decimal point, and no mark for thousands.", "Cast it at the source, or write it so."),
}
"""The spelling of a label, and of a number."""

PERIOD = "pandas.period"
"""What Arrow calls a column of periods."""
OTHERS = ("A code is text, a whole number, or true or false.", "Cast it at the source.")

DATES = ("One date has several spellings.", "Write it as text at the source, such as 2024Q2 or 2024-06-30.")

HEADER = "The first line of a CSV file names the columns; it may be missing, or below others."

_AT_EXIT = functools.cache(atexit.register)


@overload
def open_frame(
    data: Any,
    *,
    name: str | None = ...,
    table: str | None = ...,
    connection: duckdb.DuckDBPyConnection | None = ...,
    readings: Mapping[str, Reading] | None = ...,
) -> Frame: ...
@overload
def open_frame(data: Any, *, readings: Mapping[str, Reading] | None = ..., ordered: Literal[True]) -> AnyFrame: ...
@in_turn
def open_frame(
    data: Any,
    *,
    name: str | None = None,
    table: str | None = None,
    connection: duckdb.DuckDBPyConnection | None = None,
    readings: Mapping[str, Reading] | None = None,
    ordered: bool = False,
) -> AnyFrame:
    """Open `data` as a lazy frame in the engine that its type names; nothing is read but its schema.

    A path is a Parquet file, a directory or a glob of them, a CSV file (also .gz or .zst), or a DuckDB file with its
    table: `jobs.duckdb::jobs`, or `table="jobs"`. A table of a server is `postgresql://user@host/database::jobs`, one
    of SQLite `jobs.sqlite::jobs`; both are copied once, as at one moment (`databases`). `name` is what messages call
    it (a file is called by its own name); `connection` is the DuckDB connection for files and frames in memory (the
    process has one of its own).
    The rows of a CSV file decide the types of its columns, but for those with a reading. With `ordered`, a frame in
    memory stays in memory and its rows keep their order.
    """
    import narwhals.stable.v2 as nw

    home, name = connection or _home(), name or called(data)
    columns, data = (data.columns, data.table) if isinstance(data, SomeColumns) else (None, data)
    with concerning("data" if ordered else None):
        if is_address(data):
            frame = nw.from_native(home.read_parquet(copied(data, columns)))
        elif isinstance(data, str | Path):
            found = scan(str(data), name=name, table=table, connection=home, readings=readings, columns=columns)
            frame = nw.from_native(found)
        elif ordered:
            return _in_memory(data, name=name, readings=readings or {})
        elif isinstance(data, nw.DataFrame | nw.LazyFrame):
            frame = data
        else:
            arrow = to_arrow(data, name=name)
            frame = _frame(data if arrow is None or not arrow.shape[1] else home.from_arrow(arrow), data, name=name)
    lazy: Frame = frame.lazy()
    coded = [column for column, dtype in lazy.collect_schema().items() if dtype in (nw.Categorical, nw.Enum)]
    return lazy.with_columns(nw.col(*coded).cast(nw.String)) if coded else lazy


def _frame(native: Any, data: Any, *, name: str) -> Any:
    """narwhals' frame of a table; `data` is what the user gave."""
    import narwhals.stable.v2 as nw

    try:
        return nw.from_native(native)
    except TypeError:
        raise DataError(
            f"{name} is a {type(data).__name__}, which is not a table.",
            remedy="Give a path (Parquet, CSV, DuckDB), a table of pandas, Polars, Arrow, DuckDB or Spark, or columns.",
            about=name if name.isidentifier() else "data",
        ) from None


def _in_memory(data: Any, *, name: str, readings: Mapping[str, Reading]) -> AnyFrame:
    """The frame as it is, of whatever library; a lazy one stays in its engine."""
    import narwhals.stable.v2 as nw

    numbers = {column: reading for column, reading in readings.items() if reading in NUMBERS}
    if isinstance(data, Mapping):
        doubles = {column: as_numbers(data[column], numbers[column]) for column in numbers if column in data}
        data = to_arrow({**data, **doubles}, name=name)
    try:
        frame: AnyFrame = _frame(data, data, name=name)
        schema = frame.collect_schema()
    except nw.exceptions.DuplicateError:
        raise _twice(name) from None
    if isinstance(frame, nw.LazyFrame) and (frame.implementation.is_pyarrow() or frame.implementation.is_pandas_like()):
        frame = frame.collect()
    if frame.implementation.is_pandas():
        native = frame.to_native()
        objects = [column for column in numbers if column in schema and native[column].dtype == object]
        unread = [c for c, kind in schema.items() if kind == nw.Unknown and getattr(native[c].dtype, "tz", None)]
        columns = {c: typed(native[c]) for c, kind in schema.items() if kind == nw.Object or c in unread}
        columns |= {column: as_numbers(native[column], numbers[column]) for column in objects}
        if columns:
            frame = nw.from_native(native.assign(**columns))
    return frame


def _twice(name: str) -> DataError:
    return DataError(f"{name} has two columns of one name.", remedy="Rename one of them.")


def called(data: Any, otherwise: str = "data") -> str:
    """The name in messages of data that were given none."""
    if is_address(data):
        return Address.of(data).table
    return Path(data).name if isinstance(data, str | Path) else otherwise


def to_arrow(data: Any, *, name: str) -> pa.Table | None:
    """The Arrow table of a frame in memory, or None for what is not in memory."""
    import narwhals.stable.v2 as nw
    import pyarrow as pa

    if isinstance(data, pa.Table | pa.RecordBatchReader):
        return _known(data if isinstance(data, pa.Table) else data.read_all(), name=name)
    if isinstance(data, Mapping):
        try:
            return _known(pa.Table.from_pydict(dict(data)), name=name)
        except (TypeError, ValueError, OverflowError, NotImplementedError):  # Arrow's message may quote a value
            raise DataError(
                f"{name} is a mapping whose columns are no table.",
                "Columns have one length each and hold one type that a database knows.",
                "Convert them, for example to arrays of numbers.",
            ) from None
    if nw.dependencies.is_polars_dataframe(data):
        return _known(data.to_arrow(), name=name)
    if not nw.dependencies.is_pandas_dataframe(data):
        return None
    if not data.columns.is_unique:
        raise _twice(name)
    return _known(pa.table({str(c): _to_arrow_column(data[c], name=name) for c in data.columns}), name=name)


def require(frame: Frame, columns: Mapping[str, Kind], *, name: str) -> None:
    """Refuse a frame that lacks one of `columns` or has it in another type; reads the schema only."""
    import narwhals.stable.v2 as nw

    schema = frame.collect_schema()
    if columns and not columns.keys() & schema.keys():
        refuse([_other_columns(columns, list(schema), name=name)])
    faults: list[Fault] = [missing(column, schema, name=name) for column in columns if column not in schema]
    for column in columns.keys() & schema.keys():
        dtype, kind = schema[column], columns[column]
        labelled = dtype in (nw.String, nw.Boolean) or dtype.is_integer()
        if not {"label": labelled, "integer": dtype.is_integer(), "number": dtype.is_numeric()}[kind]:
            asked = f"Column {column!r} of {name} holds {dtype}, where {KINDS[kind]} are needed."
            written = WRITTEN[kind == "label"] if dtype.is_numeric() or kind != "label" else OTHERS
            faults.append(Fault(None, asked, *(DATES if dtype.is_temporal() else written)))
    faults.sort(key=lambda fault: fault.said())
    refuse(faults)


def _other_columns(columns: Mapping[str, Kind], present: list[str], *, name: str) -> Fault:
    """A table has nothing that was asked for. Without a header line the names are a row, which must not be shown."""
    asked = f"{name} has none of the columns {', '.join(map(repr, columns))}."
    if 2 * len(alike(columns, present)) > len(columns):  # they are names, and no row
        return Fault(
            None, asked, f"It has {', '.join(map(repr, present))}.",
            "Name the columns in the schema as they are, or rename them.",
        )  # fmt: skip
    if len(present) == 1 and len(columns) > 1:
        return Fault(
            None, f"{name} has one column, and {len(columns)} are asked for.",
            "A comma, a semicolon, a tab or a bar separates fields, and the first line names the columns.",
            "Write the file with one of these.",
        )  # fmt: skip
    return Fault(
        None, asked, HEADER, "Make it the first line, or name the columns in the schema as they are.",
    )  # fmt: skip


def alike(columns: Iterable[str], present: Iterable[str]) -> list[str]:
    """Those of `columns` that are present, whatever their capitals, spaces and marks."""
    bare = {"".join(filter(str.isalnum, column.casefold())) for column in present}
    return [column for column in columns if "".join(filter(str.isalnum, column.casefold())) in bare]


def missing(
    column: str, present: Iterable[str], *, name: str, asked: Iterable[str] | None = None, about: str | None = None
) -> Fault:
    """The fault of a column that is not there: those that are, and the near misses.

    If none of the columns that were `asked` for exists, the names may be a row of a file without a header line. They
    are then not shown: a value may be spelled nearly like a name.
    """
    there = list(present)
    if asked is not None and not {each.casefold() for each in (column, *asked)} & {each.casefold() for each in there}:
        none = f"Column {column!r} and all other requested columns are not in {name}."
        return Fault(about, none, HEADER, "Make it the first line, or name other columns.")
    folded = {other.casefold(): other for other in there}
    near = [folded[match] for match in difflib.get_close_matches(column.casefold(), folded, n=2)]
    hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else "Rename a column or name another."
    return Fault(about, f"Column {column!r} is not in {name}.", f"It has: {', '.join(there) or 'no columns'}.", hint)


def as_text(frame: Frame, columns: Iterable[str]) -> Frame:
    """The frame with columns of codes as text: whole numbers as they are spelled, and true and false."""
    import narwhals.stable.v2 as nw

    schema = frame.collect_schema()
    spelled = [column for column in columns if schema[column].is_integer() or schema[column] == nw.Boolean]
    return frame.with_columns(nw.col(*spelled).cast(nw.String)) if spelled else frame


def count_if(condition: nw.Expr) -> nw.Expr:
    """The aggregate that counts the rows that meet `condition`; a null does not."""
    import narwhals.stable.v2 as nw

    return condition.cast(nw.Int64).sum()


def repetitions(frame: Frame, key: str) -> Frame:
    """Rows and values of a key, in groups that share no value where an engine finds that cheaper."""
    import narwhals.stable.v2 as nw

    if not (frame.implementation.is_pyspark() and frame.collect_schema()[key].is_integer()):
        return frame.select(nw.len().alias("rows"), nw.col(key).n_unique().alias("values"))
    from pyspark.sql.functions import expr

    number = f"cast(`{key}` AS bigint)"
    bits = f"coalesce(bit_count(bit_or(shiftleft(1L, cast({number} & 63L AS int)))), 1)"
    groups = frame.to_native().groupBy(expr(f"shiftright({number}, 6)"))  # few, where keys are numbered through
    return cast("Frame", nw.from_native(groups.agg(expr("count(*) AS rows"), expr(f"{bits} AS values"))))


def sets_of(frame: Frame, members: Mapping[str, nw.Expr], *, by: Sequence[str], name: str) -> Frame:
    """The conditions that some row of a key meets, one at most each, as a number: bit i is the i-th of `members`."""
    import narwhals.stable.v2 as nw

    engine = frame.implementation
    if not (engine.is_duckdb() or engine.is_pyspark()):
        met = {member: nw.when(condition).then(nw.lit(1)) for member, condition in members.items()}
        found = frame.select(*by, **met).group_by(*by).agg(nw.col(*met).max())
        return found.select(*by, nw.sum_horizontal(nw.col(one) * 2**i for i, one in enumerate(met)).alias(name))
    bit: nw.Expr = nw.lit(0)
    for i, condition in enumerate(members.values()):
        bit = nw.when(condition).then(nw.lit(2**i)).otherwise(bit)
    native = frame.select(*by, bit.alias(name)).to_native()
    if engine.is_duckdb():
        keys, column = ", ".join(map(quoted, by)), quoted(name)
        return cast("Frame", nw.from_native(native.aggregate(f"{keys}, bit_or({column}) AS {column}", keys)))
    from pyspark.sql.functions import expr

    return cast("Frame", nw.from_native(native.groupBy(*by).agg(expr(f"bit_or(`{name}`) AS `{name}`"))))


def those(frame: Frame, condition: str) -> Frame:
    """The rows of a frame of Spark that meet a condition in its SQL."""
    import narwhals.stable.v2 as nw

    return cast("Frame", nw.from_native(frame.to_native().filter(condition)))


def tally(frame: Frame, aggregates: Mapping[Name, nw.Expr], *, step: str) -> dict[Name, int]:
    """Whole-number aggregates of a frame by their names, all of them in one pass."""
    columns = [aggregate.alias(f"n{i}") for i, aggregate in enumerate(aggregates.values())]
    with working(step, frame):
        row = collect(frame.select(*columns), step=step).to_pylist()[0] if columns else {}
    return {name: int(row[f"n{i}"] or 0) for i, name in enumerate(aggregates)}


def collect(frame: Frame, *, step: str) -> pa.Table:
    """Run the query and fetch its rows. `step` says what the query means; a failure is named after it."""
    native = frame.to_native()
    with working(step, frame):
        if hasattr(native, "to_arrow_table"):  # DuckDB hands over its table as it is
            return native.to_arrow_table()
        return frame.collect("pyarrow").to_native().select(frame.collect_schema().names())


@contextlib.contextmanager
def working(step: str, frame: Frame | None = None) -> Iterator[None]:
    """Turn an engine's failure into one of ours (`failures`) with the step's name and the query of `frame`.

    Its own message may quote data and is dropped. Tables in memory fail while a query is built, others when it runs.
    """
    try:
        with in_turn:
            yield
    except DiscreetError:
        raise
    except Exception as error:
        native, query = (None, str) if frame is None else (frame.to_native(), functools.partial(query_of, frame))
        raise failure(error, step=step, native=native, query=query) from None


def query_of(frame: Frame) -> str:
    """The frame's query in its engine's words: SQL, a Spark or a Polars plan; empty for tables in memory.

    Empty, too, where the engine does not answer any more: the words of a failure must not fail.
    """
    native = frame.to_native()
    if hasattr(native, "sql_query"):
        return str(native.sql_query())
    if hasattr(native, "_jdf"):
        with contextlib.suppress(Exception):
            return str(native._jdf.queryExecution().logical())
        return ""
    return str(native.explain(optimized=False)) if hasattr(native, "explain") else ""


def refuse(faults: Iterable[Fault | str], about: str | None = None) -> None:
    """Raise all `faults` together, if there are any."""
    listed = [fault if isinstance(fault, Fault) else Fault(about, fault) for fault in faults]
    with concerning(about):
        if listed:
            raise DataError(*listed)


def connect(database: str = ":memory:", **settings: str) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection that writes nothing to the standard output, where it would draw its progress."""
    import duckdb

    _AT_EXIT(let_go)
    connection = duckdb.connect(database, config=dict(settings))
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET scheduler_process_partial = true")  # or Ctrl-C waits for tasks, of which one may be all
    return connection


def let_go() -> None:
    """Let go of everything of DuckDB's, which lists on the terminal what is still held after the interpreter's end.

    Frames die with the interpreter, except those that a daemon thread holds: these are emptied.
    """
    _home.cache_clear()
    if threading.active_count() > 1:
        import narwhals.stable.v2 as nw

        for each in gc.get_objects():
            if issubclass(type(each), nw.LazyFrame) or type(each) in HOLDERS:
                vars(each).clear()


HOLDERS: set[type] = set()
"""Further classes whose objects hold something of DuckDB's."""


@functools.cache
def _home() -> duckdb.DuckDBPyConnection:
    """The process's own DuckDB, in memory: one, because only relations of one connection can be joined."""
    return connect()


def _known(table: pa.Table, *, name: str) -> pa.Table:
    """The table with columns that DuckDB knows: no half floats, and periods as they are spelled."""
    import pyarrow as pa

    for at, field in enumerate(table.schema):
        if field.type == pa.float16():
            table = table.set_column(at, field.name, table.column(at).cast(pa.float32()))
        elif getattr(field.type, "extension_name", "") == PERIOD:
            column = table.column(at).to_pandas().rename(field.name)
            table = table.set_column(at, field.name, _to_arrow_column(column, name=name))
    return table


def _to_arrow_column(column: Any, *, name: str) -> pa.Array:
    import pyarrow as pa

    kind = getattr(column.dtype, "categories", column).dtype
    column = column.astype("string") if getattr(kind, "name", "").startswith("period") else column
    try:
        return pa.Array.from_pandas(column)
    except (pa.ArrowException, OverflowError, ValueError):  # of whole numbers that no type of Arrow's holds
        mixed = f"Column {column.name!r} of {name} mixes types that no database column can hold."
        raise DataError(mixed, remedy="Convert it to one type, for example with astype(str).") from None
