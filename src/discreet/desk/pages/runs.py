"""Runs: start, watch, resume. The page shows what the worker wrote; it can be reloaded, left and come back to."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import RedirectResponse, Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from discreet.desk import planning, published, runs
from discreet.desk.accounts import Person, person_of
from discreet.desk.rendering import ROWS, At, First, Here, page
from discreet.desk.runs import FINAL, Run
from discreet.desk.security import Asking, Form, needs, session_token
from discreet.words.cases import case_of

router = APIRouter(include_in_schema=False)
Runner = Annotated[Person, Depends(needs("run"))]
PATIENCE = 0.3
"""Seconds between two looks at a run's events."""

FARTHEST = 10**15
"""A byte of a run's events that no file has."""


def run_of(here: Here, name: str) -> Run:
    found = runs.get(here.desk, here.store, name)
    if found is None:
        raise HTTPException(404, f"There is no run {name[:64]!r}. Choose one from the list of runs.")
    return found


@router.get("/runs")
def listed(request: Request, here: At, asking: Asking, first: First = 0) -> Response:
    found, begun = runs.listed(here.desk, here.store, last=ROWS, first=first), runs.begun(here.store)
    ready = [plan for plan in planning.listed(here.store, "approved") if plan.name not in begun]
    titles = planning.titles(here.store)
    return page(request, "runs.html", runs=found, ready=ready, titles=titles, first=first, rows=ROWS)


@router.post("/runs")
def start(here: At, runner: Runner, form: Form) -> Response:
    name = runs.start(here.desk, here.store, str(form.get("plan", "")), runner)
    return RedirectResponse(f"/runs/{name}", status_code=303)


@router.get("/runs/{name}")
def shown(request: Request, here: At, asking: Asking, name: str) -> Response:
    run = run_of(here, name)
    return page(
        request,
        "run.html",
        run=run,
        plan=planning.get(here.store, run.plan),
        releases=published.published(here.desk, run.plan),
        papers=published.papers(here.desk, run.plan),
        after=max((at for at, _ in runs.events(here.desk.runs, name)), default=0),
    )


@router.post("/runs/{name}/resume")
def resume(here: At, runner: Runner, form: Form, name: str) -> Response:
    runs.resume(here.desk, here.store, run_of(here, name).name, runner)
    return RedirectResponse(f"/runs/{name}", status_code=303)


@router.get("/runs/{name}/events")
async def events(
    request: Request, here: At, asking: Asking, name: str, after: Annotated[int, Query(ge=0, le=FARTHEST)] = 0
) -> Response:
    """The run's events as they are written, from byte `after` on or from where the browser lost the connection."""
    run = await run_in_threadpool(run_of, here, name)
    last = request.headers.get("last-event-id", "")
    start = int(last) if re.fullmatch("[0-9]{1,15}", last) else after
    token = session_token(request.headers.get("cookie", "")) or ""
    return StreamingResponse(
        _tail(here, run.name, start, token), media_type="text/event-stream", headers={"x-accel-buffering": "no"}
    )


async def _tail(here: Here, name: str, start: int, token: str) -> AsyncIterator[str]:
    """New lines, for as long as the viewer has a session."""
    idle, local = 0, not here.desk.settings.accounts
    while await run_in_threadpool(partial(person_of, here.store, token, local=local)):
        alive = runs.is_alive(here.desk.runs / f"{name}.lock")
        for after, event in runs.events(here.desk.runs, name, start):
            start, idle = after, 0
            yield f"id: {start}\ndata: {json.dumps(event)}\n\n"
        state = runs.state_of(here.desk.runs, name)
        if state in FINAL.values() or not (
            alive or case_of(state, {"running": True, "done": False, "failed": False, "interrupted": False})
        ):
            yield f"event: end\ndata: {state}\n\n"
            return
        idle += 1
        if idle % 40 == 0:
            yield ": still here\n\n"
        await asyncio.sleep(PATIENCE)
