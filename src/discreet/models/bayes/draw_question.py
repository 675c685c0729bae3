"""The input of every posterior draw: a model with one random intercept, whose responses are protected row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from discreet.data.frames import open_frame
from discreet.models.bayes.drawn import PosteriorDraw
from discreet.models.formula.arithmetic import refuse_made
from discreet.models.formula.formula import Formula, read_formula, refuse_lags
from discreet.models.formula.rows import with_sizes
from discreet.models.linear.private.public import PublicDesign, public_design
from discreet.models.linear.private.request import PUBLIC, Interval, ModelRequest, scale_of, unit_of
from discreet.models.linear.private.sums import confined
from discreet.privacy.columns import declared, refuse_undeclared
from discreet.privacy.losses import Concentrated, Pure
from discreet.privacy.units import Rows
from discreet.release.account import Account
from discreet.release.payer import Payer
from discreet.release.question import Question
from discreet.words.errors import FormulaError, PrivacyError

if TYPE_CHECKING:
    from discreet.data.frames import AnyFrame


@dataclass(frozen=True, slots=True)
class DrawQuestion(Question[PosteriorDraw]):
    """A posterior draw that was asked for and found possible without data."""

    payer: Payer
    model: Formula
    request: ModelRequest

    def __repr__(self) -> str:
        return f"<DrawQuestion {self.model.text!r}: {self.request.loss}>"

    @property
    def response(self) -> str:
        return self.model.response.column

    def opened(self, data: Any) -> tuple[AnyFrame, PublicDesign]:
        """The rows, with responses inside their bounds, and the facts of their public columns."""
        frame = open_frame(data, readings={self.model.response.column: "response"}, ordered=True)
        frame, model = with_sizes(frame, self.model)
        known = public_design(frame, model)
        return confined(frame, known, self.request.scale), known

    def release(self, data: Any) -> PosteriorDraw:
        """Pay and draw."""
        released = self.paid(data)
        paid = {key: getattr(released, key) for key in ("guarantee", "entry", "name", "check")}
        drawn: PosteriorDraw = replace(released.value, **paid)
        return drawn


def read_model(formula: str) -> Formula:
    """A model with one random term and without lags, or a refusal."""
    model = read_formula(formula)
    refuse_lags(model)
    if len(model.random) != 1:
        raise FormulaError(
            f"{formula!r} has {len(model.random)} random terms.",
            "A posterior draw is of a model with one random intercept.",
            "Keep one term such as (1 | county).",
            about="formula",
        )
    return model


def requested(
    model: Formula,
    loss: Pure | Concentrated,
    *,
    public: Sequence[str],
    bounds: Interval | None,
    clip: Interval | None,
    account: Account | None,
    seed: int | None,
) -> ModelRequest:
    """The unit, the bounds of responses and the public columns, or a refusal."""
    response = model.response.column
    unit, natural = unit_of(response, bounds, account, ())
    if not isinstance(unit, Rows):
        raise PrivacyError(
            f"The account protects {unit.key}.",
            "A posterior draw protects one row's response.",
            "Open an account with unit=Rows(lower, upper, response).",
            about="account",
        )
    columns = model.columns[1:]
    refuse_made(model.made, known := declared(public, unit))
    refuse_undeclared(columns, known, why=PUBLIC.format(response))
    return ModelRequest(loss, unit, scale_of(clip, natural), tuple(columns), (), seed)
