"""Designs that noise cannot solve: refused before they are paid for, solved if they were, and told to the reader."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.models.linear import private
from discreet.models.linear.private import moments
from discreet.models.linear.private.noisy import _inverted
from discreet.models.linear.private.slopes import WORD
from discreet.privacy.losses import Pure
from discreet.privacy.units import Rows
from discreet.release.account import Account
from discreet.words.caveats import CaveatNote
from discreet.words.errors import DataError, FitError
from faults_of import about

Table = dict[str, np.ndarray]
release_mixed = partial(private.release_mixed, public=["f", "x", "s", "z", "g", "one", "industry", "quarter", "county"])
HARD = "y ~ f + x + s + z + f:x + s:z"


@pytest.fixture(scope="module")
def small() -> Table:
    """Sixty rows, one of them far out in x."""
    rng = np.random.default_rng(0)
    g, f, x = np.arange(60) % 6, rng.integers(0, 3, 60), rng.normal(size=60) * 100
    z = rng.normal(size=60)
    x[0] = 1e6
    words = {"f": np.array([f"f{i}" for i in f]), "g": np.array([f"g{i}" for i in g]), "one": np.full(60, "a")}
    s = rng.choice(["s1", "s2", "s3"], 60)
    return {"x": x, "z": z, **words, "s": s, "y": np.clip(1 + rng.normal(0, 0.2, 60), 0, 2)}


@pytest.mark.parametrize("degree", [58, 59, 60, 200])
@pytest.mark.parametrize("method", ["moments", "strict", "paper"])
def test_designs_that_cannot_be_solved_cost_nothing(small: Table, degree: int, method: Any, tmp_path: Path) -> None:
    book = tmp_path / "book.db"
    with pytest.raises(DataError, check=about("formula")):
        release_mixed(
            f"y ~ poly(z, {degree})", small, epsilon=1, bounds=(0, 2), method=method, ledger=book, budget=4, dataset="d"
        )
    assert not book.exists()


def test_what_fails_in_rehearsal_is_refused_before_the_charge(small: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account.open(None, dataset="small", unit=Rows(0, 2, response="y"), budget=Pure(1))
    monkeypatch.setattr(moments, "evaluate", _fails)
    with pytest.raises(FitError, check=about("formula")):
        release_mixed(HARD, small, epsilon=1, account=account)
    assert account.remaining == Pure(1)


def test_what_was_drawn_is_solved(small: Table) -> None:
    for seed in range(5):
        fit = release_mixed(HARD, small, epsilon=1, bounds=(0, 2), seed=seed)
        assert np.isfinite(fit.beta).all() and np.isfinite(list(fit.se.values())).all()
        note = next(note for note in fit.notes if "noise drowns" in note)
        assert "x" in note and "range of 2" in note


def test_a_failure_after_the_draw_keeps_the_noisy_sums(small: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = release_mixed("y ~ f + (1 | g)", small, epsilon=1, bounds=(0, 2), seed=1)
    monkeypatch.setattr(moments, "estimate", _fails)
    fit = release_mixed("y ~ f + (1 | g)", small, epsilon=1, bounds=(0, 2), seed=1)
    json.dumps(fit.to_dict(), allow_nan=False)
    assert "could not be solved" in fit.notes[0] and np.isnan(fit.beta).all() and "could not be solved" in str(fit)
    assert [s.tolist() for s in fit.released.sums] == [s.tolist() for s in expected.released.sums]


def test_an_indefinite_matrix_has_a_robust_inverse() -> None:
    rng = np.random.default_rng(1)
    base = rng.normal(size=(4, 3))
    singular = base @ base.T * np.outer([1, 1e3, 1e-3, 1], [1, 1e3, 1e-3, 1])
    singular -= np.diag(np.diag(singular)) * 1e-13
    with pytest.raises(np.linalg.LinAlgError):
        _inverted(singular, False)
    logdet, inverse = _inverted(singular, True)
    assert np.isfinite(logdet) and (np.linalg.eigvalsh(inverse) > 0).all()
    definite = singular + np.diag(np.diag(singular))
    assert np.allclose(_inverted(definite, True)[1] @ definite, np.eye(4))


def assert_only_supposed(fit: Any) -> None:
    """No flag but that of one slope, and beside its note only what every private model supposes."""
    told = {flag.note for flag in fit.flags if flag.word == WORD}
    assert {flag.word for flag in fit.flags} <= {WORD}
    others = [note for note in fit.notes if note not in told]
    assert len(others) <= 2 and all(isinstance(note, CaveatNote) and "drown" not in note for note in others), others


def test_usual_designs_are_not_said_to_drown(flows: Table) -> None:
    fit = release_mixed("rate ~ industry + quarter + (1 | county)", flows, epsilon=1, bounds=(0, 2), seed=1)
    assert_only_supposed(fit)
    moved = {**flows, "rate": flows["rate"] + 1000}
    fit = release_mixed("rate ~ industry + quarter + (1 | county)", moved, epsilon=1, bounds=(1000, 1002), seed=1)
    assert_only_supposed(fit)


def test_variances_at_their_floor_are_told(small: Table) -> None:
    found = [release_mixed("y ~ 1 + (1 | g)", small, epsilon=1, bounds=(0, 2), seed=seed) for seed in range(8)]
    least = [fit for fit in found if fit.sigma2 is not None and fit.sigma2 <= 1e-11]
    assert least
    for fit in least:
        assert any("no variance of Residual was found above the noise" in note for note in fit.notes)
        assert "no variance of Residual" in fit.summary() and fit.to_dict()["notes"] == list(fit.notes)


def test_a_variance_beyond_the_range_is_told(small: Table) -> None:
    asked: dict[str, Any] = {"epsilon": 1, "bounds": (0, 2), "method": "strict", "blocks": 2}
    found = [release_mixed("y ~ f + (1 | g)", small, **asked, seed=seed) for seed in range(6)]
    far = [(fit, name) for fit in found for name, value in fit.variances.items() if value is not None and value > 1]
    assert far and all(any(f"the variance of {name}," in note for note in fit.notes) for fit, name in far)


def test_a_factor_with_one_level_is_told(small: Table) -> None:
    fit = release_mixed("y ~ one + f", small, epsilon=100, bounds=(0, 2), seed=1)
    assert any("factor one has one level" in note for note in fit.notes)


def _fails(*_: Any, **__: Any) -> None:
    raise np.linalg.LinAlgError("Matrix is not positive definite")
