"""A plan read from its file, or everything that is wrong with it, in our words and with lines.

pydantic finds the faults; its sentences are for programmers, so each kind of fault gets one of ours here.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from discreet.errors import DataError, DiscreetError
from discreet.faults import Fault, Place, Sentence
from discreet.plan.document import Document
from discreet.plan.shape import KINDS, Columns, LevelsSection, MagnitudeSection, Plan, Section
from discreet.schema import Schema
from discreet.voices import written

WANTED = {
    "string_type": "text in quotes",
    "tuple_type": "a list in brackets",
    "dict_type": "a table: keys with values",
    "model_type": "a table: keys with values",
    "model_attributes_type": "a table: keys with values",
    "bool_type": "true or false",
    "int_type": "a whole number",
}


@dataclass(frozen=True, slots=True, repr=False)
class PlanFile:
    """A plan and the text it came from."""

    plan: Plan
    document: Document

    def __repr__(self) -> str:
        return f"<PlanFile {self.document.path.name!r}: {len(self.plan.release)} releases>"

    def path(self, text: str) -> Path:
        """A path of the plan, which is relative to the plan's folder."""
        return self.document.folder / text

    def schema(self) -> Schema:
        """The schema that the plan holds, names, or finds beside the data. It is public and says nothing about rows.

        Hierarchies of the plan come on top of those of the schema.
        """
        found, own = self._schema(), self.plan.hierarchy
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
        given = self.plan.data.columns
        if isinstance(given, Columns):
            return given.schema_of_jobs()
        if given is not None:
            return Schema.read(self.path(given))
        found = Schema.beside(self.path(self.plan.data.source))
        if found is None:
            raise DataError(
                f"there is none in the plan and none beside {self.plan.data.source!r}.",
                "Which values a worker's attribute can take is public and must not be learned from the data.",
                "Add [data.schema], or schema = 'schema.toml'.",
                about="schema",
            )
        return found

    def index(self, name: str) -> int:
        """The number of the release called `name`."""
        return next(i for i, release in enumerate(self.plan.release) if release.name == name)


def read_plan(path: str | Path, text: bytes | None = None) -> PlanFile:
    """Read a plan and check its shape; all faults are reported together.

    Parameters
    ----------
    path : the plan's TOML file.
    text : what to read in place of the file.

    Returns
    -------
    The plan with the place of each of its keys.

    Examples
    --------
    >>> plan = read_plan("plan.toml")                                               # doctest: +SKIP
    """
    document = Document.read(path, text)
    try:
        plan = Plan.model_validate(document.content)
    except ValidationError as error:
        document.refuse(faults(error))
        raise
    document.refuse(names_twice(plan))
    return PlanFile(plan, document)


def names_twice(plan: Plan) -> list[Fault]:
    """A name stands for one release."""
    names = [release.name for release in plan.release]
    return [
        Fault(("release", i, "name"), f"{name!r} names two releases.", "A name stands for one.", "Choose another.")
        for i, name in enumerate(names)
        if name in names[:i]
    ]


def faults(error: ValidationError) -> list[Fault]:
    """What pydantic found, in our words."""
    found = error.errors(include_url=False)
    places = [fault["loc"] for fault in found]
    return [
        each
        for fault in found
        # a list whose items were all refused also counts as empty
        if not (fault["type"] == "too_short" and any(_within(place, fault["loc"]) for place in places))
        for each in _faults(fault)
    ]


def _faults(found: Any) -> list[Fault]:
    """One finding of pydantic: what a check of ours raised, or our words for what pydantic checks itself."""
    place, raised = _place(found["loc"]), found.get("ctx", {}).get("error")
    if isinstance(raised, DiscreetError):
        return [Fault(place, each.asked, each.possible, each.remedy) for each in raised.faults]
    return [Fault(place, *_words(found))]


