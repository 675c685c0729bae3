"""The total that a data set may reveal, what it has revealed, and whether one more release fits.

The only place where the rule of spending is written: the ledger applies it before a charge, the verifier when it
replays the book.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from discreet.ledger.periods import Dates, Policy
from discreet.privacy.losses import Approximate, Loss, Pure, shown
from discreet.words.errors import BudgetExceeded, PrivacyError
from discreet.words.faults import Sentence, Spelled

UNDATED = Dates()


@dataclass(frozen=True, slots=True)
class Budget:
    """The account of one data set under one unit of privacy; `total` and `spent` are in the same currency.

    With a `policy`, releases that read rows of one period may not cost more than its limit; `periods` is what they have
    cost. One that reads several counts for each of them, and once in `spent`.
    """

    dataset: str
    unit: str
    total: Loss
    spent: Loss
    policy: Policy | None = None
    periods: Mapping[str, Fraction] = field(default_factory=dict)

    @property
    def remaining(self) -> Loss:
        """What is left of the total."""
        return self.total - self.spent

    def left_in(self, period: str) -> Fraction | None:
        """What is left of a period's amount; None where the budget has none for periods."""
        return None if self.policy is None else self.policy.limit - self.periods.get(period, Fraction(0))

    def confirmed(self, total: Loss, policy: Policy | None) -> Budget:
        """This budget, if it is what is asked for again; without a policy, the one that is there stays."""
        if policy is not None and policy != self.policy:
            raise PrivacyError(
                f"Another amount for each {policy.each} was asked for {self.dataset!r} than its budget has.",
                "A budget is opened once.",
                (
                    "Use what it has, or ",
                    changed(self.dataset, {f"per {policy.each}": policy.limit}, "policy=..., "),
                    ".",
                ),
                about="policy",
            )
        if type(self.total) is not type(total) or self.total != total:
            raise PrivacyError(
                f"A budget of {amounts(total)} was asked for {self.dataset!r}, which has one of "
                f"{amounts(self.total)} under {self.unit} with {amounts(self.spent)} spent.",
                "A budget is opened once.",
                ("Use that total, or ", changed(self.dataset, total.amounts), "."),
                about="total",
            )
        return self

    def spend(self, loss: Loss, *, release: str, dates: Dates = UNDATED) -> Budget:
        """The budget after this release, or `BudgetExceeded` with what is missing."""
        price = _priced(loss, self.total)
        after = self.spent + price
        if not (type(after) is type(self.total) and after <= self.total):
            raise BudgetExceeded(*self._refusal(price, release), about=next(iter(price.amounts)))
        if self.policy is None:
            return replace(self, spent=after)
        about = map(str, self.policy.periods(dates, release=release, known=self.periods))
        name, amount = next(iter(price.amounts.items()))
        used = {period: self.periods.get(period, Fraction(0)) + amount for period in about}
        if any(each > self.policy.limit for each in used.values()):
            raise BudgetExceeded(*self._beyond(used, name, amount, release), about=name)
        return replace(self, spent=after, periods={**self.periods, **used})

    @classmethod
    def opened(cls, dataset: str, unit: str, total: Loss, policy: Policy | None) -> Budget:
        """A new account, in which no period may cost more than all together."""
        if policy is not None and policy.beyond(total):
            raise PrivacyError(
                f"{readable(policy.limit)} for each {policy.each} was asked for {dataset!r}, with "
                f"{amounts(total)} in all.",
                f"One {policy.each} may not cost more than all together.",
                "Lower it.",
                about="policy",
            )
        return cls(dataset, unit, total, total.zero(), policy)

    def resized(self, total: Loss, policy: Policy | None = None) -> Budget:
        """The same account with another total or policy; never below what is spent, never in another currency."""
        if policy is not None and policy != self.policy:
            most = max(self.periods.values(), default=Fraction(0))
            if policy.limit < most or (self.policy is not None and policy.each != self.policy.each):
                raise PrivacyError(
                    f"The budget of {self.dataset!r} cannot have {readable(policy.limit)} for each {policy.each}: "
                    f"its releases are dated, and one period has spent {readable(most)}.",
                    remedy="Give at least that, for periods of the same kind.",
                    about="policy",
                )
            if self.policy is None and self.spent:
                raise PrivacyError(
                    f"The budget of {self.dataset!r} cannot be divided among periods: {amounts(self.spent)} is "
                    "spent on releases that name none.",
                    "Amounts for periods are set before anything is spent.",
                    "Open a budget under another name for the series.",
                    about="policy",
                )
        if type(total) is not type(self.total) or not self.spent <= total:
            raise PrivacyError(
                f"The budget of {self.dataset!r} cannot become {amounts(total)}: it counts "
                f"{' and '.join(self.total.amounts)} and {amounts(self.spent)} is spent.",
                remedy=f"Give a total of at least {amounts(self.spent)} in the same parameters.",
                about="total",
            )
        return replace(self, total=total, policy=policy or self.policy)

    def to_dict(self) -> dict[str, object]:
        """The budget as plain values, ready for JSON."""
        return {
            "dataset": self.dataset,
            "unit": self.unit,
            "total": self.total.to_dict(),
            "spent": self.spent.to_dict(),
            "remaining": self.remaining.to_dict(),
            **({} if self.policy is None else {"policy": self.policy.to_dict(), "periods": self._by_period()}),
        }

    def _by_period(self) -> dict[str, dict[str, str]]:
        return {
            period: {"spent": str(spent), "remaining": str(self.left_in(period))}
            for period, spent in sorted(self.periods.items())
        }

    def _beyond(self, used: Mapping[str, Fraction], name: str, amount: Fraction, release: str) -> tuple[str, str, str]:
        assert self.policy is not None
        limit = self.policy.limit
        lacking = (
            f"{period} has {readable(self.left_in(period) or Fraction(0))} left and lacks {readable(after - limit)}"
            for period, after in used.items()
            if after > limit
        )
        return (
            f"Release {release!r} asks for {name}={readable(amount)} and counts for {', '.join(used)}.",
            f"Of {readable(limit)} for each {self.policy.each} of {self.dataset!r}, {'; '.join(lacking)}. Nothing was "
            "spent.",
            "Ask for less, or ask the owner of the data to change the policy in the ledger.",
        )

    def _refusal(self, price: Loss, release: str) -> tuple[str, str, Sentence]:
        left = self.remaining.amounts
        missing = {name: asked - left.get(name, Fraction(0)) for name, asked in price.amounts.items()}
        short = ", ".join(f"{name}={readable(gap)}" for name, gap in missing.items() if gap > 0)
        advice = f"Ask for at most {amounts(self.remaining)}" if self.remaining else "Use what is already released"
        return (
            f"Release {release!r} asks for more than {self.dataset!r} has left under {self.unit}.",
            f"\n  Requested:  {amounts(price)}\n"
            f"  Remaining:  {amounts(self.remaining)}\n"
            f"  Difference: {short}\nNothing was spent.",
            (f"{advice}, or ask the owner of the data to raise the budget with ", CHANGE, "."),
        )


