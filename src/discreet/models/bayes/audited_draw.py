"""`release_audited_draw`: one draw from the whole posterior, variances included, as the LMM paper publishes it.

Its epsilon is the figure of an audit (`audit_posterior`), which deletes every row of these data in turn: empirical,
and no promise. The owner audits, and states the figure; nothing here compares it with an audit. The ledger is charged
it and says that it is none. Only the draw is published: posterior deviations are confidential here, because they depend
on responses. All responses within the bounds have a posterior, constant ones too: none is drawn from another law.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Vector
from discreet.models.bayes.blmm.conditional import PosteriorModel
from discreet.models.bayes.blmm.exact import Posterior
from discreet.models.bayes.blmm.prior import Prior, read_prior
from discreet.models.bayes.blmm.variance_prior import InverseGamma
from discreet.models.bayes.draw_law import DrawLaw
from discreet.models.bayes.draw_question import DrawQuestion, read_model, requested
from discreet.models.bayes.drawn import DrawErrors, DrawnEffects, PosteriorDraw
from discreet.models.linear.estimate import collect, origin_of
from discreet.models.linear.gram import moments_of
from discreet.models.linear.private.public import PublicDesign
from discreet.models.linear.private.request import Interval, loss_of
from discreet.models.linear.private.shares import TYPICAL
from discreet.noise.laws import Gaussian
from discreet.noise.sampler import draw_integers
from discreet.privacy.columns import taken
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Loss, Number
from discreet.release.account import Account
from discreet.release.offer import Offer
from discreet.release.payer import Payer
from discreet.release.question import Question, releases
from discreet.words.errors import DiscreetError, FitError

if TYPE_CHECKING:
    from discreet.data.frames import AnyFrame
    from discreet.noise.source import Source

GRID = 2.0**-40  # of normal draws
STEP = 0.25  # of the lattice of log variances from which a pair is drawn, in their least deviations
STATED = "Its epsilon was stated by whoever asked for the draw. It was not checked against an audit or the data"
AUDITED = (
    "Meant is the figure of an audit: the largest change of the posterior of one effect when one row of these data is "
    "deleted, in 20 bins. It is about these data and about one effect at a time, not a promise"
)
SUPPOSED = (
    f"If residuals and effects vary by {100 * TYPICAL[1] ** 0.5:.0f} % and {100 * TYPICAL[0] ** 0.5:.0f} % of the "
    "response's range, and the data outweigh the prior; the true width depends on responses and is not reported"
)


@releases
def release_audited_draw(
    formula: str,
    *,
    prior: Prior | Mapping[str, Any],
    audited: Number,
    public: Sequence[str] = (),
    bounds: Interval | None = None,
    account: Account | None = None,
    ledger: str | Path | None = None,
    budget: Number | Loss | None = None,
    dataset: str | None = None,
    name: str | None = None,
    seed: int | None = None,
) -> Question[PosteriorDraw]:
    """Release one draw from the posterior of a mixed model with one random intercept, at the epsilon of an audit.

    Parameters
    ----------
    formula, data : as for `mixed`; one random term such as (1 | county).
    prior : as for `mixed`, with an inverse gamma law of the residual variance.
    audited : the epsilon that `audit_posterior` found on these data, which the ledger is charged. It is taken as
        stated: the guarantee says first that it is no promise and was not checked. `release_draw` has a proved one.
    public, bounds : as for `release_draw`.
    account, ledger, budget, dataset, name, seed : who pays and under which name, as for `release_mixed`.

    Returns
    -------
    The draw, without posterior deviations, which are confidential.

    Examples
    --------
    >>> data = {"y": [0.1, 0.4, 0.3, 0.9, 0.8, 0.7] * 50, "g": list("aaabbb") * 50}
    >>> ask = {"prior": Prior(), "audited": 4, "public": ["g"], "bounds": (0, 1), "seed": 1}
    >>> release_audited_draw("y ~ 1 + (1 | g)", data, **ask).guarantee.basis
    'empirical'
    """
    payer = Payer(account=account, ledger=ledger, budget=budget, dataset=dataset, name=name, seed=seed)
    spent, law, model = loss_of(audited, None), read_prior(prior), read_model(formula)
    law.refuse_unknown(("Residual", model.random[0].name))
    _refuse_collapse(law)
    request = requested(model, spent, public=public, bounds=bounds, clip=None, account=account, seed=seed)
    return AuditedQuestion(payer, model, request, law)


@dataclass(frozen=True, slots=True)
class AuditedQuestion(DrawQuestion):
    """A draw from the whole posterior."""

    prior: Prior

    def offer(self, data: Any) -> Offer[None, Any, PosteriorDraw]:
        """The draw as an offer, made from the public columns of `data`."""
        request = self.request
        frame, known = self.opened(data)
        notes = (STATED, AUDITED, *request.notes())
        guarantee = Guarantee(request.unit, request.loss, basis="empirical", notes=notes)
        details = {
            "formula": known.model.text,
            "method": "audited posterior draw",
            **taken(request.unit, request.public),
            "prior": str(self.prior),
            "epsilon_is": "stated by the caller, unchecked",
        }
        return Offer(
            guarantee=guarantee,
            details=details,
            expected=lambda: self._expected(known),
            read=lambda nothing: _posterior(frame, known, self.prior),
            draw=partial(_draw, public=known, prior=self.prior, guarantee=guarantee),
        )

    def _expected(self, public: PublicDesign) -> DrawErrors:
        """As if the variances were those that `check` supposes of a model: the width itself depends on responses."""
        restore = public.origin.restore
        effects, residuals = (share * float(self.request.width) ** 2 for share in TYPICAL)
        known = restore.T @ restore / self.prior.sd**2
        return DrawErrors.of(DrawLaw(public.n, public.Sx, public.XX, known, residuals, effects), public, SUPPOSED)


@dataclass(frozen=True)
class KnownPosterior:
    """The posterior, and the way to coefficients of the columns as given. Confidential."""

    model: PosteriorModel
    nodes: tuple[Vector, Vector, Any]
    restore: Any
    offset: Vector


def _refuse_collapse(prior: Prior) -> None:
    """Laws that do not vanish at zero: with them, constant responses have no posterior, and a refusal would tell."""
    law = prior.of("Residual")
    if not isinstance(law, InverseGamma):
        raise FitError(
            f"The prior of the residual variance is {law}.",
            "A draw is of every posterior that responses may have; with constant ones, only an inverse gamma law "
            "keeps this variance away from zero.",
            "Leave the residual's prior out, or use an inverse gamma.",
            about="prior",
        )


def _posterior(frame: AnyFrame, public: PublicDesign, prior: Prior) -> KnownPosterior | None:
    """The exact posterior, from sums: constant responses have one too. None if algebra fails; nobody learns this."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning would tell about the data
        try:
            cells, _, design, _ = collect(frame, public.model)
            moments, group = moments_of(cells, design).keep(public.kept), design.random[0].term.name
            origin = origin_of(cells, moments.XX, design, public.kept)
            found = PosteriorModel.of(moments, prior, restore=origin.restore, offset=origin.offset, group=group)
            return KnownPosterior(found, Posterior.of(found).lattice.nodes(STEP), origin.restore, origin.offset)
        except (DiscreetError, ArithmeticError, ValueError):  # NumPy's LinAlgError is one
            return None


