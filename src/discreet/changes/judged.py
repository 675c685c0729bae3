"""Cases that can be judged: their history lets a change be measured. The others have a reason.

A period that a series lacks is passed over: no change is measured into it or out of it, and forecasts go on from the
state before it. So a series can be judged if few of its periods are missing and none of the last.

Every rule uses the history up to the forecast origin only, so past cases are left out by the same rules as the coming
one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.arrays import Integers, Matrix
from discreet.changes.standards import SHORTEST, AtOrigin, Policy, is_relative
from discreet.words.errors import DataError
from discreet.words.faults import Argument


@dataclass(frozen=True, slots=True)
class Rules:
    """When a history says too little.

    Attributes
    ----------
    shortest : values that it needs.
    zeros : the largest share of zeros; 1 sets no limit.
    quiet : zeros at its end that mean a series has been discontinued; 0 sets no limit.
    missing : the largest share of periods that it may lack since its first.
    unbroken : periods up to the origin of which it may lack none.
    """

    shortest: int = SHORTEST
    zeros: float = 1.0
    quiet: int = 0
    missing: float = 0.1
    unbroken: int = 6

    def __post_init__(self) -> None:
        for name, fits in (
            ("shortest", self.shortest >= SHORTEST),
            ("zeros", 0 < self.zeros <= 1),
            ("quiet", self.quiet >= 0),
            ("missing", 0 <= self.missing < 1),
            ("unbroken", self.unbroken >= 2),
        ):
            if not fits:
                raise DataError(
                    (Argument(name, getattr(self, name)), " is no rule."),
                    f"A history has {SHORTEST} values or more, and lacks none of the last 2; a share of zeros is above "
                    "0 and at most 1, one of missing periods below 1.",
                    "Leave it out for the usual rule.",
                    about=name,
                )


USUAL = Rules(shortest=8, zeros=0.9, quiet=12)
"""The rules of reports. A standard deviation of fewer changes means little.

A series that is nearly always zero changes only by rare events, which its forecasts cannot predict.
"""

REASONS = ("", "too short", "constant", "discontinued", "intermittent", "new to the methods", "gaps")
GAPS = REASONS.index("gaps")


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
    spread = base.change_sd if is_relative(policy) else base.level_sd
    found = np.zeros(len(row), np.int64)
    found[share > rules.zeros] = 4
    if rules.quiet:
        found[(origin - since >= rules.quiet) & (share < 1)] = 3
    found[~(spread > 0)] = 2
    hole = ~present & (np.cumsum(present, axis=1) > 0)
    broken = np.maximum.accumulate(np.where(hole, column, -values.shape[1]), axis=1)[row, origin]
    lacked = np.cumsum(hole, axis=1)[row, origin]
    found[(lacked > rules.missing * (lacked + length)) | (origin - broken < rules.unbroken)] = GAPS
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
        f"gaps: it lacks more than {100 * rules.missing:.0f} % of its periods, or one of the last {rules.unbroken}",
    )[reason]
