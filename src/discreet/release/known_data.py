"""The owner's note of the data that have a budget, so that a copy of them under another name is recognised.

A ledger compares names and files, which are public. It cannot recognise a copy: rows in another order, the same table
in another format, a frame. So the person who opens a budget keeps a note of the content, in a folder that only this
user can open (XDG_STATE_HOME), and compares it with the data of the next name. The note holds hashes of each data set:
of the numbers of jobs of establishments, or of each column of numbers of the rows of models.
Somebody who knows all rows but one could use it to try out the last row, so it is as confidential as the data. It is
in no ledger, release, report or bundle. Without the note, on another machine or for another user, copies are not
recognised.

A refusal says that two data sets of one owner are the same, and to nobody but the person who reads both of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from discreet.arrays import Vector
from discreet.data.columns import column_of, column_of_words
from discreet.data.frames import collect, open_frame
from discreet.data.one_at_a_time import in_turn
from discreet.ledger import Ledger
from discreet.ledger.anchors import notes_of
from discreet.ledger.openings import OTHER_NAME
from discreet.words.errors import DiscreetError, PrivacyError
from discreet.words.faults import Argument

if TYPE_CHECKING:
    import pyarrow as pa

TELLING = 20
"""Different values from which on a column tells data sets apart: as many ones among as many rows are no copy."""

TOGETHER = 16  # columns that are read at once
LINES = 2**20  # rows whose text is joined at once


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Hashes of a data set: of what a release is `asked` about, of columns that tell data sets apart, and of others."""

    asked: frozenset[str]
    telling: frozenset[str]
    others: frozenset[str] = frozenset()

    def same(self, known: str) -> bool:
        """Whether data of these `known` hashes have what is asked about; of few values, with a telling column too."""
        there = set(known.split())
        shared = self.asked & there
        return bool(shared & self.telling) or bool(shared and self.telling & there)

    def __str__(self) -> str:
        return " ".join(sorted(self.telling | self.others))

    def __or__(self, other: Fingerprint) -> Fingerprint:
        return Fingerprint(self.asked | other.asked, self.telling | other.telling, self.others | other.others)


Content: TypeAlias = Callable[[], Fingerprint | None]
"""The hashes of a data set's content, computed when they are asked for; None where they are not known."""


@dataclass(frozen=True, slots=True)
class KnownData:
    """What this user knows of the data sets of one ledger: hashes of each, by name."""

    path: Path

    @classmethod
    def of(cls, ledger: Ledger) -> KnownData | None:
        """The note about a ledger, which need not be there; None for a ledger in memory, or a user without a home."""
        notes = notes_of(ledger.where)
        return None if notes is None else cls(notes.with_name(f"{notes.name}.json"))

    def read(self) -> dict[str, str]:
        """The hashes by name; empty if there is no note."""
        with suppress(OSError, ValueError):
            noted = json.loads(self.path.read_text(encoding="utf-8"))
            return {str(name): str(digest) for name, digest in noted.items()} if isinstance(noted, dict) else {}
        return {}

    def write(self, dataset: str, digest: str) -> None:
        """Add a data set, for this user alone. If that is not possible, copies are not recognised."""
        with suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new = self.path.with_suffix(".new")
            new.unlink(missing_ok=True)
            new.touch(mode=0o600, exist_ok=False)
            new.write_text(json.dumps(self.read() | {dataset: digest}), encoding="utf-8")
            new.replace(self.path)


def open_once(ledger: Ledger, *, dataset: str, content: Content | None, **budget: Any) -> None:
    """Open or confirm a budget; refuse a first one of data that have a budget by another name."""
    note = None if content is None else KnownData.of(ledger)
    known = {} if note is None else note.read()
    names = {each.dataset for each in ledger.budgets()} if note is not None else set()
    found = None if content is None or note is None or (dataset in known and dataset in names) else _found(content)
    if found is not None and dataset not in names:
        for other in sorted(names):
            if found.same(known.get(other, "")):
                raise PrivacyError(
                    (f"The ledger has a budget of {other!r}, and ", Argument("dataset", dataset), " is the same rows."),
                    "All releases of one data set are paid from one budget.",
                    OTHER_NAME,
                    about="dataset",
                )
    ledger.open_budget(dataset=dataset, **budget)
    if note is not None and found is not None:
        note.write(dataset, str(found))


