"""A ledger that lost lines is refused before anything is paid, on each engine; and each way out of that."""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from discreet.ledger import Ledger
from discreet.ledger.anchors import ANCHORS, Anchor, AnchorFile, LostLedger, OutputFolder, note_of
from discreet.ledger.entries import EntryError
from discreet.ledger.store import NAME
from discreet.privacy.losses import Approximate, Pure
from discreet.privacy.units import Establishments, Workers
from discreet.words.errors import LedgerError, PrivacyError
from faults_of import about

UNIT = Workers()
TWO_PEOPLE = {"reason": "the disk died", "by": "anna", "confirmed_by": "rita"}


def opened(where: str | Path, *places: object, total: object = 8, dataset: str = "jobs") -> Ledger:
    ledger = Ledger.open(where, places=places)
    try:
        ledger.open_budget(dataset=dataset, unit=UNIT, total=Pure(total))
    except BaseException:
        ledger.close()
        raise
    return ledger


def pay(
    where: str | Path, *releases: str, places: tuple[object, ...] = (), dataset: str = "jobs", price: int = 2
) -> None:
    with opened(where, *places, dataset=dataset) as ledger:
        for release in releases:
            entry = ledger.charge(dataset=dataset, unit=UNIT, release=release, loss=Pure(price))
            ledger.publish(entry, files={"table.csv": "0" * 64})


@contextmanager
def another_user() -> Iterator[None]:
    """Somebody, or another machine, who has no note of any ledger yet."""
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", home)
        yield


def spent(where: str | Path, dataset: str = "jobs") -> str:
    with Ledger.open(where, read_only=True) as ledger:
        return str(ledger.spent(dataset, UNIT))


def lines(where: str | Path) -> int:
    with Ledger.open(where, read_only=True) as ledger:
        return ledger.head.seq


def cut(where: str, keep: int) -> None:
    """Bring an earlier state of the ledger back, as a backup does."""
    database = sa.create_engine(where if "://" in where else f"sqlite:///{where}", poolclass=sa.NullPool)
    statements = [f"DELETE FROM {NAME} WHERE seq > {keep}"]
    if "://" in where:
        statements = [f"ALTER TABLE {NAME} DISABLE TRIGGER ALL", *statements, f"ALTER TABLE {NAME} ENABLE TRIGGER ALL"]
    else:
        statements = [f"DROP TRIGGER {NAME}_no_DELETE", *statements]
    with database.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def remove(where: str) -> None:
    if "://" not in where:
        for ending in ("", "-wal", "-shm"):
            Path(f"{where}{ending}").unlink(missing_ok=True)
        return
    database = sa.create_engine(where, poolclass=sa.NullPool)
    with database.begin() as connection:
        connection.exec_driver_sql(f"DROP TABLE {NAME}")
        connection.exec_driver_sql(f"DROP FUNCTION {NAME}_refuse CASCADE")


def exchange(where: str) -> None:
    """Another ledger, as long as the first, takes its place; this user's note of it is not there."""
    remove(where)
    with another_user():
        pay(where, "x", "y", "z")


LOSSES = {"brought back": lambda where: cut(where, 3), "removed": remove, "exchanged": exchange}


def nothing_goes(where: str, *places: object) -> None:
    """No charge, no budget, no change of a budget; and no number of it is told."""
    for attempt in (
        lambda: pay(where, "d", places=places),
        lambda: opened(where, *places, total=1000),
        lambda: spent(where),
    ):
        with pytest.raises(LostLedger, check=about("ledger")):
            attempt()


@pytest.mark.parametrize("loss", LOSSES)
def test_a_lost_ledger_is_refused_and_can_be_brought_back(where: str, tmp_path: Path, loss: str) -> None:
    pay(where, "a", "b", "c")
    copy = tmp_path / "copy.db"
    with Ledger.open(where, read_only=True) as ledger:
        assert ledger.backup(copy) == ledger.head
    LOSSES[loss](where)
    nothing_goes(where)
    if loss == "exchanged":
        with pytest.raises(LedgerError):
            Ledger.restore(copy, where)  # what is there is never replaced
        remove(where)
    Ledger.restore(copy, where)
    assert spent(where) == "epsilon=6" and lines(where) == 7
    pay(where, "d")
    with Ledger.open(where) as ledger:
        assert ledger.verify() and str(ledger.spent("jobs", UNIT)) == "epsilon=8"


