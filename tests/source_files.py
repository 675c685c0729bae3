"""The Python files of both projects in this repository: the package, and the papers' experiments beside it.

Scans of the source that hold for both ask here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "discreet"
PAPERS = ROOT / "papers" / "src" / "discreet_papers"


def source_files() -> Iterator[tuple[str, Path]]:
    """Each by its place: `pages/study.py` of the package, `discreet_papers/lodes.py` of the papers."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), path
    for path in sorted(PAPERS.rglob("*.py")):
        yield path.relative_to(PAPERS.parent).as_posix(), path
