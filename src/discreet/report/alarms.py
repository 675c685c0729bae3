"""The report's part on alarms: the changes between two releases that are larger than their noise, the largest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.pages.numbers import text, three
from discreet.pages.page import Block, Heading, Prose, Table

if TYPE_CHECKING:
    import pyarrow as pa

LISTED = 25
"""Alarms of the page; the file beside has all cells."""


@dataclass(frozen=True, slots=True)
class AlarmTable:
    """Alarms of a plan: what is said of them, and their cells, alarms first."""

    name: str
    about: Mapping[str, Any]
    table: pa.Table


def blocks(each: AlarmTable) -> Iterator[Block]:
    """The section of one step of alarms."""
    about, by = each.about, list(each.about["by"])
    yield Heading(f"Alarms {each.name}" + (f": {about['title']}" if about["title"] else ""))
    yield Prose(
        f"{in_short(each)} {_false(about)} The ends of a change follow from the exact law of the noise. "
        "**This is post-processing of published numbers: it costs nothing.**"
    )
    rows = each.table.filter(each.table["alarm"]).slice(0, LISTED).to_pylist()
    if not rows:
        return
    told = "all alarms" if len(rows) == about["alarms"] else f"the first {len(rows)} of {text(about['alarms'])} alarms"
    yield Table(
        (*(name.replace("_", " ").capitalize() for name in by), "Before", "After", "Change", "At least", "At most"),
        [
            (*(row[name] for name in by), *(_number(row[key]) for key in ("before", "after", "change", "low", "high")))
            for row in rows
        ],
        f"Changes beyond the noise, {told}, {each.name}",
        f"alarms {each.name}",
    )


def in_short(each: AlarmTable) -> str:
    """Alarms in a line."""
    about = each.about
    between = (
        f"from {about['early']} to {about['late']}" if about["early"] else f"between the quarters of {about['late']}"
    )
    kind = {"either": "changed", "decline": "fell", "increase": "rose"}[about["direction"]]
    number = f"{text(about['alarms'])} of {text(about['cells'])} cells"
    return f"{number} {kind} {between} by more than their noise can explain."


def _false(about: Mapping[str, Any]) -> str:
    """How many of them may be false."""
    most = text(three(about["expected_false_at_most"]))
    if "fdr" in about:
        return (
            f"Of all alarms, a share of {100 * about['fdr']:g} % at most is expected to be false, at most {most} of "
            f"these. False are those of cells whose {about['value']} did not change{_beyond(about)}."
        )
    return (
        f"A cell whose {about['value']} did not change{_beyond(about)} would be among them with a chance of "
        f"{100 * about['rate']:g} % at most; if no cell had changed, at most {most} false alarms were to be expected."
    )


def _beyond(about: Mapping[str, Any]) -> str:
    return f" by more than {text(three(about['least']))}" if about["least"] else ""


def _number(value: float | None) -> int | float | str:
    if value is None:
        return "unbounded"
    return int(value) if value == int(value) else round(value, 4)
