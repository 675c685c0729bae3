"""The plan behind a bundle, built anew from its public request: what it asks for must be what the ledger was paid for.

Paths and addresses are not in a bundle, and nothing here needs them: requests are priced without data, and the report
is made of published files and lines of the ledger.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from discreet.archive.findings import RefutedError, UncheckedError
from discreet.archive.packing import as_json
from discreet.ledger import Budget, Entry, Head
from discreet.ledger.entries import asked_then, canonical
from discreet.plan.bundle import REPORT, REQUEST
from discreet.plan.bundle import request as public_request
from discreet.plan.check import PlanCheck, ReleaseCheck
from discreet.plan.counts import CountRequest
from discreet.plan.document import Document
from discreet.plan.facts import facts_of
from discreet.plan.reading import PlanFile
from discreet.plan.requests import PlannedRelease, requests, size
from discreet.plan.shape import Plan
from discreet.release.account import Account
from discreet.release.files import MANIFEST
from discreet.report.release import page
from discreet.review.lines import Lines
from discreet.voices import PLAN

NOWHERE = "not in the bundle"
Part = TypeVar("Part")


class once(Generic[Part]):  # noqa: N801, a decorator as `property` is
    """A part that is computed at its first use. A fault is kept too: else every release would have it found again."""

    def __init__(self, compute: Callable[[Any], Part]) -> None:
        self.compute, self.key = compute, f"_{compute.__name__}"
        self.__doc__ = compute.__doc__

    def __get__(self, plan: Any, owner: type) -> Part:
        kept = vars(plan)
        if self.key not in kept:
            try:
                kept[self.key] = self.compute(plan), None
            except Exception as fault:
                kept[self.key] = None, fault
        found: tuple[Part, Exception | None] = kept[self.key]
        if found[1] is not None:
            raise found[1]
        return found[0]


@dataclass(frozen=True)
class Rebuilt:
    """A bundle that was unpacked into `folder`, the names it lists as `releases`, and the rows of each of its files."""

    folder: Path
    releases: tuple[str, ...]
    rows: tuple[int, ...]

    @once
    def lines(self) -> Lines:
        """The ledger's lines."""
        return Lines.read(self.folder)

    @once
    def file(self) -> PlanFile:
        """The plan that asks for what `request.json` says."""
        asked = json.loads((self.folder / REQUEST).read_text(encoding="utf-8"))
        about = self.about(self.releases[0])["parameters"]
        schema = dict(asked["schema"] or {})
        levels = schema.pop("hierarchy", {})
        content = {
            "title": asked["title"],
            "data": {
                "source": NOWHERE,
                "allow_multiple": asked["allow_multiple"],
                **({"workplaces": NOWHERE} if asked["public_list"] else {}),
                **({"schema": schema} if schema else {}),
                "public": asked.get("public_columns", []),
            },
            "hierarchy": levels,
            "unit": asked["unit"],
            "budget": asked["budget"] | {"ledger": NOWHERE},
            "release": asked["releases"],
            "output": {"folder": ".", "forms": about["forms"], "formats": about["formats"]},
        }
        try:
            return PlanFile(Plan.model_validate(content), Document(self.folder / "plan.toml", content, {}))
        except ValidationError:
            raise RefutedError(f"{REQUEST} asks for something that no plan can ask for") from None

    @once
    def requests(self) -> dict[str, PlannedRelease]:
        """Every release that was asked for, by name."""
        plan = self.file.plan
        unit = plan.unit.unit()
        account = Account.open(None, dataset="verify", unit=unit, budget=plan.budget.total())
        tables, counts = size(self.file, account)
        if tables > len(self.rows) or counts > sum(self.rows):
            raise RefutedError(
                f"{REQUEST} asks for {tables:,} tables with {counts:,} kinds of workers together. The bundle has "
                f"{len(self.rows):,} files of tables with {sum(self.rows):,} rows together"
            )
        found, wrong = requests(self.file, account, paid=self._paid())
        if wrong:
            raise RefutedError(f"{REQUEST} asks for what cannot be released: {wrong[0].said(PLAN)}")
        return {request.release.name: request for request in found}

    def _paid(self) -> dict[str, Entry]:
        """The charges by release, as far as the lines can be read: another check says what is wrong with them."""
        try:
            return {str(entry.release): entry for entry in self.lines.charges.values()}
        except Exception:
            return {}

    def about(self, name: str) -> dict[str, Any]:
        """The release's own description."""
        return dict(json.loads((self.folder / name / MANIFEST).read_text(encoding="utf-8")))

    def check_request(self, charges: Mapping[str, Entry], budgets: Mapping[tuple[str, str], Budget]) -> str:
        """Every release that was asked for is there, and the ledger was paid for exactly what was asked."""
        asked, plan = self.requests, self.file.plan
        if {*asked} != {*self.releases}:
            odd = sorted({*asked} ^ {*self.releases})[0]
            raise RefutedError(
                f"{odd!r} is " + ("asked for, and missing" if odd in asked else "there, and not asked for")
            )
        unit = plan.unit.unit().key
        for name, request in asked.items():
            charge = charges.get(name)
            if charge is None or charge.loss is None:
                raise RefutedError(f"{name!r} is asked for, and no line of the ledger paid for it")
            if charge.unit != unit:
                raise RefutedError(f"{unit} is asked for, entry {charge.seq} protects {charge.unit}")
            if charge.loss.to_dict() != request.guarantee.loss.to_dict():
                raise RefutedError(f"{name!r} asks for {request.guarantee.loss}, entry {charge.seq} paid {charge.loss}")
            paid = charge.payload["details"]
            details = asked_then(paid, request.details)
            odd_keys = [key for key in sorted({*paid, *details}) if _odd(paid, details, key)]
            if odd_keys:
                raise RefutedError(f"{name!r} asks for another {', '.join(odd_keys)} than entry {charge.seq} paid for")
        budget = budgets.get((plan.budget.dataset, unit))
        if budget is None or budget.total.to_dict() != plan.budget.total().to_dict():
            raise RefutedError(f"a budget of {plan.budget.total()} is asked for, and the ledger has another")
        if as_json(public_request(self.file)) != (self.folder / REQUEST).read_bytes():
            raise RefutedError(f"{REQUEST} says more than a plan can ask for, or says it otherwise")
        return f"every release asked for is there ({len(asked)}), each as the ledger was paid for"

    def check_names(self) -> str:
        """Which parts of the request nothing that was paid for or published depends on."""
        tables = [request for request in self.requests.values() if isinstance(request, CountRequest)]
        if not tables:
            return f"every part of {REQUEST} is in what was paid for or in the report"
        schema = self.file.schema()
        used = {name for request in tables for table in request.details["tables"] for name in table["by"]}
        used |= {name for request in tables for query in request.derived for name in query.by}
        used |= {name for request in tables for name in request.release.where}
        unused = [name for name in (*schema.workplace_attributes, *schema.worker_attributes) if name not in used]
        paid = {str(entry.release): entry.payload["details"] for entry in self.lines.charges.values()}
        sealed = all("schema" in paid.get(request.release.name, {}) for request in tables)
        columns = [repr(name) for name in (*(() if sealed else schema.keys), *unused)]
        loose = f"no payment and no table depends on how {REQUEST} calls the columns {', '.join(columns)}; "
        names = ", ".join(repr(request.release.name) for request in tables)
        raise UncheckedError((loose if columns else "") + f"on the stratum of {names} the report alone depends")

    def report(self, published: Mapping[str, Entry], *, budget: Budget, head: Head) -> bytes:
        """The report that this code makes of the bundle."""
        known = tuple(ReleaseCheck(request, "released", ()) for request in self.requests.values())
        facts = facts_of(PlanCheck(self.file, known, budget, budget, ()), published, budget=budget, head=head)
        return page(facts).html().encode()

    def packed_report(self) -> bytes:
        return (self.folder / REPORT).read_bytes()


def _odd(paid: Mapping[str, Any], asked: Mapping[str, Any], key: str) -> bool:
    """Whether two requests differ in `key`. Labels are known by their hash alone, which the plan's text decides."""
    texts = []
    for details in (paid, asked):
        value = details.get(key)
        if key in ("tables", "derived"):
            value = [{name: part for name, part in table.items() if name != "labels"} for table in value or ()]
        texts.append(canonical(value))
    return texts[0] != texts[1]
