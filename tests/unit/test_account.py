"""The one door: charged before it is drawn, fixed before it is shown, and honest about seeds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from discreet.ledger import Entry
from discreet.noise.source import Source
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Pure
from discreet.privacy.units import AnyRow
from discreet.release.account import Account
from discreet.release.canonical import canonical, fingerprints
from discreet.release.offer import Offer
from discreet.words.errors import BudgetExceeded, PrivacyError

PROMISE = Guarantee(AnyRow(), Pure(1))


def drawing(draw: Any, **changed: Any) -> Offer[None, None, Any]:
    """An offer that reads nothing."""
    found: Offer[None, None, Any] = Offer(PROMISE, {}, dict, lambda data: data, lambda reading, source: draw(source))  # type: ignore[arg-type]
    return replace(found, **changed)


def opened(path: Path, **options: int) -> Account:
    return Account.open(path / "ledger.db", dataset="d", unit=AnyRow(), budget=Pure(2), **options)


def test_the_ledger_is_charged_before_noise_is_drawn(tmp_path: Path) -> None:
    account = opened(tmp_path)

    def draw(source: Source) -> int:
        assert account.remaining == Pure(1)
        assert [entry.kind for entry in account.ledger.entries()][-1] == "charge"
        return 7

    done = account.release(drawing(draw), None, name="r")
    assert done.value == 7 and [entry.kind for entry in account.ledger.entries()][-1] == "publish"


def test_what_fails_after_its_charge_stays_paid_and_unpublished(tmp_path: Path) -> None:
    account = opened(tmp_path)
    with pytest.raises(ZeroDivisionError):
        account.release(drawing(lambda source: 1 // 0), None, name="r")
    assert account.remaining == Pure(1) and [entry.kind for entry in account.ledger.entries()][-1] == "charge"


def test_a_name_is_drawn_once_and_a_budget_ends(tmp_path: Path) -> None:
    account, drawn = opened(tmp_path), []
    account.release(drawing(lambda source: drawn.append(1) or 1), None, name="r")
    with pytest.raises(PrivacyError):
        account.release(drawing(lambda source: drawn.append(2) or 2), None, name="r")
    account.release(drawing(lambda source: drawn.append(3) or 3), None, name=None)
    with pytest.raises(BudgetExceeded):
        account.release(drawing(lambda source: drawn.append(4) or 4), None, name=None)
    assert drawn == [1, 3]


def test_a_seed_marks_the_release_and_its_ledger_line(tmp_path: Path) -> None:
    seeded = opened(tmp_path, seed=1).release(drawing(lambda source: source.private), None, name="r")
    assert seeded.value is False and not seeded.guarantee.private
    assert str(seeded.guarantee).startswith("NOT PRIVATE: the noise was seeded")
    assert seeded.entry.payload["details"]["private"] is False


def test_the_ledger_knows_the_value_that_was_paid_for(tmp_path: Path) -> None:
    account = opened(tmp_path)
    for value in (7, 8):
        account.release(drawing(lambda source, value=value: value), None, name=f"r{value}")
    seals = [entry.payload["files"]["value"] for entry in account.ledger.entries() if entry.kind == "publish"]
    assert seals == [fingerprints(7)["value"], fingerprints(8)["value"]] and seals[0] != seals[1]


def test_a_caution_survives_private_noise(tmp_path: Path) -> None:
    promise = Guarantee(AnyRow(), Pure(1), basis="as published", caution="The published noise is too small")
    done = opened(tmp_path).release(drawing(lambda source: source.private, guarantee=promise), None, name="r")
    assert done.value is True and not done.guarantee.private
    assert str(done.guarantee).startswith("NOT PRIVATE. The published noise is too small. NOT PROVED")
    assert done.entry.payload["details"]["basis"] == "as published"


def test_a_seed_marks_the_files_of_a_release_too(tmp_path: Path) -> None:
    account = opened(tmp_path, seed=1)

    def write(value: bool, guarantee: Guarantee, entry: Entry, folder: Path) -> None:
        (folder / "promise.txt").write_text(f"{value} {guarantee}")

    offer = drawing(lambda source: source.private, write=write)
    account.publish(offer, None, tmp_path / "r", name="r")
    assert (tmp_path / "r" / "promise.txt").read_text().startswith("False NOT PRIVATE: the noise was seeded")


def test_everything_is_read_before_the_charge_and_nothing_when_it_is_released(tmp_path: Path) -> None:
    account, read = opened(tmp_path), []

    def reading(data: str) -> str:
        assert not any(entry.kind == "charge" for entry in account.ledger.entries() if entry.release == data)
        read.append(data)
        return data

    offer: Offer[str, str, Any] = replace(drawing(lambda source: 1), read=reading)  # type: ignore[assignment]
    account.release(offer, "first", name="first")
    account.publish(offer, "second", tmp_path / "second", name="second")
    assert account.publish(offer, "never", tmp_path / "second", name="second").kind == "publish"
    assert read == ["first", "second"]


def test_what_cannot_be_read_costs_nothing(tmp_path: Path) -> None:
    account = opened(tmp_path)
    offer = drawing(lambda source: 1, read=lambda data: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        account.release(offer, None)
    with pytest.raises(ZeroDivisionError):
        account.publish(offer, None, tmp_path / "r", name="r")
    assert account.remaining == Pure(2)


def test_a_published_offer_is_a_folder_that_the_ledger_knows(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    from discreet.ledger.publication import check_release

    account = opened(tmp_path)
    account.publish(drawing(lambda source: [1, 2]), None, tmp_path / "r", name="r")
    assert check_release(account.ledger, tmp_path / "r" / "release.json") == ""
    assert pq.read_table(tmp_path / "r" / "value.parquet")["value"].to_pylist() == [1, 2]


def test_the_bytes_of_a_table_depend_on_its_values_alone() -> None:
    import numpy as np
    import pyarrow as pa

    words = ["a", None, "b", "a"]
    one = pa.table({"k": pa.array(words), "x": pa.array([1.0, np.nan, 3.0, 4.0], mask=np.array([0, 1, 0, 0], bool))})
    whole = pa.chunked_array([["z", "a"], [None, "b", "a"]]).slice(1)
    other = pa.table(
        {
            "k": whole.cast(pa.large_string()),
            "x": pa.array([1.0, np.inf, 3.0, 4.0], mask=np.array([0, 1, 0, 0], bool)),
        },
        metadata={"made": "elsewhere"},
    )
    coded = pa.table({"k": pa.array(words).dictionary_encode(), "x": [1.0, None, 3.0, 4.0]})
    assert canonical(one) == canonical(other) == canonical(coded)
    assert pa.ipc.open_stream(canonical(one)).read_all()["x"].to_pylist() == [1.0, 0.0, 3.0, 4.0]
    for changed in ({"k": [*words[:3], "c"]}, {"x": [1.0, 2.0, 3.0, 4.0]}, {"x": [1.0, 0.0, 3.0, 4.0]}):
        columns = {name: one[name] for name in one.column_names} | changed
        assert canonical(pa.table(columns)) != canonical(one), changed
