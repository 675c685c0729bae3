"""A first plan for somebody's own table, with a comment at every line: written from what its owner declares.

Into it go names of columns that were declared, their types, and the values of columns that were declared public. No
other value of the data is read for it: domains of workers' attributes are declared and never learned.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from discreet.data.databases import is_address
from discreet.data.frames import called, collect, open_frame, refuse
from discreet.data.histories import history_faults
from discreet.data.row_checks import refuse_values_for_names
from discreet.data.schema import REST, Label, Schema
from discreet.data.unnamed import periods
from discreet.ledger import Period
from discreet.plan.reading import read_plan
from discreet.privacy.losses import exact, shown
from discreet.words.errors import PlanError

LISTED = 30
"""Values of a public column that are offered for labels; with more it is no list that people label."""


UNUSED = "no statistic reads these; none says of which period a row is"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The owner's answers about a table.

    Attributes
    ----------
    source : the table.
    schema : which column of jobs is what; None for rows of a model.
    workplaces, workers, allow_multiple : as in `read_jobs`.
    quarters, time : of job histories, all quarters in their order and the column that has them.
    alpha : the share by which a workforce may grow unnoticed.
    response, bounds, public, formula : of a model: what is protected, where it lies, what is known, what is fitted.
    epsilon : of the whole budget.
    period, per_period : of a series: what the table is about, "2026-Q1", and what each such period may cost.
    ledger, dataset, folder : where losses are kept, under which name, and where releases go.
    """

    source: str
    schema: Schema | None = None
    workplaces: str | None = None
    workers: str | None = None
    allow_multiple: bool | int = False
    quarters: Sequence[Label] | None = None
    time: str = "quarter"
    alpha: str = "0.1"
    response: str = ""
    bounds: tuple[str, str] = ("0", "1")
    public: Sequence[str] = ()
    formula: str = ""
    epsilon: str = "4"
    period: str = ""
    per_period: str = ""
    ledger: str = "ledger.db"
    dataset: str = ""
    folder: str = "release"
    title: str = ""
    types: Mapping[str, str] = field(default_factory=dict)


def write_plan(path: str | Path, wish: Wish) -> Path:
    """Write a plan that `check` can price to a file that is not there yet; paths in it are relative to it."""
    path = Path(path)
    if os.path.lexists(path):
        raise PlanError(
            f"{str(path)!r} is there.", "A new plan replaces nothing.", "Name another file with --out.", about="out"
        )
    if not path.parent.is_dir():
        raise PlanError(
            f"There is no folder {str(path.parent)!r}.", "A plan lies in one.", "Make it first.", about="out"
        )
    if wish.quarters is not None:
        refuse(history_faults(wish.quarters, wish.schema, wish.time))
    lines = _rows(path, wish) if wish.schema is None else _jobs(path, wish, wish.schema)
    text = "\n".join(lines) + "\n"
    read_plan(path, text.encode())
    path.write_text(text, encoding="utf-8")
    return path


def _without_role(wish: Wish, schema: Schema) -> list[str]:
    """The columns that somebody has to declare, after none was found that may be a period."""
    frame = open_frame(wish.source, readings=schema.readings([wish.source]))
    time = None if wish.quarters is None else wish.time
    others = schema.unnamed(column for column in frame.collect_schema() if column != time)
    refuse((fault for fault, _ in periods(frame, schema, others, time=time)), about="source")
    return others


