"""The result of checking a claim: it holds, it is wrong, or it was not checked, and the result says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from discreet.words.cases import case_of

State: TypeAlias = Literal["holds", "WRONG", "not checked"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One claim, and how its check came out."""

    subject: str
    state: State
    words: str

    @property
    def holds(self) -> bool:
        """Whether the claim was checked and found right."""
        return case_of(self.state, {"holds": True, "WRONG": False, "not checked": False})

    @property
    def wrong(self) -> bool:
        """Whether the claim was checked and refuted."""
        return case_of(self.state, {"WRONG": True, "holds": False, "not checked": False})


class RefutedError(Exception):
    """A claim of the bundle is wrong; the message says which."""


class UncheckedError(Exception):
    """A claim that this check cannot decide; the message says why."""
