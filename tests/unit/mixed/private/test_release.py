"""The door: losses that add up, noise that follows, results that hold nothing confidential, and refusals."""

from __future__ import annotations

import json
import pickle
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.data.frames import open_frame
from discreet.models.formula.formula import read_formula
from discreet.models.linear import private
from discreet.models.linear.private import PrivateFit, separation_rate
from discreet.models.linear.private.moments import MomentNoise, mechanism_for
from discreet.models.linear.private.public import public_design
from discreet.models.linear.private.request import noise_scale
from discreet.models.linear.private.sums import HALF, units_of
from discreet.privacy.losses import Concentrated, Pure
from discreet.privacy.units import Establishments, Rows
from discreet.release.account import Account
from discreet.results import COLUMNS
from discreet.words.errors import BudgetExceeded, DataError, DiscreetError, FitError, FormulaError, PrivacyError
from faults_of import about

FORMULA = "rate ~ 0 + industry + quarter + (1 | county)"
PUBLIC = ["industry", "quarter", "county", "season", "state", "nothing", "one", "row", "twice", "before", "lag", "g"]
Flows = dict[str, np.ndarray]
release_mixed = partial(private.release_mixed, public=PUBLIC)


def mechanism(flows: Flows, **asked: Any) -> MomentNoise:
    split = asked.pop("split", None)
    request = private.release_mixed.ask("rate ~ 1", bounds=(0, 2), **asked).request
    frame = open_frame(flows, ordered=True)
    public = public_design(frame, read_formula(FORMULA))
    return mechanism_for(public, units_of(frame, public), request, split)


@pytest.mark.parametrize("epsilon", [1, "0.1", "1/3", 0.7, "4.6"])
def test_losses_of_the_parts_add_up_exactly(flows: Flows, epsilon: Any) -> None:
    found = mechanism(flows, epsilon=epsilon)
    assert found.loss == Pure(epsilon)
    for part in found.parts:
        each = zip(part.scale, part.reach, strict=True)
        assert all(
            Fraction(scale) * part.loss.amounts["epsilon"] >= 2 * HALF * Fraction(reach) for scale, reach in each
        )
        assert part.scale == pytest.approx(2 * HALF * part.reach / float(part.loss.amounts["epsilon"]), rel=1e-15)


def test_gaussian_parts_add_up_in_rho(flows: Flows) -> None:
    found = mechanism(flows, rho="1/2")
    assert found.loss == Concentrated("1/2")
    for part in found.parts:
        for scale, reach in zip(part.scale, part.reach, strict=True):
            assert (2 * HALF * Fraction(reach)) ** 2 / (2 * Fraction(scale) ** 2) <= part.loss.amounts["rho"]


@pytest.mark.parametrize("loss", [Pure("1/3"), Pure("3"), Pure("0.7"), Concentrated("1/7"), Concentrated("0.3")])
def test_scales_are_rounded_up(loss: Pure | Concentrated) -> None:
    for sensitivity in (1, 3, 2**14, 2**30 - 1):
        scale = Fraction(noise_scale(sensitivity, loss))
        spent = sensitivity / scale if isinstance(loss, Pure) else (sensitivity / scale) ** 2 / 2
        limit = next(iter(loss.amounts.values()))
        assert spent <= limit < spent * (1 + Fraction(1, 10**14))


def test_a_split_is_obeyed(flows: Flows) -> None:
    found = mechanism(flows, epsilon=2, split={"groups": 0.5, "fixed": "0.3", "squares": Fraction(1, 5)})
    assert found.parts[0].loss == Pure(1) and found.squares == Pure("0.4")
    assert found.loss == Pure(2)


