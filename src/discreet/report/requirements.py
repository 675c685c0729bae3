"""The Tables paper's Table 1 as it is computed, with what the paper prints beside it, and Figure 1."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from discreet.pages.page import Block, Heading, Page, Prose, Table
from discreet.privacy.assurance import Assurance
from discreet.privacy.losses import Number, Pure, exact, shown
from discreet.privacy.requirements import MARKS, PAPER, REQUIREMENTS, LearntAtMost, SchemeFindings
from discreet.privacy.units import Establishments
from discreet.report.belief import size_beliefs

NOTES = (
    "* bounded for the weak attacker only, who knows no kinds of workers (section 4.2 of the paper). "
    "+ bounded only as the paper's proof reads it (equation 30), with the number of all other workers fixed; "
    "Definition 4.3 fixes the size of the establishment, so other kinds shrink, down to nobody, and there is no "
    "bound."
)


def cell(row: SchemeFindings, position: int) -> str:
    """A verdict with its bound."""
    requirement = REQUIREMENTS[position]
    level = row.level(requirement)
    return row.verdict(requirement) + (f", {bound(level)}" if math.isfinite(level) else "")


def bound(steps: float) -> str:
    """A log Bayes factor in words."""
    return f"{float(f'{steps:.3g}'):g} epsilon" if math.isfinite(steps) else "no bound"


def requirement_blocks(rows: Sequence[SchemeFindings]) -> Iterator[Block]:
    """Table 1, and the most revealing pair under each scheme."""
    yield Table(
        ("Scheme", "Section", *(name.capitalize() for name in REQUIREMENTS), "The paper"),
        [
            (row.name, row.section, *(cell(row, i) for i in range(len(REQUIREMENTS))), ", ".join(PAPER[row.name]))
            for row in rows
        ],
        "Does the scheme satisfy the requirement, and at which log Bayes factor? (The paper's Table 1, computed.)",
        "table-1",
    )
    yield Prose(NOTES)
    yield Table(
        ("Scheme", "Requirement", "Attacker", "Worst log Bayes factor", "Told apart best"),
        [
            (row.name, found.requirement, f"{found.attacker}{MARKS[found.attacker]}", bound(found.steps), _pair(found))
            for row in rows
            for found in row.findings
        ],
        "The pairs of each requirement that are easiest to distinguish",
        "pairs",
    )


def _pair(found: LearntAtMost) -> str:
    size, steps = found.by_size[-1]
    grown = f" ({bound(steps)} at {size:,})" if not found.satisfied and math.isfinite(steps) else ""
    return f"{found.pair}{grown}"


def requirements_page(rows: Sequence[SchemeFindings], *, alpha: Number, epsilon: Number) -> Page:
    """Both as a page."""
    share, loss = exact(alpha, name="alpha"), Pure(epsilon)
    blocks: list[Block] = [
        Prose(
            "A requirement bounds how far the odds of an attacker can move who knows everything but one thing. The "
            "bound is a multiple of epsilon: the number of neighbouring steps between two data sets that the "
            "requirement wants hidden, at worst over establishments of 1 to a million workers."
        ),
        *requirement_blocks(rows),
        Heading("Belief about the size of an establishment"),
        *size_beliefs(Assurance.of_definition(Establishments(share), loss), {}),
    ]
    lead = f"Haney et al. (2017), Definitions 4.1 to 4.3, at alpha = {shown(share)} and {loss}."
    return Page("What an informed attacker can learn at most", blocks, lead)