@pytest.mark.parametrize("loss", LOSSES)
def test_a_declared_loss_counts_what_is_known_as_spent(where: str, loss: str) -> None:
    pay(where, "a", "b", "c")
    LOSSES[loss](where)
    for alone in ({"reason": " "}, {"confirmed_by": None}, {"confirmed_by": "Anna"}):
        with pytest.raises(PrivacyError):
            Ledger.declare_loss(where, **{**TWO_PEOPLE, **alone})
    nothing_goes(where)
    Ledger.declare_loss(where, **TWO_PEOPLE)
    with Ledger.open(where) as ledger:
        assert ledger.verify()
        # The releases of the ledger that took its place count too, and its release x is another than a.
        assert ledger.spent("jobs", UNIT) == Pure(12 if loss == "exchanged" else 6)
        assert all(ledger.published("jobs", name) is not None for name in "abc")
        last = ledger.entries(last=1)[0]
        marked = [line for line in ledger.entries() if line.payload.get("lost")]
        assert {line.payload["confirmed_by"] for line in marked} == {"rita"} and last.seq > marked[-1].seq
    with pytest.raises(LedgerError):
        Ledger.declare_loss(where, **TWO_PEOPLE)  # all of it is there
    if loss == "exchanged":
        with pytest.raises(PrivacyError):
            pay(where, "d")
    else:
        pay(where, "d")
        assert spent(where) == "epsilon=8"


def test_an_anchor_of_another_data_set_is_no_reason_to_refuse(tmp_path: Path) -> None:
    """A desk may have two ledgers: an anchor names its data set."""
    desk = AnchorFile(tmp_path / ANCHORS)
    pay(tmp_path / "one.db", "a", places=(desk,), dataset="jobs")
    pay(tmp_path / "two.db", "a", places=(desk,), dataset="prices")
    pay(tmp_path / "one.db", "b", places=(desk,), dataset="jobs")
    with pytest.raises(LostLedger):
        pay(tmp_path / "two.db", "b", places=(desk,), dataset="jobs")
    assert lines(tmp_path / "two.db") == 3


def test_a_chain_of_the_same_length_is_another(tmp_path: Path) -> None:
    """Neither the number of lines nor the hash alone is enough."""
    where = str(tmp_path / "ledger.db")
    pay(where, "a", "b", "c")
    exchange(where)
    assert lines(where) == 7
    nothing_goes(where)


def test_a_hash_elsewhere_in_the_chain_is_no_anchor(tmp_path: Path) -> None:
    where = str(tmp_path / "ledger.db")
    pay(where, "a")
    with Ledger.open(where) as ledger:
        [note] = note_of(ledger.where)
        known = note.last()[0]
        moved = Anchor(known.ledger, known.line)
        assert ledger.lost() == [] and moved == known
        assert moved.reference == {"ledger": ledger.identity, "seq": 3, "hash": ledger.head.hash}


def test_a_branch_of_the_chain_is_noticed(tmp_path: Path) -> None:
    """An earlier copy that went on at another machine: two chains begin alike."""
    where, other = str(tmp_path / "ledger.db"), tmp_path / "other.db"
    here, there = AnchorFile(tmp_path / "here"), AnchorFile(tmp_path / "there")
    pay(where, "a", places=(here,))
    with Ledger.open(where, read_only=True) as ledger:
        ledger.backup(other)
    pay(where, "b", "c", places=(here,))
    pay(other, "b", places=(there,))
    with pytest.raises(LostLedger):
        pay(where, "d", places=(here, there))
    with Ledger.open(where, places=(here, there)) as ledger:
        [missing] = ledger.lost("jobs")
        assert missing.how == "rewritten" and missing.place is there
    Ledger.declare_loss(where, known=(here, there), **TWO_PEOPLE)
    with Ledger.open(where, places=(here, there)) as ledger:
        assert ledger.verify() and ledger.spent("jobs", UNIT) == Pure(8)  # b was paid twice


