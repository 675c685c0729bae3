"""Releases: what was published, as tables, charts and files. Files are asked for by the names that a release lists."""

from __future__ import annotations

from typing import Any

import numpy as np
from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import FileResponse, Response

from discreet.report import charts
from discreet.report.page import POLICY, Figure, Table
from discreet.web import planning, published
from discreet.web.published import PREVIEW, Published, keys_of
from discreet.web.rendering import At, Here, drawn, page
from discreet.web.security import Asking, InTurn

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
    figure = _figure(content, release)
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
        first=first,
        total=len(content),
        preview=PREVIEW,
        figure=None if figure is None else drawn(figure, "largest"),
    )


def _figure(content: Any, release: Published) -> Figure | None:
    """The largest counts with their intervals."""
    if "count" not in content.column_names or len(content) < 2:
        return None
    order = np.argsort(-np.array(content["count"]), kind="stable")[:TOP]
    keys = keys_of(content)
    rows = []
    for row in content.take(order.tolist()).to_pylist():
        if row["lower"] is None or row["upper"] is None:
            return None
        label = ", ".join(str(row[key]) for key in keys) or "all"
        rows.append({"cell": label, "jobs": row["count"], "low": row["lower"], "high": row["upper"]})
    if len({row["cell"] for row in rows}) < len(rows):
        return None
    return Figure(
        charts.points_with_intervals(rows, "jobs", "cell", "low", "high"),
        f"The {len(rows)} largest counts of {release.name}, each with the interval that holds its true count.",
        f"The {len(rows)} largest counts and their intervals",
    )


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
        return FileResponse(path, media_type="text/html", headers={"content-security-policy": f"{POLICY}; sandbox"})
    subject = f"{plan}/{path.name}"
    here.repeats.record(here.store, asking.name, "downloaded", subject, of=subject)
    return FileResponse(path, filename=f"{plan}-{path.name}", media_type="application/zip")
