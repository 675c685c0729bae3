"""Private posterior quantiles, from the quantiles within disjoint parts whose likelihood counts M times.

Amitai (2018, section 4) after Li, Srivastava and Dunson (2017): with the likelihood to the power M, a part's posterior
is as wide as the whole data set's, and the mean of the parts' quantiles estimates the whole's. The mean needs bounds.
The thesis finds them around zero by the sparse vector and names what is missing: a private centre. Here the centre is
found first, then the width around it, then the mean of what lies within (docs/proofs/posterior.md). A last share looks
whether the model is in doubt.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.bayes.agreement import UNCHECKED, Tilt, doubt, look, pieces
from discreet.bayes.conjugate import UNIT_INFORMATION, Prior, check_prior
from discreet.bayes.expected import IN_DEVIATIONS, OF_BOUND, SummaryErrors, answers, mean_absolute
from discreet.bayes.halves import lost
from discreet.bayes.partition import Randomness, balanced, generator, number_of_parts
from discreet.bayes.question import Question, answer_table
from discreet.bayes.reach import ALL_ROWS, NOISE_ALONE, TRUST, band, reach_of
from discreet.bayes.regression import Known
from discreet.bayes.selection import COARSEST, SURE, SURER, Cell, doubling_bound, find_centre, find_width, looks_twice
from discreet.bayes.spending import (
    PROOF,
    asked,
    by_question,
    floats,
    loss_of,
    only,
    public_note,
    questions,
    shares,
    whole,
)
from discreet.bayes.summation import noisy_sums
from discreet.bayes.within import SILENT, Within, in_parts
from discreet.errors import Infeasible, PrivacyError
from discreet.faults import NOTHING, Argument, Phrase, Spelled, Subject, Symbol
from discreet.privacy.columns import taken
from discreet.privacy.guarantee import Calibration, Guarantee
from discreet.privacy.losses import Number
from discreet.privacy.units import Unit
from discreet.release.account import Account, Released
from discreet.release.offer import Offer

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.formula.rows import Frame
    from discreet.noise.source import Source

Centre: TypeAlias = Literal["private", "zero"]

STAGES = {
    "private": {"centre": Fraction(1, 5), "width": Fraction(3, 20), "mean": Fraction(29, 50), "look": Fraction(7, 100)},
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
LOOK = "look"  # the stage that may be left out
# Posterior deviations that a mean of parts is off for each M (p + 1) / sqrt(n): measured on somewhat curved data.
BIAS = 1 / 24
# The same for each M / sqrt(n): what clipping takes from parts with lognormal errors, which have a skewness of 6.
SKEWED = 0.08
# Parts differ from all rows by more than normal columns and errors make them: columns with far values, rare levels.
SLACK = 1.4
LADDER = 2.0**0.0625  # how much wider than one deviation a width is on average: half a step of the ladder
NOISE = 2 * (2 * DEVIATIONS) ** 2  # variance of the noise in units of the posterior's, times M epsilon^2


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Private posterior quantiles, one for each question.

    Attributes
    ----------
    quantile : the private answers.
    low, high : the answer of all rows at once lies between them with probability 0.95, if the model is right, also with
        skewed or heavy-tailed errors; around zero, where nothing tells how the parts scatter, what would have been
        answered without noise.
    centre, width : the private bounds, centre -+ width, to which the parts' quantiles were clipped.
    partitions : the number M of parts.
    notes : where the model is in doubt or could not be looked at, where a bound is the last that was sought, so that
        the answer may be cut off, or where no centre was found.
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

    def to_arrow(self) -> pa.Table:
        """One row for each answer."""
        return answer_table(self.coefficient, at=self.probability, answer=self.quantile, low=self.low, high=self.high)

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
    stages : how `epsilon` is spent on "centre", "width", "mean" and, if the model is to be looked at, "look" (around
        zero: "bounds" and "mean").
    partitions : the number M of parts; by default the one with the least error.
    account, name : the budget to charge and the release's name in it; by default a budget of its own, in memory.
    seed : makes the noise reproducible and the release not private. `rng` seeds the partition, which is harmless.
    """
    asked: dict[str, Any] = {"probability": probability, "centre": centre, "unit": unit, "calibration": calibration}
    asked |= {"public": public, "prior": prior, "partitions": partitions, "split": split, "stages": stages, "rng": rng}
    question = ask_quantile(formula, coefficient, epsilon=epsilon, **asked)
    return question.release(data, account=account, name=name, seed=seed)


