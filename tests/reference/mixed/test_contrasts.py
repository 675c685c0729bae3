"""Sum, helmert and treatment contrasts against lme4 (`contrasts.R` made the numbers)."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import discreet as dc
from discreet.models.linear import MixedWarning
from discreet.words.errors import DataError, FitError, FormulaError
from faults_of import about

HERE = Path(__file__).parent
PUBLISHED = json.loads((HERE / "contrasts.json").read_text())
DATA = pl.read_csv(HERE / "panel.csv").with_columns(count=pl.col("y").round())
CLOSE = 1e-5


def agrees(fit: Any, theirs: dict[str, Any]) -> None:
    assert list(fit.names) == theirs["names"]
    assert fit.loglik == pytest.approx(theirs["loglik"], rel=1e-8)
    np.testing.assert_allclose(fit.beta, theirs["fixef"], rtol=CLOSE, atol=CLOSE)
    np.testing.assert_allclose(list(fit.se.values()), theirs["se"], rtol=CLOSE)
    np.testing.assert_allclose(fit.fitted[:3], theirs["fitted"], rtol=CLOSE)
    np.testing.assert_allclose(fit.random[0].values[0], theirs["u"], rtol=1e-4)
    np.testing.assert_allclose(list(fit.variances.values()), theirs["variances"], rtol=2e-4)


@pytest.mark.parametrize("theirs", PUBLISHED["fits"], ids=lambda each: f"{each['formula']} {each['contrasts'] or ''}")
@pytest.mark.filterwarnings("ignore::discreet.models.linear.MixedWarning")
def test_fits_are_lme4s(theirs: dict[str, Any]) -> None:
    fit = dc.mixed(theirs["formula"], DATA, contrasts=theirs["contrasts"])
    agrees(fit, theirs)
    np.testing.assert_allclose(fit.predict(DATA.head(3)), theirs["fitted"], rtol=CLOSE)
    assert fit.tests()[fit.names[0]].std_error == pytest.approx(theirs["se"][0], rel=CLOSE)


@pytest.mark.parametrize("theirs", PUBLISHED["holed"], ids=lambda each: each["formula"])
def test_columns_without_rows_are_dropped_as_in_lme4(theirs: dict[str, Any]) -> None:
    whole = ~((pl.col("h") == "h1") & (pl.col("b") == "two")) & ~((pl.col("h") == "h3") & (pl.col("b") == "one"))
    with pytest.warns(MixedWarning):
        agrees(dc.mixed(theirs["formula"], DATA.filter(whole)), theirs)


def test_counts_have_them_too() -> None:
    theirs = PUBLISHED["counts"]
    fit = dc.mixed(theirs["formula"], DATA, family="poisson")
    assert list(fit.names) == theirs["names"]
    np.testing.assert_allclose(fit.beta, theirs["fixef"], rtol=1e-4, atol=CLOSE)
    np.testing.assert_allclose(list(fit.se.values()), theirs["se"], rtol=1e-4)


def test_an_option_is_for_every_factor_or_for_named_ones_and_an_update_keeps_it(tmp_path: Path) -> None:
    every = dc.mixed("y ~ h * b + (1 | g)", DATA, contrasts="sum")
    named = dc.mixed("y ~ h * b + (1 | g)", DATA, contrasts={"h": "sum", "b": "sum"})
    assert every.fixed == pytest.approx(named.fixed, rel=1e-10)
    assert every.update(". ~ . + x").names == dc.mixed("y ~ h * b + x + (1 | g)", DATA, contrasts="sum").names
    assert every.update(contrasts="helmert").fixed["h1"] != pytest.approx(every.fixed["h1"])
    assert pickle.loads(pickle.dumps(every)).fixed == every.fixed
    DATA.write_parquet(tmp_path / "panel.parquet")
    lazy = dc.mixed("y ~ h * b + (1 | g)", tmp_path / "panel.parquet", contrasts="sum")
    assert lazy.fixed == pytest.approx(every.fixed, rel=1e-8)


def test_the_model_is_the_same_in_every_coding() -> None:
    plain, summed = (dc.mixed("y ~ h * x + (1 | g)", DATA, contrasts=kind) for kind in ("treatment", "sum"))
    np.testing.assert_allclose(summed.fitted, plain.fitted, rtol=1e-6)
    new = DATA.head(4).with_columns(g=pl.lit("unseen"))
    np.testing.assert_allclose(summed.predict(new, new_levels="zero"), plain.predict(new, new_levels="zero"), rtol=1e-6)
    with pytest.raises(DataError, check=about("data")):
        summed.predict(DATA.head(2).with_columns(h=pl.lit("h9")))
    refitted = summed.refit(summed.response)
    assert refitted.fixed == pytest.approx(summed.fixed, rel=1e-6)


@pytest.mark.parametrize(
    ("formula", "asked", "of"),
    [
        ("y ~ C(h, difference) + (1 | g)", None, "formula"),
        ("y ~ C(h, sum, helmert) + (1 | g)", None, "formula"),
        ("y ~ h + C(h, sum) + (1 | g)", None, "formula"),
        ("y ~ log(x, sum) + (1 | g)", None, "formula"),
        ("y ~ x:b + C(h, sum):b + x:C(h, sum) + (1 | g)", None, "formula"),
        ("y ~ h + (1 | g)", "difference", "contrasts"),
        ("y ~ h + (1 | g)", {"b": "sum"}, "contrasts"),
        ("y ~ h + x + (1 | g)", {"x": "sum"}, "contrasts"),
        ("y ~ h + (1 | g)", {"g": "sum"}, "contrasts"),
        ("y ~ h + (1 | g)", ["sum"], "contrasts"),
    ],
)
def test_what_is_no_coding_is_refused(formula: str, asked: Any, of: str) -> None:
    with pytest.raises((DataError, FormulaError), check=about(of)):
        dc.mixed(formula, DATA, contrasts=asked)


def test_a_release_has_treatment_contrasts_and_a_posterior_those_of_its_formula() -> None:
    with pytest.raises(FormulaError, check=about("formula")):
        dc.release_mixed("y ~ C(h, sum) + (1 | g)", DATA, epsilon=1, public=["h", "g"], bounds=(0, 30))
    found = dc.mixed("y ~ C(h, sum) + (1 | g)", DATA, prior={"nu": 1, "sd": 1000})
    plain = dc.mixed("y ~ C(h, sum) + (1 | g)", DATA)
    assert found.coefficient("C(h, sum)2").mean == pytest.approx(plain.fixed["C(h, sum)2"], abs=0.01)
    with pytest.raises(FitError, check=about("contrasts")):
        dc.mixed("y ~ h + (1 | g)", DATA, prior={"nu": 12}, contrasts="sum")
