"""`POISSON`: counts whose variance is their mean, by the logarithm."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from discreet.arrays import Vector
from discreet.models.linear.families import counts
from discreet.models.linear.families.family import Densities, Family, PrivateFamily, Slopes, Spread
from discreet.models.linear.families.links import LOG
from discreet.words.errors import DataError


def _law(y: Vector, eta: Vector, own: Vector) -> Densities:
    from scipy.special import gammaln

    mu = LOG.mean(eta)
    return Densities(y * eta - mu - gammaln(y + 1), y - mu, mu, mu)


def _near(y: Vector, eta: Vector, own: Vector) -> Slopes:
    mu = LOG.mean(eta)
    return Slopes(y * eta - mu, y - mu, mu)


def _deviance(y: Vector, mean: Vector, own: Vector) -> Vector:
    from scipy.special import xlogy

    return np.asarray(2 * (xlogy(y, y / mean) - (y - mean)))


def _at_most(k: Vector, eta: Vector, own: Vector, trials: Vector) -> Vector:
    from scipy.special import pdtr

    return np.asarray(pdtr(k, LOG.mean(eta)))


def _draw(eta: Vector, own: Vector, trials: Vector, rng: np.random.Generator) -> Vector:
    return np.asarray(rng.poisson(LOG.mean(eta)).astype(np.float64))


def _draw_released(
    eta: Vector, size: Vector | None, spread: Spread, rng: np.random.Generator
) -> tuple[Vector, Vector | None]:
    """Counts whose variances are their dispersion times their means, or these if it is 1."""
    mean = LOG.mean(eta) * (1.0 if size is None else size)
    if (mean > counts.MOST).any():
        raise DataError(
            f"The model expects counts above {counts.MOST:.0e} for some rows.",
            "Whole numbers so large are not told apart by doubles.",
            "Give a smaller exposure, or rows like those of the release.",
            about="rows",
        )
    more = spread.dispersion - 1
    if more > 0:
        mean = rng.gamma(np.maximum(mean, 1e-300) / more, more)
    return np.asarray(rng.poisson(mean)), None


POISSON = Family(
    name="poisson",
    of="counts",
    link=LOG,
    law=_law,
    near=_near,
    refuse=counts.refuse("poisson"),
    start=_law,
    separated=counts.separated,
    variance=lambda eta, own: LOG.mean(eta),
    deviance=_deviance,
    at_most=_at_most,
    ends=counts.ends,
    draw=_draw,
    counts=True,
    heaviest=1e8,
    wider=' If rows vary more than the family, fit "negative-binomial".',
    private=PrivateFamily(
        drawn="counts are Poisson with the model's means, or negative binomial where the release has a dispersion, "
        "and may lie above the bounds into which responses were pulled; ",
        draw=_draw_released,
        largest=lambda bounds: None,
        choice="a count, by the logarithm",
        example=(0, 20),
        squares=Fraction(1, 10),
        usual=0.1,
        dispersed=True,
    ),
)
