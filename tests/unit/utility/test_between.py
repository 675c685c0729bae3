"""Alarms from two private releases: false ones are as rare as promised, true ones are found."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import discreet as dc
from discreet.ledger.publication import fingerprints
from discreet.privacy.units import Establishments
from discreet.release.files import FORMAT
from discreet.utility.between import changes_between
from discreet.words.errors import DataError
from faults_of import about

PLACES, PAIRS = 60, 3


def jobs(changed=0):
    """Three establishments in each place; the first places lose most of theirs in the second year."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(20, 60, (PLACES, 3))
    sizes[:changed] = 2
    rows = {
        "workplace": np.arange(3 * PLACES),
        "place": np.repeat([f"p{i:02d}" for i in range(PLACES)], 3),
        "n": sizes.ravel(),
    }
    return dc.read_jobs(rows, schema=dc.Schema(workplace_attributes=["place"], worker_attributes={}, size="n"))


def pair(seed, epsilon, late):
    made = []
    for k, data in enumerate((jobs(), late)):
        session = dc.Session(data, unit=Establishments("0.05"), budget=100, seed=2 * seed + k)
        made.append(session.count("place").release(epsilon=epsilon, level=0.9))
    return made


@pytest.mark.parametrize("epsilon", [1, *(pytest.param(more, marks=pytest.mark.full_size) for more in (2, 4))])
def test_a_cell_that_did_not_change_seldom_raises_an_alarm(epsilon):
    found = [changes_between(*pair(seed, epsilon, jobs())) for seed in range(PAIRS)]
    assert found[0].rate == pytest.approx(0.2)
    false = np.concatenate([each.alarm for each in found])
    assert len(false) == PLACES * PAIRS and false.mean() <= 0.2


def test_a_cell_that_changed_raises_one_where_noise_is_small():
    found = changes_between(*pair(1, 4, jobs(changed=5)), direction="decline")
    hit = [cell for cell, alarm in zip(found.cells, found.alarm, strict=True) if alarm]
    assert set(hit) >= {(f"p{i:02d}",) for i in range(5)} and len(hit) < 5 + 0.2 * PLACES
    assert (found.high[: len(hit)] < 0).all() and found.to_arrow().num_rows == found.tidy().num_rows == PLACES


def tables(shift):
    counts = np.array([100.0, 50, 20])
    one = {"place": ["a", "b", "c"], "count": counts, "lower": counts - 5, "upper": [105.0, 55.0, None]}
    two = {"place": ["a", "b", "d"], "count": counts + shift, "lower": counts + shift - 5, "upper": counts + shift + 5}
    return one, two


def test_ends_by_hand():
    found = changes_between(*tables(np.array([11, -9, 0])), by=["place"], level=0.95)
    assert (
        found.cells == [("a",), ("b",)] and found.alarm.tolist() == [True, False] and found.rate == pytest.approx(0.1)
    )
    assert (found.low[0], found.high[0]) == (1, 21) and "1 of 2" in found.summary()
    assert not changes_between(*tables(np.array([11, -9, 0])), by=["place"], level=0.95, least=2).alarm.any()
    assert not changes_between(
        *tables(np.array([11, -9, 0])), by=["place"], level=0.95, direction="decline"
    ).alarm.any()


@pytest.mark.parametrize(
    ("settings", "subject"),
    [
        ({"direction": "up"}, "direction"),
        ({"least": -1}, "least"),
        ({"level": 1.0}, "level"),
        ({"by": ()}, "by"),
        ({"by": ["county"]}, "early"),
    ],
)
def test_refusals(settings, subject):
    with pytest.raises(DataError, check=about(subject)):
        changes_between(*tables(np.zeros(3)), **{"by": ["place"], "level": 0.95} | settings)
    one, _ = tables(np.zeros(3))
    with pytest.raises(DataError, check=about("late")):
        changes_between(one, {**one, "place": ["x", "y", "z"]}, by=["place"], level=0.95)
    with pytest.raises(DataError, check=about("by")):
        changes_between({**one, "place": ["a", "a", "b"]}, one, by=["place"], level=0.95)


