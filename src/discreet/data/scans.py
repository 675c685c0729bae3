"""Files as DuckDB relations: which format a file has, whether it is there, and its table.

No message from here carries a value of the data. CSV files, which have no types of their own, are in `delimited`.
"""

from __future__ import annotations

import difflib
import glob
import hashlib
import itertools
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data import delimited
from discreet.data.databases import Address, copied, is_address, is_sqlite
from discreet.data.delimited import Reading, quoted
from discreet.data.failures import interrupted
from discreet.data.one_at_a_time import BUSY
from discreet.words.errors import DataError

if TYPE_CHECKING:
    import duckdb

_VIEWS = itertools.count()
"""Numbers of copies of views."""


def scan(
    text: str,
    *,
    name: str,
    table: str | None,
    connection: duckdb.DuckDBPyConnection,
    readings: Mapping[str, Reading] | None,
    columns: Sequence[str] | None = None,
) -> Any:
    """A DuckDB relation over the file or files at a path; of a table that is copied, no more than `columns`."""
    import duckdb

    text, _, inner = text.partition("::")
    path, table = Path(text), table or inner or None
    kind = _format(path, name=name)
    _find(path, name=name)
    try:
        if kind == "DuckDB":
            return _attach(path, table, name=name, connection=connection)
        if kind == "SQLite":
            return connection.read_parquet(copied(Address.of_file(str(path), table or ""), columns))
        if kind == "CSV":
            return delimited.scan(text, name=name, connection=connection, readings=readings)
        if path.is_dir():
            return _folder(path, name=name, connection=connection)
        found = connection.read_parquet(text, hive_partitioning=False)
        if glob.has_magic(text):
            union = connection.read_parquet(text, hive_partitioning=False, union_by_name=True)
            refuse_more_columns(union.columns, found.columns, name=name)
        return found
    except (duckdb.Error, OSError, RuntimeError) as error:  # RuntimeError: a name of a column that is no text
        if type(error).__name__ == BUSY:
            raise  # whoever takes the turn says it
        if interrupted(error):
            raise KeyboardInterrupt from None
        raise DataError(
            f"{name}: {text!r} cannot be read as {kind} ({type(error).__name__}).",
            "Files below a folder have the same columns, and folders in it are all named alike, such as state=06."
            if os.path.isdir(path)  # noqa: PTH112 (no error, also on a disk that fails)
            else "It may be damaged, cut off, locked or of another format than its name says.",
            "Write it again from its source, or rename it.",
        ) from None


def _folder(path: Path, *, name: str, connection: duckdb.DuckDBPyConnection) -> Any:
    """All Parquet files below a folder. Folders in it such as state=06 are a column, of text."""
    pattern = str(path / "**" / "*.parquet").replace("'", "''")
    everything = f"FROM read_parquet('{pattern}'"
    files = connection.sql(f"{everything}, hive_partitioning = false, union_by_name = true)")
    found = {part for file in path.rglob("*.parquet") for part in file.relative_to(path).parts[:-1] if "=" in part}
    if found:
        refuse_two_meanings(str(path), (part.partition("=")[0] for part in found), files.columns, name=name)
    hive = "true, hive_types_autocast = false" if found else "false"
    read = connection.sql(f"{everything}, hive_partitioning = {hive})")
    refuse_more_columns(files.columns, read.columns, name=name)
    return read


def refuse_more_columns(every: Iterable[str], read: Sequence[str], *, name: str) -> None:
    """Refuse files of which a later one has columns that the first one lacks: they would be dropped unseen."""
    more = [column for column in every if column not in read]
    if more:
        raise DataError(
            f"{name}: some files have a column {more[0]!r}, and the first one has none.",
            "Files that are read together have the same columns.",
            "Write them again with the same columns, or read them apart.",
            about="source",
        )


def refuse_two_meanings(path: str, folders: Iterable[str], columns: Iterable[str], *, name: str) -> None:
    """Refuse folders such as state=06 if files have that column too, or if there are others above the path.

    Engines would take the folder's value and drop the file's, and do not agree on folders above the path.
    """
    own = {column.casefold() for column in columns}
    twice = sorted(folder for folder in folders if folder.casefold() in own)
    above = [part for part in Path(path).parts if "=" in part]
    if twice:
        raise DataError(
            f"{name}: files below {path!r} have a column {twice[0]!r}, and folders named {twice[0]}=... are there too.",
            "A column comes from the files or from the names of folders.",
            "Write the files without it, or rename the folders.",
            about="source",
        )
    if above:
        raise DataError(
            f"{name}: {path!r} has folders such as state=06 below it, and {above[-1]!r} above it.",
            "The folders below a path are columns, those above it are not.",
            "Give the path above all of them, or move the folder.",
            about="source",
        )


def folder_of(data: Any) -> Path | None:
    """The folder that data are in, or are themselves; None for what is no path."""
    if not isinstance(data, str | Path) or is_address(data) or is_remote(data):
        return None
    there = os.path.isdir(data)  # noqa: PTH112 (False, and no error, where this user may not look)
    return Path(data) if there else Path(data).parent


def tables_in(folder: Path, workplaces: Any, workers: Any) -> tuple[Path, Any, Any]:
    """The files of a directory that `simulate lodes` would write; any other directory is one table of jobs."""
    files = {name: folder / f"{name}.parquet" for name in ("jobs", "job", "worker", "workplace")}
    there = {name: path for name, path in files.items() if path.is_file()}
    if "jobs" not in there and "job" not in there:
        return folder, workplaces, workers
    if workplaces is None:
        workplaces = there.get("workplace")
    if "jobs" not in there and workers is None:
        workers = there.get("worker")
    return there.get("jobs", files["job"]), workplaces, workers


