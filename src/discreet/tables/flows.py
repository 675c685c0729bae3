"""Flows of a quarter: accessions, separations, jobs created and destroyed, by cells of establishments.

Every job of the quarter stayed, came, left, or came and left (`histories`). Jobs created are what establishments have
gained: over those where more came than left, how many more. One more worker moves the five numbers by one step of a
norm (`noise.flow_body`), so that all flows and rates cost one epsilon. Price and expected errors need no data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers
from discreet.errors import DataError, PrivacyError
from discreet.faults import Argument, Capital
from discreet.histories import CAME, HISTORY, KINDS, LEFT, Histories
from discreet.noise.flow_body import FLOWS
from discreet.noise.source import Source
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Number, exact
from discreet.privacy.units import BY_ESTABLISHMENTS, Establishments
from discreet.release.account import Account
from discreet.release.files import SAMPLER, write_value
from discreet.release.offer import Check, Offer
from discreet.schema import Label
from discreet.tables.attributes import spanned
from discreet.tables.calibration import refuse_extremes
from discreet.tables.cells import cell_statistics
from discreet.tables.expected import SIZES, three_digits
from discreet.tables.flow_noise import FlowNoise
from discreet.tables.flow_release import FlowRelease, rate_ends
from discreet.tables.sizes import NOTE, NoisySizes, noisy_sizes, share_of

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from discreet.ledger import Entry

PROOF = "docs/proofs/flows.md"
OF_ONE_QUARTER = (
    "The promise is about the jobs of the quarter, with what they were in the quarter before and are in the one after; "
    "releases of several quarters add up"
)


@dataclass(frozen=True, slots=True)
class FlowCells:
    """Confidential: the five numbers of every cell, and its largest establishment's workforce."""

    keys: pa.Table
    vectors: Integers
    largest: Integers


@dataclass(frozen=True, slots=True)
class FlowErrors:
    """How far off each flow is expected to be, by the size of the cell's largest establishment."""

    errors: Mapping[str, Mapping[int, float]]

    def __str__(self) -> str:
        head = "Expected error of a flow, by the size of the cell's largest establishment:"
        lines = (
            f"  {name:12} " + "; ".join(f"{size:,} {three_digits(error):,.15g}" for size, error in by_size.items())
            for name, by_size in self.errors.items()
        )
        return "\n".join([head, *lines])

    def to_dict(self) -> dict[str, Any]:
        """The expected errors as plain values, ready for JSON."""
        return {"expected_error_by_largest_establishment": {name: dict(found) for name, found in self.errors.items()}}


