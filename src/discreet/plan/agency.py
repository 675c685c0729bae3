"""The agency's own table that a release is to be shown beside: a public file, matched by attributes.

Reading it costs no privacy, and it is read before anything is paid. `beside` keeps and compares it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import file_digest
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Vector
from discreet.data.frames import collect, open_frame
from discreet.data.lineage import Lineage, parent_column
from discreet.data.row_checks import MOST_JOBS
from discreet.data.schema import Label
from discreet.plan.confidential import is_secret
from discreet.plan.shape import Compare, Form
from discreet.plan.sizes import CLASSES, Expected, PublicSizes
from discreet.release.folder import ATTRIBUTE, VALUES
from discreet.words.errors import DataError, concerning

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.plan.kinds.kind import PlannedRelease


@dataclass(frozen=True, slots=True)
class PublicTable:
    """The content of an agency's file about the cells of one table of a release.

    Attributes
    ----------
    place : the table's folder in the release.
    by, numbers : its attributes and its numbers that the file has too, by our names.
    table : these columns; a number is empty where the agency suppresses it.
    """

    title: str
    file: str
    sha256: str
    place: str
    by: tuple[str, ...]
    numbers: tuple[str, ...]
    table: pa.Table

    def about(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "file": self.file,
            "sha256": self.sha256,
            "table": self.place,
            "by": list(self.by),
            "numbers": list(self.numbers),
        }

    def known(self, number: str) -> Vector:
        """The agency's numbers; NaN where they are suppressed."""
        return floats(self.table[number])


@dataclass(frozen=True, slots=True)
class AgencyCheck:
    """What is known about the agency's table before a release exists.

    Attributes
    ----------
    cells, suppressed : how many cells the file lists, and how many of these without a number.
    by_size : for classes of the agency's number: lower end, cells, mean, our expected error, whether that is a bound.
    off : the mean share by which noise infusion moves the number of a single establishment, where the plan says it.
    """

    title: str
    by: tuple[str, ...]
    number: str
    cells: int
    suppressed: int
    by_size: tuple[tuple[int, int, float, float, bool], ...] = ()
    off: float | None = None

    @classmethod
    def of(
        cls, found: PublicTable, asked: Compare, known: PublicSizes | None, expected: Expected | None
    ) -> AgencyCheck:
        """From the file, and from our error on its numbers if that is known."""
        number = found.numbers[0]
        classes: tuple[tuple[int, int, float, float, bool], ...] = ()
        if known is not None and expected is not None:
            jobs = np.array(known.table["jobs"], dtype=np.float64)
            which = np.searchsorted(CLASSES, jobs, side="right")
            means = [float(jobs[which == i].mean()) for i in np.unique(which)]
            classes = tuple(
                (low, cells, mean, error, bound)
                for (low, cells, error, bound), mean in zip(expected.by_size, means, strict=True)
            )
        return cls(
            title=found.title,
            by=found.by,
            number=number,
            cells=len(found.table),
            suppressed=int(np.isnan(found.known(number)).sum()),
            by_size=classes,
            off=None if asked.factors is None else float(sum(asked.factors) / 2),
        )

    def to_dict(self) -> dict[str, Any]:
        names = ("from", "cells", "mean", "expected_error", "is_upper_bound")
        return asdict(self) | {
            "by": list(self.by),
            "by_size": [dict(zip(names, each, strict=True)) for each in self.by_size],
        }


def refuse_unwritten(forms: Sequence[Form]) -> None:
    """A comparison is of the numbers as they were drawn."""
    if "research" not in forms:
        raise DataError(
            "compare was given, and the research form is not written.",
            "A reviewer computes the comparison again from its numbers and codes.",
            "Add 'research' to forms of [output], or leave the comparison out.",
            about="compare",
        )


def asked_of(asked: Compare) -> dict[str, Any]:
    """The ledger's record of the request, without the file's path."""
    return asked.model_dump(mode="json", exclude={"file"})


