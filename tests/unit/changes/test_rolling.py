from __future__ import annotations

import numpy as np
import pytest

from discreet.changes import families, rolling
from discreet.roc import curve as roc
from discreet.words.errors import DataError
from faults_of import about

SCHEDULE = rolling.Schedule(initialise=10, train=6, burn_in=2, test=6)
SMALL = np.array([0.1, 0.5, 0.9])
MODELS = [
    families.LeastSquares(),
    families.Bayesian(grid=SMALL, draws=60),
    families.Quantile(grid=np.array([0.0, 0.5, 0.9])),
    families.Power(grid=np.array([0.5, 1.0, 3.0])),
    families.Pmf(grid=SMALL, evaluations=40),
    families.Pmf(grid=SMALL, evaluations=20, explain_outcome=True),
    families.Pairwise(grid=SMALL),
]


def counts(seed=0, T=28, n=40):
    """Outcomes that follow the first of two indicators a month later."""
    rng = np.random.default_rng(seed)
    level = rng.gamma(2.0, 1.0, n)
    first, second = rng.poisson(level, (T, n)), rng.poisson(level, (T, n))
    first += 4 * (rng.random((T, n)) < 0.05)
    rate = level + 1.5 * np.vstack([np.zeros((1, n)), np.maximum(first[:-1] - level, 0)])
    return rng.poisson(rate).astype(float), np.stack([first, second], axis=2).astype(float)


@pytest.mark.parametrize("standardise", [False, True])
def test_lags_line_up(standardise):
    y, indicators = counts()
    data = rolling.months(y, indicators, lags=(1, 3), top=4, standardise=standardise)
    assert data.y.shape == (25, 40) and data.X.shape == (25, 40, 5 + 2 * standardise)
    assert (data.X[:, :, 0] == 1).all() and (data.positive.sum(axis=1) == 4).all()
    if not standardise:
        np.testing.assert_array_equal(data.y, y[3:])
        np.testing.assert_array_equal(data.X[5, :, 1:3], indicators[3 + 5 - 1])
        np.testing.assert_array_equal(data.X[5, :, 3:5], indicators[3 + 5 - 3])


@pytest.mark.parametrize("standardise", [False, True])
@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_nothing_looks_ahead(model, standardise):
    """Forecasts up to month t stay bit for bit the same when everything after t is poisoned."""
    y, indicators = counts()
    clean = rolling.months(y, indicators, start=6, standardise=standardise)
    span = range(12, 20)
    expected = rolling.ranked(model, clean, span, model.forecast(clean, span, model.grid))
    for t in (12, 15, 18):
        # The forecast of month t may use outcomes before t; in the raw panel month t of `clean` is row t + 4.
        dirty_y, dirty_x = y.copy(), indicators.copy()
        rng = np.random.default_rng(t)
        dirty_y[t + 4 :] = rng.poisson(90.0, dirty_y[t + 4 :].shape)
        dirty_x[t + 4 :] = rng.poisson(90.0, dirty_x[t + 4 :].shape)
        dirty = rolling.months(dirty_y, dirty_x, start=6, standardise=standardise)
        poisoned = rolling.ranked(model, dirty, span, model.forecast(dirty, span, model.grid))
        seen = t - span.start + 1
        np.testing.assert_array_equal(poisoned[:, :seen], expected[:, :seen])
        assert not np.array_equal(poisoned[:, seen:], expected[:, seen:])


@pytest.mark.parametrize("model", MODELS[:2] + MODELS[-1:], ids=lambda m: m.name)
def test_the_metaparameter_is_chosen_in_training(model):
    y, indicators = counts()
    data = rolling.months(y, indicators, start=6)
    found = rolling.roll(model, data, SCHEDULE)
    tried = rolling.ranked(model, data, SCHEDULE.training, model.forecast(data, SCHEDULE.training, model.grid))
    truth = data.positive[SCHEDULE.training].ravel()
    areas = [roc.partial_auc(truth, row.ravel()) for row in tried]
    assert found.training == pytest.approx(areas)
    assert found.scores.shape == (6, 40)
    if len(model.grid) > 1:
        assert found.value == model.grid[int(np.argmax(areas))]
    later = rolling.MonthlyPanel(data.y, data.X, data.mean, data.positive.copy())
    later.positive[SCHEDULE.initialise + SCHEDULE.train :] ^= True
    assert rolling.roll(model, later, SCHEDULE).training == pytest.approx(found.training)


def test_an_indicator_that_leads_is_found():
    y, indicators = counts(T=60, n=80)
    data = rolling.months(y, indicators, standardise=True)
    schedule = rolling.Schedule(initialise=20, train=10, burn_in=6, test=20)
    truth = data.positive[schedule.testing].ravel()
    for model in (families.LeastSquares(), families.Pairwise(grid=np.array([0.01]))):
        found = rolling.roll(model, data, schedule)
        assert roc.partial_auc(truth, found.scores.ravel()) > 0.06  # chance 0.02


def test_schedule():
    paper = rolling.Schedule()
    assert (paper.total, paper.training, paper.testing) == (140, range(44, 68), range(80, 140))


def test_refusals():
    y, indicators = counts()
    with pytest.raises(DataError, check=about("schedule")):
        rolling.roll(MODELS[0], rolling.months(y, indicators), rolling.Schedule())
    with pytest.raises(DataError, check=about("indicators")):
        rolling.months(y, indicators[:, :5])
    with pytest.raises(DataError, check=about("indicators")):
        rolling.months(y, indicators, lags=(0, 1))
