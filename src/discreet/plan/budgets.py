"""The ledger's facts about the data sets of a plan, and what the plan's releases would spend of their budgets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from discreet.ledger import Budget, Dates, Entry, Ledger, Policy
from discreet.ledger.budget import amounts, readable
from discreet.ledger.claims import claim_of
from discreet.ledger.openings import OTHER_UNIT, second_opening
from discreet.plan.changed import changed
from discreet.plan.file import PlanFile, PlanSource
from discreet.plan.kinds.kind import PlannedRelease
from discreet.privacy.assurance import Claim
from discreet.privacy.columns import refuse_conflict
from discreet.privacy.losses import Loss, total
from discreet.privacy.units import Unit
from discreet.words.errors import BudgetExceeded, LedgerError, PrivacyError
from discreet.words.faults import Fault, Sentence

State: TypeAlias = Literal["new", "paid, not released", "released", "unknown"]


@dataclass(frozen=True, slots=True)
class Standing:
    """The ledger's facts about one data set; empty if there is no ledger yet, unknown if it cannot be believed.

    `anchored` tells whether anything outside of the ledger says how far it was.
    """

    budgets: tuple[Budget, ...] = ()
    charged: Mapping[str, Entry] = field(default_factory=dict)
    published: Mapping[str, Entry] = field(default_factory=dict)
    opened: tuple[Entry, ...] = ()
    known: bool = True
    anchored: bool = True

    def state(self, name: str) -> State:
        if not self.known:
            return "unknown"
        return "released" if name in self.published else "paid, not released" if name in self.charged else "new"


class PeriodSpent(NamedTuple):
    """The part of a period's limit that its releases have spent."""

    period: str
    limit: Fraction
    spent: Fraction


@dataclass(frozen=True, slots=True)
class Spending:
    """The total cost of the releases of one data set.

    Attributes
    ----------
    unit : whom the data set's releases protect.
    before, after : the budget now, and when all new releases are paid.
    cost : what the releases that are not paid yet cost.
    jobs_of_one_worker : the most jobs that one worker may have in a table of counts; None where there is no bound.
    fits : whether all of it can be paid; `after` is without what cannot.
    earlier : what the ledger says of the releases of these data that were paid for before.
    known : whether the ledger said what was spent; otherwise `before` and `after` are those of no ledger.
    anchored : whether a ledger that is lost from now on would be noticed.
    """

    unit: Unit
    before: Budget
    after: Budget
    cost: Loss
    jobs_of_one_worker: int | None = 1
    fits: bool = True
    earlier: tuple[Claim, ...] = ()
    known: bool = True
    anchored: bool = True

    @property
    def dataset(self) -> str:
        """The name under which the ledger knows the data."""
        return self.before.dataset

    def __str__(self) -> str:
        def then(left: str) -> str:
            return f" and {left} afterwards." if self.fits else "; not every release can be paid."

        if not self.known:
            return (
                f"{amounts(self.cost)}. What is left of {amounts(self.before.total)} for {self.dataset!r} is not known."
            )
        return (
            f"{amounts(self.cost)}. Of {amounts(self.before.total)} for {self.dataset!r}, "
            f"{amounts(self.before.remaining)} is left now{then(amounts(self.after.remaining))}"
            + "".join(
                f" Of {readable(now.limit)} for {now.period}, {readable(now.limit - now.spent)} is left now"
                f"{then(readable(now.limit - after.spent))}"
                for now, after in zip(self.periods(self.before), self.periods(self.after), strict=True)
            )
        )

    def periods(self, budget: Budget) -> list[PeriodSpent]:
        """What the periods of the series have spent, if the budget is divided among periods."""
        return [
            PeriodSpent(name, budget.policy.limit, budget.periods.get(name, Fraction(0)))
            for name in sorted(self.after.periods)
            if budget.policy is not None
        ]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, ready for JSON."""
        unknown = dict.fromkeys(("spent", "remaining"))
        return {
            "budget": self.before.to_dict() | ({} if self.known else unknown),
            "cost": self.cost.to_dict(),
            "remaining_after": self.after.remaining.to_dict() if self.known else None,
        }


def standings(file: PlanFile) -> tuple[dict[str, Standing], list[Fault]]:
    """The ledger's present facts about each data set of the plan; no ledger is made."""
    where, datasets = file.ledger, {source.dataset: None for source in file.sources}
    place, nothing = file.sources[0].place("budget", "ledger"), {dataset: Standing() for dataset in datasets}
    try:
        book = Ledger.found(where, places=file.anchored, datasets=datasets)
        if book is None:
            folder = Path(where).parent
            missing = f"there is no folder {str(folder)!r} for a ledger. Make the folder first."
            return nothing, [] if "://" in where or folder.is_dir() else [Fault(place, missing)]
        with book:
            # Budgets first: what another process pays in between is then seen as paid, not as missing from the budget.
            budgets, entries = book.budgets(), book.entries()
            anchored = {dataset: book.is_anchored(dataset) for dataset in datasets}
    except LedgerError as error:
        unknown = {dataset: Standing(known=False) for dataset in datasets}
        return unknown, [replace(fault, place=place) for fault in error.faults]
    found = {dataset: _standing(dataset, budgets, entries) for dataset in datasets}
    return {name: replace(one, anchored=anchored[name] or not one.charged) for name, one in found.items()}, []


