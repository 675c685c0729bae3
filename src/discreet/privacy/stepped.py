"""The worst loss of a radial law that is constant between jumps and falls as a power beyond the last."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from discreet.arrays import Vector

ROWS = 256  # pairs of neighbours examined at a time


@runtime_checkable
class SteppedLaw(Protocol):
    """A function of the L1 norm that never rises, constant between `jumps`."""

    @property
    def stepped(self) -> bool: ...

    @property
    def dimension(self) -> int: ...

    @property
    def jumps(self) -> Vector: ...

    def log_density(self, z: Vector) -> Vector: ...


def stepped_supremum(law: SteppedLaw, *, shift: Vector, ratio: Vector) -> tuple[Vector, Vector]:
    """The largest |loss| for each (shift, ratio), and where: the worst outputs are at the far end of a ring.

    If a density never rises, the loss from the narrow law to the wide one is largest behind the narrow one's centre:
    there a radius r is (r + u) / w for the other law. Backwards it is largest beyond the wide one's centre, where r is
    w r + u.
    """
    edges = law.jumps
    middles = np.concatenate([[edges[0] / 2], (edges[1:] + edges[:-1]) / 2, [edges[-1]]])
    heights = on_axis(law, middles)
    best, where = np.empty(len(shift)), np.empty(len(shift))
    for rows in np.array_split(np.arange(len(shift)), len(shift) // ROWS + 1):
        u, w = shift[rows, None], ratio[rows, None]
        volume = law.dimension * np.log(w)
        narrow = heights[:-1] - _below(law, edges, heights, (edges + u) / w) + volume
        wide = heights[:-1] - _below(law, edges, heights, w * edges + u) - volume
        both = np.concatenate([narrow, wide], axis=1)
        top = np.argmax(both, axis=1)
        best[rows] = np.take_along_axis(both, top[:, None], axis=1)[:, 0]
        ends = np.concatenate([np.broadcast_to(-edges, narrow.shape), w * edges + u], axis=1)
        where[rows] = np.take_along_axis(ends, top[:, None], axis=1)[:, 0]
    return best, where


def _below(law: SteppedLaw, edges: Vector, heights: Vector, r: Vector) -> Vector:
    """The log density just within radius r."""
    ring = np.searchsorted(edges, r, side="left")
    beyond = ring == len(edges)
    found = heights[ring]
    found[beyond] = on_axis(law, r[beyond])
    return np.asarray(found)


def on_axis(law: SteppedLaw, z: Vector) -> Vector:
    """The log density at (z, 0, ..., 0)."""
    if law.dimension == 1:
        return law.log_density(z)
    vectors = np.zeros((*np.shape(z), law.dimension))
    vectors[..., 0] = z
    return law.log_density(vectors)
