"""Gamma and beta against glmmTMB (`continuous.R` made the numbers and the data)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest

import discreet as dc
from discreet import lme4
from discreet.models.linear.general_fit import GeneralisedFit

HERE = Path(__file__).parent
THEIRS = json.loads((HERE / "continuous.json").read_text())
COST: dict[str, Any] = {"family": "gamma", "exposure": "e"}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "gamma": ("cost ~ x + (1 | g) + (1 | h)", COST),
    "gamma, a slope": ("cost ~ x + (x | g)", COST),
    "gamma, even": ("even ~ x + (x | g) + (1 | h)", {"family": "gamma"}),
    "gamma, weights": ("cost ~ x + (1 | g)", COST | {"weights": "w"}),
    "beta": ("part ~ x + (1 | g) + (1 | h)", {"family": "beta"}),
    "beta, a slope": ("part ~ x + (x | g)", {"family": "beta"}),
    "beta, sharp": ("sharp ~ x + (x | g) + (1 | h)", {"family": "beta"}),
    "beta, rough": ("rough ~ x + (1 | g)", {"family": "beta"}),
    "beta, weights": ("part ~ x + (1 | g)", {"family": "beta", "weights": "w"}),
}
NEW = {"g": [1, 17, 99, 99], "h": [3, 5, 3, 99], "x": [0.4, -1.3, 0.4, 2.1]}
CLOSE = 3e-4  # standard errors, and shares of spreads: glmmTMB stops its search about there


@cache
def fitted(case: str) -> GeneralisedFit:
    formula, asked = CASES[case]
    return dc.mixed(formula, pyarrow.csv.read_csv(HERE / "continuous.csv"), **asked)


@pytest.mark.parametrize("case", CASES)
def test_estimates_are_theirs(case: str) -> None:
    fit, theirs = fitted(case), THEIRS[case]
    assert fit.loglik == pytest.approx(theirs["loglik"], abs=1e-6)
    for name, value in theirs["fixed"].items():
        assert fit.fixed[name] == pytest.approx(value, abs=CLOSE * fit.se[name])
    assert list(fit.se.values()) == pytest.approx(list(theirs["se"].values()), rel=CLOSE)
    for term in fit.random:
        np.testing.assert_allclose(term.covariance, theirs["covariance"][term.group], rtol=2 * CLOSE, atol=CLOSE)
    assert lme4.sigma(fit) == pytest.approx(theirs["sigma"], rel=CLOSE)


@pytest.mark.parametrize(
    "case", ["gamma, weights", *(pytest.param(case, marks=pytest.mark.full_size) for case in ("beta", "beta, rough"))]
)
def test_profiles_are_theirs(case: str) -> None:
    """Of a fixed effect, and of the parameter of the family, whose interval holds its estimate."""
    fit, theirs = fitted(case), THEIRS[case]
    assert fit.confint()["x"] == pytest.approx(theirs["x"], abs=CLOSE * fit.se["x"])
    (name, value), found = next(iter(fit.own.items())), fit.intervals()
    assert found[name] == pytest.approx(theirs["ends"], rel=1e-5)
    assert found[name][0] < value < found[name][1]


@pytest.mark.parametrize("case", [case for case in CASES if "weights" not in case and "even" not in case])
def test_predictions_residuals_and_errors_are_theirs(case: str) -> None:
    fit, theirs = fitted(case), THEIRS[case]
    known = {name: values[:2] for name, values in NEW.items()}
    for scale, asked in (("link", theirs["link"]), ("response", theirs["mean"])):
        for rows, data, level in (
            ("fitted", None, "conditional"),
            ("new", NEW, "conditional"),
            ("marginal", known, "marginal"),
        ):
            found, told = fit.prediction(data, scale=scale, level=level, kind="confidence"), asked[rows]
            at = slice(len(told["value"]))
            np.testing.assert_allclose(found.value[at], told["value"], rtol=CLOSE, atol=CLOSE)
            np.testing.assert_allclose(found.std_error[at], told["error"], rtol=CLOSE)
    np.testing.assert_allclose(fit.residuals("response")[:8], theirs["response"], rtol=CLOSE, atol=CLOSE)
    if theirs["deviance"]:
        np.testing.assert_allclose(fit.residuals("deviance")[:8], theirs["deviance"], rtol=CLOSE, atol=CLOSE)