def test_what_no_line_is_known_of_is_spent_too(tmp_path: Path) -> None:
    """A place that saw the last charge alone knows from it what all of them cost."""
    where, folder = str(tmp_path / "ledger.db"), tmp_path / "out"
    folder.mkdir()
    with another_user():
        pay(where, "a", "b")
        pay(where, "c", places=(OutputFolder(folder),))
        remove(where)
        new = tmp_path / "new.db"
        Ledger.declare_loss(new, known=(OutputFolder(folder),), **TWO_PEOPLE)
        with Ledger.open(new, places=(OutputFolder(folder),)) as ledger:
            assert ledger.verify() and ledger.spent("jobs", UNIT) == Pure(6)
            assert ledger.published("jobs", "c") is not None and ledger.published("jobs", "a") is None


def test_a_paid_release_that_may_have_been_drawn_is_never_drawn_again(tmp_path: Path) -> None:
    where = str(tmp_path / "ledger.db")
    with opened(where) as ledger:
        ledger.charge(dataset="jobs", unit=UNIT, release="a", loss=Pure(2))
    remove(where)
    Ledger.declare_loss(where, **TWO_PEOPLE)
    with Ledger.open(where) as ledger, pytest.raises(PrivacyError, check=about("release")):
        ledger.charge(dataset="jobs", unit=UNIT, release="a", loss=Pure(2))


@pytest.mark.parametrize("resumed", [False, True])
def test_a_lost_publication_is_published_again_and_not_drawn_again(tmp_path: Path, resumed: bool) -> None:
    """The charge is in the chain that is left; its publication is known from an anchor."""
    where = str(tmp_path / "ledger.db")
    asked = {"dataset": "jobs", "unit": UNIT, "release": "a", "loss": Pure(2)}
    with opened(where) as ledger:
        entry = ledger.charge(**asked)
        entry = ledger.charge(**asked) if resumed else entry
        ledger.publish(entry, files={"table.csv": "0" * 64})
    cut(where, 2)
    Ledger.declare_loss(where, **TWO_PEOPLE)
    with Ledger.open(where) as ledger:
        assert ledger.verify() and ledger.spent("jobs", UNIT) == Pure(2)
        published = ledger.published("jobs", "a")
        assert published is not None and published.payload["files"] == {"table.csv": "0" * 64}
        with pytest.raises(PrivacyError, check=about("release")):
            ledger.charge(**asked)


def test_a_charge_before_a_loss_is_not_drawn_again(tmp_path: Path) -> None:
    """Among the lines that nobody knows may be its publication."""
    where, folder = str(tmp_path / "ledger.db"), OutputFolder(tmp_path / "out")
    folder.path.mkdir()
    asked = {"dataset": "jobs", "unit": UNIT, "release": "a", "loss": Pure(2)}
    with another_user(), opened(where) as ledger:
        entry = ledger.charge(**asked)
        ledger.publish(entry, files={"table.csv": "0" * 64})
        pay(where, "b", places=(folder,))
    cut(where, 2)
    with another_user():
        Ledger.declare_loss(where, known=(folder,), **TWO_PEOPLE)
        with Ledger.open(where) as ledger, pytest.raises(PrivacyError, check=about("release")):
            ledger.charge(**asked)


