"""A small bounded panel: three industries, a trend, counties within states."""

from __future__ import annotations

import numpy as np
import pytest

Panel = dict[str, np.ndarray]


@pytest.fixture(scope="session")
def flows() -> Panel:
    rng = np.random.default_rng(5)
    n, counties = 3000, 40
    county = rng.choice(counties, size=n, p=rng.dirichlet(np.full(counties, 3.0)))
    county[:counties] = np.arange(counties)
    industry = rng.integers(0, 3, n)
    quarter = rng.integers(22, 102, n)
    season = quarter % 4 + 1
    effect = rng.normal(0, 0.1, counties) + np.array([-0.15, 0.0, 0.05, 0.15])[np.arange(counties) % 4]
    seasonal = rng.normal(0, 0.1, (counties, 4))
    y = 0.8 + 0.2 * industry + 0.001 * quarter + effect[county] + seasonal[county, season - 1]
    return {
        "rate": np.clip(y + rng.normal(0, 0.2, n), 0, 2),
        "industry": np.array(["farms", "mines", "shops"])[industry],
        "quarter": quarter,
        "season": np.array(["w", "x", "y", "z"])[season - 1],
        "county": np.array([f"c{k:02d}" for k in range(counties)])[county],
        "state": np.array([f"s{k}" for k in range(4)])[county % 4],
    }
