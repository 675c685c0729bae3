"""A question to a posterior: checked without data, offered once what is public of the data is known, then released."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from discreet.bayes.regression import Known, public_facts
from discreet.bayes.spending import account_for
from discreet.privacy.losses import Pure
from discreet.privacy.units import Unit
from discreet.release.account import Account, Released
from discreet.release.offer import Check, Offer

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.formula.rows import Frame

T = TypeVar("T")


def answer_table(coefficient: Sequence[str], **columns: Sequence[float]) -> pa.Table:
    """Answers as a table: one row for each question."""
    import pyarrow as pa

    return pa.table({"coefficient": list(coefficient), **{name: list(values) for name, values in columns.items()}})


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
    offered: Callable[[Known, Unit], Offer[Frame, Any, T]]

    def offer(self, data: Any, *, account: Account | None = None) -> Offer[None, Any, T]:
        """The offer for these data, of which the number of rows and the levels of public columns are read."""
        return self._offer(data, account_for(account, self.loss, seed=None, name=None))

    def check(self, data: Any, *, account: Account | None = None) -> Check[Any]:
        """Price, feasibility and expected error; nothing confidential is read and nothing spent."""
        return self.offer(data, account=account).check(None if account is None else account.remaining)

    def release(self, data: Any, *, account: Account | None, name: str | None, seed: int | None) -> Released[T]:
        """Pay and draw: from the account, or from a budget of its own, in memory."""
        asked = account_for(account, self.loss, seed=seed, name=name)
        offer = self._offer(data, asked)
        return account_for(account, offer.guarantee.loss, seed=seed, name=name).release(offer, None, name=name)

    def _offer(self, data: Any, account: Account) -> Offer[None, Any, T]:
        known = public_facts(self.formula, data, self.coefficients, public=self.public, account=account)
        return self.offered(known, account.unit).on(known.frame)