def test_estimates_approach_reml_as_epsilon_grows(flows: Flows) -> None:
    from discreet.models.linear import mixed

    fit = mixed(FORMULA, flows)
    free = release_mixed(FORMULA, flows, epsilon=10**6, bounds=(0, 2), seed=1)
    assert free.fixed == pytest.approx(fit.fixed, abs=2e-3)
    assert free.variances == pytest.approx(fit.variances, rel=0.02)
    assert list(free.effects["county"].levels) == list(fit.random[0].levels)
    assert np.corrcoef(free.effects["county"].values, fit.random[0].values[:, 0])[0, 1] > 0.999
    assert free.se["quarter"] == pytest.approx(fit.se["quarter"], rel=0.02)


def test_a_fit_releases_its_model(flows: Flows) -> None:
    from discreet.models.linear import mixed

    private = mixed(FORMULA, flows).release(epsilon=1, public=PUBLIC, method="moments", bounds=(0, 2), seed=3)
    direct = release_mixed(FORMULA, flows, epsilon=1, bounds=(0, 2), seed=3)
    assert np.array_equal(private.beta, direct.beta) and private.guarantee == direct.guarantee


def test_nested_terms_match_the_fit_and_keep_the_formulas_order(flows: Flows) -> None:
    from discreet.models.linear import mixed

    for formula in ("rate ~ industry + (1 | county/season)", "rate ~ industry + (1 | state) + (1 | county)"):
        fit = mixed(formula, flows)
        free = release_mixed(formula, flows, epsilon=10**6, bounds=(0, 2), seed=1)
        assert list(free.variances) == list(fit.variances)
        assert free.variances == pytest.approx(fit.variances, rel=0.05, abs=2e-3)
        for group, term in free.effects.items():
            assert list(term.levels) == list(fit.effects[group].levels)
            assert np.abs(term.values - fit.effects[group].values[:, 0]).max() < 0.01


def test_fitted_values_need_the_public_columns_only(flows: Flows) -> None:
    fit = release_mixed(FORMULA, flows, epsilon=1, bounds=(0, 2), seed=1)
    public = {name: column for name, column in flows.items() if name != "rate"}
    values = fit.fitted(public)
    row = {name: column[7] for name, column in public.items()}
    by_hand = fit.fixed[f"industry{row['industry']}"] + fit.fixed["quarter"] * row["quarter"]
    assert values[7] == pytest.approx(by_hand + fit.effects["county"][row["county"]])
    assert np.array_equal(values, fit.fitted({**public, "rate": np.full(len(values), np.nan)}))
    new = {**public, "county": np.where(np.arange(len(values)) == 0, "elsewhere", public["county"])}
    with pytest.raises(DataError, check=about("data")):
        fit.fitted(new)
    assert fit.fitted(new, new_levels="zero")[0] == pytest.approx(
        values[0] - fit.effects["county"][public["county"][0]]
    )
    with pytest.raises(DataError, check=about("data")):
        fit.fitted({**public, "industry": np.full(len(values), "space")})
    with pytest.raises(DataError, check=about("data")):
        fit.fitted({name: column for name, column in public.items() if name != "quarter"})


def test_the_result_holds_nothing_confidential(flows: Flows) -> None:
    """Change every response within bounds and keep the noise: only the noisy statistics may change the result."""
    fit = release_mixed(FORMULA, flows, epsilon=1, bounds=(0, 2), seed=1)
    blob = pickle.dumps(fit.released)
    assert flows["rate"].tobytes()[:64] not in blob
    texts = fit.summary() + str(fit) + repr(fit) + json.dumps(fit.to_dict())
    assert f"{flows['rate'][0]:.10g}" not in texts
    reach = [fit.design, fit.learned]
    assert all(float(m[0]) == 0 for f, m in fit.learned.means.items() if f.column == "rate"), reach


def test_a_result_reads_well(flows: Flows) -> None:
    fit = release_mixed(FORMULA, flows, epsilon=1, bounds=(0, 2), seed=1, name="rates")
    table = fit.to_arrow()
    assert table.column_names == list(COLUMNS)
    assert table.num_rows == fit.tidy().num_rows + 40 == 4 + 2 + 40
    assert fit.name == "rates" and fit.entry.loss == Pure(1)
    assert "NOT PRIVATE" in str(fit) and "docs/proofs/mixed-moments.md" in fit.summary()
    assert release_mixed(FORMULA, flows, epsilon=1, bounds=(0, 2)).guarantee.private


