"""R runs beside us on data made a moment ago: families, laws of residuals, and every quantity of inference.

`SEED=11 pytest tests/reference/mixed/test_live_inference.py` takes other data. All agree to 1e-5 where R is asked to go
on: `live_inference.R` has finer profiles of lme4, a root of glmmTMB's profiles that does not stop early, derivatives of
lmerTest whose steps do not vanish with a parameter, and searches that go on.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import discreet as dc
from discreet.models.linear import compare

pytestmark = [pytest.mark.live_r, pytest.mark.full_size]
CLOSE = 1e-5
GROUPS, ROWS = 24, 720
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "binomial": ("yes ~ x + (1 | g) + (1 | h)", {"family": "binomial"}),
    "trials": ("share ~ x + (x | g)", {"family": "binomial", "weights": "trials"}),
    "poisson": ("count ~ x + (x | g) + (1 | h)", {"family": "poisson", "exposure": "e"}),
    "negative-binomial": ("wide ~ x + (1 | g) + (1 | h)", {"family": "negative-binomial"}),
    "zero-inflated-poisson": ("zip ~ x + (1 | g)", {"family": "zero-inflated-poisson"}),
    "zero-inflated-negative-binomial": ("zinb ~ x + (1 | g)", {"family": "zero-inflated-negative-binomial"}),
}
LINEAR = ("y ~ x + z + (1 | g)", "y ~ x + (x | g)", "y ~ x + (1 | g) + (1 | h)")


@pytest.fixture(scope="module")
def data() -> pa.Table:
    rng = np.random.default_rng(int(os.environ.get("SEED", "7")))
    g, h, t = np.arange(ROWS) % GROUPS, rng.integers(0, 8, ROWS), np.arange(ROWS) // GROUPS
    x, z, e = rng.normal(size=ROWS).round(4), rng.normal(size=ROWS).round(4), rng.uniform(0.5, 3, ROWS).round(3)
    slope = 0.6 + 0.5 * rng.normal(size=GROUPS)[g]
    eta = 0.3 + slope * x + rng.normal(size=GROUPS)[g] + 0.6 * rng.normal(size=8)[h]
    trials, share, stratum = rng.integers(1, 9, ROWS), 1 / (1 + np.exp(-eta)), rng.integers(0, 3, ROWS)
    extra = rng.random(ROWS) < 0.3
    serial = rng.normal(size=ROWS)
    for row in range(GROUPS, ROWS):
        serial[row] = 0.6 * serial[row - GROUPS] + 0.8 * serial[row]
    columns = {
        "yes": (rng.random(ROWS) < share).astype(int),
        "share": rng.binomial(trials, share) / trials,
        "count": rng.poisson(e * np.exp(0.7 * eta)),
        "wide": rng.poisson(np.exp(0.7 * eta) * rng.gamma(1.5, 1 / 1.5, ROWS)),
        "zip": np.where(extra, 0, rng.poisson(np.exp(0.5 + 0.5 * eta))),
        "zinb": np.where(extra, 0, rng.poisson(np.exp(1 + 0.5 * eta) * rng.gamma(3, 1 / 3, ROWS))),
        "y": eta + rng.normal(size=ROWS),
        "uneven": eta + np.array([0.4, 1.0, 2.0])[stratum] * rng.normal(size=ROWS),
        "serial": eta + serial,
    }
    return pa.table(
        columns
        | {"x": x, "z": z, "e": e, "trials": trials, "g": g, "h": h, "t": t, "s": np.array(list("abc"))[stratum]}
    )


@pytest.fixture(scope="module")
def theirs(data: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    if not shutil.which("Rscript"):
        pytest.skip("needs R")
    folder = tmp_path_factory.mktemp("inference")
    pyarrow.csv.write_csv(data, folder / "data.csv", pyarrow.csv.WriteOptions(quoting_style="none"))
    script, files = Path(__file__).parent / "live_inference.R", [folder / "data.csv", folder / "answers.json"]
    done = subprocess.run(["Rscript", script, *files], capture_output=True, text=True, check=False)
    if "there is no package" in done.stderr:
        pytest.skip("needs R's lme4, glmmTMB, lmerTest, nlme and jsonlite")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads((folder / "answers.json").read_text())
    return found


@pytest.mark.parametrize("case", FAMILIES)
def test_families_are_glmmtmbs(case: str, data: pa.Table, theirs: dict[str, Any]) -> None:
    formula, asked = FAMILIES[case]
    fit, other = dc.mixed(formula, data, **asked), theirs["families"][case]
    assert -1e-8 <= fit.loglik - other["loglik"] < 1e-5
    np.testing.assert_allclose(fit.beta, other["fixed"], rtol=CLOSE, atol=CLOSE)
    np.testing.assert_allclose(list(fit.se.values()), other["se"], rtol=CLOSE)
    for term in fit.random:
        np.testing.assert_allclose(term.covariance, other["covariance"][term.group], rtol=CLOSE, atol=CLOSE)
    if "size" in fit.own:
        assert fit.own["size"] == pytest.approx(other["size"], rel=CLOSE)
    if "extra zeros" in fit.own:
        assert fit.own["extra zeros"] == pytest.approx(other["zeros"], rel=CLOSE)
    for kind in ("response", "pearson"):
        np.testing.assert_allclose(fit.residuals(kind)[:9], other[kind], rtol=CLOSE, atol=CLOSE)  # type: ignore[arg-type]
    for scale, name in (("link", "link"), ("response", "expected")):
        found = fit.prediction(scale=scale, kind="confidence").std_error[:9]
        np.testing.assert_allclose(found, other[name], rtol=CLOSE)
    x = data["x"].to_numpy()[[0, 7, 0, 7]]
    new = fit.prediction({"x": x, "g": [0, 5, 99, 99], "h": [2, 1, 2, 99]}, kind="confidence")
    np.testing.assert_allclose(new.value, other["new"]["value"], rtol=CLOSE)
    np.testing.assert_allclose(new.std_error, other["new"]["error"], rtol=CLOSE)


@pytest.mark.parametrize("case", [case for case in FAMILIES if case not in ("trials", "poisson")])
def test_profiles_are_glmmtmbs(case: str, data: pa.Table, theirs: dict[str, Any]) -> None:
    """Ends of the slope's interval, and of those of standard deviations. Red before: there were none of variances."""
    formula, asked = FAMILIES[case]
    fit, other = dc.mixed(formula, data, **asked), theirs["families"][case]
    assert fit.confint()["x"] == pytest.approx(other["x"], abs=CLOSE * fit.se["x"])
    found = {name: ends for name, ends in fit.intervals().items() if name.startswith("sd_")}
    for ends, known in zip(found.values(), other["sds"], strict=True):
        assert ends == pytest.approx(known, rel=CLOSE)


