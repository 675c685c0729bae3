"""A schema beside the data is not in the plan's text: what it says of a release is sealed with its payment."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.data.schema import Schema
from discreet.ledger import Ledger
from discreet.plan.run import run
from discreet.review.verdict import verify_bundle
from discreet.words.errors import PlanError
from faults_of import about

HERE = """[data.schema]
workplace_attributes = ["place", "sector"]
worker_attributes = { sex = ["f", "m"] }
"""
BESIDE = HERE.partition("\n")[2]
SCHEMA = Schema(["place", "sector"], {"sex": ["f", "m"], "age": ["young", "old"]})


@pytest.fixture
def beside(plan: Path) -> Path:
    """The toy plan with its schema as a file beside the data, carried out."""
    text = plan.read_text()
    assert HERE in text
    plan.write_text(text.replace(HERE, ""))
    (plan.parent / "data" / "schema.toml").write_text(BESIDE)
    run(plan)
    return plan


@pytest.mark.parametrize(
    "change",
    [
        ("workplace_attributes", 'establishment = "firm"\nworkplace_attributes'),
        ('["f", "m"]', '["m", "f"]'),
        ('["f", "m"]', '["f", "m", "x"]'),
    ],
    ids=["who is an establishment", "order of a domain", "a longer domain"],
)
def test_what_was_paid_for_keeps_its_schema(beside: Path, change: tuple[str, str]) -> None:
    (beside.parent / "data" / "schema.toml").write_text(BESIDE.replace(*change))
    with pytest.raises(PlanError, check=about("data.schema")):
        run(beside)


def test_what_no_release_uses_may_change(beside: Path) -> None:
    more = BESIDE.replace('sex = ["f", "m"]', 'sex = ["f", "m"], age = ["young", "old"]')
    (beside.parent / "data" / "schema.toml").write_text(more)
    assert run(beside).bundle is not None


def test_the_reviewer_knows_the_key_columns_from_the_payment(beside: Path) -> None:
    outcome = run(beside)
    assert outcome.bundle is not None
    findings = verify_bundle(outcome.bundle)
    assert not [finding for finding in findings if finding.wrong]
    assert not any("'worker'" in finding.words for finding in findings)


def test_lines_of_earlier_versions_pay_for_what_they_paid(beside: Path) -> None:
    with Ledger.open(beside.parent / "ledger.db", read_only=True) as ledger:
        charge = next(entry for entry in ledger.entries() if entry.kind == "charge")
    details = dict(charge.payload["details"])
    assert charge.loss is not None and charge.pays_for(unit=charge.unit, loss=charge.loss, details=details)
    assert not charge.pays_for(unit=charge.unit, loss=charge.loss, details={**details, "schema": "0"})
    del charge.payload["details"]["schema"]
    assert charge.pays_for(unit=charge.unit, loss=charge.loss, details=details)
    assert not charge.pays_for(unit=charge.unit, loss=charge.loss, details={**details, "level": "0.5"})


def test_a_digest_is_of_what_is_used() -> None:
    used = ["place", "sex"]
    whole = SCHEMA.digest(used)
    assert whole == Schema(["sector", "place"], {"sex": ["f", "m"]}).digest(reversed(used))
    others = [
        Schema(["place"], {"sex": ["m", "f"]}),
        Schema(["place"], {"sex": ["f", "m"]}, establishment="firm"),
        Schema(["place"], {"sex": ["f", "m"]}, worker="person"),
        Schema(["place"], {"sex": ["f", "m"]}, size="jobs"),
        Schema([], {"sex": ["f", "m"], "place": ["a"]}),
    ]
    others += [
        Schema(["code"], {"sex": ["f", "m"]}, hierarchy={"p": {"levels": ["code", "place"], "prefix": [4, n]}})
        for n in (2, 3)
    ]
    assert len({whole, SCHEMA.digest(["place"]), *(each.digest(used) for each in others)}) == 9


@pytest.mark.parametrize("several", [2, 9])
def test_a_digest_is_that_of_any_order_of_declaration(several: int) -> None:
    """Also of so many hierarchies that the orders of earlier versions are not all tried."""
    names = [f"code{i}" for i in range(several)]
    chains = {name: {"levels": [name, f"part{i}"], "prefix": [4, 2]} for i, name in enumerate(names)}
    used = [f"part{i}" for i in range(several)]
    first, last = Schema(names, {}, hierarchy=chains), Schema(names, {}, hierarchy=dict(reversed(chains.items())))
    assert first.digest(used) == last.digest(used) != first.digest(used[:1])


def test_a_hierarchy_that_no_table_uses_is_no_part_of_a_digest() -> None:
    plain = Schema(["code", "place"], {})
    chained = Schema(["code", "place"], {}, hierarchy={"p": {"levels": ["code", "part"], "prefix": [4, 2]}})
    assert plain.digest(["code", "place"]) == chained.digest(["code", "place"]) != chained.digest(["code", "part"])
