"""A private mean of numbers without bounds, one from each part: private centre and width first, then what lies within.

The thesis (Amitai 2018, section 4) finds bounds around zero; here the centre is found first (docs/proofs/posterior.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from discreet.arrays import Vector
from discreet.models.bayes.agreement import Tilt, doubt, look, unchecked
from discreet.models.bayes.doubts import Carried, Doubt, rarely
from discreet.models.bayes.expected import mean_absolute
from discreet.models.bayes.halves import lost
from discreet.models.bayes.partition import balanced
from discreet.models.bayes.selection import (
    COARSEST,
    SECOND,
    SURE,
    SURER,
    Cell,
    doubling_bound,
    find_centre,
    find_width,
    looks_twice,
)
from discreet.models.bayes.summation import noisy_sums
from discreet.models.bayes.within import SILENT, Within
from discreet.privacy.guarantee import Calibration, is_tight
from discreet.privacy.losses import Number
from discreet.privacy.split import read_split
from discreet.words.cases import case_of
from discreet.words.errors import Infeasible, PrivacyError
from discreet.words.faults import NOTHING, Argument, Phrase, Subject

if TYPE_CHECKING:
    from discreet.noise.source import Source

Centre: TypeAlias = Literal["private", "zero"]


def is_private(centre: Centre) -> bool:
    """Whether the mean is taken around a released centre, and not around zero."""
    return case_of(centre, {"private": True, "zero": False})


LOOK = "look"  # the stage that may be left out
STAGES = {
    "private": {"centre": Fraction(3, 10), "width": Fraction(3, 20), "mean": Fraction(12, 25), LOOK: Fraction(7, 100)},
    "zero": {"bounds": Fraction(1, 2), "mean": Fraction(1, 2)},
}
# Share of a normal law that a width is to hold, and in how many deviations it lies: with a larger share noise may hide
# that all parts are within, and the search goes on for long; with a smaller one the width tells less of the deviation.
HELD, AT = 0.6, 0.8416
DEVIATIONS = 2.4  # what lies further out is clipped: wider bounds cost more in noise than clipping costs in bias
# Share of the parts that zero-centred bounds should hold. The thesis does not print its own. In its setting less than
# 0.6 clips too much, and from 0.8 on the doubling often goes on for long: noise hides that all parts are within.
WITHIN = 0.65
# Posterior deviations that a mean of parts is off for each M (p + 1) / sqrt(n): measured on somewhat curved data.
BIAS = 0.12
# The same for each M / sqrt(n), which ends allow for: what clipping takes from parts with lognormal errors, of skewness
# 6, where a tenth of the rows carries the coefficient; a slight curve makes as much.
SKEWED = 0.6
DENSITY = 0.471  # share of normal values by which what the width holds grows with the logarithm of the width
LADDER = 2.0**0.0625  # how much wider than one deviation a width found is on average: half a step of the ladder
NOISE = 2 * (2 * DEVIATIONS) ** 2  # variance of the noise in units of the posterior's, times M epsilon^2


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

    `shares` are the parts of an epsilon for each stage. Unless they were `given`, a centre that is found for less
    leaves the rest to the mean.
    """

    centre: Centre
    calibration: Calibration
    scale: float
    shares: Mapping[str, Fraction]
    given: bool = False

    def best_parts(self, rows: int, coefficients: int, epsilon: Fraction, carried: Carried) -> float:
        """The number with least error, with enough rows for each coefficient and for two looks at a private centre."""
        best = balanced(NOISE, bias=BIAS, rows=rows, coefficients=coefficients, epsilon=epsilon * self.shares["mean"])
        if not is_private(self.centre):
            return best
        enough = math.ceil((SURER + SECOND) / (epsilon * self.shares["centre"]))
        return max(min(best, carried.most_parts(rows, coefficients)), enough)

    def sold(self, M: int, epsilon: Fraction, *, count: int) -> ClippedMean:
        """This for M parts of `count` pieces: what the look and the centre do not need is left to the mean."""
        shares = dict(self.shares)
        if not count and LOOK in shares:
            shares["mean"] += shares.pop(LOOK)
        if not self.given and is_private(self.centre):
            least = SURER + SECOND if looks_twice(M, epsilon * shares["centre"]) else SURER
            spare = max(shares["centre"] - Fraction(least) / (M * epsilon), Fraction(0))
            shares |= {"centre": shares["centre"] - spare, "mean": shares["mean"] + spare}
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

    def known(
        self,
        names: Sequence[str],
        amounts: Sequence[Fraction],
        carried: Carried,
        *,
        rows: int,
        M: int,
        p: int,
        count: int,
    ) -> list[list[Doubt]]:
        """The warnings about each answer before it is paid for; ends around zero promise nothing but the noise."""
        if not is_private(self.centre):
            return [[] for _ in names]
        spent = [e * self.shares.get(LOOK, Fraction(0)) for e in amounts]
        small = carried.small_parts(names, rows=rows, parts=M, coefficients=p)
        blind = unchecked(names, count if LOOK in self.shares else 0, parts=M, epsilons=spent)
        return [a + b for a, b in zip(small, blind, strict=True)]

    def found(
        self,
        names: Sequence[str],
        found: Sequence[Clipped],
        tilts: Sequence[Tilt | None],
        scatter: Sequence[Doubt | None] = (),
    ) -> list[list[Doubt]]:
        """The warnings about each answer that was drawn; `scatter` is said of those whose tilt says nothing."""
        said: list[Doubt | None] = []
        for name, one, tilt, wide in zip(names, found, tilts, scatter or [None] * len(names), strict=True):
            if one.outermost:
                said.append(outermost(name, self.scale))
            elif one.missed:
                said.append(Doubt("no centre", MISSED.format(name=name)))
            else:
                said.append((doubt(name, tilt) if tilt else None) or wide)
        return [[each] if each else [] for each in said]

    def check(self, M: int, epsilon: Fraction, *, whole: Fraction, questions: int, instead: Phrase = NOTHING) -> None:
        """Refuse a centre that would be chosen by noise, or whose width would be; only public numbers decide.

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

        Around zero the noise is a share of the bound. A centre from a single look is coarse, so bounds are wider.
        """
        scale = 2 / (M * float(epsilon * self.shares["mean"]))
        if not is_private(self.centre):
            return scale, scale, None, False
        scale, own = scale * DEVIATIONS * LADDER * math.sqrt(M), math.sqrt(lost(rows, M, coefficients))
        once = not looks_twice(M, epsilon * self.shares["centre"])
        return mean_absolute(own, scale), scale, mean_absolute(own, 0.0), once

    def unsure(self, M: int, epsilon: Fraction) -> float:
        """The parts may scatter this many times as widely as the released width says: one deviation of its noise."""
        spent = float(epsilon * self.shares["width"]) if "width" in self.shares else math.inf
        return 1 + 4 / (spent * DENSITY * M)

    def release(self, values: Vector, *, epsilon: Fraction, source: Source) -> Clipped:
        spend = {stage: share * epsilon for stage, share in self.shares.items()}
        cell = Cell(0.0, 0.0)
        if not is_private(self.centre):
            centre, spent, scatter = 0.0, spend["bounds"], 0.0
            values = np.where(np.abs(values) < SILENT, values, 0.0)
            width = doubling_bound(
                values, unit=self.scale, share=WITHIN, epsilon=spent, source=source, calibration=self.calibration
            ) * (2 if is_tight(self.calibration) else 1)  # a third of the parts is too much to clip
        else:
            cell = find_centre(values, unit=self.scale, epsilon=spend["centre"], source=source)
            centre = cell.middle
            near = np.where(values <= -SILENT, centre, values)  # half of the silent parts lie within any width
            one = find_width(near, cell, share=HELD, epsilon=spend["width"], source=source) / AT
            width, scatter = DEVIATIONS * one, one / math.sqrt(len(values))
        above = np.where(np.abs(values) < SILENT, values - (centre - width), width)[:, None]
        total = noisy_sums(above, span=2 * width, epsilons=[spend["mean"]], source=source)
        mean, scale = (float(x[0]) / len(values) for x in (total.value, total.scale))
        return Clipped(
            centre - width + mean, scale, scatter, centre, width, cell.outermost(self.scale), missed=cell.missed
        )


