"""A query before it is drawn, what one draw gives, and how far off it is expected to be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Required, TypedDict

from discreet.arrays import Integers, Vector
from discreet.ledger import Entry
from discreet.privacy.guarantee import Calibration, Guarantee
from discreet.privacy.losses import Number
from discreet.release.files import SAMPLER, code_of, write_value
from discreet.tables.expected import ByLargest
from discreet.tables.intervals.widths import Trade, told_widths
from discreet.tables.mechanisms.mechanism import Mechanism
from discreet.tables.mechanisms.registry import sources
from discreet.tables.sizes import NoisySizes
from discreet.words.caveats import CONFIDENTIAL, at_least


class TableAsk(TypedDict, total=False):
    """The arguments of a request for a table; the keywords are those of `CountQuery.release`."""

    epsilon: Required[Number]
    delta: Number | None
    mechanism: str | None
    calibration: Calibration
    scale_share: Number
    name: str | None


@dataclass(frozen=True, slots=True)
class TableErrors:
    """The expected error of a table of counts.

    Attributes
    ----------
    error : expected absolute error of one count, by the size of the cell's largest establishment; its `at_most` are
        the sizes for which it is an upper bound.
    widths : typical half-width of an interval, by the same size: where the cell has no other establishment, and where
        it has many.
    tradeoff : error and half-width for other shares of epsilon that pay for sizes.
    """

    mechanism: str
    cells_per_workplace_cell: int
    error: ByLargest
    widths: Mapping[int, tuple[float, float]]
    tradeoff: Sequence[Trade]
    magnitude: str | None = None

    def __repr__(self) -> str:
        return f"<TableErrors of {self.mechanism}, {self._counts()} per workplace cell>"

    def __str__(self) -> str:
        kind = "count" if self.magnitude is None else "sum"
        size = "size" if self.magnitude is None else self.magnitude
        return (
            f"{self.mechanism}, {self._counts()} per workplace cell.\n"
            f"Expected error of a {kind}, by the {size} of the cell's largest establishment: {self.error}.\n"
            f"{told_widths(self.widths, self.tradeoff, self.magnitude)}\n{at_least(CONFIDENTIAL)}"
        )

    def _counts(self) -> str:
        n, kind = self.cells_per_workplace_cell, "count" if self.magnitude is None else "sum"
        return f"1 {kind}" if n == 1 else f"{n:,} {kind}s"

    def to_dict(self) -> dict[str, Any]:
        """The expected errors as plain values, ready for JSON."""
        return {
            "mechanism": self.mechanism,
            "counts_per_workplace_cell": self.cells_per_workplace_cell,
            "expected_error_by_largest_establishment": dict(self.error),
        }


@dataclass(frozen=True, slots=True)
class TablesErrors:
    """The expected error of each of several tables."""

    tables: tuple[TableErrors, ...]

    def __repr__(self) -> str:
        return f"<TablesErrors of {len(self.tables)} tables>"

    def __str__(self) -> str:
        return "\n".join(f"Table {i}: {table}" for i, table in enumerate(self.tables, start=1))

    def to_dict(self) -> dict[str, Any]:
        """The expected errors of every table as plain values, ready for JSON."""
        return {"tables": [table.to_dict() for table in self.tables]}


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query with its mechanism: all that is decided before data are read."""

    mechanism: Mechanism
    guarantee: Guarantee
    parameters: Mapping[str, Any]
    sizes: NoisySizes | None = None

    def __post_init__(self) -> None:
        code_of(sources())  # what a written release states of its code is asked for before anything is paid


class Drawn(NamedTuple):
    """The result of one charge: noisy counts and, if a share of epsilon paid for them, sizes of workplace cells.

    `at_most` is not drawn: it is what is public about the largest establishment of every cell, NaN where nothing is.
    """

    counts: Integers
    largest: Integers | None = None
    at_most: Vector | None = None


def write_counts(value: Any, guarantee: Guarantee, entry: Entry, folder: Path) -> None:
    """Write tables of counts, which are the drawn integers themselves."""
    write_value(value, guarantee, entry, folder, sampler=SAMPLER, more=sources())
