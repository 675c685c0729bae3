"""Objective perturbation: all of its draws, and the change of variables, lose what the ledger was charged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet.models.bayes.erm import objective_perturbation
from discreet.privacy.losses import Pure
from discreet.privacy.units import Rows
from discreet.release.account import Account

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
                "y ~ 0 + x1 + x2", table(first), bounds=(LOWER, UPPER), norm=NORM, penalty=penalty, epsilon=epsilon
            )
            return done.value, done.entry.loss

        return door

    trial = record(release("nothing"))
    said = "noise in the objective, on its minimum, on X'X and on the sum of squared pulls"
    assert [len(draw.scale) for draw in trial.draws] == [2, 2, 3, 1], said
    grid = trial.public.scale / trial.draws[0].scale[0]
    step = trial.public.smoothing / trial.draws[1].scale[0]
    charged = float(amount(trial.charged))
    worst = {"noise": 0.0, "curvature": 0.0, "smoothing": 0.0, "X'X": 0.0, "pulls": 0.0}
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
                for name, place in {"X'X": 2, "pulls": 3}.items():
                    worst[name] = max(worst[name], moved(told[here].draws[place], again.draws[place]))
    shifted = record(release("nothing"), script=[none, np.ones(2)])
    bare = record(release("nothing"), script=[none, none])
    np.testing.assert_allclose(np.subtract(shifted.public.value, bare.public.value), step, rtol=1e-6)
    assert 0 < worst["smoothing"] < 0.02 * charged
    for name in ("X'X", "pulls"):
        assert 0.99 * 0.05 * charged < worst[name] <= 0.05 * charged
    assert sum(worst.values()) <= charged
    assert sum(worst.values()) > 0.9 * charged


def moved(one: Any, other: Any) -> float:
    """The loss of Laplace noise on sums that differ so."""
    return float((np.abs(np.subtract(one.bare, other.bare, dtype=object)) / one.scale).sum())


def door(first: str) -> Any:
    def release() -> tuple[Any, Any]:
        done = objective_perturbation(
            "y ~ 0 + x1 + x2", table(first), bounds=(-1, 1), norm=1, penalty=9, epsilon=1_000_000
        )
        return done.value, done.entry.loss

    return release


def test_errors_hold_nothing_of_the_rows_but_the_released_sums(record) -> None:
    """A neighbour whose noise makes the same coefficients and the same sums has the same errors and ends."""
    none = np.zeros(2)
    here = record(door("one column"), script=[none, none])
    f = np.array(here.public.value)
    ours, theirs = (gradient_and_curvature(table(name), f, here.public.penalty)[0] for name in list(FIRST)[:2])
    grid = here.public.scale / here.draws[0].scale[0]
    script = [np.rint((ours - theirs) / grid), none]
    there = record(door("another column"), script=script)
    assert not np.array_equal(here.draws[2].bare, there.draws[2].bare), "the neighbours differ in X'X"
    script += [np.subtract(here.draws[k].published, there.draws[k].bare, dtype=object) for k in (2, 3)]
    again = record(door("another column"), script=script)
    for name in ("value", "std_error", "low", "high"):
        np.testing.assert_allclose(getattr(again.public, name), getattr(here.public, name), rtol=1e-6)
    assert np.isfinite(here.public.low).all()


def test_public_columns_need_no_noise(record, amount) -> None:
    """Where responses alone are protected and columns are public, X'X is free; the number of missing ones is not."""
    x = np.linspace(-1, 1, 400)

    def release(last: float = 0.5) -> tuple[Any, Any]:
        account = Account.open(None, dataset="rows", unit=Rows(LOWER, UPPER, "y"), budget=Pure(2))
        ask = {"bounds": (LOWER, UPPER), "norm": 2, "penalty": 5.0, "epsilon": 2, "public": ["x"]}
        done = objective_perturbation(
            "y ~ x", {"x": x, "y": np.append(np.clip(x, -0.5, 0.5)[:-1], last)}, account=account, **ask
        )
        return done.value, done.entry.loss

    trial = record(release)
    assert [len(draw.scale) for draw in trial.draws] == [2, 2, 2]
    others = [record(lambda last=last: release(last), given=trial) for last in (-1.0, 1.0, np.nan, np.inf)]
    worst = max(moved(trial.draws[2], other.draws[2]) for other in others)
    paid = float(amount(trial.charged)) / 10
    assert paid / 5 <= worst <= paid, "a tenth pays for both sums, a fifth of it for the missing response"
    assert all(other.public.std_error == trial.public.std_error for other in others)
    assert np.isfinite(trial.public.low).all()


def test_a_far_row_whose_response_goes_missing_loses_what_both_sums_cost(record, amount) -> None:
    """At far coefficients it pulls with all that a row can: the sum of pulls and the number of missing move by one."""

    def release(last: float) -> Any:
        def door() -> tuple[Any, Any]:
            account = Account.open(None, dataset="rows", unit=Rows(LOWER, UPPER, "y"), budget=Pure(2))
            ask = {"bounds": (LOWER, UPPER), "norm": 2, "penalty": 5.0, "epsilon": 2, "public": ["x"]}
            data = {"x": np.linspace(-1, 1, 400), "y": np.append(np.zeros(399), last)}
            done = objective_perturbation("y ~ x", data, account=account, **ask)
            return done.value, done.entry.loss

        return door

    trial = record(release(0.0))
    script = [np.rint(np.array([1000.0, 0.0]) * trial.draws[0].scale), np.zeros(2)]
    here, there = (record(release(last), script=script) for last in (0.0, np.nan))
    paid = float(amount(trial.charged)) / 10
    assert moved(here.draws[2], there.draws[2]) == pytest.approx(paid, rel=0.01)
