"""Releases of models and of posterior summaries: one function call each, whose answer fits in one table of numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import PrivacyError
from discreet.faults import written
from discreet.ledger import Entry
from discreet.noise.source import Source
from discreet.plan.confidential import Confidential
from discreet.plan.folders import Paid, Rehearsal, RehearsedError
from discreet.plan.outputs import SUMMARY_SAMPLER, read_table, write_release
from discreet.plan.reading import PlanFile
from discreet.plan.shape import ModelSection, PosteriorSection
from discreet.plan.sizes import PublicSizes, TableCheck
from discreet.privacy.columns import taken
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Pure, shown
from discreet.privacy.units import Rows, Unit
from discreet.release.account import Account
from discreet.report.page import Prose, Table
from discreet.report.release import FLAGS, LIMITS, Results

if TYPE_CHECKING:
    import pyarrow as pa

DIGITS = 4
"""Significant digits of the basic form."""

ROWS_SHOWN = 60
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


class UnreadError(Exception):
    """A release came as far as its data."""


class Unread(Mapping[str, Any]):
    """Columns that are not there: with them a release goes on until it first needs data."""

    def __getitem__(self, name: str) -> Any:
        raise UnreadError

    def __iter__(self) -> Iterator[str]:
        raise UnreadError

    def __len__(self) -> int:
        raise UnreadError


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """One release of a model or of posterior summaries."""

    file: PlanFile
    release: PosteriorSection | ModelSection
    guarantee: Guarantee
    details: dict[str, Any]

    def check(self, sizes: PublicSizes | None) -> tuple[TableCheck, ...]:
        """There is no table of counts."""
        return ()

    def read(self, data: Confidential) -> Path:
        """Rehearse the release up to its charge, which finds everything that is wrong with formula and data."""
        try:
            self._ask(data.path, Rehearsal(self.guarantee.unit))
        except RehearsedError as rehearsed:
            if rehearsed.guarantee.loss.to_dict() == self.guarantee.loss.to_dict():
                return data.path
        raise PrivacyError(
            f"Release {self.release.name!r} would cost another loss than {self.guarantee.loss}. Nothing was spent. "
            "Report this with its formula."
        )

    def write(self, reading: Path, *, source: Source, guarantee: Guarantee, entry: Entry, folder: Path) -> None:
        """Draw, and write every file of the release into `folder`."""
        paid = Paid(self.guarantee.unit, entry, source)
        research, promised = self._ask(reading, paid)
        write_release(
            folder,
            {"": {"research": research, "basic": shortened(research)}},
            self.file.plan.output,
            guarantee=promised,
            entry=entry,
            parameters={**self.details, "mechanism": paid.constants},
            columns={name: COLUMNS[name] for name in research.column_names},
            sampler=SUMMARY_SAMPLER,
        )

    def results(self, folder: Path) -> Results:
        """The answers, from the published files."""
        forms = ("research.parquet", "research.csv", "basic.parquet", "basic.csv")
        path = next((folder / name for name in forms if (folder / name).exists()), folder / forms[0])
        table = read_table(path, kind=path.suffix[1:], attributes=())
        rows = [list(row.values()) for row in table.slice(0, ROWS_SHOWN).to_pylist()]
        more = f", the first {ROWS_SHOWN} of {len(table):,}" if len(table) > ROWS_SHOWN else ""
        caption = f"Private answers{more}, {self.release.name}"
        return Results(
            flagged=_flagged(self.release.name, table),
            answers=[
                Prose(f"Formula `{self.release.formula}`, {self.guarantee.loss} for all answers together."),
                Table(table.column_names, rows, caption, f"{self.release.name} answers"),
            ],
            limits=[LIMITS[self.release.summary if isinstance(self.release, PosteriorSection) else "model"]],
        )

    def refuse_without_data(self) -> None:
        """Refuse what no data could mend."""
        if isinstance(self.release, ModelSection):
            from discreet.lmm.private.moments import refuse_wide

            refuse_wide(Pure(self.release.epsilon))
        with suppress(UnreadError):
            self._ask(Unread(), Rehearsal(self.guarantee.unit))
        if isinstance(self.release, PosteriorSection) and self.release.partitions is not None:
            _refuse_few_parts(self.release, self.release.partitions)

    def _ask(self, data: Path | Unread, account: Account) -> tuple[pa.Table, Guarantee]:
        """The private answers as a table, with what they promise."""
        release, public = self.release, self.file.plan.data.public
        if isinstance(release, ModelSection):
            from discreet.lmm.private import release_mixed

            fit = release_mixed(
                release.formula,
                data,
                epsilon=release.epsilon,
                clip=release.clip,
                public=public,
                lagged=release.lagged,
                account=account,
                name=release.name,
            )
            return fit.tidy(), fit.guarantee.noted(*fit.notes)
        return _posterior(release, data, public, account)


def _flagged(name: str, table: pa.Table) -> list[str]:
    """A line for each flag and kind of estimate that has it."""
    found: dict[tuple[str, str, str], list[str]] = {}
    rows = table.to_pylist() if "flag" in table.column_names else []
    for row in rows:
        for word in row["flag"].split(", ") if row["flag"] else ():
            found.setdefault((row["effect"], row["group"] or "", word), []).append(row["term"])
    fixed = sum(row["effect"] == "fixed" for row in rows)
    lines = []
    for (effect, group, word), terms in found.items():
        some = f" {', '.join(terms)}" if len(terms) < fixed else ""
        what = {"fixed": f"fixed effects{some}", "random": f"effects of {group}"}.get(effect, f"variance of {group}")
        lines.append(f"**{name}, {what}: {word}.** {FLAGS[word]}")
    return lines


def _posterior(
    release: PosteriorSection, data: Path | Unread, public: tuple[str, ...], account: Account
) -> tuple[pa.Table, Guarantee]:
    import pyarrow as pa

    from discreet.bayes.interval import posterior_interval
    from discreet.bayes.probability import posterior_probability
    from discreet.bayes.quantile import posterior_quantile

    at, scale = [float(value) for value in release.at], float(release.scale)
    common: dict[str, Any] = {
        "epsilon": release.epsilon,
        "public": public,
        "partitions": release.partitions,
        "account": account,
        "name": release.name,
    }
    asked = (release.formula, data, release.coefficient)
    columns: dict[str, Any]
    if release.summary == "probability":
        p = posterior_probability(*asked, at=at, **common)
        guarantee = p.guarantee.noted(*p.value.notes)
        columns = {"at": p.value.at, "answer": p.value.probability, "low": p.value.low, "high": p.value.high}
        names = p.value.coefficient
    elif release.summary == "quantile":
        q = posterior_quantile(*asked, probability=at, unit=scale, **common)
        guarantee = q.guarantee.noted(*q.value.notes)
        columns = {"at": q.value.probability, "answer": q.value.quantile, "low": q.value.low, "high": q.value.high}
        names = q.value.coefficient
    else:
        i = posterior_interval(*asked, level=at, unit=scale, **common)
        guarantee = i.guarantee.noted(*i.value.notes)
        columns = {"at": i.value.level, "answer": i.value.location, "low": i.value.low, "high": i.value.high}
        names = i.value.coefficient
    return pa.table({"coefficient": list(names), **{name: list(values) for name, values in columns.items()}}), guarantee


def summary_request(file: PlanFile, release: PosteriorSection | ModelSection, unit: Unit) -> SummaryRequest:
    """The request for a release of a plan; what needs the data is found when it is read."""
    if not isinstance(unit, Rows):
        raise PrivacyError(
            f"{release.kind} releases protect single rows, and this plan protects {unit.key}.",
            remedy="Use [unit] kind = 'rows' with lower, upper and response, in a plan of its own.",
            about="kind",
        )
    if isinstance(release, PosteriorSection):
        _refuse_repeated(release)
    asked = release.model_dump(mode="json", exclude={"name", "title"})
    output = file.plan.output
    public, proof, notes = _taken_as_known(release, file.plan.data.public, unit)
    details = asked | taken(unit, public) | {"forms": sorted(output.forms), "formats": sorted(output.formats)}
    guarantee = Guarantee(unit, Pure(release.epsilon), proof=proof, notes=notes)
    request = SummaryRequest(file, release, guarantee, details)
    request.refuse_without_data()
    return request


def _taken_as_known(
    release: PosteriorSection | ModelSection, public: tuple[str, ...], unit: Rows
) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """The columns that a release takes as public, its proof, and what it will say of its input."""
    if isinstance(release, PosteriorSection):
        from discreet.bayes.regression import declared_in, fixed_formula
        from discreet.bayes.spending import PROOF, known

        columns = declared_in(fixed_formula(release.formula), public, unit)
        return columns, PROOF, (known(columns),)
    from discreet.formula.formula import read_formula
    from discreet.lmm.private import moments
    from discreet.lmm.private.request import read_request

    model = read_formula(release.formula, needs_random=False)
    asked = read_request(
        model.response.column,
        model.columns[1:],
        epsilon=release.epsilon,
        public=public,
        clip=release.clip,
        lagged=release.lagged,
        account=Rehearsal(unit),
    )
    return asked.public, moments.PROOF, asked.notes()


def _refuse_few_parts(release: PosteriorSection, parts: int) -> None:
    """Refuse so few parts that noise alone would choose the centre of a quantile or an interval."""
    from discreet.bayes import interval, quantile

    if release.summary == "probability":
        return
    stages = quantile.STAGES["private"] if release.summary == "quantile" else interval.STAGES
    spend = {stage: share * release.epsilon for stage, share in stages.items() if stage != "spread"}
    epsilon = sum(spend.values(), Fraction(0))
    mean = quantile.clipped_mean("private", "tight", float(release.scale), spend, epsilon=epsilon)
    questions = max(len(release.coefficient), len(release.at))
    mean.check(parts, epsilon / questions, whole=Fraction(release.epsilon), questions=questions)


def _refuse_repeated(release: PosteriorSection) -> None:
    """Coefficients and values pair up, or one of either goes with all of the others; a question is asked once."""
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
