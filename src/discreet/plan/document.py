"""The text of a plan, and on which line each of its keys is.

`tomllib` reads the values but forgets the lines. Here the text is cut into statements: a statement is the shortest run
of lines that is TOML by itself. No meaning is given to any key.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from discreet.words.errors import PlanError
from discreet.words.faults import Fault, Place, Position

UNTOUCHED = "This call wrote nothing and spent nothing."

LARGEST = 100_000
"""Bytes of a plan. A longer file is something else that was named by mistake."""


@dataclass(frozen=True, slots=True)
class Document:
    """A plan's text with its values; numbers with a point are exact decimals."""

    path: Path
    content: Mapping[str, Any]
    lines: Mapping[Place, int] = field(repr=False)

    @classmethod
    def read(cls, path: str | Path, text: bytes | None = None) -> Document:
        """Read a file, or `text` as if it stood there; what is not TOML is refused with the line."""
        path = Path(path)
        try:
            raw = (path.read_bytes() if text is None else text)[: LARGEST + 1]
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", error)
            raise PlanError(
                f"Plan {str(path)!r} cannot be read: {reason}.",
                f"A plan is a TOML file that this user may read. {UNTOUCHED}",
                _near(path),
                about="plan",
            ) from None
        if len(raw) > LARGEST:
            raise PlanError(
                f"Plan {str(path)!r} has more than {LARGEST:,} bytes.",
                f"A plan is a short text. {UNTOUCHED}",
                "Name a plan.",
                about="plan",
            )
        try:
            words = raw.decode("utf-8-sig").replace("\r\n", "\n")
            return cls(path, tomllib.loads(words, parse_float=Decimal), _first_lines(words))
        except UnicodeDecodeError as error:
            line = raw[: error.start].count(b"\n") + 1
            raise _on_line(
                path,
                line,
                "this is not UTF-8 text.",
                f"A plan is, whatever its language. {UNTOUCHED}",
                "Save the plan as UTF-8.",
            ) from None
        except tomllib.TOMLDecodeError as error:
            raise _syntax(path, words, str(error)) from None
        except RecursionError:
            raise PlanError(
                f"Plan {path.name!r} has brackets in brackets beyond what can be read.",
                f"A plan has lists of lists and nothing deeper. {UNTOUCHED}",
                "Correct the plan.",
                about="plan",
            ) from None
        except (ValueError, ArithmeticError):  # Python reads no whole number of more than 4,300 digits
            raise _on_line(
                path,
                _longest_number(words),
                "a number is beyond what can be read.",
                f"Amounts have a few digits and exponents. {UNTOUCHED}",
                "Correct the number.",
            ) from None

    @property
    def folder(self) -> Path:
        """What the plan's paths are relative to."""
        return self.path.parent

    def line(self, place: Place) -> int:
        """The line of a key, or of the table that should have it."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)

    def refuse(self, faults: Iterator[Fault] | list[Fault]) -> None:
        """Raise all faults together, in the order of the text, if there are any."""
        found = sorted(faults, key=lambda fault: self.line(fault.place))
        if found:
            raise PlanError(*map(self.located, found), head=self._head(len(found)))

    def located(self, fault: Fault) -> Fault:
        """The fault with its file, line and key."""
        place = fault.place
        return replace(fault, at=Position(self.path.name, self.line(place), self.name(place)))

    def name(self, place: Place) -> str:
        """A place as a reader of the plan would say it: release 'jobs', epsilon. What no page can show is quoted."""
        if not place:
            return ""
        place = tuple(part if isinstance(part, int) or part.isprintable() else repr(part) for part in place)
        head, rest = f"[{place[0]}]", place[1:]
        if place[0] in ("release", "alarms") and len(place) > 1:
            entry = self._entry(str(place[0]), place[1])
            head, rest = f"{place[0]} {entry!r}", place[2:]
        elif place[0] == "source" and len(place) > 1:
            head, rest = f"[{'.'.join(map(str, place[:3]))}]", place[3:]
        elif len(place) == 1 and not isinstance(self.content.get(str(place[0]), {}), Mapping | list):
            head = str(place[0])
        keys = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest)
        return f"{head}{', ' if keys else ''}{keys.removeprefix('.')}"

    def _entry(self, table: str, index: str | int) -> str | int:
        """The name of the release, or of the alarms, at `index`, or its number from 1."""
        listed = self.content.get(table)
        entry = listed[index] if isinstance(listed, list) and isinstance(index, int) else None
        name = entry.get("name") if isinstance(entry, Mapping) else None
        return name if isinstance(name, str) else int(index) + 1

    def _head(self, count: int) -> str:
        many = f"{count} faults" if count > 1 else "a fault"
        return f"Plan {self.path.name!r} has {many}. {UNTOUCHED} Correct the plan:"


def _first_lines(text: str) -> dict[Place, int]:
    """The line of every key and table; that of [a] without a line of its own is the first of [a.b]."""
    found = dict(_lines(text))
    for place, line in [*found.items()]:
        for depth in range(1, len(place)):
            if isinstance(place[depth], str):
                found.setdefault(place[:depth], line)
    return found


def _lines(text: str) -> Iterator[tuple[Place, int]]:
    """Every key and table with its first line; `text` is TOML as a whole."""
    rows = text.split("\n")
    table: Place = ()
    entries: dict[Place, int] = {}
    start = 0
    while start < len(rows):
        if not rows[start].strip() or rows[start].lstrip().startswith("#"):
            start += 1
            continue
        stop, statement = _statement(rows, start)
        if rows[start].lstrip().startswith("["):
            table = ()
            keys, opens_entry = _header(statement)
            for depth, key in enumerate(keys, start=1):
                table = (*table, key)
                if opens_entry and depth == len(keys):
                    entries[table] = entries.get(table, -1) + 1
                if table in entries:
                    table = (*table, entries[table])
            yield table, start + 1
        else:
            for place in _places(statement):
                yield (*table, *place), start + 1
        start = stop


def _statement(rows: list[str], start: int) -> tuple[int, dict[str, Any]]:
    """The line after the statement that begins at `start`, and its values."""
    for stop in range(start + 1, len(rows) + 1):
        try:
            return stop, tomllib.loads("\n".join(rows[start:stop]))
        except tomllib.TOMLDecodeError:
            continue
    raise AssertionError("the text is TOML as a whole, so each of its statements ends")


def _header(statement: Mapping[str, Any]) -> tuple[list[str], bool]:
    """The keys of [a.b] or [[a.b]], and whether it is the latter."""
    keys: list[str] = []
    part: Any = statement
    while isinstance(part, Mapping) and part:
        keys += part
        part = part[keys[-1]]
    return keys, isinstance(part, list)


def _places(value: object) -> Iterator[Place]:
    """The paths of all keys and items below a value."""
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (key,)
        yield from ((key, *rest) for rest in _places(item))


def _on_line(path: Path, line: int, *sentences: str) -> PlanError:
    return PlanError(Fault("plan", *sentences, at=Position(path.name, line)))


def _syntax(path: Path, text: str, message: str) -> PlanError:
    """What `tomllib` says, with its line."""
    found = re.search(r"^(.*) \(at (?:line (\d+), column (\d+)|end of document)\)$", message)
    reason, line = (found[1], int(found[2] or text.count("\n") + 1)) if found else (message, 1)
    return _on_line(
        path,
        line,
        f"{reason}.",
        f"A plan is TOML: key = value, with text in quotes and lists in brackets. {UNTOUCHED}",
        "Correct the line.",
    )


def _longest_number(text: str) -> int:
    """The line of the number with the most digits."""
    found = max(re.finditer(r"[0-9_]+", text), key=lambda digits: len(digits[0]))
    return text.count("\n", 0, found.start()) + 1


def _near(path: Path) -> str:
    plans: list[str] = []
    with suppress(OSError):
        plans += [other.name for other in path.parent.glob("*.toml")]
    near = [like for like in difflib.get_close_matches(path.name, plans, n=3) if like != path.name][:2]
    return f"Did you mean {' or '.join(map(repr, near))}?" if near else "Name a TOML file; examples/ has three."
