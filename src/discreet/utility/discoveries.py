"""How surely each cell must have changed so that few of all alarms are false. Only numbers.

A rate bounds the chance of a false alarm of one cell; of many cells that did not change, that share raises one. The
false discovery rate bounds the expected share of false alarms among all that are raised. The step-up procedure of
Benjamini and Yekutieli (2001, doi:10.1214/aos/1013699998) keeps it for any dependence between cells, so also for tables
that add up. It finds the largest k such that k cells raise an alarm at the rate q k / (m c), where m is the number of
cells and c = 1 + 1/2 + ... + 1/m. Here only some k are tried. Their list is self-consistent (Blanchard and Roquain
2008, doi:10.1214/08-EJS180): it has at least k cells, so the bound holds for it too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from discreet.arrays import Mask

TRIED = 40
"""Lengths of the list that are tried, in equal ratios from one cell to all."""


def discovered(alarms: Callable[[float], Mask], *, cells: int, fdr: float) -> tuple[Mask, float]:
    """Which cells raise an alarm at a false discovery rate of `fdr`, and the rate of each cell that this takes.

    `alarms(rate)` has a cell that did not change with a chance of `rate` at most. Of rates in order, a cell counts at
    one only if it raises an alarm at all larger ones that were tried, so that alarms are nested whatever ends do.
    """
    harmonic = float((1 / np.arange(1, max(cells, 1) + 1)).sum())
    lengths = np.unique(np.geomspace(1, max(cells, 1), TRIED).round().astype(np.int64))[::-1]
    found: Mask | None = None
    rate = fdr / harmonic
    for length in lengths:
        rate = fdr * float(length) / (max(cells, 1) * harmonic)
        now = alarms(rate)
        found = now if found is None else found & now
        if found.sum() >= length:
            return found, rate
    assert found is not None
    return np.zeros_like(found), rate
