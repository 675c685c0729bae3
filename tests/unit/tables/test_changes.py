"""Changes between quarters against counting by hand, against the difference of two releases, and against promises."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.data.histories import Histories, read_histories
from discreet.data.schema import Schema
from discreet.noise.rings import table as ring_table
from discreet.noise.source import SeededSource
from discreet.privacy.units import Establishments
from discreet.privacy.verify import verify
from discreet.tables.movement.changes import expected_errors, ratio_to_releases, statistics
from discreet.words.errors import DataError, Infeasible, PrivacyError
from faults_of import about

QUARTERS = ["q1", "q2", "q3", "q4"]
UNIT = Establishments("0.1")


def rows(seed: int = 0, *, firms: int = 60, people: int = 3000) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    county = rng.integers(0, 5, firms)
    found = []
    for worker in range(people):
        firm = int(firms * rng.random() ** 2)
        for quarter in QUARTERS:
            if rng.random() < 0.15:
                firm = int(firms * rng.random() ** 2)
            if rng.random() < 0.8:
                found.append({"worker": worker, "workplace": firm, "quarter": quarter, "county": f"c{county[firm]}"})
    return found


ROWS = rows()


@pytest.fixture(scope="module")
def histories() -> Histories:
    import pyarrow as pa

    return read_histories(pa.Table.from_pylist(ROWS), quarters=QUARTERS, schema=Schema(["county"], {}))


def session(histories: Histories, *, budget: float = 10_000, seed: int | None = None) -> dc.Session:
    return dc.Session(histories, unit=UNIT, budget=budget, seed=seed)


def test_levels_are_what_counting_by_hand_gives(histories: Histories) -> None:
    cells = statistics(histories, ["q1", "q3"], ["county"])
    for i, quarter in enumerate(("q1", "q3")):
        jobs = Counter(row["county"] for row in ROWS if row["quarter"] == quarter)
        firms = Counter((row["county"], row["workplace"]) for row in ROWS if row["quarter"] == quarter)
        for county, levels, largest in zip(cells.keys["county"].to_pylist(), cells.levels, cells.largest, strict=True):
            assert levels[i] == jobs[county]
            assert largest[i] == max(n for (place, _), n in firms.items() if place == county)


def test_cells_that_come_and_go_have_no_jobs_in_the_other_quarter() -> None:
    late = {"worker": [1, 2], "workplace": [1, 2], "quarter": ["q1", "q2"], "county": ["b", "a"]}
    cells = statistics(
        read_histories(late, quarters=["q1", "q2"], schema=Schema(["county"], {})), ["q1", "q2"], ["county"]
    )
    assert cells.keys["county"].to_pylist() == ["a", "b"] and cells.levels.tolist() == [[0, 1], [1, 0]]


def test_a_change_is_the_difference_of_its_levels(histories: Histories) -> None:
    release = session(histories).changes(["q1", "q2", "q4"], "county").release(epsilon=2, scale_share="1/10")
    table = release.to_pandas()
    assert list(table.columns[:3]) == ["county", "from", "to"] and len(table) == 10
    assert (table["later"] - table["earlier"] == table["change"]).all()
    assert (table["later"][table["to"] == "q2"].to_numpy() == table["earlier"][table["from"] == "q2"].to_numpy()).all()
    assert {"change_quality", "rate_upper", "largest"} <= {*table.columns}
    assert "3 quarters together" in str(release.guarantee) and release.guarantee.proof == "docs/proofs/changes.md"
    assert len(release.tidy()) == 40


@pytest.mark.parametrize(
    ("scale_share", "quarters"), [pytest.param(0, ["q1", "q4"], marks=pytest.mark.full_size), (0.15, QUARTERS)]
)
def test_expected_errors_and_intervals_are_kept(histories: Histories, scale_share: float, quarters: list[str]) -> None:
    query = session(histories, seed=8).changes(quarters, "county")
    cells = statistics(histories, quarters, ["county"])
    truth = np.diff(cells.levels, axis=1)
    ready = query.prepare(epsilon=2, scale_share=scale_share)
    offer = query.offer(epsilon=2, scale_share=scale_share).at(histories)
    releases = [query.account.release(offer, None).value for _ in range(300)]
    told = [expected_errors(ready.noise, cells.largest[:, i].astype(float)) for i in range(len(quarters))]
    for i in range(len(quarters)):
        errors = np.abs([release.levels[:, i] - cells.levels[:, i] for release in releases])
        assert (errors / told[i]["earlier"]).mean() == pytest.approx(1, rel=0.1)
        held = [
            (r.level_ends[0][:, i] <= cells.levels[:, i]) & (cells.levels[:, i] <= r.level_ends[1][:, i])
            for r in releases
        ]
        assert np.mean(held) >= 0.94
    errors = np.abs([release.changes - truth for release in releases])
    both = np.mean([each["change"] for each in told], axis=0)
    assert (errors / both[:, None]).mean() == pytest.approx(1, rel=0.1)
    held = [(r.change_ends[0] <= truth) & (truth <= r.change_ends[1]) for r in releases]
    assert np.mean(held) >= 0.94
    rate = truth / cells.levels[:, :-1]
    assert np.mean([(r.rate_ends[0] <= rate) & (rate <= r.rate_ends[1]) for r in releases]) >= 0.94


def test_a_change_errs_half_as_much_as_the_difference_of_two_releases() -> None:
    """By draws of the two single releases, and as it is told."""
    size, n = np.array([1000.0]), 20_000
    for epsilon, quarters, most in ((1, 2, 0.6), (2, 2, 0.55), (4, 2, 0.5), (2, 4, 0.45), (4, 4, 0.42)):
        noise = dc.calibrate("weak-joint", unit=UNIT, epsilon=epsilon, cells=quarters)
        ratio = ratio_to_releases(noise)
        assert ratio is not None and ratio < most
        share = epsilon / quarters
        alone = dc.calibrate("ladder" if share >= 0.5 else "polynomial", unit=UNIT, epsilon=share)
        counts = np.full(n, 1000)
        two = [alone.draw(counts, counts, SeededSource(seed)) for seed in (1, 2)]
        apart = np.abs(two[0] - two[1]).mean()
        assert expected_errors(noise, size)["change"][0] < 1.05 * most * apart


def norm(z: np.ndarray, own: np.ndarray) -> np.ndarray:
    scaled = z / own
    return np.maximum(scaled, 0).max(axis=-1) + np.maximum(-scaled, 0).max(axis=-1)


@pytest.mark.parametrize("epsilon", [1, 2, 4])
def test_the_loss_between_neighbours_is_at_most_epsilon_and_less_noise_is_found_out(epsilon: float) -> None:
    """Brute force over cells of a few establishments that grow in every quarter by all that is allowed, or less."""
    rng = np.random.default_rng(5)
    noise = dc.calibrate("weak-joint", unit=UNIT, epsilon=epsilon, cells=3)
    assert verify(noise).holds
    found = ring_table(noise.law)

    def loss(factor: float) -> float:
        worst = 0.0
        for _ in range(150):
            firms = rng.integers(1, rng.choice([3, 12, 60, 400]), (rng.integers(1, 4), 3))
            at = int(rng.integers(len(firms)))
            most = np.maximum((firms[at] * 0.1).astype(int), 1)
            step = np.zeros_like(firms)
            step[at] = np.where(rng.random(3) < 0.7, most, rng.integers(0, most + 1))
            one, other = firms.sum(axis=0), (firms + step).sum(axis=0)
            s, t = (factor * noise.scale(each.max(axis=0).astype(float)) for each in (firms, firms + step))
            far = rng.exponential(size=(60, 1)) * rng.choice([0.01, 1, 10], (60, 1)) * s
            points = np.concatenate(
                [one + rng.normal(size=(60, 3)) * far, [one, other], other + (other - one) * rng.random((30, 1)) * 5,
                 one - (other - one) * rng.random((30, 1)) * 5]
            )  # fmt: skip
            here = found.log_height(norm(points - one, s)) - np.log(s).sum()
            there = found.log_height(norm(points - other, t)) - np.log(t).sum()
            worst = max(worst, float(np.abs(here - there).max()))
        return worst

    assert loss(1.0) <= epsilon
    assert loss(0.7) > epsilon


def test_wrong_requests_are_refused_before_anything_is_spent(histories: Histories) -> None:
    account = session(histories, budget=4)
    for wrong in (["q1"], [], ["q2", "q1"], ["q1", "q1"], "q1"):
        with pytest.raises(DataError, check=about("quarters")):
            account.changes(wrong, "county")
    with pytest.raises(DataError, check=about("quarter")):
        account.changes(["q1", "q9"])
    with pytest.raises(DataError, check=about("by")):
        account.changes(["q1", "q2"], "sector")
    with pytest.raises(Infeasible, check=about("epsilon")):
        account.changes(["q1", "q2"]).release(epsilon="0.1")
    with pytest.raises(PrivacyError, check=about("level")):
        account.changes(["q1", "q2"]).release(epsilon=1, level=2)
    with pytest.raises(PrivacyError, check=about("unit")):
        dc.Session(histories, unit=dc.Workers(), budget=1).changes(["q1", "q2"]).check(epsilon=1)
    with pytest.raises(DataError, check=about("jobs")):
        dc.Session(histories.at("q1"), unit=UNIT, budget=1).changes(["q1", "q2"])
    assert account.remaining == dc.Pure(4)
    assert "times the error of a difference of single releases" in str(account.changes(["q1", "q2"]).check(epsilon=2))
