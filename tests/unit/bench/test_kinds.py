"""What a peer counts of establishments by kinds, and formulas of its errors, beside brute force."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))

from bench import kinds, laws, national


def test_truncation_keeps_theta_jobs_of_every_establishment_in_proportion_to_its_kinds() -> None:
    firms = np.random.default_rng(0).integers(0, 40, (500, 8))
    for theta in (1, 7, 100, 1_000):
        kept = kinds.truncated(firms, theta)
        assert (kept >= 0).all() and (kept <= firms).all()
        assert (kept.sum(axis=1) == np.minimum(firms.sum(axis=1), theta)).all()
    half = kinds.truncated(np.full((1, 8), 40), 160)
    assert half.tolist() == [[20] * 8]


def test_the_best_theta_is_the_least_error_there_is() -> None:
    rng = np.random.default_rng(1)
    firms = rng.multinomial(1, np.full(8, 1 / 8), 3_000) * (1 + rng.pareto(1.1, 3_000)[:, None] * 5).astype(np.int64)
    cell = np.arange(3_000) % 100
    true = kinds.summed(cell, firms)
    assert true.sum() == firms.sum() and true[3].tolist() == firms[cell == 3].sum(axis=0).tolist()
    theta = kinds.best(cell, firms, true)

    def error(theta: int) -> float:
        return kinds.geometric(true - kinds.summed(cell, kinds.truncated(firms, theta)), kinds.stated(theta))

    assert error(theta) <= min(error(1), error(max(1, theta // 3)), error(theta * 3))


def test_the_best_bound_of_payrolls_has_the_error_that_draws_have(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    pay = np.exp(rng.normal(12, 1.5, 4_000)).astype(np.int64)
    codes = {"naics6": rng.choice(["111110", "221110"], 4_000), "county": rng.choice(["01001", "01003"], 4_000)}
    pq.write_table(pa.table({**codes, "payroll": pay}), tmp_path / "jobs.parquet")
    bound, known = national.best_bound(tmp_path)
    cells = np.unique(np.stack(list(codes.values())), axis=1, return_inverse=True)[1].ravel()
    cut = np.bincount(cells, np.maximum(pay - bound, 0))
    drawn = np.abs(rng.laplace(scale=bound / national.EPSILON, size=(200_000, len(cut))) - cut).mean()
    assert known == pytest.approx(drawn, rel=0.02)


def test_laws_that_are_off_are_told() -> None:
    rng = np.random.default_rng(3)
    errors = np.abs(rng.laplace(scale=5.0, size=100_000))
    assert abs(laws.errors_off(errors, 5.0)) < 5 < abs(laws.errors_off(errors, 5.0 * 1.3))
    assert laws.sets().shape == (256, 8)
