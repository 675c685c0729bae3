"""The data of a site's tables: scripts that hand rows to the page a part at a time.

A page that is opened from a disk may not fetch files, but it may load scripts beside it. So the rows of a table are
scripts of some ten thousand rows each, categories as numbers into a list; the page shows the first part at once.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.release.folder import PublishedTable

if TYPE_CHECKING:
    import pyarrow as pa

PART = 50_000
"""Rows of one script."""

CALL = "discreet.rows"
TITLES = {"lower": "from", "upper": "to", "std_error": "standard error", "at_most": "at most"}


def write_rows(folder: Path, name: str, of: PublishedTable, table: pa.Table) -> dict[str, Any]:
    """Write the scripts of a table into `folder`; what the page has to know of it."""
    folder.mkdir(parents=True, exist_ok=True)
    columns, data = [], []
    for field in table.schema:
        column = table[field.name]
        about: dict[str, Any] = {"name": field.name, "title": TITLES.get(field.name, field.name.replace("_", " "))}
        if _is_number(field.type) and field.name not in of.attributes:
            values = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
            about["kind"] = "value" if field.name in of.values else "number"
            data.append(
                [None if not np.isfinite(v) else int(v) if v == int(v) else float(f"{v:.6g}") for v in values.tolist()]
            )
        else:
            coded = column.combine_chunks().dictionary_encode()
            about["kind"] = "attribute" if field.name in of.attributes else "word"
            about["values"] = ["" if value is None else str(value) for value in coded.dictionary.to_pylist()]
            data.append(coded.indices.fill_null(-1).to_pylist())
        columns.append(about)
    parts = list(range(0, max(len(table), 1), PART))
    for number, start in enumerate(parts):
        rows = json.dumps([values[start : start + PART] for values in data], separators=(",", ":"))
        (folder / f"{name}-{number}.js").write_text(f"{CALL}({number},{rows});\n", encoding="utf-8")
    return {"columns": columns, "rows": len(table), "parts": len(parts), "source": f"{folder.name}/{name}"}


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
