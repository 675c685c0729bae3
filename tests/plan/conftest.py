"""A small confidential data set with a plan, and processes that carry plans out and may die."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from runs import Runner

PLAN = """
title = "Toys"

[data]
source = "data/jobs.parquet"
workplaces = "data/places.parquet"

[data.schema]
workplace_attributes = ["place", "sector"]
worker_attributes = { sex = ["f", "m"] }

[unit]
kind = "establishments"
alpha = 0.1

[budget]
epsilon = 6
ledger = "ledger.db"
dataset = "toys"

[[release]]
name = "places"
kind = "count"
by = ["place", "sector"]
epsilon = 2

[[release]]
name = "sexes"
kind = "count"
by = ["place", "sex"]
epsilon = 2

[[release]]
name = "margins"
kind = "counts"
tables = [["place", "sector"], ["place"]]
split = ["1/2", "1/2"]
add_up = true
epsilon = 2

[output]
folder = "out"
"""

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "plans.md"
_, _, SECTION = PAGE.read_text(encoding="utf-8").partition("## Several sources")
SHOWN = SECTION.partition("```toml\n")[2].partition("```")[0]
SEVERAL = "\n" + SHOWN.replace('kind = "count"', 'kind = "count"\nmechanism = "polynomial"')
"""The plan that the how-to shows, with noise that costs a reviewer little."""


def write_toys(folder: Path) -> Path:
    """Forty establishments in four places, and a plan about them."""
    rng = np.random.default_rng(7)
    size = 1 + rng.geometric(0.15, 40)
    workplace = np.repeat(np.arange(40), size)
    (folder / "data").mkdir(parents=True)
    places = {
        "workplace": np.arange(40),
        "place": [f"P{i % 4}" for i in range(40)],
        "sector": ["farm" if i % 3 else "shop" for i in range(40)],
    }
    jobs = {
        "workplace": workplace,
        "worker": np.arange(len(workplace)),
        "sex": np.where(rng.random(len(workplace)) < 0.5, "f", "m"),
    }
    pq.write_table(pa.table(places), folder / "data" / "places.parquet")
    pq.write_table(pa.table(jobs), folder / "data" / "jobs.parquet")
    plan = folder / "plan.toml"
    plan.write_text(PLAN, encoding="utf-8")
    return plan


def write_two_sources(folder: Path) -> Path:
    """The same establishments beside a table of rows, and a plan about both."""
    plan = write_toys(folder)
    rng = np.random.default_rng(3)
    groups = rng.integers(0, 8, 400)
    panel = {"y": np.clip(groups / 4 + rng.standard_normal(400), -10, 10), "g": [f"g{i}" for i in groups]}
    pq.write_table(pa.table(panel), folder / "data" / "panel.parquet")
    plan.write_text(SEVERAL, encoding="utf-8")
    return plan


@pytest.fixture(scope="session")
def toys() -> Callable[[Path], Path]:
    return write_toys


@pytest.fixture(scope="session")
def two_sources() -> Callable[[Path], Path]:
    return write_two_sources


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """A plan that can be run."""
    return write_toys(tmp_path / "toys")


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """The command line in this process: its exit code, what it printed and what it complained."""
    from discreet.cli import main

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["discreet", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return run


@pytest.fixture
def contents() -> Callable[[Path], dict[str, bytes]]:
    """Every file below a folder, to see whether anything was written."""

    def read(folder: Path) -> dict[str, bytes]:
        return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}

    return read


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    runner = Runner(write_toys(tmp_path_factory.mktemp("first") / "toys"))
    yield runner
    runner.close()
