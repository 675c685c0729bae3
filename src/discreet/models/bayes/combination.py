"""Two ways from the probabilities within parts to one of all rows: by normality, or by Fisher's combination."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.bayes.doubts import rarely
from discreet.models.bayes.expected import normal_and_laplace
from discreet.models.bayes.halves import corrects, extrapolated, lost
from discreet.models.bayes.partition import balanced
from discreet.models.bayes.reach import ALL_ROWS, NOISE_ALONE, reach_of
from discreet.models.bayes.summation import LaplaceSums, noisy_sums
from discreet.privacy.guarantee import Basis, Calibration, is_tight
from discreet.privacy.losses import Pure
from discreet.words.errors import PrivacyError
from discreet.words.faults import Argument

if TYPE_CHECKING:
    from discreet.noise.source import Source

# Posterior deviations that an answer from parts is off for each M (p + 1) / sqrt(n), where p = 2: by errors of skewness
# 2 if nothing is done, since a part's estimate and its error variance then move together, which moves the mean of p_j
# by 0.094 skewness / sqrt(m); and what is left of lognormal errors, of skewness 6, by Hall's transformation.
BIAS, LEFT = 0.22, 0.17
SLACK = 1.4  # what heavy tails, far values and unequal variances add to the deviation of parts from all rows
SCATTER = (1 / 2, 2)  # of the parts over the model's: answers far from 1/2 depend on it
MOST = 1.6  # up to which extrapolated probabilities rise with a cut-off
# Variance of one part's probability given the answer of all rows, over that of the answer: of Phi(U), U normal, and of
# 2 Phi((U + V) / sqrt(2)) - (Phi(U) + Phi(V)) / sqrt(2), which halves make.
OWN = math.pi / 3 - 1
OWN_OF_HALVES = 5 * math.pi / 3 - 8 * math.sqrt(2) * math.asin(math.sqrt(2) / 4) - 1
LOOK = Fraction(1, 5)  # share of epsilon: there are few parts, so that the look needs more than those of quantiles

Method: TypeAlias = Literal["normality", "-2 log p"]


@dataclass(frozen=True, slots=True)
class Normality:
    """Phi(c Phi^-1(mean p_j)): the mean is a probability under a normal law c^2 times as wide as the posterior."""

    calibration: Calibration = "tight"

    basis: ClassVar[Basis] = "proved"

    @property
    def extrapolates(self) -> bool:
        """Whether parts answer by way of their halves, if these are large enough."""
        return is_tight(self.calibration)

    @property
    def covers(self) -> str:
        return ALL_ROWS if is_tight(self.calibration) else NOISE_ALONE

    @property
    def look(self) -> Fraction:
        """Share of epsilon for a look at the model."""
        return LOOK if is_tight(self.calibration) else Fraction(0)

    def best_parts(self, rows: int, coefficients: int, epsilon: Fraction) -> float:
        # Noise of variance 2 / (M epsilon)^2 in the mean is magnified by c / phi(0), c^2 = 2 M.
        return balanced(8 * math.pi, bias=BIAS, rows=rows, coefficients=coefficients, epsilon=epsilon)

    def ends(
        self, sums: LaplaceSums, M: int, off: Vector, one_in: Vector, *, rows: int, coefficients: int
    ) -> tuple[Vector, Vector]:
        """Between which the answer of all rows lies; `off` are posterior deviations that a look at the model allows.

        One row in `one_in` carries the coefficient.

        Given the whole's estimate, a mean of Phi(U), U normal, still varies by 1/12 - 1/(4 pi) for each part. Parts add
        variance, skewed errors a bias. All in posterior deviations, then on the scale of the sum. Parts that scatter r
        times as widely as the model says would need the scale sqrt(M (1 + r^2)), and sqrt(2 M) is used.
        """
        from scipy.special import ndtr, ndtri

        if not is_tight(self.calibration):
            return self.combine(sums.value - sums.reach, M), self.combine(sums.value + sums.reach, M)
        skewed = LEFT * (coefficients + 1) * (M - 1) / math.sqrt(rows)
        one = M / math.sqrt(2 * math.pi * (2 * M - 1))
        reach = [
            reach_of(
                SLACK * self._own(M, rows, coefficients, few) * one,
                scale,
                off=(skewed * rarely(few) + more) * one,
            )
            for scale, more, few in zip(sums.scale.tolist(), off.tolist(), one_in.tolist(), strict=True)
        ]
        less, more = (math.sqrt((1 + (1 - 1 / M) * r**2) / (2 - 1 / M)) for r in SCATTER)
        halved = corrects(rows, M, coefficients)
        low, high = (ndtri(self.combine(sums.value + sign * np.array(reach), M, halved=halved)) for sign in (-1, 1))
        return ndtr(low * np.where(low < 0, more, less)), ndtr(high * np.where(high > 0, more, less))

    def expected(self, M: int, *, rows: int, coefficients: int, epsilon: float) -> tuple[float, float, float | None]:
        """Expected error of an answer near 1/2, by all, by noise and by parts; the last has no theory in the thesis."""
        if not is_tight(self.calibration):
            noise = self._error(0.0, 1 / epsilon, M)
            return noise, noise, None
        own = self._own(M, rows, coefficients) * M / math.sqrt(2 * math.pi * (2 * M - 1))
        return self._error(own, 1 / epsilon, M), self._error(0.0, 1 / epsilon, M), self._error(own, 0.0, M)

    def _error(self, deviation: float, scale: float, M: int) -> float:
        value, weight = normal_and_laplace(deviation, scale)
        return float(np.abs(self.combine(M / 2 + value, M) - 0.5) @ weight)

    def _own(self, M: int, rows: int, coefficients: int, one_in: float = 0.0) -> float:
        """The deviation of what parts say together around what all rows say, in posterior deviations."""
        own = OWN_OF_HALVES if corrects(rows, M, coefficients) else OWN
        return math.sqrt(own * (1 - 1 / M) + lost(rows, M, coefficients, one_in))

    def noisy(self, p: Matrix, epsilons: Sequence[Fraction], source: Source) -> LaplaceSums:
        return noisy_sums(p, span=1.0, epsilons=epsilons, source=source)

    def answer(self, total: Vector, M: int, *, rows: int, coefficients: int) -> Vector:
        """What is published for the noisy sums."""
        return self.combine(total, M, halved=is_tight(self.calibration) and corrects(rows, M, coefficients))

    def combine(self, total: Vector, M: int, *, halved: bool = False) -> Vector:
        """The probability that a sum over M parts stands for; `halved`, if they are extrapolated from their halves."""
        from scipy.special import ndtr, ndtri

        mean = np.clip(total / M, math.ulp(0.0), 1 - math.ulp(0.5))
        cut = _before_extrapolation(mean) if halved else ndtri(mean)
        return np.asarray(ndtr(math.sqrt(M if not is_tight(self.calibration) else 2 * M - 1) * cut))

    def exact(self, p: Matrix) -> Vector:
        """What the parts say together, without noise: confidential."""
        return self.combine(p.sum(axis=0), len(p))

    def proved(self, M: int, loss: Pure) -> Pure:
        """The loss that the noise proves for M parts."""
        return loss


@dataclass(frozen=True, slots=True)
class LogProbabilities:
    """1 - F(-2 sum log p_j), Fisher's combination, with p_j below `floor` counted as `floor`."""

    calibration: Calibration = "tight"
    floor: float = 0.001

    def __post_init__(self) -> None:
        if isinstance(self.floor, bool | str) or not 0 < self.floor < 1:
            raise PrivacyError(
                (Argument("floor", self.floor), " is not a probability."),
                "It is the smallest probability that counts and lies strictly between 0 and 1.",
                ("Use for example ", Argument("floor", 0.001), "."),
                about="floor",
            )

    @property
    def basis(self) -> Basis:
        return "as published" if not is_tight(self.calibration) else "proved"

    @property
    def span(self) -> float:
        return -2 * math.log(self.floor)

    covers: ClassVar[str] = NOISE_ALONE
    extrapolates: ClassVar[bool] = False
    look: ClassVar[Fraction] = Fraction(0)

    def best_parts(self, rows: int, coefficients: int, epsilon: Fraction) -> float:
        # Noise costs span^2 / (2 M epsilon^2); parts whose p_j are not quite uniform cost ((p + 1) M^1.5 / 2 n)^2.
        return math.sqrt(math.sqrt(2 / 3) * self.span * rows / (coefficients + 1) / float(epsilon))

    def ends(
        self, sums: LaplaceSums, M: int, off: Vector, one_in: Vector, *, rows: int, coefficients: int
    ) -> tuple[Vector, Vector]:
        """This is of the noise only: the rest is unknown."""
        return self.combine(sums.value + sums.reach, M), self.combine(sums.value - sums.reach, M)

    def expected(self, M: int, *, rows: int, coefficients: int, epsilon: float) -> tuple[float, float, float | None]:
        """Expected error by noise of an answer near 1/2; nothing is known of the rest."""
        from scipy.special import chdtri

        value, weight = normal_and_laplace(0.0, self.span / (epsilon * (M if not is_tight(self.calibration) else 1)))
        noise = float(np.abs(self.combine(float(chdtri(2 * M, 0.5)) + value, M) - 0.5) @ weight)
        return noise, noise, None

    def noisy(self, p: Matrix, epsilons: Sequence[Fraction], source: Source) -> LaplaceSums:
        # The published noise is that of M times the claimed epsilon.
        times = len(p) if not is_tight(self.calibration) else 1
        spent = [times * epsilon for epsilon in epsilons]
        return noisy_sums(self._terms(p), span=self.span, epsilons=spent, source=source)

    def answer(self, total: Vector, M: int, *, rows: int, coefficients: int) -> Vector:
        """What is published for the noisy sums."""
        return self.combine(total, M)

    def combine(self, total: Vector, M: int) -> Vector:
        from scipy.special import chdtrc

        return np.asarray(chdtrc(2 * M, np.maximum(total, 0.0)))

    def exact(self, p: Matrix) -> Vector:
        """What the parts say together, without noise: confidential."""
        return self.combine(self._terms(p).sum(axis=0), len(p))

    def proved(self, M: int, loss: Pure) -> Pure:
        """The loss that the noise proves for M parts."""
        return Pure(M * loss.epsilon) if not is_tight(self.calibration) else loss

    def _terms(self, p: Matrix) -> Matrix:
        return np.asarray(-2 * np.log(np.maximum(p, self.floor)))


def _before_extrapolation(mean: Vector) -> Vector:
    """The cut-off at which halves and parts of a normal law give this mean, at most MOST away from 0."""
    from scipy.special import ndtr

    low, high = np.full(np.shape(mean), -MOST), np.full(np.shape(mean), MOST)
    for _ in range(60):
        middle = (low + high) / 2
        below = extrapolated(ndtr(middle), ndtr(middle / math.sqrt(2))) < mean
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray((low + high) / 2)


Combination: TypeAlias = Normality | LogProbabilities


def combination(method: Method, calibration: Calibration, floor: float) -> Combination:
    """The way from the parts' probabilities to one."""
    if calibration not in ("tight", "paper"):
        raise PrivacyError(
            (Argument("calibration", calibration), " is unknown."),
            "It is 'tight' or 'paper'.",
            "Leave it out for tight.",
            about="calibration",
        )
    if method not in ("normality", "-2 log p"):
        raise PrivacyError(
            (Argument("method", method), " is unknown."),
            "It is 'normality' or '-2 log p'.",
            "Leave it out for normality.",
            about="method",
        )
    return Normality(calibration) if method == "normality" else LogProbabilities(calibration, floor)
