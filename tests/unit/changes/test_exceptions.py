from __future__ import annotations

import datetime
import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from discreet.changes import standards
from discreet.changes.exceptions import exception_report
from discreet.words.errors import DataError
from faults_of import about


def frames(seed=0, n=100, months=40, ahead=True):
    """Forecasts of the last ten months and the coming one; `knows` sees part of each change, `blind` nothing."""
    rng = np.random.default_rng(seed)
    y = rng.standard_t(3, (n, months + 1)).cumsum(axis=1) + 100
    names = np.array([f"s{i:03d}" for i in range(n)])
    panel = pa.table(
        {
            "series": np.repeat(names, months),
            "t": np.tile(np.arange(months), n),
            "value": y[:, :months].ravel(),
        }
    )
    rows = [
        {"series": names[i], "method": method, "t": t, "forecast": float(y[i, t - 1] + seen + rng.normal(0, 0.5))}
        for t in range(months - 10, months + ahead)
        for i in range(n)
        for method, seen in (("blind", 0.0), ("knows", 0.7 * (y[i, t] - y[i, t - 1])))
    ]
    return panel, pa.Table.from_pylist(rows), y


def test_report_by_hand():
    panel, forecasts, y = frames()
    found = exception_report(panel, forecasts, direction="increase", cost_ratio=5)
    base = standards.baseline([y[i, :40] for i in range(100)])
    jumped = standards.jumped(base, direction="increase")
    assert found.method == "knows" and len(found.rows) == 100 - jumped.sum() < 100
    coming = {
        row["series"]: row["forecast"] for row in forecasts.to_pylist() if row["t"] == 40 and row["method"] == "knows"
    }
    scores = standards.standardise(base, np.array([coming[f"s{i:03d}"] for i in range(100)]), direction="increase")
    ranked = [i for i in np.argsort(-scores, kind="stable") if not jumped[i]]
    assert [row["series"] for row in found.rows] == [f"s{i:03d}" for i in ranked]
    assert [row["score"] for row in found.rows] == pytest.approx(scores[ranked])
    assert {row["series"] for row in found.set_aside} == {f"s{i:03d}" for i in np.flatnonzero(jumped)}
    assert [row["flag"] for row in found.rows] == [row["score"] >= found.point.threshold for row in found.rows]
    could = [
        not standards.jumped(standards.baseline([y[i, :t]]), direction="increase")[0]
        for t in range(30, 40)
        for i in range(100)
    ]
    assert found.past == sum(could)
    k = len(found.flagged)
    assert k and found.expected_true + found.expected_false == pytest.approx(k)
    assert found.expected_true == pytest.approx(found.flagged[-1]["true_so_far"])
    assert (np.diff([row["chance"] for row in found.rows]) <= 0).all()


def test_expected_hits_are_about_what_happens():
    expected = got = flags = 0.0
    for seed in range(25):
        panel, forecasts, y = frames(seed)
        found = exception_report(panel, forecasts)
        base = standards.baseline([y[i, :40] for i in range(100)])
        truth = standards.large_changes(base, y[:, 40]).positive
        hits = sum(truth[int(row["series"][1:])] for row in found.flagged)
        expected, got, flags = expected + found.expected_true, got + hits, flags + len(found.flagged)
    assert flags > 100
    assert got == pytest.approx(expected, abs=4 * np.sqrt(expected))


def test_stopping_earlier_expects_fewer_of_both():
    found = exception_report(*frames()[:2])
    right, wrong = (np.array([row[key] for row in found.rows]) for key in ("true_so_far", "false_so_far"))
    assert (np.diff(right) >= 0).all()
    assert right + wrong == pytest.approx(np.arange(1, len(found.rows) + 1))