def ask_quantile(
    formula: str,
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
    rng: Randomness = None,
) -> Question[Quantiles]:
    """The question of `posterior_quantile`, checked without data: `check` it on data, then `release` it."""
    loss = loss_of(epsilon)
    check_prior(prior)
    names, q = questions(coefficient, probability)
    check_probabilities(q)
    plan = clipped_mean(centre, calibration, unit, stages, epsilon=loss.epsilon)
    amounts = by_question(names, split, epsilon=loss.epsilon)
    shuffle = generator(rng)
    if partitions is not None and whole(partitions, least=1):
        plan.check(partitions, min(amounts), whole=loss.epsilon, questions=len(names), instead=AROUND_ZERO)

    def offered(known: Known, protects: Unit) -> Offer[Frame, tuple[Matrix, Within], Quantiles]:
        columns, n, p = known.columns(names), known.rows, len(known.names)
        prior.check(p)
        M = number_of_parts(partitions, rows=n, coefficients=p, best=plan.best_parts(n, p, min(amounts)))
        plan.check(M, min(amounts), whole=loss.epsilon, questions=len(names), instead=AROUND_ZERO)
        sold = plan.with_pieces(pieces(n, M, p))

        def read(frame: Frame) -> tuple[Matrix, Within]:
            """What each part answers."""
            rows, ours = known.read(frame), calibration == "tight"
            within = in_parts(prior, rows.X, rows.y, M, shuffle, columns, inflated=True, corrected=ours)
            return within.quantile(q), within

        def draw(reading: tuple[Matrix, Within], source: Source) -> Quantiles:
            values, within = reading
            found = [sold.release(values[:, k], epsilon=e, source=source) for k, e in enumerate(amounts)]
            tilts = sold.looks(within, amounts, rows=n, coefficients=p, source=source)
            reach = [
                reach_of(SLACK * math.sqrt(lost(n, M, p)) * f.scatter, f.scale, off=off_by(M, n, tilt) * f.scatter)
                for f, tilt in zip(found, tilts, strict=True)
            ]
            answer, low, high = (tuple(f.mean + k * r for f, r in zip(found, reach, strict=True)) for k in (0, -1, 1))
            bounds = (tuple(f.centre for f in found), tuple(f.width for f in found))
            covers = ALL_ROWS if sold.centre == "private" else NOISE_ALONE
            return Quantiles(names, floats(q), answer, low, high, *bounds, M, sold.notes(names, found, tilts), covers)

        def expected() -> SummaryErrors:
            errors = [sold.expected(M, rows=n, coefficients=p, epsilon=amount) for amount in amounts]
            told, unit = answers(names, floats(q), errors), (OF_BOUND, IN_DEVIATIONS)[sold.centre == "private"]
            return SummaryErrors("Posterior quantile", n, p, M, unit, told)

        guarantee = Guarantee(protects, loss, calibration, "proved", PROOF, (public_note(known.public),))
        details = asked(
            *("posterior quantile", formula, names, M),
            probability=floats(q),
            centre=plan.centre,
            unit=float(unit),
            calibration=calibration,
            **taken(protects, known.public, known.named),
        )
        return Offer(guarantee, details, expected, read, draw)

    return Question(formula, names, public, loss, offered)


