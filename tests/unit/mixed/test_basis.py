"""Bases of curves: beside SciPy, QR, and R's `splines::bs` and `poly`, also away from where they learned."""

from __future__ import annotations

import json
import shutil
import subprocess
import tracemalloc

import numpy as np
import pytest
from scipy.interpolate import BSpline

from discreet import mixed
from discreet.models.formula.basis import NaturalSplines, Polynomials, Splines
from discreet.words.errors import DataError
from faults_of import about

CLOSE = 1e-12  # sums of a few products of numbers between 0 and 1
SPLINES = [(3, None), (3, 3), (3, 5), (3, 12), (1, 6), (0, 4), (5, 9), (2, None)]
RNG = np.random.default_rng(7)
VALUES = {"normal": RNG.normal(size=90), "ties": RNG.integers(0, 30, 90) / 2, "far": 1e5 + RNG.normal(size=90)}


@pytest.mark.parametrize("x", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize(("degree", "df"), SPLINES)
def test_splines_are_scipys(x: np.ndarray, degree: int, df: int | None) -> None:
    basis = Splines.learn(x, degree, df)
    scipys = BSpline(np.array(basis.knots), np.eye(len(basis.knots) - degree - 1), degree)
    for here in (x, np.linspace(x.min(), x.max(), 17)):
        np.testing.assert_allclose(basis.at(here), scipys(here)[:, 1:], atol=CLOSE)
    assert basis.at(x).shape[1] == (degree if df is None else df)


@pytest.mark.parametrize("x", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("degree", [1, 2, 5])
def test_polynomials_are_orthonormal_and_span_the_powers(x: np.ndarray, degree: int) -> None:
    basis = Polynomials.learn(x, degree)
    q, r = np.linalg.qr(np.vander((x - x.mean()) / x.std(), degree + 1, increasing=True))
    np.testing.assert_allclose(basis.at(x), (q * np.sign(np.diag(r)))[:, 1:], atol=1e-9)
    np.testing.assert_array_equal(basis.at(x[3:5]), basis.at(x)[3:5])  # what is new does not change what was learned


@pytest.mark.live_r
def test_both_are_rs() -> None:
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    x, new = VALUES["normal"].tolist(), np.quantile(VALUES["normal"], [0, 0.13, 0.5, 0.77, 1]).tolist()
    numbers = [",".join(map(repr, each)) for each in (x, new)]
    calls = [f"predict(splines::bs(x, degree={k}{'' if df is None else f', df={df}'}), z)" for k, df in SPLINES if k]
    calls += [f"predict(poly(x, {k}), z)" for k in (1, 2, 5)]
    shown = "\n".join(f"cat(paste(sprintf('%.17g', t({call})), collapse=','), '\\n')" for call in calls)
    code = f"x <- c({numbers[0]}); z <- c({numbers[1]})\n{shown}"
    done = subprocess.run(["Rscript", "--vanilla", "-"], input=code, capture_output=True, text=True, check=True)
    theirs = [json.loads(f"[{line}]") for line in done.stdout.splitlines()]
    bases = [Splines.learn(np.array(x), k, df) for k, df in SPLINES if k]
    bases += [Polynomials.learn(np.array(x), k) for k in (1, 2, 5)]
    ours = [basis.at(np.array(new)).ravel() for basis in bases]
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10)


@pytest.mark.parametrize("term", ["poly(t, 400)", "bs(t, df=2)", "bs(t, df=401)"])
def test_a_basis_that_does_not_exist_is_refused(panel: dict, term: str) -> None:
    with pytest.raises(DataError, check=about("formula")):
        mixed(f"y ~ {term} + (1 | g)", panel)


def test_a_spline_knows_nothing_outside_its_range() -> None:
    x = VALUES["normal"]
    for outside in (x.min() - 1e-9, x.max() + 1e-9):
        with pytest.raises(ValueError):
            Splines.learn(x, 3, 5).at(np.array([outside]))


@pytest.mark.parametrize("basis", [Splines, NaturalSplines])
def test_a_wide_basis_takes_the_memory_of_its_columns(basis: type) -> None:
    """Red before: every spline was worked out at every row, in three copies; natural ones were multiplied out."""
    x = np.random.default_rng(3).random(6_000)
    learned = Splines.learn(x, 3, 200) if basis is Splines else NaturalSplines.learn(x, 200)
    tracemalloc.start()
    found = learned.at(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * found.size * 8
