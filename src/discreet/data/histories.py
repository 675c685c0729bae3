"""Job histories: who had a job where in which quarter, and what follows for the workers of one quarter.

Flows of quarter t follow the definitions of the Quarterly Workforce Indicators. A job is a worker at an establishment.
Beginning employment are jobs of t that existed in t - 1, end employment those that exist in t + 1, accessions jobs of t
that did not exist in t - 1, separations those that do not exist in t + 1. So every job of t is of one of four kinds
(`KINDS`), and its kind is an attribute of its worker like any other. Statistics are elsewhere (`tables.movement.flows`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data.codes import Codes, code
from discreet.data.engines import Engine
from discreet.data.frames import called, count_if, refuse, tally, working
from discreet.data.jobs import Jobs, read_jobs
from discreet.data.one_at_a_time import in_turn
from discreet.data.row_checks import Pass, differ, empty, ends, nulls, outside
from discreet.data.scans import folder_of
from discreet.data.schema import Label, Schema, several_jobs
from discreet.ledger.periods import Period
from discreet.words.arguments import of_kinds
from discreet.words.errors import DataError, PrivacyError
from discreet.words.faults import Argument, Fault

if TYPE_CHECKING:
    from discreet.data.frames import Frame
    from discreet.privacy.units import Unit

HISTORY = "history"
STAYED, PASSED, CAME, LEFT = KINDS = ("stayed", "came and left", "came", "left")
"""Jobs that existed before and after; neither; not before; not after."""

CHANGES = (STAYED, CAME, LEFT)
"""The three states of a job that exists in at least one of two quarters."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Histories:
    """The confidential table of jobs in several quarters, still in its engine.

    Attributes
    ----------
    jobs : all rows, with repetitions, and the quarter as an attribute of the worker.
    schema : which column is what; the quarter is not in it.
    time : the column with the quarter.
    quarters : all of them, in their order. Public.
    allow_multiple : whether a worker may have jobs at several establishments in one quarter, or at how many.
    """

    jobs: Jobs
    schema: Schema
    time: str
    quarters: tuple[Label, ...]
    allow_multiple: bool | int = False

    @classmethod
    def declared(
        cls, jobs: Jobs, *, quarters: Sequence[Label], time: str, allow_multiple: bool | int = False
    ) -> Histories:
        """Histories of which nothing is known but their schema, that of `jobs`: enough to price a query."""
        refuse(history_faults(quarters, jobs.schema, time))
        return cls(jobs, jobs.schema, time, tuple(quarters), allow_multiple)

    @property
    def name(self) -> str:
        """What messages call the table."""
        return self.jobs.name

    @property
    def origin(self) -> str | None:
        """Which files were read; None for frames."""
        return self.jobs.origin

    def __repr__(self) -> str:
        span = f"{self.quarters[0]} to {self.quarters[-1]}"
        return (
            f"Histories {self.name!r}: {len(self.quarters)} quarters, {span}. Confidential: only the schema is shown."
        )

    def validate(self) -> Histories:
        """Check every row, and report all faults together.

        Every row is of a declared quarter, each quarter is a sound table of jobs, and an establishment stays in its
        cell. The state of a job before and after describes the job, so a worker may have several values of it. A
        quarter may have no rows: a refusal would reveal whether its only job exists.
        """
        with working(f"check {self.name}"):
            for one in self.passes():
                refuse(one.faults())
            for jobs in self.each_quarter():
                jobs.validate(may_be_empty=True)
        return replace(self, jobs=replace(self.jobs, validated=True))

    def passes(self) -> Iterator[Pass]:
        """Checks of the rows of all quarters together; each has a meaning if those before it find nothing."""
        table, schema = self.jobs.table, self.schema
        checks = [*empty(self.name), *nulls(self.name, [*schema.keys, self.time])]
        checks += outside(self.name, {self.time: Codes.of(self.quarters)}, "the list of quarters")
        yield Pass("source", table, checks, table)
        attributes = schema.workplace_attributes
        if self.jobs.workplaces is None and attributes:
            remedy = "An establishment lies in one cell: correct it, or give each site a number of its own."
            moved = differ(self.name, schema.establishment, attributes, "in some establishment", remedy)
            yield Pass("source", table.group_by(schema.establishment).agg(*ends(attributes)), moved, table)

    def each_quarter(self) -> Iterator[Jobs]:
        """The jobs of every quarter under one name: a refusal does not say which one has a fault."""
        return (replace(self.at(quarter), name=f"a quarter of {self.name}") for quarter in self.quarters)

    def quarters_without_rows(self) -> list[Label]:
        """Declared quarters that no row is of. Confidential: for the owner of the data alone."""
        import narwhals.stable.v2 as nw

        rows = {quarter: count_if(nw.col(self.time) == code(quarter)) for quarter in self.quarters}
        return [quarter for quarter, count in tally(self.jobs.table, rows, step="count quarters").items() if not count]

    def at(self, quarter: Label) -> Jobs:
        """The jobs of one quarter, for tables of counts."""
        return self._jobs(self._distinct(self._position(quarter)), self.schema, (quarter,))

    def around(self, quarter: Label) -> Jobs:
        """The jobs of one quarter, each with its kind by the quarters before and after as the attribute `HISTORY`."""
        import narwhals.stable.v2 as nw

        at = self.inside(quarter)
        key = [str(self.schema.worker), self.schema.establishment]
        table = self._distinct(at)
        for place, mark in ((at - 1, "__before"), (at + 1, "__after")):
            other = self._rows(place).select(*key).unique().with_columns(nw.lit(1).alias(mark))
            table = table.join(other, on=key, how="left")
        before, after = (~nw.col(mark).is_null() for mark in ("__before", "__after"))
        kind = (
            nw.when(before & after)
            .then(nw.lit(STAYED))
            .otherwise(
                nw.when(before)
                .then(nw.lit(LEFT))
                .otherwise(nw.when(after).then(nw.lit(CAME)).otherwise(nw.lit(PASSED)))
            )
        )
        table = table.with_columns(kind.alias(HISTORY)).drop("__before", "__after")
        schema = replace(self.schema, worker_attributes={**self.schema.worker_attributes, HISTORY: KINDS})
        return self._jobs(table, schema, self.quarters[at - 1 : at + 2])

    def inside(self, quarter: Label) -> int:
        """The position of a quarter that has one before it and one after it; no row is read."""
        at = self._position(quarter)
        if at in (0, len(self.quarters) - 1):
            side = "before" if at == 0 else "after"
            raise DataError(
                (Argument("quarter", quarter), f" has no quarter {side} it in the list."),
                "Flows compare a quarter with the one before and the one after.",
                f"Use one from {self.quarters[1]!r} to {self.quarters[-2]!r}."
                if len(self.quarters) > 2
                else "Give three quarters or more.",
                about="quarter",
            )
        before, now, after = map(when_is, self.quarters[at - 1 : at + 2])
        for one, other in ((before, now), (now, after)):
            if one is not None and other is not None and one.later(1) != other:
                raise DataError(
                    (Argument("quarter", quarter), f" is beside {one if other == now else other} in the list."),
                    "Flows compare a quarter with the one before and the one after.",
                    f"Add {one.later(1)} to the list and to the data, or use another quarter.",
                    about="quarter",
                )
        return at

    def in_order(self, quarters: Sequence[Label]) -> tuple[Label, ...]:
        """Two quarters or more, if they are here and in their order; no row is read."""
        asked = tuple(quarters) if isinstance(quarters, Sequence) and not isinstance(quarters, str | bytes) else ()
        places = [self._position(quarter) for quarter in asked]
        if len(asked) < 2 or places != sorted({*places}):
            raise DataError(
                (Argument("quarters", quarters), " does not list quarters in their order."),
                "A change is from one quarter to a later one.",
                "List two or more, the earliest first.",
                about="quarters",
            )
        return asked

    def limits(self, unit: Unit) -> tuple[str, ...]:
        """What a promise about a quarter does not cover, as `Jobs.limits`."""
        return self.one_quarter.limits(unit)

    @property
    def one_quarter(self) -> Jobs:
        """The schema of the jobs of a quarter; it holds all rows."""
        return replace(self.jobs, schema=self.schema, allow_multiple=self.allow_multiple)

    def between(self, earlier: Label, later: Label) -> Jobs:
        """The jobs of either of two quarters, each with what became of it as the attribute `HISTORY`.

        A table of counts by `HISTORY` has both levels and the change: stayed and left are jobs of the earlier quarter,
        stayed and came of the later one. At the same epsilon the change has less error than the difference of two
        tables.
        """
        import narwhals.stable.v2 as nw

        first, last = self._position(earlier), self._position(later)
        if first >= last:
            raise DataError(
                (Argument("later", later), f" is not after {earlier!r}."),
                "A change is from one quarter to a later one.",
                "Exchange them, or use another quarter.",
                about="later",
            )
        names = [str(self.schema.worker), self.schema.establishment]
        if self.jobs.workplaces is None:
            names += self.schema.workplace_attributes
        marked = [
            self._rows(place)
            .select(*names)
            .with_columns(nw.lit(one).alias("__before"), nw.lit(1 - one).alias("__after"))
            for place, one in ((first, 1), (last, 0))
        ]
        table = nw.concat(marked, how="vertical").group_by(*names).agg(nw.col("__before", "__after").max())
        before, after = (nw.col(mark) > 0 for mark in ("__before", "__after"))
        kind = (
            nw.when(before & after)
            .then(nw.lit(STAYED))
            .otherwise(nw.when(after).then(nw.lit(CAME)).otherwise(nw.lit(LEFT)))
        )
        table = table.with_columns(kind.alias(HISTORY)).drop("__before", "__after")
        found = self._jobs(table, replace(self.schema, worker_attributes={HISTORY: CHANGES}), (earlier, later))
        # Who changed the employer has a job at two establishments, one in each quarter.
        several = self.allow_multiple if self.allow_multiple is True else 2 * int(self.allow_multiple or 1)
        return replace(found, allow_multiple=several)

    def _position(self, quarter: Label) -> int:
        codes = Codes.of(self.quarters)
        if code(quarter) not in codes:
            raise DataError(
                (Argument("quarter", quarter), f" is not a quarter of {self.name}."),
                f"There are: {', '.join(map(str, self.quarters))}.",
                "Use one of them.",
                about="quarter",
            )
        return codes.index(code(quarter))

    def _rows(self, position: int) -> Frame:
        """The rows of one quarter, with repetitions."""
        import narwhals.stable.v2 as nw

        return self.jobs.table.filter(nw.col(self.time) == code(self.quarters[position])).drop(self.time)

    def _distinct(self, position: int) -> Frame:
        """One row per job of one quarter."""
        return replace(self.jobs, table=self._rows(position)).distinct(compared=self.jobs.validated)

    def _jobs(self, table: Frame, schema: Schema, quarters: tuple[Label, ...]) -> Jobs:
        found = replace(self.jobs, table=table, schema=schema, allow_multiple=self.allow_multiple)
        return replace(found, known=self.establishments if self.jobs.workplaces is None else None, quarters=quarters)

    @property
    def establishments(self) -> Frame:
        """The public list, or establishments of all quarters: which of them have no job in one is confidential."""
        import narwhals.stable.v2 as nw

        if self.jobs.workplaces is not None:
            return self.jobs.workplaces
        key, names = self.schema.establishment, self.schema.workplace_attributes
        rows = self.jobs.table
        return rows.group_by(key).agg(nw.col(*names).min()) if names else rows.select(key).unique()


