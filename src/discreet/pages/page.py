"""A report as one HTML file: blocks of text, tables and figures, readable offline and without a script.

The one script there may be adds a search to long tables.

A block is a value; `Page` puts the blocks in order, numbers them and writes the file. Every text is escaped here,
so a block takes plain text. Charts come from `charts`, their drawing from `svg`.
"""

from __future__ import annotations

import os
import re
import tempfile
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

from discreet.pages import numbers, ranked, svg
from discreet.pages.carried import tag
from discreet.pages.ranked import Ranked
from discreet.pages.sparkline import sparkline
from discreet.words.errors import DataError

CONTENTS_FROM = 5  # headings; a shorter page is read without a table of contents
ROWS_SHOWN = 300  # of a figure's data; the file beside the picture has them all
HASH = re.compile("[0-9a-f]{64}")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
SCRIPT = files("discreet.report").joinpath("page.js").read_text(encoding="utf-8")
SCRIPTED = f"{POLICY}; script-src 'sha256-{b64encode(sha256(SCRIPT.encode()).digest()).decode()}'"
"""The rights of a page with searchable tables: it may run this one script, identified by its hash, and nothing else."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A section's name; levels 2 to 4, since the page's title is the only level 1."""

    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Prose:
    """Paragraphs between empty lines; lines that start with `- ` are a list; `code` and **bold** are understood."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """Text shown as typed: a command, a formula, a plan."""

    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """A marked paragraph. `kind` is its label: note, result, limitation, warning or another word."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns. Text in the first column names its row; `name` is the file name beside the page.

    A `folded` table is shown when the reader opens it: for what a figure shows already.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    caption: str
    name: str = ""
    folded: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "rows", tuple(tuple(row) for row in self.rows))
        wrong = {len(row) for row in self.rows} - {len(self.columns)}
        if wrong:
            raise DataError(
                f"Table {self.caption!r} has {len(self.columns)} columns and a row of {min(wrong)} values.",
                "Every row has one value per column; use None for an absent one.",
                about="table",
            )

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, object]], caption: str, name: str = "") -> Table:
        """A table from dictionaries; columns in order of first appearance, absent values as None."""
        rows = list(rows)
        columns = list(dict.fromkeys(key for row in rows for key in row))
        return cls(columns, [[row.get(key) for key in columns] for row in rows], caption, name)


@dataclass(frozen=True, slots=True)
class Listed:
    """A table in which each row has a small picture of its series: recent values, and the forecast."""

    table: Table
    series: Sequence[tuple[Sequence[float], float]]
    caption: str
    at: int = 1
    pictured: str = "recent, and forecast"


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart, what it shows in words for those who cannot see it, and its caption."""

    chart: Any
    alt: str
    caption: str
    name: str = ""

    def __post_init__(self) -> None:
        if not self.alt.strip():
            raise DataError(
                f"Figure {self.caption!r} has no alternative text.",
                remedy="Say in a sentence what the chart shows.",
                about="figure",
            )

    @property
    def data(self) -> Table:
        return Table.of(svg.data(self.chart), f"Data of the figure: {self.caption}")


Block: TypeAlias = Heading | Prose | Table | Listed | Ranked | Figure | Code | Note


@dataclass(frozen=True, slots=True)
class Page:
    """A titled sequence of blocks, with a `lead` paragraph under the title.

    The text before the first heading is read first: the contents come after it. A page about releases carries its
    `published` files and their hashes for programs (`carried`).
    """

    title: str
    blocks: Sequence[Block]
    lead: str = ""
    language: str = "en"
    published: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", tuple(self.blocks))
        above = 1
        for heading in self._all(Heading):
            if not 2 <= heading.level <= min(above + 1, 4):
                raise DataError(
                    f"Heading {heading.text!r} has level {heading.level} after level {above}.",
                    f"Levels run from 2 to 4 without a gap; use at most {min(above + 1, 4)} here.",
                    about="heading",
                )
            above = heading.level

    @property
    def tables(self) -> dict[str, Table]:
        """The page's tables by file name."""
        return named([block.table if isinstance(block, Listed) else block for block in self._all((Table, Listed))])

    @property
    def figures(self) -> dict[str, Figure]:
        """The page's figures by file name."""
        return named(self._all(Figure))

    def html(self) -> str:
        return PageWriter(self).page()

    def write(self, path: str | Path) -> Path:
        """Write the page so that a reader finds the old file or the whole new one."""
        return write_text(Path(path), self.html())

    def _all(self, kind: type[Any] | tuple[type[Any], ...]) -> list[Any]:
        return [block for block in self.blocks if isinstance(block, kind)]


