"""What a row may hold and what a caller may ask: nothing in a row stops a release, nothing wrong is charged."""

from __future__ import annotations

import inspect
import json
import re

import numpy as np
import pytest

from discreet.models.bayes.conjugate import GPrior
from discreet.models.bayes.erm import objective_perturbation
from discreet.models.bayes.interval import posterior_interval
from discreet.models.bayes.probability import posterior_probability
from discreet.models.bayes.quantile import posterior_quantile
from discreet.models.bayes.regression import public_facts, regression
from discreet.privacy.losses import Pure
from discreet.privacy.units import AnyRow, Rows
from discreet.release.account import Account
from discreet.words.errors import BudgetExceeded, DiscreetError, FitError, FormulaError, Infeasible, PrivacyError
from faults_of import about

CALLS = {
    "probability": lambda formula, data, coefficient, **more: posterior_probability(
        formula, data, coefficient, at=2.0, **more
    ),
    "quantile": lambda formula, data, coefficient, **more: posterior_quantile(
        formula, data, coefficient, probability=0.5, **more
    ),
    "interval": posterior_interval,
    "perturbation": lambda formula, data, coefficient, **more: objective_perturbation(
        formula, data, bounds=(-5, 5), norm=2, penalty=1, **more
    ),
}
each_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
each_summary = pytest.mark.parametrize("call", list(CALLS.values())[:3], ids=list(CALLS)[:3])


@pytest.fixture
def account() -> Account:
    return Account.open(None, dataset="line", unit=AnyRow(), budget=Pure(5))


@pytest.fixture(scope="module")
def small() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.lognormal(size=3_000)
    return {"x": x, "y": 1 + 2 * np.log(x) + rng.normal(size=3_000)}


@each_call
@pytest.mark.parametrize(
    ("column", "value"),
    [("x", 0.0), ("x", -1.0), ("x", np.nan), ("x", -np.inf), ("x", 1e308), ("y", np.nan), ("y", np.inf), ("y", -1e308)],
)
def test_no_entry_of_a_row_stops_or_warns(small, call, column: str, value: float) -> None:
    changed = {name: values.copy() for name, values in small.items()}
    changed[column][7] = value
    for formula, name in (("y ~ log(x)", "log(x)"), ("y ~ x + log(x):x", "x")):
        call(formula, changed, name, epsilon=4)


def test_a_row_that_is_no_row_of_numbers_counts_as_zeros(small) -> None:
    import pyarrow as pa

    x, sector = small["x"].tolist(), ["a", "b", "c"] * 1_000
    x[3], sector[5] = None, None
    table = pa.table({"y": small["y"], "x": x, "sector": sector})
    found = regression("y ~ x * sector", table, public=["sector"])
    complete = {"y": small["y"], "x": small["x"], "sector": ["a", "b", "c"] * 1_000}
    whole = regression("y ~ x * sector", complete, public=["sector"])
    assert found.names == whole.names
    assert not found.X[[3, 5]].any() and not found.y[[3, 5]].any()
    rest = np.delete(np.arange(3_000), [3, 5])
    np.testing.assert_array_equal(found.X[rest], whole.X[rest])
    np.testing.assert_array_equal(found.y[rest], whole.y[rest])


def test_published_noise_that_proves_more_is_charged_what_it_proves(small, account) -> None:
    ask = {"at": 2.0, "epsilon": "1/4", "method": "-2 log p", "calibration": "paper", "partitions": 10}
    paper = posterior_probability("y ~ log(x)", small, "log(x)", account=account, name="p", **ask)
    assert not paper.guarantee.private and str(paper.guarantee).startswith("NOT PRIVATE. Not private as published")
    assert "proves epsilon=2.5" in str(paper.guarantee) and "seed" not in str(paper.guarantee)
    assert paper.entry.loss == Pure("5/2") and account.remaining == Pure("5/2")
    details = paper.entry.payload["details"]
    assert (
        details["private"] is False and details["calibration"] == "paper" and details["claimed"] == {"epsilon": "1/4"}
    )
    assert paper.guarantee.to_dict()["private"] is False
    with pytest.raises(BudgetExceeded):
        posterior_probability("y ~ log(x)", small, "log(x)", account=account, **ask | {"partitions": 11})
    one = posterior_probability("y ~ log(x)", small, "log(x)", **ask | {"partitions": 1})
    assert one.guarantee.private and one.guarantee.loss == Pure("1/4")
    alone = posterior_probability("y ~ log(x)", small, "log(x)", **ask)
    assert not alone.guarantee.private and alone.entry.loss == Pure("5/2")


