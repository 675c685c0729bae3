"""What LIMITATIONS.md says of zero-inflated models: searches from other shares may end higher than those of a fit."""

from __future__ import annotations

import numpy as np
import pytest

import discreet as dc
from discreet.lmm import likelihood


def hard(seed: int) -> dict[str, np.ndarray]:
    """Counts of 150 to 700 rows in 5 to 40 groups that differ much, up to 70 % of them extra zeros."""
    rng = np.random.default_rng([77, seed])
    rows, groups = int(rng.integers(150, 700)), int(rng.integers(5, 40))
    g, x = rng.integers(0, groups, rows), rng.normal(size=rows)
    size, share, level = np.exp(rng.uniform(-1.5, 2)), rng.uniform(0.02, 0.7), rng.uniform(0, 3)
    mean = np.exp(level + rng.normal() * 0.5 * x + rng.uniform(0, 1.5) * rng.normal(size=groups)[g])
    spread = rng.gamma(size, 1 / size, rows) if rng.random() < 0.7 else None
    return {"y": _with_zeros(rng, mean, spread, share), "x": x, "g": g.astype(str)}


def _with_zeros(rng: np.random.Generator, mean: np.ndarray, spread: np.ndarray | None, share: float) -> np.ndarray:
    counts = rng.poisson(mean if spread is None else mean * spread)
    return np.where(rng.random(len(mean)) < share, 0, counts)


@pytest.mark.full_size
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [23, 44, 95])
def test_other_shares_end_higher(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def loglik() -> float:
        return dc.mixed("y ~ x + (1 | g)", hard(seed), family="zero-inflated-poisson").loglik

    found = loglik()
    monkeypatch.setattr(likelihood, "SMALL", -1.0)
    monkeypatch.setattr(likelihood, "EVEN", 1.5)
    assert loglik() > found + 0.1
