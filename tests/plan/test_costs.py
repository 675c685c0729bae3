"""The costs that `check` shows: each table of a release has its own share."""

from __future__ import annotations

from pathlib import Path


def test_each_table_shows_its_share(plan: Path, command, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    head, _, _, margins = plan.read_text(encoding="utf-8").split("[[release]]")
    margins = margins.replace('["1/2", "1/2"]', '["2/3", "1/3"]').replace("epsilon = 2", "epsilon = 6")
    plan.write_text(f"{head}[[release]]{margins}", encoding="utf-8")
    code, out, err = command("check", plan)
    assert code == 0, err
    shown = [row for row in out.splitlines() if "margins" in row and "epsilon" in row]
    assert ["epsilon=4" in shown[0], "epsilon=2" in shown[1]] == [True, True], out
    assert "The plan costs epsilon=6" in out
