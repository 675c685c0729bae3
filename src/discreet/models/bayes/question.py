"""A question to a posterior: checked without data, offered once what is public of the data is known, then released.

`Answers` is the shape of what comes back.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from discreet.models.bayes.regression import Known, public_facts
from discreet.models.formula.formula import read_formula
from discreet.privacy.units import AnyRow, Rows, Unit
from discreet.release.account import Released
from discreet.release.offer import Offer
from discreet.release.payer import Payer
from discreet.release.question import Question
from discreet.results import Result, tidy_table
from discreet.words.errors import PrivacyError

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.frames import AnyFrame

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


class Answers(Result):
    """Private answers with their ends, one for each question."""

    __slots__ = ()
    coefficient: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    flag: tuple[str, ...]

    @abstractmethod
    def _answered(self) -> tuple[str, Sequence[float], Sequence[float]]:
        """The kind of estimate, what was asked and what was answered."""

    def tidy(self) -> pa.Table:
        """One row for each answer, in the columns of `discreet.results.COLUMNS`; `level` is what was asked."""
        effect, asked, answer = self._answered()
        return tidy_table(
            effect=effect,
            term=self.coefficient,
            level=[repr(value) for value in asked],
            estimate=answer,
            lower=self.low,
            upper=self.high,
            flag=flags(self.flag),
        )

    def to_arrow(self) -> pa.Table:
        """One row for each answer."""
        _, asked, answer = self._answered()
        return answer_table(self.coefficient, at=asked, answer=answer, low=self.low, high=self.high, flag=self.flag)

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True)
class PosteriorQuestion(Question[Released[T]]):
    """A summary of a posterior, or a private fit, whose arguments were found possible.

    Attributes
    ----------
    coefficients : the names asked about, as R writes them.
    public, numbers : the columns that are declared public, and protected numbers.
    offered : makes the offer from public facts, for an account that protects this unit.
    """

    formula: str
    coefficients: tuple[str, ...]
    public: Sequence[str]
    numbers: Sequence[str]
    payer: Payer
    offered: Callable[[Known, Unit], Offer[AnyFrame, Any, T]]

    def __repr__(self) -> str:
        return f"<PosteriorQuestion {self.formula!r}: {', '.join(self.coefficients)}>"

    @property
    def response(self) -> str:
        return read_formula(self.formula, needs_random=False).response.column

    def __post_init__(self) -> None:
        # What hides any change of a row also hides a change of its response.
        if (account := self.payer.account) is not None and not isinstance(account.unit, AnyRow | Rows):
            raise PrivacyError(
                f"The account protects {account.unit}; posterior summaries protect single rows.",
                remedy="Open an account whose unit is AnyRow() or Rows(lower, upper).",
                about="account",
            )

    def offer(self, data: Any) -> Offer[None, Any, T]:
        """The offer for these data. It reads the number of rows and the levels of public columns."""
        account = self.payer.account
        roles: dict[str, Any] = {"public": self.public, "numbers": self.numbers}
        known = public_facts(self.formula, data, self.coefficients, **roles, account=account)
        return self.offered(known, AnyRow() if account is None else account.unit).on(known.frame)

    def release(self, data: Any) -> Released[T]:
        """Pay and draw."""
        return self.paid(data)