def test_the_ledger_keeps_the_request(small, account) -> None:
    first = posterior_probability("y ~ x", small, ["x", "(Intercept)"], at=[1.0, 2.0], epsilon=1, account=account)
    assert first.entry.payload["details"]["formula"] == "y ~ x" and first.entry.payload["details"]["coefficient"] == [
        "x",
        "(Intercept)",
    ]
    assert (
        first.entry.payload["details"]["at"] == [1.0, 2.0] and first.entry.payload["details"]["calibration"] == "tight"
    )
    second = posterior_quantile("y ~ x", small, "x", probability=0.25, epsilon=2, centre="zero", account=account)
    assert (
        second.entry.payload["details"]["probability"] == [0.25] and second.entry.payload["details"]["centre"] == "zero"
    )
    third = posterior_interval("y ~ x", small, "x", level=0.9, epsilon=2, account=account, partitions=700)
    assert third.entry.payload["details"]["level"] == [0.9]
    assert all(json.dumps(dict(released.entry.payload["details"])) for released in (first, second, third))


def test_errors_never_list_what_the_data_hold(small) -> None:
    people = small | {"name": np.array(["Alice", "Bob", "Secret"] * 1_000)}
    for wrong in ("zz", "nameZoe"):
        with pytest.raises(FormulaError) as caught:
            posterior_probability("y ~ x + name", people, wrong, at=0.0, epsilon=1, public=["name"])
        assert not any(level in str(caught.value) for level in ("Alice", "Bob", "Secret"))
    with pytest.raises(FormulaError, check=about("coefficient")):
        posterior_probability("y ~ x * name", people, "zz", at=0.0, epsilon=1, public=["name"])
    with pytest.raises(FormulaError, check=about("formula")) as caught:
        posterior_probability("y ~ C(x)", small, "zz", at=0.0, epsilon=1, public=["x"])
    assert f"{small['x'][0]:.4f}" not in str(caught.value)


@each_summary
@pytest.mark.parametrize("wrong", [2.5, True, "10", 0, 1_001])
def test_parts_that_are_no_number_of_parts_cost_nothing(small, account, call, wrong) -> None:
    with pytest.raises(FitError) as refused:
        call("y ~ x", small, "x", epsilon=4, partitions=wrong, account=account)
    assert refused.value.about == "partitions"
    assert account.remaining == Pure(5)


@each_summary
def test_a_numpy_integer_is_a_number_of_parts(small, call) -> None:
    parts = call("y ~ x", small, "x", epsilon=4, partitions=np.int64(100)).value.partitions
    assert parts == 100 and type(parts) is int


@each_call
@pytest.mark.parametrize(
    "wrong",
    [{"seed": s} for s in (-1, 1.5, "a", True)]
    + [{"name": 5}]
    + [{"epsilon": e} for e in (10**400, 1e-300, "x", True)],
    ids=lambda wrong: f"{wrong!r:.20}",
)
def test_raw_errors_never_come_through(small, call, wrong) -> None:
    with pytest.raises(PrivacyError) as refused:
        call("y ~ x", small, "x", **{"epsilon": 4} | wrong)
    assert refused.value.about == next(iter(wrong))


@each_summary
@pytest.mark.parametrize("seed", ["x", -1, 1.5, True])
def test_seeds_are_whole_numbers(small, call, seed) -> None:
    with pytest.raises(PrivacyError) as refused:
        call("y ~ x", small, "x", epsilon=4, seed=seed)
    assert refused.value.about == "seed"


