"""The design of a mixed model: which numbers multiply which coefficients.

R's coding rules live here: treatment contrasts (others by `origin`), dummy coding where a margin is missing, names.
A `Piece` is a run of design columns that share one numeric part; a row of the data touches at most one of
them. So a design of 21 columns or of 3,000 is a handful of pieces, products are computed by counting, and no
dense matrix of all rows is ever built. No data are read here; `rows` and `cells` do that.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.models.formula.contrasts import recodes
from discreet.models.formula.formula import ONE_COLUMN, Factor, Formula, Function, RandomTerm, Term
from discreet.words.cases import case_of
from discreet.words.errors import FormulaError

Levels = Mapping[str, tuple[str, ...]]
Codes = Mapping[str, Integers]
DATE = re.compile(
    r"(?:\d{4}([-/.])\d\d?\1\d\d?|\d\d?([-/.])(?:\d\d?|[^\W\d]{3,9})\2\d\d(?:\d\d)?)(?:[ T]|$)"
)  # a day, perhaps with a time


@dataclass(frozen=True, slots=True)
class Monomial:
    """A product of numeric factors, each a `(factor, basis column)`.

    `shifts` are the origins from which the factors are measured, none where all are zero. `less` are multiples of other
    monomials that are subtracted from the product, so that the column is not nearly collinear with them.
    """

    atoms: tuple[tuple[Factor, int], ...] = ()
    shifts: tuple[float, ...] = ()
    less: tuple[tuple[float, Monomial], ...] = ()

    @property
    def shift(self) -> float:
        """The origin of a single factor."""
        return self.shifts[0] if self.shifts else 0.0


ONE = Monomial()


@dataclass(frozen=True, slots=True)
class Piece:
    """Columns `monomial x indicator`, one for each combination of levels of the `coded` columns.

    `coded` holds pairs (column, reduced): reduced coding leaves out the first level. `term` is where it comes from.
    """

    monomial: Monomial
    coded: tuple[tuple[str, bool], ...] = ()
    term: Term = ()

    def width(self, levels: Levels) -> int:
        return int(np.prod([len(levels[column]) - reduced for column, reduced in self.coded], dtype=np.int64))

    @property
    def adds_up_to_one(self) -> bool:
        """Whether the columns together are 1 in every row."""
        return not self.monomial.atoms and not any(reduced for _, reduced in self.coded)

    def factor(self, column: str) -> Factor:
        """The factor of the term that a coded column stands for."""
        numeric = dict(self.monomial.atoms)
        return next(factor for factor in self.term if factor.column == column and factor not in numeric)

    @property
    def recoded(self) -> bool:
        """Whether coefficients have other contrasts than the columns, which are indicators of levels."""
        return any(reduced and recodes(self.factor(column).contrast) for column, reduced in self.coded)

    def position(self, codes: Codes, levels: Levels, count: int) -> Integers:
        """The column each row touches, the first factor varying fastest; -1 where it touches none."""
        at = np.zeros(count, dtype=np.int64)
        touches = np.ones(count, dtype=bool)
        stride = 1
        for column, reduced in self.coded:
            code = codes[column]
            touches &= code >= reduced
            at += stride * (code - int(reduced))
            stride *= len(levels[column]) - reduced
        at[~touches] = -1
        return at

    def names(self, levels: Levels) -> list[str]:
        """R's names: the parts of the term in its own order, joined by colons."""
        coded = dict(self.coded)
        parts = []
        for factor in self.term:
            if factor in (atoms := dict(self.monomial.atoms)):
                parts.append([_atom_name(factor, atoms[factor])])
            else:
                own, reduced = levels[factor.column], coded[factor.column]
                numbered = reduced and recodes(factor.contrast)
                parts.append([f"{factor}{k if numbered else own[k]}" for k in range(int(reduced), len(own))])
        return [":".join(reversed(picked)) or "(Intercept)" for picked in product(*reversed(parts))]


def _atom_name(factor: Factor, part: int) -> str:
    several: dict[Function, bool] = {"poly": True, "bs": True, "ns": basis_size(factor) > 1}
    return (
        f"{factor}{part + 1}" if case_of(factor.function, dict.fromkeys(ONE_COLUMN, False) | several) else str(factor)
    )


