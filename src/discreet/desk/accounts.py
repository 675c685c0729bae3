"""People: names, argon2 passwords, roles, sessions.

A session is a random token in a cookie; the database knows only its SHA-256. Without accounts there is one person: the
one who started the desk. They enter once, by the link that `discreet serve` prints.
"""

from __future__ import annotations

import getpass
import hashlib
import hmac
import re
import secrets
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias, get_args

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import Connection, delete, insert, select

from discreet.desk.audit_log import now, record
from discreet.desk.store import DeskStore, accounts, former, sessions, suspended
from discreet.words.errors import DataError

Role: TypeAlias = Literal["analyst", "reviewer", "administrator"]
Right: TypeAlias = Literal["plan", "approve", "budget", "run", "analyse", "log", "people", "source"]

RIGHTS: dict[str, frozenset[Right]] = {
    "analyst": frozenset({"plan", "run", "analyse"}),
    "reviewer": frozenset({"approve", "budget", "log"}),
    "administrator": frozenset(get_args(Right)),
    "local": frozenset(get_args(Right)),
}
NAME = re.compile(r"[a-z][a-z0-9._-]{0,31}")
SHORTEST = 12
"""Characters of a password."""

HOURS = 12
"""A session's life."""

_hasher = PasswordHasher()


@lru_cache(maxsize=1)
def _nobody(hasher: PasswordHasher) -> str:
    """The hash of a password that nobody has."""
    return hasher.hash(secrets.token_hex(16))


@dataclass(frozen=True, slots=True)
class Person:
    """Who is asking."""

    name: str
    role: str
    csrf: str

    def may(self, right: Right) -> bool:
        return right in RIGHTS[self.role]


def add_account(store: DeskStore, name: str, role: str, password: str, *, by: str) -> None:
    """Add a person, or give an existing one another password and role."""
    if not NAME.fullmatch(name):
        raise DataError(
            f"{name[:40]!r} cannot name an account.",
            "A name has up to 32 of a-z, 0-9, '.', '_', '-'.",
            "Shorten.",
            about="name",
        )
    if role not in get_args(Role):
        raise DataError(
            f"{role!r} is not a role.",
            f"There are: {', '.join(get_args(Role))}.",
            "Choose one with --role.",
            about="role",
        )
    if len(password) < SHORTEST:
        raise DataError(
            f"The password has {len(password)} characters.",
            f"It needs at least {SHORTEST}.",
            "Use a few words instead.",
            about="password",
        )
    hashed = _hasher.hash(password)
    with store.writing() as connection:
        if connection.execute(select(former.c.name).where(former.c.name == name)).first():
            raise DataError(
                f"{name} was the account of somebody whose access was ended.",
                "A name stands for one person in plans, decisions and the log, so it is not given again.",
                "Enable the account if it is the same person, with `discreet serve --enable-account NAME` or "
                "under People, or choose another name.",
                about="name",
            )
        if role != "administrator":
            _keep_an_administrator(connection, name)
        connection.execute(delete(accounts).where(accounts.c.name == name))
        connection.execute(delete(sessions).where(sessions.c.name == name))
        connection.execute(insert(accounts).values(name=name, password=hashed, role=role, since=now()))
        record(connection, by, "account set", name, role=role)


def disable_account(store: DeskStore, name: str, *, by: str) -> None:
    """End a person's access at once; what they did stays under their name, and they can be let in again."""
    with store.writing() as connection:
        password = _ended(connection, name, by)
        connection.execute(insert(suspended).values(name=name, password=password))
        record(connection, by, "account disabled", name, role=_former_role(connection, name))


def remove_account(store: DeskStore, name: str, *, by: str) -> None:
    """End a person's access at once and for good, of a disabled account too; the name is not given again."""
    with store.writing() as connection:
        if _former_role(connection, name) is None:
            _ended(connection, name, by)
        connection.execute(delete(suspended).where(suspended.c.name == name))
        record(connection, by, "account removed", name, role=_former_role(connection, name))


def enable_account(store: DeskStore, name: str, *, by: str) -> None:
    """Let the same person in again, with the role and the password they had: nobody else learns or sets one."""
    with store.writing() as connection:
        kept = connection.execute(select(suspended.c.password).where(suspended.c.name == name)).first()
        role = _former_role(connection, name)
        if kept is None or role is None:
            there = ", ".join(connection.execute(select(suspended.c.name).order_by(suspended.c.name)).scalars())
            raise DataError(
                f"{name[:32]!r} is not a disabled account.",
                f"Those that can return: {there or 'none'}.",
                "Name one of these, or add a person under a new name with `discreet serve --add-account NAME "
                "--role ROLE`.",
                about="name",
            )
        for table in (suspended, former, sessions):  # a session that began in between is none of this account
            connection.execute(delete(table).where(table.c.name == name))
        connection.execute(insert(accounts).values(name=name, password=kept.password, role=role, since=now()))
        record(connection, by, "account enabled", name, role=role)


