"""Models with lags: one response stands in several sums, and the losses of all draws add up to the charge."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.models.linear.private import release_mixed

Columns = dict[str, np.ndarray]
NEARLY = Fraction(97, 100)  # some responses come close to the one that moves squares and products most
LOWER, UPPER, PERIODS, ROW = 0.0, 2.0, 8, 44
LOSSES = {"epsilon": {"epsilon": "61/3"}, "rho": {"rho": "40.2"}}  # little noise, so that the centre is near the end
FORMULAS = {
    "one lag": "y ~ x + lag(y, 1)",
    "two lags and groups": "y ~ kind + lag(y, 1) + lag(y, 2) + (1 | g)",
    "a season": "y ~ x + season + lag(y, 2) + (1 | g)",
}


def panel() -> Columns:
    """Twelve series of eight periods near the upper end; those around the row that changes lie at the lower one."""
    rng = np.random.default_rng(4)
    n = 12 * PERIODS
    s, t = np.divmod(np.arange(n), PERIODS)
    y = 1.9 + 0.1 * rng.uniform(-1, 1, n)
    y[np.abs(np.arange(n) - ROW) <= 2] = LOWER
    return {
        "s": np.array([f"s{i}" for i in s]),
        "t": t,
        "x": np.where((np.arange(n) >= ROW) & (np.arange(n) <= ROW + 2), 3.0, rng.uniform(-1, 1, n)),
        "kind": np.array(["a", "b", "c"])[s % 3],
        "season": np.array(["v", "u"])[t % 2],
        "g": np.array([f"g{i}" for i in s // 3]),
        "y": y,
    }


def neighbours() -> Iterator[Columns]:
    """One response anywhere in its bounds and beyond them; it stands in its own row and in later ones."""
    for value in (1.8, 9.0, np.nan):
        yield panel() | {"y": np.where(np.arange(12 * PERIODS) == ROW, value, panel()["y"])}


def door(formula: str, **ask: Any) -> Any:
    def release(data: Columns) -> tuple[Any, Any]:
        ask_too = {"public": [*"stxg", "kind", "season"], "series": ["s"], "time": "t", "seed": 1}
        fit = release_mixed(formula, data, bounds=(LOWER, UPPER), **ask_too, **ask)
        assert fit.guarantee.loss == fit.entry.loss
        effects = [(term.values, term.std_errors) for term in fit.random]
        return (fit.released, fit.beta, fit.sigma2, effects, fit.notes, str(fit.guarantee)), fit.entry.loss

    return release


@pytest.mark.filterwarnings("ignore::discreet.models.linear.fit.MixedWarning")
@pytest.mark.parametrize(
    ("formula", "ask"), [("one lag", "epsilon"), ("two lags and groups", "epsilon"), ("a season", "rho")]
)
def test_lags_lose_what_they_are_charged(formula: str, ask: str, losses, amount) -> None:
    worst, told = losses(door(FORMULAS[formula], **LOSSES[ask]), panel(), neighbours())
    charged = amount(told.charged)
    assert len(worst) == 2 and abs(told.public[0].centre) > 5000
    assert sum(worst) <= charged
    assert NEARLY * charged <= sum(worst)
