"""Tracking signals and families fitted to the partial area, beside plain loops."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from discreet.changes import tracking
from discreet.changes.exceptions import exception_report
from discreet.changes.forecasters import FAMILIES, QUICK, forecast_cases, members
from discreet.changes.judged import USUAL
from discreet.changes.panel import read_panel
from discreet.changes.scored import Gold, score
from discreet.roc import curve as roc
from discreet.words.errors import DataError
from faults_of import about


def signals(y, level, memory):
    path, smooth, size, total = y[0], 0.0, 0.0, 0.0
    for value in y[1:]:
        error = value - path
        smooth += memory * (error - smooth)
        size += memory * (abs(error) - size)
        total += error
        path += level * error
    return (smooth / size, total / size) if size else (0.0, 0.0)


def series(n=30, months=48, seed=0):
    rng = np.random.default_rng(seed)
    return 100 + np.cumsum(rng.standard_t(3, (n, months)), axis=1) * 0.3 + rng.normal(0, 2, (n, months))


def table(y):
    n, months = y.shape
    names = np.repeat([f"s{i:03d}" for i in range(n)], months)
    return pa.table({"series": names, "t": np.tile(np.arange(months), n), "value": y.ravel()})


def test_signals_by_a_loop():
    y = series()
    y[:3, :7] = np.nan  # begins later
    y[4] = 5.0  # never errs
    origins = np.array([0, 10, 47])
    trigg, brown = tracking.trigg(y, origins, level=0.3, memory=0.2), tracking.brown(y, origins, level=0.3, memory=0.2)
    for i in (0, 4, 9):
        for k in (1, 2):
            known = y[i, : origins[k] + 1]
            expected = signals(known[np.isfinite(known)], 0.3, 0.2)
            assert (trigg[i, k], brown[i, k]) == pytest.approx(expected)
    assert (np.abs(trigg) <= 1 + 1e-12).all() and (trigg[:, 0] == 0).all()
    later = y.copy()
    later[:, 11:] = 1e6
    np.testing.assert_array_equal(tracking.trigg(later, origins[:2]), tracking.trigg(y, origins[:2]))


def test_a_signal_is_its_own_score():
    y = series()
    held = read_panel(table(y))
    made = forecast_cases(held, methods=("trigg", "brown"), past=6)
    found = score(made, Gold(direction="increase", regression="keep"), horizon=1, rules=USUAL)
    for k, signal in enumerate((tracking.trigg, tracking.brown)):
        expected = signal(y, np.arange(48))[found.cases.row, found.cases.origin]
        np.testing.assert_allclose(found.scores[k], expected, atol=1e-9)


def test_members_smooth_with_their_constants():
    y = series()
    made = forecast_cases(read_panel(table(y)), methods=("ses_pauc",), season=1, past=2)
    assert made.methods == tuple(FAMILIES["ses_pauc"]) == members(["ses_pauc", "ses@0.2"])
    k, row = made.methods.index("ses@0.2"), 5
    level = y[row, 0]
    for value in y[row, 1:46]:
        level += 0.2 * (value - level)
    first = np.flatnonzero((made.row == row) & (made.origin == 45))[0]
    assert made.forecasts[k, first] == pytest.approx(level)
    assert set(members(["damped_pauc"])) == set(FAMILIES["damped_pauc"])
    with pytest.raises(DataError, check=about("methods")):
        members(["ses@2"])


def test_a_report_takes_the_member_with_the_largest_area():
    y = series(n=150, seed=3)
    report = exception_report(table(y), methods=("ses_pauc",), capacity=10, season=1)
    made = forecast_cases(read_panel(table(y)), methods=("ses_pauc",), season=1, past=24)
    found = score(made, Gold(), horizon=1, rules=USUAL)
    past = found.select(found.known & ~found.impossible)
    areas = roc.partial_auc(past.positive, past.scores)
    assert report.method == made.methods[int(np.argmax(areas))] and report.pauc == pytest.approx(areas.max())
    assert "ses_pauc" in QUICK