@of_kinds
@in_turn
def read_histories(
    source: Any,
    *,
    quarters: Sequence[Label],
    time: str = "quarter",
    workplaces: Any = None,
    schema: Schema | Mapping[str, Any] | str | Path | None = None,
    allow_multiple: bool | int = False,
    validate: bool = True,
    engine: Engine | None = None,
) -> Histories:
    """Open a confidential table of job histories: one row for each worker, establishment and quarter.

    Parameters
    ----------
    source : a path, or a frame of pandas, Polars, Arrow, DuckDB or Spark.
    quarters : all quarters in their order. They are public, and are never learned from the rows.
    time : the column that has the quarter.
    workplaces : the public list of establishments with their attributes; without it they are columns of `source`.
    schema : the role of each column except the quarter; by default `schema.toml` or `schema.json` beside the data.
    allow_multiple : whether a worker may have jobs at several establishments in a quarter: False, True, or at how many.
    validate : whether every row is checked.
    engine : the engine that computes; by default that of the data, and DuckDB for files.

    Returns
    -------
    The histories, checked. Nothing of them is shown.

    Examples
    --------
    >>> rows = {"workplace": ["a", "a", "a"], "worker": [1, 1, 1], "quarter": ["q1", "q2", "q3"], "county": ["01"] * 3}
    >>> read_histories(rows, quarters=["q1", "q2", "q3"], schema=Schema(["county"], {})).quarters
    ('q1', 'q2', 'q3')
    """
    allow_multiple = several_jobs(allow_multiple)
    own = Schema.given(schema, data=folder_of(source), name=called(source, "histories"))
    refuse(history_faults(quarters, own, time))
    timed = replace(own, worker_attributes={**own.worker_attributes, time: tuple(quarters)})
    jobs = read_jobs(
        source,
        workplaces=workplaces,
        schema=timed,
        allow_multiple=False,  # repetitions are dropped quarter by quarter, where that matters
        validate=False,
        engine=engine,
    )
    jobs = replace(jobs, allow_multiple=allow_multiple or True)
    found = Histories(jobs, own, time, tuple(quarters), allow_multiple)
    return found.validate() if validate else found