def test_the_account_pays(flows: Flows) -> None:
    account = Account.open(None, dataset="flows", unit=Rows(0, 2, "rate"), budget=Pure(1), seed=4)
    release_mixed(FORMULA, flows, epsilon="0.6", account=account, name="first")
    assert account.remaining == Pure("0.4")
    with pytest.raises(BudgetExceeded):
        release_mixed(FORMULA, flows, epsilon="0.5", account=account)
    assert release_mixed(FORMULA, flows, epsilon="0.4", account=account, clip=(0.2, 1.8)).guarantee.unit == account.unit
    assert account.remaining == Pure(0)


def test_clipping_is_always_done_and_noted(flows: Flows) -> None:
    wild = {**flows, "rate": np.where(np.arange(3000) == 11, 7.0, flows["rate"])}
    fit = release_mixed(FORMULA, wild, epsilon=1, bounds=(0, 2), seed=1)
    assert any("clipped to [0, 2]" in note for note in fit.guarantee.notes)
    capped = {**flows, "rate": np.where(np.arange(3000) == 11, 2.0, flows["rate"])}
    assert np.array_equal(fit.beta, release_mixed(FORMULA, capped, epsilon=1, bounds=(0, 2), seed=1).beta)
    tight = release_mixed(FORMULA, wild, epsilon=10**6, bounds=(0, 2), clip=(0.5, 1.5), seed=1)
    assert tight.sigma2 < 0.9 * release_mixed(FORMULA, flows, epsilon=10**6, bounds=(0, 2), seed=1).sigma2


def test_known_rates_have_bounds(flows: Flows) -> None:
    data = {**flows, "jcr": flows["rate"]}
    fit = release_mixed("jcr ~ industry + (1 | county)", data, epsilon=1, seed=1)
    assert fit.guarantee.unit == Rows(0, 2, response="jcr")
    with pytest.raises(PrivacyError) as refused:
        release_mixed(FORMULA, flows, epsilon=1)
    assert refused.value.about == "bounds"


def test_lagged_columns_are_noted(flows: Flows) -> None:
    data = {**flows, "before": np.roll(flows["rate"], 1)}
    formula = "rate ~ industry + before + (1 | county)"
    fit = release_mixed(formula, data, epsilon=1, bounds=(0, 2), lagged=["before"], seed=1)
    assert any("before hold earlier responses" in note for note in fit.guarantee.notes)
    with pytest.raises(PrivacyError) as refused:
        release_mixed(formula, data, epsilon=1, bounds=(0, 2), lagged=["earlier"])
    assert refused.value.about == "lagged"


def test_declared_lags_get_half_of_the_loss() -> None:
    """Group sums alone would explain groups by their lags; sums over all rows must be precise enough to object."""
    rng = np.random.default_rng(6)
    county, times = np.repeat(np.arange(60), 200), 200
    effect = rng.normal(0, 0.03, 60)
    y = np.empty((60, times + 1))
    y[:, 0] = 0.2 + effect / 0.7
    for t in range(times):
        y[:, t + 1] = 0.14 + 0.3 * y[:, t] + effect + rng.normal(0, 0.05, 60)
    data = {"rate": np.clip(y[:, 1:].ravel(), 0, 1), "lag": np.clip(y[:, :-1].ravel(), 0, 1), "county": county}
    formula = "rate ~ 1 + lag + (1 | county)"
    errors = {}
    for lagged in ((), ("lag",)):
        found = [release_mixed(formula, data, epsilon=2, bounds=(0, 1), lagged=lagged, seed=seed) for seed in range(12)]
        errors[lagged] = np.mean([abs(fit.fixed["lag"] - 0.3) for fit in found])
    assert errors[("lag",)] < 0.8 * errors[()]


