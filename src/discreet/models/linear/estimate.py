"""`mixed`, the door to linear mixed models: read the formula, pass over the data once, minimise, wrap."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.models.formula.contrasts import Contrasts
from discreet.models.formula.design import ONE, Design, Piece
from discreet.models.formula.formula import Formula
from discreet.models.formula.memory import refuse_matrices
from discreet.models.formula.rows import Learned, ModelRows, number_column, plan, read_rows
from discreet.models.formula.source import Missing, opened
from discreet.models.linear.cells import CellSums, cells_again, cells_in_engine, cells_of, runs_in_engine
from discreet.models.linear.effects import RandomEffects
from discreet.models.linear.fit import Method, MixedFit, MixedWarning, log_total
from discreet.models.linear.gram import gram_of, moments_of, products
from discreet.models.linear.moments import Moments
from discreet.models.linear.offsets import read_offset, subtracted
from discreet.models.linear.origin import Origin, origin
from discreet.models.linear.pencil import combined, solve_parts
from discreet.models.linear.reml import independent
from discreet.models.linear.residuals import Fitted, ResidualLaw, Strata, read_series, read_strata
from discreet.models.linear.scales import refuse_scales, refuse_vanished
from discreet.models.linear.solution import Solution, solve
from discreet.models.linear.sparse import Gram
from discreet.words.errors import DataError, FitError, Unidentified
from discreet.words.faults import Argument
from discreet.words.progress import Progress, part, silent

if TYPE_CHECKING:
    from discreet.data.frames import AnyFrame

R_TOLERANCE = 1e-7  # R drops a column whose norm falls below this share when earlier ones are taken out
DOUBT = 1e-3  # of the criterion: what rounding may do before a note says so
NEARLY = 1e-8  # of a column's sum of squares: what is left then has half its digits
SURELY = 1e-6  # of it: more than rounding makes of less than that


def mixed(
    formula: str,
    data: Any,
    *,
    method: Method = "REML",
    missing: Missing = "error",
    weights: str | None = None,
    offset: str | None = None,
    contrasts: Contrasts | None = None,
    residual_by: str | None = None,
    series: str | Sequence[str] | None = None,
    time: str | None = None,
    progress: Progress = silent,
) -> MixedFit:
    """Fit a linear mixed model by REML or maximum likelihood, in lme4's syntax and with lme4's numbers.

    `data` is a pandas, Polars, PyArrow, DuckDB or Spark frame, a mapping of columns, or the path of a CSV or
    Parquet file. Files and lazy frames are read once, by their engine, and only sums come back.

    >>> fit = mixed("y ~ x + (1 | g)", {"y": [1, 2, 4, 3, 5, 7], "x": [0, 1, 2, 0, 1, 2], "g": list("aaabbb")})
    >>> round(fit.fixed["x"], 6)
    1.75
    """
    if method not in ("REML", "ML"):
        raise DataError(
            (Argument("method", method), " is not known."),
            "Linear mixed models are fitted by restricted or by maximum likelihood.",
            "Use 'REML' or 'ML'.",
            about="method",
        )
    progress("reading rows", 0.0)
    beside = (weights, offset, residual_by, *([series] if isinstance(series, str) else series or ()), time)
    source = opened(formula, data, missing=missing, beside=beside)
    frame, model = source.rows, source.model
    refuse_together({"weights": weights, "residual_by": residual_by, "series": series or time})
    by_rows = weights is not None or residual_by is not None or series is not None or time is not None
    cells, rows, design, learned, moved = _collected(
        frame, model, in_memory=by_rows, contrasts=contrasts, offset=offset
    )
    law = residual_law(frame, cells.rows, residual_by=residual_by, series=series, time=time)
    weight = None if weights is None else number_column(frame, weights, "weights", cells.rows, positive=True)
    if weight is not None and rows is not None:
        cells = CellSums.weighted(rows, weight)
    refuse_unidentifiable(design, cells.rows)
    refuse_wide(design)
    progress("sums of products", 0.1)
    statistics = _statistics(cells, design, weighted=weight is not None)
    refuse_scales(statistics, design, weights=weight)
    refuse_vanished(statistics, design, rows=rows, frame=frame)
    least = np.zeros(len(design.names))
    if apart := told_apart(design, statistics.joint[:-1, :-1]):
        least = R_TOLERANCE**2 * np.diag(statistics.joint)[:-1]
        design = replace(design, layout=replace(design.layout, fixed=apart))
        if rows is None:
            cells = cells_again(frame.lazy(), design.layout, cells, learned)
        statistics = _statistics(cells, design, weighted=weight is not None)
    XX = statistics.joint[:-1, :-1]
    kept = independent(XX, least=least)
    _refuse_saturated(cells.rows, len(kept), statistics)
    statistics = statistics.keep(kept)
    reml = method == "REML"
    fitted: Fitted | None = None
    if law is None:
        solution = solve(statistics, reml=reml, progress=part(progress, 0.2, 1.0))
        squares = statistics.yy if isinstance(statistics, Moments) else float(statistics.joint[-1, -1])
        if not design.layout.spans_constant:
            solution = replace(solution, far=10 * float(np.finfo(float).eps) * squares / solution.sigma2)
    else:
        assert rows is not None
        parts = law.parts(cells, rows, design, kept)
        solution, free = solve_parts(parts, law, reml=reml, progress=part(progress, 0.2, 1.0))
        fitted = Fitted(law, free, tuple(parts), float(statistics.joint[-1, -1]))
        statistics = combined(parts, law.weights(free).of_parts)
        weight = law.of_rows(free) if isinstance(law, Strata) else None
    origin = origin_of(cells, XX[np.ix_(kept, kept)], design, kept)
    dropped = tuple(name for index, name in enumerate(design.names) if index not in set(origin.named.tolist()))
    fit = MixedFit(
        formula=model.text,
        method=method,
        names=tuple(design.names[index] for index in origin.named),
        beta=origin.beta(solution.beta),
        covariance=solution.sigma2 * origin.restore @ solution.unscaled @ origin.restore.T,
        dropped=dropped,
        random=tuple(
            RandomEffects.of(random, solution.sigma2 * T @ T.T, u)
            for random, T, u in zip(design.random, solution.triangles, solution.effects, strict=True)
        ),
        sigma2=solution.sigma2,
        criterion=solution.criterion + (origin.logdet if reml else 0.0) - (0.0 if fitted else log_total(weight)),
        rows=cells.rows,
        notes=(*source.notes, *_notes(solution, dropped, design)),
        statistics=statistics,
        solution=solution,
        design=design,
        cells=cells,
        origin=origin,
        kept=kept,
        learned=learned,
        source=source,
        in_memory=rows,
        weights=weight,
        contrasts=contrasts,
        residual=fitted,
        offset=moved,
        asked={"weights": weights, "offset": offset},
    )
    progress("estimates", 1.0)
    for note in fit.notes:
        warnings.warn(note, MixedWarning, stacklevel=2)
    return fit


def refuse_together(asked: Mapping[str, object]) -> None:
    """One law of residuals at a time."""
    given = [name for name, value in asked.items() if value]
    if len(given) > 1:
        raise FitError(
            f"{given[0]} and {given[1]} were asked together.",
            "Residuals have prior weights, variances by stratum or autoregression within series.",
            "Choose one.",
            about=given[1],
        )


def residual_law(
    frame: AnyFrame, rows: int, *, residual_by: str | None, series: str | Sequence[str] | None, time: str | None
) -> ResidualLaw | None:
    """The law of residuals that was asked for; None for one variance."""
    if residual_by is not None:
        return read_strata(frame, residual_by, rows)
    return read_series(frame, series, time, rows) if series is not None or time is not None else None


def _statistics(cells: CellSums, design: Design, *, weighted: bool) -> Moments | Gram:
    """Moments count rows by their sums, so weighted rows need a Gram matrix."""
    plain = is_one_intercept(design) and not weighted
    with np.errstate(over="ignore", invalid="ignore"):
        found: Moments | Gram = moments_of(cells, design) if plain else gram_of(cells, design)
    if not np.isfinite(found.joint).all():
        raise FitError(
            "Squares of a column are too large for a double.",
            remedy="Give it in a larger unit, such as millions.",
            about="formula",
        )
    return found


def told_apart(design: Design, XX: Matrix) -> tuple[Piece, ...]:
    """The fixed pieces with numeric columns that are nearly combinations of earlier ones replaced by what differs.

    Empty where no column is. R tells such columns apart down to `R_TOLERANCE`; sums of squares, with half the digits,
    cannot, so the combination is subtracted from the rows before they are summed.
    """
    fixed, levels = design.layout.fixed, design.levels
    starts = np.cumsum([0, *(piece.width(levels) for piece in fixed)])
    plain = [i for i, piece in enumerate(fixed) if not piece.coded]
    changed, sure = list(fixed), surely_apart(XX[np.ix_(starts[plain], starts[plain])])
    for at, i in enumerate(plain):
        if at < sure:
            continue
        columns = starts[[j for j in plain[:at] if XX[starts[j], starts[j]] > 0]]
        whole, square = XX[np.ix_(columns, columns)], XX[starts[i], starts[i]]
        if not len(columns) or not fixed[i].monomial.atoms or square <= 0:
            continue
        share = np.linalg.lstsq(whole, XX[columns, starts[i]], rcond=1e-10)[0]
        left = square - share @ XX[columns, starts[i]]
        if left < NEARLY * square:
            parts = [fixed[j].monomial for j in plain[:at] if XX[starts[j], starts[j]] > 0]
            less = tuple((float(c), part) for c, part in zip(share, parts, strict=True) if c)
            changed[i] = replace(fixed[i], monomial=replace(fixed[i].monomial, less=less))
    return tuple(changed) if changed != list(fixed) else ()


def surely_apart(XX: Matrix) -> int:
    """How many of the first columns are far from every combination of those before them."""
    from scipy.linalg.lapack import dpotrf

    unit = np.sqrt(np.maximum(np.diag(XX), np.finfo(float).tiny))
    factor, failed = dpotrf(XX / np.outer(unit, unit), lower=1) if len(XX) else (XX, 0)
    pivots = np.diag(factor)[: failed - 1] if failed else np.diag(factor)
    near = np.flatnonzero(pivots**2 < SURELY)
    return int(near[0]) if len(near) else len(pivots)


def _collected(
    frame: AnyFrame, model: Formula, *, in_memory: bool, contrasts: Contrasts | None, offset: str | None
) -> tuple[CellSums, ModelRows | None, Design, Learned, Vector | None]:
    """What `collect` gives, with an offset subtracted from the response, and that offset."""
    if offset is None and not model.offsets:
        return *collect(frame, model, in_memory=in_memory, contrasts=contrasts or {}), None
    layout = plan(frame, model, offsets=True, contrasts=contrasts or {})
    rows, learned = read_rows(frame, layout)
    moved = read_offset(frame, model, offset, rows.count)
    assert moved is not None
    rows, learned = subtracted(rows, learned, model, moved)
    layout = layout.centred(learned.means, learned.distant)
    cells = cells_of(rows, layout, learned.levels)
    return cells, rows, Design.of(layout, cells.codes, learned.levels), learned, moved


def collect(
    frame: AnyFrame, model: Formula, *, in_memory: bool = False, contrasts: Contrasts | None = None
) -> tuple[CellSums, ModelRows | None, Design, Learned]:
    """One pass over the data: cells, the design they define, and the rows if they came into memory."""
    import narwhals.stable.v2 as nw

    layout, rows = plan(frame, model, contrasts=contrasts), None
    if isinstance(frame, nw.LazyFrame) and runs_in_engine(layout) and not in_memory:
        cells, layout, learned = cells_in_engine(frame, layout)
    else:
        rows, learned = read_rows(frame, layout)
        layout = layout.centred(learned.means, learned.distant)
        cells = cells_of(rows, layout, learned.levels)
    return cells, rows, Design.of(layout, cells.codes, learned.levels), learned


def is_one_intercept(design: Design) -> bool:
    """Whether the only random term is an intercept; moments are then sufficient."""
    return len(design.random) == 1 and design.random[0].pieces == (Piece(ONE),)


def refuse_unidentifiable(design: Design, rows: int) -> None:
    """lme4's checks of every random term, before anything is computed."""
    for random in design.random:
        levels, name = len(random.grouping), random.term.name
        if levels < 2:
            raise Unidentified(
                f"Grouping factor {name!r} has one level; {random.term} needs at least two.",
                remedy="Drop the term.",
                about="formula",
            )
        if random.effects >= rows:
            raise Unidentified(
                f"Term {random.term} has {random.effects:,} effects but there are only {rows:,} rows, so its "
                "variance and the residual's cannot be separated.",
                remedy="Drop a slope, or group rows more coarsely.",
                about="formula",
            )


