"""Published flows of a quarter: everything here may be shown to anybody.

All flows and rates are computed from five published whole numbers. So beginning + accessions = end + separations and
creation - destruction = end - beginning hold exactly, and so does JCR - JDR = AR - SR.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.data.schema import Label
from discreet.noise.flow_body import FLOWS
from discreet.tables.movement.flow_noise import flows_of
from discreet.tables.movement.published import MovementRelease, Statistic

if TYPE_CHECKING:
    import pyarrow as pa

RATES: Mapping[str, str] = MappingProxyType(
    {"jcr": "creation", "jdr": "destruction", "ar": "accessions", "sr": "separations"}
)
"""Each rate by the flow that it divides by mean employment."""


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class FlowRelease(MovementRelease):
    """Published flows of one quarter with intervals.

    Attributes
    ----------
    quarter : whose flows they are.
    vectors : jobs that stayed, that came and left, that came, that left, and jobs created; shape (cells, 5).
    ends : lower and upper ends of the interval of every flow, and of mean employment, each of probability `level`.
    rate_ends : the same of every rate.
    """

    effect = "flow"

    quarter: Label
    vectors: Integers
    ends: Mapping[str, tuple[Vector, Vector]]
    rate_ends: Mapping[str, tuple[Vector, Vector]]

    @property
    def flows(self) -> dict[str, Integers]:
        """Every flow by name: employment, beginning, end, accessions, separations, creation, destruction."""
        return dict(zip(FLOWS, flows_of(self.vectors).T, strict=True))

    @property
    def rates(self) -> dict[str, Vector]:
        """jcr, jdr, ar and sr; not a number where mean employment was published as 0 or less."""
        return rates_of(self.flows)

    def panel(self) -> pa.Table:
        """Rows for a model of rates: attributes, quarter, rates from 0 to 2, the number of establishments as `weight`.

        Cells of which mean employment was published below 1 are left out. Chance makes rates of many establishments the
        surer ones, and noise, which follows the largest, is small beside them: `dc.mixed("jdr ~ 0 + industry + (1 |
        county)", release.panel(), weights="weight")`. Their number is public, so weights have no noise.
        """
        import pyarrow as pa

        flows = self.flows
        mean = (flows["beginning"] + flows["end"]) / 2
        kept = np.flatnonzero(mean >= 1)
        columns: dict[str, Any] = {name: self.keys[name].take(kept) for name in self.keys.column_names}
        columns["quarter"] = pa.array([self.quarter] * len(kept))
        columns |= {name: pa.array(np.clip(values[kept], 0.0, 2.0)) for name, values in self.rates.items()}
        number = np.ones_like(mean) if self.establishments is None else self.establishments.astype(np.float64)
        return pa.table({**columns, "weight": pa.array(number[kept])})

    def about(self) -> dict[str, Sequence[Label]]:
        return {"quarter": [self.quarter] * len(self.vectors)}

    def statistics(self) -> list[Statistic]:
        flows = [Statistic(name, values, self.ends[name], True) for name, values in self.flows.items()]
        rates = [Statistic(name, values, self.rate_ends[name], False) for name, values in self.rates.items()]
        return [*flows, *rates]

    def __repr__(self) -> str:
        by = ", ".join(self.keys.column_names) or "no attribute"
        return f"<FlowRelease of {self.quarter} in {len(self.vectors):,} cells by {by}: {self.guarantee.loss}>"


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