@dataclass(frozen=True)
class Layout:
    """A formula laid out in pieces; made from the formula and the kinds of its columns, before levels are known."""

    model: Formula
    fixed: tuple[Piece, ...]
    random: tuple[tuple[Piece, ...], ...]
    response: Monomial

    @cached_property
    def coded(self) -> tuple[str, ...]:
        """Columns whose levels are counted: grouping factors and categorical fixed effects."""
        pieces = [*self.fixed, *(piece for pieces in self.random for piece in pieces)]
        groups = [column for term in self.model.random for column in term.group]
        return tuple(dict.fromkeys([*groups, *(column for piece in pieces for column, _ in piece.coded)]))

    @property
    def bare(self) -> tuple[str, ...]:
        """Coded columns that stand in a term by their bare name."""
        pieces = [*self.fixed, *(piece for pieces in self.random for piece in pieces)]
        return tuple({column: 0 for p in pieces for column, _ in p.coded if not p.factor(column).function})

    @cached_property
    def monomials(self) -> tuple[Monomial, ...]:
        pieces = [*self.fixed, *(piece for pieces in self.random for piece in pieces)]
        return tuple(dict.fromkeys([ONE, *(piece.monomial for piece in pieces), self.response]))

    @cached_property
    def numeric(self) -> tuple[Factor, ...]:
        return tuple(dict.fromkeys(factor for monomial in self.monomials for factor, _ in monomial.atoms))

    def centred(self, means: Mapping[Factor, Vector], distant: Collection[Factor]) -> Layout:
        """The same column spaces with numbers near zero, so that sums of squares do not lose digits.

        Products and random slopes are centred in `distant` factors, whose values lie far from zero: elsewhere there is
        nothing to gain, and one far value would move all others. `origin` undoes it.
        """
        fixed, random = self.model.fixed, zip(self.random, self.model.random, strict=True)
        response = _centred((Piece(self.response, term=(self.model.response,)),), (), means, (), self.spans_constant)
        return Layout(
            self.model,
            _centred(self.fixed, fixed, means, distant, self.spans_constant),
            tuple(_centred(pieces, term.terms, means, distant, False) for pieces, term in random),
            response[0].monomial,
        )

    @property
    def spans_constant(self) -> bool:
        """Whether a combination of the fixed columns is the same in every row."""
        return _span_constant(self.fixed)


def _span_constant(pieces: tuple[Piece, ...]) -> bool:
    return any(piece.adds_up_to_one for piece in pieces)


def _centred(
    pieces: tuple[Piece, ...],
    terms: tuple[Term, ...],
    means: Mapping[Factor, Vector],
    distant: Collection[Factor],
    alone: bool,
) -> tuple[Piece, ...]:
    """The pieces with factors measured from their means where the span allows it.

    These are distant factors whose terms have all their margins and, if `alone`, every factor that is a term itself.
    """
    present = {frozenset(term) for term in terms} | ({frozenset[Factor]()} if _span_constant(pieces) else set())
    movable = {f for f in distant if all(frozenset(t) - {f} in present for t in terms if f in t)}
    for piece in pieces:  # R also leaves a level out where the margin is only a part of another term
        if any(frozenset(piece.term) - {piece.factor(c)} not in present for c, reduced in piece.coded if reduced):
            movable = set()

    def moved(piece: Piece) -> Piece:
        atoms = piece.monomial.atoms
        single = alone and len(piece.term) == 1
        shifts = tuple(float(means[f][part]) if single or f in movable else 0.0 for f, part in atoms)
        return replace(piece, monomial=Monomial(atoms, shifts if any(shifts) else ()))

    return tuple(moved(piece) for piece in pieces)


def lay_out(model: Formula, categorical: Iterable[str]) -> Layout:
    """Lay out a formula, given which of its columns hold categories (`C(...)` adds to them)."""
    kinds = frozenset(categorical)
    fixed = _pieces(model.fixed, kinds)
    random = tuple(_pieces(term.terms, kinds) for term in model.random)
    return Layout(model, fixed, random, Monomial(((model.response, 0),)))


def _pieces(terms: tuple[Term, ...], kinds: frozenset[str]) -> tuple[Piece, ...]:
    pieces = []
    first = () not in terms  # R: without an intercept, the first factor has a column for every level
    for at, term in enumerate(terms):
        coded, bases = [], []
        for factor in term:
            if factor.coded(kinds):
                # R: contrasts where an earlier term holds all the others of this one, else one column per level.
                margin = frozenset(term) - {factor}
                reduced = not margin or any(margin <= frozenset(earlier) for earlier in terms[:at])
                coded.append((factor.column, reduced and not first))
                first = False
            else:
                bases.append([(factor, part) for part in range(basis_size(factor))])
        # R: the first factor varies first.
        pieces += [Piece(Monomial(atoms[::-1]), tuple(coded), term) for atoms in product(*reversed(bases))]
    return tuple(pieces)