def _words(fault: Any) -> tuple[Sentence, ...]:
    kind, value, facts = fault["type"], fault["input"], fault.get("ctx", {})
    if kind == "missing":
        return "it is missing.", f"It says: {_about(fault['loc'])}", "Add it."
    if kind == "extra_forbidden":
        key, known = str(fault["loc"][-1]), _keys(_table(fault["loc"][:-1]))
        return "there is no such key here.", f"There are: {', '.join(known)}.", _near(key, known)
    if kind == "literal_error":
        known = [word.strip(" '") for word in facts["expected"].replace(" or ", ",").split(",")]
        return f"{written(value)} is unknown.", f"It is {facts['expected']}.", _near(str(value), known)
    if kind == "union_tag_invalid":
        known = [word.strip(" '") for word in facts["expected_tags"].split(",")]
        return f"kind = {facts['tag']!r} is unknown.", f"There are: {', '.join(known)}.", _near(facts["tag"], known)
    if kind == "union_tag_not_found":
        example = "kind = 'count'." if fault["loc"][0] == "release" else "kind = 'establishments'."
        return "kind is missing, or is not text.", "It says what this table is.", f"Add for example {example}"
    if kind in ("too_short", "string_too_short"):
        return "it is empty.", "It needs at least one item or character.", "Fill it in."
    if kind == "too_long":
        return (
            "it has too many items.",
            f"There are at most {facts['max_length']:,}.",
            "Divide it among several plans.",
        )
    if kind in ("greater_than_equal", "less_than_equal"):
        bound = f"at least {facts['ge']}" if "ge" in facts else f"at most {facts['le']}"
        return f"{written(value)} is out of range.", f"It is {bound}.", "Change it."
    wanted = WANTED.get(kind)
    if wanted is None:
        return f"{fault['msg']}.", "", "Correct it."
    return f"it holds {_kind(value)}, where {wanted} is needed.", "", "Write it so."


def _place(loc: Place) -> Place:
    """A pydantic location without the words that tell kinds of tables apart."""
    cut = {"release": 2, "unit": 1, "hierarchy": 2, "data": 2 if loc[:2] == ("data", "schema") else len(loc)}.get(
        str(loc[:1] and loc[0])
    )
    return loc if cut is None else (*loc[:cut], *loc[cut + 1 :])


def _table(loc: Place) -> type[Section] | None:
    """The table at a location, if it is one."""
    if not loc:
        return Plan
    if loc[:2] == ("data", "schema"):
        return Columns if len(loc) == 3 else MagnitudeSection if len(loc) == 5 and loc[3] == "magnitudes" else None
    if loc[0] == "hierarchy":
        return LevelsSection if loc[2:] == ("table",) else None
    if loc[0] in ("release", "unit"):
        return KINDS[str(loc[-1])] if len(loc) == (3 if loc[0] == "release" else 2) else None
    field = Plan.model_fields.get(str(loc[0]))
    found: type[Section] | None = cast(Any, field.annotation) if len(loc) == 1 and field is not None else None
    return found


def _keys(table: type[Section] | None) -> list[str]:
    return [] if table is None else [field.alias or name for name, field in table.model_fields.items()]


def _about(loc: Place) -> str:
    """What the missing key is for."""
    table = _table(loc[:-1])
    field = None if table is None else table.model_fields.get(str(loc[-1]))
    if field is None:
        return "what the table is for."
    inner = _table(loc) or field.annotation
    return field.description or next(iter((getattr(inner, "__doc__", None) or "whom to protect.").splitlines()))


def _near(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f"Did you mean {near[0]!r}?" if near else "Use one of these."


def _kind(value: object) -> str:
    kinds: list[tuple[type | Any, str]] = [
        (bool, "true or false"),
        (str, "text"),
        (int, "a whole number"),
        (list, "a list"),
        (Mapping, "a table"),
    ]
    return next((words for kind, words in kinds if isinstance(value, kind)), "a number or a date")


def _within(place: Place, prefix: Place) -> bool:
    return len(place) > len(prefix) and place[: len(prefix)] == prefix
