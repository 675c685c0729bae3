"""Ways to compare: two limits, sides, values, scales of methods, several cutoffs, clusters. Loops are the reference."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm

from discreet.changes import exchange
from discreet.changes.combine import Rule
from discreet.changes.compare import compare_large_changes
from discreet.changes.cutoffs import compare_cutoffs
from discreet.changes.exceptions import exception_report
from discreet.roc import bootstrap
from discreet.roc import curve as roc
from discreet.words.errors import DataError
from faults_of import about

from .test_compare import frames


def rolling(seed=0, series=40, months=40, first=20):
    """Forecasts of many origins by a timid and a bold method."""
    rng = np.random.default_rng(seed)
    y = rng.standard_t(3, (series, months)).cumsum(axis=1) + 100
    names = np.array([f"s{i:02d}" for i in range(series)])
    panel = pa.table({"series": np.repeat(names, months), "t": np.tile(np.arange(months), series), "value": y.ravel()})
    t = np.arange(first, months)
    ahead = {
        name: y[:, t - 1] + times * (y[:, t] - y[:, t - 1] + rng.normal(0, 2, (series, len(t)))) + bias
        for name, times, bias in (("timid", 0.1, 0.3), ("bold", 2.0, 0.0))
    }
    forecasts = pa.table(
        {
            "series": np.repeat(names, len(t)),
            "t": np.tile(t, series),
            **{name: each.ravel() for name, each in ahead.items()},
        }
    )
    return panel, forecasts, y, t, ahead


def moments(y, i, t):
    change = np.diff(y[i, :t])
    return y[i, t - 1] + change.mean(), change.std(ddof=1)


def test_two_limits_by_the_book():
    """Appendix A: u at k U and l at k L, k along the curve."""
    panel, forecasts, y, t, ahead = rolling()
    cutoff = {"decline": 0.99, "increase": 0.9}
    found = compare_large_changes(panel, forecasts, cutoff=cutoff, direction="both", regression="keep", resamples=20)
    low, high = norm.ppf(0.99), norm.ppf(0.9)
    cases = [(i, s) for i in range(len(y)) for s in t]
    z = [[(value - m) / sd for value in (y[i, s], ahead["bold"][i, s - t[0]])] for i, s in cases
         for m, sd in [moments(y, i, s)]]  # fmt: skip
    actual, forecast = np.transpose(z)
    np.testing.assert_array_equal(found.positive, (actual <= -low) | (actual >= high))
    fires = np.maximum(-forecast / low, forecast / high)
    bold = found.scores[found.methods.index("bold")]
    np.testing.assert_allclose(bold, fires * min(low, high))
    same = {"decline": 0.95, "increase": 0.95}
    one, other = (
        compare_large_changes(panel, forecasts, cutoff=each, direction="both", resamples=20) for each in (same, 0.95)
    )
    np.testing.assert_array_equal(one.scores, other.scores)
    assert "0.99 (declines)" in found.summary() and found.to_dict()["cutoff"] == cutoff
    with pytest.raises(DataError, check=about("cutoff")):
        compare_large_changes(panel, forecasts, cutoff={"decline": 0.9})


def test_an_alarm_must_name_its_side():
    panel, forecasts, y, _, _ = rolling()
    found = compare_large_changes(
        panel, forecasts, cutoff=0.9, direction="both", regression="keep", sided=True, resamples=20
    )
    plain = compare_large_changes(panel, forecasts, cutoff=0.9, direction="both", regression="keep", resamples=20)
    assert (found.replicates.area <= plain.replicates.area + 1e-12).all()
    flipped = forecasts.set_column(
        3, "bold", pa.array(2 * np.asarray(y[:, 19:39].ravel()) - np.asarray(forecasts["bold"]))
    )
    wrong, blind = (
        compare_large_changes(
            panel, flipped, cutoff=0.9, direction="both", regression="keep", sided=sided, resamples=20
        ).curve("bold")
        for sided in (True, False)
    )
    assert wrong.at([0.1]) < 0.05 < 0.3 < blind.at([0.1])  # the right series, the wrong way
    with pytest.raises(DataError, check=about("sided")):
        compare_large_changes(panel, forecasts, sided=True)
    assert "direction" in found.note and found.to_dict()["note"] == found.note


def test_values_weight_positives_as_if_they_were_that_many():
    rng = np.random.default_rng(1)
    positive = np.arange(300) < 40
    scores = np.round(rng.normal(size=(3, 300)) + positive, 1)
    value = rng.integers(0, 5, 300)
    times = np.where(positive, value, 1)
    expected = roc.partial_auc(np.repeat(positive, times), np.repeat(scores, times, axis=1))
    np.testing.assert_allclose(roc.partial_auc(positive, scores, value=value), expected, rtol=1e-12)
    drawn = bootstrap.replicate(positive, scores, resamples=30, rng=5, value=value)
    weights = next(bootstrap._multiplicities(positive, 30, np.random.default_rng(5)))
    for r in range(30):
        many = weights[:, r] * times
        again = roc.partial_auc(np.repeat(positive, many), np.repeat(scores, many, axis=1))
        np.testing.assert_allclose(drawn.draws[:, r], again, rtol=1e-10)
    np.testing.assert_allclose(drawn.area, expected, rtol=1e-12)
    with pytest.raises(DataError, check=about("value")):
        roc.partial_auc(positive, scores, value=-value)


def test_value_of_a_series_is_its_size():
    panel, forecasts = frames()
    found = compare_large_changes(panel, forecasts, cutoff=0.9, by_value=True, resamples=50)
    size = np.abs(np.asarray(panel["value"]).reshape(400, 30)[:, :29].mean(axis=1))
    np.testing.assert_allclose(found.value, size)
    areas = roc.partial_auc(found.positive, found.scores, value=size)
    np.testing.assert_allclose(found.replicates.area, areas)
    assert found.best == "sees" and "size of their series" in found.summary()


def test_scale_of_a_method_matters_to_rules_only():
    panel, forecasts, *_ = rolling()
    rule = {"either": Rule(("timid", "bold"), "any")}
    plain, pooled = (
        compare_large_changes(panel, forecasts, cutoff=0.9, scale=scale, combine=rule, resamples=20)
        for scale in ("changes", "method")
    )
    for name in ("timid", "bold"):
        a, b = (each.replicates.area[each.methods.index(name)] for each in (plain, pooled))
        assert a == pytest.approx(b, abs=1e-12)
    scores = dict(zip(pooled.methods, pooled.scores, strict=True))
    assert [np.mean(scores[name] ** 2) for name in ("timid", "bold")] == pytest.approx([1, 1])
    a, b = (each.replicates.area[each.methods.index("either")] for each in (plain, pooled))
    assert b > a + 0.002  # before, the bold one decided alone


def test_scale_of_own_forecasts_by_the_book():
    panel, forecasts, y, t, ahead = rolling()
    found = compare_large_changes(panel, forecasts, cutoff=0.9, scale="forecasts", resamples=20)
    expected = []
    for i in range(len(y)):
        delta = ahead["timid"][i] - y[i, t - 1]
        expected += [-(delta[k] - delta[:k].mean()) / delta[:k].std(ddof=1) for k in range(8, len(t))]
    timid = found.scores[found.methods.index("timid")]
    np.testing.assert_allclose(timid, expected, rtol=1e-9)
    assert found.left_out == 8 * len(y)
    later = np.asarray(forecasts["timid"]).reshape(len(y), -1).copy()
    later[:, 15:] += 50
    poisoned = compare_large_changes(
        panel, forecasts.set_column(2, "timid", pa.array(later.ravel())), cutoff=0.9, scale="forecasts", resamples=20
    )
    before = np.tile(np.arange(8, len(t)) < 15, len(y))
    again = poisoned.scores[poisoned.methods.index("timid")]
    np.testing.assert_array_equal(again[before], timid[before])
    with pytest.raises(DataError, check=about("scale")):
        compare_large_changes(panel, forecasts, scale="own")


def test_a_method_that_forecasts_no_change_has_the_line_of_chance():
    panel, forecasts, y, t, _ = rolling()
    still = forecasts.append_column("still", pa.array(y[:, t - 1].ravel()))
    found = compare_large_changes(panel, still, cutoff=0.9, scale="forecasts", resamples=20)
    assert found.replicates.area[found.methods.index("still")] == pytest.approx(0.02)


def test_reports_take_scales_and_two_limits():
    panel, forecasts, *_ = rolling()
    rows = panel.filter(pa.compute.less(panel["t"], 39))
    plain = exception_report(rows, forecasts, direction="both", capacity=5, scale="forecasts")
    assert len(plain.flagged) == 5 and plain.past < exception_report(rows, forecasts, direction="both").past
    two = exception_report(rows, forecasts, direction="both", cutoff={"decline": 0.8, "increase": 0.99}, capacity=5)
    assert two.past_positives > 0


def test_several_cutoffs_are_the_single_ones():
    panel, forecasts = frames()
    found = compare_cutoffs(panel, forecasts, cutoffs=[0.9, 0.95, 0.99], resamples=60)
    for cutoff in (0.9, 0.95, 0.99):
        alone = compare_large_changes(panel, forecasts, cutoff=cutoff, resamples=60)
        assert found[cutoff].to_dict() == alone.to_dict()
    assert found.methods[0] == "sees" and found.always_near_the_best[0] == "sees"
    assert "guesses" not in found.always_near_the_best
    assert found.tidy().num_rows == found.to_arrow().num_rows == 9 and "positives" in found.summary()
    json.dumps(found.to_dict(), allow_nan=False)
    with pytest.raises(DataError, check=about("cutoff")):
        found[0.5]
    with pytest.raises(DataError, check=about("cutoffs")):
        compare_cutoffs(panel, forecasts, cutoffs=[0.9, 0.9])


def clustered(rng, clusters=40, each=12, share=0.8):
    """Two equally good methods whose errors are mostly common to a cluster."""
    cluster = np.repeat(np.arange(clusters), each)
    positive = rng.random(len(cluster)) < 0.2
    common = rng.normal(size=(2, clusters))[:, cluster]
    own = rng.normal(size=(2, len(cluster)))
    return cluster, positive, 1.2 * positive + np.sqrt(share) * common + np.sqrt(1 - share) * own


@pytest.mark.parametrize("block", [1, 3])
def test_resamples_of_clusters_by_hand(block):
    cluster, positive, scores = clustered(np.random.default_rng(0))
    drawn = bootstrap.replicate(positive, scores, resamples=20, rng=3, cluster=cluster, block=block)
    times = next(bootstrap._of_clusters(positive, cluster, block, 20, np.random.default_rng(3)))
    for r in range(20):
        again = roc.partial_auc(np.repeat(positive, times[:, r]), np.repeat(scores, times[:, r], axis=1))
        np.testing.assert_allclose(drawn.draws[:, r], again, rtol=1e-10)
    by_cluster = times[::12]
    assert (times.reshape(40, 12, -1) == by_cluster[:, None]).all() and (by_cluster.sum(axis=0) == 40).all()
    if block > 1:  # runs of three have neighbours together more often than lots do
        alone = next(bootstrap._of_clusters(positive, cluster, 1, 200, np.random.default_rng(3)))[::12]
        runs = next(bootstrap._of_clusters(positive, cluster, 3, 200, np.random.default_rng(3)))[::12]
        near = [np.mean([np.mean(a * b) for a, b in pairwise(each)]) for each in (alone, runs)]
        lengths = np.array([3] * 13 + [1])  # together in a run, or in two runs
        exact = [1 - 1 / 40, (lengths - 1).sum() / 40 + 1 - (lengths**2).sum() / 1600]
        assert near == pytest.approx(exact, abs=0.05)


def test_cases_that_are_there_twice_say_nothing_new():
    """Every case doubled: resampling pairs has the deviation of the single cases, resampling cases a smaller one."""
    rng = np.random.default_rng(4)
    positive = rng.random(400) < 0.25
    scores = rng.normal(size=(2, 400)) + positive
    single = bootstrap.replicate(positive, scores, resamples=600).draws.std(axis=1)
    twice, pairs = (np.repeat(each, 2, axis=-1) for each in (positive, scores)), np.repeat(np.arange(400), 2)
    twice = list(twice)
    whole = bootstrap.replicate(*twice, resamples=600, cluster=pairs).draws.std(axis=1)
    apart = bootstrap.replicate(*twice, resamples=600).draws.std(axis=1)
    np.testing.assert_allclose(whole, single, rtol=0.12)
    np.testing.assert_allclose(apart, single / np.sqrt(2), rtol=0.12)


def test_equal_methods_are_seldom_told_apart_in_clusters():
    rng = np.random.default_rng(2)
    whole, apart = [], []
    for _ in range(150):
        cluster, positive, scores = clustered(rng)
        whole.append(exchange.leads(positive, scores, exchanges=99, rng=rng, cluster=cluster).min() <= 0.1)
        apart.append(exchange.leads(positive, scores, exchanges=99, rng=rng).min() <= 0.1)
    assert 0.03 <= np.mean(whole) <= 0.1 + 3.5 * np.sqrt(0.09 / 150)
    assert np.mean(apart) > 0.25  # names exchanged case by case call luck of a cluster a lead


def test_a_better_method_is_found_in_clusters():
    cluster, positive, scores = clustered(np.random.default_rng(6))
    scores[0] += 2 * positive
    assert exchange.leads(positive, scores, cluster=cluster)[1] < 0.02


def test_comparisons_by_series_and_period():
    panel, forecasts, *_ = rolling(series=60)
    cases, series, period = (
        compare_large_changes(panel, forecasts, cutoff=0.9, resample=each, resamples=200)
        for each in ("cases", "series", "period")
    )
    np.testing.assert_array_equal(cases.replicates.area, series.replicates.area)
    assert series.clusters <= 60 and period.clusters <= 20 and "a series as one" in series.note
    blocks = compare_large_changes(panel, forecasts, cutoff=0.9, resample="period", block=4, resamples=50)
    assert blocks.clusters == 5 and "5 periods" in blocks.warning
    for wrong, what in (({"resample": "month"}, "resample"), ({"block": 3}, "block")):
        with pytest.raises(DataError, check=about(what)):
            compare_large_changes(panel, forecasts, **wrong)
    with pytest.raises(DataError, check=about("resample")):
        bootstrap.replicate(cases.positive, cases.scores, cluster=np.zeros(len(cases.positive), int))
