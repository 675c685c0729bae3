"""The paper's size: 2,428,452 rows, in little memory, from a file as from memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from discreet.models.linear import fit_blocks, leave_groups_out, mixed
from discreet.simulate import qwi

FORMULA = "jcr ~ 0 + industry + quarter + (1 | county)"
GIB = 1024 * 1024  # kB


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("qwi")
    qwi.write(folder, seed=0)
    return folder / "qwi.parquet"


@pytest.mark.full_size
def test_a_fit_from_a_file_stays_under_a_gibibyte(parquet: Path) -> None:
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("needs /proc to see peak memory")
    code = f"from discreet.models.linear import mixed; mixed({FORMULA!r}, {str(parquet)!r}); print(open({str(status)!r}).read())"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    peak = next(int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("VmHWM"))
    assert peak < GIB


@pytest.mark.full_size
def test_blocks_and_refits_at_full_size(parquet: Path) -> None:
    table = pq.read_table(parquet, columns=["jcr", "industry", "quarter", "county"])
    fit, file = mixed(FORMULA, table), mixed(FORMULA, parquet)
    assert fit.rows == 2_428_452
    assert len(fit.random[0].levels) == 3_111
    assert file.criterion == pytest.approx(fit.criterion, rel=1e-12)
    refits = leave_groups_out(fit)
    assert np.isfinite(refits.criterion).all()
    county = 1_234
    kept = np.flatnonzero(fit.data.codes["county"] != county)
    other = mixed(FORMULA, table.take(kept))
    assert refits.criterion[county] == pytest.approx(other.criterion, rel=1e-10)
    np.testing.assert_allclose(refits.beta[county], other.beta, rtol=1e-7)
    blocks = fit_blocks(FORMULA, table, blocks=8_945, seed=0)
    assert blocks.size == 271
    # Schneider (2014, section 3.4.2) reports at most 2 industries and 2,863 to 2,892 of 3,111 counties missing.
    assert blocks.counts()["most_missing_columns"] <= 3
    assert 2_800 < blocks.missing_levels.min() <= blocks.missing_levels.max() < 2_900