def read_public(request: PlannedRelease, asked: Compare) -> PublicTable:
    """The agency's table, matched with that of the release which has the most attributes that the file has too."""
    import pyarrow as pa

    path, columns = request.source.path(asked.file), request.columns
    if is_secret(request.source, path):
        raise DataError(
            f"{asked.file!r} is among the confidential data, or holds some of them.",
            "What is compared here is shown to everybody.",
            "Name a public table, or leave it out.",
            about="compare.file",
        )
    with concerning("compare.file"):
        names = open_frame(path).collect_schema().names()
        table = collect(open_frame(path, readings=dict.fromkeys(names, "text")), step="read the agency's table")
    table = _kept(table, asked, path.name)
    numbers = [name for name in columns if f"{name}_quality" in columns] or [name for name in VALUES if name in columns]
    theirs = {name: asked.columns.get(name, name) for name in (*(n for _, by in request.places for n in by), *numbers)}
    _refuse_names(asked, theirs, names, path.name)
    there = [name for name in numbers if theirs[name] in names]
    if not there:
        raise DataError(
            f"{path.name!r} has no column {' or '.join(map(repr, numbers))}; it has: {', '.join(names)}.",
            "A number of the release is compared with one of the file.",
            f"Say what the file calls it: columns = {{ {numbers[0]} = ... }}.",
            about="compare.columns" if asked.columns else "compare",
        )
    place, by = _matched(_timeless(request, theirs, names), theirs, names, path.name, rows=len(table))
    found = {name: texts(table[theirs[name]]) for name in by}
    made = pa.table(found | {name: _numbers(table, theirs[name], asked, path.name) for name in there})
    if len(made) != len(cell_keys(made, by).unique()):
        raise DataError(
            f"{path.name!r} has several rows for one cell by {', '.join(by) or 'nothing'}.",
            "One row is compared with one cell.",
            "Keep the rows of one level, time or kind with where = { ... }.",
            about="compare",
        )
    sha256 = ""
    if path.is_file():
        with path.open("rb") as file:
            sha256 = file_digest(file, "sha256").hexdigest()
    return PublicTable(asked.title or path.name, path.name, sha256, place, tuple(by), tuple(there), made)


def refuse_unmatched(
    found: PublicTable, cells: Iterable[tuple[pa.Table, Lineage | None]], others: Mapping[str, Sequence[Label]]
) -> None:
    """Refuse a file of which no row is a cell of the release. This needs public cells; no number is read for it.

    `cells` are keys of drawn tables with the parents of their codes, `others` the values of what is not in these keys.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    places = [name for name in found.by if name not in others]
    alike = pa.array([True] * len(found.table))
    for name in found.by:
        if name in others:
            alike = pc.and_(alike, pc.is_in(texts(found.table[name]), value_set=pa.array(map(str, others[name]))))
    for keys, lineage in cells:
        with contextlib.suppress(LookupError):
            ours = pa.table({name: parent_column(keys, name, lineage).dictionary_decode() for name in places})
            known = pc.is_in(cell_keys(found.table, places), value_set=cell_keys(ours, places)) if places else alike
            if pc.any(pc.and_(alike, known)).as_py():
                return
    first = ", ".join(f"{name} {found.table[name][0].as_py()!r}" for name in found.by)
    raise DataError(
        f"No row of {found.file!r} is a cell of the release.",
        f"Cells are by {', '.join(found.by)}, and codes are compared as text; the first row has {first}.",
        "Correct columns or where, or write the file's codes as the data have them.",
        about="compare",
    )


def _timeless(request: PlannedRelease, theirs: Mapping[str, str], names: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Tables with their attributes; when a row is of counts as one only where the file says it."""
    columns = request.columns
    times = [name for _, by in request.places for name in by if columns[name] != ATTRIBUTE]
    lacking = [name for name in times if theirs[name] not in names]
    if lacking and request.times > 1:
        raise DataError(
            f"The file has no column {' and '.join(map(repr, lacking))}.",
            "The release has several changes of a cell, and one row is compared with one of them.",
            "Say what the file calls it, or release two quarters alone.",
            about="compare",
        )
    return [(place, [name for name in by if name not in lacking]) for place, by in request.places]


def _kept(table: pa.Table, asked: Compare, name: str) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    for column, values in asked.where.items():
        if column not in table.column_names:
            raise _no_column(column, table.column_names, name, "compare.where")
        words = pa.array([str(value) for value in values], pa.string())
        table = table.filter(pc.is_in(texts(table[column]), value_set=words))
    if not len(table):
        raise DataError(
            f"{name!r} has no rows to compare.",
            "Every cell that the agency lists is one.",
            "Correct where, or name another file.",
            about="compare.where" if asked.where else "compare.file",
        )
    if asked.flag is not None and asked.flag not in table.column_names:
        raise _no_column(asked.flag, table.column_names, name, "compare.flag")
    return table


