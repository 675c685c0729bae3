"""Plans whose ledger is lost: nothing is spent again into a folder that has releases, and what is unknown is not 0."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet.ledger import Ledger
from discreet.ledger.anchors import ANCHORS, OutputFolder
from discreet.plan.check import check
from discreet.plan.doors import check_plan, run_plan
from discreet.plan.reading import read_plan
from discreet.plan.run import run
from discreet.plan.spent import UNKNOWN, told_spent
from discreet.privacy.losses import Pure
from discreet.privacy.units import Establishments
from discreet.review.verdict import verify_bundle
from discreet.words.errors import LedgerError, PlanError

UNIT = Establishments("0.1")
TWO_PEOPLE = {"reason": "the disk died", "by": "anna", "confirmed_by": "rita"}


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From now on somebody works who has no note of any ledger: another user, or another machine."""
    homes = iter(range(100))

    def change() -> None:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / f"home{next(homes)}"))

    change()
    return change


@pytest.fixture
def done(plan: Path, elsewhere: Callable[[], None]) -> Path:
    """A plan that spent 4 of 4 on two releases."""
    text = plan.read_text().replace("epsilon = 6", "epsilon = 4")
    plan.write_text(text[: text.index('[[release]]\nname = "margins"')] + text[text.index("[output]") :])
    run(plan)
    elsewhere()
    return plan


def second(plan: Path, *, ledger: str = "ledger.db") -> Path:
    """Another plan about the same data, into the same folder."""
    text = plan.read_text().replace('"places"', '"places-again"').replace('"sexes"', '"sexes-again"')
    other = plan.with_name("second.toml")
    other.write_text(text.replace("ledger.db", ledger))
    return other


def remove(ledger: Path) -> None:
    for path in ledger.parent.glob(f"{ledger.name}*"):
        path.unlink()


def spent(ledger: Path) -> Any:
    with Ledger.open(ledger, read_only=True) as book:
        return book.spent("toys", UNIT)


def refused(plan: Path, **asked: Any) -> None:
    """By check and run alike, at the plan's word for the ledger, and with nothing written."""
    before = sorted(plan.parent.rglob("*"))
    found = check(read_plan(plan))
    assert [fault.place for fault in found.faults if fault.about == "ledger"] == [("budget", "ledger")]
    for attempt in (lambda: run(plan), lambda: run(plan, dry_run=True), lambda: run_plan(plan)):
        with pytest.raises(PlanError):
            attempt()
    assert sorted(plan.parent.rglob("*")) == before


def test_two_plans_into_one_folder_do_not_spend_8_of_4(done: Path) -> None:
    remove(done.parent / "ledger.db")
    refused(second(done))
    refused(second(done, ledger="new.db"))
    assert not (done.parent / "ledger.db").exists() and not (done.parent / "new.db").exists()


@pytest.mark.parametrize("kept", [ANCHORS, "bundle.zip"])
def test_the_bundle_alone_is_an_anchor(done: Path, kept: str) -> None:
    remove(done.parent / "ledger.db")
    (done.parent / "out" / ({ANCHORS, "bundle.zip"} - {kept}).pop()).unlink()
    refused(second(done))


def test_a_bundle_that_is_exchanged_is_looked_at_again(done: Path) -> None:
    """By a place that has looked before, as that of a long run has."""
    out = done.parent / "out"
    (out / ANCHORS).unlink()
    place = OutputFolder(out)
    assert {each.dataset for each in place.last()} == {"toys"}
    shutil.copy(Path(__file__).with_name("bundle-0.1.0-tables.zip"), out / "bundle.zip")
    assert place.last() == place.anchors() == []


def test_an_interruption_after_the_ledger_was_lost_does_not_say_that_nothing_was_spent(done: Path) -> None:
    with pytest.raises(KeyboardInterrupt) as stopped, told_spent(read_plan(done)):
        remove(done.parent / "ledger.db")
        raise KeyboardInterrupt
    assert stopped.value.__notes__ == [UNKNOWN]


def test_a_plan_into_another_folder_is_refused_by_the_users_note(plan: Path, elsewhere: Callable[[], None]) -> None:
    run(plan)
    remove(plan.parent / "ledger.db")
    other = second(plan)
    other.write_text(other.read_text().replace('folder = "out"', 'folder = "next"'))
    refused(other)


def test_what_a_lost_ledger_spent_is_unknown(done: Path, command: Callable[..., tuple[int, str, str]]) -> None:
    remove(done.parent / "ledger.db")
    code, out, _ = command("check", second(done), "--json")
    told = json.loads(out)
    assert code == 2 and not told["can_run"] and told["remaining_after"] is None
    assert told["budget"]["spent"] is None and told["budget"]["remaining"] is None
    assert {release["state"] for release in told["releases"]} == {"unknown"}
    code, out, wrong = command("check", second(done))
    assert code == 2 and "is not known" in out and "is left now" not in out and "declare-loss" in wrong
    assert "is not known" in str(check_plan(second(done)).only)


def test_brought_back_it_goes_on(done: Path) -> None:
    ledger = done.parent / "ledger.db"
    with Ledger.open(ledger, read_only=True) as book:
        book.backup(done.parent / "copy")
    remove(ledger)
    Ledger.restore(done.parent / "copy", ledger, known=(OutputFolder(done.parent / "out"),))
    assert run(done).remaining == Pure(0)