def basis_size(factor: Factor) -> int:
    """How many columns a numeric factor spreads into."""
    arguments = dict(factor.arguments)
    sizes: dict[Function, float] = {
        "poly": arguments.get("degree", arguments.get("", 1)),
        "bs": arguments.get("df", arguments.get("degree", 3)),
        "ns": arguments.get("df", 1),
    }
    return int(case_of(factor.function, dict.fromkeys(ONE_COLUMN, 1.0) | sizes))


@dataclass(frozen=True)
class Grouping:
    """The levels of a grouping factor, perhaps crossed from several columns; only observed combinations count."""

    columns: tuple[str, ...]
    ids: Integers
    sizes: tuple[int, ...]
    levels: Levels

    @classmethod
    def of(cls, columns: tuple[str, ...], codes: Codes, levels: Levels) -> Grouping:
        sizes = tuple(len(levels[column]) for column in columns)
        ids = np.arange(sizes[0]) if len(columns) == 1 else np.unique(_mixed_radix(columns, codes, sizes))
        return cls(columns, ids, sizes, levels)

    def codes(self, codes: Codes) -> Integers:
        """The level of each row, -1 where the combination was never seen."""
        if len(self.columns) == 1:
            return codes[self.columns[0]]
        wanted = _mixed_radix(self.columns, codes, self.sizes)
        at = np.minimum(np.searchsorted(self.ids, wanted), len(self.ids) - 1)
        unseen = (self.ids[at] != wanted) | np.any([codes[column] < 0 for column in self.columns], axis=0)
        return np.where(unseen, -1, at)

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        if len(self.columns) == 1:
            return self.levels[self.columns[0]]
        parts = np.unravel_index(self.ids, self.sizes)
        names = [[self.levels[column][code] for code in part] for column, part in zip(self.columns, parts, strict=True)]
        return tuple(":".join(label) for label in zip(*names, strict=True))


def _mixed_radix(columns: tuple[str, ...], codes: Codes, sizes: tuple[int, ...]) -> Integers:
    at = np.zeros(len(codes[columns[0]]), dtype=np.int64)
    for column, size in zip(columns, sizes, strict=True):
        at = at * size + codes[column]
    return at


@dataclass(frozen=True)
class RandomDesign:
    """One random term laid out: the columns inside the bar and the levels behind it."""

    term: RandomTerm
    pieces: tuple[Piece, ...]
    grouping: Grouping
    names: tuple[str, ...]

    @property
    def effects(self) -> int:
        return len(self.grouping) * len(self.names)


@dataclass(frozen=True)
class Design:
    """A layout whose levels are known: everything needed to place any row, old or new."""

    layout: Layout
    levels: Levels
    names: tuple[str, ...]
    random: tuple[RandomDesign, ...]

    @classmethod
    def of(cls, layout: Layout, codes: Codes, levels: Levels) -> Design:
        random = tuple(
            RandomDesign(term, pieces, Grouping.of(term.group, codes, levels), _names(pieces, levels))
            for term, pieces in zip(layout.model.random, layout.random, strict=True)
        )
        return cls(layout, levels, _told_apart(_names(layout.fixed, levels)), random)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on factors of the fixed part that have one level, which R refuses to code, or levels that are dates."""
        coded = {column: None for piece in self.layout.fixed for column, _ in piece.coded}
        constant = [
            f"factor {column} has one level, so it has no coefficient of its own"
            for column in coded
            if len(self.levels[column]) == 1
        ]
        dated = [
            f"the {len(self.levels[column]):,} levels of {column} are dates, each with a coefficient of its own. Make "
            f"a number of it, such as days since a date, or write C({column})"
            for column in coded
            if column in self.layout.bare and len(self.levels[column]) > 2
            if all(DATE.match(str(level)) for level in self.levels[column])
        ]
        return (*constant, *dated)


def _told_apart(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of coefficients, by which a fit is asked for them: each is one's alone."""
    if len(set(names)) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise FormulaError(
            f"Two coefficients of the model would be called {twice!r}.",
            "A column is named otherwise than the intercept, and than another column with one of its levels.",
            "Rename the column.",
        )
    return names


def _names(pieces: tuple[Piece, ...], levels: Levels) -> tuple[str, ...]:
    return tuple(name for piece in pieces for name in piece.names(levels))
