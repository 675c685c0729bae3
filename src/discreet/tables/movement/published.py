"""The common parts of published flows of a quarter and changes between quarters.

A release is a table of cells with named statistics. Each has two ends; whole numbers have a flag of quality besides.
All of it follows from drawn integers and public constants, so a reviewer can compute it again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.data.histories import Histories
from discreet.data.schema import Label, Schema
from discreet.ledger import Entry
from discreet.noise.source import Source
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Loss, Number, exact
from discreet.privacy.units import BY_ESTABLISHMENTS, Establishments, Unit
from discreet.release.account import Account
from discreet.release.files import SAMPLER, write_value
from discreet.release.offer import Check, Offer
from discreet.results import Result, both_ends, tidy_table
from discreet.tables.attributes import spanned
from discreet.tables.calibration import above_zero, refuse_extremes
from discreet.tables.expected import three_digits
from discreet.tables.mechanisms.registry import sources
from discreet.tables.quality import quality
from discreet.tables.sizes import NOTE, NoisySizes, noisy_sizes, share_of
from discreet.words.caveats import CONFIDENTIAL, TWO, at_least
from discreet.words.errors import DataError, PrivacyError
from discreet.words.faults import Argument, Capital

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from discreet.release.account import Released

LARGEST = "largest"
ESTABLISHMENTS = "establishments"
TOGETHER = (
    "The promise is about the jobs of {} quarters together: one establishment's workforce grows so in every one of them"
)


class Statistic(NamedTuple):
    """A published number of every cell with its ends; `counted` where it is a whole number that has a flag."""

    name: str
    values: Vector | Integers
    ends: tuple[Vector, Vector]
    counted: bool


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MovementRelease(Result, ABC):
    """Published statistics of cells.

    Attributes
    ----------
    keys : the cells, one column per attribute.
    level : the probability with which each interval holds.
    parameters : what was asked for, in plain words for the ledger.
    largest : noisy sizes of the cells' largest establishments, where they were paid for.
    establishments : how many there are in each cell. Public, without noise.
    check : what was known before it was paid for.
    """

    effect: ClassVar[str]
    """What is estimated, in `tidy`."""

    keys: pa.Table
    level: float
    guarantee: Guarantee
    parameters: Mapping[str, Any] = field(default_factory=dict)
    largest: Integers | None = None
    establishments: Integers | None = None
    entry: Entry | None = None
    name: str = ""
    check: Any = None

    def of(self, released: Released[Any]) -> Self:
        """The same numbers with what their release promises and the ledger line that paid for it."""
        found = replace(self, guarantee=released.guarantee, entry=released.entry)
        return replace(found, name=released.name, check=released.check)

    def __str__(self) -> str:
        return f"{self!r}\n{self.guarantee}"

    @abstractmethod
    def statistics(self) -> list[Statistic]:
        """Every published number."""

    @abstractmethod
    def about(self) -> dict[str, Sequence[Label]]:
        """Columns beside the attributes that say when a row is of."""

    def to_arrow(self) -> pa.Table:
        """One row per cell: attributes, when, every number with `_lower` and `_upper` ends, flags of whole numbers."""
        import pyarrow as pa

        columns: dict[str, Any] = {name: self.keys[name] for name in self.keys.column_names}
        columns |= {name: pa.array(values) for name, values in self.about().items()}
        for name, values, ends, counted in self.statistics():
            columns[name] = pa.array(values, mask=~np.isfinite(values))
            columns[f"{name}_lower"], columns[f"{name}_upper"] = both_ends(*ends)
            if counted:
                columns[f"{name}_quality"] = pa.array(flags(values, ends).tolist(), pa.string())
        if self.establishments is not None:
            columns[ESTABLISHMENTS] = pa.array(self.establishments)
        if self.largest is not None:
            columns[LARGEST] = pa.array(self.largest)
        return pa.table(columns)

    def tidy(self) -> pa.Table:
        """One row per cell and statistic, in the columns of `discreet.results.COLUMNS`."""
        names = [*map(str, self.keys.column_names)]
        columns = [*(self.keys[name].to_pylist() for name in names), *self.about().values()]
        rows = len(self.statistics()[0].values)
        cells = [", ".join(map(str, cell)) for cell in zip(*columns, strict=True)] or ["all"] * rows
        found = self.statistics()
        return tidy_table(
            effect=self.effect,
            group=", ".join([*names, *self.about()]) or None,
            term=[each.name for each in found for _ in cells],
            level=cells * len(found),
            estimate=np.concatenate([each.values for each in found]),
            lower=np.concatenate([each.ends[0] for each in found]),
            upper=np.concatenate([each.ends[1] for each in found]),
            flag=[
                flag
                for each in found
                for flag in (flags(each.values, each.ends).tolist() if each.counted else [None] * len(cells))
            ],
        )


def flags(values: Vector | Integers, ends: tuple[Vector, Vector]) -> Any:
    """The quality of whole numbers; of one below zero, which a change may be, that of its size."""
    below = np.asarray(values) < 0
    low, high = ends
    sizes = np.where(below & (low < 0), -np.asarray(values), values)
    turned = sizes != values
    return quality(sizes, np.where(turned, -high, low), np.where(turned, -low, high))


HOLD = at_least(CONFIDENTIAL, f"for rates {TWO}")


@dataclass(frozen=True, slots=True)
class MovementErrors:
    """The expected error of each statistic, by the size of the cell's largest establishment.

    `notes` come before them. `on_sizes` are mean errors over cells of publicly known sizes, and how many these are.
    """

    errors: Mapping[str, Mapping[int, float]]
    notes: tuple[str, ...] = ()
    on_sizes: Mapping[str, float] = field(default_factory=dict)
    cells: int = 0

    def __repr__(self) -> str:
        return f"<MovementErrors of {', '.join(self.errors)}>"

    def __str__(self) -> str:
        head = "Expected error, by the size of the cell's largest establishment:"
        lines = [
            f"  {name:12} " + "; ".join(f"{size:,} {three_digits(error):,.15g}" for size, error in by_size.items())
            for name, by_size in self.errors.items()
        ]
        if self.on_sizes:
            told = "; ".join(f"{name} {three_digits(error):,.15g}" for name, error in self.on_sizes.items())
            lines.append(f"On the {self.cells:,} cells of publicly known sizes, on average: {told}.")
        return "\n".join([*self.notes, head, *lines, HOLD])

    def to_dict(self) -> dict[str, Any]:
        """The expected errors as plain values, ready for JSON."""
        found: dict[str, Any] = {
            "expected_error_by_largest_establishment": {name: dict(found) for name, found in self.errors.items()}
        }
        if self.notes:
            found["notes"] = list(self.notes)
        if self.on_sizes:
            found["expected_error"] = {"cells": self.cells, **self.on_sizes}
        return found


R = TypeVar("R", bound=MovementRelease)


class Noise(Protocol):
    """What is published of the noise."""

    @property
    def name(self) -> str: ...
    def constants(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class PreparedMovement(ABC, Generic[R]):
    """A query with its noise: all that is decided before data are read. `details` are for the ledger."""

    quarters: tuple[Label, ...]
    by: tuple[str, ...]
    sizes: NoisySizes | None
    level: float
    guarantee: Guarantee
    details: dict[str, Any]

    @property
    @abstractmethod
    def rings(self) -> Noise:
        """The mechanism."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """How many integers of a cell are drawn together."""

    @property
    def mechanism(self) -> str:
        """The name of the mechanism."""
        return self.rings.name

    @property
    def constants(self) -> dict[str, Any]:
        """The public constants of the noise."""
        found = self.rings.constants()
        return found if self.sizes is None else found | {"sizes": self.sizes.own_constants()}

    @abstractmethod
    def expected(self) -> MovementErrors:
        """Expected errors for some sizes of a cell's largest establishment."""

    @abstractmethod
    def on_sizes(self, largest: Vector) -> dict[str, float]:
        """Mean expected errors over cells whose largest establishments have these sizes."""

    @abstractmethod
    def read(self, histories: Histories) -> Any:
        """What the draw needs of the data."""

    @abstractmethod
    def draw(self, cells: Any, source: Source) -> R:
        """The numbers with noise, and noisy sizes where they were paid for."""

    @abstractmethod
    def released(self, keys: pa.Table, vectors: Integers, largest: Integers | None, /) -> R:
        """Everything that follows from what was drawn."""

    @abstractmethod
    def again(self, table: pa.Table) -> R:
        """The release that the drawn integers of a published table give, with everything computed anew."""


