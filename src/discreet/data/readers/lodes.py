"""LODES workplace area characteristics (WAC): jobs by census block, in margins, from the US Census Bureau's LEHD."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from discreet.data.readers.published import FileLayout, read_csv

if TYPE_CHECKING:
    import pyarrow as pa

WAC = FileLayout(
    name="LODES WAC",
    required=("w_geocode", "C000"),
    type_of=lambda column: "text" if column in ("w_geocode", "createdate") else "whole",
    home="lehd.ces.census.gov/data/lodes",
)


def read_lodes_wac(path: str | Path) -> pa.Table:
    """One row per census block: the code `w_geocode` (15 digits), all jobs `C000`, and margins that add up to it.

    `CA..` age, `CE..` earnings, `CNS..` sector, `CR..` race, `CT..` ethnicity, `CD..` education (of workers aged 30 or
    more), `CS..` sex, `CFA..` and `CFS..` age and size of the firm (private jobs only).
    """
    return read_csv(path, WAC)
