"""Histograms of establishments against a loop in plain Python and against the cells' own query."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from discreet.data.jobs import Jobs, read_jobs
from discreet.data.schema import Schema
from discreet.tables.baseline.establishments import histograms
from discreet.tables.cells import cell_statistics
from discreet.words.errors import DataError
from faults_of import about

WHERE = [None, {"sector": "Retail Trade", "education": ["high school", "bachelor or more"]}, {"age": "25-34"}]


@pytest.mark.parametrize("where", WHERE)
def test_cells_of_histograms_are_those_of_the_engine(jobs: Jobs, where: dict[str, list[str]] | None) -> None:
    if where and "sector" in where:
        labels = cell_statistics(jobs, workplace_by=["sector"]).keys["sector"].to_pylist()
        where = {**where, "sector": labels[:2]}
    by = {"workplace_by": ["place", "sector", "ownership"], "worker_by": ["sex", "education"], "where": where}
    ours, engine = histograms(jobs, **by).cells(), cell_statistics(jobs, **by)  # type: ignore[arg-type]
    assert ours.keys.equals(engine.keys)
    assert (ours.worker_by, ours.levels) == (engine.worker_by, engine.levels)
    for name in ("counts", "largest", "largest_total", "establishments"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(engine, name), err_msg=name)


ROWS = [
    ("b", "west", "f", 2),
    ("b", "west", "m", 3),
    ("a", "east", "m", 5),
    ("c", "east", "f", 1),
    ("c", "east", "f", 4),
    ("d", "west", "m", 0),
]


@pytest.mark.parametrize("by", [[], ["region"]])
def test_counted_tables_without_a_list_of_establishments(by: list[str]) -> None:
    table = pa.table(dict(zip(("firm", "region", "sex", "n"), map(list, zip(*ROWS, strict=True)), strict=True)))
    schema = Schema(["region"], {"sex": ["f", "m"]}, establishment="firm", size="n")
    found = histograms(read_jobs(table, schema=schema), workplace_by=by, worker_by=["sex"])

    counted: Counter[tuple[str, str, str]] = Counter()
    for firm, region, sex, n in ROWS:
        counted[region if by else "", firm, sex] += n
    order = sorted({key[:2] for key in counted})
    assert found.establishment.to_pylist() == [firm for _, firm in order]
    np.testing.assert_array_equal(found.counts, [[counted[*key, sex] for sex in ("f", "m")] for key in order])
    np.testing.assert_array_equal(found.size, [sum(counted[*key, sex] for sex in ("f", "m")) for key in order])
    assert found.start.tolist() == ([0, 2] if by else [0])
    assert found.establishments.tolist() == ([2, 2] if by else [4])
    assert found.keys.to_pydict() == ({"region": ["east", "west"]} if by else {})
    assert found.total(np.ones(4)).tolist() == found.establishments.tolist()


def test_nothing_confidential_is_printed(jobs: Jobs) -> None:
    found = histograms(jobs, workplace_by=["sector"], worker_by=["sex"])
    assert repr(found) == f"Histograms by sector, sex: {len(found.counts):,} establishments x 2 levels, confidential"


def test_unknown_attributes_are_refused(jobs: Jobs) -> None:
    with pytest.raises(DataError, check=about("workplace_by")):
        histograms(jobs, workplace_by=["plaza"])


def test_levels_that_follow_from_a_code_are_levels_here_too() -> None:
    schema = Schema(["code"], {}, hierarchy={"industry": {"levels": ["code", "sector"], "prefix": [2, 1]}})
    rows = {"workplace": ["a", "a", "b", "c"], "worker": [1, 2, 3, 4], "code": ["11", "11", "12", "21"]}
    firms = histograms(read_jobs(rows, schema=schema), workplace_by=["sector"])
    assert firms.keys["sector"].to_pylist() == ["1", "2"]
    assert firms.size.tolist() == [2, 1, 1]
