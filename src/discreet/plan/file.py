"""A plan with the text it came from, and each of its sources with its files and its places in that text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from discreet.data.databases import is_address
from discreet.data.scans import is_remote, origin_of
from discreet.data.schema import Schema
from discreet.ledger.anchors import OutputFolder, Place
from discreet.plan.document import Document
from discreet.plan.shape import ALONE, AnyRelease, Output, Plan
from discreet.plan.source import Columns, LevelsSection, SourceSection
from discreet.privacy.units import Unit
from discreet.words.errors import DataError
from discreet.words.faults import Place as KeyPlace


@dataclass(frozen=True, slots=True, repr=False)
class PlanFile:
    """A plan and the text it came from; `traces` are where charges leave anchors beside its output folder."""

    plan: Plan
    document: Document
    traces: tuple[Place, ...] = ()

    def __repr__(self) -> str:
        return f"<PlanFile {self.document.path.name!r}: {len(self.plan.release)} releases>"

    def path(self, text: str) -> Path:
        """A path of the plan, which is relative to the plan's folder."""
        return self.document.folder / text

    @property
    def sources(self) -> tuple[PlanSource, ...]:
        """The sources by name, as a bundle has them: a reviewer's report is in the same order."""
        return tuple(PlanSource(self, name) for name in sorted(self.plan.source))

    @property
    def accounts(self) -> dict[str, PlanSource]:
        """The data sets by name, each with the first of its sources: several may have one budget."""
        found: dict[str, PlanSource] = {}
        for source in self.sources:
            found.setdefault(source.dataset, source)
        return found

    def source(self, release: AnyRelease) -> PlanSource:
        """The source of a release; the only one needs no name."""
        return PlanSource(self, next(iter(self.plan.source)) if release.source is None else release.source)

    @property
    def ledger(self) -> str:
        """The place of the ledger of all sources: a file relative to the plan, or a server's address."""
        where = next(iter(self.plan.source.values())).budget.ledger
        return where if "://" in where else str(self.path(where))

    @property
    def anchored(self) -> tuple[Place, ...]:
        """Where its charges leave anchors of the ledger, beside this user's note."""
        return (*self.traces, OutputFolder(self.path(self.plan.output.folder)))

    def index(self, name: str) -> int:
        """The number of the release called `name`."""
        return next(i for i, release in enumerate(self.plan.release) if release.name == name)


@dataclass(frozen=True, slots=True, repr=False)
class PlanSource:
    """One source of a plan."""

    file: PlanFile
    name: str

    def __repr__(self) -> str:
        return f"<PlanSource {self.name!r} of {self.file.document.path.name!r}: {self.tables.budget.dataset!r}>"

    @property
    def tables(self) -> SourceSection:
        """The plan's entries for it: data, hierarchy, unit, budget, public."""
        return self.file.plan.source[self.name]

    @property
    def dataset(self) -> str:
        """The name under which the ledger knows its data."""
        return self.tables.budget.dataset

    @property
    def unit(self) -> Unit:
        """Whom it protects."""
        return self.tables.unit.unit()

    @property
    def origin(self) -> str | None:
        """The files of its rows, so that a ledger recognises them."""
        return origin_of(self.data(self.tables.data.source))

    @property
    def output(self) -> Output:
        """Where the plan's files go."""
        return self.file.plan.output

    @property
    def releases(self) -> tuple[AnyRelease, ...]:
        """The releases that are from it."""
        return tuple(release for release in self.file.plan.release if self.file.source(release).name == self.name)

    def path(self, text: str) -> Path:
        """A path of the plan, which is relative to the plan's folder."""
        return self.file.path(text)

    def data(self, text: str) -> Path | str:
        """The place of the plan's data: a path, or the address of a table on a server."""
        return text if is_address(text) or is_remote(text) else self.path(text)

    def place(self, *keys: str) -> KeyPlace:
        """A key of the source in the plan's text: the tables of a single one are at the top."""
        return keys if self.name == ALONE else ("source", self.name, *keys)

    def schema(self) -> Schema:
        """The schema that the plan contains, names, or finds beside the data. It is public and says nothing about rows.

        Hierarchies of the plan come on top of those of the schema.
        """
        found, own = self._schema(), self.tables.hierarchy
        if not own:
            return found
        levels = {
            name: each.model_dump(exclude_none=True) if isinstance(each, LevelsSection) else each
            for name, each in own.items()
        }
        for each in levels.values():
            if isinstance(each, dict) and "lookup" in each:
                each["lookup"] = str(self.path(each["lookup"]))
        return replace(found, hierarchy={**found.hierarchy, **levels})

    def _schema(self) -> Schema:
        data = self.tables.data
        if isinstance(data.columns, Columns):
            return data.columns.schema_of_jobs()
        if data.columns is not None:
            return Schema.read(self.path(data.columns))
        place = self.data(data.source)
        found = None if isinstance(place, str) else Schema.beside(place)
        if found is None:
            raise DataError(
                f"there is none in the plan and none beside {data.source!r}.",
                "Which values a worker's attribute can take is public and must not be learned from the data.",
                "Add [data.schema], or schema = 'schema.toml'.",
                about="schema",
            )
        return found
