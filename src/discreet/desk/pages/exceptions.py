"""An exception report or a backtest that was made here: its page, and its files. Both are open to their owner alone."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import Response
from markupsafe import Markup

from discreet.changes.listed import chance
from discreet.desk import analyses
from discreet.desk.accounts import Person
from discreet.desk.rendering import At, Here, page
from discreet.desk.security import Asking, InTurn
from discreet.pages.page import Table
from discreet.pages.sparkline import sparkline

router = APIRouter(include_in_schema=False)
FILES = {"report.html": "text/html", "list.csv": "text/csv", "results.json": "application/json"}
RANKINGS = {"right": "this list", "naive": "naive forecast", "last_change": "last change", "by_lot": "at random"}
LATER: dict[str, Any] = {
    "warning": "", "right_limits": None, "history": [], "choices": [], "details": [], "gaps": [], "files": {},
}  # fmt: skip
"""Keys that are missing in reports kept by earlier versions."""


def _kept(here: Here, asking: Person, name: str) -> dict[str, Any]:
    found = analyses.get(here.store, "exceptions", name, asking)
    if found is None:
        raise HTTPException(
            404, f"You have no report {name[:64]!r}. Reports are open to their owner. See Large changes."
        )
    return found


@router.get("/changes/{name}/{file}", dependencies=[InTurn])
def downloaded(here: At, asking: Asking, name: str, file: str) -> Response:
    """A report as a file: its page, its list, or all of its numbers."""
    result = _kept(here, asking, name)["result"]
    files = dict(result.pop("files", {}))
    if file not in FILES or not files:
        raise HTTPException(404, "This report has no such file. Its page has links to those that it has.")
    text = json.dumps(result, indent=2, ensure_ascii=False) if file == "results.json" else files[file]
    about = {"content-disposition": f'attachment; filename="{name}-{file}"'}
    return Response(text, media_type=f"{FILES[file]}; charset=utf-8", headers=about)


@router.get("/changes/{name}", dependencies=[InTurn])
def reported(request: Request, here: At, asking: Asking, name: str) -> Response:
    kept_result = _kept(here, asking, name)
    result = LATER | kept_result["result"]
    result["options"] = {"capacity": None, "kind": "report"} | result["options"]
    if result["options"]["kind"] == "backtest":
        return _backtested(request, result, kept_result)
    flagged = [row for row in result["rows"] if row["flag"]]
    table = Table(
        ("rank", "series", "recent", "period", "last value", "forecast", "chance", "why", "alarms before"),
        [_listed(row, detail) for row, detail in zip(flagged[:200], result["details"], strict=False)],
        f"{len(flagged)} of {len(result['rows'])} series are flagged, most alarming first",
    )
    past = Table(
        ("period", "flagged", "right, expected", "right", "all large changes"),
        [
            (row["t"], row["flagged"], _expected(row["expected"], row), row["right"], row["large"])
            for row in result["history"]
        ],
        "Past lists by the same rule: right alarms expected and found",
    )
    others = Table(
        ("series looked at" if result["options"]["capacity"] else "a miss costs", "flagged", "right", "false"),
        [
            (
                row.get("capacity", row.get("cost_ratio")),
                row["flagged"],
                _expected(row["expected_true"], row),
                f"{row['expected_false']:.1f}",
            )
            for row in result["choices"]
        ],
        "Other lines, other lists: right and false alarms to expect",
    )
    repeated = [
        {key: row[key] for key in ("series", "level", "repeats", "chance")}
        for row in result["rows"]
        if row.get("repeats")
    ]
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
        repeated=Table.of(repeated, "Not listed twice: their change is mostly that of one on the list, or of a return"),
        again=len(repeated),
        flagged=len(flagged),
        gaps=Table.of(result["gaps"][:200], f"{len(result['gaps'])} ranked series lack periods, which are passed over"),
        options=_spelled(result["options"]),
    )


def _backtested(request: Request, result: dict[str, Any], kept_result: dict[str, Any]) -> Response:
    """Past lists, and what happened."""
    rankings = [
        (name, sum(row[key] for row in result["rows"]), f"{100 * result['precision'][key]:.1f} %")
        for key, name in RANKINGS.items()
    ]
    rows = [
        {
            "period": row["t"],
            "method": row["method"],
            "flagged": row["flagged"],
            "right, expected": _expected(row["expected"], row),
            "right": row["right"],
            "all large changes": row["large"],
            "naive": row["naive"],
            "last change": row["last_change"],
        }
        for row in result["rows"]
    ]
    return page(
        request,
        "backtest.html",
        result=result,
        kept=kept_result,
        rankings=Table(("ranking", "right alarms", "precision"), rankings, "Lists of the same size by other rankings"),
        table=Table.of(rows, "Each past list, as the report would have made it then"),
        flagged=sum(row["flagged"] for row in result["rows"]),
        right=sum(row["right"] for row in result["rows"]),
        expected=sum(row["expected"] for row in result["rows"]),
        options=_spelled(result["options"]),
    )


def _spelled(options: dict[str, Any]) -> str:
    """The options of a report as a command has them, those that are not usual."""
    said = [f"--direction {options['direction']}", f"--horizon {options['horizon']}", f"--cutoff {options['cutoff']}"]
    said.append(f"--capacity {options['capacity']}" if options["capacity"] else f"--cost-ratio {options['cost_ratio']}")
    said += [f"--{key} {','.join(options[key])}" for key in ("hierarchy", "indicators", "known") if options.get(key)]
    said += [f"--gaps {options['gaps']}"] if options.get("gaps", "skip") != "skip" else []
    said += [f"--season {options['season']}"] if options.get("season") else []
    said += ["--by-value"] if options.get("by_value") else []
    said += [f"--periods {options['periods']}"] if options["kind"] == "backtest" else []
    return " ".join(said)


def _expected(number: float, row: dict[str, Any]) -> str:
    return f"{number:.1f} ({row['low']} to {row['high']})"


def _listed(row: dict[str, Any], detail: dict[str, Any]) -> list[Any]:
    """A line of the list; the picture is our own markup, every text in it escaped."""
    return [
        row["rank"],
        row["series"],
        Markup(sparkline(detail["recent"], detail["forecast"], name=row["series"])),
        row["t"],
        row["last"],
        row["forecast"],
        chance(row),
        detail["reason"],
        f"{detail['alarms']}, {detail['right']} right" if detail["alarms"] else "none",
    ]
