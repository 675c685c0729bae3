"""The door: confidential jobs, whom to protect, and how much may be given away in total."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from discreet.data.histories import Histories, when_is
from discreet.data.jobs import Jobs
from discreet.data.schema import Label
from discreet.ledger import Period, Policy
from discreet.privacy.losses import Loss, Number, Pure
from discreet.privacy.units import Unit
from discreet.release.account import Account
from discreet.release.known_data import content_of
from discreet.tables.amounts import refuse_amounts
from discreet.tables.mean import MeanQuery
from discreet.tables.movement.changes import ChangeQuery
from discreet.tables.movement.flows import FlowQuery
from discreet.tables.query import CountQuery
from discreet.tables.workload import Workload, measured_tables
from discreet.words.arguments import of_kinds
from discreet.words.errors import DataError, PrivacyError
from discreet.words.faults import Argument


class Session:
    """Jobs under a budget.

    Examples
    --------
    >>> import discreet as dc
    >>> jobs = dc.read_jobs("jobs/")                                                # doctest: +SKIP
    >>> session = dc.Session(jobs, unit=dc.Establishments(alpha=0.1), budget=4.0)   # doctest: +SKIP
    >>> table = session.count(by=["place", "sector", "ownership"])                  # doctest: +SKIP
    >>> print(table.check(epsilon=2))                                               # doctest: +SKIP
    >>> release = table.release(epsilon=2)                                          # doctest: +SKIP
    """

    def __init__(
        self,
        jobs: Jobs | Histories,
        *,
        unit: Unit,
        budget: Number | Loss,
        ledger: str | Path | None = None,
        dataset: str | None = None,
        period: str | None = None,
        per_period: Number | None = None,
        seed: int | None = None,
    ) -> None:
        """Open the account of `jobs`.

        Parameters
        ----------
        jobs : the confidential table, from `read_jobs`, or job histories, from `read_histories`.
        unit : whom to protect, for example `Establishments(alpha=0.1)`.
        budget : the total loss that all releases together may reach; a number is a pure epsilon.
        ledger : a path, or a PostgreSQL address, of the ledger that keeps count beyond this session. Without one the
            budget is forgotten when the process ends: for trials only.
        dataset : the name of these data in the ledger, however they are read. A ledger needs one.
        period : the year, quarter or month that the jobs are about: "2026-Q1". Quarters of job histories say it.
        per_period : the most that releases which read rows of one period may cost together, if the budget is for a
            series. Flows and changes read several quarters; they count for each, and once in the budget.
            Periods are as long as `period`, or as the quarters of job histories.
        seed : makes the noise reproducible and the releases not private; they say so.
        """
        _refuse(jobs, unit, ledger, dataset)
        total = budget if isinstance(budget, Loss) else Pure(budget)
        self.jobs = jobs
        account = Account.open(
            ledger,
            dataset=dataset or jobs.name,
            unit=unit,
            budget=total,
            policy=_policy(jobs, period, per_period),
            period=period,
            seed=seed,
            origin=jobs.origin,
            content=partial(content_of, jobs),
        )
        read = jobs.quarters if isinstance(jobs, Jobs) else ()
        self.account = dated(account, read[-1], read) if read else account

    @property
    def unit(self) -> Unit:
        """Whom the session protects."""
        return self.account.unit

    @property
    def remaining(self) -> Loss:
        """What remains of the budget."""
        return self.account.remaining

    def count(
        self,
        by: str | Sequence[str] = (),
        *,
        where: Mapping[str, Label | Sequence[Label]] | None = None,
        establishments: bool = False,
    ) -> CountQuery:
        """Counts of jobs by any workplace and worker attributes, keeping the values in `where`.

        With `establishments` their number is published too, without noise: it is public.
        """
        return self._counted(by, where=where, establishments=establishments)

    def sum(
        self,
        of: str,
        by: str | Sequence[str] = (),
        *,
        where: Mapping[str, Label | Sequence[Label]] | None = None,
        establishments: bool = False,
    ) -> CountQuery:
        """Sums of a declared magnitude, such as payroll, by any attributes, keeping the values in `where`."""
        if of is None:  # elsewhere it stands for a count
            refuse_amounts(self.jobs.schema, of, self.unit)
        return self._counted(by, where=where, magnitude=of, establishments=establishments)

    def mean(
        self, of: str, by: str | Sequence[str] = (), *, where: Mapping[str, Label | Sequence[Label]] | None = None
    ) -> MeanQuery:
        """The mean of a declared magnitude per job: a sum over a count, both published, under one loss."""
        return MeanQuery(self.sum(of, by, where=where), self.count(by, where=where))

    def _counted(self, by: str | Sequence[str], **asked: Any) -> CountQuery:
        if isinstance(self.jobs, Histories):
            raise DataError(
                "Counts, or sums, were asked of job histories, which have several quarters.",
                "Flows of a quarter are `session.flows(quarter, by)`; counts are of one quarter's jobs.",
                "Use Session(histories.at(quarter), ...) under the same name of the data.",
                about="jobs",
            )
        if not isinstance(asked["establishments"], bool):
            raise DataError(
                (Argument("establishments", asked["establishments"]), " is neither yes nor no."),
                "It is True or False.",
                "Leave it out for False.",
                about="establishments",
            )
        return CountQuery.of(self.jobs, self.account, by=by, **asked)

    @of_kinds
    def flows(self, quarter: Label | Sequence[Label], by: str | Sequence[str] = ()) -> FlowQuery:
        """Accessions, separations, jobs created and destroyed, and rates of a quarter, by workplace attributes.

        Flows of consecutive quarters are added up, and their rates are of all of them together. At the same total
        epsilon they have much less noise than the sum of one release per quarter.
        """
        if not isinstance(self.jobs, Histories):
            raise DataError(
                "Flows were asked of jobs of one time.",
                "They follow workers from quarter to quarter.",
                "Use Session(read_histories(...), ...).",
                about="jobs",
            )
        query = FlowQuery.of(
            self.jobs, self.account, quarter=quarter if isinstance(quarter, str | int) else list(quarter), by=by
        )
        return replace(query, account=dated(self.account, query.quarters[-1], query.reads))

    @of_kinds
    def changes(self, quarters: Sequence[Label], by: str | Sequence[str] = ()) -> ChangeQuery:
        """Jobs of two quarters or more and what changed between them, by workplace attributes, under one loss."""
        if not isinstance(self.jobs, Histories):
            raise DataError(
                "Changes were asked of jobs of one time.",
                "They compare quarters.",
                "Use Session(read_histories(...), ...).",
                about="jobs",
            )
        query = ChangeQuery.of(self.jobs, self.account, quarters=[*quarters], by=by)
        return replace(query, account=dated(self.account, query.quarters[-1], query.reads))

    def marginals(
        self,
        *tables: str | Sequence[str],
        where: Mapping[str, Label | Sequence[Label]] | None = None,
        measure: Literal["finest"] | Sequence[str | Sequence[str]] | None = None,
        of: str | None = None,
        establishments: bool = False,
    ) -> Workload:
        """Several tables in one release, with an explicit split of the budget and consistent totals.

        They count jobs, or are sums of the magnitude `of`; `establishments` are as in `count`.

        `measure` lists those that are drawn, or is "finest" for the one of which all others are sums. A table that is
        not drawn is a sum of drawn ones and costs nothing.
        """
        queries = tuple(self._counted(by, where=where, magnitude=of, establishments=establishments) for by in tables)
        chosen = measured_tables([query.by for query in queries], measure, self.jobs.schema.hierarchies)
        return Workload(queries, tuple(chosen))

    def __repr__(self) -> str:
        read = "" if self.jobs.name == self.account.dataset else f", read from {self.jobs.name!r}"
        return f"Session on {self.account.dataset!r}{read}: {self.account.left} under {self.unit.key}"


def _policy(jobs: Jobs | Histories, period: str | None, limit: Number | None) -> Policy | None:
    """What each period may cost, where that is said."""
    known = [when for when in map(when_is, jobs.quarters) if when is not None]
    if period is not None and (isinstance(jobs, Histories) or known or len(jobs.quarters) > 1):
        raise DataError(
            (Argument("period", period), " was given with job histories."),
            "Names of their quarters say when they are: 2026Q1.",
            "Leave it out.",
            about="period",
        )
    if limit is None:
        return None
    if period is None and not jobs.quarters:
        raise DataError(
            (Argument("per_period", limit), " was given, and no period."),
            "A budget has amounts for years, quarters or months.",
            ("Say which the jobs are about: ", Argument("period", "2026-Q1"), "."),
            about="period",
        )
    last = Period.of(period if period is not None else str(jobs.quarters[-1]))
    return Policy.of({"each": last.step, "limit": limit})


def dated(account: Account, quarter: Label, reads: Sequence[Label]) -> Account:
    """The account of releases about a quarter that read rows of some, where the names of these tell when they are."""
    when = [period for period in map(when_is, (quarter, *reads)) if period is not None]
    if len(when) <= len(reads):
        return account
    return account.about(when[0], reads=when[1:] if len(reads) > 1 else ())


def _refuse(jobs: object, unit: object, ledger: object, dataset: object) -> None:
    """Refuse what is no table of jobs, protects nobody, or would be counted under a name that depends on the route."""
    if not hasattr(jobs, "schema"):
        raise DataError(
            f"A session was opened on a {type(jobs).__name__}.",
            "It needs jobs that were read and checked.",
            "Use Session(read_jobs(...), ...).",
            about="jobs",
        )
    if not isinstance(unit, Unit):
        raise PrivacyError(
            (Argument("unit", unit), " does not say whom to protect."),
            "It is a definition with its parameters.",
            "Use for example unit=Establishments(alpha=0.1), or unit=Workers() to protect single jobs only.",
            about="unit",
        )
    if dataset is not None and not isinstance(dataset, str):
        raise PrivacyError(
            (Argument("dataset", dataset), " is not a name."),
            "It is text.",
            ("Use for example ", Argument("dataset", "jobs 2026"), "."),
            about="dataset",
        )
    if ledger is not None and not dataset:
        raise PrivacyError(
            f"The ledger {str(ledger)!r} was given without a name for the data.",
            "It counts what was spent on each data set by name, and the same rows as a file and as a "
            "frame would have two budgets.",
            ("Give ", Argument("dataset", "jobs 2026"), ", and the same name next time, however the rows are read."),
            about="dataset",
        )