def _jobs(path: Path, wish: Wish, schema: Schema) -> Iterator[str]:
    others, levels = _without_role(wish, schema), _public_levels(wish, schema)
    yield from _head(wish, path)
    yield f"source = {_text(_relative(wish.source, path))}    # confidential; stays where it is"
    if wish.workplaces:
        yield f"workplaces = {_text(_relative(wish.workplaces, path))}    # the public list of establishments"
    else:
        yield '# workplaces = "places.csv"    # the public list of establishments: cells without jobs are published too'
    if wish.workers:
        yield f"workers = {_text(_relative(wish.workers, path))}    # the workers' attributes; confidential"
    if wish.allow_multiple is not False:
        bound = "a worker may have jobs at any number of establishments"
        bound = bound if wish.allow_multiple is True else f"a worker has jobs at {wish.allow_multiple} at most"
        yield f"allow_multiple = {json.dumps(wish.allow_multiple)}    # {bound}"
    yield from _period(wish)
    if wish.quarters is not None:
        yield f"quarters = {_list(wish.quarters)}    # all of them, in their order"
        yield f"time = {_text(wish.time)}    # the column that has them"
    yield from ("", "[data.schema]    # which column is what")
    yield f"establishment = {_text(schema.establishment)}{_typed(wish, schema.establishment)}"
    if schema.size is not None:
        yield f"size = {_text(schema.size)}    # a row's number of jobs"
    elif schema.worker is not None:
        yield f"worker = {_text(schema.worker)}{_typed(wish, schema.worker)}"
    yield f"workplace_attributes = {_list(schema.workplace_attributes)}    # everybody may know these"
    if schema.unused:
        yield f"unused = {_list(schema.unused)}    # {UNUSED}"
    if others:
        yield f"# unused = {_list((*schema.unused, REST))}    # of all other columns, if that is so: {UNUSED}"
    yield from ("", "[data.schema.worker_attributes]    # confidential; only what each can be is public, in this order")
    yield from (f"{_key(name)} = {_list(schema.domain(name).declared)}" for name in schema.worker_attributes)
    for name, found in levels.items():
        yield from ("", f"# [data.labels.{_key(name)}]    # what the basic form calls a category of this public column")
        yield from (f"# {_key(str(value))} = {_text(str(value))}" for value in found)
    yield from (
        "",
        "[unit]    # whom to protect: one establishment's workforce may grow by this share, or by one worker",
        'kind = "establishments"',
        f"alpha = {_number(wish.alpha)}",
    )
    yield from _budget(wish)
    by = list(schema.workplace_attributes)
    if wish.quarters is not None:
        yield from _release(
            "changes", wish, f"quarters = {_list(wish.quarters)}    # each, and what changed", f"by = {_list(by)}"
        )
    else:
        counted = f"by = {_list(by)}    # one count for each establishment cell; fewer mean less noise"
        yield from _release("jobs", wish, counted)
    if schema.worker_attributes and wish.quarters is None:
        first = next(iter(schema.worker_attributes))
        yield from (
            "",
            "# [[release]]    # a second table, by an attribute of workers: take the # away and share epsilon",
        )
        yield from ('# name = "workers"', '# kind = "count"', f"# by = {_list([*by[:1], first])}", "# epsilon = 1")
    yield from _output(wish)


def _rows(path: Path, wish: Wish) -> Iterator[str]:
    yield from _head(wish, path)
    yield f"source = {_text(_relative(wish.source, path))}    # confidential; stays where it is"
    yield f"public = {_list(wish.public)}    # everybody may know these columns of every row"
    yield from _period(wish)
    low, high = wish.bounds
    yield from ("", "[unit]    # whom to protect: one row's response, whatever it is between these bounds")
    yield 'kind = "rows"'
    yield f"response = {_text(wish.response)}{_typed(wish, wish.response)}"
    yield f"lower = {_number(low)}    # known without the data; a smaller response counts as this"
    yield f"upper = {_number(high)}"
    yield from _budget(wish)
    group = f" + (1 | {wish.public[-1]})" if wish.public else ""
    formula = wish.formula or f"{wish.response} ~ 1{group}"
    yield from _release("model", wish, f"formula = {_text(formula)}    # lme4's syntax, of public columns alone")
    yield from _output(wish)


