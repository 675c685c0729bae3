"""The request for a table, checked without data: `by`, `where`, the `split` among several, groups to shrink to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from discreet.data.codes import Codes, code
from discreet.data.schema import Schema
from discreet.privacy.units import BY_ESTABLISHMENTS, EstablishmentNodes, Establishments, Unit, Workers
from discreet.words.errors import DataError, PrivacyError
from discreet.words.faults import Argument, Key, Subject, Value


def spanned(schema: Schema, by: object) -> tuple[str, ...]:
    """The attributes in `by`, found to be attributes."""
    names = (by,) if isinstance(by, str) else tuple(by) if isinstance(by, Iterable) else (by,)
    if not all(isinstance(name, str) for name in names):
        raise DataError(
            f"Counts by {by!r:.80}: attributes are given by their names.",
            "One table has a name or a list of names, and no names for the total.",
            "Use for example count(by=['place', 'sector']), or for several tables marginals(['place', "
            "'sector'], ['place']).",
            about="by",
        )
    asked, known = cast("tuple[str, ...]", names), _known(schema)
    unknown = [name for name in asked if name not in known]
    if unknown or len(set(asked)) < len(asked):
        fault = f"{unknown[0]!r} is not an attribute" if unknown else f"{', '.join(asked)} repeats an attribute"
        raise DataError(
            f"Counts by {', '.join(asked) or 'no attribute'}: {fault}.",
            f"There are: {', '.join(known)}.",
            "Use those.",
            about="by",
        )
    return asked


def values_kept(schema: Schema, where: object) -> dict[str, Codes]:
    """The codes to keep of each attribute, each once, found possible before anything is priced."""
    if where is None:
        return {}
    if not isinstance(where, Mapping):
        raise DataError(
            (Argument("where", where), " does not say which values to keep."),
            "It gives them for each attribute.",
            ("Use for example ", Argument("where", {"sector": ["11", "23"]}), "."),
            about="where",
        )
    known = _known(schema)
    for name in where:
        if name not in known:
            raise DataError(
                f"where: {name!r} is not an attribute.",
                f"There are: {', '.join(known)}.",
                "Use those.",
                about=f"where.{name}",
            )
    return {name: _values(schema, name, kept) for name, kept in where.items()}


def _values(schema: Schema, name: str, kept: object) -> Codes:
    if not isinstance(kept, str | int | Sequence):
        raise DataError(
            (Subject(Key("where", name)), " is ", Value(kept), "."),
            "It lists the values to keep.",
            "Give one value or a list of them.",
            about=f"where.{name}",
        )
    listed = (kept,) if isinstance(kept, str | int) else tuple(kept)
    values = Codes.of({code(value): value for value in listed}.values())
    domain = schema.worker_attributes.get(name)
    if not values:
        raise DataError(
            (Subject(Key("where", name)), " lists no value, so it would drop everything."),
            remedy="List some, or leave it out.",
            about=f"where.{name}",
        )
    if domain is not None and not set(values) <= set(domain):
        raise DataError(
            (
                Subject(Key("where", name)),
                " asks for ",
                Value(values),
                ", but the public domain is ",
                Value(domain),
                ".",
            ),
            remedy="Use its values, or leave it out.",
            about=f"where.{name}",
        )
    return values


def refuse_shrinking(towards: Sequence[str], *, workplace_by: Sequence[str], worker_by: Sequence[str]) -> None:
    """Refuse to draw a table's shares of worker kinds towards groups that it does not have."""
    asked: Sequence[object] = list(towards) if isinstance(towards, Iterable) else [towards]
    unknown = [name for name in asked if name not in workplace_by]
    if unknown or not worker_by:
        fault = f"{unknown[0]!r} is not a workplace attribute of it" if unknown else "it has no worker attributes"
        raise DataError(
            f"The table by {', '.join([*workplace_by, *worker_by])} cannot be shrunk: {fault}.",
            f"Shapes are shares of worker kinds within groups of: {', '.join(workplace_by)}.",
            "Name some of those.",
            about="towards",
        )


def refuse_existence(unit: Unit, *, listed: bool) -> None:
    """Refuse numbers of establishments where the unit hides that one exists, or only jobs would tell."""
    if isinstance(unit, Establishments) or (isinstance(unit, Workers) and listed):
        return
    raise PrivacyError(
        f"Numbers of establishments cannot be published under {unit.key}: it hides that one exists.",
        "Where existence is public, they are.",
        ("Leave ", Key("establishments"), " out, or ", BY_ESTABLISHMENTS, "."),
        about="establishments",
    )


def unlisted(unit: Workers | EstablishmentNodes, by: Sequence[str], kept: Sequence[str]) -> DataError:
    """The refusal of cells and filters of workplace attributes whose values are known only from jobs."""
    asked = [f"by {', '.join(by)}"] * bool(by) + [f"where {', '.join(kept)} is kept"] * bool(kept)
    return DataError(
        f"Counts {' '.join(asked)} under {unit.key} need a public list of establishments: without "
        "it one job could make a value appear that no other has, and a refusal would reveal its absence.",
        remedy=("Give the list as workplaces, or ", BY_ESTABLISHMENTS, ", for which existence is public."),
        about="by",
    )


def _known(schema: Schema) -> tuple[str, ...]:
    return (*schema.workplace_attributes, *schema.worker_attributes)
