"""Releases of models: all estimates of a mixed model under one loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.models.linear.families.gaussian import GAUSSIAN
from discreet.models.linear.families.registry import named
from discreet.plan.confidential import Confidential
from discreet.plan.kinds.alarms import AlarmStep, EarlierOf, early_of, no_table, refuse_unwritten, refuse_value
from discreet.plan.kinds.kind import Given, OwnersColumns, PlannedRelease, ReleaseKind
from discreet.plan.kinds.numbers import Numbers, compared
from discreet.plan.kinds.of_rows import PlannedRows, details_of, other_unit
from discreet.plan.shape import AlarmsSection, ModelSection
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Pure
from discreet.privacy.units import Groups, Rows
from discreet.words.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.arrays import Vector
    from discreet.data.frames import Frame
    from discreet.models.formula.formula import Formula
    from discreet.models.formula.roles import Roles

EFFECTS = ("group", "term")
"""What the estimates of a model are listed by."""


@dataclass(frozen=True, slots=True)
class PlannedModel(PlannedRows[ModelSection]):
    """One release of a model."""

    def refuse_unknown(self, model: Formula, roles: Roles, data: Confidential) -> None:
        """Its offer does."""

    def needs_rows(self, table: Frame, model: Formula) -> bool:
        from discreet.models.formula.formula import without_lags
        from discreet.models.formula.rows import plan, with_sizes
        from discreet.models.linear.cells import runs_in_engine
        from discreet.models.linear.private.public import hidden

        if without_lags(model)[1] or isinstance(self.guarantee.unit, Groups) or self.release.family:
            return True
        layout = plan(*with_sizes(hidden(table, model), model))
        return not layout.coded or not runs_in_engine(layout)

    def lengths(self, expected: Any) -> list[int]:
        return [expected.estimates]

    def written(self, value: Any) -> pa.Table:
        return value.published()

    @property
    def limits(self) -> list[str]:
        from discreet.models.formula.formula import without_lags

        return ["model", *["lags"] * bool(without_lags(self.model)[1])]

    def alarm(self, asked: AlarmsSection, others: Mapping[str, PlannedRelease], earlier: EarlierOf) -> AlarmStep:
        """Alarms between two models of one plan and one formula."""
        refuse_unwritten(self.source.output.forms)
        name = early_of(asked)
        for key, given in (("folder", asked.folder), ("by", asked.by)):
            if given is not None:
                raise DataError(
                    f"{key} is given for models.",
                    "All effects of two models of the same plan are compared.",
                    "Leave it out.",
                    about=key,
                )
        refuse_value(asked.value, ("estimate",))
        before = others.get(name)
        if not isinstance(before, PlannedModel):
            raise no_table(name, "early")
        if (before.release.formula, before.release.family) != (self.release.formula, self.release.family):
            raise DataError(
                f"{name!r} is another model.",
                "Effects of one formula and family can be compared.",
                "Name a release of the same model of another time.",
                about="early",
            )
        return AlarmStep(
            asked, EFFECTS, lambda at: compared(before._numbers(at / name), self._numbers(at / asked.late))
        )

    def _numbers(self, folder: Path) -> Numbers:
        """Estimates that have a standard error, with ends that allow for the tails of noise."""
        from discreet.utility.model_changes import quantile

        rows = [row for row in self.published(folder).to_pylist() if row["std_error"] is not None]
        values, errors = (np.array([row[name] for row in rows], dtype=np.float64) for name in ("estimate", "std_error"))

        def ends(level: float) -> tuple[Vector, Vector]:
            far = quantile(1 - level) * errors
            return values - far, values + far

        return Numbers([(str(row["group"] or row["effect"]), str(row["term"])) for row in rows], values, ends)


def model_request(given: Given, release: ModelSection) -> PlannedModel:
    """The request for a release of a plan; what needs the data is found when it is read."""
    from discreet.models.linear.private import lag_noise, moments, release_mixed
    from discreet.models.linear.private.offers import ModelQuestion

    unit = given.account.unit
    if not isinstance(unit, Rows | Groups):
        raise other_unit(release.kind, given, ", or all rows of a group")
    question = release_mixed.ask(
        release.formula,
        epsilon=release.epsilon,
        public=given.source.tables.data.public,
        clip=release.clip,
        lagged=release.lagged,
        series=release.series,
        time=release.time,
        family=release.family or GAUSSIAN.name,
        exposure=release.exposure,
        account=given.account,
    )
    assert isinstance(question, ModelQuestion)
    request = question.request
    moments.refuse_wide(Pure(release.epsilon))
    proof = lag_noise.PROOF if request.lags else moments.PROOF
    guarantee = Guarantee(unit, Pure(release.epsilon), basis="proved", proof=proof, notes=request.notes())
    details = details_of(given, release, unit, request.public)
    return PlannedModel(given.source, release, guarantee, details, question.offer)


def _columns(release: ModelSection) -> set[str]:
    from discreet.models.formula.formula import read_formula

    beside = (*(release.series or ()), *(each for each in (release.time, release.exposure) if each))
    return {*read_formula(release.formula, needs_random=False).columns, *beside}


def _of_owner(release: ModelSection) -> OwnersColumns:
    return OwnersColumns(lagged=release.lagged, outcomes=named(release.family or GAUSSIAN.name).outcomes)


MODEL = ReleaseKind(
    model_request,
    of_jobs=False,
    subject="formula",
    steering=("epsilon",),
    parameters={},
    columns=_columns,
    of_owner=_of_owner,
)
