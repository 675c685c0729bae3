"""Draws of responses from a posterior, and its draws for arviz."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.bayes.blmm.gibbs import Chains
from discreet.models.linear.fit import MixedFit
from discreet.models.linear.matrix import linear, place_rows, random_part
from discreet.words.errors import DataError
from discreet.words.extras import needs

USUAL = 1_000  # draws if no number was asked for


def responses(
    fit: MixedFit, chains: Chains, effects: Sequence[Matrix], data: Any, *, draws: int | None, rng: np.random.Generator
) -> Matrix:
    """Responses of the fitted rows or of new ones, shape (draws, rows), each from another draw of the posterior.

    `effects` are draws of each term, shape (all draws, levels). A row of a level that the fit never saw has an effect
    of its own, drawn from the term's law.
    """
    draws = min(USUAL, chains.count) if draws is None else draws
    if not isinstance(draws, int) or not 1 <= draws <= chains.count:
        raise DataError(
            f"draws={draws!r} of the posterior predictive were asked.",
            f"From 1 to {chains.count:,}, the draws of the posterior, are possible.",
            "Ask for fewer, or fit with more.",
            about="draws",
        )
    rows, design = fit.data if data is None else place_rows(data, fit.design, fit.learned), fit.design
    every = np.zeros(len(design.names))
    beta, variances = _flat(chains.beta), _flat(chains.variances)
    unseen = [random.grouping.codes(rows.codes) < 0 for random in design.random]
    found = np.empty((draws, rows.count))
    for i, at in enumerate(rng.choice(chains.count, draws, replace=False).tolist()):
        every[fit.kept] = beta[at]
        y = linear(rows, design.layout.fixed, design.levels, every) + design.layout.response.shift
        for k, (random, own, new) in enumerate(zip(design.random, effects, unseen, strict=True)):
            y += random_part(rows, random, design.levels, own[at][:, None], new_levels="zero")
            if new.any():
                column = random_part(
                    rows, random, design.levels, np.zeros((len(random.grouping), 1)), new_levels="zero"
                )
                column[new] = rng.normal(size=int(new.sum())) * np.sqrt(variances[at, 1 + k])
                y += column * _multiplier(rows, random)
        found[i] = y + np.sqrt(variances[at, 0]) * rng.normal(size=rows.count)
    return found


def _multiplier(rows: Any, random: Any) -> Vector:
    """The factor of the only effect of a level in each row: 1, or the column of its slope."""
    return np.asarray(rows.evaluate(random.pieces[0].monomial))


def _flat(draws: Matrix) -> Matrix:
    return draws.reshape(-1, draws.shape[2])


def inference_data(
    posterior: Mapping[str, tuple[Matrix, str, Sequence[str]]], *, observed: Vector, predicted: Matrix | None
) -> Any:
    """arviz's `InferenceData`; `posterior` has draws (chains, draws, size), the last axis's name and labels."""
    with needs("arviz", "Draws for arviz"):
        import arviz

    return arviz.from_dict(
        posterior={name: draws for name, (draws, _, _) in posterior.items()},
        posterior_predictive=None if predicted is None else {"response": predicted[None]},
        observed_data={"response": observed},
        coords={axis: list(labels) for _, axis, labels in posterior.values()},
        dims={name: [axis] for name, (_, axis, _) in posterior.items()} | {"response": ["row"]},
    )
