"""Which column of a table of jobs is what: the words that must be agreed before confidential data are read.

That an establishment exists, and where, is public (Haney et al. 2017, section 3), so its attributes need no domain.
Which values a worker's attribute can take is public too, and is declared here, never looked up in the data.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from discreet.errors import DataError

Label: TypeAlias = str | int | bool

RESERVED = frozenset({"count", "lower", "upper", "quality", "largest"})
"""Columns of every published table of counts."""


@dataclass(frozen=True, slots=True)
class Schema:
    """Which column is what.

    Attributes
    ----------
    workplace_attributes : columns that an establishment has one public value of.
    worker_attributes : columns that describe a worker, each with its public domain in the order of publication.
    establishment : the column that identifies the establishment.
    worker : the column that identifies the worker.
    size : for tables that are already counted, the column with a row's number of jobs. There is no worker then.
    """

    workplace_attributes: Sequence[str]
    worker_attributes: Mapping[str, Sequence[Label]]
    establishment: str = "workplace"
    worker: str | None = "worker"
    size: str | None = None

    def __post_init__(self) -> None:
        _refuse_shapes(self)
        domains = {name: tuple(domain) for name, domain in self.worker_attributes.items()}
        object.__setattr__(self, "workplace_attributes", tuple(self.workplace_attributes))
        object.__setattr__(self, "worker_attributes", MappingProxyType(domains))
        if self.size is not None:
            object.__setattr__(self, "worker", None)
        roles = [*self.keys, *self.workplace_attributes, *domains]
        faults = [
            f"Column {name!r} has two roles in the schema. Give each column one."
            for name in sorted(name for name, times in Counter(roles).items() if times > 1)
        ]
        faults += [
            f"The domain of worker attribute {name!r} has {len(domain)} values. It must list different values of one "
            "type, such as ['female', 'male']. Correct it in the schema."
            for name, domain in domains.items()
            if not domain or len(set(domain)) < len(domain) or len(set(map(type, domain))) > 1
        ]
        faults += [
            f"Column {name!r} has a name that published tables need themselves. Rename it at the source."
            for name in roles
            if name in RESERVED or name.startswith("__")
        ]
        if faults:
            raise DataError("\n".join(faults))

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that are not attributes."""
        return tuple(name for name in (self.establishment, self.worker, self.size) if name is not None)

    @classmethod
    def read(cls, path: str | Path) -> Schema:
        """From a TOML or JSON file that has these attributes as keys."""
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
            content = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
        except (OSError, ValueError) as error:
            raise DataError(f"Schema {str(path)!r} cannot be read: {error}. It must be a TOML or JSON file.") from None
        return cls.of(content, name=f"Schema {path.name!r}")

    @classmethod
    def of(cls, content: Mapping[str, Any], *, name: str = "The schema") -> Schema:
        """From a mapping, as a plan or a schema file holds it."""
        needed = {"workplace_attributes", "worker_attributes"}
        faults = sorted(content.keys() - {field.name for field in fields(cls)} | needed - content.keys())
        if faults:
            raise DataError(
                f"{name} lacks or does not know: {', '.join(faults)}. It has workplace_attributes, a list, and "
                "worker_attributes, the domain of each; it may have establishment, worker and size."
            )
        return cls(**content)

    def to_dict(self) -> dict[str, Any]:
        """What `of` reads: plain lists and names, for JSON."""
        kept = {"establishment": self.establishment, "worker": self.worker, "size": self.size}
        return {
            "workplace_attributes": list(self.workplace_attributes),
            "worker_attributes": {name: list(domain) for name, domain in self.worker_attributes.items()},
            **{role: column for role, column in kept.items() if column is not None},
        }


def _refuse_shapes(schema: Schema) -> None:
    """Refuse a schema whose parts are not of the kind that they must be, before one is taken for another."""
    places, domains = schema.workplace_attributes, schema.worker_attributes
    roles = {"establishment": schema.establishment, "worker": schema.worker, "size": schema.size}
    faults = [
        f"{role}={name!r:.60} is not a column. Columns are named in text. Use for example {role}='{role}'."
        for role, name in roles.items()
        if not isinstance(name, str) and (name is not None or role == "establishment")
    ]
    if isinstance(places, str) or not _named(places):
        faults.append(
            f"workplace_attributes={places!r:.60} is not a list of columns. It lists the columns that an establishment "
            "has one public value of. Use for example workplace_attributes=['place', 'sector']."
        )
    if not isinstance(domains, Mapping) or not _named(domains):
        faults.append(
            f"worker_attributes={domains!r:.60} does not give the values that each attribute can take. These are "
            "public and are never looked up in the data. Use for example worker_attributes={'sex': ['female', 'male']}."
        )
    else:
        faults += [
            f"The domain of worker attribute {name!r} is {domain!r:.60}. It lists text, whole numbers or true and "
            "false. Use for example ['female', 'male']."
            for name, domain in domains.items()
            if isinstance(domain, str)
            or not isinstance(domain, Iterable)
            or not all(isinstance(value, str | int) for value in domain)
        ]
    if faults:
        raise DataError("\n".join(faults))


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
