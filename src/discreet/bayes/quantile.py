"""Private posterior quantiles, from the quantiles within disjoint parts whose likelihood counts M times.

Amitai (2018, section 4) after Li, Srivastava and Dunson (2017): with the likelihood to the power M, a part's posterior
is as wide as the whole data set's, and the mean of the parts' quantiles estimates the whole's. The mean needs bounds.
The thesis finds them around zero by the sparse vector and names what is missing: a private centre. Here the centre is
found first, then the width around it, then the mean of what lies within (docs/proofs/posterior.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from discreet.arrays import Vector
from discreet.bayes.conjugate import UNIT_INFORMATION, Prior, check_prior
from discreet.bayes.halves import in_parts, lost
from discreet.bayes.partition import Randomness, balanced, generator, number_of_parts
from discreet.bayes.reach import ALL_ROWS, NOISE_ALONE, TRUST, band, reach_of
from discreet.bayes.regression import regression
from discreet.bayes.selection import COARSEST, SURE, doubling_bound, find_centre, find_width
from discreet.bayes.spending import (
    PROOF,
    account_for,
    asked,
    by_question,
    floats,
    known,
    loss_of,
    only,
    questions,
    shares,
)
from discreet.bayes.summation import noisy_sums
from discreet.errors import Infeasible, PrivacyError
from discreet.faults import NOTHING, Argument, Phrase, Spelled, Subject, Symbol
from discreet.privacy.columns import taken
from discreet.privacy.guarantee import Calibration, Guarantee
from discreet.privacy.losses import Number
from discreet.release.account import Account, Released

if TYPE_CHECKING:
    from discreet.noise.source import Source

Centre: TypeAlias = Literal["private", "zero"]

STAGES = {
    "private": {"centre": Fraction(1, 5), "width": Fraction(1, 5), "mean": Fraction(3, 5)},
    "zero": {"bounds": Fraction(1, 2), "mean": Fraction(1, 2)},
}
ONE_DEVIATION = 0.6827  # of a normal law, within one standard deviation
DEVIATIONS = 2.35  # what lies further out is clipped: wider bounds cost more in noise than clipping costs in bias
# Share of the parts that zero-centred bounds should hold. The thesis does not print its own. In its setting less than
# 0.6 clips too much, and from 0.8 on the doubling often goes on for long: noise hides that all parts are within.
WITHIN = 0.65
AROUND_ZERO = Spelled(
    ", or in Python centre='zero', whose noise is larger when the quantile is far from zero", plan="", command=""
)
# Posterior deviations that a mean of parts is off for each M (p + 1) / sqrt(n): measured on somewhat curved data.
BIAS = 1 / 24
NOISE = 2 * (2 * DEVIATIONS) ** 2  # variance of the noise in units of the posterior's, times M epsilon^2


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Private posterior quantiles, one for each question.

    Attributes
    ----------
    quantile : the private answers.
    low, high : the answer of all rows at once lies between them with probability 0.95, if the model is right; around
        zero, where nothing tells how the parts scatter, what would have been answered without noise.
    centre, width : the private bounds, centre -+ width, to which the parts' quantiles were clipped.
    partitions : the number M of parts.
    notes : where a bound is the last that was sought, so that the answer may be cut off.
    covers : what `low` and `high` hold.
    """

    coefficient: tuple[str, ...]
    probability: tuple[float, ...]
    quantile: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    centre: tuple[float, ...]
    width: tuple[float, ...]
    partitions: int
    notes: tuple[str, ...] = ()
    covers: str = ALL_ROWS

    def __float__(self) -> float:
        return only(self.quantile)

    def __str__(self) -> str:
        rows = zip(self.coefficient, self.probability, self.quantile, self.low, self.high, strict=True)
        label = band(self.covers)
        answers = [f"Q({c}, {q:g}) = {v:.6g}  ({label}: {low:.6g} to {high:.6g})" for c, q, v, low, high in rows]
        return "\n".join([*answers, TRUST, *(f"Note: {note}" for note in self.notes)])


