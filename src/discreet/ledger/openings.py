"""A data set that looks like a second opening of one that has a budget: the same name in other spelling, or its files.

Only names and origins are compared, and both are public. An origin is one hash or several with spaces between: of where
the files are, and of their numbers on the disk, with when they were last written. The reader of the files computes it
(`discreet.scans.origin_of`). One in common is enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from unicodedata import normalize

from discreet.faults import Argument, Fault
from discreet.ledger.entries import Entry


def second_opening(dataset: str, origin: str | None, opened: Iterable[Entry]) -> list[Fault]:
    """Why `dataset` may be another name of a data set that has a budget; empty if it has a budget itself."""
    lines = list(opened)
    if any(entry.dataset == dataset for entry in lines):
        return []
    for entry in lines:
        known = entry.dataset
        if _words(known) == _words(dataset):
            why: tuple[str | Argument, ...] = (
                f"The ledger has a budget of {known!r}, and ",
                Argument("dataset", dataset),
                " differs from it in case, spaces or signs alone.",
            )
            remedy = "Use that name, or one that cannot be confused with it."
        elif set((origin or "").split()) & set(str(entry.payload.get("origin") or "").split()):
            why = (
                f"The ledger has a budget of {known!r}, and ",
                Argument("dataset", dataset),
                " is the same files or links to them, which were not written since.",
            )
            remedy = "Use that name, or open the budget with `allow_second_opening=True`, which is recorded."
        else:
            continue
        return [Fault("dataset", why, "All releases of one data set are paid from one budget.", remedy)]
    return []


def _words(name: str) -> list[str]:
    """As people read them: letters that Unicode writes in several ways are one."""
    return re.findall(r"[^\W_]+", normalize("NFKC", normalize("NFKC", name).casefold()))
