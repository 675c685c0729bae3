"""Large changes: between two releases, or an exception report on a panel that somebody sends."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, get_args

import numpy as np
from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import RedirectResponse, Response
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData

from discreet.change.panel import Gaps
from discreet.change.sparkline import sparkline
from discreet.change.standards import Direction
from discreet.errors import DataError, DiscreetError
from discreet.report import charts
from discreet.report.page import Figure, Table
from discreet.utility.changes import change, largest_changes
from discreet.web import analyses, published
from discreet.web.accounts import Person
from discreet.web.published import Published, keys_of
from discreet.web.rendering import At, Here, drawn, page, refused
from discreet.web.sandbox import confined, in_turn
from discreet.web.security import Asking, Form, InTurn, needs
from discreet.web.turns import TooMuch
from discreet.web.uploads import ACCEPT, kept

router = APIRouter(include_in_schema=False)
Analyst = Annotated[Person, Depends(needs("analyse"))]
FARTHEST, LONGEST = 120, 200
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
    "gaps": ("skip", lambda text: text in get_args(Gaps), f"one of {', '.join(get_args(Gaps))}"),
    "direction": ("decline", lambda text: text in get_args(Direction), f"one of {', '.join(get_args(Direction))}"),
}
"""What a report is asked for with: usual value, test, and what passes it in words."""

COLUMNS = {"series": "series", "time": "t", "value": "value", "method": "method", "forecast": "forecast"}
"""Columns by what the form calls them, with our names, which are the usual ones."""

LATER: dict[str, Any] = {"warning": "", "right_limits": None, "history": [], "choices": [], "details": []}
"""What reports that were kept by earlier versions do not have."""

TOP = 25
SHOWN = 12


@router.get("/changes", dependencies=[InTurn])
def changes(request: Request, here: At, asking: Asking, before: str = "", after: str = "") -> Response:
    return _form(request, here, asking, before=before, after=after)


def _form(
    request: Request,
    here: Here,
    asking: Person,
    given: Mapping[str, str] | None = None,
    *,
    before: str = "",
    after: str = "",
    status: int = 200,
    wrong: str = "",
) -> Response:
    compared, differ = None, ""
    if before and after:
        try:
            compared = _compared(here, before, after)
        except DataError as error:
            status, differ = 409, refused(request, asking, error)
    releases = [each for each in published.published(here.desk) if each.about["parameters"].get("kind") == "count"]
    first, second = _usual(releases)
    return page(
        request,
        "changes.html",
        status,
        releases=releases,
        before=before or first,
        after=after or second,
        compared=compared,
        differ=differ,
        renamed=any((given or {}).get(key, usual) != usual for key, usual in COLUMNS.items()),
        reports=analyses.listed(here.store, "exceptions", asking),
        megabytes=here.desk.settings.upload_megabytes,
        accept=ACCEPT,
        given={key: usual for key, (usual, _, _) in OPTIONS.items()} | COLUMNS | dict(given or {}),
        wrong=wrong,
    )


def _usual(releases: list[Published]) -> tuple[str, str]:
    """Two releases by the same attributes, the older first; the last two where there are none."""
    by = {f"{each.plan}/{each.name}": each.about["parameters"]["tables"][0]["by"] for each in releases}
    names = list(by)
    pairs = ((old, new) for i, new in enumerate(names) for old in names[i + 1 :] if by[old] == by[new])
    return next(pairs, (names[-1], names[0]) if names else ("", ""))


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
    with kept(form, "panel", "forecasts") as files:
        if "panel" not in files:
            raise DataError(
                "No panel was sent. It is a CSV or Parquet file with a row for each series and period. Choose one.",
                about="panel",
            )
        columns = {ours: str(form.get(key, "")).strip()[:LONGEST] or ours for key, ours in COLUMNS.items()}
        arguments = {"panel": files["panel"], "forecasts": files.get("forecasts"), "options": options}
        found = confined("exceptions", arguments | {"columns": columns})
    title = f"Large {'change' if options['direction'] == 'both' else options['direction']}s ahead"
    return analyses.keep(here.store, "exceptions", title, {"options": options, **found}, analyst)


def _options(form: FormData) -> dict[str, Any]:
    """What the report is to be like; refused before any file is looked at."""
    given = {key: str(form.get(key, usual)).strip() for key, (usual, _, _) in OPTIONS.items()}
    for key, (usual, is_fit, words) in OPTIONS.items():
        try:
            fits = is_fit(given[key])
        except ValueError:
            fits = False
        if not fits:
            name = key.replace("_", " ")
            raise DataError(
                f"{given[key][:20]!r} was sent as {name}. It is {words}. Use for example {usual or 12}.", about=key
            )
    return given | {
        "horizon": int(given["horizon"]),
        "cutoff": float(given["cutoff"]),
        "cost_ratio": float(given["cost_ratio"]),
        "capacity": int(given["capacity"]) if given["capacity"] else None,
        "season": int(given["season"]) if given["season"] else None,
    }


@router.get("/changes/{name}", dependencies=[InTurn])
def reported(request: Request, here: At, asking: Asking, name: str) -> Response:
    kept_result = analyses.get(here.store, "exceptions", name, asking)
    if kept_result is None:
        raise HTTPException(
            404, f"You have no report {name[:64]!r}. Reports are open to their owner. See Large changes."
        )
    result = LATER | kept_result["result"]
    result["options"] = {"capacity": None} | result["options"]
    flagged = [row for row in result["rows"] if row["flag"]]
    table = Table(
        ("rank", "series", "recent", "period", "last value", "forecast", "chance", "why", "alarms before"),
        [_listed(row, detail) for row, detail in zip(flagged[:200], result["details"], strict=False)],
        f"{len(flagged)} of {len(result['rows'])} series are flagged, most alarming first",
    )
    past = Table.of(result["history"], "Past lists by the same rule: right alarms expected and found")
    others = Table.of(result["choices"], "Other lines, other lists: right and false alarms to expect")
    aside = result.get("set_aside", [])
    apart = Table.of(aside[:200], f"{len(aside)} series are not ranked: they cannot be large changes, or have ended")
    return page(
        request,
        "exceptions.html",
        result=result,
        kept=kept_result,
        table=table,
        apart=apart,
        past=past,
        others=others,
        flagged=len(flagged),
    )


def _listed(row: dict[str, Any], detail: dict[str, Any]) -> list[Any]:
    """A line of the list; the picture is our own markup, every text in it escaped."""
    return [
        row["rank"],
        row["series"],
        Markup(sparkline(detail["recent"], detail["forecast"], name=row["series"])),
        row["t"],
        row["last"],
        row["forecast"],
        f"{row['chance']:.0%} ({row['low']:.0%} to {row['high']:.0%})",
        detail["reason"],
        f"{detail['alarms']}, {detail['right']} right" if detail["alarms"] else "none",
    ]


def _compared(here: Here, before: str, after: str) -> dict[str, Any]:
    """The largest changes from one release to another; a change is sure when the intervals do not overlap."""
    first, second = (_chosen(here, text) for text in (before, after))
    early, late = (each.table(each.tables[0]) for each in (first, second))
    keys = keys_of(early)
    if set(early.column_names) != set(late.column_names) or not keys:
        raise DataError(
            f"{first.name!r} and {second.name!r} do not have the same attributes. Changes are between the same cells. "
            "Choose two releases by the same attributes.",
            about="second",
        )
    both = early.join(late, keys, join_type="inner", right_suffix=" after").sort_by(
        [(key, "ascending") for key in keys]
    )
    if not len(both):
        raise DataError(f"{first.name!r} and {second.name!r} have no cell in common. Choose others.", about="second")
    moved = change(np.array(both["count"]), np.array(both["count after"]))
    rows = []
    for i in largest_changes(moved, most=min(TOP, len(moved))).tolist():
        row = both.slice(i, 1).to_pylist()[0]
        rows.append(
            {
                "cell": ", ".join(str(row[key]) for key in keys),
                "before": row["count"],
                "after": row["count after"],
                "change": int(moved[i]),
                "beyond the noise": _sure(row),
            }
        )
    caption = f"The {len(rows)} largest changes of {len(moved):,} cells, {first.name} to {second.name}"
    bars = [{"cell": row["cell"], "change": row["change"]} for row in rows[:SHOWN]]
    return {
        "table": Table.of(rows, caption),
        "figure": drawn(
            Figure(
                charts.bars(bars, "cell", "change", horizontal=True),
                f"Bars of the {len(bars)} largest changes of published counts, up or down.",
                "The largest changes of published counts",
            ),
            "moved",
        ),
    }


def _sure(row: dict[str, Any]) -> str:
    ends = (row["lower"], row["upper"], row["lower after"], row["upper after"])
    if any(end is None for end in ends):
        return "not known"
    return "yes" if ends[2] > ends[1] or ends[3] < ends[0] else "no"


def _chosen(here: Here, text: str) -> Published:
    plan, _, name = text.partition("/")
    found = published.release(here.desk, plan, name)
    if found is None:
        raise HTTPException(404, "There is no such release. Choose two from the lists under Large changes.")
    return found
