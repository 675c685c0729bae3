"""A plan read from its file, or everything that is wrong with it, in our words and with lines.

pydantic finds the faults; its sentences are for programmers, so each kind of fault gets one of ours here.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from discreet.data.databases import is_address
from discreet.data.scans import is_remote
from discreet.plan.document import Document
from discreet.plan.file import PlanFile
from discreet.plan.shape import ALONE, KINDS, OF_A_SOURCE, AlarmsSection, Compare, Plan, Suppress
from discreet.plan.source import Columns, LevelsSection, MagnitudeSection, Section, SourceSection
from discreet.plan.values import OF_A_KIND
from discreet.words.arguments import of_kinds
from discreet.words.errors import DiscreetError
from discreet.words.faults import Fault, Place, Sentence
from discreet.words.voices import written

WANTED = {
    "string_type": "text in quotes",
    "tuple_type": "a list in brackets",
    "dict_type": "a table: keys with values",
    "model_type": "a table: keys with values",
    "model_attributes_type": "a table: keys with values",
    "bool_type": "true or false",
    "int_type": "a whole number",
}


@of_kinds
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
    document.refuse(contradictions(plan))
    return PlanFile(plan, document)


def contradictions(plan: Plan) -> list[Fault]:
    """Conflicts between tables of the right shape."""
    return [
        *_names_twice(plan),
        *_unnamed_sources(plan),
        *_two_budgets(plan),
        *_unreadable(plan),
        *_unknown_releases(plan),
    ]


def _names_twice(plan: Plan) -> Iterator[Fault]:
    """A name stands for one release."""
    names = [release.name for release in plan.release]
    for i, name in enumerate(names):
        if name in names[:i]:
            place = ("release", i, "name")
            yield Fault(place, f"{name!r} names two releases.", "A name stands for one.", "Choose another.")


def _unnamed_sources(plan: Plan) -> Iterator[Fault]:
    """Releases of no source, or of one that is not there; sources of no release."""
    known, listed = [*plan.source], ", ".join(map(repr, plan.source))
    for i, release in enumerate(plan.release):
        place, name = ("release", i, "source"), release.source
        if ALONE in known:
            if name is not None:
                yield Fault(place, f"{name!r} is named.", "The plan has one source, without a name.", "Leave it out.")
        elif name is None:
            if len(known) > 1:
                yield Fault(place, "it is missing.", f"The plan has several sources: {listed}.", "Name one of them.")
        elif name not in known:
            yield Fault(place, f"there is no source {name!r}.", f"There are: {listed}.", _near(name, known))
    used = {release.source for release in plan.release}
    for name in known:
        if len(known) > 1 and name not in used:
            yield Fault(("source", name), "no release is from it.", "A source is there for releases.", "Leave it out.")


def _unknown_releases(plan: Plan) -> Iterator[Fault]:
    """Alarms of one name, about releases that are not there, or about one release alone."""
    known, names = [release.name for release in plan.release], [each.name for each in plan.alarms]
    for i, each in enumerate(plan.alarms):
        if each.name in names[:i]:
            place = ("alarms", i, "name")
            yield Fault(place, f"{each.name!r} names two.", "A name stands for one.", "Choose another.")
        here = {"late": each.late} | ({"early": each.early} if each.folder is None and each.early is not None else {})
        for key, name in here.items():
            if name not in known:
                words = f"there is no release {name!r}.", f"There are: {', '.join(map(repr, known))}."
                yield Fault(("alarms", i, key), *words, _near(name, known))
        if each.early is None and each.folder is not None:
            place = ("alarms", i, "early")
            yield Fault(place, "it is missing.", "The folder holds releases by name.", "Name one of them.")
        if each.early == each.late and each.folder is None:
            place, asked = ("alarms", i, "early"), f"{each.early!r} is compared with itself."
            yield Fault(place, asked, "A change is between two releases.", "Name an earlier one.")
        if each.rate is not None and each.fdr is not None:
            place, asked = ("alarms", i, "fdr"), f"a rate of {each.rate} is given too."
            yield Fault(place, asked, "A rate is of each cell, a false discovery rate of the list.", "Leave one out.")
        if each.least < 0:
            yield Fault(("alarms", i, "least"), f"{each.least} is no size.", "It is 0 or more.", "Use 0.")


def _two_budgets(plan: Plan) -> Iterator[Fault]:
    """One name of data under two budgets or units, and budgets in two ledgers."""
    first: dict[str, tuple[str, SourceSection]] = {}
    ledgers: dict[str, str] = {}
    for name, source in plan.source.items():
        budget, place = source.budget, ("source", name, "budget")
        other, known = first.setdefault(budget.dataset, (name, source))
        ledger = next(iter(ledgers), budget.ledger)
        ledgers.setdefault(budget.ledger, name)
        if budget.ledger != ledger:
            yield Fault(
                (*place, "ledger"),
                f"{budget.ledger!r} is another ledger than {ledger!r} of source {ledgers[ledger]!r}. One plan has "
                f"one ledger, so one bundle proves all of it. Name the same, or write two plans.",
            )
        elif budget != known.budget or source.unit != known.unit:
            what = "budget" if budget != known.budget else "unit"
            yield Fault(
                (*place, "dataset") if what == "budget" else ("source", name, "unit"),
                f"{budget.dataset!r} has another {what} here than in source {other!r}. One data set has one budget "
                f"under one unit. Write the same {what}, or name other data.",
            )


def _unreadable(plan: Plan) -> Iterator[Fault]:
    """Data that the plan's engine does not read."""
    spark = plan.engine.is_spark
    for name, source in plan.source.items():
        above = () if name == ALONE else ("source", name)
        for key, text in source.data.places:
            if spark and (is_address(text) or "::" in text or text.endswith((".duckdb", ".ddb"))):
                yield Fault(
                    (*above, "data", key),
                    "Spark does not read tables of databases here.",
                    "It reads Parquet and CSV at a path that every worker sees.",
                    "Leave [engine] out, or write the table to Parquet.",
                )
            elif is_remote(text) and not spark:
                yield Fault(
                    (*above, "data", key),
                    f"{text!r} is on storage of a cluster, and DuckDB reads files of this machine.",
                    "Spark reads both.",
                    "Add [engine] with kind = 'spark', or copy the files.",
                )


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
        return [Fault((*place, *each.place), each.asked, each.possible, each.remedy) for each in raised.faults]
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
    if kind == "too_short" and value:
        return "it has too few items.", f"There are at least {facts['min_length']}.", "Add one."
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


