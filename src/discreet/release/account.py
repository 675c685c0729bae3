"""The one door for noise: a source of randomness is handed out only after its price is in the ledger.

An account is a budget of one data set under one unit. `release` charges it, lets the caller draw, fixes the result's
fingerprint in the ledger, and only then gives the result away, with its guarantee and the ledger line that paid.
"""

from __future__ import annotations

import hashlib
import pickle
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from discreet.ledger import Entry, Ledger
from discreet.noise.source import SeededSource, Source, SystemSource
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Loss
from discreet.privacy.units import Unit

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Released(Generic[T]):
    """A value that may be shown to anybody, what it promises and which ledger line paid for it."""

    value: T
    guarantee: Guarantee
    entry: Entry
    name: str


class Account:
    """A data set's budget, and the only way to its noise."""

    def __init__(
        self, *, ledger: Ledger, dataset: str, unit: Unit, budget: Loss | None = None, seed: int | None = None
    ):
        """Open the account; `budget` opens or confirms its total.

        A `seed` makes releases reproducible and therefore not private; each of them says so.
        """
        if budget is not None:
            ledger.open_budget(dataset=dataset, unit=unit, total=budget)
        self.ledger, self.dataset, self.unit = ledger, dataset, unit
        self._source: Source = SystemSource() if seed is None else SeededSource(seed)

    @classmethod
    def open(
        cls, where: str | Path | None, *, dataset: str, unit: Unit, budget: Loss, seed: int | None = None
    ) -> Account:
        """The account in the ledger at `where`; None keeps the ledger in memory, for a trial or a single answer."""
        ledger = Ledger.in_memory() if where is None else Ledger.open(where)
        return cls(ledger=ledger, dataset=dataset, unit=unit, budget=budget, seed=seed)

    @property
    def remaining(self) -> Loss:
        return self.ledger.remaining(self.dataset, self.unit)

    @property
    def private(self) -> bool:
        """Whether nobody can reproduce this account's noise."""
        return self._source.private

    def compare(self, details: Mapping[str, Any]) -> None:
        """Refuse columns that an earlier release of the data set forbids, before any row is read for this one."""
        self.ledger.compare(self.dataset, details)

    def release(
        self,
        name: str | None,
        *,
        guarantee: Guarantee,
        draw: Callable[[Source], T],
        details: Mapping[str, Any] | None = None,
    ) -> Released[T]:
        """Charge the guarantee's loss, draw, fix the result, give it away.

        `details` are public parameters for the ledger. A name stands for one request: released, it is never drawn
        again. Without a name each call is a release of its own.
        """
        label = name if name is not None else f"release-{secrets.token_hex(6)}"
        facts = dict(details or {}) | ({} if guarantee.basis == "proved" else {"basis": guarantee.basis})
        facts |= {} if self.private else {"private": False, "why": "the noise was seeded"}
        entry = self.ledger.charge(
            dataset=self.dataset, unit=self.unit, release=label, loss=guarantee.loss, details=facts
        )
        value = draw(self._source)
        self.ledger.publish(entry, files={"value": fingerprint(value)})
        return Released(value, replace(guarantee, private=self.private), entry, label)


def fingerprint(value: object) -> str:
    """SHA-256 of a released value, so that the ledger can say later whether it is the one that was paid for."""
    return hashlib.sha256(pickle.dumps(value, protocol=5)).hexdigest()
