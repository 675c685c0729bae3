"""Anchors: lines of a ledger that are known outside of it, so that a lost, shorter or other ledger is noticed.

An anchor names the ledger (the hash of its first line), the data set, the number of lines and the hash of the last one:
it is that line, with the ledger's name. A charge leaves one wherever it leaves a trace: in the user's notes, in the
output folder of a plan and its bundle, in the database of a desk. Before anything is paid the chain must contain every
anchor of the data set that can be seen. A line is committed first and anchored then, so an anchor never is of a line
that was not written. What is missing can be brought back, looked for in another ledger that is named by hand, or
declared lost (`loss`). Anchors hold what ledgers hold: names, losses and public parameters.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, assert_never

from discreet.archive.findings import RefutedError
from discreet.archive.packing import LEDGER
from discreet.archive.unpacking import opened, text
from discreet.ledger.entries import Entry, EntryError, canonical
from discreet.words.errors import LedgerError

if TYPE_CHECKING:
    from discreet.ledger.entries import Head

ANCHORS = "anchors.jsonl"
"""The file of anchors in the output folder of a plan."""

BUNDLES = "bundle*.zip"
LONGEST_TAIL = 4096

How: TypeAlias = Literal["missing", "shorter", "rewritten", "other"]


class LostLedger(LedgerError):
    """The ledger lacks lines that were seen: it is missing, shorter or another one."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """A line that a ledger had; `ledger` is the hash of that ledger's first line."""

    ledger: str
    line: Entry

    @property
    def dataset(self) -> str:
        return self.line.dataset

    @property
    def seq(self) -> int:
        return self.line.seq

    @property
    def hash(self) -> str:
        return self.line.hash

    @property
    def reference(self) -> dict[str, int | str]:
        """The anchor in short, as a declared loss names it."""
        return {"ledger": self.ledger, "seq": self.seq, "hash": self.hash}

    def __str__(self) -> str:
        return f"entry {self.seq} of ledger {self.ledger[:12]}, for {self.dataset!r}"

    def written(self) -> str:
        """One line of a file of anchors."""
        return canonical({"ledger": self.ledger, "line": self.line.to_row()})

    @classmethod
    def read(cls, written: str) -> Anchor:
        """The anchor that a text holds; an `EntryError` where its line is not as sealed."""
        found = json.loads(written)
        if not isinstance(found, dict) or not (isinstance(found.get("ledger"), str) and "line" in found):
            raise EntryError("it names no ledger, or no line")
        return cls(found["ledger"], Entry.from_row(found["line"]))


class Chain(Protocol):
    """The lines of a ledger, as they are looked at for anchors."""

    def at(self, seq: int) -> Entry | None:
        """The line of this number."""

    def head(self) -> Head:
        """The last line; its number is 0 where there is none."""

    def entries(self, *, kind: str, dataset: str) -> list[Entry]:
        """The lines of a kind about a data set."""


class Place(Protocol):
    """Where charges leave anchors; its text names it in a refusal."""

    def anchors(self) -> Sequence[Anchor]:
        """Every anchor that is here."""

    def last(self) -> Sequence[Anchor]:
        """The last one of each ledger and data set."""

    def keep(self, anchors: Sequence[Anchor]) -> None:
        """Add those that are not here."""


def latest(anchors: Iterable[Anchor], known: Iterable[Anchor] = ()) -> list[Anchor]:
    """The last anchor of each ledger and data set; `known` are such."""
    last = {(anchor.ledger, anchor.dataset): anchor for anchor in known}
    for anchor in anchors:
        key = (anchor.ledger, anchor.dataset)
        if key not in last or last[key].seq < anchor.seq:
            last[key] = anchor
    return [*last.values()]


def furthest(lines: Sequence[bytes]) -> list[bytes]:
    """Of written anchors the last of each ledger and data set, and each that does not say which it is.

    Those before the last are in its chain, so they are not read when something is paid: their text is looked at alone.
    The last of the file is, whatever number it shows.
    """
    far: dict[bytes, tuple[int, bytes]] = {}
    odd = [*lines[-1:]]
    for line in lines:
        # The keys are sorted: the ledger and the data set stand before the first hash, the number behind all else.
        account, number = line[: line.find(b',"hash":"')], line[line.rfind(b',"seq":') + 7 :]
        number = number[: number.find(b",")]
        if not (number.isdigit() and account.startswith(b'{"ledger":"')):
            odd.append(line)
        elif (seq := int(number)) >= far.get(account, (0, b""))[0]:
            far[account] = seq, line
    return [*dict.fromkeys([*odd, *(line for _, line in far.values())])]


