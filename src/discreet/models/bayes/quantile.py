"""Private posterior quantiles, from the quantiles within disjoint parts whose likelihood counts M times.

Amitai (2018, section 4) after Li, Srivastava and Dunson (2017). With the likelihood to the power M, a part's posterior
is as wide as that of the whole data set, and the mean of the parts' quantiles estimates its quantile. The mean needs
bounds. The thesis finds them around zero by the sparse vector and names what is missing: a private centre. Here the
centre is found first, then the width around it, then the mean of what lies within (docs/proofs/posterior.md). A last
share looks whether the model is in doubt.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.bayes.agreement import pieces
from discreet.models.bayes.clipped import Centre, allowed_for, clipped_mean, is_private
from discreet.models.bayes.conjugate import UNIT_INFORMATION, Prior, check_prior
from discreet.models.bayes.doubts import before_answers, told
from discreet.models.bayes.expected import IN_DEVIATIONS, OF_BOUND, SummaryErrors, answers
from discreet.models.bayes.halves import lost
from discreet.models.bayes.partition import number_of_parts
from discreet.models.bayes.question import Answers, PosteriorQuestion
from discreet.models.bayes.reach import ALL_ROWS, NOISE_ALONE, TRUST, band, reach_of
from discreet.models.bayes.regression import Known
from discreet.models.bayes.spending import (
    PROOF,
    asked,
    by_question,
    floats,
    loss_of,
    only,
    public_note,
    questions,
    whole,
)
from discreet.models.bayes.within import Within, in_parts
from discreet.privacy.columns import taken
from discreet.privacy.guarantee import Calibration, Guarantee, is_tight
from discreet.privacy.losses import Loss, Number
from discreet.privacy.units import Unit
from discreet.release.account import Account, Released
from discreet.release.offer import Offer
from discreet.release.payer import Payer
from discreet.release.question import Question, releases
from discreet.words.errors import PrivacyError
from discreet.words.faults import Argument, Spelled
from discreet.words.voices import Symbol

if TYPE_CHECKING:
    from discreet.data.frames import AnyFrame
    from discreet.noise.source import Source

AROUND_ZERO = Spelled(
    ", or in Python centre='zero', whose noise is larger when the quantile is far from zero", plan="", command=""
)


@dataclass(frozen=True, slots=True, repr=False)
class Quantiles(Answers):
    """Private posterior quantiles, one for each question.

    Attributes
    ----------
    quantile : the private answers.
    low, high : the answer of all rows at once lies between them with probability 0.95 if the model is right, also with
        skewed or heavy-tailed errors. With `centre="zero"` nothing shows how the parts scatter, and they cover the
        answer without noise.
    centre, width : the private bounds, centre -+ width, to which the parts' quantiles were clipped.
    partitions : the number M of parts.
    notes : set if parts are too small, if the model is in doubt or cannot be examined, if a bound is at the end of the
        search, so that the answer may be cut off, or if no centre was found.
    flag : the words for it, one text for each answer.
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
    flag: tuple[str, ...] = ()

    def __float__(self) -> float:
        return only(self.quantile)

    def _answered(self) -> tuple[str, Sequence[float], Sequence[float]]:
        return "quantile", self.probability, self.quantile

    def __str__(self) -> str:
        rows = zip(self.coefficient, self.probability, self.quantile, self.low, self.high, strict=True)
        label = band(self.covers)
        answers = [f"Q({c}, {q:g}) = {v:.6g}  ({label}: {low:.6g} to {high:.6g})" for c, q, v, low, high in rows]
        return before_answers(self.notes, answers, TRUST)


