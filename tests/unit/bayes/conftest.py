from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(scope="session")
def line() -> dict[str, np.ndarray]:
    """y = 1 + 2 x + noise, 30,000 rows: the thesis's straight line, smaller."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=30_000)
    return {"x": x, "y": 1 + 2 * x + rng.normal(size=30_000)}
