"""What a plan would cost and how far off it would be. Reads no confidential data and spends nothing.

All that can be found wrong without confidential data is found here, all of it together: attributes that do not exist,
noise that cannot be calibrated (with the inequality that decides), a budget that does not suffice, releases that were
asked for differently before, an output folder that cannot be used. Where the data are here, the number of rows and the
columns declared public are read, which tell how far off models and summaries will be. Data that are not here are told
and are no fault: a plan may be priced where they are not.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from discreet.errors import (
    BudgetExceeded,
    DataError,
    FitError,
    FormulaError,
    LedgerError,
    NoLedger,
    PlanError,
    PrivacyError,
)
from discreet.faults import Fault
from discreet.ledger import Budget, Entry, Ledger
from discreet.ledger.budget import amounts
from discreet.ledger.publication import is_kept
from discreet.plan.blame import blamed
from discreet.plan.bundle import BUNDLE, REPORT
from discreet.plan.changed import changed
from discreet.plan.confidential import Confidential
from discreet.plan.counts import CountRequest
from discreet.plan.reading import PlanFile
from discreet.plan.requests import PlannedRelease, requests
from discreet.plan.shape import ModelSection, PosteriorSection
from discreet.plan.sizes import PublicSizes, TableCheck
from discreet.privacy.columns import refuse_conflict
from discreet.privacy.losses import Loss, shown, total
from discreet.privacy.units import Rows, Unit
from discreet.release.account import Account
from discreet.release.offer import Offer, Outlook
from discreet.scans import is_csv

State: TypeAlias = Literal["new", "paid, not released", "released"]
UNTYPED = (
    "A CSV file has no types: a response that is no number with a decimal point, such as 4,5, counts as the middle of "
    "the bounds, and no release can say so. The owner of the data finds out with `discreet check --owner`"
)


@dataclass(frozen=True, slots=True)
class Standing:
    """What the ledger says about the plan's data set; empty where there is no ledger yet."""

    budgets: tuple[Budget, ...] = ()
    charged: Mapping[str, Entry] = field(default_factory=dict)
    published: Mapping[str, Entry] = field(default_factory=dict)

    def state(self, name: str) -> State:
        return "released" if name in self.published else "paid, not released" if name in self.charged else "new"


@dataclass(frozen=True, slots=True)
class ReleaseCheck:
    """One release before it exists.

    Attributes
    ----------
    tables : what its tables of counts cost, and how far off they would be.
    expected : how far off a model or a summary would be; None where the public columns of the data are not here.
    offer : what these errors are from, about the data of the plan.
    """

    request: PlannedRelease
    state: State
    tables: tuple[TableCheck, ...]
    expected: Outlook | None = None
    offer: Offer[None, Any, Any] | None = None

    @property
    def name(self) -> str:
        return self.request.release.name

    @property
    def loss(self) -> Loss:
        return self.request.guarantee.loss

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "state": self.state,
            "loss": self.loss.to_dict(),
            "guarantee": str(self.request.guarantee),
            "tables": [table.to_dict() for table in self.tables],
            "expected": None if self.expected is None else self.expected.to_dict(),
        }


