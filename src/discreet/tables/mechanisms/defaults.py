"""The mechanism of a table that names none: the one of the least expected error, chosen from public numbers alone.

alpha, epsilon, the definition and how many kinds of workers are counted decide; data are not read. Other mechanisms are
used by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, assert_never

import numpy as np

from discreet.noise.anchors import covered
from discreet.privacy.units import AnyRow, EstablishmentNodes, Establishments, Groups, Rows, Unit, Workers, is_weak
from discreet.release.account import Account
from discreet.tables.calibration import calibrate
from discreet.tables.mechanisms.joint_polynomial import JointPolynomialNoise
from discreet.tables.mechanisms.joint_rings import JointRings
from discreet.tables.mechanisms.ladder import LadderNoise
from discreet.tables.mechanisms.mechanism import Mechanism
from discreet.tables.mechanisms.polynomial import PolynomialNoise
from discreet.tables.mechanisms.registry import OF_ESTABLISHMENTS, OF_ONE_COUNT, OF_SEVERAL_COUNTS, OF_WORKERS
from discreet.tables.mechanisms.staircase import StaircaseNoise
from discreet.tables.mechanisms.two_sizes import TwoSizesNoise
from discreet.tables.mechanisms.weak_joint import WeakJoint
from discreet.tables.mechanisms.weak_unions import WeakUnions
from discreet.words.errors import Infeasible

TYPICAL = np.array([100.0])
"""The workers of an establishment at which expected errors are compared: most of a table's error is in large cells."""

EVER = frozenset(
    kind.name
    for kind in (
        PolynomialNoise,
        JointPolynomialNoise,
        LadderNoise,
        TwoSizesNoise,
        StaircaseNoise,
        JointRings,
        WeakJoint,
        WeakUnions,
    )
)
"""Every mechanism that a version chose by itself: a release that was paid for keeps its own."""


def chosen_before(details: Any) -> str | None:
    """The mechanism in the details of a table that was paid for, if a version ever chose it by itself."""
    name = details.get("mechanism") if isinstance(details, Mapping) else None
    return name if isinstance(name, str) and name in EVER else None


def paid_before(account: Account, name: str | None) -> str | None:
    """The mechanism that an earlier version chose for a release of this name that was paid for."""
    entry = None if not isinstance(name, str) else account.ledger.charged(account.dataset, name)
    return None if entry is None else chosen_before(entry.payload.get("details"))


def default_of(unit: Unit, epsilon: Fraction, *, cells: int, some: bool, plain: bool) -> type[Mechanism]:
    """The mechanism for a unit; `some` says that workers of some kind are counted.

    With `plain`, for a delta or the paper's calibration, it is the mechanism whose refusal says what it lacks.
    """
    refused = OF_SEVERAL_COUNTS if cells > 1 else OF_ONE_COUNT
    match unit:
        case Workers():
            return OF_WORKERS
        case EstablishmentNodes():
            return OF_ESTABLISHMENTS
        case Establishments():
            everyone = not some or is_weak(unit.strength)
            return refused if plain else default(unit, epsilon, cells=cells, everyone=everyone)
        case Rows() | Groups() | AnyRow():
            return refused
        case _:
            assert_never(unit)


@lru_cache(maxsize=256)
def default(unit: Establishments, epsilon: Fraction, *, cells: int, everyone: bool) -> type[Mechanism]:
    """The mechanism for `cells` counts of the same establishments under one epsilon.

    `everyone` says whether a count is of all workers, or equivalent to that: under the weak definition every count is.
    """
    if cells == 1 and everyone and not unit.substitution:
        solved = covered("rows", float(unit.alpha))
        if solved is not None and solved[0] <= epsilon:
            return TwoSizesNoise
    plain: type[Mechanism] = PolynomialNoise if cells == 1 else JointPolynomialNoise
    # Of two kinds the unions are both and all.
    weak = WeakUnions if 2 < cells <= WeakUnions.most_cells else WeakJoint
    errors: dict[type[Mechanism], float] = {}
    for each in (
        plain,
        *((StaircaseNoise,) if cells == 1 else ()),
        JointRings,
        *((weak,) if is_weak(unit.strength) and cells > 1 else ()),
    ):
        try:
            errors[each] = _error(calibrate(each, unit=unit, epsilon=epsilon, cells=cells), cells)
        except Infeasible:
            continue
    return min(errors, key=errors.__getitem__, default=plain)


def _error(mechanism: Mechanism, cells: int) -> float:
    """The mean error of a count, where a typical establishment has as many workers of every kind."""
    error = mechanism.integer_error(TYPICAL, TYPICAL)
    if isinstance(mechanism, WeakJoint):
        # Of a box and its negative E|z_c| is E r (d + 2)/(3 d) s_c, of the sum's ball E r/d S (docs/proofs/rings.md).
        box = (cells + 2) / 3 * mechanism.scale(TYPICAL / cells)
        error = np.minimum(error, mechanism.law.mean_abs * box)
    return float(error[0])
