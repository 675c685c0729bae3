"""Results of work that somebody asked for, kept so that they have an address; only their owner can open them."""

from __future__ import annotations

import json
import secrets
from typing import Any

from sqlalchemy import desc, insert, select

from discreet.desk.accounts import Person
from discreet.desk.audit_log import now, record
from discreet.desk.store import DeskStore, analyses


def keep(store: DeskStore, kind: str, title: str, result: dict[str, Any], person: Person) -> str:
    """Keep a result; its name."""
    name = f"{kind}-{secrets.token_hex(5)}"
    row = {
        "name": name,
        "kind": kind,
        "by": person.name,
        "at": now(),
        "title": title[:200],
        "result": json.dumps(result),
    }
    with store.writing() as connection:
        connection.execute(insert(analyses).values(**row))
        record(connection, person.name, f"{kind} made", name)
    return name


def get(store: DeskStore, kind: str, name: str, person: Person) -> dict[str, Any] | None:
    """A person's result of one kind."""
    asked = select(analyses).where(analyses.c.name == name, analyses.c.kind == kind, analyses.c.by == person.name)
    with store.reading() as connection:
        row = connection.execute(asked).first()
    return None if row is None else {**row._mapping, "result": json.loads(row.result)}


def listed(store: DeskStore, kind: str, person: Person) -> list[Any]:
    """A person's results of one kind, the latest first."""
    asked = (
        select(analyses.c.name, analyses.c.title, analyses.c.at)
        .where(analyses.c.kind == kind, analyses.c.by == person.name)
        .order_by(desc(analyses.c.at))
        .limit(30)
    )
    with store.reading() as connection:
        return list(connection.execute(asked))