@dataclass(frozen=True, slots=True, repr=False)
class PlanCheck:
    """Everything that is known about a plan without its data.

    Attributes
    ----------
    before, after : the budget now, and when all new releases are paid.
    faults : what keeps the plan from being run; it can be run where there are none.
    missing : files of the data that are not here, and that `run` needs.
    """

    file: PlanFile
    releases: tuple[ReleaseCheck, ...]
    before: Budget
    after: Budget
    faults: tuple[Fault, ...]
    missing: tuple[Fault, ...] = ()

    def __repr__(self) -> str:
        name = self.file.document.path.name
        return f"<PlanCheck of {name!r}: {len(self.releases)} releases cost {self.cost}, {len(self.faults)} faults>"

    @property
    def jobs_of_one_worker(self) -> int | None:
        """The most jobs that one worker may have in a table of counts; None where there is no bound."""
        tables = [check.request for check in self.releases if isinstance(check.request, CountRequest)]
        return tables[0].queries[0].jobs.of_one_worker if tables else 1

    @property
    def up_to_the_rows(self) -> tuple[str, ...]:
        """The releases that may need more rows than there are, where the data are not here to tell."""
        waiting = [check for check in self.releases if check.state != "released" and check.expected is None]
        return tuple(
            check.name for check in waiting if isinstance(check.request.release, PosteriorSection | ModelSection)
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What whoever pays should ask the owner of the data first, from public facts alone."""
        rows, source = isinstance(self.file.plan.unit.unit(), Rows), self.file.path(self.file.plan.data.source)
        return (UNTYPED,) if rows and is_csv(source) else ()

    @property
    def cost(self) -> Loss:
        """What the releases that are not paid yet cost together."""
        new = [check.loss for check in self.releases if check.state == "new"]
        return total(new, zero=self.before.total.zero())

    def refuse(self) -> None:
        """Raise all faults together, if there are any."""
        self.file.document.refuse(list(self.faults))

    def to_dict(self) -> dict[str, Any]:
        """The check as plain values, ready for JSON."""
        return {
            "plan": self.file.document.path.name,
            "can_run": not (self.faults or self.missing),
            "faults": self._listed(self.faults),
            "missing": self._listed(self.missing),
            "up_to_the_rows": list(self.up_to_the_rows),
            "notes": list(self.notes),
            "budget": self.before.to_dict(),
            "cost": self.cost.to_dict(),
            "remaining_after": self.after.remaining.to_dict(),
            "releases": [check.to_dict() for check in self.releases],
        }

    def _listed(self, faults: tuple[Fault, ...]) -> list[dict[str, Any]]:
        document = self.file.document
        return [{"line": document.line(fault.place), "message": document.located(fault).told()} for fault in faults]


def check(file: PlanFile) -> PlanCheck:
    """Price a plan and look for everything that is wrong with it."""
    plan = file.plan
    faults: list[Fault] = []
    unit, whole = _stated(file)
    account = Account.open(None, dataset="check", unit=unit, budget=whole)
    # What is there before the ledger is asked cannot have come from a publication that it does not know.
    present = _present(file)
    standing, broken = _standing(file)
    asked, wrong = requests(file, account, paid=standing.charged)
    sizes, unread = PublicSizes.of(file)
    # Of a ledger that cannot be read it is not known what it released, and good releases would be accused.
    faults += [*wrong, *unread, *broken, *_output_faults(file, standing, set() if broken else present)]
    before = Budget(plan.budget.dataset, unit.key, whole, whole.zero())
    for known in standing.budgets:
        if known.unit == unit.key:
            if type(known.total) is not type(whole) or known.total != whole:
                faults.append(Fault(("budget",), _other_total(known, whole)))
            if known.total.amounts.keys() >= whole.zero().amounts.keys() - {"delta"}:
                before = known  # what is left is what the ledger says, whatever total the plan states
        elif not any(budget.unit == unit.key for budget in standing.budgets):
            faults.append(Fault(("unit",), _other_unit(known, unit.key)))
    after = before
    for request in asked:
        place = ("release", file.index(request.release.name), "epsilon")
        charge = standing.charged.get(request.release.name)
        if charge is not None:
            if not charge.pays_for(unit=unit.key, loss=request.guarantee.loss, details=request.details):
                published = standing.published.get(request.release.name)
                faults.append(changed(file, request, charge, published))
            continue
        try:
            after = after.spend(request.guarantee.loss, release=request.release.name)
        except BudgetExceeded:
            faults.append(Fault(place, _too_dear(request, after)))
        except PrivacyError as error:
            faults += [replace(fault, place=place) for fault in error.faults]
        faults += _columns(request, standing)
    missing, checks = tuple(_missing(file)), []
    data = None if missing else Confidential(file)
    for request in asked:
        one = ReleaseCheck(request, standing.state(request.release.name), ())
        if isinstance(request, CountRequest):
            one = replace(one, tables=request.check(sizes))
        elif data is not None and one.state != "released":
            one, found = _foreseen(file, one, data)
            faults += found
        checks.append(one)
    waiting = len(asked) < len(plan.release) or any(one.state != "released" for one in checks)
    return PlanCheck(file, tuple(checks), before, after, tuple(faults), missing if waiting else ())


def _columns(request: PlannedRelease, standing: Standing) -> Iterator[Fault]:
    """Columns that a release takes as public and an earlier one of the data protects, or the other way round."""
    for name, charge in standing.charged.items():
        try:
            refuse_conflict(request.details, charge.payload.get("details") or {}, dataset=charge.dataset, release=name)
        except PrivacyError as error:
            yield from (replace(fault, place=("data", "public")) for fault in error.faults)
            return


def _foreseen(file: PlanFile, known: ReleaseCheck, data: Confidential) -> tuple[ReleaseCheck, list[Fault]]:
    """A model or a summary with its expected errors, from what is public of the data: no other column is read."""
    try:
        offer = known.request.offer(data)
        return replace(known, offer=offer, expected=offer.check().expected), []
    except PlanError:
        return known, []  # what this user may not read, `run` refuses
    except (DataError, FormulaError, FitError, PrivacyError) as error:
        return known, blamed(known.request.release, file.index(known.name), error)


def _stated(file: PlanFile) -> tuple[Unit, Loss]:
    """Whom the plan protects and for how much; without these nothing else can be judged."""
    faults: list[Fault] = []
    try:
        unit = file.plan.unit.unit()
        if isinstance(unit, Rows):
            from discreet.lmm.private.request import within_reach

            asked = f"lower = {shown(unit.lower)} with upper = {shown(unit.upper)}"
            within_reach(unit.lower, unit.upper, asked=asked)
    except PrivacyError as error:
        faults += [replace(fault, place=("unit",)) for fault in error.faults]
    try:
        whole = file.plan.budget.total()
    except PrivacyError as error:
        faults += [replace(fault, place=("budget",)) for fault in error.faults]
    file.document.refuse(faults)
    return unit, whole


def _missing(file: PlanFile) -> Iterator[Fault]:
    """What [data] names and is not here. Nothing is opened."""
    data = file.plan.data
    for key, text in (("source", data.source), ("workplaces", data.workplaces), ("workers", data.workers)):
        path = "" if text is None else str(file.path(text)).partition("::")[0]
        if path and not (os.path.exists(path) or any(glob.iglob(path))):  # noqa: PTH110, PTH207 (no error, and globs)
            yield Fault(("data", key), f"{text!r} is not here: `run` needs it. Bring it, or run the plan where it is.")


def ledger_place(file: PlanFile) -> str:
    """Where the plan's ledger is: a file relative to the plan, or a server's address."""
    where = file.plan.budget.ledger
    return where if "://" in where else str(file.path(where))


def _standing(file: PlanFile) -> tuple[Standing, list[Fault]]:
    """What the ledger says now, without making one."""
    where, dataset, place = ledger_place(file), file.plan.budget.dataset, ("budget", "ledger")
    if "://" not in where and not Path(where).exists():
        folder = Path(where).parent
        if not folder.is_dir():
            return Standing(), [
                Fault(place, f"there is no folder {str(folder)!r} for a ledger. Make the folder first.")
            ]
        return Standing(), []
    try:
        with Ledger.open(where, read_only=True) as ledger:
            # Budgets first: what another process pays in between is then seen as paid, not as missing from the budget.
            budgets = tuple(budget for budget in ledger.budgets() if budget.dataset == dataset)
            entries = [entry for entry in ledger.entries() if entry.dataset == dataset]
    except LedgerError as error:
        if "://" in where and isinstance(error, NoLedger):
            return Standing(), []  # an empty database, in which `run` makes the ledger
        return Standing(), [replace(fault, place=place) for fault in error.faults]
    charged = {str(entry.release): entry for entry in entries if entry.kind == "charge"}
    published = {str(entry.release): entry for entry in entries if entry.kind == "publish"}
    return Standing(budgets, charged, published), []


def _present(file: PlanFile) -> set[str]:
    """The releases in whose place there is something."""
    folder = file.path(file.plan.output.folder)
    return {release.name for release in file.plan.release if os.path.lexists(folder / release.name)}


def _output_faults(file: PlanFile, standing: Standing, present: set[str]) -> Iterator[Fault]:
    place = ("output", "folder")
    folder = file.path(file.plan.output.folder)
    source = file.path(file.plan.data.source)
    if os.path.lexists(folder) and not folder.is_dir():
        what = "a link that leads nowhere" if folder.is_symlink() else "a file"
        yield Fault(place, f"{file.plan.output.folder!r} is {what}. Releases need a folder. Name another path.")
        return
    if source.is_dir() and folder.resolve().is_relative_to(source.resolve()):
        yield Fault(place, "it lies inside the data, so releases would be read as data. Name a folder elsewhere.")
    elif source.resolve().is_relative_to(folder.resolve()):
        yield Fault(
            place,
            "the confidential data lie inside it, and whoever hands the folder on hands on the data. Name a folder "
            "for releases alone.",
        )
    existing = next(part for part in (folder, *folder.resolve().parents) if part.exists())
    if not (existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)):
        yield Fault(place, f"{str(existing)!r} cannot be written by this user. Name a folder that can be.")
    yield from _ledger_in_the_way(file, folder)
    for i, release in enumerate(file.plan.release):
        published = standing.published.get(release.name)
        if published is not None and not is_kept(published, folder / release.name):
            yield Fault(
                ("release", i, "name"),
                f"it was published in entry {published.seq} of the ledger, and the output folder does not hold its "
                "files as they were. Drawing them again would tell more than was paid for. Bring the files back, name "
                "the folder they are in, or pay for a release under another name.",
            )
        if published is None and release.name in present:
            yield Fault(
                ("release", i, "name"),
                f"the output folder has a {release.name!r} that this ledger did not release. A release never replaces "
                "anything. Choose another name or folder, or move that away.",
            )


def _ledger_in_the_way(file: PlanFile, folder: Path) -> Iterator[Fault]:
    """A ledger where a release, the report or the bundle will be, or the other way round."""
    where = ledger_place(file)
    if "://" in where:
        return
    ledger, names = Path(where).resolve(), [release.name for release in file.plan.release]
    taken = [folder.resolve() / name for name in (*names, REPORT, BUNDLE)]
    if folder.resolve().is_relative_to(ledger) or any(ledger.is_relative_to(path) for path in taken):
        yield Fault(
            ("output", "folder"),
            f"the ledger {file.plan.budget.ledger!r} lies where releases go. Each needs a place of its own. Name "
            "another folder, or another ledger.",
        )


def _other_total(known: Budget, asked: Loss) -> str:
    return (
        f"a budget of {amounts(asked)} is asked for {known.dataset!r}, which has one of {amounts(known.total)} with "
        f"{amounts(known.spent)} spent and {amounts(known.remaining)} left. A budget is opened once. Write that total, "
        "or have whoever answers for the data change it in the ledger (`discreet ledger budget`), with a reason."
    )


def _other_unit(known: Budget, asked: str) -> str:
    return (
        f"{asked} is asked for {known.dataset!r}, whose budget is under {known.unit}. Losses under different units do "
        "not add up. Use that unit, or have whoever answers for the data open a second budget in the ledger."
    )


def _too_dear(request: PlannedRelease, budget: Budget) -> str:
    return (
        f"it costs {amounts(request.guarantee.loss)}, but {amounts(budget.remaining)} is left of "
        f"{amounts(budget.total)} for {budget.dataset!r}. Lower it, leave a release out, or have whoever answers for "
        "the data raise the budget."
    )
