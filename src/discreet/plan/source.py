"""One confidential source of a plan: its data, its unit, its budget, and the public facts about it.

Only the shape, as in `shape`. A plan with one source writes these tables at its top: [data], [unit], [budget].
"""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    StrictInt,
    Tag,
    model_validator,
)

from discreet.data.schema import Schema
from discreet.ledger import Policy
from discreet.ledger.periods import Step
from discreet.plan.values import (
    Amount,
    Attributes,
    Category,
    DataPlace,
    DataSetName,
    LedgerPlace,
    Line,
    PathText,
    PeriodName,
    Price,
    Probability,
    Responses,
    Text,
    TruthOrNumber,
    above_zero,
    different,
)
from discreet.privacy.losses import Loss, loss
from discreet.privacy.units import EstablishmentNodes, Establishments, Groups, Rows, Strength, Unit, Workers
from discreet.words.errors import PlanError
from discreet.words.faults import Fault


class Section(BaseModel):
    """One table of a plan."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)


class MagnitudeSection(Section):
    """[data.schema.magnitudes.payroll]: a column of amounts, of which sums are published."""

    cap: Annotated[StrictInt, Field(ge=1)] = Field(description="The most that one worker adds, for example 250000.")
    beyond: Literal["refuse", "clip"] = Field("refuse", description="Whether rows above the cap are refused or cut.")


class Columns(Section):
    """[data.schema]: which column of the jobs is what, and the public domains of the workers' attributes."""

    workplace_attributes: Attributes = Field(description="Columns that an establishment has one public value of.")
    worker_attributes: dict[str, tuple[Category, ...]] = Field(
        description="Columns that describe a worker, each with its public domain in the order of publication."
    )
    establishment: Text = Field("workplace", description="The column that identifies the establishment.")
    worker: Text | None = Field("worker", description="The column that identifies the worker.")
    size: Text | None = Field(None, description="For tables that are already counted, the column of a row's jobs.")
    magnitudes: dict[str, MagnitudeSection] = Field(
        default_factory=dict, description="Columns of amounts, such as pay, each with the most that one worker adds."
    )
    unused: Attributes = Field((), description="The other columns of the table, which no statistic reads.")

    def schema_of_jobs(self) -> Schema:
        return Schema.of(self.model_dump(exclude_none=True))


def _columns_tag(value: object) -> str:
    return "file" if isinstance(value, str) else "here"


FileOrColumns: TypeAlias = Annotated[
    Annotated[PathText, Tag("file")] | Annotated[Columns, Tag("here")], Discriminator(_columns_tag)
]


class Data(Section):
    """[data]: where the confidential data are and what is public about them."""

    source: DataPlace = Field(
        description="Parquet, CSV or DuckDB file, or a folder, relative to the plan; or a table of PostgreSQL, "
        "postgresql://user@host/database::table, of MariaDB or MySQL, mysql://user@host/database::table, or of SQLite, "
        "jobs.sqlite::table."
    )
    workplaces: DataPlace | None = Field(
        None, description="The public list of establishments, where it is a file or table apart."
    )
    workers: DataPlace | None = Field(
        None, description="The workers' attributes, where they are a file or table apart."
    )
    columns: FileOrColumns | None = Field(
        None, alias="schema", description="A TOML or JSON file, or the table itself as [data.schema]."
    )
    public: Attributes = Field(
        (), description="For models and posterior summaries: the columns that everybody may know, e.g. ['county']."
    )
    numbers: Attributes = Field(
        (), description="For posterior summaries of a CSV file: the protected columns of numbers, e.g. ['age']."
    )
    allow_multiple: TruthOrNumber = Field(
        False, description="Whether a worker may have jobs at several establishments: true, or at how many at most."
    )
    period: PeriodName | None = Field(
        None, description="The period that the data are about: '2026-Q1', '2026-01' or '2026'."
    )
    quarters: Annotated[tuple[Category, ...], AfterValidator(different)] = Field(
        (), description="For flows and changes: all quarters of the job histories in their order, ['2024Q1', ...]."
    )
    time: Text = Field("quarter", description="For flows and changes: the column that has the quarter.")
    labels: dict[str, dict[str, Line]] = Field(
        default_factory=dict, description="Names of categories in the basic form: [data.labels.sector] 11 = 'Farming'."
    )

    @property
    def places(self) -> list[tuple[str, str]]:
        """The place of the data, by the key that names it."""
        named = {"source": self.source, "workplaces": self.workplaces, "workers": self.workers}
        return [(key, text) for key, text in named.items() if text is not None]


class EstablishmentsUnit(Section):
    """[unit] kind = "establishments": employer-employee privacy."""

    kind: Literal["establishments"]
    alpha: Annotated[Amount, above_zero("0.1")] = Field(
        description="The share by which one workforce may grow without being noticed, for example 0.1."
    )
    strength: Strength = Field("strong", description="Whether the whole workforce, or that of every kind, differs.")
    substitution: StrictBool = Field(
        False,
        description="Whether the exchange of a worker for one of another kind or employer costs one "
        "epsilon, and not two.",
    )

    def unit(self) -> Unit:
        return Establishments(self.alpha, self.strength, substitution=self.substitution)


class WorkersUnit(Section):
    """[unit] kind = "workers": one job. Does not hide the size of an establishment."""

    kind: Literal["workers"]

    def unit(self) -> Unit:
        return Workers()


