"""Private posterior probabilities P(beta <= b), from the probabilities within disjoint parts.

Two methods of Amitai (2018, section 3), each with its correction:

- normality: Phi(c Phi^-1(mean p_j + noise)). The thesis has c = sqrt(M), which ignores that the parts' own estimates
  scatter as widely as their posteriors. With that scatter c = sqrt(2 M - 1), the default. A share of epsilon looks
  whether the model is in doubt.
- "-2 log p": 1 - F(-2 sum log p_j + noise), F of the chi-squared law with 2 M degrees. One part can move the sum by
  T = -2 log(floor), so the noise is Laplace(T / epsilon). The thesis divides by M once too often: not private.

Derivations are in docs/proofs/posterior.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Matrix
from discreet.models.bayes.agreement import doubt, look, pieces, unchecked
from discreet.models.bayes.combination import Method, combination
from discreet.models.bayes.conjugate import UNIT_INFORMATION, Prior, check_prior
from discreet.models.bayes.doubts import Doubt, before_answers, told
from discreet.models.bayes.expected import PROBABILITY, SummaryErrors, answers
from discreet.models.bayes.partition import number_of_parts
from discreet.models.bayes.question import Answers, PosteriorQuestion
from discreet.models.bayes.reach import ALL_ROWS, TRUST, band
from discreet.models.bayes.regression import Known
from discreet.models.bayes.spending import PROOF, asked, by_question, floats, loss_of, only, public_note, questions
from discreet.models.bayes.within import Within, in_parts
from discreet.privacy.columns import taken
from discreet.privacy.guarantee import Calibration, Guarantee, is_tight
from discreet.privacy.losses import Loss, Number
from discreet.privacy.units import Unit
from discreet.release.account import Account, Released
from discreet.release.offer import Offer
from discreet.release.payer import Payer
from discreet.release.question import Question, releases

if TYPE_CHECKING:
    from discreet.data.frames import AnyFrame
    from discreet.noise.source import Source


@dataclass(frozen=True, slots=True, repr=False)
class Probabilities(Answers):
    """Private P(beta <= at), one for each question.

    Attributes
    ----------
    probability : the private answers.
    low, high : the answer of all rows at once lies between them with probability 0.95 if the model is right, also with
        skewed or heavy-tailed errors. For "-2 log p" and the thesis's constants, which have no theory, they cover the
        answer without noise.
    partitions : the number M of parts.
    covers : which of these two.
    notes : where parts are too small, or where the model is in doubt or cannot be looked at.
    flag : the words for it, one text for each answer.
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
    flag: tuple[str, ...] = ()

    def __float__(self) -> float:
        return only(self.probability)

    def _answered(self) -> tuple[str, Sequence[float], Sequence[float]]:
        return "probability", self.at, self.probability

    def __str__(self) -> str:
        rows = zip(self.coefficient, self.at, self.probability, self.low, self.high, strict=True)
        label = band(self.covers)
        answers = [f"P({c} <= {b:g}) = {p:.4f}  ({label}: {low:.4f} to {high:.4f})" for c, b, p, low, high in rows]
        return before_answers(self.notes, answers, TRUST)