def test_a_linear_model_is_a_model(flows: Flows) -> None:
    fit = release_mixed("rate ~ 0 + industry", flows, epsilon=1000, bounds=(0, 2), seed=1)
    for name in ("farms", "mines", "shops"):
        assert fit.fixed[f"industry{name}"] == pytest.approx(flows["rate"][flows["industry"] == name].mean(), abs=1e-3)
    slope = release_mixed("rate ~ quarter", flows, epsilon=1000, bounds=(0, 2), seed=1)
    expected = np.polyfit(flows["quarter"], flows["rate"], 1)
    assert [slope.fixed["quarter"], slope.fixed["(Intercept)"]] == pytest.approx(expected.tolist(), rel=1e-2)
    assert slope.random == () and "linear model" in slope.summary()


def test_files_and_frames_give_the_same_release(flows: Flows, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(flows), tmp_path / "flows.parquet")
    formula = "rate ~ 0 + industry + (1 | county/season)"
    a, b = (
        release_mixed(formula, data, epsilon=1, bounds=(0, 2), seed=3)
        for data in (flows, str(tmp_path / "flows.parquet"))
    )
    assert a.beta == pytest.approx(b.beta, abs=1e-12)
    assert a.effects["county"].values == pytest.approx(b.effects["county"].values, abs=1e-9)


def test_collinear_columns_are_dropped(flows: Flows) -> None:
    data = {**flows, "twice": 2 * flows["quarter"]}
    fit = release_mixed("rate ~ quarter + twice + (1 | county)", data, epsilon=10, bounds=(0, 2), seed=1)
    assert fit.names == ("(Intercept)", "quarter") and "twice" in fit.notes[1]


