"""Groups of rows that change together: brute force over all neighbours, who pays for whom, and refusals."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from discreet.data.frames import open_frame
from discreet.models.formula.formula import read_formula
from discreet.models.linear.private import release_mixed
from discreet.models.linear.private.moments import MomentNoise, mechanism_for
from discreet.models.linear.private.public import public_design
from discreet.models.linear.private.reach import Reach
from discreet.models.linear.private.sums import response_sums, units_of
from discreet.privacy.identification import belief_bounds
from discreet.privacy.losses import Pure
from discreet.privacy.units import AnyRow, Groups, Rows, unit_of
from discreet.release.account import Account
from discreet.words.caveats import NOT_MEASURED, stated
from discreet.words.errors import DiscreetError, PrivacyError
from faults_of import about

WHO = np.array(list("aaaabbbccd"))
DATA = {
    "who": WHO,
    "x": np.array([1.0, -3, 2, 0.5, 4, -1, 1, 2, -2, 1]),
    "kind": np.array(list("pqpqpqqppq")),
    "g": np.array(list("uuvvuuuvvv")),
    "y": np.zeros(10),
}
PUBLIC = ["who", "x", "kind", "g"]
EQUAL = dict.fromkeys(("groups", "fixed", "squares"), "1/3")  # by default so few groups would not be drawn
FORMULAS = ["y ~ 0 + kind + x + (1 | g)", "y ~ x + kind:x", "y ~ 1 + (1 | g/kind)", "y ~ 1 + (1 | who)"]
SLOPES = ["y ~ x + (1 + x | kind)", "y ~ 1 + (0 + kind | g) + (1 | kind)"]


def opened(data: dict[str, Any], formula: str, **loss: Any) -> tuple[MomentNoise, list[np.ndarray]]:
    frame, model = open_frame(data, ordered=True), read_formula(formula, needs_random=False)
    public = public_design(frame, model, any_terms=True)
    request = release_mixed.ask(formula, bounds=(-1, 1), public=PUBLIC, protect=["who"], **loss).request
    units = units_of(frame, public)
    reach = Reach.of_groups(frame, public, units, ["who"], squared="rho" in loss)
    found = mechanism_for(public, units, request, EQUAL if model.random else None, reach)
    return found, [*found.exact(response_sums(frame, public, units, request.scale), public).sums]


@pytest.mark.parametrize("loss", [{"epsilon": 1}, {"rho": 1}], ids=str)
@pytest.mark.parametrize("formula", [*FORMULAS, *SLOPES])
def test_no_neighbour_loses_more_than_the_parts_and_one_loses_nearly_as_much(
    formula: str, loss: dict[str, int]
) -> None:
    """All groups, with every response of a group at either end, before and after; a pair and its reverse are one."""
    worst: dict[int, float] = {}
    for group in np.unique(WHO):
        mine = np.flatnonzero(group == WHO)
        for rest in product((-1.0, 1.0), repeat=len(mine) - 1):
            signs = np.array([1.0, *rest])
            before, after = np.zeros(10), np.zeros(10)
            before[mine], after[mine] = signs, -signs
            mechanism, a = opened(DATA | {"y": before}, formula, **loss)
            b = opened(DATA | {"y": after}, formula, **loss)[1]
            for i, part in enumerate(mechanism.parts):
                moved = np.abs(a[i] - b[i]) / part.scale
                lost = moved.sum() if "epsilon" in loss else (moved**2).sum() / 2
                worst[i] = max(worst.get(i, 0.0), lost / float(next(iter(part.loss.amounts.values()))))
    assert all(0.999 < found <= 1 for found in worst.values()), worst


def test_a_group_pays_for_its_own_rows_only() -> None:
    """Multiplying a row's noise by the rows of the largest group would make every sum as noisy as the largest's."""
    scale = opened(DATA, "y ~ 1 + (1 | who)", epsilon=1)[0].parts[0].scale
    assert scale / scale.min() == pytest.approx([4, 3, 2, 1])
    mixed = opened(DATA, "y ~ 0 + kind + x + (1 | g)", rho=1)[0].parts[1]
    assert mixed.reach.max() < 4  # rows of one group lie in two kinds, and their changes add up as squares


def test_the_unit_has_words_and_a_key_that_can_be_read_again() -> None:
    unit = Groups(["county", "an industry"], 0, 2, ["jcr", "jdr"])
    assert unit_of(unit.key) == unit and unit.width == 2
    assert "all rows with one county and an industry" in str(unit)
    fit = release_mixed("y ~ 1", DATA, epsilon=1, public=PUBLIC, protect=["who"], bounds=(-1, 1), seed=1)
    assert fit.guarantee.unit == Groups("who", -1, 1, "y") and "all rows with one who" in str(fit.guarantee)


def test_what_can_be_learnt_of_a_group_is_bounded_by_its_loss() -> None:
    (found,) = belief_bounds(Groups("who", -1, 1, "y"), Pure(2))
    assert found.about == "one who" and found.log_factor == 2


def test_an_account_of_groups_pays_and_is_told_before() -> None:
    account = Account.open(None, dataset="d", unit=Groups("who", -1, 1, "y"), budget=Pure(2), seed=1)
    asked = {"public": PUBLIC, "account": account}
    told = release_mixed.check("y ~ 1 + (1 | g)", DATA, epsilon=1, **asked)
    assert (
        told.expected.error[0]
        > release_mixed.check("y ~ 1 + (1 | g)", DATA, epsilon=1, public=PUBLIC, bounds=(-1, 1)).expected.error[0]
    )
    release_mixed("y ~ 1 + (1 | g)", DATA, epsilon=1, **asked)
    assert account.remaining.amounts["epsilon"] == 1


@pytest.mark.parametrize(
    ("change", "error", "word"),
    [
        ({"protect": "who"}, PrivacyError, "protect"),
        ({"protect": ["y"]}, PrivacyError, "protect"),
        ({"protect": ["who", "who"]}, PrivacyError, "protect"),
        ({"protect": ["other"]}, PrivacyError, "public"),
        ({"protect": ["absent"], "public": [*PUBLIC, "absent"]}, DiscreetError, "protect"),
        ({"protect": ["who"], "method": "strict"}, PrivacyError, "method"),
        ({"protect": ["who"], "method": "paper"}, PrivacyError, "method"),
        ({"protect": ["hole"], "public": [*PUBLIC, "hole"]}, DiscreetError, "data"),
    ],
    ids=str,
)
def test_bad_requests_are_refused(change: dict[str, Any], error: type[DiscreetError], word: str) -> None:
    data = DATA | {"hole": np.array([None, *"bbbbbbbbb"], dtype=object)}
    asked = {"epsilon": 1, "public": PUBLIC, "bounds": (-1, 1)} | change
    with pytest.raises(error, check=about(word)):
        release_mixed("y ~ 1 + (1 | g)", data, **asked)


def test_lags_and_other_units_are_refused() -> None:
    lagged = {"series": ["who"], "time": "x", "public": PUBLIC, "bounds": (-1, 1)}
    with pytest.raises(PrivacyError, check=about("protect")):
        release_mixed("y ~ 1 + lag(y, 1)", DATA, epsilon=1, protect=["who"], **lagged)
    for unit, protect in ((Rows(-1, 1, "y"), ["who"]), (Groups("g", -1, 1, "y"), ["who"]), (AnyRow(), [])):
        account = Account.open(None, dataset="d", unit=unit, budget=Pure(2), seed=1)
        with pytest.raises(PrivacyError, check=about("protect" if protect else "account")):
            release_mixed("y ~ 1", DATA, epsilon=1, public=PUBLIC, account=account, protect=protect)


def test_posterior_summaries_do_not_take_an_account_of_groups() -> None:
    import discreet as dc

    account = Account.open(None, dataset="d", unit=Groups("who", -1, 1, "y"), budget=Pure(2), seed=1)
    with pytest.raises(PrivacyError, check=about("account")):
        dc.posterior_probability("y ~ x", DATA, "x", at=0.0, epsilon=1, account=account)


def crossed(groups: int, firms: int, rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    who = rng.integers(0, firms, rows)
    return {
        "who": who,
        "x": rng.normal(size=rows).round(2),
        "kind": rng.choice(list("pq"), rows),
        "g": rng.integers(0, groups, rows),
        "y": np.clip(rng.normal(0, 0.1, rows) + 0.1 * (who % 3), -1, 1),
    }


def lost(mechanism: MomentNoise, data: dict[str, Any]) -> float:
    """Expected squared error of fitted values by the noise that a release draws, in widths squared."""
    tau2, sigma2, steps = 0.01**2, 0.05**2, 2.0**14
    n = np.unique(data["g"], return_counts=True)[1].astype(float)
    groups = [part for part in mechanism.parts if part.piece is None]
    d = 2 * (groups[0].scale / steps) ** 2 if groups else np.full(len(n), np.inf)
    kept = np.where(np.isinf(d), 0.0, n**2 * tau2 / (n**2 * tau2 + n * sigma2 + np.where(np.isinf(d), 0.0, d)))
    effects = (n * tau2 * (1 - kept) - np.where(np.isinf(d), 0, kept * sigma2)).sum()
    fixed = 0.0
    for part in mechanism.parts:
        if part.piece is not None:
            numeric = bool(part.piece.monomial.atoms)
            size = np.array([(data["x"] ** 2).sum()]) if numeric else np.unique(data["kind"], return_counts=True)[1]
            fixed += (2 * (part.scale * part.unit / 2) ** 2 / size).sum()
    return float(effects + fixed)


@pytest.mark.parametrize("epsilon", [0.1, 1, 10, 100])
@pytest.mark.parametrize("shape", [(10, 10, 300), (20, 200, 2000), (40, 1500, 2000)], ids=str)
def test_no_design_is_expected_to_err_more_than_with_a_divided_loss(shape: tuple[int, int, int], epsilon: int) -> None:
    data = crossed(*shape)
    frame, model = open_frame(data, ordered=True), read_formula("y ~ 0 + kind + x + (1 | g)")
    public = public_design(frame, model)
    units = units_of(frame, public)
    reach = Reach.of_groups(frame, public, units, ["who"], squared=False)

    def noise(share: int, reach: Reach | None) -> MomentNoise:
        request = release_mixed.ask("y ~ 1", bounds=(-1, 1), epsilon=Fraction(str(epsilon)) / share).request
        return mechanism_for(public, units, request, None, reach)

    assert lost(noise(1, reach), data) <= lost(noise(reach.rows, None), data) * (1 + 1e-9)


def test_effects_that_noise_would_hide_are_zero_and_flagged_before_and_after_paying() -> None:
    data = crossed(10, 10, 300)
    asked: dict[str, Any] = {"public": PUBLIC, "protect": ["who"], "bounds": (-1, 1), "epsilon": 1}
    told = release_mixed.check("y ~ 0 + kind + x + (1 | g)", data, **asked).expected
    fit = release_mixed("y ~ 0 + kind + x + (1 | g)", data, seed=1, **asked)
    linear = release_mixed("y ~ 0 + kind + x", data, seed=1, **asked)
    assert NOT_MEASURED in stated(told.notes) and not told.groups  # an error of effects that are 0 would be invented
    flagged = {(flag.effect, flag.group) for flag in fit.flags if flag.word == "not measured"}
    assert flagged == {("random", "g"), ("variance", "g"), ("variance", "Residual")}  # which includes theirs
    assert not fit.random[0].values.any() and (fit.random[0].std_errors > 0).all()
    assert fit.beta == pytest.approx(linear.beta, abs=1e-4)
    assert (np.diag(fit.covariance) > np.diag(linear.covariance)).all()  # effects may be there, unseen
    large = release_mixed("y ~ 0 + kind + x + (1 | g)", data, seed=1, **asked | {"epsilon": 10_000})
    assert large.random[0].values.any()
