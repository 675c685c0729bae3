"""What the guarantee of a table of counts says about the data it holds for."""

from __future__ import annotations

from discreet.jobs import Jobs
from discreet.privacy.units import EstablishmentNodes, Unit


def limits(jobs: Jobs, unit: Unit) -> tuple[str, ...]:
    """Every limit of the promise that follows from what was declared, never from what the rows hold."""
    notes = {
        ASSUMED_PUBLIC: jobs.workplaces is None,
        NOT_VALIDATED: not jobs.validated,
        TRUNCATED: isinstance(unit, EstablishmentNodes),
    }
    return (*(note for note, applies in notes.items() if applies), *_several_jobs(jobs, unit))


def _several_jobs(jobs: Jobs, unit: Unit) -> tuple[str, ...]:
    """What the promise is about where a worker may have several jobs. Whole establishments have all of their jobs."""
    if isinstance(unit, EstablishmentNodes) or (jobs.schema.worker is not None and jobs.most_jobs == 1):
        return ()
    if jobs.schema.worker is None:
        return (
            "Workers have no name in these data, so two jobs of one are taken for two workers: the promise is about "
            "one job",
        )
    if jobs.most_jobs is None:
        return (
            "A worker may have jobs at several establishments: the promise is about one of them, not about all jobs of "
            "a worker together",
        )
    return (
        f"A worker may have jobs at up to {jobs.most_jobs} establishments: about all of them together as much may be "
        f"told as about {jobs.most_jobs} such changes, {jobs.most_jobs} times the epsilon",
    )


TRUNCATED = (
    "Jobs of establishments larger than theta are not counted: counts are of the others, and so are their intervals, "
    "which need not hold the count of all jobs"
)
NOT_VALIDATED = (
    "The rows were not validated: an establishment in two cells, or a worker with two jobs, would not be covered"
)
ASSUMED_PUBLIC = (
    "No public list of establishments was given: the cells are those of the establishments in the table of jobs, "
    "whose existence is taken to be public"
)
