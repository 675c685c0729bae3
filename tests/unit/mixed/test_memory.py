"""What does not fit into the free memory is refused with its size before it is tried."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet.models.formula import memory as columns
from discreet.words.errors import FitError
from faults_of import about

CROSSED = "y ~ 1 + (1 | g) + (1 | h)"


def only(free: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many bytes are free, and asked for whatever the need."""
    monkeypatch.setattr(columns, "free_memory", lambda: free)
    monkeypatch.setattr(columns, "SMALL", 0.0)


@pytest.fixture
def crossed() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {"y": rng.poisson(3, 900), "g": rng.integers(0, 60, 900), "h": rng.integers(0, 60, 900)}


@pytest.mark.parametrize("asked", [{}, {"family": "poisson"}, {"residual_by": "s"}, {"prior": {"sd": 10}}])
def test_a_factor_that_does_not_fit_is_refused_before_it_is_tried(
    asked: dict[str, str], crossed: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red before for counts: a bare MemoryError of 5.8 GiB with 60,000 x 60,000 levels."""
    only(2e4, monkeypatch)
    monkeypatch.setattr("discreet.models.linear.estimate.refuse_matrices", lambda *_: None)
    monkeypatch.setattr("discreet.models.linear.elimination.Elimination.factor", lambda *_: pytest.fail("it was tried"))
    with pytest.raises(FitError, check=about("formula")):
        dc.mixed(CROSSED, crossed | {"s": crossed["g"] % 2}, **asked)  # type: ignore[call-overload]


def test_draws_that_do_not_fit_are_refused_before_the_first(
    crossed: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """4 chains of 2,000 draws of 121 effects are 7.7 MB. Red before: a bare MemoryError at 120,000 effects."""
    only(7e6, monkeypatch)
    monkeypatch.setattr("discreet.models.bayes.blmm.terms._Step", lambda *_: pytest.fail("it was tried"))
    with pytest.raises(FitError, check=about("draws")):
        dc.mixed(CROSSED, crossed, prior={"sd": 10})


def test_a_limit_of_the_process_is_known() -> None:
    """`ulimit -v`. Red before: only the machine's free memory was."""
    script = (
        "import resource; from discreet.models.formula.memory import free_memory;"
        "resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30,) * 2); print(free_memory())"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert 0 < float(found) < 3 * 2**30


def test_a_limit_of_a_container_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read from files is given back when asked for."""
    for name, text in {"max": "1000000\n", "current": "900000\n", "stat": "anon 5\ninactive_file 50000\n"}.items():
        (tmp_path / f"memory.{name}").write_text(text)
    monkeypatch.setattr(columns, "CONTROL", tmp_path)
    assert columns.free_memory() == 150_000
    (tmp_path / "memory.max").write_text("max\n")
    assert columns.free_memory() > 1e6


def test_a_small_fit_does_not_ask_what_is_free(crossed: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "free_memory", lambda: pytest.fail("it was asked"))
    dc.mixed(CROSSED, crossed)
    with pytest.raises(pytest.fail.Exception):
        columns.refuse_matrices(9, columns.SMALL + 1)


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_a_spline_that_does_not_fit_is_refused_before_it_is_made(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """60,000 rows and 900 columns. Red before: a bare MemoryError within a limit of 3 GiB."""
    rng = np.random.default_rng(5)
    data = {"x": rng.normal(size=600), "y": rng.poisson(3, 600), "g": np.arange(600) % 9}
    only(1e5, monkeypatch)
    monkeypatch.setattr("discreet.models.formula.rows.apply", lambda *_: pytest.fail("it was made"))
    with pytest.raises(FitError, check=about("formula")):
        dc.mixed("y ~ ns(x, 30) + (1 | g)", data, family=family)  # type: ignore[call-overload]


@pytest.mark.parametrize("asked", [{}, {"weights": "w"}])
def test_a_wide_spline_keeps_no_sums_of_pairs(asked: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are multiplied, with the numbers of sums by cell. Red before: 900 columns and 60,000 groups took 195 GB."""
    rng = np.random.default_rng(4)
    x, g = rng.normal(size=600), rng.integers(0, 90, 600)
    data = {"x": x, "g": g, "y": np.sin(x) + rng.normal(size=90)[g] + rng.normal(size=600), "w": 1 + g % 3}
    formula = "y ~ ns(x, 6) + (1 | g)"
    kept = dc.mixed(formula, data, **asked)  # type: ignore[call-overload]
    monkeypatch.setattr("discreet.models.linear.gram.PAIRS", 10)
    monkeypatch.setattr("discreet.models.linear.gram.CHUNK", 128)
    found = dc.mixed(formula, data, **asked)  # type: ignore[call-overload]
    assert found.criterion == pytest.approx(kept.criterion, rel=1e-12)
    np.testing.assert_allclose(found.beta, kept.beta, rtol=1e-8)
