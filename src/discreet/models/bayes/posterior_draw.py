"""`release_draw`: one draw from the posterior of a mixed model as the release, what the LMM paper finally publishes.

With declared variances, the draw is a Gaussian mechanism with a public covariance, and its price is proved
(docs/proofs/posterior-draw.md): half the squared range of the response times the largest leverage, over the residual
variance. If less may be spent, the likelihood has a power below 1, which widens the posterior.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.models.bayes.blmm.variance_prior import LARGEST, SMALLEST
from discreet.models.bayes.draw_law import GRID, DrawLaw
from discreet.models.bayes.draw_question import DrawQuestion, read_model, requested
from discreet.models.bayes.drawn import DrawErrors, DrawnEffects, PosteriorDraw
from discreet.models.formula.design import ONE
from discreet.models.formula.rows import ModelRows, read_rows
from discreet.models.linear.private.public import PublicDesign, hidden, monomials
from discreet.models.linear.private.request import Interval, ModelRequest, loss_of
from discreet.models.linear.private.sums import HALF, ResponseSums, Units, response_sums, summed, units_of, whole_column
from discreet.noise.laws import Gaussian
from discreet.noise.sampler import add_noise
from discreet.privacy.columns import taken
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Concentrated, Loss, Number
from discreet.release.account import Account
from discreet.release.offer import Offer
from discreet.release.payer import Payer
from discreet.release.question import Question, releases
from discreet.words.errors import FitError, PrivacyError
from discreet.words.faults import Argument

if TYPE_CHECKING:
    from discreet.data.frames import AnyFrame
    from discreet.noise.source import Source

PROOF = "docs/proofs/posterior-draw.md"
DECLARED = "If the declared variances are those of the data"
CHUNK = 65_536  # rows whose leverage is computed together
LEAST_POWER = 1e-9
MOST_STEPS = 2.0**60  # of sums and of noise, so that they are whole numbers of 64 bits
FINE = 10**6  # a price is a whole number of millionths, rounded up


@releases
def release_draw(
    formula: str,
    *,
    variances: Mapping[str, float],
    sd: float,
    rho: Number | None = None,
    public: Sequence[str] = (),
    bounds: Interval | None = None,
    clip: Interval | None = None,
    account: Account | None = None,
    ledger: str | Path | None = None,
    budget: Number | Loss | None = None,
    dataset: str | None = None,
    name: str | None = None,
    seed: int | None = None,
) -> Question[PosteriorDraw]:
    """Release one draw from the posterior of a mixed model with one random intercept and declared variances.

    One row's response is protected and cannot stop the release; `public` columns and the number of rows are known.

    Parameters
    ----------
    formula, data : as for `mixed`; one random term such as (1 | county).
    variances : the declared variances by name, {"Residual": 0.03, "county": 0.01}: known without the data, or released
        privately before. They are a part of the prior; wrong ones make a worse draw and no weaker guarantee.
    sd : the prior's deviation of every fixed effect, about zero, in the units of the columns as given.
    rho : the most that may be spent (zCDP). If the posterior itself costs more, the likelihood has a power below 1.
        Left out, the posterior itself is drawn from, at its price.
    public : the columns that everybody may know. Every column of the formula but the response must be one of them.
    bounds, clip : where responses lie, known without the data, and a tighter range to pull them into, as for
        `release_mixed`.
    account, ledger, budget, dataset, name, seed : who pays and under which name, as for `release_mixed`.

    Returns
    -------
    The draw, with its guarantee.

    Examples
    --------
    >>> data = {"y": [0.1, 0.4, 0.3, 0.9, 0.8, 0.7] * 50, "g": list("aaabbb") * 50}
    >>> known = {"Residual": 0.02, "g": 0.1}
    >>> drawn = release_draw("y ~ 1 + (1 | g)", data, variances=known, sd=1, public=["g"], bounds=(0, 1), seed=1)
    >>> drawn.effects["g"]["a"] < drawn.effects["g"]["b"]
    True
    """
    payer = Payer(account=account, ledger=ledger, budget=budget, dataset=dataset, name=name, seed=seed)
    most = None if rho is None else loss_of(None, rho)
    model = read_model(formula)
    known = _declared(variances, model.random[0].name)
    if not (_positive(sd)):
        raise FitError(
            (Argument("sd", sd), " is no deviation of a prior."),
            f"Any number from {SMALLEST:g} to {LARGEST:g} is possible; a flat prior is none.",
            "Use the size that a coefficient may well have.",
            about="sd",
        )
    spent = most if isinstance(most, Concentrated) else Concentrated(1)
    request = requested(model, spent, public=public, bounds=bounds, clip=clip, account=account, seed=seed)
    return DeclaredQuestion(payer, model, request, known, float(sd), most is not None)


def _positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and SMALLEST <= value <= LARGEST


def _declared(variances: Any, group: str) -> tuple[float, float]:
    wanted = {"Residual", group}
    if not isinstance(variances, Mapping) or set(variances) != wanted or not all(map(_positive, variances.values())):
        raise FitError(
            (Argument("variances", variances), " does not declare the variances."),
            f"They are numbers from {SMALLEST:g} to {LARGEST:g} for 'Residual' and {group!r}.",
            f"Use {{'Residual': 0.03, {group!r}: 0.01}} with the values that are known.",
            about="variances",
        )
    return float(variances["Residual"]), float(variances[group])


@dataclass(frozen=True, slots=True)
class DeclaredQuestion(DrawQuestion):
    """A draw with declared variances."""

    variances: tuple[float, float]
    sd: float
    limited: bool

    def offer(self, data: Any) -> Offer[None, Any, PosteriorDraw]:
        """The draw as an offer, made from the public columns of `data`."""
        request = self.request
        frame, known = self.opened(data)
        units = units_of(frame, known)
        law, price = _calibrated(frame, known, units, self)
        spent = Concentrated(Fraction(math.ceil(price * FINE), FINE))
        if self.limited and isinstance(request.loss, Concentrated):
            spent = min(spent, request.loss, key=lambda loss: loss.rho)
        said = [*request.notes()]
        if law.power < 1:
            said.append(f"The likelihood counted with the power {law.power:.6g}, which widens the posterior")
        guarantee = Guarantee(request.unit, spent, basis="proved", proof=PROOF, notes=tuple(said))
        details = {
            "formula": known.model.text,
            "method": "posterior draw",
            **taken(request.unit, request.public),
            "variances": list(self.variances),
            "sd": self.sd,
            "power": law.power,
        }
        return Offer(
            guarantee=guarantee,
            details=details,
            expected=lambda: DrawErrors.of(law, known, DECLARED),
            read=lambda nothing: _read(response_sums(frame, known, units, request.scale), known, units, law, request),
            draw=partial(_draw, law=law, public=known, asked=self, guarantee=guarantee),
        )


def _calibrated(frame: AnyFrame, public: PublicDesign, units: Units, asked: DeclaredQuestion) -> tuple[DrawLaw, float]:
    """The law with the largest power that may be spent, and its price; from the public design alone."""
    restore = public.origin.restore
    law = DrawLaw(public.n, public.Sx, public.XX, restore.T @ restore / asked.sd**2, *asked.variances)
    step = asked.request.scale.step
    rows = _public_rows(frame, public)
    by_cells = not monomials(public.design)  # then columns are zeros and ones
    bounds, sizes = np.full(len(public.kept), float(public.rows) if by_cells else 0.0), []
    for at in range(0, rows.count, CHUNK):
        part = rows.take(np.arange(at, min(at + CHUNK, rows.count)))
        columns = rounded(part, public, units)
        sizes.append((public.group(part.codes), columns))
        bounds += 0.0 if by_cells else np.abs(columns).sum(axis=0)
    reach = 2 * HALF * step

    def price(power: float) -> float:
        tried = replace(law, power=power)
        slack = tried.slack(HALF * step * bounds, HALF * step * public.n)
        return max(tried.rho(group, columns, reach=reach, slack=slack) for group, columns in sizes)

    limit = float(asked.request.loss.rho) if isinstance(asked.request.loss, Concentrated) else math.inf
    _refuse_far(law, asked, HALF * step * bounds)
    full = price(1.0)
    if not asked.limited or full <= limit:
        return law, full
    low, high = math.log(LEAST_POWER), 0.0
    if price(LEAST_POWER) > limit:
        raise PrivacyError(
            f"rho={limit:g} is less than any draw of this model costs.",
            "A wider declared range of effects, or a narrower range of responses, costs less.",
            "Spend more, or clip responses.",
            about="rho",
        )
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if price(math.exp(middle)) <= limit else (low, middle)
    wider = replace(law, power=math.exp(low))
    _refuse_far(wider, asked, HALF * step * bounds)
    return wider, price(wider.power)


def _refuse_far(law: DrawLaw, asked: DeclaredQuestion, sums: Vector) -> None:
    """Refuse variances beside which rounded responses are coarse, or sums and noise are no whole numbers of 64 bits."""
    step = asked.request.scale.step
    with np.errstate(all="ignore"):
        try:
            first, second = law.turns
            largest = np.abs(first) @ sums + np.abs(second) @ (HALF * step * law.n)
            parts = (largest / GRID, np.sqrt(law.own) / step, *law.deviations())
            fits = all(bool((np.isfinite(part) & (part < MOST_STEPS)).all()) for part in parts)
        except np.linalg.LinAlgError:
            fits = False
    if not fits or law.residual < step**2:
        raise FitError(
            (
                Argument("variances", {"Residual": law.residual, asked.model.random[0].name: law.group}),
                " are too far from the range of responses.",
            ),
            f"Responses are rounded to steps of {step:.2g}; a residual variance is at least {step**2:.2g}, and "
            "variances and the prior are near the squares of what responses and coefficients may be.",
            "Declare other variances or another sd, or narrow the range of responses. Nothing was spent.",
            about="variances",
        )


def _public_rows(frame: AnyFrame, public: PublicDesign) -> ModelRows:
    """Public columns of all rows; of cells, where every row of a cell has the same ones."""
    if not monomials(public.design):
        return ModelRows(public.cells.count, public.cells.codes, {})
    return read_rows(hidden(frame, public.model), public.design.layout, public.learned)[0]


def rounded(rows: ModelRows, public: PublicDesign, units: Units) -> Matrix:
    """The kept fixed columns as they enter the sums: numbers in whole steps of their own."""
    found, every = np.zeros((rows.count, len(public.kept))), np.arange(rows.count)
    for piece, inside, among in public.parts:
        width = piece.width(public.design.levels)
        place = np.full(width + 1, -1)
        place[inside] = among
        to = place[piece.position(rows.codes, public.design.levels, rows.count)]
        touched, monomial = to >= 0, piece.monomial
        value = np.ones(rows.count)
        if monomial.atoms:
            value = whole_column(rows.evaluate(monomial), units, monomial) * units.step[monomial]
        found[every[touched], to[touched]] = value[touched]
    return found


def _read(
    sums: ResponseSums, public: PublicDesign, units: Units, law: DrawLaw, request: ModelRequest
) -> tuple[Integers, Integers]:
    """Exact sums by group, and whitened sums of the fixed columns; in steps. Confidential."""
    levels, step = public.design.levels, request.scale.step
    by_group = summed(sums, public.group(sums.codes), len(public.n), ONE)
    by_column = np.zeros(len(public.kept))
    for piece, inside, among in public.parts:
        at = piece.position(sums.codes, levels, sums.count)
        whole = summed(sums, at, piece.width(levels), piece.monomial)[inside]
        by_column[among] = whole * (units.step[piece.monomial] if piece.monomial.atoms else 1.0)
    return by_group, law.whole(by_column * step, np.asarray(by_group * step, dtype=np.float64))


def _draw(
    exact_sums: tuple[Integers, Integers],
    source: Source,
    *,
    law: DrawLaw,
    public: PublicDesign,
    asked: DeclaredQuestion,
    guarantee: Guarantee,
) -> PosteriorDraw:
    """Noise, and the draw that follows from the noisy sums and public numbers."""
    scale, step = asked.request.scale, asked.request.scale.step
    by_group, whitened = exact_sums
    noisy = add_noise(by_group, Gaussian(), scale=np.sqrt(law.own) / step, source=source)
    white = add_noise(whitened, Gaussian(), scale=np.full(len(whitened), 1 / GRID), source=source)
    origin = scale.middle * public.constant  # the response is measured from the middle of its range
    centre = np.linalg.solve(public.origin.restore, -public.origin.offset)  # the prior mean, zero as given
    sums = (np.asarray(noisy * step, dtype=np.float64), np.asarray(white * GRID, dtype=np.float64))
    u, beta = law.theta(*sums, origin - centre)
    deviations = law.deviations()
    restore = public.origin.restore
    spread = law.s2**2 * restore @ np.linalg.inv(law.root @ law.root.T) @ restore.T
    everywhere = np.zeros(len(public.design.names))
    everywhere[public.kept] = centre + beta
    random = public.design.random[public.terms[0]]
    return PosteriorDraw(
        formula=public.model.text,
        names=public.names,
        beta=np.asarray(restore @ (centre + beta) + public.origin.offset),
        std_error=np.sqrt(np.diag(spread)),
        random=(DrawnEffects(random.term.name, random.grouping.labels, asked.variances[1], public.in_own_order(0, u)),),
        effect_errors=public.in_own_order(0, deviations[0]),
        residual=asked.variances[0],
        power=law.power,
        rows=public.rows,
        guarantee=guarantee,
        notes=guarantee.notes,
        released=(noisy, white),
        design=public.design,
        learned=public.learned,
        centred=everywhere,
    )
