"""What the owner of a plan's data should know before it is run: read from the data, and no part of any release."""

from __future__ import annotations

from discreet.errors import DiscreetError
from discreet.plan.confidential import Confidential
from discreet.plan.reading import PlanFile
from discreet.plan.shape import ModelSection
from discreet.privacy.units import Rows
from discreet.voices import PLAN


def owner_notes(file: PlanFile) -> list[str]:
    """Warnings for whoever may see the data; empty where nothing was found."""
    data, unit = Confidential(file), file.plan.unit.unit()
    if not isinstance(unit, Rows):
        try:
            data.jobs()
        except DiscreetError as error:
            return [fault.said(PLAN) for fault in error.faults]
        return []
    from discreet.lmm.private.owner import look

    lagged = [column for release in file.plan.release if isinstance(release, ModelSection) for column in release.lagged]
    bounds = (unit.lower, unit.upper)
    return [
        str(note)
        for response in unit.responses
        for note in look(data.path, response=response, public=file.plan.data.public, bounds=bounds, lagged=lagged)
    ]