@pytest.mark.parametrize(
    ("change", "error", "about"),
    [
        ({"formula": "rate ~ industry + (quarter | county)", "method": "strict"}, FormulaError, "formula"),
        ({"formula": "rate ~ industry + (1 | county) + (1 | season)", "method": "paper"}, FitError, "formula"),
        ({"formula": "rate ~ 0 + quarter + (1 | county)"}, FormulaError, "formula"),
        ({"formula": "rate ~ 0 + (1 | county)"}, FormulaError, "formula"),
        ({"formula": "log(rate) ~ industry"}, FormulaError, "formula"),
        ({"formula": "rate ~ rate + (1 | county)"}, FormulaError, "formula"),
        ({"formula": "rate ~ nothing"}, DataError, "formula"),
        ({"formula": "nope ~ industry"}, DataError, "formula"),
        ({"formula": "nope ~ quarter + (1 | county)", "method": "paper"}, DataError, "formula"),
        ({"formula": "rate ~ 1 + (1 | one)"}, FitError, "formula"),
        ({"formula": "rate ~ 1 + (1 | row)"}, FitError, "formula"),
        ({"clip": True}, PrivacyError, "clip"),
        ({"clip": False}, PrivacyError, "clip"),
        ({"public": ["industry", "quarter"]}, PrivacyError, "public"),
        ({"public": "county"}, PrivacyError, "public"),
        ({"public": [*PUBLIC, "rate"]}, PrivacyError, "public"),
        ({"formula": "rate ~ 1 + (1 | decimal)", "public": ["decimal"]}, FormulaError, "formula"),
        ({"formula": "rate ~ C(decimal)", "public": ["decimal"]}, FormulaError, "formula"),
        ({"ledger": "book.db", "budget": 1}, PrivacyError, "dataset"),
        ({"ledger": "absent/book.db", "dataset": "flows"}, PrivacyError, "budget"),
        ({"budget": 1}, PrivacyError, "ledger"),
        ({"epsilon": None}, PrivacyError, "epsilon"),
        ({"epsilon": 0}, PrivacyError, "epsilon"),
        ({"epsilon": -1}, PrivacyError, "epsilon"),
        ({"rho": 1}, PrivacyError, "epsilon"),
        ({"bounds": (2, 0)}, PrivacyError, "bounds"),
        ({"bounds": 2}, PrivacyError, "bounds"),
        ({"clip": (1, 1)}, PrivacyError, "clip"),
        ({"clip": (3, 4)}, PrivacyError, "clip"),
        ({"clip": (0, "2.1")}, PrivacyError, "clip"),
        ({"clip": (-1, 1)}, PrivacyError, "clip"),
        ({"split": {"groups": 0.5, "fixed": 0.5}}, PrivacyError, "split"),
        ({"split": {"groups": 0.5, "fixed": 0.3, "squares": 0.3}}, PrivacyError, "split"),
        ({"epsilon": 1e-300}, PrivacyError, "epsilon"),
        ({"epsilon": "1e400"}, PrivacyError, "epsilon"),
        ({"epsilon": None, "rho": "1e400"}, PrivacyError, "rho"),
        ({"epsilon": "1e-11"}, PrivacyError, "epsilon"),
        ({"bounds": (0, 1e308)}, PrivacyError, "bounds"),
        ({"bounds": (0, "1e400")}, PrivacyError, "bounds"),
        ({"bounds": (0, 1e-300)}, PrivacyError, "bounds"),
        ({"name": 5}, PrivacyError, "name"),
        ({"name": ""}, PrivacyError, "name"),
        ({"seed": "1"}, PrivacyError, "seed"),
        ({"seed": -1}, PrivacyError, "seed"),
        ({"seed": True}, PrivacyError, "seed"),
        ({"seed": 1.5}, PrivacyError, "seed"),
        ({"lagged": "quarter"}, PrivacyError, "lagged"),
    ],
)
def test_bad_requests_are_refused(flows: Flows, change: dict[str, Any], error: type[DiscreetError], about: str) -> None:
    data = {**flows, "one": np.full(3000, "a"), "row": np.arange(3000), "decimal": np.arange(3000) % 7 / 8}
    asked: dict[str, Any] = {"formula": FORMULA, "epsilon": 1, "bounds": (0, 2), "seed": 1, **change}
    with pytest.raises(error) as refused:
        release_mixed(asked.pop("formula"), data, **asked)
    assert refused.value.about == about


def test_an_unknown_method_is_refused(flows: Flows) -> None:
    with pytest.raises(PrivacyError) as refused:
        release_mixed(FORMULA, flows, epsilon=1, bounds=(0, 2), method="magic")
    assert refused.value.about == "method"


def test_numbers_of_numpy_are_numbers(flows: Flows) -> None:
    asked: dict[str, Any] = {"epsilon": np.int64(1), "bounds": (np.float64(0), np.int32(2)), "seed": np.int64(1)}
    fit = release_mixed(FORMULA, flows, **asked)
    assert np.array_equal(fit.beta, release_mixed(FORMULA, flows, epsilon=1, bounds=(0, 2), seed=1).beta)
    json.dumps(fit.to_dict())


def test_a_number_too_large_for_any_column_counts_as_the_bound() -> None:
    large, bound = (
        release_mixed(
            "y ~ 1 + (1 | g)", {"y": [y, *[1, 2, 3] * 33], "g": list("ab") * 50}, epsilon=1, bounds=(0, 2), seed=1
        )
        for y in (10**400, 2)
    )
    np.testing.assert_array_equal(large.beta, bound.beta)


@pytest.mark.parametrize("method", ["moments", "strict", "paper"])
def test_text_as_a_response_is_refused_without_being_quoted(flows: Flows, method: str) -> None:
    secret = {**flows, "rate": np.full(3000, "confidential")}
    with pytest.raises(DataError, check=about("formula")) as caught:
        release_mixed(FORMULA, secret, epsilon=1, bounds=(0, 2), method=method)
    assert "confidential" not in str(caught.value) and caught.value.__context__ is None


