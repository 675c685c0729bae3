"""The report's part on a model or on posterior summaries: charts of effects with intervals, and a few rows of text.

The table is the published one. An interval is the estimate and 1.96 standard errors to both sides, which include the
noise; posterior answers have ends of their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from discreet.models.linear.private.slopes import WORD
from discreet.pages.numbers import text
from discreet.pages.page import Block, Table
from discreet.pages.ranked import MOST, Mark, Ranked

if TYPE_CHECKING:
    import pyarrow as pa

REACH = 1.96
"""Standard errors to both sides that hold 95 % of a normal law."""


def estimates(table: pa.Table, name: str) -> Iterator[Block]:
    """Blocks that show a published table of estimates or answers."""
    rows: list[dict[str, Any]] = table.to_pylist()
    if "answer" in table.column_names:
        yield _answers(rows, name)
        return
    fixed = [row for row in rows if row["effect"] == "fixed"]
    if fixed:
        caption = f"Fixed effects with intervals of 95 %, noise included, {name}"
        yield Ranked(
            ("Term", "Estimate", "Flag"), [_effect(row) for row in fixed], caption, f"{name} fixed", whole=False
        )
    variances = [row for row in rows if row["effect"] == "variance"]
    if variances:
        flagged = any(row["flag"] for row in variances)
        shown = [
            (str(row["group"] or ""), row["term"], row["estimate"], row["flag"] or "")[: 3 + flagged]
            for row in variances
        ]
        columns = ("Group", "Term", "Variance", "Flag")[: 3 + flagged]
        yield Table(columns, shown, f"Variances, {name}", f"{name} variances")
    for group in dict.fromkeys(str(row["group"]) for row in rows if row["effect"] == "random"):
        yield _random([row for row in rows if row["effect"] == "random" and str(row["group"]) == group], group, name)


def in_short(table: pa.Table, name: str) -> list[str]:
    """A model in one line: how many effects differ from zero, and the largest of them."""
    rows = table.to_pylist() if "effect" in table.column_names else []
    fixed = [_effect(row) for row in rows if row["effect"] == "fixed"]
    known = [mark for mark in fixed if math.isfinite(mark.low) and mark.label != "(Intercept)"]
    if not known:
        return []
    away = [mark for mark in known if not mark.low <= 0 <= mark.high]
    most = max(known, key=lambda mark: abs(mark.value))
    ends = " to ".join(text(float(f"{end:.3g}")) for end in (most.low, most.high))
    return [
        f"{name}: {len(away)} of {len(known)} effects have an interval that does not hold zero. The largest is "
        f"{most.label}, {text(float(f'{most.value:.3g}'))} ({ends})."
    ]


def _random(rows: Sequence[Mapping[str, Any]], group: str, name: str) -> Block:
    """The effects of a group's levels, the largest first; of very many, those that are furthest from zero."""
    kept = sorted(rows, key=lambda row: -abs(_number(row["estimate"])))[:MOST]
    marks = [_effect(row) for row in sorted(kept, key=lambda row: -_number(row["estimate"]))]
    some = f"the {len(marks)} furthest from zero of {text(len(rows))}" if len(marks) < len(rows) else "all"
    caption = f"Effects of {group}, {some}, with intervals of 95 %, {name}. Grey: the interval holds zero"
    return Ranked(("Level", "Effect", "Flag"), marks, caption, f"{name} {group}", whole=False)


def _effect(row: Mapping[str, Any]) -> Mark:
    value, error = _number(row["estimate"]), _number(row.get("std_error"))
    low, high = value - REACH * error, value + REACH * error
    unsure = math.isfinite(error) and low <= 0 <= high
    against = {*str(row["flag"] or "").split(", ")} - {"", WORD}  # one slope is a condition of intervals
    return Mark(str(row["term"]), value, low, high, str(row["flag"] or ""), bool(against) or unsure)


def _answers(rows: Sequence[Mapping[str, Any]], name: str) -> Block:
    marks = [
        Mark(
            f"{row['coefficient']} at {text(row['at'])}",
            _number(row.get("answer")),
            _number(row.get("low")),
            _number(row.get("high")),
        )
        for row in rows
    ]
    return Ranked(
        ("Question", "Answer", "Flag"),
        marks,
        f"Private answers with their ends, {name}",
        f"{name} answers",
        whole=False,
    )


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)
