"""Alarms of a plan: which published numbers changed between two releases by more than their noise can explain.

They follow from published numbers and public constants alone: nothing confidential is read, nothing is paid for, and
no line of the ledger is written. So they can be added to a plan whose releases are made; a reviewer computes them anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from discreet.archive.packing import as_json
from discreet.plan.kinds.numbers import Both, EarlierTable, read_earlier
from discreet.plan.shape import AlarmsSection, Form, Format
from discreet.plan.sheets import for_programs
from discreet.release.alarms import COSTS, INDEX, kept, kept_table
from discreet.release.tables import write_table
from discreet.report.alarms import AlarmTable
from discreet.words.errors import DataError
from discreet.words.faults import Fault

if TYPE_CHECKING:
    from discreet.plan.kinds.kind import PlannedRelease
    from discreet.utility.between import SureChanges


SAME = ("by", "where", "unit", "levels", "of")
"""What two compared tables have in common."""


@dataclass(frozen=True, slots=True)
class AlarmStep:
    """Alarms of a plan with the numbers that they compare; `earlier` where the early ones are of another plan.

    `numbers` reads them from the published files below a folder.
    """

    asked: AlarmsSection
    by: tuple[str, ...]
    numbers: Callable[[Path], Both]
    earlier: EarlierTable | None = None

    def found(self, folder: Path) -> SureChanges:
        """The alarms, from the published files below `folder`."""
        from discreet.utility.between import changes_at

        asked, both = self.asked, self.numbers(folder)
        return changes_at(
            self.by,
            both.cells,
            both.early,
            both.late,
            both.ends,
            rate=float(asked.chance),
            fdr=None if asked.fdr is None else float(asked.fdr),
            least=float(asked.least),
            direction=asked.direction,
        )


EarlierOf: TypeAlias = Callable[[AlarmsSection], EarlierTable]
"""How a table of another plan is read."""


def alarm_steps(
    asked: Sequence[AlarmsSection],
    requests: Mapping[str, PlannedRelease],
    earlier: EarlierOf,
) -> tuple[list[AlarmStep], list[Fault]]:
    """The alarms of a plan with their tables, and the faults of the others."""
    found: list[AlarmStep] = []
    wrong: list[Fault] = []
    for i, each in enumerate(asked):
        if {each.late, each.early or each.late} - {*requests} and each.folder is None:
            continue  # what is wrong with the release, or with the name, is said once
        try:
            found.append(requests[each.late].alarm(each, requests, earlier))
        except DataError as error:
            other = "late" if each.folder is None else "folder"
            names = [fault.about if fault.about in AlarmsSection.model_fields else other for fault in error.faults]
            wrong += [
                replace(fault, place=("alarms", i, str(name))) for fault, name in zip(error.faults, names, strict=True)
            ]
    return found, wrong


def no_table(name: str, about: str) -> DataError:
    return DataError(
        f"{name!r} is no table that can be compared here.",
        "Alarms are between two releases of counts or sums, of flows or of models; a release of changes has its own.",
        "Name another release.",
        about=about,
    )


def refuse_unwritten(forms: Sequence[Form]) -> None:
    """Alarms compare numbers as they were drawn."""
    if "research" not in forms:
        raise DataError(
            "Alarms are asked for, and the research form is not written.",
            "The ends of a change are computed from the drawn numbers.",
            "Add 'research' to forms of [output].",
            about="late",
        )


def early_of(asked: AlarmsSection) -> str:
    """The name of the early release, for kinds that are about one time."""
    if asked.early is None:
        raise DataError(
            "The early release is missing.",
            f"{asked.late!r} is about one time. Only a release of kind 'changes' gives the difference of two.",
            "Name the release that it is compared with.",
            about="early",
        )
    return asked.early


def refuse_value(value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise DataError(
            f"value = {value!r} is not published there.",
            f"Numbers are: {', '.join(known)}.",
            f"Use {known[0]!r}.",
            about="value",
        )


def refuse_unlike(early: Mapping[str, Any], late: Mapping[str, Any], name: str) -> None:
    """Refuse two tables of which the ledger says different things: whose jobs they count, whom they protect."""
    odd = [key for key in SAME if key != "levels" and early.get(key) != late.get(key)]
    both = early.get("levels"), late.get("levels")
    if odd or (None not in both and both[0] != both[1]):
        raise DataError(
            f"{name!r} is about something else: {', '.join(odd) or 'other kinds of workers'} differs.",
            "Both tables have the same attributes in the same order, filters, unit and magnitude.",
            "Name a release that asks for the same of another time.",
            about="early",
        )


def write_alarms(folder: Path, steps: Sequence[AlarmStep], formats: Sequence[Format]) -> None:
    """Write the alarms of a plan beside its releases, with a list of them; alarms of an earlier plan leave the list."""
    index = folder / INDEX
    if not steps:
        index.unlink(missing_ok=True)
        return
    told: dict[str, Any] = {}
    for step in steps:
        found, files = step.found(folder), {}
        tables = {f"alarms-{step.asked.name}": found.to_arrow()}
        if step.earlier is not None:
            tables[f"earlier-{step.asked.name}"] = step.earlier.table
        for name, table in tables.items():
            for kind in for_programs(formats):
                write_table(table, folder / f"{name}.{kind}")
                files[f"{name}.{kind}"] = sha256((folder / f"{name}.{kind}").read_bytes()).hexdigest()
        told[step.asked.name] = about(step, found) | {"files": files}
    index.write_bytes(as_json({"words": COSTS, "alarms": told}))


def about(step: AlarmStep, found: SureChanges) -> dict[str, Any]:
    """What is said of alarms beside their table."""
    asked = step.asked
    return {
        "title": asked.title,
        "early": asked.early,
        "late": asked.late,
        "by": list(step.by),
        "value": asked.value,
        "direction": asked.direction,
        "least": float(asked.least),
        "rate": found.rate,
        **({} if found.fdr is None else {"fdr": found.fdr}),
        "cells": len(found.cells),
        "alarms": int(found.alarm.sum()),
        "expected_false_at_most": found.expected_false,
        **({} if step.earlier is None else {"earlier": dict(step.earlier.about)}),
    }


def kept_earlier(folder: Path, name: str) -> EarlierTable:
    """The table of another plan that alarms are about, as it was kept beside them."""
    known = kept(folder)[name]
    return EarlierTable(known["earlier"], kept_table(folder, f"earlier-{name}", known["by"]))


def alarm_files(folder: Path, asked: Iterable[AlarmsSection]) -> Iterator[str]:
    """The files of a plan's alarms."""
    known = kept(folder)
    listed = [name for each in asked for name in known[each.name]["files"]]
    yield from [INDEX, *listed] if listed else []


def shown(folder: Path, asked: Sequence[AlarmsSection]) -> list[AlarmTable]:
    """The report's part on alarms, from their files."""
    known = kept(folder) if asked else {}
    return [
        AlarmTable(each.name, known[each.name], kept_table(folder, f"alarms-{each.name}", known[each.name]["by"]))
        for each in asked
    ]


def earlier_of(path: Callable[[str], Path]) -> EarlierOf:
    """How a run reads tables of other plans: from the paths in the plan."""

    return lambda asked: read_earlier(path(str(asked.folder)), str(asked.early))