def _standing(dataset: str, budgets: Iterable[Budget], entries: Sequence[Entry]) -> Standing:
    mine = [entry for entry in entries if entry.dataset == dataset]
    charged, published = (
        {str(entry.release): entry for entry in mine if entry.kind == kind} for kind in ("charge", "publish")
    )
    opened = tuple(entry for entry in entries if entry.kind == "budget")
    return Standing(tuple(budget for budget in budgets if budget.dataset == dataset), charged, published, opened)


def spend(source: PlanSource, asked: Sequence[PlannedRelease], standing: Standing) -> tuple[Spending, list[Fault]]:
    """What releases of a data set would spend; `source` is its first one, and others have the same budget."""
    before, faults = _opened(source, standing)
    after, new, fits = before, [], True
    for request in asked:
        place = ("release", source.file.index(request.release.name), "epsilon")
        charge = standing.charged.get(request.release.name)
        if charge is not None:
            if not charge.pays_for(unit=source.unit.key, loss=request.guarantee.loss, details=request.details):
                faults.append(changed(request, charge, standing.published.get(request.release.name)))
            continue
        new.append(request.guarantee.loss)
        try:
            dates = Dates.of(request.details)
            if after.policy is not None and request.reads_quarters and not dates.reads:
                raise _undated(request, after.policy)
            after = after.spend(request.guarantee.loss, release=request.release.name, dates=dates)
        except BudgetExceeded as error:
            fits, by_period = False, request.guarantee.loss <= after.remaining
            faults += [replace(fault, place=place) for fault in error.faults] if by_period else []
            faults += [] if by_period else [Fault(place, _too_dear(request, after))]
        except PrivacyError as error:
            fits = False
            dated = request.source.place("data", "period")
            faults += [replace(fault, place=dated if fault.about == "period" else place) for fault in error.faults]
        faults += _columns(request, asked, standing)
        faults += _replaced(request, asked, standing)
    cost = total(new, zero=before.total.zero())
    mine = {request.release.name for request in asked}
    earlier = tuple(claim_of(charge) for name, charge in standing.charged.items() if name not in mine)
    jobs = jobs_of_one_worker(asked)
    return Spending(source.unit, before, after, cost, jobs, fits, earlier, standing.known, standing.anchored), faults


def _undated(request: PlannedRelease, policy: Policy) -> PrivacyError:
    return PrivacyError(
        f"Quarters of release {request.release.name!r} do not say when they are, or the plan does not say what each "
        f"{policy.each} may cost.",
        f"The budget has an amount for each {policy.each}. Flows and changes count for all quarters that they read.",
        f"Name quarters as 2026-Q1, and write per_{policy.each} = {readable(policy.limit)} in [budget].",
        about="period",
    )


def jobs_of_one_worker(asked: Sequence[PlannedRelease]) -> int | None:
    """The most jobs that one worker may have in a table of counts; None where there is no bound."""
    most = [request.jobs.of_one_worker for request in asked if request.jobs is not None]
    return None if None in most else max(filter(None, most), default=1)


