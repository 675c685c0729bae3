"""A plan, and with it every run of the desk: the draws of its releases lose what their lines in the ledger say."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.ledger import Ledger
from discreet.plan.run import run
from discreet.privacy.losses import total
from discreet.release.payer import Payer

HEAD = """
[data]
source = "rows.parquet"
public = ["x"]
[unit]
kind = "rows"
lower = -10
upper = 10
response = "y"
[budget]
epsilon = 200
ledger = "ledger.db"
dataset = "rows"
[output]
folder = "out"
"""
MODEL = """
[[release]]
name = "model"
kind = "model"
formula = "y ~ x"
epsilon = 2
"""
POSTERIOR = """
[[release]]
name = "{summary}"
kind = "posterior"
formula = "y ~ x"
summary = "{summary}"
coefficient = ["x"]
at = [{at}]
partitions = 8
epsilon = {epsilon}
"""
POSTERIORS = "".join(
    POSTERIOR.format(summary=summary, at=at, epsilon=epsilon)
    for summary, at, epsilon in (("probability", "1.9, 2.1", 1), ("quantile", "0.5", 40), ("interval", "0.9", 50))
)
ROW = 7


def table(x: float, y: float) -> pa.Table:
    rng = np.random.default_rng(8)
    xs = rng.uniform(-1, 1, 64)
    ys = 1 + 2 * xs + 0.1 * rng.uniform(-1, 1, 64)
    xs[ROW], ys[ROW] = x, y
    return pa.table({"x": xs, "y": ys})


@pytest.mark.parametrize(
    ("releases", "rows"),
    [
        (MODEL, [(3.0, y) for y in (-10.0, -5.0, 1.0, 2.0, 5.0, 10.0)]),
        (POSTERIORS, [(1e4, -1e9), (1e4, 1e9), (1e4, 2e4), (1e4, 1e6), (1e4, 0.0)]),
    ],
    ids=["model", "posteriors"],
)
def test_the_releases_of_a_plan_lose_what_its_ledger_says(
    releases: str, rows: list[tuple[float, float]], tmp_path: Path, losses, amount, monkeypatch
) -> None:
    monkeypatch.setattr(Payer, "partition_seed", 2)
    folders = count()

    def door(row: tuple[float, float]) -> tuple[Any, Any]:
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        pq.write_table(table(*row), folder / "rows.parquet")
        (folder / "plan.toml").write_text(HEAD + releases, encoding="utf-8")
        outcome = run(folder / "plan.toml")
        with Ledger.open(folder / "ledger.db") as ledger:
            paid = [entry.loss for entry in ledger.entries() if entry.kind == "charge"]
        published = [pq.read_table(path).to_pydict() for path in sorted((folder / "out").rglob("research.parquet"))]
        assert len(published) == len(paid) == len(outcome.publications)
        return published, total(paid)

    worst, told = losses(door, rows[0], rows[1:])
    charged = amount(told.charged)
    assert Fraction(95, 100) * charged <= sum(worst) <= charged


def test_the_counts_of_a_plan_are_drawn_for_what_its_ledger_says(
    tmp_path: Path, record: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers are protected: one job more moves one count of every table, and one only.

    The report's picture of beliefs draws noise for made-up sizes. It is given no data, and is left out here.
    """
    monkeypatch.setattr("discreet.plan.kinds.counts.beliefs_after", lambda query, ready: None)
    plan = """
        [data]
        source = "jobs.parquet"
        workplaces = "places.parquet"
        [data.schema]
        workplace_attributes = ["place"]
        worker_attributes = { sex = ["f", "m"] }
        [unit]
        kind = "workers"
        [budget]
        epsilon = 5
        ledger = "ledger.db"
        dataset = "toys"
        [output]
        folder = "out"
        [[release]]
        name = "sexes"
        kind = "count"
        by = ["place", "sex"]
        epsilon = 2
        [[release]]
        name = "margins"
        kind = "counts"
        tables = [["place", "sex"], ["place"]]
        split = ["1/4", "3/4"]
        add_up = true
        epsilon = 3
    """

    def door(women: int) -> Callable[[], tuple[Any, Any]]:
        def release() -> tuple[Any, Any]:
            folder = tmp_path / f"{women}{next(folders)}"
            folder.mkdir()
            firms, sexes = [1] * women + [2] * 3, ["f"] * women + ["m"] * 3
            jobs = {"workplace": firms, "worker": list(range(len(firms))), "sex": sexes}
            pq.write_table(pa.table(jobs), folder / "jobs.parquet")
            pq.write_table(pa.table({"workplace": [1, 2], "place": ["a", "b"]}), folder / "places.parquet")
            (folder / "plan.toml").write_text(plan, encoding="utf-8")
            run(folder / "plan.toml")
            with Ledger.open(folder / "ledger.db") as ledger:
                paid = [entry.loss for entry in ledger.entries() if entry.kind == "charge"]
            return [
                pq.read_table(path).to_pydict() for path in sorted((folder / "out").rglob("research*.parquet"))
            ], paid

        return release

    folders = count()
    told = record(door(20))
    again = record(door(21), given=told)
    assert told.public == again.public and len(told.public) == 3
    spent = [
        sum(abs(y - x) / Fraction(s) for x, y, s in zip(a.bare, b.bare, a.scale, strict=True))
        for a, b in zip(told.draws, again.draws, strict=True)
    ]
    assert [float(s) for s in spent] == pytest.approx([2, 3 / 4, 9 / 4]) and sum(spent) <= 5
