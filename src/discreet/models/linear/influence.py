"""Which rows carry weight: the paper's choice of 32 influential rows.

Section V.B.1 of Abowd, Schneider and Vilhuber (2012). What happens without those rows is in `refits`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Integers, Vector

if TYPE_CHECKING:
    from discreet.models.linear.fit import MixedFit


@dataclass(frozen=True, slots=True)
class Influential:
    """Rows chosen for a closer look, and the rule that chose each."""

    rows: Integers
    reasons: tuple[str, ...]


def influential(
    fit: MixedFit, *, extreme: int = 14, small_groups: int = 5, small: int = 15, far_groups: int = 4
) -> Influential:
    """The paper's rule, 32 rows by default: no row is chosen twice.

    The `extreme` largest Pearson residuals in absolute value; the smallest and the largest residual of each of the
    `small_groups` smallest groups with fewer than `small` rows; the same of the `far_groups` groups with the
    largest absolute EBLUPs. Groups are those of the first random term.
    """
    residual = fit.residuals("pearson")
    group = fit.design.random[0].grouping.codes(fit.data.codes)
    effect = np.abs(fit.solution.effects[0][:, 0])
    n = np.bincount(group, minlength=len(effect))
    free = np.ones(len(residual), dtype=bool)
    picked: list[tuple[int, str]] = []

    def pick(candidates: Integers, order: Vector, count: int, reason: str) -> None:
        candidates = candidates[free[candidates]]
        for row in candidates[np.argsort(order[candidates], kind="stable")[:count]].tolist():
            free[row] = False
            picked.append((row, reason))

    pick(np.arange(len(residual)), -np.abs(residual), extreme, "extreme residual")
    few = [g for g in np.argsort(n, kind="stable")[:small_groups].tolist() if n[g] < small]
    far = np.argsort(-effect, kind="stable")[:far_groups].tolist()
    for reason, chosen in (("small group", few), ("extreme effect", far)):
        for g in chosen:
            members = np.flatnonzero(group == g)
            pick(members, residual, 1, reason)
            pick(members, -residual, 1, reason)
    return Influential(np.array([row for row, _ in picked], dtype=np.int64), tuple(reason for _, reason in picked))
