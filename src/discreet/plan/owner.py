"""What the owner of a plan's data should know before it is run. It is read from the data and is part of no release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from discreet.data.frames import count_if, open_frame, tally
from discreet.data.jobs import Jobs
from discreet.data.row_checks import at_the_cap
from discreet.data.unnamed import periods
from discreet.plan.confidential import Confidential
from discreet.plan.copies import twins
from discreet.plan.engine import at_work
from discreet.plan.file import PlanFile, PlanSource
from discreet.plan.kinds.registry import kind_of
from discreet.plan.run import run
from discreet.privacy.units import Groups, Rows
from discreet.words.errors import DiscreetError
from discreet.words.voices import PLAN


class OwnerRefusal(str):
    """A finding for which a run would refuse these data, or publish nothing of what they say."""

    __slots__ = ()


def owner_notes(file: PlanFile) -> list[str]:
    """Warnings for a person who may see the data, if any; an `OwnerRefusal` keeps the plan from being run."""
    with at_work():
        notes = [note for source in file.sources for note in _notes(source)]
        with suppress(DiscreetError):  # what cannot be opened is told already
            notes += twins(file)
    return notes if any(isinstance(note, OwnerRefusal) for note in notes) else [*notes, *_tried(file)]


def _tried(file: PlanFile) -> list[str]:
    """What else a run would refuse once it has read everything, such as a place that no establishment has."""
    try:
        run(file, dry_run=True)
    except DiscreetError as error:
        return [OwnerRefusal(fault.said(PLAN)) for fault in error.faults]
    return []


def _notes(source: PlanSource) -> list[str]:
    data, unit = Confidential(source), source.unit
    if not isinstance(unit, Rows | Groups):
        try:
            if not source.tables.data.quarters:
                return [*_cut(data.jobs()), *_periods(data)]
            empty = data.histories().quarters_without_rows()
        except DiscreetError as error:
            return [OwnerRefusal(fault.said(PLAN)) for fault in error.faults]
        return [f"No row is of quarter {quarter!r}. It would be released as one without jobs." for quarter in empty]
    from discreet.models.formula.formula import read_formula
    from discreet.models.linear.private.owner import look

    releases = [kind_of(release).of_owner(release) for release in source.releases]
    formulas = [formula for release in releases for formula in release.formulas]
    named = {column for text in formulas for column in read_formula(text, needs_random=False).columns}
    public = source.tables.data.public
    numbers = sorted(named - {*public, *unit.responses})
    asked: Any = {
        "public": public,
        "numbers": numbers,
        "bounds": (unit.lower, unit.upper),
        "lagged": [column for release in releases for column in release.lagged],
        "outcomes": any(release.outcomes for release in releases),
    }
    table = data.table(dict.fromkeys([*unit.responses, *numbers], "response"))
    notes = [note for response in unit.responses for note in look(table, response=response, **asked)]
    told = [OwnerRefusal(note) if note.fault else str(note) for note in notes]
    return list(dict.fromkeys([*told, *_counting_as_nothing(table, formulas, public, numbers)]))


def _counting_as_nothing(
    table: Any, formulas: Iterable[str], public: Sequence[str], numbers: Sequence[str]
) -> Iterator[OwnerRefusal]:
    """Formulas most of whose rows a release would count as nothing, whatever single columns hold."""
    from discreet.models.bayes.regression import regression
    from discreet.models.linear.private.owners_note import MOST

    for formula in dict.fromkeys(formulas):
        with suppress(DiscreetError):  # what has no role, or is not there, is told by the check of the plan
            usable = regression(formula, table, public=public, numbers=numbers).usable
            if usable.mean() < 1 - MOST:
                yield OwnerRefusal(
                    f"Most rows of {formula!r} would count as nothing, with their responses "
                    f"({(~usable).sum():,} of {len(usable):,}). A logarithm is of numbers above 0, and a number is not "
                    "missing or huge. Write other numbers at the source, or use another formula."
                )


def _periods(data: Confidential) -> list[str]:
    """Unused columns by which rows of one job differ: they may be periods."""
    if data.engine is not None or not (schema := data.source.schema()).unused:
        return []
    frame = open_frame(data.path)
    idle = schema.idle(frame.collect_schema())
    return [fault.said(PLAN) for fault, rows in periods(frame, schema, idle) if rows is not None]


def _cut(jobs: Jobs) -> list[str]:
    """Amounts at the cap, where rows above it are cut: how many there are is confidential."""
    import narwhals.stable.v2 as nw

    checks = at_the_cap(jobs.schema.magnitudes, jobs.name, jobs=jobs.schema.size)
    counts = {check.fault: count_if(check.rows) for check in checks if check.rows is not None}
    found = tally(jobs.table, {None: nw.len(), **counts}, step="rows at the cap") if counts else {}
    return [f"{fault.said(PLAN)} These are {n:,} of {found[None]:,} rows." for fault, n in found.items() if fault and n]