def _opened(source: PlanSource, standing: Standing) -> tuple[Budget, list[Fault]]:
    """The present budget of a data set, and where the plan disagrees."""
    unit, whole = source.unit, source.tables.budget.total()
    place = source.place("budget", "dataset")
    faults = [replace(fault, place=place) for fault in second_opening(source.dataset, source.origin, standing.opened)]
    policy = source.tables.budget.policy()
    found = Budget(source.dataset, unit.key, whole, whole.zero(), policy)
    for known in standing.budgets:
        if known.unit == unit.key:
            if type(known.total) is not type(whole) or known.total != whole:
                faults.append(Fault(source.place("budget"), _other_total(known, whole)))
            if policy not in (None, known.policy):
                faults.append(Fault(source.place("budget"), _other_policy(known)))
            if known.total.amounts.keys() >= whole.zero().amounts.keys() - {"delta"}:
                found = known  # what is left is what the ledger says, whatever total the plan states
        elif not any(budget.unit == unit.key for budget in standing.budgets):
            faults.append(Fault(source.place("unit"), _other_unit(known, unit.key)))
    if policy is not None and found.total is whole and policy.beyond(whole):
        faults.append(Fault(source.place("budget", f"per_{policy.each}"), _above_all(policy, whole)))
    return found, faults


def _columns(request: PlannedRelease, asked: Sequence[PlannedRelease], standing: Standing) -> Iterator[Fault]:
    """Columns that a release takes as public and an earlier one of the data protects, or the other way round; caps."""
    source = request.source
    for name, details in _before(request, asked, standing).items():
        try:
            refuse_conflict(request.details, details, dataset=source.dataset, release=name)
        except PrivacyError as error:
            for fault in error.faults:
                key = "schema" if fault.about == "magnitudes" else "public"
                yield replace(fault, place=source.place("data", key))
            return


def _before(
    request: PlannedRelease, asked: Sequence[PlannedRelease], standing: Standing
) -> dict[str, Mapping[str, Any]]:
    """What is asked in releases before this one: of the data set in the ledger, then of the plan."""
    earlier = {each.release.name: each.details for each in asked[: asked.index(request)]}
    return {paid: charge.payload.get("details") or {} for paid, charge in standing.charged.items()} | earlier


def _replaced(request: PlannedRelease, asked: Sequence[PlannedRelease], standing: Standing) -> Iterator[Fault]:
    """The faults of the release that a new one revises."""
    name, place = request.release.replaces, ("release", request.source.file.index(request.release.name), "replaces")
    if name is None:
        return
    known = _before(request, asked, standing)
    if name not in known:
        words = f"{name!r} is neither an earlier release of this data set in the ledger nor one before it in the plan."
        yield Fault(place, words, "A revision replaces what was released.", "Name that release, or leave it out.")
        return
    others = [other for other, details in known.items() if details.get("replaces") == name]
    if others:
        yield Fault(place, f"{name!r} was replaced by {others[-1]!r} already.", "", f"Replace {others[-1]!r}.")
    for key in ("kind", "period"):
        old, new = known[name].get(key), request.details.get(key)
        if old != new:
            words = f"{name!r} is of the {key} {old or 'none'}, and this release of the {key} {new or 'none'}."
            yield Fault(place, words, f"A revision is of the same {key}.", "Leave it out, or name another release.")


def _other_policy(known: Budget) -> str:
    has = "none" if known.policy is None else f"{readable(known.policy.limit)} for each {known.policy.each}"
    return (
        f"another amount for each period is asked for {known.dataset!r} than the ledger has, which is {has}. A budget "
        "is opened once. Write that, leave it out, or ask the owner of the data to change it in the ledger "
        "(`discreet ledger budget`), with a reason."
    )


def _above_all(policy: Policy, whole: Loss) -> str:
    return (
        f"{readable(policy.limit)} for each {policy.each} is more than {amounts(whole)}, the budget of all together. "
        "Lower it, or raise the budget."
    )


def _other_total(known: Budget, asked: Loss) -> str:
    return (
        f"a budget of {amounts(asked)} is asked for {known.dataset!r}, which has one of {amounts(known.total)} with "
        f"{amounts(known.spent)} spent and {amounts(known.remaining)} left. A budget is opened once. Write that total, "
        "or ask the owner of the data to change it in the ledger (`discreet ledger budget`), with a reason."
    )


def _other_unit(known: Budget, asked: str) -> Sentence:
    return (
        f"{asked} is asked for {known.dataset!r}, whose budget is under {known.unit}. Losses under different units do "
        "not add up. ",
        *OTHER_UNIT,
    )


def _too_dear(request: PlannedRelease, budget: Budget) -> str:
    return (
        f"it costs {amounts(request.guarantee.loss)}, but {amounts(budget.remaining)} is left of "
        f"{amounts(budget.total)} for {budget.dataset!r}. Lower it, leave a release out, or ask the owner of the "
        f"data to raise the budget."
    )
