"""Errors of a release beside those of noise infusion, on simulated data of the release's shape: numbers and charts.

Nothing is computed from data here. Charts are shared by all tables of a report, because drawing is what costs time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from discreet.pages import charts
from discreet.pages.numbers import PERCENT, text
from discreet.pages.page import Block, Figure, Heading, Prose, Table
from discreet.pages.plot import BarPlot, LinePlot
from discreet.tables.expected import three_digits, told

RATIO = "error / error of infusion"
SHARES_OF_CAP = {0.1: "a tenth", 0.25: "a quarter", 0.5: "a half"}
"""What a worker may add to a sum on average, in caps."""

SHOWN = 0.25

MOST_BARS = 3
"""Tables in the chart by stratum; more would make its bars too thin."""


@dataclass(frozen=True, slots=True)
class Group:
    """Counts of one class: how many, their mean, and the mean absolute error of both protections."""

    name: str
    counts: int
    mean: float
    ours: float
    infusion: float


@dataclass(frozen=True, slots=True)
class SimulatedErrors:
    """Errors and rank correlations on simulated data of the release's shape.

    Attributes
    ----------
    cells, of : how many workplace cells were simulated, of how many published.
    by_size, by_stratum : errors by the size of the count, and by the attribute `stratum`.
    rank, infused_rank : Spearman's correlation of the cells' totals with the true ones.
    magnitude : what is added up, where it is no count of jobs.
    by_share_of_cap : the ratio of errors by what a worker adds on average, where that decides how many establishments
        there are.
    """

    cells: int
    of: int
    whole: Group
    by_size: tuple[Group, ...]
    stratum: str
    by_stratum: tuple[Group, ...]
    rank: float
    infused_rank: float
    magnitude: str | None = None
    by_share_of_cap: Mapping[float, float] = field(default_factory=dict)

    @property
    def value(self) -> str:
        """What the numbers are called."""
        return "count" if self.magnitude is None else "sum"

    @property
    def ratio(self) -> float | None:
        """The error over that of noise infusion; below 1 the release is closer to the truth."""
        return self.whole.ours / self.whole.infusion if self.whole.infusion else None


def one(label: str, found: SimulatedErrors, *, level: int) -> Iterator[Block]:
    """What is said beside one table."""
    sample = "" if found.cells == found.of else f" ({text(found.cells)} of the {text(found.of)} cells)"
    yield Heading(f"{label}: on simulated data of the same shape", level)
    replaced = ", small counts replaced" if found.magnitude is None else ""
    yield Prose(
        f"The true {found.value}s are confidential, so the errors of this release cannot be shown. Instead, "
        f"establishments were simulated whose cells have the published {found.value}s{sample}. Both this release's "
        f"mechanism and noise infusion (factors 5 to 15{PERCENT} off 1{replaced}, no guarantee) were applied to them."
    )
    if found.magnitude is not None:
        yield Prose(f"**What is assumed.** {_supposed(found)}")
    ratio = "" if found.ratio is None else f": a ratio of {found.ratio:.2f}"
    yield Prose(
        f"**Result.** The mean absolute error is {told(found.whole.ours)}, that of noise infusion "
        f"{told(found.whole.infusion)}{ratio}. Rankings of cells agree with the simulated truth to "
        f"{found.rank:.4f} (Spearman), those of noise infusion to {found.infused_rank:.4f}."
    )
    yield _groups(label, found.by_size, f"size of the {found.value}", of=found.value)
    if found.by_stratum:
        yield _groups(label, found.by_stratum, found.stratum, of=found.value, folded=True)


def shares_told() -> str:
    """The shares of the cap that are tried."""
    *first, last = SHARES_OF_CAP.values()
    return f"{', '.join(first)} or {last}"


def _supposed(found: SimulatedErrors) -> str:
    """What the simulation of a sum rests on."""
    divided = f"A cell's {found.magnitude} is divided among establishments in shares as skewed as their sizes in LODES"
    if not found.by_share_of_cap:
        return f"{divided}. How many they are is published beside it."
    ratios = ", ".join(f"{each:.2f} with {SHARES_OF_CAP[share]}" for share, each in found.by_share_of_cap.items())
    return (
        f"{divided}. How many they are is not published. The figures are of workers who add {SHARES_OF_CAP[SHOWN]} of "
        f"the cap on average, and of about 20 workers in an establishment. The ratio is {ratios} of the cap. "
        "With numbers of establishments beside the sums it would be known better."
    )


def all_of(found: Mapping[str, SimulatedErrors]) -> Iterator[Block]:
    """The charts of all tables together: below 1 the release is closer to the truth than noise infusion."""
    chosen = dict(list(found.items())[: charts.MAX_SERIES])
    sizes = [row for label, each in chosen.items() for row in _ratios(label, each.by_size) if row["mean count"]]
    if not sizes:
        return
    yield Figure(
        LinePlot(sizes, "mean count", RATIO, "table", log=True, reference=1.0),
        "Curves of the mean absolute error of each table over that of noise infusion, by the size of the count; the "
        "errors themselves are in the tables above.",
        "Error over that of noise infusion, by size of the count, simulated; below 1 this release is closer",
        "error by size",
    )
    stratum = next((each.stratum for each in chosen.values() if each.by_stratum), "")
    alike = {label: each for label, each in chosen.items() if each.stratum == stratum and each.by_stratum}
    strata = [row for label, each in list(alike.items())[:MOST_BARS] for row in _ratios(label, each.by_stratum)]
    if strata:
        yield Figure(
            BarPlot(strata, "group", RATIO, "table", reference=1.0),
            f"Bars of the mean absolute error of each table over that of noise infusion, by {stratum}; the errors "
            "themselves are in the tables above.",
            f"Error over that of noise infusion, by {stratum.replace('_', ' ')}, simulated",
            "error by stratum",
        )


def _groups(label: str, groups: Sequence[Group], what: str, *, of: str, folded: bool = False) -> Table:
    words = what.replace("_", " ")
    return Table(
        (words.capitalize(), f"{of.capitalize()}s", f"Mean {of}", "This release", "Noise infusion"),
        [(group.name, group.counts, *map(three_digits, (group.mean, group.ours, group.infusion))) for group in groups],
        f"Mean absolute error by {words}, {label}, simulated",
        f"{label} error by {what}",
        folded,
    )


def _ratios(label: str, groups: Sequence[Group]) -> list[dict[str, Any]]:
    """Rows of a chart."""
    return [
        {
            "table": label,
            "group": group.name,
            "mean count": three_digits(group.mean),
            RATIO: three_digits(group.ours / group.infusion),
        }
        for group in groups
        if group.infusion and group.ours
    ]