def posterior_quantile(
    formula: str,
    data: Any,
    coefficient: str | Sequence[str],
    *,
    probability: float | Sequence[float],
    epsilon: Number,
    public: Sequence[str] = (),
    prior: Prior = UNIT_INFORMATION,
    centre: Centre = "private",
    unit: float = 1.0,
    partitions: int | None = None,
    calibration: Calibration = "tight",
    split: Mapping[str, Number] | None = None,
    stages: Mapping[str, Number] | None = None,
    account: Account | None = None,
    name: str | None = None,
    seed: int | None = None,
    rng: Randomness = None,
) -> Released[Quantiles]:
    """Release posterior quantiles of coefficients, under one budget for all questions.

    Parameters
    ----------
    formula, data : a regression such as "y ~ x + sector" and a frame, a mapping of columns or a file.
    coefficient, probability : a name and a probability in (0, 1), or several of either; they pair up.
    public : the columns whose levels everybody may know; every category of the formula must be one of them.
    epsilon : the loss of all answers together, divided equally or as `split` says for each coefficient.
    centre : "private" finds the bounds' centre first; "zero" puts them around zero, as calibration="paper" does.
    unit : a rough public size of the coefficients. Bounds are sought from a thousandth of it to a million times it.
    stages : how `epsilon` is spent on "centre", "width" and "mean" (around zero: "bounds" and "mean").
    partitions : the number M of parts; by default the one with the least error.
    account, name : the budget to charge and the release's name in it; by default a budget of its own, in memory.
    seed : makes the noise reproducible and the release not private. `rng` seeds the partition, which is harmless.
    """
    loss = loss_of(epsilon)
    check_prior(prior)
    names, q = questions(coefficient, probability)
    check_probabilities(q)
    plan = clipped_mean(centre, calibration, unit, stages, epsilon=loss.epsilon)
    amounts = by_question(names, split, epsilon=loss.epsilon)
    account = account_for(account, loss, seed=seed, name=name)
    model = regression(formula, data, names, public=public, account=account)
    shuffle = generator(rng)
    columns, n, p = model.columns(names), len(model.y), len(model.names)
    prior.check(p)
    M = number_of_parts(partitions, rows=n, coefficients=p, best=plan.best_parts(n, p, min(amounts)))
    plan.check(M, min(amounts), whole=loss.epsilon, questions=len(names), instead=AROUND_ZERO)

    def draw(source: Source) -> Quantiles:
        ours = calibration == "tight"
        within = in_parts(prior, model.X, model.y, M, shuffle, columns, inflated=True, corrected=ours).quantile(q)
        found = [plan.release(values, epsilon=e, source=source) for values, e in zip(within.T, amounts, strict=True)]
        reach = [reach_of(math.sqrt(lost(n, M, p)) * f.scatter, f.scale) for f in found]
        answer, low, high = (tuple(f.mean + k * r for f, r in zip(found, reach, strict=True)) for k in (0, -1, 1))
        bounds = (tuple(f.centre for f in found), tuple(f.width for f in found))
        notes = tuple(outermost(name, unit) for name, f in zip(names, found, strict=True) if f.outermost)
        covers = ALL_ROWS if plan.centre == "private" else NOISE_ALONE
        return Quantiles(names, floats(q), answer, low, high, *bounds, M, notes, covers)

    return account.release(
        name,
        guarantee=Guarantee(account.unit, loss, calibration, "proved", PROOF, (known(model.public),)),
        draw=draw,
        details=asked(
            *("posterior quantile", formula, names, M),
            probability=floats(q),
            centre=plan.centre,
            unit=float(unit),
            calibration=calibration,
            **taken(account.unit, model.public, model.named),
        ),
    )


@dataclass(frozen=True, slots=True)
class Clipped:
    """A private mean of values clipped to centre -+ width, and the scale of its Laplace noise.

    `scatter` is the deviation of such a mean by the parts' own scatter, from the released width; 0 if not known.
    """

    mean: float
    scale: float
    scatter: float
    centre: float
    width: float
    outermost: bool = False