def _normals(count: int, source: Source) -> Vector:
    return np.asarray(draw_integers(Gaussian(), scale=np.full(count, 1 / GRID), source=source) * GRID)


def _draw(
    reading: KnownPosterior | None, source: Source, *, public: PublicDesign, prior: Prior, guarantee: Guarantee
) -> PosteriorDraw:
    from scipy.special import ndtr

    p, groups = len(public.kept), len(public.n)
    white = _normals(3 + p + groups, source)
    if reading is None:  # a draw from the prior of the fixed effects, with effects of zero
        beta, u = prior.sd * white[3 : 3 + p], np.zeros(groups)
    else:
        chance, *inside = ndtr(white[:3]).tolist()
        first, second, weight = reading.nodes
        at = min(int(np.searchsorted(np.cumsum(weight), chance)), weight.size - 1)
        i, j = divmod(at, len(second))
        logs = [
            axis[k] + (where - 0.5) * (axis[1] - axis[0])
            for axis, k, where in ((first, i, inside[0]), (second, j, inside[1]))
        ]
        law = reading.model.at(*(np.exp([value]) for value in logs))
        centred = law.beta[0] + law.root[0] @ white[3 : 3 + p]
        means, n = reading.model.means, reading.model.n
        spread = 1 / (1 / law.group[0] + n / law.residual[0])
        u = spread * n / law.residual[0] * (means[:, -1] - means[:, :-1] @ centred) + np.sqrt(spread) * white[3 + p :]
        beta = reading.restore @ centred + reading.offset
    everywhere = np.zeros(len(public.design.names))
    everywhere[public.kept] = np.linalg.solve(public.origin.restore, beta - public.origin.offset)
    random = public.design.random[0]
    return PosteriorDraw(
        formula=public.model.text,
        names=public.names,
        beta=np.asarray(beta),
        std_error=np.full(p, np.nan),
        random=(DrawnEffects(random.term.name, random.grouping.labels, float("nan"), np.asarray(u)),),
        effect_errors=np.full(groups, np.nan),
        residual=float("nan"),
        power=1.0,
        rows=public.rows,
        guarantee=guarantee,
        notes=guarantee.notes,
        released=(),
        design=public.design,
        learned=public.learned,
        centred=everywhere,
    )
