"""Checks of rows, as aggregates: each is not zero where its fault occurs. No value and no count leaves them.

A check also knows which rows are at fault. Only the owner's own check of the data asks for them (`data_check`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.data.frames import collect, count_if, repetitions, tally, those
from discreet.data.magnitude import Magnitude
from discreet.data.schema import Label, Schema
from discreet.words.cases import case_of
from discreet.words.errors import DataError
from discreet.words.faults import Argument, Fault, Phrase, Spelled

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

    from discreet.data.frames import Frame

WHERE = Spelled(" `discreet data check` shows their owner which rows.")
"""The reader of a refusal learns the kind of fault. The owner of the data can ask where it is."""


MOST_JOBS = 2**53
"""A double holds every whole number below this. Noise is scaled and sums are checked in doubles."""


@dataclass(frozen=True, slots=True)
class RowCheck:
    """What must not be.

    Attributes
    ----------
    fault : in the words of a refusal.
    found : the aggregate that is true, or not zero, where it occurs. How often it does is confidential.
    rows : what rows at fault have in common; None where the fault is of all rows together, and none may have it where
        it is of their sum.
    single : a row has the fault by itself: `found` is whether any of `rows` does.
    empty : the fault is that there is no row.
    right : in the SQL of Spark, true of rows without the fault, null or false of all others. Text is one call of Java's
        where an expression takes many.
    joined : rows are compared with a list that is joined to them.
    """

    fault: Fault
    found: nw.Expr
    rows: nw.Expr | None = None
    single: bool = False
    empty: bool = False
    right: str | None = None
    joined: bool = False


@dataclass(frozen=True, slots=True)
class Pass:
    """The checks of one query.

    Attributes
    ----------
    table : the parameter that the rows came as: "source", "workplaces" or "workers".
    frame : what the aggregates are of.
    checks : what must not be.
    rows : where rows at fault are looked for; `frame` itself where it has the rows.
    key : the column that must not repeat, where this is all that is asked.
    alone : the rows before lists were joined to them.
    """

    table: str
    frame: Frame
    checks: Sequence[RowCheck]
    rows: Frame
    key: str | None = None
    alone: Frame | None = None

    @property
    def asked(self) -> Frame:
        """What the aggregates are of: for a key, its values."""
        return self.frame if self.key is None else repetitions(self.frame, self.key)

    def faults(self) -> list[Fault]:
        """The faults that some rows have, in one pass."""
        found = tally(self.asked, {check.fault: check.found for check in self.checks}, step=f"check {self.table}")
        return [fault for fault, n in found.items() if n]

    @property
    def filled(self) -> bool:
        """Whether no row at all is a fault."""
        return any(check.empty for check in self.checks)

    def wrong(self, filled: bool) -> Iterator[Frame]:
        """Frames of one row: whether there is any fault, and whether there is no row if they must be `filled`.

        Many rows are scanned once for each kind of fault, with the columns that it needs: one truth of all columns of a
        row takes Spark half as long again.
        """
        import narwhals.stable.v2 as nw

        alone = self.asked if self.alone is None else self.alone
        for frame, joined in ((alone, False), (self.frame, True)):
            single = [check for check in self.checks if check.single and check.joined is joined]
            if single:
                yield _at_fault(frame, single).select((nw.len() > 0).alias("wrong"))
        found = [check.found.cast(nw.Boolean) for check in self.checks if not check.single and not check.empty]
        if filled:
            found.append((nw.len() if self.key is None else nw.col("rows").sum().fill_null(0)) == 0)
        if found:
            yield alone.select(nw.any_horizontal(*found, ignore_nulls=True).alias("wrong"))


def _at_fault(frame: Frame, checks: Sequence[RowCheck]) -> Frame:
    """The rows that have one of the faults; on Spark, where SQL tells all of them, also those that may have one."""
    import narwhals.stable.v2 as nw

    right = [check.right for check in checks]
    if frame.implementation.is_pyspark() and None not in right:
        return those(frame, f"NOT coalesce({' AND '.join(map(str, right))}, false)")
    return frame.filter(
        nw.any_horizontal(*(check.rows for check in checks if check.rows is not None), ignore_nulls=True)
    )


def faults_of(lists: Callable[[], Iterable[Pass]], rows: Callable[..., Iterable[Pass]]) -> list[Fault]:
    """The faults of lists and of rows; `rows` needs to know whether lists are sound.

    Spark first asks in one query whether there are any.
    """
    asked = [*lists(), *rows(sound_lists=True)]
    if all(one.frame.implementation.is_spark_like() for one in asked) and sound(asked):
        return []
    listed = [fault for one in lists() for fault in one.faults()]
    return [*listed, *(fault for one in rows(sound_lists=not listed) for fault in one.faults())]


def sound(passes: Iterable[Pass]) -> bool:
    """Whether no row is at fault, in one query: on Spark each query has a start of its own. Faults take others."""
    import narwhals.stable.v2 as nw

    asked = [*passes]
    counted = {one.table: one for one in asked if one.filled} | {one.table: one for one in asked if one.key is not None}
    filled = [counted[one.table] for one in asked if one.filled]  # who counts a key's rows knows whether there are any
    wrong = [frame for one in asked for frame in one.wrong(any(one is each for each in filled))]
    return not wrong or not any(collect(nw.concat(wrong), step="check rows")["wrong"].to_pylist())


def each_row(fault: Fault, at_fault: nw.Expr, right: str | None = None, *, joined: bool = False) -> RowCheck:
    """A fault that a row has by itself, or beside a list that is `joined` to it."""
    return RowCheck(fault, at_fault.any(), at_fault, single=True, right=right, joined=joined)


def empty(name: str) -> list[RowCheck]:
    """No rows at all."""
    import narwhals.stable.v2 as nw

    fault = Fault(role(name), f"{name} has no rows.", remedy="Check the export, or the filter that made it.")
    return [RowCheck(fault, (nw.len() == 0).cast(nw.Int64), empty=True)]


def role(name: str) -> str:
    """The parameter that a table came as; jobs have a name of their own."""
    return name if name in ("workplaces", "workers") else "source"


AMOUNT = "number", "Numbers have a decimal point, and no mark for thousands."
"""What amounts are: text of a file that is no such number was read as none."""


def nulls(name: str, columns: Iterable[str], lacking: tuple[str, str] = ("value", "")) -> list[RowCheck]:
    """Rows without a value; `lacking` says of what kind, and how it is written."""
    import narwhals.stable.v2 as nw

    return [
        each_row(
            Fault(
                role(name),
                f"Column {column!r} of {name} has no {lacking[0]} in some rows.",
                lacking[1],
                ("Fill them in or drop them at the source.", WHERE),
            ),
            nw.col(column).is_null(),
            f"{tick(column)} IS NOT NULL",
        )
        for column in columns
    ]


def names_again(name: str, frame: Frame, columns: Sequence[str]) -> list[RowCheck]:
    """A row that holds the names of the columns: files with their own lines of names were joined."""
    import narwhals.stable.v2 as nw

    types = frame.collect_schema()
    if len(columns) < 2 or any(types.get(column) != nw.String for column in columns):
        return []
    fault = Fault(
        role(name),
        f"A row of {name} holds the names of columns.",
        "The line of names is there once, in front.",
        ("Drop the row.", WHERE),
    )
    held = nw.all_horizontal(*(nw.col(column) == column for column in columns), ignore_nulls=False)
    plain = not any({*column} & {"'", "\\"} for column in columns)
    right = " OR ".join(f"{tick(column)} <> '{column}'" for column in columns)
    return [each_row(fault, held, f"({right})" if plain else None)]


def outside(
    name: str, domains: Mapping[str, Sequence[Label]], declared: str = "the schema's worker_attributes"
) -> list[RowCheck]:
    """Categories that the public domain does not have. The domain is shown, what was found is not."""
    import narwhals.stable.v2 as nw

    return [
        each_row(
            Fault(
                role(name),
                f"Column {column!r} of {name} has rows outside its public domain, which is: "
                f"{', '.join(map(str, domain))}.",
                remedy=(f"Recode them, or add the category to {declared}.", WHERE),
            ),
            ~nw.col(column).is_null() & ~nw.col(column).is_in(domain),
            _among(column, domain),
        )
        for column, domain in domains.items()
    ]


def tick(name: str) -> str:
    """A column's name in the SQL of Spark."""
    return f"`{name.replace('`', '``')}`"


