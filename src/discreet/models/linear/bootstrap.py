"""Simulated responses of a fitted model, refits to other responses, and bootstrap intervals of fixed effects.

Parametric: responses drawn from the model, each fitted anew. Residual: marginal residuals keep their place, and all
those of one group change sign together (Cameron, Gelbach and Miller 2008, doi:10.1162/rest.90.3.414). So nothing is
assumed about their variances or about correlations within a group; t values have errors that are robust in the same
way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.formula.rows import ModelRows
from discreet.models.linear.cells import CellSums
from discreet.models.linear.effects import RandomEffects
from discreet.models.linear.evaluations import counted
from discreet.models.linear.fit import MixedFit, log_total
from discreet.models.linear.inference import gram_of_fit
from discreet.models.linear.likelihood_fit import responses_of
from discreet.models.linear.matrix import dense, linear, random_part
from discreet.models.linear.moments import Moments
from discreet.models.linear.offsets import offset_of
from discreet.models.linear.pencil import combined, solve_parts
from discreet.models.linear.prediction import parts as parts_of_rows
from discreet.models.linear.residuals import Autoregression, Strata
from discreet.models.linear.scales import refuse_squares
from discreet.models.linear.solution import solve, solve_gram
from discreet.models.linear.sparse import Gram
from discreet.words.cases import case_of
from discreet.words.errors import FitError, Unidentified
from discreet.words.progress import Progress, silent

CHUNK = 64  # draws of signs together
FEWEST = 5  # groups whose signs can change: below it there are at most 16 different draws


def simulate(
    fit: MixedFit, count: int, rng: np.random.Generator, *, effects: Literal["new", "kept"]
) -> Iterator[Vector]:
    """Responses of the fitted rows, one array after another."""
    rows, design, solution = fit.data, fit.design, fit.solution
    beta = np.zeros(len(design.names))
    beta[fit.kept] = solution.beta
    fixed = linear(rows, design.layout.fixed, design.levels, beta) + design.layout.response.shift
    fixed = fixed + offset_of(fit, rows=rows.count)
    sigma = float(np.sqrt(fit.sigma2))
    for _ in range(count):
        law = fit.residual.law if fit.residual else None
        if fit.residual and isinstance(law, Autoregression):
            y = fixed + sigma * law.drawn(fit.residual.free, rng, rows.count)
        else:
            y = fixed + sigma * rng.normal(size=rows.count) / fit.root_weights
        for term, T, kept in zip(design.random, solution.triangles, solution.effects, strict=True):
            drawn = (
                kept if case_of(effects, {"kept": True, "new": False}) else sigma * rng.normal(size=kept.shape) @ T.T
            )
            y += random_part(rows, term, design.levels, drawn, new_levels="error")
        yield y


def with_response(fit: MixedFit, y: Vector) -> list[Gram]:
    """The Gram matrices of the model for another response to the same rows: one, or those that a law weighs."""
    y = y - offset_of(fit, rows=len(y)) - fit.design.layout.response.shift
    if fit.residual is None:
        return [_with_response(fit, gram_of_fit(fit), y, y if fit.weights is None else y * fit.weights)]
    parts = zip(fit.residual.parts, fit.residual.law.applied(y), strict=True)
    return [_with_response(fit, part, y, met) for part, met in parts]


def _with_response(fit: MixedFit, gram: Gram, y: Vector, counted: Vector) -> Gram:
    """A Gram matrix for another response; `counted` is that response as the matrix weighs it."""
    rows, design = fit.data, fit.design
    Zxy = []
    for term, known in zip(design.random, gram.Zxy, strict=True):
        group, columns = term.grouping.codes(rows.codes), dense(rows, term.pieces, design.levels)
        sums = np.stack([np.bincount(group, column * counted, len(term.grouping)) for column in columns.T], axis=1)
        Zxy.append(np.column_stack([known[:, :-1], sums.ravel()]))
    joint = gram.joint.copy()
    joint[-1, :-1] = joint[:-1, -1] = _times_response(rows, fit, counted)
    joint[-1, -1] = y @ counted
    return gram.lend(Gram(gram.ZZ, gram.crossed, tuple(Zxy), joint, gram.rows))


def _times_response(rows: ModelRows, fit: MixedFit, y: Vector) -> Vector:
    found = []
    for piece in fit.design.layout.fixed:
        at = piece.position(rows.codes, fit.design.levels, rows.count)
        value = rows.evaluate(piece.monomial) * y
        found.append(np.bincount(at[at >= 0], value[at >= 0], piece.width(fit.design.levels)))
    return np.asarray(np.concatenate(found)[fit.kept])


def refit(fit: MixedFit, y: Vector) -> MixedFit:
    """The same model of other responses to the same rows."""
    rows = fit.data
    y = responses_of(y, rows.count)
    own = y - offset_of(fit, rows=rows.count)
    parts, held, weights, reml = with_response(fit, y), fit.residual, fit.weights, fit.method == "REML"
    statistics: Moments | Gram = parts[0]
    refuse_squares(float(y @ y) / len(y), [("", 1.0)])
    if held is not None:
        solution, free = solve_parts(parts, held.law, reml=reml)
        statistics = combined(parts, held.law.weights(free).of_parts)
        squares = float(np.sum((own - fit.design.layout.response.shift) ** 2))
        held = replace(held, free=free, parts=tuple(parts), squares=squares)
        weights = held.law.of_rows(free) if isinstance(held.law, Strata) else None
    else:
        if isinstance(fit.statistics, Moments):
            Sy, joint = parts[0].Zxy[0][:, -1], parts[0].joint
            statistics = replace(fit.statistics, Sy=Sy, Xy=joint[:-1, -1], yy=float(joint[-1, -1]))
        solution = solve(statistics, reml=reml)
    counted = weights if held is None else None  # a law's weights are not in the sums of cells
    changed = replace(rows, values={**rows.values, fit.design.layout.model.response: own[:, None]})
    random = zip(fit.design.random, solution.triangles, solution.effects, strict=True)
    return replace(
        fit,
        beta=fit.origin.beta(solution.beta),
        covariance=solution.sigma2 * fit.origin.restore @ solution.unscaled @ fit.origin.restore.T,
        random=tuple(RandomEffects.of(each, solution.sigma2 * T @ T.T, u) for each, T, u in random),
        sigma2=solution.sigma2,
        criterion=solution.criterion + (fit.origin.logdet if reml else 0.0) - log_total(counted),
        statistics=statistics,
        solution=solution,
        cells=CellSums.of_rows(changed) if counted is None else CellSums.weighted(changed, counted),
        source=None,
        in_memory=changed,
        weights=weights,
        residual=held,
    )


def parametric(
    fit: MixedFit, replicates: int, rng: np.random.Generator, *, progress: Progress = silent
) -> tuple[Matrix, Matrix]:
    """Fixed effects of refits, shape (replicates, p), and their variances and residual variance."""
    one_more = counted(progress, "refits", replicates)
    betas, spreads, held, reml = [], [], fit.residual, fit.method == "REML"
    for y in simulate(fit, replicates, rng, effects="new"):
        parts = with_response(fit, y)
        if held is None:
            found = solve_gram(parts[0], reml=reml)
        else:
            found, _ = solve_parts(parts, held.law, reml=reml, start=held.free)
        betas.append(fit.origin.beta(found.beta))
        own = [np.diag(T @ T.T) * found.sigma2 for T in found.triangles]
        spreads.append(np.concatenate([*own, [found.sigma2]]))
        one_more()
    return np.array(betas), np.array(spreads)


def residual(fit: MixedFit, replicates: int, rng: np.random.Generator, *, level: float, group: str | None) -> Matrix:
    """Ends of intervals of the fixed effects, shape (p, 2), by residuals whose signs change by group."""
    rows = fit.data
    codes = _groups(fit, group)
    G = int(codes.max()) + 1
    if G < FEWEST:
        raise Unidentified(
            f"The bootstrap by group has {G} groups, whose signs change in {2**G} ways.",
            f"It needs at least {FEWEST} groups, and many more to be exact.",
            'Use method="wald", or name a finer group.',
            about="group",
        )
    p, left = len(fit.beta), fit.residuals("marginal")
    scores, M = np.zeros((G, p)), np.zeros((G, p, p))
    for at, X, swept, _ in parts_of_rows(fit, rows):
        A = swept @ fit.solution.unscaled
        if fit.weights is not None:
            A = A * fit.weights[at][:, None]
        for j in range(p):
            scores[:, j] += np.bincount(codes[at], A[:, j] * left[at], G)
            for k in range(p):
                M[:, j, k] += np.bincount(codes[at], A[:, j] * X[:, k], G)
    errors = np.sqrt(np.maximum((fit.origin.restore @ scores.T) ** 2, 0).sum(axis=1))
    found = []
    for start in range(0, replicates, CHUNK):
        signs = rng.choice([-1.0, 1.0], size=(min(CHUNK, replicates - start), G))
        moved = signs @ scores
        own = signs[:, :, None] * scores - np.einsum("gjk,bk->bgj", M, moved)
        spread = np.sqrt(((own @ fit.origin.restore.T) ** 2).sum(axis=1))
        found.append((moved @ fit.origin.restore.T) / np.where(spread > 0, spread, np.inf))
    ends = among(np.abs(np.concatenate(found)), level)  # symmetric intervals err less
    return np.column_stack([fit.beta - ends * errors, fit.beta + ends * errors])


def among(drawn: Matrix, probability: float | list[float]) -> Matrix:
    """The value below which one more draw lies with a probability, for each column."""
    return np.asarray(np.quantile(drawn, probability, axis=0, method="weibull"))


def _groups(fit: MixedFit, group: str | None) -> np.ndarray:
    """The code of each row's group: of the named term, else of the one with the fewest levels."""
    terms = {random.term.name: random for random in fit.design.random}
    if group is not None and group not in terms:
        raise FitError(
            f"group={group!r} is no grouping factor of the fit.",
            f"There are {', '.join(terms)}.",
            "Name one of them.",
            about="group",
        )
    chosen = terms[group] if group else min(terms.values(), key=lambda random: len(random.grouping))
    return np.unique(chosen.grouping.codes(fit.data.codes), return_inverse=True)[1]
