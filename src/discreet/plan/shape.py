"""What a plan may hold: one model per table of the TOML file, unknown keys refused.

Only the shape: types, ranges, and what can be told from one table alone. Whether the attributes exist, whether the
noise can be calibrated and whether the budget suffices is found in `requests` and `check`. Amounts are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, StrictBool, StrictInt, Tag

from discreet.plan.values import (
    Amount,
    Attributes,
    Category,
    Clip,
    DataSetName,
    LedgerPlace,
    Line,
    Mechanism,
    PathText,
    Positive,
    Price,
    Probability,
    ReleaseName,
    Responses,
    Share,
    Text,
    Where,
    above_zero,
    different,
)
from discreet.privacy.guarantee import Calibration
from discreet.privacy.losses import Loss, loss
from discreet.privacy.units import EstablishmentNodes, Establishments, Rows, Strength, Unit, Workers
from discreet.schema import Schema

Format: TypeAlias = Literal["csv", "parquet"]
Form: TypeAlias = Literal["basic", "research"]
RELEASES = 1_000  # of one plan


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

    def schema_of_jobs(self) -> Schema:
        return Schema.of(self.model_dump(exclude_none=True))


def _columns_tag(value: object) -> str:
    return "file" if isinstance(value, str) else "here"


FileOrColumns: TypeAlias = Annotated[
    Annotated[PathText, Tag("file")] | Annotated[Columns, Tag("here")], Discriminator(_columns_tag)
]


class Data(Section):
    """[data]: where the confidential data are and what is public about them."""

    source: PathText = Field(description="Parquet, CSV or DuckDB file, or a folder; relative to the plan.")
    workplaces: PathText | None = Field(
        None, description="The public list of establishments, where it is a file apart."
    )
    workers: PathText | None = Field(None, description="The workers' attributes, where they are a file apart.")
    columns: FileOrColumns | None = Field(
        None, alias="schema", description="A TOML or JSON file, or the table itself as [data.schema]."
    )
    public: Attributes = Field(
        (), description="For models and posterior summaries: the columns that everybody may know, e.g. ['county']."
    )
    allow_multiple: StrictBool | Annotated[StrictInt, Field(ge=1)] = Field(
        False, description="Whether a worker may have jobs at several establishments: true, or at how many at most."
    )
    labels: dict[str, dict[str, Line]] = Field(
        default_factory=dict, description="What the basic form calls a category: [data.labels.sector] 11 = 'Farming'."
    )


class EstablishmentsUnit(Section):
    """[unit] kind = "establishments": employer-employee privacy."""

    kind: Literal["establishments"]
    alpha: Annotated[Amount, above_zero("0.1")] = Field(
        description="The share by which one workforce may grow unnoticed, for example 0.1."
    )
    strength: Strength = Field("strong", description="Whether the whole workforce, or that of every kind, differs.")
    substitution: StrictBool = Field(
        False, description="Whether one worker of another kind, or with another employer, is inside the same epsilon."
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


class BudgetSection(Section):
    """[budget]: how much all releases of these data together may tell, and the ledger that keeps count."""

    epsilon: Price = Field(description="The total loss, for example 4.")
    delta: Probability | None = Field(None, description="The total failure probability, for mechanisms that need one.")
    ledger: LedgerPlace = Field(description="A file relative to the plan, or postgresql://user@host/database.")
    dataset: DataSetName = Field(
        description="The name under which the ledger knows these data, for example 'jobs 2026'."
    )

    def total(self) -> Loss:
        return loss(epsilon=self.epsilon, delta=self.delta)


class Public(Section):
    """[public]: what is known without the confidential data, so that the expected error can be told beforehand."""

    sizes: PathText | None = Field(
        None,
        description="A table with some workplace attributes, `jobs`, and optionally `largest`, its bound `at_most`.",
    )
    previous: PathText | None = Field(None, description="The folder of an earlier release, whose counts stand in.")


class _Release(Section):
    name: ReleaseName = Field(description="A folder of the output and a line of the ledger, for example 'jobs-2026'.")
    title: Line = Field("", description="What the report calls the release.")
    epsilon: Price = Field(description="What the whole release costs, for example 1.")


class _Tables(_Release):
    delta: Probability | None = Field(None, description="Failure probability of the release; smooth-laplace only.")
    where: Where = Field(default_factory=dict, description="Values to keep: { ownership = ['private'] }.")
    calibration: Calibration = Field("tight", description="The least noise that is proved, or the paper's constants.")
    level: Probability = Field(Fraction(19, 20), description="Probability that an interval holds the true count.")
    scale_share: Amount = Field(Fraction(0), description="The part of epsilon that makes intervals narrow: 0.1.")
    non_negative: StrictBool = Field(True, description="Whether the basic form shows negative counts as 0.")
    round_to: Annotated[StrictInt, Field(ge=1, le=1_000_000)] | None = Field(
        None, description="The basic form's counts are multiples of this: 5, or 1 where tables add up."
    )
    stratum: Text | None = Field(None, description="The workplace attribute by which the report divides the error.")
    establishments: StrictBool = Field(
        False, description="Whether the number of establishments, which is public, is published beside, without noise."
    )


class Count(_Tables):
    """[[release]] kind = "count": one table of job counts."""

    kind: Literal["count"]
    by: Attributes = Field(description="The attributes that span the table, for example ['place', 'sector'].")
    mechanism: Mechanism | None = Field(None, description="The best one for the unit unless named.")
    shrink: Attributes | None = Field(
        None, description="Draw the basic form's shares of worker kinds towards those of groups of these attributes."
    )


class Counts(_Tables):
    """[[release]] kind = "counts": several tables of job counts under one loss."""

    kind: Literal["counts"]
    tables: Annotated[tuple[Attributes, ...], Field(min_length=1), AfterValidator(different)] = Field(
        description="The attributes of each table: [['place', 'sector'], ['place']]."
    )
    split: tuple[Share, ...] | None = Field(None, description="Each table's share of epsilon: ['2/3', '1/3'].")
    add_up: StrictBool = Field(False, description="Make the basic form's tables agree in whole numbers.")
    measure: (
        Literal["finest"] | Annotated[tuple[Attributes, ...], Field(min_length=1), AfterValidator(different)] | None
    ) = Field(None, description="The tables that are drawn, or 'finest'; the others are sums of them and cost nothing.")


class Sum(Count):
    """[[release]] kind = "sum": one table of sums of a magnitude."""

    kind: Literal["sum"]  # type: ignore[assignment]
    of: Text = Field(description="The magnitude, for example 'payroll'.")


class Sums(Counts):
    """[[release]] kind = "sums": several tables of sums of a magnitude under one loss."""

    kind: Literal["sums"]  # type: ignore[assignment]
    of: Text = Field(description="The magnitude, for example 'payroll'.")


class PosteriorSection(_Release):
    """[[release]] kind = "posterior": summaries of the posterior of a regression, by parts."""

    kind: Literal["posterior"]
    formula: Text = Field(description="A regression without random terms, for example 'y ~ x + sector'.")
    summary: Literal["probability", "quantile", "interval"] = Field(
        description="P(coefficient <= at), the quantiles of probabilities `at`, or credible intervals of levels `at`."
    )
    coefficient: Annotated[tuple[Text, ...], Field(min_length=1)] = Field(description="Their names, as R writes them.")
    at: Annotated[tuple[Amount, ...], Field(min_length=1)] = Field(description="One for each coefficient, or for all.")
    scale: Positive = Field(Fraction(1), description="A rough public size of the coefficients.")
    partitions: Annotated[StrictInt, Field(ge=1)] | None = Field(
        None, description="Parts; the best number unless given."
    )


class ModelSection(_Release):
    """[[release]] kind = "model": a linear mixed model, all its estimates under one loss."""

    kind: Literal["model"]
    formula: Text = Field(description="lme4's syntax, for example 'jcr ~ 0 + industry + quarter + (1 | county)'.")
    clip: Clip | None = Field(
        None, description="A range inside the unit's bounds into which responses are pulled, for example [0, 1]."
    )
    lagged: Attributes = Field((), description="Public columns that hold earlier, already published responses.")
    series: Attributes = Field((), description="For lag(y, 1) in the formula: the public columns that name a series.")
    time: Text | None = Field(None, description="For the same: the public column that counts periods.")


class Output(Section):
    """[output]: where the files go and which forms they have."""

    folder: PathText = Field(description="A folder of its own, relative to the plan.")
    formats: Annotated[tuple[Format, ...], Field(min_length=1), AfterValidator(different)] = Field(
        ("csv", "parquet"), description="The kinds of files of each table."
    )
    forms: Annotated[tuple[Form, ...], Field(min_length=1), AfterValidator(different)] = Field(
        ("basic", "research"), description="Labels and rounded counts; and everything as it was drawn."
    )
    bundle: StrictBool = Field(True, description="Whether to write the reviewer's bundle.")


AnyUnit: TypeAlias = Annotated[EstablishmentsUnit | WorkersUnit | NodesUnit | RowsUnit, Field(discriminator="kind")]
AnyRelease: TypeAlias = Annotated[
    Count | Counts | Sum | Sums | PosteriorSection | ModelSection, Field(discriminator="kind")
]

KINDS: dict[str, type[Section]] = {
    "establishments": EstablishmentsUnit,
    "workers": WorkersUnit,
    "establishment-nodes": NodesUnit,
    "rows": RowsUnit,
    "count": Count,
    "counts": Counts,
    "sum": Sum,
    "sums": Sums,
    "posterior": PosteriorSection,
    "model": ModelSection,
    "here": Columns,
}
"""The tables that are told apart by a word, by that word."""


LATER = ("series", "time", "measure", "establishments")
"""Keys of a release that came after the first bundles were written."""


def as_first_written(release: Mapping[str, Any]) -> dict[str, Any]:
    """A release as JSON, without later keys that say nothing: what was paid before is asked for in the same words."""
    return {key: value for key, value in release.items() if value or key not in LATER}


class LevelsSection(Section):
    """[hierarchy.industry]: levels of which each follows from the finest, by prefix or by lookup."""

    levels: Attributes = Field(description="From the finest to the coarsest, for example ['naics6', 'naics2'].")
    prefix: tuple[StrictInt, ...] | None = Field(
        None, description="How many first characters of the finest code make each level's, for example [6, 2]."
    )
    lookup: PathText | None = Field(None, description="A file with one column per level; relative to the plan.")


def _levels_tag(value: object) -> str:
    return "levels" if isinstance(value, list | tuple) else "table"


AnyLevels: TypeAlias = Annotated[
    Annotated[Attributes, Tag("levels")] | Annotated[LevelsSection, Tag("table")], Discriminator(_levels_tag)
]


class Plan(Section):
    """A release plan."""

    title: Line = Field("", description="The title of the report.")
    data: Data
    hierarchy: dict[str, AnyLevels] = Field(
        default_factory=dict,
        description="Which workplace attributes follow from which, the finest first: place = ['county', 'state'].",
    )
    unit: AnyUnit = Field(description="Whom to protect: kind = 'establishments' with an alpha, 'workers', ...")
    budget: BudgetSection
    public: Public = Public.model_validate({})
    release: Annotated[tuple[AnyRelease, ...], Field(min_length=1, max_length=RELEASES)] = Field(
        description="What is released, in order."
    )
    output: Output


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a plan, for editors that check while one types."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Plan.model_json_schema()}
