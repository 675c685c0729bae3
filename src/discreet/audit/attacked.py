"""The attacks of the Tables paper on tables of the same establishments, scored with a truth that is known.

The truth is simulated, or a stand-in: nobody may score an attack on confidential data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from discreet.arrays import Integers, Matrix
from discreet.tables.baseline import attacks
from discreet.tables.baseline.establishments import Histograms

ORDER = ("shape", "size", "re-identification")


def attack(tables: Mapping[str, Matrix], firms: Histograms) -> list[dict[str, str | int | float]]:
    """How often each attack is exactly right on each table of the same cells."""
    cells = firms.cells()
    names = [", ".join(map(str, level)) for level in cells.levels]
    only = cells.counts.sum(axis=1) == 1
    truth: dict[str, Matrix | Integers] = {
        "shape": cells.counts / np.maximum(cells.counts.sum(axis=1, keepdims=True), 1),
        "size": cells.counts,
        "re-identification": cells.counts,
    }
    lone = cells.establishments == 1
    targets = {"shape": lone.sum(), "size": lone.sum(), "re-identification": (only & lone).sum()}
    rows: list[dict[str, str | int | float]] = []
    for name, table in tables.items():
        known = table.argmax(axis=1)
        count = np.take_along_axis(cells.counts, known[:, None], axis=1)[:, 0]
        for claims in (
            attacks.shape(table, establishments=cells.establishments),
            attacks.size(table, establishments=cells.establishments, level=known, count=count),
            attacks.reidentification(table, establishments=cells.establishments, only=only, names=names),
        ):
            outcome = attacks.score(claims, truth[claims.attack])
            unknown = truth[claims.attack][claims.cell]
            if claims.attack == "size":  # one count is known beforehand
                unknown = np.where(np.arange(unknown.shape[1]) == known[claims.cell, None], -1, unknown)
            rows.append(
                {
                    "attack": claims.attack,
                    "table": name,
                    "targets": int(targets[claims.attack]),
                    "cases": outcome.cases,
                    "exact": outcome.exact,
                    "by_chance": _constant_guess(unknown),
                    "example": outcome.example,
                }
            )
    return sorted(rows, key=lambda row: ORDER.index(str(row["attack"])))


def _constant_guess(truth: Matrix | Integers) -> int:
    """How often the best constant guess is right."""
    return int(np.unique(truth, axis=0, return_counts=True)[1].max()) if len(truth) else 0


def larger(
    draws: Mapping[str, Callable[[Integers, Integers, int], Integers]], amounts: Integers, *, share: float, trials: int
) -> list[dict[str, str | int | float]]:
    """How often the p % rule's attacker is right: is the only establishment of a cell as large as that, or larger?

    Half of the cases are of either kind. Somebody who knows all others of a cell is where they are alone in it.
    """
    amounts = amounts[np.floor(amounts * share) >= 1]
    rows: list[dict[str, str | int | float]] = []
    for name, draw in draws.items() if amounts.size else ():
        found = attacks.p_percent(draw, sums=amounts, largest=amounts, share=share, trials=trials)
        right = round(found.cases * (found.power + 1 - found.false_alarms))
        tried = {"targets": len(amounts), "cases": 2 * found.cases, "exact": right, "by_chance": found.cases}
        rows.append({"attack": f"p %: larger by {100 * share:g} %", "table": name, **tried})
    return rows