class NodesUnit(Section):
    """[unit] kind = "establishment-nodes": one whole establishment of at most theta workers."""

    kind: Literal["establishment-nodes"]
    theta: Annotated[StrictInt, Field(ge=1)] = Field(description="The largest workforce that is kept, e.g. 1000.")

    def unit(self) -> Unit:
        return EstablishmentNodes(self.theta)


class RowsUnit(Section):
    """[unit] kind = "rows": one row's response, which lies between two bounds known without the data."""

    kind: Literal["rows"]
    lower: Amount = Field(description="A smaller response counts as this, for example 0.")
    upper: Amount = Field(description="A larger response counts as this, for example 2.")
    response: Responses = Field(description="The column to protect, for example 'jcr', or a list of several.")

    def unit(self) -> Unit:
        return Rows(self.lower, self.upper, response=self.response)


class GroupsUnit(Section):
    """[unit] kind = "groups": all responses of the rows that share values of public columns, together. For models."""

    kind: Literal["groups"]
    by: Attributes = Field(description="The public columns that name a group, for example ['county'].")
    lower: Amount = Field(description="A smaller response counts as this, for example 0.")
    upper: Amount = Field(description="A larger response counts as this, for example 2.")
    response: Responses = Field(description="The column to protect, for example 'jcr', or a list of several.")

    def unit(self) -> Unit:
        return Groups(self.by, self.lower, self.upper, response=self.response)


class BudgetSection(Section):
    """[budget]: how much all releases of these data together may reveal, and the ledger that keeps count."""

    epsilon: Price = Field(description="The total loss, for example 4.")
    delta: Probability | None = Field(None, description="The total failure probability, for mechanisms that need one.")
    per_year: Price | None = Field(None, description="What releases about one year may cost together, for example 1.")
    per_quarter: Price | None = Field(
        None,
        description="The same about one quarter; a series has no gaps. Flows and changes count for every quarter whose "
        "rows they read.",
    )
    per_month: Price | None = Field(None, description="The same about one month.")
    ledger: LedgerPlace = Field(description="A file relative to the plan, or postgresql://user@host/database.")
    dataset: DataSetName = Field(
        description="The name under which the ledger knows these data, for example 'jobs 2026'."
    )

    def total(self) -> Loss:
        return loss(epsilon=self.epsilon, delta=self.delta)

    def policy(self) -> Policy | None:
        """The limit of each period, if the plan has one."""
        steps: tuple[Step, ...] = ("year", "quarter", "month")
        stated = [Policy(step, limit) for step in steps if (limit := getattr(self, f"per_{step}")) is not None]
        return stated[0] if stated else None

    @model_validator(mode="after")
    def _one_policy(self) -> Self:
        stated = [name for name in ("per_year", "per_quarter", "per_month") if getattr(self, name) is not None]
        if len(stated) > 1:
            asked = f"{' and '.join(stated)} are given."
            raise PlanError(Fault((stated[1],), asked, "A budget is divided one way.", "Leave one out."))
        return self


class Public(Section):
    """[public]: facts that are known without the confidential data; they give the expected error before a release."""

    sizes: PathText | None = Field(
        None,
        description="A table with some workplace attributes, `jobs`, and optionally `largest`, its bound `at_most`.",
    )
    previous: PathText | None = Field(
        None, description="The folder of an earlier release, whose counts are used instead."
    )


AnyUnit: TypeAlias = Annotated[
    EstablishmentsUnit | WorkersUnit | NodesUnit | RowsUnit | GroupsUnit, Field(discriminator="kind")
]

UNITS: dict[str, type[Section]] = {
    "establishments": EstablishmentsUnit,
    "workers": WorkersUnit,
    "establishment-nodes": NodesUnit,
    "rows": RowsUnit,
    "groups": GroupsUnit,
}


class LevelsSection(Section):
    """[hierarchy.industry]: levels of which each follows from the finest, by prefix or by lookup."""

    levels: Attributes = Field(description="From the finest to the coarsest, for example ['naics6', 'naics2'].")
    prefix: tuple[StrictInt, ...] | None = Field(
        None,
        description="The number of first characters of the finest code that make the code of each level, for "
        "example [6, 2].",
    )
    lookup: PathText | None = Field(None, description="A file with one column per level; relative to the plan.")


def _levels_tag(value: object) -> str:
    return "levels" if isinstance(value, list | tuple) else "table"


AnyLevels: TypeAlias = Annotated[
    Annotated[Attributes, Tag("levels")] | Annotated[LevelsSection, Tag("table")], Discriminator(_levels_tag)
]


class SourceSection(Section):
    """[source.jobs]: one of several sources, with tables of its own: [source.jobs.data], [source.jobs.unit], ..."""

    data: Data = Field(description="The place of the confidential data, and the public facts about them.")
    hierarchy: dict[str, AnyLevels] = Field(
        default_factory=dict,
        description="Which workplace attributes follow from which, the finest first: place = ['county', 'state'].",
    )
    unit: AnyUnit = Field(description="Whom to protect: kind = 'establishments' with an alpha, 'workers', ...")
    budget: BudgetSection = Field(description="How much all releases of these data may reveal, and the ledger.")
    public: Public = Field(Public.model_validate({}), description="What is known without the confidential data.")
