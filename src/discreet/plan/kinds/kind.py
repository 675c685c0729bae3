"""What every kind of release of a plan answers: its price, its promise, its files, and what follows from them.

A `ReleaseKind` is of a section of the plan, before anything is priced; a `PlannedRelease` is one with its price.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from discreet.data.histories import Histories
from discreet.data.jobs import Jobs
from discreet.ledger import Dates, Entry
from discreet.plan.agency import PublicTable
from discreet.plan.confidential import Confidential
from discreet.plan.file import PlanSource
from discreet.plan.kinds.alarms import AlarmStep, EarlierOf
from discreet.plan.kinds.recomputed import Recomputed
from discreet.plan.shape import AlarmsSection, AnyRelease, Compare
from discreet.plan.sizes import Expected, PublicSizes, TableCheck
from discreet.privacy.guarantee import Calibration, Guarantee
from discreet.privacy.losses import Loss
from discreet.release.account import Account
from discreet.release.offer import Offer, Outlook
from discreet.report.release import Results
from discreet.tables.query import CountQuery


class PlannedRelease(Protocol):
    """One release of a plan, priced without its data, and everything that its kind decides."""

    @property
    def source(self) -> PlanSource: ...

    @property
    def release(self) -> AnyRelease: ...

    @property
    def guarantee(self) -> Guarantee: ...

    @property
    def details(self) -> dict[str, Any]:
        """Everything that decides the published files, for the ledger."""

    # What its tables are.

    @property
    def queries(self) -> Sequence[CountQuery]:
        """The tables of counts or sums that are drawn; none of other kinds."""

    @property
    def places(self) -> list[tuple[str, list[str]]]:
        """The place of every table in the release's folder, drawn ones first, with the attributes of its cells."""

    @property
    def columns(self) -> dict[str, str]:
        """What each column of the published tables is."""

    @property
    def used(self) -> set[str]:
        """The attributes of a schema that its tables rest on."""

    @property
    def times(self) -> int:
        """How many rows of one cell differ in their time alone."""

    # What the budget reads.

    @property
    def dates(self) -> Dates:
        """The period that it is about, and those that it reads."""

    @property
    def reads_quarters(self) -> bool:
        """Whether a budget of periods has to know when the quarters are that it reads."""

    @property
    def jobs(self) -> Jobs | None:
        """The jobs that one worker may have several of, of which nothing is known but what is declared."""

    # Before it exists.

    def tables(self, sizes: PublicSizes | None) -> Sequence[TableCheck]:
        """The price and the expected error of each table of counts."""

    def expected(self, sizes: PublicSizes | None) -> Outlook | None:
        """The expected error of everything else; None where the public columns of the data tell it."""

    @property
    def compare(self) -> Compare | None:
        """The public table that it is to be shown beside."""

    def shown_beside(self, found: PublicTable) -> PlannedRelease:
        """The same with this public table."""

    def error_beside(self, found: PublicTable) -> tuple[PublicSizes | None, Expected | None]:
        """The expected error on numbers that an agency publishes, where they are jobs of cells that are drawn."""

    # Its data and its files.

    def checked(self, data: Confidential) -> Jobs | Histories | None:
        """The rows that it is of, after every one was checked; None for rows that are not of jobs."""

    @property
    def responses(self) -> tuple[str, ...]:
        """The columns by which rows that are not of jobs are recognised."""

    def announce(self, data: Confidential) -> None:
        """Tell the data what this release will read, before the first one reads."""

    def offer(self, data: Confidential) -> Offer[None, Any, Any]:
        """The release as an offer about these data; only what is public of them is read for it."""

    def results(self, folder: Path) -> Results:
        """What the report says, from the published files."""

    def differences(self, folder: Path, earlier: PlannedRelease, before: Path) -> list[str]:
        """How its numbers differ from those of an earlier release of the plan, from the published files of both."""

    def alarm(self, asked: AlarmsSection, others: Mapping[str, PlannedRelease], earlier: EarlierOf) -> AlarmStep:
        """What alarms about this release compare, or an error that says why they cannot."""

    # What a reviewer asks.

    @property
    def sampler(self) -> str:
        """How its files say that noise was drawn."""

    def described(self, stated: Iterable[str]) -> Mapping[str, str | None]:
        """The words about columns, where files have those `stated`."""

    def promise(self, claim: Mapping[str, Any], loss: Loss) -> Guarantee:
        """The guarantee that files with this claim may state."""

    def recomputed(self, folder: Path) -> Recomputed:
        """What follows from the drawn numbers that were published."""


class Given(NamedTuple):
    """What a section is priced with: its source, the account, and the charge of what was paid for."""

    source: PlanSource
    account: Account
    jobs: Jobs | None
    paid: Entry | None

    @property
    def declared(self) -> Jobs:
        """The jobs of the source, of which nothing is known but their schema."""
        assert self.jobs is not None  # a kind that is of jobs gets them
        return self.jobs


class Division(NamedTuple):
    """What decides how the epsilon of several tables is divided."""

    queries: Callable[[Jobs, Account], Sequence[CountQuery]]
    epsilon: Any
    delta: Any
    calibration: Calibration
    scale_share: Any
    add_up: bool


class OwnersColumns(NamedTuple):
    """What the owner of rows looks at before a release: formulas of numbers, earlier responses, shares as responses."""

    formulas: tuple[str, ...] = ()
    lagged: tuple[str, ...] = ()
    outcomes: bool = False


def _none(release: Any) -> tuple[Any, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class ReleaseKind:
    """What is known of a section of a plan by its kind, before anything is priced.

    Attributes
    ----------
    request : the release with its price, or an error that says what is wrong with it.
    of_jobs : whether it is of jobs with a schema, and not of rows with a response.
    subject : the key that says what is released.
    steering : the keys that decide the noise; the first that is given is to blame.
    parameters : parameters of functions that a plan calls otherwise.
    counted : the attributes and filters of each table of counts.
    division : what decides how epsilon is divided among its tables, where there may be several.
    columns : the columns of rows that it names.
    of_owner : what the owner of the rows looks at.
    reported : keys on which nothing but the report depends.
    """

    request: Callable[[Given, Any], PlannedRelease]
    of_jobs: bool
    subject: str
    steering: tuple[str, ...]
    parameters: Mapping[str, str]
    counted: Callable[[Any], Sequence[tuple[tuple[str, ...], Mapping[str, Any]]]] = _none
    division: Callable[[Any], Division | None] = lambda release: None
    columns: Callable[[Any], Iterable[str]] = _none
    of_owner: Callable[[Any], OwnersColumns] = lambda release: OwnersColumns()
    reported: tuple[str, ...] = ()
