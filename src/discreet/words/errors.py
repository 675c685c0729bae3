"""Every exception that discreet raises on purpose.

An error carries faults. Each has a subject, what was asked, what is possible and the next step. It never carries a
confidential value or a row. Each class also inherits the builtin that a Python user would catch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import ClassVar

from discreet.words.faults import Fault, Sentence, as_faults
from discreet.words.voices import PYTHON, Voice


class DiscreetError(Exception):
    """The root: catch this to catch everything that discreet reports.

    Raised with faults, or with the up to three sentences of one: `DataError("It is 0.", remedy="Use 1.", about="by")`.
    """

    subject: ClassVar[str | None] = None
    """The subject of errors of this class that do not name one."""

    def __init__(self, *said: Fault | Sentence, about: str | None = None, remedy: Sentence = "") -> None:
        super().__init__(*said)
        self.faults = as_faults(said, about or self.subject, remedy)

    @property
    def about(self) -> str | None:
        """What the first fault is about."""
        return self.faults[0].about if self.faults else None

    def said(self, voice: Voice = PYTHON) -> str:
        """All faults in the words of one kind of reader, one on each line."""
        return "\n".join(fault.told(voice) for fault in self.faults)

    def __str__(self) -> str:
        return self.said()


@contextmanager
def concerning(about: str | None) -> Iterator[None]:
    """Say of every fault that comes out, and does not say it itself, what it is about."""
    try:
        yield
    except DiscreetError as error:
        error.faults = tuple(each if each.about else replace(each, about=about) for each in error.faults)
        raise


class DataError(DiscreetError, ValueError):
    """A table is not what its schema promises: a column, a type, a key or a category is wrong."""


class UnknownName(DataError, KeyError):
    """A result has no group or level of this name."""


class FormulaError(DiscreetError, ValueError):
    """A model formula cannot be read, or asks for something outside the allow-list."""

    subject = "formula"


class FitError(DiscreetError, ValueError):
    """A model cannot be estimated from these data: nothing to mix, no positives, a degenerate design."""


class Unidentified(FitError, DataError):
    """The data have too few levels or rows for the model asked for; another model or other data are needed."""


class PlanError(DiscreetError, ValueError):
    """A plan or a setting is not valid; all faults of one file are reported together, under one `head`."""

    def __init__(
        self, *said: Fault | Sentence, about: str | None = None, remedy: Sentence = "", head: str = ""
    ) -> None:
        super().__init__(*said, about=about, remedy=remedy)
        self.head = head

    def said(self, voice: Voice = PYTHON) -> str:
        return f"{self.head}\n{super().said(voice)}" if self.head else super().said(voice)


class PrivacyError(DiscreetError, ValueError):
    """A privacy parameter or a request makes no sense: a negative loss, units that do not match."""


class Infeasible(PrivacyError):
    """No amount of noise gives the guarantee asked for; the message states the inequality that decides."""


class BudgetExceeded(PrivacyError):
    """A release asks for more than is left; nothing was spent and no noise was drawn."""


class LedgerError(DiscreetError, RuntimeError):
    """The ledger cannot be read, cannot be written or fails its own verification."""

    subject = "ledger"


class NoLedger(LedgerError):
    """There is no ledger at a place, or a database and no ledger in it."""


class EngineError(DiscreetError, RuntimeError):
    """A relational step failed inside the engine; carries the step's name and query, never data."""


class MissingExtra(DiscreetError, ImportError):
    """An optional part is not installed; the message is the command that installs it."""

    subject = "extra"
