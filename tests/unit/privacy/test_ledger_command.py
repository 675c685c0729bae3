"""`discreet ledger show` and `verify`, as a person and as a program would call them."""

from __future__ import annotations

import json
import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discreet.cli.ledger import ledger as command
from discreet.ledger import Entry, Ledger, Policy, release_once
from discreet.ledger.anchors import LostLedger
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Approximate, Pure
from discreet.privacy.units import Establishments, Workers
from discreet.release.account import Account
from discreet.release.offer import Offer
from discreet.words.errors import LedgerError, PlanError, PrivacyError

JOBS = {"dataset": "[b]jobs", "unit": Workers()}


def call(*arguments: object):
    return CliRunner().invoke(command, [str(argument) for argument in arguments], env={"COLUMNS": "160"})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    def draw(entry: Entry, staging: Path) -> None:
        (staging / "release.json").write_text(json.dumps({"ledger": entry.reference}))

    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.open_budget(total=Pure(1), **JOBS)
        release_once(ledger, release="county", loss=Pure("1/4"), folder=tmp_path / "county", draw=draw, **JOBS)
    return tmp_path / "ledger.db"


def test_show(path: Path) -> None:
    result = call("show", path)
    assert result.exit_code == 0
    for words in ("[b]jobs", "epsilon=1", "epsilon=0.25", "epsilon=0.75", "county", "publish", "nothing confidential"):
        assert words in result.stdout
    with Ledger.open(path, read_only=True) as ledger:
        assert f"Head: entry 3, {ledger.head.hash}" in result.stdout
    assert "2 earlier entries; --last 0 shows all." in call("show", path, "--last", 1).stdout


def test_show_for_programs(path: Path) -> None:
    shown = json.loads(call("show", path, "--json").stdout)
    assert shown["budgets"][0]["remaining"] == {"epsilon": "3/4"}
    assert [entry["kind"] for entry in shown["entries"]] == ["budget", "charge", "publish"]
    assert shown["head"] == {"seq": 3, "hash": shown["entries"][-1]["hash"]}
    assert len(json.loads(call("show", path, "--json", "--last", 2).stdout)["entries"]) == 2


def test_verify(path: Path) -> None:
    head = json.loads(call("show", path, "--json").stdout)["head"]["hash"]
    release = path.parent / "county" / "release.json"
    result = call("verify", path, "--expect-head", head, "--release", release)
    assert (result.exit_code, result.stdout) == (0, f"intact: 3 entries, head {head}\n")
    assert json.loads(call("verify", path, "--json").stdout)["intact"] is True


