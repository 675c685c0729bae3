"""The ledger: budgets are opened once, charges are refused before anything is written, releases are fixed for good.

A charge is on disk before `charge` returns; only then may noise be drawn. `publication` puts the steps in order.
Details and reasons are stored in plain text and shown to auditors: give public things only, never a value or a row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from discreet.ledger import anchors, chain
from discreet.ledger.anchors import Anchor, Lacking, Place
from discreet.ledger.budget import Budget, amounts
from discreet.ledger.draws import DrawNumber
from discreet.ledger.entries import Entry, Head, Row, canonical, is_rehearsed
from discreet.ledger.loss import declare
from discreet.ledger.openings import OTHER_UNIT, no_budget, second_opening
from discreet.ledger.people import program, second_person, user
from discreet.ledger.periods import Dates, Policy
from discreet.privacy.columns import concerns_columns, refuse_conflict
from discreet.privacy.losses import Loss
from discreet.privacy.units import Unit
from discreet.words.arguments import of_kinds
from discreet.words.errors import LedgerError, NoLedger, PrivacyError
from discreet.words.faults import Argument

if TYPE_CHECKING:
    from discreet.ledger.store import LedgerTransaction, Store


class Ledger:
    """Who spent what on which data, and what remains. Open it with `Ledger.open` or `Ledger.in_memory`.

    Parameters
    ----------
    store : the table that holds the lines; `open` and `in_memory` make it.
    places : where charges leave anchors beside this user's note, and those of lost lines are seen.

    Examples
    --------
    >>> from discreet import Pure, Workers
    >>> ledger = Ledger.in_memory()
    >>> print(ledger.open_budget(dataset="jobs", unit=Workers(), total=Pure(2)).total)
    epsilon=2
    """

    def __init__(self, store: Store, places: Sequence[Place] = ()) -> None:
        if not hasattr(store, "reading"):
            asked = f"Ledger(...) was given a {type(store).__name__}, which is not the store of a ledger."
            remedy = "Use `Ledger.open(path)`, or `Ledger.in_memory()` for a trial."
            raise LedgerError(asked, "`open` makes that store from a path or an address.", remedy)
        if not (isinstance(places, tuple | list) and all(hasattr(place, "keep") for place in places)):
            asked = f"places={places!r:.60} is no list of places for anchors."
            remedy = "Leave it out, or give for example [OutputFolder(path)]."
            raise LedgerError(asked, "Charges leave anchors there.", remedy, about="places")
        self._store = store
        self.places = (*anchors.note_of(store.place), *places)

    @classmethod
    def open(cls, ledger: str | Path, *, read_only: bool = False, places: Sequence[Place] = ()) -> Ledger:
        """The ledger at a path, a `sqlite:///` or a `postgresql://` address; made when missing, unless `read_only`.

        Where this user has seen one it is not made again. Charges leave anchors in this user's note, and in `places`.
        """
        from discreet.ledger.store import Store

        return cls(Store(ledger, read_only=read_only, absent=anchors.refuse_absent), places)

    @classmethod
    def found(
        cls, ledger: str, *, places: Sequence[Place] = (), datasets: Collection[str] | None = None
    ) -> Ledger | None:
        """The ledger, to be read; None where there is none yet, neither here nor by what `places` have of `datasets`.

        One that lacks lines of these data sets, or of any, is refused: what it says is not what was spent.
        """
        try:
            book = cls.open(ledger, read_only=True, places=places)
        except NoLedger:
            from discreet.ledger.store import is_absent

            if "://" not in ledger and not is_absent(Path(ledger)):
                raise
            anchors.refuse_elsewhere(ledger, places, datasets)
            return None
        try:
            for dataset in [None] if datasets is None else datasets:
                book.refuse_lost(dataset)
        except BaseException:
            book.close()
            raise
        return book

    @classmethod
    def in_memory(cls) -> Ledger:
        """A ledger that is gone when the process ends: for trials, never for a release."""
        from discreet.ledger.store import Store

        return cls(Store(None))

    def close(self) -> None:
        """Close the ledger's file or connection."""
        self._store.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self._store.label})"

    @property
    def where(self) -> str | None:
        """The place of the ledger, without a password; None in memory."""
        return self._store.place

    @of_kinds
    def open_budget(
        self,
        *,
        dataset: str,
        unit: Unit,
        total: Loss,
        policy: Policy | None = None,
        allow_second_unit: bool = False,
        allow_second_opening: bool = False,
        origin: str | None = None,
        by: str | None = None,
    ) -> Budget:
        """Set what `dataset` may reveal in total, and with `policy` about each period.

        Asking again for the same changes nothing; without a policy, the one that is there stays. `origin` stands for
        the files that are read: under a second name they are refused, and so is a name in another spelling. With
        `allow_second_opening` they are not, and the line says so.
        """
        named(dataset, "dataset")
        if not total:
            nothing = f"A budget of {amounts(total)} pays for nothing."
            raise PrivacyError(nothing, "It must be above 0.", "Give a positive total.", about="total")
        with self._spending(dataset) as page:
            known = self._account(page, dataset, unit.key)
            if known is not None:
                return known.confirmed(total, policy)
            opened = Budget.opened(dataset, unit.key, total, policy)
            doubts = second_opening(dataset, origin, page.entries(kind="budget"))
            if doubts and not allow_second_opening:
                raise PrivacyError(*doubts)
            other = page.last(kind="budget", dataset=dataset)
            if other is not None and not allow_second_unit:
                raise PrivacyError(
                    f"A budget under {unit.key} was asked for {dataset!r}, which has one under {other.unit}.",
                    "Losses under different units or alphas do not add up, so neither total would bound what the "
                    "data give away.",
                    OTHER_UNIT,
                    about="unit",
                )
            return self._set_budget(
                page,
                opened,
                protects=str(unit),
                by=by,
                second_unit=other is not None,
                **({"second_opening": True} if allow_second_opening else {}),
                **({} if origin is None else {"origin": origin}),
            )

    @of_kinds
    def change_budget(
        self,
        *,
        dataset: str,
        reason: str,
        total: Loss | None = None,
        policy: Policy | None = None,
        unit: Unit | str | None = None,
        by: str | None = None,
        confirmed_by: str | None = None,
    ) -> Budget:
        """Raise or lower an open budget or its amount for each period, never below what is spent.

        Reason and people stay in the ledger. Two people raise a budget, `by` and `confirmed_by`; one may lower it.
        `unit`, or its key, may be left out where the data set has one budget.
        """
        if not reason.strip():
            unsaid = f"The budget of {dataset!r} cannot change without a reason."
            raise PrivacyError(unsaid, remedy="Say who decided and why.", about="reason")
        with self._spending(dataset) as page:
            known = self._only_account(page, dataset) if unit is None else self._open_account(page, dataset, unit)
            changed, first = known.resized(known.total if total is None else total, policy), by or user()
            facts = {"reason": reason}
            looser = policy is not None and known.policy is not None and policy.limit > known.policy.limit
            if looser or not changed.total <= known.total:
                facts["confirmed_by"] = named(second_person(first, confirmed_by, dataset), "confirmed_by")
            opened = page.last(kind="budget", dataset=dataset, unit=known.unit)
            assert opened is not None, known
            return self._set_budget(page, changed, protects=opened.payload["protects"], by=first, **facts)

    def charge(
        self,
        *,
        dataset: str,
        unit: Unit,
        release: str,
        loss: Loss,
        details: Mapping[str, Any] | None = None,
        by: str | None = None,
    ) -> Entry:
        """Spend `loss` for `release`, durably, or refuse with nothing written. Draw noise only after this returns.

        The same release with the same loss and details, not yet published, gives the line it already has: a run that
        was interrupted resumes without paying twice. The line comes with the number of its draw (`Entry.draw`), each
        time a new one: only the draw that was begun last can be published.
        """
        named(release, "release")
        details, number = _plain({} if details is None else details, release), DrawNumber.new()
        with self._spending(dataset) as page:
            budget = self._open_account(page, dataset, unit)
            earlier = page.last(kind="charge", dataset=dataset, release=release)
            if earlier is None:
                _compare(page, dataset, details)
                charge = page.append(
                    kind="charge",
                    dataset=dataset,
                    unit=unit.key,
                    release=release,
                    loss=loss,
                    spent_after=budget.spend(loss, release=release, dates=Dates.of(details)).spent,
                    payload=_stamp(by) | {"details": details, "draw": number.kept},
                )
                return replace(charge, draw=number)
            if not earlier.pays_for(unit=unit.key, loss=loss, details=details):
                raise PrivacyError(
                    f"Release {release!r} of {dataset!r} was charged as entry {earlier.seq} with another loss, "
                    "unit or details.",
                    "A name stands for one request.",
                    "Ask as before to resume it, or choose another name.",
                    about="release",
                )
            if page.last(kind="publish", dataset=dataset, release=release) is not None:
                raise PrivacyError(
                    f"Release {release!r} of {dataset!r} is already released (entry {earlier.seq}).",
                    "Drawing it again would change what was released and reveal more than was paid for.",
                    "Read its files, or choose another name.",
                    about="release",
                )
            if any(line.seq > earlier.seq for line in anchors.losses(page, dataset)):
                raise PrivacyError(
                    f"Release {release!r} of {dataset!r} was charged as entry {earlier.seq}, and lines after that are "
                    "declared lost.",
                    "It may have been drawn and published, and one charge pays for one draw.",
                    "Look for its files, or pay for a release under another name.",
                    about="release",
                )
            page.append(spent_after=budget.spent, **number.begins_again(earlier, stamp=_stamp(by)))
            return replace(earlier, draw=number)

    def compare(self, dataset: str, details: Mapping[str, Any]) -> None:
        """Refuse what `charge` would for its columns, before any row is read for it."""
        with self._store.reading() as page:
            _compare(page, dataset, details)

    def publish(self, entry: Entry, *, files: Mapping[str, str], by: str | None = None) -> Entry:
        """Fix the files, name to SHA-256, that `entry` paid for. Do this before anyone can see them.

        The entry is the one that `charge` gave, with its draw number. If that is not the current number any more, the
        files are not looked at. The same call may be repeated where its answer was lost.
        """
        number = DrawNumber.of(entry, files)
        with self._spending(entry.dataset) as page:
            where = {"dataset": entry.dataset, "release": str(entry.release)}
            charge = page.last(kind="charge", **where)
            if charge is None or charge.hash != entry.hash:
                raise PrivacyError(
                    f"Entry {entry.seq} is not a charge of this ledger.",
                    "Only what was charged here can be published.",
                    "Publish the entry that `ledger.charge(...)` returned.",
                    about="entry",
                )
            number.refuse_superseded(charge, page.entries(kind="draw", dataset=entry.dataset, unit=entry.unit))
            earlier = page.last(kind="publish", **where)
            if earlier is None:
                spent = self._spent(page, entry.dataset, entry.unit)
                return page.append(spent_after=spent, **number.publishes(charge, files, stamp=_stamp(by)))
            if earlier.payload["files"] != dict(files):
                raise PrivacyError(
                    f"Release {entry.release!r} of {entry.dataset!r} is already released with other files (entry "
                    f"{earlier.seq}).",
                    "One charge pays for one draw.",
                    "Discard these files and keep the released ones.",
                    about="files",
                )
            return earlier

    def budget(self, dataset: str, unit: Unit) -> Budget:
        """Total, spent and remaining of one data set under one unit; refused where lines of it are lost."""
        seen = self._seen(dataset)
        with self._store.reading() as page:
            self._refuse_lost(page, seen)
            return self._open_account(page, dataset, unit)

    def remaining(self, dataset: str, unit: Unit) -> Loss:
        """What remains of a data set's budget under a unit."""
        return self.budget(dataset, unit).remaining

    def spent(self, dataset: str, unit: Unit) -> Loss:
        """The cost of the releases of a data set under a unit."""
        return self.budget(dataset, unit).spent

    def lost(self, dataset: str | None = None) -> list[Lacking]:
        """The anchors of a data set, or of all, that the chain lacks: what was spent is then not known from it."""
        seen = self._seen(dataset)
        with self._store.reading() as page:
            return anchors.missing(page, seen)

    def refuse_lost(self, dataset: str | None = None) -> None:
        """Refuse a ledger that lacks lines which were seen."""
        if lacking := self.lost(dataset):
            raise anchors.lost(self._store.label, lacking)

    @classmethod
    @of_kinds
    def declare_loss(
        cls,
        ledger: str | Path,
        *,
        known: Sequence[Place] = (),
        reason: str,
        by: str | None = None,
        confirmed_by: str | None = None,
    ) -> list[Entry]:
        """Write what this user's note and other places have of lost lines into the chain at `ledger`, as spent.

        The chain may be new. Two people declare a loss, because what nobody has seen is not written. The lines that
        were added.
        """
        from discreet.ledger.store import Store, place_of

        if reason.strip() == "":
            unsaid = "A loss cannot be declared without a reason."
            raise PrivacyError(unsaid, remedy="Say what was lost and who looked for it.", about="reason")
        first = by or user()
        facts = {"confirmed_by": named(second_person(first, confirmed_by, "a lost ledger"), "confirmed_by")}
        places = (*anchors.note_of(place_of(ledger)), *known)
        told = [anchor for place in places for anchor in place.anchors()]
        if not told:
            raise LedgerError(
                f"No line is known of a ledger that was lost at {str(ledger)!r}.",
                "Lines are known from output folders, bundles, desks and copies.",
                "Name the places that have some.",
            )
        with cls(Store(ledger), known) as book:
            with book._store.writing() as page:
                accounts = {(budget.dataset, budget.unit): budget for budget in book._accounts(page)}
                added = declare(page, told, accounts=accounts, stamp=_stamp(first) | facts, reason=reason)
                kept = [anchor for line in added for anchor in book._to_anchor(page, line)]
            if not added:
                raise LedgerError(
                    f"Nothing is lost: ledger {book._store.label} has every line that is known.",
                    "Nothing was written.",
                    "Name another place, if it has lines of a ledger that was lost.",
                )
            for place in book.places:
                place.keep(kept)
        return added

    def backup(self, copy: str | Path) -> Head:
        """Copy the chain as it is at this moment, also while charges run; an earlier copy is continued."""
        from discreet.ledger.store import Store

        self.refuse_lost()
        target = Store(copy)
        try:
            with target.writing() as there, self._store.reading() as here:
                return chain.carry(here, there)
        finally:
            target.close()

    @classmethod
    def restore(cls, copy: str | Path, ledger: str | Path, *, known: Sequence[Place] = ()) -> Head:
        """Bring a chain back from a copy, or the end of it. A copy that lacks lines which were seen is refused."""
        from discreet.ledger.store import Store, place_of

        with cls.open(copy, read_only=True) as source, source._store.reading() as here:
            places = (*anchors.note_of(place_of(ledger)), *known)
            if lacking := anchors.missing(here, anchors.seen(places)):
                raise anchors.lost(source._store.label, lacking)
            target = Store(ledger)
            try:
                with target.writing() as there:
                    chain.carry(here, there)
            finally:
                target.close()
        with cls.open(ledger, read_only=True, places=known) as book:
            book.leave_anchors()
            return book.head

    def declares_lost(self, known: Sequence[Anchor]) -> bool:
        """Whether every one of these lines is of another chain, and its loss is declared here."""
        with self._store.reading() as page:
            return all(anchors.is_declared(page, anchor) for anchor in known)

    def leave_anchors(self, datasets: Collection[str] | None = None) -> None:
        """Leave anchors of data sets, or of all, as they are now: from here on the chain must have these lines."""
        with self._store.reading() as page:
            there = dict.fromkeys(line.dataset for line in page.entries(kind="budget"))
            chosen = [name for name in there if datasets is None or name in datasets]
            last = [line for name in chosen if (line := page.last(dataset=name)) is not None]
            found = [anchor for line in last for anchor in self._to_anchor(page, line)]
        for place in self.places:
            place.keep(found)

    def is_anchored(self, dataset: str) -> bool:
        """Whether anything outside of the ledger says how far it was."""
        return bool(self._seen(dataset))

    def budgets(self) -> list[Budget]:
        """Every budget that the chain has, in the order of opening. `lost` tells whether it is all of it."""
        with self._store.reading() as page:
            return self._accounts(page)

    def entries(self, *, last: int | None = None) -> list[Entry]:
        """The lines in order, or only the `last` ones, each checked against its seal."""
        with self._store.reading() as page:
            return page.entries(last=last)

    def charged(self, dataset: str, release: str) -> Entry | None:
        """The charge of a release, if there is one."""
        with self._store.reading() as page:
            return page.last(kind="charge", dataset=dataset, release=release)

    def published(self, dataset: str, release: str) -> Entry | None:
        """The publication of a release, if it was released."""
        with self._store.reading() as page:
            return page.last(kind="publish", dataset=dataset, release=release)

    def find(self, seal: str) -> Entry | None:
        """The line with this hash."""
        with self._store.reading() as page:
            return page.last(hash=seal)

    @property
    def identity(self) -> str:
        """The hash of the first line, by which the ledger is known elsewhere; refused of an empty one."""
        with self._store.reading() as page:
            first = page.at(1)
        if first is None:
            nothing = f"Ledger {self._store.label} has no lines."
            raise LedgerError(nothing, "Its first line names it.", "Open a budget first.")
        return first.hash

    @property
    def head(self) -> Head:
        """The last line: keep it elsewhere to be able to prove that nothing was cut off."""
        with self._store.reading() as page:
            return page.head()

    def verify(
        self,
        *,
        contains: Collection[chain.Known] = (),
        watch: Callable[[Iterable[Row], int], Iterable[Row]] = lambda rows, total: rows,
    ) -> chain.ChainVerdict:
        """Replay every line and say whether the book is whole and holds the lines in `contains`.

        `watch` may wrap the rows, of which there are about `total`, to show progress.
        """
        with self._store.reading() as page, closing(page.rows()) as rows:
            return chain.verify(watch(rows, page.count()), contains=contains)

    def _seen(self, dataset: str | None) -> list[tuple[Place, Anchor]]:
        return [(place, anchor) for place, anchor in anchors.seen(self.places) if dataset in (None, anchor.dataset)]

    def _refuse_lost(self, page: LedgerTransaction, seen: Iterable[tuple[Place, Anchor]]) -> None:
        if lacking := anchors.missing(page, seen):
            raise anchors.lost(self._store.label, lacking)

    @contextmanager
    def _spending(self, dataset: str) -> Iterator[LedgerTransaction]:
        """The only writer for a data set, on a chain that has all of its lines; what it wrote is anchored then."""
        seen, added = self._seen(dataset), []
        with self._store.writing() as page:
            self._refuse_lost(page, seen)
            known = next((anchor.ledger for _, anchor in seen if page.at(anchor.seq) == anchor.line), None)
            yield page
            if self.places and page.added:
                added = self._to_anchor(page, page.added[-1], known)
        for place in self.places if added else ():
            place.keep(added)

    def _to_anchor(self, page: LedgerTransaction, last: Entry, ledger: str | None = None) -> list[Anchor]:
        """The last line, and the one of its budget, which a declared loss needs; `ledger` where it is known already.

        None where nothing was spent that promises anything: a rehearsal, with a seed, may begin again.
        """
        charge = last if last.pays else page.last(kind="charge", dataset=last.dataset)
        if not last.spent_after or (charge is not None and is_rehearsed(charge)):
            return []
        opened = page.last(kind="budget", dataset=last.dataset, unit=last.unit)
        first = page.at(1) if ledger is None else None
        assert opened is not None and (first is not None or ledger is not None), last
        name = first.hash if first is not None else str(ledger)
        return [Anchor(name, line) for line in (opened, last)[opened.seq == last.seq :]]

    def _account(self, page: LedgerTransaction, dataset: str, unit: str) -> Budget | None:
        opened = page.last(kind="budget", dataset=dataset, unit=unit)
        if opened is None or opened.loss is None:
            return None
        policy = Policy.of(opened.payload.get("policy"))  # every later line of a budget states it again
        periods: dict[str, Fraction] = {}
        if policy is not None:
            for entry in page.entries(kind="charge", dataset=dataset, unit=unit):
                for about in map(str, policy.counted(entry.dates)):
                    if entry.loss is not None:
                        periods[about] = periods.get(about, Fraction(0)) + next(iter(entry.loss.amounts.values()))
        return Budget(dataset, unit, opened.loss, self._spent(page, dataset, unit), policy, periods)

    def _accounts(self, page: LedgerTransaction) -> list[Budget]:
        keys = {(entry.dataset, entry.unit): None for entry in page.entries(kind="budget")}
        return [budget for dataset, unit in keys if (budget := self._account(page, dataset, unit)) is not None]

    def _open_account(self, page: LedgerTransaction, dataset: str, unit: Unit | str) -> Budget:
        key = unit if isinstance(unit, str) else getattr(unit, "key", type(unit).__name__)
        budget = self._account(page, named(dataset, "dataset"), key)
        if budget is None:
            raise PrivacyError(no_budget(dataset, key, self._accounts(page)), about="dataset")
        return budget

    def _only_account(self, page: LedgerTransaction, dataset: str) -> Budget:
        every = self._accounts(page)
        found = [budget for budget in every if budget.dataset == dataset]
        if len(found) == 1:
            return found[0]
        if found:
            several = f"{dataset!r} has budgets under {' and '.join(budget.unit for budget in found)}."
            raise PrivacyError(several, "One is changed at a time.", "Name its unit.", about="unit")
        there = ", ".join(dict.fromkeys(repr(budget.dataset) for budget in every)) or "none"
        raise PrivacyError(
            f"{dataset!r} has no budget.", f"The ledger has budgets of: {there}.", "Name one of these.", about="dataset"
        )

    def _spent(self, page: LedgerTransaction, dataset: str, unit: str) -> Loss:
        latest = page.last(dataset=dataset, unit=unit)
        assert latest is not None, (dataset, unit)
        return latest.spent_after

    def _set_budget(
        self, page: LedgerTransaction, budget: Budget, *, protects: str, by: str | None, **facts: Any
    ) -> Budget:
        page.append(
            kind="budget",
            dataset=budget.dataset,
            unit=budget.unit,
            release=None,
            loss=budget.total,
            spent_after=budget.spent,
            payload=_stamp(by)
            | {"protects": protects}
            | ({} if budget.policy is None else {"policy": budget.policy.to_dict()})
            | facts,
        )
        return budget


