"""A small unbalanced panel with one industry that a single group holds, and its dense matrices."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(scope="session")
def panel() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    n, groups = 400, 18
    g = rng.choice(groups, size=n, p=rng.dirichlet(np.full(groups, 2.0)))
    g[:groups] = np.arange(groups)
    industry = rng.integers(0, 4, n)
    industry[g == 7] = 4
    industry[g != 7] %= 4
    h = rng.integers(0, 6, n)
    t = rng.integers(22, 102, n)
    u, s = rng.normal(0, 0.5, groups), rng.normal(0, 0.01, groups)
    y = 100 + 0.3 * industry + (0.01 + s[g]) * t + u[g] + rng.normal(0, 0.3, 6)[h] + rng.normal(size=n)
    names = np.array([f"i{k}" for k in range(5)])
    return {"y": y, "t": t, "industry": names[industry], "g": g + 100, "h": np.array(list("abcdef"))[h]}


@pytest.fixture(scope="session")
def dense(panel: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """y, X and Z of `y ~ 0 + industry + t + (1 | g)`."""
    X = np.column_stack([*(panel["industry"] == f"i{k}" for k in range(5)), panel["t"]]).astype(float)
    Z = (panel["g"][:, None] == np.unique(panel["g"])).astype(float)
    return panel["y"], X, Z
