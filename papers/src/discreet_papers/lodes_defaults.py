"""The product's own mechanisms on the paper's workloads: errors of the published integers over infusion's, by stratum.

The closed form that was the default before is shown beside each default. Errors are exact expectations of integers;
only `weak-unions`, whose noise follows every set of kinds, and `weak-joint` are means over trials.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.arrays import Matrix
from discreet.noise.source import Source
from discreet.privacy.losses import exact
from discreet.privacy.units import Establishments, Strength, is_weak
from discreet.tables.mechanisms.defaults import default
from discreet.utility import errors, strata
from discreet_papers import lodes_grid as grid

POINTS = ((0.1, 1.0), (0.1, 2.0), (0.1, 4.0), (0.05, 4.0))
ASKED: tuple[tuple[int, Strength, str], ...] = (
    (1, "strong", "polynomial"),
    (3, "strong", "joint-polynomial"),
    (3, "weak", "weak-joint"),
)


def default_rows(economy: grid.Economy, *, trials: int, source: Source) -> list[dict[str, Any]]:
    """L1 errors of published integers over infusion's, and over those of the default before, by size of place."""
    rows = []
    for alpha, epsilon in POINTS:
        for workload, strength, before in ASKED:
            unit, levels = Establishments(exact(alpha), strength), len(economy.cells.levels) if workload == 3 else 1
            chosen = default(unit, exact(epsilon), cells=levels, everyone=workload == 1 or is_weak(strength))
            name = chosen.name
            # A law of the strong definition follows all workers, whatever is promised.
            by: Strength = strength if chosen.by_kinds or chosen.by_unions else "strong"
            now = grid.Setting(workload, name, "tight", by, alpha, epsilon)
            old = grid.Setting(workload, before, "tight", strength, alpha, epsilon)
            found, known = (_integers(each, economy, trials=trials, source=source) for each in (now, old))
            if found is None:
                continue
            reference = economy.reference(workload)
            over = errors.l1_ratio(found, reference, stratum=economy.stratum)
            less = np.full(len(over), np.nan)
            if known is not None:
                less = errors.l1_ratio(found, known, stratum=economy.stratum)
            rows += [
                {
                    "workload": workload,
                    "definition": strength,
                    "alpha": alpha,
                    "epsilon": epsilon,
                    "mechanism": name,
                    "stratum": stratum,
                    "over infusion": ratio,
                    "before": before,
                    "over before": share,
                }
                for stratum, ratio, share in zip((strata.ALL, *strata.NAMES), over.tolist(), less.tolist(), strict=True)
            ]
    return rows


def _integers(setting: grid.Setting, economy: grid.Economy, *, trials: int, source: Source) -> Matrix | None:
    """E|published - true| of every count."""
    mechanism, _ = grid.mechanism(setting, len(economy.cells.levels))
    if mechanism is None:
        return None
    counts = economy.counts(setting.workload)
    if mechanism.by_kinds:
        drawn = [np.abs(grid.draw(setting, mechanism, economy, source) - counts) for _ in range(trials)]
        return np.asarray(np.mean(drawn, axis=0))
    largest = economy.largest(setting).astype(np.float64)
    sizes = np.stack([largest, economy.second[:, None]], axis=-1) if mechanism.by_pairs else largest
    return np.broadcast_to(mechanism.integer_error(largest, sizes), counts.shape)
