"""Small losses: is a private mixed model ever worse than the linear one with the same fixed part?

All four rates, with effects of counties and with those of states and counties, by noisy sums under one epsilon. Where
the public design leaves it open, a look at how far groups differ decides whether their sums are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from discreet.pages.page import Block, Heading, Prose, Table
from discreet.utility.model_curves import Case, Trials, by_moments

RATES = ("jcr", "jdr", "ar", "sr")
LINEAR = "{rate} ~ 0 + industry + quarter"
MIXED = {"counties": "(1 | county)", "states and counties": "(1 | state) + (1 | county)"}
EPSILONS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 1.0)


def small_rows(table: Any, trials: Trials) -> list[dict[str, Any]]:
    """Correlations of each rate with private fitted values, and the standard error of their difference over draws."""
    found = []
    for rate in RATES:
        fixed = LINEAR.format(rate=rate)
        linear = list(by_moments(Case.of("linear", fixed, table), EPSILONS, trials))
        for model, terms in MIXED.items():
            private = by_moments(Case.of(model, f"{fixed} + {terms}", table), EPSILONS, trials)
            for without, own in zip(linear, private, strict=True):
                error = ((without["spread"] ** 2 + own["spread"] ** 2) / trials.count) ** 0.5
                found.append(
                    {
                        "rate": rate.upper(),
                        "model": model,
                        "epsilon": own["epsilon"],
                        "linear": without["correlation"],
                        "correlation": own["correlation"],
                        "gain": own["correlation"] - without["correlation"],
                        "std_error": error,
                        "trials": trials.count,
                    }
                )
    return found


def blocks(rows: Sequence[Mapping[str, Any]], table: Callable[..., Table]) -> list[Block]:
    """The section of the report; `table` writes headings in words."""
    worst = min(rows, key=lambda row: row["gain"])
    return [
        Heading("Small losses: mixed models beside the linear one"),
        Prose(
            "Sums by county pay where effects are large enough and cost where they are not. A look with a tenth of the "
            f"loss decides where the design leaves it open. The largest shortfall here is {-worst['gain']:.4f}, with a "
            f"standard error of {worst['std_error']:.4f} ({worst['rate']}, {worst['model']}, epsilon "
            f"{worst['epsilon']:g})."
        ),
        table(list(rows), "Correlations of rates with private fitted values, by noisy sums.", "small"),
    ]
