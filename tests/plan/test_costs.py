"""The costs that `check` shows: each table of a release has its own share."""

from __future__ import annotations

from pathlib import Path


def test_each_table_shows_its_share(plan: Path, command, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    text = plan.read_text(encoding="utf-8").replace('["1/2", "1/2"]', '["3/4", "1/4"]')
    plan.write_text(text, encoding="utf-8")
    code, out, err = command("check", plan)
    assert code == 0, err
    shown = [row for row in out.splitlines() if "margins" in row and "epsilon" in row]
    assert ["epsilon=1.5" in shown[0], "epsilon=0.5" in shown[1]] == [True, True], out
    assert "The plan costs epsilon=6" in out
