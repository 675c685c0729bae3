"""The life of a plan at the desk: saved, submitted, decided by the right person, approved for one exact text."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, desc, func, insert, select, update

from discreet.desk.accounts import Person
from discreet.desk.audit_log import now, record
from discreet.desk.desk import SETTINGS, Desk, no_source
from discreet.desk.drafts import Draft, as_toml, digest, new_name
from discreet.desk.store import DeskStore, audit, decisions, plans
from discreet.pages.page import write_text
from discreet.plan.shape import Plan as Content
from discreet.words.cases import case_of
from discreet.words.errors import DataError, PrivacyError

SAVED = "plan saved"
MARK = "# Written at the release desk. `discreet check` prices this plan, `discreet run` carries it out.\n"


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """A plan as the database has it."""

    name: str
    source: str
    author: str
    title: str
    filled_in: str
    text: str
    digest: str
    state: str
    at: str

    def release_title(self, name: str) -> str:
        """The title of a release in the plan; empty if it has none, or has changed since."""
        releases = json.loads(self.filled_in)["release"]
        return next((str(release.get("title", "")) for release in releases if release.get("name") == name), "")

    @property
    def draft(self) -> Draft:
        """The form's entries; they are read on demand, because lists hold hundreds of plans and show only titles."""
        return Draft.model_validate_json(self.filled_in)


def get(store: DeskStore, name: str) -> StoredPlan | None:
    with store.reading() as connection:
        row = connection.execute(select(plans).where(plans.c.name == name)).first()
    return None if row is None else _plan(row)


def listed(store: DeskStore, *states: str, most: int = 500, first: int = 0) -> list[StoredPlan]:
    """Plans, or those in certain states, the latest first, from number `first` on."""
    asked = select(plans).order_by(desc(plans.c.at), plans.c.name).limit(most).offset(first)
    with store.reading() as connection:
        rows = connection.execute(asked.where(plans.c.state.in_(states)) if states else asked).all()
    return [_plan(row) for row in rows]


def titles(store: DeskStore) -> dict[str, str]:
    """What every plan is called."""
    asked = select(plans.c.name, func.json_extract(plans.c.draft, "$.title"))
    with store.reading() as connection:
        return {name: title or name for name, title in connection.execute(asked)}


def number(store: DeskStore) -> int:
    """How many plans there are."""
    with store.reading() as connection:
        return int(connection.execute(select(func.count()).select_from(plans)).scalar_one())


def text_of(desk: Desk, draft: Draft, name: str) -> str:
    """The plan that a draft and the desk's settings make together."""
    return MARK + as_toml(draft.content(desk, name))


def save(desk: Desk, store: DeskStore, draft: Draft, person: Person, *, name: str | None = None) -> str:
    """Keep a draft, as a row and as the file that `discreet check` reads; an approval of another text is gone."""
    known = name is not None
    name = name or new_name(draft.title, draft.source)
    text = text_of(desk, draft, name)
    row = {
        "source": draft.source,
        "author": person.name,
        "draft": draft.model_dump_json(),
        "text": text,
        "digest": digest(text),
        "state": "draft",
        "at": now(),
    }
    with store.writing() as connection:
        before = connection.execute(select(plans).where(plans.c.name == name)).first()
        if before is not None and before.digest == row["digest"]:
            return name
        if known and before is None:
            raise DataError(
                f"There is no plan {name!r} to save.",
                "It may be under another name.",
                "See the list of plans.",
                about="plan",
            )
        if before is None:
            connection.execute(insert(plans).values(name=name, **row))
        else:
            connection.execute(update(plans).where(plans.c.name == name).values(**row))
        record(connection, person.name, SAVED, name, digest=row["digest"])
        write_text(desk.plan_file(name), text)
    return name


def submit(store: DeskStore, name: str, person: Person) -> None:
    """Ask for a decision about the plan as it is."""
    with store.writing() as connection:
        plan = _asked(connection, name)
        if case_of(plan.state, {"declined": True, "draft": True, "approved": False, "submitted": False}):
            connection.execute(update(plans).where(plans.c.name == name).values(state="submitted"))
            record(connection, person.name, "plan submitted", name, digest=plan.digest)