@pytest.mark.parametrize("case", ["binomial", "trials", "poisson"])
def test_glmer_is_not_better_and_has_these_residuals(case: str, data: pa.Table, theirs: dict[str, Any]) -> None:
    formula, asked = FAMILIES[case]
    fit, other = dc.mixed(formula, data, **asked), theirs["glmer"][case]
    assert fit.loglik >= other["loglik"] - 1e-8
    assert fit.loglik >= other["judged"] - 1e-8  # glmmTMB's likelihood at glmer's estimates; glmer's own is 1e-6 lower
    np.testing.assert_allclose(fit.beta, other["fixed"], rtol=CLOSE, atol=CLOSE)
    np.testing.assert_allclose(fit.residuals("deviance")[:9], other["deviance"], rtol=CLOSE, atol=CLOSE)


@pytest.mark.parametrize("formula", LINEAR)
def test_tests_and_intervals_are_lmertests_and_lme4s(formula: str, data: pa.Table, theirs: dict[str, Any]) -> None:
    fit, other = dc.mixed(formula, data), theirs["linear"][formula]
    tests = fit.tests()
    np.testing.assert_allclose([test.df for test in tests.values()], other["df"], rtol=CLOSE)
    np.testing.assert_allclose([test.t for test in tests.values()], other["t"], rtol=CLOSE)
    np.testing.assert_allclose([test.p for test in tests.values()], other["p"], rtol=CLOSE, atol=1e-12)
    contrast = fit.contrast({fit.names[0]: 1, fit.names[1]: 2})
    assert contrast.estimate == pytest.approx(other["contrast"]["Estimate"], rel=CLOSE)
    assert contrast.df == pytest.approx(other["contrast"]["df"], rel=CLOSE)
    error = np.array(list(fit.se.values()))[:, None]
    np.testing.assert_allclose(
        np.array(list(fit.confint(method="wald").values())) / error, other["wald"] / error, atol=CLOSE
    )
    np.testing.assert_allclose(np.array(list(fit.confint().values())) / error, other["profile"] / error, atol=CLOSE)
    found = np.array(list(fit.intervals().values()))
    both = (np.array(each)[np.lexsort(np.array(each).T)] for each in (found, other["sds"]))  # terms in their own order
    np.testing.assert_allclose(*both, atol=CLOSE)


def test_weights_strata_and_series_are_theirs(data: pa.Table, theirs: dict[str, Any]) -> None:
    weighted, other = dc.mixed("y ~ x + (1 | g) + (1 | h)", data, weights="e"), theirs["weights"]
    assert -1e-8 <= other["criterion"] - weighted.criterion < 1e-6
    np.testing.assert_allclose(weighted.beta, other["fixed"], rtol=CLOSE)
    np.testing.assert_allclose(list(weighted.se.values()), other["se"], rtol=CLOSE)
    found = [value for name, value in weighted.variances.items() if ", " not in name]
    np.testing.assert_allclose(sorted(found), sorted(other["variances"]), rtol=CLOSE)
    strata = dc.mixed("uneven ~ x + (1 | g)", data, residual_by="s")
    series = dc.mixed("serial ~ x + (1 | g)", data, series="g", time="t")
    for fit, name in ((strata, "strata"), (series, "series")):
        other = theirs[name]
        assert -1e-7 <= fit.loglik - other["loglik"] < 1e-5
        np.testing.assert_allclose(fit.beta, other["fixed"], rtol=CLOSE, atol=CLOSE)
        np.testing.assert_allclose(list(fit.se.values()), other["se"], rtol=CLOSE)
        assert fit.variances["g"] == pytest.approx(other["group"], rel=CLOSE)
    sds = {name.removeprefix("Residual: "): v**0.5 for name, v in strata.variances.items() if name.startswith("Resid")}
    assert sds == pytest.approx(theirs["strata"]["sds"], rel=CLOSE)
    assert series.autocorrelation == pytest.approx(theirs["series"]["rho"], rel=CLOSE)


def test_likelihood_ratios_are_anovas(data: pa.Table, theirs: dict[str, Any]) -> None:
    formulas = ("y ~ x + (1 | g)", "y ~ x + z + (1 | g)", "y ~ x + z + (x | g)")
    found, other = compare(*(dc.mixed(formula, data) for formula in formulas)).models, theirs["ratio"]
    np.testing.assert_allclose([each.aic for each in found], other["aic"], rtol=1e-9)
    np.testing.assert_allclose([each.chisq for each in found[1:]], other["chisq"], rtol=CLOSE, atol=CLOSE)
    assert [each.df for each in found[1:]] == other["df"]
    np.testing.assert_allclose([each.p for each in found[1:]], other["p"], rtol=CLOSE, atol=CLOSE)
