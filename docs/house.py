"""The picture of the house in ARCHITECTURE.md, drawn from the imports: wings, rooms, doors. `make map` draws it.

A room stands above every room that it imports. A line is an import that no chain of other lines implies. Data come in
at the bottom and leave at the top.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from graphlib import TopologicalSorter
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "discreet"
PICTURE = ROOT / "docs" / "images" / "house.svg"
PAGE = ROOT / "ARCHITECTURE.md"
WINGS = {"changes": "large changes", "desk": "the desk"}
"""Rooms with a wall of their own; all others are the core."""
FLOOR = ("arrays", "chart")
"""Single modules at the bottom that are no doors: everybody imports them."""
WIDE, TALL, ACROSS, DOWN, EDGE = 104, 42, 22, 40, 12

LOOK = """
svg { font: 12px system-ui, sans-serif }
.ground { fill: #fff } .name, .many { text-anchor: middle }
.name { font-weight: 600; fill: #1d2126 } .many { fill: #575d66 }
.room { fill: #e9f1f7; stroke: #005f94 } .door { fill: #fff; stroke: #005f94; stroke-dasharray: 3 2 }
.wing { fill: #fbeee4; stroke: #a34700 } .way { stroke: #8b94a0; fill: none }
@media (prefers-color-scheme: dark) {
  .ground { fill: #14181d } .name { fill: #e8ebef } .many { fill: #aab2bd } .way { stroke: #6a737e }
  .room { fill: #1b2a36; stroke: #63b8ee } .door { fill: #14181d; stroke: #63b8ee }
  .wing { fill: #3a2a1d; stroke: #ff9d5c }
}
"""


def rooms() -> dict[str, list[Path]]:
    """The files of every room and door."""
    found: dict[str, list[Path]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).with_suffix("").parts[0]
        if not name.startswith("__"):
            found.setdefault(name, []).append(path)
    return found


def imports(paths: Iterable[Path]) -> Iterator[str]:
    """The rooms that files import."""
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "discreet":
                parts = node.module.split(".")[1:]
                yield from parts[:1] or (alias.name for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("discreet."))


def graph() -> dict[str, set[str]]:
    """Which room imports which."""
    all_rooms = rooms()
    return {room: (set(imports(paths)) & set(all_rooms)) - {room} for room, paths in all_rooms.items()}


def floors(below: Mapping[str, set[str]]) -> list[list[str]]:
    """Rooms from the top floor down; each stands as low as its imports let it."""
    height: dict[str, int] = {}
    for room in TopologicalSorter(below).static_order():
        height[room] = 1 + max((height[each] for each in below[room]), default=-1)
    return [sorted(room for room in height if height[room] == floor) for floor in range(max(height.values()), -1, -1)]


def plain(below: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The imports without those that a chain of others implies."""
    reach: dict[str, set[str]] = {}
    for room in TopologicalSorter(below).static_order():
        reach[room] = below[room].union(*(reach[each] for each in below[room]))
    return {
        room: {each for each in straight if not any(each in reach[other] for other in straight)}
        for room, straight in below.items()
    }


def said(paths: Iterable[Path]) -> str:
    """The first sentence of a room's map or of a door."""
    first = next(path for path in paths if path.name == "__init__.py" or path.parent == SOURCE)
    text = ast.get_docstring(ast.parse(first.read_text(encoding="utf-8"))) or ""
    return re.split(r"(?<=[.!?])(?:\s|$)", " ".join(text.split("\n\n")[0].split()))[0]


def kind(room: str, paths: list[Path]) -> str:
    """How a room is drawn."""
    if room in WINGS:
        return "wing"
    return "door" if len(paths) == 1 and paths[0].parent == SOURCE else "room"


def picture() -> str:
    """The house as SVG."""
    files, below = rooms(), graph()
    for room in FLOOR:
        del files[room], below[room]
    below = {room: {each for each in straight if each not in FLOOR} for room, straight in below.items()}
    rows = floors(below)
    width = 2 * EDGE + max(len(row) for row in rows) * (WIDE + ACROSS) - ACROSS
    place = {}
    for floor, row in enumerate(rows):
        left = (width - len(row) * (WIDE + ACROSS) + ACROSS) / 2
        for across, room in enumerate(row):
            place[room] = (left + across * (WIDE + ACROSS), EDGE + floor * (TALL + DOWN))
    height = 2 * EDGE + len(rows) * (TALL + DOWN) - DOWN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="The rooms of the source, each above those that it imports.">',
        f"<style>{LOOK}</style>",
        f'<rect class="ground" width="{width}" height="{height}"/>',
    ]
    for room, straight in sorted(plain(below).items()):
        x, y = place[room]
        for each in sorted(straight):
            to, down = place[each]
            start, end, middle = y + TALL, down, (y + TALL + down) / 2
            parts.append(
                f'<path class="way" d="M{x + WIDE / 2:g} {start:g}C{x + WIDE / 2:g} {middle:g} '
                f'{to + WIDE / 2:g} {middle:g} {to + WIDE / 2:g} {end:g}"/>'
            )
    for room, (x, y) in sorted(place.items()):
        many = f"{len(files[room])} files" if len(files[room]) > 1 else "a door"
        parts += [
            f"<g><title>{escape(said(files[room]))}</title>"
            f'<rect class="{kind(room, files[room])}" x="{x:g}" y="{y:g}" width="{WIDE}" height="{TALL}" rx="4"/>',
            f'<text class="name" x="{x + WIDE / 2:g}" y="{y + 18:g}">{room}</text>',
            f'<text class="many" x="{x + WIDE / 2:g}" y="{y + 34:g}">{many}</text></g>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def table() -> str:
    """The rooms in words, from the top floor down."""
    files = rooms()
    lines = ["| floor | room | what it holds |", "|---|---|---|"]
    for floor, row in enumerate(reversed(floors(graph()))):
        for room in row:
            wing = f" (wing: {WINGS[room]})" if room in WINGS else ""
            lines.append(f"| {floor} | `{room}`{wing} | {said(files[room])} |")
    return "\n".join([*lines[:2], *reversed(lines[2:])])


def page() -> str:
    """ARCHITECTURE.md with today's table."""
    text = PAGE.read_text(encoding="utf-8")
    return re.sub(r"(<!-- house -->\n).*?(<!-- end of house -->)", rf"\1{table()}\n\2", text, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    PICTURE.write_text(picture(), encoding="utf-8")
    sys.exit(0)
