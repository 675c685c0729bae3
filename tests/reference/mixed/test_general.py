"""Families of counts and shares against lme4::glmer and glmmTMB (`general.R` made the numbers and the data)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest

import discreet as dc
from discreet import lme4

HERE = Path(__file__).parent
PUBLISHED = json.loads((HERE / "general.json").read_text())
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "binomial": ("yes ~ x + (1 | g) + (1 | h)", {"family": "binomial"}),
    "trials": ("share ~ x + (x | g)", {"family": "binomial", "weights": "trials"}),
    "poisson": ("count ~ x + (x | g) + (1 | h)", {"family": "poisson", "exposure": "e"}),
    "points": ("yes ~ x + (1 | g)", {"family": "binomial", "points": 15}),
    "tmb binomial": ("yes ~ x + (1 | g) + (1 | h)", {"family": "binomial"}),
    "tmb poisson": ("count ~ x + (x | g) + (1 | h)", {"family": "poisson", "exposure": "e"}),
    "negative-binomial": ("wide ~ x + (1 | g) + (1 | h)", {"family": "negative-binomial"}),
    "zero-inflated-poisson": ("zip ~ x + (1 | g)", {"family": "zero-inflated-poisson"}),
    "zero-inflated-negative-binomial": ("zinb ~ x + (1 | g)", {"family": "zero-inflated-negative-binomial"}),
}
CLOSE = 1e-5  # glmmTMB stops its search about there
ROOT = 3e-4  # standard errors to which glmmTMB finds the ends of its profiles
GLMER = 2e-4  # glmer's own search ends about here: its likelihood is below ours


@pytest.mark.parametrize("case", CASES)
def test_estimates_are_theirs(case: str) -> None:
    formula, asked = CASES[case]
    theirs = PUBLISHED[case]
    fit = dc.mixed(formula, pyarrow.csv.read_csv(HERE / "general.csv"), **asked)
    close = GLMER if case in ("binomial", "trials", "poisson", "points") else CLOSE
    assert fit.loglik >= theirs["loglik"] - 1e-8  # a higher likelihood is no fault
    assert fit.loglik == pytest.approx(theirs["loglik"], abs=1e-5)
    for name, value in theirs["fixed"].items():
        assert fit.fixed[name] == pytest.approx(value, rel=close, abs=close)
    assert list(fit.se.values()) == pytest.approx(list(theirs["se"].values()), rel=10 * close)
    for term in fit.random:
        np.testing.assert_allclose(term.covariance, theirs["covariance"][term.group], rtol=2 * close, atol=close)
    if "size" in fit.own:
        assert fit.own["size"] == pytest.approx(theirs["size"], rel=close)
    if "extra zeros" in fit.own:
        assert fit.own["extra zeros"] == pytest.approx(theirs["zeros"], rel=close)


PROFILES = json.loads((HERE / "general_profiles.json").read_text())


@pytest.mark.parametrize(
    "case", ["tmb binomial", *(pytest.param(c, marks=pytest.mark.full_size) for c in list(PROFILES)[1:])]
)
def test_profiles_of_fixed_effects_are_theirs(case: str) -> None:
    """`general_profiles.R` made the numbers. Red before: fits of counts and shares had no `confint`."""
    formula, asked = CASES[case]
    fit = dc.mixed(formula, pyarrow.csv.read_csv(HERE / "general.csv"), **asked)
    ends, theirs = fit.confint(), PROFILES[case]
    for name, value in (("(Intercept)", theirs["intercept"]), ("x", theirs["x"])):
        assert ends[name] == pytest.approx(value, abs=ROOT * fit.se[name])
    wald, tests = fit.confint(method="wald"), fit.tests()
    assert wald["x"] == pytest.approx((fit.fixed["x"] - 1.959963985 * fit.se["x"], tests["x"].upper), rel=1e-8)
    assert fit.contrast({"x": 2}).estimate == pytest.approx(2 * fit.fixed["x"])


PREDICTIONS = json.loads((HERE / "general_predictions.json").read_text())
NEW = {"g": [1, 17, 99, 99], "h": [3, 11, 3, 99], "x": [0.4, -1.3, 0.4, 2.1]}
TRIALS = {"tmb trials": ("share ~ x + (x | g)", {"family": "binomial", "weights": "trials"})}


@pytest.mark.parametrize("case", [case for case in PREDICTIONS if case != "versions"])
def test_predictions_and_their_errors_are_theirs(case: str) -> None:
    """`general_predictions.R` made the numbers, new levels included. Red before: there was no `prediction`."""
    formula, asked = (CASES | TRIALS)[case]
    fit = dc.mixed(formula, pyarrow.csv.read_csv(HERE / "general.csv"), **asked)
    known = {name: values[:2] for name, values in NEW.items()}
    for scale, theirs in PREDICTIONS[case].items():
        for rows, data, level in (
            ("fitted", None, "conditional"),
            ("new", NEW, "conditional"),
            ("marginal", known, "marginal"),
        ):
            found = fit.prediction(data, scale=scale, level=level, kind="confidence")
            at = slice(len(theirs[rows]["value"]))
            np.testing.assert_allclose(found.value[at], theirs[rows]["value"], rtol=CLOSE, atol=CLOSE)
            np.testing.assert_allclose(found.std_error[at], theirs[rows]["error"], rtol=CLOSE)
            np.testing.assert_allclose(found.value, fit.predict(data, scale=scale, level=level, new_levels="zero"))


@pytest.mark.parametrize("case", ["tmb binomial", "negative-binomial"])
def test_their_names_take_these_fits(case: str) -> None:
    """Red before: a fit of counts or shares has no residual variance, and was taken for a private one."""
    formula, asked = CASES[case]
    fit, theirs = dc.mixed(formula, pyarrow.csv.read_csv(HERE / "general.csv"), **asked), PUBLISHED[case]
    assert lme4.fixef(fit) == pytest.approx(theirs["fixed"], rel=CLOSE)
    assert lme4.sigma(fit) == pytest.approx(theirs["size"], rel=CLOSE)
    np.testing.assert_allclose(lme4.VarCorr(fit)["h"], theirs["covariance"]["h"], rtol=2 * CLOSE)
    one = fit.effects["h"]["3"]["(Intercept)"]
    assert lme4.coef(fit)["h"]["3"]["(Intercept)"] == pytest.approx(fit.fixed["(Intercept)"] + one)
    assert lme4.confint(fit, method="Wald")["x"] == pytest.approx(fit.confint(method="wald")["x"])
