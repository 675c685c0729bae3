"""The files of one release: tables in two forms, and `release.json` that says what they are and what they promise.

The research form holds the integers as drawn and their intervals; nothing is rounded, cut or left out. The basic form
is for readers: labels for codes, rounded counts, no impossible values. It is computed from the research form and public
settings alone, so anyone with the one can check the other.

Categories are written as they are. A spreadsheet may read a label that begins with =, +, - or @ as a formula. Changing
it would make the file differ from the data and from its other format, so import such files as text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Vector
from discreet.data.columns import column_of, doubles_of
from discreet.data.hierarchy import Hierarchy
from discreet.data.lineage import Lineage
from discreet.ledger import Entry
from discreet.pages.page import slug
from discreet.plan.agency import PublicTable
from discreet.plan.agency_comparison import write_public
from discreet.plan.shape import Form, Format, Output
from discreet.plan.sheets import EXCEL, for_programs, told
from discreet.privacy.guarantee import Guarantee
from discreet.release.files import SAMPLER, write_manifest
from discreet.release.tables import column_names, read_table, write_table
from discreet.results import write_excel
from discreet.tables.mechanisms.registry import sources
from discreet.tables.prepared import Prepared
from discreet.tables.quality import quality_column

if TYPE_CHECKING:
    import pyarrow as pa


PARENTS = "parents"
"""Files of codes and their parents: parents-industry.csv."""

DIGITS = 4
"""Significant digits of numbers with a fraction in the basic form."""


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
    beside: PublicTable | None = None,
) -> None:
    """Write every file of a release into `folder`; `tables` are its forms by the sub-folder they go to.

    `beside` is the agency's own table, which is compared with what was written.
    """
    for place, forms in tables.items():
        (folder / place).mkdir(parents=True, exist_ok=True)
        for form in output.forms:
            for kind in for_programs(output.formats):
                write_table(forms[form], folder / place / f"{form}.{kind}")
            if EXCEL in output.formats:
                sentence = str(guarantee.to_dict()["sentence"])
                about = {"name": str(entry.release), "dataset": entry.dataset, "form": form, "sentence": sentence}
                write_excel(forms[form], folder / place / f"{form}.{EXCEL}", told(**about, columns=columns))
    if beside is not None:
        write_public(folder, beside, for_programs(output.formats))
    write_manifest(
        folder,
        guarantee=guarantee,
        entry=entry,
        parameters=parameters,
        columns=columns,
        sampler=sampler,
        more=sources(),
    )


def write_parents(
    folder: Path, lineage: Lineage | None, hierarchy: Mapping[str, Hierarchy], formats: Sequence[Format]
) -> None:
    """The codes of the hierarchies by which tables of a release are sums of each other, with their parents."""
    files = _files_of_parents(hierarchy)
    for name, table in ({} if lineage is None else lineage.codes).items():
        for kind in for_programs(formats):
            write_table(table, folder / f"{files[name]}.{kind}")


def _files_of_parents(hierarchy: Mapping[str, Hierarchy]) -> dict[str, str]:
    """The file of each declared hierarchy; names that are spelled alike in paths are numbered, in their order."""
    files: dict[str, str] = {}
    for name in sorted(hierarchy):
        file, again = f"{PARENTS}-{slug(name)}", 2
        while file in files.values():
            file, again = f"{PARENTS}-{slug(name)}-{again}", again + 1
        files[name] = file
    return files


def read_parents(folder: Path, hierarchy: Mapping[str, Hierarchy]) -> Lineage | None:
    """What `write_parents` wrote. Columns tell whose a file is: a level is of one hierarchy."""
    levels, codes = {}, {}
    files = [(path, column_names(path)) for kind in ("parquet", "csv") for path in folder.glob(f"{PARENTS}-*.{kind}")]
    for name, known in hierarchy.items():
        found = next((each for each in files if {*each[1]} <= {*known.levels}), None)
        if found is not None:
            path, columns = found
            levels[name] = Hierarchy([level for level in known.levels if level in columns])
            table = read_table(path, kind=path.suffix[1:], attributes=columns)
            codes[name] = table.select(list(levels[name].levels))
    return Lineage(levels, codes) if codes else None


def basic(moved: pa.Table, labels: Mapping[str, Mapping[str, str]], *, round_to: int) -> pa.Table:
    """The form for readers; interval ends are rounded outwards, so the intervals still contain what they contained.

    A flag is of the numbers beside it: rounding makes a small count less certain.
    """
    value = "sum" if "sum" in moved.column_names else "count"
    table, numbers = rounded_outwards(in_words(moved, labels), (value, "lower", "upper"), round_to)
    if "quality" in table.column_names:
        table = table.set_column(table.column_names.index("quality"), "quality", quality_column(*numbers))
    return table.drop_columns([name for name in ("largest", "at_most") if name in table.column_names])


def in_words(table: pa.Table, labels: Mapping[str, Mapping[str, str]]) -> pa.Table:
    """A table with labels in place of codes."""
    for i, name in enumerate(table.column_names):
        if name in labels:
            table = table.set_column(i, name, labelled(table[name], labels[name]))
    return table


def rounded_outwards(
    table: pa.Table, names: tuple[str, str, str], to: int
) -> tuple[pa.Table, tuple[Vector, Vector, Vector]]:
    """A number and the ends of its interval as multiples of `to`: ends that hold what they held; and these numbers."""
    value, low, high = (doubles_of(table[name]) for name in names)
    found = rounded(value, to), np.floor(low / to) * to, np.ceil(high / to) * to
    for name, values in zip(names, found, strict=True):
        fits = np.abs(values) < 2.0**63  # and neither infinite nor absent
        whole = column_of(np.where(fits, values, 0).astype(np.int64), missing=~fits)
        table = table.set_column(table.column_names.index(name), name, whole)
    return table, found


def shortened(table: pa.Table) -> pa.Table:
    """The basic form of numbers with a fraction: few digits."""
    import pyarrow as pa

    for i, name in enumerate(table.column_names):
        if pa.types.is_floating(table[name].type):
            values = [
                None if v is None or not np.isfinite(v) else float(f"{v:.{DIGITS}g}") for v in table[name].to_pylist()
            ]
            table = table.set_column(i, name, pa.array(values, pa.float64()))
    return table


def rounded(values: Vector, to: int) -> Vector:
    """The nearest multiples of `to`; half way, to the even one."""
    return np.asarray(np.rint(values / to) * to)


def labelled(column: pa.ChunkedArray, labels: Mapping[str, str]) -> pa.Array:
    """A column of categories by what readers call them; what has no label stays as it is."""
    import pyarrow as pa

    coded = column.combine_chunks().dictionary_encode()
    words = pa.array([labels.get(str(value), str(value)) for value in coded.dictionary.to_pylist()], pa.string())
    return words.take(coded.indices)


def noise(ready: Prepared) -> dict[str, Any]:
    """The public constants of a mechanism: what has to be known to compute with its noise."""
    constants, sizes = ready.mechanism.constants(), ready.sizes
    return constants | ({} if sizes is None else {"sizes": sizes.own_constants()})


def hash_of(labels: Mapping[str, Mapping[str, str]], by: Sequence[str]) -> str | None:
    """A hash of the labels in a table by these attributes; None if there are none."""
    used = {name: labels[name] for name in by if name in labels}
    return sha256(json.dumps(used, sort_keys=True).encode()).hexdigest() if used else None
