"""What each column of a formula is to a release: the protected response, a public column, or protected numbers.

The type of a column that has one is public and says whether it holds numbers. A CSV file has no types, and a list of
Python objects has those of its entries: there only a declaration says it, or the rows would. A column of neither kind
has no role. It is refused before anything is read, in the same words whatever it holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.data.scans import is_csv
from discreet.models.formula.formula import Formula
from discreet.words.errors import PrivacyError
from discreet.words.faults import Argument, Phrase
from discreet.words.voices import FORM, PLAN, Voice

if TYPE_CHECKING:
    from discreet.data.delimited import Reading

UNTYPED = "A CSV file and Python objects have no type that says what a column holds, and its rows must not."


@dataclass(frozen=True, slots=True)
class _AsNumbers(Phrase):
    """How to declare protected numbers; at the desk this is in its settings."""

    columns: tuple[str, ...]

    def said(self, voice: Voice) -> str:
        if voice is FORM:
            return "Have it declared under numbers in desk.toml"
        said = Argument("numbers", list(self.columns), under="data").said(voice)
        return f"Write {said} (`discreet plan declare` does)" if voice is PLAN else f"Declare it with {said}"


@dataclass(frozen=True, slots=True)
class Roles:
    """The columns that a caller declares beside the response.

    Attributes
    ----------
    public : everybody may know these of every row.
    numbers : protected columns of numbers. An entry that is no number makes its row count as nothing.
    """

    public: Sequence[str] = ()
    numbers: Sequence[str] = ()

    def readings(self, model: Formula) -> dict[str, Reading]:
        """How columns without types are read: what is protected as numbers, whatever its rows hold."""
        return {column: "response" for column in model.columns if column not in self.public}

    def refuse_unknown(self, model: Formula, data: Any) -> None:
        """Refuse columns whose meaning only rows would tell; names and types alone decide."""
        self._refuse_two_roles(model.response.column)
        unknown = [c for c in without_types(data, model.columns[1:]) if c not in (*self.public, *self.numbers)]
        if unknown:
            one = unknown[0]
            raise PrivacyError(
                f"{one!r} is in the formula and has no role.",
                UNTYPED,
                (_AsNumbers((*self.numbers, *unknown)), " if it holds numbers, or declare it public if it is."),
                about="numbers",
            )

    def refuse_types(self, model: Formula, types: Mapping[str, Any]) -> None:
        """Refuse declared numbers of a type that holds others."""
        for column in model.columns:
            if column in self.numbers and column in types and not types[column].is_numeric():
                raise PrivacyError(
                    (Argument("numbers", list(self.numbers)), f" has {column!r}, which is {types[column]}."),
                    "A protected column of a formula holds numbers.",
                    "Write it as numbers at the source, or declare it public if everybody may know it.",
                    about="numbers",
                )

    def _refuse_two_roles(self, response: str) -> None:
        given = self.numbers
        if isinstance(given, str) or not all(isinstance(column, str) for column in given):
            raise PrivacyError(
                (Argument("numbers", given), " is not a list of columns."),
                "It names protected columns of numbers.",
                "Give one even for a single column: ['age'].",
                about="numbers",
            )
        both = [column for column in given if column in (response, *self.public)]
        if both:
            other = "the response" if both[0] == response else "declared public"
            raise PrivacyError(
                (Argument("numbers", list(given)), f" has {both[0]!r}, which is {other}."),
                "A column has one role.",
                "Take it off one of the lists.",
                about="numbers",
            )


def without_types(data: Any, columns: Iterable[str]) -> list[str]:
    """Those of `columns` that have no type but by their rows: of CSV files, of lists, of Python objects in pandas."""
    if is_csv(data):
        return [*columns]
    import narwhals.stable.v2 as nw

    table = nw.to_native(data, pass_through=True)
    if not (isinstance(table, Mapping) or nw.dependencies.is_pandas_dataframe(table)):
        return []
    return [column for column in columns if column in table and not _typed(table[column])]


def _typed(column: Any) -> bool:
    """Whether a column of a mapping or of pandas has one type for all of its entries."""
    kind = getattr(column, "dtype", getattr(column, "type", None))
    return kind is not None and str(kind) != "object"
