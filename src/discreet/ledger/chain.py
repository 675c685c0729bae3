"""The proof that a ledger is whole: every line is replayed from its text and nothing stored is believed.

The chain alone cannot show that its tail was cut off, or that it was rewritten from some line on. For that a verifier
brings hashes that it knows, from releases or from an earlier `ledger show`, and the chain must contain them. Whole
lines tell more than hashes: a ledger of other data is not one that was cut off.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, assert_never

from discreet.ledger.budget import Budget
from discreet.ledger.draws import DrawNumber
from discreet.ledger.entries import GENESIS, Entry, EntryError, Head, Row
from discreet.ledger.periods import Policy
from discreet.words.errors import LedgerError, PrivacyError

if TYPE_CHECKING:
    from discreet.ledger.store import LedgerTransaction

SHOWN = 3
"""Hashes that a verdict lists."""


@dataclass(frozen=True, slots=True)
class ChainVerdict:
    """What verification found.

    Attributes
    ----------
    intact : every line is as sealed, linked and within its budget, and every expected hash is there.
    head : the last good line; `Head(0, ...)` when there is none.
    seq : the first bad line, None where the fault is in no single line.
    fault : what is wrong, in words; empty when intact.
    """

    intact: bool
    head: Head
    seq: int | None = None
    fault: str = ""

    def __bool__(self) -> bool:
        return self.intact

    def __str__(self) -> str:
        if self.intact:
            return f"intact: {self.head.seq} entries, head {self.head.hash}"
        if self.seq is None:
            return f"whole by itself, {self.head.seq} entries, and not the one that was looked for: {self.fault}"
        return f"broken at entry {self.seq}: {self.fault} ({self.head.seq} good entries before)"

    def to_dict(self) -> dict[str, object]:
        """The verdict as plain values, ready for JSON."""
        return {"intact": self.intact, "head": self.head._asdict(), "seq": self.seq, "fault": self.fault}


Known: TypeAlias = str | Head | Entry
"""A line that a verifier knows: by its hash, with its number, or whole."""


def verify(rows: Iterable[Row], *, contains: Collection[Known] = ()) -> ChainVerdict:
    """Replay the whole book in order and stop at the first fault."""
    head, books = Head(0, GENESIS), _Books()
    missing = {known if isinstance(known, str) else known.hash: known for known in contains}
    before = {known.previous for known in missing.values() if isinstance(known, Entry)} - {GENESIS}
    alone = True
    for row in rows:
        try:
            entry = _linked(row, head)
            books.post(entry)
        except EntryError as fault:
            return ChainVerdict(False, head, head.seq + 1, str(fault))
        head = entry.head
        if missing.pop(head.hash, None) is not None or head.hash in before:
            alone = False
    if missing:
        told = _told(missing.values(), head, books.datasets, alone=alone)
        unknown = ", ".join(sorted(missing)[:SHOWN]) + f" and {len(missing) - SHOWN} more" * (len(missing) > SHOWN)
        return ChainVerdict(False, head, None, f"the chain does not contain {unknown}: {told}")
    return ChainVerdict(True, head)


def carry(source: LedgerTransaction, target: LedgerTransaction) -> Head:
    """Write the lines of `source` that `target` does not have yet; it must be empty, or a beginning of it."""
    head = target.head()
    shared = source.at(head.seq) if head.seq else None
    if head.seq and (shared is None or shared.hash != head.hash):
        raise LedgerError(
            f"The ledger that is there has {head.seq} lines, and is no beginning of the one that was to be copied.",
            "A copy never replaces lines. Nothing was written.",
            "Move it away, or name another place.",
        )
    with closing(source.rows(after=head.seq)) as rows:
        for row in rows:
            target.write(Entry.from_row(row))
    with closing(target.rows()) as rows:
        verdict = verify(rows)
    if not verdict:
        raise LedgerError(
            f"The ledger that was to be copied is {verdict}.",
            "Nothing was written.",
            "Go back to a copy that `discreet ledger verify` calls intact.",
        )
    return verdict.head


def _told(missing: Collection[Known], head: Head, datasets: Collection[str], *, alone: bool) -> str:
    """What became of known lines that a whole chain lacks; `alone` where nothing ties it to them."""
    numbers = [known.seq for known in missing if not isinstance(known, str)]
    if len(numbers) < len(missing):
        return "it was cut off or rewritten" + ", or is another ledger" * alone
    within = [number for number in numbers if number <= head.seq]
    theirs = {known.dataset for known in missing if isinstance(known, Entry)}
    if not alone and within:
        return f"it was rewritten from entry {min(within)} or before"
    if not alone:
        return f"it was cut off after entry {head.seq}"
    if not within:
        return "it was cut off, or this is another ledger"
    if theirs and not theirs & {*datasets}:
        return f"this is another ledger, without {', '.join(map(repr, sorted(theirs)))}"
    return "this is another ledger, or was written anew from the first line"


def _linked(row: Row, head: Head) -> Entry:
    if row["seq"] != head.seq + 1:
        raise EntryError(f"it is missing: the next line found is entry {row['seq']}")
    if row["previous"] != head.hash:
        raise EntryError("the link is broken: it does not continue the line before")
    return Entry.from_row(row)


@dataclass(slots=True)
class _Books:
    """All accounts and releases as the lines so far make them."""

    budgets: dict[tuple[str, str], Budget] = field(default_factory=dict)
    datasets: set[str] = field(default_factory=set)
    charges: dict[tuple[str, str | None], Entry] = field(default_factory=dict)
    published: set[int] = field(default_factory=set)
    paid: dict[int, Entry] = field(default_factory=dict)
    draws: dict[int, str] = field(default_factory=dict)

    def post(self, entry: Entry) -> None:
        account, kind = (entry.dataset, entry.unit), entry.kind
        if kind != "budget" and account not in self.budgets:
            raise EntryError(f"{entry.dataset!r} has no budget under {entry.unit}")
        match kind:
            case "budget":
                budget = self._budget(entry)
                self.datasets.add(entry.dataset)
            case "charge":
                budget = self._charge(entry)
            case "draw":
                budget = self._draw(entry)
            case "publish":
                budget = self._publish(entry)
            case _:
                assert_never(kind)
        if entry.spent_after.to_dict() != budget.spent.to_dict():
            raise EntryError(f"it says {entry.spent_after} is spent where the lines add up to {budget.spent}")
        self.budgets[account] = budget

    def _budget(self, entry: Entry) -> Budget:
        if entry.loss is None or entry.release is not None:
            raise EntryError("a budget has a total and no release")
        known = self.budgets.get((entry.dataset, entry.unit))
        if known is None:
            if entry.dataset in self.datasets and not entry.payload.get("second_unit"):
                raise EntryError(f"it opens a second unit for {entry.dataset!r} that was not allowed")
            return Budget(entry.dataset, entry.unit, entry.loss, entry.loss.zero(), _policy(entry))
        if not entry.payload.get("reason"):
            raise EntryError("the budget was changed without a reason")
        try:
            return known.resized(entry.loss, _policy(entry))
        except PrivacyError:
            raise EntryError(f"overspent: the new total {entry.loss} does not cover {known.spent}") from None

    def _charge(self, entry: Entry) -> Budget:
        if entry.loss is None or entry.release is None:
            raise EntryError("a charge has a loss and a release")
        if (entry.dataset, entry.release) in self.charges:
            raise EntryError(f"release {entry.release!r} is charged twice")
        self.charges[entry.dataset, entry.release] = self.paid[entry.seq] = entry
        if "draw" in entry.payload:
            self.draws[entry.seq] = str(entry.payload["draw"])
        try:
            return self.budgets[entry.dataset, entry.unit].spend(entry.loss, release=entry.release, dates=entry.dates)
        except PrivacyError:
            raise EntryError(f"overspent: {entry.loss} does not fit in what is left") from None

    def _draw(self, entry: Entry) -> Budget:
        seq = entry.payload.get("charge")
        charge = self.paid.get(seq) if isinstance(seq, int) else None
        if charge is None or (charge.dataset, charge.unit) != (entry.dataset, entry.unit):
            raise EntryError("it begins a draw again that no charge paid for")
        if charge.seq in self.published:
            raise EntryError(f"it draws release {charge.release!r} again, which is published")
        if entry.loss is not None or entry.release is not None or not entry.payload.get("draw"):
            raise EntryError("a draw that begins again has a number and costs nothing more")
        self.draws[charge.seq] = str(entry.payload["draw"])
        return self.budgets[entry.dataset, entry.unit]

    def _publish(self, entry: Entry) -> Budget:
        charge = self.charges.get((entry.dataset, entry.release))
        if charge is None or charge.seq != entry.payload.get("charge") or charge.unit != entry.unit:
            raise EntryError(f"release {entry.release!r} is published without its charge")
        if charge.seq in self.published:
            raise EntryError(f"release {entry.release!r} is published twice")
        if charge.seq in self.draws and self.draws[charge.seq] != DrawNumber(str(entry.payload.get("draw"))).kept:
            raise EntryError(f"release {entry.release!r} is published with a draw that was not its last")
        if entry.loss is not None or not entry.payload.get("files"):
            raise EntryError("a publication has files and costs nothing more")
        self.published.add(charge.seq)
        return self.budgets[entry.dataset, entry.unit]


def _policy(entry: Entry) -> Policy | None:
    try:
        return Policy.of(entry.payload.get("policy"))
    except (PrivacyError, TypeError, KeyError):
        raise EntryError("its policy for periods cannot be read") from None
