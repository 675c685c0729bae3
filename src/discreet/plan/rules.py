"""Rules of an agency for its readers: numbers that the basic form does not show.

They are post-processing of what was published. Privacy does not rest on them, and the research form has every number,
so that a reviewer computes the basic form again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import DataError
from discreet.plan.shape import Form, Suppress

if TYPE_CHECKING:
    import pyarrow as pa

SUPPRESSED = "suppressed"
MEANING = f"; {SUPPRESSED}, where a rule of the agency leaves the number out"


def refuse_alone(rule: Suppress | None, forms: Sequence[Form]) -> None:
    """A rule needs the form that it is computed from, and says something."""
    if rule is None:
        return
    if "research" not in forms:
        raise DataError(
            "suppress was given, and the research form is not written.",
            "A reviewer computes from it again what the rule leaves out.",
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


def told(rule: Suppress | None, tables: Sequence[pa.Table]) -> list[str]:
    """What the report says of a rule: what it is, and how many numbers it left out."""
    if rule is None:
        return []
    words = [
        word
        for table in tables
        for column in table.column_names
        if column.endswith("quality")
        for word in table[column].to_pylist()
    ]
    parts = [f"of quality {flag!r}" for flag in rule.quality]
    parts = parts if rule.below is None else [f"below {rule.below:,}", *parts]
    gone = f"{words.count(SUPPRESSED):,} of {len(words):,}"
    return [
        f"By a rule of the agency the basic form leaves out numbers {' or '.join(parts)}: {gone}. The research form "
        "has them; what is protected does not rest on this rule."
    ]
