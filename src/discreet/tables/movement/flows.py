"""Flows of a quarter: accessions, separations, jobs created and destroyed, by cells of establishments.

Every job of the quarter stayed, came, left, or came and left (`histories`). Jobs created are the gains of
establishments: over those where more came than left, the difference. One more worker moves the five numbers by one step
of a norm (`noise.flow_body`), so all flows and rates cost one epsilon. Price and expected errors need no data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.data.codes import code
from discreet.data.histories import Histories
from discreet.data.schema import Label
from discreet.noise.flow_body import COORDINATES, FLOWS
from discreet.noise.source import Source
from discreet.privacy.units import Establishments
from discreet.release.account import Account
from discreet.tables.expected import SIZES
from discreet.tables.movement.flow_cells import FlowCells, statistics
from discreet.tables.movement.flow_noise import FlowNoise
from discreet.tables.movement.flow_release import RATES, FlowRelease, rate_ends
from discreet.tables.movement.published import (
    ESTABLISHMENTS,
    LARGEST,
    TOGETHER,
    MovementErrors,
    MovementQuery,
    Noise,
    PreparedMovement,
    establishments_only,
    mean_by,
    workplace_names,
)
from discreet.tables.sizes import NoisySizes
from discreet.words.errors import DataError
from discreet.words.faults import Argument

if TYPE_CHECKING:
    import pyarrow as pa

PROOF = "docs/proofs/flows.md"
OF_ONE_QUARTER = (
    "The promise is about the jobs of the quarter, with what they were in the quarter before and are in the one after; "
    "releases of several quarters add up"
)


@dataclass(frozen=True, slots=True)
class PreparedFlows(PreparedMovement[FlowRelease]):
    """Flows with their noise: all that is decided before data are read."""

    noise: FlowNoise

    @property
    def rings(self) -> Noise:
        return self.noise.rings

    @property
    def dimension(self) -> int:
        return len(COORDINATES)

    def expected(self) -> MovementErrors:
        """Expected errors for some sizes of a cell's largest establishment."""
        found = self.noise.expected_error(np.array(SIZES, dtype=np.float64))
        return MovementErrors({name: dict(zip(SIZES, found[name].tolist(), strict=True)) for name in FLOWS})

    def on_sizes(self, largest: Vector) -> dict[str, float]:
        return mean_by(self.noise.expected_error, largest)

    def read(self, histories: Histories) -> FlowCells:
        return statistics(histories, self.quarters, self.by)

    def draw(self, cells: FlowCells, source: Source) -> FlowRelease:
        """The flows with noise, and noisy sizes where they were paid for."""
        vectors = self.noise.draw(cells.vectors, cells.largest, source)
        largest = None
        if self.sizes is not None:
            size = size_of(cells.largest, self.sizes)
            largest = self.sizes.draw(size, size, source)
        return self.released(cells.keys, vectors, largest, cells.establishments)

    def released(
        self, keys: pa.Table, vectors: Integers, largest: Integers | None, establishments: Integers | None = None
    ) -> FlowRelease:
        noise, sizes, level = self.noise, self.sizes, self.level
        return FlowRelease(
            keys=keys,
            level=level,
            guarantee=self.guarantee,
            parameters=self.details,
            largest=largest,
            establishments=establishments,
            quarter=span(self.quarters),
            vectors=vectors,
            ends=noise.ends(vectors, level=level, sizes=sizes, largest=largest),
            rate_ends=rate_ends(noise.ends(vectors, level=(1 + level) / 2, sizes=sizes, largest=largest)),
        )

    def again(self, table: pa.Table) -> FlowRelease:
        """The release from beginning employment, accessions, separations and jobs created of a published table.

        Numbers of jobs that came and left do not follow from flows; no published number depends on them.
        """
        beginning, accessions, separations, creation = (
            np.array(table[name], dtype=np.int64) for name in ("beginning", "accessions", "separations", "creation")
        )
        nobody = np.zeros_like(beginning)
        vectors = np.column_stack([beginning - separations, nobody, accessions, separations, creation])
        largest = None if self.sizes is None else np.array(table[LARGEST], dtype=np.int64)
        number = np.array(table[ESTABLISHMENTS], dtype=np.int64) if ESTABLISHMENTS in table.column_names else None
        return self.released(table.select(list(self.by)), vectors, largest, number)


@dataclass(frozen=True, slots=True, repr=False)
class FlowQuery(MovementQuery[FlowRelease]):
    """The flows of one quarter, or of several together, by workplace attributes."""

    @classmethod
    def of(
        cls, histories: Histories, account: Account, *, quarter: Label | Sequence[Label], by: str | Sequence[str]
    ) -> FlowQuery:
        """The query for the attributes `by`, which describe establishments."""
        quarters = (quarter,) if isinstance(quarter, str | int) else tuple(quarter)
        places = [histories.inside(each) for each in quarters]  # refuses a quarter that has no neighbours
        if not places or places != list(range(places[0], places[0] + len(places))):
            raise DataError(
                (Argument("quarter", list(quarters)), " are no quarters that follow one another."),
                "Flows of several quarters are added up, from the first to the last.",
                "List them in their order, without a gap.",
                about="quarter",
            )
        taken = ("quarter", *FLOWS, *RATES, ESTABLISHMENTS, LARGEST, "weight")
        return cls(histories, account, quarters, workplace_names(histories.schema, by, what="Flows", taken=taken))

    @property
    def reads(self) -> tuple[Label, ...]:
        """Its quarters, the one before them and the one after."""
        at = self.histories.inside(self.quarters[0])
        return self.histories.quarters[at - 1 : at + len(self.quarters) + 1]

    def _unit(self) -> Establishments:
        return establishments_only(self.account.unit, "Flows")

    def _asked(self) -> dict[str, Any]:
        return {"flows": list(self.quarters) if len(self.quarters) > 1 else self.quarters[0]}

    def _prepared(
        self, unit: Establishments, epsilon: Fraction, sizes: NoisySizes | None, level: float, details: dict[str, Any]
    ) -> PreparedFlows:
        count = len(self.quarters)
        noise = FlowNoise.calibrate(unit=unit, epsilon=epsilon, quarters=count)
        about = TOGETHER.format(count) if count > 1 else OF_ONE_QUARTER
        guarantee = self._guarantee(unit, noise.loss, sizes, proof=PROOF, about=about)
        return PreparedFlows(self.quarters, self.by, sizes, level, guarantee, details, noise)

    def __repr__(self) -> str:
        return f"Flows of {span(self.quarters)} by {', '.join(self.by) or 'no attribute'}, not released"


def span(quarters: Sequence[Label]) -> str:
    """What a table calls its quarters."""
    return code(quarters[0]) if len(quarters) == 1 else f"{quarters[0]} to {quarters[-1]}"


def size_of(largest: Integers, sizes: NoisySizes) -> Integers:
    """The size behind noisy sizes: the largest workforce; for several quarters the sum, each at least the least
    scale."""
    if largest.shape[1] == 1:
        return largest[:, 0]
    return np.asarray(np.maximum(largest, math.ceil(sizes.offset)).sum(axis=1))
