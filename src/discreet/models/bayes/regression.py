"""The border between data and a posterior: a formula and a frame become a response and a design.

Formulas are those of `discreet.models.formula` without random terms. Functions that learn from all rows (center, scale,
poly, bs, ns, log_size, size_class) are refused: through them one row would touch every part, and the proof would
fail. The levels of categories are taken from the data and are public, so such columns must be declared; all others
are numbers, by their type or by declaration. Nothing else in a row can cause an error or a warning. A row with an entry
that is missing, infinite, beyond 1e100, or a logarithm that does not exist counts as a row of zeros and has no effect.
So X as it was read beside the responses tells which of them are missing: what needs X without noise takes a
`KnownDesign`, which is read without.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.data.frames import open_frame
from discreet.models.bayes.conjugate import HUGE
from discreet.models.bayes.doubts import Carried
from discreet.models.formula.design import Design, Layout, Levels
from discreet.models.formula.formula import Factor, Formula, Function, read_formula
from discreet.models.formula.roles import Roles
from discreet.models.formula.rows import ModelRows, encode, given_order, plan, refuse_decimals, refuse_empty, values_of
from discreet.privacy.columns import declared, refuse_undeclared, taken
from discreet.privacy.units import AnyRow, Rows, Unit
from discreet.words.cases import case_of
from discreet.words.errors import DataError, FormulaError, PrivacyError

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.frames import AnyFrame
    from discreet.release.account import Account

LEVEL = "<level>"
LEARNING: dict[Function, bool] = {
    **dict.fromkeys(("", "C", "log", "lag"), False),
    **dict.fromkeys(("center", "scale", "poly", "bs", "ns", "log_size", "size_class"), True),
}
PUBLISHED = "The levels of a category become names of coefficients, which are published."
_ANY_ROW = AnyRow()


@dataclass(frozen=True, slots=True)
class Known:
    """The public facts of a regression: the number of its rows and the levels of its public columns.

    Attributes
    ----------
    rows, names : how many rows there are, and the coefficients' names as R writes them.
    public, named : the public columns of the formula, and all of its columns, the response first.
    longest : bounds the sum of a row's absolute entries by the formula alone; there is no such bound with a column of
        numbers.
    frame : where the rows are. None of them was read.
    """

    rows: int
    names: tuple[str, ...]
    public: tuple[str, ...]
    named: tuple[str, ...]
    longest: int | None
    layout: Layout = field(repr=False)
    levels: Levels = field(repr=False)
    frame: AnyFrame = field(repr=False)

    def columns(self, coefficients: Sequence[str]) -> Integers:
        """The columns of X that carry these coefficients."""
        for name in coefficients:
            if name not in self.names:
                raise FormulaError(
                    f"Coefficient {name!r} is not in the model: the category has no such level, or it is the "
                    "first one, which the others are compared with.",
                    remedy="Name one of its other levels.",
                    about="coefficient",
                )
        return np.array([self.names.index(name) for name in coefficients], dtype=np.int64)

    @property
    def terms(self) -> tuple[list[bool], list[int]]:
        """For each term: whether it holds a column of numbers, and its number of columns of X."""
        pieces = self.layout.fixed
        return [bool(piece.monomial.atoms) for piece in pieces], [piece.width(self.levels) for piece in pieces]

    @property
    def explaining(self) -> tuple[str, ...]:
        """The columns that X is made of; the response too, where it stands on the right."""
        terms = self.layout.model.fixed
        return tuple(dict.fromkeys(factor.column for term in terms for factor in term))

    def read(self, frame: AnyFrame) -> Regression:
        """The rows; confidential."""
        rows, found = read_any(frame, self.layout, self.layout.model.columns)
        if (rows.count, found) != (self.rows, self.levels):
            raise DataError(
                f"The data have {rows.count:,} rows now and had {self.rows:,}, or other levels: they changed "
                "while they were read.",
                "A release is of one state of the data.",
                "Ask again when nobody writes them.",
                about="data",
            )
        with np.errstate(all="ignore"):
            y = rows.evaluate(self.layout.response).copy()
            X, usable = design_of(rows, self)
            usable &= np.abs(y) < HUGE
        X[~usable], y[~usable] = 0.0, 0.0
        return Regression(y, X, self.names, usable)

    def carried(self, columns: Integers, unit: Unit) -> Carried:
        """The number of rows that carry these coefficients: from the columns if all are public, otherwise assumed.

        Whole rows hide a row's columns beside their levels, so nothing is read if these are protected.
        """
        design = self.public_design(unit)
        return Carried.supposed(len(columns)) if design is None else Carried.of(design, columns)

    def public_design(self, unit: Unit) -> KnownDesign | None:
        """X, if the unit protects responses alone and all columns are public; else nothing is read."""
        return KnownDesign(self, unit) if isinstance(unit, Rows) and {*self.explaining} <= {*self.public} else None


@dataclass(frozen=True, slots=True, init=False)
class KnownDesign:
    """X of a regression that everybody may know, so that it needs no noise.

    It is read here, from public columns and without the response, and made of nothing else: no row of it is zero
    because of what a response is.
    """

    X: Matrix = field(repr=False)

    def __init__(self, known: Known, unit: Rows) -> None:
        named, response = known.explaining, known.layout.model.response.column
        if not isinstance(unit, Rows) or {*named} - {*known.public} or {*named} & {response, *unit.responses}:
            raise PrivacyError(
                f"The design of {known.layout.model.text!r} was asked for without noise.",
                "It is public where responses alone are protected and all other columns are declared public.",
                "Report this with its formula.",
                about="public",
            )
        X = np.ones((known.rows, 1))
        if named:
            rows, _ = read_any(known.frame, known.layout, named)
            with np.errstate(all="ignore"):
                X, usable = design_of(rows, known)
            X[~usable] = 0.0
        object.__setattr__(self, "X", X)


def design_of(rows: ModelRows, known: Known) -> tuple[Matrix, Mask]:
    """X, and which of its rows are numbers."""
    X, start = np.zeros((rows.count, len(known.names))), 0
    for piece in known.layout.fixed:
        at = piece.position(rows.codes, known.levels, rows.count)
        touched = np.flatnonzero(at >= 0)
        X[touched, start + at[touched]] = rows.evaluate(piece.monomial)[touched]
        start += piece.width(known.levels)
    usable = np.asarray((np.abs(X) < HUGE).all(axis=1))
    for code in rows.codes.values():
        usable &= code >= 0
    return X, usable


@dataclass(frozen=True, slots=True)
class Regression:
    """y = X beta + error, with the coefficients' names; confidential.

    Rows that cannot be used are zeros in X and y, and not `usable`: this tells about responses, and so does X.
    """

    y: Vector
    X: Matrix
    names: tuple[str, ...]
    usable: Mask


def public_facts(
    formula: str,
    data: Any,
    coefficients: Sequence[str] = (),
    *,
    public: Sequence[str] = (),
    numbers: Sequence[str] = (),
    account: Account | None = None,
) -> Known:
    """The public facts about the columns of `formula` in a frame, a mapping of columns or a file.

    `public` names the columns whose levels everybody may know; they alone are read. `numbers` are protected columns of
    numbers; a table without types needs them declared. `coefficients` are refused before
    that if no level of any category could give them. Columns that `account` has seen in another role are refused too.
    """
    model = fixed_formula(formula)
    unit = _ANY_ROW if account is None else account.unit
    known = declared_in(model, public, unit)
    if account is not None:
        account.compare(taken(unit, known, model.columns))
    roles = Roles(known, numbers)
    roles.refuse_unknown(model, data)
    frame = open_frame(data, readings=roles.readings(model), ordered=True)
    roles.refuse_types(model, frame.collect_schema())
    layout = plan(frame, model)
    refuse_undeclared(layout.coded, known, why=PUBLISHED)
    refuse_decimals(frame, layout)
    refuse_unknown(coefficients, layout)
    rows, levels = _levels(frame, layout)
    names = Design.of(layout, {}, levels).names
    measured = any(piece.monomial.atoms for piece in layout.fixed)
    longest = None if measured else len(layout.fixed)
    return Known(rows, names, known, model.columns, longest, layout, levels, frame)


def regression(formula: str, data: Any, *, public: Sequence[str] = (), numbers: Sequence[str] = ()) -> Regression:
    """The rows of a regression, at once."""
    known = public_facts(formula, data, public=public, numbers=numbers)
    return known.read(known.frame)


def declared_in(model: Formula, public: Sequence[str], unit: Unit) -> tuple[str, ...]:
    """The columns of a formula that are declared public; categories that the formula itself names must be."""
    known = declared(public, unit, model.response.column)
    named = [factor.column for term in model.fixed for factor in term if factor.function == "C"]
    refuse_undeclared(named, known, why=PUBLISHED)
    return tuple(column for column in model.columns if column in known)


def _levels(frame: AnyFrame, layout: Layout) -> tuple[int, dict[str, tuple[str, ...]]]:
    """The number of rows and the levels of the categories; no other column is read."""
    import narwhals.stable.v2 as nw

    if not layout.coded:
        count = _collected(frame, nw.len().alias("rows"), step="number of rows")["rows"][0].as_py()
        refuse_empty(count)
        return int(count), {}
    arrow = _collected(frame, *layout.coded, step="levels of public columns")
    refuse_empty(arrow.num_rows)
    return arrow.num_rows, {column: coded[1] for column, coded in _coded(frame, layout, arrow).items()}


def read_any(frame: AnyFrame, layout: Layout, columns: Sequence[str]) -> tuple[ModelRows, dict[str, tuple[str, ...]]]:
    """These columns and the levels of categories, whatever single rows hold: -1 for no level, nan, inf."""
    import pyarrow as pa

    arrow = _collected(frame, *columns, step="rows of the model")
    refuse_empty(arrow.num_rows)
    coded = _coded(frame, layout, arrow)
    values = {}
    for factor in (factor for factor in layout.numeric if factor.column in columns):
        raw = values_of(arrow[factor.column].cast(pa.float64(), safe=False).fill_null(np.nan))
        values[factor] = _apply(factor, np.asarray(raw, dtype=np.float64))[:, None]
    codes = {column: found[0] for column, found in coded.items()}
    return ModelRows(arrow.num_rows, codes, values), {column: found[1] for column, found in coded.items()}


def _collected(frame: AnyFrame, *columns: Any, step: str) -> pa.Table:
    import narwhals.stable.v2 as nw

    from discreet.data.frames import collect, working

    table = frame.select(*columns)
    with working(step):
        return collect(table, step=step) if isinstance(table, nw.LazyFrame) else table.to_arrow()


def _coded(frame: AnyFrame, layout: Layout, arrow: pa.Table) -> dict[str, tuple[Integers, tuple[str, ...]]]:
    """Codes, -1 where there is none, and levels of every category."""
    ordered, found = given_order(frame, layout.coded), {}
    for column in layout.coded:
        known = np.asarray(arrow[column].is_valid().to_numpy())
        codes = np.full(arrow.num_rows, -1, dtype=np.int64)
        if not known.any():
            raise DataError(
                f"Column {column!r} has no levels: all of it is missing.",
                remedy="Leave it out of the formula.",
                about="formula",
            )
        codes[known], levels = encode(arrow[column].drop_null(), column, given_order=column in ordered)
        found[column] = (codes, levels)
    return found


def refuse_unknown(coefficients: Sequence[str], layout: Layout) -> None:
    """Refuse names that the formula cannot make; speaks of the formula only, never of levels."""
    possible = [
        name
        for piece in layout.fixed
        for name in piece.names({column: (LEVEL,) * (1 + reduced) for column, reduced in piece.coded})
    ]
    pattern = re.compile("|".join(re.escape(name).replace(LEVEL, ".+") for name in possible) or "(?!)", re.DOTALL)
    for name in coefficients:
        if not (isinstance(name, str) and pattern.fullmatch(name)):
            raise FormulaError(
                f"Coefficient {name!r} is not in the model; it has: {', '.join(possible) or 'none'}.",
                remedy="Name one of these.",
                about="coefficient",
            )


def _apply(factor: Factor, x: Vector) -> Vector:
    with np.errstate(all="ignore"):
        return np.log(x) if case_of(factor.function, {"": False, "log": True}) else x


def fixed_formula(text: str) -> Formula:
    """Read a formula that has fixed terms only and nothing that learns from all rows."""
    if "|" in text:
        raise FormulaError(
            f"Formula {text!r} has a random term; posterior summaries by parts are for fixed effects.",
            remedy="Drop the (... | group) terms.",
            about="formula",
        )
    model = read_formula(text, needs_random=False)
    for factor in (model.response, *(factor for term in model.fixed for factor in term)):
        if case_of(factor.function, LEARNING):
            raise FormulaError(
                f"Formula {text!r} has {factor}, which is computed from all rows, so one row would touch every part.",
                "Columns, C, log and their interactions are possible.",
                "Transform the column with public constants first.",
                about="formula",
            )
    return model
