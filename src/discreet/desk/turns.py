"""Turns: heavy work is done in small pieces, and nobody's work delays another's for long.

At most `each` pieces of one person run at once, and `at_once` of all together. Next is whoever asked first among those
of whom less than `each` is under way. Waiting takes no thread, and lines are short.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from discreet.words.errors import DiscreetError


class TooMuch(DiscreetError):
    """Somebody asks for more work than the desk does for one person; the same may be asked later."""


@dataclass(frozen=True, eq=False, slots=True)
class _Place:
    who: str
    called: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class Turns:
    """Turns at one kind of work.

    Attributes
    ----------
    what : the work in words, more than one of it.
    waiting : how many of one person may wait.
    """

    what: str
    at_once: int
    each: int
    waiting: int
    working: Counter[str] = field(default_factory=Counter)
    line: list[_Place] = field(default_factory=list)

    @asynccontextmanager
    async def of(self, who: str) -> AsyncIterator[None]:
        """A turn, when it comes; refused where too many of this person wait."""
        if sum(place.who == who for place in self.line) >= self.waiting:
            raise TooMuch(
                f"One more was asked, and {self.each + self.waiting} {self.what} of yours are running or waiting. "
                f"The "
                f"desk does {self.each} at once for one person and lets {self.waiting} wait. Try again when one ends."
            )
        place = _Place(who)
        self.line.append(place)
        self._advance()
        try:
            await place.called.wait()
            yield
        finally:
            if place in self.line:
                self.line.remove(place)
            else:
                self.working[who] -= 1
                self.working += Counter()  # forgets who has none
            self._advance()

    def _advance(self) -> None:
        for place in list(self.line):
            if self.working.total() < self.at_once and self.working[place.who] < self.each:
                self.line.remove(place)
                self.working[place.who] += 1
                place.called.set()


PAGES = Turns("pages that read much", at_once=8, each=2, waiting=8)
"""Turns at pages that read a whole book, table or report."""
