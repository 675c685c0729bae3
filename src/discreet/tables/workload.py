"""Several tables in one release: one ledger line, an explicit split, and totals that add up.

The tables overlap in establishments, so their losses add (docs/proofs/composition.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.errors import PrivacyError
from discreet.noise.source import Source
from discreet.privacy.guarantee import Calibration
from discreet.privacy.losses import Number, exact, total
from discreet.tables.attributes import divided
from discreet.tables.consistency import CLOSE, consistent, finest_of
from discreet.tables.intervals import check_level
from discreet.tables.nested import narrowed
from discreet.tables.prepared import Check, Drawn, Prepared
from discreet.tables.query import CountQuery
from discreet.tables.release import CountRelease

if TYPE_CHECKING:
    from discreet.tables.cells import Cells


def agreed(
    queries: Sequence[CountQuery], ready: Sequence[Prepared], tables: Sequence[CountRelease], *, level: float
) -> tuple[CountRelease, ...]:
    """Tables made to agree, with intervals that follow from all of them."""
    ends = narrowed(queries, ready, tables, level=level)
    sizes = [
        table.largest if part.sizes is not None and part.sizes.exponent <= CLOSE else None
        for part, table in zip(ready, tables, strict=True)
    ]
    return consistent(tables, [part.mechanism for part in ready], ends, sizes)


@dataclass(frozen=True, slots=True)
class Workload:
    """Tables that are released together."""

    queries: tuple[CountQuery, ...]

    def __post_init__(self) -> None:
        if not self.queries:
            raise PrivacyError(
                "A workload without tables was asked for.",
                "It has at least one.",
                "Name the attributes of each.",
                about="tables",
            )

    def check(
        self,
        *,
        epsilon: Number,
        split: Sequence[Number] | None = None,
        delta: Number | None = None,
        calibration: Calibration = "tight",
        scale_share: Number = 0,
    ) -> tuple[Check, ...]:
        """What each table would cost and how far off it would be; reads and spends nothing."""
        return tuple(
            query.check(epsilon=share, delta=chance, calibration=calibration, scale_share=scale_share)
            for query, share, chance in self._shares(epsilon, split, delta)
        )

    def release(
        self,
        *,
        epsilon: Number,
        split: Sequence[Number] | None = None,
        delta: Number | None = None,
        calibration: Calibration = "tight",
        scale_share: Number = 0,
        name: str | None = None,
        level: float = 0.95,
        add_up: bool = False,
    ) -> tuple[CountRelease, ...]:
        """Publish all tables under one loss.

        `split` gives each table its share of `epsilon` (and `delta`), equal shares otherwise; `scale_share` is the part
        of each that makes intervals narrow. `add_up` makes all tables agree: weighted least squares, then non-negative
        integers; one table must have all attributes.
        """
        check_level(level)
        if add_up:
            finest_of([(*query.workplace_by, *query.worker_by) for query in self.queries])
        ready = [
            query.prepare(epsilon=share, delta=chance, calibration=calibration, scale_share=scale_share)
            for query, share, chance in self._shares(epsilon, split, delta)
        ]
        for query, part in zip(self.queries, ready, strict=True):
            query.rehearse(part, level=level)
        account = self.queries[0].account
        loss = total([part.guarantee.loss for part in ready])
        cells = [query.statistics(part) for query, part in zip(self.queries, ready, strict=True)]

        def draw(source: Source) -> list[Drawn]:
            return [query.drawn(part, cell, source) for query, part, cell in self._zip(ready, cells)]

        first = ready[0].guarantee
        guarantee = replace(first, loss=loss)
        details = {
            "tables": [dict(part.parameters) for part in ready],
            "epsilons": [str(part.guarantee.loss) for part in ready],
        }
        released = account.release(name, guarantee=guarantee, draw=draw, details=details)
        tables = tuple(
            query._wrap(part, cell, counts, released.guarantee, level=level).of(released.entry, released.name)
            for (query, part, cell), counts in zip(self._zip(ready, cells), released.value, strict=True)
        )
        return agreed(self.queries, ready, tables, level=level) if add_up else tables

    def _zip(self, ready: Sequence[Prepared], cells: Sequence[Cells]) -> list[tuple[CountQuery, Prepared, Cells]]:
        return list(zip(self.queries, ready, cells, strict=True))

    def _shares(
        self, epsilon: Number, split: Sequence[Number] | None, delta: Number | None
    ) -> list[tuple[CountQuery, Fraction, Fraction | None]]:
        count = len(self.queries)
        parts = divided(split, count)
        whole = exact(epsilon, name="epsilon")
        chance = None if delta is None else exact(delta, name="delta")
        return [
            (query, whole * part, None if chance is None else chance * part)
            for query, part in zip(self.queries, parts, strict=True)
        ]
