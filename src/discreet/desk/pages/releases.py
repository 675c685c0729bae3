"""Releases: what was published, as tables, charts and files. Files are asked for by the names that a release lists."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import FileResponse, Response

from discreet.desk import planning, published
from discreet.desk.published import PREVIEW, Published, keys_of
from discreet.desk.rendering import At, Here, RankedTable, page, ranked_table
from discreet.desk.security import Asking, InTurn
from discreet.pages.page import SCRIPTED, Table
from discreet.pages.ranked import Mark, Ranked
from discreet.release.folder import rules_of
from discreet.report.estimates import estimates
from discreet.tables.quality import NOISE

router = APIRouter(include_in_schema=False)
TOP = 15
"""Cells of the chart."""


def release_of(here: Here, plan: str, name: str) -> Published:
    found = published.release(here.desk, plan, name)
    if found is None:
        raise HTTPException(404, f"There is no release {name[:64]!r} of {plan[:64]!r}. Choose one under Releases.")
    return found


@router.get("/releases")
def listed(request: Request, here: At, asking: Asking) -> Response:
    titles = planning.titles(here.store)
    releases = published.published(here.desk)  # before the ledger is read: it only grows, so it knows all of these
    lines = published.book(here.desk).entries
    when = {(line.dataset, line.release): str(line.payload["at"]) for line in lines if line.kind == "publish"}
    return page(request, "releases.html", releases=releases, titles=titles, when=when)


@router.get("/releases/{plan}/{name}", dependencies=[InTurn])
def shown(request: Request, here: At, asking: Asking, plan: str, name: str, table: int = 0, first: int = 0) -> Response:
    release = release_of(here, plan, name)
    names = release.tables
    number = min(max(table, 0), len(names) - 1)
    content = release.table(names[number])
    first = min(max(first, 0) // PREVIEW * PREVIEW, max(len(content) - 1, 0) // PREVIEW * PREVIEW)
    rows = [list(row.values()) for row in content.slice(first, PREVIEW).to_pylist()]
    return page(
        request,
        "release.html",
        release=release,
        plan=planning.get(here.store, plan),
        papers=published.papers(here.desk, plan),
        mark=published.mark(here.desk, plan, name),
        tables=names,
        number=number,
        table=Table(content.column_names, rows, f"{names[number]}, rows {first + 1} to {first + len(rows)}"),
        faint=[i for i, flag in enumerate(_flags(content, first)) if flag == NOISE],
        level=release.about["parameters"].get("level"),
        rules=rules_of(release.about["parameters"], names[number].rpartition("/")[2].partition(".")[0]),
        first=first,
        total=len(content),
        preview=PREVIEW,
        charts=_charts(content, release),
    )


def _flags(content: Any, first: int) -> list[str]:
    """The quality flags of the rows that are shown."""
    named = "quality" in content.column_names
    return content.slice(first, PREVIEW)["quality"].to_pylist() if named else []


def _charts(content: Any, release: Published) -> list[RankedTable]:
    """The largest counts with their intervals, or all effects of a model."""
    value = next((name for name in ("count", "sum") if name in content.column_names), None)
    if value is None:
        blocks = estimates(content, release.name) if {"effect", "answer"} & {*content.column_names} else ()
        return [ranked_table(block) for block in blocks if isinstance(block, Ranked)]
    if len(content) < 2:
        return []
    order = np.argsort(-np.array(content[value], dtype=np.float64), kind="stable")[:TOP]
    keys = keys_of(content)
    marks = [
        Mark(
            ", ".join(str(row[key]) for key in keys),
            _end(row, value),
            _end(row, "lower"),
            _end(row, "upper"),
            str(row.get("quality", "")),
            row.get("quality") == NOISE,
        )
        for row in content.take(order.tolist()).to_pylist()
    ]
    names = ", ".join(key.replace("_", " ") for key in keys).capitalize()
    what = "Jobs" if value == "count" else str(release.about["columns"]["sum"]).partition(",")[0].capitalize()
    caption = f"The {len(marks)} largest {value}s and their intervals"
    return [ranked_table(Ranked((names, what, "Quality"), marks, caption))]


def _end(row: dict[str, Any], name: str) -> float:
    return math.nan if row.get(name) is None else float(row[name])


@router.get("/releases/{plan}/{name}/files/{file:path}")
def file(here: At, asking: Asking, plan: str, name: str, file: str) -> Response:
    release = release_of(here, plan, name)
    if file not in dict(release.files):
        raise HTTPException(404, f"{file[:80]!r} is not a file of {name!r}. Choose one from its page.")
    subject = f"{plan}/{name}/{file}"
    here.repeats.record(here.store, asking.name, "downloaded", subject, of=subject)
    flat = f"{name}-{file.replace('/', '-')}"
    return FileResponse(release.folder / file, filename=flat, media_type="application/octet-stream")


@router.get("/papers/{plan}/{kind}")
def paper(here: At, asking: Asking, plan: str, kind: str) -> Response:
    """The report, shown under its own policy, or the bundle, downloaded."""
    path = published.papers(here.desk, plan).get(kind)
    if path is None:
        raise HTTPException(404, f"There is no {kind[:20]!r} of {plan[:64]!r}. It is written at the end of a run.")
    if path.suffix == ".html":
        policy = f"{SCRIPTED}; sandbox allow-scripts"  # the one script that its hash names, in an origin of its own
        return FileResponse(path, media_type="text/html", headers={"content-security-policy": policy})
    subject = f"{plan}/{path.name}"
    here.repeats.record(here.store, asking.name, "downloaded", subject, of=subject)
    return FileResponse(path, filename=f"{plan}-{path.name}", media_type="application/zip")
