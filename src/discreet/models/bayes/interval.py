"""A private credible interval in one call.

The interval is a location and a half-width, not two quantiles. The location needs bounds as wide as the scatter of the
parts' estimates, sqrt(M) posterior deviations. The half-widths of the parts nearly agree, so their median costs little.
Both come from posteriors whose likelihood counts M times. By default the interval also covers the Laplace noise of its
own location, the variance of working in parts and the effect of clipping skewed parts. So it holds its level for the
coefficient and not only for the unpublished posterior. The width of the bounds shows at no cost whether the parts'
estimates scatter more widely than the model says. If they do, the interval widens with the scatter, and a note reports
it if it is large. A look at the model says where it is in doubt.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Matrix
from discreet.models.bayes.agreement import pieces
from discreet.models.bayes.clipped import LOOK, allowed_for, clipped_mean
from discreet.models.bayes.conjugate import UNIT_INFORMATION, Prior, check_prior
from discreet.models.bayes.doubts import Doubt, before_answers, told
from discreet.models.bayes.expected import IN_DEVIATIONS, SummaryErrors, answers
from discreet.models.bayes.halves import lost
from discreet.models.bayes.partition import number_of_parts
from discreet.models.bayes.quantile import check_probabilities
from discreet.models.bayes.question import Answers, PosteriorQuestion
from discreet.models.bayes.reach import TRUST, reach_of
from discreet.models.bayes.regression import Known
from discreet.models.bayes.selection import find_magnitude
from discreet.models.bayes.spending import PROOF, asked, by_question, floats, loss_of, public_note, questions, whole
from discreet.models.bayes.within import Within, in_parts
from discreet.privacy.columns import taken
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Loss, Number
from discreet.privacy.split import read_split
from discreet.privacy.units import Unit
from discreet.release.account import Account, Released
from discreet.release.offer import Offer
from discreet.release.payer import Payer
from discreet.release.question import Question, releases

if TYPE_CHECKING:
    from discreet.data.frames import AnyFrame
    from discreet.noise.source import Source

STAGES = {
    "centre": Fraction(3, 10),
    "width": Fraction(3, 20),
    "mean": Fraction(33, 100),
    "spread": Fraction(3, 25),
    "look": Fraction(1, 10),
}
WIDER = 1.6  # scatter of the parts over the model's from which a note says so; the ladder alone makes up to 1.1


@dataclass(frozen=True, slots=True, repr=False)
class Intervals(Answers):
    """Private credible intervals, one for each coefficient.

    Attributes
    ----------
    low, high : the interval's ends.
    location : the private posterior median.
    half_width : the private half-width of the posterior's own interval, without the noise.
    scale : of the Laplace noise in `location`.
    partitions : the number M of parts.
    scatter : what the parts' own scatter says of the deviation of `location`, from the private bounds.
    notes : why an interval should not be trusted: parts that are too small, a model in doubt, parts that scatter
        differently from the model, or a centre at the end of the search.
    flag : the words for it, one text for each answer.
    """

    coefficient: tuple[str, ...]
    level: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    location: tuple[float, ...]
    half_width: tuple[float, ...]
    scale: tuple[float, ...]
    scatter: tuple[float, ...]
    partitions: int
    notes: tuple[str, ...] = ()
    flag: tuple[str, ...] = ()

    def _answered(self) -> tuple[str, Sequence[float], Sequence[float]]:
        return "interval", self.level, self.location

    def __str__(self) -> str:
        rows = zip(self.coefficient, self.level, self.low, self.high, strict=True)
        answers = [f"{c}: {level:.4g} credible in [{low:.6g}, {high:.6g}]" for c, level, low, high in rows]
        return before_answers(self.notes, answers, TRUST)


@releases
def posterior_interval(
    formula: str,
    coefficient: str | Sequence[str],
    *,
    level: float | Sequence[float] = 0.95,
    epsilon: Number,
    public: Sequence[str] = (),
    numbers: Sequence[str] = (),
    prior: Prior = UNIT_INFORMATION,
    scale: float = 1.0,
    cover_noise: bool = True,
    partitions: int | None = None,
    split: Mapping[str, Number] | None = None,
    stages: Mapping[str, Number] | None = None,
    account: Account | None = None,
    ledger: str | Path | None = None,
    budget: Number | Loss | None = None,
    dataset: str | None = None,
    name: str | None = None,
    seed: int | None = None,
) -> Question[Released[Intervals]]:
    """Release credible intervals of coefficients, under one budget for all of them.

    Parameters
    ----------
    formula, data : a regression such as "y ~ x + sector" and a frame, a mapping of columns or a file.
    coefficient, level : a name and a level in (0, 1), or several of either; they pair up.
    public : the columns whose levels everybody may know; every category of the formula must be one of them.
    numbers : protected columns of numbers. A table without types, such as a CSV file, needs them declared.
    epsilon, split : the loss of all intervals together, divided equally, or by shares for each coefficient that add up
        to one.
    prior : of the coefficients and the error variance: `GPrior`, `Conjugate` or `SemiConjugate`.
    scale : a rough public size of the coefficients.
    cover_noise : widen the interval so that it holds its level with the noise and with the parts' own scatter; False
        keeps the posterior's own width.
    stages : shares of epsilon for "centre", "width", "mean", "spread" and, to look at the model, "look"; they add up
        to one.
    partitions : the number M of parts; by default the one with the least error.
    account : whose budget pays.
    ledger, budget, dataset : the ledger that pays, instead of an account; the total that opens the budget of `dataset`
        in it (leave it out once it is open); and that name. Without account and ledger the release is recorded only in
        its own guarantee.
    name : the release's name in the ledger; a name is drawn once.
    seed : makes the partition into parts and the noise reproducible, and the release not private.

    Returns
    -------
    The intervals, with notes where one should not be trusted.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 3000)
    >>> data = {"x": x, "y": 2 * x + np.random.default_rng(0).normal(size=3000)}
    >>> found = posterior_interval("y ~ x", data, "x", epsilon=8, seed=1)
    >>> found.value.low[0] < 2 < found.value.high[0]
    True
    """
    payer = Payer(account=account, ledger=ledger, budget=budget, dataset=dataset, name=name, seed=seed)
    loss = loss_of(epsilon)
    check_prior(prior)
    names, levels = questions(coefficient, level)
    check_probabilities(levels, "level")
    spend = read_split(stages, STAGES, optional=(LOOK,), name="stages")
    spread = spend.pop("spread")
    stages_left = {stage: share / (1 - spread) for stage, share in spend.items()}
    plan = replace(clipped_mean("private", "tight", scale, stages_left), given=stages is not None)
    amounts = by_question(names, split, epsilon=loss.epsilon)
    bought = [e * (1 - spread) for e in amounts]
    shuffle = np.random.default_rng(payer.partition_seed)
    if partitions is not None and whole(partitions, least=1):
        plan.check(partitions, min(bought), whole=loss.epsilon, questions=len(names))

    def offered(known: Known, protects: Unit) -> Offer[AnyFrame, tuple[Matrix, Matrix, Within], Intervals]:
        columns, n, p = known.columns(names), known.rows, len(known.names)
        prior.check(p)
        carried = known.carried(columns, protects)
        M = number_of_parts(partitions, rows=n, coefficients=p, best=plan.best_parts(n, p, min(bought), carried))
        plan.check(M, min(bought), whole=loss.epsilon, questions=len(names))
        count = pieces(n, M, p)
        sold = plan.sold(M, min(bought), count=count)
        doubts = sold.known(names, bought, carried, rows=n, M=M, p=p, count=count)
        allowed = [allowed_for(M, n, one_in) for one_in in carried.one_in.tolist()]

        def read(frame: AnyFrame) -> tuple[Matrix, Matrix, Within]:
            """The median and the half-width of each part."""
            rows = known.read(frame)
            within = in_parts(prior, rows.X, rows.y, M, shuffle, columns, inflated=True)
            upper, lower = (within.posterior.quantile((1 + sign * levels) / 2) for sign in (1, -1))
            return within.quantile(np.full(len(names), 0.5)), (upper - lower) / 2, within

        def draw(reading: tuple[Matrix, Matrix, Within], source: Source) -> Intervals:
            from scipy.special import ndtri

            median, reach, within = reading
            found = [sold.release(median[:, k], epsilon=e, source=source) for k, e in enumerate(bought)]
            tilts = sold.looks(within, bought, rows=n, coefficients=p, source=source)
            normal = [float(ndtri((1 + level) / 2)) for level in levels.tolist()]
            widths = [
                find_magnitude(reach[:, k], around=z * at.scatter, epsilon=e * spread, source=source)
                for k, (at, z, e) in enumerate(zip(found, normal, amounts, strict=True))
            ]
            own = [
                math.sqrt(1 + lost(n, M, p, one_in)) * h / z
                for h, z, one_in in zip(widths, normal, carried.one_in.tolist(), strict=True)
            ]
            off = [
                (bias + (tilt.bias if tilt else 0.0)) * at.scatter * sold.unsure(M, e)
                for bias, tilt, at, e in zip(allowed, tilts, found, bought, strict=True)
            ]
            half = [
                reach_of(max(deviation, at.scatter), at.scale, level, off=bias) if cover_noise else h
                for at, h, bias, deviation, level in zip(found, widths, off, own, levels.tolist(), strict=True)
            ]
            wide = [
                scattered(name, at.scatter / deviation) if at.scatter > WIDER * deviation else None
                for name, at, deviation in zip(names, found, own, strict=True)
            ]
            flag, notes = told([a + b for a, b in zip(doubts, sold.found(names, found, tilts, wide), strict=True)])
            return Intervals(
                names,
                floats(levels),
                tuple(at.mean - h for at, h in zip(found, half, strict=True)),
                tuple(at.mean + h for at, h in zip(found, half, strict=True)),
                tuple(at.mean for at in found),
                tuple(widths),
                tuple(at.scale for at in found),
                tuple(at.scatter for at in found),
                M,
                notes,
                flag,
            )

        def expected() -> SummaryErrors:
            errors = [sold.expected(M, rows=n, coefficients=p, epsilon=amount) for amount in bought]
            answered = answers(names, floats(levels), errors, allowed, doubts)
            return SummaryErrors("Posterior interval, its location,", n, p, M, IN_DEVIATIONS, answered, told(doubts)[1])

        guarantee = Guarantee(protects, loss, "tight", "proved", PROOF, (public_note(known.public),))
        details = asked(
            *("posterior interval", formula, names, M),
            level=floats(levels),
            unit=float(scale),
            cover_noise=bool(cover_noise),
            calibration="tight",
            **taken(protects, known.public, known.named),
        )
        return Offer(guarantee, details, expected, read, draw)

    return PosteriorQuestion(formula, names, public, numbers, payer, offered)


def scattered(name: str, times: float) -> Doubt:
    """The warning about a coefficient whose estimates scatter differently from the model."""
    return Doubt(
        "wide scatter",
        f"do not trust the interval of {name}: the parts' estimates scatter {times:.1f} times as widely as the model "
        "says, so the model does not describe these rows; the interval was widened to the scatter, and its middle "
        "may be off. "
        "Look for a curve, far values or unequal variances, or ask with fewer `partitions`",
    )
