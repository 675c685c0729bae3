"""The study on a sliver of simulated flows, its lags, and the command that audits a file."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.words.errors import DataError
from discreet_papers import blmm
from faults_of import about


@pytest.mark.walk
def test_study_writes_what_it_promises(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(blmm, "QUICK_SHARE", 0.002)
    monkeypatch.setattr(blmm, "QUICK_DRAWS", 400)
    monkeypatch.setattr(blmm, "QUICK_WARMUP", 100)
    monkeypatch.setattr(blmm, "NUS", (12.0, 60.0))
    study = blmm.run(quick=True, seed=1)
    study.write(tmp_path / "out")
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    found = results["empirical_epsilon"]
    assert found["kind"] == "empirical"
    assert found["rows_audited"] == results["rows"]
    assert found["exact"] >= found["exact_on_influential_rows"] > 0
    assert found["exact_noise_floor"] < 0.001
    assert found["worst_row"]["epsilon"] == pytest.approx(found["exact"])
    assert results["fixed_effects"] == 24
    assert 0.99 < results["rhat_max"] < 1.2
    assert results["sensitivity"][0]["epsilon"] == pytest.approx(found["exact"], rel=0.02)
    for name in ("figure-1", "figure-8", "figure-9"):
        assert (tmp_path / "out" / "figures" / f"{name}.svg").exists()


def test_lags_stay_inside_a_cell(tmp_path) -> None:
    columns = {
        "county": ["b"] * 6 + ["a"] * 6,
        "industry": ["x"] * 12,
        "quarter": [6, 5, 4, 3, 2, 1, 1, 2, 3, 4, 5, 7],
        "jcr": np.arange(12.0),
    }
    pq.write_table(pa.table(columns), tmp_path / "qwi.parquet")
    found = blmm.lagged(tmp_path / "qwi.parquet")
    assert found["county"].to_pylist() == ["a", "b", "b"]  # the gap before a's last quarter breaks its lags
    assert found["jcr"].tolist() == [10, 1, 0]
    assert [found[f"lag{k}"].tolist() for k in (1, 4)] == [[9, 2, 1], [6, 5, 4]]


def test_data_without_lags_or_columns_are_refused(tmp_path) -> None:
    pq.write_table(pa.table({"county": ["a"], "industry": ["x"], "quarter": [1], "jcr": [0.1]}), tmp_path / "a.parquet")
    with pytest.raises(DataError, check=about("data")):
        blmm.run(data=tmp_path / "a.parquet")
    pq.write_table(pa.table({"county": ["a"]}), tmp_path / "b.parquet")
    with pytest.raises(DataError, check=about("data")):
        blmm.run(data=tmp_path / "b.parquet")
