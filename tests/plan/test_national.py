"""A programme of twelve tables on a simulated nation: it adds up, has no bias, and no table is worse than its own draw.

The small one runs every day. The full one has 3 million establishments, 43 million jobs and over 2 million cells.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.noise.source import SeededSource
from discreet.simulate import national
from discreet.tables import consistency
from discreet.tables.baseline.establishments import histograms
from discreet.tables.baseline.infusion import Infusion
from discreet.tables.workload import agreed

TABLES = (
    ["naics6", "county", "ownership"],
    ["naics4", "county", "ownership"],
    ["naics3", "county"],
    ["naics2", "county", "ownership"],
    ["naics6", "state"],
    ["naics2", "state"],
)
DRAWN = (TABLES[0], TABLES[3], TABLES[5])
REPEATS = 8
MANY = 100
"""Releases that show the bias of single totals."""

PLAN = f"""
[data]
source = "nation"
[unit]
kind = "establishments"
alpha = 0.1
[budget]
epsilon = 4
ledger = "ledger.db"
dataset = "nation"
[[release]]
name = "employment"
kind = "counts"
tables = {TABLES}
measure = {DRAWN}
add_up = true
establishments = true
epsilon = 2
[[release]]
name = "payroll"
kind = "sums"
of = "payroll"
tables = {TABLES}
measure = {DRAWN}
add_up = true
establishments = true
epsilon = 2
[output]
folder = "out"
formats = ["parquet"]
""".replace("(", "[").replace(")", "]")


def programme(folder: Path, share: float) -> Path:
    national.write(folder / "nation", share=share)
    (folder / "plan.toml").write_text(PLAN)
    return folder / "plan.toml"


def assert_adds_up(folder: Path, value: str) -> int:
    """Every table is the sum of the finest one by its codes; returns how many cells there are."""
    places = sorted(path for path in folder.iterdir() if path.is_dir())
    fine, cells = pq.read_table(places[0] / "basic.parquet"), 0
    codes = {name: np.array(fine[name].to_pylist()) for name in ("naics6", "county", "ownership")}
    codes |= {f"naics{n}": codes["naics6"].astype(f"U{n}") for n in (2, 3, 4, 5)}
    codes["state"] = codes["county"].astype("U2")
    for place in places:
        table = pq.read_table(place / "basic.parquet")
        cells += len(table)
        by = [name for name in table.column_names if name in codes]
        keys, row = np.unique(np.stack([codes[name] for name in by], axis=1), axis=0, return_inverse=True)
        for column in (value, "establishments"):
            sums = np.zeros(len(keys), dtype=np.int64)
            np.add.at(sums, row.ravel(), np.array(fine[column]))
            order = np.lexsort([np.array(table[name].to_pylist()) for name in reversed(by)])
            assert np.array_equal(np.array(table[column])[order], sums), (place.name, column)
    return cells


def test_a_small_programme_goes_from_plan_to_reviewer_and_adds_up(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from discreet.cli.app import app
    from discreet.plan.check import check
    from discreet.plan.reading import read_plan
    from discreet.plan.run import run
    from discreet.review.verdict import verify_bundle

    plan = programme(tmp_path, 0.002)  # and drawn tables at 1 each, whose noise a reviewer of other plans has examined
    plan.write_text(plan.read_text().replace("epsilon = 4", "epsilon = 6").replace("epsilon = 2", "epsilon = 3"))
    rows = pq.read_table(
        tmp_path / "nation" / "jobs.parquet", columns=["naics6", "county", "ownership", "jobs"]
    ).to_pandas()
    sizes = rows.groupby(["naics6", "county", "ownership"], as_index=False)["jobs"].sum()
    sizes.to_csv(tmp_path / "sizes.csv", index=False)
    plan.write_text(plan.read_text().replace("[unit]", '[public]\nsizes = "sizes.csv"\n[unit]'))
    for known, cap in zip(check(read_plan(plan)).releases, (False, True), strict=True):
        told = [[note for note in table.notes if "times that of noise infusion" in note] for table in known.tables]
        assert all(len(each) == 1 and ("of the cap" in each[0]) is cap for each in told)
    employment, payroll = check(read_plan(plan)).releases
    assert [bool(table.cautions) for table in (employment.tables[0], payroll.tables[0])] == [False, True]
    shown = CliRunner().invoke(app, ["check", str(plan)], terminal_width=400).output
    assert shown.startswith("Note: payroll, by naics6, county, ownership: ") and "below zero" in shown.splitlines()[0]
    done = run(plan)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "not compared with noise infusion" not in page and "What is assumed" in page
    drawn = pq.read_table(next((tmp_path / "out" / "payroll").glob("1-*")) / "research.parquet")["sum"].to_numpy()
    assert f"{100 * (drawn < 0).mean():.0f} % of sums were drawn below zero" in page.replace("\u202f", " ")
    assert assert_adds_up(tmp_path / "out" / "employment", "count") > 5_000
    assert_adds_up(tmp_path / "out" / "payroll", "sum")
    assert not [one for one in verify_bundle(done.bundle) if one.wrong]


def totals_of(keys: Any) -> dict[str, Any]:
    """To which total each fine cell belongs: by every attribute and level, and in every table that is a sum."""
    codes = {name: np.array(keys[name].to_pylist()) for name in keys.column_names}
    codes |= {f"naics{n}": codes["naics6"].astype(f"U{n}") for n in (2, 3, 4, 5)}
    codes["state"] = codes["county"].astype("U2")
    number = {name: np.unique(code, return_inverse=True)[1] for name, code in codes.items()}
    for by in TABLES[1:]:
        rows = np.stack([number[name] for name in by], axis=1)
        number[" x ".join(by)] = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    return number


def studied(
    jobs: Any, of: str | None, repeats: int, monkeypatch: pytest.MonkeyPatch, *, non_negative: bool = True
) -> None:
    """Bias of totals, and errors of tables before and after they agree.

    The total that all tables agree on is a combination of their drawn totals, by what each table is trusted
    (docs/proofs/consistency.md). With fixed weights it has no bias; weights that follow the draws could give it one. So
    the bias is measured beside the combination with the mean weights of the other draws: that takes away nearly all
    of the noise, and a hundredth of a standard error shows.
    """
    session = dc.Session(jobs, unit=dc.Establishments("0.1"), budget=100, seed=1)
    queries = session.marginals(*DRAWN, of=of).queries
    ready = [query.prepare(epsilon="2/3") for query in queries]
    cells = [query.statistics(part) for query, part in zip(queries, ready, strict=True)]
    ratios: list[float] = []
    trust = consistency.trust

    def seen(*given: Any) -> Any:
        found = trust(*given)
        ratios.append(float(found[0]))
        return found

    monkeypatch.setattr(consistency, "trust", seen)
    source, total, drawn, weights, off, parts = SeededSource(7), [], [], [], [], dict[str, list[Any]]()
    place = totals_of(cells[0].keys)
    if repeats < MANY:  # the standard error of a single cell near zero is not known from few releases
        place = {name: at for name, at in place.items() if " x " not in name}
    if repeats <= REPEATS:
        place = {name: place[name] for name in ("state", "county", "naics2", "naics3")}
    for _ in range(repeats):
        raw = [
            query._wrap(part, cell, query.drawn(part, cell, source), level=0.95)
            for query, part, cell in zip(queries, ready, cells, strict=True)
        ]
        after = agreed(queries, ready, raw, level=0.95, non_negative=non_negative)
        weights.append(np.array([1.0, *(1 / ratio for ratio in ratios[-2:])]))
        drawn.append([float(table.counts.sum() - cell.counts.sum()) for table, cell in zip(raw, cells, strict=True)])
        moved = [(table.counts - cell.counts).astype(np.float64) for table, cell in zip(after, cells, strict=True)]
        assert len({float(each.sum()) for each in moved}) == 1, "the tables agree"
        total.append(float(moved[0].sum()))
        for name, at in place.items():
            parts.setdefault(name, []).append(np.bincount(at, moved[0].ravel()))
        off.append(
            [
                [float(np.abs(table.counts - cell.counts).mean()), float(np.abs(each).mean())]
                for table, each, cell in zip(raw, moved, cells, strict=True)
            ]
        )
    trusted = np.array(weights) / np.sum(weights, axis=1, keepdims=True)
    others = (trusted.sum(axis=0) - trusted) / (repeats - 1)
    spread, rest = np.std(total, ddof=1), np.array(total) - (others * np.array(drawn)).sum(axis=1)
    told = (of, "mean and standard error", np.mean(total), spread, "bias over it", rest.mean() / spread)
    print(*told, "+-", rest.std(ddof=1) / spread / np.sqrt(repeats))
    assert np.abs(np.array(total) - (trusted * np.array(drawn)).sum(axis=1)).max() <= 1e-3 * spread + 1, told
    assert abs(rest.mean()) <= 0.05 * spread, told
    for name, found in parts.items():
        spreads = np.std(found, axis=0, ddof=1)
        bias = np.mean(found, axis=0)[spreads > 0] / spreads[spreads > 0]
        chance = (repeats - 1) / (repeats - 3)  # the mean square of bias over its standard error, where there is none
        beyond = float((bias**2).mean() / chance - 1 / repeats)
        figures = (np.sqrt(max(beyond, 0)), np.abs(bias).max(), (bias**2).mean() * repeats / chance)
        print(of, name, bias.size, "totals; bias over standard error: root mean square, largest", *figures[:2])
        print("    mean square of that of the mean over chance", figures[2], "never moved:", (spreads == 0).sum())
        assert beyond <= 0.25, (name, "bias is far within the standard error")
        if name in ("state", "naics2") or not non_negative:
            assert figures[2] <= 2, (name, "totals far from zero have none")
        if repeats >= MANY and " x " not in name:
            assert figures[1] <= 1, (name, "no total has more than its standard error")
    error = np.array(off)
    for i, by in enumerate(DRAWN):
        print(of, by, "error before and after", *error[:, i].mean(axis=0))
        gain = error[:, i, 1] - error[:, i, 0]
        slack = 0.02 * error[:, i, 0].mean() + 2 * gain.std(ddof=1) / np.sqrt(repeats)
        assert gain.mean() <= slack + 0.1, (of, by)


@pytest.mark.parametrize("of", [None, "payroll"])
def test_totals_have_no_bias_and_no_table_is_worse(
    of: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    national.write(tmp_path / "nation", share=0.003)
    studied(dc.read_jobs(tmp_path / "nation"), of, REPEATS, monkeypatch)


@pytest.mark.full_size
@pytest.mark.parametrize("non_negative", [True, False])
@pytest.mark.parametrize("of", [None, "payroll"])
def test_no_total_has_more_bias_than_its_standard_error(
    of: str | None, non_negative: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 0.3 % of the nation, where most cells are near zero; where numbers may be below it, no total has any."""
    national.write(tmp_path / "nation", share=0.003)
    studied(dc.read_jobs(tmp_path / "nation"), of, 200, monkeypatch, non_negative=non_negative)


