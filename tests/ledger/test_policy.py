"""Amounts for the quarters of a series hold in both kinds of ledgers."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from discreet.errors import PrivacyError
from discreet.ledger import Ledger, Period, Policy
from discreet.privacy.losses import Pure
from discreet.privacy.units import Workers


def charged(ledger: Ledger, release: str, epsilon: object, period: str | None) -> None:
    details = {} if period is None else {"period": period}
    ledger.charge(dataset="series", unit=Workers(), release=release, loss=Pure(epsilon), details=details)


@pytest.mark.parametrize("where", ["file", "server"])
def test_the_ledger_enforces_the_policy(where: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Every charge is accepted if and only if quarter and total have room and no quarter is left out."""
    place = request.getfixturevalue("postgres_url") if where == "server" else str(tmp_path / "ledger.db")
    with Ledger.open(place) as ledger:
        total, limit = Fraction(5), Fraction(2)
        ledger.open_budget(dataset="series", unit=Workers(), total=Pure(total), policy=Policy("quarter", limit))
        spent: dict[str, Fraction] = {}
        asked = [("2026-Q1", 1), ("2026-Q3", 1), ("2026-Q1", "3/2"), ("2026-Q1", 1), ("2026-Q2", 2), ("2026-Q2", "1/9"),
                 ("2025-Q3", 1), ("2026-Q3", "1/2"), ("2026-Q4", 1), ("2026-Q4", "1/2"), (None, "1/9"),
                 ("2026", "1/9")]  # fmt: skip
        for number, (period, epsilon) in enumerate(asked):
            amount, known = Fraction(epsilon), sorted(spent)
            near = not known or period in {
                str(Period.of(known[0]).later(-1)),
                str(Period.of(known[-1]).later(1)),
                *known,
            }
            fits = (
                period is not None
                and "Q" in period
                and near
                and spent.get(period, Fraction(0)) + amount <= limit
                and sum(spent.values()) + amount <= total
            )
            if fits:
                charged(ledger, f"r{number}", epsilon, period)
                spent[str(period)] = spent.get(str(period), Fraction(0)) + amount
            else:
                before = ledger.head
                with pytest.raises(PrivacyError):
                    charged(ledger, f"r{number}", epsilon, period)
                assert ledger.head == before
        [budget] = ledger.budgets()
        assert (
            dict(budget.periods)
            == spent
            == {"2026-Q1": 2, "2026-Q2": 2, "2026-Q3": Fraction(1, 2), "2026-Q4": Fraction(1, 2)}
        )
        assert budget.left_in("2026-Q3") == Fraction(3, 2)
        assert ledger.verify()
