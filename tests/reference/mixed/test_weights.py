"""Prior weights of the gaussian family against lme4 (`weights.R` made the numbers)."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import discreet as dc
from discreet.words.errors import DataError, FitError
from faults_of import about

HERE = Path(__file__).parent
PUBLISHED = json.loads((HERE / "weights.json").read_text())


@pytest.mark.parametrize("theirs", PUBLISHED, ids=lambda each: each["formula"])
def test_weighted_fits_are_lme4s(theirs: dict[str, Any]) -> None:
    data = pl.read_csv(HERE / "general.csv")
    fit = dc.mixed(theirs["formula"], data, weights="e", method="REML" if theirs["reml"] else "ML")
    assert fit.criterion == pytest.approx(theirs["criterion"], abs=1e-6)
    assert fit.fixed == pytest.approx(theirs["fixef"], rel=1e-5)
    assert list(fit.se.values()) == pytest.approx(theirs["se"], rel=1e-5)
    found = [value for name, value in fit.variances.items() if ", " not in name]
    assert found == pytest.approx(theirs["variances"], rel=1e-4)
    np.testing.assert_allclose(fit.leverage()[:5], theirs["hat"], rtol=1e-4)
    np.testing.assert_allclose(fit.residuals("pearson")[:5], theirs["pearson"], rtol=1e-4, atol=1e-6)
    assert fit.refit(fit.response).criterion == pytest.approx(fit.criterion, rel=1e-10)


def test_weighted_fits_are_stored_and_updated() -> None:
    """Red before: an AttributeError about a local object, and a refusal."""
    data = pl.read_csv(HERE / "general.csv")
    fit = dc.mixed("share ~ x + (1 | g)", data, weights="e")
    again = pickle.loads(pickle.dumps(fit))
    assert again.fixed == fit.fixed
    np.testing.assert_array_equal(again.predict(data), fit.predict(data))
    assert again.refit(fit.response).criterion == pytest.approx(fit.criterion, rel=1e-10)
    by_ml = fit.update(method="ML")
    assert by_ml.criterion == dc.mixed("share ~ x + (1 | g)", data, weights="e", method="ML").criterion
    other = fit.update(". ~ . + (1 | h)")
    theirs = next(each for each in PUBLISHED if each["formula"] == "share ~ x + (1 | g) + (1 | h)")
    assert other.criterion == pytest.approx(theirs["criterion"], abs=1e-6)


def test_weights_that_are_no_weights_are_refused() -> None:
    data = pl.read_csv(HERE / "general.csv")
    for name, column in (("zero", 0 * pl.col("e")), ("holes", pl.lit(None, dtype=pl.Float64)), ("words", pl.lit("a"))):
        with pytest.raises(DataError, check=about("weights")):
            dc.mixed("share ~ x + (1 | g)", data.with_columns(column.alias(name)), weights=name)
    fit = dc.mixed("share ~ x + (1 | g)", data, weights="e")
    for ask in (lambda: fit.release(epsilon=1), lambda: fit.moments):
        with pytest.raises(FitError):
            ask()
