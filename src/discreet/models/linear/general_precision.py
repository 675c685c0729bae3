"""How precisely effects and linear predictors of counts and shares are known, given the mode of the effects.

Only arrays and designs enter. Errors are TMB's (Kristensen et al. 2016, doi:10.18637/jss.v070.i05): effects vary about
their mode by Omega^-1, and errors of the parameters (fixed effects, theta, those of the family) move the mode.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.formula.design import Design
from discreet.models.formula.rows import ModelRows
from discreet.models.linear.laplace import Mode, Problem
from discreet.models.linear.matrix import dense
from discreet.models.linear.origin import basis
from discreet.models.linear.prediction import CHUNK, scattered
from discreet.models.linear.sparse import blocks_of, by_columns

LARGEST = 2**23  # entries of what all effects weigh in some rows


def effect_variances(problem: Problem, at: Mode, fixed: Matrix, design: Design) -> tuple[Matrix, ...]:
    """Per term, prediction variances of its effects: about the mode, and as errors of fixed effects move the mode."""
    blocks, _ = blocks_of(at.gram, *at.factor.inverse())
    moved = moves(problem, at)[:, : len(fixed)]
    found, start = [], 0
    for random, T, block in zip(design.random, at.T, blocks, strict=True):
        levels, q, _ = block.shape
        own = moved[start : (start := start + levels * q)].reshape(levels, q, -1)
        back = np.linalg.inv(basis(random)) @ T
        found.append(back @ (block + own @ fixed @ own.transpose(0, 2, 1)) @ back.T)
    return tuple(found)


def moves(problem: Problem, at: Mode) -> Matrix:
    """Derivatives of the mode of all spherical effects in beta, theta and the family's parameters, by column."""
    pulled = [-problem.gathered(at.T, at.law.curve * column) for column in problem.X.T]
    for i, (term, u) in enumerate(zip(problem.terms, at.u, strict=True)):
        slope = term.gather(at.law.slope)
        for c, r in zip(*by_columns(term.q), strict=True):
            met = problem.by_term(-problem.gathered(at.T, at.law.curve * term.columns[:, r] * u[term.level, c]))
            met[i][:, c] += slope[:, r]
            pulled.append(np.concatenate([each.ravel() for each in met]))
    pulled += [problem.gathered(at.T, by_slope) for _, by_slope, _ in at.law.own]
    return np.asarray(at.factor.back(*at.factor.reduce(np.stack(pulled, axis=1))))


def link_variances(
    problem: Problem, at: Mode, spread: Matrix, design: Design, X: Matrix, rows: ModelRows, more: Vector
) -> Vector:
    """The variance of the linear predictor of rows, given their fixed columns.

    `spread` is the covariance of all parameters, and `more` how those of the family enter beside the mode. The variance
    of a level that the fit never saw is added.
    """
    moved, found = moves(problem, at), np.empty(rows.count)
    p, chunk = X.shape[1], max(1, min(CHUNK, LARGEST // len(moved)))
    for start in range(0, rows.count, chunk):
        here = np.arange(start, min(start + chunk, rows.count))
        part, columns, by_theta, new = rows.take(here), [], [], np.zeros(len(here))
        for random, T, u in zip(design.random, at.T, at.u, strict=True):
            Z, group = dense(part, random.pieces, design.levels), random.grouping.codes(part.codes)
            weighed, unseen = scattered(Z, group, T, random.effects)
            columns.append(weighed)
            new += unseen
            known = np.where((group >= 0)[:, None], u[group], 0.0)
            by_theta += [Z[:, r] * known[:, c] for c, r in zip(*by_columns(len(T)), strict=True)]
        whole = np.concatenate(columns)
        slopes = whole.T @ moved
        slopes[:, :p] += X[here]
        slopes[:, p : p + len(by_theta)] += np.stack(by_theta, axis=1)
        slopes[:, p + len(by_theta) :] += more
        about = (whole * at.factor.back(*at.factor.reduce(whole))).sum(axis=0)
        found[here] = about + new + np.einsum("ri,ij,rj->r", slopes, spread, slopes)
    return np.maximum(found, 0.0)