def clipped_mean(
    centre: Centre, calibration: Calibration, scale: float, stages: Mapping[str, Number] | None
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
    if isinstance(scale, bool | str) or not (1e-100 < scale < 1e100):
        raise PrivacyError(
            (Subject(Argument("scale", scale)), " is not a size."),
            "It is a rough public size of the coefficient, above 0.",
            "Use 1.0.",
            about="scale",
        )
    where: Centre = centre if is_tight(calibration) else "zero"
    spent = read_split(stages, STAGES[where], optional=(LOOK,), name="stages")
    return ClippedMean(where, calibration, scale, spent, given=stages is not None)


def allowed_for(M: int, rows: int, one_in: float) -> float:
    """Posterior deviations that a mean of parts may be off by through clipped tails, which ends allow for. Public."""
    return SKEWED * (M - 1) / math.sqrt(rows) * rarely(one_in)


MISSED = (
    "the private centre of {name} was not found, which happens less than once in a thousand releases: its ends hold, "
    "but are needlessly wide; ask again"
)


def outermost(name: str, scale: float) -> Doubt:
    """The warning about a coefficient whose private centre is at the end of the ladder."""
    return Doubt(
        "end of search",
        f"the centre of {name} is the last that was sought, {2.0**COARSEST * scale:.3g}: the coefficient may lie "
        "beyond; give a larger `scale`",
    )
