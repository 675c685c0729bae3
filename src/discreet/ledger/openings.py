"""A data set that looks like a second opening of one that has a budget: the same name in other spelling, or its files.

Only names and origins are compared, and both are public. An origin is a hash of where the files are and when they were
last written; the reader of the files computes it (`discreet.scans.origin_of`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from unicodedata import normalize

from discreet.errors import PrivacyError
from discreet.faults import Argument, Fault
from discreet.ledger.entries import Entry


def refuse_second_opening(dataset: str, origin: str | None, opened: Iterable[Entry]) -> None:
    """Refuse a first budget of `dataset` where the lines of budgets `opened` have the same data by another name."""
    faults = list(second_opening(dataset, origin, opened))
    if faults:
        raise PrivacyError(*faults)


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
        elif origin is not None and entry.payload.get("origin") == origin:
            why = (
                f"The ledger has a budget of {known!r}, and ",
                Argument("dataset", dataset),
                " is the same files, which were not written since.",
            )
            remedy = "Use that name."
        else:
            continue
        return [Fault("dataset", why, "All releases of one data set are paid from one budget.", remedy)]
    return []


def _words(name: str) -> list[str]:
    """As people read them: letters that Unicode writes in several ways are one."""
    return re.findall(r"[^\W_]+", normalize("NFKC", normalize("NFKC", name).casefold()))
