"""Quarterly Workforce Indicators (QWI), from the US Census Bureau's LEHD: its CSV files, or its API's columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from discreet.data.readers.published import FileLayout, Type, read_csv

if TYPE_CHECKING:
    import pyarrow as pa

COUNTS = frozenset(
    f"{prefix}{suffix}"
    for prefix, suffixes in {
        "Emp": ("", "End", "S", "Spv", "Total"),
        "Hir": ("A", "N", "R", "AEnd", "AEndRepl", "AS", "NS"),
        "Sep": ("", "Beg", "S", "Snx"),
        "FrmJb": ("Gn", "Ls", "C", "GnS", "LsS", "CS"),
        "Earn": ("S", "Beg", "HirAS", "HirNS", "SepS"),
        "Payroll": ("",),
    }.items()
    for suffix in suffixes
)
RATES = frozenset({"HirAEndR", "SepBegR", "TurnOvrS", "HirAEndReplr"})
"""Indicators of the LEHD schema, version 4: counts and whole dollars, and rates. The flag of Emp is sEmp."""


def _type_of(column: str) -> Type:
    if column in RATES:
        return "real"
    flag = column[:1] == "s" and column[1:] in COUNTS | RATES
    return "whole" if flag or column in COUNTS or column in ("year", "quarter") else "text"


QWI = FileLayout(
    name="QWI",
    required=("year", "quarter", "industry"),
    type_of=_type_of,
    home="lehd.ces.census.gov/data",
)


def read_qwi(path: str | Path) -> pa.Table:
    """One row per place, industry, worker group and quarter; an indicator is null where its flag says so.

    Place is `geography`; files with `state` and `county`, as the API returns them, get it as their concatenation.
    """
    import pyarrow.compute as pc

    table = read_csv(path, QWI)
    if "geography" not in table.column_names and {"state", "county"} <= set(table.column_names):
        table = table.append_column("geography", pc.binary_join_element_wise(table["state"], table["county"], ""))
    return table
