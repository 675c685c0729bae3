"""Cases that can be judged: their history lets a change be measured. The others have a reason.

Every rule uses the history up to the forecast origin only, so past cases are left out by the same rules as the coming
one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.arrays import Integers, Matrix
from discreet.change.standards import SHORTEST, AtOrigin, Policy
from discreet.errors import DataError
from discreet.faults import Argument


@dataclass(frozen=True, slots=True)
class Rules:
    """When a history says too little.

    Attributes
    ----------
    shortest : values that it needs.
    zeros : the largest share of zeros; 1 sets no limit.
    quiet : zeros at its end that mean a series has been discontinued; 0 sets no limit.
    """

    shortest: int = SHORTEST
    zeros: float = 1.0
    quiet: int = 0

    def __post_init__(self) -> None:
        for name, fits in (
            ("shortest", self.shortest >= SHORTEST),
            ("zeros", 0 < self.zeros <= 1),
            ("quiet", self.quiet >= 0),
        ):
            if not fits:
                raise DataError(
                    (Argument(name, getattr(self, name)), " is no rule."),
                    f"A history has {SHORTEST} values or more; a share of zeros is above 0 and at most 1.",
                    "Leave it out for the usual rule.",
                    about=name,
                )


USUAL = Rules(shortest=8, zeros=0.9, quiet=12)
"""The rules of reports. A standard deviation of fewer changes means little.

A series that is nearly always zero changes only by rare events, which its forecasts cannot predict.
"""

REASONS = ("", "too short", "constant", "discontinued", "intermittent", "new to the methods")


def reasons(
    values: Matrix, base: AtOrigin, row: Integers, origin: Integers, *, policy: Policy, rules: Rules
) -> Integers:
    """Why each case cannot be judged, as a place in `REASONS`; 0 for those that can."""
    present = np.isfinite(values)
    length = np.cumsum(present, axis=1)[row, origin]
    zero = values == 0
    share = np.cumsum(zero, axis=1)[row, origin] / np.maximum(length, 1)
    column = np.arange(values.shape[1])
    since = np.maximum.accumulate(np.where(zero | ~present, -1, column), axis=1)[row, origin]
    spread = base.change_sd if policy == "relative" else base.level_sd
    found = np.zeros(len(row), np.int64)
    found[share > rules.zeros] = 4
    if rules.quiet:
        found[(origin - since >= rules.quiet) & (share < 1)] = 3
    found[~(spread > 0)] = 2
    found[(length < rules.shortest) | np.isnan(spread)] = 1
    return found


def said(reason: int, rules: Rules) -> str:
    """A reason in words."""
    return (
        "",
        f"too short: fewer than {rules.shortest} periods",
        "constant: it never changes, so no change can be measured",
        f"discontinued: nothing in the last {rules.quiet} periods",
        f"intermittent: more than {100 * rules.zeros:.0f} % of its periods are zero",
        "new to the methods: they forecast it too seldom before to measure a forecast against their own",
    )[reason]