def _head(wish: Wish, path: Path) -> Iterator[str]:
    yield from (
        "# A first plan. It holds names of columns, and no row of the data.",
        f"#   discreet check {path.name}            what it costs and how far off it will be; spends nothing",
        f"#   discreet check {path.name} --owner    what is wrong with the data, for their owner alone",
        f"#   discreet run {path.name}              pays, draws, publishes",
        "",
        f"title = {_text(wish.title or _dataset(wish))}",
        "",
        "[data]    # paths are relative to this file",
    )


def _period(wish: Wish) -> Iterator[str]:
    if wish.period:
        yield f"period = {_text(str(Period.of(wish.period)))}    # what the data are about; a new plan for the next"


def _budget(wish: Wish) -> Iterator[str]:
    yield from (
        "",
        "[budget]    # what all releases of these data together may reveal",
        f"epsilon = {_number(wish.epsilon)}",
        *_amounts(wish),
        f"ledger = {_text(wish.ledger)}    # who spent what; a team uses postgresql://user@host/database",
        f"dataset = {_text(_dataset(wish))}    # the data's name in the ledger; public, and for good",
    )


def _amounts(wish: Wish) -> Iterator[str]:
    if wish.per_period:
        if not wish.period:
            raise PlanError(
                "An amount for each period was given, and no period.",
                "A budget has amounts for years, quarters or months.",
                "Say what the data are about, for example 2026-Q1.",
                about="period",
            )
        each = Period.of(wish.period).step
        yield f"per_{each} = {_number(wish.per_period)}    # what releases about one {each} may cost together"


def _release(name: str, wish: Wish, *what: str) -> Iterator[str]:
    kind = "model" if wish.schema is None else "count" if wish.quarters is None else "changes"
    yield from ("", "[[release]]", f"name = {_text(name)}    # a folder of the output and a line of the ledger")
    yield from (f"kind = {_text(kind)}", *what)
    half = exact(wish.epsilon, name="epsilon") / 2
    half = min(half, exact(wish.per_period, name="per_period")) if wish.per_period else half
    told = shown(half) if exact(shown(half), name="epsilon") == half else str(half)
    yield f"epsilon = {_number(told)}    # what this release takes of the budget; `check` shows the error first"


def _output(wish: Wish) -> Iterator[str]:
    yield from ("", "[output]", f"folder = {_text(wish.folder)}    # for releases alone")


def _public_levels(wish: Wish, schema: Schema) -> dict[str, list[Label]]:
    """The values of columns that were declared public, where they are few; refused where a name is a value."""
    table = wish.source if wish.workplaces is None else wish.workplaces
    name = called(table)
    frame = open_frame(table, name=name, readings=schema.readings([table]))
    types = frame.collect_schema()
    refuse_values_for_names(frame, [*schema.keys, *schema.workplace_attributes, *schema.worker_attributes], name=name)
    found = {}
    for column in schema.workplace_attributes:
        if column in types:
            levels = frame.select(column).unique().sort(column).head(LISTED + 1)
            values = [
                value for value in collect(levels, step="read public values")[column].to_pylist() if value is not None
            ]
            if len(values) <= LISTED:
                found[column] = values
    return found


def _dataset(wish: Wish) -> str:
    named = called(wish.source) if is_address(wish.source) else Path(wish.source.partition("::")[0]).name
    return wish.dataset or named.partition(".")[0]


def _relative(text: str, path: Path) -> str:
    if is_address(text):
        return text
    place, mark, table = text.partition("::")
    return os.path.relpath(place, path.parent) + mark + table


def _typed(wish: Wish, column: str) -> str:
    return f"    # {wish.types[column]}" if column in wish.types else ""


def _number(text: str) -> str:
    return text if re.fullmatch(r"-?\d+(\.\d+)?", text) else _text(text)


def _list(values: Sequence[Label]) -> str:
    return f"[{', '.join(_text(value) if isinstance(value, str) else json.dumps(value) for value in values)}]"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _text(text: str) -> str:
    """JSON's text in quotes is TOML's, but for one character that TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
