"""What is worth a look in any table: missing values, words for them, spellings, lost zeros, repeated rows.

No release is refused because of it. Only the owner's own check of the data asks (`data_check`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from discreet.data.frames import count_if, tally
from discreet.data.row_checks import ROW, RowCheck, each_row
from discreet.words.faults import Fault

if TYPE_CHECKING:
    from discreet.data.frames import Frame

ABSENT = ("na", "n/a", "#n/a", "nan", "null", "none", "nil", ".", "-", "--", "?", "(blank)")
"""Words that people write for a missing value, in small letters."""


def oddities(frame: Frame, *, required: Collection[str]) -> Iterator[tuple[Frame, RowCheck]]:
    """Checks that some rows do not pass, with the rows; missing values of `required` columns are refused anyway."""
    import narwhals.stable.v2 as nw

    types = {column: dtype for column, dtype in frame.collect_schema().items() if column != ROW}
    texts = [column for column, dtype in types.items() if dtype == nw.String]
    simple = [_missing(column) for column in types if column not in required]
    simple += [check for column in texts for check in _of_texts(column)]
    counts = tally(
        frame, {check.fault: count_if(check.rows) for check in simple if check.rows is not None}, step="look"
    )
    checks = [check for check in simple if counts[check.fault]]
    checks += _lost_zeros(frame, texts)
    for column in texts:
        low = nw.col(column).str.to_lowercase()
        folded = frame.select(low.alias("__low"), nw.col(column).alias("__one")).group_by("__low")
        spellings = folded.agg(nw.col("__one").n_unique().alias("__times"))
        if tally(spellings, {"n": count_if(nw.col("__times") > 1)}, step="look")["n"]:
            fault = Fault(
                column, f"Column {column!r} spells some categories with different capitals.",
                "Each spelling is a category.", "Write them in one way.",
            )  # fmt: skip
            lowered = frame.with_columns(low.alias("__low"))
            check = RowCheck(fault, nw.lit(0), nw.col(column).n_unique().over("__low") > 1)
            yield lowered, check
    fault = Fault(
        None, "Some rows are there more than once, with the same value in every column.",
        "They may be one job, or an export that was added twice.", "Drop the repetitions, if they are.",
    )  # fmt: skip
    checks.append(RowCheck(fault, nw.lit(0), nw.len().over(*types) > 1))
    yield from ((frame, check) for check in checks)


def _missing(column: str) -> RowCheck:
    """Rows without a value."""
    import narwhals.stable.v2 as nw

    fault = Fault(column, f"Column {column!r} has no value in some rows.", remedy="Fill them in, if it is released.")
    return each_row(fault, nw.col(column).is_null())


def _of_texts(column: str) -> Iterator[RowCheck]:
    import narwhals.stable.v2 as nw

    text = nw.col(column).str
    odd = {
        Fault(
            column, f"Column {column!r} has words such as NA or null in some rows.", "They count as a category.",
            "Leave the field empty, or name the category.",
        ): text.to_lowercase().is_in(ABSENT),
        Fault(
            column, f"Column {column!r} holds its own name in some rows.", "The first line may be a row like others.",
            "Add the line of names, or drop the row.",
        ): nw.col(column) == column,
        Fault(
            column, f"Column {column!r} has text that may be numbers, with a decimal comma or a mark for thousands.",
            "Numbers have a decimal point and no mark for thousands.", "Write them so.",
        ): text.contains(r"^[+-]?([0-9]+,[0-9]+|[0-9]{1,3}([.,' ][0-9]{3})+(,[0-9]+)?)$"),
    }  # fmt: skip
    yield from (each_row(fault, rows) for fault, rows in odd.items())


def _lost_zeros(frame: Frame, texts: Sequence[str]) -> Iterator[RowCheck]:
    """Codes of digits that are shorter than others, where some begin with a zero."""
    import narwhals.stable.v2 as nw

    digits = {column: nw.col(column).str.contains("^[0-9]+$") for column in texts}
    zeros = tally(frame, {c: count_if(nw.col(c).str.contains("^0[0-9]+$")) for c in texts}, step="look")
    longest = tally(
        frame, {c: (nw.col(c).str.len_chars() * digits[c].cast(nw.Int64)).max() for c in texts if zeros[c]}, step="look"
    )
    for column, length in longest.items():
        fault = Fault(
            column, f"Column {column!r} has codes of digits that are shorter than others, and some begin with 0.",
            "Zeros at the beginning may be lost: a spreadsheet drops them.", "Write the codes whole.",
        )  # fmt: skip
        yield each_row(fault, digits[column] & (nw.col(column).str.len_chars() < length))
