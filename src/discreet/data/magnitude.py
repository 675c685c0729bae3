"""Declared magnitudes: columns of amounts, such as pay, of which sums are published.

An establishment's amount is protected up to a share alpha, or up to the cap: the most that one worker adds to it. The
cap is declared, never looked up in the data. Amounts are in whole units, row by row (docs/proofs/magnitudes.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from discreet.words.errors import DataError
from discreet.words.faults import Argument, Fault

Beyond: TypeAlias = Literal["refuse", "clip"]
MOST_CAP = 2**40
"""Above, sums of amounts would not be exact."""


@dataclass(frozen=True, slots=True)
class Magnitude:
    """A column of amounts.

    Attributes
    ----------
    cap : the most that one worker adds to an establishment's amount, in whole units.
    beyond : what is done with rows whose amount is above the cap times their jobs: "refuse" the data, or "clip" them.
    """

    cap: int
    beyond: Beyond = "refuse"

    def to_dict(self) -> dict[str, Any]:
        return {"cap": self.cap, "beyond": self.beyond}


def declared_magnitudes(given: Mapping[str, Any]) -> dict[str, Magnitude]:
    """Magnitudes by the name of their column, each a cap or a table with `cap` and `beyond`."""
    if not isinstance(given, Mapping):
        raise DataError(
            (Argument("magnitudes", given), " declares no amounts."),
            "It gives the cap of each column of amounts.",
            ("Use for example ", Argument("magnitudes", {"payroll": 250_000}), "."),
            about="magnitudes",
        )
    found, faults = {}, []
    for name, value in given.items():
        content = value.to_dict() if isinstance(value, Magnitude) else value
        content = dict(content) if isinstance(content, Mapping) else {"cap": content}
        cap, beyond, more = content.pop("cap", None), content.pop("beyond", "refuse"), content
        wrong = []
        if type(cap) is not int or not 1 <= cap <= MOST_CAP:
            wrong.append(f"has the cap {cap!r:.40}, which is no whole number from 1 to {MOST_CAP:,}.")
        if beyond not in get_args(Beyond) or more:
            wrong.append(f"has {f'beyond = {beyond!r:.40}' if not more else f'the key {next(iter(more))!r:.40}'}.")
        faults += [
            Fault(
                f"magnitudes.{name}",
                f"The magnitude {name!r} {words}",
                "It has a cap, the most that one worker adds, and beyond = 'refuse' or 'clip'.",
                "Use for example { cap = 250000 }; a larger unit, such as thousands, suits caps above 2^40.",
            )
            for words in wrong
        ]
        if not wrong:
            found[name] = Magnitude(cap, beyond)
    if faults:
        raise DataError(*faults)
    return found
