"""The one door for noise: a source of randomness is handed out only after its price is in the ledger.

An account is a budget of one data set under one unit. There are two ways out, and both take an offer: `release` gives
its value, `publish` its files. The order is the product's promise:

1. The columns that the offer takes as public are compared with those of earlier releases.
2. Everything confidential that the draw needs is read.
3. The price is charged.
4. The noise is drawn, with what was read.
5. The result's hash is fixed in the ledger.
6. The result is given away.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np

from discreet.data.failures import interrupted
from discreet.data.one_at_a_time import in_turn
from discreet.ledger import Dates, Entry, Ledger, Period, Policy, release_once
from discreet.ledger.entries import REHEARSED
from discreet.noise.source import SeededSource, Source, SystemSource
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Loss
from discreet.privacy.units import Unit
from discreet.release.canonical import fingerprints, tables_of
from discreet.release.known_data import Content, open_once
from discreet.release.offer import Offer
from discreet.results import Result, tidy_table
from discreet.words.arguments import of_kinds
from discreet.words.errors import DiscreetError, LedgerError

if TYPE_CHECKING:
    import pyarrow as pa

Data = TypeVar("Data")
T = TypeVar("T")
Method = TypeVar("Method", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, repr=False)
class Released(Result, Generic[T]):
    """A value that may be shown to anybody, what it promises and which ledger line paid for it.

    Attributes
    ----------
    value : what was released.
    guarantee : what it promises.
    entry, name : the ledger's line that paid, and the release's name in it.
    check : what was known of the release before it was paid for: price, what was left, expected error.
    """

    value: T
    guarantee: Guarantee
    entry: Entry
    name: str
    check: Any = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the value should know."""
        return tuple(getattr(self.value, "notes", ()))

    @property
    def fingerprints(self) -> dict[str, str]:
        """The SHA-256 of each of the value's tables, which the ledger keeps."""
        return fingerprints(self.value)

    def to_arrow(self) -> pa.Table:
        """The value's table; of several, the first."""
        return next(iter(tables_of(self.value).values()))

    def tidy(self) -> pa.Table:
        """The value in the columns of `discreet.results.COLUMNS`."""
        if isinstance(self.value, Result):
            return self.value.tidy()
        numbers = np.ravel(np.asarray(self.value, dtype=float))
        return tidy_table(effect="value", level=[str(i) for i in range(len(numbers))], estimate=numbers)

    def __repr__(self) -> str:
        return f"<Released {type(self.value).__name__} {self.name!r}: {self.guarantee.loss}>"

    def __str__(self) -> str:
        return f"{self.value}\n{self.guarantee}"


def telling(method: Method) -> Method:
    """Of an account: an interruption says what was spent, and how the same release goes on."""

    @wraps(method)
    def instead(account: Any, *given: Any, name: str | None = None, **named: Any) -> Any:
        label = _called(name)
        try:
            return method(account, *given, name=label, **named)
        except BaseException as error:
            if not interrupted(error):
                raise
            known = KeyboardInterrupt(*error.args)
            known.add_note(_spent(account, label))
            raise known from None

    return cast("Method", instead)


