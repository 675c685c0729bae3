"""The files of one release: tables in two forms, and `release.json` that says what they are and what they promise.

The research form holds the integers as drawn and their intervals; nothing is rounded, cut off or left out. The basic
form is for readers: labels for codes, rounded counts, no impossible values. It is computed from the research form and
public settings alone, so whoever has the one can check the other.

Categories are written as they are. A spreadsheet may take one that begins with =, +, - or @ for a formula; changing it
would make the file differ from the data and from its other format, so such files are to be imported as text.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from inspect import getfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from discreet.arrays import Vector
from discreet.ledger import Entry
from discreet.ledger.publication import fingerprints
from discreet.plan.shape import Form, Output
from discreet.privacy.guarantee import Guarantee
from discreet.tables.mechanisms.mechanism import Mechanism
from discreet.tables.mechanisms.registry import foreign
from discreet.tables.prepared import Prepared

if TYPE_CHECKING:
    import pyarrow as pa

MANIFEST = "release.json"
FORMAT = "discreet release, format 1"
LIBRARIES = ("duckdb", "narwhals", "numpy", "pyarrow", "python-flint", "scipy")
"""What counts, draws and writes beside our own code."""

SYSTEM = "operating system"
SAMPLER = (
    "exact: every published integer has the mechanism's own probability, decided in interval arithmetic "
    "(docs/proofs/sampler.md)"
)
SUMMARY_SAMPLER = (
    "exact: the integers behind the published numbers have the mechanism's own probabilities, decided in interval "
    "arithmetic (docs/proofs/sampler.md); the integers themselves are not published"
)


def write_release(
    folder: Path,
    tables: Mapping[str, Mapping[Form, pa.Table]],
    output: Output,
    *,
    guarantee: Guarantee,
    entry: Entry,
    parameters: Mapping[str, Any],
    columns: Mapping[str, str],
    sampler: str = SAMPLER,
) -> None:
    """Write every file of a release into `folder`; `tables` are its forms by the sub-folder they go to."""
    for place, forms in tables.items():
        (folder / place).mkdir(parents=True, exist_ok=True)
        for form in output.forms:
            for kind in output.formats:
                write_table(forms[form], folder / place / f"{form}.{kind}")
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
        "code": {
            "discreet": version("discreet"),
            "source": source_hash(),
            "python": platform.python_version(),
            "libraries": {name: version(name) for name in LIBRARIES},
        },
        "files": fingerprints(folder),
    }
    text = json.dumps(about, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def basic(moved: pa.Table, labels: Mapping[str, Mapping[str, str]], *, round_to: int) -> pa.Table:
    """The form for readers; interval ends are rounded outwards, so that they still hold what they held."""
    import pyarrow as pa

    table = moved
    for i, name in enumerate(moved.column_names):
        if name in labels:
            table = table.set_column(i, name, labelled(table[name], labels[name]))
    count, lower, upper = (np.array(moved[name], dtype=np.float64) for name in ("count", "lower", "upper"))
    columns = {
        "count": rounded(count, round_to),
        "lower": np.floor(lower / round_to) * round_to,
        "upper": np.ceil(upper / round_to) * round_to,
    }
    for name, values in columns.items():
        fits = np.abs(values) < 2.0**63  # and neither infinite nor absent
        whole = pa.array(np.where(fits, values, 0).astype(np.int64), mask=~fits)
        table = table.set_column(table.column_names.index(name), name, whole)
    return table.drop_columns(["largest"]) if "largest" in table.column_names else table


def rounded(values: Vector, to: int) -> Vector:
    """The nearest multiples of `to`; half way, to the even one."""
    return np.asarray(np.rint(values / to) * to)


def labelled(column: pa.ChunkedArray, labels: Mapping[str, str]) -> pa.Array:
    """A column of categories by what readers call them; what has no label stays as it is."""
    import pyarrow as pa

    coded = column.combine_chunks().dictionary_encode()
    words = pa.array([labels.get(str(value), str(value)) for value in coded.dictionary.to_pylist()], pa.string())
    return words.take(coded.indices)


def write_table(table: pa.Table, path: Path) -> None:
    """Write a table in the format that its name ends in."""
    import pyarrow.csv
    import pyarrow.parquet

    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path, compression="zstd")


def read_table(
    file: Path | BinaryIO, *, kind: str, attributes: Sequence[str], columns: Sequence[str] | None = None
) -> pa.Table:
    """Read a table that `write_table` wrote, or some of its columns; attributes of a CSV file are text."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    if kind != "csv":
        return pyarrow.parquet.read_table(file, columns=columns)
    types = {
        **dict.fromkeys(attributes, pa.string()),
        "count": pa.int64(),
        "lower": pa.float64(),
        "upper": pa.float64(),
        "quality": pa.string(),
    }
    options = pyarrow.csv.ConvertOptions(column_types=types, include_columns=columns)
    return pyarrow.csv.read_csv(file, convert_options=options)


def noise(ready: Prepared) -> dict[str, Any]:
    """The public constants of a mechanism: what has to be known to compute with its noise."""
    constants, sizes = ready.mechanism.constants(), ready.sizes
    return constants | ({} if sizes is None else {"sizes": sizes.own_constants()})


def source_hash() -> str:
    """SHA-256 over the package's own source files, so that a reviewer can tell which code drew the noise.

    The files of mechanisms that other packages bring are part of it as soon as they are used.
    """
    return _hashed(foreign())


@cache
def _hashed(mechanisms: tuple[type[Mechanism], ...]) -> str:
    root = Path(__file__).parents[1]
    files = {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*.py"))}
    files |= {f"mechanism {kind.name}": Path(getfile(kind)) for kind in mechanisms}
    digest = sha256()
    for name, path in files.items():
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