def _ended(connection: Connection, name: str, by: str) -> str:
    """Take an account and its sessions away; its password's hash."""
    row = connection.execute(select(accounts).where(accounts.c.name == name)).first()
    if row is None:
        there = ", ".join(connection.execute(select(accounts.c.name).order_by(accounts.c.name)).scalars())
        raise DataError(
            f"{name[:32]!r} has no account.", f"There are: {there or 'none'}.", "Name one of these.", about="name"
        )
    _keep_an_administrator(connection, name)
    connection.execute(delete(accounts).where(accounts.c.name == name))
    connection.execute(delete(sessions).where(sessions.c.name == name))
    connection.execute(insert(former).values(name=name, role=row.role, at=now(), by=by))
    return str(row.password)


def _former_role(connection: Connection, name: str) -> str | None:
    found: str | None = connection.execute(select(former.c.role).where(former.c.name == name)).scalar()
    return found


def _keep_an_administrator(connection: Connection, name: str) -> None:
    """Refuse to take the last administrator away."""
    found = connection.execute(select(accounts.c.name).where(accounts.c.role == "administrator")).scalars().all()
    if found == [name]:
        raise DataError(
            f"{name} is the only administrator, who was to be none any longer.",
            "A desk keeps at least one.",
            "Add another first, with `discreet serve --add-account NAME --role administrator`.",
            about="role",
        )


def people(store: DeskStore) -> tuple[list[Any], list[Any]]:
    """Those who have an account, and those who had one; `returns` where they can be let in again."""
    known = former.outerjoin(suspended, former.c.name == suspended.c.name)
    with store.reading() as connection:
        now_here = connection.execute(select(accounts.c.name, accounts.c.role, accounts.c.since).order_by("name"))
        gone = select(former, suspended.c.name.label("returns")).select_from(known).order_by(former.c.name)
        return list(now_here), list(connection.execute(gone))


def has_accounts(store: DeskStore) -> bool:
    with store.reading() as connection:
        return connection.execute(select(accounts.c.name).limit(1)).first() is not None


def has_account(store: DeskStore, name: str) -> bool:
    with store.reading() as connection:
        return connection.execute(select(accounts.c.name).where(accounts.c.name == name)).first() is not None


def is_password(store: DeskStore, name: str, password: str) -> bool:
    """Whether this is the person's password; unknown names take as long as known ones."""
    with store.reading() as connection:
        row = connection.execute(select(accounts.c.password).where(accounts.c.name == name)).first()
    nobody = _nobody(_hasher)  # made at the first log-in, whoever comes: how long it takes says nothing about names
    try:
        return _hasher.verify(nobody if row is None else row.password, password[:1024]) and row is not None
    except (VerificationError, InvalidHashError):
        return False


def open_session(store: DeskStore, name: str, *, action: str) -> str:
    """A new session's token, for the cookie."""
    token = secrets.token_urlsafe(32)
    with store.writing() as connection:
        connection.execute(delete(sessions).where(sessions.c.expires < time.time()))
        connection.execute(
            insert(sessions).values(
                token=_digest(token), name=name, csrf=secrets.token_urlsafe(24), expires=time.time() + 3600 * HOURS
            )
        )
        record(connection, name, action)
    return token


def person_of(store: DeskStore, token: str, *, local: bool) -> Person | None:
    """Whose session it is, with the role they have now; the local person only where there are no accounts."""
    asked = (
        select(sessions.c.name, sessions.c.csrf, accounts.c.role)
        .select_from(sessions.outerjoin(accounts, sessions.c.name == accounts.c.name))
        .where(sessions.c.token == _digest(token), sessions.c.expires > time.time())
    )
    with store.reading() as connection:
        row = connection.execute(asked).first()
    if row is None:
        return None
    if row.role is not None:
        return Person(row.name, row.role, row.csrf)
    return Person(row.name, "local", row.csrf) if local and row.name == local_name() else None


def close_session(store: DeskStore, token: str, who: str) -> None:
    with store.writing() as connection:
        connection.execute(delete(sessions).where(sessions.c.token == _digest(token)))
        record(connection, who, "logged out")


def local_name() -> str:
    """The one person of a desk without accounts; the brackets keep it apart from every account."""
    try:
        return f"({getpass.getuser()})"
    except (KeyError, OSError, ImportError):
        return "(local)"


def same(one: str, other: str) -> bool:
    """Whether two secrets are equal, in a time that does not depend on where they differ."""
    return hmac.compare_digest(one.encode(), other.encode())


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
