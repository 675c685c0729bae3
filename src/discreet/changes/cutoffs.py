"""One comparison at several cutoffs: does a ranking of methods depend on what counts as large?

Forecasts are aligned once; each cutoff has its own gold standard, intervals and p-values (`compare`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.changes.cases import Missing, cases
from discreet.changes.compare import Comparison, compare_large_changes
from discreet.changes.panel import Gaps
from discreet.results import Result, rows_table, tidy_table
from discreet.words.arguments import of_kinds
from discreet.words.errors import DataError

LEVEL = 0.05
"""p-values above it do not tell a method from the best."""


@dataclass(frozen=True, slots=True, repr=False)
class ByCutoff(Result):
    """Comparisons of the same forecasts, one for each cutoff, in the order of the cutoffs."""

    comparisons: tuple[Comparison, ...]

    def __getitem__(self, cutoff: float) -> Comparison:
        """The comparison at a cutoff."""
        for each in self.comparisons:
            if each.cutoff == cutoff:
                return each
        raise DataError(
            f"Cutoff {cutoff!r} was not compared.",
            f"Cutoffs are: {', '.join(f'{each.cutoff:g}' for each in self.comparisons)}.",
            "Ask for one of them.",
            about="cutoff",
        )

    @property
    def methods(self) -> tuple[str, ...]:
        """All methods, best first by their mean rank over the cutoffs."""
        names = self.comparisons[0].methods
        return tuple(sorted(names, key=lambda name: sum(each.methods.index(name) for each in self.comparisons)))

    @property
    def always_near_the_best(self) -> tuple[str, ...]:
        """The methods that no cutoff tells from its best, at p = 0.05."""
        near = [
            {name for name, p in zip(each.methods, each.undrawn, strict=True) if p > LEVEL} for each in self.comparisons
        ]
        return tuple(name for name in self.methods if all(name in each for each in near))

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each method and cutoff: as `Comparison.rows`, with the cutoff and its large changes."""
        return [
            {"cutoff": each.cutoff, "positives": int(each.positive.sum()), **row}
            for each in self.comparisons
            for row in each.rows()
        ]

    def to_arrow(self) -> Any:
        """`rows` as a PyArrow table."""
        return rows_table(self.rows())

    def tidy(self) -> Any:
        """The partial area of each method at each cutoff."""
        rows = self.rows()
        return tidy_table(
            effect="partial area",
            group="method",
            term=[f"cutoff {row['cutoff']:g}" for row in rows],
            level=[row["method"] for row in rows],
            estimate=[row["pauc"] for row in rows],
            std_error=np.concatenate([each.replicates.draws.std(axis=1, ddof=1) for each in self.comparisons]),
            lower=[row["low"] for row in rows],
            upper=[row["high"] for row in rows],
            flag=["few large changes" if each.warning else None for each in self.comparisons for _ in each.methods],
        )

    def __repr__(self) -> str:
        return f"<ByCutoff of {len(self.methods)} methods at {len(self.comparisons)} cutoffs>"

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """Partial areas by method and cutoff; a star where the best cannot be told from the method."""
        width = max(len(name) for name in self.methods)
        lines = ["cutoff".ljust(width) + "".join(f"{each.cutoff:>10g}" for each in self.comparisons)]
        lines.append("positives".ljust(width) + "".join(f"{int(each.positive.sum()):>10}" for each in self.comparisons))
        for name in self.methods:
            places = [each.methods.index(name) for each in self.comparisons]
            cells = [
                f"{each.replicates.area[k]:>9.4f}{'*' if each.undrawn[k] > LEVEL else ' '}"
                for each, k in zip(self.comparisons, places, strict=True)
            ]
            lines.append(name.ljust(width) + "".join(cells))
        near = ", ".join(self.always_near_the_best) or "no method"
        lines.append(f"* p above {LEVEL:g}: not told from the best of its column. At every cutoff: {near}.")
        lines += [f"{each.cutoff:g}: {each.warning}" for each in self.comparisons if each.warning]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """What goes to JSON."""
        return {
            "always_near_the_best": list(self.always_near_the_best),
            "cutoffs": [each.to_dict() for each in self.comparisons],
        }


@of_kinds
def compare_cutoffs(
    panel: Any,
    forecasts: Any,
    *,
    cutoffs: Sequence[float] = (0.9, 0.95, 0.99),
    horizon: int = 1,
    missing: Missing = "refuse",
    gaps: Gaps = "skip",
    until: Any = None,
    **options: Any,
) -> ByCutoff:
    """Rank forecasting methods by how well they foresee large changes, at several cutoffs.

    Parameters
    ----------
    panel, forecasts, horizon, missing, gaps, until : as for `compare_large_changes`.
    cutoffs : normal quantiles beyond which a change is large.
    options : everything else that `compare_large_changes` takes.

    Returns
    -------
    The comparisons, with the methods that are near the best at every cutoff.

    Examples
    --------
    >>> compare_cutoffs("panel.csv", "forecasts.csv").always_near_the_best          # doctest: +SKIP
    """
    cutoffs = list(cutoffs)
    if not cutoffs or len(set(cutoffs)) < len(cutoffs):
        raise DataError(
            f"Cutoffs {cutoffs} are not a list of different numbers.",
            "Each is a normal quantile.",
            "Give for example [0.9, 0.95, 0.99].",
            about="cutoffs",
        )
    made = cases(panel, forecasts, horizon=horizon, missing=missing, gaps=gaps, until=until)
    return ByCutoff(
        tuple(
            compare_large_changes(made.panel, made, horizon=horizon, cutoff=float(cutoff), **options)
            for cutoff in cutoffs
        )
    )
