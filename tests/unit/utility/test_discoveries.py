"""False discoveries: as rare as promised for dependent cells, and the lists of the textbook."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

import discreet as dc
from discreet.utility.between import changes_between
from discreet.utility.discoveries import discovered
from discreet.words.errors import DataError
from faults_of import about

Q, CELLS, CHANGED, TRIALS = 0.1, 60, 12, 400


def textbook(p: np.ndarray, q: float) -> np.ndarray:
    """Benjamini and Yekutieli's procedure as it is written."""
    ordered = np.sort(p)
    bounds = q * np.arange(1, len(p) + 1) / (len(p) * (1 / np.arange(1, len(p) + 1)).sum())
    there = np.flatnonzero(ordered <= bounds)
    return p <= bounds[there[-1]] if len(there) else np.zeros(len(p), bool)


def chances(rng: np.random.Generator, size: int) -> np.ndarray:
    """Two-sided p-values of cells whose noise is half a common one; the first cells have changed by much."""
    noise = np.sqrt(0.5) * rng.normal() + np.sqrt(0.5) * rng.normal(size=size)
    moved = np.where(np.arange(size) < CHANGED, 4.0, 0.0)
    return np.asarray(2 * norm.sf(np.abs(noise + moved)))


def test_a_short_list_is_that_of_the_textbook():
    rng, found = np.random.default_rng(1), 0
    for _ in range(200):
        p = chances(rng, 20)
        alarm, rate = discovered(lambda rate, p=p: p <= rate, cells=20, fdr=Q)
        assert alarm.tolist() == textbook(p, Q).tolist()
        found += int(alarm.sum())
        assert not alarm.any() or (p[alarm] <= rate).all()
    assert found > 1_000


def test_the_expected_share_of_false_alarms_is_kept_and_few_are_lost():
    rng, shares, right, plain = np.random.default_rng(2), [], 0, []
    for _ in range(TRIALS):
        p = chances(rng, CELLS)
        alarm, _ = discovered(lambda rate, p=p: p <= rate, cells=CELLS, fdr=Q)
        assert not (alarm & ~textbook(p, Q)).any()  # some lengths are not tried: never more than the textbook's
        shares.append(alarm[CHANGED:].sum() / max(alarm.sum(), 1))
        right += int(alarm[:CHANGED].sum())
        plain.append((p <= Q)[CHANGED:].sum() / max((p <= Q).sum(), 1))
    assert np.mean(shares) <= Q and right > 0.6 * CHANGED * TRIALS
    assert np.mean(plain) > 1.5 * Q  # the test can tell: a rate for each cell does not keep the share


def test_alarms_that_are_not_nested_are_made_so():
    """A cell that raises an alarm at a small rate and not at a larger one does not count."""
    alarm, _ = discovered(lambda rate: np.array([True, rate < 0.01, True]), cells=3, fdr=0.5)
    assert alarm.tolist() == [True, False, True]


PLACES, MOVED = 60, 12


def jobs(moved: int = 0) -> dc.Jobs:
    sizes = np.random.default_rng(0).integers(20, 60, (PLACES, 3))
    sizes[:moved] = 2
    rows = {
        "workplace": np.arange(3 * PLACES),
        "place": np.repeat([f"p{i:02d}" for i in range(PLACES)], 3),
        "n": sizes.ravel(),
    }
    return dc.read_jobs(rows, schema=dc.Schema(workplace_attributes=["place"], worker_attributes={}, size="n"))


@pytest.mark.parametrize(
    ("epsilon", "least", "pairs"),
    [(2, 6, 1), *(pytest.param(*each, 20, marks=pytest.mark.full_size) for each in ((1, 0), (2, 6), (4, 11)))],
)
def test_two_private_releases(epsilon: int, least: int, pairs: int) -> None:
    """Fewer false ones than promised at every epsilon; most of what changed is found where noise is small."""
    shares, found = [], 0
    for seed in range(pairs):
        both = []
        for k, data in enumerate((jobs(), jobs(MOVED))):
            session = dc.Session(data, unit=dc.Establishments("0.05"), budget=100, seed=10 * seed + k)
            both.append(session.count("place").release(epsilon=epsilon))
        listed = changes_between(*both, fdr=Q)
        hit = {cell[0] for cell, alarm in zip(listed.cells, listed.alarm, strict=True) if alarm}
        true = hit & {f"p{i:02d}" for i in range(MOVED)}
        shares.append(len(hit - true) / max(len(hit), 1))
        found += len(true)
        assert listed.expected_false == pytest.approx(Q * len(hit)) and listed.to_dict()["fdr"] == Q
        assert not np.isnan(listed.low).any() and listed.alarm.tolist() == sorted(listed.alarm, reverse=True)
    print(f"epsilon {epsilon}: {100 * np.mean(shares):.1f} % of alarms false, {found / pairs / MOVED:.0%} found")
    assert np.mean(shares) <= Q and found >= pairs * least


def test_refusals() -> None:
    table = {"place": ["a"], "count": [1.0], "lower": [0.0], "upper": [2.0]}
    for asked in ({"fdr": 0.1}, {"fdr": 0.1, "rate": 0.1}, {"fdr": 2.0}):
        with pytest.raises(DataError, check=about("fdr")):
            changes_between(table, table, by=["place"], **asked)
