"""The look at a ledger and its folder after an accident notices what it must; and the page about it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))

from bench import accidents, disks, reliability
from bench.comparison import Comparison
from tests.engines import programme

from discreet.ledger import Ledger
from discreet.plan.run import run
from discreet.privacy.losses import Pure
from discreet.privacy.units import Establishments

NAMES = tuple(accidents.PRICES)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A programme that was carried out."""
    plan = programme.write(tmp_path_factory.mktemp("programme") / "here")
    run(plan)
    return plan.parent


def unpaid(folder: Path) -> None:
    shutil.copytree(folder / "out" / "sexes", folder / "out" / "again")


def another_draw(folder: Path) -> None:
    path = folder / "out" / "sexes" / "research.csv"
    path.write_text(path.read_text().replace("1", "2", 1))


def a_half_release(folder: Path) -> None:
    (folder / "out" / "sexes" / "research.csv").unlink()


def no_ledger(folder: Path) -> None:
    for path in folder.glob("ledger.db*"):
        path.unlink()


def two_draws(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / "out" / f".staged-{name}").mkdir(mode=0o700)
        (folder / "out" / f".staged-{name}" / "x.csv").touch()


def a_readable_draw(folder: Path) -> None:
    (folder / "out" / ".staged-a").mkdir()
    (folder / "out" / ".staged-a").chmod(0o755)
    (folder / "out" / ".staged-a" / "x.csv").touch()


def a_cut_report(folder: Path) -> None:
    path = folder / "out" / "report.html"
    path.write_bytes(path.read_bytes()[:-40])


@pytest.mark.parametrize(
    "accident", [unpaid, another_draw, a_half_release, no_ledger, two_draws, a_readable_draw, a_cut_report]
)
def test_what_an_accident_must_not_leave_is_noticed(
    ended: Path, tmp_path: Path, accident: Callable[[Path], None]
) -> None:
    folder = accidents.copied(ended, tmp_path / "copy")
    assert accidents.faults(folder) == [] and accidents.unfinished(folder, accidents.published(ended)) == []
    accident(folder)
    assert accidents.faults(folder)


def test_a_charge_too_many_and_a_change_of_what_was_fixed_are_noticed(ended: Path, tmp_path: Path) -> None:
    folder = accidents.copied(ended, tmp_path / "copy")
    fixed = accidents.published(folder)
    assert accidents.charged(folder) == len(NAMES) == len(fixed)
    assert accidents.unfinished(folder, {**fixed, "sexes": {}}) == ["sexes has changed"]
    with Ledger.open(folder / "ledger.db") as ledger:
        ledger.charge(dataset="jobs", unit=Establishments(alpha="0.1"), release="sexes again", loss=Pure(2))
    assert accidents.faults(folder) == []
    assert len(accidents.unfinished(folder, fixed)) == 1


def test_after_a_disk_that_lies_only_what_was_shown_must_be_there(ended: Path, tmp_path: Path) -> None:
    folder = accidents.copied(ended, tmp_path / "copy")
    shutil.rmtree(folder / "out" / "sexes")
    fixed = accidents.published(folder)
    assert disks.shown(fixed, folder / "out").keys() == fixed.keys() - {"sexes"}
    assert {kind: make(tmp_path).keeps for kind, make in disks.KINDS.items()} == {
        "the disk is full": True,
        "the disk turns read-only": False,
        "the power is cut": True,
    }


def test_the_page_says_what_was_measured_and_what_was_not() -> None:
    facts = {
        "seed": 7,
        "jumps": 1_234,
        "years": 30,
        "programmes": 3,
        "kills": 1,
        "openings": 16,
        "ledgers": 2,
        "faults": 0,
    }
    text = reliability.page({"clocks": Comparison(facts=facts)})
    assert "## Clocks" in text and "jumped 1,234 times" in text and "`python -m bench clocks`" in text
    assert text.endswith("Not measured in the last run: kills, kills_on_spark, ledgers, disks.")
