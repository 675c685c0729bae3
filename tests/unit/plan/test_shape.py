"""The shape of plans: exact amounts, and a published JSON Schema that is current."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.plan.shape import KINDS, Plan, json_schema
from discreet.plan.source import BudgetSection, SourceSection
from discreet.privacy.losses import Approximate, Pure

ROOT = Path(__file__).parents[3]
PUBLISHED = ROOT / "docs" / "reference" / "plan.schema.json"


@pytest.mark.parametrize("amount", ["0.1", "1/10", Decimal("0.1"), Decimal("1e-1")])
def test_amounts_are_what_a_person_means(amount: object) -> None:
    budget = BudgetSection.model_validate({"epsilon": amount, "ledger": "l", "dataset": "d"})
    assert budget.epsilon == Fraction(1, 10)
    assert budget.total() == Pure("1/10")


def test_a_budget_with_delta() -> None:
    budget = BudgetSection.model_validate({"epsilon": 1, "delta": Decimal("1e-6"), "ledger": "l", "dataset": "d"})
    assert budget.total() == Approximate(1, Fraction(1, 10**6))


def test_the_published_schema_is_current() -> None:
    """Write it again with `discreet plan schema > docs/reference/plan.schema.json`."""
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == json_schema()


def test_every_key_is_explained() -> None:
    fields = [*Plan.model_fields.values(), *SourceSection.model_fields.values()]
    tables = [*KINDS.values(), *(field.annotation for field in fields)]
    for table in tables:
        for name, field in getattr(table, "model_fields", {}).items():
            explained = field.description or name in ("kind", "formats", "forms")
            assert explained, f"{table}.{name}"


def test_every_key_of_the_examples_is_in_the_schema() -> None:
    """The JSON Schema accepts what the models accept: the examples."""
    validator = pytest.importorskip("jsonschema").Draft202012Validator(json_schema())
    import tomllib

    plans = sorted((ROOT / "examples").glob("*.toml"))
    assert len(plans) >= 3
    for path in plans:
        assert list(validator.iter_errors(tomllib.loads(path.read_text(encoding="utf-8")))) == [], path
