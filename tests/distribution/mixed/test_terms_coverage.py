"""Releases with states and counties, with slopes, and with crossed factors: intervals of fixed effects cover."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.models.linear.private import release_mixed

POINTS = 0.02  # coverage within two points of nominal, plus two standard errors of the trial
ROWS, STATES, COUNTIES = 6_000, 12, 120
MODELS = {
    "states and counties": "y ~ 0 + i + x + (1 | state) + (1 | county)",
    "slopes": "y ~ 0 + i + x + (x | county)",
    "crossed": "y ~ 0 + i + x + (1 | county) + (1 | kind)",
}


def held(model: str, epsilon: float, repeats: int, seed: int = 1) -> tuple[float, float, set[str]]:
    """How often intervals of 95 % hold the true fixed effects, its standard error, and the flags that were raised."""
    rng = np.random.default_rng(seed)
    county, i = rng.integers(0, COUNTIES, ROWS), rng.integers(0, 3, ROWS)
    kind, x = rng.integers(0, 40, ROWS), rng.uniform(-1, 1, ROWS).round(3)
    state = county % STATES
    public = {"i": i.astype(str), "x": x, "state": state, "county": county, "kind": kind}
    found, words = [], set()
    for draw in range(repeats):
        y = 1 + 0.1 * i + 0.05 * x + rng.normal(0, 0.1, COUNTIES)[county] + rng.normal(0, 0.2, ROWS)
        y += {
            "states and counties": lambda: rng.normal(0, 0.08, STATES)[state],
            "slopes": lambda: rng.normal(0, 0.06, COUNTIES)[county] * x,
            "crossed": lambda: rng.normal(0, 0.08, 40)[kind],
        }[model]()
        fit = release_mixed(
            MODELS[model], {**public, "y": y}, epsilon=epsilon, public=list(public), bounds=(-1, 3), seed=draw
        )
        truth = {"i0": 1.0, "i1": 1.1, "i2": 1.2, "x": 0.05}
        found.append([abs(fit.fixed[name] - value) < 1.959964 * fit.se[name] for name, value in truth.items()])
        words |= {flag.word for flag in fit.flags}
    each = np.array(found, dtype=float).mean(axis=1)
    return float(each.mean()), float(each.std() / np.sqrt(repeats)), words


@pytest.mark.full_size
@pytest.mark.parametrize("epsilon", [1, 4, 20])
@pytest.mark.parametrize("model", MODELS)
def test_intervals_cover_with_several_terms(model: str, epsilon: float) -> None:
    """Where a term is not measured intervals may cover too much: they allow for any variance of it."""
    share, error, words = held(model, epsilon, repeats=200)
    most = 1.0 if "not measured" in words else 0.95 + POINTS + 2 * error
    print(model, epsilon, share, error, sorted(words))
    assert 0.95 - POINTS - 2 * error < share <= most