@pytest.mark.parametrize("other", ["further", "another branch"])
def test_a_declared_loss_covers_no_more_than_what_it_knew(tmp_path: Path, other: str) -> None:
    """A place that knows later lines, or others of the same numbers, has to be declared too."""
    where, early, late = str(tmp_path / "ledger.db"), AnchorFile(tmp_path / "early"), AnchorFile(tmp_path / "late")
    with another_user():
        pay(where, "a", places=(early,))
        copy = tmp_path / "copy.db"
        with Ledger.open(where, read_only=True) as ledger:
            ledger.backup(copy)
        pay(where, "b", places=(late,) if other == "further" else (early,))
        if other == "another branch":
            pay(copy, "c", places=(late,))
    remove(where)
    with another_user():
        Ledger.declare_loss(where, known=(early,), **TWO_PEOPLE)
        with pytest.raises(LostLedger):
            pay(where, "d", places=(early, late))
        Ledger.declare_loss(where, known=(late,), **TWO_PEOPLE)
        with opened(where, early, late) as ledger:
            assert ledger.verify() and Pure(4) <= ledger.spent("jobs", UNIT)
            assert ledger.published("jobs", "b" if other == "further" else "c") is not None


def test_an_overspent_chain_can_be_declared(tmp_path: Path) -> None:
    """Of 8, 17 were spent: nothing is left, whatever the total was."""
    where = str(tmp_path / "ledger.db")
    one, two = AnchorFile(tmp_path / "one"), AnchorFile(tmp_path / "two")
    with another_user():
        pay(where, "a", "b", "c", "d", places=(one,))
    remove(where)
    with another_user():
        pay(where, "a", "f", "g", places=(two,))
        Ledger.declare_loss(where, known=(one, two), **TWO_PEOPLE)
        with Ledger.open(where, places=(one, two)) as ledger:
            assert ledger.verify() and ledger.spent("jobs", UNIT) == Pure(14) == ledger.budget("jobs", UNIT).total


def test_budgets_of_periods_and_of_two_units_are_declared_as_they_were(tmp_path: Path) -> None:
    from discreet.ledger import Policy

    where, policy = tmp_path / "ledger.db", Policy.of({"each": "quarter", "limit": "2"})
    other = Establishments("0.1")
    with Ledger.open(where) as ledger:
        ledger.open_budget(dataset="q", unit=UNIT, total=Approximate(8, "1e-6"), policy=policy)
        ledger.open_budget(dataset="q", unit=other, total=Pure(3), allow_second_unit=True)
        for quarter in ("2026-Q1", "2026-Q2"):
            ledger.charge(dataset="q", unit=UNIT, release=quarter, loss=Pure(2), details={"period": quarter})
        ledger.charge(dataset="q", unit=other, release="whole", loss=Pure(1))
    before = _budgets(where)
    remove(str(where))
    Ledger.declare_loss(where, **TWO_PEOPLE)
    assert _budgets(where) == before
    with Ledger.open(where) as ledger:
        assert ledger.verify()


def _budgets(where: Path) -> list[object]:
    with Ledger.open(where, read_only=True) as ledger:
        return ledger.budgets()


def test_a_folder_that_is_not_mounted_holds_no_new_ledger(tmp_path: Path) -> None:
    disk, away = tmp_path / "disk", tmp_path / "away"
    disk.mkdir()
    where = str(disk / "ledger.db")
    pay(where, "a")
    disk.rename(away)
    nothing_goes(where)
    assert not disk.exists()
    disk.mkdir()  # the mount point, suddenly empty
    nothing_goes(where)
    assert list(disk.iterdir()) == []
    disk.rmdir()
    away.rename(disk)
    pay(where, "b")


def test_an_empty_file_is_no_new_ledger_where_one_was(tmp_path: Path) -> None:
    where = tmp_path / "ledger.db"
    pay(where, "a")
    remove(str(where))
    where.touch()
    nothing_goes(str(where))