def refuse_wide(design: Design, *, rows: int = 0) -> None:
    """Refuse more columns than memory holds: of sums by group, of products of columns, and at every row if asked."""
    p, random = len(design.names), [(len(term.grouping), len(term.names)) for term in design.random]
    sums = 3 * p**2 + sum(2 * levels * q * (p + 1 + q) for levels, q in random)
    at_rows = rows * (5 * p + 2 * sum(q for _, q in random))
    refuse_matrices(p + sum(q for _, q in random), 8.0 * (at_rows or sums))


def _refuse_saturated(rows: int, columns: int, statistics: Moments | Gram) -> None:
    if rows <= columns:
        raise FitError(
            f"The model has {columns} fixed effects but only {rows} rows.",
            remedy="Use fewer, or collect more rows.",
            about="formula",
        )
    squares = statistics.yy if isinstance(statistics, Moments) else statistics.joint[-1, -1]
    if not np.isfinite(squares):
        raise FitError(
            "Squares of the response are too large for a double.",
            remedy="Give it in a larger unit, such as millions.",
            about="formula",
        )
    if squares <= 0:
        raise FitError(
            "The response is constant, or its squares are too small for a double, so there is no variance to divide.",
            remedy="Check the response column, or give it in a smaller unit, such as millionths.",
            about="formula",
        )


