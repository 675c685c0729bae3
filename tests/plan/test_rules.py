"""Rules of the agency: what the basic form leaves out, recorded, reported and computed again by the reviewer."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from discreet.errors import PlanError
from discreet.plan.run import run
from discreet.review.verdict import verify_bundle


def ruled(plan: Path) -> Path:
    text = plan.read_text()
    text = text.replace('by = ["place", "sector"]\n', 'by = ["place", "sector"]\nsuppress = { below = 40 }\n')
    text = text.replace(
        'by = ["place", "sex"]\n', 'by = ["place", "sex"]\nsuppress = { quality = ["poor", "mostly noise"] }\n'
    )
    plan.write_text(text)
    return plan


def test_a_rule_goes_from_the_plan_to_the_reviewer(plan: Path) -> None:
    done = run(ruled(plan))
    folder = plan.parent / "out"
    basic = pq.read_table(folder / "places" / "basic.parquet").to_pandas()
    research = pq.read_table(folder / "places" / "research.parquet").to_pandas()
    gone = basic["quality"] == "suppressed"
    assert gone.any() and not gone.all()
    assert basic.loc[gone, ["count", "lower", "upper"]].isna().all(axis=None)
    assert (basic.loc[~gone, "count"] >= 40).all() and research["count"].notna().all()
    sexes = pq.read_table(folder / "sexes" / "basic.parquet").to_pandas()
    assert not sexes["quality"].isin(["poor", "mostly noise"]).any()
    about = json.loads((folder / "places" / "release.json").read_text())
    assert (
        about["parameters"]["suppress"] == {"below": 40, "quality": []} and "suppressed" in about["columns"]["quality"]
    )
    report = (folder / "report.html").read_text()
    assert f"leaves out numbers below 40: {gone.sum()} of {len(basic)}" in report
    findings = {one.subject: one for one in verify_bundle(done.bundle)}
    assert not [one for one in findings.values() if one.wrong], findings
    assert findings["places: basic form"].holds and findings["report.html"].holds


def test_another_rule_than_the_one_that_was_paid_for_is_refused(plan: Path) -> None:
    run(ruled(plan))
    plan.write_text(plan.read_text().replace("below = 40", "below = 30"))
    with pytest.raises(PlanError) as error:
        run(plan)
    assert error.value.faults[0].place == ("release", 0, "suppress")


@pytest.mark.parametrize(
    ("rule", "forms", "place"),
    [
        ("{ below = 40 }", '["basic"]', "suppress"),
        ("{}", '["basic", "research"]', "suppress"),
        ("{ below = 0 }", '["basic", "research"]', "suppress"),
        ('{ quality = ["bad"] }', '["basic", "research"]', "suppress"),
        ("{ under = 40 }", '["basic", "research"]', "suppress"),
    ],
)
def test_bad_rules_are_refused(plan: Path, rule: str, forms: str, place: str) -> None:
    text = ruled(plan).read_text().replace("{ below = 40 }", rule) + f"forms = {forms}\n"
    plan.write_text(text)
    with pytest.raises(PlanError) as error:
        run(plan)
    assert any(fault.place[:3] == ("release", 0, place) for fault in error.value.faults)
    assert not (plan.parent / "ledger.db").exists()
