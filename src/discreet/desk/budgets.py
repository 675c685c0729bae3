"""Budgets raised at the desk: one person asks with a reason, a second confirms, and the ledger names both.

The decision is written to the ledger first. A desk that is killed in between finds the budget raised when the request
is confirmed again, and writes no second line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from sqlalchemy import Connection, desc, insert, select, update

from discreet.desk.accounts import RIGHTS, Person
from discreet.desk.audit_log import now, record
from discreet.desk.book import anchor
from discreet.desk.desk import Desk
from discreet.desk.store import DeskStore, accounts, budget_requests
from discreet.ledger import Ledger
from discreet.ledger.budget import Budget, readable
from discreet.privacy.losses import Loss, loss
from discreet.words.errors import DataError, LedgerError, PrivacyError

NUMBER = re.compile(r"\d{1,9}(\.\d{1,9})?|\d{1,9}/[1-9]\d{0,8}")
LONGEST = 1_000
"""Characters of a reason."""


@dataclass(frozen=True, slots=True)
class BudgetRequest:
    """What somebody asked for."""

    id: int
    dataset: str
    before: str
    epsilon: str
    reason: str
    by: str
    at: str
    state: str
    decided_by: str


def waiting(store: DeskStore) -> list[BudgetRequest]:
    """Requests that nobody has decided about."""
    asked = select(budget_requests).where(budget_requests.c.state == "waiting").order_by(budget_requests.c.id)
    with store.reading() as connection:
        return [BudgetRequest(**row._mapping) for row in connection.execute(asked)]


def decided(store: DeskStore, *, most: int = 10) -> list[BudgetRequest]:
    """The last decisions."""
    asked = select(budget_requests).where(budget_requests.c.state != "waiting").order_by(desc(budget_requests.c.id))
    with store.reading() as connection:
        return [BudgetRequest(**row._mapping) for row in connection.execute(asked.limit(most))]


def ask(desk: Desk, store: DeskStore, person: Person, *, dataset: str, epsilon: str, reason: str) -> None:
    """Ask for a larger total. Nothing changes until somebody else confirms it."""
    if not desk.settings.accounts:
        raise DataError(
            "A larger budget was asked for at a desk of one person.",
            "Two people raise a budget.",
            "Set accounts = true in desk.toml, or raise it with `discreet ledger budget`, which names both.",
            about="accounts",
        )
    known, reason = _known(desk, dataset), reason.strip()
    if not 0 < len(reason) <= LONGEST:
        raise DataError(
            f"A larger budget was asked for with a reason of {len(reason)} characters.",
            f"It has 1 to {LONGEST}, and stays in the ledger.",
            "Say who decided and why.",
            about="reason",
        )
    total = _total(known, epsilon)
    now_has = known.total.amounts["epsilon"]
    with store.writing() as connection:
        open_one = connection.execute(
            select(budget_requests.c.id).where(
                budget_requests.c.dataset == dataset, budget_requests.c.state == "waiting"
            )
        ).first()
        if open_one is not None:
            raise DataError(
                f"A larger budget of {dataset!r} is asked for already.",
                "One request is decided at a time.",
                "Confirm or decline that one first.",
                about="request",
            )
        row = {
            "dataset": dataset,
            "before": readable(now_has),
            "epsilon": str(total.amounts["epsilon"]),
            "reason": reason,
            "by": person.name,
            "at": now(),
            "state": "waiting",
            "decided_by": "",
        }
        connection.execute(insert(budget_requests).values(**row))
        record(connection, person.name, "budget asked for", dataset, epsilon=row["epsilon"])


def decide(desk: Desk, store: DeskStore, person: Person, number: int, *, verdict: str) -> None:
    """Confirm a request of somebody else, which raises the budget, or decline it."""
    if verdict not in ("confirmed", "declined"):
        raise DataError(
            f"{verdict[:20]!r} is not a decision.",
            "A request is confirmed or declined.",
            "Choose one.",
            about="verdict",
        )
    with store.writing() as connection:
        row = connection.execute(select(budget_requests).where(budget_requests.c.id == number)).first()
        if row is None or row.state != "waiting":
            raise DataError(
                f"No request {number} waits for a decision.",
                "It may be decided.",
                "See the ledger's page.",
                about="request",
            )
        if verdict == "confirmed":
            _refuse_alone(connection, row.by, person)
            _raise(desk, row.dataset, Fraction(row.epsilon), reason=row.reason, by=row.by, confirmed_by=person.name)
        changed = update(budget_requests).where(budget_requests.c.id == number)
        connection.execute(changed.values(state=verdict, decided_by=person.name))
        action = "budget raised" if verdict == "confirmed" else "budget declined"
        record(connection, person.name, action, row.dataset, epsilon=row.epsilon, asked_by=row.by)
    anchor(desk.ledger, desk.traces, desk.datasets)  # not before the desk's database is free again


def _refuse_alone(connection: Connection, asked_by: str, person: Person) -> None:
    if person.name == asked_by:
        raise DataError(
            f"{person.name} asked for this budget and cannot confirm it.",
            "A second person does.",
            "Ask a colleague who is a reviewer or an administrator.",
            about="request",
        )
    role = connection.execute(select(accounts.c.role).where(accounts.c.name == asked_by)).scalar()
    if role is None or "budget" not in RIGHTS[role]:
        raise DataError(
            f"{asked_by} asked for this budget and may no longer do so.",
            "Two people who may raise it together.",
            "Decline it, and ask again.",
            about="request",
        )


def _raise(desk: Desk, dataset: str, epsilon: Fraction, *, reason: str, by: str, confirmed_by: str) -> None:
    _refuse_trouble(desk)
    with Ledger.open(desk.ledger) as ledger:
        known = next(budget for budget in ledger.budgets() if budget.dataset == dataset)
        total = _with(known, epsilon)
        if known.total != total:
            ledger.change_budget(dataset=dataset, total=total, reason=reason, by=by, confirmed_by=confirmed_by)


def _refuse_trouble(desk: Desk) -> None:
    if trouble := desk.ledger_trouble:
        raise LedgerError(trouble, about="dataset")


def _known(desk: Desk, dataset: str) -> Budget:
    _refuse_trouble(desk)
    found = [budget for budget in desk.book.budgets if budget.dataset == dataset]
    if len(found) != 1:
        raise PrivacyError(
            f"{dataset[:64]!r} has {'no budget' if not found else 'several budgets'} in the ledger.",
            "The first run opens one, with the total in desk.toml, and one is raised at a time.",
            "Choose one that is open, or use `discreet ledger budget`.",
            about="dataset",
        )
    return found[0]


def _total(known: Budget, epsilon: str) -> Loss:
    text = epsilon.strip()
    if not NUMBER.fullmatch(text):
        raise DataError(
            f"{text[:40]!r} is not a number.",
            "The new total is one, for example 6, 6.5 or 13/2.",
            "Correct it.",
            about="total",
        )
    total = _with(known, Fraction(text))
    if total <= known.total:
        raise DataError(
            f"A total of {text} was asked for {known.dataset!r}, which has {readable(known.total.amounts['epsilon'])}.",
            "Here a budget is raised.",
            "Give a number above that.",
            about="total",
        )
    return total


def _with(known: Budget, epsilon: Fraction) -> Loss:
    return loss(epsilon=epsilon, delta=known.total.amounts.get("delta"))
