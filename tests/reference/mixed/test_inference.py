"""Tests, contrasts, profiles and likelihood ratios against lme4 and lmerTest (`inference.R` made the numbers)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest

import discreet as dc
from discreet.models.linear import MixedFit, compare

HERE = Path(__file__).parent
PUBLISHED = json.loads((HERE / "inference.json").read_text())
CLOSE = 1e-5
OF_DF = 2e-4  # lmerTest takes its second derivatives by differences of values


@pytest.fixture(scope="module", params=PUBLISHED["fits"], ids=lambda each: each["formula"])
def pair(request: pytest.FixtureRequest) -> tuple[MixedFit, dict[str, Any]]:
    return dc.mixed(request.param["formula"], pyarrow.csv.read_csv(HERE / "panel.csv")), request.param


def test_degrees_of_freedom_and_p_values_are_lmertests(pair: tuple[MixedFit, dict[str, Any]]) -> None:
    fit, theirs = pair
    tests = fit.tests()
    assert list(tests) == theirs["names"]
    np.testing.assert_allclose([test.df for test in tests.values()], theirs["df"], rtol=OF_DF)
    np.testing.assert_allclose([test.t for test in tests.values()], theirs["t"], rtol=CLOSE)
    np.testing.assert_allclose([test.p for test in tests.values()], theirs["p"], rtol=10 * OF_DF, atol=1e-12)
    first, second = fit.names[:2]
    test = fit.contrast({first: 1, second: 2})
    assert test.estimate == pytest.approx(theirs["contrast"]["Estimate"], rel=CLOSE)
    assert test.df == pytest.approx(theirs["contrast"]["df"], rel=OF_DF)


def test_intervals_are_lme4s(pair: tuple[MixedFit, dict[str, Any]]) -> None:
    fit, theirs = pair
    np.testing.assert_allclose(list(fit.confint(method="wald").values()), theirs["wald"], rtol=CLOSE)
    np.testing.assert_allclose(list(fit.confint(method="profile").values()), theirs["profile"], rtol=2e-4, atol=1e-4)
    found = fit.prediction(level="marginal", kind="confidence").std_error[:5]
    np.testing.assert_allclose(found, theirs["se_marginal"], rtol=CLOSE)


def test_likelihood_ratios_are_those_of_anova() -> None:
    data = pyarrow.csv.read_csv(HERE / "panel.csv")
    formulas = ("y ~ x + (1 | g)", "y ~ x + a + (x | g)", "y ~ x + a + (1 | g)")
    found = compare(*(dc.mixed(formula, data) for formula in formulas)).models
    for mine, theirs in zip(found, PUBLISHED["ratio"], strict=True):
        assert (mine.parameters, mine.aic, mine.bic, mine.loglik) == pytest.approx(
            (theirs["npar"], theirs["AIC"], theirs["BIC"], theirs["logLik"]), rel=1e-8
        )
        if "Chisq" in theirs:
            assert (mine.chisq, mine.df, mine.p) == pytest.approx(
                (theirs["Chisq"], theirs["Df"], theirs["Pr(>Chisq)"]), rel=CLOSE
            )