@pytest.mark.parametrize("loss", ["brought back", "removed"])
def test_two_machines_share_one_server(postgres_url: str, tmp_path: Path, loss: str) -> None:
    """Each has its own home and its own folder; the tables of the server are dropped, or rolled back."""
    machines = [tmp_path / name for name in ("north", "south")]
    folders = [OutputFolder(machine / "out") for machine in machines]
    with pytest.MonkeyPatch.context() as patch:
        for number, (machine, folder) in enumerate(zip(machines, folders, strict=True)):
            folder.path.mkdir(parents=True)
            patch.setenv("XDG_STATE_HOME", str(machine / "state"))
            pay(postgres_url, f"r{number}", places=(folder,))
        LOSSES[loss](postgres_url)
        for machine, folder in zip(machines, folders, strict=True):
            if loss == "brought back" and machine.name == "north":
                continue  # it has seen nothing of what is gone
            patch.setenv("XDG_STATE_HOME", str(machine / "state"))
            nothing_goes(postgres_url, folder)
            patch.setenv("XDG_STATE_HOME", str(tmp_path / "new user"))
            with pytest.raises(LostLedger):
                pay(postgres_url, "r2", places=(folder,))
        with pytest.raises(LostLedger), Ledger.open(postgres_url, read_only=True, places=folders) as ledger:
            ledger.refuse_lost("jobs")
        Ledger.declare_loss(postgres_url, known=folders, **TWO_PEOPLE)
        for machine, folder in zip(machines, folders, strict=True):
            patch.setenv("XDG_STATE_HOME", str(machine / "state"))
            with opened(postgres_url, folder) as ledger:
                assert ledger.verify() and ledger.spent("jobs", UNIT) == Pure(4)


def test_a_copy_is_whole_while_others_pay(where: str, tmp_path: Path) -> None:
    copy, stop = tmp_path / "copy.db", threading.Event()
    with opened(where, total=10**6) as ledger:
        ledger.charge(dataset="jobs", unit=UNIT, release="first", loss=Pure(1))

        def work() -> None:
            with Ledger.open(where) as mine:
                for i in range(10**6):
                    if stop.is_set():
                        return
                    mine.charge(dataset="jobs", unit=UNIT, release=f"r{i}", loss=Pure(1))

        payer = threading.Thread(target=work)
        payer.start()
        try:
            heads = [ledger.backup(copy).seq for _ in range(5)]
        finally:
            stop.set()
            payer.join()
        assert ledger.verify()
        with Ledger.open(copy, read_only=True) as kept:
            assert kept.verify() and kept.head.seq == heads[-1]
            assert ledger.verify(contains=[kept.head])
    assert heads == sorted(heads)
    assert copy.stat().st_mode & 0o077 == 0


def test_a_copy_that_lacks_lines_is_not_brought_back(where: str, tmp_path: Path) -> None:
    pay(where, "a")
    with Ledger.open(where, read_only=True) as ledger:
        ledger.backup(tmp_path / "copy.db")
    pay(where, "b")
    remove(where)
    with pytest.raises(LostLedger):
        Ledger.restore(tmp_path / "copy.db", where)
    if "://" not in where:
        assert not Path(where).exists()
    Ledger.declare_loss(where, **TWO_PEOPLE)
    assert spent(where) == "epsilon=4"