def test_settings_matter():
    panel, forecasts, _ = frames()
    cautious = exception_report(panel, forecasts, cost_ratio=1)
    anxious = exception_report(panel, forecasts, cost_ratio=50)
    assert len(cautious.flagged) < len(anxious.flagged)
    assert exception_report(panel, forecasts, method="blind").method == "blind"
    assert exception_report(panel, forecasts, prevalence=0.5).point.prevalence == 0.5
    assert anxious.point.fpr <= 0.2
    json.dumps(anxious.to_dict(), allow_nan=False)
    assert anxious.tidy().num_rows == len(anxious.rows) and "flagged" in anxious.summary()
    rare = exception_report(panel, forecasts, method="blind", cost_ratio=1e-9)
    assert not rare.flagged and rare.expected_true == 0 and rare.to_dict()["threshold"] is None
    assert [row["cost_ratio"] for row in anxious.choices] == [1, 2, 5, 10, 20, 50]
    assert [row["flagged"] for row in anxious.choices][::5] == [len(cautious.flagged), len(anxious.flagged)]


def test_past_area_is_the_comparisons():
    panel, forecasts, _ = frames()
    from discreet.changes.compare import compare_large_changes

    found = exception_report(panel, forecasts, regression="keep")
    rows = compare_large_changes(panel, forecasts, resamples=10, regression="keep").rows()
    assert found.pauc == pytest.approx(rows[0]["pauc"]) and not found.set_aside and found.past == 1000


def test_refusals():
    panel, forecasts, _ = frames()
    past, _, _ = frames(ahead=False)
    with pytest.raises(DataError, check=about("forecasts")):
        exception_report(past, frames(ahead=False)[1])
    future = forecasts.filter(pc.equal(forecasts["t"], 40))
    with pytest.raises(DataError, check=about("forecasts")):
        exception_report(panel, future)
    with pytest.raises(DataError, check=about("method")):
        exception_report(panel, forecasts, method="oracle")


@pytest.mark.parametrize("prevalence", [0.0, 1.0, 2.0, -0.5, float("nan")])
def test_a_prevalence_that_is_no_share_is_refused(prevalence):
    with pytest.raises(DataError, check=about("prevalence")):
        exception_report(*frames()[:2], prevalence=prevalence)


def smoothed(y, t):
    """Three ordinary forecasts of period t from those before."""
    level = y[:, 0]
    for value in y[:, 1:t].T:
        level = 0.3 * value + 0.7 * level
    return {"mean": y[:, t - 12 : t].mean(axis=1), "ses": level, "last year": y[:, t - 12]}


def noise(kind, rng, n=200, months=49):
    e = rng.normal(size=(n, months))
    if kind == "white noise":
        return e
    if kind == "random walk":
        return e.cumsum(axis=1)
    if kind == "counts":
        return rng.poisson(rng.gamma(2, 2, (n, 1)) + 1, (n, months)).astype(float)
    return e + rng.normal(0, 2, (n, 12))[:, np.arange(months) % 12]


@pytest.mark.parametrize(
    ("kind", "direction"),
    [("white noise", "decline"), ("random walk", "increase"), ("seasons", "decline"), ("counts", "increase")],
)
def test_what_cannot_happen_is_not_ranked_and_the_rest_is_calibrated(kind, direction):
    """Chances beside what happened, for the flags and for all ranked series."""
    expected, got = np.zeros(2), np.zeros(2)
    rng = np.random.default_rng(5)
    for _ in range(4):
        y = noise(kind, rng)
        n, last = y.shape[0], y.shape[1] - 1
        names = [f"s{i:03d}" for i in range(n)]
        panel = pa.table(
            {"series": np.repeat(names, last), "t": np.tile(np.arange(last), n), "value": y[:, :last].ravel()}
        )
        parts = [(t, method, values) for t in range(last - 12, last + 1) for method, values in smoothed(y, t).items()]
        forecasts = pa.table(
            {
                "series": names * len(parts),
                "method": np.repeat([method for _, method, _ in parts], n),
                "t": np.repeat([t for t, _, _ in parts], n),
                "forecast": np.concatenate([values for _, _, values in parts]),
            }
        )
        found = exception_report(panel, forecasts, direction=direction)
        base = standards.baseline(list(y[:, :last]))
        truth = standards.large_changes(base, y[:, last], direction=direction).positive
        impossible = {names[i] for i in np.flatnonzero(standards.jumped(base, direction=direction))}
        assert impossible and impossible == {row["series"] for row in found.set_aside}
        assert not impossible & {row["series"] for row in found.rows}
        assert all("at the origin" in row["why"] for row in found.set_aside)
        assert f"{len(impossible)} had a large" in found.summary()
        for k, rows in enumerate((found.flagged, found.rows)):
            expected[k] += sum(row["chance"] for row in rows)
            got[k] += sum(truth[int(row["series"][1:])] for row in rows)
    assert expected[1] > 30
    assert (np.abs(got - expected) < 3.5 * np.sqrt(expected)).all()


