"""What the owner of a plan's data should know before it is run. It is read from the data and is part of no release."""

from __future__ import annotations

from contextlib import suppress

from discreet.errors import DiscreetError
from discreet.plan.confidential import Confidential
from discreet.plan.engine import at_work
from discreet.plan.file import PlanFile, PlanSource
from discreet.plan.shape import ModelSection
from discreet.plan.twins import twins
from discreet.privacy.units import Groups, Rows
from discreet.voices import PLAN


def owner_notes(file: PlanFile) -> list[str]:
    """Warnings for a person who may see the data; empty if nothing was found."""
    with at_work():
        notes = [note for source in file.sources for note in _notes(source)]
        with suppress(DiscreetError):  # what cannot be opened is told already
            notes += twins(file)
        return notes


def _notes(source: PlanSource) -> list[str]:
    data, unit = Confidential(source), source.unit
    if not isinstance(unit, Rows | Groups):
        try:
            if not source.tables.data.quarters:
                data.jobs()
                return []
            empty = data.histories().quarters_without_rows()
        except DiscreetError as error:
            return [fault.said(PLAN) for fault in error.faults]
        return [f"No row is of quarter {quarter!r}. It would be released as one without jobs." for quarter in empty]
    from discreet.lmm.private.owner import look

    lagged = [column for release in source.releases if isinstance(release, ModelSection) for column in release.lagged]
    bounds, public = (unit.lower, unit.upper), source.tables.data.public
    return [
        str(note)
        for response in unit.responses
        for note in look(data.table([response]), response=response, public=public, bounds=bounds, lagged=lagged)
    ]
