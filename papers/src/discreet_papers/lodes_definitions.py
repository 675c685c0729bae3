"""The promises of the Tables paper's definitions: its Table 1, Figure 1 and Table 2, printed and computed."""

from __future__ import annotations

from typing import Any

from discreet.pages.page import Block, Heading, Prose, Table
from discreet.privacy.assurance import Assurance
from discreet.privacy.losses import Pure
from discreet.privacy.requirements import table_1
from discreet.privacy.units import Establishments
from discreet.report.belief import size_beliefs
from discreet.report.requirements import requirement_blocks
from discreet.tables.mechanisms.smooth_laplace import least_epsilon

ALPHA, EPSILON = "0.1", 2
PRINTED = {
    ("0.05", "0.01"): 0.105,
    ("0.05", "0.1"): 1.01,
    ("0.05", "0.2"): 1.932,
    ("0.0005", "0.01"): 0.15,
    ("0.0005", "0.1"): 1.45,
    ("0.0005", "0.2"): 2.13,
}
"""Table 2 of the paper: the least epsilon of Smooth Laplace for delta and alpha."""

MISPRINTED = {"0.05": "0.005"}
"""The delta from which the first half of Table 2 follows."""


def table_2() -> list[dict[str, Any]]:
    """Table 2 as printed, from the deltas that it names, and from the delta that its first half follows."""
    return [
        {
            "delta": delta,
            "alpha": alpha,
            "paper": printed,
            "2 ln(1/delta) ln(1 + alpha)": round(least_epsilon(alpha=alpha, delta=delta), 3),
            "with delta": MISPRINTED.get(delta, delta),
            "then": round(least_epsilon(alpha=alpha, delta=MISPRINTED.get(delta, delta)), 3),
        }
        for (delta, alpha), printed in PRINTED.items()
    ]


def definition_blocks() -> list[Block]:
    """Sections 4 to 7 and 9 of the paper."""
    return [
        Heading("What each definition promises"),
        *requirement_blocks(table_1(alpha=ALPHA)),
        *size_beliefs(Assurance.of_definition(Establishments(ALPHA), Pure(EPSILON)), {}, number=1),
        Prose(
            "Table 2 of the paper lists the least epsilon of its Smooth Laplace. The first half follows from delta = "
            "0.005 and not from the 0.05 that is printed; the last value, 2.13, is that of alpha 0.15, 2.125."
        ),
        Table.of(table_2(), "Least epsilon of Smooth Laplace (the paper's Table 2).", "table-2"),
    ]
