"""What the report says about a plan that was carried out, gathered from published files and the ledger alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import version

from discreet.ledger import Budget, Entry, Head
from discreet.plan.check import PlanCheck
from discreet.release.files import MANIFEST
from discreet.report.release import Facts, Release


def facts_of(found: PlanCheck, publications: Mapping[str, Entry], *, budget: Budget, head: Head) -> Facts:
    """Everything the page shows."""
    plan, folder = found.file.plan, found.file.path(found.file.plan.output.folder)
    releases = []
    for known in found.releases:
        entry = publications[known.name]
        promise = json.loads((folder / known.name / MANIFEST).read_text(encoding="utf-8"))["guarantee"]
        releases.append(
            Release(
                name=known.name,
                title=known.request.release.title,
                loss=known.loss,
                promise=promise["sentence"],
                private=promise["private"],
                entry=entry.seq,
                when=str(entry.payload["at"]),
                results=known.request.results(folder / known.name),
                files=dict(entry.payload["files"]),
            )
        )
    return Facts(
        title=plan.title,
        dataset=plan.budget.dataset,
        unit=plan.unit.unit(),
        total=budget.total,
        remaining=budget.remaining,
        releases=releases,
        head=head.hash,
        version=version("discreet"),
        jobs=found.jobs_of_one_worker,
    )