INSIDE: dict[str, type[Section]] = {"suppress": Suppress, "compare": Compare}
"""Tables inside a release."""


def _place(loc: Place) -> Place:
    """A pydantic location without the words that tell kinds apart, nor the name of the only source."""
    loc = tuple(part for part in loc if part not in OF_A_KIND)
    inner = loc[2:] if loc[:1] == ("source",) else loc
    above = () if loc[:2] == ("source", ALONE) else loc[: len(loc) - len(inner)]
    if inner[:1] == ("[key]",):
        return above
    cut = {"release": 2, "unit": 1, "hierarchy": 2, "data": 2 if inner[:2] == ("data", "schema") else len(inner)}.get(
        str(inner[:1] and inner[0])
    )
    return (*above, *(inner if cut is None else (*inner[:cut], *inner[cut + 1 :])))


def _table(loc: Place) -> type[Section] | None:
    """The table at a location, if it is one."""
    if not loc:
        return Plan
    if loc[0] == "release" and loc[3:]:
        return INSIDE.get(str(loc[3])) if len(loc) == 4 else None
    if loc[0] == "release":
        return KINDS[str(loc[-1])] if len(loc) == 3 else None
    if loc[0] == "alarms" and len(loc) == 2:
        return AlarmsSection
    if loc[0] != "source":
        return _section(Plan, loc)
    inner = loc[2:]
    if not inner:
        return SourceSection if len(loc) == 2 else None
    if inner[:2] == ("data", "schema"):
        return (
            Columns if len(inner) == 3 else MagnitudeSection if len(inner) == 5 and inner[3] == "magnitudes" else None
        )
    if inner[0] == "hierarchy":
        return LevelsSection if inner[2:] == ("table",) else None
    if inner[0] == "unit":
        return KINDS[str(inner[-1])] if len(inner) == 2 else None
    return _section(SourceSection, inner)


def _section(table: type[Section], loc: Place) -> type[Section] | None:
    """The table that a key of another table is."""
    field = table.model_fields.get(str(loc[0]))
    found: type[Section] | None = cast(Any, field.annotation) if len(loc) == 1 and field is not None else None
    return found


def _keys(table: type[Section] | None) -> list[str]:
    keys = [] if table is None else [field.alias or name for name, field in table.model_fields.items()]
    return [*keys[:1], *OF_A_SOURCE, *keys[1:]] if table is Plan else keys


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
