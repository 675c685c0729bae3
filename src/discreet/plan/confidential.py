"""The confidential data of a plan: opened when first asked for, every row checked, each cell counted once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from pathlib import Path

from discreet.jobs import Jobs, read_jobs
from discreet.plan.reading import PlanFile
from discreet.tables.cells import Cells
from discreet.tables.mechanisms import Baseline
from discreet.tables.query import CountQuery, Prepared


@dataclass(slots=True)
class Confidential:
    """The data that a plan is about."""

    file: PlanFile
    _jobs: Jobs | None = None
    _read: dict[Hashable, Cells] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return self.file.path(self.file.plan.data.source)

    def jobs(self) -> Jobs:
        """The table of jobs, after every row was found to be as the schema promises."""
        if self._jobs is None:
            data = self.file.plan.data
            self._jobs = read_jobs(
                self.path,
                workplaces=None if data.workplaces is None else self.file.path(data.workplaces),
                workers=None if data.workers is None else self.file.path(data.workers),
                schema=self.file.schema(),
                allow_multiple=data.allow_multiple,
            )
        return self._jobs

    def statistics(self, query: CountQuery, ready: Prepared) -> Cells:
        """The confidential aggregates of a table.

        Of all workers of a cell both the count and the largest establishment are known when the cell has been counted
        by kinds of workers, so a table without worker attributes needs no pass of its own after one that has them.
        """
        workers = query.jobs.schema.worker_attributes
        theta = ready.mechanism.theta if isinstance(ready.mechanism, Baseline) else None
        kept = tuple((name, values) for name, values in query.where.items() if name not in workers)
        cells = (query.workplace_by, kept, theta)
        if not query.concerns_workers and cells in self._read:
            return _all_workers(self._read[cells])
        found = replace(query, jobs=self.jobs()).statistics(ready)
        if len(kept) == len(query.where):
            self._read[cells] = found
        return found


def _all_workers(cells: Cells) -> Cells:
    """The statistics of the same cells for workers of all kinds together."""
    return replace(
        cells,
        worker_by=(),
        levels=((),),
        counts=cells.counts.sum(axis=1, keepdims=True),
        largest=cells.largest_total[:, None],
    )
