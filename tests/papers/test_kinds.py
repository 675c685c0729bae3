"""Intervals of private models on kinds of data: they hold, or a flag says why they may not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet.words.errors import DataError
from discreet_papers import kinds
from faults_of import about


def row(**changed: Any) -> dict[str, Any]:
    told = dict.fromkeys(kinds.TELLING, 0.0)
    names = (*kinds.NAMES, "effects", "variance", "residual")
    held = {f"held {name}": 0.95 for name in names[:3]}
    bias = {f"bias {name}": 0.0 for name in (*names[:2], *names[3:])}
    return {"data": "normal", "sets": 200, "told": told, "equal variances noted": 0.0, **held, **bias, **changed}


def test_a_fault_is_what_is_wrong_and_not_told() -> None:
    assert not list(kinds._faults(row()))
    assert len(list(kinds._faults(row(**{"held x": 0.85, "held effects": 0.99, "bias residual": -4.0})))) == 3
    told = dict.fromkeys(kinds.TELLING, 1.0)
    assert not list(kinds._faults(row(told=told, **{"held x": 0.85, "held effects": 0.99, "bias residual": -4.0})))
    noted = {"held x": 0.85, "equal variances noted": 1.0}
    assert list(kinds._faults(row(**noted))) and not list(kinds._faults(row(data=kinds.UNEVEN, **noted)))
    assert not list(kinds._faults(row(**{"held effects": None, "held x": None})))


@pytest.mark.parametrize("kind", [kinds.UNEVEN, "effects that go with sizes", "no effects"])
def test_intervals_hold_or_it_is_told(kind: str) -> None:
    """Before, effects that go with sizes left the intercept's interval in one release of six, and of no effects nothing
    was said."""
    found = kinds.measured(kind, "moments", 2.0, 8, seed=1)
    assert found["faults"] == []
    assert found["told"]["variance"] == (1.0 if kind == "no effects" else 0.0)
    assert min(found["held (Intercept)"], found["held x"]) >= 6 / 8


def test_the_truth_is_what_the_mean_of_many_fits_finds() -> None:
    design = kinds.SimulatedDesign.of(np.random.default_rng(0))
    rng = np.random.default_rng(1)
    for kind in ("effects that go with sizes", "a curve taken for a line", "skewed residuals and effects"):
        fixed = kinds.BETA + design.fitted(kinds._mean(kind, design))
        fits = []
        for _ in range(60):
            u, e = kinds.KINDS[kind](design, rng)
            fits.append(design.fitted(1 + 0.5 * design.x + u[design.g] + e))
        off = np.abs(np.mean(fits, axis=0) - fixed)
        assert (off < 4 * np.std(fits, axis=0) / np.sqrt(60)).all()


def test_it_simulates_its_own_data(tmp_path: Any) -> None:
    with pytest.raises(DataError, check=about("data")):
        kinds.run(data=tmp_path)


def test_a_variance_is_judged_by_the_effects_that_were_drawn() -> None:
    design = kinds.SimulatedDesign(np.array([2, 1]), np.array([0, 0, 1]), np.zeros(3))
    without, u = np.array([0.0, 1.0, 2.0]), np.array([3.0, -4.0])
    assert kinds._drawn(design, without + u[design.g], without) == pytest.approx((9 + 16) / 2)
    u = np.array([8.5, -4.0])  # 9.5 is pulled to 9: the first effect is seen as 8.25
    assert kinds._drawn(design, without + u[design.g], without) == pytest.approx((8.25**2 + 16) / 2)
