"""A run is killed (SIGKILL) at random instants of every step, and run again: files, budget and chain must be right."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from discreet.ledger import Ledger
from discreet.privacy.losses import Pure

pytestmark = pytest.mark.walk  # many kills, to the end

RELEASES = ("places", "sexes", "margins")
LONGEST_WAIT = 0.08  # seconds into a step: longer than any step of the toy plan but the report


def promised(folder: Path) -> dict[str, dict[str, str]]:
    """The files that the ledger has fixed for each release so far."""
    ledger = folder / "ledger.db"
    if not ledger.exists():
        return {}
    with Ledger.open(ledger, read_only=True) as book:
        return {str(e.release): e.payload["files"] for e in book.entries() if e.kind == "publish"}


def shown(folder: Path) -> dict[str, dict[str, str]]:
    """The files that anybody can see of each release, hashed here."""
    return {
        name: {
            path.relative_to(folder / "out" / name).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in (folder / "out" / name).rglob("*")
            if path.is_file()
        }
        for name in RELEASES
        if (folder / "out" / name).exists()
    }


def disagreements(folder: Path) -> list[str]:
    """Every way in which the book and the visible files contradict each other."""
    fixed, visible = promised(folder), shown(folder)
    found = [f"{name} is visible and not as published" for name in visible if visible[name] != fixed.get(name)]
    if (folder / "ledger.db").exists():
        with Ledger.open(folder / "ledger.db", read_only=True) as book:
            verdict, charges = book.verify(), [e.release for e in book.entries() if e.kind == "charge"]
        found += [] if verdict else [str(verdict)]
        found += [f"{name} is paid for {n} times" for name, n in Counter(charges).items() if n > 1]
    return found


def finish(runner, folder: Path, before: dict[str, dict[str, str]]) -> None:
    """Run to the end: everything promised is there, once paid, and nothing that was shown has changed."""
    runner.start(folder / "plan.toml")
    code, said = runner.wait()
    assert code == 0, said
    assert disagreements(folder) == []
    after = shown(folder)
    assert set(after) == set(RELEASES)
    assert {name: after[name] for name in before} == before
    with Ledger.open(folder / "ledger.db", read_only=True) as book:
        [budget] = book.budgets()
        assert not budget.remaining
        assert sum(entry.kind == "charge" for entry in book.entries()) == len(RELEASES)
    assert (folder / "out" / "report.html").read_text().endswith("</html>\n")
    left = sorted(path.name for path in (folder / "out").iterdir())
    assert left == sorted([*RELEASES, "anchors.jsonl", "bundle.zip", "report.html"]), (
        "an unfinished file was left behind"
    )


@pytest.mark.parametrize(
    "kills", [pytest.param(10, marks=pytest.mark.walk), pytest.param(100, marks=pytest.mark.full_size)]
)
def test_killed_at_any_step(kills: int, tmp_path: Path, toys, runner) -> None:
    chance, steps, plans = random.Random(kills), Counter(), 0
    folder = None
    while sum(steps.values()) < kills:
        if folder is None:
            folder = tmp_path / f"plan-{plans}"
            toys(folder)
            plans, before = plans + 1, {}
        worker, step, wait = runner.start(folder / "plan.toml"), chance.randrange(10), chance.uniform(0, LONGEST_WAIT)
        line = runner.line()
        while int(line.split()[0]) < step and "bundle" not in line:
            line = runner.line()
        time.sleep(wait)
        os.kill(worker, signal.SIGKILL)
        code, _ = runner.wait()
        assert disagreements(folder) == []
        assert {name: files for name, files in promised(folder).items() if name in before} == before
        before = promised(folder)
        if code == -signal.SIGKILL:
            steps[line.split(maxsplit=1)[1].split(" ")[0]] += 1
        if set(before) == set(RELEASES) and chance.random() < 0.3:
            finish(runner, folder, shown(folder))
            folder = None
    if folder is not None:
        finish(runner, folder, shown(folder))
    print(plans, steps)
    assert steps["release"] >= kills // 8, f"too few kills fell into a release: {steps}"


def test_killed_while_drawing_never_leaves_two_draws(tmp_path: Path, toys, runner) -> None:
    """Killed as soon as a draw is on disk, again and again: each run deletes what the one before drew."""
    toys(tmp_path)
    drawn: set[str] = set()
    for _ in range(4):
        worker, before = runner.start(tmp_path / "plan.toml"), drawn.copy()
        while not (drawn := staged(tmp_path)) - before:
            time.sleep(0.0005)
        os.kill(worker, signal.SIGKILL)
        runner.wait()
        assert len(staged(tmp_path)) <= 1
        assert disagreements(tmp_path) == []
    finish(runner, tmp_path, shown(tmp_path))


def staged(folder: Path) -> set[str]:
    """The first release's draws that nobody has published."""
    return {path.parent.name for path in folder.glob("out/.staged-*/research.csv")}


@pytest.mark.parametrize(
    "step", ["read", *(pytest.param(step, marks=pytest.mark.full_size) for step in ("check", "release"))]
)
def test_runs_at_once_all_end_well(tmp_path: Path, toys, runner, step: str) -> None:
    """Whenever a second and a third process begin with the same plan, they end with the files of the first."""
    from discreet.plan.run import run

    plan = toys(tmp_path)
    runner.start(plan)
    while step not in runner.line():
        pass
    steps: list[str] = []
    with ThreadPoolExecutor(2) as pool:
        third = pool.submit(run, plan)
        second = run(plan, progress=lambda step, share: steps.append(step))
        assert third.result().publications == second.publications
    code, said = runner.wait()
    assert code == 0, said
    assert steps[0] == "wait for another run of this plan"
    assert {known.state for known in second.check.releases} == {"released"}
    assert {name: entry.payload["files"] for name, entry in second.publications.items()} == shown(tmp_path)
    finish(runner, tmp_path, shown(tmp_path))


def test_what_ended_a_run_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    from discreet.plan import run as module
    from plan.workers import carry_out

    def broken(*given: object, **named: object) -> None:
        raise ZeroDivisionError("nobody expected it")

    monkeypatch.setattr(module, "run", broken)
    assert carry_out(tmp_path / "plan.toml") == 1
    _, told = capsys.readouterr().out.splitlines()
    assert told.startswith("raised: ")
    assert "in broken" in told
    assert "nobody expected it" in told


def test_killed_between_two_sources(tmp_path: Path, two_sources, runner) -> None:
    """One source has paid and the other has not: the next run ends the work, and nobody pays twice."""
    both, names = two_sources(tmp_path / "both"), ["effects", "places", "sexes"]
    worker = runner.start(both)
    while "release effects" not in runner.line():
        pass
    os.kill(worker, signal.SIGKILL)
    assert runner.wait()[0] == -signal.SIGKILL
    places = both.parent / "out" / "places"
    shown = {path.name: path.read_bytes() for path in places.iterdir()}
    assert not (both.parent / "out" / "sexes").exists()
    runner.start(both)
    code, said = runner.wait()
    assert code == 0, said
    with Ledger.open(both.parent / "ledger.db", read_only=True) as ledger:
        assert ledger.verify()
        assert {budget.dataset: budget.spent for budget in ledger.budgets()} == {"toys": Pure(4), "panel": Pure(2)}
        assert sorted(e.release for e in ledger.entries() if e.kind == "charge") == names
    assert {path.name: path.read_bytes() for path in places.iterdir()} == shown
    left = sorted(path.name for path in (both.parent / "out").iterdir())
    assert left == sorted([*names, "anchors.jsonl", "bundle.zip", "report.html"])