@dataclass(frozen=True, slots=True)
class Clipped:
    """A private mean of values clipped to centre -+ width, and the scale of its Laplace noise.

    `scatter` is the deviation of such a mean by the parts' own scatter, from the released width; 0 if not known.
    `outermost` is a centre at an end of the ladder, `missed` one that its second look did not find again.
    """

    mean: float
    scale: float
    scatter: float
    centre: float
    width: float
    outermost: bool = False
    missed: bool = False


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
        return max(best, math.ceil(SURER / (epsilon * self.shares["centre"])) if self.centre == "private" else 1)

    def with_pieces(self, count: int) -> ClippedMean:
        """This, if parts have pieces to compare with; else the mean gets the share of the look."""
        if count or LOOK not in self.shares:
            return self
        shares = dict(self.shares)
        shares["mean"] += shares.pop(LOOK)
        return replace(self, shares=shares)

    def looks(
        self, within: Within, amounts: Sequence[Fraction], *, rows: int, coefficients: int, source: Source
    ) -> list[Tilt | None]:
        """The tilt of each question, where the model is looked at."""
        if LOOK not in self.shares:
            return [None] * len(amounts)
        ask = partial(look, count=within.count, rows=rows, coefficients=coefficients, source=source)
        spent = [e * self.shares[LOOK] for e in amounts]
        return [ask(column, epsilon=e) for column, e in zip(within.differences.T, spent, strict=True)]

    def notes(
        self, names: Sequence[str], found: Sequence[Clipped], tilts: Sequence[Tilt | None], scatter: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """What has to be known of each answer; `scatter` is said of those whose tilt says nothing."""
        said: list[str | None] = []
        for name, one, tilt, wide in zip(names, found, tilts, scatter or [""] * len(names), strict=True):
            if one.outermost:
                said.append(outermost(name, self.unit))
            elif one.missed:
                said.append(MISSED.format(name=name))
            else:
                said.append((doubt(name, tilt) if tilt else None) or wide)
        if self.centre == "private" and None in tilts:
            said.append(UNCHECKED)
        return tuple(dict.fromkeys(note for note in said if note))

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

    def expected(
        self, M: int, *, rows: int, coefficients: int, epsilon: Fraction
    ) -> tuple[float, float, float | None, bool]:
        """Expected error of a mean by all, by noise and by parts, in posterior deviations, and whether it is the least.

        Around zero the noise is a share of the bound. A centre from a single look is coarse, so that bounds are wider.
        """
        scale = 2 / (M * float(epsilon * self.shares["mean"]))
        if self.centre == "zero":
            return scale, scale, None, False
        scale, own = scale * DEVIATIONS * LADDER * math.sqrt(M), math.sqrt(lost(rows, M, coefficients))
        once = not looks_twice(M, epsilon * self.shares["centre"])
        return mean_absolute(own, scale), scale, mean_absolute(own, 0.0), once

    def release(self, values: Vector, *, epsilon: Fraction, source: Source) -> Clipped:
        spend = {stage: share * epsilon for stage, share in self.shares.items()}
        cell = Cell(0.0, 0.0)
        if self.centre == "zero":
            centre, spent, scatter = 0.0, spend["bounds"], 0.0
            values = np.where(np.abs(values) < SILENT, values, 0.0)
            width = doubling_bound(
                values, unit=self.unit, share=WITHIN, epsilon=spent, source=source, calibration=self.calibration
            ) * (1 if self.calibration == "paper" else 2)  # a third of the parts is too much to clip
        else:
            cell = find_centre(values, unit=self.unit, epsilon=spend["centre"], source=source)
            centre = cell.middle
            one = find_width(values, cell, share=ONE_DEVIATION, epsilon=spend["width"], source=source)
            width, scatter = DEVIATIONS * one, one / math.sqrt(len(values))
        above = np.where(np.abs(values) < SILENT, values - (centre - width), width)[:, None]
        total = noisy_sums(above, span=2 * width, epsilons=[spend["mean"]], source=source)
        mean, scale = (float(x[0]) / len(values) for x in (total.value, total.scale))
        return Clipped(
            centre - width + mean, scale, scatter, centre, width, cell.outermost(self.unit), missed=cell.missed
        )


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
    amounts = shares(stages, STAGES[where], epsilon=epsilon, optional=(LOOK,))
    return ClippedMean(where, calibration, unit, {stage: amount / epsilon for stage, amount in amounts.items()})


def off_by(M: int, rows: int, tilt: Tilt | None) -> float:
    """Posterior deviations that a mean of parts may be off by: clipped tails, and what the tilt says of a curve."""
    return SKEWED * (M - 1) / math.sqrt(rows) + (tilt.bias if tilt else 0.0)


MISSED = (
    "the private centre of {name} was not found, which happens less than once in a thousand releases: its ends hold, "
    "but are needlessly wide; ask again"
)


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
