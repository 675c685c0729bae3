"""What the budget of a data set paid for, and what remains of it, in a report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from discreet.pages import charts
from discreet.pages.bar import Bar
from discreet.pages.numbers import minute
from discreet.pages.page import Block, Figure, Table
from discreet.privacy.losses import total

if TYPE_CHECKING:
    from discreet.report.release import DataSet


def blocks(facts: DataSet) -> Iterator[Block]:
    """A table of what was paid for, of periods where there are any, and a bar of all of it."""
    rows = [
        (release.name, str(release.loss), release.entry, f"{minute(release.when)} UTC") for release in facts.releases
    ]
    others = facts.spent
    for release in facts.releases:
        others = others - release.loss if release.loss <= others else others.zero()
    if others:
        rows.append(("other releases of the same data", str(others), None, None))  # type: ignore[arg-type]
    rows.append(("left", str(facts.remaining), None, None))  # type: ignore[arg-type]
    yield Table(
        ("Release", "Loss", "Ledger entry", "When"),
        rows,
        f"What {facts.total} of {facts.dataset!r} paid for",
        "budget",
    )
    if facts.periods:
        yield Table(("Period", "Spent", "Left"), facts.periods, f"Periods of {facts.dataset!r}", "periods")
    name = next(iter(facts.total.amounts))
    first, rest = facts.releases[: charts.MAX_SERIES - 2], facts.releases[charts.MAX_SERIES - 2 :]
    others = total([release.loss for release in rest], zero=others)
    parts = {
        **{release.name: release.loss for release in first},
        "other releases": others,
        "left": facts.remaining,
    }
    bar = Bar(tuple((part, float(loss.amounts.get(name, 0))) for part, loss in parts.items() if loss), name)
    yield Figure(
        bar,
        "One bar with the loss of each release and what is left: "
        + "; ".join(f"{part} {length:.3g}" for part, length in bar.parts),
        f"How the budget of {facts.total} is used",
        "budget-used",
    )
