"""A plan as somebody fills it in at the desk, and as the TOML that `discreet run` takes.

A draft holds what may be chosen: title, unit, releases, forms of output. The desk's settings give the places of data,
ledger and output, so no form can name a path.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.datastructures import FormData

from discreet.data.schema import Schema
from discreet.desk import filters
from discreet.desk.desk import DataSource, Desk
from discreet.pages.page import slug
from discreet.words.cases import case_of
from discreet.words.errors import DataError

Scalar: TypeAlias = str | int | float | bool
Scalars: TypeAlias = Annotated[list[Scalar], Field(fail_fast=True)]
Texts: TypeAlias = Annotated[list[Annotated[list[str], Field(fail_fast=True)]], Field(fail_fast=True)]
Values: TypeAlias = dict[str, Scalar | Scalars | Texts | dict[str, Scalar | Scalars]]
MOST_RELEASES, MOST_ALARMS, MOST_FAULTS = 12, 4, 50

NUMBERS = frozenset(
    {
        "alpha",
        "epsilon",
        "delta",
        "lower",
        "upper",
        "level",
        "at",
        "split",
        "scale",
        "scale_share",
        "clip",
        "rate",
        "fdr",
        "least",
    }
)
"""Keys whose text is written as a number where it is a plain one."""

LISTS = {"by", "quarter", "quarters", "shrink", "coefficient", "at", "lagged", "series", "split", "clip", "response"}
WHOLE = {"round_to", "theta", "partitions"}
TICKED = {"add_up", "establishments", "substitution"}
EMPTY = {"by", "shrink"}
"""Lists that say something without a member: one total; groups of all cells together."""

TOTAL = "*"
"""The line of a table without attributes, which is one total; no attribute has this name."""

LONGEST, FILTER = 2_000, 20_000
"""Characters of one field, and of a filter."""

OF_UNIT = {
    "establishments": ("alpha", "strength", "substitution"),
    "workers": (),
    "establishment-nodes": ("theta",),
    "rows": ("lower", "upper", "response"),
    "groups": ("by", "lower", "upper", "response"),
}
OF_READERS = ("level", "scale_share", "round_to", "suppress", "compare", "replaces")
OF_TABLES = ("delta", "where", "stratum", "establishments", *OF_READERS)
OF_ONE, OF_SEVERAL = ("by", "mechanism", "shrink", *OF_TABLES), ("tables", "split", "add_up", "measure", *OF_TABLES)
OF_KIND = {
    "count": OF_ONE,
    "counts": OF_SEVERAL,
    "sum": ("of", *OF_ONE),
    "sums": ("of", *OF_SEVERAL),
    "flows": ("quarter", "by", *OF_READERS),
    "changes": ("quarters", "by", *OF_READERS),
    "model": ("formula", "family", "exposure", "clip", "lagged", "series", "time", "replaces"),
    "posterior": ("formula", "summary", "coefficient", "at", "scale", "replaces"),
}
"""The fields of the forms; a plan may hold more."""

OF_ALARMS = ("title", "late", "early", "folder", "by", "value", "rate", "fdr", "least", "direction")


class Draft(BaseModel):
    """What may be chosen in a plan."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    source: Annotated[str, Field(max_length=64, description="Name of a source of the desk.")]
    title: Annotated[str, Field(max_length=200)] = ""
    unit: Annotated[Values, Field(description="Whom to protect: kind = 'establishments' with an alpha, ...")]
    release: Annotated[
        list[Values], Field(max_length=MOST_RELEASES, description="Releases, as [[release]] of a plan has them.")
    ]
    alarms: Annotated[
        list[Values], Field(max_length=MOST_ALARMS, description="Alarms, as [[alarms]] of a plan has them.")
    ] = []
    formats: Annotated[list[str], Field(max_length=4)] = ["csv", "parquet"]
    forms: Annotated[list[str], Field(max_length=4)] = ["basic", "research"]

    def content(self, desk: Desk, plan: str) -> dict[str, Any]:
        """The whole plan, with what the desk's settings say."""
        source = desk.sources[self.source]
        fixed = desk.fixed_tables(source, plan)
        output = fixed.pop("output") | {"formats": self.formats, "forms": self.forms}
        releases: list[dict[str, Any]] = [dict(release) for release in self.release]
        for number, release in enumerate(releases):
            if "compare" in release:
                release["compare"] = desk.agency(source, release["compare"], ("release", number, "compare"))
        alarms: list[dict[str, Any]] = [dict(each) for each in self.alarms]
        for number, each in enumerate(alarms):
            if "folder" in each:
                each["folder"] = desk.output_of(each["folder"], ("alarms", number, "folder"))
        return {
            "title": self.title,
            "data": fixed["data"],
            **({"hierarchy": fixed["hierarchy"]} if "hierarchy" in fixed else {}),
            "unit": self.unit,
            "budget": fixed["budget"],
            **({"public": fixed["public"]} if "public" in fixed else {}),
            "release": releases,
            **({"alarms": alarms} if alarms else {}),
            "output": output,
        }


