"""Crime counts against table 2.1 of the dissertation and the city's public series."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.simulate import crime, stream

# Median, mean, standard deviation, maximum (Schneider 2014, table 2.1).
TABLE = {
    "violent": (0, 1.2, 1.9, 29),
    "drugs": (0, 1.9, 4.3, 71),
    "shots": (1, 1.6, 3.3, 50),
    "assaults": (3, 3.8, 4.2, 42),
}
SEEDS = range(8)


def panel(seed):
    table = stream.collect(crime.batches(seed=seed))["crime"]
    return {name: table[name].to_numpy().reshape(175, 144).astype(float) for name in TABLE}


@pytest.fixture(scope="module")
def panels():
    return [panel(seed) for seed in SEEDS]


def test_columns_are_in_order_of_tract_and_month():
    table = stream.collect(crime.batches(seed=0))["crime"]
    assert table.num_rows == 25_200
    assert table["tract"].to_pylist()[:145] == [1] * 144 + [2]
    assert table["t"].to_pylist()[143:145] == [144, 1]
    assert (table["year"][143].as_py(), table["month"][143].as_py()) == (2001, 12)
    assert table.equals(stream.collect(crime.batches(seed=0))["crime"])


@pytest.mark.parametrize("name", TABLE)
def test_moments_of_the_table(panels, name):
    median, mean, deviation, largest = TABLE[name]
    have = [data[name] for data in panels]
    assert np.median([np.median(x) for x in have]) == median
    assert [x.mean() for x in have] == pytest.approx([mean] * len(have), abs=0.06)
    assert [x.std() for x in have] == pytest.approx([deviation] * len(have), rel=0.1)
    assert np.median([x.max() for x in have]) == pytest.approx(largest, rel=0.35)
    assert all(x.min() == 0 for x in have)


def test_the_two_tracts_of_the_table(panels):
    """A quiet tract (mean 0.6, deviation 0.9, at most 4) and a violent one (7.7, 3.5, 2 to 20) are there."""
    violent = panels[0]["violent"]
    mean = violent.mean(axis=1)
    for level, deviation, largest in ((0.6, 0.9, 4), (7.7, 3.5, 20)):
        near = violent[np.abs(mean - level).argmin()]
        assert near.mean() == pytest.approx(level, rel=0.1)
        assert near.std() == pytest.approx(deviation, rel=0.25)
        assert near.max() <= 1.5 * largest


def test_indicators_lead(panels):
    """A rise in an indicator foretells violent crime one to four months later, more than the other way round."""

    def standard(x):
        level = x.mean(axis=1, keepdims=True)
        return (x - level) / np.sqrt(level + 0.1)

    def correlation(a, b, lag):
        return np.mean(
            [np.corrcoef(x[:, : 144 - lag].ravel(), y[:, lag:].ravel())[0, 1] for x, y in zip(a, b, strict=True)]
        )

    violent = [standard(data["violent"]) for data in panels]
    for name in ("drugs", "shots", "assaults"):
        indicator = [standard(data[name]) for data in panels]
        for lag in (1, 2, 3):
            ahead, behind = correlation(indicator, violent, lag), correlation(violent, indicator, lag)
            assert ahead > behind + 0.01  # the standard error over eight cities is 0.002


def test_tracts_move_as_slowly_as_pittsburgh(panels):
    """Autocorrelation around the tract's mean: 0.23 at one month and 0.15 at twelve in the public series."""

    def autocorrelation(x, lag):
        z = x - x.mean(axis=1, keepdims=True)
        return (z[:, lag:] * z[:, :-lag]).mean() / (z**2).mean()

    one, twelve = (np.mean([autocorrelation(data["violent"], lag) for data in panels]) for lag in (1, 12))
    assert 0.13 < one < 0.28
    assert 0.05 < twelve < one


def test_the_citys_course_is_pittsburghs(public_file, query):
    path = str(public_file("crime/pittsburgh_violent_tract_month_1990_2000.csv.gz"))
    month, year = (
        np.array([n for _, n in query(sql)], float)
        for sql in (
            f"select month, sum(violent) / count(distinct year) from '{path}' group by 1 order by 1",
            f"select year, sum(violent) / count(distinct month) from '{path}' group by 1 order by 1",
        )
    )
    assert month / month.mean() == pytest.approx(crime._MONTH, abs=0.01)
    whole = np.append(year, year[-1])
    assert whole / whole.mean() == pytest.approx(crime._YEAR, abs=0.02)
