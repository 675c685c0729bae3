"""The attacks of section 5.2 on a table made by hand, on infused jobs, and on a formal release."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from discreet.arrays import Integers
from discreet.data.jobs import Jobs
from discreet.noise.source import SeededSource
from discreet.privacy.units import Establishments
from discreet.tables.baseline import attacks
from discreet.tables.baseline.establishments import Histograms, histograms
from discreet.tables.baseline.infusion import Infusion
from discreet.tables.calibration import calibrate
from discreet.tables.cells import Cells

# Rows: one establishment, two of them, one with a count below the limit, one with a zero.
TRUE = np.array([[20, 30, 50], [20, 30, 50], [2, 30, 50], [0, 30, 50]])
FACTOR = np.array([0.9, 1.1, 1.1, 0.9])
PUBLISHED = np.where(TRUE == 2, 1.0, TRUE * FACTOR[:, None])
ALONE = np.array([1, 2, 1, 1])


def shares(counts: Integers) -> np.ndarray:
    return counts / counts.sum(axis=1, keepdims=True)


def test_shape_takes_lone_establishments_above_the_limit() -> None:
    claims = attacks.shape(PUBLISHED, establishments=ALONE)
    assert claims.cell.tolist() == [0]
    assert claims.values[0] == pytest.approx([0.2, 0.3, 0.5], abs=1e-15)
    outcome = attacks.score(claims, shares(TRUE))
    assert (outcome.cases, outcome.exact, outcome.share) == (1, 1, 1.0)
    assert "20.0 %, 30.0 %, 50.0 %" in outcome.example and outcome.example.endswith("This is exactly true.")


def test_one_known_count_gives_the_size() -> None:
    claims = attacks.size(
        PUBLISHED, establishments=ALONE, level=np.array([1, 0, 0, 1]), count=np.array([30, 20, 2, 30])
    )
    assert claims.values.tolist() == [[20, 30, 50]]
    assert "Knowing that 30 of its workers" in claims.learnt and "have 100: 20, 30, 50" in claims.learnt
    wrong = attacks.size(PUBLISHED, establishments=ALONE, level=np.full(4, 1), count=np.full(4, 29))
    outcome = attacks.score(wrong, TRUE)
    assert (outcome.exact, outcome.error) == (0, 2.0)  # 30/29 of the truth
    assert outcome.example.endswith("This is wrong.")


def test_preserved_zeros_give_a_worker_away() -> None:
    true = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 1, 0]])
    published = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 2.0], [1.0, 2.0, 0.0]])
    claims = attacks.reidentification(published, establishments=ALONE, only=true.sum(axis=1) == 1)
    assert claims.cell.tolist() == [0, 2]
    outcome = attacks.score(claims, true)
    assert (outcome.cases, outcome.exact) == (2, 2)
    assert "of kind 2 of 3" in outcome.example


def test_no_case_is_no_success() -> None:
    outcome = attacks.score(attacks.shape(PUBLISHED, establishments=np.full(4, 2)), shares(TRUE))
    assert (outcome.cases, outcome.exact, outcome.example) == (0, 0, "")
    assert np.isnan(outcome.share) and np.isnan(outcome.error)


@pytest.fixture(scope="module")
def firms(jobs: Jobs) -> Histograms:
    """As if every establishment were alone in its cell."""
    found = histograms(jobs, workplace_by=["place", "sector", "ownership"], worker_by=["sex"])
    own = np.arange(len(found.counts))
    return replace(found, start=own, keys=pa.table({"cell": own}))


def outcomes(published: np.ndarray, cells: Cells) -> dict[str, attacks.AttackResult]:
    known = published.argmax(axis=1)
    alone = {"establishments": cells.establishments}
    count = np.take_along_axis(cells.counts, known[:, None], axis=1)[:, 0]
    return {
        "shape": attacks.score(attacks.shape(published, **alone), shares(cells.counts)),
        "size": attacks.score(attacks.size(published, **alone, level=known, count=count), cells.counts),
        "one": attacks.score(
            attacks.reidentification(published, **alone, only=cells.counts.sum(axis=1) == 1), cells.counts
        ),
    }


def test_infusion_gives_everything_away(firms: Histograms) -> None:
    cells = firms.cells()
    factors = Infusion().factors(firms.establishment, key=b"k" * 32)
    found = outcomes(Infusion().publish(firms, factors, source=SeededSource(1)), cells)
    attacked = (cells.establishments == 1) & (cells.counts >= 3).all(axis=1)
    assert found["shape"].cases == found["size"].cases == attacked.sum() > 500
    assert found["one"].cases > 100
    assert all(outcome.share == 1 for outcome in found.values())


def test_a_formal_release_does_not(firms: Histograms) -> None:
    """At epsilon 1: exact claims about establishments above 50 workers are luck, and a lone worker's sex a guess."""
    cells = firms.cells()
    mechanism = calibrate("joint-polynomial", unit=Establishments(0.1), epsilon=1, cells=2)
    published = mechanism.draw(cells.counts, cells.largest_total, SeededSource(2)).astype(np.float64)
    large = firms.size > 50
    found = outcomes(published[large], replace(cells, counts=cells.counts[large], establishments=large[large] + 0))
    assert found["shape"].cases == found["size"].cases > 100
    assert found["shape"].share < 0.02
    assert found["size"].share < 0.05
    lone = outcomes(published, cells)["one"]
    sexes = cells.counts[cells.counts.sum(axis=1) == 1].mean(axis=0)
    assert lone.share < sexes.max() + 0.2
