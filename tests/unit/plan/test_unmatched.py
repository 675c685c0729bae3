"""A file of the agency of which no row is a cell of the release: found from public cells, their parents and times."""

from __future__ import annotations

import pyarrow as pa
import pytest

from discreet.data.hierarchy import Hierarchy
from discreet.data.lineage import Lineage
from discreet.plan.agency import PublicTable, refuse_unmatched
from discreet.words.errors import DataError
from faults_of import about

KEYS = pa.table({"county": ["01001", "02001"]})
ABOVE = Lineage(
    {"place": Hierarchy(["county", "state"])},
    {"place": pa.table({"county": ["01001", "02001"], "state": ["01", "02"]})},
)


def listed(**columns: list[str]) -> PublicTable:
    table = pa.table({**columns, "count": [1.0] * len(next(iter(columns.values())))})
    return PublicTable("t", "t.csv", "", "", tuple(columns), ("count",), table)


@pytest.mark.parametrize(
    ("columns", "others", "alike"),
    [
        ({"county": ["01001", "77777"]}, {}, True),
        ({"county": ["1001", "2001"]}, {}, False),
        ({"state": ["02"]}, {}, True),
        ({"state": ["2"]}, {}, False),
        ({"county": ["01001"], "sex": ["f"]}, {"sex": ["f", "m"]}, True),
        ({"county": ["01001"], "sex": ["female"]}, {"sex": ["f", "m"]}, False),
        ({"county": ["77777", "01001"], "sex": ["f", "x"]}, {"sex": ["f"]}, False),
        ({"sex": ["m"]}, {"sex": ["f", "m"]}, True),
        ({"county": ["01001"], "quarter": ["2024Q2"]}, {"quarter": ["2024Q2"]}, True),
        ({"county": ["01001"], "quarter": ["2024-Q2"]}, {"quarter": ["2024Q2"]}, False),
    ],
)
def test_one_row_that_is_a_cell_is_enough(
    columns: dict[str, list[str]], others: dict[str, list[str]], alike: bool
) -> None:
    if alike:
        refuse_unmatched(listed(**columns), [(KEYS, ABOVE)], others)
        return
    with pytest.raises(DataError, check=about("compare")):
        refuse_unmatched(listed(**columns), [(KEYS, ABOVE)], others)
