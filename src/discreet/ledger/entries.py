"""One line of the ledger, and the SHA-256 that seals it to the line before.

This module has no database and no rule about budgets. It has the content of a line, its text, and whether the text is
the one that was sealed. The hash is taken over canonical JSON (sorted keys, no spaces, ASCII) of every column but
itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

from discreet.data.schema import Digest
from discreet.ledger.periods import Dates
from discreet.privacy.losses import Loss, from_dict
from discreet.words.cases import case_of
from discreet.words.errors import LedgerError, PrivacyError

if TYPE_CHECKING:
    from discreet.ledger.draws import DrawNumber

Kind: TypeAlias = Literal["budget", "charge", "draw", "publish"]
Row: TypeAlias = dict[str, Any]

_JSON = ("loss", "spent_after", "payload")

GENESIS = hashlib.sha256(b"discreet ledger, format 1").hexdigest()


class EntryError(LedgerError):
    """A line is not what was sealed, or breaks the book's rules; says what is wrong with it, not where."""

    subject = "entry"


class Head(NamedTuple):
    """The last line of a chain. Anyone who keeps it can tell later whether the chain was cut off or rewritten."""

    seq: int
    hash: str


@dataclass(frozen=True, slots=True, repr=False)
class Entry:
    """One line.

    Attributes
    ----------
    seq : 1, 2, 3, ... without gaps.
    kind : "budget" opens or changes a budget, "charge" spends from it, "draw" begins the draw of a charge again,
        "publish" fixes what a charge paid for.
    dataset, unit : whose budget; `unit` is the key of the unit of privacy.
    release : the release's name, unique in its data set; None for a budget, and for a draw that begins again.
    loss : the total of a budget, the price of a charge, else None.
    spent_after : all that this budget has paid for, this line included; the last line has the total.
    payload : who, when, which version, public parameters, hashes of files.
    previous, hash : the seal of the line before, and of this one.
    draw : of a charge, in the hands of who made or resumed it: the number of the draw that it pays for. No line has it.
    """

    seq: int
    kind: Kind
    dataset: str
    unit: str
    release: str | None
    loss: Loss | None
    spent_after: Loss
    payload: Mapping[str, Any]
    previous: str
    hash: str
    draw: DrawNumber | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        what = self.dataset if self.release is None else f"{self.release} of {self.dataset}"
        return f"<Entry {self.seq}: {self.kind} {what!r}{'' if self.loss is None else f', {self.loss}'}>"

    @property
    def head(self) -> Head:
        """The entry's number and hash, to write down."""
        return Head(self.seq, self.hash)

    @property
    def reference(self) -> dict[str, int | str]:
        """The pointer to its line that a release stores: `{"seq": ..., "hash": ...}`."""
        return self.head._asdict()

    def pays_for(self, *, unit: str, loss: Loss, details: Mapping[str, Any]) -> bool:
        """Whether this charge is for exactly this request; the same request is then not a second release."""
        mine, paid = self.to_dict(), self.payload.get("details") or {}
        asked = asked_then(paid, details)
        return isinstance(loss, Loss) and canonical([unit, loss.to_dict(), asked]) == canonical(
            [self.unit, mine["loss"], paid]
        )

    @property
    def pays(self) -> bool:
        """Whether it is the charge of a release."""
        return case_of(self.kind, {"budget": False, "charge": True, "draw": False, "publish": False})

    @property
    def dates(self) -> Dates:
        """When a charge is, where it says so."""
        return Dates.of(self.payload.get("details") if self.pays else None)

    def to_row(self) -> dict[str, Any]:
        """The columns as they are stored: exact losses and the payload as canonical text."""
        return {**_content(self), "hash": self.hash}

    def to_dict(self) -> dict[str, Any]:
        """A form for people and programs; losses and payload are objects."""
        row = self.to_row()
        return row | {name: json.loads(row[name]) for name in _JSON if row[name] is not None}

    @classmethod
    def after(cls, head: Head, **fields: Any) -> Entry:
        """Seal a new line onto the chain that ends in `head`."""
        draft = cls(seq=head.seq + 1, previous=head.hash, hash="", **fields)
        return cls(seq=draft.seq, previous=draft.previous, hash=seal(_content(draft)), **fields)

    @classmethod
    def from_row(cls, row: Row) -> Entry:
        """Read a stored line; an `EntryError` where its text is not the text that was sealed."""
        try:
            sealed = seal({name: value for name, value in row.items() if name != "hash"})
        except (TypeError, ValueError):
            raise EntryError("a column holds a value of the wrong type") from None
        if sealed != row["hash"]:
            raise EntryError("the hash does not match the content: the line was edited")
        if row["kind"] not in get_args(Kind):
            raise EntryError(f"kind {row['kind']!r} is unknown")
        try:
            parsed = row | {name: json.loads(row[name]) for name in _JSON if row[name] is not None}
            for name in ("loss", "spent_after"):
                parsed[name] = None if parsed[name] is None else from_dict(parsed[name])
            entry = cls(**parsed)
            is_canonical = entry.to_row() == row
        except (PrivacyError, TypeError, ValueError, KeyError, AttributeError):
            is_canonical = False
        if not is_canonical:
            raise EntryError("a loss or the payload is not canonical text")
        return entry


LATER = frozenset({"schema", "periods", "basis"})
"""Details that lines of earlier versions do not have."""


REHEARSED = {"private": False, "why": "the noise was seeded"}
"""What the details of a charge say where the noise was seeded."""


def is_rehearsed(charge: Entry) -> bool:
    """Whether a charge says that its noise was seeded, so that it promises nothing."""
    details = charge.payload.get("details")
    return isinstance(details, Mapping) and REHEARSED.items() <= details.items()


def asked_then(paid: Mapping[str, Any], details: Mapping[str, Any]) -> dict[str, Any]:
    """The details of a request as the version asked for them that wrote the line which `paid`."""
    asked = {key: value for key, value in details.items() if key in paid or key not in LATER}
    digest = asked.get("schema")
    if isinstance(digest, Digest) and digest.was(paid["schema"]):
        asked["schema"] = paid["schema"]
    return asked


def canonical(value: object) -> str:
    """The one text of a JSON value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def seal(content: Row) -> str:
    """SHA-256 over the canonical text of every column but the hash."""
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def _content(entry: Entry) -> dict[str, Any]:
    return {
        "seq": entry.seq,
        "kind": entry.kind,
        "dataset": entry.dataset,
        "unit": entry.unit,
        "release": entry.release,
        "loss": None if entry.loss is None else canonical(entry.loss.to_dict()),
        "spent_after": canonical(entry.spent_after.to_dict()),
        "payload": canonical(dict(entry.payload)),
        "previous": entry.previous,
    }