@dataclass(frozen=True, slots=True)
class MovementQuery(ABC, Generic[R]):
    """Statistics of some quarters by workplace attributes: checked, offered and released in one way."""

    histories: Histories
    account: Account
    quarters: tuple[Label, ...]
    by: tuple[str, ...]

    @property
    def reads(self) -> tuple[Label, ...]:
        """The quarters of all rows that it reads."""
        return self.quarters

    def check(self, *, epsilon: Number, scale_share: Number = 0, level: float = 0.95) -> Check[MovementErrors]:
        """Cost, feasibility and expected error, without reading confidential data or spending anything."""
        return self.offer(epsilon=epsilon, scale_share=scale_share, level=level).check(self.account.remaining)

    def release(self, *, epsilon: Number, scale_share: Number = 0, name: str | None = None, level: float = 0.95) -> R:
        """Publish all numbers for one epsilon, with intervals of probability `level`.

        `scale_share` of epsilon makes intervals narrow in cells of many establishments; `name` makes it unique.
        """
        offer = self.offer(epsilon=epsilon, scale_share=scale_share, level=level)
        released = self.account.release(offer, self.histories, name=name)
        return released.value.of(released)

    def offer(self, *, epsilon: Number, scale_share: Number = 0, level: float = 0.95) -> Offer[Histories, Any, R]:
        """The query as an offer; the arguments are those of `release`."""
        return offered(self.prepare(epsilon=epsilon, scale_share=scale_share, level=level))

    def prepare(self, *, epsilon: Number, scale_share: Number = 0, level: float = 0.95) -> PreparedMovement[R]:
        """Noise, price and promise; the arguments are those of `release`."""
        unit, whole = self._unit(), above_zero(epsilon)
        for_sizes = Fraction(0) if isinstance(scale_share, int) and not scale_share else share_of(scale_share, whole)
        refuse_extremes(unit, whole - for_sizes)
        sizes = noisy_sizes(unit, for_sizes) if for_sizes else None
        details: dict[str, Any] = {**self._asked(), "by": list(self.by), "unit": unit.key}
        if sizes is not None:
            details["scale_share"] = str(exact(scale_share, name="scale_share"))
        ready = self._prepared(unit, whole - for_sizes, sizes, level, details)
        # What would fail after the noise fails here.
        nothing = np.zeros((1, ready.dimension), dtype=np.int64)
        ready.released(no_keys(), nothing, None if sizes is None else nothing[:, 0])
        return ready

    def _guarantee(
        self, unit: Establishments, loss: Loss, sizes: NoisySizes | None, *, proof: str, about: str
    ) -> Guarantee:
        """The promise for the noise of the numbers and, if they are paid for, of sizes."""
        return Guarantee(
            unit,
            loss if sizes is None else loss + sizes.loss,
            basis="proved",
            proof=proof,
            notes=(*self.histories.limits(unit), about, *(() if sizes is None else (NOTE.format(sizes.loss),))),
            private=self.account.private,
        )

    @abstractmethod
    def _unit(self) -> Establishments:
        """The unit, if the noise is proved for it."""

    @abstractmethod
    def _asked(self) -> dict[str, Any]:
        """The request, in plain words for the ledger."""

    @abstractmethod
    def _prepared(
        self, unit: Establishments, epsilon: Fraction, sizes: NoisySizes | None, level: float, details: dict[str, Any]
    ) -> PreparedMovement[R]:
        """The query with noise for `epsilon`."""


