"""What `python -m bench` does: no peer is run here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))

from bench import __main__ as command
from bench import comparison, peers
from bench.comparison import Accuracy, Comparison, Row

FAST = Row("counts", "Peer", 12.34, 2.5, "same", version="1.0")
SLOW = Row("fit", "Other", 0.5, 3.0, "1e-9", "It is Fortran; compiled steps would close it")
ABSENT = Row("fit", "Third", None, None, "not measured", "it could not be installed")
ERROR = Accuracy("alpha 0.1", "Peer", 9.5, "the same", "3, 3")


def module(monkeypatch: pytest.MonkeyPatch, **parts: Callable[..., Comparison]) -> None:
    """Comparisons that run no peer, in place of the real ones."""
    for name, compare in parts.items():
        monkeypatch.setitem(sys.modules, f"bench.{name}", SimpleNamespace(compare=compare))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every file that the bench writes, in a folder of the test's; the quick form's deadline is put back."""
    for name in ("README", "BENCH", "SPEED", "RELIABILITY"):
        (tmp_path / name).write_text(f"{comparison.START}\n{comparison.END}\n", encoding="utf-8")
        monkeypatch.setattr(command, name, tmp_path / name)
    monkeypatch.setattr(command, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(command, "PICTURES", tmp_path)
    monkeypatch.setattr(peers, "QUICK", peers.Quick())
    return tmp_path


def broken(*, quick: bool) -> Comparison:
    raise ValueError("no luck")


def interrupted(*, quick: bool) -> Comparison:
    raise KeyboardInterrupt


def test_results_survive_a_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    found = Comparison((FAST, ABSENT), (ERROR,), {"cells": 3}, 12.5, "abc", ("too steep",))
    command.write(path, {"full": {"counts": found}, "quick": {}})
    assert command.read(path) == {"full": {"counts": found}, "quick": {}}
    assert command.read(tmp_path / "absent.json") == {"full": {}, "quick": {}}


@pytest.mark.parametrize("content", ["{", "[]", '{"full": {"roc": {"rows": [{"job": "fit"}]}}}', '{"quick": []}'])
def test_records_of_another_shape_count_as_none(
    files: Path, content: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "results.json").write_text(content, encoding="utf-8")
    module(monkeypatch, roc=lambda quick: Comparison((FAST,)))
    assert command.main(["--quick", "roc"]) == 0
    said = capsys.readouterr()
    assert "results.json is damaged" in said.err
    assert "| time 12 x" in said.out


def test_a_failure_stops_nothing_and_seconds_are_recorded(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module(monkeypatch, counts=broken, roc=lambda quick: Comparison((FAST,)))
    assert command.main(["counts", "roc"]) == 1
    said = capsys.readouterr()
    assert "The bench took " in said.out
    assert "failed: counts" in said.err
    assert "no luck" in said.err
    recorded = command.read(files / "results.json")["full"]
    assert list(recorded) == ["counts", "roc"]
    assert min(part.seconds for part in recorded.values()) > 0
    text = (files / "BENCH").read_text(encoding="utf-8")
    assert "| counts | Peer 1.0 | 12 x |" in text
    assert "| the comparison `counts` | all its peers * | - | - | failed. ValueError: no luck |" in text


def test_what_failed_has_no_facts_to_show_and_what_was_measured_before_is_gone(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {"jobs": 1e6, "overhead": 0.27, "ratios": [1.3]}
    module(monkeypatch, plan=lambda quick: Comparison(facts=facts))
    assert command.main(["plan"]) == 0
    assert "27 %" in (files / "SPEED").read_text(encoding="utf-8")
    module(monkeypatch, plan=broken)
    assert command.main(["plan"]) == 1
    assert "27 %" not in (files / "SPEED").read_text(encoding="utf-8")
    assert "| the comparison `plan` |" in (files / "BENCH").read_text(encoding="utf-8")


def test_the_rest_is_what_this_code_has_not_measured(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []

    def of(name: str) -> Callable[..., Comparison]:
        return lambda quick: measured.append(name) or Comparison((FAST,))  # type: ignore[func-returns-value]

    module(monkeypatch, roc=of("roc"), counts=of("counts"), gibbs=broken)
    assert command.main(["roc", "gibbs"]) == 1
    recorded = command.read(files / "results.json")
    recorded["full"]["counts"] = Comparison((FAST,), code="another")
    command.write(files / "results.json", recorded)
    module(monkeypatch, gibbs=of("gibbs"))
    assert command.main(["--rest", "roc", "counts", "gibbs"]) == 0
    assert measured == ["roc", "counts", "gibbs"]
    assert command.main(["--rest", "roc", "counts", "gibbs"]) == 0
    assert measured == ["roc", "counts", "gibbs"]


def test_peers_that_cannot_be_had_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(self: peers.Peer) -> Path:
        if self is peers.TUMULT:
            raise peers.Missing("no luck")
        return Path()

    monkeypatch.setattr(peers.Peer, "python", missing)
    assert command.main(["--install"]) == 1
    said = capsys.readouterr().out
    assert "Tumult Analytics: no luck\n" in said
    assert "OpenDP: installed\n" in said
    assert {peer for peer in vars(peers).values() if isinstance(peer, peers.Peer)} == {*peers.EVERY}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Comparison((replace(FAST, agrees=False),)), "roc: answers differ in 1 rows"),
        (Comparison(accuracy=(replace(ERROR, agrees=False),)), "roc: answers differ in 1 rows"),
        (Comparison((FAST,), broken=("too steep",)), "roc: too steep"),
    ],
)
def test_what_is_wrong_fails_the_run_and_is_said_by_the_quick_form(
    files: Path, found: Comparison, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module(monkeypatch, roc=lambda quick: found)
    assert command.main(["roc"]) == 1
    assert f"failed: {said}" in capsys.readouterr().err
    assert command.main(["--quick", "roc"]) == 0
    assert f"Below half of the recorded ratio:\n   none\nWrong:\n   {said}\n" in capsys.readouterr().out


def test_an_interruption_leaves_tables_that_agree_with_the_records(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module(monkeypatch, roc=lambda quick: Comparison((FAST,)), gibbs=interrupted)
    assert command.main(["roc", "gibbs"]) == 130
    assert "bench: interrupted" in capsys.readouterr().err
    assert list(command.read(files / "results.json")["full"]) == ["roc"]
    assert "| counts | Peer 1.0 | 12 x |" in (files / "BENCH").read_text(encoding="utf-8")


def test_publish_measures_nothing(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module(monkeypatch, **dict.fromkeys(command.NAMES, broken))
    before = (files / "BENCH").read_bytes()
    assert command.main(["--publish"]) == 1
    assert (files / "BENCH").read_bytes() == before
    command.write(files / "results.json", {"full": {"roc": Comparison((FAST,))}, "quick": {}})
    assert command.main(["--publish"]) == 0
    assert "| counts | Peer 1.0 | 12 x |" in (files / "BENCH").read_text(encoding="utf-8")
    assert (files / "bench-time.svg").exists()


def test_the_quick_form_says_what_fell_and_what_it_did_not_watch_and_changes_nothing(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quick = {"counts": Comparison((SLOW,)), "roc": Comparison((FAST,), (ERROR,))}
    full = {"roc": Comparison((FAST, replace(FAST, peer="Heavy")))}
    command.write(files / "results.json", {"full": full, "quick": quick})
    before = {path: path.read_bytes() for path in files.iterdir()}
    fell = Comparison((replace(FAST, time=6.0),), (replace(ERROR, error=4.0),))
    module(monkeypatch, counts=broken, roc=lambda quick: fell)
    assert command.main(["--quick", "counts", "roc"]) == 0
    said = capsys.readouterr().out
    assert "ratio:\n   counts against Peer: time 6, recorded 12.3\n   alpha 0.1 against Peer: error 4, rec" in said
    assert "(`make bench` has all):\n   fit against Other\n   counts against Heavy\nThe quick form took " in said
    assert {path: path.read_bytes() for path in files.iterdir()} == before


def test_the_quick_form_starts_nothing_after_four_and_a_half_minutes(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [0.0]

    def slow(*, quick: bool) -> Comparison:
        assert peers.QUICK.deadline <= 290
        clock[0] += 270
        return Comparison((FAST,))

    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    module(monkeypatch, counts=slow, roc=slow)
    assert command.main(["--quick", "counts", "roc"]) == 0
    assert "== roc: not run, the time is up" in capsys.readouterr().out
    assert clock == [270]


def test_every_comparison_can_be_asked_for() -> None:
    there = {path.stem for path in command.HERE.glob("*.py") if "\ndef compare(*, quick: bool)" in path.read_text()}
    assert there == {*command.ALL}


def test_what_numpy_computed_is_written_down(tmp_path: Path) -> None:
    """A comparison whose agreement was NumPy's `True` ended the whole bench."""
    found = Accuracy("promise", "peer", np.float64(2.00004), "protects", "said", np.bool_(True))
    command.write(tmp_path / "results.json", {"full": {"kinds": Comparison(accuracy=(found,))}, "quick": {}})
    [kept] = command.read(tmp_path / "results.json")["full"]["kinds"].accuracy
    assert kept.error == 2 and kept.agrees is True