def origin_of(cells: CellSums, XX: Matrix, design: Design, kept: Integers) -> Origin:
    """The way back from the kept columns, with cross-products `XX`, to those of the formula."""
    fixed, levels = design.layout.fixed, design.levels
    own = np.eye(len(design.names))[kept]
    if len(kept) < len(design.names):
        dropped = np.setdiff1d(np.arange(len(design.names)), kept)
        own[:, dropped] = np.linalg.solve(XX, products(cells, fixed, fixed, levels)[np.ix_(kept, dropped)])
    return origin(fixed, levels, kept=kept, own=own, moved=design.layout.response.shift, XX=XX)


def _notes(solution: Solution, dropped: tuple[str, ...], design: Design) -> tuple[str, ...]:
    notes = [*design.notes]
    if dropped:
        count = f"{len(dropped)} column{'s' * (len(dropped) > 1)}"
        notes.append(f"fixed-effect model matrix is rank deficient, so {count} dropped: {', '.join(dropped)}")
    if solution.is_singular:
        notes.append("boundary (singular) fit: a variance is zero or a correlation is one")
    if solution.is_exact:
        notes.append(
            "groups and fixed effects explain the response but for rounding: the residual variance is the least that "
            "is looked for, not an estimate, and standard errors and tests suppose it"
        )
    if solution.doubt > DOUBT:
        notes.append(
            "random effects, or without an intercept the response, are so far above the residual that squares lose "
            f"digits: the criterion is known to about {solution.doubt:.1g}, and a small variance beside a large one is "
            "uncertain"
        )
    return tuple(notes)
