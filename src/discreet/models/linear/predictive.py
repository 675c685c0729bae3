"""The law of a new response whose linear predictor is known up to a normal error: its quantiles.

Only arrays enter and only arrays leave. Probabilities are averaged over the error by the trapezoidal rule, whose steps
are finer than the law is wide, so that counts of any size have smooth sums.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Vector
from discreet.models.linear.families.family import Family

REACH = 7.0  # standard deviations of the error that are summed over
COARSEST, FINEST = 0.25, 1 / 32  # steps, in standard deviations
LARGEST = 2**20  # probabilities at once


def quantiles(
    law: Family, eta: Vector, error: Vector, own: Vector, trials: Vector, share: float
) -> tuple[Vector, Vector]:
    """The ends of the interval that leaves (1 - share) / 2 of the law on either side, or less.

    Shares of trials are of `trials`.
    """
    scale = trials if law.trials else np.ones(len(eta))
    said = [scale * law.link.slope(at) ** 2 / law.variance(at, own) for at in (eta - error, eta, eta + error)]
    wide = float(np.max(error * np.sqrt(said), initial=0.0))
    step = min(COARSEST, max(FINEST, 0.5 / max(wide, 1e-9)))
    nodes = np.arange(-REACH, REACH + step / 2, step)
    weights = np.exp(-(nodes**2) / 2)
    weights /= weights.sum()
    chunk = max(1, LARGEST // len(nodes))
    ends = np.empty((2, len(eta)))
    for start in range(0, len(eta), chunk):
        at = slice(start, start + chunk)
        drawn = eta[at, None] + error[at, None] * nodes

        def below(y: Vector, drawn: Vector = drawn, at: slice = at) -> Vector:
            return np.asarray(law.at_most(y[:, None], drawn, own, trials[at, None]) @ weights)

        for end, wanted in enumerate(((1 - share) / 2, (1 + share) / 2)):
            ends[end, at] = law.ends(below, eta[at], wanted)
    return ends[0] / scale, ends[1] / scale