def _no_column(column: str, names: Sequence[str], name: str, about: str) -> DataError:
    return DataError(
        f"{name!r} has no column {column!r}.", f"It has: {', '.join(names)}.", "Name one of these.", about=about
    )


def _refuse_names(asked: Compare, known: Mapping[str, str], names: Sequence[str], name: str) -> None:
    for ours, theirs in asked.columns.items():
        if ours not in known:
            raise DataError(
                f"{ours!r} is no attribute and no number of the release.",
                f"It has: {', '.join(known)}.",
                "Write ours first: { county = 'area_fips' }.",
                about="compare.columns",
            )
        if theirs not in names:
            raise _no_column(theirs, names, name, "compare.columns")


def _matched(
    places: Sequence[tuple[str, Sequence[str]]], ours: Mapping[str, str], names: Sequence[str], name: str, *, rows: int
) -> tuple[str, Sequence[str]]:
    """The table with the most attributes, all of which the file has."""
    fitting = [each for each in places if all(ours[part] in names for part in each[1]) and (each[1] or rows == 1)]
    if not fitting:
        listed = "; ".join(", ".join(by) or "nothing" for _, by in places)
        raise DataError(
            f"{name!r} lacks an attribute of every table; its columns are: {', '.join(names)}.",
            f"Tables of the release are by: {listed}.",
            "Say what the file calls an attribute: columns = { county = 'area_fips' }.",
            about="compare",
        )
    return max(fitting, key=lambda each: len(each[1]))


def _numbers(table: pa.Table, column: str, asked: Compare, name: str) -> pa.Array:
    """A column of numbers, empty where it says that one is suppressed."""
    import pyarrow as pa
    import pyarrow.compute as pc

    words = pc.utf8_trim_whitespace(texts(table[column]))
    marks = pa.array(asked.suppressed, pa.string())
    gone = pc.or_(pc.is_in(words, value_set=marks), pc.fill_null(pc.equal(words, ""), fill_value=True))
    if asked.flag is not None:
        gone = pc.or_(gone, pc.is_in(pc.utf8_trim_whitespace(texts(table[asked.flag])), value_set=marks))
    left = pc.if_else(gone, pa.scalar(None, pa.string()), words)
    try:
        values = np.array(pc.cast(left, pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
        if not (np.abs(values[~np.asarray(pc.is_null(left))]) < MOST_JOBS).all():
            raise pa.ArrowInvalid
    except pa.ArrowInvalid:
        odd = next(word for word in left.to_pylist() if word is not None and not _is_number(word))
        raise DataError(
            f"Column {column!r} of {name!r} holds {odd[:40]!r}, which is no number.",
            "A number is written with digits and below 2^53; what stands where one is suppressed is listed.",
            f"Write suppressed = [{odd[:40]!r}] if that is what it means, or correct the file.",
            about="compare.suppressed" if asked.suppressed else "compare",
        ) from None
    return pa.array(values, mask=np.isnan(values))


def _is_number(word: str) -> bool:
    try:
        return abs(float(word)) < MOST_JOBS
    except ValueError:
        return False


def texts(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    codes = pa.types.is_floating(whole.type) and pc.all(pc.equal(whole, pc.round(whole))).as_py()
    if codes and pc.all(pc.less(pc.abs(whole), MOST_JOBS)).as_py():
        whole = pc.cast(whole, pa.int64())  # codes of a file that has gaps
    return pc.cast(whole, pa.string())


def cell_keys(table: pa.Table, by: Sequence[str]) -> Any:
    """One text for each row, which identifies its cell."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not by:
        return pa.array([""] * len(table))
    parts = [pc.fill_null(texts(table[name]), "") for name in by]
    return pc.binary_join_element_wise(*parts, "\x1f")


def floats(column: Any) -> Vector:
    import pyarrow as pa
    import pyarrow.compute as pc

    values = pc.cast(column, pa.float64())
    return np.array(values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values, dtype=np.float64)
