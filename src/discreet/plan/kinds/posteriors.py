"""Releases of posterior summaries: probabilities, quantiles and intervals of coefficients, by parts of the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never

from discreet.plan.confidential import Confidential
from discreet.plan.kinds.alarms import AlarmStep, EarlierOf, no_table
from discreet.plan.kinds.kind import Given, OwnersColumns, PlannedRelease, ReleaseKind
from discreet.plan.kinds.of_rows import PlannedRows, details_of, other_unit
from discreet.plan.shape import AlarmsSection, PosteriorSection
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Pure, shown
from discreet.privacy.units import Rows
from discreet.words.errors import PrivacyError
from discreet.words.voices import written as said

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.frames import Frame
    from discreet.models.formula.formula import Formula
    from discreet.models.formula.roles import Roles
    from discreet.release.question import Question


@dataclass(frozen=True, slots=True)
class PlannedPosterior(PlannedRows[PosteriorSection]):
    """One release of posterior summaries."""

    def refuse_unknown(self, model: Formula, roles: Roles, data: Confidential) -> None:
        roles.refuse_unknown(model, data.path)  # an engine would tell the types that it found

    def needs_rows(self, table: Frame, model: Formula) -> bool:
        return True

    def lengths(self, expected: Any) -> list[int]:
        return []

    def written(self, value: Any) -> pa.Table:
        return value.to_arrow()

    @property
    def limits(self) -> list[str]:
        return [self.release.summary]

    def alarm(self, asked: AlarmsSection, others: Mapping[str, PlannedRelease], earlier: EarlierOf) -> AlarmStep:
        raise no_table(asked.late, "late")


def posterior_request(given: Given, release: PosteriorSection) -> PlannedPosterior:
    """The request for a release of a plan; what needs the data is found when it is read."""
    from discreet.models.bayes.interval import posterior_interval
    from discreet.models.bayes.probability import posterior_probability
    from discreet.models.bayes.quantile import posterior_quantile
    from discreet.models.bayes.regression import declared_in, fixed_formula
    from discreet.models.bayes.spending import PROOF, public_note

    unit, declared = given.account.unit, given.source.tables.data
    if not isinstance(unit, Rows):
        raise other_unit(release.kind, given)
    _refuse_repeated(release)
    columns = declared_in(fixed_formula(release.formula), declared.public, unit)
    at, scale, asked = (
        [float(value) for value in release.at],
        float(release.scale),
        (release.formula, release.coefficient),
    )
    common: dict[str, Any] = {"epsilon": release.epsilon, "partitions": release.partitions, "account": given.account}
    common |= {"public": declared.public, "numbers": declared.numbers}
    question: Question[Any]
    match release.summary:
        case "probability":
            question = posterior_probability.ask(*asked, at=at, **common)
        case "quantile":
            question = posterior_quantile.ask(*asked, probability=at, scale=scale, **common)
        case "interval":
            question = posterior_interval.ask(*asked, level=at, scale=scale, **common)
        case _:
            assert_never(release.summary)
    guarantee = Guarantee(unit, Pure(release.epsilon), basis="proved", proof=PROOF, notes=(public_note(columns),))
    details = details_of(given, release, unit, columns)
    return PlannedPosterior(given.source, release, guarantee, details, question.offer)


def _refuse_repeated(release: PosteriorSection) -> None:
    """Pair coefficients with values, or one of either with all of the others; a question is asked once."""
    names, at = release.coefficient, release.at
    if len(names) != len(at) and min(len(names), len(at)) > 1:
        raise PrivacyError(
            f"at = {said(list(map(str, at)))} has {len(at)} values for {len(names)} coefficients.",
            "They pair up.",
            "Give as many values as coefficients, or one of either.",
            about="at",
        )
    asked = [(names[i % len(names)], at[i % len(at)]) for i in range(max(len(names), len(at)))]
    for (name, value), times in Counter(asked).items():
        if times > 1:
            raise PrivacyError(
                f"coefficient: {name!r} is asked about at {shown(value)} twice.",
                "Each question costs its share of epsilon.",
                "Leave one out.",
                about="coefficient",
            )


def _columns(release: PosteriorSection) -> set[str]:
    from discreet.models.formula.formula import read_formula

    return {*read_formula(release.formula, needs_random=False).columns}


def _of_owner(release: PosteriorSection) -> OwnersColumns:
    return OwnersColumns(formulas=(release.formula,))


POSTERIOR = ReleaseKind(
    posterior_request,
    of_jobs=False,
    subject="formula",
    steering=("epsilon",),
    parameters={"probability": "at", "level": "at"},
    columns=_columns,
    of_owner=_of_owner,
)
