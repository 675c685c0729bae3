"""Draw numbers: one charge pays for one draw, and only the holder of the current number may publish.

A charge hands out a random number, which stays with whoever charged. The ledger has its hash until a publication
states the number itself. Whoever resumes the release gets a new number, in a line of its own, and the one before is
void. So a process that draws for itself beside another learns that it is not the holder, never whether the draws
coincide. Charges of versions that knew no numbers get one when they are resumed.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.ledger.entries import Entry
from discreet.words.errors import DiscreetError, PrivacyError

BYTES = 16


class Superseded(DiscreetError):
    """Another process has begun to draw the same release; this draw is none."""


@dataclass(frozen=True, slots=True)
class DrawNumber:
    """The number of one draw, in the hands of the process that makes it; a copy of that process has none."""

    number: str
    process: int = field(default_factory=os.getpid, compare=False)

    @classmethod
    def new(cls) -> DrawNumber:
        """One that nobody can guess."""
        return cls(secrets.token_hex(BYTES))

    def __repr__(self) -> str:
        return f"<DrawNumber {self.kept[:12]}>"

    @property
    def kept(self) -> str:
        """The hash by which the ledger and a staging folder know it before it is published."""
        return hashlib.sha256(self.number.encode("ascii", "backslashreplace")).hexdigest()

    def begins_again(self, charge: Entry, *, stamp: Mapping[str, Any]) -> dict[str, Any]:
        """The line by which the draw of a charge begins again, with this number."""
        return {
            "kind": "draw",
            "dataset": charge.dataset,
            "unit": charge.unit,
            "release": None,  # a table has one line of a kind for each release
            "loss": None,
            "payload": {**stamp, "charge": charge.seq, "draw": self.kept},
        }

    def publishes(self, charge: Entry, files: Mapping[str, str], *, stamp: Mapping[str, Any]) -> dict[str, Any]:
        """The line that publishes this draw."""
        return {
            "kind": "publish",
            "dataset": charge.dataset,
            "unit": charge.unit,
            "release": charge.release,
            "loss": None,
            "payload": {**stamp, "charge": charge.seq, "draw": self.number, "files": dict(files)},
        }

    @classmethod
    def of(cls, entry: Entry, files: Mapping[str, str]) -> DrawNumber:
        """The number that comes with a charge; refuses what is no charge, and what are no hashes of files."""
        found = files.values() if isinstance(files, Mapping) and isinstance(entry, Entry) else ()
        if not found or not all(re.fullmatch("[0-9a-f]{64}", str(digest)) for digest in found):
            raise PrivacyError(
                "What is published is a charge, as `ledger.charge(...)` gave it, with its files.",
                "Each has a name and its SHA-256 in 64 hexadecimal digits.",
                "Compute them with hashlib.sha256(...).hexdigest().",
                about="files",
            )
        return cls("") if entry.draw is None or entry.draw.process != os.getpid() else entry.draw

    def refuse_superseded(self, charge: Entry, resumed: Iterable[Entry]) -> None:
        """Refuse this draw if it is not the one begun last, whatever was drawn."""
        if self.kept != current(charge, resumed):
            raise superseded(charge)


def current(charge: Entry, resumed: Iterable[Entry]) -> str | None:
    """The hash of the number of the draw that was begun last; `resumed` are the lines of kind "draw" of a data set."""
    later = [line.payload["draw"] for line in resumed if line.payload.get("charge") == charge.seq]
    found = later[-1] if later else charge.payload.get("draw")
    return None if found is None else str(found)


def superseded(line: Entry) -> Superseded:
    """The refusal of a draw that is not the one begun last; `line` is of its release."""
    return Superseded(
        f"Another process draws, or drew, release {line.release!r} of {line.dataset!r}; this draw was dropped.",
        "One charge pays for one draw, the one begun last, and nothing more was spent.",
        "Use the files that it publishes; if it ended without any, ask again.",
        about="release",
    )
