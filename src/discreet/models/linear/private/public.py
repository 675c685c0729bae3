"""The public facts of a mixed model: its design, its groups and their sizes. The response is never read here.

In the documents' setting X, Z and the number of rows are public and only the response is confidential. To keep that
promise by construction, the pass over the data runs on a frame whose response column was replaced by zeros.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.data.frames import missing
from discreet.models.formula.design import ONE, Codes, Design, Layout, Monomial, Piece
from discreet.models.formula.formula import Formula
from discreet.models.formula.rows import Learned, ModelRows, plan, read_rows, refuse_decimals, with_doubles
from discreet.models.linear.cells import CellSums
from discreet.models.linear.estimate import collect, origin_of, refuse_unidentifiable
from discreet.models.linear.gram import grouped_products, products
from discreet.models.linear.origin import Origin
from discreet.models.linear.private.noisy import Level
from discreet.models.linear.private.terms import TermDesign, is_nested, term_design
from discreet.models.linear.reml import independent
from discreet.words.errors import DataError, FitError, FormulaError, Unidentified, concerning

if TYPE_CHECKING:
    from discreet.data.frames import AnyFrame

INTERCEPT = (Piece(ONE),)
DEPENDENT = 1e-13  # smallest eigenvalue of the correlations of columns that are still told apart


@dataclass(frozen=True)
class PublicDesign:
    """The design of a model with nested random intercepts, with none, or with others.

    Attributes
    ----------
    terms : positions of the random terms in the formula, the finest first; `levels`, their runs of finest groups.
    order : finest groups in the order of `n` and `Sx`, as indices into the grouping's own order.
    kept : fixed columns that are not combinations of others.
    n, Sx, XX : rows per finest group, sums of the kept columns per group, their cross-products.
    others : random slopes and crossed factors: then there are no nested `terms`.
    """

    model: Formula
    design: Design
    learned: Learned
    cells: CellSums = field(repr=False, compare=False)
    rows: int
    in_memory: ModelRows | None = field(repr=False, compare=False)
    terms: tuple[int, ...]
    levels: tuple[Level, ...] = field(repr=False)
    order: Integers = field(repr=False)
    kept: Integers
    n: Vector = field(repr=False)
    Sx: Matrix = field(repr=False)
    XX: Matrix = field(repr=False)
    others: TermDesign | None = field(default=None, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.design.names[i] for i in self.origin.named)

    @property
    def dropped(self) -> tuple[str, ...]:
        return tuple(name for i, name in enumerate(self.design.names) if i not in set(self.origin.named.tolist()))

    @cached_property
    def origin(self) -> Origin:
        """From coefficients of centred columns to those of the columns as given."""
        return origin_of(self.cells, self.XX, self.design, self.kept)

    @cached_property
    def ones(self) -> Vector:
        """X'1 of the kept columns."""
        pieces = self.design.layout.fixed
        return np.asarray(products(self.cells, INTERCEPT, pieces, self.design.levels)[0, self.kept])

    @cached_property
    def constant(self) -> Vector:
        """The combination of the kept columns that is 1 in every row."""
        return np.asarray(np.linalg.solve(self.XX, self.ones))

    @property
    def parts(self) -> list[tuple[Piece, Integers, Integers]]:
        """Each piece of the fixed part, its kept columns as positions in the piece, and as positions among all kept."""
        found, start = [], 0
        for piece in self.design.layout.fixed:
            width = piece.width(self.design.levels)
            among = np.flatnonzero((self.kept >= start) & (self.kept < start + width))
            if len(among):
                found.append((piece, self.kept[among] - start, among))
            start += width
        return found

    @property
    def random_parts(self) -> list[tuple[int, int, Piece]]:
        """Each piece of random slopes and crossed factors whose sums are drawn: its term, its first column there."""
        found: list[tuple[int, int, Piece]] = []
        for i, random in enumerate(self.design.random if self.others else ()):
            start = 0
            for piece in random.pieces:
                if self.others and i not in self.others.parents:
                    found.append((i, start, piece))
                start += piece.width(self.design.levels)
        return found

    def group(self, codes: Codes) -> Integers:
        """The finest group of cells or rows with these codes, as a position in `n`."""
        grouping = self.design.random[self.terms[0]].grouping
        place = np.empty(len(grouping), dtype=np.int64)
        place[self.order] = np.arange(len(grouping))
        return place[grouping.codes(codes)]

    def in_own_order(self, position: int, values: Vector) -> Vector:
        """Values of a level's runs, in the order in which the grouping lists its levels."""
        grouping = self.design.random[self.terms[position]].grouping
        found = np.empty(len(values))
        found[grouping.codes(self.cells.codes)] = values[self._run(position)]
        return found

    def in_runs(self, position: int, values: Vector) -> Vector:
        """The inverse of `in_own_order`."""
        found = np.empty(len(values))
        found[self._run(position)] = values[self.design.random[self.terms[position]].grouping.codes(self.cells.codes)]
        return found

    def _run(self, position: int) -> Integers:
        """The run of a level that each cell belongs to."""
        return self.levels[position].index[self.group(self.cells.codes)]


