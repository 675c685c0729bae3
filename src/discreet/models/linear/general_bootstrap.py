"""Simulated counts and shares of a fitted model, refits to other responses, and the parametric bootstrap."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.linear.evaluations import counted
from discreet.models.linear.fit import MixedWarning
from discreet.models.linear.likelihood import maximise
from discreet.models.linear.likelihood_fit import responses_of
from discreet.words.cases import case_of
from discreet.words.errors import FitError, Unidentified
from discreet.words.progress import Progress, silent

if TYPE_CHECKING:
    from discreet.models.linear.general_fit import GeneralisedFit

MOST_LOST = 0.1  # of the draws, which may have no finite estimate


def simulate(
    fit: GeneralisedFit, count: int, rng: np.random.Generator, *, effects: Literal["new", "kept"]
) -> Iterator[Vector]:
    """Responses of the fitted rows, one array after another."""
    at, trials = fit.fitted_rows, trials_of(fit)
    for _ in range(count):
        link = fit.link if case_of(effects, {"kept": True, "new": False}) else fit.marginal
        if case_of(effects, {"new": True, "kept": False}):
            for term, T in zip(at.terms, fit.triangles, strict=True):
                link = link + term.times(rng.normal(size=(term.levels, term.q)) @ T.T)
        yield fit.law.draw(link, fit.centred[2], trials, rng)


def trials_of(fit: GeneralisedFit) -> Vector:
    """The number of trials of each row; refuses weights that no single response has."""
    weights = fit.fitted_rows.weights
    if weights is None:
        return np.ones(fit.rows)
    if (not fit.law.trials and (weights != 1).any()) or (weights != np.rint(weights)).any():
        raise FitError(
            f"New responses were asked of a fit of family {fit.family!r} with weights.",
            "A share has a whole number of trials as its weight; one response that stands for several rows is none.",
            "Fit every row by itself, or the total with its exposure.",
            about="weights",
        )
    return weights


def refit(fit: GeneralisedFit, y: Vector) -> GeneralisedFit:
    """The same model of other responses to the same rows."""
    from discreet.models.linear.generalised import estimates

    y, at = responses_of(y, fit.rows), fit.fitted_rows
    problem = at.problem(y, fit.law)
    fit.law.refuse(y)
    found = estimates(problem, fit.points, fit.design, at.kept, at.origin)
    kept = fit.notes[: len(fit.notes) - len(fit.estimate_notes)]
    return replace(fit, **found | {"notes": kept + found["estimate_notes"], "source": None})


def parametric(
    fit: GeneralisedFit, replicates: int, rng: np.random.Generator, *, progress: Progress = silent
) -> Matrix:
    """Fixed effects of refits to responses drawn from the model, shape (replicates, p)."""
    at, found, one_more = fit.fitted_rows, [], counted(progress, "refits", replicates)
    start = fit.centred[0][at.kept], fit.theta, fit.centred[2]
    for y in simulate(fit, replicates, rng, effects="new"):
        one_more()
        problem = at.problem(y, fit.law)
        try:
            fit.law.refuse(y)
            beta = maximise(problem, fit.points, fit.names, start=start, errors=False)[0]
        except Unidentified:
            continue
        found.append(at.origin.beta(beta))
    if (lost := replicates - len(found)) > MOST_LOST * replicates:
        raise FitError(
            f"A bootstrap was asked of a fit {lost:,} of whose {replicates:,} draws have no finite estimate.",
            "Responses drawn from the model are often all alike within a level, or all zero.",
            'Use method="profile", or join levels.',
            about="method",
        )
    if lost:
        warnings.warn(f"{lost:,} of {replicates:,} draws have no finite estimate", MixedWarning, stacklevel=5)
    return np.array(found)
