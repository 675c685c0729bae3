"""Whether the data of a plan stay the same: while a run reads them, and until an interrupted run is resumed.

Files are looked at before a run reads and again before it pays: what was written meanwhile is found, and nothing is
spent. Tables of servers are copied as at one moment, and need no second look.

A run that is killed between two releases leaves a note of its data's content, in a folder that only this user can open
(XDG_STATE_HOME). The run that resumes it compares. The note holds hashes of whole tables. Somebody who knows all rows
but one could use them to try out the last row, so the note is as confidential as the data. It is in no ledger, release,
report or bundle, and it is deleted when the last release of the plan is published.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from discreet.data.databases import fingerprints, is_address, is_sqlite
from discreet.data.stamps import Stamp, stamps_of
from discreet.plan.file import PlanFile, PlanSource
from discreet.words.faults import Fault, Place

CHANGED = (
    "the data are not those that an interrupted run of this plan read, and releases of it are paid for. Releases of "
    "one plan are about the same rows. Bring the data back as they were, or run the plan with --changed-data: later "
    "releases are then about the data as they are now, and nothing is paid for twice."
)


@dataclass(frozen=True, slots=True)
class DataFiles:
    """The files of a plan's data as they were found, by the key of the plan that names them."""

    file: PlanFile
    stamps: dict[Place, dict[Path, Stamp]]

    @classmethod
    def of(cls, file: PlanFile, sources: list[PlanSource]) -> DataFiles:
        """Look at the files of some sources; nothing is opened."""
        return cls(file, {place: stamps_of(path) for source in sources for place, path in _places(source)})

    def refuse_changes(self) -> None:
        """Refuse data that were written since."""
        again = ((place, stamps_of(path)) for source in self.file.sources for place, path in _places(source))
        words = (
            "it was written to while it was read. A release is about one moment. Run the plan again when it is whole."
        )
        self.file.document.refuse(
            [Fault(place, words) for place, now in again if place in self.stamps and self.stamps[place] != now]
        )

    def held(self) -> dict[str, str]:
        """The data's content: a hash of each key's files, and of each table of a server that was read."""
        if self.file.plan.engine.is_spark:  # files of a cluster are too long to be read here again
            return {f"times of {'/'.join(map(str, place))}": _times(found) for place, found in self.stamps.items()}
        return {"/".join(map(str, place)): _digest(found) for place, found in self.stamps.items()} | fingerprints()


@dataclass(frozen=True, slots=True)
class EarlierData:
    """The data's content when a plan was first paid for."""

    path: Path

    @classmethod
    def of(cls, file: PlanFile) -> EarlierData:
        """The note of a plan, which need not be there."""
        state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
        ledger = file.ledger if "://" in file.ledger else Path(file.ledger).resolve()
        name = hashlib.sha256(f"{file.document.path.resolve()}\0{ledger}".encode()).hexdigest()
        return cls(Path(state).expanduser() / "discreet" / f"{name}.json")

    def differs(self, held: dict[str, str]) -> bool:
        """Whether something in the note has changed since; data that cannot be read do not count."""
        try:
            noted = json.loads(self.path.read_text(encoding="utf-8"))
            return any(noted.get(key, digest) != digest for key, digest in held.items())
        except (OSError, ValueError, AttributeError):
            return False

    def write(self, held: dict[str, str]) -> None:
        """Note it for this user alone. If that is not possible, a resumed run cannot compare."""
        with suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new = self.path.with_suffix(".new")
            new.unlink(missing_ok=True)
            new.touch(mode=0o600, exist_ok=False)
            new.write_text(json.dumps(held), encoding="utf-8")
            new.replace(self.path)

    def drop(self) -> None:
        """All releases are published; nothing is left to compare."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)


def _places(source: PlanSource) -> Iterator[tuple[Place, Path]]:
    """The keys of [data] that name files which are read where they are; tables of SQLite are copied."""
    data = source.tables.data
    for key, text in (("source", data.source), ("workplaces", data.workplaces), ("workers", data.workers)):
        if text is not None and not is_address(text) and not is_sqlite(Path(text.partition("::")[0])):
            yield source.place("data", key), source.path(text)


def _times(files: dict[Path, Stamp]) -> str:
    """One hash of sizes and times."""
    return hashlib.sha256(repr(sorted(stamp[2:4] for stamp in files.values())).encode()).hexdigest()


def _digest(files: dict[Path, Stamp]) -> str:
    """One hash of the contents, wherever the files lie and whenever they were copied there."""
    whole = hashlib.sha256()
    for path in sorted(files):
        with suppress(OSError), path.open("rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()
