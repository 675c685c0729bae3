"""Profile intervals of standard deviations and correlations, against a brute-force profile of the dense likelihood."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import discreet as dc
from discreet.models.linear import MixedWarning
from discreet.models.linear.profile import _Rise

RISE = 3.841458820694124  # the 95 % quantile of chi-squared with one degree of freedom
CLOSE = 2e-3  # of the rise: the brute-force minimum is by simplex


def rows(seed: int) -> dict[str, Any]:
    """Rows without effects of groups: most estimated variances are zero."""
    rng = np.random.default_rng(seed)
    g, h = np.repeat(np.arange(10), 6), np.tile(np.arange(6), 10)
    x = rng.normal(size=60)
    return {"y": rng.normal(size=60), "x": x, "g": g, "h": h}


def fitted(formula: str, data: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixedWarning)
        return dc.mixed(formula, data)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("formula", ["y ~ x + (x | g)", "y ~ x + (1 | g) + (1 | h)", "y ~ x + (x || g) + (1 | h)"])
def test_singular_fits_have_finite_ends(formula: str, seed: int) -> None:
    """Red before: upper ends of standard deviations were infinite, without a word."""
    found = fitted(formula, rows(seed)).intervals()
    assert all(0 <= low < high < np.inf for name, (low, high) in found.items() if not name.startswith("cor"))


@pytest.mark.parametrize("seed", [1, 4])
def test_a_singular_end_is_where_brute_force_finds_it(seed: int) -> None:
    """Red before at both seeds: infinite."""
    data = rows(seed)
    X = np.column_stack([np.ones(60), data["x"]])
    Z = [np.where(data["g"][:, None] == np.arange(10), column[:, None], 0.0) for column in X.T]

    def deviance(intercept: float, slope: float, cor: float, sigma: float) -> float:
        shared = cor * intercept * slope
        V = sigma**2 * np.eye(60) + intercept**2 * Z[0] @ Z[0].T + slope**2 * Z[1] @ Z[1].T
        V += shared * (Z[0] @ Z[1].T + Z[1] @ Z[0].T)
        left = data["y"] - X @ np.linalg.solve(X.T @ np.linalg.solve(V, X), X.T @ np.linalg.solve(V, data["y"]))
        return float(60 * np.log(2 * np.pi) + np.linalg.slogdet(V)[1] + left @ np.linalg.solve(V, left))

    def least(function: Any, *starts: list[float]) -> float:
        options = {"maxiter": 4000, "maxfev": 4000, "xatol": 1e-6, "fatol": 1e-8}
        return min(minimize(function, start, method="Nelder-Mead", options=options).fun for start in starts)

    def free(v: Any) -> float:
        return deviance(abs(v[0]), abs(v[1]), np.tanh(v[2]), np.exp(v[3]))

    lowest = least(free, [0.3, 0.3, 0.0, 0.0], [0.05, 0.3, 1.0, 0.0], [0.3, 0.05, -1.0, 0.0])
    end = fitted("y ~ x + (x | g)", data).intervals()["sd_x|g"][1]

    def held(v: Any) -> float:
        return deviance(abs(v[0]), end, np.tanh(v[1]), np.exp(v[2]))

    starts = [[size, cor, 0.0] for size in (0.1, 0.3) for cor in (-1.0, 0.0, 1.0)]
    assert least(held, *starts) - lowest == pytest.approx(RISE, abs=CLOSE)


def test_an_end_that_is_not_finite_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Rise, "end", lambda self, toward: self.moved.high if toward > 0 else self.moved.low)
    with pytest.warns(MixedWarning):
        fitted("y ~ x + (1 | g)", rows(0)).intervals()