@each_summary
def test_a_seed_repeats_partition_and_noise_also_by_an_account(small, call) -> None:
    def seeded(seed: int) -> Account:
        return Account.open(None, dataset="small", unit=AnyRow(), budget=Pure(5), seed=seed)

    drawn = [
        [call("y ~ x", small, "x", epsilon=4, account=seeded(1)).value for _ in range(2)],
        [call("y ~ x", small, "x", epsilon=4, seed=1).value for _ in range(2)],
    ]
    assert len({str(value) for two in drawn for value in two}) == 1
    assert call("y ~ x", small, "x", epsilon=4, account=seeded(2)).value != drawn[0][0]


def test_questions_are_numbers(small) -> None:
    for wrong in ("2", True, None, [1, "a"]):
        with pytest.raises(PrivacyError):
            posterior_probability("y ~ x", small, "x", at=wrong, epsilon=1)
    for wrong in ("a", 0, np.inf, True):
        with pytest.raises(PrivacyError) as refused:
            posterior_quantile("y ~ x", small, "x", probability=0.5, epsilon=4, scale=wrong)
        assert refused.value.about == "scale"


@pytest.mark.parametrize(
    "wrong",
    [
        {"bounds": ("a", 8)},
        {"bounds": (True, 8)},
        {"norm": 1e300},
        {"penalty": "x"},
        {"penalty": 1e-300, "epsilon": 1_000},
    ],
    ids=str,
)
def test_perturbation_refuses_before_it_charges(small, wrong) -> None:
    account = Account.open(None, dataset="line", unit=AnyRow(), budget=Pure(2_000))
    ask = {"bounds": (-8, 8), "norm": 4, "penalty": 1, "epsilon": 1}
    with pytest.raises(DiscreetError):
        objective_perturbation("y ~ x", small, account=account, **ask | wrong)
    assert account.remaining == Pure(2_000)


def test_perturbation_says_its_noise_and_that_the_penalty_was_raised(small) -> None:
    ask = {"bounds": (-8, 8), "norm": 4, "epsilon": 1}
    raised = objective_perturbation("y ~ x", small, penalty=1e-3, **ask).value
    assert f"raised from 0.001 to {raised.penalty:.4g}" in str(raised)
    assert f"Laplace({raised.scale:.4g}) in the gradient" in str(raised)
    assert "raised" not in str(objective_perturbation("y ~ x", small, penalty=100.0, **ask).value)


def test_a_centre_at_the_end_of_the_ladder_is_noted(small) -> None:
    data = {"x": small["y"], "y": 3 + 2 * small["y"] + small["x"]}
    for call in (CALLS["quantile"], CALLS["interval"]):
        cut = call("y ~ x", data, "x", epsilon=4, scale=1e-8).value
        assert "give a larger `scale`" in str(cut) and cut.flag == ("small parts, end of search",)
        assert "`unit`" not in str(call("y ~ x", data, "x", epsilon=4).value)


@pytest.mark.parametrize("questions", [1, 2, 3])
@pytest.mark.parametrize("ask", [posterior_quantile, posterior_interval])
def test_the_epsilon_that_is_advised_is_enough(ask, questions: int) -> None:
    """For all questions together, and not much more than enough: two percent less is refused again."""
    rng = np.random.default_rng(3)
    data = {"x": rng.normal(size=400), "y": rng.normal(size=400)}
    values = [0.5, 0.9, 0.8][:questions]
    options = {"probability": values} if ask is posterior_quantile else {"level": values}
    with pytest.raises(Infeasible, check=about("epsilon")) as found:
        ask("y ~ x", data, "x", epsilon=1, partitions=10, **options)
    assert ("all 2 questions together" in str(found.value)) == (questions == 2)
    advised = float(re.search(r"Raise epsilon to ([0-9.]+)", str(found.value))[1])
    ask("y ~ x", data, "x", epsilon=advised, partitions=10, **options)
    with pytest.raises(Infeasible):
        ask("y ~ x", data, "x", epsilon=0.98 * advised, partitions=10, **options)