@pytest.mark.parametrize("regression", ["negative", "drop"])
def test_a_jump_is_set_aside_under_either_rule_and_ranked_where_it_may_count(regression):
    panel, forecasts, _ = frames()
    apart = {row["series"] for row in exception_report(panel, forecasts, regression=regression).set_aside}
    assert apart
    for settings in ({"regression": "keep"}, {"policy": "absolute"}):
        found = exception_report(panel, forecasts, **settings)
        assert not found.set_aside and apart <= {row["series"] for row in found.rows}


def test_a_series_that_has_ended_is_not_ranked():
    panel, forecasts, _ = frames()
    gone = pc.and_(pc.equal(panel["series"], "s007"), pc.greater(panel["t"], 36))
    panel = panel.filter(pc.invert(gone))
    for made in (
        forecasts,
        forecasts.filter(pc.or_(pc.not_equal(forecasts["series"], "s007"), pc.less(forecasts["t"], 38))),
    ):
        found = exception_report(panel, made)
        assert "s007" not in {row["series"] for row in found.rows}
        (why,) = [row["why"] for row in found.set_aside if row["series"] == "s007"]
        assert why == "ended at 36, before the panel"
        assert "1 ended before the panel" in found.summary()


def several(forecasts, spell):
    """The coming period's forecasts, repeated for the eleven after it, under other labels."""
    coming = forecasts.filter(pc.equal(forecasts["t"], 40))
    parts = [forecasts.set_column(2, "t", pa.array([spell(t) for t in forecasts["t"].to_pylist()]))]
    parts += [coming.set_column(2, "t", pa.array([spell(40 + k)] * len(coming))) for k in range(1, 12)]
    return pa.concat_tables(parts)


def month(t):
    return (np.datetime64("2020-01") + t + 1).astype("datetime64[D]").item() - datetime.timedelta(days=1)


@pytest.mark.parametrize("spell", [int, month, lambda t: str(month(t))[:7]], ids=["numbers", "month-ends", "text"])
def test_the_horizon_of_coming_periods_is_read_from_their_labels(spell):
    panel, forecasts, _ = frames()
    panel = panel.set_column(1, "t", pa.array([spell(t) for t in panel["t"].to_pylist()]))
    many = several(forecasts, spell)
    found = exception_report(panel, many)
    assert len(found.rows) + len(found.set_aside) == 100
    assert {row["t"][:10] for row in found.rows} == {str(spell(40))}
    late = many.filter(pc.not_equal(many["t"], spell(40)))
    with pytest.raises(DataError, check=about("horizon")):
        exception_report(panel, late)
    declared = many.append_column("horizon", pa.array(np.ones(len(many), int)))
    with pytest.raises(DataError, check=about("horizon")):
        exception_report(panel, declared)


def test_several_coming_periods_that_cannot_be_counted_are_refused():
    panel, forecasts, _ = frames()
    panel = panel.set_column(1, "t", pa.array([f"wave {t:02d}" for t in panel["t"].to_pylist()]))
    with pytest.raises(DataError, check=about("forecasts")):
        exception_report(panel, several(forecasts, lambda t: f"wave {t:02d}"))
    one = forecasts.set_column(2, "t", pa.array([f"wave {t:02d}" for t in forecasts["t"].to_pylist()]))
    assert {row["t"] for row in exception_report(panel, one).rows} == {"wave 40"}
