"""Losses are exact: what is added can be taken away again, and a printed loss never flatters."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.privacy.losses import Approximate, Concentrated, Pure, exact, from_dict, loss, shown, total
from discreet.words.errors import PrivacyError
from faults_of import about

amounts = st.fractions(min_value=0, max_value=10, max_denominator=997)


@given(st.lists(amounts, max_size=30))
def test_spending_is_exact(costs: list[Fraction]) -> None:
    assert total([Pure(cost) for cost in costs]) == Pure(sum(costs, Fraction(0)))


@given(amounts, amounts, amounts, amounts)
def test_what_is_added_can_be_taken_away(e1: Fraction, d1: Fraction, e2: Fraction, d2: Fraction) -> None:
    a, b = Approximate(e1, d1), Approximate(e2, d2)
    assert (a + b) - b == a
    assert a <= a + b and b <= a + b


def test_a_float_means_what_a_person_wrote() -> None:
    assert exact(0.1) == Fraction(1, 10)
    assert Pure(0.1) * 10 == Pure(1)
    assert exact("1/3") == Fraction(1, 3)
    assert exact(np.float64(0.7)) == Fraction(7, 10)


@pytest.mark.parametrize("value", ["abc", math.nan, math.inf, None, True])
def test_nonsense_is_refused(value: object) -> None:
    with pytest.raises(PrivacyError, check=about("epsilon")) as refused:
        Pure(value)  # type: ignore[arg-type]
    assert refused.value.about == "epsilon"


def test_negative_amounts_are_refused() -> None:
    with pytest.raises(PrivacyError, check=about("epsilon")):
        Pure(-1)
    with pytest.raises(PrivacyError, check=about("loss")):
        Pure(1) - Pure(2)
    with pytest.raises(PrivacyError):
        Pure(1) * -1
    with pytest.raises(PrivacyError):
        Pure(1).at_distance(-1)


def test_pure_converts_to_either_currency_and_the_two_do_not_mix() -> None:
    assert Pure(1) + Approximate(1, "1e-6") == Approximate(2, "1e-6")
    assert Pure(1) + Concentrated("1/2") == Concentrated(1)
    with pytest.raises(PrivacyError, check=about("loss")):
        Concentrated(1) + Approximate(1, "1e-6")


def test_the_order_is_partial() -> None:
    assert not Approximate(1, "1e-6") <= Approximate(2, 0)
    assert not Approximate(2, 0) <= Approximate(1, "1e-6")
    assert Pure(1) < Pure(2) <= Approximate(2, "1e-9")


def test_a_pure_budget_pays_for_no_rho() -> None:
    assert not Concentrated("0.01") <= Pure(10)
    assert Concentrated(0) <= Pure(0)
    assert Pure(1) <= Concentrated("1/2")
    with pytest.raises(PrivacyError, check=about("loss")):
        Pure(10) - Concentrated("0.01")


def test_distance_multiplies_pure_and_squares_concentrated() -> None:
    assert Pure("1/2").at_distance(3) == Pure("3/2")
    assert Concentrated("1/2").at_distance(3) == Concentrated("9/2")
    far = Approximate(1, "1e-6").at_distance(3)
    assert isinstance(far, Approximate)
    series = 1e-6 * (1 + math.e + math.e**2)
    assert float(far.delta) == pytest.approx(series, rel=1e-12)
    assert far.delta > Fraction(1, 10**6) * 11  # grows as delta e^((d-1) eps), the paper's equation 13


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**6))
def test_a_printed_loss_is_never_below_the_true_one(amount: Fraction) -> None:
    assert Fraction(shown(amount)) >= amount
    assert float(Fraction(shown(amount))) == pytest.approx(float(amount), rel=1e-10)


@pytest.mark.parametrize("value", [Pure("1/3"), Approximate(1, "1e-7"), Approximate(1, 0), Concentrated("0.3")])
def test_losses_survive_storage(value: Pure | Approximate | Concentrated) -> None:
    assert from_dict(value.to_dict()) == value


def test_loss_names_one_currency() -> None:
    assert loss(epsilon=1) == Pure(1)
    assert loss(epsilon=1, delta=0) == Pure(1)
    assert loss(epsilon=1, delta="1e-6") == Approximate(1, "1e-6")
    with pytest.raises(PrivacyError):
        loss(epsilon=1, rho=1)
    with pytest.raises(PrivacyError):
        loss()


def test_concentrated_converts_to_approximate() -> None:
    converted = Concentrated("1/2").to_approximate("1e-6")
    assert float(converted.epsilon) == pytest.approx(0.5 + 2 * math.sqrt(0.5 * math.log(1e6)), rel=1e-12)


@pytest.mark.parametrize("text", ["1e999999999", "1e-999999999", Decimal("1e999999999"), "1" * 5000, "1e1234"])
def test_amounts_that_would_take_minutes_to_read_are_refused(text: str | Decimal) -> None:
    with pytest.raises(PrivacyError, check=about("value")):
        exact(text)
