"""A data set that looks like a second opening of one that has a budget: the same name in other spelling, or its files.

Only names and origins are compared, and both are public. An origin is one hash or several with spaces between: of where
the files are, and of their numbers on the disk, with when they were last written. The reader of the files computes it
(`discreet.data.scans.origin_of`). One in common is enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from unicodedata import normalize

from discreet.ledger.budget import Budget
from discreet.ledger.entries import Entry
from discreet.words.faults import Argument, Fault, Sentence, Spelled


def opened_on_purpose(keyword: str) -> Spelled:
    """How each reader opens a budget that the ledger doubts: in Python alone, where its owner says so."""
    call = f"`ledger.open_budget(..., {keyword}=True)`, which is recorded"
    owner = f"ask the owner of the data to open one in Python with {call}"
    return Spelled(f"open one with {call}", plan=owner, command=owner)


OPEN = Spelled(
    "Open one with `ledger.open_budget(dataset=..., unit=..., total=...)`.",
    plan="Name one of these, or open one under [budget].",
    command="Name one of these, or open one with --budget of `discreet fit`.",
)
OTHER_UNIT = (
    "Use the unit that has a budget. If these data shall have a second one, ",
    opened_on_purpose("allow_second_unit"),
    ".",
)
OTHER_NAME = (
    "Use that name. If they are other data and shall have a budget, ",
    opened_on_purpose("allow_second_opening"),
    ".",
)


def second_opening(dataset: str, origin: str | None, opened: Iterable[Entry]) -> list[Fault]:
    """Why `dataset` may be another name of a data set that has a budget; empty if it has a budget itself."""
    lines = list(opened)
    if any(entry.dataset == dataset for entry in lines):
        return []
    for entry in lines:
        known = entry.dataset
        if alike(known, dataset):
            why: tuple[str | Argument, ...] = (
                f"The ledger has a budget of {known!r}, and ",
                Argument("dataset", dataset),
                " differs from it in case, spaces or signs alone.",
            )
            remedy: Sentence = "Use that name, or one that cannot be confused with it."
        elif set((origin or "").split()) & set(str(entry.payload.get("origin") or "").split()):
            why = (
                f"The ledger has a budget of {known!r}, and ",
                Argument("dataset", dataset),
                " is the same files or links to them, which were not written since.",
            )
            remedy = OTHER_NAME
        else:
            continue
        return [Fault("dataset", why, "All releases of one data set are paid from one budget.", remedy)]
    return []


def no_budget(dataset: str, unit: str, known: Iterable[Budget]) -> Fault:
    """That `dataset` has no budget under `unit`, and those that the ledger has."""
    there = list(known)
    names = "; ".join(f"{each.dataset!r} under {each.unit}" for each in there) or "none"
    remedy = OTHER_UNIT if any(each.dataset == dataset for each in there) else OPEN
    return Fault("dataset", f"{dataset!r} has no budget under {unit}.", f"The ledger has these: {names}.", remedy)


def alike(one: str, other: str) -> bool:
    """Whether two names differ in case, spaces or signs alone."""
    return _words(one) == _words(other)


def _words(name: str) -> list[str]:
    """As people read them: letters that Unicode writes in several ways are one."""
    return re.findall(r"[^\W_]+", normalize("NFKC", normalize("NFKC", name).casefold()))
