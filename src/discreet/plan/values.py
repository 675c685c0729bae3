"""The allowed single values of a plan: amounts, probabilities, names, paths, lists of attributes, filters."""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias
from unicodedata import category

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    StrictBool,
    StrictInt,
    Tag,
    WithJsonSchema,
)

from discreet.data.databases import Address, is_address
from discreet.data.scans import is_remote
from discreet.data.schema import Label
from discreet.ledger.book import named
from discreet.ledger.periods import Period
from discreet.models.linear.families import registry as families
from discreet.privacy.losses import exact, shown
from discreet.tables.mechanisms.nearest import MOST_EPSILON
from discreet.tables.mechanisms.registry import names
from discreet.words.errors import DataError, PlanError, PrivacyError
from discreet.words.names import unseen
from discreet.words.voices import written


def _amount(value: object) -> Fraction:
    try:
        return exact(value)  # type: ignore[arg-type]
    except PrivacyError:
        raise PlanError(
            f"{written(value)} is not an amount.",
            "An amount is a finite number, and exact.",
            "Write it as 0.5, '0.5' or '1/3'.",
        ) from None


def above_zero(example: str) -> AfterValidator:
    def check(amount: Fraction) -> Fraction:
        if amount <= 0:
            raise PlanError(
                f"{shown(amount)} buys and protects nothing.",
                "The amount must be above 0.",
                f"Use for example {example}.",
            )
        return amount

    return AfterValidator(check)


def _price(amount: Fraction) -> Fraction:
    if amount > MOST_EPSILON:
        raise PlanError(
            f"{shown(amount)} promises nothing.", f"At most {MOST_EPSILON:,} is taken.", "Use for example 1."
        )
    return amount


def _probability(amount: Fraction) -> Fraction:
    if not 0 < float(amount) < 1:
        raise PlanError(
            f"{shown(amount)} is not a probability.",
            "It lies between 0 and 1, and differs from both as a double.",
            "Use for example 0.95.",
        )
    return amount


def _label(value: object) -> Label:
    if isinstance(value, str | int):
        return value
    raise PlanError(
        f"{written(value)} is no category.", "Categories are text, whole numbers or true and false.", "Write one so."
    )


def _line(text: str) -> str:
    odd = unseen(text)
    if odd is not None:
        raise PlanError(
            f"{written(text)} holds the control character U+{ord(odd):04X}.",
            "Titles and labels are one line of text that readers can see.",
            "Leave it out.",
        )
    return text


def _path(text: str, *, addresses: bool = False) -> str:
    """A path that a file system can look up; addresses of servers are not paths."""
    odd = next((c for c in text if category(c) == "Cc"), None)
    if odd is not None:
        raise PlanError(
            f"{written(text)} holds the control character U+{ord(odd):04X}.",
            "Paths are text that can be seen.",
            "Leave it out.",
        )
    if addresses and "://" in text:
        return text
    longest = max(len(part.encode()) for part in text.partition("::")[0].split("/"))
    if longest > 255 or len(text.encode()) > LONGEST_PATH:
        raise PlanError(
            f"{written(text)} is longer than a path can be.",
            f"A path has at most {LONGEST_PATH:,} bytes, and each name in it 255.",
            "Name a file or folder by a shorter path.",
        )
    return text


def _place(text: str) -> str:
    """A path, or the address of a table on a server; an address may hold a secret and is not repeated."""
    if "://" not in text and not is_address(text):
        return _path(text)
    if is_remote(text) and not re.match(r"\w+://[^/]*:[^/]*@", text):
        return _path(text, addresses=True)
    try:
        Address.of(text)
    except DataError as error:
        raise PlanError(*error.faults) from None
    return _path(text, addresses=True)


LONGEST_PATH = 1024
"""Bytes of a path in a plan. Systems stop at 4,096 bytes or fewer, and the plan's own folder comes before it."""