def _among(column: str, domain: Sequence[Label]) -> str | None:
    """That a value is one of the domain's, in the SQL of Spark; None where its settings decide how a text is read."""
    if any(isinstance(value, str) and {*value} & {"'", "\\"} for value in domain):
        return None
    listed = ", ".join(f"'{value}'" if isinstance(value, str) else str(value) for value in domain)
    return f"{tick(column)} IN ({listed})"


def differ(name: str, key: str, columns: Iterable[str], whose: str, remedy: str) -> list[RowCheck]:
    """A key with several values of a column; the aggregates are of `ends` of the same columns by key."""
    import narwhals.stable.v2 as nw

    return [
        RowCheck(
            Fault("source", f"Column {column!r} of {name} has more than one value {whose}.", "", (remedy, WHERE)),
            (nw.col(f"__min {column}") != nw.col(f"__max {column}")).any(),
            nw.col(column).min().over(key) != nw.col(column).max().over(key),
        )
        for column in columns
    ]


def ends(columns: Iterable[str]) -> list[nw.Expr]:
    """The least and the greatest value of columns, by which `differ` tells."""
    import narwhals.stable.v2 as nw

    return [getattr(nw.col(column), end)().alias(f"__{end} {column}") for column in columns for end in ("min", "max")]


def twice(rows: Frame, *, name: str) -> Pass:
    """Whether two rows with a size agree in every column."""
    import narwhals.stable.v2 as nw

    fault = Fault(
        "source",
        f"{name} has rows that are there twice, with the same value in every column.",
        "Their jobs would be counted twice.",
        ("Drop the repetitions, or add the column that tells such rows apart.", WHERE),
    )
    columns = [column for column in rows.collect_schema() if column != ROW]
    times = rows.group_by(*columns).agg(nw.len().alias("__times"))
    check = RowCheck(fault, (nw.col("__times") > 1).any(), nw.len().over(*columns) > 1)
    return Pass("source", times, [check], rows)


