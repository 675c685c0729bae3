"""Who pays for one release: an account, a data set's line in a ledger, or a budget of its own that is kept nowhere."""

from __future__ import annotations

import os
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path

from discreet.ledger import Ledger
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Loss, Number
from discreet.release.account import Account
from discreet.release.known_data import Content
from discreet.words.errors import PrivacyError
from discreet.words.faults import Argument, Spelled

OR_AN_ACCOUNT = Spelled(", or an account", plan="", command="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Payer:
    """The keywords by which every function that releases is paid, found to go together.

    Attributes
    ----------
    account : whose budget pays.
    ledger, budget, dataset : instead of an account, a ledger, the total that opens or confirms a budget in it, and the
        name of the data.
    name : the release's name in the ledger.
    seed : of the noise and of partitions of the rows, for tests; with an account, the account has it.
    """

    account: Account | None = None
    ledger: str | Path | None = None
    budget: Number | Loss | None = None
    dataset: str | None = None
    name: str | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.name is not None and not (isinstance(self.name, str) and self.name):
            raise PrivacyError(
                (Argument("name", self.name), " is not the name of a release."),
                "Names are text.",
                ("Give for example ", Argument("name", "rates"), ", or none."),
                about="name",
            )
        if self.seed is not None:
            self._check_seed()
        if self.ledger is not None:
            self._check_ledger(self.ledger)
        elif self.dataset is not None or self.budget is not None:
            raise PrivacyError(
                "A data set's name or budget was given without a ledger.",
                "A ledger keeps them.",
                ("Give ", Argument("ledger", "ledger.db"), OR_AN_ACCOUNT, "."),
                about="ledger",
            )

    def _check_seed(self) -> None:
        if not isinstance(self.seed, Integral) or isinstance(self.seed, bool) or self.seed < 0:
            raise PrivacyError(
                (Argument("seed", self.seed), " is not a seed."),
                "Seeds are whole numbers from 0 on.",
                "Leave it out for a private release.",
                about="seed",
            )
        if self.account is not None:
            raise PrivacyError(
                (Argument("seed", self.seed), " was given beside an account."),
                "The account has its own randomness.",
                "Leave the seed out, or open the account with a seed, which makes all its releases not private.",
                about="seed",
            )

    def _check_ledger(self, ledger: str | Path) -> None:
        if self.account is not None:
            raise PrivacyError(
                f"The ledger {str(ledger)!r} was given beside an account.",
                "One of them pays.",
                "Drop one.",
                about="ledger",
            )
        if not self.dataset:
            raise PrivacyError(
                f"The ledger {str(ledger)!r} was given without a name for the data.",
                "It counts what was spent on each data set by name, and the same rows as a file and as a "
                "frame would have two budgets.",
                ("Give ", Argument("dataset", "flows"), ", and the same name next time."),
                about="dataset",
            )
        if self.budget is None and "://" not in str(ledger) and not os.path.exists(ledger):  # noqa: PTH110
            raise PrivacyError(
                f"There is no ledger {str(ledger)!r} yet, and no budget to open in it.",
                f"A budget is the total that all releases of {self.dataset!r} may cost.",
                ("Give ", Argument("budget", 4), ", or name an older ledger."),
                about="budget",
            )

    @property
    def remaining(self) -> Loss | None:
        """What the account has left; None where none is open."""
        return None if self.account is None else self.account.remaining

    @property
    def partition_seed(self) -> int | None:
        """What repeats a partition of the rows, and with it the whole release: the seed, or that of the account."""
        return self.seed if self.account is None else self.account.seed

    def opened(self, guarantee: Guarantee, origin: str | None = None, content: Content | None = None) -> Account:
        """The account to charge. A budget that is a number is in the currency of the guarantee's loss.

        By `origin` and `content` data that have a budget by another name are recognised.
        """
        if self.account is not None:
            return self.account
        unit, loss, seed = guarantee.unit, guarantee.loss, None if self.seed is None else int(self.seed)
        if self.ledger is None:
            return Account.open(None, dataset="release", unit=unit, budget=loss, seed=seed)
        total = self.budget
        if total is not None and not isinstance(total, Loss):
            total = type(loss)(total)  # type: ignore[call-arg]
        assert self.dataset is not None
        ledger = Ledger.open(self.ledger)
        return Account(
            ledger=ledger,
            dataset=self.dataset,
            unit=unit,
            budget=total,
            seed=seed,
            origin=origin,
            content=content,
        )
