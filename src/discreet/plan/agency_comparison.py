"""A release beside the agency's own table: its numbers are kept in the release's folder, and compared.

The file's numbers are kept under our names, so a reviewer can compute the comparison again from the folder alone. The
file itself is identified by its SHA-256.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Mask, Vector
from discreet.plan.agency import PublicTable, cell_keys, floats, texts
from discreet.release.folder import AGENCY
from discreet.release.tables import column_names, read_table, write_table
from discreet.report.agency import AgencyTable
from discreet.tables.quality import NOISE
from discreet.utility.agency import agreement

if TYPE_CHECKING:
    import pyarrow as pa

COMPARISON = "comparison.json"
MOST_NAMED = 5
"""Values of an attribute that are named where only one side has them."""


def write_public(folder: Path, found: PublicTable, formats: Sequence[str]) -> None:
    """Keep the agency's numbers beside the release, with the results of the comparison."""
    for kind in formats:
        write_table(found.table, folder / f"{AGENCY}.{kind}")
    text = json.dumps(found.about() | {"found": compared(folder, found.about())}, indent=2, ensure_ascii=False)
    (folder / COMPARISON).write_text(text + "\n", encoding="utf-8")


def compared(folder: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """The comparison, from the files of a release alone: by number, and the values that one side lacks."""
    import pyarrow.compute as pc

    by, numbers = [str(name) for name in about["by"]], [str(name) for name in about["numbers"]]
    ours, theirs = _file(folder / str(about["table"]), "research", by), _file(folder, AGENCY, by)
    mine, listed = cell_keys(ours, by), cell_keys(theirs, by)
    row = np.array(pc.fill_null(pc.index_in(mine, value_set=listed), -1))
    there: Mask = row >= 0
    elsewhere = len(theirs) - int(np.unique(row[there]).size)
    found = {}
    for number in numbers:
        value = floats(theirs[number])
        lower, upper, flag = (
            f"{number}_{part}" if f"{number}_{part}" in ours.column_names else part
            for part in ("lower", "upper", "quality")
        )
        ends = [floats(ours[end]) for end in (lower, upper)]
        noisy = np.array([word == NOISE for word in ours[flag].to_pylist()], dtype=np.bool_)
        matched = np.where(there, value[np.maximum(row, 0)] if len(value) else np.nan, np.nan)
        told = agreement(floats(ours[number]), *ends, noisy=noisy, theirs=matched, listed=there, elsewhere=elsewhere)
        found[number] = asdict(told)
    lacking = {
        name: {"here": _lacking(ours[name], theirs[name]), "there": _lacking(theirs[name], ours[name])} for name in by
    }
    return {"numbers": found, "only": {name: each for name, each in lacking.items() if any(each.values())}}


def both_sides(folder: Path, about: Mapping[str, Any]) -> dict[str, tuple[Vector, Vector]]:
    """Each number of the cells that both sides publish: ours, then theirs."""
    import pyarrow.compute as pc

    by = [str(name) for name in about["by"]]
    ours, theirs = _file(folder / str(about["table"]), "research", by), _file(folder, AGENCY, by)
    row = np.array(pc.fill_null(pc.index_in(cell_keys(ours, by), value_set=cell_keys(theirs, by)), -1))
    found = {}
    for number in map(str, about["numbers"]):
        now, then = floats(ours[number])[row >= 0], floats(theirs[number])[row[row >= 0]]
        there = np.isfinite(now) & np.isfinite(then)
        found[number] = (now[there], then[there])
    return found


def _lacking(one: Any, other: Any) -> list[str]:
    """Values of an attribute that the other side does not have, the first few."""
    gone = sorted({*texts(one).unique().to_pylist()} - {*texts(other).unique().to_pylist()} - {None})
    return [*gone[:MOST_NAMED], *([f"and {len(gone) - MOST_NAMED:,} more"] if len(gone) > MOST_NAMED else [])]


def _file(folder: Path, form: str, by: Sequence[str]) -> pa.Table:
    path = next(p for kind in ("parquet", "csv") if (p := folder / f"{form}.{kind}").is_file())
    names = column_names(path)
    return read_table(path, kind=path.suffix[1:], attributes=[name for name in by if name in names])


def kept(folder: Path) -> dict[str, Any] | None:
    """A release's entry about the agency's table, if it has one."""
    path = folder / COMPARISON
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


def shown(folder: Path) -> AgencyTable | None:
    """The report's part on the agency's table, computed again from the release's files."""
    about = kept(folder)
    if about is None:
        return None
    return AgencyTable(
        str(about["title"]), str(about["file"]), str(about["sha256"]), tuple(about["by"]), compared(folder, about)
    )