def named(blocks: Iterable[Any]) -> dict[str, Any]:
    """Blocks by a name that is safe in a file system and in a link, from `name` or else the caption."""
    seen: Counter[str] = Counter()
    result = {}
    for block in blocks:
        name = slug(block.name or block.caption)
        seen[name] += 1
        result[name if seen[name] == 1 else f"{name}-{seen[name]}"] = block
    return result


def slug(text: str) -> str:
    """Part of an address or of a path: few words, and never too long for a file."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    return "-".join(words[:8])[:100].strip("-") or "untitled"


def write_text(path: Path, content: str) -> Path:
    """Replace a file at once: write beside it, then rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
        Path(beside).chmod(0o644)
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
    return path


@dataclass(slots=True)
class PageWriter:
    """Turns one page into HTML; keeps the counters that number its parts."""

    of: Page
    used: Counter[str] = field(default_factory=Counter)
    figures: int = 0
    tables: int = 0

    def page(self) -> str:
        page = self.of
        anchors = [self.anchor(heading.text) for heading in page._all(Heading)]
        contents = self.contents(anchors)
        waiting = iter(anchors)
        parts = [
            self.heading(block, next(waiting)) if isinstance(block, Heading) else self.block(block)
            for block in page.blocks
        ]
        first = next((i for i, block in enumerate(page.blocks) if isinstance(block, Heading)), len(parts))
        body = "\n".join([*parts[:first], *([contents] if contents else []), *parts[first:]])
        scripted = bool(page._all(Ranked))
        return document(
            page.title,
            page.lead,
            body,
            style=files("discreet.report").joinpath("page.css").read_text(encoding="utf-8"),
            policy=SCRIPTED if scripted else POLICY,
            after=f"<script>{SCRIPT}</script>\n" * scripted,
            language=page.language,
            carried=tag(page.published),
        )

    def anchor(self, text: str) -> str:
        name = slug(text)
        self.used[name] += 1
        return f"s-{name}" if self.used[name] == 1 else f"s-{name}-{self.used[name]}"

    def contents(self, anchors: list[str]) -> str:
        headings = self.of._all(Heading)
        if len(headings) < CONTENTS_FROM:
            return ""
        items = "\n".join(
            f'<li class="level-{heading.level}"><a href="#{anchor}">{inline(heading.text)}</a></li>'
            for heading, anchor in zip(headings, anchors, strict=True)
        )
        return f'<nav aria-label="Contents">\n<ul>\n{items}\n</ul>\n</nav>'

    def heading(self, block: Heading, anchor: str) -> str:
        return f'<h{block.level} id="{anchor}">{inline(block.text)}</h{block.level}>'

    def block(self, block: Block) -> str:
        match block:
            case Prose(text):
                return paragraphs(text)
            case Code(text):
                return f'<pre tabindex="0"><code>{escape(text.strip(chr(10)))}</code></pre>'
            case Note(kind, text):
                label = f"<strong>{escape(kind.capitalize())}</strong>"
                return f'<aside class="note {slug(kind)}" aria-label="{escape(kind)}">{label}{paragraphs(text)}</aside>'
            case Table():
                self.tables += 1
                label = f"Table {self.tables}. {block.caption}"
                shown = self.table(block, f"table-{self.tables}", label)
                return f"<details><summary>{inline(label)}</summary>\n{shown}\n</details>" if block.folded else shown
            case Listed():
                self.tables += 1
                return self.table(block.table, f"table-{self.tables}", f"Table {self.tables}. {block.caption}", block)
            case Ranked():
                return self.ranked(block)
            case Figure():
                return self.figure(block)
        raise DataError(
            f"A page has no block of type {type(block).__name__}.", remedy=f"Use one of {Block}.", about="block"
        )

    def table(self, table: Table, name: str, caption: str, pictures: Listed | None = None) -> str:
        printed = [numbers.column(values) for values in zip(*table.rows, strict=True)]
        numeric = [
            any(map(numbers.is_numeric, values)) and all(value is None or numbers.is_numeric(value) for value in values)
            for values in zip(*table.rows, strict=True)
        ] or [False] * len(table.columns)
        side = [' class="number"' if right else "" for right in numeric]
        if any(isinstance(row[0], str) for row in table.rows):
            side[0] = ""  # it names the rows, from the left
        heads = [f'<th scope="col"{align}>{inline(text)}</th>' for text, align in zip(table.columns, side, strict=True)]
        if pictures:
            heads.insert(pictures.at, f'<th scope="col">{inline(pictures.pictured)}</th>')
        head = "".join(heads)
        body = []
        for k, (row, texts) in enumerate(zip(table.rows, zip(*printed, strict=True), strict=True)):
            cells = [f"<td{_look(text, align)}>{inline(text)}</td>" for text, align in zip(texts, side, strict=True)]
            if isinstance(row[0], str):
                cells[0] = f'<th scope="row">{inline(texts[0])}</th>'
            if pictures:
                cells.insert(pictures.at, f"<td>{sparkline(*pictures.series[k], name=texts[pictures.at - 1])}</td>")
            body.append(f"<tr>{''.join(cells)}</tr>")
        return (
            f'<div class="scroll" role="region" aria-labelledby="{name}" tabindex="0">\n<table>\n'
            f'<caption id="{name}"><span>{inline(caption)}</span></caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n'
            + "\n".join(body)
            + "\n</tbody>\n</table>\n</div>"
        )

    def ranked(self, block: Ranked) -> str:
        self.tables += 1
        name = f"table-{self.tables}"
        head, body = ranked.rows(block)
        return (
            f'<div class="scroll ranked" role="region" aria-labelledby="{name}" tabindex="0">\n<table>\n'
            f'<caption id="{name}"><span>{inline(f"Table {self.tables}. {block.caption}")}</span></caption>\n'
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>"
        )

    def figure(self, figure: Figure) -> str:
        self.figures += 1
        name = f"figure-{self.figures}"
        rows = figure.data
        shown = Table(rows.columns, rows.rows[:ROWS_SHOWN], rows.caption)
        count = numbers.plural(len(rows.rows), "row")
        if len(shown.rows) < len(rows.rows):
            count += f", the first {ROWS_SHOWN} shown"
        return (
            f'<figure>\n<div class="scroll" role="region" aria-labelledby="{name}" tabindex="0">'
            f"{svg.svg(figure.chart, alt=figure.alt, name=name)}</div>\n"
            f'<figcaption id="{name}">Figure {self.figures}. {inline(figure.caption)}</figcaption>\n'
            f"<details><summary>Data of figure {self.figures} ({count})</summary>\n"
            f"{self.table(shown, f'{name}-data', f'Data of figure {self.figures}')}\n</details>\n</figure>"
        )


