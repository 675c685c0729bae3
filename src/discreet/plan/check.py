"""The cost and the expected error of a plan. Reads no confidential data and spends nothing.

Everything that can be found wrong without confidential data is reported here, all faults together: attributes that do
not exist, noise that cannot be calibrated (with the inequality that decides), a budget that is too small, releases that
were requested differently before, an output folder that cannot be used. If the data are present, the number of rows and
the columns declared public are read. They determine the expected error of models and summaries. Data that are not here
are reported and are not a fault: a plan may be priced where they are not.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from discreet.data.databases import one_moment
from discreet.data.scans import alike, is_csv
from discreet.plan.agency import AgencyCheck, read_public
from discreet.plan.blame import blamed
from discreet.plan.budgets import Spending, State, spend, standings
from discreet.plan.confidential import Confidential, public_lookups, secret_lookups, shared_data
from discreet.plan.engine import at_work, unopened
from discreet.plan.file import PlanFile, PlanSource
from discreet.plan.folder import output_faults, present_in
from discreet.plan.kinds.alarms import alarm_steps, earlier_of
from discreet.plan.kinds.kind import PlannedRelease
from discreet.plan.kinds.registry import kind_of
from discreet.plan.requests import requests
from discreet.plan.room import room_notes
from discreet.plan.shape import AlarmsSection
from discreet.plan.sheets import require_writer
from discreet.plan.sizes import PublicSizes, TableCheck
from discreet.privacy.assurance import ASKED, Assurance, Claim
from discreet.privacy.losses import Loss, shown, total
from discreet.privacy.units import Groups, Rows
from discreet.release.alarms import COSTS
from discreet.release.offer import Offer, Outlook
from discreet.words.cases import case_of
from discreet.words.errors import DataError, EngineError, FitError, FormulaError, MissingExtra, PlanError, PrivacyError
from discreet.words.faults import Fault

UNTYPED = (
    "A CSV file has no types: a response that is no number with a decimal point, such as 4,5, counts as the middle of "
    "the bounds, and no release can say so. The owner of the data finds out with `discreet check --owner`"
)


UNANCHORED = (
    "Releases of {names} were paid for by a version that left no anchors: nothing outside of the ledger says how far "
    "it was. The next release leaves one in the output folder; until then a lost ledger would not be noticed"
)


@dataclass(frozen=True, slots=True)
class ReleaseCheck:
    """One release before it exists.

    Attributes
    ----------
    tables : what its tables of counts cost, and how far off they would be; computed when somebody looks.
    expected : how far off a model or a summary would be; None if the public columns of the data are not present.
    offer : what these errors are from, about the data of the plan.
    agency : what is known of the agency's own table, where the plan names one.
    """

    request: PlannedRelease
    state: State
    tables: Sequence[TableCheck] = ()
    expected: Outlook | None = None
    offer: Offer[None, Any, Any] | None = None
    agency: AgencyCheck | None = None

    @property
    def name(self) -> str:
        return self.request.release.name

    @property
    def loss(self) -> Loss:
        return self.request.guarantee.loss

    @property
    def released(self) -> bool:
        """Whether the ledger says that it is published; what it does not say is still to be done."""
        return case_of(self.state, {"new": False, "paid, not released": False, "released": True, "unknown": False})

    @property
    def new(self) -> bool:
        """Whether the ledger says that nothing was paid for it."""
        return case_of(self.state, {"new": True, "paid, not released": False, "released": False, "unknown": False})

    def as_shown(self, request: PlannedRelease) -> ReleaseCheck:
        """The same with what pages show of its request, for another process: errors are computed here."""
        return replace(self, request=request, offer=None, tables=tuple(self.tables))

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "dataset": self.request.source.dataset,
            "state": self.state,
            "loss": self.loss.to_dict(),
            "guarantee": str(self.request.guarantee),
            "tables": [table.to_dict() for table in self.tables],
            "expected": None if self.expected is None else self.expected.to_dict(),
            **({} if self.agency is None else {"agency": self.agency.to_dict()}),
        }


@dataclass(frozen=True, slots=True, repr=False)
class PlanCheck:
    """Everything that is known about a plan without its data.

    Attributes
    ----------
    spending : what is spent of each data set.
    faults : what keeps the plan from being run; it can be run where there are none.
    missing : files of the data that `run` needs and that are not present.
    room : what the engine's memory has no room for, or how much it has.
    """

    file: PlanFile
    releases: tuple[ReleaseCheck, ...]
    spending: tuple[Spending, ...]
    faults: tuple[Fault, ...]
    missing: tuple[Fault, ...] = ()
    room: tuple[str, ...] = ()

    def __repr__(self) -> str:
        name = self.file.document.path.name
        return f"<PlanCheck of {name!r}: {len(self.releases)} releases cost {self.cost}, {len(self.faults)} faults>"

    @property
    def cost(self) -> Loss:
        """The total cost of all releases that are not paid yet, over all data sets."""
        return total([each.cost for each in self.spending])

    @property
    def only(self) -> Spending:
        """The amount spent, in a plan about one data set."""
        [spending] = self.spending
        return spending

    @property
    def up_to_the_rows(self) -> tuple[str, ...]:
        """The releases that may need more rows than there are, where the data are not here to tell."""
        waiting = [check for check in self.releases if not check.released and check.expected is None]
        return tuple(check.name for check in waiting if not kind_of(check.request.release).of_jobs)

    @property
    def notes(self) -> tuple[str, ...]:
        """Questions that the payer should ask the owner of the data first, from public facts alone."""
        rows = [source for source in self.file.sources if isinstance(source.unit, Rows | Groups)]
        untyped = any(is_csv(source.data(source.tables.data.source)) for source in rows)
        unasked = len(self.spending) > 1 and self.file.plan.people is None
        before = ", ".join(repr(each.dataset) for each in self.spending if not each.anchored)
        old = (UNANCHORED.format(names=before),) if before else ()
        return (*((UNTYPED,) if untyped else ()), *((ASKED,) if unasked else ()), *old, *self.room)

    @property
    def said(self) -> tuple[Assurance, ...]:
        """What may be said of each data set, once all is released."""
        asked: dict[str, list[Claim]] = {each.dataset: [*each.earlier] for each in self.spending}
        for known in self.releases:
            dataset = known.request.source.dataset
            asked[dataset].append(Claim.of(known.request.guarantee, release=known.name, dataset=dataset))
        return tuple(
            Assurance.of(
                asked[one.dataset],
                spent=one.after.spent if one.fits and one.known else None,
                jobs=one.jobs_of_one_worker,
            )
            for one in self.spending
        )

    @property
    def in_several(self) -> Assurance | None:
        """The same about somebody who is in several data sets."""
        return Assurance.in_several(self.said, people=self.file.plan.people)

    @property
    def without_data(self) -> PlanCheck:
        """The same without the offers, which can read the data of the plan."""
        return replace(self, releases=tuple(replace(each, offer=None) for each in self.releases))

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
            **(self.only.to_dict() if len(self.spending) == 1 else {}),
            "budgets": [each.to_dict() for each in self.spending],
            "cost": self.cost.to_dict(),
            **({} if (several := self.in_several) is None else {"in_several": several.to_dict()}),
            "releases": [check.to_dict() for check in self.releases],
            **({"alarms": self.alarms} if self.file.plan.alarms else {}),
        }

    @property
    def alarms(self) -> dict[str, str]:
        """One sentence about what each step of alarms would do."""
        return {
            each.name: (
                f"changes {'' if each.early is None else f'from {each.early} '}"
                f"{'of' if each.early is None else 'to'} {each.late}, {_false(each)}. {COSTS}"
            )
            for each in self.file.plan.alarms
        }

    def _listed(self, faults: tuple[Fault, ...]) -> list[dict[str, Any]]:
        document = self.file.document
        return [{"line": document.line(fault.place), "message": document.located(fault).told()} for fault in faults]


@one_moment()
@at_work()
def check(file: PlanFile) -> PlanCheck:
    """Price a plan and look for everything that is wrong with it."""
    _refuse_nonsense(file)
    require_writer(file)
    # What is there before the ledger is asked cannot have come from a publication that it does not know.
    present = present_in(file)
    known, broken = standings(file)
    paid = {(dataset, name): entry for dataset, each in known.items() for name, entry in each.charged.items()}
    asked, wrong = requests(file, paid=paid)
    public = {source.name: PublicSizes.of(source) for source in file.sources}
    # Of a ledger that cannot be read it is not known what it released, and good releases would be accused.
    faults = [
        *shared_data(file),
        *secret_lookups(file),
        *wrong,
        *broken,
        *output_faults(file, known, set() if broken else present),
    ]
    faults += [fault for _, unread in public.values() for fault in unread]
    spending = []
    for dataset, source in file.accounts.items():
        mine = [request for request in asked if request.source.dataset == dataset]
        spent, found = spend(source, mine, known[dataset])
        spending.append(spent)
        faults += found
    checks, gone = [], {source.name: tuple(_missing(source)) for source in file.sources}
    data = {source.name: Confidential(source) for source in file.sources}
    for request in asked:
        source = request.source
        sizes, _ = public[source.name]
        state = known[source.dataset].state(request.release.name)
        one = ReleaseCheck(request, state, request.tables(sizes), request.expected(sizes))
        if not kind_of(request.release).of_jobs and not gone[source.name] and not one.released:
            one, found = _foreseen(one, data[source.name])
            faults += found
        one, found = _beside(one)
        faults += found
        checks.append(one)
    named = {one.name: one.request for one in checks}
    _, found = alarm_steps(file.plan.alarms, named, earlier_of(file.path))
    faults += found
    done = {one.name for one in checks if one.released}
    waiting = [source.name for source in file.sources if any(release.name not in done for release in source.releases)]
    faults += public_lookups(file, waiting)
    jobs = {request.source.name for request in asked if kind_of(request.release).of_jobs}
    for name in waiting:
        faults += data[name].unnamed() if name in jobs and not gone[name] else []
    missing = [fault for name in waiting for fault in gone[name]]
    if (failed := unopened()) is not None:
        missing += [replace(fault, place=("engine", "master")) for fault in failed.faults]
    room = room_notes(
        file, [each for each in asked if each.release.name not in done], {n: s for n, (s, _) in public.items()}
    )
    return PlanCheck(file, tuple(checks), tuple(spending), tuple(faults), tuple(missing), tuple(room))


def _false(alarms: AlarmsSection) -> str:
    if alarms.fdr is not None:
        return f"of which a share of at most {100 * float(alarms.fdr):g} % is expected to be false"
    return f"with false alarms for at most {100 * float(alarms.chance):g} % of cells that did not change"


def _foreseen(known: ReleaseCheck, data: Confidential) -> tuple[ReleaseCheck, list[Fault]]:
    """A model or a summary with its expected errors, from what is public of the data: no other column is read."""
    try:
        offer = known.request.offer(data)
        return replace(known, offer=offer, expected=offer.check().expected), []
    except PlanError:
        return known, []  # what this user may not read, `run` refuses
    except (EngineError, MissingExtra) as error:
        if error is not unopened():
            raise
        return known, []  # a plan is priced without a cluster, too
    except (DataError, FormulaError, FitError, PrivacyError) as error:
        return known, blamed(known.request.source, known.request.release, error)


def _beside(known: ReleaseCheck) -> tuple[ReleaseCheck, list[Fault]]:
    """A release with the public table that it is to be shown beside; what is released has it in its folder."""
    request = known.request
    asked = request.compare
    if asked is None or known.released:
        return known, []
    try:
        found = read_public(request, asked)
    except DataError as error:
        return known, blamed(request.source, request.release, error)
    agency = AgencyCheck.of(found, asked, *request.error_beside(found))
    return replace(known, request=request.shown_beside(found), agency=agency), []


def _refuse_nonsense(file: PlanFile) -> None:
    """Refuse units and budgets that make no sense: without them nothing else can be judged."""
    faults: list[Fault] = []
    for source in file.sources:
        try:
            unit = source.unit
            if isinstance(unit, Rows | Groups):
                from discreet.models.linear.private.bounds import within_reach

                asked = f"lower = {shown(unit.lower)} with upper = {shown(unit.upper)}"
                within_reach(unit.lower, unit.upper, asked=asked)
        except PrivacyError as error:
            faults += [replace(fault, place=source.place("unit")) for fault in error.faults]
        try:
            source.tables.budget.total()
        except PrivacyError as error:
            faults += [replace(fault, place=source.place("budget")) for fault in error.faults]
    file.document.refuse(faults)


def _missing(source: PlanSource) -> Iterator[Fault]:
    """What [data] names and is not here. Nothing is opened."""
    data = source.tables.data
    for key, text in data.places:
        place = source.data(text)
        path = "" if isinstance(place, str) else str(place).partition("::")[0]
        if path and not (os.path.exists(path) or any(glob.iglob(path))):  # noqa: PTH110, PTH207 (no error, and globs)
            remedy = alike(Path(path), among=Path(path).parent) or "Bring it, or run the plan where it is."
            yield Fault(source.place("data", key), f"{text!r} is not here: `run` needs it.", remedy=remedy)
