"""`discreet ledger show` and `verify`, as a person and as a program would call them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discreet.cli.ledger import ledger as command
from discreet.errors import LedgerError
from discreet.privacy.ledger import Entry, Ledger, release_once
from discreet.privacy.losses import Pure
from discreet.privacy.units import Workers

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
    for words in ("[b]jobs", "epsilon=1", "epsilon=0.25", "epsilon=0.75", "county", "publish", "Nothing confidential"):
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
    }
    assert isinstance(call("show", path).exception, LedgerError)


def test_verify_finds_a_tail_that_was_cut_off(path: Path) -> None:
    head = json.loads(call("show", path, "--json").stdout)["head"]["hash"]
    with sqlite3.connect(path) as database:
        database.execute("DROP TRIGGER discreet_ledger_no_DELETE")
        database.execute("DELETE FROM discreet_ledger WHERE seq = 3")
    database.close()
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
