"""A release broken off after every step carries on without a second charge and never shows a second draw."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from discreet.ledger import Entry, Ledger, release_once
from discreet.ledger.publication import check_release, fingerprints
from discreet.privacy.losses import Pure
from discreet.privacy.units import Workers
from discreet.words.errors import BudgetExceeded, DiscreetError, LedgerError, PlanError, PrivacyError
from faults_of import about

REQUEST = {"dataset": "jobs", "unit": Workers(), "release": "county", "loss": Pure("0.5"), "details": {"by": ["place"]}}


class Killed(BaseException):
    """Stands for the end of the process: nothing below may clean up after it."""


@pytest.fixture
def ledger() -> Ledger:
    with Ledger.in_memory() as opened:
        opened.open_budget(dataset="jobs", unit=Workers(), total=Pure(1))
        yield opened


def draw(entry: Entry, staging: Path) -> None:
    (staging / "release.json").write_text(json.dumps({"ledger": entry.reference}))
    (staging / "parts").mkdir()
    (staging / "parts" / "table.csv").write_bytes(os.urandom(64))


def never(entry: Entry, staging: Path) -> None:
    raise AssertionError("noise was drawn again")


def fail(*_: object, **__: object) -> None:
    raise Killed


def kinds(ledger: Ledger) -> list[str]:
    return [entry.kind for entry in ledger.entries()]


def test_a_release_is_charged_drawn_published_and_shown(ledger: Ledger, tmp_path: Path) -> None:
    folder = tmp_path / "out" / "county"
    published = release_once(ledger, folder=folder, draw=draw, **REQUEST)
    assert kinds(ledger) == ["budget", "charge", "publish"]
    assert published.payload["files"] == fingerprints(folder)
    assert set(fingerprints(folder)) == {"release.json", "parts/table.csv"}
    assert [path.name for path in folder.parent.iterdir()] == ["county"]
    assert json.loads((folder / "release.json").read_text())["ledger"] == ledger.entries()[1].reference
    assert check_release(ledger, folder / "release.json") == ""
    assert release_once(ledger, folder=folder, draw=never, **REQUEST) == published
    (folder / "report.html").write_text("made later")
    assert release_once(ledger, folder=folder, draw=never, **REQUEST) == published


def test_the_charge_is_there_before_the_noise(ledger: Ledger, tmp_path: Path) -> None:
    def look(entry: Entry, staging: Path) -> None:
        assert ledger.charged("jobs", "county") == entry
        assert ledger.published("jobs", "county") is None
        assert staging.stat().st_mode & 0o077 == 0, "others can read a draw before it is released"
        draw(entry, staging)

    release_once(ledger, folder=tmp_path / "county", draw=look, **REQUEST)


def test_broken_off_while_drawing(ledger: Ledger, tmp_path: Path) -> None:
    def half(entry: Entry, staging: Path) -> None:
        draw(entry, staging)
        raise Killed

    with pytest.raises(Killed):
        release_once(ledger, folder=tmp_path / "county", draw=half, **REQUEST)
    assert kinds(ledger) == ["budget", "charge"]
    assert list(tmp_path.iterdir()) == []
    release_once(ledger, folder=tmp_path / "county", draw=draw, **REQUEST)
    assert kinds(ledger) == ["budget", "charge", "draw", "publish"]


def test_killed_while_drawing_leaves_a_draw_that_is_dropped(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as dead, pytest.raises(Killed):
        dead.setattr("discreet.ledger.publication.shutil.rmtree", fail)
        dead.setattr("discreet.ledger.publication._to_disk", fail)
        release_once(ledger, folder=tmp_path / "county", draw=draw, **REQUEST)
    (leftover,) = tmp_path.iterdir()
    first = (leftover / "parts" / "table.csv").read_bytes()
    release_once(ledger, folder=tmp_path / "county", draw=draw, **REQUEST)
    assert [path.name for path in tmp_path.iterdir()] == ["county"]
    assert (tmp_path / "county" / "parts" / "table.csv").read_bytes() != first


def test_broken_off_between_publishing_and_showing(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def ended(path: Path, target: Path) -> Path:
        return fail() if target.name == "county" else rename(path, target)

    with monkeypatch.context() as dead, pytest.raises(Killed):
        dead.setattr(Path, "rename", ended)
        release_once(ledger, folder=tmp_path / "county", draw=draw, **REQUEST)
    assert not (tmp_path / "county").exists()
    published = release_once(ledger, folder=tmp_path / "county", draw=never, **REQUEST)
    assert fingerprints(tmp_path / "county") == published.payload["files"]
    assert kinds(ledger) == ["budget", "charge", "publish"]
    assert [path.name for path in tmp_path.iterdir()] == ["county"]


def test_a_publication_whose_answer_was_lost_is_not_thrown_away(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = ledger.publish

    def cut_off(entry: Entry, **files: object) -> None:
        publish(entry, **files)
        raise LedgerError("the connection ended while committing")

    monkeypatch.setattr(ledger, "publish", cut_off)
    with pytest.raises(LedgerError):
        release_once(ledger, folder=tmp_path / "county", draw=draw, **REQUEST)
    release_once(ledger, folder=tmp_path / "county", draw=never, **REQUEST)
    assert check_release(ledger, tmp_path / "county" / "release.json") == ""


def test_however_often_it_is_killed_one_draw_is_left(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each attempt deletes what the one before drew; two draws of one charge are never on disk together."""

    def look(entry: Entry, staging: Path) -> None:
        assert list(tmp_path.iterdir()) == [staging], "an earlier draw was still there"
        draw(entry, staging)

    seen = set()
    for _ in range(3):
        with monkeypatch.context() as dead, pytest.raises(Killed):
            dead.setattr("discreet.ledger.publication._to_disk", fail)
            dead.setattr("discreet.ledger.publication.shutil.rmtree", only_earlier(tmp_path))
            release_once(ledger, folder=tmp_path / "county", draw=look, **REQUEST)
        (leftover,) = tmp_path.iterdir()
        seen.add((leftover / "parts" / "table.csv").read_bytes())
    assert len(seen) == 3
    release_once(ledger, folder=tmp_path / "county", draw=look, **REQUEST)
    assert [path.name for path in tmp_path.iterdir()] == ["county"]
    assert kinds(ledger) == ["budget", "charge", *["draw"] * 3, "publish"]


