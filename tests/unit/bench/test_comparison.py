"""The table maker of the bench: no peer is run here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))

from bench import __main__ as command
from bench import comparison, peers
from bench.comparison import Accuracy, Agreement, Comparison, Row, beside
from bench.growth import exponent

FAST = Row("counts", "Peer", 12.34, 2.5, "same", version="1.0")
SLOW = Row("fit", "Other", 0.5, 3.0, "1e-9", "It is Fortran; compiled steps would close it")
ABSENT = Row("fit", "Third", None, None, "not measured", "it could not be installed")


def same(_: object) -> Agreement:
    return Agreement(True, "same")


def test_markdown_has_one_line_per_row_with_its_reason() -> None:
    head, rule, *lines = comparison.markdown([FAST, SLOW, ABSENT]).splitlines()
    assert head.count("|") == rule.count("|") == 6
    assert lines == [
        "| counts | Peer 1.0 | 12 x | 2.5 x | same |",
        "| fit | Other | 0.5 x | 3 x | 1e-9. It is Fortran; compiled steps would close it |",
        "| fit | Third | - | - | not measured. it could not be installed |",
    ]


def test_ahead_means_in_time_and_in_memory() -> None:
    assert FAST.ahead
    assert not SLOW.ahead
    assert not Row("fit", "Other", 3.0, 0.5, "").ahead


def test_a_ratio_is_the_peers_over_ours_and_the_reason_stays_only_where_ours_is_behind() -> None:
    def row(seconds: float) -> Row:
        theirs = {"seconds": seconds, "mib": 300.0, "version": "2"}
        return beside("job", "Peer", {"seconds": 2.0, "mib": 100.0}, lambda: theirs, agree=same, why="so")

    assert (row(6.0).time, row(6.0).memory, row(6.0).why, row(6.0).version) == (3.0, 3.0, "", "2")
    assert (row(1.0).time, row(1.0).why) == (0.5, "so")


def test_a_row_whose_answers_differ_says_so_is_not_ahead_and_stays_so_when_recorded() -> None:
    side = {"seconds": 1.0, "mib": 1.0}
    row = beside("job", "Peer", side, side, agree=lambda _: Agreement(False, "2 and 3"), why="so")
    assert (row.agreement, row.ahead, row.why) == ("DISAGREES: 2 and 3", False, "so")
    found = Comparison((FAST, row))
    assert found.disagreeing == Comparison.of(found.to_dict()).disagreeing == (row,)
    old = {name: value for name, value in asdict(row).items() if name != "agrees"}
    assert not Comparison.of({"rows": [old]}).disagreeing


def test_a_missing_peer_is_a_row_that_says_so() -> None:
    def absent() -> dict[str, float]:
        raise peers.Missing("no such wheel")

    row = beside("job", "Peer", {"seconds": 1.0, "mib": 1.0}, absent, agree=same)
    assert (row.time, row.agreement, row.why) == (None, "not measured", "no such wheel")


def test_fallen_names_ratios_below_half_of_the_recorded() -> None:
    now = [Row("counts", "Peer", 6.0, 2.0, ""), Row("fit", "Other", 0.26, 2.0, ""), Row("new", "Peer", 0.1, 1.0, "")]
    assert comparison.fallen(now, [FAST, SLOW, ABSENT]) == ["counts against Peer: time 6, recorded 12.3"]
    assert comparison.fallen([ABSENT], [FAST, SLOW]) == []
    assert comparison.fallen([replace(FAST, memory=1.0)], [FAST]) == ["counts against Peer: memory 1, recorded 2.5"]


def test_unmeasured_names_recorded_ratios_that_this_run_has_none_for() -> None:
    now = [Row("counts", "Peer", 6.0, 1.0, ""), Row("fit", "Other", None, None, "not measured", "it failed")]
    assert comparison.unmeasured(now, [FAST, SLOW, ABSENT]) == ["fit against Other"]
    assert comparison.unmeasured([], [FAST, ABSENT]) == ["counts against Peer"]
    assert comparison.unmeasured([FAST, SLOW], [FAST, SLOW]) == []


def test_what_was_measured_before_makes_the_same_row() -> None:
    ours, theirs = {"seconds": 2.0, "mib": 100.0}, {"seconds": 6.0, "mib": 50.0}
    rows = [beside("job", "Peer", ours, side, agree=same, why="so") for side in (theirs, lambda: theirs)]
    assert rows[0] == rows[1]
    assert (rows[0].time, rows[0].memory, rows[0].why) == (3.0, 0.5, "so")


def test_put_into_replaces_only_what_is_between_the_marks(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{comparison.START}\nold\n{comparison.END}\nafter\n", encoding="utf-8")
    for _ in range(2):
        comparison.put_into(readme, "| new |")
    assert readme.read_text(encoding="utf-8") == f"before\n{comparison.START}\n| new |\n{comparison.END}\nafter\n"
    readme.write_text("no place", encoding="utf-8")
    with pytest.raises(ValueError, match="no place for the table"):
        comparison.put_into(readme, "| new |")
    assert readme.read_text(encoding="utf-8") == "no place"


def test_exponent_is_the_slope_of_the_upper_half() -> None:
    sizes = [1e2, 1e3, 1e4, 1e5, 1e6, 1e7]
    assert exponent(sizes, [3 * n**1.07 for n in sizes]) == pytest.approx(1.07)
    start_up = [0.5, 0.5, 0.5, *(1e-6 * n for n in sizes[3:])]
    assert exponent(sizes, start_up) == pytest.approx(1.0)
    assert exponent(sizes[::-1], start_up[::-1]) == pytest.approx(1.0)
    assert exponent([10, 1000], [1.0, 10.0]) == pytest.approx(0.5)


def test_results_survive_a_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    found = Comparison((FAST, ABSENT), (Accuracy("alpha 0.1", "Peer", 9.5, "the same", "3, 3"),), {"cells": 3}, 12.5)
    command.write(path, {"full": {"counts": found}, "quick": {}})
    assert command.read(path) == {"full": {"counts": found}, "quick": {}}
    assert command.read(tmp_path / "absent.json") == {"full": {}, "quick": {}}


def module(monkeypatch: pytest.MonkeyPatch, **parts: Callable[..., Comparison]) -> None:
    """Comparisons that run no peer, in place of the real ones."""
    for name, compare in parts.items():
        monkeypatch.setitem(sys.modules, f"bench.{name}", SimpleNamespace(compare=compare))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every file that the bench writes, in a folder of the test's; the quick form's deadline is put back."""
    for name in ("README", "SPEED"):
        (tmp_path / name).write_text(f"{comparison.START}\n{comparison.END}\n", encoding="utf-8")
        monkeypatch.setattr(command, name, tmp_path / name)
    monkeypatch.setattr(command, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(command, "PICTURES", tmp_path)
    monkeypatch.setattr(peers, "QUICK", peers.Quick())
    return tmp_path


def broken(*, quick: bool) -> Comparison:
    raise ValueError("no luck")


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
    assert list(recorded) == ["roc"]
    assert recorded["roc"].seconds > 0
    assert "| counts | Peer 1.0 | 12 x |" in (files / "README").read_text(encoding="utf-8")


def test_the_quick_form_says_what_fell_and_what_is_missing_and_changes_nothing(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quick = {"counts": Comparison((SLOW,)), "roc": Comparison((FAST,))}
    command.write(files / "results.json", {"full": {}, "quick": quick})
    before = {path: path.read_bytes() for path in files.iterdir()}
    module(monkeypatch, counts=broken, roc=lambda quick: Comparison((replace(FAST, time=6.0),)))
    assert command.main(["--quick", "counts", "roc"]) == 0
    said = capsys.readouterr().out
    assert "Below half of the recorded ratio:\ncounts against Peer: time 6, recorded 12.3\n" in said
    assert "Recorded, but not measured now:\nfit against Other\nThe quick form took " in said
    assert {path: path.read_bytes() for path in files.iterdir()} == before


def test_every_comparison_can_be_asked_for() -> None:
    there = {path.stem for path in command.HERE.glob("*.py") if "\ndef compare(*, quick: bool)" in path.read_text()}
    assert there == {*command.NAMES, *command.WITHOUT_PEERS}


def test_the_recorded_table_is_the_readmes() -> None:
    """README, the page on speed and results.json come from the same run, to the last word."""
    recorded = command.read(command.RESULTS)["full"]
    for path, text in command.texts(recorded).items():
        assert path.read_text(encoding="utf-8").partition(comparison.START)[2].startswith(f"\n{text}\n{comparison.END}")


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "results.json"
    comparison.replace_file(path, "old")
    monkeypatch.setattr(comparison.os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        comparison.replace_file(path, "new")
    assert [file.name for file in tmp_path.iterdir()] == ["results.json"]
    assert path.read_text() == "old"


def full_disk(handle: int) -> None:
    raise OSError(28, "No space left on device")


def test_every_recorded_row_is_ahead_or_says_why_not() -> None:
    recorded = command.read(command.RESULTS)["full"]
    silent = [row for found in recorded.values() for row in found.rows if not row.ahead and not row.why]
    missing = [row for found in recorded.values() for row in found.rows if row.time is None and not row.why]
    assert not silent
    assert not missing


def test_the_process_tree_of_a_measurement_is_stopped_in_time() -> None:
    with pytest.raises(peers.Missing, match="stopped after 1 s"):
        peers.ours("time.sleep(60)", seconds=1)


def test_a_measurement_reports_time_and_memory() -> None:
    script = "time_, kept = measured(lambda: bytearray(80_000_000), 2)\nreport(**time_, length=len(kept))"
    found = peers.ours(script)
    assert found["length"] == 80_000_000
    assert found["mib"] > 76
    assert 0 < found["cpu"] < 60
    with pytest.raises(peers.Missing, match=r"discreet failed: ValueError: no"):
        peers.ours("raise ValueError('no')")
