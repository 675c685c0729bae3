"""Tracking signals: has a series left the path of its forecasts? Trigg's and Brown's, many series at once.

Only arrays, as in `smoothing`. One-step errors are those of simple smoothing with a fixed constant. Trigg (1964,
doi:10.1057/jors.1964.48) divides the smoothed error by the smoothed absolute error, between -1 and 1; Brown (1959)
divides the sum of all errors by it. Both say that a change is under way, after it began: chapter 2 of the Dissertation
sets forecasts of large changes against such monitoring.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Integers, Matrix
from discreet.changes import standards

LEVEL = 0.2
"""How fast the level follows."""

MEMORY = 0.1
"""How fast the signal forgets, Trigg's own choice."""


def trigg(values: Matrix, origins: Integers, *, level: float = LEVEL, memory: float = MEMORY) -> Matrix:
    """Smoothed error over smoothed absolute error, shape (series, origins); above 0 where a series runs high."""
    return np.asarray(_signals(values, origins, level, memory)[0])


def brown(values: Matrix, origins: Integers, *, level: float = LEVEL, memory: float = MEMORY) -> Matrix:
    """Sum of errors over smoothed absolute error."""
    return np.asarray(_signals(values, origins, level, memory)[1])


def as_forecasts(signals: Matrix, values: Matrix, origins: Integers) -> Matrix:
    """Forecasts that lie as many usual changes from the origin as the signals say.

    Under the relative standard their scores are the signals themselves, so monitoring is ranked like any method.
    """
    series, columns = np.divmod(np.arange(signals.size), len(origins))
    base = standards.at_origins(values, series, origins[columns])
    return np.asarray((base.last + base.change_mean + signals.ravel() * base.change_sd).reshape(signals.shape))


def _signals(values: Matrix, origins: Integers, level: float, memory: float) -> Matrix:
    """Both signals at each origin, 0 while there is no error."""
    path, error_so_far, size, total = np.full((4, len(values)), [[np.nan], [0.0], [0.0], [0.0]])
    found = np.zeros((2, len(values), len(origins)))
    wanted = {int(origin): k for k, origin in enumerate(origins)}
    for t in range(int(origins.max()) + 1 if len(origins) else 0):
        y = values[:, t]
        error = np.where(np.isfinite(path) & np.isfinite(y), y - path, 0.0)
        begun = np.isfinite(path) & np.isfinite(y)
        error_so_far = np.where(begun, error_so_far + memory * (error - error_so_far), error_so_far)
        size = np.where(begun, size + memory * (np.abs(error) - size), size)
        total = total + error
        path = np.where(np.isfinite(path), path + level * error, y)
        if t in wanted:
            for k, above in enumerate((error_so_far, total)):
                np.divide(above, size, out=found[k, :, wanted[t]], where=size > 0)
    return found
