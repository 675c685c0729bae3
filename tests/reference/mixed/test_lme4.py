"""Our fits against lme4's, number by number. `lme4.R` beside this file writes the stored values."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from discreet.models.linear import MixedFit, MixedWarning, mixed

HERE = Path(__file__).parent
PUBLIC = HERE.parents[2].parent / "shared" / "data" / "lmm"
RECORDS = json.loads((HERE / "lme4.json").read_text())
NAMES = [f"{r['data']}: {r['formula']} {'REML' if r['reml'] else 'ML'}" for r in RECORDS]
PAIRS = list(zip(RECORDS, NAMES, strict=True))
LONGER = ("lme4_Pastes", "lme4_Penicillin")  # their profiles; sleepstudy has one of three parameters every day

CRITERION = 1e-6  # relative; both optimisers stop far below it
ESTIMATE = 1e-4  # relative; lme4 stops near 1e-6 in theta, which moves flat variances in the fifth digit
INTERVAL = 5e-4  # relative; lme4 interpolates its profile by a spline


def path_of(record: dict) -> Path:
    if record["data"] == "panel":
        return HERE / "panel.csv"
    path = PUBLIC / f"{record['data']}.csv.gz"
    if not path.exists():
        pytest.skip(f"needs the public data set {record['data']} in ../shared/data/lmm")
    return path


_cache: dict[str, MixedFit] = {}


def fit_of(record: dict, name: str) -> MixedFit:
    if name not in _cache:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MixedWarning)
            _cache[name] = mixed(record["formula"], path_of(record), method="REML" if record["reml"] else "ML")
    return _cache[name]


@pytest.mark.parametrize(("record", "name"), PAIRS, ids=NAMES)
def test_estimates(record: dict, name: str) -> None:
    fit = fit_of(record, name)
    assert fit.criterion == pytest.approx(record["criterion"], rel=CRITERION)
    assert fit.aic == pytest.approx(record["aic"], rel=CRITERION)
    assert fit.bic == pytest.approx(record["bic"], rel=CRITERION)
    assert fit.is_singular == record["singular"]

    theirs = {key.replace(" = ", "="): value for key, value in record["fixef"].items()}
    errors = {key.replace(" = ", "="): value for key, value in record["se"].items()}
    assert list(fit.fixed) == list(theirs)
    typical = max(errors.values())
    assert fit.fixed == pytest.approx(theirs, rel=ESTIMATE, abs=ESTIMATE * typical)
    assert fit.se == pytest.approx(errors, rel=ESTIMATE)

    variances = {component(v, record["variances"]): v["vcov"] for v in record["variances"]}
    # A variance at its boundary is zero for us and tiny for lme4; the residual gives the scale.
    assert fit.variances == pytest.approx(variances, rel=2 * ESTIMATE, abs=ESTIMATE * fit.sigma2)


def component(entry: dict, entries: list[dict]) -> str:
    """Our name of an entry of lme4's VarCorr."""
    group = entry["grp"].partition(".")[0]
    alone = sum(other["grp"] == entry["grp"] for other in entries) == 1
    if "var1" not in entry or (alone and entry["var1"] == "(Intercept)"):
        return group
    return f"{group}: {entry['var1']}" + (f", {entry['var2']}" if "var2" in entry else "")


SHARED = HERE.parents[2].parent / "shared" / "peers" / "reference.json"
FILES = {
    "dyestuff": "lme4_Dyestuff",
    "dyestuff_ml": "lme4_Dyestuff",
    "sleepstudy_intercept": "lme4_sleepstudy",
    "sleepstudy_slope": "lme4_sleepstudy",
    "penicillin_crossed": "lme4_Penicillin",
    "pastes_nested": "lme4_Pastes",
    "exam": "mlmRev_Exam",
    "insteval_one": "lme4_InstEval",
    "insteval_crossed": "lme4_InstEval",
}


@pytest.mark.parametrize("model", FILES)
def test_every_model_of_the_peers_file(model: str) -> None:
    if not SHARED.exists():
        pytest.skip("needs ../shared/peers/reference.json")
    peers = json.loads(SHARED.read_text())
    assert set(FILES) == {name for name, peer in peers.items() if isinstance(peer, dict) and "formula" in peer}
    record = {**peers[model], "data": FILES[model]}
    fit = fit_of(record, f"{record['data']}: {record['formula']} {'REML' if record['reml'] else 'ML'}")
    assert fit.criterion == pytest.approx(record["criterion"], rel=CRITERION)
    typical = max(record["se"].values())
    assert fit.fixed == pytest.approx(record["fixef"], rel=ESTIMATE, abs=ESTIMATE * typical)
    assert fit.se == pytest.approx(record["se"], rel=ESTIMATE)
    variances = {component(v, record["variances"]): v["vcov"] for v in record["variances"]}
    assert fit.variances == pytest.approx(variances, rel=2 * ESTIMATE)


@pytest.mark.parametrize(("record", "name"), PAIRS, ids=NAMES)
def test_effects_and_fitted_values(record: dict, name: str) -> None:
    fit = fit_of(record, name)
    sigma = np.sqrt(fit.sigma2)
    assert fit.fitted[:5] == pytest.approx(record["fitted"], abs=1e-3 * sigma)
    assert fit.predict(level="marginal")[:5] == pytest.approx(record["marginal"], abs=1e-3 * sigma)
    for group, theirs in record["ranef"].items():
        ours = [term for term in fit.random if term.group == group]
        values = np.concatenate([term.values[: len(theirs)] for term in ours], axis=1)
        np.testing.assert_allclose(values, theirs, atol=1e-3 * sigma)
        assert list(ours[0].levels[: len(theirs)]) == record["levels"][group]
    if record.get("cond_var") and "InstEval" not in name:
        for group, theirs in record["cond_var"].items():
            at = [term.group for term in fit.random].index(group)
            conditional = fit.effect_variances[at][1][:2]
            np.testing.assert_allclose(conditional, np.moveaxis(np.array(theirs), 2, 0), atol=ESTIMATE * fit.sigma2)


@pytest.mark.parametrize(
    ("record", "name"),
    [
        pytest.param(record, name, id=name, marks=[pytest.mark.full_size] if name.startswith(LONGER) else [])
        for record, name in PAIRS
        if "intervals" in record
    ],
)
def test_intervals_and_leverage(record: dict, name: str) -> None:
    fit = fit_of(record, name)
    assert fit.leverage()[:5] == pytest.approx(record["hat"], rel=ESTIMATE)
    ours = fit.intervals()
    assert set(ours) == set(record["intervals"])
    for parameter, ends in record["intervals"].items():
        assert ours[parameter] == pytest.approx(ends, rel=INTERVAL, abs=INTERVAL), parameter
