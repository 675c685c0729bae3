"""The LODES study: its grid against computations by hand, its findings against made-up numbers, and one small run."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.data.jobs import read_jobs
from discreet.noise.source import SeededSource
from discreet.pages.page import Note
from discreet.simulate import lodes as simulated
from discreet.tables.baseline.establishments import histograms
from discreet.utility.strata import ALL
from discreet_papers import lodes, lodes_grid
from discreet_papers.lodes_definitions import least_epsilon, table_2
from discreet_papers.lodes_findings import PaperStatement, findings
from discreet_papers.lodes_grid import Economy, Setting

KEYS = ["workload", "mechanism", "calibration", "strength", "alpha", "epsilon", "stratum", "ratio", "feasible"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "lodes"
    simulated.write(path, seed=2, share=0.004)
    return path


@pytest.fixture(scope="module")
def economy(folder: Path) -> Economy:
    firms = histograms(read_jobs(folder, validate=False), workplace_by=lodes.WORKPLACE_BY, worker_by=lodes.WORKER_BY)
    return lodes.infused(firms, seed=2, trials=20, source=SeededSource(1))


def ratio_of(economy: Economy, setting: Setting) -> float:
    rows, _ = lodes_grid.l1_rows([setting], economy)
    return float(rows[0]["ratio"])


@pytest.mark.parametrize(
    ("setting", "error"),
    [
        (Setting(1, "smooth-laplace", "paper", "strong", 0.1, 2.0), lambda c: np.maximum(0.1 * c.largest_total, 1)),
        (
            Setting(2, "smooth-gamma", "paper", "weak", 0.1, 4.0),
            lambda c: 4 * math.sqrt(0.5) * np.maximum(0.1 * c.largest, 1),
        ),
        (
            Setting(3, "smooth-laplace", "paper", "strong", 0.05, 4.0),
            lambda c: 4 * np.repeat(np.maximum(0.05 * c.largest_total, 1)[:, None], 8, axis=1),
        ),
        (Setting(3, "edge-laplace", "paper", None, None, 2.0), lambda c: np.full(c.counts.shape, 0.5)),
        (Setting(2, "down-sensitivity", "paper", None, None, 2.0), lambda c: np.maximum(c.largest, 1) / 2),
    ],
)
def test_ratios_are_the_papers_formulas(economy: Economy, setting: Setting, error: Any) -> None:
    expected = error(economy.cells).sum() / economy.reference(setting.workload).sum()
    assert ratio_of(economy, setting) == pytest.approx(expected, rel=1e-12)


def test_truncation_loses_the_jobs_it_drops(economy: Economy) -> None:
    """E|m + Laplace(b)| by quadrature."""
    setting = Setting(1, "node-truncation", "paper", None, None, 4.0)
    found, feasible = lodes_grid.mechanism(setting, 8)
    assert found is not None and feasible
    error = lodes_grid.expected_error(setting, found, economy)[:, 0]
    dropped = economy.dropped.sum(axis=1)
    assert dropped.max() > 1000
    z = np.linspace(-40, 40, 400_001)
    density = np.exp(-np.abs(z)) / 2 * (z[1] - z[0])
    for cell in (int(dropped.argmax()), int(dropped.argmin())):
        assert error[cell] == pytest.approx((np.abs(dropped[cell] + 250 * z) * density).sum(), rel=1e-4)


@pytest.mark.parametrize(
    "setting",
    [
        Setting(1, "polynomial", "tight", "strong", 0.1, 1.0),
        Setting(2, "log-laplace", "tight", "weak", 0.1, 2.0),
        Setting(3, "joint-polynomial", "tight", "strong", 0.1, 4.0),
    ],
)
def test_published_integers_have_the_expected_error(economy: Economy, setting: Setting) -> None:
    (row,) = lodes_grid.published_rows([setting], economy, trials=30, source=SeededSource(7))
    # Rounding a count whose noise is small brings it nearer to the integer that it is, by a few per cent.
    assert row["integers"] == pytest.approx(row["expected"], rel=0.08)
    assert row["not_negative"] <= row["integers"]


def test_what_is_infeasible_has_no_ratio(economy: Economy) -> None:
    rows, within = lodes_grid.l1_rows([Setting(3, "polynomial", "tight", "weak", 0.2, 0.25)], economy)
    assert {(row["ratio"], row["feasible"]) for row in rows} == {(None, False)}
    assert (within[0]["share"], within[0]["feasible"]) == (None, False)
    # The paper's Smooth Laplace adds 2 S / epsilon whatever delta is: measured, and marked.
    asked = Setting(1, "smooth-laplace", "paper", "strong", 0.2, 0.5)
    (row, *_), _ = lodes_grid.l1_rows([asked], economy)
    assert not row["feasible"]
    cells = economy.cells
    expected = (4 * np.maximum(0.2 * cells.largest_total, 1)).sum() / economy.reference(1).sum()
    assert row["ratio"] == pytest.approx(expected)


def test_rankings_improve_with_epsilon(economy: Economy) -> None:
    grid = [Setting(1, "polynomial", "tight", "strong", 0.1, epsilon) for epsilon in (0.25, 1.0, 4.0)]
    rows = lodes_grid.spearman_rows(1, grid, economy, trials=3, source=SeededSource(3))
    overall = [row["spearman"] for row in rows if row["stratum"] == "all"]
    assert overall == sorted(overall) and overall[0] < 0.97 < overall[2] < 1


def test_the_grid_is_the_papers() -> None:
    settings = [s for workload in (1, 2, 3) for s in lodes_grid.settings(workload)]
    assert len(settings) == len(set(settings)) == 30 * (7 + 12 + 16) + 3 * 18
    assert not [s for s in settings if s.mechanism == "log-laplace" and s.strength == "strong" and s.workload > 1]


def grid_rows(value: str, **numbers: float) -> list[dict[str, Any]]:
    return [
        {
            "workload": workload,
            "mechanism": name.replace("_", "-"),
            "calibration": "paper",
            "strength": "strong" if workload == 1 else "weak",
            "alpha": alpha,
            "epsilon": epsilon,
            "stratum": stratum,
            value: number,
        }
        for workload in (1, 2, 3)
        for name, number in numbers.items()
        for alpha in (0.01, 0.1)
        for epsilon in (1.0, 2.0, 4.0)
        for stratum in ("all", "0-100", "100-10k", "10k-100k", "100k+")
    ]


def test_findings_follow_the_numbers() -> None:
    def agreed(log: float, gamma: float, laplace: float) -> dict[int, list[bool]]:
        results = {
            "l1_ratio": grid_rows("ratio", log_laplace=log, smooth_gamma=gamma, smooth_laplace=laplace),
            "spearman": grid_rows("spearman", log_laplace=0.99, smooth_gamma=0.9, smooth_laplace=0.99),
            "within_10_points": grid_rows("share", log_laplace=0.66, smooth_gamma=0.3, smooth_laplace=0.5),
        }
        rows: list[PaperStatement] = findings(results)
        return {n: [row.agrees for row in rows if row.finding == n] for n in range(1, 6)}

    good, bad = agreed(2.0, 2.5, 0.9), agreed(12.0, 11.0, 13.0)
    assert good[1] == [True, True, True, False, True, True, True, False]
    assert good[2] == [True, True, True, False, True]
    assert good[3] == [True, True, True] and bad[3] == [False, False, False]
    assert bad[1][:3] == [False] * 3
    assert not any(good[4])  # nothing changes from stratum to stratum
    assert good[5][0] and not bad[5][0]


def test_nothing_feasible_is_no_agreement() -> None:
    empty: list[dict[str, Any]] = []
    rows = findings({"l1_ratio": empty, "spearman": empty, "within_10_points": empty})
    assert not any(row.agrees for row in rows)


@pytest.mark.walk
def test_a_small_run(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lodes, "QUICK_GRID", {"alphas": (0.1,), "epsilons": (4.0,)})
    monkeypatch.setattr(lodes, "QUICK_SHARE", 0.004)
    steps: list[float] = []
    study = lodes.run(quick=True, data=folder, seed=2, progress=lambda _, share: steps.append(share))
    assert isinstance(study.page.blocks[0], Note) and study.page.blocks[0].kind == "result", "the finding comes first"
    assert steps == sorted(steps)
    out = study.write(tmp_path / "out")
    results = json.loads((out / "results.json").read_text())
    assert {"l1_ratio", "spearman", "within_10_points", "attacks", "largest_share"} <= results.keys()
    assert all(list(row) == KEYS for row in results["l1_ratio"])
    assert results["data"]["jobs"] == json.loads((folder / "about.json").read_text())["rows"]["jobs"]
    everywhere = [row for row in results["defaults"] if row["stratum"] == ALL]
    assert {row["mechanism"] for row in everywhere} == {"two-sizes", "joint-rings", "weak-unions"}
    assert all(row["over before"] < 1 for row in everywhere)
    weak, strong = (
        [row["over infusion"] for row in everywhere if row["workload"] == 3 and row["definition"] == definition]
        for definition in ("weak", "strong")
    )
    assert len(weak) == 4 and all(np.array(weak) < 1.0001 * np.array(strong))  # noise for the strong one keeps both
    infused = [row for row in results["attacks"] if row["release"] == "infusion"]
    assert [row["share"] for row in infused if row["cases"]] == [1.0] * sum(row["cases"] > 0 for row in infused)
    assert {f"figure-{n}.svg" for n in range(2, 8)} <= {path.name for path in (out / "figures").iterdir()}
    html = (out / "report.html").read_text()
    assert "The jobs are those that were given" in html
    assert "The jobs are simulated" not in html
    assert "workplace itself" not in html


def test_changes_are_found_more_often_with_less_noise() -> None:
    rows = lodes.change_rows(seed=1, share=0.02, trials=5, source=SeededSource(1))
    found = [row["found"] for row in rows if row["change"] == "absolute" and "polynomial" in row["method"]]
    assert found[0] < found[-1] <= rows[0]["most"]
    assert found[-1] > 2 * rows[0]["by_chance"]


def test_table_2_as_its_formula_gives_it() -> None:
    """The first half follows from delta 0.005; the last printed value is that of alpha 0.15."""
    rows = table_2()
    assert [abs(row["then"] - row["paper"]) < 0.006 for row in rows] == [True] * 5 + [False]
    assert least_epsilon(alpha="0.15", delta=rows[-1]["delta"]) == pytest.approx(rows[-1]["paper"], abs=0.006)
    assert [abs(row["2 ln(1/delta) ln(1 + alpha)"] - row["paper"]) < 0.006 for row in rows[:3]] == [False] * 3