def test_flows_are_compared_by_the_number_that_is_named():
    def table(jdr, low, high):
        return pa.table({"county": ["a", "b"], "jdr": [jdr, None], "jdr_lower": [low, 0.0], "jdr_upper": [high, 2.0]})

    found = changes_between(table(0.1, 0.08, 0.12), table(0.3, 0.25, 0.35), by=["county"], value="jdr", level=0.95)
    assert found.cells == [("a",)] and found.alarm.tolist() == [True]  # a cell without a rate is left out
    assert (found.low[0], found.high[0]) == pytest.approx((0.13, 0.27))
    assert found.to_dict()["alarms"] == 1
    with pytest.raises(DataError, check=about("early")):
        changes_between(table(0.1, 0.08, 0.12), table(0.3, 0.25, 0.35), by=["county"], value="sr", level=0.95)


def test_the_level_is_that_of_the_intervals(tmp_path):
    """That of the release a file lies in, or a given one; a rate of other intervals is not stated."""
    folders = [tmp_path / name for name in ("q1", "q2", "q3")]
    for folder, level in zip(folders, ("4/5", "4/5", "9/10"), strict=True):
        folder.mkdir()
        pa.csv.write_csv(pa.table(tables(np.zeros(3))[1]), folder / "research.csv")
        known = {"format": FORMAT, "name": folder.name, "dataset": "jobs", "columns": {}, "files": fingerprints(folder)}
        promise = {"guarantee": {"sentence": "", "definition": ""}, "parameters": {"kind": "count", "level": level}}
        (folder / "release.json").write_text(json.dumps(known | promise))
    first, second, third = (folder / "research.csv" for folder in folders)
    assert changes_between(first, second, by=["place"]).rate == pytest.approx(0.4)
    assert changes_between(first, str(third), by=["place"]).rate == pytest.approx(0.3)  # each misses by its own chance
    assert changes_between(first, second, by=["place"], level=0.8).rate == pytest.approx(0.4)
    away = tmp_path / "away.csv"
    away.write_bytes(first.read_bytes())
    assert changes_between(away, away, by=["place"], level=0.8).rate == pytest.approx(0.4)
    assert changes_between(away, second, by=["place"], level=0.8).rate == pytest.approx(0.4)
    for pair_of, level in (
        ((first, second), 0.95),
        ((away, second), 0.95),
        ((away, second), None),
        ((away, away), None),
    ):
        with pytest.raises(DataError, check=about("level")):
            changes_between(*pair_of, by=["place"], level=level)
    release = pair(0, 4, jobs())[0]
    with pytest.raises(DataError, check=about("level")):
        changes_between(release, release.to_arrow(), by=["place"], level=0.99)
    assert changes_between(release, release.to_arrow(), by=["place"], level=0.9).rate == pytest.approx(0.2)


def test_upside_down_intervals_and_text_are_refused():
    one, two = tables(np.zeros(3))
    for odd in ({**two, "lower": two["upper"] + 1}, {**two, "count": ["many", "few", "1"]}):
        with pytest.raises(DataError, check=about("late")):
            changes_between(one, odd, by=["place"], level=0.95)


def test_cells_of_only_one_table_are_counted_and_said() -> None:
    """They were left out without a word: 1 of 2 cells, of 4."""
    early, late = (
        pa.table({"place": places, "count": counts, "lower": counts, "upper": counts})
        for places, counts in ((["a", "b", "c"], [10.0, 20.0, 5.0]), (["b", "c", "d"], [20.0, 50.0, 7.0]))
    )
    found = changes_between(early, late, by=["place"], level=0.95)
    assert len(found.cells) == 2 and found.alone == found.to_dict()["cells_of_one_release"] == 2
    assert "2 cells of only one release" in found.summary()
    assert "only one release" not in changes_between(early, early, by=["place"], level=0.95).summary()


def test_places_of_only_one_release_are_counted() -> None:
    def released(rows: slice):
        places = np.arange(PLACES)[rows]
        table = {"workplace": places, "place": [f"p{i:02d}" for i in places], "n": 30 + places}
        schema = dc.Schema(workplace_attributes=["place"], worker_attributes={}, size="n")
        session = dc.Session(dc.read_jobs(table, schema=schema), unit=Establishments("0.05"), budget=9, seed=1)
        return session.count("place").release(epsilon=4)

    found = changes_between(released(slice(0, 40)), released(slice(10, 55)), rate=0.1)
    assert len(found.cells) == 30 and found.alone == 25
