"""`mixed`, the door to linear mixed models: read the formula, pass over the data once, minimise, wrap."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers, Matrix
from discreet.errors import FitError, Unidentified
from discreet.mixed.cells import Cells, cells_in_engine, cells_of, runs_in_engine
from discreet.mixed.design import ONE, Design, Piece
from discreet.mixed.fit import Method, MixedFit, MixedWarning, Origin, RandomEffects
from discreet.mixed.formula import Model, read_formula
from discreet.mixed.gram import gram_of, moments_of, products
from discreet.mixed.moments import Moments
from discreet.mixed.reml import independent
from discreet.mixed.rows import Learned, Rows, open_frame, plan, read_rows
from discreet.mixed.solution import Solution, solve
from discreet.mixed.sparse import Gram

if TYPE_CHECKING:
    from discreet.mixed.rows import Frame


def mixed(formula: str, data: Any, *, method: Method = "REML") -> MixedFit:
    """Fit a linear mixed model by REML or maximum likelihood, in lme4's syntax and with lme4's numbers.

    `data` is a pandas, Polars, PyArrow, DuckDB or Spark frame, a mapping of columns, or the path of a CSV or
    Parquet file. Files and lazy frames are read once, by their engine, and only sums come back.

    >>> fit = mixed("y ~ x + (1 | g)", {"y": [1, 2, 4, 3, 5, 7], "x": [0, 1, 2, 0, 1, 2], "g": list("aaabbb")})
    >>> round(fit.fixed["x"], 6)
    1.75
    """
    if method not in ("REML", "ML"):
        raise ValueError(f"method={method!r} is not known; use 'REML' or 'ML'.")
    model = read_formula(formula)
    frame = open_frame(data)
    cells, rows, design, learned = collect(frame, model)
    refuse_unidentifiable(design, cells.rows)
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        statistics: Moments | Gram = moments_of(cells, design) if is_one_intercept(design) else gram_of(cells, design)
    if not np.isfinite(statistics.joint).all():
        raise FitError("Squares of a column are too large for a double. Give it in a larger unit, such as millions.")
    XX = statistics.joint[:-1, :-1]
    kept = independent(XX)
    _refuse_saturated(cells.rows, len(kept), statistics)
    statistics = statistics.keep(kept)
    reml = method == "REML"
    solution = solve(statistics, reml=reml)
    origin = origin_of(cells, XX[np.ix_(kept, kept)], design, kept)
    dropped = tuple(name for index, name in enumerate(design.names) if index not in set(kept.tolist()))
    fit = MixedFit(
        formula=formula,
        method=method,
        names=tuple(design.names[index] for index in kept),
        beta=origin.beta(solution.beta),
        covariance=solution.sigma2 * origin.restore @ solution.unscaled @ origin.restore.T,
        dropped=dropped,
        random=tuple(
            RandomEffects(t.term.name, t.names, t.grouping.labels, solution.sigma2 * T @ T.T, u)
            for t, T, u in zip(design.random, solution.triangles, solution.effects, strict=True)
        ),
        sigma2=solution.sigma2,
        criterion=solution.criterion + (origin.logdet if reml else 0.0),
        rows=cells.rows,
        notes=_notes(solution, dropped, design.constant_factors),
        statistics=statistics,
        solution=solution,
        design=design,
        cells=cells,
        origin=origin,
        kept=kept,
        learned=learned,
        frame=frame,
        in_memory=rows,
    )
    for note in fit.notes:
        warnings.warn(note, MixedWarning, stacklevel=2)
    return fit


def collect(frame: Frame, model: Model) -> tuple[Cells, Rows | None, Design, Learned]:
    """One pass over the data: cells, the design they define, and the rows if they came into memory."""
    import narwhals.stable.v2 as nw

    layout, rows = plan(frame, model), None
    if isinstance(frame, nw.LazyFrame) and runs_in_engine(layout):
        cells, layout, learned = cells_in_engine(frame, layout)
    else:
        rows, learned = read_rows(frame, layout)
        layout = layout.centred(learned.means)
        cells = cells_of(rows, layout, learned.levels)
    return cells, rows, Design.of(layout, cells.codes, learned.levels), learned


def is_one_intercept(design: Design) -> bool:
    """Whether the only random term is an intercept, so that moments say everything."""
    return len(design.random) == 1 and design.random[0].pieces == (Piece(ONE),)


def refuse_unidentifiable(design: Design, rows: int) -> None:
    """lme4's checks of every random term, before anything is computed."""
    for random in design.random:
        levels, name = len(random.grouping), random.term.name
        if levels < 2:
            raise Unidentified(
                f"Grouping factor {name!r} has one level; {random.term} needs at least two. Drop the term."
            )
        if random.effects >= rows:
            raise Unidentified(
                f"Term {random.term} has {random.effects:,} effects but there are only {rows:,} rows, so its variance "
                "and the residual's cannot be told apart. Drop a slope, or group rows more coarsely."
            )


def _refuse_saturated(rows: int, columns: int, statistics: Moments | Gram) -> None:
    if rows <= columns:
        raise FitError(f"The model has {columns} fixed effects but only {rows} rows. Use fewer, or collect more rows.")
    squares = statistics.yy if isinstance(statistics, Moments) else statistics.joint[-1, -1]
    if not np.isfinite(squares):
        raise FitError(
            "Squares of the response are too large for a double. Give it in a larger unit, such as millions."
        )
    if squares <= 0:
        raise FitError("The response is constant, so there is no variance to divide. Check the response column.")


def origin_of(cells: Cells, XX: Matrix, design: Design, kept: Integers) -> Origin:
    """Undo centring: with X a = 1 for the centred columns, the original ones are X (I + a s')."""
    shift, moved = design.shift[kept], design.layout.response.shift
    if not shift.any() and not moved:
        return Origin(np.eye(len(kept)), np.zeros(len(kept)), 0.0)
    a = np.linalg.solve(XX, products(cells, (Piece(ONE),), design.layout.fixed, design.levels)[0, kept])
    stretch = 1 + shift @ a
    restore = np.eye(len(kept)) - np.outer(a, shift) / stretch
    return Origin(restore, restore @ a * moved, float(2 * np.log(abs(stretch))))


def _notes(solution: Solution, dropped: tuple[str, ...], constant: tuple[str, ...]) -> tuple[str, ...]:
    notes = [f"factor {name} has one level and tells nothing, so it has no coefficient of its own" for name in constant]
    if dropped:
        count = f"{len(dropped)} column{'s' * (len(dropped) > 1)}"
        notes.append(f"fixed-effect model matrix is rank deficient, so {count} dropped: {', '.join(dropped)}")
    if solution.is_singular:
        notes.append("boundary (singular) fit: a variance is zero or a correlation is one")
    return tuple(notes)
