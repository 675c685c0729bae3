"""Named Arrow batches to a new folder of Parquet files: all of them or nothing.

The files are written in a scratch folder beside the target and moved into place at the end, so an interrupted or
failed run leaves no partial data. The same request may be repeated: files that are there already, byte for byte, stay.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from filecmp import cmp
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.words.errors import DataError, DiscreetError
from discreet.words.progress import Progress, silent

if TYPE_CHECKING:
    import pyarrow as pa

Batches: TypeAlias = "Iterator[tuple[str, pa.RecordBatch]]"

ABOUT = "about.json"


def write(
    folder: str | Path,
    batches: Batches,
    *,
    about: Mapping[str, Any],
    total: int,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Write each named stream to `<folder>/<name>.parquet` and what was done to `about.json`.

    `progress` is called with what is being done and the share of `total` that is. Returns the content of `about.json`.
    """
    target = Path(folder).resolve()
    try:
        again = _claims(target, about)
        if not again:
            _refuse_occupied(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as scratch:
            filling = Path(scratch) / "filling"
            filling.mkdir()
            rows = _fill(filling, batches, total=total, progress=progress)
            done = {**about, "rows": rows}
            (filling / ABOUT).write_text(json.dumps(done, indent=2) + "\n", encoding="utf-8")
            if not again:
                filling.replace(target)
            elif not _same(filling, target):
                _refuse_occupied(target)
    except OSError as error:
        raise DiscreetError(
            f"Could not write simulated data to {str(folder)!r}: {error.strerror or error}.",
            "Nothing was left there; choose another --out or free some space.",
            about="folder",
        ) from error
    return done


def collect(batches: Batches) -> dict[str, pa.Table]:
    """All streams in memory, as tables; for small shares."""
    import pyarrow as pa

    parts: dict[str, list[pa.RecordBatch]] = {}
    for name, batch in batches:
        parts.setdefault(name, []).append(batch)
    return {name: pa.Table.from_batches(part) for name, part in parts.items()}


def categories(codes: NDArray[np.integer[Any]], labels: Iterable[str]) -> pa.DictionaryArray:
    """A dictionary-encoded string column from integer codes."""
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(labels, pa.string()))


def _claims(target: Path, about: Mapping[str, Any]) -> bool:
    """Whether the folder says that it holds the data of this request."""
    try:
        there = json.loads((target / ABOUT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(there, dict) and {**there, "rows": 0} == json.loads(json.dumps({**about, "rows": 0}))


def _same(one: Path, other: Path) -> bool:
    """Whether two directories hold the same files with the same bytes."""
    names = sorted(path.name for path in one.iterdir())
    return names == sorted(path.name for path in other.iterdir()) and all(
        cmp(one / name, other / name, shallow=False) for name in names
    )


def _refuse_occupied(target: Path) -> None:
    """Refuse a file or a folder with something else in it: simulation never overwrites."""
    if target.is_file():
        raise DataError(f"{str(target)!r} is a file.", "Simulated data need a new or empty folder.", about="folder")
    if target.is_dir() and any(target.iterdir()):
        raise DataError(
            f"{str(target)!r} is not empty, and simulated data never overwrite.",
            remedy="Name a new folder or empty it.",
            about="folder",
        )


def _fill(folder: Path, batches: Batches, *, total: int, progress: Progress) -> dict[str, int]:
    from pyarrow.parquet import ParquetWriter

    rows: dict[str, int] = {}
    with contextlib.ExitStack() as stack:
        writers: dict[str, ParquetWriter] = {}
        for name, batch in batches:
            if name not in writers:
                writer = ParquetWriter(folder / f"{name}.parquet", batch.schema, compression="zstd")
                writers[name] = stack.enter_context(writer)
                rows[name] = 0
            writers[name].write_batch(_own_labels(batch))
            rows[name] += batch.num_rows
            done = sum(rows.values())
            progress(f"{done:,} of {total:,} rows", done / total)
    return rows


def _own_labels(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Dictionaries with the labels of this batch alone: a file stores the dictionary again with every batch."""
    import pyarrow as pa

    columns = [
        column.dictionary_decode().dictionary_encode().cast(column.type)
        if pa.types.is_dictionary(column.type)
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)
