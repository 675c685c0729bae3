"""The report's facts about a plan that was run, from published files and the ledger alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

import numpy as np

from discreet.ledger import Budget, Entry, Head
from discreet.ledger.budget import readable
from discreet.ledger.claims import claim_of
from discreet.plan.agency_comparison import both_sides, kept, shown
from discreet.plan.check import PlanCheck, ReleaseCheck
from discreet.plan.kinds.alarms import shown as alarms
from discreet.plan.kinds.numbers import ANEW
from discreet.plan.kinds.registry import kind_of
from discreet.privacy.assurance import Claim
from discreet.release.files import MANIFEST
from discreet.report.release import DataSet, Facts, Release

Published: TypeAlias = Mapping[tuple[str, str | None], Mapping[str, str]]
"""Files with their SHA-256 of every release that the ledger knows, by data set and name."""


def facts_of(
    found: PlanCheck,
    publications: Mapping[str, Entry],
    *,
    budgets: Iterable[Budget],
    head: Head,
    lines: Iterable[Entry],
) -> Facts:
    """Everything the page shows; `budgets` are those of the data sets, in the check's order, `lines` theirs."""
    folder = found.file.path(found.file.plan.output.folder)
    lines = list(lines)
    files = {(line.dataset, line.release): line.payload["files"] for line in lines if line.kind == "publish"}
    releases: dict[str, list[Release]] = {}
    for known in found.releases:
        entry = publications[known.name]
        stated = json.loads((folder / known.name / MANIFEST).read_text(encoding="utf-8"))["guarantee"]
        releases.setdefault(known.request.source.dataset, []).append(
            Release(
                name=known.name,
                title=known.request.release.title,
                loss=known.loss,
                claim=Claim.stated(stated, release=known.name, dataset=known.request.source.dataset),
                entry=entry.seq,
                when=str(entry.payload["at"]),
                results=replace(known.request.results(folder / known.name), agency=shown(folder / known.name)),
                files=dict(entry.payload["files"]),
                changed=_changed(known, found.releases, folder, files),
            )
        )
    return Facts(
        title=found.file.plan.title,
        datasets=[
            DataSet(
                dataset=budget.dataset,
                unit=spending.unit,
                total=budget.total,
                remaining=budget.remaining,
                releases=releases.get(budget.dataset, []),
                jobs=spending.jobs_of_one_worker,
                others=[claim_of(line) for line in lines if (line.kind, line.dataset) == ("charge", budget.dataset)],
                periods=[
                    (name, readable(spent), readable(budget.left_in(name) or Fraction(0)))
                    for name, spent in sorted(budget.periods.items())
                ],
            )
            for spending, budget in zip(found.spending, budgets, strict=True)
        ],
        head=head.hash,
        version=version("discreet"),
        alarms=alarms(folder, found.file.plan.alarms),
        people=found.file.plan.people,
    )


def _changed(known: ReleaseCheck, every: Sequence[ReleaseCheck], folder: Path, files: Published) -> str:
    """A revision's facts about the release that it replaces, from the published files of both."""
    name = known.request.release.replaces
    if name is None:
        return ""
    words = [f"This replaces {name!r}, which stays published. Both were paid for: their losses add up."]
    earlier = next((each for each in every if each.name == name), None)
    if earlier is None:
        elsewhere = files.get((known.request.source.dataset, name), {})
        return " ".join([*words, _changed_elsewhere(known, folder / known.name, elsewhere)])
    words += known.request.differences(folder / known.name, earlier.request, folder / name)
    return " ".join(words)


def _changed_elsewhere(known: ReleaseCheck, folder: Path, files: Mapping[str, str]) -> str:
    """The same where another plan made the release that is replaced: from its table, if `compare` names that."""
    about = kept(folder)
    file = next((path for path, digest in files.items() if about is not None and digest == about["sha256"]), None)
    if about is None or file is None:
        able = kind_of(known.request.release).of_jobs
        remedy = " They are where compare names its published table." if able else ""
        return f"That release is not part of this plan, so its numbers are not compared here.{remedy}"
    told = []
    for number, (now, then) in both_sides(folder, about).items():
        moved = np.abs(now - then)
        told.append(
            f"{int((moved > 0).sum()):,} of {moved.size:,} numbers ({number}) differ, by {moved.mean():.3g} on average "
            f"and {moved.max():,.6g} at most; their sum went from {then.sum():,.6g} to {now.sum():,.6g}."
            if moved.size
            else f"no number ({number}) is in both."
        )
    return f"By {', '.join(about['by']) or 'nothing'}, beside its {file}: {' '.join(told)} {ANEW}"