@releases
def posterior_quantile(
    formula: str,
    coefficient: str | Sequence[str],
    *,
    probability: float | Sequence[float],
    epsilon: Number,
    public: Sequence[str] = (),
    numbers: Sequence[str] = (),
    prior: Prior = UNIT_INFORMATION,
    centre: Centre = "private",
    scale: float = 1.0,
    partitions: int | None = None,
    calibration: Calibration = "tight",
    split: Mapping[str, Number] | None = None,
    stages: Mapping[str, Number] | None = None,
    account: Account | None = None,
    ledger: str | Path | None = None,
    budget: Number | Loss | None = None,
    dataset: str | None = None,
    name: str | None = None,
    seed: int | None = None,
) -> Question[Released[Quantiles]]:
    """Release posterior quantiles of coefficients, under one budget for all questions.

    Parameters
    ----------
    formula, data : a regression such as "y ~ x + sector" and a frame, a mapping of columns or a file.
    coefficient, probability : a name and a probability in (0, 1), or several of either; they pair up.
    public : the columns whose levels everybody may know; every category of the formula must be one of them.
    numbers : protected columns of numbers. A table without types, such as a CSV file, needs them declared.
    epsilon, split : the loss of all answers together, divided equally, or by shares for each coefficient that add up
        to one.
    prior : of the coefficients and the error variance: `GPrior`, `Conjugate` or `SemiConjugate`.
    centre : "private" finds the bounds' centre first; "zero" puts them around zero, as calibration="paper" does.
    scale : a rough public size of the coefficients. Bounds are sought from a thousandth of it to a million times it.
    stages : shares of epsilon for "centre", "width", "mean" and, if the model is to be looked at, "look" (around zero:
        "bounds" and "mean"); they add up to one.
    partitions : the number M of parts; by default the one with the least error.
    calibration : "tight" for the least noise, "paper" for the thesis's constants.
    account : whose budget pays.
    ledger, budget, dataset : the ledger that pays, instead of an account; the total that opens the budget of `dataset`
        in it (leave it out once it is open); and that name. Without account and ledger the release is recorded only in
        its own guarantee.
    name : the release's name in the ledger; a name is drawn once.
    seed : makes the partition into parts and the noise reproducible, and the release not private.

    Returns
    -------
    The quantiles, with ends that hold the answer of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 3000)
    >>> data = {"x": x, "y": 2 * x + np.random.default_rng(0).normal(size=3000)}
    >>> found = posterior_quantile("y ~ x", data, "x", probability=0.5, epsilon=4, seed=1)
    >>> 1 < float(found.value) < 3
    True
    """
    payer = Payer(account=account, ledger=ledger, budget=budget, dataset=dataset, name=name, seed=seed)
    loss = loss_of(epsilon)
    check_prior(prior)
    names, q = questions(coefficient, probability)
    check_probabilities(q)
    plan = clipped_mean(centre, calibration, scale, stages)
    amounts = by_question(names, split, epsilon=loss.epsilon)
    shuffle = np.random.default_rng(payer.partition_seed)
    if partitions is not None and whole(partitions, least=1):
        plan.check(partitions, min(amounts), whole=loss.epsilon, questions=len(names), instead=AROUND_ZERO)

    def offered(known: Known, protects: Unit) -> Offer[AnyFrame, tuple[Matrix, Within], Quantiles]:
        columns, n, p = known.columns(names), known.rows, len(known.names)
        prior.check(p)
        carried = known.carried(columns, protects)
        M = number_of_parts(partitions, rows=n, coefficients=p, best=plan.best_parts(n, p, min(amounts), carried))
        plan.check(M, min(amounts), whole=loss.epsilon, questions=len(names), instead=AROUND_ZERO)
        count = pieces(n, M, p)
        sold = plan.sold(M, min(amounts), count=count)
        doubts = sold.known(names, amounts, carried, rows=n, M=M, p=p, count=count)
        own = [math.sqrt(lost(n, M, p, one_in)) for one_in in carried.one_in.tolist()]
        allowed = [allowed_for(M, n, one_in) for one_in in carried.one_in.tolist()]

        def read(frame: AnyFrame) -> tuple[Matrix, Within]:
            """What each part answers."""
            rows, ours = known.read(frame), is_tight(calibration)
            within = in_parts(prior, rows.X, rows.y, M, shuffle, columns, inflated=True, corrected=ours)
            return within.quantile(q), within

        def draw(reading: tuple[Matrix, Within], source: Source) -> Quantiles:
            values, within = reading
            found = [sold.release(values[:, k], epsilon=e, source=source) for k, e in enumerate(amounts)]
            tilts = sold.looks(within, amounts, rows=n, coefficients=p, source=source)
            scatter = [f.scatter * sold.unsure(M, e) for f, e in zip(found, amounts, strict=True)]
            reach = [
                reach_of(parts * s, f.scale, off=(bias + (tilt.bias if tilt else 0.0)) * s)
                for f, tilt, s, parts, bias in zip(found, tilts, scatter, own, allowed, strict=True)
            ]
            answer, low, high = (tuple(f.mean + k * r for f, r in zip(found, reach, strict=True)) for k in (0, -1, 1))
            bounds = (tuple(f.centre for f in found), tuple(f.width for f in found))
            covers = ALL_ROWS if is_private(sold.centre) else NOISE_ALONE
            flag, notes = told([a + b for a, b in zip(doubts, sold.found(names, found, tilts), strict=True)])
            return Quantiles(names, floats(q), answer, low, high, *bounds, M, notes, covers, flag)

        def expected() -> SummaryErrors:
            errors = [sold.expected(M, rows=n, coefficients=p, epsilon=amount) for amount in amounts]
            unit = (OF_BOUND, IN_DEVIATIONS)[is_private(sold.centre)]
            answered = answers(names, floats(q), errors, allowed if is_private(sold.centre) else None, doubts)
            return SummaryErrors("Posterior quantile", n, p, M, unit, answered, told(doubts)[1])

        guarantee = Guarantee(protects, loss, calibration, "proved", PROOF, (public_note(known.public),))
        details = asked(
            *("posterior quantile", formula, names, M),
            probability=floats(q),
            centre=plan.centre,
            unit=float(scale),
            calibration=calibration,
            **taken(protects, known.public, known.named),
        )
        return Offer(guarantee, details, expected, read, draw)

    return PosteriorQuestion(formula, names, public, numbers, payer, offered)


def check_probabilities(q: Vector, name: str = "probability") -> None:
    """Refuse what is no probability, in the words of the argument that stated it."""
    if not ((q > 0) & (q < 1)).all():
        raise PrivacyError(
            (
                Argument(name, Symbol(f"{', '.join(f'{x:g}' for x in q)}")),
                f": a {'quantile' if name == 'probability' else 'posterior interval'} exists for probabilities "
                "strictly between 0 and 1.",
            ),
            remedy="Divide percentages by 100.",
            about=name,
        )
