"""lme4 runs beside us on data made a moment ago, so that agreement is not tied to stored values."""

from __future__ import annotations

import json
import shutil
import subprocess
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from discreet.models.linear import MixedWarning, mixed

FORMULAS = [
    "y ~ 0 + k + x + (1 | g)",
    "y ~ k * x + (1 | g)",
    "y ~ x + (x | g)",
    "y ~ x + (1 | g) + (1 | h)",
    "y ~ x + (1 | g/h)",
    "y ~ x + (x || g) + (1 | k)",
    "z ~ x + (1 | g)",
    "y ~ x:k + h:k + (1 | g)",
    "y ~ h + w:x + x + k:h + (1 | g)",
    "y ~ 0 + w:k + k:x + (1 | g)",
    "y ~ far * w + k:far + (far | g)",
    "y ~ x + (1 | g/h/k)",
]
CASES = [*((formula, True) for formula in FORMULAS), *((formula, False) for formula in FORMULAS[::3])]


@pytest.fixture(scope="module")
def data() -> pa.Table:
    rng = np.random.default_rng(20)
    n = 900
    g, h, k = rng.integers(0, 25, n), rng.integers(0, 9, n), rng.integers(0, 4, n)
    x = rng.normal(2, 1, n)
    y = 3 + 0.4 * k + (0.5 + rng.normal(0, 0.3, 25)[g]) * x + rng.normal(0, 0.7, 25)[g] + rng.normal(0, 0.4, 9)[h]
    names = {"g": np.array([f"g{i}" for i in g]), "h": np.array([f"h{i}" for i in h]), "k": np.array(list("pqrs"))[k]}
    z = rng.normal(size=n)
    means = np.bincount(g, z) / np.bincount(g)
    more = {"w": rng.normal(size=n), "far": 10 + rng.normal(size=n)}
    return pa.table({"y": y + rng.normal(size=n), "z": z - means[g], "x": x, **names, **more})


@pytest.fixture(scope="module")
def answers(data: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    if not shutil.which("Rscript"):
        pytest.skip("needs R")
    folder = tmp_path_factory.mktemp("lme4")
    pyarrow.csv.write_csv(data, folder / "data.csv", pyarrow.csv.WriteOptions(quoting_style="none"))
    asked = [{"formula": formula, "reml": reml} for formula, reml in CASES]
    (folder / "formulas.json").write_text(json.dumps(asked))
    files = [str(folder / name) for name in ("data.csv", "formulas.json", "answers.json")]
    command = ["Rscript", str(Path(__file__).parent / "live.R"), *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "there is no package" in done.stderr:
        pytest.skip("needs R's lme4 and jsonlite")
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = json.loads((folder / "answers.json").read_text())
    return answers


@pytest.mark.live_r
@pytest.mark.parametrize("index", range(len(CASES)), ids=[f"{f} {'REML' if r else 'ML'}" for f, r in CASES])
def test_lme4_agrees(index: int, data: pa.Table, answers: list[dict[str, Any]]) -> None:
    (formula, reml), theirs = CASES[index], answers[index]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixedWarning)
        fit = mixed(formula, data, method="REML" if reml else "ML")
    assert fit.criterion == pytest.approx(theirs["criterion"], rel=1e-6)
    assert fit.fixed == pytest.approx(theirs["fixef"], rel=1e-4, abs=1e-6)
    assert list(fit.fixed) == list(theirs["fixef"])
    assert {term.group for term in fit.random} == set(theirs["groups"])
    assert list(fit.se.values()) == pytest.approx(np.atleast_1d(theirs["se"]).tolist(), rel=1e-4)
    variances = sorted(value for name, value in fit.variances.items() if ", " not in name)
    assert variances == pytest.approx(theirs["variances"], rel=2e-4, abs=1e-4)
    assert fit.is_singular == theirs["singular"]
    np.testing.assert_allclose(fit.fitted, theirs["fitted"], atol=1e-3)
    np.testing.assert_allclose(fit.leverage(), theirs["hat"], atol=1e-4)
