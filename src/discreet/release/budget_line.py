"""The line that pays for one release, for callers who name a ledger and open no account."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from discreet.errors import PrivacyError
from discreet.faults import Argument, Spelled
from discreet.ledger import Ledger
from discreet.privacy.losses import Loss, Number
from discreet.privacy.units import Unit
from discreet.release.account import Account

OR_AN_ACCOUNT = Spelled(", or an account", plan="", command="")


class BudgetLine(NamedTuple):
    """A ledger, the data set's name in it, and the total that opens or confirms its budget."""

    ledger: str | Path
    dataset: str
    budget: Number | Loss | None

    @classmethod
    def of(cls, ledger: str | Path | None, dataset: str | None, budget: Number | Loss | None) -> BudgetLine | None:
        if ledger is None:
            if dataset is not None or budget is not None:
                raise PrivacyError(
                    "A data set's name or budget was given without a ledger.",
                    "A ledger keeps them.",
                    ("Give ", Argument("ledger", "ledger.db"), OR_AN_ACCOUNT, "."),
                    about="ledger",
                )
            return None
        if not dataset:
            raise PrivacyError(
                f"The ledger {str(ledger)!r} was given without a name for the data.",
                "It counts what was spent on each data set by name, and the same rows as a file and as a "
                "frame would have two budgets.",
                ("Give ", Argument("dataset", "flows"), ", and the same name next time."),
                about="dataset",
            )
        if budget is None and "://" not in str(ledger) and not Path(ledger).exists():
            raise PrivacyError(
                f"There is no ledger {str(ledger)!r} yet, and no budget to open in it.",
                f"A budget is the total that all releases of {dataset!r} may cost.",
                ("Give ", Argument("budget", 4), ", or name an older ledger."),
                about="budget",
            )
        return cls(ledger, dataset, budget)

    def account(self, unit: Unit, loss: Loss, *, seed: int | None) -> Account:
        """The account that pays; a budget that is a number is in the currency of `loss`."""
        total = self.budget
        if total is not None and not isinstance(total, Loss):
            total = type(loss)(total)  # type: ignore[call-arg]
        return Account(ledger=Ledger.open(self.ledger), dataset=self.dataset, unit=unit, budget=total, seed=seed)
