"""The meaning of each column of a table of jobs; it is agreed before confidential data are read.

The existence and the place of an establishment are public (Haney et al. 2017, section 3), so its attributes need no
domain. Which values a worker's attribute can take is public too, and is declared here, never looked up in the data.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from itertools import permutations
from numbers import Integral
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from discreet.data.codes import Codes, Label
from discreet.data.hierarchy import Hierarchy, declared
from discreet.data.magnitude import declared_magnitudes
from discreet.data.scans import is_csv
from discreet.words.errors import DataError
from discreet.words.faults import Argument, Fault, Value
from discreet.words.names import misnamed

if TYPE_CHECKING:
    from discreet.data.delimited import Reading

__all__ = ["LODES", "NATIONAL", "Digest", "Label", "Schema"]

RESERVED = frozenset({"count", "sum", "mean", "lower", "upper", "quality", "largest", "establishments"})
"""Columns of published tables."""

REST = "*"
"""All columns of a table that have no other role."""


MOST_ORDERS = 7
"""Hierarchies whose orders are tried, 5,040 at most: a reviewer reads bundles of strangers."""


class Digest(str):
    """SHA-256 of what tables rest on, in whatever order it was declared.

    Attributes
    ----------
    part : what it is of, without hierarchies.
    levels : the hierarchies, as JSON.
    """

    part: Mapping[str, Any]
    levels: tuple[str, ...]

    @classmethod
    def of(cls, part: Mapping[str, Any], levels: Iterable[str]) -> Digest:
        """The digest of `part` and of these hierarchies, in a sorted order."""
        order = tuple(sorted(levels))
        found = cls(_hash(part, order))
        found.part, found.levels = part, order
        return found

    def was(self, earlier: object) -> bool:
        """Whether an earlier version stated this: it took hierarchies in the order of their declaration."""
        orders = permutations(self.levels) if len(self.levels) <= MOST_ORDERS else (self.levels,)
        return any(_hash(self.part, order) == earlier for order in orders)


def _hash(part: Mapping[str, Any], levels: Iterable[str]) -> str:
    return sha256(json.dumps({**part, "levels": [*map(json.loads, levels)]}, sort_keys=True).encode()).hexdigest()


class _Places(tuple[str, ...]):
    """Workplace attributes with the levels that hierarchies add, anew where a part of the schema is replaced."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Schema:
    """Which column is what.

    Attributes
    ----------
    workplace_attributes : columns that an establishment has one public value of.
    worker_attributes : columns that describe a worker, each with its public domain in the order of publication. The
        values are codes: 1 and "1" are the same one.
    establishment : the column that identifies the establishment.
    worker : the column that identifies the worker.
    size : for tables that are already counted, the column with a row's number of jobs. There is no worker then.
    hierarchy : which workplace attributes follow from which, by name: the levels from the finest to the coarsest. Those
        that are prefixes or looked up become workplace attributes without being columns.
    magnitudes : columns of amounts, each with its cap: the most that one worker adds to an establishment's amount.
    unused : the other columns of the table, or "*" for all of them. No statistic reads them, rows that differ in them
        alone are one job, and none of them says of which period a row is.

    Examples
    --------
    >>> Schema(["place"], {"sex": ["F", "M"]}).keys
    ('workplace', 'worker')
    """

    workplace_attributes: Sequence[str] = ()
    worker_attributes: Mapping[str, Sequence[Label]] = field(default_factory=dict)
    establishment: str = "workplace"
    worker: str | None = "worker"
    size: str | None = None
    hierarchy: Mapping[str, Any] = field(default_factory=dict)
    magnitudes: Mapping[str, Any] = field(default_factory=dict)
    unused: Sequence[str] = ()

    def __post_init__(self) -> None:
        _refuse_shapes(self)
        domains = {name: Codes.of(domain) for name, domain in self.worker_attributes.items()}
        object.__setattr__(self, "hierarchy", MappingProxyType(declared(self.hierarchy)))
        object.__setattr__(self, "magnitudes", MappingProxyType(declared_magnitudes(self.magnitudes)))
        given = self.workplace_attributes
        columns = given.columns if isinstance(given, _Places) else tuple(given)
        places = _Places((*columns, *(level for level in self.derived if level not in columns)))
        places.columns = columns
        object.__setattr__(self, "workplace_attributes", places)
        object.__setattr__(self, "worker_attributes", MappingProxyType(domains))
        object.__setattr__(self, "unused", tuple(self.unused))
        if self.size is not None:
            object.__setattr__(self, "worker", None)
        roles = [*self.keys, *self.workplace_attributes, *domains, *self.magnitudes]
        faults = [
            Fault("schema", f"Column {name!r} has two roles in the schema.", remedy="Give each column one.")
            for name in sorted(name for name, times in Counter([*roles, *self.unused]).items() if times > 1)
        ]
        faults += [
            Fault(
                f"schema.worker_attributes.{name}",
                f"The domain of worker attribute {name!r} has {len(domain)} values.",
                ("It must list different values of one type, such as ", Value(["female", "male"]), "."),
                "Correct it in the schema.",
            )
            for name, domain in domains.items()
            if not domain or len(set(domain)) < len(domain) or len(set(map(type, domain.declared))) > 1
        ]
        faults += [*self._unknown_levels(), *self._levels_of_two_origins(columns)]
        faults += [
            Fault(
                "schema",
                f"Column {name!r} has a name that published tables need themselves.",
                remedy="Rename it at the source.",
            )
            for name in roles
            if name.casefold() in RESERVED or name.startswith("__")
        ]
        faults += misnamed(roles, "schema", what="Column")
        if faults:
            raise DataError(*faults)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that are not attributes."""
        return tuple(name for name in (self.establishment, self.worker, self.size) if name is not None)

    def unnamed(self, columns: Iterable[str]) -> list[str]:
        """Those of a table's columns that have no role here."""
        named = {*self.keys, *self.listed, *self.worker_attributes, *self.magnitudes, *self.unused}
        return [] if REST in self.unused else [column for column in columns if column not in named]

    def idle(self, columns: Iterable[str]) -> list[str]:
        """Those of a table's columns that are declared unused."""
        return [column for column in replace(self, unused=()).unnamed(columns) if {column, REST} & {*self.unused}]

    def domain(self, name: str) -> Codes:
        """What a worker attribute can be; nothing, if there is none of this name."""
        return Codes.of(self.worker_attributes.get(name, ()))

    @property
    def hierarchies(self) -> tuple[Hierarchy, ...]:
        """All declared hierarchies."""
        return tuple(self.hierarchy.values())

    @property
    def derived(self) -> tuple[str, ...]:
        """Workplace attributes that are no columns: prefixes of a code, or looked up."""
        return tuple(level for hierarchy in self.hierarchies for level in hierarchy.derived)

    @property
    def listed(self) -> tuple[str, ...]:
        """Workplace attributes that are columns of the data."""
        return tuple(name for name in self.workplace_attributes if name not in self.derived)

    def readings(self, tables: Sequence[Any]) -> dict[str, Reading]:
        """How CSV columns are read: codes as text; so are keys, unless a table of another format has them."""
        keys = [key for key in self.keys if key != self.size]
        alone = all(is_csv(table) for table in tables if table is not None)
        readings: dict[str, Reading] = dict.fromkeys(keys, "key") if alone else {}
        readings |= dict.fromkeys((*self.listed, *self.worker_attributes), "text")
        return readings | dict.fromkeys(self.magnitudes, "number")

    def looked_up(self, folder: Path) -> Schema:
        """The same schema, whose lookup files are relative to `folder`."""
        moved = {
            name: hierarchy if hierarchy.lookup is None else replace(hierarchy, lookup=str(folder / hierarchy.lookup))
            for name, hierarchy in zip(self.hierarchy, self.hierarchies, strict=True)
        }
        return replace(self, hierarchy=moved) if moved else self

    def _unknown_levels(self) -> list[Fault]:
        return [
            Fault(
                f"hierarchy.{name}",
                f"The hierarchy {name!r} has the level {level!r}, which is no workplace attribute.",
                f"There are: {', '.join(self.workplace_attributes) or 'none'}.",
                "Add the column, or say how it follows from the finest level: by prefix or by lookup.",
            )
            for name, hierarchy in zip(self.hierarchy, self.hierarchies, strict=True)
            for level in hierarchy.levels
            if level not in self.workplace_attributes
        ]

    def _levels_of_two_origins(self, columns: Sequence[str]) -> list[Fault]:
        """A level that is a column and follows from another one: the two could disagree, and one would be dropped."""
        return [
            Fault(
                f"hierarchy.{name}",
                f"{level!r} is declared as a column, and the hierarchy {name!r} derives it from {hierarchy.finest!r}.",
                "A level has one origin.",
                "Take it out of workplace_attributes, or declare all levels as columns: without prefix and lookup.",
            )
            for name, hierarchy in zip(self.hierarchy, self.hierarchies, strict=True)
            for level in hierarchy.derived
            if level in columns
        ]

    @classmethod
    def read(cls, path: str | Path) -> Schema:
        """Read a TOML or JSON file that has these attributes as keys."""
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
            content = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
        except (OSError, ValueError) as error:
            raise DataError(
                f"Schema {str(path)!r} cannot be read: {error}.",
                "A schema is a file of TOML or JSON.",
                "Check the path, or give a discreet.Schema.",
                about="schema",
            ) from None
        if not isinstance(content, Mapping):
            raise _no_schema(f"Schema {path.name!r}")
        found = cls.of(content, name=f"Schema {path.name!r}")
        return found.looked_up(path.parent)

    @classmethod
    def given(cls, schema: Schema | Mapping[str, Any] | str | Path | None, *, data: Path | None, name: str) -> Schema:
        """A schema, its content, its file, or else what lies beside `data`, which messages call `name`."""
        if isinstance(schema, Schema):
            return schema
        if isinstance(schema, Mapping):
            return cls.of(schema)
        if not isinstance(schema, str | Path | None):
            raise DataError(
                (Argument("schema", schema), " is no schema."),
                "It is a Schema, a mapping with the same names, or the path of a file that has them.",
                ("Use for example ", Argument("schema", "schema.toml"), "."),
                about="schema",
            )
        found = cls.read(schema) if schema is not None else None if data is None else cls.beside(data)
        if found is None:
            raise DataError(
                f"{name} has no schema, and which values a worker's attribute can take must not be learned from the "
                "data.",
                remedy="Pass schema=Schema(workplace_attributes=[...], worker_attributes={'sex': ['female', 'male'], "
                "...}), or put it beside the data as schema.toml.",
                about="schema",
            )
        return found

    @classmethod
    def beside(cls, data: str | Path) -> Schema | None:
        """The schema that lies beside a file or in a folder of data, or None; `discreet simulate lodes` leaves a note.

        Every way to open data uses this function, so all of them read the same data under the same schema.
        """
        folder = Path(data) if Path(data).is_dir() else Path(data).parent
        for name in ("schema.toml", "schema.json"):
            if (folder / name).is_file():
                return cls.read(folder / name)
        return SIMULATED.get(_simulated(folder / "about.json"))

    @classmethod
    def of(cls, content: Mapping[str, Any], *, name: str = "The schema") -> Schema:
        """Read a mapping, as a plan or a schema file holds it."""
        needed = {"workplace_attributes", "worker_attributes"}
        faults = sorted(content.keys() - {field.name for field in fields(cls)} | needed - content.keys())
        if faults:
            raise DataError(
                f"{name} lacks or does not know: {', '.join(faults)}.",
                "It has workplace_attributes, a list, and worker_attributes, the domain of each; it may have "
                "establishment, worker, size, hierarchy, magnitudes and unused.",
                about="schema",
            )
        return cls(**content)

    def digest(self, used: Iterable[str]) -> Digest:
        """What tables of these attributes rest on: keys, who has each attribute, domains, derived levels."""
        names = {*used}
        levels = [json.dumps(each.to_dict(), sort_keys=True) for each in self.hierarchies if names & {*each.derived}]
        part = {
            "keys": [self.establishment, self.worker, self.size],
            "workplaces": sorted(names & {*self.workplace_attributes}),
            "workers": {name: list(self.domain(name).declared) for name in self.worker_attributes if name in names},
        }
        return Digest.of(part, levels)

    def to_dict(self) -> dict[str, Any]:
        """The form that `of` reads: plain lists and names, for JSON."""
        kept = {"establishment": self.establishment, "worker": self.worker, "size": self.size}
        amounts = {name: magnitude.to_dict() for name, magnitude in self.magnitudes.items()}
        levels = {name: hierarchy.to_dict() for name, hierarchy in zip(self.hierarchy, self.hierarchies, strict=True)}
        return {
            "workplace_attributes": list(self.listed),
            "worker_attributes": {name: list(self.domain(name).declared) for name in self.worker_attributes},
            **{role: column for role, column in kept.items() if column is not None},
            **({"hierarchy": levels} if levels else {}),
            **({"magnitudes": amounts} if amounts else {}),
            **({"unused": list(self.unused)} if self.unused else {}),
        }


