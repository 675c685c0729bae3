"""What a table typically reveals about the size of an establishment that is alone in its cell.

Somebody sees the published counts, knows how its workers divide into kinds (equally, here) and applies Bayes' rule with
the exact law of the noise. The belief is the mean over outputs for an establishment of a made-up size, with noise that
anybody can draw again: only public constants enter. It holds whatever a definition permits at most (`privacy.belief`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.noise.source import SeededSource
from discreet.privacy.belief import TRUE_SIZES, SizeBelief, believed, permitted
from discreet.privacy.units import Establishments, is_weak
from discreet.tables.mechanisms.mechanism import Mechanism

if TYPE_CHECKING:
    from discreet.tables.prepared import Prepared
    from discreet.tables.query import CountQuery

OUTPUTS = 100
"""Outputs over which a belief is averaged."""

_NEVER = -1e300


def beliefs_after(query: CountQuery, ready: Prepared) -> Mapping[int, Vector] | None:
    """The typical belief about the size of a lone establishment, from a table and public constants."""
    if query.kinds.filtered:
        return None
    unit = query.account.unit
    whole = not query.worker_by or (isinstance(unit, Establishments) and not is_weak(unit.strength))
    return typical_beliefs(ready.mechanism, query.levels, hides_all=whole)


@lru_cache(maxsize=32)
def typical_beliefs(mechanism: Mechanism, levels: int, *, hides_all: bool) -> Mapping[int, Vector] | None:
    """Mean beliefs about establishments of `TRUE_SIZES`, at the sizes of `privacy.belief.permitted`."""
    found = {
        size: typical(mechanism, levels, permitted(mechanism.unit, 0.0, size), hides_all=hides_all)
        for size in TRUE_SIZES
    }
    return {size: belief for size, belief in found.items() if belief is not None} or None


def typical(mechanism: Mechanism, levels: int, belief: SizeBelief, *, hides_all: bool) -> Vector | None:
    """The mean belief after one table with so many counts in a cell; None where its likelihood has no simple form.

    `hides_all` says whether the noise of a count depends on the whole workforce or on that of the count's kind.
    """
    if mechanism.by_kinds:
        return None
    outputs = _outputs(mechanism, levels, belief.truth, hides_all)
    after = believed(_log_likelihood(mechanism, outputs, belief.sizes, hides_all), belief.prior)
    return np.asarray(after.mean(axis=0))


def _outputs(mechanism: Mechanism, levels: int, truth: int, hides_all: bool) -> Integers:
    """Published counts of the lone establishment, one row for each output."""
    kinds = _divided(truth, levels)
    count = np.tile(_kept(mechanism, kinds, truth), (OUTPUTS, 1))
    hidden = np.full_like(count, truth) if hides_all else np.tile(kinds, (OUTPUTS, 1))
    largest = np.full(OUTPUTS, truth) if mechanism.joint else hidden
    if mechanism.by_pairs:
        largest = np.stack([hidden, np.zeros_like(hidden)], axis=-1)
    return mechanism.draw(count, largest, SeededSource(truth))


def _divided(size: int, levels: int) -> Integers:
    """The workers of every kind: as many of each, in whole workers."""
    kinds = np.full(levels, size // levels)
    kinds[: size % levels] += 1
    return kinds


def _kept(mechanism: Mechanism, kinds: Integers, size: int) -> Integers:
    """The counts after large establishments were left out."""
    return kinds if mechanism.theta is None or size <= mechanism.theta else np.zeros_like(kinds)


def _log_likelihood(mechanism: Mechanism, outputs: Integers, sizes: Integers, hides_all: bool) -> Matrix:
    """The log likelihood of every output for every size, up to a constant of the output."""
    levels = outputs.shape[1]
    count = np.stack([_kept(mechanism, _divided(size, levels), size) for size in sizes.tolist()])
    hidden = sizes.astype(np.float64) if hides_all or mechanism.joint else sizes / levels
    with np.errstate(divide="ignore"):
        found = mechanism.log_likelihood(outputs, count, hidden)
    return np.where(np.isfinite(found), found, _NEVER)
