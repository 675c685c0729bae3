"""The files of one release: its tables, and `release.json` that says what they are and what they promise."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from discreet.ledger import Entry
from discreet.ledger.publication import fingerprints
from discreet.privacy.guarantee import Guarantee
from discreet.release.canonical import tables_of
from discreet.release.code import Sources, computing_hash, source_hash
from discreet.release.tables import write_table

MANIFEST = "release.json"
FORMAT = "discreet release, format 1"
LIBRARIES = ("duckdb", "narwhals", "numpy", "pyarrow", "python-flint", "scipy")
"""The packages beside our own code that count, draw and write."""

SYSTEM = "operating system"
SAMPLER = (
    "exact: every published integer has the mechanism's own probability, decided in interval arithmetic "
    "(docs/proofs/sampler.md)"
)
SUMMARY_SAMPLER = (
    "exact: the integers behind the published numbers have the mechanism's own probabilities, decided in interval "
    "arithmetic (docs/proofs/sampler.md); the integers themselves are not published"
)


def write_value(
    value: Any,
    guarantee: Guarantee,
    entry: Entry,
    folder: Path,
    *,
    sampler: str = SUMMARY_SAMPLER,
    more: Sources = (),
) -> None:
    """Write the tables of a released value as Parquet and as CSV, with their manifest."""
    for name, table in tables_of(value).items():
        for kind in ("parquet", "csv"):
            write_table(table, folder / f"{name}.{kind}")
    details = entry.payload.get("details") or {}
    write_manifest(folder, guarantee=guarantee, entry=entry, parameters=details, columns={}, sampler=sampler, more=more)


def write_manifest(
    folder: Path,
    *,
    guarantee: Guarantee,
    entry: Entry,
    parameters: Mapping[str, Any],
    columns: Mapping[str, str],
    sampler: str = SAMPLER,
    more: Sources = (),
) -> None:
    """Describe the files in `folder`: what they are, what they promise, who paid and which code drew them."""
    about = {
        "format": FORMAT,
        "name": entry.release,
        "dataset": entry.dataset,
        "guarantee": guarantee.to_dict(),
        "parameters": dict(parameters),
        "columns": dict(columns),
        "ledger": entry.reference,
        "sampler": sampler,
        "randomness": SYSTEM if guarantee.private else "a seed: not private",
        "code": code_of(more),
        "files": fingerprints(folder),
    }
    text = json.dumps(about, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


@cache
def code_of(more: Sources = ()) -> dict[str, Any]:
    """Which code draws and writes; an offer asks for it, so that the manifest can be written once it is paid."""
    return {
        "discreet": version("discreet"),
        "source": source_hash(more),
        "computes": computing_hash(more),
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
    }
