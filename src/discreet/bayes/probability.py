"""Private posterior probabilities P(beta <= b), from the probabilities within disjoint parts.

Two methods of Amitai (2018, section 3), each with its correction:

- normality: Phi(c Phi^-1(mean p_j + noise)). The thesis has c = sqrt(M), which ignores that the parts' own estimates
  scatter as widely as their posteriors; with that scatter c = sqrt(2 M - 1), the default. A share of epsilon looks
  whether the model is in doubt.
- "-2 log p": 1 - F(-2 sum log p_j + noise), F of the chi-squared law with 2 M degrees. One part can move the sum by
  T = -2 log(floor), so the noise is Laplace(T / epsilon). The thesis divides by M once too often: not private.

Derivations are in docs/proofs/posterior.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.bayes.agreement import UNCHECKED, doubt, look, pieces
from discreet.bayes.conjugate import UNIT_INFORMATION, Prior, check_prior
from discreet.bayes.expected import PROBABILITY, SummaryErrors, answers, normal_and_laplace
from discreet.bayes.halves import lost
from discreet.bayes.partition import Randomness, balanced, generator, number_of_parts
from discreet.bayes.question import Question, answer_table
from discreet.bayes.reach import ALL_ROWS, NOISE_ALONE, TRUST, band, reach_of
from discreet.bayes.regression import Known
from discreet.bayes.spending import PROOF, asked, by_question, floats, loss_of, only, public_note, questions
from discreet.bayes.summation import LaplaceSums, noisy_sums
from discreet.bayes.within import Within, in_parts
from discreet.errors import PrivacyError
from discreet.faults import Argument
from discreet.privacy.columns import taken
from discreet.privacy.guarantee import Basis, Calibration, Guarantee
from discreet.privacy.losses import Number, Pure
from discreet.privacy.units import Unit
from discreet.release.account import Account, Released
from discreet.release.offer import Offer

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.formula.rows import Frame
    from discreet.noise.source import Source

# Posterior deviations that an answer from parts is off for each M (p + 1) / sqrt(n), where p = 2: by errors of skewness
# 2 if nothing is done, since a part's estimate and its error variance then move together, which moves the mean of p_j
# by 0.094 skewness / sqrt(m); and what is left of lognormal errors, of skewness 6, by Hall's transformation.
BIAS, LEFT = 0.22, 0.17
SLACK = 1.4  # what heavy tails, far values and unequal variances add to the deviation of parts from all rows
SCATTER = (2 / 3, 3 / 2)  # of the parts over the model's: answers far from 1/2 depend on it
LOOK = Fraction(1, 5)  # share of epsilon: there are few parts, so that the look needs more than those of quantiles

Method: TypeAlias = Literal["normality", "-2 log p"]


@dataclass(frozen=True, slots=True)
class Probabilities:
    """Private P(beta <= at), one for each question.

    Attributes
    ----------
    probability : the private answers.
    low, high : the answer of all rows at once lies between them with probability 0.95, if the model is right, also with
        skewed or heavy-tailed errors; for "-2 log p" and the thesis's constants, which have no theory, what would have
        been answered without noise.
    partitions : the number M of parts.
    covers : which of these two.
    notes : where the model is in doubt, or could not be looked at.
    """

    coefficient: tuple[str, ...]
    at: tuple[float, ...]
    probability: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    partitions: int
    method: Method
    covers: str = ALL_ROWS
    notes: tuple[str, ...] = ()

    def __float__(self) -> float:
        return only(self.probability)

    def to_arrow(self) -> pa.Table:
        """One row for each answer."""
        return answer_table(self.coefficient, at=self.at, answer=self.probability, low=self.low, high=self.high)

    def __str__(self) -> str:
        rows = zip(self.coefficient, self.at, self.probability, self.low, self.high, strict=True)
        label = band(self.covers)
        answers = [f"P({c} <= {b:g}) = {p:.4f}  ({label}: {low:.4f} to {high:.4f})" for c, b, p, low, high in rows]
        return "\n".join([*answers, TRUST, *(f"Note: {note}" for note in self.notes)])


def posterior_probability(
    formula: str,
    data: Any,
    coefficient: str | Sequence[str],
    *,
    at: float | Sequence[float],
    epsilon: Number,
    public: Sequence[str] = (),
    prior: Prior = UNIT_INFORMATION,
    method: Method = "normality",
    partitions: int | None = None,
    calibration: Calibration = "tight",
    floor: float = 0.001,
    split: Mapping[str, Number] | None = None,
    account: Account | None = None,
    name: str | None = None,
    seed: int | None = None,
    rng: Randomness = None,
) -> Released[Probabilities]:
    """Release P(coefficient <= at) under one budget for all questions.

    Parameters
    ----------
    formula, data : a regression such as "y ~ x + sector" and a frame, a mapping of columns or a file.
    coefficient, at : a name and a cut-off, or several of either; they pair up.
    public : the columns whose levels everybody may know; every category of the formula must be one of them.
    epsilon : the loss of all answers together, divided equally or as `split` says for each coefficient.
    method : "normality", or "-2 log p" with probabilities below `floor` counted as `floor`.
    partitions : the number M of parts; by default the one with the least error.
    calibration : "paper" for the thesis's constants. Those of "-2 log p" are not private as published: the release says
        so first, and an account is charged what is proved, M epsilon.
    account, name : the budget to charge and the release's name in it; by default a budget of its own, in memory.
    seed : makes the noise reproducible and the release not private. `rng` seeds the partition, which is harmless.
    """
    question = ask_probability(
        formula,
        coefficient,
        at=at,
        epsilon=epsilon,
        public=public,
        prior=prior,
        method=method,
        partitions=partitions,
        calibration=calibration,
        floor=floor,
        split=split,
        rng=rng,
    )
    return question.release(data, account=account, name=name, seed=seed)


def ask_probability(
    formula: str,
    coefficient: str | Sequence[str],
    *,
    at: float | Sequence[float],
    epsilon: Number,
    public: Sequence[str] = (),
    prior: Prior = UNIT_INFORMATION,
    method: Method = "normality",
    partitions: int | None = None,
    calibration: Calibration = "tight",
    floor: float = 0.001,
    split: Mapping[str, Number] | None = None,
    rng: Randomness = None,
) -> Question[Probabilities]:
    """The question of `posterior_probability`, checked without data: `check` it on data, then `release` it."""
    loss = loss_of(epsilon)
    check_prior(prior)
    names, cuts = questions(coefficient, at)
    amounts = by_question(names, split, epsilon=loss.epsilon)
    way = combination(method, calibration, floor)
    shuffle = generator(rng)

    def offered(known: Known, unit: Unit) -> Offer[Frame, tuple[Matrix, Within], Probabilities]:
        columns, n, p = known.columns(names), known.rows, len(known.names)
        prior.check(p)
        best = way.best_parts(n, p, min(amounts) * (1 - way.look))
        M = number_of_parts(partitions, rows=n, coefficients=p, best=best)
        count = pieces(n, M, p) if way.look else 0
        share = way.look if count else Fraction(0)
        bought = [e * (1 - share) for e in amounts]

        def read(frame: Frame) -> tuple[Matrix, Within]:
            """What each part answers."""
            rows, ours = known.read(frame), calibration == "tight"
            within = in_parts(prior, rows.X, rows.y, M, shuffle, columns, inflated=False, corrected=ours)
            return within.cdf(cuts), within

        def draw(reading: tuple[Matrix, Within], source: Source) -> Probabilities:
            values, within = reading
            sums = way.noisy(values, bought, source)
            tilts = [
                look(column, count=count, rows=n, coefficients=p, epsilon=e * share, source=source)
                for column, e in zip(within.differences.T, amounts if count else [], strict=bool(count))
            ]
            off = np.array([tilt.bias for tilt in tilts]) if tilts else np.zeros(len(names))
            low, high = way.ends(sums, M, off, rows=n, coefficients=p)
            notes = [doubt(name, tilt) for name, tilt in zip(names, tilts, strict=bool(count))]
            notes += [UNCHECKED] if way.look and not count else []
            return Probabilities(
                names,
                floats(cuts),
                floats(way.combine(sums.value, M)),
                floats(low),
                floats(high),
                M,
                method,
                way.covers,
                tuple(dict.fromkeys(note for note in notes if note)),
            )

        def expected() -> SummaryErrors:
            errors = [way.expected(M, rows=n, coefficients=p, epsilon=float(amount)) for amount in bought]
            told = answers(names, floats(cuts), errors)
            return SummaryErrors("Posterior probability", n, p, M, PROBABILITY, told)

        proved = way.proved(M, loss)
        details = asked(
            *("posterior probability", formula, names, M),
            at=floats(cuts),
            method=method,
            calibration=calibration,
            **taken(unit, known.public, known.named),
        )
        caution = ""
        if proved != loss:
            caution = f"Not private as published: for {loss} the noise is {M} times too small. It proves {proved}, "
            caution += "which was charged"
            details |= {"claimed": loss.to_dict(), "private": False, "why": "the published noise is too small"}
        notes = (public_note(known.public),)
        guarantee = Guarantee(unit, proved, calibration, way.basis, PROOF, notes, caution=caution)
        return Offer(guarantee, details, expected, read, draw)

    return Question(formula, names, public, loss, offered)


@dataclass(frozen=True, slots=True)
class Normality:
    """Phi(c Phi^-1(mean p_j)): the mean is a probability under a normal law c^2 times as wide as the posterior."""

    calibration: Calibration = "tight"

    basis: ClassVar[Basis] = "proved"

    @property
    def covers(self) -> str:
        return ALL_ROWS if self.calibration == "tight" else NOISE_ALONE

    @property
    def look(self) -> Fraction:
        """Share of epsilon for a look at the model."""
        return LOOK if self.calibration == "tight" else Fraction(0)

    def best_parts(self, rows: int, coefficients: int, epsilon: Fraction) -> float:
        # Noise of variance 2 / (M epsilon)^2 in the mean is magnified by c / phi(0), c^2 = 2 M.
        return balanced(8 * math.pi, bias=BIAS, rows=rows, coefficients=coefficients, epsilon=epsilon)

    def ends(self, sums: LaplaceSums, M: int, off: Vector, *, rows: int, coefficients: int) -> tuple[Vector, Vector]:
        """Between which the answer of all rows lies; `off` are posterior deviations that a look at the model allows.

        Given the whole's estimate, a mean of Phi(U), U normal, still varies by 1/12 - 1/(4 pi) for each part. Parts add
        variance, skewed errors a bias. All in posterior deviations, then on the scale of the sum. Parts that scatter r
        times as widely as the model says would want the scale sqrt(M (1 + r^2)) where sqrt(2 M) is taken.
        """
        from scipy.special import ndtr, ndtri

        if self.calibration == "paper":
            return self.combine(sums.value - sums.reach, M), self.combine(sums.value + sums.reach, M)
        deviations = SLACK * self._own(M, rows, coefficients)
        skewed = LEFT * (coefficients + 1) * (M - 1) / math.sqrt(rows)
        one = M / math.sqrt(2 * math.pi * (2 * M - 1))
        reach = [
            reach_of(deviations * one, scale, off=(skewed + more) * one)
            for scale, more in zip(sums.scale.tolist(), off.tolist(), strict=True)
        ]
        less, more = (math.sqrt((1 + (1 - 1 / M) * r**2) / (2 - 1 / M)) for r in SCATTER)
        low, high = (ndtri(self.combine(sums.value + sign * np.array(reach), M)) for sign in (-1, 1))
        return ndtr(low * np.where(low < 0, more, less)), ndtr(high * np.where(high > 0, more, less))

    def expected(self, M: int, *, rows: int, coefficients: int, epsilon: float) -> tuple[float, float, float | None]:
        """Expected error of an answer near 1/2, by all, by noise and by parts; the last has no theory in the thesis."""
        if self.calibration == "paper":
            noise = self._error(0.0, 1 / epsilon, M)
            return noise, noise, None
        own = self._own(M, rows, coefficients) * M / math.sqrt(2 * math.pi * (2 * M - 1))
        return self._error(own, 1 / epsilon, M), self._error(0.0, 1 / epsilon, M), self._error(own, 0.0, M)

    def _error(self, deviation: float, scale: float, M: int) -> float:
        value, weight = normal_and_laplace(deviation, scale)
        return float(np.abs(self.combine(M / 2 + value, M) - 0.5) @ weight)

    def _own(self, M: int, rows: int, coefficients: int) -> float:
        """The deviation of what parts say together around what all rows say, in posterior deviations."""
        return math.sqrt((math.pi / 3 - 1) * (1 - 1 / M) + lost(rows, M, coefficients))

    def noisy(self, p: Matrix, epsilons: Sequence[Fraction], source: Source) -> LaplaceSums:
        return noisy_sums(p, span=1.0, epsilons=epsilons, source=source)

    def combine(self, total: Vector, M: int) -> Vector:
        from scipy.special import ndtr, ndtri

        mean = np.clip(total / M, math.ulp(0.0), 1 - math.ulp(0.5))
        return np.asarray(ndtr(math.sqrt(M if self.calibration == "paper" else 2 * M - 1) * ndtri(mean)))

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
        return "as published" if self.calibration == "paper" else "proved"

    @property
    def span(self) -> float:
        return -2 * math.log(self.floor)

    covers: ClassVar[str] = NOISE_ALONE
    look: ClassVar[Fraction] = Fraction(0)

    def best_parts(self, rows: int, coefficients: int, epsilon: Fraction) -> float:
        # Noise costs span^2 / (2 M epsilon^2); parts whose p_j are not quite uniform cost ((p + 1) M^1.5 / 2 n)^2.
        return math.sqrt(math.sqrt(2 / 3) * self.span * rows / (coefficients + 1) / float(epsilon))

    def ends(self, sums: LaplaceSums, M: int, off: Vector, *, rows: int, coefficients: int) -> tuple[Vector, Vector]:
        """Of the noise: nothing is known of the rest."""
        return self.combine(sums.value + sums.reach, M), self.combine(sums.value - sums.reach, M)

    def expected(self, M: int, *, rows: int, coefficients: int, epsilon: float) -> tuple[float, float, float | None]:
        """Expected error by noise of an answer near 1/2; nothing is known of the rest."""
        from scipy.special import chdtri

        value, weight = normal_and_laplace(0.0, self.span / (epsilon * (M if self.calibration == "paper" else 1)))
        noise = float(np.abs(self.combine(float(chdtri(2 * M, 0.5)) + value, M) - 0.5) @ weight)
        return noise, noise, None

    def noisy(self, p: Matrix, epsilons: Sequence[Fraction], source: Source) -> LaplaceSums:
        # The published noise is that of M times the claimed epsilon.
        times = len(p) if self.calibration == "paper" else 1
        spent = [times * epsilon for epsilon in epsilons]
        return noisy_sums(self._terms(p), span=self.span, epsilons=spent, source=source)

    def combine(self, total: Vector, M: int) -> Vector:
        from scipy.special import chdtrc

        return np.asarray(chdtrc(2 * M, np.maximum(total, 0.0)))

    def exact(self, p: Matrix) -> Vector:
        """What the parts say together, without noise: confidential."""
        return self.combine(self._terms(p).sum(axis=0), len(p))

    def proved(self, M: int, loss: Pure) -> Pure:
        """The loss that the noise proves for M parts."""
        return Pure(M * loss.epsilon) if self.calibration == "paper" else loss

    def _terms(self, p: Matrix) -> Matrix:
        return np.asarray(-2 * np.log(np.maximum(p, self.floor)))


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
