"""A response in whole steps of its scale stays on the scale, whatever reaches it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from discreet.models.linear.private.sums import HALF, Scale


def test_responses_are_pulled_to_the_ends() -> None:
    whole = Scale(Fraction(0), Fraction(2)).whole(np.array([-1e300, -1.0, 0.0, 1.0, 2.0, 7.0, 1e300]))
    np.testing.assert_array_equal(whole, [-HALF, -HALF, -HALF, 0, HALF, HALF, HALF])
