"""Releases about rows: models and posterior summaries. Each is one function call, whose answer fits in one table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from discreet.ledger import Dates, Entry
from discreet.pages.page import Prose
from discreet.plan.agency import PublicTable
from discreet.plan.confidential import Confidential
from discreet.plan.file import PlanSource
from discreet.plan.kinds.alarms import AlarmStep, EarlierOf
from discreet.plan.kinds.kind import Given, PlannedRelease
from discreet.plan.kinds.recomputed import Recomputed, RowsAgain
from discreet.plan.outputs import shortened, write_release
from discreet.plan.shape import AlarmsSection, ModelSection, PosteriorSection, as_first_written
from discreet.plan.sheets import refuse_long
from discreet.plan.sizes import PublicSizes, TableCheck
from discreet.privacy.columns import taken
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Loss
from discreet.privacy.units import Groups, Rows
from discreet.release.files import SUMMARY_SAMPLER
from discreet.release.offer import Offer
from discreet.release.tables import read_table
from discreet.report.release import Results
from discreet.tables.query import CountQuery
from discreet.words.errors import PrivacyError

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.frames import Frame
    from discreet.models.formula.formula import Formula
    from discreet.models.formula.roles import Roles

Section = TypeVar("Section", bound=ModelSection | PosteriorSection)

COLUMNS = {
    "coefficient": "name of a coefficient, as R writes it",
    "at": "the cut-off, the probability or the level asked about",
    "answer": "the private answer",
    "low": "lower end: the answer of all rows at once, at 95 %, if the model is right; of an interval, its own end",
    "high": "upper end of the same",
    "effect": "fixed, random or variance",
    "group": "grouping factor",
    "term": "name of the coefficient or level",
    "estimate": "the private estimate",
    "std_error": "its standard error, noise included",
    "flag": "why the estimate must not be read as it stands; empty where nothing is known against it",
}


@dataclass(frozen=True, slots=True)
class PlannedRows(ABC, Generic[Section]):
    """One release about rows. It has no tables of jobs, and is compared with no agency's table."""

    source: PlanSource
    release: Section
    guarantee: Guarantee
    details: dict[str, Any]
    offered: Callable[[Any], Offer[None, Any, Any]]
    """The model or the summary as an offer, from the public columns of the data."""

    @property
    def queries(self) -> tuple[CountQuery, ...]:
        return ()

    @property
    def places(self) -> list[tuple[str, list[str]]]:
        return [("", [])]

    @property
    def columns(self) -> dict[str, str]:
        return COLUMNS

    @property
    def used(self) -> set[str]:
        return set()

    @property
    def times(self) -> int:
        return 1

    @property
    def dates(self) -> Dates:
        return Dates(self.source.tables.data.period)

    @property
    def reads_quarters(self) -> bool:
        return False

    @property
    def jobs(self) -> None:
        return None

    def tables(self, sizes: PublicSizes | None) -> tuple[TableCheck, ...]:
        return ()

    def expected(self, sizes: PublicSizes | None) -> None:
        return None

    @property
    def compare(self) -> None:
        return None

    def shown_beside(self, found: PublicTable) -> Self:
        return self

    def error_beside(self, found: PublicTable) -> tuple[None, None]:
        return None, None

    def checked(self, data: Confidential) -> None:
        return None

    @property
    def responses(self) -> tuple[str, ...]:
        """The column that it is about."""
        return (self.model.response.column,)

    def announce(self, data: Confidential) -> None:
        """Each release reads its own columns."""

    @property
    def model(self) -> Formula:
        """Its formula as read."""
        from discreet.models.formula.formula import read_formula

        return read_formula(self.release.formula, needs_random=False)

    def offer(self, data: Confidential) -> Offer[None, Any, Any]:
        """The offer about these data, which writes the files of the release. Only public columns are read for it."""
        from discreet.models.formula.roles import Roles

        declared = self.source.tables.data
        model, roles = self.model, Roles(declared.public, declared.numbers)
        self.refuse_unknown(model, roles, data)
        table = data.table(roles.readings(model))
        if data.engine is not None and self.needs_rows(table, model):
            data.refuse_collection(table, model.columns)
        found = self.offered(table)
        if found.guarantee.loss.to_dict() != self.guarantee.loss.to_dict():
            raise PrivacyError(
                f"Release {self.release.name!r} would cost another loss than {self.guarantee.loss}.",
                "Nothing was spent.",
                "Report this with its formula.",
                about="release",
            )

        def read(nothing: None) -> Any:
            known: Any = found.expected()
            refuse_long(self.source, self.lengths(known))
            return found.read(nothing)

        write = partial(self._write, found.details)
        return replace(found, guarantee=self.guarantee, details=self.details, read=read, write=write)

    @abstractmethod
    def refuse_unknown(self, model: Formula, roles: Roles, data: Confidential) -> None:
        """Refuse columns without a role that the offer itself would not refuse."""

    @abstractmethod
    def needs_rows(self, table: Frame, model: Formula) -> bool:
        """Whether sums by categories, which an engine can compute, are not enough."""

    @abstractmethod
    def lengths(self, expected: Any) -> list[int]:
        """How many rows its table has, where these may be many."""

    @abstractmethod
    def written(self, value: Any) -> pa.Table:
        """What was drawn, as a table."""

    @property
    @abstractmethod
    def limits(self) -> list[str]:
        """The kinds of limits that its answers have."""

    @abstractmethod
    def alarm(self, asked: AlarmsSection, others: Mapping[str, PlannedRelease], earlier: EarlierOf) -> AlarmStep: ...

    def _write(
        self, constants: Mapping[str, Any], value: Any, guarantee: Guarantee, entry: Entry, folder: Path
    ) -> None:
        """Write every file of the release into `folder`; `constants` are those of its mechanism."""
        research = self.written(value)
        write_release(
            folder,
            {"": {"research": research, "basic": shortened(research)}},
            self.source.output,
            guarantee=guarantee.noted(*getattr(value, "notes", ())),
            entry=entry,
            parameters={**self.details, "mechanism": dict(constants)},
            columns={name: COLUMNS[name] for name in research.column_names},
            sampler=SUMMARY_SAMPLER,
        )

    def published(self, folder: Path) -> pa.Table:
        """The answers as they were published, in full where that form is there."""
        forms = ("research.parquet", "research.csv", "basic.parquet", "basic.csv")
        path = next((folder / name for name in forms if (folder / name).exists()), folder / forms[0])
        return read_table(path, kind=path.suffix[1:], attributes=())

    def results(self, folder: Path) -> Results:
        """The answers, from the published files."""
        from discreet.report.estimates import estimates, in_short
        from discreet.report.flags import LIMITS

        table = self.published(folder)
        return Results(
            flagged=_flagged(self.release.name, table),
            answers=[
                Prose(f"Formula `{self.release.formula}`, {self.guarantee.loss} for all answers together."),
                *estimates(table, self.release.name),
            ],
            short=in_short(table, self.release.name),
            limits=[LIMITS[kind] for kind in self.limits],
        )

    def differences(self, folder: Path, earlier: PlannedRelease, before: Path) -> list[str]:
        return []

    @property
    def sampler(self) -> str:
        return SUMMARY_SAMPLER

    def described(self, stated: Iterable[str]) -> Mapping[str, str | None]:
        return {column: COLUMNS.get(column) for column in stated}

    def promise(self, claim: Mapping[str, Any], loss: Loss) -> Guarantee:
        """Its notes may follow from public columns, which a reviewer does not have."""
        stated = {part: claim[part] for part in ("calibration", "basis", "proof")}
        return Guarantee(self.guarantee.unit, loss, **stated, notes=tuple(claim["notes"]))

    def recomputed(self, folder: Path) -> Recomputed:
        return RowsAgain(self.details, folder)


