"""The desk for programs: what the pages show, as JSON, described at /api/openapi.json."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, HTTPException, Path, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field

from discreet.desk import drafts, planning, published, runs
from discreet.desk.calculators import shared
from discreet.desk.drafts import Draft
from discreet.desk.estimates import estimate
from discreet.desk.forms import JSON
from discreet.desk.pages.data import source_of
from discreet.desk.pages.plans import plan_of
from discreet.desk.pages.runs import run_of
from discreet.desk.rendering import At
from discreet.desk.security import Asking, own_script

Name = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]


class Refusal(BaseModel):
    """Why a request was not answered."""

    detail: str


class SourceAnswer(BaseModel):
    """A source of data and what is left of its budget; what is spent is null where the ledger cannot be believed."""

    name: str
    title: str
    kind: Literal["jobs", "rows"]
    dataset: str
    unit: dict[str, Any]
    unit_fixed: bool
    workplace_attributes: list[str]
    worker_attributes: dict[str, list[str | int | bool]]
    epsilon_total: float
    epsilon_spent: float | None
    ledger_trouble: str


class FaultAnswer(BaseModel):
    where: str
    message: str
    field: str


class EstimateAnswer(BaseModel):
    """The cost and the expected errors of a draft."""

    can_run: bool
    faults: list[FaultAnswer]
    warnings: list[FaultAnswer]
    cost: str | None
    remaining_after: str | None
    releases: list[dict[str, Any]]


class PlanAnswer(BaseModel):
    name: str
    title: str
    source: str
    author: str
    state: Literal["draft", "submitted", "approved", "declined"]
    digest: str
    at: str


class PlanText(PlanAnswer):
    text: Annotated[str, Field(description="The plan as TOML.")]


class RunAnswer(BaseModel):
    name: str
    plan: str
    by: str
    at: str
    state: Literal["running", "done", "failed", "interrupted"]
    share: float
    last: str


class ReleaseAnswer(BaseModel):
    plan: str
    name: str
    dataset: str
    guarantee: str
    files: dict[str, int]


class BudgetAnswer(BaseModel):
    dataset: str
    unit: str
    total: dict[str, str]
    spent: dict[str, str]
    remaining: dict[str, str]


class LedgerAnswer(BaseModel):
    """The ledger; amounts are exact, as text."""

    budgets: list[BudgetAnswer]
    entries: int | None
    head: str | None
    trouble: str


REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Refusal} for status in (400, 401, 403, 404, 409, 413, 415, 421, 422, 429)
}
router = APIRouter(prefix="/api", tags=["desk"], responses=REFUSALS)


@router.get("/sources")
def sources(here: At, asking: Asking) -> list[SourceAnswer]:
    """The desk's sources: public facts only."""
    found, book = [], published.book(here.desk)
    for source in here.desk.settings.source:
        schema, standing = here.desk.schema(source), published.standing(here.desk, source)
        found.append(
            SourceAnswer(
                name=source.name,
                title=source.title,
                kind=source.kind,
                dataset=source.dataset,
                unit=source.unit.model_dump(mode="json"),
                unit_fixed=source.unit_fixed,
                workplace_attributes=list(schema.workplace_attributes) if schema else [],
                worker_attributes={k: list(schema.domain(k).declared) for k in schema.worker_attributes}
                if schema
                else {},
                epsilon_total=standing["total"],
                epsilon_spent=standing["spent"],
                ledger_trouble=book.trouble,
            )
        )
    return found


async def _sent(request: Request, asking: Asking) -> Draft:
    """The draft of a body. A calculator reads it: to find all that is wrong with one can take long."""
    found = await shared.result(asking.name, drafts.read, await request.body())
    if isinstance(found, Draft):
        return found
    raise RequestValidationError([{"loc": ("body", *place)} for place in found])


Sent = Annotated[Draft, Depends(_sent)]
BODY = {"requestBody": {"required": True, "content": {JSON: {"schema": Draft.model_json_schema()}}}}


@router.post("/estimate", dependencies=[Depends(own_script)], openapi_extra=BODY)
async def estimated(here: At, asking: Asking, draft: Sent) -> EstimateAnswer:
    """Cost, expected error and faults of a draft. Reads no confidential data, writes and spends nothing."""
    source_of(here, draft.source)
    judged = await estimate(here.desk, draft, "estimate", by=asking.name)
    return EstimateAnswer.model_validate(judged.to_dict())


@router.get("/plans")
def plans(here: At, asking: Asking) -> list[PlanAnswer]:
    """Every plan, the latest first."""
    return [PlanAnswer(**_plan(plan)) for plan in planning.listed(here.store)]


@router.get("/plans/{name}")
def plan(here: At, asking: Asking, name: Name) -> PlanText:
    """One plan with its text."""
    found = plan_of(here, name)
    return PlanText(**_plan(found), text=found.text)


@router.get("/runs")
def all_runs(here: At, asking: Asking) -> list[RunAnswer]:
    """The latest runs."""
    return [RunAnswer(**run.to_dict()) for run in runs.listed(here.desk, here.store)]


@router.get("/runs/{name}")
def run(here: At, asking: Asking, name: Name) -> RunAnswer:
    """One run as it is now."""
    return RunAnswer(**run_of(here, name).to_dict())


@router.get("/releases")
def releases(here: At, asking: Asking) -> list[ReleaseAnswer]:
    """Every published release."""
    published.refuse_trouble(here.desk)
    return [_release(each) for each in published.published(here.desk)]


@router.get("/releases/{plan}/{name}")
def release(here: At, asking: Asking, plan: Name, name: Annotated[str, Path(max_length=64)]) -> ReleaseAnswer:
    """One published release."""
    found = published.release(here.desk, plan, name)
    if found is None:
        raise HTTPException(404, "There is no such release. See /api/releases for those there are.")
    return _release(found)


@router.get("/ledger")
def ledger(here: At, asking: Asking) -> LedgerAnswer:
    """Budgets with what is spent, and the ledger's head."""
    book = published.book(here.desk)
    return LedgerAnswer(
        budgets=[BudgetAnswer.model_validate(budget.to_dict()) for budget in book.budgets],
        entries=None if book.trouble else len(book.entries),
        head=None if book.head is None else book.head.hash,
        trouble=book.trouble,
    )


def _plan(plan: planning.StoredPlan) -> dict[str, Any]:
    return {key: getattr(plan, key) for key in PlanAnswer.model_fields}


def _release(each: published.Published) -> ReleaseAnswer:
    return ReleaseAnswer(
        plan=each.plan,
        name=each.name,
        dataset=each.about["dataset"],
        guarantee=each.claim.sentence,
        files=dict(each.files),
    )
