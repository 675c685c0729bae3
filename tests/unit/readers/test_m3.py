"""M3 from R: a file in the structure of Mcomp's, written by R itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from discreet.data.readers.m3 import read_m3
from discreet.words.errors import DataError
from faults_of import about

SCRIPT = """
one <- function(sn, type, period, frequency, n, h) {
  x <- ts(sqrt(seq_len(n)), start = c(1982, 1), frequency = frequency)
  xx <- ts(100 + seq_len(h) / 8, start = tsp(x)[2] + 1 / frequency, frequency = frequency)
  structure(list(st = sn, type = type, period = period, description = "SHIPMENTS", sn = sn, x = x, xx = xx, h = h,
                 n = n), class = "Mdata")
}
M3 <- structure(list(N1402 = one("N1402", "MICRO", "MONTHLY", 12, 50, 18), N1 = one("N1", "MICRO", "YEARLY", 1, 14, 6),
                     N2 = one("N2000", "FINANCE", "MONTHLY", 12, 60, 18)), class = "Mcomp")
save(M3, file = "M3.rda")
both <- function(s) data.frame(series = s$sn, part = rep(c("train", "test"), c(s$n, s$h)), t = seq_len(s$n + s$h),
                               value = c(s$x, s$xx))
write.csv(do.call(rbind, lapply(unclass(M3), both)), "M3.csv", row.names = FALSE)
other <- data.frame(a = 1:3)
save(other, file = "other.rda")
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("Rscript") is None:
        pytest.skip("needs R")
    folder = tmp_path_factory.mktemp("m3")
    subprocess.run(["Rscript", "-e", SCRIPT], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.live_r
def test_rda_and_csv_from_r_agree(files: Path) -> None:
    from_rda, from_csv = read_m3(files / "M3.rda"), read_m3(files / "M3.csv")
    assert from_csv.schema.names == ["series", "part", "t", "value"]
    assert from_rda.drop_columns(["value", "period", "type"]).equals(from_csv.drop_columns(["value"]))
    assert from_rda["value"].to_pylist() == pytest.approx(from_csv["value"].to_pylist(), rel=1e-14)


@pytest.mark.live_r
def test_period_and_type_choose_series(files: Path) -> None:
    chosen = read_m3(files / "M3.rda", period="MONTHLY", type="MICRO")
    assert chosen["series"].unique().to_pylist() == ["N1402"]
    assert len(chosen) == 68
    with pytest.raises(DataError, check=about("period")):
        read_m3(files / "M3.rda", period="HOURLY")
    with pytest.raises(DataError, check=about("type")):
        read_m3(files / "M3.csv", type="MICRO")


@pytest.mark.live_r
def test_other_r_files_are_refused(files: Path) -> None:
    with pytest.raises(DataError, check=about("path")):
        read_m3(files / "other.rda")
    (files / "broken.rda").write_bytes((files / "M3.rda").read_bytes()[:200])
    with pytest.raises(DataError, check=about("path")):
        read_m3(files / "broken.rda")
