"""What the report says about a plan that was carried out, gathered from published files and the ledger alone."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import numpy as np

from discreet.plan.comparison import compare
from discreet.plan.outputs import read_counts
from discreet.plan.reading import PlanFile
from discreet.plan.requests import Request
from discreet.privacy.ledger import Budget, Entry, Head
from discreet.report.release import Facts, Release, ReleasedTable
from discreet.tables.query import SIZES


def facts_of(
    file: PlanFile,
    requests: Mapping[str, Request],
    publications: Mapping[str, Entry],
    *,
    budget: Budget,
    head: Head,
) -> Facts:
    """Everything the page shows."""
    folder = file.path(file.plan.output.folder)
    return Facts(
        title=file.plan.title,
        dataset=file.plan.budget.dataset,
        unit=file.plan.unit.unit(),
        total=budget.total,
        remaining=budget.remaining,
        releases=[_release(folder / name, requests[name], entry) for name, entry in publications.items()],
        head=head.hash,
        version=version("discreet"),
    )


def _release(folder: Path, request: Request, entry: Entry) -> Release:
    sizes = np.array(SIZES, dtype=np.float64)
    tables = []
    for number, (query, ready, about) in enumerate(
        zip(request.queries, request.ready, request.details["tables"], strict=True)
    ):
        table = read_counts(folder, request, number, request.guarantee)
        tables.append(
            ReleasedTable(
                table=table,
                mechanism=f"{about['mechanism']} ({about['calibration']})",
                loss=ready.guarantee.loss,
                expected=dict(zip(SIZES, ready.mechanism.expected_error(sizes, sizes).tolist(), strict=True)),
                comparison=compare(table, query, ready, stratum=request.release.stratum),
            )
        )
    return Release(
        name=request.name,
        title=request.release.title,
        guarantee=request.guarantee,
        entry=entry.seq,
        when=str(entry.payload["at"]),
        tables=tables,
        files=dict(entry.payload["files"]),
    )
