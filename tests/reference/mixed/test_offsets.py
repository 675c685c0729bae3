"""Offsets of linear models against lme4 (`offsets.R` made the numbers)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import discreet as dc
from discreet.models.linear import MixedWarning, compare
from discreet.words.errors import DataError, DiscreetError, FitError
from faults_of import about

HERE = Path(__file__).parent
PUBLISHED = json.loads((HERE / "offsets.json").read_text())
CLOSE = 1e-6  # lme4's search ends there
BESIDE: dict[str, dict[str, Any]] = {"argument": {"offset": "w", "method": "ML"}, "weighted": {"weights": "e"}}


@pytest.fixture(scope="module")
def data() -> pl.DataFrame:
    return pl.read_csv(HERE / "panel.csv").with_columns(e=1 + pl.col("x") ** 2)


@pytest.mark.parametrize("case", ["formula", "argument", "slopes", "weighted"])
def test_numbers_are_lme4s(case: str, data: pl.DataFrame) -> None:
    """Red before: the gaussian family had no offset."""
    theirs = PUBLISHED[case]
    fit = dc.mixed(theirs["formula"], data, **BESIDE.get(case, {}))
    assert fit.fixed == pytest.approx(theirs["fixef"], rel=CLOSE)
    assert list(fit.se.values()) == pytest.approx(theirs["se"], rel=CLOSE)
    own = [value for name, value in fit.variances.items() if ", " not in name]
    assert own == pytest.approx(theirs["variances"], rel=1e-5)
    assert fit.loglik == pytest.approx(theirs["loglik"], abs=CLOSE)
    assert fit.fitted[:5] == pytest.approx(theirs["fitted"], rel=CLOSE)
    assert fit.residuals()[:5] == pytest.approx(theirs["residuals"], abs=1e-5)
    assert fit.response == pytest.approx(data["y"].to_numpy())


def test_new_rows_have_their_own_offset(data: pl.DataFrame) -> None:
    fit, new = dc.mixed("y ~ x + offset(w) + (1 | g)", data), data[[4, 3, 2, 1, 0]]
    for level in ("conditional", "marginal"):
        theirs = pytest.approx(PUBLISHED["new"][level], rel=CLOSE)
        assert fit.predict(new, level=level) == theirs  # type: ignore[arg-type]
        assert fit.prediction(new, level=level).value == theirs
    with pytest.raises(DataError, check=about("data")):
        fit.predict(new.drop("w"))


def test_the_offset_stays_in_refits_updates_and_simulated_responses(data: pl.DataFrame) -> None:
    fit = dc.mixed("y ~ x + (1 | g)", data, offset="w")
    whole = dc.mixed("y ~ x + (1 | g)", data.with_columns(pl.col("y") - pl.col("w")))
    assert fit.fixed == pytest.approx(whole.fixed)
    y = fit.simulate(effects="kept", seed=3)[:, 0]
    np.testing.assert_allclose(y - data["w"].to_numpy(), whole.simulate(effects="kept", seed=3)[:, 0])
    again = fit.refit(y)
    assert again.fixed == pytest.approx(dc.mixed("y ~ x + (1 | g)", data.with_columns(y=y), offset="w").fixed)
    assert again.response == pytest.approx(y)
    assert fit.update(". ~ . - x").offset == pytest.approx(data["w"].to_numpy())
    written = dc.mixed("y ~ x + offset(w) + (1 | g)", data).update(". ~ . + z")
    assert written.fixed == pytest.approx(dc.mixed("y ~ x + z + offset(w) + (1 | g)", data).fixed)
    ends = fit.confint(method="parametric", replicates=40, seed=1)
    assert all(low < fit.fixed[name] < high for name, (low, high) in ends.items())
    assert compare(fit, fit.update(". ~ . + z")).models[1].df == 1
    with pytest.warns(MixedWarning):  # as many parameters
        compare(dc.mixed("y ~ x + (1 | g)", data), fit)


def test_an_offset_that_is_none_is_refused(data: pl.DataFrame) -> None:
    for column, name in ((None, "nowhere"), (pl.lit("a"), "text"), (pl.lit(float("inf")), "endless")):
        with pytest.raises(DataError, check=about("offset")):
            dc.mixed("y ~ x + (1 | g)", data if column is None else data.with_columns(column.alias(name)), offset=name)


def test_priors_and_releases_have_no_offsets(data: pl.DataFrame, tmp_path: Path) -> None:
    fit = dc.mixed("y ~ x + (1 | g)", data, offset="w")
    with pytest.raises(FitError, check=about("offset")):
        fit.release(epsilon=1.0, public=["x", "g"], bounds=(0, 20))
    for formula, asked in (("y ~ x + (1 | g)", {"offset": "w"}), ("y ~ x + offset(w) + (1 | g)", {})):
        with pytest.raises(FitError):
            dc.mixed(formula, data, prior={"nu": 12}, **asked)  # type: ignore[call-overload]
    book = tmp_path / "book.db"
    with pytest.raises(DiscreetError, check=about("formula")):
        dc.release_mixed(
            "y ~ x + offset(w) + (1 | g)",
            data,
            epsilon=1.0,
            public=["x", "g"],
            bounds=(0, 20),
            ledger=book,
            budget=4,
            dataset="d",
        )
    assert not book.exists()
