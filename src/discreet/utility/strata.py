"""The four kinds of place by population: results for large places say nothing about small ones."""

from __future__ import annotations

import numpy as np

from discreet.arrays import Integers, Vector

LIMITS = (100, 10_000, 100_000)
"""Haney et al. (2017, section 10)."""

NAMES = ("0-100", "100-10k", "10k-100k", "100k+")
ALL = "all"


def stratum_of(population: Integers) -> Integers:
    """The stratum of each place, 0 to 3; a place of exactly 100 inhabitants is in the second."""
    return np.searchsorted(LIMITS, population, side="right")


def sums(values: Vector, *, stratum: Integers) -> Vector:
    """The sum over all cells, then over the cells of each stratum."""
    parts = np.bincount(stratum, weights=values, minlength=len(NAMES))
    return np.concatenate([[parts.sum()], parts])
