"""Alarms of a plan: which published numbers changed between two releases by more than their noise can explain.

They follow from published numbers and public constants alone: nothing confidential is read, nothing is paid for, and
no line of the ledger is written. So they can be added to a plan whose releases are made; a reviewer computes them anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.archive.packing import as_json
from discreet.plan.kinds.alarm_numbers import (
    Compared,
    EarlierTable,
    numbers_of,
    numbers_of_earlier,
    read_earlier,
    table_number,
)
from discreet.plan.kinds.counts import CountRequest
from discreet.plan.kinds.flows import FlowRequest
from discreet.plan.kinds.kind import PlannedRelease
from discreet.plan.kinds.summaries import SummaryRequest
from discreet.plan.shape import AlarmsSection, Changes, Format, ModelSection, PosteriorSection
from discreet.plan.sheets import for_programs
from discreet.release.alarms import COSTS, INDEX, kept, kept_table
from discreet.release.tables import write_table
from discreet.report.alarms import AlarmTable
from discreet.words.errors import DataError
from discreet.words.faults import Fault

if TYPE_CHECKING:
    from discreet.utility.between import SureChanges


EFFECTS = ("group", "term")
"""What the estimates of a model are listed by."""

SAME = ("by", "where", "unit", "levels", "of")
"""What two compared tables have in common."""


@dataclass(frozen=True, slots=True)
class AlarmStep:
    """Alarms of a plan with the releases that they are about; `earlier` where the early one is of another plan."""

    asked: AlarmsSection
    late: Compared
    by: tuple[str, ...]
    early: Compared | None = None
    earlier: EarlierTable | None = None

    def found(self, folder: Path) -> SureChanges:
        """The alarms, from the published files below `folder`."""
        from discreet.utility.between import changes_at, matched
        from discreet.utility.paired import change_ends

        asked = self.asked
        about: dict[str, Any] = {
            "rate": float(asked.chance),
            "fdr": None if asked.fdr is None else float(asked.fdr),
            "least": float(asked.least),
            "direction": asked.direction,
        }
        late = numbers_of(self.late, folder / asked.late, self.by, asked.value)
        if self.early is None and self.earlier is None:
            assert isinstance(self.late, FlowRequest)
            before, after = (numbers_of(self.late, folder / asked.late, self.by, name) for name in ("earlier", "later"))
            [seen] = np.isfinite(before.values + after.values + late.values).nonzero()
            ends = matched(late.ends, seen)  # of the change itself, whose levels were drawn together
            cells = [late.cells[i] for i in seen]
            return changes_at(
                self.by, cells, before.values[seen], after.values[seen], lambda rate: ends(1 - rate), **about
            )
        if self.earlier is not None:
            assert isinstance(self.late, CountRequest)
            early = numbers_of_earlier(self.earlier, self.late, self.by)
        else:
            assert self.early is not None
            early = numbers_of(self.early, folder / str(asked.early), self.by, asked.value)
        row = {cell: i for i, cell in enumerate(early.cells)}
        pairs = [(row[cell], i) for i, cell in enumerate(late.cells) if cell in row]
        first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        known = np.isfinite(early.values[first] + late.values[second])
        first, second = first[known], second[known]
        # Releases have draws of their own, so that their noise is independent.
        apart = partial(change_ends, matched(early.ends, first), matched(late.ends, second), independent=True)
        cells = [late.cells[i] for i in second]
        return changes_at(
            self.by, cells, early.values[first], late.values[second], lambda rate: apart(rate=rate), **about
        )


def alarm_steps(
    asked: Sequence[AlarmsSection],
    requests: Mapping[str, PlannedRelease],
    earlier: Callable[[AlarmsSection], EarlierTable],
) -> tuple[list[AlarmStep], list[Fault]]:
    """The alarms of a plan with their tables, and the faults of the others."""
    found: list[AlarmStep] = []
    wrong: list[Fault] = []
    for i, each in enumerate(asked):
        if {each.late, each.early or each.late} - {*requests} and each.folder is None:
            continue  # what is wrong with the release, or with the name, is said once
        try:
            found.append(_step(each, requests, earlier))
        except DataError as error:
            other = "late" if each.folder is None else "folder"
            names = [fault.about if fault.about in AlarmsSection.model_fields else other for fault in error.faults]
            wrong += [
                replace(fault, place=("alarms", i, str(name))) for fault, name in zip(error.faults, names, strict=True)
            ]
    return found, wrong


def _step(
    asked: AlarmsSection, requests: Mapping[str, PlannedRelease], earlier: Callable[[AlarmsSection], EarlierTable]
) -> AlarmStep:
    late = requests[asked.late]
    if not isinstance(late, Compared) or isinstance(late.release, PosteriorSection):
        raise _no_table(asked.late, "late")
    if "research" not in late.source.output.forms:
        raise DataError(
            "Alarms are asked for, and the research form is not written.",
            "The ends of a change are computed from the drawn numbers.",
            "Add 'research' to forms of [output].",
            about="late",
        )
    if isinstance(late, FlowRequest) and isinstance(late.release, Changes):
        return _own_change(asked, late)
    if asked.early is None:
        raise DataError(
            "The early release is missing.",
            f"{asked.late!r} is about one time. Only a release of kind 'changes' gives the difference of two.",
            "Name the release that it is compared with.",
            about="early",
        )
    if isinstance(late, SummaryRequest):
        return _of_models(asked, late, requests.get(asked.early))
    by = _table(late, asked)
    if asked.folder is None:
        early = requests[asked.early]
        if not isinstance(early, CountRequest | FlowRequest) or type(early) is not type(late):
            raise _no_table(asked.early, "early")
        _alike(_told(early, _table(early, asked, by)), _told(late, by), asked.early)
        return AlarmStep(asked, late, by, early=early)
    if not isinstance(late, CountRequest):
        raise DataError(
            "An earlier folder is given for flows.",
            "Flows are compared with flows of the same plan, whose histories have all quarters.",
            "Release both in one plan.",
            about="folder",
        )
    known = earlier(asked)
    _alike(known.about, _told(late, by), str(asked.early))
    return AlarmStep(asked, late, by, earlier=known)


def _no_table(name: str, about: str) -> DataError:
    return DataError(
        f"{name!r} is no table that can be compared here.",
        "Alarms are between two releases of counts or sums, of flows or of models; a release of changes has its own.",
        "Name another release.",
        about=about,
    )


def _of_models(asked: AlarmsSection, late: SummaryRequest, early: PlannedRelease | None) -> AlarmStep:
    """Alarms between two models of one plan and one formula."""
    for name, given in (("folder", asked.folder), ("by", asked.by)):
        if given is not None:
            raise DataError(
                f"{name} is given for models.",
                "All effects of two models of the same plan are compared.",
                "Leave it out.",
                about=name,
            )
    _refuse_value(asked.value, ("estimate",))
    if not isinstance(early, SummaryRequest) or isinstance(early.release, PosteriorSection):
        raise _no_table(str(asked.early), "early")
    assert isinstance(late.release, ModelSection)
    if (early.release.formula, early.release.family) != (late.release.formula, late.release.family):
        raise DataError(
            f"{asked.early!r} is another model.",
            "Effects of one formula and family can be compared.",
            "Name a release of the same model of another time.",
            about="early",
        )
    return AlarmStep(asked, late, EFFECTS, early=early)


def _own_change(asked: AlarmsSection, late: FlowRequest) -> AlarmStep:
    if asked.early is not None or asked.folder is not None:
        raise DataError(
            f"{asked.late!r} is a release of changes, and an early release is named too.",
            "It compares its own quarters, drawn together, which has less error.",
            "Leave it out.",
            about="early" if asked.early is not None else "folder",
        )
    _refuse_value(asked.value, ("change",))
    return AlarmStep(asked, late, tuple(late.places[0][1]))


def _table(
    request: CountRequest | FlowRequest, asked: AlarmsSection, like: Sequence[str] | None = None
) -> tuple[str, ...]:
    """The attributes of the table that is compared; of the early one they are `like` those of the late one."""
    if isinstance(request, FlowRequest):
        names = [name.removesuffix("_quality") for name in request.columns if name.endswith("_quality")]
        _refuse_value(asked.value, names)
        return tuple(request.query.by)
    _refuse_value(asked.value, ("count" if request.queries[0].magnitude is None else "sum",))
    tables = [tuple(by) for _, by in request.places]
    wanted = asked.by if like is None else like
    if wanted is None and len(tables) == 1:
        return tables[0]
    chosen = [by for by in tables if wanted is not None and {*by} == {*wanted}]
    if not chosen:
        listed = "; ".join(", ".join(by) or "nothing" for by in tables)
        raise DataError(
            f"{request.release.name!r} has no table by {', '.join(wanted or ()) or 'nothing that is named'}.",
            f"It has tables by: {listed}.",
            "Name the attributes of one of them." if like is None else "Name a release with this table.",
            about="by" if like is None else "early",
        )
    return chosen[0]


def _refuse_value(value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise DataError(
            f"value = {value!r} is not published there.",
            f"Numbers are: {', '.join(known)}.",
            f"Use {known[0]!r}.",
            about="value",
        )


def _told(request: CountRequest | FlowRequest, by: tuple[str, ...]) -> dict[str, Any]:
    """The ledger's facts about a table: whose jobs it counts, and whom it protects."""
    tables = request.details["tables"]
    if isinstance(request, CountRequest) and list(by) not in [list(query.by) for query in request.queries]:
        return {**{key: tables[0].get(key) for key in SAME}, "by": list(by), "levels": None}
    return dict(tables[0] if isinstance(request, FlowRequest) else tables[table_number(request, by)])


def _alike(early: Mapping[str, Any], late: Mapping[str, Any], name: str) -> None:
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


def earlier_of(path: Callable[[str], Path]) -> Callable[[AlarmsSection], EarlierTable]:
    """How a run reads tables of other plans: from the paths in the plan."""

    return lambda asked: read_earlier(path(str(asked.folder)), str(asked.early))
