"""A question to a posterior: checked without data, offered once what is public of the data is known, then released."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from discreet.bayes.regression import Known, public_facts
from discreet.bayes.spending import ANY_ROW, account_for
from discreet.errors import PrivacyError
from discreet.privacy.losses import Loss, Number, Pure
from discreet.privacy.units import Unit
from discreet.release.account import Account, Released
from discreet.release.budget_line import BudgetLine
from discreet.release.offer import Check, Offer

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.frames import AnyFrame

T = TypeVar("T")


def answer_table(
    coefficient: Sequence[str], *, flag: Sequence[str] | None = None, **columns: Sequence[float | None]
) -> pa.Table:
    """Answers as a table: one row for each question; null where there is no number."""
    import pyarrow as pa

    numbers = {name: pa.array(list(values), pa.float64()) for name, values in columns.items()}
    table = pa.table({"coefficient": list(coefficient), **numbers})
    return table if flag is None else table.append_column("flag", pa.array(flags(flag), pa.string()))


def flags(flag: Sequence[str]) -> list[str | None]:
    """Words against each answer; None where there are none."""
    return [words or None for words in flag]


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """A summary of a posterior, or a private fit, whose arguments were found possible.

    Attributes
    ----------
    coefficients : the names asked about, as R writes them.
    public : the columns that are declared public.
    loss : what was asked for.
    offered : makes the offer from public facts, for an account that protects this unit.
    """

    formula: str
    coefficients: tuple[str, ...]
    public: Sequence[str]
    loss: Pure
    offered: Callable[[Known, Unit], Offer[AnyFrame, Any, T]]

    def offer(self, data: Any, *, account: Account | None = None) -> Offer[None, Any, T]:
        """The offer for these data, of which the number of rows and the levels of public columns are read."""
        return self._offer(data, account_for(account, self.loss, seed=None, name=None))

    def check(self, data: Any, *, account: Account | None = None) -> Check[Any]:
        """Price, feasibility and expected error; nothing confidential is read and nothing spent."""
        return self.offer(data, account=account).check(None if account is None else account.remaining)

    def release(
        self,
        data: Any,
        *,
        account: Account | None,
        name: str | None,
        seed: int | None,
        ledger: str | Path | None = None,
        budget: Number | Loss | None = None,
        dataset: str | None = None,
    ) -> Released[T]:
        """Pay and draw: from the account, from the data set's budget in the ledger, or from one of its own."""
        line = BudgetLine.of(ledger, dataset, budget)
        if account is not None and line is not None:
            raise PrivacyError(
                f"The ledger {str(ledger)!r} was given beside an account.",
                "One of them pays.",
                "Drop one.",
                about="ledger",
            )
        offer = self._offer(data, account_for(account, self.loss, seed=seed, name=name))
        loss = offer.guarantee.loss
        payer = (
            account_for(account, loss, seed=seed, name=name) if line is None else line.account(ANY_ROW, loss, seed=seed)
        )
        return payer.release(offer, None, name=name)

    def _offer(self, data: Any, account: Account) -> Offer[None, Any, T]:
        known = public_facts(self.formula, data, self.coefficients, public=self.public, account=account)
        return self.offered(known, account.unit).on(known.frame)