def test_a_ledger_pays_in_one_call(flows: Flows, tmp_path: Path) -> None:
    from discreet.ledger import Ledger
    from discreet.models.linear import mixed

    book = tmp_path / "book.db"
    fit = mixed(FORMULA, flows)
    paid = fit.release(
        public=PUBLIC, epsilon="0.6", bounds=(0, 2), ledger=book, budget=1, dataset="flows", name="first"
    )
    assert paid.entry.release == "first" and paid.guarantee.private
    assert Ledger.open(book).remaining("flows", Rows(0, 2, response="rate")) == Pure("0.4")
    with pytest.raises(BudgetExceeded):
        fit.release(public=PUBLIC, epsilon="0.5", bounds=(0, 2), ledger=book, dataset="flows")
    gaussian = fit.release(public=PUBLIC, rho=1, bounds=(0, 2), ledger=tmp_path / "rho.db", budget=2, dataset="flows")
    assert gaussian.guarantee.loss == Concentrated(1)
    account = Account.open(None, dataset="flows", unit=Rows(0, 2, "rate"), budget=Pure(1))
    with pytest.raises(PrivacyError) as refused:
        fit.release(public=PUBLIC, epsilon=1, account=account, ledger=book, dataset="flows")
    assert refused.value.about == "ledger"


def test_accounts_of_other_units_are_refused(flows: Flows) -> None:
    account = Account.open(None, dataset="flows", unit=Establishments(0.1), budget=Pure(1))
    with pytest.raises(PrivacyError) as refused:
        release_mixed(FORMULA, flows, epsilon=1, account=account)
    assert refused.value.about == "account"
    rows = Account.open(None, dataset="flows", unit=Rows(0, 2, "rate"), budget=Pure(1))
    with pytest.raises(PrivacyError) as refused:
        release_mixed(FORMULA, flows, epsilon=1, account=rows, bounds=(0, 1))
    assert refused.value.about == "bounds"
    with pytest.raises(PrivacyError) as refused:
        release_mixed(FORMULA, flows, epsilon=1, account=rows, seed=1)
    assert refused.value.about == "seed"
    assert rows.remaining == Pure(1)


def test_separations_follow_from_the_identity(flows: Flows) -> None:
    rng = np.random.default_rng(4)
    jcr, jdr, churn = rng.uniform(0, 0.5, (3, 3000))
    data = {**flows, "jcr": jcr, "jdr": jdr, "ar": jcr + churn, "sr": jdr + churn}
    fits = {
        rate: release_mixed(f"{rate} ~ 0 + industry + (1 | county)", data, epsilon=10**6, seed=1)
        for rate in ("jcr", "jdr", "ar")
    }
    sr = separation_rate(**fits)
    direct = release_mixed("sr ~ 0 + industry + (1 | county)", data, epsilon=10**6, seed=1)
    assert sr.fixed == pytest.approx(direct.fixed, abs=2e-3)
    fitted = {rate: fit.fitted(data) for rate, fit in fits.items()}
    assert sr.fitted(data) == pytest.approx(fitted["ar"] - fitted["jcr"] + fitted["jdr"], abs=1e-12)
    assert sr.guarantee.loss == Pure(3 * 10**6) and sr.guarantee.basis == "proved"
    assert sr.variances == {"county": None, "Residual": None} and set(sr.se.values()) == {None}
    json.dumps(sr.to_dict(), allow_nan=False)
    assert "AR - JCR + JDR" in sr.summary() and sr.to_arrow().num_rows == 3 + 2 + 40
    with pytest.raises(FitError, check=about("releases")):
        separation_rate(**{**fits, "ar": release_mixed("ar ~ 1 + (1 | county)", data, epsilon=1, seed=1)})


def test_public_types() -> None:
    assert PrivateFit.__doc__ and release_mixed.__doc__