@dataclass(frozen=True, slots=True)
class ClippedMean:
    """The mean of a list without bounds, one value for each part: private bounds first, then a noisy mean.

    `shares` says which part of an epsilon each stage gets.
    """

    centre: Centre
    calibration: Calibration
    unit: float
    shares: Mapping[str, Fraction]

    def best_parts(self, rows: int, coefficients: int, epsilon: Fraction) -> float:
        """With least error, and enough for a private centre."""
        best = balanced(NOISE, bias=BIAS, rows=rows, coefficients=coefficients, epsilon=epsilon * self.shares["mean"])
        return max(best, math.ceil(SURE / (epsilon * self.shares["centre"])) if self.centre == "private" else 1)

    def check(self, M: int, epsilon: Fraction, *, whole: Fraction, questions: int, instead: Phrase = NOTHING) -> None:
        """Refuse a centre that would be chosen by noise alone; only public numbers decide.

        `epsilon` is what the poorest question spends here, `whole` what all questions and stages spend, `instead` what
        else the caller could ask for.
        """
        spent = M * float(epsilon * self.shares.get("centre", Fraction(0)))
        if self.centre == "private" and spent < SURE:
            enough = 1.005 * float(whole) * SURE / spent  # still enough when three digits are shown
            together = f" for all {questions} questions together" if questions > 1 else ""
            raise Infeasible(
                f"A private centre from {M} parts: it needs M times the epsilon of the centre to be at "
                f"least {SURE:g}, but that is {spent:.3g}.",
                remedy=(f"Raise epsilon to {enough:.3g}{together}, or use more rows or parts", instead, "."),
                about="epsilon",
            )

    def release(self, values: Vector, *, epsilon: Fraction, source: Source) -> Clipped:
        spend = {stage: share * epsilon for stage, share in self.shares.items()}
        if self.centre == "zero":
            centre, spent, last, scatter = 0.0, spend["bounds"], False, 0.0
            width = doubling_bound(
                values, unit=self.unit, share=WITHIN, epsilon=spent, source=source, calibration=self.calibration
            ) * (1 if self.calibration == "paper" else 2)  # a third of the parts is too much to clip
        else:
            cell = find_centre(values, unit=self.unit, epsilon=spend["centre"], source=source)
            centre, last = cell.middle, cell.outermost(self.unit)
            one = find_width(values, cell, share=ONE_DEVIATION, epsilon=spend["width"], source=source)
            width, scatter = DEVIATIONS * one, one / math.sqrt(len(values))
        above = (values - (centre - width))[:, None]
        total = noisy_sums(above, span=2 * width, epsilons=[spend["mean"]], source=source)
        mean, scale = (float(x[0]) / len(values) for x in (total.value, total.scale))
        return Clipped(centre - width + mean, scale, scatter, centre, width, last)


def clipped_mean(
    centre: Centre, calibration: Calibration, unit: float, stages: Mapping[str, Number] | None, *, epsilon: Fraction
) -> ClippedMean:
    """The stages of a private mean, checked before any data are read."""
    if calibration not in ("tight", "paper"):
        raise PrivacyError(
            (Argument("calibration", calibration), " is unknown."),
            "It is 'tight' or 'paper'.",
            "Leave it out for tight.",
            about="calibration",
        )
    if centre not in STAGES:
        raise PrivacyError(
            (Argument("centre", centre), " is unknown."),
            "It is 'private' or 'zero'.",
            "Leave it out for private.",
            about="centre",
        )
    if isinstance(unit, bool | str) or not (1e-100 < unit < 1e100):
        raise PrivacyError(
            (Subject(Argument("unit", unit)), " is not a size."),
            "It is a rough public size of the coefficient, above 0.",
            "Use 1.0.",
            about="unit",
        )
    where: Centre = "zero" if calibration == "paper" else centre
    amounts = shares(stages, STAGES[where], epsilon=epsilon)
    return ClippedMean(where, calibration, unit, {stage: amount / epsilon for stage, amount in amounts.items()})


def outermost(name: str, unit: float) -> str:
    """What is said of a coefficient whose private centre is at the end of the ladder."""
    return (
        f"the centre of {name} is the last that was sought, {2.0**COARSEST * unit:.3g}: the coefficient may lie "
        "beyond; give a larger `unit`"
    )


def check_probabilities(q: Vector) -> None:
    if not ((q > 0) & (q < 1)).all():
        raise PrivacyError(
            (
                Argument("probability", Symbol(f"{', '.join(f'{x:g}' for x in q)}")),
                ": a quantile exists for probabilities strictly between 0 and 1.",
            ),
            remedy="Divide percentages by 100.",
            about="probability",
        )
