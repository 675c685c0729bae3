"""The flag of a count says how much of it is noise."""

from __future__ import annotations

import numpy as np

from discreet.tables.quality import counted, quality


def test_flags_follow_the_width_and_never_praise_a_count_of_noise() -> None:
    """A draw below zero has the interval 0 to 0: nothing is known, however narrow that is. A certain 0 is good."""
    counts = np.array([100, 100, 100, 100, -4, 0, 5, 7])
    lower = np.array([95.0, 70, 0, -50, 0, 0, 0, 8])
    upper = np.array([105.0, 130, 200, 300, 0, 0, np.nan, 12])
    assert quality(counts, lower, upper).tolist() == [
        "good", "fair", "poor", "mostly noise", "mostly noise", "good", "no interval", "mostly noise"
    ]  # fmt: skip
    assert counted(counts, lower, upper) == {"good": 2, "fair": 1, "poor": 1, "mostly noise": 3, "no interval": 1}
    assert counted(counts[:1], lower[:1], upper[:1]) == {"good": 1}
