"""Large changes: between two releases, or an exception report on a panel that somebody sends."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData

from discreet.changes.panel import Gaps
from discreet.changes.standards import Direction
from discreet.desk import analyses, published
from discreet.desk.accounts import Person
from discreet.desk.published import Published, keys_of
from discreet.desk.rendering import At, Here, drawn, page, refused
from discreet.desk.sandbox import confined, in_turn
from discreet.desk.security import Asking, Form, InTurn, needs
from discreet.desk.turns import TooMuch
from discreet.desk.uploads import ACCEPT, kept
from discreet.pages import charts
from discreet.pages.page import Figure, Table
from discreet.tables.reopened import reopened
from discreet.utility.between import SureChanges, changes_between
from discreet.words.errors import DataError, DiscreetError

router = APIRouter(include_in_schema=False)
Analyst = Annotated[Person, Depends(needs("analyse"))]
FARTHEST, LONGEST = 120, 200
KINDS = ("report", "backtest")
OPTIONS: dict[str, tuple[str, Callable[[str], bool], str]] = {
    "horizon": (
        "1",
        lambda text: bool(re.fullmatch("[0-9]{1,3}", text)) and 1 <= int(text) <= FARTHEST,
        f"a whole number of periods ahead, 1 to {FARTHEST}",
    ),
    "cutoff": ("0.95", lambda text: 0.5 < float(text) < 1, "a quantile of the upper half, between 0.5 and 1"),
    "cost_ratio": ("10", lambda text: 0 < float(text) < math.inf, "a number of false alarms above 0"),
    "capacity": (
        "",
        lambda text: not text or (bool(re.fullmatch("[0-9]{1,5}", text)) and int(text) >= 1),
        "a whole number of series to look at, 1 to 99999, or nothing for a list by costs",
    ),
    "season": (
        "",
        lambda text: not text or (bool(re.fullmatch("[0-9]{1,3}", text)) and 1 <= int(text) <= 366),
        "a whole number of periods in a season, 1 to 366, or nothing for what the calendar says",
    ),
    "hierarchy": (
        "",
        lambda text: len(text) <= LONGEST,
        "a few columns of the panel with commas between, from the top down, or nothing",
    ),
    **{
        name: ("", lambda text: len(text) <= LONGEST, "a few columns with commas between, or nothing")
        for name in ("indicators", "known")
    },
    "by_value": ("", lambda text: text in ("", "yes"), "'yes', or nothing"),
    "kind": ("report", lambda text: text in KINDS, f"one of {', '.join(KINDS)}"),
    "periods": (
        "24",
        lambda text: bool(re.fullmatch("[0-9]{1,3}", text)) and 1 <= int(text) <= FARTHEST,
        f"a whole number of past lists, 1 to {FARTHEST}",
    ),
    "gaps": ("skip", lambda text: text in get_args(Gaps), f"one of {', '.join(get_args(Gaps))}"),
    "direction": ("decline", lambda text: text in get_args(Direction), f"one of {', '.join(get_args(Direction))}"),
}
"""The settings of a report: usual value, test, and a description of what passes it."""

COLUMNS = {"series": "series", "time": "t", "value": "value", "method": "method", "forecast": "forecast"}
"""Columns by what the form calls them, with our names, which are the usual ones."""

TOP, MOST = 25, 500
SHOWN = 12
LEVEL = 0.95
"""Of releases that do not say theirs."""


@router.get("/changes", dependencies=[InTurn])
def changes(
    request: Request, here: At, asking: Asking, before: str = "", after: str = "", least: str = "", fdr: str = ""
) -> Response:
    return _form(request, here, asking, before=before, after=after, least=least, fdr=fdr)


def _form(
    request: Request,
    here: Here,
    asking: Person,
    given: Mapping[str, str] | None = None,
    *,
    before: str = "",
    after: str = "",
    least: str = "",
    fdr: str = "",
    status: int = 200,
    wrong: str = "",
) -> Response:
    compared, differ = None, ""
    if before and after:
        try:
            compared = _compared(here, before, after, least, fdr)
        except DataError as error:
            status, differ = 409, refused(request, asking, error)
    releases = [each for each in published.published(here.desk) if _subject(each)]
    first, second = _usual(releases)
    return page(
        request,
        "changes.html",
        status,
        releases=[(f"{each.plan}/{each.name}", f"{each.name}: {', '.join(_subject(each))}") for each in releases],
        before=before or first,
        after=after or second,
        least=least[:LONGEST],
        fdr=fdr[:LONGEST],
        compared=compared,
        differ=differ,
        renamed=any((given or {}).get(key, usual) != usual for key, usual in COLUMNS.items()),
        led=any((given or {}).get(key) for key in ("indicators", "known")),
        reports=analyses.listed(here.store, "exceptions", asking),
        megabytes=here.desk.settings.upload_megabytes,
        accept=ACCEPT,
        given={key: usual for key, (usual, _, _) in OPTIONS.items()} | COLUMNS | dict(given or {}),
        wrong=wrong,
    )


def _usual(releases: list[Published]) -> tuple[str, str]:
    """Two releases by the same attributes, the older first; the last two where there are none."""
    by = {f"{each.plan}/{each.name}": _subject(each) for each in releases}
    names = list(by)
    pairs = ((old, new) for i, new in enumerate(names) for old in names[i + 1 :] if by[old] == by[new])
    return next(pairs, (names[-1], names[0]) if names else ("", ""))


def _subject(release: Published) -> list[str]:
    """What a release is by: the attributes of a table of counts, the formula of a model; nothing of others."""
    told = release.about["parameters"]
    if told.get("kind") == "model":
        return [str(told["formula"])]
    return list(told["tables"][0]["by"]) if told.get("kind") == "count" else []


@router.post("/changes")
async def report(request: Request, here: At, analyst: Analyst, form: Form) -> Response:
    """Work on a panel in a process with limits and keep the result for its owner."""
    try:
        options = _options(form)
        name = await in_turn(analyst.name, partial(_report, here, analyst, form, options))
    except TooMuch:
        raise
    except DiscreetError as error:
        given = {key: str(form[key])[:LONGEST] for key in (*OPTIONS, *COLUMNS) if key in form}
        again = partial(_form, request, here, analyst, given, status=409, wrong=refused(request, analyst, error))
        return await run_in_threadpool(again)
    return RedirectResponse(f"/changes/{name}", status_code=303)


def _report(here: Here, analyst: Person, form: FormData, options: dict[str, Any]) -> str:
    """The name of the result."""
    with kept(form, "panel", "forecasts", "calendar") as files:
        if "panel" not in files:
            raise DataError(
                "No panel was sent.",
                "It is a CSV or Parquet file with a row for each series and period.",
                "Choose one.",
                about="panel",
            )
        columns = {ours: str(form.get(key, "")).strip()[:LONGEST] or ours for key, ours in COLUMNS.items()}
        sent = {field: files.get(field) for field in ("panel", "forecasts", "calendar")}
        asked = {key: value for key, value in options.items() if key not in ("kind", "periods")}
        past = options["periods"] if options["kind"] == "backtest" else None
        found = confined("exceptions", sent | {"options": asked, "columns": columns, "periods": past})
    what = f"Large {'change' if options['direction'] == 'both' else options['direction']}s"
    title = f"{what} ahead" if past is None else f"{what}: {len(found['rows'])} past lists"
    return analyses.keep(here.store, "exceptions", title, {"options": options, **found}, analyst)


def _options(form: FormData) -> dict[str, Any]:
    """The settings of the report; invalid ones are refused before any file is read."""
    given = {key: str(form.get(key, usual)).strip() for key, (usual, _, _) in OPTIONS.items()}
    for key, (usual, is_fit, words) in OPTIONS.items():
        try:
            fits = is_fit(given[key])
        except ValueError:
            fits = False
        if not fits:
            name = key.replace("_", " ")
            raise DataError(
                f"{given[key][:20]!r} was sent as {name}.",
                f"It is {words}.",
                f"Use for example {usual or 12}.",
                about=key,
            )
    return given | {
        "horizon": int(given["horizon"]),
        "cutoff": float(given["cutoff"]),
        "cost_ratio": float(given["cost_ratio"]),
        "capacity": int(given["capacity"]) if given["capacity"] else None,
        "season": int(given["season"]) if given["season"] else None,
        "by_value": given["by_value"] == "yes",
        "periods": int(given["periods"]),
        **{
            key: [name.strip() for name in given[key].split(",") if name.strip()]
            for key in ("hierarchy", "indicators", "known")
        },
    }


def _compared(here: Here, before: str, after: str, least: str, fdr: str = "") -> dict[str, Any]:
    """Counts that changed by more than the noise of both releases can explain, then the largest other changes."""
    first, second = (_chosen(here, text) for text in (before, after))
    if "model" in {each.about["parameters"].get("kind") for each in (first, second)}:
        return _models(first, second, least, fdr)
    early, late = (each.table(each.tables[0]) for each in (first, second))
    keys = keys_of(early)
    if set(early.column_names) != set(late.column_names) or not keys:
        raise DataError(
            f"{first.name!r} and {second.name!r} do not have the same attributes.",
            "Changes are between the same cells.",
            "Choose two releases by the same attributes.",
            about="second",
        )
    value = "sum" if "sum" in early.column_names else "count"
    both = [_drawn(each) for each in (first, second)]
    about: dict[str, Any] = {"least": _least(least), "fdr": _share(fdr), "value": value}
    if None not in both and both[0].by == both[1].by:
        keys, found = list(both[0].by), changes_between(*both, **about)
    else:
        levels = [float(Fraction(str(each.about["parameters"].get("level") or LEVEL))) for each in (first, second)]
        found = changes_between(early, late, by=keys, level=min(levels), **about)
    return _shown(found, first, second, int, "{:,.0f}")


def _models(first: Published, second: Published, least: str, fdr: str) -> dict[str, Any]:
    """Effects of two models that changed by more than noise and sampling can explain."""
    if _subject(first) != _subject(second):
        raise DataError(
            f"{first.name!r} and {second.name!r} are no models of one formula.",
            "Changes are between the same effects.",
            "Choose two releases of one model.",
            about="second",
        )
    files = (
        next((name for name in each.about["files"] if "research" in name), each.tables[0]) for each in (first, second)
    )
    tables = [each.table(name) for each, name in zip((first, second), files, strict=True)]
    found = changes_between(
        *tables, by=["group", "term"], value="estimate", level=LEVEL, least=_least(least), fdr=_share(fdr)
    )
    return _shown(found, first, second, lambda number: round(number, 4), "{:.3f}")


def _shown(
    found: SureChanges, first: Published, second: Published, number: Callable[[float], float], form: str
) -> dict[str, Any]:
    rows = [
        {
            "cell": ", ".join(str(row[key]) for key in found.by if row[key]),
            **{name: number(row[name]) for name in ("before", "after", "change")},
            "true change": " to ".join("?" if row[end] is None else form.format(row[end]) for end in ("low", "high")),
            "alarm": "yes" if row["alarm"] else "no" if None not in (row["low"], row["high"]) else "not known",
        }
        for row in found.rows()[: max(TOP, min(int(found.alarm.sum()), MOST))]
    ]
    shown = f"{len(rows)} of {len(found.cells):,} cells, {first.name} to {second.name}"
    caption = f"Alarms first, then the largest other changes: {shown}"
    bars = [{"cell": row["cell"], "change": row["change"]} for row in rows[:SHOWN]]
    return {
        "said": found.summary(),
        "table": Table.of(rows, caption),
        "figure": drawn(
            Figure(
                charts.bars(bars, "cell", "change", horizontal=True),
                f"Bars of {len(bars)} changes of published counts, alarms first.",
                "Changes of published counts, alarms first",
            ),
            "moved",
        ),
    }


def _drawn(release: Published) -> Any:
    """Numbers as drawn, whose ends at any level are known; None if a table for readers has more, or is the only one."""
    labelled = any(table.get("labels") for table in release.about["parameters"].get("tables", ()))
    try:
        return None if labelled else reopened(release.folder)
    except DataError:
        return None


def _least(text: str) -> float:
    """The least change of a count or an effect."""
    if not re.fullmatch(r"[0-9]{0,9}|[0-9]{1,9}\.[0-9]{1,6}", text.strip()):
        raise DataError(
            f"{text[:20]!r} was sent as the least change.",
            "It is a number of jobs, or of units of an effect.",
            "Leave it empty for any change.",
            about="least",
        )
    return float(text or 0)


def _share(text: str) -> float | None:
    """The largest expected share of false alarms among all, or none."""
    try:
        return float(text) if text.strip() else None
    except ValueError:
        raise DataError(
            f"{text[:20]!r} was sent as the share of false alarms.",
            "It lies between 0 and 1.",
            "Use 0.1, or leave it empty for a chance for each count.",
            about="fdr",
        ) from None


def _chosen(here: Here, text: str) -> Published:
    plan, _, name = text.partition("/")
    found = published.release(here.desk, plan, name)
    if found is None:
        raise HTTPException(404, "There is no such release. Choose two from the lists under Large changes.")
    return found
