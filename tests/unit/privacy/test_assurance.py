"""What may be said of releases: a doubt leaves no sentence of protection and no bound; a sum is said of several."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest

from discreet.ledger import Ledger
from discreet.ledger.claims import claim_of, in_several
from discreet.privacy.assurance import APART, Assurance, Claim, sure_at_most, titled
from discreet.privacy.guarantee import Basis, Guarantee
from discreet.privacy.losses import Approximate, Concentrated, Loss, Pure
from discreet.privacy.units import (
    AnyRow,
    EstablishmentNodes,
    Establishments,
    Groups,
    Rows,
    Unit,
    Workers,
)

UNITS = [
    *(Establishments("0.1"), Establishments("1/3", "weak"), Establishments("0.05", substitution=True), Workers()),
    *(EstablishmentNodes(1000), Rows(0, 1, "y"), Groups("g", 0, 1, "y"), AnyRow()),
]
PROOF = "docs/proofs/polynomial.md"


def stated(unit: Unit = UNITS[0], loss: Loss | None = None, **changes: Any) -> dict[str, Any]:
    return Guarantee(unit, loss or Pure(2), basis="proved", proof=PROOF).to_dict() | changes


def said(told: Any, **more: Any) -> Assurance:
    return Assurance.of([Claim.stated(told, release="r", dataset="q1")], **more)


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in stated().items() if key != name}


DOUBTFUL: dict[str, Any] = {
    **{f"basis {basis}": stated(basis=basis) for basis in get_args(Basis) if basis != "proved"},
    **{
        f"no {name}": without(name) for name in ("basis", "private", "unit", "loss", "proof", "calibration", "sentence")
    },
    "seeded": stated(private=False),
    "private as text": stated(private="true"),
    "private as a number": stated(private=1),
    "another basis": stated(basis="Proved"),
    "no proof": stated(proof=""),
    "another unit": stated() | {"unit": "households(theta=3)"},
    "another loss": stated() | {"loss": {"mu": "1"}},
    "no amount": stated() | {"loss": {"epsilon": "much"}},
    "another flag": stated(revoked=True),
    "another calibration": stated(calibration="loose"),
    "nothing": {},
    "no table": None,
    "text": "proved",
}


@pytest.mark.parametrize("told", DOUBTFUL.values(), ids=DOUBTFUL)
def test_with_a_doubt_nothing_is_said_of_protection(told: Any) -> None:
    found = said(told)
    assert found.doubts and not found.promised and not found.attribute and not found.reach
    assert found.beliefs == () and found.suspicions == () and found.most_peaked(100) is None
    assert found.words == found.informed == found.refusal != ""
    assert "Nothing is promised" in found.covered and "% sure" not in found.covered
    [claim] = [Claim.stated(told, release="r", dataset="q1")]
    for words in (claim.sentence, claim.definition):
        assert words and "employee privacy" not in words and "times as likely" not in words
    assert claim.sentence.startswith("NO")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.key)
def test_what_is_proved_private_and_known_is_said_of_every_unit(unit: Unit) -> None:
    found = said(stated(unit), spent=Pure(2))
    assert found.promised and found.words and found.beliefs and found.attribute == " with proved privacy"
    assert "all releases of 'q1'" in found.reach and APART in found.reach
    assert all(" 'q1', to at most" in head for head, _ in found.suspicions[:1]) and found.suspicions
    assert "these releases of 'q1'" in said(stated(unit)).informed, "a folder may lack some"


def test_one_doubt_is_enough_and_stands_for_all_releases_of_the_data() -> None:
    good, bad = (Claim.stated(stated(private=p), release=n, dataset="q1") for n, p in (("a", True), ("b", False)))
    found = Assurance.of([good, bad])
    assert not found.promised and "'b'" in found.refusal and "'a'" not in found.refusal
    assert titled([Assurance.of([good]), found]) == "" != titled([Assurance.of([good])])
    assert not Assurance.of([]).promised


def test_losses_that_do_not_add_up_have_no_sum() -> None:
    one = [Claim.stated(stated(unit), release=unit.key, dataset="q1") for unit in UNITS[:2]]
    assert not Assurance.of(one).promised
    mixed = [
        Claim.stated(stated(loss=loss), release="r", dataset="q1") for loss in (Approximate(1, "0.1"), Concentrated(1))
    ]
    assert not Assurance.of(mixed).promised
    assert not said(stated(), spent=Pure(1)).promised, "the ledger has less than the release cost"


def test_a_loss_in_rho_bounds_no_belief_and_says_so() -> None:
    found = said(stated(loss=Concentrated("0.5")))
    assert found.promised and not found.bounded and found.beliefs == found.suspicions == ()
    assert "how sure" not in found.informed and "no figure" in found.informed


def test_a_delta_is_spoken_of_and_grows_with_the_steps() -> None:
    found = said(stated(loss=Approximate(1, "1/1000")))
    assert found.suspicions == () and "more may be learnt" in found.informed
    [one] = [bound for bound in found.beliefs if bound.about == "individuals"]
    assert one.delta == pytest.approx(0.001 * (1 + 2.718281828), rel=1e-6), "two steps of (epsilon, delta)"


def test_who_is_in_several_data_sets_is_covered_by_the_sum() -> None:
    """Two quarters of the same establishments at epsilon 2 each: 1 % becomes 6.95 % by one, 35.5 % by both."""
    one, other = (
        Assurance.of([Claim.stated(stated(), release="r", dataset=name)], spent=Pure(2)) for name in ("q1", "q2")
    )
    both = Assurance.in_several([one, other])
    assert both is not None and both.loss == Pure(4) and both.datasets == ("q1", "q2")
    assert "covered by the sum of their losses alone, epsilon=4" in both.covered and "98.3 %" in both.covered
    assert sure_at_most(0.01, one.suspicions[0][1]) == pytest.approx(0.0695, abs=1e-4)
    assert sure_at_most(0.01, both.suspicions[0][1]) == pytest.approx(0.3555, abs=1e-4)
    assert Assurance.in_several([one, other], people="shared") == both
    assert Assurance.in_several([one, other], people="different") is None and Assurance.in_several([one]) is None


@pytest.mark.parametrize("changes", [{"private": False}, {"unit": Workers().key}, {"loss": {"rho": "1"}, "private": 3}])
def test_a_sum_with_a_doubt_is_none(changes: dict[str, Any]) -> None:
    each = [
        Assurance.of([Claim.stated(stated() | more, release="r", dataset=name)])
        for name, more in (("q1", {}), ("q2", changes))
    ]
    both = Assurance.in_several(each)
    assert both is not None and not both.promised and "epsilon" not in both.covered and both.suspicions == ()


def test_the_most_jobs_of_any_data_set_count_in_the_sum() -> None:
    each = [said(stated(), spent=Pure(2), jobs=jobs) for jobs in (1, 3)]
    both = Assurance.in_several(each)
    assert both is not None and both.suspicions[-1][1] == 3 * 2 * 4
    unknown = Assurance.in_several([*each, said(stated(), spent=Pure(2), jobs=None)])
    assert unknown is not None and unknown.jobs is None


@pytest.mark.parametrize(
    ("details", "names"),
    [
        ({}, []),
        ({"basis": "as published"}, ["as published"]),
        ({"basis": "trust me"}, ["unknown"]),
        ({"private": False}, ["seeded"]),
        ({"private": None}, ["unknown"]),
        ({"private": "no", "basis": "empirical"}, ["unknown", "empirical"]),
    ],
)
def test_a_charge_is_proved_only_where_its_line_does_not_doubt_it(details: dict[str, Any], names: list[str]) -> None:
    ledger = Ledger.in_memory()
    ledger.open_budget(dataset="q1", unit=UNITS[0], total=Pure(2))
    entry = ledger.charge(dataset="q1", unit=UNITS[0], release="r", loss=Pure(1), details=details)
    assert [doubt.name for doubt in claim_of(entry).doubts] == names


def test_a_ledger_adds_up_its_data_sets() -> None:
    ledger = Ledger.in_memory()
    for name in ("q1", "q2", "unused"):
        ledger.open_budget(dataset=name, unit=UNITS[0], total=Pure(3))
    for name in ("q1", "q2"):
        assert in_several(ledger.budgets(), ledger.entries()) is None
        ledger.charge(dataset=name, unit=UNITS[0], release="r", loss=Pure(2))
    both = in_several(ledger.budgets(), ledger.entries())
    assert both is not None and both.loss == Pure(4) and both.datasets == ("q1", "q2")
    ledger.charge(dataset="q2", unit=UNITS[0], release="s", loss=Pure(1), details={"private": False})
    both = in_several(ledger.budgets(), ledger.entries())
    assert both is not None and not both.promised


@pytest.mark.parametrize(
    "changes", [{"private": False}, {"basis": "empirical"}, {"basis": "as published"}, {"caution": "x"}]
)
def test_a_printed_guarantee_bounds_nothing_where_nothing_is_promised(changes: dict[str, Any]) -> None:
    proved = Guarantee(UNITS[0], Pure(2), basis="proved", proof=PROOF)
    assert "times as likely" in str(proved) and "times as likely" not in str(replace(proved, **changes))
