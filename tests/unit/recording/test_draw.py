"""A posterior draw: the losses of its two draws of noise add up to the charge, and are nearly attained."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.models.bayes.posterior_draw import release_draw

Panel = dict[str, np.ndarray]
NEARLY = Fraction(99, 100)
ROW = 71
FORMULAS = {"numbers": "y ~ x + kind + (1 | g)", "levels": "y ~ kind + (1 | g)"}


def panel() -> Panel:
    """The last row has a level of its own and the largest x: the largest leverage of all."""
    rng, n = np.random.default_rng(4), 72
    return {
        "x": np.append(rng.uniform(-1, 1, n - 1), 3.0),
        "kind": np.array(["a", "b", "c"])[np.arange(n) % 3],
        "g": np.append([f"g{i}" for i in np.arange(n - 1) // 18], ["alone"]),
        "y": np.append(1.5 + 0.3 * rng.uniform(-1, 1, n - 1), 0.0),
    }


def neighbours() -> Iterator[Panel]:
    for value in (0.7, 2.0, 9.0, np.nan):
        yield panel() | {"y": np.where(np.arange(72) == ROW, value, panel()["y"])}


def door(formula: str, **ask: Any) -> Any:
    def release(data: Panel) -> tuple[Any, Any]:
        known = {"variances": {"Residual": 0.1, "g": 0.2}, "sd": 3.0, "public": ["x", "kind", "g"]}
        drawn = release_draw(formula, data, **known, bounds=(0, 2), seed=1, **ask)
        assert drawn.guarantee.loss == drawn.entry.loss
        return (drawn.released, drawn.beta, drawn.random[0].values, drawn.notes), drawn.entry.loss

    return release


@pytest.mark.parametrize("ask", [{}, {"rho": "0.2"}], ids=["its own price", "rho"])
@pytest.mark.parametrize("formula", FORMULAS)
def test_a_draw_loses_what_it_is_charged(formula: str, ask: dict[str, Any], losses, amount) -> None:
    worst, told = losses(door(FORMULAS[formula], **ask), panel(), neighbours())
    charged = amount(told.charged)
    assert len(worst) == 2
    assert NEARLY * charged <= sum(worst) <= charged
