"""Releases of models and of posterior summaries: one function call each, whose answer fits in one table of numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

import numpy as np

from discreet.ledger import Entry
from discreet.pages.page import Prose
from discreet.plan.confidential import Confidential
from discreet.plan.file import PlanSource
from discreet.plan.outputs import write_release
from discreet.plan.shape import ModelSection, PosteriorSection, as_first_written
from discreet.plan.sheets import refuse_long
from discreet.plan.source import Data
from discreet.privacy.columns import taken
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Pure, shown
from discreet.privacy.units import Groups, Rows
from discreet.release.account import Account
from discreet.release.files import SUMMARY_SAMPLER
from discreet.release.offer import Offer
from discreet.release.tables import read_table
from discreet.report.release import Results
from discreet.words.errors import PrivacyError
from discreet.words.voices import written

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.frames import Frame
    from discreet.models.formula.formula import Formula
    from discreet.release.question import Question

DIGITS = 4
"""Significant digits of the basic form."""

COLUMNS = {
    "coefficient": "name of a coefficient, as R writes it",
    "at": "the cut-off, the probability or the level asked about",
    "answer": "the private answer",
    "low": "lower end: the answer of all rows at once, at 95 %, if the model is right; of an interval, its own end",
    "high": "upper end of the same",
    "effect": "fixed, random or variance",
    "group": "grouping factor",
    "term": "name of the coefficient or level",
    "estimate": "the private estimate",
    "std_error": "its standard error, noise included",
    "flag": "why the estimate must not be read as it stands; empty where nothing is known against it",
}


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """One release of a model or of posterior summaries."""

    source: PlanSource
    release: PosteriorSection | ModelSection
    guarantee: Guarantee
    details: dict[str, Any]
    offered: Callable[[Any], Offer[None, Any, Any]]
    """The model or the summary as an offer, from the public columns of the data."""

    @property
    def response(self) -> str:
        """The column that it is about."""
        return self.model.response.column

    @property
    def model(self) -> Formula:
        """Its formula as read."""
        from discreet.models.formula.formula import read_formula

        return read_formula(self.release.formula, needs_random=False)

    def offer(self, data: Confidential) -> Offer[None, Any, Any]:
        """The offer about these data, which writes the files of the release. Only public columns are read for it."""
        from discreet.models.formula.roles import Roles

        declared = self.source.tables.data
        model, roles = self.model, Roles(declared.public, declared.numbers)
        if isinstance(self.release, PosteriorSection):
            roles.refuse_unknown(model, data.path)  # an engine would tell the types that it found
        table = data.table(roles.readings(model))
        if data.engine is not None and self._needs_rows(table, model):
            data.refuse_collection(table, model.columns)
        found = self.offered(table)
        if found.guarantee.loss.to_dict() != self.guarantee.loss.to_dict():
            raise PrivacyError(
                f"Release {self.release.name!r} would cost another loss than {self.guarantee.loss}.",
                "Nothing was spent.",
                "Report this with its formula.",
                about="release",
            )

        def read(nothing: None) -> Any:
            known: Any = found.expected()
            refuse_long(self.source, [known.estimates] if isinstance(self.release, ModelSection) else [])
            return found.read(nothing)

        write = partial(self._write, found.details)
        return replace(found, guarantee=self.guarantee, details=self.details, read=read, write=write)

    def _needs_rows(self, table: Frame, model: Formula) -> bool:
        """Whether sums by categories, which an engine can compute, are not enough."""
        from discreet.models.formula.formula import without_lags
        from discreet.models.formula.rows import plan, with_sizes
        from discreet.models.linear.cells import runs_in_engine
        from discreet.models.linear.private.public import hidden

        if isinstance(self.release, PosteriorSection) or without_lags(model)[1]:
            return True
        if isinstance(self.guarantee.unit, Groups) or self.release.family:
            return True
        layout = plan(*with_sizes(hidden(table, model), model))
        return not layout.coded or not runs_in_engine(layout)

    def _write(
        self, constants: Mapping[str, Any], value: Any, guarantee: Guarantee, entry: Entry, folder: Path
    ) -> None:
        """Write every file of the release into `folder`; `constants` are those of its mechanism."""
        research = value.published() if isinstance(self.release, ModelSection) else value.to_arrow()
        write_release(
            folder,
            {"": {"research": research, "basic": shortened(research)}},
            self.source.output,
            guarantee=guarantee.noted(*getattr(value, "notes", ())),
            entry=entry,
            parameters={**self.details, "mechanism": dict(constants)},
            columns={name: COLUMNS[name] for name in research.column_names},
            sampler=SUMMARY_SAMPLER,
        )

    def _supposed(self) -> list[str]:
        """The kinds of limits that its answers have."""
        from discreet.models.formula.formula import without_lags

        if isinstance(self.release, PosteriorSection):
            return [self.release.summary]
        lags = without_lags(self.model)[1]
        return ["model", *["lags"] * bool(lags)]

    def published(self, folder: Path) -> pa.Table:
        """The answers as they were published, in full where that form is there."""
        forms = ("research.parquet", "research.csv", "basic.parquet", "basic.csv")
        path = next((folder / name for name in forms if (folder / name).exists()), folder / forms[0])
        return read_table(path, kind=path.suffix[1:], attributes=())

    def results(self, folder: Path) -> Results:
        """The answers, from the published files."""
        from discreet.report.estimates import estimates, in_short
        from discreet.report.flags import LIMITS

        table = self.published(folder)
        return Results(
            flagged=_flagged(self.release.name, table),
            answers=[
                Prose(f"Formula `{self.release.formula}`, {self.guarantee.loss} for all answers together."),
                *estimates(table, self.release.name),
            ],
            short=in_short(table, self.release.name),
            limits=[LIMITS[kind] for kind in self._supposed()],
        )


def _flagged(name: str, table: pa.Table) -> list[str]:
    """A line for each flag and kind of estimate that has it."""
    from discreet.report.flags import FLAGS

    found: dict[tuple[str, str, str], list[str]] = {}
    rows = table.to_pylist() if "flag" in table.column_names else []
    for row in rows:
        for word in row["flag"].split(", ") if row["flag"] else ():
            what = (row.get("effect", "answer"), row.get("group") or "", word)
            found.setdefault(what, []).append(row.get("term") or row.get("coefficient", ""))
    fixed = sum(row.get("effect", "fixed") == "fixed" for row in rows)
    lines = []
    for (effect, group, word), terms in found.items():
        some = f" {', '.join(dict.fromkeys(terms))}" if len(terms) < fixed else ""
        shown = {"fixed": f"fixed effects{some}", "random": f"effects of {group}", "answer": f"answers{some}"}
        lines.append(f"**{name}, {shown.get(effect, f'variance of {group}')}: {word}.** {FLAGS[word]}")
    return lines


def summary_request(source: PlanSource, release: PosteriorSection | ModelSection, account: Account) -> SummaryRequest:
    """The request for a release of a plan; what needs the data is found when it is read."""
    unit = account.unit
    if not isinstance(unit, Rows | Groups) or (isinstance(unit, Groups) and isinstance(release, PosteriorSection)):
        also = "" if isinstance(release, PosteriorSection) else ", or all rows of a group"
        raise PrivacyError(
            f"{release.kind} releases protect single rows{also}, and this source protects {unit.key}.",
            remedy="Use [unit] kind = 'rows' with lower, upper and response, for a source of its own.",
            about="kind",
        )
    declared = source.tables.data
    if isinstance(release, ModelSection):
        guarantee, public, offered = _model(release, declared.public, account, unit)
    else:
        assert isinstance(unit, Rows)
        guarantee, public, offered = _posterior(release, declared, account, unit)
    dumped, output = release.model_dump(mode="json", exclude={"name", "title", "source", "replaces"}), source.output
    asked = as_first_written(dumped)
    details = asked | taken(unit, public) | {"forms": sorted(output.forms), "formats": sorted(output.formats)}
    return SummaryRequest(source, release, guarantee, details, offered)


Made: TypeAlias = tuple[Guarantee, tuple[str, ...], Callable[[Path | str], Offer[None, Any, Any]]]
"""The promise of a release, the columns that it takes as public, and its offer from the data."""


def _model(release: ModelSection, public: tuple[str, ...], account: Account, unit: Rows | Groups) -> Made:
    from discreet.models.linear.private import lag_noise, moments, release_mixed
    from discreet.models.linear.private.offers import ModelQuestion

    question = release_mixed.ask(
        release.formula,
        epsilon=release.epsilon,
        public=public,
        clip=release.clip,
        lagged=release.lagged,
        series=release.series,
        time=release.time,
        family=release.family or "gaussian",
        exposure=release.exposure,
        account=account,
    )
    assert isinstance(question, ModelQuestion)
    request = question.request
    moments.refuse_wide(Pure(release.epsilon))
    proof = lag_noise.PROOF if request.lags else moments.PROOF
    guarantee = Guarantee(unit, Pure(release.epsilon), basis="proved", proof=proof, notes=request.notes())
    return guarantee, request.public, question.offer


def _posterior(release: PosteriorSection, declared: Data, account: Account, unit: Rows) -> Made:
    from discreet.models.bayes.interval import posterior_interval
    from discreet.models.bayes.probability import posterior_probability
    from discreet.models.bayes.quantile import posterior_quantile
    from discreet.models.bayes.regression import declared_in, fixed_formula
    from discreet.models.bayes.spending import PROOF, public_note

    _refuse_repeated(release)
    columns = declared_in(fixed_formula(release.formula), declared.public, unit)
    at, scale, asked = (
        [float(value) for value in release.at],
        float(release.scale),
        (release.formula, release.coefficient),
    )
    common: dict[str, Any] = {"epsilon": release.epsilon, "partitions": release.partitions, "account": account}
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
    return guarantee, columns, question.offer


def _refuse_repeated(release: PosteriorSection) -> None:
    """Pair coefficients with values, or one of either with all of the others; a question is asked once."""
    names, at = release.coefficient, release.at
    if len(names) != len(at) and min(len(names), len(at)) > 1:
        raise PrivacyError(
            f"at = {written(list(map(str, at)))} has {len(at)} values for {len(names)} coefficients.",
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


def shortened(table: pa.Table) -> pa.Table:
    """The basic form: numbers with few digits."""
    import pyarrow as pa

    for i, name in enumerate(table.column_names):
        if pa.types.is_floating(table[name].type):
            values = [
                None if v is None or not np.isfinite(v) else float(f"{v:.{DIGITS}g}") for v in table[name].to_pylist()
            ]
            table = table.set_column(i, name, pa.array(values, pa.float64()))
    return table
