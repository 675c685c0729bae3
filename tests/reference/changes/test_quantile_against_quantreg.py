"""Quantile regression against quantreg's simplex, by stored values."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from discreet.changes.quantile import check_loss, quantile_regression

EXAM = Path(__file__).parents[4] / "shared" / "data" / "lmm" / "mlmRev_Exam.csv.gz"


def test_coefficients_and_loss(reference, quantile_data):
    X, y = quantile_data
    stored = reference["quantile"]
    taus = [row["tau"] for row in stored]
    beta = quantile_regression(X, y, taus)
    for tau, b, row in zip(taus, beta, stored, strict=True):
        assert b == pytest.approx(row["coef"], abs=1e-9)
        assert check_loss(y - X @ b, tau) == pytest.approx(row["loss"], abs=1e-9)


@pytest.mark.skipif(not EXAM.exists(), reason="the lme4 data sets are not beside the repository")
def test_exam_scores():
    # rq(normexam ~ standLRT) of quantreg 5.94
    stored = {
        0.08: (-1.122279634623, 0.5802789509708),
        0.5: (0.01335921642997, 0.6155266175419),
        0.9: (1.016049919393, 0.5847358709103),
    }
    with gzip.open(EXAM, "rt") as file:
        names = [name.strip('"') for name in file.readline().strip().split(",")]
        columns = [names.index("standLRT"), names.index("normexam")]
        data = np.array([[float(line.split(",")[i]) for i in columns] for line in file])
    X, y = np.column_stack([np.ones(len(data)), data[:, 0]]), data[:, 1]
    beta = quantile_regression(X, y, list(stored))
    assert beta == pytest.approx(np.array(list(stored.values())), abs=1e-6)
