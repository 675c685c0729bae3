from __future__ import annotations

from collections import Counter

import numpy as np

from discreet.models.linear import influential, mixed


def test_the_papers_32_rows() -> None:
    """14 extreme residuals, two rows of each of five thin counties, two of each of four extreme counties."""
    rng = np.random.default_rng(3)
    g = np.concatenate([np.repeat(np.arange(5), [3, 5, 8, 11, 14]), rng.integers(5, 60, 2000)])
    y = rng.normal(0, 0.3, 60)[g] + rng.standard_t(4, size=len(g))
    y[g == 30] += 4
    fit = mixed("y ~ 1 + (1 | g)", {"y": y, "g": g})
    chosen = influential(fit)
    assert len(set(chosen.rows.tolist())) == 32
    assert Counter(chosen.reasons) == {"extreme residual": 14, "small group": 10, "extreme effect": 8}
    residual = fit.residuals("pearson")
    reasons = np.array(chosen.reasons)
    extreme = chosen.rows[reasons == "extreme residual"]
    assert set(extreme) == set(np.argsort(-np.abs(residual))[:14])
    thin = chosen.rows[reasons == "small group"]
    assert set(g[thin]) == set(range(5))
    free = ~np.isin(np.arange(len(g)), extreme)
    for group in range(5):
        members = np.flatnonzero((g == group) & free)
        assert {members[residual[members].argmin()], members[residual[members].argmax()]} == set(thin[g[thin] == group])
    far = set(g[chosen.rows[reasons == "extreme effect"]])
    assert far == set(np.argsort(-np.abs(fit.random[0].values[:, 0]))[:4])
    assert 30 in far


def test_without_small_groups_there_are_fewer(panel: dict) -> None:
    fit = mixed("y ~ t + (1 | h)", panel)
    assert Counter(influential(fit).reasons) == {"extreme residual": 14, "extreme effect": 8}
    assert len(influential(fit, extreme=3, far_groups=1).rows) == 5