@dataclass(slots=True)
class AnchorFile:
    """A file with one anchor in each line."""

    path: Path
    needed: bool = True
    _size: int = field(default=0, repr=False)
    _lines: dict[bytes, None] = field(default_factory=dict, repr=False)
    _last: list[Anchor] = field(default_factory=list, repr=False)
    _kept: set[str] = field(default_factory=set, repr=False)

    def __str__(self) -> str:
        return repr(str(self.path))

    def anchors(self) -> Sequence[Anchor]:
        self._look()
        return [self._read(line) for line in self._lines]

    def last(self) -> Sequence[Anchor]:
        self._look()
        return self._last

    def _look(self) -> None:
        """Read what was added since the last look."""
        try:
            with self.path.open("rb") as file:
                if os.fstat(file.fileno()).st_size < self._size:
                    self._forget()
                file.seek(self._size)
                added = file.read()
        except (FileNotFoundError, NotADirectoryError):
            self._forget()
            return
        except OSError as error:
            if self.needed or os.access(self.path.parent, os.X_OK):
                raise self.unread(error.strerror) from None
            self._forget()  # a home that is closed to this user has no note of theirs
            return
        whole = added[: added.rfind(b"\n") + 1]  # what a crash left of a line that was being written is none
        if b"\0" in added[len(whole) :]:
            raise self.unread("it holds zeros, as files do whose content a crash took")
        lines = [line for line in whole.split(b"\n") if line.strip()]
        self._last = latest(map(self._read, furthest(lines)), self._last)
        self._size += len(whole)
        self._lines |= dict.fromkeys(lines)

    def _forget(self) -> None:
        self._size, self._lines, self._last, self._kept = 0, {}, [], set()

    def _read(self, line: bytes) -> Anchor:
        try:
            return Anchor.read(line.decode())
        except (EntryError, ValueError, TypeError, AttributeError) as fault:
            raise self.unread(str(fault)) from None

    def keep(self, anchors: Sequence[Anchor]) -> None:
        """Append anchors. Where the file is not needed and cannot be written, a lost ledger is not noticed by it."""
        unseen = [anchor for anchor in anchors if anchor.hash not in self._kept]
        new = {line: anchor for anchor in unseen if (line := anchor.written().encode()) not in self._lines}
        added = b"".join(line + b"\n" for line in new)
        try:
            end = self._append(added)
        except OSError:
            if self.needed:
                raise
            return
        if end == self._size + len(added):  # nobody else has added any
            self._size = end
            self._lines |= dict.fromkeys(new)
            self._last = latest(new.values(), self._last)
            self._kept |= {anchor.hash for anchor in anchors}

    def _append(self, lines: bytes) -> int:
        """Write at the end of the file, at once; where it ends then."""
        how, rights = os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666 if self.needed else 0o600
        try:
            handle = os.open(self.path, how, rights)
        except FileNotFoundError:
            if self.needed:
                raise
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self.path, how, rights)
        try:
            size = os.fstat(handle).st_size
            if size and os.pread(handle, 1, size - 1) != b"\n":
                self._drop_tail(handle, size)
            os.write(handle, lines)
            return os.lseek(handle, 0, os.SEEK_CUR)
        finally:
            os.close(handle)

    @staticmethod
    def _drop_tail(handle: int, size: int) -> None:
        """Take away what a crash left of a line, unless somebody is writing it: then it is whole in an instant."""
        start = max(0, size - LONGEST_TAIL * 256)
        tail = os.pread(handle, size - start, start)
        if os.fstat(handle).st_size == size:
            os.ftruncate(handle, start + tail.rfind(b"\n") + 1)

    def unread(self, why: str | None) -> LedgerError:
        """The refusal of a place of anchors that cannot be read."""
        return LedgerError(
            f"The anchors of the ledger in {self} cannot be read: {why}.",
            "What the ledger had is not known, so nothing was spent.",
            "Bring the file back, or move it away if you are sure that the ledger is whole.",
        )