class Account:
    """A data set's budget, and the only way to its noise.

    Examples
    --------
    >>> from discreet import AnyRow, Pure
    >>> account = Account.open(None, dataset="trial", unit=AnyRow(), budget=Pure(2))
    >>> print(account.remaining)
    epsilon=2
    """

    @of_kinds
    def __init__(
        self,
        *,
        ledger: Ledger,
        dataset: str,
        unit: Unit,
        budget: Loss | None = None,
        policy: Policy | None = None,
        period: str | None = None,
        seed: int | None = None,
        origin: str | None = None,
        content: Content | None = None,
    ):
        """Open the account.

        Parameters
        ----------
        ledger : where its lines are kept.
        dataset : the name under which the ledger knows the data.
        unit : whom to protect.
        budget : opens or confirms the total that all releases may cost; leave it out once it is open.
        policy : with a budget, what releases about each period may cost.
        period : the year, quarter or month that releases are about: "2026-Q1".
        seed : makes releases reproducible and therefore not private; each of them says so.
        origin : with a budget, which files the data are (`discreet.data.scans.origin_of`).
        content : with a budget, gives a hash of the data, which is noted for this user alone (`release.known_data`).
        """
        if budget is not None:
            facts = {"unit": unit, "total": budget, "policy": policy, "origin": origin}
            open_once(ledger, dataset=dataset, content=content, **facts)
        self.ledger, self.dataset, self.unit = ledger, dataset, unit
        self.dates = Dates(None if period is None else str(Period.of(period)))
        self.seed = seed
        self._source: Source = SystemSource() if seed is None else SeededSource(seed)

    @classmethod
    def open(
        cls,
        ledger: str | Path | None,
        *,
        dataset: str,
        unit: Unit,
        budget: Loss,
        policy: Policy | None = None,
        period: str | None = None,
        seed: int | None = None,
        origin: str | None = None,
        content: Content | None = None,
    ) -> Account:
        """The account in the ledger at `ledger`; None keeps the ledger in memory, for a trial or a single release."""
        book = Ledger.in_memory() if ledger is None else Ledger.open(ledger)
        return cls(
            ledger=book,
            dataset=dataset,
            unit=unit,
            budget=budget,
            policy=policy,
            period=period,
            seed=seed,
            origin=origin,
            content=content,
        )

    def about(self, period: Period, *, reads: Sequence[Period] = ()) -> Account:
        """The same account for releases about a period (that part of the budget's own kind, if it has one).

        `reads` are the periods of all rows behind them, where they are several.
        """
        policy, dated = self.ledger.budget(self.dataset, self.unit).policy, copy(self)
        dated.dates = Dates(str(period if policy is None else period.within(policy.each)), tuple(map(str, reads)))
        return dated

    def __repr__(self) -> str:
        return f"<Account of {self.dataset!r} under {self.unit.key}: {self.left}>"

    @property
    def left(self) -> str:
        """What is left, in words, also where the ledger cannot say it."""
        try:
            return f"{self.remaining} left"
        except LedgerError:
            return "what is left is not known"

    @property
    def remaining(self) -> Loss:
        """What is left of the budget."""
        return self.ledger.remaining(self.dataset, self.unit)

    @property
    def private(self) -> bool:
        """Whether nobody can reproduce this account's noise."""
        return self._source.private

    def compare(self, details: Mapping[str, Any]) -> None:
        """Refuse columns that an earlier release of the data set forbids, before any row is read for this one."""
        self.ledger.compare(self.dataset, details)

    @telling
    def release(self, offer: Offer[Data, Any, T], data: Data, *, name: str | None = None) -> Released[T]:
        """Charge the offer's price, draw, fix the value, give it away.

        A name stands for one request: released, it is never drawn again. Without a name each call is a separate
        release.
        """
        label = _called(name)
        self.compare(offer.details)
        known = offer.check(self.remaining)
        with in_turn:
            reading = offer.read(data)
        entry = self.ledger.charge(
            dataset=self.dataset,
            unit=self.unit,
            release=label,
            loss=offer.guarantee.loss,
            details=self._facts(offer),
        )
        released = Released(offer.draw(reading, self._source), self._promised(offer), entry, label, known)
        self.ledger.publish(entry, files=released.fingerprints)
        return released

    @telling
    def publish(self, offer: Offer[Data, Any, Any], data: Data, folder: str | Path, *, name: str) -> Entry:
        """The publication of the release, whose files are in `folder` when this returns.

        After a crash the same call carries on. Released once, it reads, draws and writes nothing.
        """
        self.compare(offer.details)
        with in_turn:
            readings = [] if self.ledger.published(self.dataset, name) else [offer.read(data)]

        def draw(entry: Entry, staging: Path) -> None:
            if not readings:
                raise exchanged(name)
            offer.write(offer.draw(readings[0], self._source), self._promised(offer), entry, staging)

        return release_once(
            self.ledger,
            dataset=self.dataset,
            unit=self.unit,
            release=name,
            loss=offer.guarantee.loss,
            folder=folder,
            draw=draw,
            details=self._facts(offer),
        )

    def _promised(self, offer: Offer[Any, Any, Any]) -> Guarantee:
        return replace(offer.guarantee, private=self.private)

    def _facts(self, offer: Offer[Any, Any, Any]) -> dict[str, Any]:
        """The ledger's record of an offer, with a note if the loss is not proved or not private."""
        basis = offer.guarantee.basis
        facts = self.dates.to_dict() | dict(offer.details) | ({} if basis == "proved" else {"basis": basis})
        return facts | ({} if self.private else REHEARSED)


def _called(name: str | None) -> str:
    """The name of a release in the ledger: its own, or one that no other has."""
    return name if name is not None else f"release-{secrets.token_hex(6)}"


def _spent(account: Any, label: str) -> str:
    again = f"Ask for the same with name={label!r}: it goes on, and pays nothing twice."
    try:
        charge = account.ledger.charged(account.dataset, label)
        published = account.ledger.published(account.dataset, label)
    except (Exception, KeyboardInterrupt):
        return f"What was spent for release {label!r} is in the ledger, which cannot be read now. {again}"
    if charge is None:
        return f"Nothing was spent for release {label!r}."
    if published is None:
        return f"{charge.loss} is paid for release {label!r}, and nothing of it was shown. {again}"
    return f"{charge.loss} is paid for release {label!r}, and its hash is fixed in the ledger."


def exchanged(name: str) -> DiscreetError:
    """The error for a release that the ledger had a moment ago and has no longer."""
    return DiscreetError(
        f"Release {name!r} was released when the run began and is not now: the ledger was exchanged.",
        "Nothing was drawn.",
        "Put the right ledger in its place and run the plan again.",
        about="ledger",
    )
