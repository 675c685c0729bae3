"""Vectorised smoothing beside loops by the book, from every origin, for series that begin at different times."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.changes import intermittent, seasons, smoothing
from discreet.changes.forecasters import BUILT_IN

ORIGINS = np.array([3, 11, 30, 47])


def panel(seed=0, n=6, months=48):
    rng = np.random.default_rng(seed)
    y = 50 + rng.normal(0, 2, (n, months)).cumsum(axis=1) + rng.normal(0, 1, (n, 1)) * np.arange(months)
    y[1, :2] = np.nan
    y[2, :7] = np.nan
    return y


def each(y, origins=ORIGINS):
    """Histories by series and origin."""
    for i, row in enumerate(y):
        for k, origin in enumerate(origins):
            history = row[: origin + 1]
            history = history[np.isfinite(history)]
            if len(history):
                yield i, k, history


def by_the_book(history, alpha):
    level, loss = history[0], 0.0
    for value in history[1:]:
        loss += (value - level) ** 2
        level = alpha * value + (1 - alpha) * level
    return level, loss


def test_simple_smoothing_takes_the_best_constant_so_far():
    y = panel()
    found = smoothing.simple(y, ORIGINS)
    for i, k, history in each(y):
        tried = [by_the_book(history, alpha) for alpha in smoothing.LEVELS]
        best = int(np.argmin([loss for _, loss in tried]))
        assert found.level[i, k] == pytest.approx(tried[best][0])
        assert found.alpha[i, k] == smoothing.LEVELS[best]


def test_trends_by_the_book():
    y = panel()
    alpha, beta, phi = 0.3, 0.2, 0.9
    found = smoothing.with_trend(y, ORIGINS, levels=np.array([alpha]), trends=np.array([beta]), damping=np.array([phi]))
    for i, k, history in each(y):
        warm = min(smoothing.WARM, len(history))
        level, trend = history[warm - 1], (history[warm - 1] - history[0]) / max(warm - 1, 1)
        for value in history[warm:]:
            before = level
            level = alpha * value + (1 - alpha) * (level + phi * trend)
            trend = beta * (level - before) + (1 - beta) * phi * trend
        expected = [level + sum(phi**j for j in range(1, h + 1)) * trend for h in (1, 4)]
        got = [smoothing.ahead(found, h)[i, k] for h in (1, 4)]
        assert got == pytest.approx(expected)


def test_theta_is_the_mean_of_its_two_lines():
    """The straight line, and simple smoothing of the series with its curvature doubled."""
    y = panel()
    alpha = 0.4
    for horizon in (1, 3):
        found = smoothing.theta(y, ORIGINS, horizon, levels=np.array([alpha]))
        for i, k, history in each(y):
            if len(history) < 2:
                continue
            t = np.arange(1, len(history) + 1)
            slope, start = np.polyfit(t, history, 1)
            line = start + slope * t
            curved, _ = by_the_book(2 * history - line, alpha)
            expected = (start + slope * (len(history) + horizon) + curved) / 2
            assert found[i, k] == pytest.approx(expected)


def test_croston_and_tsb_by_the_book():
    rng = np.random.default_rng(3)
    y = rng.poisson(3, (5, 48)) * (rng.random((5, 48)) < 0.3) * 1.0
    y[0, :5] = np.nan
    classic, tsb = (
        intermittent.croston(y, ORIGINS),
        intermittent.tsb(y, ORIGINS, sizes=np.array([0.2]), chances=np.array([0.1])),
    )
    for i, k, history in each(y):
        size = interval = chance = z = None
        since = 1
        for value in history:
            event = value != 0
            chance = float(event) if chance is None else chance + 0.1 * (event - chance)
            if event:
                z = value if z is None else z + 0.2 * (value - z)
                size = value if size is None else size + 0.1 * (value - size)
                interval = since if interval is None else interval + 0.1 * (since - interval)
                since = 1
            else:
                since += 1
        assert classic[i, k] == pytest.approx(0.0 if size is None else size / interval)
        assert tsb[i, k] == pytest.approx(0.0 if z is None else z * chance)


def test_a_season_is_found_taken_out_and_put_back():
    rng = np.random.default_rng(1)
    months = 60
    pattern = np.array([1.4, 0.7, 1.0, 1.2, 0.9, 0.8, 1.1, 1.0, 0.6, 1.3, 1.0, 1.0])
    pattern /= pattern.mean()
    seasonal = 100 * pattern[np.arange(months) % 12] * np.exp(rng.normal(0, 0.02, (30, months)))
    plain = 100 + rng.normal(0, 5, (30, months))
    found = seasons.Seasons(np.vstack([seasonal, plain, seasonal - 200]), 12).at(months - 1)
    assert found[0][:30].all() and found[0][30:60].mean() < 0.25 and found[0][60:].all()
    np.testing.assert_allclose(found[2][:30].mean(axis=0), pattern, atol=0.01)
    left = seasons.adjusted(seasonal, months - 1, tuple(part[:30] for part in found))
    assert left.std(axis=1).mean() < 4 < seasonal.std(axis=1).mean()
    for horizon in (1, 5, 12, 13):
        made = BUILT_IN["ses"](seasonal, np.array([months - 1]), horizon, 12)[:, 0]
        np.testing.assert_allclose(made, 100 * pattern[(months + horizon - 1) % 12], rtol=0.08)


@pytest.mark.parametrize("method", BUILT_IN)
@pytest.mark.parametrize("season", [1, 6])
def test_no_forecast_sees_what_comes_after_its_origin(method, season):
    y = np.abs(panel(n=8)) * (1.3 + np.sin(np.arange(48) * np.pi / 3))
    y[5] = np.round(np.maximum(y[5] - 60, 0))
    clean = BUILT_IN[method](y, ORIGINS, 2, season)
    for k, origin in enumerate(ORIGINS):
        poisoned = y.copy()
        poisoned[:, origin + 1 :] = np.random.default_rng(k).normal(1e6, 1e6, poisoned[:, origin + 1 :].shape)
        np.testing.assert_array_equal(BUILT_IN[method](poisoned, ORIGINS[: k + 1], 2, season)[:, k], clean[:, k])
    assert np.isfinite(clean[:, 1:]).all()
