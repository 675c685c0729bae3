"""lme4's names give lme4's numbers in lme4's shapes, on data made a moment ago."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import discreet as dc
from discreet.lme4 import VarCorr, coef, confint, fixef, ranef, sigma
from discreet.words.errors import FitError

FORMULAS = ["y ~ x + (x | g)", "y ~ x + (x || g) + (1 | h)", "y ~ 1 + (1 | h)"]
CLOSE = {"rel": 2e-3, "abs": 2e-4}  # lme4 stops near 1e-6 in theta, which moves effects in the fourth digit


@pytest.fixture(scope="module")
def data() -> pa.Table:
    rng = np.random.default_rng(4)
    g, h, x = rng.integers(0, 12, 400), rng.integers(0, 5, 400), rng.normal(1, 1, 400)
    y = 2 + (0.5 + rng.normal(0, 0.5, 12)[g]) * x + rng.normal(0, 0.8, 12)[g] + rng.normal(0, 0.5, 5)[h]
    return pa.table({"y": y + rng.normal(size=400), "x": x, "g": [f"g{i}" for i in g], "h": [f"h{i}" for i in h]})


@pytest.fixture(scope="module")
def answers(data: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    if not shutil.which("Rscript"):
        pytest.skip("needs R")
    folder = tmp_path_factory.mktemp("names")
    pyarrow.csv.write_csv(data, folder / "data.csv")
    command = ["Rscript", str(Path(__file__).parent / "names.R"), str(folder / "data.csv"), str(folder / "told.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "there is no package" in done.stderr:
        pytest.skip("needs R with lme4 and jsonlite")
    assert done.returncode == 0, done.stderr
    return list(json.loads((folder / "told.json").read_text()))


@pytest.mark.parametrize("index", range(len(FORMULAS)), ids=FORMULAS)
def test_the_names_mean_what_they_do_in_r(index: int, data: pa.Table, answers: list[dict[str, Any]]) -> None:
    fit, theirs = dc.mixed(FORMULAS[index], data), answers[index]
    assert fixef(fit) == pytest.approx(theirs["fixef"], **CLOSE)
    assert sigma(fit) == pytest.approx(theirs["sigma"], **CLOSE)
    for ours, key in ((ranef(fit), "ranef"), (coef(fit), "coef")):
        assert ours.keys() == theirs[key].keys()
        for group, table in theirs[key].items():
            for level, row in zip(table["levels"], table["values"], strict=True):
                told = dict(zip(np.atleast_1d(table["names"]), np.atleast_1d(row), strict=True))
                assert ours[group][level] == pytest.approx(told, **CLOSE), (key, group, level)
    matrices = {name: np.atleast_2d(one) for name, one in theirs["VarCorr"].items()}
    assert VarCorr(fit).keys() == matrices.keys()
    for name, matrix in VarCorr(fit).items():
        np.testing.assert_allclose(matrix, matrices[name], rtol=5e-3, atol=1e-3)
    wald = dict(zip(np.atleast_1d(theirs["wald"]["names"]), theirs["wald"]["values"], strict=True))
    for name, ends in confint(fit, method="Wald").items():
        assert ends == pytest.approx(tuple(wald[name]), **CLOSE)
    if index == len(FORMULAS) - 1:  # what `confint` gives by itself is the same call for every formula
        assert confint(fit) == fit.intervals()


def test_a_private_fit_says_what_it_has() -> None:
    rows = {"y": [0.1, 0.4, 0.3, 0.9, 0.8, 0.7] * 50, "g": list("aaabbb") * 50}
    fit = dc.release_mixed("y ~ 1 + (1 | g)", rows, epsilon=10, public=["g"], bounds=(0, 1))
    assert fixef(fit) == fit.fixed
    assert coef(fit)["g"]["a"]["(Intercept)"] == pytest.approx(fit.fixed["(Intercept)"] + fit.effects["g"]["a"])
    assert VarCorr(fit)["g"].shape == (1, 1)
    low, high = confint(fit, method="Wald")["(Intercept)"]
    assert low < fit.fixed["(Intercept)"] < high
    with pytest.raises(FitError) as refused:
        confint(fit)
    assert refused.value.about == "method"
