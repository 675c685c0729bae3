"""A loss that is declared: the lines that are known of a lost ledger are written into a chain as spent.

A known line is written again, sealed anew, under the same name, loss and dates. What its ledger had spent beyond the
known lines is charged as well, so that nothing that was seen is forgotten. The line of the budget lists what is
declared lost; anchors of it are then no reason to refuse. A release that is not known to be published is closed: it may
have been drawn, and is never drawn again. Two people declare a loss, because what nobody has seen is not written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.ledger.anchors import Anchor, losses
from discreet.ledger.budget import Budget
from discreet.ledger.draws import DrawNumber, current
from discreet.ledger.entries import Entry
from discreet.ledger.periods import Dates, Policy
from discreet.privacy.losses import Loss, from_dict
from discreet.words.errors import PrivacyError

if TYPE_CHECKING:
    from discreet.ledger.store import LedgerTransaction

Accounts = Mapping[tuple[str, str], Budget]


def declare(
    page: LedgerTransaction, known: Iterable[Anchor], *, accounts: Accounts, stamp: Mapping[str, Any], reason: str
) -> list[Entry]:
    """Write what is `known` and not in the chain, whose `accounts` are as they are now; the lines that were added."""
    lost: dict[tuple[str, str], dict[str, Anchor]] = {}
    for anchor in known:
        lost.setdefault((anchor.dataset, anchor.line.unit), {})[anchor.hash] = anchor
    before = len(page.added)
    for account, found in lost.items():
        told = {str(each["hash"]) for line in losses(page, account[0]) for each in line.payload["lost"]}
        new = [anchor for anchor in found.values() if anchor.hash not in told and page.last(hash=anchor.hash) is None]
        if new:
            inherited = _Lost(account, sorted(new, key=lambda each: (each.seq, each.ledger)), accounts.get(account))
            inherited.write(page, stamp=stamp, reason=reason)
    return page.added[before:]


class _Lost:
    """The lost lines of one data set under one unit, and the account that is there."""

    def __init__(self, account: tuple[str, str], anchors: Sequence[Anchor], there: Budget | None) -> None:
        self.anchors, self.there = anchors, there
        self.dataset, self.unit = account
        self.lines = [anchor.line for anchor in anchors]
        opened = next((line for line in reversed(self.lines) if line.kind == "budget"), None)
        if there is None and (opened is None or opened.loss is None):
            raise PrivacyError(
                f"No line is known that opened the budget of {self.dataset!r} under {self.unit}.",
                "A loss is declared under the budget that was lost.",
                "Name a place that has more of the ledger: an output folder, a bundle or a copy.",
                about="dataset",
            )
        self.protects = self.unit if opened is None else str(opened.payload["protects"])
        if there is not None:
            self.budget = there
        else:
            assert opened is not None and opened.loss is not None, account
            policy = Policy.of(opened.payload.get("policy"))
            self.budget = Budget(self.dataset, self.unit, opened.loss, opened.loss.zero(), policy)
        self.charges = [line for line in self.lines if line.kind == "charge"]
        self.published = {line.release: line for line in self.lines if line.kind == "publish"}

    def write(self, page: LedgerTransaction, *, stamp: Mapping[str, Any], reason: str) -> None:
        """Open the budget or state it again, then write charges, what else was spent, and publications."""
        rest = self._unseen(page)
        budget = self._wide_enough(rest)
        facts: dict[str, Any] = {
            "protects": self.protects,
            "reason": reason,
            "lost": [anchor.reference for anchor in self.anchors],
        }
        facts |= {} if budget.policy is None else {"policy": budget.policy.to_dict()}
        other = page.last(kind="budget", dataset=self.dataset)
        facts |= {"second_unit": True} if other is not None and other.unit != self.unit else {}
        self._append(page, budget, "budget", None, budget.total, {**stamp, **facts})
        numbers: dict[str | None, int] = {}
        for line in self.charges:
            assert line.loss is not None, line
            name = self._free(page, str(line.release), line.seq)
            budget = budget.spend(line.loss, release=name, dates=line.dates)
            closed = line.release not in self.published or name != line.release
            entry = self._append(page, budget, "charge", name, line.loss, self._paid(line, closed=closed))
            if not closed:
                numbers[line.release] = entry.seq
        if rest is not None:
            name = self._free(page, f"lost {self.anchors[-1].ledger[:12]}", self.anchors[-1].seq)
            dates = self._every_period(budget)
            budget = budget.spend(rest, release=name, dates=dates)
            details = dates.to_dict() | {"lost": "charges of which nobody has a line"}
            self._append(page, budget, "charge", name, rest, {**stamp, "details": details})
        for release, line in self.published.items():
            charge = numbers.get(release)
            if charge is None and self._is_of(page) and release not in {each.release for each in self.charges}:
                charge = self._paid_here(page, budget, line)
            if charge is not None:
                self._append(page, budget, "publish", release, None, {**line.payload, "charge": charge})

    def _paid_here(self, page: LedgerTransaction, budget: Budget, line: Entry) -> int | None:
        """The charge in the chain that a lost publication is of; its draw becomes the current one."""
        where = {"dataset": self.dataset, "release": str(line.release)}
        charge = page.last(kind="charge", unit=self.unit, **where)
        if charge is None or charge.seq != line.payload["charge"] or page.last(kind="publish", **where) is not None:
            return None
        number = line.payload.get("draw")
        drawn = current(charge, page.entries(kind="draw", dataset=self.dataset, unit=self.unit))
        if number is not None and DrawNumber(str(number)).kept != drawn:
            facts = {"charge": charge.seq, "draw": DrawNumber(str(number)).kept}
            self._append(
                page, budget, "draw", None, None, {key: line.payload[key] for key in ("by", "at", "version")} | facts
            )
        return charge.seq

    def _append(
        self,
        page: LedgerTransaction,
        budget: Budget,
        kind: str,
        release: str | None,
        loss: Loss | None,
        payload: Mapping[str, Any],
    ) -> Entry:
        return page.append(
            kind=kind,
            dataset=self.dataset,
            unit=self.unit,
            release=release,
            loss=loss,
            spent_after=budget.spent,
            payload=payload,
        )

    def _paid(self, line: Entry, *, closed: bool) -> dict[str, Any]:
        """The content of a charge: a closed one is no request that anybody can resume."""
        payload = {**line.payload}
        details = dict(payload.get("details") or {})
        if closed:
            return payload | {"details": details | {"lost": "it is not known whether this was published"}}
        number = self.published[line.release].payload.get("draw")
        payload.pop("draw", None)
        return payload | ({} if number is None else {"draw": DrawNumber(str(number)).kept})

    def _is_of(self, page: LedgerTransaction) -> bool:
        """Whether all lost lines are of the chain that is there: it begins as theirs did."""
        first = page.at(1)
        return first is not None and {anchor.ledger for anchor in self.anchors} == {first.hash}

    def _unseen(self, page: LedgerTransaction) -> Loss | None:
        """What the lost chain had spent beyond its known charges; None if that is nothing."""
        zero = self.budget.total.zero()
        first = self.lines[0]
        before = zero
        if self._is_of(page):
            shared = [e for e in page.entries(dataset=self.dataset, unit=self.unit) if e.seq < first.seq]
            before = shared[-1].spent_after if shared else zero
        known = sum((line.loss for line in self.charges if line.loss is not None), start=before)
        most = {
            name: max(line.spent_after.amounts.get(name, Fraction(0)) for line in self.lines) for name in known.amounts
        }
        lacking = {name: max(amount - known.amounts[name], Fraction(0)) for name, amount in most.items()}
        return from_dict({name: str(amount) for name, amount in lacking.items()}) if any(lacking.values()) else None

    def _wide_enough(self, rest: Loss | None) -> Budget:
        """The budget, with a total and an amount for each period that cover what was spent, whatever they were."""
        losses = [line.loss for line in self.charges if line.loss is not None] + ([] if rest is None else [rest])
        spent = sum(losses, start=self.budget.spent)
        amounts = {name: max(amount, spent.amounts[name]) for name, amount in self.budget.total.amounts.items()}
        total = from_dict({name: str(amount) for name, amount in amounts.items()})
        wide = replace(self.budget, total=total)
        if wide.policy is None:
            return wide
        policy = replace(wide.policy, limit=max(wide.policy.limit, next(iter(spent.amounts.values()))))
        wide_policy = replace(wide, policy=policy)
        try:
            after = wide_policy
            for line in self.charges:
                assert line.loss is not None, line
                after = after.spend(line.loss, release=str(line.release), dates=line.dates)
            most = max(after.periods.values(), default=Fraction(0)) + (
                Fraction(0) if rest is None else next(iter(rest.amounts.values()))
            )
        except PrivacyError:  # a period is missing between the known ones
            if self.there is not None:
                raise
            return replace(wide, policy=None)
        return replace(wide, policy=replace(policy, limit=max(self.budget.policy.limit, most)))  # type: ignore[union-attr]

    @staticmethod
    def _every_period(budget: Budget) -> Dates:
        """Of a charge that nobody has a line of, it counts for every period that is known."""
        known = sorted(budget.periods)
        return Dates(known[-1], tuple(known)) if known else Dates()

    def _free(self, page: LedgerTransaction, name: str, seq: int) -> str:
        """The name of a release, or another where the chain has one of that name."""
        taken = page.last(kind="charge", dataset=self.dataset, release=name) is not None
        return f"{name[:150]} (lost entry {seq})" if taken else name