def read(sent: bytes) -> Draft | list[tuple[str | int, ...]]:
    """The draft that JSON holds, or the places where it is none."""
    try:
        return Draft.model_validate_json(sent)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        return [fault["loc"] for fault in found[:MOST_FAULTS]]


def first_draft(desk: Desk, source: DataSource, number: int = 1) -> Draft:
    """What a form shows before anything was chosen; `number` makes the release's name its own."""
    dumped = source.unit.model_dump(mode="json", exclude_none=True)
    unit = {key: _plain(key, value) for key, value in dumped.items() if value is not False}
    if source.of_rows:
        release: Values = {"name": "", "kind": "model", "formula": source.formula, "epsilon": "1"}
    elif source.quarters:
        release = {"name": "", "kind": "flows", "by": [], "epsilon": "1"}
    else:
        release = {"name": "", "kind": "count", "by": [], "epsilon": "1"}
    release["name"] = f"{source.name}-{number}"
    return Draft(source=source.name, title="", unit=unit, release=[release])


ALARMED = {
    "count": "count",
    "counts": "count",
    "sum": "sum",
    "sums": "sum",
    "flows": "creation",
    "changes": "change",
    "model": "estimate",
    "posterior": "estimate",
}
"""Which number alarms are about at first, by the kind of a release."""

ALONE = dict.fromkeys(ALARMED, False) | {"changes": True}
"""Kinds of releases that hold the change themselves."""


def first_alarms(draft: Draft) -> Values:
    """Alarms between the last two releases of a draft, or of its last one alone where that has changes."""
    names, kind = [str(release["name"]) for release in draft.release], str(draft.release[-1]["kind"])
    found: Values = {"name": f"changes-{len(draft.alarms) + 1}", "late": names[-1], "value": case_of(kind, ALARMED)}
    return found | ({"early": names[-2]} if len(names) > 1 and not case_of(kind, ALONE) else {})


def from_form(form: FormData, source: str, schema: Schema | None = None) -> Draft:
    """The draft that a form holds; what is wrong with it is found by the plan's own checks."""
    kind = _text(form, "unit-kind")
    asked = {key: _value(form, f"unit-{key}", key) for key in OF_UNIT.get(kind, ())}
    unit: Values = {"kind": kind} | {
        key: value for key, value in asked.items() if value not in ("", None) and value is not False
    }
    return Draft(
        source=source,
        title=_text(form, "title")[:200],
        unit=unit,
        release=[_release(form, number, schema) for number in _numbers(form, "release")[:MOST_RELEASES]],
        alarms=[_alarms(form, number) for number in _numbers(form, "alarms")[:MOST_ALARMS]],
        formats=[str(value) for value in form.getlist("formats")][:4],
        forms=[str(value) for value in form.getlist("forms")][:4],
    )


def _numbers(form: FormData, of: str) -> list[int]:
    return sorted({int(m[1]) for name in form if (m := re.match(rf"{of}-(\d{{1,3}})-", name))})


def _alarms(form: FormData, number: int) -> Values:
    start = f"alarms-{number}-"
    asked = {key: _value(form, f"{start}{key}", key) for key in OF_ALARMS}
    return {"name": _text(form, f"{start}name")} | {key: value for key, value in asked.items() if value not in ("", [])}


