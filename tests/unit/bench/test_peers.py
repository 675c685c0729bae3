"""Installing peers and measuring processes: only processes of Python's are run here."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))

from bench import peers


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands that would have been run to install something: none of them is, and all fail."""
    seen: list[list[str]] = []

    def run(command: list[str], **_: object) -> SimpleNamespace:
        seen.append(command)
        return SimpleNamespace(returncode=1, stderr="no network")

    monkeypatch.setattr(peers, "HOME", tmp_path)
    monkeypatch.setattr(peers, "QUICK", peers.Quick())
    monkeypatch.setattr(peers.subprocess, "run", run)
    return seen


def test_the_quick_form_installs_light_peers_only(commands: list[list[str]]) -> None:
    peers.QUICK.deadline = time.monotonic() + 60
    with pytest.raises(peers.Missing, match="heavy is not installed here"):
        peers.Peer("heavy", ("nothing",)).python()
    with pytest.raises(peers.Missing, match="are not installed; `make bench` without QUICK"):
        peers.debian("r-nothing")
    assert not commands
    with pytest.raises(peers.Missing, match="light could not be installed: no network"):
        peers.Peer("light", ("nothing",), light=True).python()
    assert len(commands) == 1


def test_what_could_not_be_installed_is_not_tried_again(commands: list[list[str]]) -> None:
    for _ in range(3):
        with pytest.raises(peers.Missing, match="offline could not be installed: no network"):
            peers.Peer("offline", ("nothing",)).python()
    assert len(commands) == 1


def test_a_process_is_stopped_in_time() -> None:
    with pytest.raises(peers.Failed, match="stopped after 1 s"):
        peers.ours("time.sleep(60)", seconds=1)


def test_an_interruption_leaves_no_process_running(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def interrupt(pid: int) -> float:
        seen.append(pid)
        raise KeyboardInterrupt

    monkeypatch.setattr(peers, "tree_mib", interrupt)
    with pytest.raises(KeyboardInterrupt):
        peers.ours("time.sleep(60)")
    with pytest.raises(ProcessLookupError):
        os.kill(seen[0], 0)


def test_a_measurement_reports_time_and_memory() -> None:
    script = "time_, kept = measured(lambda: bytearray(80_000_000), 2)\nreport(**time_, length=len(kept))"
    found = peers.ours(script)
    assert found["length"] == 80_000_000
    assert found["mib"] > 76
    assert 0 < found["cpu"] < 60


def test_a_crash_of_ours_is_no_missing_peer() -> None:
    with pytest.raises(peers.Failed, match=r"discreet failed: ValueError: no"):
        peers.ours("raise ValueError('no')")
    command = [sys.executable, "-c", "raise ValueError('no')"]
    with pytest.raises(peers.Missing, match=r"Peer failed: ValueError: no"):
        peers.run("Peer", command, (), seconds=60, environment={})
    assert not issubclass(peers.Failed, peers.Missing)


def test_the_reason_is_the_last_line_that_says_something() -> None:
    said = "Error in f() : no such column\nExecution halted\n"
    assert peers.last_line(said) == "Error in f() : no such column"
    assert peers.last_line("broken | pipe\nsee https://example.org\n\n") == "broken / pipe"
    assert peers.last_line("") == "it said nothing"
