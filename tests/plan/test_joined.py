"""Plans of one source each become one plan of several, by the command alone; series of periods too."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.plan.check import check
from discreet.plan.joined import join_plans
from discreet.plan.reading import read_plan
from discreet.words.errors import PlanError

JOBS = "firm,person,place\n" + "".join(f"f{i // 4},p{i},c{i // 4 % 3}\n" for i in range(40))
PANEL = "y,g\n" + "".join(f"{i % 7 / 7:.3f},g{i % 5}\n" for i in range(60))


@pytest.fixture
def plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command) -> list[Path]:
    monkeypatch.chdir(tmp_path)
    Path("jobs.csv").write_text(JOBS)
    Path("panel.csv").write_text(PANEL)
    roles = ["--establishment", "firm", "--worker", "person", "--workplace-attribute", "place"]
    series = ["--period", "2026Q1", "--per-period", "1"]
    assert command("plan", "new", "jobs.csv", *roles, *series, "--out", "jobs.toml")[0] == 0
    model = ["--response", "y", "--public", "g", "--bounds", "0", "1", "--epsilon", "2"]
    assert command("plan", "new", "panel.csv", *model, "--out", "panel.toml")[0] == 0
    return [Path("jobs.toml"), Path("panel.toml")]


def test_a_new_plan_of_a_series_says_what_each_quarter_may_cost(plans: list[Path]) -> None:
    source = read_plan(plans[0]).plan.only
    assert source.data.period == "2026-Q1" and source.budget.policy().limit == 1
    assert not check(read_plan(plans[0])).faults


def test_two_plans_are_joined_and_nothing_is_asked_for_otherwise(plans: list[Path], command) -> None:
    code, out, err = command("plan", "join", *plans, "--out", "both.toml")
    assert code == 0 and "discreet check both.toml" in out, err
    both = read_plan("both.toml")
    assert list(both.plan.source) == ["jobs", "panel"]
    found = check(both)
    assert not found.faults and [str(each.cost) for each in found.spending] == ["epsilon=1", "epsilon=1"]
    alone = [check(read_plan(path)).releases[0].request.details for path in plans]
    assert [each.request.details for each in found.releases] == alone
    assert "# [data" not in Path("both.toml").read_text() and "confidential; stays" in Path("both.toml").read_text()


def test_what_cannot_be_joined_is_refused(plans: list[Path]) -> None:
    other = Path("other.toml")
    other.write_text(plans[0].read_text().replace("[output]", '[output]\nforms = ["basic"]'))
    Path("inner").mkdir()
    inner = Path("inner/panel.toml")
    inner.write_text(plans[1].read_text())
    join_plans(plans, "both.toml")
    before = sorted(Path().rglob("*"))
    for wrong, out in (
        (plans[:1], "new.toml"),
        ([*plans, plans[0]], "new.toml"),  # the same release twice
        ([Path("both.toml"), plans[0]], "new.toml"),
        ([other, plans[1]], "new.toml"),
        ([plans[0], inner], "new.toml"),
        (plans, "both.toml"),
    ):
        with pytest.raises(PlanError):
            join_plans(wrong, out)
    assert sorted(Path().rglob("*")) == before
