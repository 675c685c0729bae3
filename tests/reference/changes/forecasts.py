"""Writes forecasts.json: forecasts of statsforecast with given or estimated constants. Run where it is installed."""

import json
from pathlib import Path

import numpy as np
from statsforecast import __version__, models

rng = np.random.default_rng(7)
TRENDING = [100 + 3 * rng.normal(size=60).cumsum() + slope * np.arange(60) for slope in (0, 0.5, -0.8, 2)]
EVENTS = [rng.poisson(2.5, 60) * (rng.random(60) < share) * 1.0 for share in (0.15, 0.4, 0.7)]


def last(model, y, h):
    return [float(v) for v in model.forecast(y=np.asarray(y, float), h=h)["mean"]]


made = {
    "version": __version__,
    "trending": [list(map(float, y)) for y in TRENDING],
    "events": [list(map(float, y)) for y in EVENTS],
    "ses": {
        str(a): [last(models.SimpleExponentialSmoothing(alpha=a), y, 1) for y in TRENDING] for a in (0.1, 0.5, 0.9)
    },
    "ses_best": [last(models.SimpleExponentialSmoothingOptimized(), y, 1) for y in TRENDING],
    "theta": [last(models.Theta(season_length=1), y, 3) for y in TRENDING],
    "holt": [last(models.Holt(), y, 3) for y in TRENDING],
    "croston": [last(models.CrostonClassic(), y, 1) for y in EVENTS],
    "croston_sba": [last(models.CrostonSBA(), y, 1) for y in EVENTS],
    "tsb": {
        f"{d},{p}": [last(models.TSB(alpha_d=d, alpha_p=p), y, 1) for y in EVENTS] for d, p in ((0.1, 0.2), (0.4, 0.05))
    },
}
Path(__file__).with_suffix(".json").write_text(json.dumps(made, indent=1) + "\n")
