"""The table maker of the bench: no peer is run here."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))

from bench import comparison, peers
from bench.comparison import Accuracy, Agreement, Comparison, Row, beside

FAST = Row("counts", "Peer", 12.34, 2.5, "same", version="1.0")
SLOW = Row("fit", "Other", 0.5, 3.0, "1e-9", "It is Fortran; compiled steps would close it")
ABSENT = Row("fit", "Third", None, None, "not measured", "it could not be installed")


def same(_: object) -> Agreement:
    return Agreement(True, "same")


def test_markdown_has_one_line_per_row_with_its_reason() -> None:
    close = Row("draws", "Fourth", 0.985, 1.015, "same", same_work=False)
    head, rule, *lines = comparison.markdown([FAST, SLOW, ABSENT, close]).splitlines()
    assert head.count("|") == rule.count("|") == 6
    assert lines == [
        "| counts | Peer 1.0 | 12 x | 2.5 x | same |",
        "| fit | Other | 0.5 x | 3 x | 1e-9. It is Fortran; compiled steps would close it |",
        "| fit | Third | - | - | not measured. it could not be installed |",
        "| draws | Fourth * | a tie | a tie | same |",
    ]


def test_ratios_are_rounded_but_never_to_one() -> None:
    shown = [comparison.shown(ratio) for ratio in (None, 0.0452, 0.979, 1.019, 1.021, 9.87, 1234.5)]
    assert shown == ["-", "0.045 x", "0.98 x", "a tie", "1.02 x", "9.9 x", "1,234 x"]


def test_behind_means_in_time_or_in_memory_and_a_tie_is_not() -> None:
    assert not FAST.behind
    assert SLOW.behind
    assert Row("fit", "Other", 3.0, 0.5, "").behind
    assert not Row("fit", "Other", 0.98, 0.99, "").behind
    assert Row("fit", "Other", 0.979, 3.0, "").behind


def test_a_ratio_is_the_peers_over_ours_and_the_reason_stays_only_where_ours_is_behind() -> None:
    def row(seconds: float) -> Row:
        theirs = {"seconds": seconds, "mib": 300.0, "version": "2"}
        return beside("job", "Peer", {"seconds": 2.0, "mib": 100.0}, lambda: theirs, agree=same, why="so")

    assert (row(6.0).time, row(6.0).memory, row(6.0).why, row(6.0).version) == (3.0, 3.0, "", "2")
    assert (row(1.0).time, row(1.0).why) == (0.5, "so")


def test_a_row_whose_answers_differ_says_so_is_behind_and_stays_so_when_recorded() -> None:
    side = {"seconds": 1.0, "mib": 1.0}
    row = beside("job", "Peer", side, side, agree=lambda _: Agreement(False, "2 and 3"), why="so")
    assert (row.agreement, row.behind, row.why) == ("DISAGREES: 2 and 3", True, "so")
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
    def fallen(now: list[Row], *recorded: Row) -> list[str]:
        return comparison.fallen(Comparison(tuple(now)), Comparison(recorded))

    now = [Row("counts", "Peer", 6.0, 2.0, ""), Row("fit", "Other", 0.26, 2.0, ""), Row("new", "Peer", 0.1, 1.0, "")]
    assert fallen(now, FAST, SLOW, ABSENT) == ["counts against Peer: time 6, recorded 12.3"]
    assert fallen([ABSENT], FAST, SLOW) == []
    assert fallen([replace(FAST, memory=1.0)], FAST) == ["counts against Peer: memory 1, recorded 2.5"]


def test_errors_fall_and_are_watched_like_times() -> None:
    error = Accuracy("alpha 0.1", "Peer", 9.5, "the same")
    recorded, fell = Comparison(accuracy=(error,)), Comparison(accuracy=(replace(error, error=4.0),))
    assert comparison.fallen(fell, recorded) == ["alpha 0.1 against Peer: error 4, recorded 9.5"]
    assert comparison.unwatched(fell, [recorded]) == []
    absent = Comparison(accuracy=(replace(error, error=None),))
    assert comparison.unwatched(absent, [recorded]) == ["alpha 0.1 against Peer"]


def test_unwatched_names_recorded_rows_of_any_size_that_this_run_has_none_for() -> None:
    now = Comparison((Row("counts, 1 million", "Peer", 6.0, 1.0, ""), replace(SLOW, time=None, memory=None)))
    small, large = Row("counts, 1 million", "Peer", 9.0, 1.0, ""), Row("counts, 10.9 million", "Peer", 9.0, 1.0, "")
    recorded = [Comparison((small, SLOW, ABSENT)), Comparison((large, SLOW, replace(large, peer="Heavy")))]
    assert comparison.unwatched(now, recorded) == ["fit against Other", "counts, 10.9 million against Heavy"]
    assert comparison.unwatched(Comparison(), recorded[:1]) == ["counts, 1 million against Peer", "fit against Other"]


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
    with pytest.raises(comparison.NoPlace):
        comparison.put_into(readme, "| new |")
    assert readme.read_text(encoding="utf-8") == "no place"


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


def test_bars_of_a_formula_do_not_end_a_cell() -> None:
    row = Row("fit: y ~ x + (x || g)", "Peer", 2.0, 2.0, "y ~ (1 | g)")
    assert comparison.markdown([row]).splitlines()[2] == (
        r"| fit: y ~ x + (x \|\| g) | Peer | 2 x | 2 x | y ~ (1 \| g) |"
    )
