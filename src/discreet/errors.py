"""Every exception that discreet raises on purpose.

A message has three parts: what was asked, what is possible, the next step. It never carries a confidential
value or a row. Each class also inherits the builtin that a Python user would catch.
"""

from __future__ import annotations


class DiscreetError(Exception):
    """The root: catch this to catch everything that discreet reports."""


class DataError(DiscreetError, ValueError):
    """A table is not what its schema promises: a column, a type, a key or a category is wrong."""


class FormulaError(DiscreetError, ValueError):
    """A model formula cannot be read, or asks for something outside the allow-list."""


class FitError(DiscreetError, ValueError):
    """A model cannot be estimated from these data: nothing to mix, no positives, a degenerate design."""


class Unidentified(FitError, DataError):
    """The data have too few levels or rows for the model asked for; another model or other data are needed."""


class PlanError(DiscreetError, ValueError):
    """A plan or a setting is not valid; all faults of one file are reported together."""


class PrivacyError(DiscreetError, ValueError):
    """A privacy parameter or a request makes no sense: a negative loss, units that do not match."""


class Infeasible(PrivacyError):
    """No amount of noise gives the guarantee asked for; the message states the inequality that decides."""


class BudgetExceeded(PrivacyError):
    """A release asks for more than is left; nothing was spent and no noise was drawn."""


class LedgerError(DiscreetError, RuntimeError):
    """The ledger cannot be read, cannot be written or fails its own verification."""


class EngineError(DiscreetError, RuntimeError):
    """A relational step failed inside the engine; carries the step's name and query, never data."""


class MissingExtra(DiscreetError, ImportError):
    """An optional part is not installed; the message is the command that installs it."""