def test_a_short_or_lost_ledger_is_not_copied(tmp_path: Path) -> None:
    where = str(tmp_path / "ledger.db")
    pay(where, "a", "b")
    cut(where, 3)
    with Ledger.open(where, read_only=True) as ledger, pytest.raises(LostLedger):
        ledger.backup(tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


def test_an_edited_copy_is_not_brought_back(tmp_path: Path) -> None:
    where, copy = str(tmp_path / "ledger.db"), str(tmp_path / "copy.db")
    pay(where, "a", "b")
    with Ledger.open(where, read_only=True) as ledger:
        ledger.backup(copy)
    remove(where)
    database = sa.create_engine(f"sqlite:///{copy}", poolclass=sa.NullPool)
    with database.begin() as connection:
        connection.exec_driver_sql(f"DROP TRIGGER {NAME}_no_UPDATE")
        connection.exec_driver_sql(f"UPDATE {NAME} SET release = 'z' WHERE seq = 2")
    with pytest.raises(LedgerError):
        Ledger.restore(copy, where)


def test_a_file_of_anchors_that_is_exchanged_is_read_from_its_beginning(tmp_path: Path) -> None:
    where, kept, other = str(tmp_path / "ledger.db"), AnchorFile(tmp_path / "kept"), AnchorFile(tmp_path / "other")
    with another_user():
        pay(where, "a", "b", "c", places=(kept,))
        assert len(kept.anchors()) > 2
        pay(tmp_path / "other.db", "x", places=(other,))
        shutil.copy(other.path, kept.path)
        assert kept.anchors() == AnchorFile(kept.path).anchors() == other.anchors()
        pay(tmp_path / "other.db", "y", "z", places=(other,))
        shutil.copy(other.path, kept.path)
        assert kept.last() == other.last()


def test_a_chain_that_breaks_the_rules_is_no_copy(tmp_path: Path) -> None:
    """Every line is as sealed; one of them spends more than there is."""
    where, copy = str(tmp_path / "ledger.db"), str(tmp_path / "copy.db")
    pay(where, "a")
    with Ledger.open(where) as ledger:
        with ledger._store.writing() as page:
            facts = {"kind": "charge", "dataset": "jobs", "unit": UNIT.key, "release": "b", "payload": {}}
            page.append(**facts, loss=Pure(9), spent_after=Pure(11))
        with pytest.raises(LedgerError):
            ledger.backup(copy)
    assert lines(copy) == 0


def test_a_ledger_of_before_goes_on_and_is_anchored_from_then_on(tmp_path: Path) -> None:
    where = str(tmp_path / "ledger.db")
    with another_user():
        pay(where, "a")
    with Ledger.open(where) as ledger:
        assert not ledger.is_anchored("jobs") and ledger.lost() == []
    pay(where, "b")
    with Ledger.open(where) as ledger:
        assert ledger.is_anchored("jobs")
    cut(where, 3)
    nothing_goes(where)


def test_a_rehearsal_and_a_budget_of_which_nothing_was_spent_may_begin_again(tmp_path: Path) -> None:
    """Seeded noise promises nothing; noise that is too small is no rehearsal, and neither is a charge after one."""
    where, seeded = tmp_path / "ledger.db", {"private": False, "why": "the noise was seeded"}
    for times in (0, 1, 2):  # and where it was resumed
        with opened(where) as ledger:
            for _ in range(times):
                ledger.charge(dataset="jobs", unit=UNIT, release="a", loss=Pure(2), details=seeded)
            assert not ledger.is_anchored("jobs")
        where.unlink()
    for details in ({"private": False, "why": "the published noise is too small"}, {}):
        with opened(where) as ledger:
            ledger.charge(dataset="jobs", unit=UNIT, release="a", loss=Pure(2), details=seeded)
            ledger.charge(dataset="jobs", unit=UNIT, release="b", loss=Pure(2), details=details)
        kept = where.rename(where.with_name("kept.db"))
        with pytest.raises(LostLedger):
            opened(where)
        kept.rename(where)
        where = where.with_name("another.db")


def test_a_line_is_committed_first_and_anchored_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An anchor of a line that was never written would refuse the true ledger for good."""
    where, folder = tmp_path / "ledger.db", tmp_path / "out"
    folder.mkdir()
    seen: list[int] = []
    own = AnchorFile.keep

    def keep(self: AnchorFile, anchors: list[Anchor]) -> None:
        seen.extend([lines(where) - anchor.seq for anchor in anchors[-1:]])
        own(self, anchors)

    monkeypatch.setattr(AnchorFile, "keep", keep)
    pay(where, "a", places=(OutputFolder(folder),))
    assert set(seen) == {0} and len(seen) == 4, "the charge and its publication, in the note and in the folder"
    before = (folder / ANCHORS).read_bytes()
    with opened(where, OutputFolder(folder)) as ledger, pytest.raises(PrivacyError):
        ledger.charge(dataset="jobs", unit=UNIT, release="b", loss=Pure(100))
    assert (folder / ANCHORS).read_bytes() == before


def test_a_crash_in_the_middle_of_an_anchor_leaves_the_others(tmp_path: Path) -> None:
    where, file = tmp_path / "ledger.db", AnchorFile(tmp_path / ANCHORS)
    pay(where, "a", places=(file,))
    whole = file.path.read_bytes()
    file.path.write_bytes(whole + whole[:100])
    pay(where, "b", places=(AnchorFile(file.path),))
    found = AnchorFile(file.path).anchors()
    assert [anchor.seq for anchor in found] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("damage", ["edited", "no anchor", "a folder", "zeros", "a lower number"])
def test_anchors_that_cannot_be_read_are_unknown_and_not_none(tmp_path: Path, damage: str) -> None:
    where, file = tmp_path / "ledger.db", AnchorFile(tmp_path / ANCHORS)
    pay(where, "a", places=(file,))
    if damage == "edited":
        told = json.loads(file.path.read_text().splitlines()[0])
        told["line"]["dataset"] = "other"
        file.path.write_text(json.dumps(told) + "\n")
    elif damage == "no anchor":
        file.path.write_text("[]\n")
    elif damage == "zeros":
        file.path.write_bytes(bytes(file.path.stat().st_size))
    elif damage == "a lower number":
        file.path.write_text(file.path.read_text().replace(',"seq":3,', ',"seq":1,'))
    else:
        file.path.unlink()
        file.path.mkdir()
    with pytest.raises(LedgerError) as refusal:
        pay(where, "b", places=(AnchorFile(file.path),))
    assert not isinstance(refusal.value, EntryError) and spent(where) == "epsilon=2"


def test_links_that_lead_to_each_other_are_no_place(tmp_path: Path) -> None:
    where = tmp_path / "ledger.db"
    where.symlink_to(tmp_path / "other.db")
    (tmp_path / "other.db").symlink_to(where)
    with pytest.raises(LedgerError):
        Ledger.open(where)
    with pytest.raises(LedgerError):
        Ledger.found(str(where))


def test_a_user_without_a_home_pays_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pathlib.Path.home", lambda: (_ for _ in ()).throw(RuntimeError))
    pay(tmp_path / "ledger.db", "a")
    shutil.copy(tmp_path / "ledger.db", tmp_path / "copy.db")
    assert note_of(str(tmp_path / "ledger.db")) == ()


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5, 6, 7], [7, 6, 5, 4, 3, 2, 1, 0], [6, 7, 0, 3, 1, 5, 2, 4]])
def test_of_a_file_the_last_lines_alone_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: list[int]
) -> None:
    """Whatever stands in a name, and in whichever order processes wrote: the last of each ledger and data set."""
    where, file = str(tmp_path / "ledger.db"), AnchorFile(tmp_path / ANCHORS)
    odd = 'a\\",\\"seq\\":9,"hash":"b,"seq":99,'
    pay(where, odd, places=(file,))
    pay(where, "b", places=(file,), dataset=odd)
    elsewhere = AnchorFile(tmp_path / "elsewhere")
    pay(str(tmp_path / "other.db"), "c", places=(elsewhere,), dataset="c")
    file.path.write_bytes(file.path.read_bytes() + elsewhere.path.read_bytes())
    remove(where)
    lines = file.path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 9
    spelled = json.dumps(json.loads(lines[8]), indent=None)  # by another program
    file.path.write_bytes(b"".join(lines[i] for i in order) + f"{spelled}\n\n".encode())
    whole = [Anchor.read(line.decode()) for line in lines]
    furthest = {(each.ledger, each.dataset): each for each in sorted(whole, key=lambda each: each.seq)}
    read: list[str] = []
    monkeypatch.setattr(Anchor, "read", lambda written, own=Anchor.read: read.append(written) or own(written))
    assert {each.hash for each in AnchorFile(file.path).last()} == {each.hash for each in furthest.values()}
    assert len(furthest) == 3 and len(read) <= 4
    assert sorted(each.hash for each in AnchorFile(file.path).anchors()) == sorted(each.hash for each in whole)
