"""Flags from two releases: areas against brute force over thresholds, limits, frames of any kind."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet.utility.flags import Flags, alarms, compare_releases, flags_raised, true_flags
from discreet.words.errors import DataError
from faults_of import about

RNG = np.random.default_rng(8)
TRUE = RNG.laplace(0, 10, 120).round()
NOISE = RNG.normal(0, 6, (3, 120)).round()


def area(flagged, score, hi=0.2, steps=200_001):
    """The mean true positive rate over false positive rates up to `hi`, threshold by threshold, ties interpolated."""
    points = [(0.0, 0.0)]
    for threshold in sorted(set(score.tolist()), reverse=True):
        raised = score >= threshold
        points.append((np.mean(raised[~flagged]), np.mean(raised[flagged])))
    fpr, tpr = np.array(points).T
    x = (np.arange(steps) + 0.5) * hi / steps
    return np.interp(x, fpr, tpr).mean() * hi


@pytest.mark.parametrize("direction", ["either", "decline", "increase"])
def test_area_is_brute_forces(direction) -> None:
    sign = {"either": np.abs, "decline": lambda x: -x, "increase": lambda x: x}[direction]
    flagged = np.zeros(120, bool)
    flagged[sorted(range(120), key=lambda i: (-sign(TRUE)[i], i))[:12]] = True
    assert (true_flags(TRUE, most=12, direction=direction) == flagged).all()
    expected = np.mean([area(flagged, sign(TRUE + noise)) for noise in NOISE])
    found = flags_raised(TRUE + NOISE, TRUE, most=12, direction=direction, resamples=50)
    assert found.pauc == pytest.approx(expected, abs=2e-5)
    assert (found.cells, found.positives, found.releases) == (120, 12, 3)
    assert found.low < found.pauc < found.high


def test_truth_is_perfect_and_noise_is_chance() -> None:
    true = np.random.default_rng(1).normal(size=2000)
    perfect = flags_raised(true, true, most=100, resamples=20)
    assert (perfect.pauc, perfect.kept) == (pytest.approx(0.2), pytest.approx(1))
    blind = flags_raised(np.random.default_rng(2).normal(size=(40, 2000)), true, most=100, resamples=20)
    assert blind.pauc == pytest.approx(0.02, abs=0.002)  # standard error 0.0005
    assert blind.to_dict()["kept"] == pytest.approx((blind.pauc - 0.02) / 0.18)


def test_limits_hold_noise_and_cells() -> None:
    # Fresh economies and fresh noise: the limits of one study must hold the areas of most others.
    def once(seed: int, releases: int) -> Flags:
        rng = np.random.default_rng(seed)
        true = rng.laplace(size=400)
        return flags_raised(true + rng.normal(0, 1.5, (releases, 400)), true, most=40, resamples=100, rng=seed)

    one = once(0, 20)
    others = np.array([once(seed, 1).pauc for seed in range(1, 101)])
    assert 0.80 < np.mean((others > one.low) & (others < one.high)) <= 1


def test_cells_without_a_change_are_no_flags() -> None:
    true = np.array([0.0, 0, 0, -3, 2])
    assert true_flags(true, most=4).tolist() == [False, False, False, True, True]
    assert true_flags(true, most=4, direction="increase").tolist() == [False, False, False, False, True]
    with pytest.raises(DataError, check=about("positive")):
        flags_raised(true, np.zeros(5), most=2)


def tables():
    rng = np.random.default_rng(3)
    keys = {"place": np.repeat([f"P{i}" for i in range(30)], 2), "sex": ["f", "m"] * 30}
    true = [rng.poisson(50, 60), rng.poisson(50, 60)]
    noisy = [t + rng.integers(-5, 6, 60) for t in true]
    return [pa.table({**keys, "jobs": column}) for column in (*noisy, *true)]


@pytest.mark.parametrize("kind", [pa.Table.to_pandas, pl.from_arrow, lambda t: t.take(list(range(59, -1, -1)))])
def test_frames_of_any_kind_and_order(kind) -> None:
    early, late, first, second = tables()
    order = np.lexsort((early["sex"].to_numpy(), early["place"].to_numpy()))
    columns = [t["jobs"].to_numpy()[order].astype(float) for t in (early, late, first, second)]
    expected = flags_raised(columns[1] - columns[0], columns[3] - columns[2], most=6)
    found = compare_releases((kind(early), late), (first, kind(second)), by=["place", "sex"], value="jobs", most=6)
    assert found == expected


def test_missing_cells() -> None:
    early, late, first, second = tables()
    with pytest.raises(DataError, check=about("The late truth")):
        compare_releases((early, late), (first, second.slice(1)), by=["place", "sex"], value="jobs", most=6)
    filled = compare_releases(
        (early, late), (first, second.slice(1)), by=["place", "sex"], value="jobs", most=6, absent=0
    )
    assert filled.cells == 60


def test_refusals() -> None:
    early, late, first, second = tables()
    with pytest.raises(DataError, check=about("The early release")):
        compare_releases((early, late), (first, second), by=["place"], value="jobs", most=6)
    with pytest.raises(DataError, check=about(None, naming=("'town'",))):
        compare_releases((early, late), (first, second), by=["town"], value="jobs", most=6)
    with pytest.raises(DataError, check=about("The early release")):
        broken = pd.DataFrame({"place": ["a", "b"], "jobs": [1.0, np.nan]})
        compare_releases((broken, broken), (broken, broken), by=["place"], value="jobs", most=1)
    with pytest.raises(DataError, check=about("most")):
        flags_raised(TRUE, TRUE, most=120)
    with pytest.raises(DataError, check=about("direction")):
        alarms(TRUE, direction="sideways")
    with pytest.raises(DataError, check=about("fpr")):
        flags_raised(TRUE, TRUE, most=12, fpr=(0.2, 0.0))
