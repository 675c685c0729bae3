"""Laws that were solved when this version was made: where the search for one between them begins.

A file holds, for one alpha and several epsilons, the levels -ln p of laws, rounded; `bench/anchors.py` writes it.
Levels are interpolated between two epsilons, which nearly keeps the epsilon between; the rest is a small repair.
Nothing here is trusted: a table made from an anchor is checked like any other (docs/proofs/ladder.md).
"""

from __future__ import annotations

import io
import lzma
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from discreet.arrays import Matrix

UNIT = 2.0**-13
"""Levels are multiples of this; a missing one is zero, which no level is."""

CLOSE = 1e-8
"""Alphas that differ by less have the same anchors: growths carry a margin for rounding."""


class Between(NamedTuple):
    """Two anchors around an epsilon: `share` is how much of the second is taken."""

    lower: Matrix
    upper: Matrix
    share: float


def between(kind: str, alpha: float, epsilon: float, *, beside: str | None = None) -> Between | None:
    """The levels of the nearest anchors on either side, or None where there is none.

    With `beside`, of those epsilons alone for which there are anchors of that kind, too.
    """
    known = _anchors(kind, alpha)
    if beside is not None:
        known = {each: known[each] for each in known.keys() & _anchors(beside, alpha).keys()}
    below, above = [e for e in known if e <= epsilon], [e for e in known if e >= epsilon]
    if not below or not above:
        return None
    low, high = max(below), min(above)
    return Between(known[low], known[high], (epsilon - low) / (high - low) if high > low else 0.0)


def covered(kind: str, alpha: float) -> tuple[float, float] | None:
    """The least and the largest epsilon for which there are anchors of a kind."""
    known = _anchors(kind, alpha)
    return (min(known), max(known)) if known else None


def packed(levels: Mapping[str, Matrix]) -> bytes:
    """The content of a file: levels by kind and epsilon, such as `steps 2.0`."""
    buffer = io.BytesIO()
    steps: dict[str, Any] = {name: np.diff(_whole(found), axis=1, prepend=0) for name, found in levels.items()}
    np.savez(buffer, **steps)
    return lzma.compress(buffer.getvalue(), preset=9 | lzma.PRESET_EXTREME)


def unpacked(content: bytes) -> dict[str, Matrix]:
    """What `packed` was given, up to rounding."""
    with np.load(io.BytesIO(lzma.decompress(content)), allow_pickle=False) as found:
        return {name: np.cumsum(found[name], axis=1) * UNIT for name in found.files}


def file_name(alpha: float) -> str:
    return f"alpha-{alpha:.6g}.xz"


def _whole(levels: Matrix) -> Matrix:
    whole = np.rint(levels / UNIT).astype(np.int32)
    return np.where((levels > 0) & (whole == 0), 1, whole)


def _anchors(kind: str, alpha: float) -> dict[float, Matrix]:
    found = _read(round(alpha, 6)) if abs(alpha - round(alpha, 6)) < CLOSE else {}
    return {float(name.split()[1]): levels for name, levels in found.items() if name.split()[0] == kind}


@lru_cache(maxsize=4)
def _read(alpha: float) -> dict[str, Matrix]:
    path = files("discreet.noise").joinpath("solved", file_name(alpha))
    return unpacked(path.read_bytes()) if path.is_file() else {}
