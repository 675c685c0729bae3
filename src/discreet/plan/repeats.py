"""Requests that a plan repeats: the same table or model, in the plan itself or paid for before.

It is no fault: a second draw may be meant. It is paid again, and both draws together reveal more than one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from discreet.ledger import Entry
from discreet.ledger.entries import canonical
from discreet.plan.kinds.kind import PlannedRelease
from discreet.plan.kinds.registry import kind_of
from discreet.words.faults import Fault


def repeated(asked: Sequence[PlannedRelease], charges: Iterable[Entry]) -> Iterator[Fault]:
    """A fault, which refuses nothing, for every table or model that is there already under another name."""
    own = {request.release.name for request in asked}
    earlier: dict[str, str] = {}
    for entry in charges:
        if str(entry.release) not in own:
            earlier |= dict.fromkeys(_things(entry.payload.get("details") or {}), f"{entry.release!r}, which is paid")
    for number, request in enumerate(asked):
        release = request.release
        mine: dict[str, str] = {}
        for thing, words in _things(request.details).items():
            if thing in earlier:
                place = ("release", number, kind_of(release).subject)
                yield Fault(
                    place,
                    f"{words} is asked for as {release.name!r} and is the same as in {earlier[thing]}. It would be "
                    "drawn and paid a second time, and both draws together reveal more than one. Leave it out, unless "
                    "that is meant.",
                )
            mine[thing] = f"{release.name!r} of this plan"
        earlier |= mine


def _things(details: Mapping[str, Any]) -> dict[str, str]:
    """The subjects of a request, with words for them: each of its tables, or its model."""
    found = {}
    for table in details.get("tables", []):
        by, where = sorted(map(str, table["by"])), table.get("where") or {}
        kept = {str(name): sorted(map(str, values)) for name, values in where.items()}
        words = f"The table by {', '.join(table['by'])}" if by else "The total"
        of = [table[key] for key in ("of", "flows", "changes") if key in table]
        found[canonical([by, kept, *of])] = words + (" with the same filter" if kept else "")
    if "formula" in details:
        about = {key: details[key] for key in ("kind", "formula", "summary", "coefficient", "at") if key in details}
        found[canonical(about)] = f"The {'model' if details.get('kind') == 'model' else 'answer'} of the same formula"
    return found