@dataclass(frozen=True, slots=True)
class FlowQuery:
    """The flows of one quarter by workplace attributes."""

    histories: Histories
    account: Account
    quarter: Label
    by: tuple[str, ...]

    @classmethod
    def of(cls, histories: Histories, account: Account, *, quarter: Label, by: str | Sequence[str]) -> FlowQuery:
        """The query for the attributes `by`, which describe establishments."""
        histories.around(quarter)  # refuses a quarter that has no neighbours
        names = spanned(histories.schema, by)
        workers = [name for name in names if name not in histories.schema.workplace_attributes]
        if workers:
            raise DataError(
                (Argument("by", list(names)), f" has {', '.join(workers)}, which describe workers."),
                "Flows are published by attributes of establishments.",
                f"Use some of {', '.join(histories.schema.workplace_attributes) or 'none'}.",
                about="by",
            )
        return cls(histories, account, quarter, tuple(names))

    def check(self, *, epsilon: Number, scale_share: Number = 0, level: float = 0.95) -> Check[FlowErrors]:
        """Cost, feasibility and expected error, without reading confidential data or spending anything."""
        return self.offer(epsilon=epsilon, scale_share=scale_share, level=level).check(self.account.remaining)

    def release(
        self, *, epsilon: Number, scale_share: Number = 0, name: str | None = None, level: float = 0.95
    ) -> FlowRelease:
        """Publish all flows and rates of the quarter for one epsilon, with intervals of probability `level`.

        `scale_share` of epsilon makes intervals narrow in cells of many establishments; `name` makes it unique.
        """
        offer = self.offer(epsilon=epsilon, scale_share=scale_share, level=level)
        released = self.account.release(offer, self.histories, name=name)
        return released.value.of(released)

    def offer(
        self, *, epsilon: Number, scale_share: Number = 0, level: float = 0.95
    ) -> Offer[Histories, FlowCells, FlowRelease]:
        """The flows as an offer; the arguments are those of `release`."""
        unit = self.account.unit
        if not isinstance(unit, Establishments):
            raise PrivacyError(
                f"Flows cannot be released under {unit.key}.",
                "Their noise is proved for establishments and their workers.",
                (Capital(BY_ESTABLISHMENTS), "."),
                about="unit",
            )
        whole = exact(epsilon, name="epsilon")
        if whole <= 0:
            raise PrivacyError(
                (Argument("epsilon", epsilon), " buys nothing."),
                "It must be above 0.",
                ("Use for example ", Argument("epsilon", 1), "."),
                about="epsilon",
            )
        for_sizes = share_of(scale_share, whole) if scale_share != 0 else Fraction(0)
        refuse_extremes(unit, whole - for_sizes)
        noise = FlowNoise.calibrate(unit=unit, epsilon=whole - for_sizes)
        sizes = noisy_sizes(unit, for_sizes) if for_sizes else None
        jobs = self.histories.around(self.quarter)
        paid = () if sizes is None else (NOTE.format(sizes.loss),)
        guarantee = Guarantee(
            unit,
            noise.loss if sizes is None else noise.loss + sizes.loss,
            proof=PROOF,
            notes=(*jobs.limits(unit), OF_ONE_QUARTER, *paid),
            private=self.account.private,
        )
        details: dict[str, Any] = {"flows": self.quarter, "by": list(self.by), "unit": unit.key}
        if sizes is not None:
            details["scale_share"] = str(exact(scale_share, name="scale_share"))

        def wrapped(keys: pa.Table, vectors: Integers, largest: Integers | None) -> FlowRelease:
            ends = noise.ends(vectors, level=level, sizes=sizes, largest=largest)
            both = noise.ends(vectors, level=(1 + level) / 2, sizes=sizes, largest=largest)
            return FlowRelease(keys, self.quarter, vectors, ends, rate_ends(both), level, guarantee, details)

        def draw(cells: FlowCells, source: Source) -> FlowRelease:
            vectors = noise.draw(cells.vectors, cells.largest, source)
            return wrapped(cells.keys, vectors, _sizes(sizes, cells.largest, source))

        wrapped(_no_keys(), np.zeros((1, 5), dtype=np.int64), None if sizes is None else np.zeros(1, dtype=np.int64))
        return Offer(
            guarantee=guarantee,
            details=details,
            expected=lambda: expected(noise),
            read=lambda histories: statistics(histories, self.quarter, self.by),
            draw=draw,
            write=_write,
        )

    def __repr__(self) -> str:
        return f"Flows of {self.quarter} by {', '.join(self.by) or 'nothing'}, not released"


def expected(noise: FlowNoise) -> FlowErrors:
    """Expected errors for some sizes of a cell's largest establishment."""
    found = noise.expected_error(np.array(SIZES, dtype=np.float64))
    return FlowErrors({name: dict(zip(SIZES, found[name].tolist(), strict=True)) for name in FLOWS})


def statistics(histories: Histories, quarter: Label, by: Sequence[str]) -> FlowCells:
    """Jobs by kind, jobs created and the largest workforce of every cell, in one pass of the engine."""
    jobs = histories.around(quarter)
    gains = (KINDS.index(CAME), KINDS.index(LEFT))
    found = cell_statistics(jobs, workplace_by=by, worker_by=(HISTORY,), gains=gains)
    assert found.gains is not None
    return FlowCells(found.keys, np.column_stack([found.counts, found.gains]), found.largest_total)


def _sizes(sizes: NoisySizes | None, largest: Integers, source: Source) -> Integers | None:
    return None if sizes is None else sizes.draw(largest, largest, source)


def _no_keys() -> pa.Table:
    import pyarrow as pa

    return pa.table({})


def _write(value: Any, guarantee: Guarantee, entry: Entry, folder: Path) -> None:
    write_value(value, guarantee, entry, folder, sampler=SAMPLER)