def _flagged(name: str, table: pa.Table) -> list[str]:
    """A line for each flag and kind of estimate that has it."""
    from discreet.report.flags import FLAGS

    found: dict[tuple[str, str, str], list[str]] = {}
    rows = table.to_pylist() if "flag" in table.column_names else []
    for row in rows:
        for word in row["flag"].split(", ") if row["flag"] else ():
            what = (row.get("effect", "answer"), row.get("group") or "", word)
            found.setdefault(what, []).append(row.get("term") or row.get("coefficient", ""))
    fixed = sum(row.get("effect", "fixed") == "fixed" for row in rows)
    lines = []
    for (effect, group, word), terms in found.items():
        some = f" {', '.join(dict.fromkeys(terms))}" if len(terms) < fixed else ""
        shown = {"fixed": f"fixed effects{some}", "random": f"effects of {group}", "answer": f"answers{some}"}
        lines.append(f"**{name}, {shown.get(effect, f'variance of {group}')}: {word}.** {FLAGS[word]}")
    return lines


def details_of(given: Given, release: Section, unit: Rows | Groups, public: tuple[str, ...]) -> dict[str, Any]:
    """Everything that decides the published files of a release about rows."""
    dumped = release.model_dump(mode="json", exclude={"name", "title", "source", "replaces"})
    output = given.source.output
    forms = {"forms": sorted(output.forms), "formats": sorted(output.formats)}
    return as_first_written(dumped) | taken(unit, public) | forms


def other_unit(kind: str, given: Given, also: str = "") -> PrivacyError:
    return PrivacyError(
        f"{kind} releases protect single rows{also}, and this source protects {given.account.unit.key}.",
        remedy="Use [unit] kind = 'rows' with lower, upper and response, for a source of its own.",
        about="kind",
    )
