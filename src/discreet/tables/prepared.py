"""A query before it is drawn, what one draw gives, and what is told about it before it is paid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from discreet.arrays import Integers
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Loss
from discreet.tables.expected import ByLargest
from discreet.tables.mechanisms.mechanism import Mechanism
from discreet.tables.sizes import NoisySizes
from discreet.tables.widths import Trade, told_widths


@dataclass(frozen=True, slots=True)
class Check:
    """What a release would cost and how far off it would be; nothing was read and nothing spent.

    Attributes
    ----------
    guarantee : what the release would promise.
    remaining : what the account has left now.
    affordable : whether it can be paid.
    expected_error : expected absolute error of one count, by the size of the cell's largest establishment; its
        `at_most` are the sizes for which it is an upper bound.
    widths : typical half-width of an interval, by the same size: where the cell has no other establishment, and where
        it has many.
    tradeoff : error and half-width for other shares of epsilon that pay for sizes.
    """

    guarantee: Guarantee
    remaining: Loss
    affordable: bool
    mechanism: str
    cells_per_workplace_cell: int
    expected_error: ByLargest
    widths: Mapping[int, tuple[float, float]]
    tradeoff: Sequence[Trade]

    def __str__(self) -> str:
        verdict = "affordable" if self.affordable else "NOT affordable"
        return (
            f"{self.mechanism}, {self.cells_per_workplace_cell} counts per workplace cell. "
            f"Costs {self.guarantee.loss}; {self.remaining} is left: {verdict}.\n"
            f"Expected error of a count, by the size of the cell's largest establishment: {self.expected_error}.\n"
            f"{told_widths(self.widths, self.tradeoff)}\n"
            f"{self.guarantee}"
        )


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query with its mechanism: all that is decided before data are read."""

    mechanism: Mechanism
    guarantee: Guarantee
    parameters: Mapping[str, Any]
    sizes: NoisySizes | None = None


class Drawn(NamedTuple):
    """What one charge paid for: noisy counts and, where a share of epsilon bought them, sizes of workplace cells."""

    counts: Integers
    largest: Integers | None = None
