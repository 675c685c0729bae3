"""The files of alarms beside the releases of a plan: `alarms.json`, and a table of cells for each step.

They are post-processing: no line of the ledger is about them. Their hashes in `alarms.json` find an accident, not a
forger; a reviewer computes alarms again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.release.tables import read_table
from discreet.words.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

INDEX = "alarms.json"
COSTS = "Post-processing of published numbers: alarms cost nothing."


def kept(folder: Path) -> dict[str, Any]:
    """The alarms in the output of a plan, by name."""
    path = folder / INDEX
    return dict(json.loads(path.read_text(encoding="utf-8"))["alarms"]) if path.is_file() else {}


def kept_table(folder: Path, name: str, by: Sequence[str], kind: str | None = None) -> pa.Table:
    """A table that was written beside the releases."""
    kinds = ("parquet", "csv") if kind is None else (kind,)
    path = next(p for each in kinds if (p := folder / f"{name}.{each}").is_file())
    return read_table(path, kind=path.suffix[1:], attributes=by)


def open_alarms(folder: str | Path) -> dict[str, tuple[dict[str, Any], pa.Table]]:
    """The alarms in the output of a plan, with their tables; refused where a file is not the one that was written."""
    folder, found = Path(folder), {}
    for name, about in kept(folder).items():
        for file, digest in about["files"].items():
            path = folder / Path(file).name
            if not path.is_file() or sha256(path.read_bytes()).hexdigest() != digest:
                raise DataError(
                    f"{file!r} is missing, or was changed after it was written.",
                    "Only alarms as they were computed are published further.",
                    "Run the plan again: that costs nothing.",
                    about="release",
                )
        found[name] = about, kept_table(folder, f"alarms-{name}", about["by"])
    return found
