"""Amounts for the quarters of a series hold in both kinds of ledgers."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import discreet as dc
from discreet.ledger import Entry, Ledger, Period, Policy, chain
from discreet.privacy.losses import Pure
from discreet.privacy.units import Workers
from discreet.words.errors import BudgetExceeded, DataError, PrivacyError


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


def histories() -> Any:
    rows = {
        "worker": [1, 2, 3] * 3,
        "workplace": [1, 1, 2] * 3,
        "quarter": [f"2024Q{n}" for n in (1, 2, 3) for _ in range(3)],
        "place": ["a", "a", "b"] * 3,
    }
    return dc.read_histories(rows, quarters=["2024Q1", "2024Q2", "2024Q3"], schema=dc.Schema(["place"], {}))


def test_flows_and_changes_count_for_every_quarter_whose_rows_they_read() -> None:
    """Flows of a quarter read the one before and the one after; a change reads the quarters that it lists."""
    session = dc.Session(histories(), unit=dc.Establishments("0.1"), budget=9, per_period=2)
    session.flows("2024Q2", "place").release(epsilon=1)
    [budget] = session.account.ledger.budgets()
    assert budget.periods == {"2024-Q1": 1, "2024-Q2": 1, "2024-Q3": 1} and budget.spent == Pure(1)
    session.changes(["2024Q1", "2024Q3"], "place").release(epsilon=1)
    [budget] = session.account.ledger.budgets()
    assert budget.policy == Policy("quarter", Fraction(2)) and budget.spent == Pure(2)
    assert budget.periods == {"2024-Q1": 2, "2024-Q2": 1, "2024-Q3": 2}
    head = session.account.ledger.head
    with pytest.raises(BudgetExceeded) as error:
        session.flows("2024Q2", "place").release(epsilon="3/2")
    assert error.value.about == "epsilon" and session.account.ledger.head == head
    told = str(error.value)
    assert "2024-Q1 has 0 left and lacks 1.5" in told and "2024-Q2 has 1 left and lacks 0.5" in told
    session.changes(["2024Q2", "2024Q3"], "place")  # asking costs nothing
    with pytest.raises(BudgetExceeded) as error:
        session.changes(["2024Q2", "2024Q3"], "place").release(epsilon=1)
    told = str(error.value)
    assert "2024-Q3 has 0 left and lacks 1" in told and "2024-Q2 has" not in told
    assert session.account.ledger.verify()


def test_jobs_of_two_quarters_count_for_both() -> None:
    """Also where they are counted as a table of their own."""
    about = {"unit": dc.Establishments("0.1"), "budget": 9}
    session = dc.Session(histories().between("2024Q1", "2024Q3"), per_period=1, **about)
    session.count("place").release(epsilon=1)
    [budget] = session.account.ledger.budgets()
    assert budget.periods == {"2024-Q1": 1, "2024-Q3": 1} and budget.spent == Pure(1)
    around = dc.Session(histories().around("2024Q2"), per_period=1, **about)
    around.count("place").release(epsilon=1)
    [budget] = around.account.ledger.budgets()
    assert budget.periods == {"2024-Q1": 1, "2024-Q2": 1, "2024-Q3": 1}
    with pytest.raises(DataError) as error:
        dc.Session(histories().at("2024Q2"), period="2024-Q1", per_period=1, **about)
    assert error.value.about == "period"


def test_a_year_pays_for_what_reads_any_of_its_quarters() -> None:
    with Ledger.in_memory() as ledger:
        ledger.open_budget(dataset="series", unit=Workers(), total=Pure(5), policy=Policy("year", Fraction(1)))
        details = {"period": "2025", "periods": ["2024-Q4", "2025-Q1", "2025-Q2"]}
        ledger.charge(dataset="series", unit=Workers(), release="a", loss=Pure("3/4"), details=details)
        [budget] = ledger.budgets()
        assert budget.periods == {"2024": Fraction(3, 4), "2025": Fraction(3, 4)} and budget.spent == Pure("3/4")
        with pytest.raises(BudgetExceeded):
            charged(ledger, "b", "1/2", "2024")
        charged(ledger, "c", "1/4", "2024")
        assert ledger.verify()


@pytest.mark.parametrize("seed", range(5))
def test_no_quarter_is_read_for_more_than_its_amount(seed: int) -> None:
    """Random releases about random quarters: what was accepted adds up, quarter by quarter, and in all only once."""
    rng, limit, total = random.Random(seed), Fraction(2), Fraction(9)
    read: dict[str, Fraction] = {}
    with Ledger.in_memory() as ledger:
        ledger.open_budget(dataset="series", unit=Workers(), total=Pure(total), policy=Policy("quarter", limit))
        paid = Fraction(0)
        for number in range(60):
            first = rng.randrange(8)
            chosen = sorted({first, *(first + rng.randrange(4) for _ in range(rng.randrange(3)))})
            names = [str(Period("quarter", 8000 + n)) for n in chosen]
            amount, known = Fraction(rng.randrange(1, 9), 8), sorted(read)
            near = not known or (
                Period.of(names[0]) <= Period.of(known[-1]).later(1)
                and Period.of(names[-1]) >= Period.of(known[0]).later(-1)
            )
            fits = (
                near and paid + amount <= total and all(read.get(name, Fraction(0)) + amount <= limit for name in names)
            )
            details: dict[str, object] = {"period": names[-1], "periods": names}
            try:
                ledger.charge(
                    dataset="series", unit=Workers(), release=f"r{number}", loss=Pure(amount), details=details
                )
                assert fits
                paid += amount
                read |= {name: read.get(name, Fraction(0)) + amount for name in names}
            except PrivacyError:
                assert not fits
        [budget] = ledger.budgets()
        assert dict(budget.periods) == read and max(read.values()) <= limit and budget.spent == Pure(paid)
        assert ledger.verify()


def test_lines_of_earlier_versions_stay_valid_and_count_as_they_did() -> None:
    """They name the last quarter alone. A run that they paid for resumes."""
    with Ledger.in_memory() as ledger:
        ledger.open_budget(dataset="series", unit=Workers(), total=Pure(9), policy=Policy("quarter", Fraction(1)))
        old = {"kind": "flows", "quarter": ["2024Q2"], "period": "2024-Q2"}
        asked = {"dataset": "series", "unit": Workers(), "release": "old", "loss": Pure(1)}
        line = ledger.charge(**asked, details=old)
        charged(ledger, "next", 1, "2024-Q3")
        [budget] = ledger.budgets()
        assert budget.periods == {"2024-Q2": 1, "2024-Q3": 1} and ledger.verify()
        again = ledger.charge(**asked, details=old | {"periods": ["2024-Q1", "2024-Q2", "2024-Q3"]})
        assert again == line


@pytest.mark.parametrize("periods", [5, "2024-Q1", ["2024-Q1", 7], ["spring"], [None], {"2024-Q1": 1}])
def test_periods_that_are_none_are_refused(periods: object) -> None:
    with Ledger.in_memory() as ledger:
        ledger.open_budget(dataset="series", unit=Workers(), total=Pure(9), policy=Policy("quarter", Fraction(1)))
        details = {"period": "2024-Q1", "periods": periods}
        with pytest.raises(PrivacyError) as error:
            ledger.charge(dataset="series", unit=Workers(), release="odd", loss=Pure(1), details=details)
        assert error.value.about == "period" and ledger.budgets()[0].spent == Pure(0)


def test_a_replay_refuses_a_line_that_overspends_an_earlier_quarter() -> None:
    """Sealed as a line should be, but written by a program without the rule."""
    with Ledger.in_memory() as ledger:
        ledger.open_budget(dataset="series", unit=Workers(), total=Pure(9), policy=Policy("quarter", Fraction(1)))
        first = ledger.charge(
            dataset="series", unit=Workers(), release="a", loss=Pure(1), details={"period": "2024-Q1"}
        )
        rows = [entry.to_row() for entry in ledger.entries()]
        for periods, holds in ((["2024-Q2"], True), (["2024-Q1", "2024-Q2"], False)):
            forged = Entry.after(
                first.head,
                kind="charge",
                dataset="series",
                unit=first.unit,
                release="b",
                loss=Pure(1),
                spent_after=Pure(2),
                payload={**first.payload, "details": {"period": "2024-Q2", "periods": periods}},
            )
            assert bool(chain.verify([*rows, forged.to_row()])) is holds


@pytest.mark.parametrize("wrong", [{"per_period": 1}, {"period": "spring"}, {"period": "2026-Q1", "per_period": 0}])
def test_a_session_without_a_period_that_can_be_told_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises((DataError, PrivacyError)) as error:
        dc.Session(some_jobs(), unit=dc.Workers(), budget=3, **wrong)
    assert error.value.about in ("period", "policy")
