"""Runs as their two files tell them, work in the confined process, and the command that opens a desk."""

from __future__ import annotations

import fcntl
import io
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from discreet.archive.packing import as_json, pack
from discreet.desk import published
from discreet.desk import sandbox as fence
from discreet.desk.accounts import Person, is_password
from discreet.desk.audit_log import lines
from discreet.desk.command import serve
from discreet.desk.runs import events, is_alive, resume, state_of
from discreet.desk.sandbox import confined
from discreet.desk.store import DeskStore
from discreet.plan.curves import curves
from discreet.privacy.assurance import sure_at_most as sure
from discreet.words.errors import DataError, DiscreetError, PlanError
from faults_of import about


def test_a_state_is_what_the_files_say(tmp_path: Path) -> None:
    log, lock = tmp_path / "run-a.jsonl", tmp_path / "run-a.lock"
    assert state_of(tmp_path, "run-a") == "interrupted"
    log.write_text('{"kind":"step","text":"one","done":1,"steps":4}\n{"kind":"st')
    handle = os.open(lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    assert is_alive(lock) and state_of(tmp_path, "run-a") == "running"
    assert [event["text"] for _, event in events(tmp_path, "run-a")] == ["one"]  # a half-written line waits
    os.close(handle)
    assert not is_alive(lock) and state_of(tmp_path, "run-a") == "interrupted"
    with log.open("a") as file:
        file.write('ep","text":"two"}\n{"kind":"done","text":"all"}\n')
    assert state_of(tmp_path, "run-a") == "done"
    start = next(after for after, _ in events(tmp_path, "run-a"))
    assert [event["text"] for _, event in events(tmp_path, "run-a", start)] == ["two", "all"]


def test_a_resume_that_was_not_is_not_in_the_log(make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    desk = make()
    store = DeskStore(desk.database)

    def under_way(*_: Any, **__: Any) -> None:
        raise DiscreetError("Run run-a is under way.")

    monkeypatch.setattr("discreet.desk.runs._launch", under_way)
    with pytest.raises(DiscreetError):
        resume(desk, store, "run-a", Person("anna", "analyst", "a"))
    with store.reading() as connection:
        assert lines(connection) == []
    monkeypatch.setattr("discreet.desk.runs._launch", lambda *_, **__: None)
    resume(desk, store, "run-a", Person("anna", "analyst", "a"))
    with store.reading() as connection:
        assert [(line.who, line.action) for line in lines(connection)] == [("anna", "run resumed")]


@pytest.mark.parametrize("last", ['{"kind":"failed","text":"It failed."}\n', '{"kind":"step","te'])
def test_a_run_is_live_as_soon_as_it_is_resumed(
    make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    """Before its worker has written anything; a worker that never began leaves an interrupted run, not a failed one."""
    desk = make()
    store = DeskStore(desk.database)
    (desk.runs / "run-a.jsonl").write_text(last)
    seen = []

    def slow(command: Any, **options: Any) -> Any:
        seen.append(state_of(desk.runs, "run-a"))
        raise OSError("no process")

    monkeypatch.setattr("discreet.desk.runs.approved", lambda *_: SimpleNamespace(name="p", text="", digest=""))
    monkeypatch.setattr("discreet.desk.runs.subprocess.Popen", slow)
    with pytest.raises(OSError, match="no process"):
        resume(desk, store, "run-a", Person("anna", "analyst", "a"))
    assert seen == ["running"]
    assert state_of(desk.runs, "run-a") == "interrupted"
    assert [event["text"] for _, event in events(desk.runs, "run-a")][-1] == "resumed by anna"


def test_an_upload_is_worked_on_or_refused_in_words(tmp_path: Path) -> None:
    panel = tmp_path / "panel.csv"
    panel.write_text("series,t,wrong\na,1,2\n")
    arguments: dict[str, Any] = {"panel": str(panel), "forecasts": str(panel), "options": {"horizon": 1}}
    with pytest.raises(DataError, check=about(None, naming=("'value'",))):
        confined("exceptions", arguments)
    with pytest.raises(DataError, check=about("file")):
        confined("exceptions", arguments, seconds=0.01)  # type: ignore[arg-type]


def test_the_fence_limits_memory() -> None:
    code = "from discreet.desk.sandbox import _limit; _limit(); bytearray(5 * 2**30)"
    with pytest.raises(MemoryError):
        _in_child(code)
    assert fence.MEMORY < 5 * 2**30


def _in_child(code: str) -> None:
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if "MemoryError" in done.stderr:
        raise MemoryError
    assert done.returncode == 0, done.stderr


def test_curves_fall_with_epsilon_and_rise_with_alpha(make: Callable[..., Any]) -> None:
    desk = make()
    found = curves(desk.schema(desk.sources["jobs"]), None, ["place", "sector"], "strong")
    errors = {(row["alpha"], row["epsilon"]): row["error"] for row in found.rows}
    assert errors["0.1", 8.0] < errors["0.1", 2.0] < errors["0.1", 1.0]
    assert errors["0.01", 1.0] < errors["0.1", 1.0] < errors["0.2", 1.0]
    assert errors["0.2", 0.25] is None or errors["0.2", 0.25] > errors["0.1", 0.25]  # ln 1.2 is 0.18
    assert not found.public and found.infusion > 0
    assert sure(0.5, 1.0) == pytest.approx(0.7310585786300049)  # e / (1 + e)


def test_accounts_from_the_command_line(make: Callable[..., Any], monkeypatch: Any, capsys: Any) -> None:
    desk = make("accounts = true")
    monkeypatch.setattr("sys.stdin", io.StringIO("correct horse battery\n"))
    serve(desk.folder, add_account="rita", role="reviewer")
    assert "rita is reviewer" in capsys.readouterr().out
    store = DeskStore(desk.database)
    assert is_password(store, "rita", "correct horse battery") and not is_password(store, "rita", "correct horse")
    store.close()


def test_a_desk_without_accounts_stays_at_home(make: Callable[..., Any]) -> None:
    with pytest.raises(PlanError, check=about("host")):
        serve(make().folder, host="0.0.0.0", browser=False)
    with pytest.raises(PlanError, check=about("accounts")):
        serve(make("accounts = true").folder, browser=False)


@pytest.mark.parametrize(
    ("rules", "subject", "fact"),
    [
        ("second_person = true", "accounts", "accounts"),
        ("nonsense = 1", "desk", "nonsense"),
        ("runs_at_once = 0", "desk", "runs_at_once"),
    ],
)
def test_wrong_settings_are_refused(make: Callable[..., Any], rules: str, subject: str, fact: str) -> None:
    with pytest.raises(PlanError, check=about(subject, naming=(fact,))):
        make(rules)


def test_a_folder_without_settings_is_no_desk(tmp_path: Path) -> None:
    with pytest.raises(DataError, check=about("desk")):
        serve(tmp_path, browser=False)


def test_a_release_leads_to_the_papers_that_hold_it(make: Callable[..., Any]) -> None:
    """Also after the plan was changed and run again, when the last bundle tells of others."""
    desk = make()
    folder = desk.releases / "plan"
    folder.mkdir()
    for mark, release in (("", "second"), ("-0123456789ab", "first")):
        about = as_json({"files": {f"{release}/release.json": "0" * 64, "report.html": "0" * 64}})
        pack(folder / f"bundle{mark}.zip", ["bundle.json"], lambda name, about=about: about)
        (folder / f"report{mark}.html").write_text("")
    (folder / "bundle-of-mine.zip").write_text("")
    assert {*published.papers(desk, "plan")} == {"bundle", "report", "bundle-0123456789ab", "report-0123456789ab"}
    assert [published.mark(desk, "plan", name) for name in ("first", "second", "none")] == ["-0123456789ab", "", ""]
    assert published.papers(desk, "../plan") == published.papers(desk, "none") == {}
