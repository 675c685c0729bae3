"""A private credible interval in one call.

The interval is a location and a half-width, not two quantiles: the location needs bounds as wide as the parts'
estimates scatter, sqrt(M) posterior deviations, while the half-widths of the parts nearly agree and their median costs
little. Both come from posteriors whose likelihood counts M times. By default the interval also covers the Laplace
noise of its own location, so that it holds its level for the coefficient and not only for the unpublished posterior.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.account import Account, Released
from discreet.bayes.conjugate import UNIT_INFORMATION, Prior, check_prior
from discreet.bayes.partition import Randomness, generator, number_of_parts, partition
from discreet.bayes.quantile import check_probabilities, clipped_mean, outermost
from discreet.bayes.regression import regression
from discreet.bayes.selection import find_magnitude
from discreet.bayes.spending import PROOF, account_for, asked, by_question, floats, known, loss_of, questions, shares
from discreet.privacy.columns import taken
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Number

if TYPE_CHECKING:
    from discreet.noise.source import Source

STAGES = {
    "centre": Fraction(1, 5),
    "width": Fraction(3, 20),
    "mean": Fraction(1, 2),
    "spread": Fraction(3, 20),
}


@dataclass(frozen=True, slots=True)
class Intervals:
    """Private credible intervals, one for each coefficient.

    Attributes
    ----------
    low, high : the interval's ends.
    location : the private posterior median.
    half_width : the private half-width of the posterior's own interval, without the noise.
    scale : of the Laplace noise in `location`.
    partitions : the number M of parts.
    notes : where the centre is the last that was sought, so that the answer may be cut off.
    """

    coefficient: tuple[str, ...]
    level: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    location: tuple[float, ...]
    half_width: tuple[float, ...]
    scale: tuple[float, ...]
    partitions: int
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        rows = zip(self.coefficient, self.level, self.low, self.high, strict=True)
        answers = [f"{c}: {level:.4g} credible in [{low:.6g}, {high:.6g}]" for c, level, low, high in rows]
        return "\n".join([*answers, *(f"Note: {note}" for note in self.notes)])


def posterior_interval(
    formula: str,
    data: Any,
    coefficient: str | Sequence[str],
    *,
    level: float | Sequence[float] = 0.95,
    epsilon: Number,
    public: Sequence[str] = (),
    prior: Prior = UNIT_INFORMATION,
    unit: float = 1.0,
    cover_noise: bool = True,
    partitions: int | None = None,
    split: Mapping[str, Number] | None = None,
    stages: Mapping[str, Number] | None = None,
    account: Account | None = None,
    name: str | None = None,
    seed: int | None = None,
    rng: Randomness = None,
) -> Released[Intervals]:
    """Release credible intervals of coefficients, under one budget for all of them.

    Parameters
    ----------
    formula, data : a regression such as "y ~ x + sector" and a frame, a mapping of columns or a file.
    coefficient, level : a name and a level in (0, 1), or several of either; they pair up.
    public : the columns whose levels everybody may know; every category of the formula must be one of them.
    epsilon : the loss of all intervals together, divided equally or as `split` says for each coefficient.
    unit : a rough public size of the coefficients.
    cover_noise : widen the interval so that it holds its level with the noise; False keeps the posterior's own width.
    stages : how `epsilon` is spent on "centre", "width", "mean" and "spread".
    partitions : the number M of parts; by default the one with the least error.
    account, name : the budget to charge and the release's name in it; by default a budget of its own, in memory.
    seed : makes the noise reproducible and the release not private. `rng` seeds the partition, which is harmless.
    """
    loss = loss_of(epsilon)
    check_prior(prior)
    names, levels = questions(coefficient, level)
    check_probabilities(levels)
    spend = shares(stages, STAGES, epsilon=loss.epsilon)
    spread = spend.pop("spread") / loss.epsilon
    plan = clipped_mean("private", "tight", unit, spend, epsilon=sum(spend.values(), Fraction(0)))
    amounts = by_question(names, split, epsilon=loss.epsilon)
    account = account_for(account, loss, seed=seed, name=name)
    model = regression(formula, data, names, public=public, unit=account.unit)
    shuffle = generator(rng)
    columns, n, p = model.columns(names), len(model.y), len(model.names)
    prior.check(p)
    least = min(amounts) * (1 - spread)
    M = number_of_parts(partitions, rows=n, coefficients=p, best=plan.best_parts(n / (p + 1), least))
    plan.check(M, least, whole=loss.epsilon, questions=len(names))

    def draw(source: Source) -> Intervals:
        parts = partition(model.X, model.y, M, shuffle)
        posterior = prior.posterior(parts, columns, power=M)
        median = posterior.quantile(np.full(len(names), 0.5))
        reach = (posterior.quantile((1 + levels) / 2) - posterior.quantile((1 - levels) / 2)) / 2
        found = [
            (
                plan.release(median[:, k], epsilon=e * (1 - spread), source=source),
                find_magnitude(reach[:, k], unit=unit, epsilon=e * spread, source=source),
            )
            for k, e in enumerate(amounts)
        ]
        half = [
            covering(h, at.scale, level) if cover_noise else h
            for (at, h), level in zip(found, levels.tolist(), strict=True)
        ]
        return Intervals(
            names,
            floats(levels),
            tuple(at.mean - h for (at, _), h in zip(found, half, strict=True)),
            tuple(at.mean + h for (at, _), h in zip(found, half, strict=True)),
            tuple(at.mean for at, _ in found),
            tuple(h for _, h in found),
            tuple(at.scale for at, _ in found),
            M,
            tuple(outermost(name, unit) for name, (at, _) in zip(names, found, strict=True) if at.outermost),
        )

    return account.release(
        name,
        guarantee=Guarantee(account.unit, loss, "tight", "proved", PROOF, (known(model.public),)),
        draw=draw,
        details=asked(
            *("posterior interval", formula, names, M),
            level=floats(levels),
            unit=float(unit),
            cover_noise=bool(cover_noise),
            calibration="tight",
            **taken(account.unit, model.public),
        ),
    )


def covering(half_width: float, scale: float, level: float) -> float:
    """The h with P(|posterior + noise| <= h) = level, for a normal posterior of this half-width at this level."""
    from scipy.special import log_ndtr, ndtr, ndtri

    sigma = half_width / float(ndtri((1 + level) / 2))
    r = sigma / scale

    def above(h: float) -> float:
        """P(normal + Laplace > h)."""
        z = h / sigma
        left = math.exp(r**2 / 2 - z * r + float(log_ndtr(z - r)))
        right = math.exp(r**2 / 2 + z * r + float(log_ndtr(-z - r)))
        return float(ndtr(-z)) + (left - right) / 2

    low, high = half_width, half_width - scale * math.log((1 - level) / 2) * 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) > (1 - level) / 2 else (low, middle)
    return high
