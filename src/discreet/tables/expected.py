"""The expected error of published integers, computed before anything is read.

Each mechanism computes its own numbers. The scale of the noise depends on the size of the largest establishment, which
is confidential, so the size is an argument here. If the error also depends on the second largest establishment, or on
how the jobs of a cell divide into kinds of workers, these functions report the largest possible error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal
from typing import TYPE_CHECKING

import numpy as np

from discreet.words.cases import case_of

if TYPE_CHECKING:
    from discreet.tables.mechanisms.mechanism import Follows, Mechanism

SIZES = (1, 10, 100, 1_000, 10_000)
"""Sizes of a cell's largest establishment for which the expected error is reported."""


@dataclass(frozen=True, slots=True)
class Kinds:
    """How a table divides workers.

    Attributes
    ----------
    levels : counts in each workplace cell.
    some : whether a count is of workers of some kind, by an attribute or a filter.
    filtered : whether workers of some kinds are in no count.
    """

    levels: int
    some: bool
    filtered: bool


@dataclass(frozen=True, slots=True)
class ByLargest(Mapping[int, float]):
    """The expected error of one count, the mean over a cell's counts, by the size of the cell's largest establishment.

    Attributes
    ----------
    at_most : the sizes whose error is an upper bound, because it depends on the second largest establishment or on how
        workers divide into kinds.
    follows : what the error depends on. The size, in any cell; or the count itself, or the jobs left out, with the
        errors of a cell that has no other establishment; or nothing.
    """

    errors: Mapping[int, float]
    at_most: frozenset[int] = frozenset()
    follows: Follows = "largest"

    @classmethod
    def of(cls, mechanism: Mechanism, kinds: Kinds) -> ByLargest:
        told = tuple(size * mechanism.step for size in SIZES)
        sizes = np.array(told, dtype=np.float64)
        # Every kind's largest may be another one, and the second largest as large as the first.
        others = (
            kinds.levels + mechanism.by_pairs
            if case_of(mechanism.follows, {"largest": True, "count": False, "left out": False, "nothing": False})
            else 1
        )
        error, at_most = mechanism.mean_error(kinds, jobs=sizes * others, largest=sizes)
        found = dict(zip(told, error.tolist(), strict=True))
        bounds = frozenset(size for size, bound in zip(told, at_most, strict=True) if bound)
        return cls(found, bounds, mechanism.follows)

    def __getitem__(self, size: int) -> float:
        return self.errors[size]

    def __iter__(self) -> Iterator[int]:
        return iter(self.errors)

    def __len__(self) -> int:
        return len(self.errors)

    def __str__(self) -> str:
        return "; ".join(f"{label}: {self.told(size)}" for label, size in spans([self]).items())

    def told(self, size: int) -> str:
        """The error at a size in words."""
        return told(self[size], size in self.at_most)


def spans(tables: Sequence[ByLargest]) -> dict[str, int]:
    """Sizes at which some error changes, by what to call them: errors never fall from one size to a larger one."""
    if tables and all(
        case_of(table.follows, {"nothing": True, "count": False, "largest": False, "left out": False})
        for table in tables
    ):
        return {"any": next(iter(tables[0]))}
    found: list[list[int]] = []
    for size in dict.fromkeys(size for table in tables for size in table):
        same = found and all(_at(table, size) == _at(table, found[-1][-1]) for table in tables)
        found[-1].append(size) if same else found.append([size])
    return {f"{span[0]:,}" + f" to {span[-1]:,}" * (len(span) > 1): span[0] for span in found}


def _at(table: ByLargest, size: int) -> tuple[float | None, bool]:
    return table.get(size), size in table.at_most


def told(error: float, at_most: bool = False) -> str:
    """An error in three digits, marked if it is a bound."""
    return f"{'at most ' * at_most}{three_digits(error, up=at_most):,.15g}"


def three_digits(error: float, *, up: bool = False) -> float:
    """A mean to three digits; rounded `up`, a bound stays a bound."""
    return float(Context(prec=3, rounding=ROUND_CEILING if up else ROUND_HALF_EVEN).plus(Decimal(error)))