def _refuse_shapes(schema: Schema) -> None:
    """Refuse a schema whose parts are not of the kind that they must be, before one is taken for another."""
    places, domains = schema.workplace_attributes, schema.worker_attributes
    roles = {"establishment": schema.establishment, "worker": schema.worker, "size": schema.size}
    faults = [
        Fault(
            f"schema.{role}",
            (Argument(role, name), " is not a column."),
            "Columns are named in text.",
            ("Use for example ", Argument(role, role), "."),
        )
        for role, name in roles.items()
        if not isinstance(name, str) and (name is not None or role == "establishment")
    ]
    if isinstance(schema.unused, str) or not _named(schema.unused):
        faults.append(
            Fault(
                "schema.unused",
                (Argument("unused", schema.unused), " is not a list of columns."),
                "It lists columns of the table that no statistic reads.",
                ("Use for example ", Argument("unused", ["remarks"]), "."),
            )
        )
    if isinstance(places, str) or not _named(places):
        faults.append(
            Fault(
                "schema.workplace_attributes",
                (Argument("workplace_attributes", places), " is not a list of columns."),
                "It lists the columns that an establishment has one public value of.",
                ("Use for example ", Argument("workplace_attributes", ["place", "sector"]), "."),
            )
        )
    if not isinstance(domains, Mapping) or not _named(domains):
        faults.append(
            Fault(
                "schema.worker_attributes",
                (Argument("worker_attributes", domains), " does not give the values that each attribute can take."),
                "These are public and are never looked up in the data.",
                ("Use for example ", Argument("worker_attributes", {"sex": ["female", "male"]}), "."),
            )
        )
    else:
        faults += [
            Fault(
                f"schema.worker_attributes.{name}",
                (f"The domain of worker attribute {name!r} is ", Value(domain), "."),
                "It lists text, whole numbers or true and false.",
                ("Use for example ", Value(["female", "male"]), "."),
            )
            for name, domain in domains.items()
            if isinstance(domain, str)
            or not isinstance(domain, Iterable)
            or not all(isinstance(value, str | int) for value in domain)
        ]
    if faults:
        raise DataError(*faults)


