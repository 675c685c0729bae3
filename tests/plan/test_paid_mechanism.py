"""What was paid for keeps its mechanism: plans of a version that chose others are resumed and verified here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from discreet.ledger import Ledger
from discreet.plan.run import run
from discreet.tables.mechanisms.joint_polynomial import JointPolynomialNoise
from discreet.tables.mechanisms.polynomial import PolynomialNoise


def _earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    """The defaults of version 0.1.0."""
    chosen = lambda unit, epsilon, *, cells, everyone: JointPolynomialNoise if cells > 1 else PolynomialNoise  # noqa: E731
    monkeypatch.setattr("discreet.tables.mechanisms.defaults.default", chosen)


def _mechanisms(folder: Path) -> dict[str, list[str]]:
    abouts = {path.parent.name: json.loads(path.read_text()) for path in sorted(folder.glob("*/release.json"))}
    return {name: [table["mechanism"] for table in about["parameters"]["tables"]] for name, about in abouts.items()}


OLD = {"margins": ["polynomial"] * 2, "places": ["polynomial"], "sexes": ["joint-polynomial"]}
NEW = {"margins": ["two-sizes"] * 2, "places": ["two-sizes"], "sexes": ["joint-rings"]}


def test_a_new_plan_gets_the_best_mechanisms(plan: Path, command) -> None:
    run(plan)
    assert _mechanisms(plan.parent / "out") == NEW
    code, out, err = command("verify", plan.parent / "out" / "bundle.zip")
    assert code == 0, out + err


def test_an_interrupted_plan_resumes_with_what_it_paid_for(
    plan: Path, monkeypatch: pytest.MonkeyPatch, command
) -> None:
    with monkeypatch.context() as patch:
        _earlier(patch)
        patch.setattr("discreet.tables.query.CountQuery.drawn", _full)
        with pytest.raises(RuntimeError):
            run(plan)
    with Ledger.open(plan.parent / "ledger.db") as ledger:
        paid = [entry.release for entry in ledger.entries() if entry.kind == "charge"]
    assert paid == ["places"]
    run(plan)
    assert _mechanisms(plan.parent / "out") == NEW | {"places": ["polynomial"]}
    code, out, err = command("verify", plan.parent / "out" / "bundle.zip")
    assert code == 0, out + err


def test_a_bundle_of_the_version_before_verifies(plan: Path, monkeypatch: pytest.MonkeyPatch, command) -> None:
    with monkeypatch.context() as patch:
        _earlier(patch)
        run(plan)
    assert _mechanisms(plan.parent / "out") == OLD
    code, out, err = command("verify", plan.parent / "out" / "bundle.zip")
    assert code == 0, out + err
    code, out, err = command("check", plan)
    assert code == 0, out + err


def _full(*_: object, **__: object) -> None:
    raise RuntimeError
