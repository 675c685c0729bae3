"""Carry a plan out: check, read, pay, draw, publish, report; in an order that can be killed anywhere and run again.

Everything that can be wrong is found before the first charge: the plan, the ledger, the output folder, every row of
the data, every aggregate of every release. Then each release is charged, drawn into a folder nobody else can read,
fixed in the ledger and shown (`privacy.ledger.publication`). A run after a crash finds what is released, resumes what
is paid for and reads only what it still needs. Report and bundle are made from the published files alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data.databases import one_moment
from discreet.ledger import Budget, Entry, Head, Ledger
from discreet.ledger.lock import alone
from discreet.ledger.publication import others
from discreet.plan.blame import blamed
from discreet.plan.budgets import standings
from discreet.plan.bundle import REPORT, replace_file, set_aside, write_bundle
from discreet.plan.check import PlanCheck, ReleaseCheck, check
from discreet.plan.confidential import Confidential
from discreet.plan.engine import at_work, refuse_changed
from discreet.plan.facts import facts_of
from discreet.plan.file import PlanFile, PlanSource
from discreet.plan.kinds.alarms import alarm_steps, earlier_of, write_alarms
from discreet.plan.kinds.kind import PlannedRelease
from discreet.plan.reading import read_plan
from discreet.plan.same_data import CHANGED, DataFiles, EarlierData
from discreet.plan.spent import told_spent
from discreet.privacy.losses import Loss
from discreet.release.account import Account, exchanged
from discreet.release.alarms import kept
from discreet.release.known_data import Content, Fingerprint, content_of, content_of_rows
from discreet.release.offer import Offer
from discreet.report.release import Facts, page
from discreet.words.errors import DataError, DiscreetError, FitError, FormulaError, PrivacyError
from discreet.words.faults import Fault
from discreet.words.progress import Progress, silent

if TYPE_CHECKING:
    from discreet.data.delimited import Reading


@dataclass(frozen=True, slots=True, repr=False)
class RunResult:
    """What a run did.

    Attributes
    ----------
    check : the plan as it was found.
    publications : the ledger's line for every release; empty after a dry run.
    budgets : what each data set has left.
    head : the ledger's last line; keep it elsewhere.
    facts : what the report says.
    """

    check: PlanCheck
    folder: Path
    publications: Mapping[str, Entry]
    budgets: tuple[Budget, ...]
    head: Head | None = None
    report: Path | None = None
    bundle: Path | None = None
    facts: Facts | None = None

    def __repr__(self) -> str:
        name = self.check.file.document.path.name
        left = " and ".join(str(budget.remaining) for budget in self.budgets)
        return f"<RunResult of {name!r}: {len(self.publications)} released, {left} left>"

    @property
    def remaining(self) -> Loss:
        """What remains of the budget, in a plan about one data set; `budgets` are those of several."""
        [budget] = self.budgets
        return budget.remaining

    def other_files(self, name: str) -> list[str]:
        """Files in the folder of a release that were not released."""
        entry = self.publications.get(name)
        return [] if entry is None else others(entry, self.folder / name)

    def to_dict(self) -> dict[str, Any]:
        """For machines; paths are as the plan writes them."""
        output = Path(self.check.file.plan.output.folder)
        releases = []
        for known in self.check.releases:
            name, entry = known.name, self.publications.get(known.name)
            releases.append(
                {
                    "name": name,
                    "before": known.state,
                    "loss": known.loss.to_dict(),
                    "guarantee": str(known.request.guarantee),
                    "folder": (output / name).as_posix(),
                    "entry": None if entry is None else entry.reference,
                    "files": None if entry is None else entry.payload["files"],
                    "other_files": self.other_files(name),
                }
            )
        return {
            "plan": self.check.file.document.path.name,
            "dry_run": not self.publications,
            "releases": releases,
            **({"remaining": self.remaining.to_dict()} if len(self.budgets) == 1 else {}),
            "budgets": [budget.to_dict() for budget in self.budgets],
            "ledger_head": None if self.head is None else self.head._asdict(),
            "report": None if self.report is None else (output / self.report.name).as_posix(),
            "bundle": None if self.bundle is None else (output / self.bundle.name).as_posix(),
            **({"alarms": self.alarms} if self.check.file.plan.alarms else {}),
        }

    @property
    def alarms(self) -> dict[str, Any]:
        """The alarms that were written, by name; empty after a dry run."""
        return kept(self.folder) if self.publications else {}


def run(
    plan: PlanFile | str | Path,
    *,
    dry_run: bool = False,
    changed_data: bool = False,
    progress: Progress = silent,
) -> RunResult:
    """Release everything in the plan that is not released yet. `dry_run` stops before anything is written or spent.

    A run that resumes another refuses data that have changed since; `changed_data` takes them as they are now.
    Runs of one plan on one machine take turns: a second one finds everything released and ends like the first.
    """
    file = plan if isinstance(plan, PlanFile) else read_plan(plan)
    waiting = partial(progress, "wait for another run of this plan", 0.0)
    with told_spent(file, dry_run=dry_run), alone(file.document.path, waiting=waiting), one_moment(), at_work():
        return _run(file, dry_run=dry_run, changed_data=changed_data, progress=progress)


def _run(file: PlanFile, *, dry_run: bool, changed_data: bool, progress: Progress) -> RunResult:
    before = DataFiles.of(file, list(file.sources))
    found = check(file)
    found.refuse()
    file.document.refuse([fault for fault in found.missing if fault.place[:1] != ("engine",)])  # which says so itself
    waiting = [known for known in found.releases if not known.released]
    steps = _Steps(progress, total=1 + bool(waiting) + len(waiting) + (0 if dry_run else len(found.releases) + 2))
    steps.next("check the plan")
    offers, contents = _read(file, waiting, steps)
    found = found.without_data
    note = EarlierData.of(file)
    paid = any(not known.new for known in found.releases)
    held = before.held() if waiting and (paid or not dry_run) else {}
    if waiting:
        before.refuse_changes()
    if paid and not changed_data and note.differs(held):
        file.document.refuse([Fault(file.sources[0].place("data", "source"), CHANGED)])
    folder = file.path(file.plan.output.folder)
    if dry_run:
        return RunResult(found, folder, {}, tuple(each.before for each in found.spending))
    _try_out(file, folder)
    _refuse_copies(file, contents)
    if waiting:
        note.write(held)
    with Ledger.open(file.ledger, places=file.anchored) as ledger:
        accounts = {name: _account(ledger, name, source, contents) for name, source in file.accounts.items()}
        published = {}
        for known in found.releases:
            steps.next(f"release {known.name}")
            offer = offers.get(known.name) or _released(known.request)
            account = accounts[known.request.source.dataset]
            published[known.name] = _publish(account, offer, folder / known.name, name=known.name)
        budgets = tuple(ledger.budget(name, account.unit) for name, account in accounts.items())
        head, identity = ledger.head, ledger.identity
        lines = [entry for entry in ledger.entries() if entry.dataset in accounts]
    steps.next("write the report")
    alarms, _ = alarm_steps(
        file.plan.alarms, {known.name: known.request for known in found.releases}, earlier_of(file.path)
    )
    bundle = None
    with _written(folder):
        write_alarms(folder, alarms, file.plan.output.formats)
        facts = facts_of(found, published, budgets=budgets, head=head, lines=lines)
        set_aside(folder, published)
        report = replace_file(folder / REPORT, page(facts).html().encode())
        steps.next("write the reviewer's bundle")
        if file.plan.output.bundle:
            bundle = write_bundle(folder, file, lines, head=head, ledger=identity, published=published)
    note.drop()
    return RunResult(found, folder, published, budgets, head, report, bundle, facts)


@contextmanager
def _written(folder: Path) -> Iterator[None]:
    """Say what is left to do where papers cannot be written."""
    try:
        yield
    except FileNotFoundError:
        raise DiscreetError(
            f"No report could be made in {str(folder)!r}: files of a release are gone from there.",
            "All releases are made and paid for. They are not drawn again.",
            "Bring the files back, then run the plan again.",
            about="folder",
        ) from None
    except OSError as error:
        raise DiscreetError(
            f"The report or the bundle could not be written to {str(folder)!r}: {error.strerror}.",
            "All releases are made and in their folders.",
            "Make room or give the right to write, then run the plan again.",
            about="folder",
        ) from None


def _try_out(file: PlanFile, folder: Path) -> None:
    """Make a file where the output goes: rights alone do not tell whether that is possible."""
    existing = next(part for part in (folder, *folder.resolve().parents) if part.is_dir())
    try:
        tempfile.TemporaryFile(dir=existing).close()  # has no name: a kill leaves nothing behind
    except OSError as error:
        text = f"no folder can be made in {str(existing)!r}: {error.strerror}. Name a folder that can be written."
        file.document.refuse([Fault(("output", "folder"), text)])


def _read(
    file: PlanFile, waiting: list[ReleaseCheck], steps: _Steps
) -> tuple[dict[str, Offer[None, Any, Any]], dict[str, Content]]:
    """The offers of all releases that are still to be drawn, with everything read, and how jobs are recognised."""
    contents: dict[str, Content] = {}
    if not waiting:
        return {}, contents
    steps.next("check every row of the data")
    data = {source.name: Confidential(source) for source in file.sources}
    for source in file.sources:
        mine = [known for known in waiting if known.request.source.name == source.name]
        for known in mine:
            try:
                read = known.request.checked(data[source.name])
                if read is not None:
                    contents[source.name] = partial(content_of, read)
            except DataError as error:
                place = source.place("data", "source")
                file.document.refuse([replace(fault, place=fault.place or place) for fault in error.faults])
        if responses := [column for known in mine for column in known.request.responses]:
            contents[source.name] = partial(_rows_of, responses, data[source.name])
    for known in waiting:
        known.request.announce(data[known.request.source.name])
    offers, faults = {}, []
    # What is counted by kinds of workers serves tables of all workers, so that comes first.
    for known in sorted(waiting, key=lambda known: -_kinds(known.request)):
        steps.next(f"read for {known.name}")
        try:
            source = known.request.source
            offers[known.name] = (known.offer or known.request.offer(data[source.name])).at(None)
        except (DataError, FormulaError, FitError, PrivacyError) as error:
            faults += blamed(known.request.source, known.request.release, error)
    file.document.refuse(faults)
    refuse_changed(file)
    return offers, contents


def _rows_of(responses: Sequence[str], data: Confidential) -> Fingerprint | None:
    """How the rows of models are recognised: by the responses that they are asked about."""
    readings: dict[str, Reading] = dict.fromkeys(responses, "response")
    found = [content_of_rows(data.table(readings), response) for response in readings]
    there = [each for each in found if each is not None]
    return reduce(or_, there) if there else None


def _refuse_copies(file: PlanFile, contents: dict[str, Content]) -> None:
    """Refuse the same rows under two names of one plan before a ledger is made or a budget opened for one of them."""
    if len(file.accounts) == 1:
        return
    known, _ = standings(file)
    earlier: dict[str, str] = {}
    for name, source in file.accounts.items():
        content = contents.get(source.name)
        if content is None:
            continue
        found = content()
        contents[source.name] = partial(_kept, found)
        same = [other for other, digest in earlier.items() if found is not None and found.same(digest)]
        if same and not (known[name].budgets and known[same[0]].budgets):
            words = (
                f"{name!r} and {same[0]!r} are the same rows. All releases of one data set are paid from one budget. "
            )
            words += "Give both sources the same dataset and budget."
            file.document.refuse([Fault(source.place("budget", "dataset"), words)])
        earlier[name] = str(found)


def _kept(found: Fingerprint | None) -> Fingerprint | None:
    return found


def _account(ledger: Ledger, name: str, source: PlanSource, contents: Mapping[str, Content]) -> Account:
    """The account of a data set; rows that have a budget by another name are refused at the plan's name for them."""
    budget = source.tables.budget
    total, policy, content = budget.total(), budget.policy(), contents.get(source.name)
    try:
        return Account(
            ledger=ledger,
            dataset=name,
            unit=source.unit,
            budget=total,
            policy=policy,
            origin=source.origin,
            content=content,
        )
    except PrivacyError as error:
        place = source.place("budget", "dataset")
        source.file.document.refuse([replace(fault, place=fault.place or place) for fault in error.faults])
        raise


def _kinds(request: PlannedRelease) -> int:
    """The most kinds of workers that a table of the release counts; 0 where it has no table of counts."""
    return max((query.levels for query in request.queries), default=0)


def _released(request: PlannedRelease) -> Offer[None, Any, Any]:
    """The offer of what is released already: nothing is read or drawn for it again."""

    def gone(*given: Any) -> Any:
        raise exchanged(request.release.name)

    return Offer(request.guarantee, request.details, expected=gone, read=gone, draw=gone)


def _publish(account: Account, offer: Offer[None, Any, Any], folder: Path, *, name: str) -> Entry:
    try:
        return account.publish(offer, None, folder, name=name)
    except OSError as error:
        raise DiscreetError(
            f"Release {name!r} could not be written to {str(folder)!r}: {error.strerror}.",
            "It may be paid for; nothing was shown.",
            "Make room or give the right to write, then run the plan again: it resumes.",
            about="folder",
        ) from None


@dataclass(slots=True)
class _Steps:
    """Counts the steps of a run."""

    progress: Progress
    total: int
    done: int = 0

    def next(self, name: str) -> None:
        self.progress(name, self.done / self.total)
        self.done += 1
