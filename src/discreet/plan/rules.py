"""Rules of an agency for its readers: numbers that the basic form does not show.

They are post-processing of what was published. Privacy does not depend on them. The research form has every number, so
a reviewer can compute the basic form again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet.plan.shape import Form, Suppress
from discreet.release.folder import left_out
from discreet.tables.quality import SUPPRESSED
from discreet.words.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa


BY_COUNTS = (
    "Tables are made to agree by what counts tell of where noise is: if one establishment has as many jobs as cells of "
    "hundreds of establishments, errors of small cells may grow, up to 3.5 times in trials. A part of epsilon for "
    "narrow intervals (scale_share) avoids it."
)
"""A condition of tables that add up, where no sizes are paid for."""

MANY_BELOW = 0.1
"""From this share of numbers below zero on, their bias is told first."""


def meaning(rule: Suppress | None) -> str:
    """The addition to a quality flag's description if there is a rule, for readers of the file."""
    return (
        ""
        if rule is None
        else f"; {SUPPRESSED}, where a rule of the agency leaves the number out: {left_out(**rule.model_dump())}"
    )


def rounded_to(to: int | None) -> str:
    """The addition to a number's description if the agency rounds."""
    return f"; in the basic form a multiple of {to:,}, its interval rounded outwards" if to and to > 1 else ""


def refuse_alone(rule: Suppress | None, forms: Sequence[Form]) -> None:
    """A rule needs the form that it is computed from, and says something."""
    if rule is None:
        return
    if "research" not in forms:
        raise DataError(
            "suppress was given, and the research form is not written.",
            "A reviewer uses it to compute again what the rule leaves out.",
            "Add 'research' to forms of [output], or leave the rule out.",
            about="suppress",
        )
    if rule.below is None and not rule.quality:
        raise DataError(
            "suppress says nothing.",
            "It leaves out numbers below a bound, or of some quality.",
            "Write for example { below = 10 }.",
            about="suppress",
        )


def without_suppressed(table: pa.Table, rule: Suppress | None, named: dict[str, Sequence[str]]) -> pa.Table:
    """The table without the numbers that the rule leaves out; `named` are its flags' columns and what each is about.

    The first of these columns is the number itself. A change may truly be below zero, so its size counts; any other
    number that noise took below zero is below the bound.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if rule is None:
        return table
    for flag, columns in named.items():
        values = np.array(table[columns[0]], dtype=np.float64)
        words = table[flag].to_pylist()
        out = np.array([word in rule.quality for word in words], dtype=np.bool_)
        if rule.below is not None:
            out |= ~((np.abs(values) if columns[0] == "change" else values) >= rule.below)
        hidden = pa.array(out)
        for column in columns:
            kept = pc.if_else(hidden, pa.scalar(None, table[column].type), table[column])
            table = table.set_column(table.column_names.index(column), column, kept)
        told = pa.array([SUPPRESSED if gone else word for gone, word in zip(out, words, strict=True)], pa.string())
        table = table.set_column(table.column_names.index(flag), flag, told)
    return table


def told(name: str, rule: Suppress | None, *, gone: tuple[int, int], round_to: int, research: bool) -> list[str]:
    """The report's part on a release's rules: what they are, and how many numbers each leaves out."""
    drawn = " The research form has every number as it was drawn." * research
    found = []
    if round_to > 1:
        found.append(
            f"Numbers of {name} are rounded to multiples of {round_to:,}, and their intervals outwards.{drawn}"
        )
    if rule is not None:
        found.append(
            f"By a rule of the agency the basic form of {name} leaves out numbers {left_out(**rule.model_dump())}: "
            f"{gone[0]:,} of {gone[1]:,}. The research form has them; what is protected does not rest on this "
            "rule."
        )
    return found


def cut_at_zero(
    release: str, by: Sequence[str], value: str, below: Sequence[float], *, drawn: bool = False
) -> tuple[str, ...]:
    """What a form without numbers below zero does to those near zero; `below` are shares of all, known or foreseen."""
    if max(below) < MANY_BELOW:
        return ()
    least, most = (f"{100 * share:.0f}" for share in (min(below), max(below)))
    share = f"{most} %" if least == most else f"{least} to {most} %"
    came = "were drawn" if drawn else "will be drawn, on simulated establishments of the public sizes,"
    return (
        f"{release}, by {', '.join(by) or 'nothing'}: {share} of {value}s {came} below zero. The basic form shows none "
        f"below zero, so {value}s near zero, and totals of few such {value}s, are too large on average, in trials by "
        "up to 1.6 standard errors. With `non_negative = false` no number is cut and no total has a bias.",
    )