@releases
def posterior_probability(
    formula: str,
    coefficient: str | Sequence[str],
    *,
    at: float | Sequence[float],
    epsilon: Number,
    public: Sequence[str] = (),
    numbers: Sequence[str] = (),
    prior: Prior = UNIT_INFORMATION,
    method: Method = "normality",
    partitions: int | None = None,
    calibration: Calibration = "tight",
    floor: float = 0.001,
    split: Mapping[str, Number] | None = None,
    account: Account | None = None,
    ledger: str | Path | None = None,
    budget: Number | Loss | None = None,
    dataset: str | None = None,
    name: str | None = None,
    seed: int | None = None,
) -> Question[Released[Probabilities]]:
    """Release P(coefficient <= at) under one budget for all questions.

    Parameters
    ----------
    formula, data : a regression such as "y ~ x + sector" and a frame, a mapping of columns or a file.
    coefficient, at : a name and a cut-off, or several of either; they pair up.
    public : the columns whose levels everybody may know; every category of the formula must be one of them.
    numbers : protected columns of numbers. A table without types, such as a CSV file, needs them declared.
    epsilon, split : the loss of all answers together, divided equally, or by shares for each coefficient that add up
        to one.
    prior : of the coefficients and the error variance: `GPrior`, `Conjugate` or `SemiConjugate`.
    method, floor : "normality", or "-2 log p" with probabilities below `floor` counted as `floor`.
    partitions : the number M of parts; by default the one with the least error.
    calibration : "paper" for the thesis's constants. Those of "-2 log p" are not private as published: the release says
        so first, and an account is charged what is proved, M epsilon.
    account : whose budget pays.
    ledger, budget, dataset : the ledger that pays, instead of an account; the total that opens the budget of `dataset`
        in it (leave it out once it is open); and that name. Without account and ledger the release is recorded only in
        its own guarantee.
    name : the release's name in the ledger; a name is drawn once.
    seed : makes the partition into parts and the noise reproducible, and the release not private.

    Returns
    -------
    The probabilities, with ends that hold the answer of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 3000)
    >>> data = {"x": x, "y": 2 * x + np.random.default_rng(0).normal(size=3000)}
    >>> found = posterior_probability("y ~ x", data, "x", at=1.9, epsilon=2, seed=1)
    >>> float(found.value) < 0.5
    True
    """
    payer = Payer(account=account, ledger=ledger, budget=budget, dataset=dataset, name=name, seed=seed)
    loss = loss_of(epsilon)
    check_prior(prior)
    names, cuts = questions(coefficient, at)
    amounts = by_question(names, split, epsilon=loss.epsilon)
    way = combination(method, calibration, floor)
    shuffle = np.random.default_rng(payer.partition_seed)

    def offered(known: Known, unit: Unit) -> Offer[AnyFrame, tuple[Matrix, Within], Probabilities]:
        columns, n, p = known.columns(names), known.rows, len(known.names)
        prior.check(p)
        carried = known.carried(columns, unit)
        best = min(way.best_parts(n, p, min(amounts) * (1 - way.look)), carried.most_parts(n, p))
        M = number_of_parts(partitions, rows=n, coefficients=p, best=best)
        count = pieces(n, M, p) if way.look else 0
        share = way.look if count else Fraction(0)
        bought = [e * (1 - share) for e in amounts]
        doubts: list[list[Doubt]] = [[] for _ in names]
        if way.covers == ALL_ROWS:
            small = carried.small_parts(names, rows=n, parts=M, coefficients=p)
            blind = unchecked(names, count, parts=M, epsilons=[e * share for e in amounts])
            doubts = [a + b for a, b in zip(small, blind, strict=True)]

        def read(frame: AnyFrame) -> tuple[Matrix, Within]:
            """What each part answers."""
            rows, ours = known.read(frame), is_tight(calibration)
            more = {"corrected": ours, "extrapolate": way.extrapolates}
            within = in_parts(prior, rows.X, rows.y, M, shuffle, columns, inflated=False, **more)
            return within.cdf(cuts), within

        def draw(reading: tuple[Matrix, Within], source: Source) -> Probabilities:
            values, within = reading
            sums = way.noisy(values, bought, source)
            tilts = [
                look(column, count=count, rows=n, coefficients=p, epsilon=e * share, source=source)
                for column, e in zip(within.differences.T, amounts if count else [], strict=bool(count))
            ]
            off = np.array([tilt.bias for tilt in tilts]) if tilts else np.zeros(len(names))
            low, high = way.ends(sums, M, off, carried.one_in, rows=n, coefficients=p)
            found = [doubt(name, tilt) for name, tilt in zip(names, tilts, strict=bool(tilts))]
            flag, notes = told([[*known, *filter(None, found[k : k + 1])] for k, known in enumerate(doubts)])
            return Probabilities(
                names,
                floats(cuts),
                floats(way.answer(sums.value, M, rows=n, coefficients=p)),
                floats(low),
                floats(high),
                M,
                method,
                way.covers,
                notes,
                flag,
            )

        def expected() -> SummaryErrors:
            errors = [way.expected(M, rows=n, coefficients=p, epsilon=float(amount)) for amount in bought]
            answered = answers(names, floats(cuts), errors, None, doubts)
            return SummaryErrors("Posterior probability", n, p, M, PROBABILITY, answered, told(doubts)[1])

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

    return PosteriorQuestion(formula, names, public, numbers, payer, offered)