def over_infusion(jobs: Any) -> float:
    """The error of payroll by county and sector at (0.1, 2) over that of noise infusion."""
    query = dc.Session(jobs, unit=dc.Establishments("0.1"), budget=2).sum("payroll", ["county", "naics2"])
    ready = query.prepare(epsilon=2)
    cells = query.statistics(ready)
    largest = cells.largest_total.astype(np.float64)
    firms = histograms(jobs, workplace_by=["county", "naics2"], magnitude="payroll")
    infused = Infusion(small=0).expected_error(firms, rng=np.random.default_rng(2), trials=10)
    return float(ready.mechanism.integer_error(largest, largest).sum() / infused.sum())


@pytest.mark.full_size
def test_the_whole_nation_fits_in_time_and_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = programme(tmp_path, 1.0)
    spent = []
    for command in (["run", str(plan)], ["verify", str(tmp_path / "out" / "bundle.zip")]):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-m", "discreet", *command], env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}, check=False
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == 0
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert after.ru_maxrss <= 2.5 * 2**20, after.ru_maxrss
        print("peak memory so far, GiB:", after.ru_maxrss / 2**20)
    print("processor seconds of run and verify:", spent)
    assert spent[0] < 90 and spent[1] <= spent[0]
    cells = assert_adds_up(tmp_path / "out" / "employment", "count")
    assert cells + assert_adds_up(tmp_path / "out" / "payroll", "sum") > 2_000_000
    jobs = dc.read_jobs(tmp_path / "nation")
    ratio = over_infusion(jobs)
    print("payroll by county and sector over infusion:", ratio)
    assert ratio <= 0.6
    for of in (None, "payroll"):
        studied(jobs, of, 24, monkeypatch)
