"""The plan behind a bundle, built anew from its public request: what it asks for must be what the ledger was paid for.

A bundle has no paths and no addresses, and nothing here needs them. Requests are priced without data, and the report is
made from published files and lines of the ledger.
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
from discreet.ledger import Entry
from discreet.ledger.entries import asked_then, canonical
from discreet.plan.agency_comparison import COMPARISON
from discreet.plan.budgets import Spending, jobs_of_one_worker
from discreet.plan.bundle import REPORT, REQUEST
from discreet.plan.bundle import request as public_request
from discreet.plan.check import PlanCheck, ReleaseCheck
from discreet.plan.document import Document
from discreet.plan.facts import facts_of
from discreet.plan.file import PlanFile
from discreet.plan.kinds.alarms import alarm_steps, kept_earlier
from discreet.plan.kinds.kind import PlannedRelease
from discreet.plan.kinds.recomputed import Recomputed
from discreet.plan.kinds.registry import kind_of
from discreet.plan.reading import contradictions
from discreet.plan.requests import requests, size
from discreet.plan.shape import Plan
from discreet.plan.sheets import for_programs
from discreet.release.alarms import kept as kept_alarms
from discreet.release.files import MANIFEST
from discreet.report.release import page
from discreet.review.lines import Lines
from discreet.review.recompute import check_alarms
from discreet.words.voices import PLAN

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
        content = {
            "title": asked["title"],
            **({"people": asked["people"]} if "people" in asked else {}),
            **(
                {"source": {name: _source(each) for name, each in asked["sources"].items()}}
                if "sources" in asked
                else _source(asked)
            ),
            "release": asked["releases"],
            "alarms": asked.get("alarms", []),
            "output": {"folder": ".", "forms": about["forms"], "formats": about["formats"]},
        }
        try:
            plan = Plan.model_validate(content)
        except ValidationError:
            raise RefutedError(f"{REQUEST} asks for something that no plan can ask for") from None
        if wrong := contradictions(plan):
            raise RefutedError(f"{REQUEST} contradicts itself: {wrong[0].said(PLAN)}")
        return PlanFile(plan, Document(self.folder / "plan.toml", content, {}))

    @once
    def requests(self) -> dict[str, PlannedRelease]:
        """Every release that was asked for, by name."""
        tables, counts = size(self.file)
        if tables > len(self.rows) or counts > sum(self.rows):
            raise RefutedError(
                f"{REQUEST} asks for {tables:,} tables with {counts:,} kinds of workers together. The bundle has "
                f"{len(self.rows):,} files of tables with {sum(self.rows):,} rows together"
            )
        found, wrong = requests(self.file, paid=self._paid())
        if wrong:
            raise RefutedError(f"{REQUEST} asks for what cannot be released: {wrong[0].said(PLAN)}")
        return {request.release.name: request for request in found}

    def _paid(self) -> dict[tuple[str, str], Entry]:
        """The charges by data set and release, as far as lines can be read: another check says what is wrong."""
        try:
            return {(entry.dataset, str(entry.release)): entry for entry in self.lines.charges.values()}
        except Exception:
            return {}

    def about(self, name: str) -> dict[str, Any]:
        """The release's own description."""
        return dict(json.loads((self.folder / name / MANIFEST).read_text(encoding="utf-8")))

    def recomputed(self, name: str) -> Recomputed:
        """Values that the checks of one release share; those of another release are dropped."""
        kept = vars(self)
        if kept.get("_recomputed", ("",))[0] != name:
            kept["_recomputed"] = name, self.requests[name].recomputed(self.folder / name)
        found: Recomputed = kept["_recomputed"][1]
        return found

    def compares(self, name: str) -> bool:
        """Whether a comparison with the agency's table was requested, or exists."""
        try:
            asked = "compare" in self.about(name)["parameters"]
        except Exception:
            asked = False  # another check says what is wrong with it
        return asked or (self.folder / name / COMPARISON).is_file()

    @property
    def alarmed(self) -> bool:
        """Whether alarms were asked for, or are there."""
        try:
            asked = bool(json.loads((self.folder / REQUEST).read_text(encoding="utf-8")).get("alarms"))
        except Exception:
            asked = False  # another check says what is wrong with it
        return asked or any(self.folder.glob("alarms*"))

    def check_alarms(self) -> str:
        """The alarms follow from the numbers of the releases, and they are the requested ones."""
        asked, known = self.file.plan.alarms, kept_alarms(self.folder)
        if {*known} != {each.name for each in asked}:
            odd = sorted({*known} ^ {each.name for each in asked})[0]
            raise RefutedError(f"{odd!r} is requested and missing, or present and not requested")
        steps, wrong = alarm_steps(asked, self.requests, lambda each: kept_earlier(self.folder, each.name))
        if wrong:
            raise RefutedError(f"they are about what cannot be compared: {wrong[0].said(PLAN)}")
        kinds = for_programs(self.file.plan.output.formats)
        for step in steps:
            check_alarms(step, self.folder, known[step.asked.name], kinds)
        others = sum(step.earlier is not None for step in steps)
        more = (
            f"; that {others} of them begin with published numbers, the releases of other plans show" if others else ""
        )
        return f"{len(steps)} computed again from the published numbers: the same{more}"

    def check_request(self) -> str:
        """Every requested release is present, and the ledger was paid for exactly what was requested."""
        asked, charges, budgets = self.requests, self._paid(), self.lines.budgets
        if {*asked} != {*self.releases}:
            odd = sorted({*asked} ^ {*self.releases})[0]
            raise RefutedError(
                f"{odd!r} is " + ("asked for, and missing" if odd in asked else "there, and not asked for")
            )
        for name, request in asked.items():
            source, unit = request.source, request.source.unit.key
            charge = charges.get((source.dataset, name))
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
        for source in self.file.sources:
            budget, whole = budgets.get((source.dataset, source.unit.key)), source.tables.budget.total()
            if budget is None or budget.total.to_dict() != whole.to_dict():
                raise RefutedError(f"a budget of {whole} is asked for, and the ledger has another")
            if (policy := source.tables.budget.policy()) not in (None, budget.policy):
                raise RefutedError(f"{policy} is asked for {source.dataset!r}, and the ledger has another policy")
        if as_json(public_request(self.file)) != (self.folder / REQUEST).read_bytes():
            raise RefutedError(f"{REQUEST} has content that no plan can request, or has it in another form")
        return f"every requested release is present ({len(asked)}), each as the ledger was paid for"

    def check_names(self) -> str:
        """Which parts of the request nothing that was paid for or published depends on."""
        tables = [each for each in self.requests.values() if kind_of(each.release).of_jobs]
        if not tables:
            return f"every part of {REQUEST} is in what was paid for or in the report"
        paid, loose = self._paid(), []
        for source in self.file.sources:
            mine = [request for request in tables if request.source.name == source.name]
            if not mine:
                continue
            schema = source.schema()
            used = {name for request in mine for name in request.used}
            used |= {each.finest for each in schema.hierarchies if used & {*each.derived}}
            used |= {of for request in mine if (of := getattr(request.release, "of", None)) is not None}
            every = (*schema.workplace_attributes, *schema.worker_attributes, *schema.magnitudes)
            unused = [name for name in every if name not in used]
            charges = [paid.get((source.dataset, request.release.name)) for request in mine]
            sealed = all(charge is not None and "schema" in charge.payload["details"] for charge in charges)
            names = ", ".join(repr(name) for name in (*(() if sealed else schema.keys), *unused))
            where = f" of source {source.name!r}" if len(self.file.sources) > 1 else ""
            loose += [f"{names}{where}"] if names else []
        columns = f"no payment and no table depends on how {REQUEST} calls the columns {' and '.join(loose)}"
        names = ", ".join(repr(each.release.name) for each in tables if "stratum" in kind_of(each.release).reported)
        strata = f"on the stratum of {names} the report alone depends" if names else ""
        if not (loose or names):
            return f"every part of {REQUEST} is in what was paid for or in the report"
        raise UncheckedError("; ".join(words for words, apply in ((columns, loose), (strata, names)) if apply))

    def report(self) -> bytes:
        """The report that this code makes of the bundle."""
        lines = self.lines
        known = tuple(ReleaseCheck(request, "released") for request in self.requests.values())
        published = {
            name: next(e for e in reversed(lines.publications[name]) if e.dataset == request.source.dataset)
            for name, request in self.requests.items()
        }
        budgets = {each.dataset: lines.budgets[each.dataset, each.unit.key] for each in self.file.sources}
        spending = [
            Spending(source.unit, budgets[name], budgets[name], budgets[name].total.zero(), jobs_of_one_worker(mine))
            for name, source in self.file.accounts.items()
            for mine in [[request for request in self.requests.values() if request.source.dataset == name]]
        ]
        found = PlanCheck(self.file, known, tuple(spending), ())
        facts = facts_of(found, published, budgets=budgets.values(), head=lines.head, lines=lines.entries)
        return page(facts).html().encode()

    def packed_report(self) -> bytes:
        return (self.folder / REPORT).read_bytes()


def _source(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of a source that ask for what its public part says."""
    schema = dict(asked["schema"] or {})
    levels = schema.pop("hierarchy", {})
    return {
        "data": {
            "source": NOWHERE,
            "allow_multiple": asked["allow_multiple"],
            **({"workplaces": NOWHERE} if asked["public_list"] else {}),
            **({"schema": schema} if schema else {}),
            "public": asked.get("public_columns", []),
            **{key: asked[key] for key in ("period", "quarters", "time") if key in asked},
        },
        "hierarchy": levels,
        "unit": asked["unit"],
        "budget": asked["budget"] | {"ledger": NOWHERE},
    }


def _odd(paid: Mapping[str, Any], asked: Mapping[str, Any], key: str) -> bool:
    """Whether two requests differ in `key`. Labels are known by their hash alone, which the plan's text decides."""
    texts = []
    for details in (paid, asked):
        value = details.get(key)
        if key in ("tables", "derived"):
            value = [{name: part for name, part in table.items() if name != "labels"} for table in value or ()]
        texts.append(canonical(value))
    return texts[0] != texts[1]
