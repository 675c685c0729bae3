"""Objective perturbation: both of its draws, and the change of variables, lose what the ledger was charged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet.bayes.erm import objective_perturbation

LOWER, UPPER, NORM = -1.0, 1.0, 1.0
TAU = UPPER - LOWER
ROWS = 4
FIRST = {  # what the first row may be: x1, x2, y
    "one column": (1.0, 0.0, 0.0),
    "another column": (0.0, 1.0, -1.0),
    "nothing": (0.0, 0.0, 0.0),
    "too long a row": (-7.0, 5.0, 30.0),
}


def table(first: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(6)
    X, y = rng.uniform(-0.05, 0.05, (ROWS, 2)), rng.uniform(-1, 1, ROWS)
    X[0], y[0] = FIRST[first][:2], FIRST[first][2]
    return {"x1": X[:, 0], "x2": X[:, 1], "y": y}


def gradient_and_curvature(data: dict[str, np.ndarray], f: np.ndarray, penalty: float) -> tuple[np.ndarray, float]:
    """Of the objective without noise at f, from its definition; the second as a log determinant."""
    X, y = np.column_stack([data["x1"], data["x2"]]), np.clip(data["y"], LOWER, UPPER)
    X = X * np.minimum(1.0, NORM / np.maximum(np.abs(X).sum(axis=1), 1e-300))[:, None]
    r = (X @ f - y) / TAU
    hessian = (X * ((1 + r**2) ** -1.5)[:, None]).T @ X + penalty * np.eye(2)
    return (TAU * r / np.sqrt(1 + r**2)) @ X + penalty * f, float(np.linalg.slogdet(hessian)[1])


@pytest.mark.parametrize(("epsilon", "penalty"), [("0.1", 50.0), ("2", 0.01)])
def test_the_losses_of_all_draws_add_up_to_the_charge(epsilon: str, penalty: float, record, amount) -> None:
    def release(first: str) -> Any:
        def door() -> tuple[Any, Any]:
            done = objective_perturbation(
                "y ~ 0 + x1 + x2", table(first), lower=LOWER, upper=UPPER, norm=NORM, penalty=penalty, epsilon=epsilon
            )
            return done.value, done.entry.loss

        return door

    trial = record(release("nothing"))
    assert [len(draw.scale) for draw in trial.draws] == [2, 2], "noise in the objective, and on its minimum"
    grid = trial.public.scale / trial.draws[0].scale[0]
    step = trial.public.smoothing / trial.draws[1].scale[0]
    charged = float(amount(trial.charged))
    worst = {"noise": 0.0, "curvature": 0.0, "smoothing": 0.0}
    for pull in ([0, 0], [20, 20]):
        b = np.rint(np.array(pull) * trial.draws[0].scale)
        none = np.zeros(2)
        told = {first: record(release(first), script=[b, none]) for first in FIRST}
        for here in FIRST:
            f = np.array(told[here].public.value)
            ours, bend = gradient_and_curvature(table(here), f, told[here].public.penalty)
            np.testing.assert_allclose(-ours, b * grid, atol=1e-6 * told[here].public.scale)
            for there in FIRST:
                theirs, other = gradient_and_curvature(table(there), f, told[here].public.penalty)
                needed = np.rint(b + (ours - theirs) / grid)
                again = record(release(there), script=[needed, none])
                assert all(np.array_equal(x.scale, y.scale) for x, y in zip(trial.draws, again.draws, strict=True))
                apart = np.abs(np.array(again.public.value) - f).sum()
                worst["noise"] = max(worst["noise"], (np.abs(needed - b) / again.draws[0].scale).sum())
                worst["curvature"] = max(worst["curvature"], abs(bend - other))
                worst["smoothing"] = max(worst["smoothing"], apart / told[here].public.smoothing)
    shifted = record(release("nothing"), script=[none, np.ones(2)])
    bare = record(release("nothing"), script=[none, none])
    np.testing.assert_allclose(np.subtract(shifted.public.value, bare.public.value), step, rtol=1e-6)
    assert 0 < worst["smoothing"] < 0.02 * charged
    assert sum(worst.values()) <= charged
    assert sum(worst.values()) > 0.9 * charged
