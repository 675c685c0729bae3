"""Published flows of a quarter: everything here may be shown to anybody.

All flows and rates follow from five published whole numbers, so that beginning + accessions = end + separations and
creation - destruction = end - beginning hold exactly, and JCR - JDR = AR - SR with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.ledger import Entry
from discreet.noise.flow_body import FLOWS
from discreet.privacy.guarantee import Guarantee
from discreet.results import Result, tidy_table
from discreet.schema import Label
from discreet.tables.flow_noise import flows_of
from discreet.tables.quality import quality

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.release.account import Released

RATES: Mapping[str, str] = MappingProxyType(
    {"jcr": "creation", "jdr": "destruction", "ar": "accessions", "sr": "separations"}
)
"""Each rate by the flow that it divides by mean employment."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FlowRelease(Result):
    """Published flows of one quarter with intervals.

    Attributes
    ----------
    keys : the cells, one column per attribute.
    quarter : whose flows they are.
    vectors : jobs that stayed, that came and left, that came, that left, and jobs created; shape (cells, 5).
    ends : lower and upper ends of the interval of every flow, and of mean employment, each of probability `level`.
    rate_ends : the same of every rate.
    parameters : what was asked for, in plain words for the ledger.
    check : what was known before it was paid for.
    """

    keys: pa.Table
    quarter: Label
    vectors: Integers
    ends: Mapping[str, tuple[Vector, Vector]]
    rate_ends: Mapping[str, tuple[Vector, Vector]]
    level: float
    guarantee: Guarantee
    parameters: Mapping[str, Any] = field(default_factory=dict)
    entry: Entry | None = None
    name: str = ""
    check: Any = None

    def of(self, released: Released[Any]) -> FlowRelease:
        """The same flows with what their release promises and the ledger line that paid for it."""
        found = replace(self, guarantee=released.guarantee, entry=released.entry)
        return replace(found, name=released.name, check=released.check)

    @property
    def flows(self) -> dict[str, Integers]:
        """Every flow by name: employment, beginning, end, accessions, separations, creation, destruction."""
        return dict(zip(FLOWS, flows_of(self.vectors).T, strict=True))

    @property
    def rates(self) -> dict[str, Vector]:
        """jcr, jdr, ar and sr; not a number where mean employment was published as 0 or less."""
        return rates_of(self.flows)

    def to_arrow(self) -> pa.Table:
        """One row per cell: the attributes, `quarter`, every flow and rate with `_lower` and `_upper` ends."""
        import pyarrow as pa

        columns: dict[str, Any] = {name: self.keys[name] for name in self.keys.column_names}
        columns["quarter"] = pa.array([self.quarter] * len(self.vectors))
        for name, values, ends in self._statistics():
            columns[name] = pa.array(values, mask=~np.isfinite(values))
            for end, numbers in zip(("lower", "upper"), ends, strict=True):
                columns[f"{name}_{end}"] = pa.array(numbers, mask=~np.isfinite(numbers))
        return pa.table(columns)

    def tidy(self) -> pa.Table:
        """One row per cell and statistic, in the columns of `discreet.results.COLUMNS`."""
        values = [map(str, self.keys[name].to_pylist()) for name in self.keys.column_names]
        cells = [", ".join(cell) for cell in zip(*values, strict=True)] if values else ["all"] * len(self.vectors)
        found = list(self._statistics())
        flags = [
            quality(estimate, *ends).tolist() if name in FLOWS else [None] * len(cells)
            for name, estimate, ends in found
        ]
        return tidy_table(
            effect="flow",
            group=", ".join(self.keys.column_names) or None,
            term=[name for name, _, _ in found for _ in cells],
            level=cells * len(found),
            estimate=np.concatenate([estimate for _, estimate, _ in found]),
            lower=np.concatenate([ends[0] for _, _, ends in found]),
            upper=np.concatenate([ends[1] for _, _, ends in found]),
            flag=[flag for flags_of in flags for flag in flags_of],
        )

    def _statistics(self) -> list[tuple[str, Vector | Integers, tuple[Vector, Vector]]]:
        flows = [(name, values, self.ends[name]) for name, values in self.flows.items()]
        return [*flows, *((name, values, self.rate_ends[name]) for name, values in self.rates.items())]

    def __repr__(self) -> str:
        by = ", ".join(self.keys.column_names) or "nothing"
        return f"Flows of {self.quarter} in {len(self.vectors):,} cells by {by}. {self.guarantee}"


def rates_of(flows: Mapping[str, Integers | Vector]) -> dict[str, Vector]:
    """The four rates from flows: each over (beginning + end) / 2, which they have in common."""
    mean = (flows["beginning"] + flows["end"]) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        return {rate: np.where(mean > 0, flows[flow] / mean, np.nan) for rate, flow in RATES.items()}


def rate_ends(ends: Mapping[str, tuple[Vector, Vector]]) -> dict[str, tuple[Vector, Vector]]:
    """The ends of rates where those of flows and of mean employment hold together.

    No more jobs are created, or destroyed, than twice the mean employment.
    """
    low, high = ends["mean"]
    found = {}
    for rate, flow in RATES.items():
        least, most = ends[flow]
        with np.errstate(divide="ignore", invalid="ignore"):
            lower = np.where(high > 0, least / high, 0.0)
            upper = np.where(low > 0, most / low, np.inf)
        if rate in ("jcr", "jdr"):
            lower, upper = np.minimum(lower, 2.0), np.minimum(upper, 2.0)
        found[rate] = (lower, upper)
    return found
