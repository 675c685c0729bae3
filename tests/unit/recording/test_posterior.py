"""Posterior summaries: the losses of all draws of all stages add up to what the ledger was charged."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.models.bayes.conjugate import Conjugate, GPrior, SemiConjugate
from discreet.models.bayes.interval import posterior_interval
from discreet.models.bayes.probability import posterior_probability
from discreet.models.bayes.quantile import posterior_quantile

ROWS, LARGER, PARTS = 48, 200, 8  # in parts of 25 rows pieces are compared with their part
NEARLY = Fraction(99999, 100000)  # scales are doubles, rounded up
PRIORS = {"g": GPrior(), "conjugate": Conjugate(), "semi-conjugate": SemiConjugate(covariance=1e12)}


def table(rows: int = ROWS) -> dict[str, np.ndarray]:
    """A straight line, and one row so far out that its part's line goes through it."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=rows)
    y = 1 + 2 * x + 0.3 * rng.normal(size=rows)
    x[5], y[5] = 1e4, -1e9
    return {"x": x, "y": y}


def neighbours(size: int = ROWS) -> list[dict[str, np.ndarray]]:
    """The far row's line turns to the other side, near to the others', and back; another row goes far too."""
    found = []
    rows = [(5, 1e4, 1e9), (5, 1e4, 1e4), (5, 1e4, 2e4), (5, 1e4, 3e5), (5, 0.0, 0.0), (7, 1e4, 1e9), (7, 1.0, 1e3)]
    for row, x, y in rows:
        other = {name: column.copy() for name, column in table(size).items()}
        other["x"][row], other["y"][row] = x, y
        found.append(other)
    return found


DOORS: dict[str, Any] = {
    "probability": (posterior_probability, {"at": 1.9, "epsilon": "1/3"}),
    "probabilities": (posterior_probability, {"at": [1.9, 2.0], "epsilon": 2}),
    "-2 log p": (posterior_probability, {"at": 1.9, "epsilon": 1, "method": "-2 log p"}),
    "-2 log p, published": (
        posterior_probability,
        {"at": 1.9, "epsilon": 1, "method": "-2 log p", "calibration": "paper"},
    ),
    "quantile": (posterior_quantile, {"probability": 0.3, "epsilon": 30}),
    "quantile, two looks": (posterior_quantile, {"probability": 0.3, "epsilon": 60}),
    "quantiles": (posterior_quantile, {"probability": [0.3, 0.9], "epsilon": 100}),
    "quantile, stages": (
        posterior_quantile,
        {"probability": 0.5, "epsilon": 40, "stages": {"centre": "1/4", "width": "1/2", "mean": "1/4"}},
    ),
    "quantile around zero": (posterior_quantile, {"probability": 0.3, "epsilon": 3, "centre": "zero"}),
    "quantile, published": (posterior_quantile, {"probability": 0.3, "epsilon": 3, "calibration": "paper"}),
    "interval": (posterior_interval, {"level": 0.9, "epsilon": 30}),
    "interval, two looks": (posterior_interval, {"level": 0.9, "epsilon": 60}),
    "intervals": (posterior_interval, {"level": [0.5, 0.9], "epsilon": 100}),
}
# The published sparse vector allows for counts that move apart; those of nested intervals do not.
# One row is in one half of its part: the other half keeps one of two probabilities from its full span.
LEAST = {"quantile, published": Fraction(7, 8), "probabilities": Fraction(95, 100)}


@pytest.mark.parametrize(
    ("name", "prior"),
    [(name, "g") for name in DOORS]
    + [(n, p) for n in ("probability", "quantile", "interval") for p in PRIORS if p != "g"]
    + [(n, "g, looked at") for n in DOORS],
)
def test_the_losses_of_all_draws_add_up_to_the_charge(name, prior, losses, amount) -> None:
    door, ask = DOORS[name]
    rows = LARGER if prior.endswith("looked at") else ROWS

    def release(data: dict[str, np.ndarray]) -> tuple[Any, Any]:
        done = door("y ~ x", data, "x", **ask, prior=PRIORS[prior.split(",")[0]], partitions=PARTS, seed=2)
        assert done.guarantee.loss == done.entry.loss
        return done.value, done.entry.loss

    worst, told = losses(release, table(rows), neighbours(rows))
    charged = amount(told.charged)
    assert sum(worst) <= charged
    assert sum(worst) >= LEAST.get(name, 1) * NEARLY * charged
