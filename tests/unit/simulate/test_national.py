"""A simulated nation: its totals, codes that nest, pay below the cap, the same from the same seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from discreet.data.jobs import read_jobs
from discreet.data.schema import NATIONAL
from discreet.simulate import national, stream

SHARE = 0.01


def test_a_nation_has_the_stated_size_and_shape() -> None:
    firms = national.firms(share=SHARE)
    assert (len(firms.size), firms.size.sum()) == (30_000, 430_000)
    assert firms.size.min() == 1 and firms.size.max() <= national.SHAPE.largest
    assert (firms.payroll <= firms.size * national.MOST_PAY).all() and (firms.payroll > 0).all()
    mean = firms.payroll.sum() / firms.size.sum()
    assert 40_000 < mean < 70_000  # QCEW 2016: 53,600
    assert 800 <= len(firms.industries) <= 1_400 and len({*firms.industries}) == len(firms.industries)
    assert all(len(code) == 6 for code in firms.industries) and all(len(code) == 5 for code in firms.counties)
    assert len({code[:2] for code in firms.counties}) == national.SHAPE.states
    assert len(national.firms(share=1e-3).counties) >= national.SHAPE.states


def test_the_same_seed_gives_the_same_rows(tmp_path: Path) -> None:
    done = national.write(tmp_path / "nation", share=0.002)
    table = pq.read_table(tmp_path / "nation" / "jobs.parquet")
    again = stream.collect(national.batches(share=0.002))["jobs"]
    assert done["rows"] == {"jobs": 6_000}
    assert all(table[name].to_pylist() == again[name].to_pylist() for name in table.column_names)
    other = national.firms(seed=1, share=0.002)
    assert not np.array_equal(other.size, national.firms(share=0.002).size)


def test_its_schema_is_known_where_it_was_written(tmp_path: Path) -> None:
    national.write(tmp_path / "nation", share=0.002)
    jobs = read_jobs(tmp_path / "nation")
    assert jobs.schema == NATIONAL
    assert jobs.schema.magnitudes["payroll"].cap == national.MOST_PAY
    assert {*jobs.lineage.codes} == {"industry", "place"}
