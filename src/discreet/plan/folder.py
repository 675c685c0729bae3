"""Whether releases can go into the plan's folder: it is free or as published, and apart from data and ledger."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from discreet.data.databases import is_address
from discreet.ledger.publication import is_kept
from discreet.plan.budgets import Standing
from discreet.plan.bundle import BUNDLE, REPORT
from discreet.plan.file import PlanFile
from discreet.words.faults import Fault


def present_in(file: PlanFile) -> set[str]:
    """The releases in whose place there is something."""
    folder = file.path(file.plan.output.folder)
    return {release.name for release in file.plan.release if os.path.lexists(folder / release.name)}


def output_faults(file: PlanFile, standings: Mapping[str, Standing], present: set[str]) -> Iterator[Fault]:
    """What is wrong with the output folder; `present` are the releases in whose place there is something."""
    place = ("output", "folder")
    folder = file.path(file.plan.output.folder)
    if os.path.lexists(folder) and not folder.is_dir():
        what = "a link that leads nowhere" if folder.is_symlink() else "a file"
        yield Fault(place, f"{file.plan.output.folder!r} is {what}. Releases need a folder. Name another path.")
        return
    places = [each.data.source for each in file.plan.source.values()]
    for source in (file.path(place) for place in places if not is_address(place)):
        if source.is_dir() and folder.resolve().is_relative_to(source.resolve()):
            yield Fault(place, "it lies inside the data, so releases would be read as data. Name a folder elsewhere.")
        elif source.resolve().is_relative_to(folder.resolve()):
            yield Fault(
                place,
                "the confidential data are inside it, and anyone who hands the folder on hands on the data. Name a "
                "folder for releases alone.",
            )
    existing = next(part for part in (folder, *folder.resolve().parents) if part.exists())
    if not (existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)):
        yield Fault(place, f"{str(existing)!r} cannot be written by this user. Name a folder that can be.")
    yield from _ledger_in_the_way(file, folder)
    for i, release in enumerate(file.plan.release):
        published = standings[file.source(release).dataset].published.get(release.name)
        if published is not None and not is_kept(published, folder / release.name):
            yield Fault(
                ("release", i, "name"),
                f"it was published in entry {published.seq} of the ledger, and the output folder does not hold its "
                "files as they were. Drawing them again would reveal more than was paid for. Bring the files back, "
                "name "
                "the folder they are in, or pay for a release under another name.",
            )
        if published is None and release.name in present:
            yield Fault(
                ("release", i, "name"),
                f"the output folder has a {release.name!r} that this ledger did not release. A release never replaces "
                "anything. Choose another name or folder, or move that away.",
            )


def _ledger_in_the_way(file: PlanFile, folder: Path) -> Iterator[Fault]:
    """A ledger where a release, the report or the bundle will be, or the other way round."""
    if "://" in file.ledger:
        return
    ledger, names = Path(file.ledger).resolve(), [release.name for release in file.plan.release]
    taken = [folder.resolve() / name for name in (*names, REPORT, BUNDLE)]
    if folder.resolve().is_relative_to(ledger) or any(ledger.is_relative_to(path) for path in taken):
        yield Fault(
            ("output", "folder"),
            f"the ledger {file.sources[0].tables.budget.ledger!r} lies where releases go. Each needs a place of its "
            "own. Name another folder, or another ledger.",
        )
