"""A series of quarters under one budget: each has its amount, none is left out, a revision says what it replaces."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from discreet.ledger import Ledger, Period, Policy
from discreet.plan.check import check
from discreet.plan.reading import read_plan
from discreet.plan.run import run
from discreet.privacy.losses import Pure
from discreet.privacy.units import Workers
from discreet.review.verdict import verify_bundle
from discreet.words.errors import BudgetExceeded, PlanError, PrivacyError

HEAD = """
[data]
source = "data/jobs.parquet"
workplaces = "data/places.parquet"
period = "{period}"
[data.schema]
workplace_attributes = ["place", "sector"]
worker_attributes = {{ sex = ["f", "m"] }}
[unit]
kind = "establishments"
alpha = 0.1
[budget]
epsilon = 6
per_quarter = 2
ledger = "ledger.db"
dataset = "toys"
[output]
folder = "out-{name}"
"""
RELEASE = (
    '[[release]]\nname = "{name}"\nkind = "count"\nmechanism = "polynomial"\nby = ["place"]\n'
    "epsilon = {epsilon}\n{more}\n"
)
"""The mechanism is one that costs a reviewer little: what is tried here are periods."""


def written(first: Path, period: str, *releases: tuple[str, object, str], name: str = "plan") -> Path:
    plan = first.parent / f"{name}.toml"
    text = HEAD.format(period=period, name=name)
    text += "".join(RELEASE.format(name=label, epsilon=epsilon, more=more) for label, epsilon, more in releases)
    plan.write_text(text, encoding="utf-8")
    return plan


@pytest.mark.parametrize(
    "text, told", [("2026", "2026"), ("2026Q1", "2026-Q1"), ("2026-Q4", "2026-Q4"), ("2026-12", "2026-12")]
)
def test_periods_are_read_and_written(text: str, told: str) -> None:
    assert str(Period.of(text)) == told
    assert str(Period.of("2026-Q4").later(1)) == "2027-Q1"


@pytest.mark.parametrize("text", ["", "26-Q1", "2026-Q5", "2026-13", "2026-Q1 ", "q1"])
def test_what_is_no_period(text: str) -> None:
    with pytest.raises(PrivacyError) as error:
        Period.of(text)
    assert error.value.about == "period"


def charged(ledger: Ledger, release: str, epsilon: object, period: str | None) -> None:
    details = {} if period is None else {"period": period}
    ledger.charge(dataset="series", unit=Workers(), release=release, loss=Pure(epsilon), details=details)


def test_a_policy_is_raised_by_two_people_and_never_below_what_is_spent(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        unit, two = Workers(), Policy("quarter", Fraction(2))
        ledger.open_budget(dataset="series", unit=unit, total=Pure(8), policy=two)
        charged(ledger, "a", "3/2", "2026-Q1")
        for wrong in (Policy("quarter", Fraction(1)), Policy("month", Fraction(2))):
            with pytest.raises(PrivacyError):
                ledger.change_budget(dataset="series", policy=wrong, reason="less")
        with pytest.raises(PrivacyError):
            ledger.change_budget(dataset="series", policy=Policy("quarter", Fraction(3)), reason="more", by="anna")
        changed = ledger.change_budget(
            dataset="series", policy=Policy("quarter", Fraction(3)), reason="more", by="anna", confirmed_by="rita"
        )
        assert changed.policy == Policy("quarter", Fraction(3)) and changed.total == Pure(8)
        charged(ledger, "b", "3/2", "2026-Q1")
        ledger.change_budget(dataset="series", total=Pure(7), reason="less")
        with pytest.raises(BudgetExceeded):
            charged(ledger, "c", 1, "2026-Q1")
        assert ledger.verify()


def test_quarters_across_plans(plan: Path, command, contents) -> None:
    first = written(plan, "2026-Q1", ("q1", 1, ""), name="one")
    found = check(read_plan(first))
    assert "2026-Q1, 2 is left now and 1 afterwards" in str(found.only)
    done = run(first)
    assert done.budgets[0].left_in("2026-Q1") == 1
    assert not [one for one in verify_bundle(done.bundle, ledger=first.parent / "ledger.db") if one.wrong]
    assert "2026-Q1" in (first.parent / "out-one" / "report.html").read_text(encoding="utf-8")
    before = contents(plan.parent / "data"), (plan.parent / "ledger.db").read_bytes()
    refused = {
        "release.0.epsilon": written(plan, "2026-Q1", ("q1-more", "'3/2'", ""), name="dear"),
        "data.period": written(plan, "2026-Q3", ("q3", 1, ""), name="gap"),
    }
    told = str(check(read_plan(refused["release.0.epsilon"])).only)
    assert "2026-Q1, 1 is left now; not every release can be paid" in told and "afterwards" not in told
    for place, bad in refused.items():
        with pytest.raises(PlanError) as error:
            run(bad)
        assert {".".join(map(str, fault.place)) for fault in error.value.faults} == {place}
    assert (contents(plan.parent / "data"), (plan.parent / "ledger.db").read_bytes()) == before
    run(written(plan, "2026-Q2", ("q2", 2, ""), name="two"))
    told = json.loads(command("ledger", "show", plan.parent / "ledger.db", "--json")[1])
    assert told["budgets"][0]["periods"] == {
        "2026-Q1": {"spent": "1", "remaining": "1"},
        "2026-Q2": {"spent": "2", "remaining": "0"},
    }
    code, out, _ = command("ledger", "show", plan.parent / "ledger.db")
    assert code == 0 and "2026-Q2" in out


def test_a_release_without_its_quarter_and_another_policy_are_refused(plan: Path) -> None:
    good = written(plan, "2026-Q1", ("q1", 1, ""))
    text = good.read_text(encoding="utf-8")
    good.write_text(text.replace('period = "2026-Q1"\n', ""), encoding="utf-8")
    assert [fault.place for fault in check(read_plan(good)).faults] == [("data", "period")]
    good.write_text(text.replace("per_quarter = 2", "per_quarter = 2\nper_year = 4"), encoding="utf-8")
    with pytest.raises(PlanError):
        read_plan(good)
    good.write_text(text, encoding="utf-8")
    run(good)
    good.write_text(text.replace("per_quarter = 2", "per_quarter = 3"), encoding="utf-8")
    assert ("budget",) in [fault.place for fault in check(read_plan(good)).faults]


def test_a_revision_of_another_plans_release_is_compared_with_its_published_table(plan: Path) -> None:
    """The ledger knows the hash of that table, so a reviewer finds the same words; no other table is taken for it."""
    run(written(plan, "2026-Q1", ("q1", "'1/2'", ""), name="first"))
    first = pq.read_table(plan.parent / "out-first" / "q1" / "research.parquet")
    asked = 'replaces = "q1"\ncompare = { file = "out-first/q1/research.parquet" }'
    second = written(plan, "2026-Q1", ("q1-revised", 1, asked), name="second")
    done = run(second)
    table = pq.read_table(plan.parent / "out-second" / "q1-revised" / "research.parquet")
    assert table["place"] == first["place"]
    moved = np.abs(np.array(table["count"]) - np.array(first["count"]))
    page = (plan.parent / "out-second" / "report.html").read_text(encoding="utf-8")
    total = f"their sum went from {sum(first['count'].to_pylist()):,.6g} to {sum(table['count'].to_pylist()):,.6g}"
    assert f"{(moved > 0).sum():,} of {len(moved):,} numbers (count) differ, by {moved.mean():.3g} on average" in page
    assert total in page and "beside its research.parquet" in page
    assert not [one for one in verify_bundle(done.bundle) if one.wrong]
    (plan.parent / "own.csv").write_text("place,count\nP0,7\n")
    other = 'replaces = "q1-revised"\ncompare = { file = "own.csv" }'
    run(written(plan, "2026-Q1", ("q1-again", "'1/4'", other), name="third"))
    page = (plan.parent / "out-third" / "report.html").read_text(encoding="utf-8")
    assert "its numbers are not compared here. They are where compare names its published table" in page


def test_a_revision_is_named_paid_for_and_compared(plan: Path) -> None:
    written(plan, "2026-Q1", ("q1", "'1/2'", ""))
    run(plan)
    both = written(plan, "2026-Q1", ("q1", "'1/2'", ""), ("q1-revised", 1, 'replaces = "q1"'))
    done = run(both)
    with Ledger.open(plan.parent / "ledger.db", read_only=True) as ledger:
        charges = {entry.release: entry.payload["details"] for entry in ledger.entries() if entry.kind == "charge"}
    assert charges["q1-revised"]["replaces"] == "q1" and "replaces" not in charges["q1"]
    assert done.budgets[0].left_in("2026-Q1") == Fraction(1, 2)
    page = (plan.parent / "out-plan" / "report.html").read_text(encoding="utf-8")
    assert "their sum went from" in page
    assert not [one for one in verify_bundle(done.bundle) if one.wrong]
    for name, replaces in (("again", "q1"), ("odd", "nothing")):
        bad = written(plan, "2026-Q1", ("q1", "'1/2'", ""), ("q1-revised", 1, 'replaces = "q1"'),
                      (name, "'1/4'", f'replaces = "{replaces}"'))  # fmt: skip
        assert [fault.place for fault in check(read_plan(bad)).faults] == [("release", 2, "replaces")]