def decide(desk: Desk, store: DeskStore, name: str, person: Person, *, verdict: str, seen: str, note: str = "") -> None:
    """Approve or decline exactly the text that `seen` is the digest of."""
    if verdict not in ("approved", "declined"):
        raise DataError(
            f"{verdict[:20]!r} is not a decision.", "A plan is approved or declined.", "Choose one.", about="verdict"
        )
    with store.writing() as connection:
        plan = _asked(connection, name)
        if plan.digest != seen:
            raise DataError(
                f"{name!r} changed since you read it.", "Only what was read is decided.", "Read it again.", about="plan"
            )
        _refuse_own(desk, connection, name, person.name)
        if plan.state != "submitted":
            raise DataError(
                f"{name!r} is {plan.state}, so there is nothing to decide.",
                "A decision is asked for with `Send to review`, once for a text.",
                "Change or send the plan first.",
                about="plan",
            )
        if verdict == "approved":
            refuse_other_text(desk, plan)
        connection.execute(update(plans).where(plans.c.name == name).values(state=verdict))
        connection.execute(
            insert(decisions).values(
                plan=name, digest=seen, verdict=verdict, by=person.name, at=now(), note=note.strip()[:1000]
            )
        )
        record(connection, person.name, f"plan {verdict}", name, digest=seen)


def approved(desk: Desk, connection: Connection, name: str) -> Any:
    """The plan, if it is approved, by somebody who may, for the text that draft and settings give now."""
    plan = connection.execute(select(plans).where(plans.c.name == name)).first()
    asked = select(decisions).where(decisions.c.plan == name).order_by(desc(decisions.c.id)).limit(1)
    last = connection.execute(asked).first()
    if (
        plan is None
        or plan.state != "approved"
        or last is None
        or (last.verdict, last.digest) != ("approved", plan.digest)
    ):
        raise DataError(
            f"A run of {name[:64]!r} was asked for, which is not approved as it is now.",
            "Only approved plans are run.",
            "Have it approved under Review.",
            about="plan",
        )
    refuse_other_text(desk, plan)
    _refuse_own(Desk.open(desk.folder), connection, name, last.by)
    return plan


def refuse_other_text(desk: Desk, plan: Any) -> None:
    """Refuse a plan whose text is not what its draft and desk.toml, as it is on disk, give now."""
    fresh, draft = Desk.open(desk.folder), Draft.model_validate(json.loads(plan.draft))
    source = fresh.sources.get(draft.source)
    if source is None or plan.source != draft.source:
        raise DataError(no_source(plan.source), about="source")
    text = text_of(fresh, draft, plan.name)
    if text != plan.text or digest(text) != plan.digest:
        stale = text_of(desk, draft, plan.name) != text if draft.source in desk.sources else True
        raise DataError(
            f"The text of {plan.name!r} is not what its draft and {SETTINGS} give now: the settings changed since it "
            "was saved.",
            "Only what they give is approved and run.",
            ("Open the desk again, so that it knows them. " if stale else "") + "Save it again and have it approved.",
            about="plan",
        )
    refusal = source.refusal(Content.model_validate(tomllib.loads(text)).only.unit.unit())
    if refusal:
        raise PrivacyError(refusal, about="plan")


def _refuse_own(desk: Desk, connection: Connection, name: str, person: str) -> None:
    if desk.settings.second_person and person in _writers(connection, name):
        raise PrivacyError(
            f"{person} wrote at {name!r} and cannot decide about it: this desk wants a second person.",
            remedy="Ask a colleague who is a reviewer.",
            about="plan",
        )


def history(store: DeskStore, name: str) -> list[dict[str, Any]]:
    """Decisions about a plan, the latest first."""
    asked = select(decisions).where(decisions.c.plan == name).order_by(desc(decisions.c.id))
    with store.reading() as connection:
        return [dict(row._mapping) for row in connection.execute(asked)]


def writers(store: DeskStore, name: str) -> set[str]:
    """Everybody who ever saved the plan: none of them is a second person."""
    with store.reading() as connection:
        return _writers(connection, name)


def _writers(connection: Connection, name: str) -> set[str]:
    asked = select(audit.c.who).where(audit.c.action == SAVED, audit.c.subject == name).distinct()
    return set(connection.execute(asked).scalars())


def _asked(connection: Connection, name: str) -> Any:
    row = connection.execute(select(plans).where(plans.c.name == name)).first()
    if row is None:
        raise DataError(
            f"There is no plan {name[:64]!r}.", "It may be under another name.", "See the list of plans.", about="plan"
        )
    return row


def _plan(row: Any) -> StoredPlan:
    title = json.loads(row.draft)["title"] or row.name
    return StoredPlan(row.name, row.source, row.author, title, row.draft, row.text, row.digest, row.state, row.at)