CHANGE = Spelled(
    "`ledger.change_budget(..., reason=..., confirmed_by=...)`",
    plan="`discreet ledger budget`",
    command="`discreet ledger budget`",
)


def changed(dataset: str, new: Mapping[str, Fraction], keywords: str = "") -> Spelled:
    """How each reader changes an open budget on purpose: a call, the owner of the data, a command."""
    options = " ".join(f"--{name.replace(' ', '-')} {amount}" for name, amount in new.items())
    return Spelled(
        f"change it on purpose with `ledger.change_budget(..., {keywords}reason=..., confirmed_by=...)`",
        plan="ask the owner of the data to change it in the ledger (`discreet ledger budget`), with a reason",
        command="change it on purpose with "
        f"`discreet ledger budget LEDGER {shlex.quote(dataset)} {options} --reason WHY --confirmed-by NAME`",
    )


def amounts(loss: Loss) -> str:
    """A loss without rounding: 'epsilon=0.25', 'epsilon=1/3 (about 0.333333)'."""
    return ", ".join(f"{name}={readable(amount)}" for name, amount in loss.amounts.items())


def readable(amount: Fraction) -> str:
    """The short decimal where it is exact, else the fraction: a remainder rounded up could not be spent."""
    decimal = shown(amount)
    whole = str(amount)
    about = f"about {float(amount):.6g}"
    return decimal if Fraction(decimal) == amount else f"{whole} ({about})" if len(whole) <= 40 else about


def _priced(loss: Loss, total: Loss) -> Loss:
    """`loss` in the currency of `total`. Pure epsilon fits everywhere; rho is bounded by no epsilon."""
    if not isinstance(loss, Loss):
        raise PrivacyError(
            f"A {type(loss).__name__} was to be spent.", "Losses are amounts of epsilon or rho.",
            "Use for example Pure(1).", about="loss",
        )  # fmt: skip
    price = total.zero() + loss
    if isinstance(total, Pure) and isinstance(price, Approximate) and not price.delta:
        return Pure(price.epsilon)
    if type(price) is type(total) or isinstance(price, Approximate):
        return price
    raise PrivacyError(
        f"A loss of {amounts(loss)} cannot be paid from a budget in {' and '.join(total.amounts)}: no "
        "epsilon bounds it.",
        remedy="Open the budget in rho, or convert with `.to_approximate(delta)` and open it in epsilon and delta.",
        about="loss",
    )
