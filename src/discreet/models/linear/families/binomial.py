"""`BINOMIAL`: outcomes, and shares of a number of trials, by the logit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from discreet.arrays import Mask, Vector
from discreet.models.linear.families import counts
from discreet.models.linear.families.family import Densities, Family, PrivateFamily, Slopes, Spread
from discreet.models.linear.families.links import LOGIT, probability
from discreet.words.errors import DataError, Unidentified

APART = 15.0  # a linear predictor so far from zero that a probability is 0 or 1 to six digits
WHOLE = 1e-3  # how far from a whole number successes may be, as in R
ONE_TRIAL = (
    "shares without trials: every share between 0 and 1 counts as the outcome of one trial, so standard errors are too "
    "large where there were more. Name the column of the numbers of trials in weights"
)
NOT_WHOLE = "weights times shares are not whole (R: non-integer #successes), so weights may be no numbers of trials"


def _law(y: Vector, eta: Vector, own: Vector) -> Densities:
    mu = probability(eta)
    curve = mu * (1 - mu)
    return Densities(y * eta - np.logaddexp(0, eta), y - mu, curve, curve * (1 - 2 * mu))


def _near(y: Vector, eta: Vector, own: Vector) -> Slopes:
    mu = probability(eta)
    return Slopes(y * eta - np.logaddexp(0, eta), y - mu, mu * (1 - mu))


def _refuse(y: Vector) -> None:
    if (y < 0).any() or (y > 1).any():
        raise DataError(
            "The response of family 'binomial' has values outside 0 to 1.",
            "It is 0 or 1, or a share with the number of trials as weights.",
            "Divide successes by trials, and name the trials in weights.",
            about="formula",
        )
    if (y == 0).all() or (y == 1).all():
        raise Unidentified(
            "The response is the same in every row, so no probability strictly between 0 and 1 is the best one.",
            "Both outcomes must occur.",
            "Check the response column.",
            about="formula",
        )


def _separated(eta: Vector, y: Vector) -> Mask:
    return np.asarray(np.abs(eta) > APART)


def _deviance(y: Vector, mean: Vector, own: Vector) -> Vector:
    from scipy.special import xlogy

    return np.asarray(2 * (xlogy(y, y / mean) + xlogy(1 - y, (1 - y) / (1 - mean))))


def _at_most(k: Vector, eta: Vector, own: Vector, trials: Vector) -> Vector:
    from scipy.special import bdtr

    return np.where(k >= trials, 1.0, bdtr(np.minimum(k, trials - 1), trials.astype(np.int64), probability(eta)))


def _draw(eta: Vector, own: Vector, trials: Vector, rng: np.random.Generator) -> Vector:
    return np.asarray(rng.binomial(np.rint(trials).astype(np.int64), probability(eta)) / trials)


def _constant(y: Vector, weights: Vector | None) -> float:
    """Binomial coefficients of trials."""
    from scipy.special import gammaln

    if weights is None:
        return 0.0
    return float(-2 * (gammaln(weights + 1) - gammaln(weights * y + 1) - gammaln(weights * (1 - y) + 1)).sum())


def _notes(y: Vector, weights: Vector | None) -> list[str]:
    if weights is None:
        return [ONE_TRIAL] if ((y > 0) & (y < 1)).any() else []
    successes = weights * y
    return [NOT_WHOLE] if (np.abs(successes - np.rint(successes)) > WHOLE).any() else []


def _draw_released(
    eta: Vector, size: Vector | None, spread: Spread, rng: np.random.Generator
) -> tuple[Vector, Vector | None]:
    trials = np.ones(len(eta)) if size is None else size
    successes = np.asarray(rng.binomial(trials.astype(np.int64), probability(eta)), dtype=np.float64)
    return successes / trials, None if size is None else successes


BINOMIAL = Family(
    name="binomial",
    of="shares",
    link=LOGIT,
    law=_law,
    near=_near,
    refuse=_refuse,
    start=_law,
    separated=_separated,
    variance=lambda eta, own: LOGIT.slope(eta),
    deviance=_deviance,
    at_most=_at_most,
    ends=counts.ends,
    draw=_draw,
    outcomes=True,
    trials=True,
    constant=_constant,
    notes=_notes,
    heaviest=1e8,
    wider=" If shares of many trials vary more than the family, give rows an effect of their own, as (1 | row).",
    private=PrivateFamily(
        drawn="successes are binomial with the model's means; ",
        draw=_draw_released,
        largest=lambda bounds: 1.0,
        choice="a share, by the logit",
        bounds=(0, 1),
        squares=Fraction(1, 1000),
        trials=True,
    ),
)
