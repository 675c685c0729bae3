"""Amounts for the quarters of a series hold in both kinds of ledgers."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import discreet as dc
from discreet.errors import DataError, PrivacyError
from discreet.ledger import Ledger, Period, Policy
from discreet.privacy.losses import Pure
from discreet.privacy.units import Workers


def charged(ledger: Ledger, release: str, epsilon: object, period: str | None) -> None:
    details = {} if period is None else {"period": period}
    ledger.charge(dataset="series", unit=Workers(), release=release, loss=Pure(epsilon), details=details)


@pytest.mark.parametrize("where", ["file", "server"])
def test_the_ledger_enforces_the_policy(where: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Every charge is accepted if and only if quarter and total have room and no quarter is left out."""
    place = request.getfixturevalue("postgres_url") if where == "server" else str(tmp_path / "ledger.db")
    with Ledger.open(place) as ledger:
        total, limit = Fraction(5), Fraction(2)
        ledger.open_budget(dataset="series", unit=Workers(), total=Pure(total), policy=Policy("quarter", limit))
        spent: dict[str, Fraction] = {}
        asked = [("2026-Q1", 1), ("2026-Q3", 1), ("2026-Q1", "3/2"), ("2026-Q1", 1), ("2026-Q2", 2), ("2026-Q2", "1/9"),
                 ("2025-Q3", 1), ("2026-Q3", "1/2"), ("2026-Q4", 1), ("2026-Q4", "1/2"), (None, "1/9"),
                 ("2026", "1/9")]  # fmt: skip
        for number, (period, epsilon) in enumerate(asked):
            amount, known = Fraction(epsilon), sorted(spent)
            near = not known or period in {
                str(Period.of(known[0]).later(-1)),
                str(Period.of(known[-1]).later(1)),
                *known,
            }
            fits = (
                period is not None
                and "Q" in period
                and near
                and spent.get(period, Fraction(0)) + amount <= limit
                and sum(spent.values()) + amount <= total
            )
            if fits:
                charged(ledger, f"r{number}", epsilon, period)
                spent[str(period)] = spent.get(str(period), Fraction(0)) + amount
            else:
                before = ledger.head
                with pytest.raises(PrivacyError):
                    charged(ledger, f"r{number}", epsilon, period)
                assert ledger.head == before
        [budget] = ledger.budgets()
        assert (
            dict(budget.periods)
            == spent
            == {"2026-Q1": 2, "2026-Q2": 2, "2026-Q3": Fraction(1, 2), "2026-Q4": Fraction(1, 2)}
        )
        assert budget.left_in("2026-Q3") == Fraction(3, 2)
        assert ledger.verify()


def some_jobs() -> Any:
    jobs = {"workplace": [1, 1, 2], "worker": [1, 2, 3], "place": ["a", "a", "b"]}
    return dc.read_jobs(jobs, schema=dc.Schema(["place"], {}))


def test_a_session_names_its_period(tmp_path: Path) -> None:
    about = {"unit": dc.Workers(), "budget": 3, "ledger": tmp_path / "ledger.db", "dataset": "series"}
    first = dc.Session(some_jobs(), period="2026-Q1", per_period=1, **about)
    first.count().release(epsilon=1, name="q1")
    with pytest.raises(PrivacyError) as error:
        first.count().release(epsilon="1/9", name="more")
    assert error.value.about == "epsilon"
    with pytest.raises(PrivacyError) as error:
        dc.Session(some_jobs(), period="2026-Q3", **about).count().release(epsilon=1, name="q3")
    assert error.value.about == "period"
    with pytest.raises(PrivacyError) as error:
        dc.Session(some_jobs(), **about).count().release(epsilon=1, name="undated")
    assert error.value.about == "period"
    second = dc.Session(some_jobs(), period="2026Q2", **about)
    second.count().release(epsilon="1/2", name="q2")
    with Ledger.open(tmp_path / "ledger.db", read_only=True) as ledger:
        [budget] = ledger.budgets()
        assert budget.periods == {"2026-Q1": 1, "2026-Q2": Fraction(1, 2)}
        assert ledger.verify()


def test_flows_are_about_their_last_quarter() -> None:
    rows = {
        "worker": [1, 2, 3] * 3,
        "workplace": [1, 1, 2] * 3,
        "quarter": [f"2024Q{n}" for n in (1, 2, 3) for _ in range(3)],
        "place": ["a", "a", "b"] * 3,
    }
    quarters = ["2024Q1", "2024Q2", "2024Q3"]
    table = dc.read_histories(rows, quarters=quarters, schema=dc.Schema(["place"], {}))
    session = dc.Session(table, unit=dc.Establishments("0.1"), budget=9, per_period=1)
    session.flows("2024Q2", "place").release(epsilon=1)
    session.changes(["2024Q1", "2024Q3"], "place").release(epsilon=1)
    [budget] = session.account.ledger.budgets()
    assert budget.policy == Policy("quarter", Fraction(1)) and budget.periods == {"2024-Q2": 1, "2024-Q3": 1}
    with pytest.raises(PrivacyError) as error:
        session.flows("2024Q2", "place").release(epsilon=1)
    assert error.value.about == "epsilon"


@pytest.mark.parametrize("wrong", [{"per_period": 1}, {"period": "spring"}, {"period": "2026-Q1", "per_period": 0}])
def test_a_session_without_a_period_that_can_be_told_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises((DataError, PrivacyError)) as error:
        dc.Session(some_jobs(), unit=dc.Workers(), budget=3, **wrong)
    assert error.value.about in ("period", "policy")