def offered(ready: PreparedMovement[R]) -> Offer[Histories, Any, R]:
    """What was prepared as an offer."""
    return Offer(ready.guarantee, ready.details, ready.expected, ready.read, ready.draw, _write)


def establishments_only(unit: Unit, what: str) -> Establishments:
    """The unit, if its noise is proved for it."""
    if isinstance(unit, Establishments):
        return unit
    raise PrivacyError(
        f"{what} cannot be released under {unit.key}.",
        "Their noise is proved for establishments and their workers.",
        (Capital(BY_ESTABLISHMENTS), "."),
        about="unit",
    )


def workplace_names(schema: Schema, by: str | Sequence[str], *, what: str, taken: Sequence[str]) -> tuple[str, ...]:
    """The attributes `by`, which describe establishments and have no name of a published column."""
    names = tuple(spanned(schema, by))
    workers = [name for name in names if name not in schema.workplace_attributes]
    if workers:
        raise DataError(
            (Argument("by", list(names)), f" has {', '.join(workers)}, which describe workers."),
            f"{what} are published by attributes of establishments.",
            f"Use some of {', '.join(schema.workplace_attributes) or 'none'}.",
            about="by",
        )
    both = [name for name in names if {name.casefold(), name.casefold().rpartition("_")[0]} & {*taken}]
    if both:
        raise DataError(
            (Argument("by", list(names)), f" has {both[0]!r}, which is the name of a published column."),
            f"{what} have columns {', '.join(taken)}, with ends and flags.",
            "Rename the attribute at the source.",
            about="by",
        )
    return names


def mean_by(errors: Callable[[Vector], Mapping[str, Vector]], largest: Vector, *, points: int = 24) -> dict[str, float]:
    """The mean of errors over many sizes, from errors at a few of them: between, they grow nearly in proportion."""
    top = max(float(largest.max()), 2.0)
    grid = np.unique(np.r_[0.0, np.geomspace(1.0, top, points)])
    return {name: float(np.interp(largest, grid, found).mean()) for name, found in errors(grid).items()}


def merged_keys(tables: Sequence[pa.Table]) -> tuple[pa.Table, list[Any]]:
    """The cells of several tables, each once, and at which row each table has its own: cells may come and go."""
    import pyarrow as pa

    first = tables[0]
    if all(table.equals(first) for table in tables[1:]):
        return first, [slice(None)] * len(tables)
    order: dict[tuple[Any, ...], int] = {}
    rows = [list(zip(*(column.to_pylist() for column in table.columns), strict=True)) for table in tables]
    for row in sorted({key for some in rows for key in some}, key=lambda key: tuple(map(str, key))):
        order[row] = len(order)
    columns = list(zip(*order, strict=True))
    kept = {
        name: pa.array(values, first.schema.field(name).type)
        for name, values in zip(first.column_names, columns, strict=True)
    }
    return pa.table(kept), [np.array([order[key] for key in some], dtype=np.int64) for some in rows]


def no_keys() -> pa.Table:
    """The keys of one cell without attributes."""
    import pyarrow as pa

    return pa.table({})


def _write(value: Any, guarantee: Guarantee, entry: Entry, folder: Path) -> None:
    write_value(value, guarantee, entry, folder, sampler=SAMPLER, more=sources())
