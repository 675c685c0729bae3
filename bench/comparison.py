"""What a comparison is, and the one table that all of them end in.

Only ratios and growth are quoted: the machine is whatever it is, and both sides ran on it in the same minutes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

START, END = "<!-- bench: written by make bench -->", "<!-- end of bench -->"


@dataclass(frozen=True)
class Row:
    """The same work on both sides.

    Attributes
    ----------
    job : what both did, with its size.
    peer : who else; with its version where it is known.
    time : the peer's seconds over ours; above one, ours is faster. None where the peer could not run.
    memory : the peer's peak memory over ours, likewise.
    agreement : how the answers compare, measured in this run.
    why : for a row where ours is behind or the peer is missing: the reason, and what would close it.
    """

    job: str
    peer: str
    time: float | None
    memory: float | None
    agreement: str
    why: str = ""

    @property
    def ahead(self) -> bool:
        return all(ratio is None or ratio >= 1 for ratio in (self.time, self.memory))


@dataclass(frozen=True)
class Comparison:
    """Rows of one module of the bench, and what else it measured."""

    rows: tuple[Row, ...]
    facts: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return {"rows": [asdict(row) for row in self.rows], "facts": dict(self.facts)}


def read(folder: Path) -> dict[str, Comparison]:
    """All comparisons that were written to `folder`, by name."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        if "rows" in content:
            found[path.stem] = Comparison(tuple(Row(**row) for row in content["rows"]), content.get("facts", {}))
    return found


def markdown(rows: Iterable[Row]) -> str:
    """The table of the README."""
    lines = ["| job | peer | time | memory | answers |", "|---|---|---|---|---|"]
    for row in rows:
        said = row.agreement + (f". {row.why}" if row.why else "")
        lines.append(f"| {row.job} | {row.peer} | {shown(row.time)} | {shown(row.memory)} | {said} |")
    return "\n".join(lines)


def shown(ratio: float | None) -> str:
    """A ratio as people read it."""
    if ratio is None:
        return "-"
    return f"{ratio:,.0f} x" if ratio >= 20 else f"{ratio:.2g} x"


def put_into(readme: Path, table: str) -> None:
    """Replace what stands between the marks."""
    text = readme.read_text(encoding="utf-8")
    before, mark, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise ValueError(f"{readme.name} has no place for the table: put {START} and {END} where it goes")
    readme.write_text(f"{before}{START}\n{table}\n{END}{after}", encoding="utf-8")


def fallen(now: Iterable[Row], recorded: Iterable[Row]) -> list[str]:
    """Ratios that fell below half of what was recorded."""
    before = {(row.job, row.peer): row.time for row in recorded}
    return [
        f"{row.job} against {row.peer}: {row.time:.3g}, recorded {was:.3g}"
        for row in now
        if row.time is not None and (was := before.get((row.job, row.peer))) is not None and row.time < was / 2
    ]
