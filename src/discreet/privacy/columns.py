"""Which columns are public and which a release protects: they are declared by name, never derived from the data.

A design names the values of its columns: levels of a category are printed beside their estimates. So a column enters a
release as public only if it was declared. No column may be public for one release of a data set and protected by
another: each would reveal what the other hides.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from discreet.privacy.units import AnyRow, EstablishmentNodes, Establishments, Groups, Rows, Unit, Workers
from discreet.words.errors import PrivacyError
from discreet.words.faults import Argument, Phrase, Spelled, Subject
from discreet.words.voices import FORM, PLAN, Command, Symbol, Voice

HEAD = Spelled("public: ", plan="", command="", form="")
"""The parameter, where no key or field was named before."""


@dataclass(frozen=True, slots=True)
class _Declared(Phrase):
    """How to declare a column public; at the desk this is in its settings."""

    columns: tuple[str, ...]

    def said(self, voice: Voice) -> str:
        if isinstance(voice, Command):
            return f"Add {voice.key(('public',))} for each such column"
        if voice is FORM:
            return "Have it declared in desk.toml"
        said = Argument("public", list(self.columns), under="data").said(voice)
        return f"{'Write' if voice is PLAN else 'Declare it with'} {said}"


def declared(public: Sequence[str], unit: Unit, response: str = "") -> tuple[str, ...]:
    """The columns declared public, after none was found that `unit` protects; whole rows hide a formula's response."""
    if (
        isinstance(public, str)
        or not isinstance(public, Iterable)
        or not all(isinstance(column, str) for column in public)
    ):
        raise PrivacyError(
            (Subject(Argument("public", public)), " is not a list of columns."),
            "It names those that everybody may know.",
            "Give one even for a single column: ['county'].",
            about="public",
        )
    hidden = (response,) if isinstance(unit, AnyRow) else protected(unit)
    both = [column for column in public if column in hidden]
    if both:
        raise PrivacyError(
            (HEAD, f"{both[0]!r} is declared public, and one row's {both[0]!r} is protected."),
            "A column is one or the other.",
            "Take it off the list, or protect another column.",
            about="public",
        )
    return tuple(dict.fromkeys(public))


def refuse_undeclared(
    used: Collection[str], public: Collection[str], *, why: str, parts: Mapping[str, str] | None = None
) -> None:
    """Refuse a column that enters a release as public and was not declared so, whatever it holds.

    `parts` say what columns do that are not in the formula.
    """
    unknown = [column for column in dict.fromkeys(used) if column not in public]
    if unknown:
        part = (parts or {}).get(unknown[0])
        leave = "leave it out of the formula" if part is None else "leave it out"
        raise PrivacyError(
            (HEAD, f"{unknown[0]!r} {part or 'is in the formula'} and is not declared public."),
            why,
            (_Declared((*public, *unknown)), f" if everybody may know it, or {leave}."),
            about="public",
        )


def protected(unit: Unit) -> tuple[str, ...]:
    """The columns by name whose values the unit hides; other units than rows' responses name none."""
    match unit:
        case Rows() | Groups():
            return unit.responses
        case AnyRow() | Establishments() | Workers() | EstablishmentNodes():
            return ()
        case _:
            assert_never(unit)


def taken(unit: Unit, public: Sequence[str], columns: Sequence[str] = ()) -> dict[str, Any]:
    """The ledger's record of a release's columns, which later releases are compared with.

    `columns` are those of the formula, the response first: whole rows hide all of them that are not public.
    """
    kept = {"response": sorted(protected(unit)), "public": sorted(public)}
    if isinstance(unit, AnyRow):
        kept |= {"response": [*columns[:1]], "protected": sorted({*columns[1:]} - {*public, *columns[:1]})}
    return kept


def concerns_columns(details: Mapping[str, Any]) -> bool:
    """Whether a release declares something about columns that other releases of the data must agree with."""
    return bool(details.keys() & {"response", "public"} or _caps(details))


def _caps(details: Mapping[str, Any]) -> dict[str, int]:
    """The magnitudes of a release with their caps."""
    tables = [details, *details.get("tables", ())]
    return {table["of"]: table["cap"] for table in tables if isinstance(table, Mapping) and "cap" in table}


def _refuse_other_cap(asked: Mapping[str, Any], earlier: Mapping[str, Any], *, dataset: str, release: str) -> None:
    """Refuse a second cap of a magnitude: all releases together would hide changes up to the smaller one only."""
    before = _caps(earlier)
    for name, cap in _caps(asked).items():
        if before.get(name, cap) != cap:
            raise PrivacyError(
                f"The release of {dataset!r} caps {name} at {cap:,}, and {release!r} at {before[name]:,}.",
                "A magnitude has one cap in all releases of a data set: together they hide no more than the smallest.",
                "Declare the same cap.",
                about="magnitudes",
            )


def refuse_conflict(asked: Mapping[str, Any], earlier: Mapping[str, Any], *, dataset: str, release: str) -> None:
    """Refuse a release that takes as public what an earlier one of the same data protects, or the other way round."""
    _refuse_other_cap(asked, earlier, dataset=dataset, release=release)
    open_now, open_before = ({*each.get("public", ())} for each in (asked, earlier))
    hidden_now, hidden_before = ({*each.get("response", ()), *each.get("protected", ())} for each in (asked, earlier))
    for both, words in (
        (sorted(open_now & hidden_before), "takes {0!r} as public, which {1!r} protects"),
        (sorted(hidden_now & open_before), "protects {0!r}, which {1!r} takes as public"),
    ):
        if both:
            raise PrivacyError(
                f"The release of {dataset!r} {words.format(both[0], release)}.",
                "A column of one data set is public or protected in all of its releases: each would tell "
                "what the other hides.",
                (
                    "Leave the column out of the formula, or protect all such columns under one unit, as ",
                    Argument("response", Symbol("[...]")),
                    ".",
                ),
                about="public",
            )
