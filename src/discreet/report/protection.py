"""How sure somebody can become after releases, as a table; what may be said is decided by `privacy.assurance`."""

from __future__ import annotations

from collections.abc import Iterator

from discreet.pages.numbers import percent
from discreet.pages.page import Block, Note, Prose, Table
from discreet.privacy.assurance import SUSPICIONS, Assurance, sure_at_most

PRIORS = (0.01, 0.1, 0.5)
"""Degrees of certainty before a release, in the table of what somebody can learn."""


def protection(said: Assurance, *more: str) -> Iterator[Block]:
    """Whom releases protect, with `more` about their noise; or a warning that nothing is promised."""
    if not said.promised:
        yield Note("warning", said.refusal)
        return
    yield Prose(f"{said.words}\n\n{' '.join(filter(None, [said.reach, *more]))}")
    if said.suspicions:
        yield suspicions(said)


def suspicions(said: Assurance, name: str = "suspicions") -> Table:
    """The most that all releases reveal about one protected change, and about one worker exchanged for another."""
    columns = said.suspicions
    return Table(
        ("Somebody who was sure to", *(head for head, _ in columns)),
        [(percent(p), *(percent(sure_at_most(p, odds), up=True) for _, odds in columns)) for p in PRIORS],
        SUSPICIONS,
        name,
    )


def several(said: Assurance | None) -> Iterator[Block]:
    """About somebody who is in several data sets."""
    if said is None:
        return
    yield Note("people", said.covered)
    if said.suspicions:
        yield suspicions(said, "suspicions-of-several")
