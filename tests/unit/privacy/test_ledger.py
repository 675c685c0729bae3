"""The rules of spending: exact sums, refusals that say what is missing, one request per name, one draw per charge."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.ledger import Entry, Ledger
from discreet.ledger.budget import readable
from discreet.privacy.losses import Approximate, Concentrated, Loss, Pure
from discreet.privacy.units import Establishments, Unit, Workers
from discreet.words.errors import BudgetExceeded, LedgerError, PrivacyError
from faults_of import about

JOBS = {"dataset": "jobs", "unit": Workers()}
HASHES = {"table.parquet": "a" * 64}


@pytest.fixture
def ledger() -> Ledger:
    with Ledger.in_memory() as opened:
        opened.open_budget(total=Pure(1), **JOBS)
        yield opened


def paid_from(total: Loss, *losses: Loss) -> Loss:
    with Ledger.in_memory() as ledger:
        ledger.open_budget(total=total, **JOBS)
        for number, loss in enumerate(losses):
            ledger.charge(release=f"r{number}", loss=loss, **JOBS)
        return ledger.remaining("jobs", Workers())


def test_ten_tenths_are_one_and_an_eleventh_is_refused(ledger: Ledger) -> None:
    for number in range(10):
        ledger.charge(release=f"r{number}", loss=Pure(0.1), **JOBS)
    assert ledger.remaining("jobs", Workers()) == Pure(0)
    before = ledger.head
    with pytest.raises(BudgetExceeded):
        ledger.charge(release="r10", loss=Pure("1e-30"), **JOBS)
    assert ledger.head == before, "a refusal wrote something"


@settings(max_examples=25, deadline=None)
@given(st.lists(st.fractions(0, 1, max_denominator=97), max_size=12))
def test_spending_is_exact(costs: list[Fraction]) -> None:
    left, refused = Fraction(1), 0
    with Ledger.in_memory() as ledger:
        ledger.open_budget(total=Pure(1), **JOBS)
        for number, cost in enumerate(costs):
            try:
                ledger.charge(release=f"r{number}", loss=Pure(cost), **JOBS)
            except BudgetExceeded:
                refused += 1
                assert cost > left
            else:
                left -= cost
        assert ledger.remaining("jobs", Workers()) == Pure(left)
        assert sum(entry.kind == "charge" for entry in ledger.entries()) == len(costs) - refused
        assert ledger.verify()


def test_refusal_says_requested_remaining_difference(ledger: Ledger) -> None:
    ledger.charge(release="first", loss=Pure("2/3"), **JOBS)
    with pytest.raises(BudgetExceeded) as refusal:
        ledger.charge(release="county", loss=Pure(0.75), **JOBS)
    lines = str(refusal.value).splitlines()
    assert lines[0] == "Release 'county' asks for more than 'jobs' has left under workers."
    assert lines[1:4] == [
        "  Requested:  epsilon=0.75",
        "  Remaining:  epsilon=1/3 (about 0.333333)",
        "  Difference: epsilon=5/12 (about 0.416667)",
    ]
    assert "Ask for at most epsilon=1/3" in lines[4]


def test_what_is_printed_as_remaining_can_be_spent() -> None:
    assert readable(Fraction(1, 3)).split()[0] == "1/3"
    assert readable(Fraction(1, 4)) == "0.25"
    assert Fraction(readable(Fraction(10**13 + 1, 10**13)).split()[0]) == Fraction(10**13 + 1, 10**13)


def test_pure_epsilon_is_paid_from_every_currency() -> None:
    assert paid_from(Approximate(1, "1e-6"), Pure("0.25")) == Approximate("0.75", "1e-6")
    assert paid_from(Concentrated(1), Pure(1)) == Concentrated("0.5")  # rho = epsilon^2 / 2
    assert paid_from(Pure(1), Approximate("0.25", 0)) == Pure("0.75")


def test_rho_is_not_paid_from_an_epsilon_budget() -> None:
    with pytest.raises(PrivacyError, check=about("loss")):
        paid_from(Pure(10), Concentrated("0.001"))
    with pytest.raises(PrivacyError):
        paid_from(Approximate(10, "0.1"), Concentrated("0.001"))


def test_delta_is_counted_on_its_own() -> None:
    with pytest.raises(BudgetExceeded, check=about("epsilon")):
        paid_from(Pure(10), Approximate(1, "1e-6"))
    with pytest.raises(BudgetExceeded, check=about("epsilon")):
        paid_from(Approximate(10, "0.1"), Approximate(1, "0.1"), Approximate(1, "0.05"))


def test_a_budget_is_opened_once(ledger: Ledger) -> None:
    before = ledger.head
    assert ledger.open_budget(total=Pure("1.0"), **JOBS).total == Pure(1)
    assert ledger.head == before
    for other in (Pure(2), Approximate(1, "1e-6"), Concentrated(1)):
        with pytest.raises(PrivacyError, check=about("total")):
            ledger.open_budget(total=other, **JOBS)
    with pytest.raises(PrivacyError, check=about("total")):
        ledger.open_budget(dataset="new", unit=Workers(), total=Pure(0))
    assert ledger.head == before


def test_one_unit_per_data_set_unless_allowed(ledger: Ledger) -> None:
    second: Unit = Establishments(alpha=0.1)
    with pytest.raises(PrivacyError, check=about("unit")):
        ledger.open_budget(dataset="jobs", unit=second, total=Pure(1))
    ledger.open_budget(dataset="jobs", unit=second, total=Pure(3), allow_second_unit=True)
    assert ledger.entries(last=1)[0].payload["second_unit"] is True
    ledger.charge(dataset="jobs", unit=second, release="places", loss=Pure(2))
    assert ledger.remaining("jobs", Workers()) == Pure(1)
    assert [str(budget.remaining) for budget in ledger.budgets()] == ["epsilon=1", "epsilon=1"]
    assert ledger.verify()


def test_changing_a_budget_needs_a_reason_and_covers_what_is_spent(ledger: Ledger) -> None:
    ledger.charge(release="first", loss=Pure("0.75"), **JOBS)
    two = {"by": "anna", "confirmed_by": "rita"}
    with pytest.raises(PrivacyError, check=about("reason")):
        ledger.change_budget(total=Pure(2), reason=" ", **two, **JOBS)
    for total in (Pure("0.5"), Concentrated(5), Approximate(5, "0.1")):
        with pytest.raises(PrivacyError, check=about("total")):
            ledger.change_budget(total=total, reason="board, 2026-03-01", **two, **JOBS)
    assert ledger.change_budget(total=Pure(2), reason="board, 2026-03-01", **two, **JOBS).remaining == Pure("1.25")
    assert ledger.entries(last=1)[0].payload["reason"] == "board, 2026-03-01"
    assert ledger.open_budget(total=Pure(2), **JOBS).spent == Pure("0.75")
    assert ledger.verify()


def test_two_people_raise_a_budget(ledger: Ledger) -> None:
    """One alone can only lower it; the same person under another spelling is one person."""
    for second in (None, "", "anna", " Anna ", "ANNA"):
        before = ledger.head
        with pytest.raises(PrivacyError) as refused:
            ledger.change_budget(total=Pure(3), reason="board", by="anna", confirmed_by=second, **JOBS)
        assert refused.value.about == "confirmed_by"
        assert ledger.head == before, "a refusal wrote something"
    assert ledger.change_budget(
        dataset="jobs", total=Pure(3), reason="board", by="anna", confirmed_by="rita"
    ).total == Pure(3)
    first, last = ledger.entries()
    assert (last.payload["by"], last.payload["confirmed_by"]) == ("anna", "rita")
    assert last.payload["protects"] == first.payload["protects"]
    assert ledger.change_budget(dataset="jobs", total=Pure(2), reason="less", by="anna").total == Pure(2)
    assert ledger.verify()


def test_a_budget_is_named_by_its_data_where_that_is_enough(ledger: Ledger) -> None:
    two = {"reason": "board", "by": "anna", "confirmed_by": "rita", "total": Pure(4)}
    with pytest.raises(PrivacyError) as refused:
        ledger.change_budget(dataset="wages", **two)
    assert refused.value.about == "dataset"
    ledger.open_budget(dataset="jobs", unit=Establishments(alpha=0.1), total=Pure(3), allow_second_unit=True)
    with pytest.raises(PrivacyError) as refused:
        ledger.change_budget(dataset="jobs", **two)
    assert refused.value.about == "unit"
    assert ledger.change_budget(dataset="jobs", unit=Establishments(alpha=0.1), **two).total == Pure(4)
    assert [budget.total for budget in ledger.budgets()] == [Pure(1), Pure(4)]


def test_an_interrupted_release_resumes_without_paying_twice(ledger: Ledger) -> None:
    request = {"release": "county", "loss": Pure("0.5"), "details": {"by": ["place"], "seed": None}, **JOBS}
    entry = ledger.charge(**request)
    again = ledger.charge(**request)
    assert again == entry and again.draw != entry.draw
    assert ledger.spent("jobs", Workers()) == Pure("0.5")
    for change in ({"loss": Pure("0.4")}, {"details": {"by": ["sector"], "seed": None}}):
        with pytest.raises(PrivacyError, check=about("release")):
            ledger.charge(**request | change)
    published = ledger.publish(again, files=HASHES)
    with pytest.raises(PrivacyError, check=about("release")):
        ledger.charge(**request)
    assert published.payload["charge"] == entry.seq
    assert ledger.published("jobs", "county") == published
    assert ledger.charged("jobs", "county") == entry == ledger.find(entry.hash)


def test_one_charge_pays_for_one_draw(ledger: Ledger) -> None:
    entry = ledger.charge(release="county", loss=Pure("0.5"), **JOBS)
    for files in ({}, {"table.parquet": "b" * 63}, {"table.parquet": "table"}):
        with pytest.raises(PrivacyError, check=about("files")):
            ledger.publish(entry, files=files)
    published = ledger.publish(entry, files=HASHES)
    assert ledger.publish(entry, files=HASHES) == published
    with pytest.raises(PrivacyError, check=about("files")):
        ledger.publish(entry, files={"table.parquet": "b" * 64})
    with Ledger.in_memory() as other, pytest.raises(PrivacyError, check=about("entry")):
        other.open_budget(total=Pure(1), **JOBS)
        other.publish(entry, files=HASHES)
    with Ledger.in_memory() as other, pytest.raises(PrivacyError, check=about("entry")):
        other.open_budget(total=Pure(1), **JOBS)
        other.charge(release="county", loss=Pure("0.25"), **JOBS)
        other.publish(entry, files=HASHES)
    assert ledger.verify()


def test_charge_without_a_budget_lists_what_there_is(ledger: Ledger) -> None:
    with pytest.raises(PrivacyError, check=about("dataset")):
        ledger.charge(dataset="wages", unit=Workers(), release="r", loss=Pure(1))


@pytest.mark.parametrize("name", ["", " county", "a\nb", "\x1b[31mred", "x" * 201, "\udcff"])
def test_names_are_printable(ledger: Ledger, name: str) -> None:
    with pytest.raises(PrivacyError, check=about("release")):
        ledger.charge(release=name, loss=Pure("0.1"), **JOBS)
    with pytest.raises(PrivacyError, check=about("dataset")):
        ledger.open_budget(dataset=name, unit=Workers(), total=Pure(1))


@pytest.mark.parametrize("details", [{"rows": object()}, {"x": float("nan")}, {1: 2, "a": 3}])
def test_details_are_json(ledger: Ledger, details: dict[str, object]) -> None:
    with pytest.raises(PrivacyError, check=about("details")):
        ledger.charge(release="r", loss=Pure("0.1"), details=details, **JOBS)
    assert ledger.head.seq == 1


def test_an_entry_says_who_when_and_with_which_version(ledger: Ledger) -> None:
    entry = ledger.charge(release="r", loss=Pure("0.1"), details={"by": ("place",)}, by="officer", **JOBS)
    assert entry.payload["by"] == "officer"
    assert entry.payload["at"].endswith("+00:00")
    assert entry.payload["version"]
    assert entry.payload["details"] == {"by": ["place"]}
    assert Entry.from_row(entry.to_row()) == entry
    assert entry.to_dict()["loss"] == {"epsilon": "1/10"}
    assert entry.reference == {"seq": 2, "hash": entry.hash}


def test_threads_share_a_ledger(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def spend(number: int) -> bool:
        try:
            ledger.charge(release=f"r{number}", loss=Pure("0.1"), **JOBS)
        except BudgetExceeded:
            return False
        return True

    for ledger in (Ledger.in_memory(), Ledger.open(tmp_path / "ledger.db")):
        with ledger, ThreadPoolExecutor(8) as pool:
            ledger.open_budget(total=Pure(1), **JOBS)
            assert sum(pool.map(spend, range(24))) == 10
            assert ledger.verify()


def test_a_ledger_that_was_edited_takes_no_charge(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "ledger.db"
    with Ledger.open(path) as ledger:
        ledger.open_budget(total=Pure(1), **JOBS)
        ledger.charge(release="all", loss=Pure(1), **JOBS)
    with sqlite3.connect(path) as database:
        database.execute("DROP TRIGGER discreet_ledger_no_UPDATE")
        database.execute("""UPDATE discreet_ledger SET spent_after = '{"epsilon":"0"}' WHERE seq = 2""")
    database.close()
    with Ledger.open(path) as ledger, pytest.raises(LedgerError, check=about("ledger")):
        ledger.charge(release="again", loss=Pure(1), **JOBS)