def only_earlier(place: Path) -> Callable[..., None]:
    """Deletes what is there now; what comes later belongs to a process that died, which deletes nothing."""
    earlier, delete = set(place.iterdir()), shutil.rmtree

    def rmtree(path: Path, ignore_errors: bool) -> None:
        if path not in earlier:
            raise Killed
        delete(path, ignore_errors=ignore_errors)

    return rmtree


def test_a_second_process_waits_and_finds_the_release(ledger: Ledger, tmp_path: Path) -> None:
    """Threads stand for processes: the lock belongs to an opened folder, so it keeps them apart all the same."""
    found: list[Entry] = []

    def second() -> None:
        found.append(release_once(ledger, folder=tmp_path / "county", draw=never, **REQUEST))

    other = Thread(target=second)

    def slow(entry: Entry, staging: Path) -> None:
        other.start()
        other.join(0.3)
        assert other.is_alive(), "it did not wait"
        draw(entry, staging)

    published = release_once(ledger, folder=tmp_path / "county", draw=slow, **REQUEST)
    other.join(60)
    assert found == [published]
    assert kinds(ledger) == ["budget", "charge", "publish"]
    assert [path.name for path in tmp_path.iterdir()] == ["county"]


def test_published_on_another_machine_during_the_draw(ledger: Ledger, tmp_path: Path) -> None:
    """A folder elsewhere has a lock of its own: the ledger alone decides, and nobody is told to pay again."""

    def slow(entry: Entry, staging: Path) -> None:
        release_once(ledger, folder=tmp_path / "elsewhere" / "county", draw=draw, **REQUEST)
        draw(entry, staging)

    (tmp_path / "here").mkdir()
    with pytest.raises(DiscreetError, check=about("release")) as told:
        release_once(ledger, folder=tmp_path / "here" / "county", draw=slow, **REQUEST)
    assert not isinstance(told.value, PrivacyError), "it would end as a wrong request"
    shown = fingerprints(tmp_path / "elsewhere" / "county")
    assert shown == ledger.published("jobs", "county").payload["files"]
    assert kinds(ledger) == ["budget", "charge", "draw", "publish"]
    assert list((tmp_path / "here").iterdir()) == []