def test_verify_finds_an_edited_row(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("DROP TRIGGER discreet_ledger_no_UPDATE")
        database.execute("UPDATE discreet_ledger SET release = 'state' WHERE seq = 2")
    database.close()
    result = call("verify", path)
    assert result.exit_code == 1
    assert result.stdout.startswith("broken at entry 2: the hash does not match the content")
    machine = call("verify", path, "--json")
    assert machine.exit_code == 1
    assert json.loads(machine.stdout) | {"head": None} == {
        "intact": False,
        "head": None,
        "seq": 2,
        "fault": "the hash does not match the content: the line was edited",
        "empty": False,
        "releases": [],
        "lost": [],
    }
    assert isinstance(call("show", path).exception, LedgerError)


def test_verify_finds_a_tail_that_was_cut_off(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = json.loads(call("show", path, "--json").stdout)["head"]["hash"]
    with sqlite3.connect(path) as database:
        database.execute("DROP TRIGGER discreet_ledger_no_DELETE")
        database.execute("DELETE FROM discreet_ledger WHERE seq = 3")
    database.close()
    assert call("verify", path).exit_code == 1, "this user has seen the line"
    monkeypatch.setenv("XDG_STATE_HOME", str(path.parent / "somebody else"))
    assert call("verify", path).exit_code == 0
    result = call("verify", path, "--expect-head", head)
    assert result.exit_code == 1
    assert "cut off or rewritten" in result.stdout
    result = call("verify", path, "--release", path.parent / "county" / "release.json")
    assert result.exit_code == 1
    assert "entry 2 was charged, and never published" in result.stdout


def test_verify_finds_a_changed_file(path: Path) -> None:
    release = path.parent / "county" / "release.json"
    release.write_text(release.read_text() + "\n")
    result = call("verify", path, "--release", release, "--json")
    assert result.exit_code == 1
    assert "not as published in entry 3: release.json" in json.loads(result.stdout)["releases"][0]


def test_wrong_requests(path: Path, tmp_path: Path) -> None:
    assert call("verify", path, "--expect-head", "abc").exit_code == 2
    assert "There is no ledger" in str(call("show", tmp_path / "none.db").exception)
    assert not (tmp_path / "none.db").exists()
    for words in ("show", "verify"):
        assert "Example: " in call(words, "--help").stdout


def test_wrong_requests_for_programs(path: Path, tmp_path: Path) -> None:
    """The object that `check` and `run` print, whatever is wrong."""
    torn = tmp_path / "torn.db"
    torn.write_bytes(path.read_bytes()[:3000])
    wrong = [
        (("show", tmp_path / "none.db"), {}, "There is no ledger"),
        (("show", tmp_path / ("a" * 300)), {}, "There is no ledger"),
        (("show", torn), {}, "torn.db"),
        (("verify", tmp_path), {"intact": False}, "There is no ledger"),
        (("verify", path, "--expect-head", "abc"), {"intact": False}, "'abc' is not a hash"),
        (("verify", path, "--release", path), {"intact": False}, "does not say which ledger entry"),
    ]
    for arguments, verdict, words in wrong:
        result = call(*arguments, "--json")
        told = json.loads(result.stdout)
        assert result.exit_code != 0
        (fault,) = told.pop("faults")
        assert (told, fault["line"], words in fault["message"]) == (verdict, None, True)
        assert call(*arguments).stdout == ""


def test_eighty_columns_break_no_time_and_no_number(tmp_path: Path) -> None:
    path, unit = tmp_path / "ledger.db", Establishments("0.1")
    price = Approximate("0.25", "0.000001")
    with Ledger.open(path) as book:
        book.open_budget(dataset="jobs 2026", unit=unit, total=Approximate(4, "0.00001"))
        for name in ("jobs-by-county-and-sector-2026", "seeded"):
            details = {"private": False} if name == "seeded" else {}
            entry = book.charge(dataset="jobs 2026", unit=unit, release=name, loss=price, details=details)
    at = str(entry.payload["at"])
    for columns in ("80", "160"):
        shown = CliRunner().invoke(command, ["show", str(path)], env={"COLUMNS": columns}).stdout
        table = [line for line in shown.splitlines() if line[:1] in "┏┃┡│└"]
        assert max(map(len, table)) <= int(columns)
        assert shown.count(f"{at[:10]} {at[11:16]}") == 3
        assert shown.count("delta=0.000001") == 2
        assert shown.count("epsilon=3.5") == shown.count("delta=0.000008") == 1
        assert "seeded" in shown
        assert ("Who made an entry" in shown) == (columns == "80")
        assert (str(entry.payload["by"]) in "".join(table)) == (columns == "160")


def zero(guarantee: Guarantee) -> Offer[None, None, int]:
    """An offer of nothing."""
    return Offer(guarantee, {}, dict, lambda data: data, lambda reading, source: 0)  # type: ignore[arg-type]


def test_what_is_not_proved_is_marked(tmp_path: Path) -> None:
    """A seeded release and a claim that was only published are in the total, which is then no bound."""
    path = tmp_path / "ledger.db"
    unit = Workers()
    account = Account.open(path, dataset="jobs", unit=unit, budget=Pure(3))
    account.release(zero(Guarantee(unit, Pure(1), basis="proved")), None, name="sound")
    account.ledger.close()
    assert "not proved" not in call("show", path).stdout
    assert json.loads(call("show", path, "--json").stdout)["not_proved"] == 0
    account = Account.open(path, dataset="jobs", unit=unit, budget=Pure(3), seed=1)
    account.release(zero(Guarantee(unit, Pure(1), basis="proved")), None, name="trial")
    account.ledger.close()
    account = Account.open(path, dataset="jobs", unit=unit, budget=Pure(3))
    account.release(zero(Guarantee(unit, Pure(1), basis="as published")), None, name="paper")
    account.ledger.close()
    shown = call("show", path, "--last", 1).stdout
    assert "2 entries are not proved" in shown
    assert "the total is no bound on the loss" in shown
    shown = call("show", path).stdout
    assert "NO: seeded" in shown
    assert "NO: as published" in shown
    told = json.loads(call("show", path, "--json").stdout)
    assert told["not_proved"] == 2
    assert {e["release"]: e["not_proved"] for e in told["entries"] if e["kind"] == "charge"} == {
        "sound": None,
        "trial": "seeded",
        "paper": "as published",
    }


def test_amounts_for_periods_are_raised_by_two_and_lowered_by_one(tmp_path: Path) -> None:
    where = tmp_path / "ledger.db"
    with Ledger.open(where) as ledger:
        ledger.open_budget(total=Pure(4), policy=Policy("quarter", Fraction(1)), **JOBS)
        ledger.charge(release="q1", loss=Pure("3/4"), details={"period": "2026-Q1"}, **JOBS)

    def changed(*arguments: str) -> Fraction | None:
        done = call("budget", where, JOBS["dataset"], "--reason", "board", "--by", "anna", *arguments)
        with Ledger.open(where, read_only=True) as ledger:
            [budget] = ledger.budgets()
            assert budget.total == Pure(4) and ledger.verify()
        return None if done.exit_code else budget.policy.limit

    assert changed("--per-quarter", "2") is None  # alone
    assert changed("--per-quarter", "2", "--confirmed-by", "anna") is None
    assert changed("--per-quarter", "2", "--confirmed-by", "rita") == 2
    assert changed("--per-quarter", "3/4") == Fraction(3, 4)
    for wrong in (["--per-quarter", "1/2"], ["--per-year", "3"], ["--per-quarter", "1", "--per-year", "1"],
                  ["--per-quarter", "0"], ["--per-quarter", "much"]):  # fmt: skip
        assert changed(*wrong, "--confirmed-by", "rita") is None, wrong
    assert "3/4 for each quarter by anna" in call("budget", where).stdout


def test_names_are_folded_not_cut(tmp_path: Path) -> None:
    name = "counts-of-jobs-by-place-sector-and-ownership-of-2026"
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.open_budget(total=Pure(1), **JOBS)
        ledger.charge(release=name, loss=Pure("1/4"), **JOBS)
    arguments = ["show", str(tmp_path / "ledger.db")]
    shown = CliRunner().invoke(command, arguments, env={"COLUMNS": "80"}).stdout
    assert "\u2026" not in shown
    cells = [line.split("\u2502") for line in shown.splitlines() if line.startswith("\u2502")]
    assert "".join(row[4].strip() for row in cells if len(row) == 8).endswith(name)


def _lose(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("DROP TRIGGER discreet_ledger_no_DELETE")
        database.execute("DELETE FROM discreet_ledger WHERE seq = 3")
    database.close()


def test_a_ledger_that_lacks_lines_says_unknown(path: Path) -> None:
    _lose(path)
    shown = json.loads(call("show", path, "--json").stdout)
    assert len(shown["lost"]) == 1 and shown["budgets"][0]["spent"] is None and shown["budgets"][0]["remaining"] is None
    told = json.loads(call("budget", path, "--json").stdout)["budgets"][0]
    assert told["spent"] is None and told["remaining"] is None
    for words in ("show", "budget"):
        assert "UNKNOWN" in call(words, path).stdout or "unknown" in call(words, path).stdout
    assert "is left of" not in call("show", path).stdout
    verdict = json.loads(call("verify", path, "--json").stdout)
    assert not verdict["intact"] and len(verdict["lost"]) == 1
    change = ("--epsilon", "9", "--reason", "why", "--by", "anna", "--confirmed-by", "rita")
    dataset = shown["budgets"][0]["dataset"]
    assert isinstance(call("budget", path, dataset, *change).exception, LostLedger)


def test_a_copy_is_brought_back(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copies" / "ledger.db"
    copy.parent.mkdir()
    assert call("backup", path, copy).exit_code == 0
    _lose(path)
    assert isinstance(call("backup", path, tmp_path / "short.db").exception, LostLedger)
    assert call("restore", copy, path).exit_code == 0
    assert call("verify", path).exit_code == 0
    for ending in ("", "-wal", "-shm"):
        Path(f"{path}{ending}").unlink(missing_ok=True)
    for words in ("show", "verify", "budget"):
        assert isinstance(call(words, path).exception, LostLedger), words
    assert call("restore", copy, path).exit_code == 0 and call("verify", path).exit_code == 0
    assert isinstance(call("restore", tmp_path / "none.db", path).exception, PlanError)


def test_a_loss_is_declared_by_two_for_a_reason(path: Path, tmp_path: Path) -> None:
    people = ("--by", "anna", "--confirmed-by", "rita")
    copy = tmp_path / "copy.db"
    call("backup", path, copy)
    _lose(path)
    assert call("declare-loss", path, *people).exit_code == 2
    assert isinstance(call("declare-loss", path, "--reason", "why", "--by", "anna").exception, PrivacyError)
    assert isinstance(call("declare-loss", path, tmp_path / "none", "--reason", "why").exception, PlanError)
    done = call("declare-loss", path, copy, "--reason", "why", *people)
    assert done.exit_code == 0 and "Written as entries 3 to 4" in done.stdout
    assert call("verify", path).exit_code == 0
    assert json.loads(call("show", path, "--json").stdout)["lost"] == []
    assert isinstance(call("declare-loss", path, copy, "--reason", "why", *people).exception, LedgerError)
