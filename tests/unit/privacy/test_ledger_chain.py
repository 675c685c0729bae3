"""Verification finds every edit: of the text, of the links, and of the sums even when all seals were made anew."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.ledger import Ledger
from discreet.ledger.chain import verify
from discreet.ledger.entries import Entry
from discreet.privacy.losses import Approximate, Pure
from discreet.privacy.units import Establishments, Workers

Row = dict[str, Any]
GENESIS = hashlib.sha256(b"discreet ledger, format 1").hexdigest()


def resealed(rows: list[Row]) -> list[Row]:
    """The chain as a forger would rebuild it, written from the documentation and not from the code."""
    previous, chain = GENESIS, []
    for row in rows:
        row = {**row, "previous": previous}
        del row["hash"]
        text = json.dumps(row, sort_keys=True, separators=(",", ":"))
        previous = hashlib.sha256(text.encode("ascii")).hexdigest()
        chain.append({**row, "hash": previous})
    return chain


@pytest.fixture(scope="module")
def book() -> list[Row]:
    """Two data sets, a budget that was raised, a publication, a zero loss, and a name that is not ASCII."""
    jobs, wages = {"dataset": "jobs", "unit": Workers()}, {"dataset": "Löhne", "unit": Establishments(alpha=0.1)}
    with Ledger.in_memory() as ledger:
        ledger.open_budget(total=Pure(1), **jobs)
        first = ledger.charge(release="county", loss=Pure("1/3"), details={"by": ["place"], "x": 0.1}, **jobs)
        ledger.open_budget(total=Approximate(1, "1e-6"), **wages)
        ledger.publish(first, files={"table.csv": "a" * 64})
        ledger.change_budget(total=Pure(2), reason="board", by="anna", confirmed_by="rita", **jobs)
        ledger.charge(release="state", loss=Pure("5/3"), **jobs)
        ledger.charge(release="free", loss=Pure(0), **wages)
        return [entry.to_row() for entry in ledger.entries()]


def test_the_documented_recipe_gives_the_same_seals(book: list[Row]) -> None:
    assert resealed(book) == book
    assert verify(book).intact
    assert verify([]).head.seq == 0


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_edit_of_any_column_is_found_where_it_is(book: list[Row], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(book) - 1))
    column = data.draw(st.sampled_from(sorted(book[0])))
    old = book[place][column]
    values = st.one_of(st.none(), st.text(max_size=5), st.integers(), st.binary(max_size=3))
    new = data.draw(values.filter(lambda value: value != old))
    verdict = verify([*book[:place], {**book[place], column: new}, *book[place + 1 :]])
    assert not verdict.intact
    assert verdict.seq == place + 1
    assert verdict.head.seq == place


@pytest.mark.parametrize(
    ("change", "seq", "fault"),
    [
        (lambda rows: rows[:2] + rows[3:], 3, "it is missing: the next line found is entry 4"),
        (lambda rows: rows[1:], 1, "it is missing"),
        (lambda rows: [*rows[:3], rows[4], rows[3], *rows[5:]], 4, "it is missing"),
        (lambda rows: [*rows[:3], {**rows[3], "previous": "0" * 64}, *rows[4:]], 4, "the link is broken"),
        (lambda rows: [*rows, rows[-1]], 8, "it is missing"),
    ],
)
def test_lines_removed_swapped_or_repeated(
    book: list[Row], change: Callable[[list[Row]], list[Row]], seq: int, fault: str
) -> None:
    verdict = verify(change(book))
    assert (verdict.intact, verdict.seq) == (False, seq)
    assert verdict.fault.startswith(fault)


def edited(rows: list[Row], seq: int, **columns: object) -> list[Row]:
    return resealed([{**row, **columns} if row["seq"] == seq else row for row in rows])


def payload(rows: list[Row], seq: int, **facts: object) -> list[Row]:
    old = json.loads(rows[seq - 1]["payload"])
    return edited(rows, seq, payload=json.dumps(old | facts, sort_keys=True, separators=(",", ":")))


@pytest.mark.parametrize(
    ("forge", "seq", "fault"),
    [
        (lambda rows: edited(rows, 2, loss='{"epsilon":"1/4"}'), 2, "it says epsilon=0.333333333334 is spent where"),
        (lambda rows: edited(rows, 2, loss='{"epsilon":"4/3"}'), 2, "overspent"),
        (lambda rows: edited(rows, 5, loss='{"epsilon":"1/4"}'), 5, "overspent"),
        (lambda rows: edited(rows, 5, loss='{"epsilon":"1"}'), 6, "overspent"),
        (lambda rows: edited(rows, 2, loss='{"epsilon":"2/6"}'), 2, "a loss or the payload is not canonical"),
        (lambda rows: edited(rows, 2, loss='{"epsilon":"-1/3"}'), 2, "a loss or the payload is not canonical"),
        (lambda rows: edited(rows, 2, loss='{"sigma":"1/3"}'), 2, "a loss or the payload is not canonical"),
        (lambda rows: edited(rows, 2, loss='{"rho":"1/3"}'), 2, "overspent"),
        (lambda rows: edited(rows, 2, loss=None), 2, "a charge has a loss"),
        (lambda rows: edited(rows, 2, payload="[]"), 2, "a loss or the payload is not canonical"),
        (lambda rows: edited(rows, 2, payload='{"a": 1}'), 2, "a loss or the payload is not canonical"),
        (lambda rows: edited(rows, 2, spent_after="null"), 2, "a loss or the payload is not canonical"),
        (lambda rows: edited(rows, 2, kind="refund"), 2, "kind 'refund' is unknown"),
        (lambda rows: edited(rows, 2, dataset="other"), 2, "'other' has no budget"),
        (lambda rows: edited(rows, 3, dataset="jobs"), 3, "it opens a second unit"),
        (lambda rows: edited(rows, 3, release="county"), 3, "a budget has a total and no release"),
        (lambda rows: payload(rows, 5, reason=""), 5, "the budget was changed without a reason"),
        (lambda rows: payload(rows, 4, charge=3), 4, "release 'county' is published without its charge"),
        (lambda rows: edited(rows, 4, release="state"), 4, "release 'state' is published without its charge"),
        (lambda rows: payload(rows, 4, files={}), 4, "a publication has files"),
        (lambda rows: edited(rows, 4, spent_after='{"epsilon":"0"}'), 4, "it says epsilon=0 is spent"),
        (lambda rows: edited(rows, 6, release="county"), 6, "release 'county' is charged twice"),
        (lambda rows: resealed([*rows, {**rows[3], "seq": 8}]), 8, "release 'county' is published twice"),
    ],
)  # fmt: skip
def test_a_forger_who_seals_anew_still_cannot_break_the_rules(
    book: list[Row], forge: Callable[[list[Row]], list[Row]], seq: int, fault: str
) -> None:
    verdict = verify(forge(book))
    assert verdict.fault.startswith(fault)
    assert (verdict.intact, verdict.seq) == (False, seq)


def test_a_known_hash_betrays_a_cut_and_a_rewritten_chain(book: list[Row]) -> None:
    known = book[5]["hash"]
    assert verify(book, contains=[known, book[0]["hash"]])
    for chain in (book[:5], payload(book, 1, by="someone else")):
        assert verify(chain), "the chain alone cannot tell"
        verdict = verify(chain, contains=[known])
        assert not verdict
        assert verdict.seq is None
        assert known in verdict.fault
        assert "cut off or rewritten" in str(verdict)


def entries(rows: list[Row]) -> list[Entry]:
    return [Entry.from_row(row) for row in rows]


def of_others(*names: str) -> list[Row]:
    """Another whole chain, of data with these names."""
    with Ledger.in_memory() as ledger:
        for name in names:  # another total: the first lines of two ledgers of one second would be the same
            ledger.open_budget(dataset=name, unit=Workers(), total=Pure(3))
            ledger.charge(dataset=name, unit=Workers(), release="x", loss=Pure(1))
        return [entry.to_row() for entry in ledger.entries()]


@pytest.mark.parametrize(
    ("chain", "known", "told"),
    [
        (lambda book: book, lambda book: book, ""),
        (lambda book: book[:5], lambda book: book, "it was cut off after entry 5"),
        (lambda book: book[:5], lambda book: book[5:], "it was cut off after entry 5"),
        (lambda book: book[:3], lambda book: book[5:], "it was cut off, or this is another ledger"),
        (lambda book: [], lambda book: book, "it was cut off, or this is another ledger"),
        (lambda book: payload(book, 4, by="me"), lambda book: book, "it was rewritten from entry 4 or before"),
        (lambda book: payload(book, 4, by="me"), lambda book: book[4:], "another ledger, or was written anew"),
        (lambda book: payload(book, 6, by="me"), lambda book: book[5:], "it was rewritten from entry 6 or before"),
        (lambda book: of_others("a", "b", "c", "d"), lambda book: book, "another ledger, without 'Löhne', 'jobs'"),
        (lambda book: of_others("jobs", "b", "c", "d"), lambda book: book, "another ledger, or was written anew"),
    ],
)
def test_known_lines_tell_what_became_of_a_chain(
    book: list[Row], chain: Callable[[list[Row]], list[Row]], known: Callable[[list[Row]], list[Row]], told: str
) -> None:
    lines = entries(known(book))
    verdict = verify(chain(book), contains=[lines[-1].head, *lines])
    assert verdict.intact is not bool(told) and told in verdict.fault, str(verdict)
    assert "broken" not in str(verdict), "every line is as it was sealed"


@pytest.mark.parametrize("statement", ["UPDATE discreet_ledger SET release = 'x'", "DELETE FROM discreet_ledger"])
def test_the_database_refuses_changes(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "ledger.db"
    with Ledger.open(path) as ledger:
        ledger.open_budget(dataset="jobs", unit=Workers(), total=Pure(1))
    database = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        database.execute(statement)
    database.close()


def test_a_replaced_row_is_found(tmp_path: Path) -> None:
    """INSERT OR REPLACE does not fire SQLite's delete trigger; the chain is what proves."""
    path = tmp_path / "ledger.db"
    with Ledger.open(path) as ledger:
        ledger.open_budget(dataset="jobs", unit=Workers(), total=Pure(1))
        entry = ledger.charge(dataset="jobs", unit=Workers(), release="r", loss=Pure(1))
    row = entry.to_row() | {"loss": '{"epsilon":"1/2"}', "spent_after": '{"epsilon":"1/2"}'}
    with sqlite3.connect(path) as database:
        database.execute(f"INSERT OR REPLACE INTO discreet_ledger VALUES ({','.join('?' * len(row))})", [*row.values()])
    database.close()
    with Ledger.open(path, read_only=True) as ledger:
        verdict = ledger.verify()
    assert (verdict.seq, verdict.fault) == (2, "the hash does not match the content: the line was edited")


def test_progress_sees_every_row(tmp_path: Path) -> None:
    seen: list[int] = []

    def watch(rows, total):
        assert total == 2
        for row in rows:
            seen.append(row["seq"])
            yield row

    with Ledger.in_memory() as ledger:
        ledger.open_budget(dataset="jobs", unit=Workers(), total=Pure(1))
        ledger.charge(dataset="jobs", unit=Workers(), release="r", loss=Pure(1))
        assert ledger.verify(watch=watch)
    assert seen == [1, 2]
