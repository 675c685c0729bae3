"""What a ledger refuses has a next step that its reader can take: a call, a command, or the owner of the data."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discreet.cli.app import app
from discreet.ledger import Ledger, Policy
from discreet.privacy.losses import Pure
from discreet.privacy.units import Establishments, Workers
from discreet.release.known_data import Fingerprint, KnownData, open_once
from discreet.words.errors import LedgerError, PrivacyError
from discreet.words.voices import COMMAND, FORM, PLAN, PYTHON, Voice

ROWS = Fingerprint(frozenset(["rows"]), frozenset(["rows"]))
OPEN = {
    "dataset": "the jobs",
    "unit": Workers(),
    "total": Pure(3),
    "policy": Policy("year", Fraction(1)),
    "origin": "a",
}
CALL = re.compile(r"`\w+\.\w+\(|\w+=(True|\.\.\.)")
OWNER = "ask the owner of the data to "
ASKED: dict[str, Callable[[Ledger], object]] = {
    "another total": lambda book: book.open_budget(**{**OPEN, "total": Pure("1/3")}),
    "another policy": lambda book: book.open_budget(**{**OPEN, "policy": Policy("year", Fraction("1.5"))}),
    "too much": lambda book: book.charge(dataset="the jobs", unit=Workers(), release="r", loss=Pure(4)),
    "no budget": lambda book: book.budget("other jobs", Workers()),
    "a budget under another unit": lambda book: book.budget("the jobs", Establishments(0.1)),
    "a second unit": lambda book: book.open_budget(**{**OPEN, "unit": Establishments(0.1)}),
    "the same files": lambda book: book.open_budget(**{**OPEN, "dataset": "other"}),
    "the same rows": lambda book: open_once(book, **{**OPEN, "dataset": "other", "origin": None}, content=lambda: ROWS),
}


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.open_budget(**OPEN)
        note = KnownData.of(ledger)
        assert note is not None
        note.write("the jobs", str(ROWS))
    return tmp_path / "ledger.db"


def remedy(asked: str, book: Path, voice: Voice) -> str:
    with pytest.raises(PrivacyError) as refused:
        ASKED[asked](Ledger.open(book))
    return refused.value.said(voice)


@pytest.mark.parametrize("asked", ASKED)
def test_only_python_is_told_to_call(asked: str, book: Path) -> None:
    """Before, plans and commands were told to call `ledger.change_budget(...)`, or of a keyword that neither has."""
    assert CALL.search(remedy(asked, book, PYTHON))
    for voice in (PLAN, FORM, COMMAND):
        said = remedy(asked, book, voice)
        assert not CALL.search(said) or f"{OWNER}open one in Python with `" in said, said


@pytest.mark.parametrize("asked", ["another total", "another policy"])
def test_the_command_that_is_named_does_it(asked: str, book: Path) -> None:
    (line,) = re.findall("`discreet (.*?)`", remedy(asked, book, COMMAND))
    done = CliRunner().invoke(app, shlex.split(line.replace("LEDGER", shlex.quote(str(book)))))
    assert done.exit_code == 0, done.output
    ASKED[asked](Ledger.open(book))


@pytest.mark.parametrize(
    ("asked", "keyword"), [("a second unit", "allow_second_unit"), ("the same files", "allow_second_opening")]
)
def test_the_call_that_the_owner_is_asked_for_does_it(asked: str, keyword: str, book: Path) -> None:
    assert f"{OWNER}open one in Python with `ledger.open_budget(..., {keyword}=True)`" in remedy(asked, book, COMMAND)
    with Ledger.open(book) as ledger:
        other = {"unit": Establishments(0.1)} if "unit" in asked else {"dataset": "other"}
        ledger.open_budget(**{**OPEN, **other, keyword: True})
    ASKED[asked](Ledger.open(book))


@pytest.mark.parametrize("store", ["ledger.db", Path("ledger.db"), None, "postgresql://me:secret@host/books"])
def test_a_ledger_of_a_path_says_how_it_is_opened(store: object) -> None:
    """Red before: it was made, and its first use ended in an AttributeError."""
    with pytest.raises(LedgerError) as refused:
        Ledger(store)  # type: ignore[arg-type]
    (fault,) = refused.value.faults
    assert fault.asked and fault.possible and fault.remedy
    assert "Ledger.open(path)" in str(refused.value)
    assert "secret" not in str(refused.value)
