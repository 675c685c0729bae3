"""The paper's values beside ours, as a table of a study's page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from discreet.pages.page import Table
from discreet.words.cases import case_of


def beside(
    paper: Mapping[str, object],
    ours: Mapping[str, object],
    *,
    caption: str,
    quantity: str = "Quantity",
    compare: Literal["difference", "ratio"] = "difference",
    source: str = "Paper",
    name: str = "",
) -> Table:
    """The paper's values beside ours, by label, in the paper's order; a value that one side lacks is a dash.

    Give the paper's values as text to print them with the paper's own digits: `{"AUC": "0.71"}`.
    """
    rows = [
        (label, paper.get(label), ours.get(label), _compared(paper.get(label), ours.get(label), compare))
        for label in dict.fromkeys([*paper, *ours])
    ]
    last = "Difference" if case_of(compare, {"difference": True, "ratio": False}) else f"Ours / {source.lower()}"
    return Table((quantity, source, "Ours", last), rows, caption, name)


def _compared(paper: object, ours: object, how: str) -> float | None:
    try:
        ours, paper = float(str(ours)), float(str(paper))
    except ValueError:
        return None
    if how == "difference":
        return ours - paper
    return ours / paper if paper else None
