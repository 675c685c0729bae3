"""Files as they were found before they were read: whether one was written since.

Rows are checked when they are read and counted later, in a query of its own. If files change in between, the checks say
nothing about what is counted. So files are looked at before the first query and after the last one, which is before
anything is paid for. A file is known by its number, its size and its times; nothing of its content is kept.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from discreet.data.databases import is_address, is_sqlite
from discreet.data.scans import is_remote
from discreet.words.errors import DataError

Stamp: TypeAlias = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Stamps:
    """The files of some tables as they were found.

    Attributes
    ----------
    looks : for each table that is read where it is, how to look at its files, by the parameter that it came as.
    found : what was found.
    """

    looks: Mapping[str, Callable[[], object]]
    found: Mapping[str, object]

    @classmethod
    def of(cls, tables: Mapping[str, Any], *, engine: Any = None) -> Stamps:
        """Look at files of this machine, or, with an engine of a cluster, at those that it sees; open nothing."""
        looks = {name: look for name, data in tables.items() if (look := _look(data, engine)) is not None}
        return cls(looks, {name: look() for name, look in looks.items()})

    def refuse_changes(self) -> None:
        """Refuse tables whose files were written since."""
        for name, look in self.looks.items():
            if look() != self.found[name]:
                raise DataError(
                    f"{name}: its files were written to after they were read.",
                    "A release is about one moment, and rows are counted as they were checked. Nothing was spent.",
                    "Read the data again when the files are whole.",
                    about=name,
                )


UNWATCHED = Stamps({}, {})
"""Of tables that are no files of ours."""


def _look(data: Any, engine: Any) -> Callable[[], object] | None:
    if not isinstance(data, str | Path) or is_address(data) or is_sqlite(Path(str(data).partition("::")[0])):
        return None  # frames are their owner's; tables of servers and of SQLite are copied
    seen = getattr(engine, "stamp", None)
    if seen is not None:
        return lambda: seen(data)
    return None if is_remote(data) else lambda: stamps_of(Path(data))


def stamps_of(path: Path) -> dict[Path, Stamp]:
    """The files at a path with their numbers, sizes and times; of a folder, its Parquet files."""
    found = {}
    for file in files_of(path):
        with suppress(OSError, ValueError):
            about = file.stat()
            if file.is_file() and (file.suffix == ".parquet" or not path.is_dir()):  # of a folder nothing else is read
                found[file] = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
    return found


def files_of(path: Path) -> Iterator[Path]:
    """The files behind a path: a file, a table in a file, everything below a folder, all matches of a glob."""
    text = str(path).partition("::")[0]
    for start in {text, glob.escape(text)}:
        for pattern in (start, f"{start}/**/*"):
            yield from map(Path, glob.iglob(pattern, recursive=True, include_hidden=True))  # noqa: PTH207 (follows links)