@dataclass(frozen=True, slots=True)
class Bundle:
    """The lines of a bundle; bundles of earlier versions do not name their ledger and have no anchors."""

    path: Path

    def __str__(self) -> str:
        return repr(str(self.path))

    def anchors(self) -> Sequence[Anchor]:
        try:
            with opened(self.path) as packed:
                book = json.loads(text(packed, LEDGER))
            ledger = book.get("ledger")
            return [] if ledger is None else [Anchor(str(ledger), Entry.from_row(row)) for row in book["lines"]]
        except EntryError as fault:
            raise LedgerError(
                f"The bundle {self} is damaged: {fault}.", "Nothing was spent.", "Bring it back."
            ) from None
        except (LookupError, ValueError, TypeError, AttributeError, zipfile.BadZipFile, zlib.error, RefutedError):
            return []  # no bundle of ours, which somebody put here

    def last(self) -> Sequence[Anchor]:
        return latest(self.anchors())

    def keep(self, anchors: Sequence[Anchor]) -> None:
        """A bundle is written whole, with the lines of its plan."""


@dataclass(slots=True)
class OutputFolder:
    """The output folder of a plan: its file of anchors, and its bundles."""

    path: Path
    _file: AnchorFile = field(init=False, repr=False)
    _packed: dict[tuple[str, int, int], list[Anchor]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._file = AnchorFile(self.path / ANCHORS)

    def __str__(self) -> str:
        return repr(str(self.path))

    def anchors(self) -> Sequence[Anchor]:
        return [*self._file.anchors(), *self._in_bundles()]

    def last(self) -> Sequence[Anchor]:
        return latest(self._in_bundles(), self._file.last())

    def _in_bundles(self) -> list[Anchor]:
        try:
            names = [name for name in sorted(os.listdir(self.path)) if fnmatch(name, BUNDLES)]  # noqa: PTH208 (quick)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise self._file.unread(error.strerror) from None
        return [anchor for name in names for anchor in self._in_bundle(self.path / name)]

    def _in_bundle(self, bundle: Path) -> list[Anchor]:
        try:
            state = bundle.stat()
            key = (bundle.name, state.st_mtime_ns, state.st_size)
            if key not in self._packed:
                self._packed[key] = [*Bundle(bundle).anchors()]
        except FileNotFoundError:  # put aside meanwhile
            return []
        return self._packed[key]

    def keep(self, anchors: Sequence[Anchor]) -> None:
        """Append them to the file; before the folder is made, nothing was paid into it."""
        if self.path.is_dir():
            self._file.keep(anchors)


@dataclass(frozen=True, slots=True)
class LedgerCopy:
    """A copy of a ledger: all of its lines are known."""

    where: str

    def __str__(self) -> str:
        return repr(self.where)

    def anchors(self) -> Sequence[Anchor]:
        from discreet.ledger.book import Ledger

        with Ledger.open(self.where, read_only=True) as book:
            lines = book.entries()
        return [Anchor(lines[0].hash, line) for line in lines]

    def last(self) -> Sequence[Anchor]:
        return latest(self.anchors())

    def keep(self, anchors: Sequence[Anchor]) -> None:
        """A copy stays as it is."""


def places_in(where: str) -> list[Place]:
    """The places that a path names: output folders of plans in a folder, a bundle, or a copy of a ledger."""
    path = Path(where)
    if "://" not in where and path.is_dir():
        traces = (*path.rglob(ANCHORS), *path.rglob(BUNDLES))
        return [OutputFolder(folder) for folder in sorted({trace.parent for trace in traces})]
    return [Bundle(path) if zipfile.is_zipfile(path) else LedgerCopy(where)]


@dataclass(frozen=True, slots=True)
class Lacking:
    """An anchor that a chain lacks, where it was seen, and what the chain is instead."""

    anchor: Anchor
    place: Place
    how: How
    lines: int

    def __str__(self) -> str:
        seen = f"{self.anchor} was seen in {self.place}"
        match self.how:
            case "missing":
                return f"it is missing, or empty, and {seen}"
            case "shorter":
                return f"it ends with entry {self.lines}, and {seen}"
            case "rewritten":
                return f"it has another entry {self.anchor.seq}, and {seen}"
            case "other":
                return f"it is another ledger, and {seen}"
            case _:
                assert_never(self.how)


def seen(places: Iterable[Place]) -> list[tuple[Place, Anchor]]:
    """The last anchors in each place. Look here before a transaction is begun."""
    return [(place, anchor) for place in places for anchor in place.last()]


def missing(page: Chain, anchors: Iterable[tuple[Place, Anchor]]) -> list[Lacking]:
    """The anchors that a chain neither contains nor declares lost."""
    lacking: list[Lacking] = []
    lines: dict[int, Entry | None] = {}
    for place, anchor in anchors:
        if anchor.seq not in lines:
            lines[anchor.seq] = page.at(anchor.seq)
        there = lines[anchor.seq]
        is_there = there is not None and there.hash == anchor.hash
        if not (is_there or is_declared(page, anchor)):
            lacking.append(Lacking(anchor, place, _how(page, there, anchor), page.head().seq))
    return lacking


def _how(page: Chain, there: Entry | None, anchor: Anchor) -> How:
    first = page.at(1)
    if first is None:
        return "missing"
    if first.hash != anchor.ledger:
        return "other"
    return "shorter" if there is None else "rewritten"


def losses(page: Chain, dataset: str) -> list[Entry]:
    """The lines by which losses of a data set were declared."""
    return [line for line in page.entries(kind="budget", dataset=dataset) if line.payload.get("lost")]


def is_declared(page: Chain, anchor: Anchor) -> bool:
    """Whether a loss was declared that covers an anchor: of its ledger, as far, and not with another line there."""
    for line in losses(page, anchor.dataset):
        told = [each for each in line.payload["lost"] if each["ledger"] == anchor.ledger]
        same = {each["hash"] for each in told if each["seq"] == anchor.seq}
        if anchor.hash in same or (not same and any(each["seq"] > anchor.seq for each in told)):
            return True
    return False


def lost(where: str, lacking: Sequence[Lacking]) -> LostLedger:
    """The refusal of a ledger that lacks anchors, with the three ways out."""
    also = f" ({len(lacking) - 1} more are missing)" if len(lacking) > 1 else ""
    return LostLedger(
        f"Ledger {where} is not the one that releases were paid from: {lacking[0]}{also}.",
        "What was spent is not known from it, and nothing was spent.",
        "Bring that ledger back (`discreet ledger restore COPY LEDGER`), name the ledger that has this entry, or "
        "declare the loss with `discreet ledger declare-loss LEDGER PLACE... --reason WHY --confirmed-by NAME`, which "
        "writes what is known into a new chain as spent.",
        about="ledger",
    )


def refuse_absent(where: str, label: str) -> None:
    """Refuse to make a ledger where one was; the folder of a disk that is not mounted looks like this, too."""
    _refuse_new(label, seen(note_of(where)))


def refuse_elsewhere(where: str, places: Iterable[Place], datasets: Collection[str] | None) -> None:
    """Refuse a new ledger for data sets whose releases were paid from another one."""
    _refuse_new(repr(where), [each for each in seen(places) if datasets is None or each[1].dataset in datasets])


def _refuse_new(label: str, known: Sequence[tuple[Place, Anchor]]) -> None:
    if known:
        raise lost(label, [Lacking(anchor, place, "missing", 0) for place, anchor in known])


def notes_of(where: str | None) -> Path | None:
    """This user's notes about a ledger, without an ending; None for one in memory, or a user without a home."""
    if where is None:
        return None
    name = hashlib.sha256(f"data of\0{where}".encode()).hexdigest()
    try:
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    except RuntimeError:
        return None
    return state / "discreet" / name


def note_of(where: str | None) -> tuple[AnchorFile, ...]:
    """This user's note of anchors of a ledger, where there can be one."""
    path = notes_of(where)
    return () if path is None else (AnchorFile(path.with_name(f"{path.name}.{ANCHORS}"), needed=False),)


def forget_simulated(ledger: Path) -> None:
    """Forget a ledger of simulated data, in whose place a demo begins again."""
    for note in note_of(str(ledger.resolve())):
        with suppress(OSError):
            note.path.unlink(missing_ok=True)
