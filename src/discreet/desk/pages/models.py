"""Models: try a formula on data that are not confidential, see what privacy costs it, then release it with a plan."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData

from discreet.desk import analyses
from discreet.desk.accounts import Person
from discreet.desk.desk import DataSource
from discreet.desk.pages.data import source_of
from discreet.desk.rendering import At, Here, drawn, page, refused
from discreet.desk.sandbox import confined, in_turn
from discreet.desk.security import Asking, Form, InTurn, needs
from discreet.desk.turns import TooMuch
from discreet.desk.uploads import ACCEPT, kept
from discreet.models.formula.formula import read_formula
from discreet.pages import charts
from discreet.pages.page import Figure
from discreet.privacy.losses import exact
from discreet.privacy.units import Rows
from discreet.words.errors import DataError, DiscreetError

router = APIRouter(include_in_schema=False)
EPSILONS = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0]
LONGEST = 500


@router.get("/models")
def models(request: Request, here: At, asking: Asking) -> Response:
    return _form(request, here, asking)


def _form(
    request: Request, here: Here, asking: Person, given: Mapping[str, str] | None = None, **more: Any
) -> Response:
    sources = [source for source in here.desk.settings.source if source.kind == "rows"]
    usual = {"formula": sources[0].formula if sources else "", "source": "", "lower": "", "upper": ""}
    return page(
        request,
        "models.html",
        sources=sources,
        results=analyses.listed(here.store, "model", asking),
        megabytes=here.desk.settings.upload_megabytes,
        accept=ACCEPT,
        given={**usual, **(given or {})},
        **{"status": 200, "wrong": "", **more},
    )


@router.post("/models")
async def tried(
    request: Request, here: At, analyst: Annotated[Person, Depends(needs("analyse"))], form: Form
) -> Response:
    """Fit and draw the curve in a process with limits, on a stand-in or on what was sent; never on the source."""
    formula = str(form.get("formula", "")).strip()[:LONGEST]
    try:
        name = await in_turn(analyst.name, partial(_tried, here, analyst, form, formula))
    except TooMuch:
        raise
    except DiscreetError as error:
        given = {"formula": formula} | {key: str(form.get(key, ""))[:64] for key in ("source", "lower", "upper")}
        again = partial(_form, request, here, analyst, given, status=409, wrong=refused(request, analyst, error))
        return await run_in_threadpool(again)
    return RedirectResponse(f"/models/{name}", status_code=303)


def _tried(here: Here, analyst: Person, form: FormData, formula: str) -> str:
    """The name of the result."""
    read_formula(formula, needs_random=False)
    chosen, bounds = str(form.get("source", "")), _bounds(form)
    with kept(form, "data") as files:
        if "data" in files:
            result = _worked(formula, files["data"], bounds)
            source = ""
        else:
            found = source_of(here, chosen)
            unit, source = found.unit.unit(), found.name
            bounds = bounds or ([str(unit.lower), str(unit.upper)] if isinstance(unit, Rows) else None)
            result = _worked(formula, str(_stand_in(here, found)), bounds)
    result |= {"formula": formula, "source": source, "bounds": bounds}
    return analyses.keep(here.store, "model", formula, result, analyst)


def _bounds(form: FormData) -> list[str] | None:
    """Where responses lie, as it was typed; None where nothing was."""
    ends = [str(form.get(key, "")).strip()[:64] for key in ("lower", "upper")]
    if not any(ends):
        return None
    low, high = (exact(end, name=name) for end, name in zip(ends, ("lower", "upper"), strict=True))
    if low >= high:
        raise DataError(
            f"The smallest response is {ends[0]} and the largest {ends[1]}.",
            "The first is below the second.",
            "Correct them, or leave both empty.",
            about="lower",
        )
    return ends


def _worked(formula: str, data: str, bounds: list[str] | None) -> dict[str, Any]:
    fitted = confined("fit", {"formula": formula, "data": data})
    try:
        curve = confined("model_curve", {"formula": formula, "data": data, "epsilons": EPSILONS, "bounds": bounds})
    except DataError as error:
        curve = {"rows": [], "best": None, "why": str(error)}
    return {"fit": fitted, "curve": curve}


def _stand_in(here: Here, source: DataSource) -> Path:
    if source.stand_in is None:
        raise DataError(
            f"{source.name!r} has no stand-in: data of its shape that are not confidential.",
            "A formula is never tried on confidential data.",
            "Send such a file, or have one named as stand_in in desk.toml.",
            about="source",
        )
    return here.desk.folder / source.stand_in


@router.get("/models/{name}", dependencies=[InTurn])
def shown(request: Request, here: At, asking: Asking, name: str) -> Response:
    found = analyses.get(here.store, "model", name, asking)
    if found is None:
        raise HTTPException(404, f"You have no result {name[:64]!r}. Results are open to their owner. See Models.")
    result = found["result"]
    rows = result["curve"]["rows"]
    points = [{"epsilon": row["epsilon"], "share": row["relative_to_mle"]} for row in rows if row["relative_to_mle"]]
    curve = None
    if points:
        curve = Figure(
            charts.lines(
                points, "epsilon", "share", log_x=True, reference=1.0, zero=True,
                titles={"share": "correlation / that of the model without privacy"},
            ),
            "A curve over epsilon, from {share:.2f} at {epsilon:g}".format(**points[0])
            + " to {share:.2f} at {epsilon:g}.".format(**points[-1]),
            "Risk and utility: fit of private estimates beside the model without privacy. 1 is as good",
            "model",
        )  # fmt: skip
    source = result["source"] or next((s.name for s in here.desk.settings.source if s.kind == "rows"), "")
    return page(
        request,
        "model.html",
        result=result,
        kept=found,
        figure=None if curve is None else drawn(curve, "model-curve"),
        plan=f"/plans/new?source={source}&formula={quote(result['formula'])}" if source else "",
    )
