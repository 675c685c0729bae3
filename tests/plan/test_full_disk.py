"""A disk that is full in the middle of a run: a real one of some KB, which only the run's own process sees."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.ledger import Ledger
from discreet.plan.run import run

SMALL = """
mount -t tmpfs -o size={size} tmpfs {place} || exit 99
exec {python} -c 'from discreet.plan.run import run; run("{plan}")'
"""


pytestmark = pytest.mark.full_size


def on_a_small_disk(plan: Path, *, size: str) -> subprocess.CompletedProcess[str]:
    """Run a plan whose output folder is a disk of its own, in a space of mounts that goes with the process."""
    (plan.parent / "out").mkdir(exist_ok=True)
    script = SMALL.format(size=size, place=plan.parent / "out", python=sys.executable, plan=plan)
    try:
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if done.returncode in (1, 99) and "mount" in done.stderr.splitlines()[-1]:
        pytest.skip("mounting a disk needs root")
    return done


def charged(plan: Path) -> list[str]:
    if not (plan.parent / "ledger.db").exists():
        return []
    with Ledger.open(plan.parent / "ledger.db", read_only=True) as ledger:
        assert ledger.verify()
        return [str(entry.release) for entry in ledger.entries() if entry.kind == "charge"]


def test_a_full_disk_is_said_and_the_run_is_resumed(toys: Callable[[Path], Path], tmp_path: Path) -> None:
    """What was paid for and could not be written is drawn once more, elsewhere, for nothing."""
    plan = toys(tmp_path)
    done = on_a_small_disk(plan, size="16k")
    assert "No space left on device" in done.stderr and "it resumes" in done.stderr, done.stderr
    before = charged(plan)
    assert before  # it was in the middle
    assert run(plan).remaining.epsilon == 0
    assert sorted(charged(plan)) == ["margins", "places", "sexes"]


def test_the_same_disk_with_room_is_enough(toys: Callable[[Path], Path], tmp_path: Path) -> None:
    """The test above can tell: nothing else is wrong with that disk."""
    plan = toys(tmp_path)
    done = on_a_small_disk(plan, size="16m")
    assert done.returncode == 0, done.stderr
    assert len(charged(plan)) == 3