def document(
    title: str,
    lead: str,
    body: str,
    *,
    style: str,
    policy: str,
    after: str = "",
    language: str = "en",
    carried: str = "",
) -> str:
    """A whole page around its body: what every page of ours begins and ends with. `policy` is what it may do."""
    first = f'<p class="lead">{inline(lead)}</p>\n' if lead else ""
    return (
        f'<!DOCTYPE html>\n<html lang="{escape(language)}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"{carried}<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        '<a class="skip" href="#content">Skip to the content</a>\n'
        f"<header>\n<h1>{escape(title)}</h1>\n{first}</header>\n"
        f'<main id="content" tabindex="-1">\n{body}\n</main>\n{after}</body>\n</html>\n'
    )


def _look(text: str, align: str) -> str:
    """The style of a cell: a hash may break anywhere, otherwise it would be wider than any screen."""
    return ' class="hash"' if HASH.fullmatch(text) else align


def inline(text: str) -> str:
    """Escaped text with `code` and **bold**; an unpaired mark stays a character."""
    parts = re.split(r"`([^`\n]+)`", text)
    for i, part in enumerate(parts):
        safe = escape(part)
        parts[i] = f"<code>{safe}</code>" if i % 2 else re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", safe)
    return "".join(parts)


def paragraphs(text: str) -> str:
    result = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        lines = [line.strip() for line in paragraph.splitlines()]
        if all(line.startswith("- ") for line in lines):
            result.append("<ul>" + "".join(f"<li>{inline(line[2:])}</li>" for line in lines) + "</ul>")
        else:
            result.append(f"<p>{inline(' '.join(lines))}</p>")
    return "\n".join(result)
