"""What a reader of private estimates should know of them: what was dropped, what noise hides, what it exaggerates.

All of it follows from the public design and the released numbers, so saying it costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.mixed.private.estimation import SMALLEST
from discreet.mixed.private.public import PublicDesign
from discreet.mixed.private.request import Request

SHOWN = 8  # names of columns that a note lists


def readings(
    public: PublicDesign, request: Request, centred: Vector, variances: Mapping[str, float], covariance: Matrix | None
) -> list[str]:
    """Notes on a release; `centred` are coefficients of centred columns, `covariance` that of the columns as given."""
    width = float(request.width)
    notes = []
    if public.dropped:
        notes.append(f"fixed columns are combinations of others and were dropped: {_listed(public.dropped)}")
    notes += [
        f"factor {name} has one level and tells nothing, so it has no coefficient of its own"
        for name in public.design.constant_factors
    ]
    drowned = [public.names[i] for i in np.flatnonzero(_reach(public, request, centred, covariance) > width)]
    if drowned:
        notes.append(
            f"noise drowns {_listed(drowned)}: what they add to the response, or its standard error, is more than the "
            f"response's whole range of {width:g}. Spend more, or use fewer columns and cap their far values"
        )
    floor, most = (2 * SMALLEST * width / 2) ** 2, (width / 2) ** 2
    for name, value in variances.items():
        if value <= floor:
            notes.append(
                f"no variance of {name} was found above the noise: {value:.3g} is the least that is looked for, not an "
                "estimate, and what is computed with it is too certain"
            )
        elif value > most:
            notes.append(
                f"the variance of {name}, {value:.3g}, is more than any response within a range of {width:g} can have "
                f"({most:.3g}): it is noise. Spend more, or use fewer columns and groups"
            )
    return notes


def _reach(public: PublicDesign, request: Request, centred: Vector, covariance: Matrix | None) -> Vector:
    """What each coefficient adds to the response at the usual size of its column, or the standard error of that."""
    size = np.ones(len(public.kept))
    for piece, _, among in public.parts:
        if piece.monomial.atoms:
            size[among] = np.sqrt(np.diag(public.XX)[among] / public.rows)
    reach = np.abs(centred - request.scale.middle * public.constant)
    if covariance is not None:
        back = np.linalg.inv(public.origin.restore)
        reach = np.maximum(reach, np.sqrt(np.maximum(np.diag(back @ covariance @ back.T), 0.0)))
    return np.asarray(reach * size)


def _listed(names: tuple[str, ...] | list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