def test_published_elsewhere_just_before_the_charge(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    charge = ledger.charge

    def late(**request: object) -> Entry:
        monkeypatch.undo()
        release_once(ledger, folder=tmp_path / "elsewhere" / "county", draw=draw, **REQUEST)
        return charge(**request)

    monkeypatch.setattr(ledger, "charge", late)
    with pytest.raises(DiscreetError, check=about("release")):
        release_once(ledger, folder=tmp_path / "here" / "county", draw=never, **REQUEST)


def test_without_locks_the_ledger_decides(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no lock is to be had, a draw that another process may be making is left alone."""
    monkeypatch.setattr("discreet.ledger.lock.fcntl", None)
    folder = tmp_path / "county"

    def slow(entry: Entry, staging: Path) -> None:
        draw(entry, staging)

        def quicker(other_entry: Entry, other: Path) -> None:
            assert staging.exists(), "the draw of a live process was deleted"
            draw(other_entry, other)

        release_once(ledger, folder=folder, draw=quicker, **REQUEST)

    with pytest.raises(DiscreetError, check=about("release")):
        release_once(ledger, folder=folder, draw=slow, **REQUEST)
    assert fingerprints(folder) == ledger.published("jobs", "county").payload["files"]
    assert [path.name for path in tmp_path.iterdir()] == ["county"]


def test_a_refusal_leaves_nothing(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(BudgetExceeded):
        release_once(ledger, folder=tmp_path / "county", draw=never, **REQUEST | {"loss": Pure(2)})
    assert list(tmp_path.iterdir()) == []
    assert kinds(ledger) == ["budget"]


def test_a_place_that_cannot_be_written_costs_nothing(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "taken").mkdir()
    for folder in (tmp_path / "file" / "county", tmp_path / "taken"):
        with pytest.raises(PrivacyError, check=about("folder", naming=(folder,))):
            release_once(ledger, folder=folder, draw=never, **REQUEST)
    assert kinds(ledger) == ["budget"]


def test_another_request_under_a_released_name(ledger: Ledger, tmp_path: Path) -> None:
    release_once(ledger, folder=tmp_path / "county", draw=draw, **REQUEST)
    for change in ({"loss": Pure("0.25")}, {"details": {"by": ["sector"]}}):
        with pytest.raises(PrivacyError, check=about("release")):
            release_once(ledger, folder=tmp_path / "county", draw=never, **REQUEST | change)


def test_lost_or_changed_files_are_not_drawn_again(ledger: Ledger, tmp_path: Path) -> None:
    folder = tmp_path / "county"
    release_once(ledger, folder=folder, draw=draw, **REQUEST)
    with pytest.raises(PrivacyError, check=about("release")):
        release_once(ledger, folder=tmp_path / "elsewhere", draw=never, **REQUEST)
    (folder / "parts" / "table.csv").write_text("nicer numbers")
    with pytest.raises(PrivacyError, check=about("release")):
        release_once(ledger, folder=folder, draw=never, **REQUEST)
    assert check_release(ledger, folder / "release.json").endswith("not as published in entry 3: parts/table.csv")


def test_a_release_of_another_ledger(ledger: Ledger, tmp_path: Path) -> None:
    release_once(ledger, folder=tmp_path / "county", draw=draw, **REQUEST)
    with Ledger.in_memory() as other:
        assert "the ledger has no charge" in check_release(other, tmp_path / "county" / "release.json")
    (tmp_path / "release.json").write_text('{"ledger": {}}')
    for path in (tmp_path / "release.json", tmp_path / "none.json"):
        with pytest.raises(PlanError, check=about("manifest")):
            check_release(ledger, path)


def test_a_charge_that_was_never_published(ledger: Ledger, tmp_path: Path) -> None:
    entry = ledger.charge(**REQUEST)
    (tmp_path / "release.json").write_text(json.dumps({"ledger": entry.reference}))
    assert "never published" in check_release(ledger, tmp_path / "release.json")
