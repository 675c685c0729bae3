"""The allowed content of a plan: one model per table of the TOML file; unknown keys are refused.

Only the shape is checked here: types, ranges, and everything that one table alone decides. `requests` and `check` find
whether the attributes exist, whether the noise can be calibrated and whether the budget is enough. Amounts are exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, Field, StrictBool, StrictInt, model_validator

from discreet.plan.engine import EngineSection
from discreet.plan.source import UNITS, Columns, Section, SourceSection
from discreet.plan.values import (
    Amount,
    Attributes,
    Category,
    Clip,
    FamilyName,
    FinestOrTables,
    Line,
    Mechanism,
    OneOrSeveral,
    PathText,
    Positive,
    Price,
    Probability,
    ReleaseName,
    Share,
    SourceName,
    Text,
    Where,
    different,
)
from discreet.privacy.assurance import People
from discreet.privacy.guarantee import Calibration
from discreet.words.errors import PlanError
from discreet.words.faults import Fault
from discreet.words.voices import written

Format: TypeAlias = Literal["csv", "parquet", "xlsx"]
Form: TypeAlias = Literal["basic", "research"]
RELEASES = 1_000  # of one plan


class _Release(Section):
    name: ReleaseName = Field(description="A folder of the output and a line of the ledger, for example 'jobs-2026'.")
    title: Line = Field("", description="What the report calls the release.")
    source: SourceName | None = Field(None, description="The source it is from, where the plan has several.")
    epsilon: Price = Field(description="What the whole release costs, for example 1.")
    replaces: ReleaseName | None = Field(
        None, description="The earlier release of the same data and period that this one is a revision of."
    )

    @property
    def asked(self) -> str:
        """What is asked for, in a few words."""
        return ""


class Suppress(Section):
    """suppress = { below = 10 }: numbers that the basic form leaves out, a rule of the agency for its readers."""

    below: Annotated[StrictInt, Field(ge=1)] | None = Field(None, description="Numbers below this, for example 10.")
    quality: tuple[Literal["fair", "poor", "mostly noise", "no interval"], ...] = Field(
        (), description="Numbers with these flags, for example ['mostly noise']."
    )


def _rising(factors: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    if not factors[0] <= factors[1] < 1:
        raise PlanError(
            f"{written([float(factor) for factor in factors])} are not distances of factors from 1.",
            "The distance of a factor from 1 is at least the first and at most the second, which is below 1.",
            "Use for example [0.05, 0.15].",
        )
    return factors


class Compare(Section):
    """compare = { file = "qcew.csv" }: a public table of the agency, beside which the release is shown."""

    file: PathText = Field(description="Its file, relative to the plan; everybody may know it.")
    title: Line = Field("", description="Its name in the report, for example 'QCEW 2025'.")
    columns: dict[Text, Text] = Field(
        default_factory=dict,
        description="The file's name of an attribute or a number of ours: { county = 'area_fips', count = 'emp' }.",
    )
    where: Where = Field(default_factory=dict, description="Its rows to keep, by its own columns: { own = ['5'] }.")
    flag: Text | None = Field(None, description="The column that says whether a number is suppressed.")
    suppressed: Annotated[tuple[Line, ...], AfterValidator(different)] = Field(
        (),
        description="Values of the flag that mark a suppressed number, for example ['N']; an empty number is "
        "always suppressed.",
    )
    factors: Annotated[tuple[Share, Share], AfterValidator(_rising)] | None = Field(
        None, description="If the agency infuses noise: the distance of its factors from 1, for example [0.05, 0.15]."
    )


COMPARED = "A public table of the agency that is shown beside the release: { file = 'qcew.csv' }."


class _Tables(_Release):
    delta: Probability | None = Field(None, description="Failure probability of the release; smooth-laplace only.")
    where: Where = Field(default_factory=dict, description="Values to keep: { ownership = ['private'] }.")
    calibration: Calibration = Field("tight", description="The least noise that is proved, or the paper's constants.")
    level: Probability = Field(Fraction(19, 20), description="Probability that an interval holds the true count.")
    scale_share: Amount = Field(Fraction(0), description="The part of epsilon that makes intervals narrow: 0.1.")
    non_negative: StrictBool = Field(True, description="Whether the basic form shows negative counts as 0.")
    round_to: Annotated[StrictInt, Field(ge=1, le=1_000_000)] | None = Field(
        None, description="The basic form's counts are rounded to multiples of this: 5, or 1 where tables add up."
    )
    suppress: Suppress | None = Field(
        None, description="A rule of the agency: what the basic form leaves out, { below = 10 }."
    )
    compare: Compare | None = Field(None, description=COMPARED)
    stratum: Text | None = Field(None, description="The workplace attribute by which the report divides the error.")
    establishments: StrictBool = Field(
        False, description="Whether the number of establishments is also published, without noise; it is public."
    )


class Count(_Tables):
    """[[release]] kind = "count": one table of job counts."""

    kind: Literal["count"]
    by: Attributes = Field(description="The attributes that span the table, for example ['place', 'sector'].")
    mechanism: Mechanism | None = Field(None, description="The best one for the unit unless named.")
    shrink: Attributes | None = Field(
        None, description="Draw the basic form's shares of worker kinds towards those of groups of these attributes."
    )
    split: ClassVar[None] = None
    measure: ClassVar[None] = None
    add_up: ClassVar[bool] = False

    @property
    def every_table(self) -> tuple[Attributes, ...]:
        """The attributes of each table."""
        return (self.by,)


class Counts(_Tables):
    """[[release]] kind = "counts": several tables of job counts under one loss."""

    kind: Literal["counts"]
    tables: Annotated[tuple[Attributes, ...], Field(min_length=1), AfterValidator(different)] = Field(
        description="The attributes of each table: [['place', 'sector'], ['place']]."
    )
    split: tuple[Share, ...] | None = Field(None, description="Each table's share of epsilon: ['2/3', '1/3'].")
    add_up: StrictBool = Field(False, description="Make the basic form's tables agree in whole numbers.")
    measure: FinestOrTables | None = Field(
        None, description="The tables that are drawn, or 'finest'; the others are sums of them and cost nothing."
    )
    mechanism: ClassVar[None] = None
    shrink: ClassVar[None] = None

    @property
    def every_table(self) -> tuple[Attributes, ...]:
        """The attributes of each table."""
        return self.tables


class Sum(Count):
    """[[release]] kind = "sum": one table of sums of a magnitude."""

    kind: Literal["sum"]  # type: ignore[assignment]
    of: Text = Field(description="The magnitude, for example 'payroll'.")


class Sums(Counts):
    """[[release]] kind = "sums": several tables of sums of a magnitude under one loss."""

    kind: Literal["sums"]  # type: ignore[assignment]
    of: Text = Field(description="The magnitude, for example 'payroll'.")


class Movement(_Release, ABC):
    """What releases from job histories have in common."""

    by: Attributes = Field(description="The workplace attributes that span the table, for example ['county'].")
    level: Probability = Field(Fraction(19, 20), description="Probability that an interval holds the true number.")
    scale_share: Amount = Field(Fraction(0), description="The part of epsilon that makes intervals narrow: 0.1.")
    round_to: Annotated[StrictInt, Field(ge=1, le=1_000_000)] = Field(
        1, description="The basic form's whole numbers are rounded to multiples of this. Only with 1 do they add up."
    )
    suppress: Suppress | None = Field(
        None, description="A rule of the agency: what the basic form leaves out, { quality = ['mostly noise'] }."
    )
    compare: Compare | None = Field(None, description=COMPARED)

    @property
    @abstractmethod
    def when(self) -> tuple[Category, ...]:
        """The quarters that it is of."""

    @property
    def asked(self) -> str:
        return f"{', '.join(map(str, self.when))} by {', '.join(self.by) or 'no attribute'}"


class Flows(Movement):
    """[[release]] kind = "flows": all flows and rates of a quarter, from job histories, under one loss."""

    kind: Literal["flows"]
    quarter: OneOrSeveral = Field(
        description="The quarter, for example '2024Q2', or several in their order, whose flows are added up."
    )

    @property
    def when(self) -> tuple[Category, ...]:
        return self.quarter


class Changes(Movement):
    """[[release]] kind = "changes": jobs of some quarters and what changed between them, under one loss."""

    kind: Literal["changes"]
    quarters: Annotated[tuple[Category, ...], Field(min_length=2), AfterValidator(different)] = Field(
        description="Two or more in their order: ['2024Q1', '2025Q1'] is a change from year to year."
    )

    @property
    def when(self) -> tuple[Category, ...]:
        return self.quarters


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

    @property
    def asked(self) -> str:
        return self.formula


class ModelSection(_Release):
    """[[release]] kind = "model": a linear mixed model, all its estimates under one loss."""

    kind: Literal["model"]
    formula: Text = Field(description="lme4's syntax, for example 'jcr ~ 0 + industry + quarter + (1 | county)'.")
    clip: Clip | None = Field(
        None, description="A range inside the unit's bounds into which responses are pulled, for example [0, 1]."
    )
    lagged: Attributes = Field((), description="Public columns that hold earlier, already published responses.")
    series: Attributes = Field((), description="For lag(y, 1) in the formula: the public columns that name a series.")
    time: Text | None = Field(None, description="For lag(y, 1) in the formula: the public column that counts periods.")
    family: FamilyName | None = Field(
        None, description="For responses in [0, 1], or counts, on the scale of the logit or log; else gaussian."
    )
    exposure: Text | None = Field(None, description="Of counts: the public column that they are proportional to.")

    @property
    def asked(self) -> str:
        return self.formula


def _with_parquet(formats: tuple[str, ...]) -> tuple[str, ...]:
    if "xlsx" in formats and "parquet" not in formats:
        raise PlanError(
            "xlsx stands without parquet.",
            "An Excel file is made from the Parquet file beside it, which keeps every digit.",
            "Add 'parquet'.",
        )
    return formats


class Output(Section):
    """[output]: where the files go and which forms they have."""

    folder: PathText = Field(description="A folder of its own, relative to the plan.")
    formats: Annotated[
        tuple[Format, ...], Field(min_length=1), AfterValidator(different), AfterValidator(_with_parquet)
    ] = Field(("csv", "parquet"), description="The kinds of files of each table; xlsx stands beside parquet.")
    forms: Annotated[tuple[Form, ...], Field(min_length=1), AfterValidator(different)] = Field(
        ("basic", "research"), description="Labels and rounded counts; and everything as it was drawn."
    )
    bundle: StrictBool = Field(True, description="Whether to write the reviewer's bundle.")


class AlarmsSection(Section):
    """[[alarms]]: which published numbers changed by more than their noise can explain. It costs nothing."""

    name: ReleaseName = Field(description="What its files are called: alarms-NAME.csv.")
    title: Line = Field("", description="What the report calls it.")
    late: ReleaseName = Field(description="The later release; or one of kind 'changes', alone.")
    early: ReleaseName | None = Field(None, description="The release that it is compared with.")
    folder: PathText | None = Field(
        None, description="The output folder of the plan that released `early`, where that is another plan."
    )
    by: Attributes | None = Field(None, description="Which table, where the releases have several.")
    value: Text = Field(
        "count",
        description="Which number: 'count', 'sum', 'change', 'estimate' of models, or a flow such as 'destruction'.",
    )
    rate: Probability | None = Field(
        None, description="The largest chance that a cell without a change raises an alarm; 0.1 without an `fdr`."
    )
    fdr: Probability | None = Field(
        None, description="The largest expected share of false alarms among all, instead of a rate for each cell."
    )
    least: Amount = Field(Fraction(0), description="The least change of a number that is listed.")
    direction: Literal["either", "decline", "increase"] = Field("either", description="Which changes count.")

    @property
    def chance(self) -> Fraction:
        """The rate of each cell where none bounds the list."""
        return Fraction(1, 10) if self.rate is None else self.rate


AnyRelease: TypeAlias = Annotated[
    Count | Counts | Sum | Sums | Flows | Changes | PosteriorSection | ModelSection, Field(discriminator="kind")
]

KINDS: dict[str, type[Section]] = {
    **UNITS,
    "count": Count,
    "counts": Counts,
    "sum": Sum,
    "sums": Sums,
    "flows": Flows,
    "changes": Changes,
    "posterior": PosteriorSection,
    "model": ModelSection,
    "here": Columns,
}
"""The tables that are told apart by a word, by that word."""


LATER = (
    *("source", "replaces", "series", "time", "measure", "establishments", "suppress", "compare"),
    *("family", "exposure"),
)
"""Keys of a release that came after the first bundles were written."""


def as_first_written(release: Mapping[str, Any]) -> dict[str, Any]:
    """A release as JSON, without later keys that have no value: requests that were paid for before keep their text."""
    return {key: value for key, value in release.items() if value or key not in LATER}


class Plan(Section):
    """A release plan. One with a single source writes the tables of that source at its top."""

    title: Line = Field("", description="The title of the report.")
    people: People | None = Field(
        None,
        description="With several data sets: 'shared' if somebody may be in several of them, or 'different'. What is "
        "not said counts as shared.",
    )
    source: Annotated[dict[SourceName, SourceSection], Field(min_length=1)] = Field(
        description="With several sources: each by its name, with its tables [source.jobs.data], ..."
    )
    release: Annotated[tuple[AnyRelease, ...], Field(min_length=1, max_length=RELEASES)] = Field(
        description="What is released, in order."
    )
    alarms: Annotated[tuple[AlarmsSection, ...], Field(max_length=RELEASES)] = Field(
        (), description="Changes between releases that are beyond their noise."
    )
    output: Output
    engine: EngineSection = Field(
        EngineSection.model_validate({}), description="What computes the aggregates: DuckDB unless stated."
    )

    @model_validator(mode="before")
    @classmethod
    def _named(cls, content: Any) -> Any:
        """Sources by name: a single one, whose tables are at the top, has the name ALONE."""
        if not isinstance(content, Mapping):
            return content
        own = [key for key in OF_A_SOURCE if key in content]
        if "source" not in content:
            return {key: content[key] for key in content if key not in own} | {
                "source": {ALONE: {key: content[key] for key in own}}
            }
        if own:
            raise PlanError(
                Fault(
                    (own[0],),
                    f"[{own[0]}] is beside [source].",
                    "A plan has one source with its tables at the top, or several with all tables below their names.",
                    f"Move it, for example to [source.jobs.{own[0]}].",
                )
            )
        if isinstance(content["source"], Mapping) and ALONE in content["source"]:
            raise PlanError(Fault(("source",), 'a source is called "".', "A name has letters.", "Give it one."))
        return content

    @property
    def only(self) -> SourceSection:
        """The source of a plan that has one."""
        [source] = self.source.values()
        return source


ALONE = ""
"""The name of a single source, which needs none."""

OF_A_SOURCE = tuple(SourceSection.model_fields)
"""The tables of a source."""


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a plan, for editors that check while one types: one source at the top, or several by name."""
    schema = Plan.model_json_schema()
    one = schema["$defs"]["SourceSection"]
    schema["properties"] = {"title": schema["properties"]["title"], **one["properties"], **schema["properties"]}
    schema["required"] = [key for key in schema["required"] if key != "source"]
    beside = [{"required": [key]} for key in OF_A_SOURCE]
    schema["oneOf"] = [
        {"required": one["required"], "not": {"required": ["source"]}},
        {"required": ["source"], "not": {"anyOf": beside}},
    ]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
