"""Columns of a table of jobs that no role names: refused by their names, and looked at for periods by their owner.

One of them may say of which year or quarter a row is. Rows of several periods would count as of one, and the total
would be that of none. Names come in every language, so they tell nothing: a column is declared, as unused or as time.
Only the owner's own commands look at values (`periods`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from discreet.data import delimited
from discreet.data.databases import Address, SomeColumns, is_address, names_in
from discreet.data.frames import count_if, open_frame, tally
from discreet.data.scans import is_csv
from discreet.data.schema import Schema
from discreet.words.faults import Fault, Spelled
from discreet.words.voices import written

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

    from discreet.data.frames import Frame

FORMS = "Have quarters and time declared in desk.toml, or use a file of one period."
LISTED = 6  # columns that a refusal names
YEAR = r"(19|20)[0-9]{2}"
BETWEEN = r"[-/. ,_:']*"
PART = r"(\p{L}{1,12}|[0-9]{1,2}\p{L}{0,2})"  # Q1, kv, 3rd, January, 年第, 1季
MONTH = (
    r"(?i)(jan|ene|feb|f[eé]v|m[aä]r|maa|apr|avr|abr|ma[jiy]|mei|jun|jul|jui|aug|ago|ao[uû]|sep|set|oct|okt|out|nov|"
    r"d[eé]c|de[sz]|dic)\p{L}{0,7}\.?"
)
SHORT = r"(?i)(q|t|k|kv|kw)[-. ]?[1-4]|[1-4]\.? ?(q|t|k|kv|kw)"
WRITTEN = (
    rf"^{YEAR}([-/]({YEAR}|[0-9]{{2}}))?$",
    rf"^({PART}{BETWEEN}){{0,3}}{YEAR}({BETWEEN}{PART}){{0,3}}$",  # 2024Q1, 202401, 1. Quartal 2024, FY2024, 2024-II
    rf"^{YEAR}[-/. ]?[0-9]{{1,2}}[-/. ]?[0-9]{{1,2}}([T ].*)?$",
    r"^[0-9]{1,2}[-/. ][0-9]{1,2}[-/. ]((19|20)?[0-9]{2})([T ].*)?$",
    rf"^{MONTH}([-/. ]?'?[0-9]{{2}})?$",  # Jan, Jan-24
    rf"^({SHORT})({BETWEEN}[0-9]{{2}})?$|^[0-9]{{2}}{BETWEEN}({SHORT})$",  # Q1, 24Q1, Q1-24
)
"""How people write years, quarters, months and days."""
LARGEST = 10**9
"""Above every day that is written as one number, as 20240131 is."""


def columns_of(data: Any, frame: Frame | None) -> list[str]:
    """The columns of a table that `frame` is, or of which a database gave it some; those of a pandas index too."""
    if not isinstance(data, SomeColumns):
        return [*([] if frame is None else frame.collect_schema().names()), *index_of(data)]
    path, _, table = data.table.partition("::")
    return names_in(Address.of(data.table) if is_address(data.table) else Address.of_file(path, table))


def index_of(data: Any) -> list[str]:
    """What the index of a pandas frame says of each row: it is no column here, and no row keeps it."""
    import narwhals.stable.v2 as nw

    native = nw.to_native(data, pass_through=True)
    if not nw.dependencies.is_pandas_dataframe(native):
        return []
    dated = any(str(dtype).startswith(("datetime64", "period")) for dtype in [getattr(native.index, "dtype", "")])
    return [str(name) for name in native.index.names if name is not None] or ["index"] * dated


def names_of(place: Any) -> list[str]:
    """The names of the columns at a path, from the head of a file and no row; none for what a server would tell."""
    if is_address(place):
        return []
    if is_csv(place):
        return delimited.names(str(place))
    if isinstance(part := SomeColumns.of(place, ()), SomeColumns):
        return columns_of(part, None)
    import pyarrow.parquet as pq

    path = Path(place)
    first = next(iter(sorted(path.rglob("*.parquet"))), path) if path.is_dir() else path
    if first.suffix.casefold() not in (".parquet", ".pq") or not first.is_file():
        return open_frame(place).collect_schema().names()
    folders = [part.partition("=")[0] for part in first.relative_to(path).parts[:-1] if "=" in part]
    return [*pq.read_schema(first).names, *folders]


def unnamed(schema: Schema, columns: Iterable[str], *, name: str) -> Iterator[Fault]:
    """The fault of columns without a role, by their names alone."""
    found = schema.unnamed(columns)
    if found:
        one = len(found) == 1
        yield Fault(
            "schema",
            f"{'Column' if one else 'Columns'} {_listed(found)} of {name} {'has' if one else 'have'} no role.",
            "It may say of which period a row is, and rows of several periods would count as of one.",
            (ways(found),),
        )


def ways(columns: Sequence[str], *, declared: bool = False) -> Spelled:
    """What can be declared about columns that may tell periods apart, and what else where they are `declared`."""
    one, listed = columns[0], [*columns]
    python = f"Use read_histories(quarters=[...], time={one!r}), or a table of one period"
    plan = f"Write quarters = [...] and time = {written(one)} in [data], or use a file of one period"
    command = f"Use --quarters A,B --time {quote(one)}, or a file of one period"
    if declared:
        return Spelled(f"{python}.", plan=f"{plan}.", command=f"{command}.", form=FORMS)
    flags = " ".join(f"--unused {quote(each)}" for each in listed[:LISTED])
    return Spelled(
        f"{python}, or Schema(unused={listed[:LISTED]}); '*' is all others.",
        plan=f"{plan}, or write unused = {written(listed[:LISTED])} in [data.schema]; '*' is all others "
        "(`discreet plan declare`).",
        command=f"{command}, or {flags}; '*' is all others.",
        form=f"{FORMS} Or choose 'not used, and no period'.",
    )


def periods(
    frame: Frame, schema: Schema | None, columns: Sequence[str], *, time: str | None = None
) -> Iterator[tuple[Fault, nw.Expr | None]]:
    """Columns by which rows of one job differ, with these rows, and others that look like time. For the owner alone.

    Without a schema nothing is known of jobs, and only what looks like time is told.
    """
    differing = {} if schema is None else _differing(frame, schema, columns, time)
    whose = "one worker at one establishment" if schema is None or schema.worker else "one kind at one establishment"
    for column, rows in differing.items():
        declared = schema is not None and column in schema.idle([column])
        asked = f"Rows of {whose} differ in {column!r}{', declared unused' * declared}: is it a period?"
        yield Fault(column, asked, "Rows of several count as of one.", (ways([column], declared=declared),)), rows
    for column in like_time(frame, [column for column in columns if column not in differing]):
        asked = f"Column {column!r} looks like dates, years or quarters, and no role names it: is it a period?"
        yield Fault(column, asked, "Rows of several would count as of one.", (ways([column]),)), None


def _differing(frame: Frame, schema: Schema, columns: Sequence[str], time: str | None) -> dict[str, nw.Expr]:
    """Columns that have several values in the rows of one job, with these rows."""
    import narwhals.stable.v2 as nw

    types = frame.collect_schema()
    kind = [schema.worker] if schema.worker is not None else [*schema.workplace_attributes, *schema.worker_attributes]
    job = [column for column in (schema.establishment, *kind, time) if column is not None and column in types]
    if not columns or schema.establishment not in types or schema.worker not in (None, *types):
        return {}
    differ = {column: nw.col(column).n_unique().over(*job) > 1 for column in columns}
    marked = frame.with_columns(**{f"__{i}": rows for i, rows in enumerate(differ.values())})
    some = tally(
        marked, {column: count_if(nw.col(f"__{i}")) for i, column in enumerate(differ)}, step="look for periods"
    )
    return {column: rows for column, rows in differ.items() if some[column]}


def like_time(frame: Frame, columns: Sequence[str]) -> list[str]:
    """Those of `columns` all of whose values are written as people write times."""
    import narwhals.stable.v2 as nw

    types = frame.collect_schema()
    temporal = [column for column in columns if types[column].is_temporal()]
    written: dict[str, nw.Expr] = {}
    for column in columns:
        text: nw.Expr
        if types[column].is_numeric():
            whole = nw.col(column).cast(nw.Float64())
            time = (whole.abs() < LARGEST) & (whole == whole.round())
            text = nw.when(time).then(whole).cast(nw.Int64()).cast(nw.String())
        elif types[column] in (nw.String, nw.Categorical, nw.Enum):
            text = nw.col(column).cast(nw.String()).str.strip_chars()
        else:
            continue
        written[column] = nw.any_horizontal(*(text.str.contains(each) for each in WRITTEN), ignore_nulls=True)
    asked = {(column, True): count_if(rows) for column, rows in written.items()}
    asked |= {(column, False): count_if(~nw.col(column).is_null()) for column in written}
    found = tally(frame, asked, step="look for times")
    return [c for c in columns if c in temporal or 0 < found.get((c, True), 0) == found.get((c, False), 0)]


def _listed(columns: Sequence[str]) -> str:
    shown = ", ".join(map(repr, columns[:LISTED]))
    return shown if len(columns) <= LISTED else f"{shown} and {len(columns) - LISTED} more"
