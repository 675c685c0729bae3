"""The one door: charged before it is drawn, fixed before it is shown, and honest about seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.errors import BudgetExceeded, PrivacyError
from discreet.ledger import Entry
from discreet.noise.source import Source
from discreet.plan.folders import FolderAccount
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Pure
from discreet.privacy.units import AnyRow
from discreet.release.account import Account, fingerprint

PROMISE = Guarantee(AnyRow(), Pure(1))


def opened(path: Path, **options: int) -> Account:
    return Account.open(path / "ledger.db", dataset="d", unit=AnyRow(), budget=Pure(2), **options)


def test_the_ledger_is_charged_before_noise_is_drawn(tmp_path: Path) -> None:
    account = opened(tmp_path)

    def draw(source: Source) -> int:
        assert account.remaining == Pure(1)
        assert [entry.kind for entry in account.ledger.entries()][-1] == "charge"
        return 7

    done = account.release("r", guarantee=PROMISE, draw=draw)
    assert done.value == 7 and [entry.kind for entry in account.ledger.entries()][-1] == "publish"


def test_what_fails_after_its_charge_stays_paid_and_unpublished(tmp_path: Path) -> None:
    account = opened(tmp_path)
    with pytest.raises(ZeroDivisionError):
        account.release("r", guarantee=PROMISE, draw=lambda source: 1 // 0)
    assert account.remaining == Pure(1) and [entry.kind for entry in account.ledger.entries()][-1] == "charge"


def test_a_name_is_drawn_once_and_a_budget_ends(tmp_path: Path) -> None:
    account, drawn = opened(tmp_path), []
    account.release("r", guarantee=PROMISE, draw=lambda source: drawn.append(1))
    with pytest.raises(PrivacyError):
        account.release("r", guarantee=PROMISE, draw=lambda source: drawn.append(2))
    account.release(None, guarantee=PROMISE, draw=lambda source: drawn.append(3))
    with pytest.raises(BudgetExceeded):
        account.release(None, guarantee=PROMISE, draw=lambda source: drawn.append(4))
    assert drawn == [1, 3]


def test_a_seed_marks_the_release_and_its_ledger_line(tmp_path: Path) -> None:
    seeded = opened(tmp_path, seed=1).release("r", guarantee=PROMISE, draw=lambda source: source.private)
    assert seeded.value is False and not seeded.guarantee.private
    assert str(seeded.guarantee).startswith("NOT PRIVATE: the noise was seeded")
    assert seeded.entry.payload["details"]["private"] is False


def test_the_ledger_knows_the_value_that_was_paid_for(tmp_path: Path) -> None:
    account = opened(tmp_path)
    for value in (7, 8):
        account.release(f"r{value}", guarantee=PROMISE, draw=lambda source, value=value: value)
    seals = [entry.payload["files"]["value"] for entry in account.ledger.entries() if entry.kind == "publish"]
    assert seals == [fingerprint(7), fingerprint(8)] and seals[0] != seals[1]


def test_a_caution_survives_private_noise(tmp_path: Path) -> None:
    promise = Guarantee(AnyRow(), Pure(1), basis="as published", caution="The published noise is too small")
    done = opened(tmp_path).release("r", guarantee=promise, draw=lambda source: source.private)
    assert done.value is True and not done.guarantee.private
    assert str(done.guarantee).startswith("NOT PRIVATE. The published noise is too small. NOT PROVED")
    assert done.entry.payload["details"]["basis"] == "as published"


def test_a_seed_marks_the_files_of_a_release_too(tmp_path: Path) -> None:
    account = FolderAccount.open(tmp_path / "ledger.db", dataset="d", unit=AnyRow(), budget=Pure(2), seed=1)
    assert isinstance(account, FolderAccount)

    def write(source: Source, guarantee: Guarantee, entry: Entry, folder: Path) -> None:
        (folder / "promise.txt").write_text(f"{source.private} {guarantee}")

    account.release_folder("r", guarantee=PROMISE, folder=tmp_path / "r", write=write, details={})
    assert (tmp_path / "r" / "promise.txt").read_text().startswith("False NOT PRIVATE: the noise was seeded")