def history_faults(quarters: Sequence[Label], schema: Schema | None, time: str) -> list[Fault]:
    """What is wrong with declared histories: the list of quarters, the schema (if it is known), the column of time."""
    return [*_quarter_faults(quarters), *([] if schema is None else _schema_faults(schema, time))]


def _quarter_faults(quarters: Sequence[Label]) -> list[Fault]:
    listed = isinstance(quarters, Sequence) and all(isinstance(each, str | int) for each in quarters)
    listed = listed and not isinstance(quarters, str | bytes)
    if listed and quarters and len(set(quarters)) == len(quarters) and len({type(one) for one in quarters}) == 1:
        known = [when_is(one) for one in quarters]
        timeless = [one for one, when in zip(quarters, known, strict=True) if when is None]
        if timeless and len(timeless) < len(quarters):
            words = f"{timeless[0]!r} is listed beside quarters that say when they are, and does not."
            return [Fault("quarters", words, "All of them do, or none does.", "Write it as 2024Q4, without blanks.")]
        pairs = [(one, other) for one, other in pairwise(known) if one and other and one.step == other.step]
        return [
            Fault(
                "quarters",
                f"{other} is listed {'twice' if one == other else f'after {one}'}.",
                "Quarters are listed in the order of time.",
                "List the earliest first.",
            )
            for one, other in pairs
            if one.number >= other.number
        ][:1]
    return [
        Fault(
            "quarters",
            (Argument("quarters", quarters), " does not list quarters."),
            "It lists different values of one type, in the order of time.",
            ("Use for example ", Argument("quarters", ["2024Q1", "2024Q2", "2024Q3"]), "."),
        )
    ]