SEVERAL = (
    " If rows are of several periods, name these: ",
    Spelled("read_histories", plan="quarters and time in [data]", command="--quarters and --time"),
    ". Or ",
    Spelled("pass", plan="write"),
    " ",
    Argument("allow_multiple", True, under="data"),
    ", if several jobs are meant.",
)


def once(rows: Frame, name: str, key: str, way_out: tuple[str | Phrase, ...] = ()) -> Pass:
    """Whether a key is there more than once. It is looked at alone: Spark moves what is beside it with every key."""
    import narwhals.stable.v2 as nw

    fault = Fault(
        role(name),
        f"Column {key!r} of {name} repeats; each must be there once.",
        remedy=("Drop the repetitions.", *way_out, WHERE),
    )
    check = RowCheck(fault, (nw.col("rows") > nw.col("values")).any(), nw.len().over(key) > 1)
    return Pass(role(name), rows, [check], rows, key)


def refuse_values_for_names(frame: Frame, columns: Iterable[str] | None = None, *, name: str = "the file") -> None:
    """Refuse a table whose names may be its first row: one is a value of its own column.

    Without `columns` that somebody declared, names without a letter are also refused: numbers, dates, codes.
    """
    import narwhals.stable.v2 as nw

    types = frame.collect_schema()
    asked = [column for column in types if columns is None or column in set(columns)]
    texts = [column for column in asked if types[column] == nw.String]
    again = tally(frame, {column: count_if(nw.col(column) == column) for column in texts}, step="read names")
    odd = columns is None and not all(any(map(str.isalpha, column)) for column in asked)
    if odd or any(again.values()):
        raise DataError(
            f"The first line of {name} may be a row and not the names of the columns.",
            "Names are shown and written; no row is.",
            "Add the line of names. A name has a letter, and is no value of its column.",
            about="source",
        )


ROW = "__row"
"""The column with the number of a row, where rows are looked for. Schemas have no such names."""


def one_row_per_job(schema: Schema, allow_multiple: bool | int) -> Iterator[Fault]:
    """Amounts of workers with several jobs: rows of one job could not be told from those of two."""
    if schema.magnitudes and allow_multiple is not False and schema.worker is not None:
        yield Fault(
            "allow_multiple",
            (Argument("allow_multiple", allow_multiple), " with amounts: rows of one job look like rows of two."),
            "Amounts need one row per worker, or rows that are counted already.",
            "Give each job a row and a number of its own, or leave magnitudes out.",
        )


