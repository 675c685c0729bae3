"""The folder of a desk: desk.toml says what the desk may publish; everything else is found beside it by name.

desk.toml     title, sources of data with their budgets, rules; written by the owner of the data
desk.db       accounts, sessions, plans, decisions, the audit log
plans/        the plans, as `discreet run` takes them
runs/         what each run said
releases/     what was published, a folder for each plan
ledger.db     the ledger, unless desk.toml names another
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs, urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictInt, ValidationError

from discreet.data.databases import is_address
from discreet.data.schema import Schema
from discreet.desk.book import LedgerView, book_at, trouble_at
from discreet.desk.contradictions import contradictions
from discreet.ledger.desk_anchors import DeskAnchors
from discreet.plan.shape import Compare
from discreet.plan.source import AnyLevels, AnyUnit, Columns, LevelsSection
from discreet.plan.values import DataPlace, DataSetName, PeriodName, Positive, Probability, different
from discreet.privacy.losses import loss
from discreet.privacy.units import Unit
from discreet.words.cases import case_of
from discreet.words.errors import DataError, PlanError
from discreet.words.faults import Fault, Place

SETTINGS, DATABASE = "desk.toml", "desk.db"
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
"""Characters of names in addresses: plans, runs, sources and releases are requested by such names, never by paths."""


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DataSource(_Settings):
    """[[source]]: confidential data, the public facts about them, and the most that all releases together may cost."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,40}$")]
    title: str = ""
    about: str = ""
    kind: Literal["jobs", "rows"] = "jobs"
    path: DataPlace
    workplaces: DataPlace | None = None
    workers: DataPlace | None = None
    columns: Columns | None = Field(None, alias="schema")
    allow_multiple: StrictBool | Annotated[StrictInt, Field(ge=1)] = False
    public: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    quarters: Annotated[tuple[str, ...], AfterValidator(different)] = ()
    time: str = "quarter"
    period: PeriodName | None = None
    describes: dict[str, str] = Field(default_factory=dict)
    dataset: DataSetName
    unit: AnyUnit
    unit_fixed: bool = True
    epsilon: Positive
    delta: Probability | None = None
    per_year: Positive | None = None
    per_quarter: Positive | None = None
    per_month: Positive | None = None
    sizes: str | None = None
    hierarchy: dict[str, AnyLevels] = Field(default_factory=dict)
    agency: dict[Annotated[str, Field(pattern=NAME.pattern)], Compare] = Field(default_factory=dict)
    formula: str = ""
    stand_in: str | None = None
    simulated: bool = False

    @property
    def of_rows(self) -> bool:
        """Whether it is a table of rows, and none of jobs."""
        return case_of(self.kind, {"jobs": False, "rows": True})

    def refusal(self, asked: Unit) -> str:
        """Why a plan that protects `asked` is not for this source; empty where it is."""
        own = self.unit.unit()
        if not self.unit_fixed or asked.key == own.key:
            return ""
        return (
            f"{asked.key} is asked for {self.name!r}, whose unit is fixed in {SETTINGS}: {own.key}. Losses under "
            f"different units do not add up, so every plan on it protects the same. Use that unit, or ask the "
            f"owner of the data to change {SETTINGS}."
        )


class Settings(_Settings):
    """desk.toml."""

    title: str = "Release desk"
    accounts: bool = False
    second_person: bool = False
    ledger: str = "ledger.db"
    upload_megabytes: Annotated[int, Field(ge=1, le=2000)] = 50
    runs_at_once: Annotated[int, Field(ge=1, le=64)] = 2
    source: tuple[DataSource, ...] = ()


def no_source(name: str) -> str:
    return (
        f"{name[:64]!r} is not a source of this desk now. Its sources are listed in {SETTINGS}. Have it listed again."
    )


def _has_password(address: str) -> bool:
    found = urlsplit(address) if "://" in address else None
    return found is not None and (found.password is not None or "password" in parse_qs(found.query))


def _levels(source: DataSource, folder: Path) -> dict[str, Any]:
    """The hierarchies of a source as a plan has them, whose lookups lie in this folder."""
    found: dict[str, Any] = {}
    for name, levels in source.hierarchy.items():
        if not isinstance(levels, LevelsSection):
            found[name] = list(levels)
            continue
        found[name] = levels.model_dump(mode="json", exclude_none=True)
        if levels.lookup is not None:
            found[name]["lookup"] = str(folder / levels.lookup)
    return found


