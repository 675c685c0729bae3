"""`generalised`, the door to mixed models of counts and shares: read formula and rows, check, maximise, wrap."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.models.formula.contrasts import Contrasts
from discreet.models.formula.design import Design, Layout
from discreet.models.formula.rows import ModelRows, number_column, plan, read_rows, with_outcomes
from discreet.models.formula.source import Missing, opened
from discreet.models.linear.effects import RandomEffects
from discreet.models.linear.estimate import refuse_unidentifiable, refuse_wide
from discreet.models.linear.families.family import Family
from discreet.models.linear.families.links import HIGHEST
from discreet.models.linear.families.registry import family as family_of
from discreet.models.linear.fit import MixedWarning
from discreet.models.linear.general_fit import GeneralisedFit
from discreet.models.linear.general_inference import FittedRows
from discreet.models.linear.general_precision import effect_variances
from discreet.models.linear.laplace import Problem, Term, mode
from discreet.models.linear.likelihood import ABSENT, Start, is_stuck, maximise
from discreet.models.linear.matrix import dense
from discreet.models.linear.memory import refuse_memory
from discreet.models.linear.origin import Origin, origin
from discreet.models.linear.reml import independent
from discreet.models.linear.scales import HEAVY, refuse_columns, refuse_weights
from discreet.models.linear.solution import BOUNDARY, ORDER
from discreet.words.errors import DataError, FitError, Unidentified
from discreet.words.progress import Progress, part, silent

MOST_POINTS = 100  # of the quadrature
SINGULAR = "boundary (singular) fit: a variance is zero or a correlation is one"
NO_ZEROS = "no extra zeros: the likelihood is highest without them, so estimates are those of the family without them"
FLAT_TOP = (
    "a group's effects have a flat top at these estimates, where Laplace's approximation of the likelihood has no "
    "bound: no search ended elsewhere, so the log-likelihood says nothing. Try points=15 or fewer parameters"
)
NO_ERRORS = (
    "no standard errors: the likelihood is not curved downwards in every direction at the estimates. "
    "Use profiles, confint(), or fewer terms"
)
FAR = 5.0  # of an offset of shares: a probability of 0.99 or 0.01


def generalised(
    formula: str,
    data: Any,
    *,
    family: str,
    points: int = 1,
    offset: str | None = None,
    exposure: str | None = None,
    weights: str | None = None,
    missing: Missing = "error",
    contrasts: Contrasts | None = None,
    progress: Progress = silent,
) -> GeneralisedFit:
    """Fit a mixed model of counts or shares by maximum likelihood; see `discreet.mixed`."""
    law = family_of(family)
    if exposure is not None and not law.link.rates:
        raise FitError(
            f"exposure={exposure!r} was asked with family={family!r}.",
            "Responses with a log link are of an exposure; a share has a number of trials.",
            "Name the trials in weights, or leave it out.",
            about="exposure",
        )
    progress("reading rows", 0.0)
    source = opened(formula, data, missing=missing, beside=(offset, exposure, weights))
    frame, model = source.rows, source.model
    frame = with_outcomes(frame, model.response.column) if law.outcomes else frame
    layout = plan(frame, model, offsets=True, contrasts=contrasts or {})
    if layout.model.response.function:
        raise FitError(
            f"The response {layout.model.response} of family {family!r} is a function of a column.",
            "A response enters as it is: the link is a part of the family.",
            f"Write {layout.model.response.column} ~ ...",
            about="formula",
        )
    rows, learned = read_rows(frame, layout)
    layout = layout.centred(learned.means, learned.distant)
    design = Design.of(layout, rows.codes, learned.levels)
    refuse_unidentifiable(design, rows.count * 2 if law.own or law.trials else rows.count + 1)
    refuse_wide(design, rows=rows.count)
    y = rows.evaluate(replace(layout.response, shifts=()))  # as it is: amounts keep their digits
    moved = None if offset is None else number_column(frame, offset, "offset", rows.count)
    for name in model.offsets:
        more = number_column(frame, name, "formula", rows.count, called="An offset")
        moved = more if moved is None else moved + more
    shown = None if exposure is None else number_column(frame, exposure, "exposure", rows.count, positive=True)
    weight = None if weights is None else number_column(frame, weights, "weights", rows.count, positive=True)
    law.refuse(y)
    if weight is not None:
        refuse_weights(law, weight, y)
    problem, kept, back = _problem(rows, layout, design, law, y, moved, shown, weight)
    _refuse_points(points, problem)
    progress(ORDER, 0.1)
    refuse_memory(problem.pattern, beside=1)
    dropped = tuple(name for index, name in enumerate(design.names) if index not in set(back.named.tolist()))
    notes = [*source.notes, *design.notes]
    if dropped:
        notes.append(f"fixed-effect model matrix is rank deficient, so dropped: {', '.join(dropped)}")
    try:
        found = estimates(problem, points, design, kept, back, progress=part(progress, 0.15, 1.0))
    except Unidentified:
        _refuse_far_offset(law, moved)
        raise
    fit = GeneralisedFit(
        formula=model.text,
        family=law.name,
        points=points,
        names=tuple(design.names[index] for index in back.named),
        dropped=dropped,
        rows=rows.count,
        notes=(*notes, *found["estimate_notes"]),
        design=design,
        learned=learned,
        fitted_rows=FittedRows(rows, problem.X, problem.terms, problem.offset, problem.weights, kept, back),
        source=source,
        asked={"offset": offset, "exposure": exposure, "weights": weights},
        contrasts=contrasts,
        **found,
    )
    progress("estimates", 1.0)
    for note in fit.notes:
        warnings.warn(note, MixedWarning, stacklevel=3)
    return fit


def estimates(
    problem: Problem, points: int, design: Design, kept: Integers, back: Origin, *, progress: Progress = silent
) -> dict[str, Any]:
    """What a fit of these rows says beyond its design, by the names of `GeneralisedFit`; notes are those of the fit."""
    law, names = problem.family, tuple(design.names[i] for i in kept)
    start = _of_lighter_rows(problem, names, part(progress, 0.0, 0.3))
    begun = 0.0 if start is None else 0.3
    beta, theta, own, value, spread = maximise(
        problem, points, names, start=start, progress=part(progress, begun, 0.95)
    )
    progress("estimates", 0.95)
    _refuse_exact(law, own)
    at = mode(problem, beta, theta, own)
    effects = tuple(u @ T.T for u, T in zip(at.u, at.T, strict=True))
    everywhere = np.zeros(len(design.names))
    everywhere[kept] = beta
    fixed = spread[: len(beta), : len(beta)]
    notes = [SINGULAR] if any(np.abs(np.diag(T)).min() < BOUNDARY for T in at.T) else []
    notes = [*law.notes(problem.y, problem.weights), *notes]
    if law.inflated and own[-1] == ABSENT:
        notes.append(NO_ZEROS)
    elif law.inflated and points == 1 and is_stuck(problem, beta, theta, own):
        notes.append(FLAT_TOP)
    if not _is_covariance(fixed):
        fixed = np.full_like(fixed, np.nan)
        notes.append(NO_ERRORS)
    terms = zip(design.random, at.T, effects, strict=True)
    return {
        "beta": back.beta(beta),
        "covariance": back.restore @ fixed @ back.restore.T,
        "random": tuple(RandomEffects.of(random, T @ T.T, b) for random, T, b in terms),
        "effect_variances": effect_variances(problem, at, fixed, design),
        "own": {parameter.name: parameter.shown(value) for parameter, value in zip(law.own, own, strict=True)},
        "criterion": 2 * value + law.constant(problem.y, problem.weights),
        "estimate_notes": tuple(notes),
        "link": at.eta,
        "marginal": problem.X @ beta + problem.offset,
        "response": problem.y,
        "centred": (everywhere, effects, own),
        "theta": theta,
        "spread": spread,
        "parameters": len(beta) + len(theta) + len(own),
    }


def _refuse_exact(law: Family, own: Vector) -> None:
    """Responses that follow their expectations to the last digits leave a parameter without an estimate."""
    for parameter, value in zip(law.own, own, strict=True):
        if (found := parameter.shown(value)) > parameter.most:
            raise Unidentified(
                f"The response follows its expectations so closely that the {parameter.name} has no estimate below "
                f"{found:.0e}.",
                f"Family {law.name!r} has estimates of up to {parameter.most:.0e}.",
                "Check whether the response was computed from the columns, or fit the plain mixed model.",
                about="formula",
            )


def _is_covariance(found: Matrix) -> bool:
    """Whether variances are positive and correlations, but for rounding, those of anything."""
    variances = np.diag(found)
    if not np.isfinite(found).all() or not (variances > 0).all():
        return False
    scale = 1 / np.sqrt(variances)
    return bool((np.linalg.eigvalsh(found * np.outer(scale, scale)) > -1e-8).all())


def _of_lighter_rows(problem: Problem, names: tuple[str, ...], progress: Progress) -> Start | None:
    """Where to start with heavy weights: at the estimates of lighter ones, whose likelihood is less steep.

    The effects of a group that is all ones, or has no event, grow with the logarithm of its weights, and a search from
    far away may stop where the slopes of a steep likelihood have no digits left.
    """
    largest = 0.0 if problem.weights is None else float(problem.weights.max())
    if problem.weights is None or largest <= HEAVY:
        return None
    lighter = replace(problem, weights=problem.weights * (HEAVY / largest), modes=[])
    return maximise(lighter, 1, names, errors=False, progress=progress)[:3]


def _problem(
    rows: ModelRows,
    layout: Layout,
    design: Design,
    law: Family,
    y: Vector,
    offset: Vector | None,
    exposure: Vector | None,
    weights: Vector | None,
) -> tuple[Problem, Integers, Origin]:
    """The arrays of the fit, which fixed columns are kept, and the way back to the columns as given."""
    with np.errstate(over="ignore", invalid="ignore"):
        X = dense(rows, layout.fixed, design.levels)
        XX = X.T @ X
        random = [dense(rows, term.pieces, design.levels) for term in design.random]
        squares = [np.square(Z).sum() for Z in random]
    if not np.isfinite(XX).all() or not np.isfinite(squares).all():
        raise FitError(
            "Squares of a column are too large for a double.",
            remedy="Give it in a larger unit, such as millions.",
            about="formula",
        )
    for names, columns in (
        (design.names, X),
        *((term.names, Z) for term, Z in zip(design.random, random, strict=True)),
    ):
        refuse_columns(names, columns)
    kept = independent(XX)
    own = np.eye(X.shape[1])[kept]
    if len(kept) < X.shape[1]:
        left_out = np.setdiff1d(np.arange(X.shape[1]), kept)
        own[:, left_out] = np.linalg.solve(XX[np.ix_(kept, kept)], XX[np.ix_(kept, left_out)])
    back = origin(layout.fixed, design.levels, kept=kept, own=own, moved=0.0, XX=XX[np.ix_(kept, kept)])
    terms = tuple(
        Term(Z, term.grouping.codes(rows.codes), len(term.grouping))
        for Z, term in zip(random, design.random, strict=True)
    )
    total = np.zeros(len(y)) if offset is None else offset
    if np.ptp(total) > HIGHEST:
        raise DataError(
            f"Offsets differ by {np.ptp(total):.4g} on the scale of the link.",
            f"Rows whose rates differ by more than exp({HIGHEST:.0f}) have no common model.",
            "Give an offset on the scale of the link, for example the logarithm of an exposure.",
            about="offset",
        )
    if exposure is not None:
        total = total + np.log(exposure)
    return Problem(y, X[:, kept], terms, total, law, weights), kept, back


def _refuse_far_offset(law: Family, offset: Vector | None) -> None:
    """An intercept that balances a far offset looks like a prediction with certainty: say what it balances."""
    if law.trials and offset is not None and abs(middle := float(np.median(offset))) > FAR:
        raise DataError(
            f"Offsets are about {middle:.4g} on the scale of the link, where 15 is a probability of 1 to six digits.",
            "The intercept would have to balance them, which cannot be told from rows predicted with certainty.",
            "Subtract the mean of the offset from it: only the intercept changes.",
            about="offset",
        )


def _refuse_points(points: int, problem: Problem) -> None:
    if not isinstance(points, int) or not 1 <= points <= MOST_POINTS:
        raise FitError(
            f"points={points!r} is no number of points.",
            f"It is a whole number from 1 (Laplace's approximation) to {MOST_POINTS}.",
            "Use 1 or 15.",
            about="points",
        )
    if points > 1 and (len(problem.terms) > 1 or problem.terms[0].q > 1):
        raise FitError(
            f"points={points} was asked of a model with several random effects that meet in a row.",
            "Quadrature is for one scalar random term such as (1 | county).",
            "Use points=1.",
            about="points",
        )