def _most(cap: int, jobs: str | None) -> nw.Expr:
    """The most that a row's jobs may add, in 64 bits: no amount reaches 2^53, where further jobs count for nothing."""
    import narwhals.stable.v2 as nw

    least, most = nw.lit(1), nw.lit(MOST_JOBS // cap + 1)
    size = least if jobs is None else nw.min_horizontal(nw.max_horizontal(nw.col(jobs), least), most)
    return cap * size.cast(nw.Int64)


def whole_units(
    magnitudes: Mapping[str, Magnitude], types: Mapping[str, nw.dtypes.DType], *, jobs: str | None
) -> Iterator[nw.Expr]:
    """Amounts in whole units, cut at the cap where that was declared; null where one is no number to be summed.

    An amount just below zero or just above the cap is rounded away from it: it is refused, or cut, as any other.
    """
    import narwhals.stable.v2 as nw

    for column, magnitude in magnitudes.items():
        found = nw.col(column)
        most = _most(magnitude.cap, jobs)
        if not types[column].is_integer():
            number = found.cast(nw.Float64)
            within = nw.max_horizontal(nw.min_horizontal(number, nw.lit(1.0 * MOST_JOBS)), nw.lit(-1.0 * MOST_JOBS))
            whole = nw.when(number.is_finite()).then(within.round(0)).cast(nw.Int64)
            low = nw.when((number < 0) & (whole == 0)).then(nw.lit(-1)).otherwise(whole)
            found = nw.when((number > most) & (whole == most)).then(most + 1).otherwise(low)
        if case_of(magnitude.beyond, {"clip": True, "refuse": False}):
            found = nw.when(found > most).then(most).otherwise(found)
        yield found.alias(column)


def amounts(magnitudes: Mapping[str, Magnitude], name: str, *, jobs: str | None) -> list[RowCheck]:
    """Amounts that are missing, negative, above the cap of a row's jobs, or too large to be added exactly."""
    import narwhals.stable.v2 as nw

    found = nulls(name, magnitudes, AMOUNT)
    for column, magnitude in magnitudes.items():
        negative = f"Column {column!r} of {name} is negative in some rows."
        found.append(
            each_row(
                Fault("source", negative, remedy=("Amounts are 0 or more: correct them.", WHERE)), nw.col(column) < 0
            )
        )
        found.append(
            each_row(
                Fault(
                    f"magnitudes.{column}",
                    f"Column {column!r} of {name} is above its cap, {magnitude.cap:,} for a worker, in some rows.",
                    "The cap is the most that one worker adds.",
                    ("Raise it, correct the rows, or have them cut to it with beyond = 'clip'.", WHERE),
                ),
                nw.col(column) > _most(magnitude.cap, jobs),
            )
        )
        huge = f"Column {column!r} of {name} adds up to {MOST_JOBS:,} or more."
        total = nw.col(column).cast(nw.Float64).sum() >= MOST_JOBS
        found.append(
            RowCheck(Fault("source", huge, "Sums would not be exact.", "Count in thousands."), total.cast(nw.Int64))
        )
    return found


def at_the_cap(magnitudes: Mapping[str, Magnitude], name: str, *, jobs: str | None) -> list[RowCheck]:
    """Amounts that may have been cut, for the owner alone: how many there are is confidential."""
    import narwhals.stable.v2 as nw

    return [
        each_row(
            Fault(
                f"magnitudes.{column}",
                f"Column {column!r} of {name} is at its cap, {magnitude.cap:,}, or was cut to it, in some rows.",
                "Sums lack what is cut, and no release says how much that is.",
                "Raise the cap if these are many.",
            ),
            nw.col(column) == _most(magnitude.cap, jobs),
        )
        for column, magnitude in magnitudes.items()
        if magnitude.beyond == "clip"
    ]


def sizes(column: str, name: str) -> list[RowCheck]:
    """Numbers of jobs that are none, or too many to be added exactly."""
    import narwhals.stable.v2 as nw

    negative = f"Column {column!r} of {name} is negative in some rows."
    huge = f"Column {column!r} of {name} adds up to {MOST_JOBS:,} jobs or more, or has such a size."
    jobs = nw.col(column).cast(nw.Float64)
    return [
        each_row(Fault("source", negative, remedy=("Sizes count jobs: correct them.", WHERE)), nw.col(column) < 0),
        RowCheck(
            Fault("source", huge, "Sums would not be exact.", "Check the sizes: one may stand for a missing value."),
            ((jobs.max() >= MOST_JOBS) | (jobs.sum() >= MOST_JOBS)).cast(nw.Int64),
            jobs >= MOST_JOBS,
        ),
    ]
