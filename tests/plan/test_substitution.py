"""A plan whose unit has a worker's kind and employer inside one epsilon: run, ledger, report and verification."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from starlette.datastructures import FormData

from discreet.desk.drafts import from_form
from discreet.ledger import Ledger
from discreet.plan.run import run
from discreet.review.verdict import verify_bundle


def test_a_plan_promises_it_everywhere(plan: Path) -> None:
    text = plan.read_text()
    plan.write_text(text.replace("alpha = 0.1", "alpha = 0.1\nsubstitution = true"))
    run(plan)
    out = plan.parent / "out"
    with Ledger.open(plan.parent / "ledger.db", read_only=True) as ledger:
        assert [budget.unit for budget in ledger.budgets()] == ["establishments(alpha=1/10,strong,substitution)"]
    about = json.loads((out / "sexes" / "release.json").read_text())
    assert about["guarantee"]["definition"].endswith("employer-employee privacy with substitution")
    assert "changes employer" in about["guarantee"]["sentence"]
    (table,) = about["parameters"]["tables"]
    assert table["noise"]["floor"] == pytest.approx(1 + 1.1**0.5)
    html = (out / "report.html").read_text()
    assert "within the same odds" in html and "takes two such changes" not in html
    found = verify_bundle(out / "bundle.zip")
    assert not [finding for finding in found if finding.wrong]
    assert any("worst loss 2 of epsilon=2" in finding.words for finding in found)


def test_the_usual_report_says_that_kind_and_employer_take_two_steps(plan: Path) -> None:
    run(plan)
    html = (plan.parent / "out" / "report.html").read_text()
    assert "takes two such changes" in html and "a worker's kind or employer" in html.replace("&#x27;", "'")


def test_the_desks_form_asks_for_it() -> None:
    ask = {"unit-kind": "establishments", "unit-alpha": "0.1", "unit-strength": "strong"}
    assert "substitution" not in from_form(FormData(ask), "jobs").unit
    assert from_form(FormData(ask | {"unit-substitution": "on"}), "jobs").unit["substitution"] is True