def when_is(quarter: Label) -> Period | None:
    """When a quarter is, where its name tells."""
    try:
        return Period.of(str(quarter))
    except PrivacyError:
        return None


def _schema_faults(schema: Schema, time: str) -> list[Fault]:
    faults = []
    if schema.worker is None:
        faults.append(
            Fault(
                "schema",
                "The schema has no worker.",
                "Flows follow workers from quarter to quarter.",
                "Name the column that identifies the worker, and leave the size out.",
            )
        )
    if schema.magnitudes:
        faults.append(
            Fault(
                "schema",
                "Job histories have no amounts.",
                "Flows and changes count jobs; sums are of one quarter.",
                "Leave magnitudes out, and add up amounts from a source of one quarter.",
            )
        )
    if time in (*schema.keys, *schema.workplace_attributes, *schema.worker_attributes, HISTORY):
        faults.append(
            Fault(
                "time",
                (Argument("time", time), " has another role in the schema."),
                "The quarter is a column of its own.",
                "Name the column that has the quarter.",
            )
        )
    if HISTORY in (*schema.keys, *schema.workplace_attributes, *schema.worker_attributes):
        faults.append(
            Fault(
                "schema",
                f"Column {HISTORY!r} has a name that flows need themselves.",
                remedy="Rename it at the source.",
            )
        )
    return faults
