"""A release beside the agency's own table, in a report: coverage, differences by size, ranks. Nothing is computed here.

`found` is what `plan.agency` computed from the files of the release.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.pages.numbers import plural, text
from discreet.pages.page import Block, Heading, Prose, Table
from discreet.tables.expected import three_digits


@dataclass(frozen=True, slots=True)
class AgencyTable:
    """The agency's table: its title, file and hash, the attributes it was matched by, and the result."""

    title: str
    file: str
    sha256: str
    by: tuple[str, ...]
    found: Mapping[str, Any]


def blocks(found: Mapping[str, AgencyTable]) -> Iterator[Block]:
    """All comparisons, by the names of their releases."""
    if not found:
        return
    yield Heading("Beside the agency's own tables")
    yield Prose(
        "Both sides of these comparisons are published numbers. Neither is the truth: the agency's are protected too, "
        "by noise or by suppression, so a difference is not an error of either."
    )
    for name, each in found.items():
        yield from _one(name, each)


def _one(name: str, each: AgencyTable) -> Iterator[Block]:
    by = ", ".join(each.by) or "nothing"
    yield Heading(f"{name} beside {each.title}", 3)
    yield Prose(
        f"Cells by {by}, from {each.file}"
        + (
            f" (SHA-256 {each.sha256}). Its numbers as they were read are in the release's folder."
            if each.sha256
            else "."
        )
    )
    numbers: Mapping[str, Any] = each.found["numbers"]
    yield Table(
        ("Number", "Published by both", "Suppressed there, published here", "Not listed there", "Listed there alone"),
        [
            (number, told["published"], told["suppressed"], told["absent"], told["elsewhere"])
            for number, told in numbers.items()
        ],
        f"Cells of {name} and of {each.title}",
        f"{name} agency coverage",
    )
    for number, told in numbers.items():
        yield Prose(" ".join(_words(number, told)))
        if told["by_size"]:
            yield Table(
                (f"{number} of the agency", "Cells", "Its mean", "Mean difference", "Inside our interval"),
                [
                    (
                        part["name"],
                        part["cells"],
                        *map(three_digits, (part["theirs"], part["difference"])),
                        _share(part["inside"], part["bounded"]),
                    )
                    for part in told["by_size"]
                ],
                f"Absolute differences of {number}, {name}",
                f"{name} {number} agency differences",
            )
    for line in _alone(each.found["only"]):
        yield Prose(line)


def _words(number: str, told: Mapping[str, Any]) -> Iterator[str]:
    if told["suppressed"]:
        yield (
            f"**{text(told['suppressed'])} cells that the agency suppresses are published here**: {number} of "
            f"{text(told['filled'])} together; {text(told['usable'])} of them are more than noise."
        )
    if told["published"]:
        rank = "" if told["rank"] is None else f" The orders of cells agree to {told['rank']:.4f} (Spearman)."
        yield (
            f"Over the {text(told['published'])} cells that both publish, {number} is {text(told['ours'])} here and "
            f"{text(round(told['theirs']))} there; a cell differs by {text(three_digits(told['whole']['difference']))} "
            f"on average.{rank}"
        )


def _share(inside: int, bounded: int) -> str:
    return f"{text(inside)} of {text(bounded)}" if bounded else "no intervals"


def _alone(only: Mapping[str, Mapping[str, Sequence[str]]]) -> Iterator[str]:
    for name, sides in only.items():
        for side, words in (("here", "here alone"), ("there", "there alone")):
            if sides[side]:
                yield f"Values of {name} that are {words}: {', '.join(sides[side])}."


def in_short(name: str, each: AgencyTable) -> str:
    """The comparison in a line."""
    told = next(iter(each.found["numbers"].values()))
    rank = "" if told["rank"] is None else f", orders agree to {told['rank']:.3f}"
    return (
        f"{name} beside {each.title}: {plural(told['suppressed'], 'cell')} suppressed there and published here; "
        f"{plural(told['published'], 'cell')} in both{rank}."
    )
