"""The Quarterly Census of Employment and Wages (QCEW), from the US Bureau of Labor Statistics, in any CSV layout."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from discreet.data.readers.published import FileLayout, Type, read_csv

if TYPE_CHECKING:
    import pyarrow as pa


def _type_of(column: str) -> Type:
    if column == "qtr" or column.endswith(("_fips", "_code", "_title")):
        return "text"
    return "real" if column.startswith("lq_") or "pct_chg" in column else "whole"


QCEW = FileLayout(
    name="QCEW",
    required=("area_fips", "own_code", "industry_code", "agglvl_code", "year", "qtr"),
    type_of=_type_of,
    home="www.bls.gov/cew/about-data/downloadable-file-layouts",
)


def read_qcew(path: str | Path) -> pa.Table:
    """One row per area, ownership, industry and quarter (`qtr` is A in annual files).

    Employment and wages are not disclosed, and printed as 0, where `disclosure_code` is N. The older name
    `qtrly_estabs_count` becomes `qtrly_estabs`, and likewise for the annual and over-the-year columns.
    """
    table = read_csv(path, QCEW)
    return table.rename_columns([name.replace("_estabs_count", "_estabs") for name in table.column_names])