def _release(form: FormData, number: int, schema: Schema | None) -> Values:
    start = f"release-{number}-"
    kind = _text(form, f"{start}kind")
    release: Values = {"name": _text(form, f"{start}name")}
    if title := _text(form, f"{start}title"):
        release["title"] = title
    release["kind"] = kind
    for key in OF_KIND.get(kind, ()):
        value = _value(form, f"{start}{key}", key, schema)
        if value not in ("", None, [], {}, False) or (key in EMPTY and value is not None):
            release[key] = value
    release["epsilon"] = _text(form, f"{start}epsilon")
    return release


def _value(form: FormData, name: str, key: str, schema: Schema | None = None) -> Any:
    if key in TICKED:
        return name in form
    if key == "suppress":
        below, flags = _text(form, f"{name}-below"), [str(flag) for flag in form.getlist(f"{name}-quality")]
        number = int(below) if re.fullmatch(r"\d{1,9}", below) else below
        return ({"below": number} if below else {}) | ({"quality": flags} if flags else {})
    if key == "where":
        return filters.read(_text(form, name, most=FILTER), schema)
    if key == "tables":
        return [[] if names == [TOTAL] else names for names in filters.read_names(_text(form, name))]
    if key in LISTS:
        given = [str(value) for value in form.getlist(name)]
        if key == "shrink":
            return [value for value in given if value] if given else None
        whole = len(given) > 1 or (
            schema is not None and {*given} <= {*schema.workplace_attributes, *schema.worker_attributes}
        )
        return given if whole else _parts(given[0] if given else "")
    text = _text(form, name)
    return int(text) if key in WHOLE and re.fullmatch(r"\d{1,9}", text) else text


def _parts(line: str) -> list[str]:
    return [part.strip() for part in line.split(",") if part.strip()]


def _text(form: FormData, name: str, *, most: int = LONGEST) -> str:
    value = form.get(name, "")
    text = value.strip() if isinstance(value, str) else ""
    if len(text) > most:
        raise DataError(
            f"{name[:40]!r} has {len(text):,} characters.",
            f"A field takes {most:,}.",
            "Shorten it, or write a plan by hand.",
            about=name,
        )
    return text


def _plain(key: str, value: Any) -> Any:
    """An exact amount in the text that a form shows: 0.1 rather than 1/10."""
    if key not in NUMBERS:
        return value
    amount = Fraction(value)
    decimal = format((Decimal(amount.numerator) / amount.denominator).normalize(), "f")
    return decimal if Fraction(decimal) == amount else str(amount)


def new_name(title: str, source: str) -> str:
    """A name for a plan that nobody has yet."""
    return f"{slug(title or source)[:40].strip('-')}-{secrets.token_hex(3)}"


def digest(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def as_toml(content: Mapping[str, Any]) -> str:
    """A plan's content as TOML, in the order of its keys."""
    lines = [f"{key} = {_toml(value, key)}" for key, value in content.items() if not _is_table(value)]
    for key, value in content.items():
        if isinstance(value, Mapping):
            lines += _table(value, key)
        elif _is_table(value):
            for part in value:
                lines += _table(part, key, brackets=2)
    return "\n".join(lines).strip() + "\n"


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, list) and bool(value) and isinstance(value[0], Mapping))


def _table(values: Mapping[str, Any], name: str, brackets: int = 1) -> Iterator[str]:
    yield from ("", f"{'[' * brackets}{name}{']' * brackets}")
    deeper = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    yield from (f"{_key(key)} = {_toml(value, key)}" for key, value in values.items() if key not in deeper)
    for key, value in deeper.items():
        yield from _table(value, f"{name}.{_key(key)}")


def _toml(value: Any, key: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(item, key) for item in value)}]"
    if isinstance(value, str):
        if key in NUMBERS and re.fullmatch(r"-?(0|[1-9]\d{0,17})(\.\d{1,18})?", value):
            return value
        return _quoted(value)
    return str(value)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _quoted(key)


def _quoted(text: str) -> str:
    """JSON's text in quotes is TOML's, but for one character that TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