def named(name: str, role: str) -> str:
    """The name of a data set or a release, if it can stand in a ledger."""
    if not (isinstance(name, str) and 0 < len(name) <= 200 and name.isprintable() and name == name.strip()):
        raise PrivacyError(
            (Argument(role, str(name)[:200]), " cannot be a name in a ledger."),
            "A name has 1 to 200 printable characters and no space at its ends.",
            "Choose one that may be public.",
            about=role,
        )
    return name


def _stamp(by: str | None) -> dict[str, Any]:
    """The user, the time and the version; the present user unless one is named."""
    who = user() if by is None else named(by, "by")
    return {"by": who, "at": datetime.now(UTC).isoformat(timespec="seconds"), "version": program()}


def _plain(details: Mapping[str, Any], release: str) -> dict[str, Any]:
    try:
        return dict(json.loads(canonical(dict(details))))
    except (TypeError, ValueError):
        unwritten = f"The details of release {release!r} cannot be written as JSON."
        hold = "They hold public parameters: text, finite numbers, booleans, lists and mappings of these."
        raise PrivacyError(unwritten, hold, "Convert or leave out the rest.", about="details") from None


def _compare(page: LedgerTransaction, dataset: str, details: Mapping[str, Any]) -> None:
    if concerns_columns(details):
        for other in page.entries(kind="charge", dataset=dataset):
            refuse_conflict(details, other.payload.get("details") or {}, dataset=dataset, release=str(other.release))
