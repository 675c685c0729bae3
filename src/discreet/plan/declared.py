"""Roles of columns written into the text of a plan that is there: which are public, numbers, or not used.

No request changes, so what was paid for under the plan is found again. Comments and all other lines stay.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.plan.document import Document
from discreet.plan.file import PlanSource
from discreet.plan.reading import read_plan
from discreet.plan.source import Columns
from discreet.words.errors import PlanError
from discreet.words.faults import Place

WHERE: Mapping[str, tuple[str, ...]] = {"public": ("data",), "numbers": ("data",), "unused": ("data", "schema")}
"""The table of a source that has each list of columns."""


def declare(path: str | Path, roles: Mapping[str, Sequence[str]], *, source: str | None = None) -> list[str]:
    """Add columns to lists of a plan, in place; the lines that have them now."""
    plan = read_plan(path)
    known = [each for each in plan.sources if source in (None, each.name)]
    if len(known) != 1:
        raise PlanError(
            f"{Path(path).name!r} has {'no such source' if source else 'several sources'}.",
            f"There are: {', '.join(each.name for each in plan.sources)}.",
            "Name one with --source.",
            about="source",
        )
    [chosen] = known
    text = plan.document.path.read_text(encoding="utf-8-sig")
    lines = []
    for key, columns in roles.items():
        if columns:
            text, line = _added(Document.read(path, text.encode()), text, chosen, key, columns)
            lines.append(line)
    read_plan(path, text.encode())
    beside = Path(path).with_name(f".{Path(path).name}.new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
    return lines


def _added(document: Document, text: str, source: PlanSource, key: str, columns: Sequence[str]) -> tuple[str, str]:
    """The text with columns added to a list, and the line that has it now."""
    table, rows = source.place(*WHERE[key]), text.split("\n")
    there = _at(document.content, (*table, key))
    whole = [*dict.fromkeys([*(there or ()), *columns])]
    line = f"{key} = {json.dumps(whole, ensure_ascii=False)}"
    headed = table in document.lines and rows[document.line(table) - 1].lstrip().startswith("[")
    if not headed or (key == "unused" and not isinstance(source.tables.data.columns, Columns)):
        raise PlanError(
            f"The table that has {key} has no heading of its own in {document.path.name!r}.",
            "A line is added below a heading such as [data].",
            f"Write {line} by hand, into the schema's file if there is one.",
            about="plan",
        )
    if there is None:
        rows.insert(document.line(table), line)
    else:
        start = document.line((*table, key)) - 1
        rows[start : _end(rows, start)] = [line]
    return "\n".join(rows), line


def _end(rows: Sequence[str], start: int) -> int:
    """The line after the statement that begins at `start`."""
    for stop in range(start + 1, len(rows) + 1):
        try:
            tomllib.loads("\n".join(rows[start:stop]))
        except tomllib.TOMLDecodeError:
            continue
        return stop
    raise AssertionError("the text is TOML as a whole, so each of its statements ends")


def _at(content: Any, place: Place) -> Any:
    """What a plan has at a place; None where it has nothing."""
    for part in place:
        content = content.get(part) if isinstance(content, Mapping) else None
    return content
