"""Built-in forecasters beside statsforecast, whose forecasts `forecasts.py` wrote down."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from discreet.changes import intermittent, smoothing

STORED = json.loads(Path(__file__).with_name("forecasts.json").read_text())
TRENDING, EVENTS = np.array(STORED["trending"]), np.array(STORED["events"])
LAST = np.array([TRENDING.shape[1] - 1])
DIGITS = 1e-6  # statsforecast computes in single precision here and there
SPREAD = np.diff(TRENDING, axis=1).std(axis=1)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
def test_simple_smoothing_with_a_given_constant(alpha):
    found = smoothing.ahead(smoothing.simple(TRENDING, LAST, levels=np.array([alpha])), 1)
    np.testing.assert_allclose(found, STORED["ses"][str(alpha)], rtol=DIGITS)


def test_estimated_constants_forecast_the_same():
    """A grid finds nearly the same minimum: a twentieth of the series' usual change is no difference to a ranking."""
    simple = smoothing.ahead(smoothing.simple(TRENDING, LAST), 1)[:, 0]
    assert (np.abs(simple - np.ravel(STORED["ses_best"])) < 0.05 * SPREAD).all()
    theta = np.stack([smoothing.theta(TRENDING, LAST, h)[:, 0] for h in (1, 2, 3)], axis=1)
    assert (np.abs(theta - STORED["theta"]) < 0.15 * SPREAD[:, None]).all()


def test_holts_trend_is_close():
    """Starting values are estimated there and taken from the first values here: half a usual change one ahead."""
    holt = smoothing.ahead(smoothing.with_trend(TRENDING, LAST), 1)[:, 0]
    assert (np.abs(holt - np.array(STORED["holt"])[:, 0]) < 0.5 * SPREAD).all()


@pytest.mark.parametrize("bias", [False, True])
def test_croston(bias):
    found = intermittent.croston(EVENTS, LAST, bias=bias)
    np.testing.assert_allclose(found, STORED["croston_sba" if bias else "croston"], rtol=DIGITS)


@pytest.mark.parametrize("constants", STORED["tsb"])
def test_tsb(constants):
    size, chance = (np.array([float(text)]) for text in constants.split(","))
    found = intermittent.tsb(EVENTS, LAST, sizes=size, chances=chance)
    np.testing.assert_allclose(found, STORED["tsb"][constants], rtol=DIGITS)