def _folder_name(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", name):
        raise PlanError(
            f"{name!r} cannot name a release.",
            "The name is a folder and a line of the ledger: up to 64 of a-z, 0-9, '-' and '_', a "
            "letter or digit first.",
            "Use for example 'jobs-2026'.",
        )
    return name


def _source_name(name: str) -> str:
    if not re.fullmatch(r"([a-z0-9][a-z0-9_-]{0,63})?", name):  # none is for the only source of a plan
        raise PlanError(
            f"{name!r} cannot name a source.",
            "The name is up to 64 of a-z, 0-9, '-' and '_', a letter or digit first.",
            "Use for example 'jobs'.",
        )
    return name


def _period(text: str) -> str:
    try:
        return str(Period.of(text))
    except PrivacyError as error:
        raise PlanError(*(fault for fault in error.faults)) from None


def different(values: tuple[Any, ...]) -> tuple[Any, ...]:
    repeated = [value for value, times in Counter(values).items() if times > 1]
    twice = sorted(value if isinstance(value, str) else written(value) for value in repeated)
    if twice:
        raise PlanError(f"{twice[0]} is listed twice.", "Each is listed once.", "Leave one out.")
    return values


def _range(value: object) -> object:
    if isinstance(value, bool):
        raise PlanError(
            f"{written(value)} is no range.",
            "Responses are always pulled into lower and upper of [unit], and clip makes that tighter.",
            "Leave it out, or give two numbers inside: [0, 1].",
        )
    return value


def _mechanism(name: str) -> str:
    if name not in names():
        raise PlanError(
            f"mechanism {name!r} is unknown.",
            f"There are: {', '.join(names())}.",
            "Leave it out for the best.",
        )
    return name


def _family(name: str) -> str:
    if name not in FAMILIES:
        raise PlanError(
            f"family {name!r} is not released privately.",
            f"There are: {', '.join(FAMILIES)}.",
            "Use one of these, or leave it out for numbers.",
        )
    return name


FAMILIES = tuple(name for name in families.released() if not families.named(name).linear)
_ANY_NUMBER = {"anyOf": [{"type": "number"}, {"type": "string", "examples": ["0.5", "1/3"]}]}

Amount: TypeAlias = Annotated[Fraction, BeforeValidator(_amount), WithJsonSchema(_ANY_NUMBER)]
Positive: TypeAlias = Annotated[Amount, above_zero("1")]
Clip: TypeAlias = Annotated[tuple[Amount, Amount], BeforeValidator(_range)]
Share: TypeAlias = Annotated[Amount, above_zero("'1/2'")]
Price: TypeAlias = Annotated[Positive, AfterValidator(_price)]
Probability: TypeAlias = Annotated[Amount, AfterValidator(_probability)]
Category: TypeAlias = Annotated[
    Any, BeforeValidator(_label), WithJsonSchema({"type": ["string", "integer", "boolean"]})
]
Mechanism: TypeAlias = Annotated[
    str, BeforeValidator(_mechanism), WithJsonSchema({"type": "string", "enum": [*names()]})
]
FamilyName: TypeAlias = Annotated[
    str, BeforeValidator(_family), WithJsonSchema({"type": "string", "enum": [*FAMILIES]})
]
ReleaseName: TypeAlias = Annotated[str, AfterValidator(_folder_name)]
PeriodName: TypeAlias = Annotated[str, AfterValidator(_period)]
SourceName: TypeAlias = Annotated[str, AfterValidator(_source_name)]
Text: TypeAlias = Annotated[str, Field(min_length=1)]
Line: TypeAlias = Annotated[str, AfterValidator(_line)]
PathText: TypeAlias = Annotated[Text, AfterValidator(_path)]
DataPlace: TypeAlias = Annotated[Text, AfterValidator(_place)]
LedgerPlace: TypeAlias = Annotated[Text, AfterValidator(partial(_path, addresses=True))]
DataSetName: TypeAlias = Annotated[Text, AfterValidator(partial(named, role="dataset"))]
Attributes: TypeAlias = Annotated[tuple[Text, ...], AfterValidator(different)]
Responses: TypeAlias = Annotated[
    Annotated[tuple[Text, ...], Field(min_length=1), AfterValidator(different)],
    BeforeValidator(lambda value: (value,) if isinstance(value, str) else value),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]
OF_A_KIND = ("[word]", "[list]", "[truth]", "[number]")
"""Names that pydantic inserts for a value of two possible kinds; they are not keys of the plan."""


def of_two_kinds(kind: type, tag: str, other: str) -> Discriminator:
    """Faults of a value are those of its own kind: `tag` if it is a `kind`, else `other`."""
    return Discriminator(lambda value: tag if isinstance(value, kind) else other)


FinestOrTables: TypeAlias = Annotated[
    Annotated[Literal["finest"], Tag("[word]")]
    | Annotated[tuple[Attributes, ...], Field(min_length=1), AfterValidator(different), Tag("[list]")],
    of_two_kinds(str, "[word]", "[list]"),
]
TruthOrNumber: TypeAlias = Annotated[
    Annotated[StrictBool, Tag("[truth]")] | Annotated[StrictInt, Field(ge=1), Tag("[number]")],
    of_two_kinds(bool, "[truth]", "[number]"),
]
OneOrSeveral: TypeAlias = Annotated[
    Annotated[tuple[Category, ...], Field(min_length=1), AfterValidator(different)],
    BeforeValidator(lambda value: value if isinstance(value, list | tuple) else (value,)),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": ["string", "integer"]},
                {"type": "array", "items": {"type": ["string", "integer"]}, "minItems": 1},
            ]
        }
    ),
]
Where: TypeAlias = dict[str, Annotated[tuple[Category, ...], Field(min_length=1), AfterValidator(different)]]
