"""An offer: all of a release that is fixed before it is paid for.

It states what the release promises and costs and how far off it is expected to be. It has one function that reads the
confidential data, before the charge, and one that draws, after it. Making an offer, and asking for its `check`, uses
public numbers only. Post-processing is run once on zeros when the offer is made, so a failure that every draw would
cause happens there.

`release.account` takes offers; tables, models and posterior summaries make them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Loss
from discreet.release.files import code_of, write_value

if TYPE_CHECKING:
    from discreet.ledger import Entry
    from discreet.noise.source import Source

Data = TypeVar("Data")
Reading = TypeVar("Reading")
Value = TypeVar("Value")
Other = TypeVar("Other")
Write: TypeAlias = "Callable[[Any, Guarantee, Entry, Path], object]"


class Outlook(Protocol):
    """How far off a release is expected to be: `str` for people, `to_dict` for machines."""

    def to_dict(self) -> dict[str, Any]: ...


E = TypeVar("E", bound=Outlook, covariant=True)


@dataclass(frozen=True, slots=True, repr=False)
class Check(Generic[E]):
    """The price and the expected error of a release; nothing confidential was read and nothing was spent.

    Attributes
    ----------
    guarantee : what the release would promise.
    expected : how far off it is expected to be.
    remaining : what the account has left now; None where no account was asked.
    """

    guarantee: Guarantee
    expected: E
    remaining: Loss | None = None

    @property
    def affordable(self) -> bool:
        """Whether the account can pay."""
        return self.remaining is None or self.guarantee.loss <= self.remaining

    def __repr__(self) -> str:
        return f"<Check: costs {self.guarantee.loss}{'' if self.affordable else ', NOT affordable'}>"

    def __str__(self) -> str:
        verdict = "affordable" if self.affordable else "NOT affordable"
        left = "" if self.remaining is None else f"; {self.remaining} is left: {verdict}"
        return f"{self.expected}\nCosts {self.guarantee.loss}{left}.\n{self.guarantee}"

    def to_dict(self) -> dict[str, Any]:
        """The check as plain values, ready for JSON."""
        return {
            "loss": self.guarantee.loss.to_dict(),
            "guarantee": str(self.guarantee),
            "affordable": self.affordable,
            "expected": self.expected.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class Offer(Generic[Data, Reading, Value]):
    """A release before it exists.

    Attributes
    ----------
    guarantee : what it promises; its loss is the price.
    details : public parameters for the ledger. Nothing else can be requested later under the same name.
    expected : computes, from public numbers, how far off it will be.
    read : takes everything that the draw needs from the confidential data; spends nothing and shows nothing.
    draw : adds noise to what was read and gives the public value. It reads nothing from the data.
    write : writes the value's files into a folder, with what they promise and the ledger's line that paid.
    """

    guarantee: Guarantee
    details: Mapping[str, Any]
    expected: Callable[[], Outlook]
    read: Callable[[Data], Reading]
    draw: Callable[[Reading, Source], Value]
    write: Write = write_value

    def __post_init__(self) -> None:
        code_of()  # what is written of it is asked for before anything is paid
        object.__setattr__(self, "expected", cache(self.expected))  # a check before a release is also the release's

    def __repr__(self) -> str:
        return f"<Offer for {self.guarantee.loss}>"

    def check(self, remaining: Loss | None = None) -> Check[Any]:
        """Price and expected error; reads nothing confidential and spends nothing."""
        return Check(self.guarantee, self.expected(), remaining)

    def on(self, data: Data) -> Offer[None, Reading, Value]:
        """The same offer, about these data; nothing is read yet."""
        read = self.read
        return replace(self, read=lambda nothing: read(data))  # type: ignore[return-value]

    def at(self, data: Data) -> Offer[None, Reading, Value]:
        """The same offer after it has read everything that it needs from `data`."""
        reading = self.read(data)
        return replace(self, read=lambda nothing: reading)  # type: ignore[return-value]

    def then(self, change: Callable[[Value], Other]) -> Offer[Data, Reading, Other]:
        """The same offer, with a value that is post-processed before it is fixed and published."""
        draw = self.draw
        return replace(self, draw=lambda reading, source: change(draw(reading, source)))  # type: ignore[return-value, arg-type]