@dataclass(frozen=True, eq=False)
class Desk:
    """A desk's folder and what its desk.toml says."""

    folder: Path
    settings: Settings

    @classmethod
    def open(cls, folder: Path) -> Desk:
        """Read desk.toml and make the folders that are missing."""
        path = folder / SETTINGS
        try:
            settings = Settings.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
        except OSError:
            raise DataError(
                f"{str(folder)!r} is not a desk: it has no {SETTINGS}.",
                "A desk is a folder with that file.",
                "Write one (docs/how-to/desk.md shows how), or see `discreet serve --demo`.",
                about="desk",
            ) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise PlanError(
                f"{str(path)!r} is not TOML: {error}.", "It has key = value lines.", "Correct it.", about="desk"
            ) from None
        except ValidationError as error:
            found = [f"  {'.'.join(map(str, fault['loc'])) or 'file'}: {fault['msg']}" for fault in error.errors()]
            raise PlanError(
                "\n".join([f"{str(path)!r} cannot be used. Correct these settings:", *found]), about="desk"
            ) from None
        names = [source.name for source in settings.source]
        if len(set(names)) < len(names):
            raise PlanError(
                f"{str(path)!r} has two sources of one name.",
                "A name stands for one source.",
                "Rename one.",
                about="source",
            )
        if settings.second_person and not settings.accounts:
            raise PlanError(
                f"{str(path)!r} demands a second person and has no accounts.",
                "Who is second is known from accounts.",
                "Set accounts = true and add people with `discreet serve --add-account NAME --role reviewer`.",
                about="accounts",
            )
        if _has_password(settings.ledger):
            raise PlanError(
                f"The ledger's address in {str(path)!r} holds a password, which plans and pages would show.",
                "An address names user, host and database.",
                "Leave it out, and keep it in PGPASSWORD or ~/.pgpass.",
                about="ledger",
            )
        desk = cls(folder.resolve(), settings)
        against = [*contradictions(settings, {source.name: desk._declared(source) for source in settings.source})]
        if against:
            told = [f"{str(path)!r} contradicts itself. Correct these settings:", *(f"  {words}" for words in against)]
            raise PlanError("\n".join(told), about="source")
        for place in (desk.plans, desk.runs, desk.releases):
            place.mkdir(mode=0o700, exist_ok=True)
        (desk.runs).chmod(0o700)
        return desk

    @property
    def plans(self) -> Path:
        return self.folder / "plans"

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def releases(self) -> Path:
        return self.folder / "releases"

    @property
    def database(self) -> Path:
        return self.folder / DATABASE

    @property
    def ledger(self) -> str:
        """The place of the ledger: a path, or a server's address."""
        where = self.settings.ledger
        return where if "://" in where else str(self.folder / where)

    @property
    def traces(self) -> tuple[DeskAnchors, ...]:
        """Where charges of its runs leave anchors of the ledger, beside their output folders."""
        return (DeskAnchors(self.database),)

    @cached_property
    def datasets(self) -> frozenset[str]:
        """The names under which ledgers know the data of its sources."""
        return frozenset(source.dataset for source in self.settings.source)

    @property
    def book(self) -> LedgerView:
        """The ledger now."""
        return book_at(self.ledger, self.traces, self.datasets)

    @property
    def ledger_trouble(self) -> str:
        """Why the ledger cannot be believed now; empty if it can."""
        return trouble_at(self.ledger, self.traces, self.datasets)

    @cached_property
    def sources(self) -> dict[str, DataSource]:
        return {source.name: source for source in self.settings.source}

    def plan_file(self, plan: str) -> Path:
        """The file of a plan; `plan` is a name, so it cannot lead elsewhere."""
        if not NAME.fullmatch(plan):
            raise DataError(
                "A plan is asked for by its name: a-z, 0-9 and '-'.",
                remedy="Choose one from the list of plans.",
                about="plan",
            )
        return self.plans / f"{plan}.toml"

    def schema(self, source: DataSource) -> Schema | None:
        """Which column is what; public. None if the source is not a table of jobs or has no schema yet."""
        if source.of_rows:
            return None
        if source.columns is not None:
            found: Schema | None = source.columns.schema_of_jobs()
        else:
            found = None if is_address(source.path) else Schema.beside(self.folder / source.path)
        if found is None or not source.hierarchy:
            return found
        return replace(found, hierarchy={**found.hierarchy, **_levels(source, self.folder)})

    def _declared(self, source: DataSource) -> Schema | DataError | None:
        """The schema as desk.toml declares it, or what is wrong with it; None where it lies beside the data."""
        try:
            return None if source.columns is None else self.schema(source)
        except DataError as error:
            return error

    def _columns(self, source: DataSource) -> Columns | None:
        """The schema as a plan holds it, also one from beside the data: it is approved with the plan's text."""
        beside = None if source.columns is not None else self.schema(source.model_copy(update={"hierarchy": {}}))
        if beside is None:
            return source.columns
        content = {key: value for key, value in beside.to_dict().items() if key in Columns.model_fields}
        written = Columns.model_validate(content)
        return written if written.schema_of_jobs() == beside else None  # a file can say more than a plan

    def jobs_of_one_worker(self, source: DataSource) -> int | None:
        """As plans of the desk declare; None if there is no bound, or workers have no name."""
        schema, multiple = self.schema(source), source.allow_multiple
        if multiple is True or (schema is not None and schema.worker is None):
            return None
        return multiple or 1

    def fixed_tables(self, source: DataSource, plan: str) -> dict[str, dict[str, Any]]:
        """The part of a plan that nobody chooses at the desk: the places of the data, the ledger and the output."""
        data = {"source": self._from_plans(source.path)}
        data |= {
            key: self._from_plans(value)
            for key in ("workplaces", "workers")
            if (value := getattr(source, key)) is not None
        }
        if (columns := self._columns(source)) is not None:
            data["schema"] = columns.model_dump(mode="json", exclude_none=True)  # type: ignore[assignment]
        if source.allow_multiple:
            data["allow_multiple"] = source.allow_multiple  # type: ignore[assignment]
        if source.quarters:
            data |= {"quarters": list(source.quarters), "time": source.time}  # type: ignore[dict-item]
        if source.period is not None:
            data["period"] = source.period
        for key in ("public", "numbers"):
            if columns_of := getattr(source, key):
                data[key] = list(columns_of)  # type: ignore[assignment]
        declared = loss(epsilon=source.epsilon, delta=source.delta)
        book = self.book
        total = book.total(source.dataset, declared)
        budget: dict[str, Any] = {name: str(amount) for name, amount in total.amounts.items()}
        budget |= {"ledger": self._from_plans(self.settings.ledger), "dataset": source.dataset}
        known = book.budget(source.dataset)
        if known is not None and known.policy is not None:  # as it is now: it may have been changed on purpose
            budget[f"per_{known.policy.each}"] = str(known.policy.limit)
        else:
            stated = {name: getattr(source, name) for name in ("per_year", "per_quarter", "per_month")}
            budget |= {name: str(amount) for name, amount in stated.items() if amount is not None}
        tables: dict[str, dict[str, Any]] = {"data": data, "budget": budget}
        if source.sizes is not None:
            tables["public"] = {"sizes": self._from_plans(source.sizes)}
        if source.hierarchy:
            tables["hierarchy"] = _levels(source, Path(".."))
        return tables | {"output": {"folder": f"../releases/{plan}"}}

    def agency(self, source: DataSource, name: object, place: Place) -> dict[str, Any]:
        """A public table of the agency as a plan has it, by the name that desk.toml gives it; no form names a file."""
        known = source.agency.get(name) if isinstance(name, str) else None
        if known is None:
            wrong = [
                Fault(
                    place,
                    f"{str(name)[:64]!r} is no table of the agency.",
                    f"There are: {', '.join(source.agency) or 'none'}.",
                    f"Name one of these, or have the file listed in {SETTINGS}.",
                )
            ]
            raise DataError(*wrong)
        content = known.model_dump(mode="json", exclude_defaults=True)
        return content | {"file": self._from_plans(known.file)}

    @property
    def finished(self) -> list[str]:
        """The plans that were carried out, by name."""
        return sorted(report.parent.name for report in self.releases.glob("*/report.html"))

    def output_of(self, name: object, place: Place) -> str:
        """The output folder of a plan that was carried out, as another plan names it; no form names a folder."""
        if name not in self.finished:
            wrong = [
                Fault(
                    place,
                    f"{str(name)[:64]!r} is no plan that was carried out here.",
                    f"There are: {', '.join(self.finished[:10]) or 'none'}.",
                    "Name one of these, or leave it empty for a release of this plan.",
                )
            ]
            raise DataError(*wrong)
        return f"../releases/{name}"

    @staticmethod
    def _from_plans(place: str) -> str:
        """A path of desk.toml as a plan writes it, which lies one folder deeper."""
        return place if "://" in place or Path(place).is_absolute() else f"../{place}"