def content_of(jobs: Any) -> Fingerprint | None:
    """A hash of how many jobs each establishment has, by quarter for histories; None for tables of a cluster.

    It does not depend on the route: the order of rows and columns, the format, other columns, names of columns.
    """
    whole, time = (jobs.jobs, [jobs.time]) if hasattr(jobs, "time") else (jobs, [])
    if whole.table.implementation.is_pyspark():
        return None
    import narwhals.stable.v2 as nw

    schema = whole.schema
    many = nw.len() if schema.size is None else nw.col(schema.size).sum()
    sizes = collect(whole.table.group_by(schema.establishment, *time).agg(__n=many), step="recognise the data")
    digest = frozenset([digest_of(sizes)])
    return Fingerprint(digest, digest)


def content_of_rows(data: Any, response: str) -> Fingerprint | None:
    """A hash of the numbers of each column, in any order; None for tables of a cluster.

    All columns are noted, because the next model of the rows may be of another one.
    """
    import narwhals.stable.v2 as nw

    frame = open_frame(data, readings={response: "number"})
    if frame.implementation.is_pyspark():
        return None
    numbers = [name for name, kind in frame.collect_schema().items() if kind.is_numeric()]
    found: dict[str, tuple[str, bool]] = {}
    for start in range(0, len(numbers), TOGETHER):
        some = numbers[start : start + TOGETHER]
        table = collect(frame.select(nw.col(*some).cast(nw.Float64)), step="recognise the data")
        found |= {name: _digest(np.asarray(table[name].to_numpy())) for name in some}
    if response not in found:
        return None
    telling = frozenset(digest for digest, tells in found.values() if tells)
    others = frozenset(digest for digest, tells in found.values() if not tells)
    return Fingerprint(frozenset([found[response][0]]), telling, others)


def _digest(values: Vector) -> tuple[str, bool]:
    """A hash of a column's numbers in any order, and whether they tell data sets apart."""
    ordered = np.sort(values + 0.0)  # 0 and -0 are one number, missing ones come last
    tells = 1 + np.count_nonzero(np.diff(ordered[~np.isnan(ordered)])) >= TELLING
    return hashlib.sha256(np.where(np.isnan(ordered), np.nan, ordered).tobytes()).hexdigest(), bool(tells)


def digest_of(table: pa.Table) -> str:
    """A hash of rows in any order, whatever the types that a format gave their values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lines = pc.binary_join_element_wise(*map(_words, table.columns), column_of_words(["\0"])[0])
    lines, new_line = lines.take(pc.sort_indices(lines)), column_of_words(["\n"])[0]
    whole = hashlib.sha256()
    for start in range(0, len(lines), LINES):
        some = lines.slice(start, LINES)
        listed = pa.ListArray.from_arrays(column_of(np.array([0, len(some)], dtype=np.int32)), some)
        whole.update(b"\n" if start else b"")
        whole.update(pc.binary_join(listed, new_line)[0].as_buffer())
    return whole.hexdigest()


def _words(column: pa.ChunkedArray) -> pa.Array:
    """The words of a column's values; Arrow writes most kinds of values in another way than Python."""
    import pyarrow as pa

    alike = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string)
    if not any(kind(column.type) for kind in alike):
        column = pa.chunked_array(
            [[None if value is None else str(value) for value in column.to_pylist()]], pa.string()
        )
    return column.cast(pa.string()).fill_null(column_of_words([""])[0]).combine_chunks()


def _found(content: Content) -> Fingerprint | None:
    """Data that cannot be read are refused where they are read for a release."""
    with suppress(DiscreetError), in_turn:
        return content()
    return None