@pytest.mark.parametrize("ask", [posterior_quantile, posterior_interval])
def test_options_that_are_advised_exist(ask) -> None:
    data = {"x": np.arange(400.0), "y": np.ones(400)}
    options = {"probability": 0.5} if ask is posterior_quantile else {}
    with pytest.raises(Infeasible) as found:
        ask("y ~ x", data, "x", epsilon=1, partitions=10, **options)
    advised = re.findall(r"(\w+)='", str(found.value))
    assert set(advised) <= set(inspect.signature(ask).parameters)
    assert ("centre" in advised) == (ask is posterior_quantile)


@each_summary
@pytest.mark.parametrize("prior", [None, "vague", 1.0, GPrior], ids=str)
def test_what_is_no_prior_is_refused_before_anything_is_read_or_charged(account, call, prior) -> None:
    with pytest.raises(FitError, check=about("prior")):
        call("y ~ x", "no/such/file.csv", "x", epsilon=4, prior=prior, account=account)
    assert account.remaining == Pure(5)


def test_rows_of_categories_have_a_norm_that_the_formula_knows(small) -> None:
    """Every term touches one column with a 1 in it; a column of numbers has no bound that is public."""
    data = small | {"sector": ["a", "b", "c"] * 1_000, "size": ["s", "t"] * 1_500}
    public = {"public": ["sector", "size"]}
    ask = {"bounds": (-8, 8), "penalty": 100.0, "epsilon": 1, **public}
    for formula, terms in (("y ~ sector", 2), ("y ~ 0 + sector", 1), ("y ~ sector * size", 4)):
        known = public_facts(formula, data, **public)
        assert known.longest == terms and np.abs(known.read(known.frame).X).sum(axis=1).max() == terms
        found = objective_perturbation(formula, data, **ask)
        assert found.entry.payload["details"]["norm"] == terms
    for formula in ("y ~ x", "y ~ sector * x", "y ~ log(x) + sector"):
        with pytest.raises(FitError, check=about("norm")):
            objective_perturbation(formula, data, **ask)


def test_public_columns_of_numbers_bound_their_rows_where_responses_alone_are_protected(small) -> None:
    """Before, norm was asked for although everybody may know all columns but the response."""
    ask = {"bounds": (-8, 8), "penalty": 100.0, "epsilon": 1}
    account = Account.open(None, dataset="rows", unit=Rows(-8, 8, "y"), budget=Pure(5))
    found = objective_perturbation("y ~ x", small, public=["x"], account=account, **ask)
    longest = 1 + np.abs(small["x"]).max()
    assert found.entry.payload["details"]["norm"] == pytest.approx(longest, rel=1e-12)
    for other in ({"public": ["x"]}, {"account": account}):
        with pytest.raises(FitError, check=about("norm")):
            objective_perturbation("y ~ x", small, **ask, **other)
    assert account.remaining == Pure(4)


def test_perturbation_without_a_share_for_them_has_no_errors_and_says_so_before_it_is_paid(small) -> None:
    ask = {"bounds": (-8, 8), "norm": 4, "penalty": 100.0, "epsilon": 1, "error_share": 0}
    expected = objective_perturbation.check("y ~ x", small, **ask).expected
    found = objective_perturbation("y ~ x", small, **ask).value
    assert expected.flag == found.flag == ("no standard errors",) * 2
    assert expected.notes[0] in found.notes and "posterior_interval" in str(found)
    table = found.to_arrow()
    assert table["std_error"].null_count == table["low"].null_count == 2
    assert found.tidy()["upper"].null_count == 2


@pytest.mark.parametrize("share", [-0.1, 1, "2", True, "x"])
def test_a_share_for_errors_is_from_0_to_below_1(small, share) -> None:
    with pytest.raises(PrivacyError, check=about("error_share")):
        objective_perturbation("y ~ x", small, bounds=(-8, 8), norm=4, penalty=1, epsilon=1, error_share=share)
