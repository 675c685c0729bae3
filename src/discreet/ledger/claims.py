"""What the charges of a ledger state of their releases, and what may be said about its data sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from discreet.ledger.budget import Budget
from discreet.ledger.entries import Entry
from discreet.privacy.assurance import Assurance, Claim


def claim_of(charge: Entry) -> Claim:
    """What a charge states of the release that it pays for."""
    return Claim.charged(
        charge.payload.get("details"),
        release=str(charge.release),
        dataset=charge.dataset,
        unit=charge.unit,
        loss=charge.loss,
    )


def in_several(budgets: Sequence[Budget], entries: Iterable[Entry]) -> Assurance | None:
    """What may be said about somebody who is in several data sets of a ledger; None where one alone has releases."""
    claims: dict[str, list[Claim]] = {}
    for entry in (entry for entry in entries if entry.kind == "charge"):
        claims.setdefault(entry.dataset, []).append(claim_of(entry))
    units = {name: [budget for budget in budgets if budget.dataset == name] for name in claims}
    return Assurance.in_several(
        [
            Assurance.of(mine, spent=units[name][0].spent if len(units[name]) == 1 else None, jobs=None)
            for name, mine in claims.items()
        ]
    )
