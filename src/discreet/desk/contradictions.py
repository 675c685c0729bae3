"""Settings of a desk that contradict each other: they are refused when it opens, and not plan by plan.

Only desk.toml is read: no data, no ledger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING

from discreet.data.histories import history_faults
from discreet.data.row_checks import one_row_per_job
from discreet.data.schema import Schema
from discreet.ledger import Policy
from discreet.ledger.periods import Period, Step
from discreet.privacy.losses import Loss, loss
from discreet.privacy.units import Groups, Rows
from discreet.words.errors import DataError
from discreet.words.voices import PLAN

if TYPE_CHECKING:
    from discreet.desk.desk import DataSource, Settings

STEPS: tuple[Step, ...] = ("year", "quarter", "month")


def contradictions(settings: Settings, schemas: Mapping[str, Schema | DataError | None]) -> Iterator[str]:
    """What cannot be true together, in words; `schemas` of the sources by name, or what is wrong with one."""
    for source in settings.source:
        found = [*_of_budget(source), *_of_kind(source), *_of_columns(source, schemas[source.name])]
        yield from (f"source {source.name!r}, {words}" for words in found)
    for one, other in combinations(settings.source, 2):
        if one.dataset == other.dataset:
            differ = [name for name, values in _shared(one, other).items() if values[0] != values[1]]
            if differ:
                yield (
                    f"sources {one.name!r} and {other.name!r}: both are the data set {one.dataset!r}, and they differ "
                    f"in {', '.join(differ)}. A data set has one budget. Say the same of both, or rename one."
                )


def policies(source: DataSource) -> list[Policy]:
    """The limits for periods that a source states."""
    stated = {step: getattr(source, f"per_{step}") for step in STEPS}
    return [Policy(step, limit) for step, limit in stated.items() if limit is not None]


def _total(source: DataSource) -> Loss:
    return loss(epsilon=source.epsilon, delta=source.delta)


def _of_budget(source: DataSource) -> Iterator[str]:
    stated = policies(source)
    if len(stated) > 1:
        names = " and ".join(f"per_{one.each}" for one in stated)
        yield f"per_{stated[1].each}: {names} are given. A budget is divided one way. Leave one out."
    for policy in stated:
        if policy.beyond(_total(source)):
            yield (
                f"per_{policy.each}: {policy.limit} for each {policy.each} is more than {_total(source)}, the budget "
                "of all together. Lower it, or raise the budget."
            )
    if stated and source.period is not None and Period.of(source.period).step != stated[0].each:
        each = stated[0].each
        yield f"period: {source.period} is no {each}. The budget has an amount for each {each}. Name the {each}."


def _of_kind(source: DataSource) -> Iterator[str]:
    of_rows = isinstance(source.unit.unit(), Rows | Groups)
    if of_rows != source.of_rows:
        yield (
            f"unit: kind = {source.kind!r} and a unit of {source.unit.kind!r}. Rows protect responses: 'rows' or "
            "'groups'. Jobs protect establishments or workers. Change one of them."
        )
    only = {"quarters": source.quarters, "workplaces": source.workplaces, "workers": source.workers,
            "hierarchy": source.hierarchy, "schema": source.columns}  # fmt: skip
    given = [name for name, value in only.items() if value]
    if source.of_rows and given:
        yield f"{given[0]}: it is for jobs, and kind is 'rows'. Rows have public columns and a response. Leave it out."
    if source.quarters and source.workers is not None:
        yield "workers: quarters are given too. Attributes of workers are columns of job histories. Leave it out."


def _of_columns(source: DataSource, schema: Schema | DataError | None) -> Iterator[str]:
    if isinstance(schema, DataError):
        yield from (f"{fault.about or 'schema'}: {fault.said(PLAN)}" for fault in schema.faults)
        schema = None
    if source.quarters:
        for fault in history_faults(source.quarters, schema, source.time):
            yield f"{fault.about}: {fault.said(PLAN)}"
    if schema is not None:
        yield from (f"{fault.about}: {fault.said(PLAN)}" for fault in one_row_per_job(schema, source.allow_multiple))


def _shared(one: DataSource, other: DataSource) -> dict[str, tuple[object, object]]:
    """What sources of one data set must agree on. A plan may choose a unit that is not fixed."""
    found: dict[str, tuple[object, object]] = {
        "the budget": (_total(one).amounts, _total(other).amounts),
        "the amount for a period": (policies(one), policies(other)),
    }
    if one.unit_fixed and other.unit_fixed:
        found["the unit"] = (one.unit.unit().key, other.unit.unit().key)
    return found