@concerning("formula")
def public_design(frame: AnyFrame, model: Formula, *, any_terms: bool = False) -> PublicDesign:
    """Read the design of `model`, and nothing of its response.

    Random terms are nested intercepts, unless `any_terms` are allowed.
    """
    if model.response.function:
        raise FormulaError(
            f"The response {model.response} is a function of a confidential column.",
            "A private release needs the column itself, with bounds known without the data.",
            "Transform it beforehand and state the bounds of the result.",
        )
    inside = [*model.fixed, *(term for random in model.random for term in random.terms)]
    others = {factor.column for term in inside for factor in term}
    if model.response.column in others.union(*(random.group for random in model.random)):
        raise FormulaError(
            f"Column {model.response.column!r} is the response and stands on the right too.",
            "The response is protected; columns on the right are public.",
            "Leave it out on the right.",
        )
    schema = frame.collect_schema()
    if model.response.column not in schema:
        raise DataError(
            missing(model.response.column, schema.names(), name="the data", asked=model.columns, about="formula")
        )
    shown = hidden(frame, model)
    layout = plan(shown, model)
    refuse_decimals(shown, layout)
    shown = with_doubles(shown, measured(layout))
    cells, in_memory, design, learned = (collect if layout.coded else _rows_as_cells)(shown, model)
    refuse_unidentifiable(design, cells.rows)
    fixed = design.layout.fixed
    XX = products(cells, fixed, fixed, design.levels)
    kept = independent(XX)
    if not any(piece.monomial == ONE for piece in fixed):
        raise FormulaError(
            f"The fixed part of {model.text!r} has no constant.",
            "A private release measures the response from a private mean, so it needs an intercept or "
            "all levels of a factor.",
            "Add 1, or a factor.",
        )
    _refuse_dependent(XX[np.ix_(kept, kept)], cells.rows, model)
    slopes = None
    if any_terms and not is_nested(design.random, cells.codes):
        slopes = term_design(cells, design, kept)
    terms, levels, order = _nest(cells, design) if slopes is None else _no_nest()
    n, Sx = np.empty(0), np.empty((0, len(kept)))
    if terms:
        grouping = design.random[terms[0]].grouping
        code = grouping.codes(cells.codes)
        sums = grouped_products(cells, code, len(grouping), INTERCEPT, (*INTERCEPT, *fixed), design.levels)[order, 0]
        n, Sx = sums[:, 0], sums[:, 1:][:, kept]
    return PublicDesign(
        model=model,
        design=design,
        learned=learned,
        cells=cells,
        rows=cells.rows,
        in_memory=in_memory,
        terms=terms,
        levels=levels,
        order=order,
        kept=kept,
        n=n,
        Sx=Sx,
        XX=XX[np.ix_(kept, kept)],
        others=slopes,
    )


def hidden(frame: AnyFrame, model: Formula) -> AnyFrame:
    """The frame with zeros for the response."""
    import narwhals.stable.v2 as nw

    return frame.with_columns(nw.lit(0.0).alias(model.response.column))


def _refuse_dependent(XX: Matrix, rows: int, model: Formula) -> None:
    """Refuse columns that are independent one by one and dependent to a double's precision together."""
    unit = np.sqrt(np.diag(XX))
    if len(XX) >= rows or np.linalg.eigvalsh(XX / np.outer(unit, unit))[0] < DEPENDENT:
        raise Unidentified(
            f"{model.text!r} has {len(XX)} fixed columns on {rows:,} rows, which are too many or too "
            "nearly dependent to be estimated.",
            remedy="Use fewer columns: a lower degree, fewer levels, no interactions.",
            about="formula",
        )


def _rows_as_cells(frame: AnyFrame, model: Formula) -> tuple[CellSums, ModelRows, Design, Learned]:
    """A linear model of numeric columns only has no levels to count by: each row is its own cell."""
    layout = plan(frame, model)
    rows, learned = read_rows(frame, layout)
    layout = layout.centred(learned.means, learned.distant)
    cells = CellSums.of_rows(rows)
    return cells, rows, Design.of(layout, cells.codes, learned.levels), learned


def _no_nest() -> tuple[tuple[int, ...], tuple[Level, ...], Integers]:
    return (), (), np.empty(0, dtype=np.int64)


def _nest(cells: CellSums, design: Design) -> tuple[tuple[int, ...], tuple[Level, ...], Integers]:
    """Random terms from fine to coarse, with the finest groups put in an order in which every level is runs."""
    if not design.random:
        return _no_nest()
    for random in design.random:
        if random.pieces != INTERCEPT:
            raise FormulaError(
                f"Term {random.term} has a slope.",
                "Without lags, method='moments' knows it; other private models have random intercepts such "
                f"as (1 | {random.term.name}), nested if there are several.",
                "Drop the slope.",
            )
    terms = sorted(range(len(design.random)), key=lambda i: -len(design.random[i].grouping))
    codes = [design.random[i].grouping.codes(cells.codes) for i in terms]
    finest = len(design.random[terms[0]].grouping)
    parents = []
    for i, fine, coarse in zip(terms, codes, codes[1:], strict=False):
        parent = np.full(len(design.random[i].grouping), -1)
        parent[fine] = coarse
        if not np.array_equal(parent[fine], coarse):
            names = " and ".join(repr(random.term.name) for random in design.random)
            raise FitError(
                f"Grouping factors {names} are crossed.",
                "Without lags, method='moments' knows them; other private models have nested ones, such as "
                "(1 | state/county).",
                "Keep one term, or nest them.",
                about="formula",
            )
        parents.append(parent)
    labels = [np.arange(finest)]
    for parent in parents:
        labels.append(parent[labels[-1]])
    order = np.lexsort(labels)
    return tuple(terms), tuple(Level.of(label[order]) for label in labels), order


def measured(layout: Layout) -> tuple[str, ...]:
    """The columns that enter as numbers alone, never by their levels; the response left out."""
    columns = dict.fromkeys(factor.column for factor in layout.numeric)
    return tuple(c for c in columns if c not in layout.coded and c != layout.model.response.column)


def monomials(design: Design) -> tuple[Monomial, ...]:
    """The numeric parts of the columns, the constant left out."""
    pieces = [*design.layout.fixed, *(piece for random in design.random for piece in random.pieces)]
    return tuple(dict.fromkeys(p.monomial for p in pieces if p.monomial.atoms))
