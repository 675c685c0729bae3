"""A study: numbers for machines, a page for people, and one directory that holds both.

What computes returns a `Study`; `Study.write` puts down `results.json`, `report.html`, `figures/*.svg` (with the data
drawn, as `.csv`) and `tables/*.csv`, all of them or none.
"""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import Any

from discreet.pages import svg
from discreet.pages.numbers import finite
from discreet.pages.page import Figure, Page, Table, slug
from discreet.words.errors import DataError

FILES = {"results.json", "report.html"}
FOLDERS = {"figures": {".svg", ".csv"}, "tables": {".csv"}}


@dataclass(frozen=True, slots=True)
class Study:
    """The outcome of one experiment.

    Attributes
    ----------
    results : what a program would read: nested dictionaries, lists, numbers, NumPy arrays, dataclasses.
    page : what a person reads; its tables and figures are also written as files.
    tables, figures : further ones, by file name, that would be too long for the page.
    """

    name: str
    title: str
    results: Mapping[str, Any]
    page: Page
    tables: Mapping[str, Table] = field(default_factory=dict)
    figures: Mapping[str, Figure] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The content of `results.json`: the study's own keys, with its name and the version that wrote it."""
        results: dict[str, Any] = finite(dict(self.results))
        return {"study": self.name, "title": self.title, "discreet": version("discreet")} | results

    def write(self, out: str | Path) -> Path:
        """Write the study to the directory `out`; an earlier study there is replaced, anything else is refused."""
        out = Path(out).resolve()
        check_output(out)
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as work:
            fresh, old = Path(work, "new"), Path(work, "old")
            self._write_files(fresh)
            if out.exists():
                out.rename(old)
            try:
                fresh.rename(out)
            except OSError:
                if old.exists():
                    old.rename(out)
                raise
        return out

    def _write_files(self, folder: Path) -> None:
        for name in FOLDERS:
            (folder / name).mkdir(parents=True)
        content = json.dumps(self.to_dict(), indent=2, allow_nan=False, ensure_ascii=False)
        (folder / "results.json").write_text(content + "\n", encoding="utf-8")
        (folder / "report.html").write_text(self.page.html(), encoding="utf-8")
        for name, table in {**self.page.tables, **_slugs(self.tables)}.items():
            (folder / "tables" / f"{name}.csv").write_text(comma_separated(table), encoding="utf-8")
        for name, figure in {**self.page.figures, **_slugs(self.figures)}.items():
            picture = svg.svg(figure.chart, alt=figure.alt, name=name, standalone=True)
            (folder / "figures" / f"{name}.svg").write_text(picture, encoding="utf-8")
            (folder / "figures" / f"{name}.csv").write_text(comma_separated(figure.data), encoding="utf-8")


def check_output(out: Path) -> None:
    """Refuse a path that holds anything but an earlier study, before time is spent on a new one."""
    if not out.exists():
        return
    if not out.is_dir():
        raise DataError(
            f"Output {str(out)!r} is a file.", "A study writes a directory; name another path.", about="out"
        )
    foreign = sorted(path.name for path in out.iterdir() if not _is_ours(path))
    if foreign:
        raise DataError(
            f"Output {str(out)!r} holds {foreign[0]!r}, which no study wrote.",
            "A study replaces only an earlier study; name a new directory or move that file away.",
            about="out",
        )


def comma_separated(table: Table) -> str:
    """A table as CSV with full precision; an absent value is an empty field."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([finite(cell) for cell in row] for row in table.rows)
    return text.getvalue()


def _slugs(blocks: Mapping[str, Any]) -> dict[str, Any]:
    return {slug(name): block for name, block in blocks.items()}


def _is_ours(path: Path) -> bool:
    if path.name in FOLDERS:
        return path.is_dir() and all(file.suffix in FOLDERS[path.name] for file in path.iterdir())
    return path.name in FILES and path.is_file()
