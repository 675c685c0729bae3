"""Sums over parts: the scale of their noise is never below what epsilon needs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet.models.bayes.summation import BITS, noisy_sums
from discreet.noise.source import SeededSource


@pytest.mark.parametrize("epsilon", [Fraction(n, d) for n in (1, 2, 5, 7) for d in (3, 7, 10, 11, 13)])
def test_scales_are_rounded_up(epsilon: Fraction) -> None:
    found = noisy_sums(np.zeros((1, 1)), span=1.0, epsilons=[epsilon], source=SeededSource(1))
    steps = 2**BITS
    assert Fraction(float(found.scale[0]) * steps) >= steps / epsilon