def is_remote(data: object) -> bool:
    """Whether data are files on storage of a cluster (hdfs, s3a, gs, abfss and the like), which Spark reads."""
    kinds = r"(hdfs|viewfs|s3a?|s3n|gs|abfss?|wasbs?|dbfs|ofs|cosn|oss)://"
    return isinstance(data, str) and re.match(kinds, data) is not None


def origin_of(data: Any) -> str | None:
    """Hashes of where the files of jobs or rows are and when each was written last; None for what is no file.

    The first has their paths, the second their numbers on the disk, by which links are recognised. Neither depends on
    what the files hold.
    """
    folder = None if is_remote(data) else folder_of(data)
    if folder is None:
        return None
    text, _, table = str(tables_in(folder, None, None)[0] if folder == Path(data) else data).partition("::")
    try:
        found = [Path(text)] if Path(text).exists() else list(map(Path, glob.glob(text)))  # noqa: PTH207 (a pattern)
        files = [file for path in found for file in (path.rglob("*.parquet") if path.is_dir() else [path])]
        known = [(file.resolve(), file.stat()) for file in files]
        places = sorted(f"{path}\0{stat.st_mtime_ns}" for path, stat in known)
        numbers = sorted(f"{stat.st_dev}\0{stat.st_ino}\0{stat.st_mtime_ns}" for _, stat in known)
    except (OSError, ValueError):
        return None
    words = (hashlib.sha256("\0".join([table, *stamps]).encode()).hexdigest() for stamps in (places, numbers))
    return " ".join(words) if known else None


def is_csv(data: Any) -> bool:
    """Whether data are the path of a CSV file, by its name."""
    if not isinstance(data, str | Path) or is_address(data):
        return False
    *_, inner, ending = ["", *Path(data).name.casefold().split(".")]
    return (inner if ending in delimited.COMPRESSED else ending) in delimited.ENDINGS


def _format(path: Path, *, name: str) -> str:
    if os.path.isdir(path):  # noqa: PTH112 (no error for what cannot be a path)
        return "Parquet"
    if is_csv(path):
        return "CSV"
    if is_sqlite(path):
        return "SQLite"
    ending = path.suffix.removeprefix(".").casefold()
    known = {"parquet": "Parquet", "pq": "Parquet", "duckdb": "DuckDB", "ddb": "DuckDB"}
    if ending in known:
        return known[ending]
    if ending not in OTHERS:
        _find(path, name=name)
    what, remedy = OTHERS.get(ending, ("is not a table that can be opened", "Give one of these, or a frame."))
    raise DataError(
        f"{name} ends in {path.suffix!r}, which {what}.",
        "Tables are .parquet, .csv (.tsv, .txt; also .csv.gz and .csv.zst), .duckdb::table, .sqlite::table, or a "
        "directory of Parquet files.",
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
    where = os.path.abspath(folder)  # noqa: PTH100
    hint = alike(path, among=path if is_folder else folder) or "Check the name, or give the whole path."
    asked = f"{name}: there is no {'Parquet file in' if is_folder else 'file'} {str(path)!r}."
    looked_in = f"{'A folder is a table of its Parquet files' if is_folder else f'It was looked for in {where!r}'}."
    raise DataError(asked, looked_in, hint)


def alike(path: Path, *, among: Path) -> str:
    """A question about names in a folder that a missing file may have; empty where none is like it."""
    there: list[str] = []
    with suppress(OSError, ValueError):  # a folder that is missing, closed to this user, or no path
        there = sorted(os.listdir(among))  # noqa: PTH208
    near = [like for like in difflib.get_close_matches(path.name, there, n=2) if like != path.name]
    return f"Did you mean {' or '.join(map(repr, near))}?" if near else ""


def _attach(path: Path, table: str | None, *, name: str, connection: duckdb.DuckDBPyConnection) -> Any:
    about = path.stat()
    alias = f"file_{abs(hash((path.resolve(), about.st_ino, about.st_size, about.st_mtime_ns))):x}"
    location = str(path).replace("'", "''")
    attached = "SELECT database_name FROM duckdb_databases() WHERE path = ? AND database_name <> ?"
    for (older,) in connection.execute(attached, [str(path), alias]).fetchall():
        connection.execute(f"DETACH {quoted(older)}")  # another file has its place now
    connection.execute(f"ATTACH IF NOT EXISTS '{location}' AS {alias} (READ_ONLY)")
    listing = "SELECT table_name, table_type = 'VIEW' FROM information_schema.tables WHERE table_catalog = ? ORDER BY 1"
    tables = dict(connection.execute(listing, [alias]).fetchall())
    if table is None or table not in tables:
        asked = f"there is no table {table!r}" if table else "no table was named"
        have = f"It has: {', '.join(tables) or 'none'}."
        raise DataError(f"{name}: in {str(path)!r} {asked}.", have, f"Write {path}::TABLE.")
    place = f"{alias}.{quoted(table)}"
    if tables[table]:  # every query would ask it again, and a volatile function in it gives each query other rows
        place, view = f"view_{next(_VIEWS)}", place
        connection.execute(f"CREATE TEMP TABLE {place} AS SELECT * FROM {view}")
    return connection.table(place)
