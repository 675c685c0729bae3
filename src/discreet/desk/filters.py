"""Lists as lines of a form: the attributes of tables, and a filter with one attribute on each line, `sex: f, "1"`.

What a filter means is the plan's `where`.

A value is written into the plan as the public domain of a worker's attribute has it. Elsewhere whole numbers, true and
false are written as such, and quotes make text of anything. They mean the same codes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from discreet.data.schema import Label, Schema

PARTS = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[^,]*)\s*(?:,|$)')
NAMES = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[^,;]*)(,|;|$)')
WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")
WORDS: dict[str, Label] = {"true": True, "false": False}


def read(text: str, schema: Schema | None = None) -> dict[str, list[Label]]:
    """The values to keep of each attribute; a line without values keeps none, which a plan refuses."""
    kept: dict[str, list[Label]] = {}
    for line in filter(str.strip, text.splitlines()):
        name, _, values = line.partition(":")
        domain = schema.domain(name.strip()).declared if schema else ()
        known = {text: label for label in domain for text in (str(label), _bare(label))}
        parts = [part.strip() for part in PARTS.findall(values)]
        kept.setdefault(name.strip(), []).extend(_value(part, known) for part in parts if part)
    return kept


def lines(where: Mapping[str, Sequence[Label]]) -> str:
    """The lines that `read` takes for a filter."""
    return "\n".join(f"{name}: {', '.join(map(_shown, values))}" for name, values in where.items())


def read_names(text: str) -> list[list[str]]:
    """The names on each line, or between semicolons; those with a comma or a semicolon are in quotes."""
    found: list[list[str]] = []
    for line in text.splitlines():
        found.append([])
        for part, mark in NAMES.findall(line):
            if part.strip():
                found[-1].append(str(_value(part.strip(), {})) if part.startswith('"') else part.strip())
            if mark == ";":
                found.append([])
    return [names for names in found if names]


def names(of: Sequence[str]) -> str:
    """The line that `read_names` takes for these names."""
    return ", ".join(json.dumps(name, ensure_ascii=False) if set(name) & set(',;"\\') else name for name in of)


def _value(part: str, known: Mapping[str, Label]) -> Label:
    if part.startswith('"'):
        try:
            text = str(json.loads(part))
        except ValueError:
            text = part
        return known.get(text, text)
    if part in known:
        return known[part]
    return int(part) if WHOLE.fullmatch(part) else WORDS.get(part, part)


def _shown(value: Label) -> str:
    if not isinstance(value, str):
        return _bare(value)
    plain = value == value.strip() and value and not (set(value) & set(',"\\') or WHOLE.fullmatch(value))
    return value if plain and value.isprintable() and value not in WORDS else json.dumps(value)


def _bare(value: Label) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
