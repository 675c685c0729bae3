"""Periods of a series (years, quarters, months), and how much of a budget the releases about one period may spend.

A release counts for every period whose rows it reads: what changed from one quarter to another says something about
both. So the amount of a quarter bounds all releases that read its rows, and the total is charged once.

A series has no gaps: after 2026-Q1 comes 2026-Q2. Otherwise a quarter that nobody published would be noticed years
later, when its amount cannot be told from one that was saved on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

from discreet.privacy.losses import Loss, exact
from discreet.words.errors import PrivacyError

Step: TypeAlias = Literal["year", "quarter", "month"]
IN_A_YEAR: Mapping[Step, int] = {"year": 1, "quarter": 4, "month": 12}
WRITTEN: Mapping[Step, re.Pattern[str]] = {
    "year": re.compile(r"(\d{4})"),
    "quarter": re.compile(r"(\d{4})-?Q([1-4])"),
    "month": re.compile(r"(\d{4})-(0[1-9]|1[0-2])"),
}


@dataclass(frozen=True, slots=True, order=True)
class Period:
    """A year, a quarter or a month; `number` counts them from the year 0."""

    step: Step
    number: int

    @classmethod
    def of(cls, text: str) -> Period:
        """The period that a text names: 2026, 2026-Q1 or 2026-01."""
        for step, pattern in WRITTEN.items():
            found = pattern.fullmatch(text) if isinstance(text, str) else None
            if found is not None:
                year, *part = map(int, found.groups())
                return cls(step, year * IN_A_YEAR[step] + (part[0] - 1 if part else 0))
        raise PrivacyError(
            f"{str(text)[:40]!r} is no period.", "A period is a year, a quarter or a month.",
            "Write it as 2026, 2026-Q1 or 2026-01.", about="period",
        )  # fmt: skip

    def __str__(self) -> str:
        year, part = divmod(self.number, IN_A_YEAR[self.step])
        after = {"year": "", "quarter": f"-Q{part + 1}", "month": f"-{part + 1:02d}"}
        return f"{year:04d}{after[self.step]}"

    def later(self, by: int) -> Period:
        """The period so many steps later."""
        return Period(self.step, self.number + by)

    def within(self, step: Step) -> Period:
        """The longer period that this one is part of; itself, where `step` is no longer one."""
        many, few = IN_A_YEAR[self.step], IN_A_YEAR[step]
        return Period(step, self.number * few // many) if few < many else self


@dataclass(frozen=True, slots=True)
class Dates:
    """When a release is: the period that it is about, and those of all rows that it reads, where they are several.

    Lines of ledgers that say nothing of the rows were written before flows and changes counted for all their quarters.
    """

    period: str | None = None
    reads: tuple[str, ...] = ()

    @classmethod
    def of(cls, details: Mapping[str, Any] | None) -> Dates:
        """What the details of a release say."""
        found = details or {}
        period, reads = found.get("period"), found.get("periods", [])
        if not isinstance(reads, list | tuple) or not all(isinstance(each, str) for each in reads):
            raise PrivacyError(
                f"{str(reads)[:40]!r} lists no periods.", "They are years, quarters or months.",
                "Write them as ['2026-Q1', '2026-Q2'].", about="period",
            )  # fmt: skip
        return cls(None if period is None else str(period), tuple(reads))

    def to_dict(self) -> dict[str, Any]:
        """As details of a release have it."""
        return (
            {} if self.period is None else {"period": self.period} | ({"periods": [*self.reads]} if self.reads else {})
        )


@dataclass(frozen=True, slots=True)
class Policy:
    """What releases about one period may cost together: `limit` of the budget's first parameter, epsilon or rho."""

    each: Step
    limit: Fraction

    @classmethod
    def of(cls, written: Any) -> Policy | None:
        """The policy that a line of a ledger states, if it states one."""
        if written is None:
            return None
        found = cls(written["each"], exact(written["limit"], name="limit"))
        if found.each not in get_args(Step) or found.limit <= 0:
            raise PrivacyError(
                f"A policy of {written!r} is none.", "It is an amount above 0 for each year, quarter or month.",
                "Correct it.", about="policy",
            )  # fmt: skip
        return found

    def beyond(self, total: Loss) -> bool:
        """Whether one period may cost more than all together."""
        return self.limit > next(iter(total.amounts.values()))

    def to_dict(self) -> dict[str, str]:
        """As a ledger keeps it."""
        return {"each": self.each, "limit": str(self.limit)}

    def periods(self, dates: Dates, *, release: str, known: Iterable[str]) -> list[Period]:
        """The periods that a release counts for, if they are of the right kind and leave no gap to the `known` ones."""
        if dates.period is None:
            raise PrivacyError(
                f"Release {release!r} names no {self.each}.", f"The budget has an amount for each {self.each}.",
                f"Name the {self.each} that the data are about.", about="period",
            )  # fmt: skip
        asked, series = self.counted(dates), sorted(map(Period.of, known))
        odd = next((period for period in asked if period.step != self.each), None)
        if odd is not None:
            raise PrivacyError(
                f"Release {release!r} is about {odd}, which is no {self.each}.",
                f"The budget has an amount for each {self.each}.", f"Name the {self.each}.", about="period",
            )  # fmt: skip
        first, last = asked[0], asked[-1]
        if series and not (series[0].later(-1) <= last and first <= series[-1].later(1)):
            missing = series[-1].later(1) if first > series[-1] else series[0].later(-1)
            raise PrivacyError(
                f"Release {release!r} is about {last}, and nothing was released about {missing}.",
                f"The series goes from {series[0]} to {series[-1]}, and has no gaps.",
                f"Release {missing} first.", about="period",
            )  # fmt: skip
        return asked

    def counted(self, dates: Dates) -> list[Period]:
        """The period of a release, and those of all rows that it reads, in their order."""
        stated = [] if dates.period is None else [Period.of(dates.period)]
        return sorted({*stated, *(Period.of(text).within(self.each) for text in dates.reads)})