def several_jobs(allow_multiple: object) -> bool | int:
    """Whether a worker may have several jobs, or how many; refused if it is neither."""
    if isinstance(allow_multiple, bool) or (isinstance(allow_multiple, Integral) and int(allow_multiple) > 0):
        return allow_multiple if isinstance(allow_multiple, bool) else int(allow_multiple)
    raise DataError(
        (Argument("allow_multiple", allow_multiple), " does not say how many jobs a worker may have."),
        "It is True, False or the most establishments at which one worker has a job. Use for example 3.",
        about="allow_multiple",
    )


def _no_schema(name: str) -> DataError:
    return DataError(
        f"{name} does not hold a schema.",
        "It has workplace_attributes, a list, and worker_attributes, the domain of each.",
        "Correct it.",
        about="schema",
    )


def _simulated(about: Path) -> str:
    """Which data `discreet simulate` wrote here, if it did."""
    try:
        content = json.loads(about.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    return str(content.get("data")) if isinstance(content, dict) else ""


def _named(columns: object) -> bool:
    return isinstance(columns, Iterable) and all(isinstance(name, str) for name in columns)


LODES = Schema(
    workplace_attributes=("state", "county", "place", "place_population", "sector", "ownership"),
    worker_attributes={
        "sex": ("male", "female"),
        "age": ("14-18", "19-21", "22-24", "25-34", "35-44", "45-54", "55-64", "65-99"),
        "race": ("White", "Black", "American Indian", "Asian", "Pacific Islander", "two or more"),
        "ethnicity": ("not Hispanic", "Hispanic"),
        "education": ("less than high school", "high school", "some college", "bachelor or more"),
    },
)
"""The schema of the data that `discreet simulate lodes` writes."""

NATIONAL = Schema(
    workplace_attributes=("naics6", "county", "ownership"),
    worker_attributes={},
    size="jobs",
    hierarchy={
        "industry": {"levels": ("naics6", "naics5", "naics4", "naics3", "naics2"), "prefix": (6, 5, 4, 3, 2)},
        "place": {"levels": ("county", "state"), "prefix": (5, 2)},
    },
    magnitudes={"payroll": 250_000},
)
"""The schema of the data that `discreet simulate national` writes: one row per establishment."""

SIMULATED = {"lodes": LODES, "national": NATIONAL}
