"""The ball of the noise of flows, and how far each flow is from its centre on it.

One worker more at an establishment moves (stayed, passed, came, left, created) by one step of

    ||z|| = |stayed| + |passed| + max(|came + left|, |came - left|, |created + destroyed|),

destroyed = created - came + left (docs/proofs/flows.md). On the sphere of this norm the two absolute values and the
maximum m divide the radius as Dirichlet(1, 1, 3), and the three sums divide the surface of a cube. So the size of every
flow, given m, is that of a sum of uniform and of two-point variables; m is Beta(3, 2). Nothing is drawn here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from discreet.arrays import Matrix, Vector

COORDINATES = ("stayed", "passed", "came", "left", "created")
FLOWS: Mapping[str, tuple[int, int, int, int, int]] = MappingProxyType(
    {
        "employment": (1, 1, 1, 1, 0),
        "beginning": (1, 0, 0, 1, 0),
        "end": (1, 0, 1, 0, 0),
        "accessions": (0, 1, 1, 0, 0),
        "separations": (0, 1, 0, 1, 0),
        "creation": (0, 0, 0, 0, 1),
        "destruction": (0, 0, -1, 1, 1),
    }
)
"""Each published flow as a sum of the coordinates."""

NODES = 400
Tail: TypeAlias = Callable[[Matrix, Matrix], Vector]


def beyond_uniforms(x: Matrix, *half_widths: Matrix) -> Matrix:
    """P(|U_1 + ... + U_k| > x), U_i uniform between -half_width and half_width."""
    k = len(half_widths)
    total: Matrix = np.zeros(np.broadcast_shapes(x.shape, *(h.shape for h in half_widths)))
    for signs in range(2**k):
        sign = [1 - 2 * (signs >> i & 1) for i in range(k)]
        at = sum((s * h for s, h in zip(sign, half_widths, strict=True)), start=-x)
        total = total + np.prod(sign) * np.maximum(at, 0.0) ** k
    scale = np.prod([2.0 * i for i in range(1, k + 1)]) * np.prod(np.broadcast_arrays(*half_widths), axis=0)
    return np.asarray(np.clip(2 * total / scale, 0.0, 1.0))


def beyond_shifted(x: Matrix, shift: Matrix, half_width: Matrix) -> Matrix:
    """P(|U + s| > x), s one of -shift and shift with equal chances."""
    high = np.clip((half_width + shift - x) / (2 * half_width), 0.0, 1.0)
    low = np.clip((half_width - shift - x) / (2 * half_width), 0.0, 1.0)
    return np.asarray(high + low)


def _one(x: Matrix, m: Matrix) -> Matrix:
    """stayed, passed: the rest of the radius is divided evenly."""
    return beyond_uniforms(x, 1 - m)


def _side(x: Matrix, m: Matrix) -> Matrix:
    """came, left, created, destroyed: half the sum of two coordinates of a cube's surface."""
    return (2 * beyond_uniforms(x, m) + beyond_uniforms(x, m / 2, m / 2)) / 3


def _both(x: Matrix, m: Matrix) -> Matrix:
    """beginning, end, accessions, separations: one of each."""
    return (2 * beyond_uniforms(x, 1 - m, m) + beyond_uniforms(x, 1 - m, m / 2, m / 2)) / 3


def _everyone(x: Matrix, m: Matrix) -> Matrix:
    """employment: both absolute values and a coordinate of the cube."""
    apart = (2 * beyond_uniforms(x, 1 - m, m) + beyond_shifted(x, m, 1 - m)) / 3
    return np.asarray((apart + 2 * beyond_shifted(x, 1 - m, m) / 3) / 2)


def _everyone_at_ends(x: Vector) -> Vector:
    """employment where all of them are whole: its size is 1 or |1 - 2 m|."""
    return np.asarray(((x < 1) + 1 - _largest_below((1 + x) / 2) + _largest_below((1 - x) / 2)) / 12)


def _mean_employment(x: Matrix, m: Matrix) -> Matrix:
    """(beginning + end) / 2: an absolute value and half a coordinate of the cube."""
    return (2 * beyond_uniforms(x, 1 - m, m / 2) + beyond_shifted(x, m / 2, 1 - m)) / 3


def _coordinate(x: Matrix, m: Matrix) -> Matrix:
    """came - left, the net change: a coordinate of the cube."""
    return 2 * beyond_uniforms(x, m) / 3


def _coordinate_at_ends(x: Vector) -> Vector:
    """The same where it is m itself."""
    return (1 - _largest_below(x)) / 3


def _largest_below(x: Vector) -> Vector:
    """P(m <= x)."""
    x = np.clip(x, 0.0, 1.0)
    return np.asarray(x**3 * (4 - 3 * x))


_TAILS: Mapping[str, Tail] = {
    "stayed": _one,
    "passed": _one,
    "came": _side,
    "left": _side,
    "creation": _side,
    "destruction": _side,
    "beginning": _both,
    "end": _both,
    "accessions": _both,
    "separations": _both,
    "employment": _everyone,
    "mean": _mean_employment,
    "net": _coordinate,
}
_ENDS: Mapping[str, Callable[[Vector], Vector]] = {"employment": _everyone_at_ends, "net": _coordinate_at_ends}
"""The parts that jump as m grows; they are added in closed form."""


def beyond_share(flow: str, share: Vector) -> Vector:
    """P(|flow| > share r) on the sphere of radius r."""
    m, weight = _nodes()
    x = np.asarray(share, dtype=np.float64)
    ends = _ENDS[flow](x) if flow in _ENDS else 0.0
    return np.asarray(_TAILS[flow](x[:, None], m) @ weight + ends)


def mean_share(flow: str) -> float:
    """E|flow| on the sphere of radius 1."""
    at, weight = np.polynomial.legendre.leggauss(NODES)
    return float(beyond_share(flow, (at + 1) / 2) @ weight / 2)


@lru_cache(maxsize=1)
def _nodes() -> tuple[Vector, Vector]:
    """Points of m and their weights under its density 12 m^2 (1 - m)."""
    at, weight = np.polynomial.legendre.leggauss(NODES)
    m = (at + 1) / 2
    return m[None, :], weight / 2 * 12 * m**2 * (1 - m)