def test_another_ledger_is_named_by_hand(done: Path) -> None:
    """One that has the lines, at a new place."""
    shutil.move(done.parent / "ledger.db", done.parent / "moved.db")
    refused(second(done))
    text = done.read_text().replace("ledger.db", "moved.db")
    done.write_text(text)
    assert check(read_plan(done)).faults == () and run(done).remaining == Pure(0)


def test_a_declared_loss_keeps_what_was_released(done: Path, command: Callable[..., tuple[int, str, str]]) -> None:
    ledger, out = done.parent / "ledger.db", done.parent / "out"
    before = {path: path.read_bytes() for path in out.rglob("*.csv")}
    remove(ledger)
    asked = ("--reason", "the disk died", "--by", "anna", "--confirmed-by", "rita")
    code, said, _ = command("ledger", "declare-loss", ledger, out, *asked)
    assert code == 0 and "epsilon=0 is left of epsilon=4" in said
    assert spent(ledger) == Pure(4)
    again = run(done)  # nothing is drawn, nothing is paid
    assert again.remaining == Pure(0) and {path: path.read_bytes() for path in before} == before
    with pytest.raises(PlanError):
        run(second(done))
    with Ledger.open(ledger) as book:
        assert book.verify()


def test_a_bundle_of_a_lost_ledger_is_not_called_wrong(done: Path) -> None:
    ledger, out = done.parent / "ledger.db", done.parent / "out"
    shutil.copy(out / "bundle.zip", done.parent / "earlier.zip")
    remove(ledger)
    Ledger.declare_loss(ledger, known=(OutputFolder(out),), **TWO_PEOPLE)
    found = verify_bundle(done.parent / "earlier.zip", ledger=ledger)
    assert not [each for each in found if each.wrong]
    assert [each.state for each in found if each.subject == "ledger"] == ["not checked"]


def test_a_bundle_that_names_another_ledger_is_wrong(done: Path) -> None:
    from discreet.archive.packing import LEDGER, MANIFEST, as_json, pack

    bundle, forged = done.parent / "out" / "bundle.zip", done.parent / "forged.zip"
    with zipfile.ZipFile(bundle) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    files[LEDGER] = as_json(json.loads(files[LEDGER]) | {"ledger": "0" * 64})
    from hashlib import sha256

    listed = json.loads(files[MANIFEST])
    listed["files"][LEDGER] = sha256(files[LEDGER]).hexdigest()
    files[MANIFEST] = as_json(listed)
    pack(forged, set(files) - {MANIFEST}, files.__getitem__)
    assert [each.subject for each in verify_bundle(forged) if each.wrong]


def test_a_folder_of_before_goes_on_and_says_so(done: Path, command: Callable[..., tuple[int, str, str]]) -> None:
    """Anchors and the ledger's name in the bundle are new: neither is there, and `check` says what that means."""
    out = done.parent / "out"
    (out / ANCHORS).unlink()
    _as_before(out / "bundle.zip")
    found = check(read_plan(done))
    assert found.faults == () and [note for note in found.notes if "'toys'" in note]
    assert "no anchors" in command("check", done)[1]
    assert not [each for each in verify_bundle(out / "bundle.zip", ledger=done.parent / "ledger.db") if each.wrong]
    text = done.read_text().replace("epsilon = 4", "epsilon = 6", 1)
    with Ledger.open(done.parent / "ledger.db") as book:
        people = {"by": "anna", "confirmed_by": "rita"}
        book.change_budget(dataset="toys", total=Pure(6), reason="more", **people)
    release = '[[release]]\nname = "more"\nkind = "count"\nby = ["place"]\nepsilon = 2\n\n[output]'
    done.write_text(text.replace("[output]", release))
    assert run(done).remaining == Pure(0)
    assert (out / ANCHORS).is_file() and not [note for note in check(read_plan(done)).notes if "'toys'" in note]


def _as_before(bundle: Path) -> None:
    """The bundle as a version before anchors wrote it."""
    from hashlib import sha256

    from discreet.archive.packing import LEDGER, MANIFEST, as_json, pack

    with zipfile.ZipFile(bundle) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    book = json.loads(files[LEDGER])
    del book["ledger"]
    files[LEDGER] = as_json(book)
    listed = json.loads(files[MANIFEST])
    listed["files"][LEDGER] = sha256(files[LEDGER]).hexdigest()
    files[MANIFEST] = as_json(listed)
    pack(bundle, set(files) - {MANIFEST}, files.__getitem__)


def test_anchors_that_cannot_be_read_are_unknown(done: Path) -> None:
    (done.parent / "out" / ANCHORS).write_text("[]\n")
    refused(done)


def test_a_damaged_ledger_is_unknown_too(done: Path) -> None:
    (done.parent / "ledger.db").write_bytes(b"no database")
    for ending in ("-wal", "-shm"):
        Path(f"{done.parent / 'ledger.db'}{ending}").unlink(missing_ok=True)
    found = check(read_plan(done))
    assert found.faults and not found.only.known and found.to_dict()["remaining_after"] is None


def test_what_charges_leave_is_public(done: Path) -> None:
    """Anchors are handed on with the folder: they hold what the bundle's lines hold."""
    lines = [json.loads(line)["line"] for line in (done.parent / "out" / ANCHORS).read_text().splitlines()]
    with zipfile.ZipFile(done.parent / "out" / "bundle.zip") as packed:
        packed_lines = json.loads(packed.read("ledger.json"))["lines"]
    assert lines == packed_lines
    with pytest.raises(LedgerError), Ledger.open(done.parent / "none.db", read_only=True):
        pass
